"""What a drafter is worth, measured through the engine: acceptance lengths with intervals, accuracy by position, speed.

Every cycle verifies the whole block, so that acceptance is the drafter's and no policy's. Intervals come from
resampling the prompts. Knows nothing of training; NumPy only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.events import SamplerSettings
from engine.generate import Stream, run_cycle
from engine.graph import Device
from engine.sampling import Sampler
from engine.target import PREFILL_CHUNK, Target

_RESAMPLED = 2000


@dataclass(frozen=True)
class Question:
    kind: str
    ids: tuple[int, ...]  # rendered, ready for the answer


@dataclass(frozen=True)
class Answer:
    """How drafting went for one question."""

    kind: str
    emitted: int  # tokens emitted by the verification passes
    passes: int
    accepted: tuple[int, ...]  # accepted drafts of each pass


@dataclass(frozen=True)
class Accuracy:
    """By drafted position: how often the likeliest candidate is what the target says there, and how often any is."""

    top_1: tuple[float, ...]
    top_k: tuple[float, ...]
    anchors: int


@contextmanager
def opened(path: Path, target: Target, device: Device, kind: type[Drafter] = Drafter) -> Iterator[Drafter]:
    """A drafter with what it shares of the target, which taps what the drafter reads."""
    shared = SharedTensors(target.embeddings, target.head, target.file_name)
    drafter = kind(str(path), device, context=target.context, shared=shared)
    try:
        target.tap(drafter.config.target_layers)
        yield drafter
    finally:
        drafter.close()


def read_prompt(target: Target, drafter: Drafter | None, ids: Sequence[int]) -> NDArray[np.float32]:
    """From nothing; the logits [1, V] behind the last token."""
    target.cut(0, 0)
    if drafter is not None:
        drafter.cut(0, 0)
    logits = np.empty((0, 0), np.float32)
    for begin in range(0, len(ids), PREFILL_CHUNK):
        result = target.evaluate([(0, ids[begin : begin + PREFILL_CHUNK])], last_only=True)
        if drafter is not None:
            drafter.inject(result.features)
        logits = result.logits
    return logits


def decode(
    target: Target, drafter: Drafter | None, question: Question, tokens: int, drafts: int, settings: SamplerSettings
) -> tuple[Answer, list[int]]:
    """One answer of up to `tokens` tokens, with `drafts` drafts in every cycle. Also its ids."""
    sampler = Sampler(settings, question.ids)
    logits = read_prompt(target, drafter, question.ids)
    if settings.temperature > 0:
        anchor = sampler.distributions(logits)[0].sample(sampler.rng)
    else:
        anchor = int(sampler.choices(logits)[0])
    sampler.accept((anchor,))
    stream = Stream(0, sampler, anchor, drafts)
    ids = [anchor]
    accepted: list[int] = []
    emitted = passes = 0
    stop = target.vocabulary.is_stop
    while not stop(ids[-1]) and len(ids) < tokens and target.committed() + drafts + 1 <= target.context:
        (outcome,), _ = run_cycle(target, drafter, (stream,))
        passes += 1
        accepted.append(outcome.accepted)
        for token in outcome.tokens:
            if stop(ids[-1]) or len(ids) >= tokens:
                break
            ids.append(token)
            emitted += 1
    return Answer(question.kind, emitted, passes, tuple(accepted)), ids


def answers(
    target: Target,
    drafter: Drafter,
    questions: Sequence[Question],
    tokens: int,
    temperature: float,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Answer]:
    """Answer all questions, the whole block verified every time."""
    results = []
    for number, question in enumerate(questions):
        settings = SamplerSettings(temperature=temperature, seed=number)
        results.append(decode(target, drafter, question, tokens, drafter.config.block_size - 1, settings)[0])
        if on_progress is not None:
            on_progress(number + 1, len(questions))
    return results


def accuracy(
    target: Target, drafter: Drafter, conversations: Sequence[tuple[Sequence[int], int]], step: int = 3
) -> Accuracy:
    """Draft behind every `step`-th token of recorded answers: (ids, index of the answer's first token)."""
    drafted = drafter.config.block_size - 1
    first, any_of, seen = np.zeros(drafted), np.zeros(drafted), np.zeros(drafted)
    anchors = 0
    for ids, start in conversations:
        target.cut(0, 0)
        drafter.cut(0, 0)
        features = [layer.copy() for layer in target.evaluate([(0, ids[:PREFILL_CHUNK])], last_only=True).features]
        read = 0
        for at in range(start, min(len(ids), PREFILL_CHUNK) - 1, step):
            drafter.inject([layer[read:at] for layer in features])
            read = at
            (lattice,) = drafter.draft([ids[at]])
            right = np.asarray(ids[at + 1 : at + 1 + drafted])
            n = len(right)
            first[:n] += lattice.candidates[:n, 0] == right
            any_of[:n] += (lattice.candidates[:n] == right[:, None]).any(axis=1)
            seen[:n] += 1
            anchors += 1
    seen = np.maximum(seen, 1)
    return Accuracy(tuple((first / seen).tolist()), tuple((any_of / seen).tolist()), anchors)


# --- arithmetic -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float  # 95 % interval
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}–{self.high:.2f})"


