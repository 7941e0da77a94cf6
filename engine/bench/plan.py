"""What is run, in which order: the ways of decoding that are compared, and the engine processes they take.

Each part of a plan is one fresh engine process; the ways of decoding take turns, and who begins changes from run to
run, so that a busy moment of the machine does not fall on one of them alone. Knows nothing of processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.bench.suite import Question
from engine.drafter_config import DrafterConfig
from engine.errors import SettingsError
from engine.events import Mode
from engine.gguf_file import read_header
from engine.stats import MODE_NAMES

NO_SELECTOR, NO_CONVOLUTION = "selector", "convolution"
WHOLE, DRAFT_LENGTH, BLOCK = "whole", "draft-length", "block"
ABLATION, QUANTISATION = "ablation", "quantisation"
SWEEPS = {
    WHOLE: "Every draft of a block verified",
    DRAFT_LENGTH: "Drafts verified in a pass, out of a whole block",
    BLOCK: "Block length, every draft verified",
    ABLATION: "DFlash 2 without its parts",
    QUANTISATION: "Quantisation of the drafter",
}
QUANTISATIONS = ("Q8_0", "Q4_0", "IQ4_NL")
SWEEP_PER_KIND = 3  # questions of each kind in a sweep


@dataclass(frozen=True)
class Variant:
    """One way of decoding. `draft_length` None: as the program chooses."""

    name: str
    mode: Mode
    drafter: str | None = None  # path; None in baseline
    draft_length: int | None = None
    whole_block: bool = False  # draft the whole block, whatever is verified of it
    without: str = ""  # NO_SELECTOR or NO_CONVOLUTION
    quantisation: str = ""  # of a copy of the drafter, made for the purpose; "" = the file as it is
    sweep: str = ""  # one of SWEEPS, "" for the modes themselves


@dataclass(frozen=True)
class Part:
    """One engine process: it answers all questions at each temperature."""

    variant: Variant
    concurrency: int
    run: int  # from 1

    @property
    def name(self) -> str:
        return f"{self.variant.name} × {self.concurrency}, run {self.run}"


@dataclass(frozen=True)
class Conditions:
    """The same for every way of decoding."""

    target: str  # path
    max_tokens: int
    runs: int
    concurrency: tuple[int, ...] = (1,)
    temperatures: tuple[float, ...] = (0.0,)
    threads: int | None = None  # None = physical cores
    context: int = 1024
    gpu_layers: int = -1  # -1 = as many as fit
    device: str | None = None
    kv_type: str = "f16"  # of the target's keys and values
    seed: int = 1
    samples: int = 0  # drawn answers for the test of distributions; 0 = no test
    suite: str = "suite"  # what was asked for, in words
    limit_s: float | None = None  # after which no more is measured

    @property
    def least(self) -> int:
        """The fewest answers at once: what figures are of that do not name a number."""
        return min(self.concurrency)


@dataclass(frozen=True)
class Plan:
    conditions: Conditions
    questions: tuple[Question, ...]
    variants: tuple[Variant, ...]
    missing: tuple[tuple[Mode, str], ...] = ()  # modes that cannot be run, and why

    def parts(self) -> Iterator[Part]:
        """Run by run; the modes at every concurrency, then the sweeps, one question at a time."""
        modes = [variant for variant in self.variants if not variant.sweep]
        sweeps = [variant for variant in self.variants if variant.sweep]
        for run in range(1, self.conditions.runs + 1):
            for concurrency in self.conditions.concurrency:
                yield from (Part(variant, concurrency, run) for variant in _turned(modes, run))
            swept = [variant for variant in sweeps if variant.sweep != WHOLE or run == 1]
            yield from (Part(variant, 1, run) for variant in _turned(swept, run))

    def questions_of(self, variant: Variant) -> tuple[Question, ...]:
        """A sweep takes the first few of each kind; what a drafter is worth is asked of all, but once."""
        if variant.sweep in ("", WHOLE):
            return self.questions
        seen: dict[str, int] = {}
        chosen = []
        for question in self.questions:
            seen[question.kind] = seen.get(question.kind, 0) + 1
            if seen[question.kind] <= SWEEP_PER_KIND:
                chosen.append(question)
        return tuple(chosen)

    def temperatures_of(self, variant: Variant) -> tuple[float, ...]:
        everywhere = variant.sweep in ("", WHOLE)
        return self.conditions.temperatures if everywhere else self.conditions.temperatures[:1]


def _turned(variants: Sequence[Variant], run: int) -> Sequence[Variant]:
    at = (run - 1) % max(1, len(variants))
    return (*variants[at:], *variants[:at])


def mode_variants(
    modes: Sequence[Mode], drafters: Mapping[Mode, str], draft_length: int | None = None
) -> tuple[Variant, ...]:
    """The modes that can be run, in the order of `Mode`."""
    return tuple(
        Variant(MODE_NAMES[mode], mode, drafters.get(mode), draft_length if mode in drafters else None)
        for mode in Mode
        if mode in modes and (mode is Mode.BASELINE or mode in drafters)
    )


def sweep_variants(names: Sequence[str], drafters: Mapping[Mode, str]) -> tuple[Variant, ...]:
    """Raises SettingsError for a sweep that there is not, ModelFileError."""
    found: list[Variant] = []
    for name in names:
        if name not in SWEEPS:
            raise SettingsError(f"There is no sweep {name}; there are: {', '.join(SWEEPS)}.")
        for mode, path in drafters.items():
            block = DrafterConfig.from_header(read_header(path)).block_size
            found += _sweep(name, mode, path, block)
    return tuple(found)


def _sweep(name: str, mode: Mode, path: str, block: int) -> list[Variant]:
    title = MODE_NAMES[mode]
    if name == WHOLE:
        return [whole_block(mode, path, block)]
    if name == DRAFT_LENGTH:
        fixed = [
            Variant(f"{title}, {_drafts(m)}", mode, path, m, whole_block=True, sweep=name) for m in range(1, block)
        ]
        return [*fixed, Variant(f"{title}, automatic", mode, path, sweep=name)]
    if name == BLOCK:
        lengths = sorted({*(b for b in (2, 4, 8, 16, 32) if b < block), block})
        return [Variant(f"{title}, block of {b}", mode, path, b - 1, sweep=name) for b in lengths]
    if name == QUANTISATION:
        as_it_is = Variant(f"{title}, as it is", mode, path, block - 1, sweep=name)
        return [
            as_it_is,
            *(replace(as_it_is, name=f"{title}, {kind}", quantisation=kind) for kind in QUANTISATIONS),
        ]
    if mode is not Mode.DFLASH2:
        return []
    return [
        Variant(f"{title}, complete", mode, path, block - 1, sweep=name),
        Variant(f"{title}, no selector", mode, path, block - 1, without=NO_SELECTOR, sweep=name),
        Variant(f"{title}, no convolution", mode, path, block - 1, without=NO_CONVOLUTION, sweep=name),
    ]


def whole_block(mode: Mode, path: str | None = None, block: int = 2) -> Variant:
    """What a drafter is worth by itself: how many drafts to verify is no policy's choice, and no machine's."""
    return Variant(f"{MODE_NAMES[mode]}, whole block", mode, path, block - 1, sweep=WHOLE)


def _drafts(count: int) -> str:
    return "1 draft" if count == 1 else f"{count} drafts"