def acceptance_length(results: Sequence[Answer]) -> Estimate:
    """Tokens emitted by a verification pass."""
    totals = np.array([(r.emitted, r.passes) for r in results], float)  # [n, 2]
    chosen = _resampled(len(totals))
    sums = totals[chosen].sum(axis=1)
    return _estimate(totals[:, 0].sum() / max(totals[:, 1].sum(), 1), sums[:, 0] / np.maximum(sums[:, 1], 1))


def ratio(better: Sequence[Answer], base: Sequence[Answer]) -> Estimate:
    """How many times longer one's acceptance is than the other's, over the same questions."""
    totals = np.array([(b.emitted, b.passes, a.emitted, a.passes) for b, a in zip(better, base)], float)
    sums = totals[_resampled(len(totals))].sum(axis=1)

    def of(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return (t[..., 0] / np.maximum(t[..., 1], 1)) / np.maximum(t[..., 2] / np.maximum(t[..., 3], 1), 1e-9)

    return _estimate(float(of(totals.sum(axis=0))), of(sums))


def by_position(results: Sequence[Answer], drafted: int) -> list[float]:
    """The share of passes in which drafts 1..k were all accepted, for k = 1..drafted."""
    accepted = np.array([a for r in results for a in r.accepted])
    return [float((accepted >= k).mean()) if accepted.size else 0.0 for k in range(1, drafted + 1)]


def by_kind(results: Sequence[Answer]) -> dict[str, list[Answer]]:
    kinds: dict[str, list[Answer]] = {}
    for result in results:
        kinds.setdefault(result.kind, []).append(result)
    return kinds


def _resampled(n: int) -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(0, n, (_RESAMPLED, n))


def _estimate(value: float, resampled: NDArray[np.float64]) -> Estimate:
    low, high = np.quantile(resampled, (0.025, 0.975))
    return Estimate(float(value), float(low), float(high))


# --- speed ------------------------------------------------------------------------------------------------------------


@dataclass
class Speed:
    """Seconds and tokens of each question, in the plain way and with each number of drafts."""

    tokens_per_second: dict[int, list[float]] = field(default_factory=dict)  # drafts (0 = plain) -> by question

    def ratio(self, drafts: int) -> float:
        """The median over the questions of how many times faster than the plain way."""
        pairs = zip(self.tokens_per_second[drafts], self.tokens_per_second[0])
        return median(a / b for a, b in pairs)


def speed(
    target: Target, drafter: Drafter, questions: Sequence[Question], tokens: int, lengths: Sequence[int]
) -> Speed:
    """Greedy decoding of every question in the plain way and with each draft length, taking turns."""
    greedy = SamplerSettings(temperature=0.0)
    result = Speed({length: [] for length in (0, *lengths)})
    for question in questions:
        for length in (0, *lengths):
            target.tap(drafter.config.target_layers if length else ())
            used = drafter if length else None
            sampler = Sampler(greedy)
            anchor = int(sampler.choices(read_prompt(target, used, question.ids))[0])
            stream = Stream(0, sampler, anchor, length)
            made = 1
            began = time.perf_counter()
            while made < tokens and not target.vocabulary.is_stop(stream.anchor):
                (outcome,), _ = run_cycle(target, used, (stream,))
                made += len(outcome.tokens)
                if any(target.vocabulary.is_stop(token) for token in outcome.tokens):
                    break
            result.tokens_per_second[length].append(made / (time.perf_counter() - began))
    target.tap(drafter.config.target_layers)
    return result
