"""What was measured, as it is written and read again: every raw number, and nothing that is computed from them.

The figures of an answer are those of `engine.stats`; the cycles beside them let the same figures be computed for any
group of answers. Knows nothing of reports.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.bench.plan import Conditions, Part, Plan, Variant
from engine.bench.suite import Check, Question
from engine.errors import ModelFileError
from engine.events import Mode

FORMAT = 1
FILE = "bench.json"

# drafted, accepted, emitted, seconds of the draft step (None: there was none), seconds of the target's pass, stop token
Cycle = tuple[int, int, int, float | None, float, bool]


@dataclass(frozen=True)
class AnswerResult:
    """One answer. `figures`: what `dflash-chat run --json` prints of it."""

    question: str
    kind: str
    temperature: float
    figures: dict[str, Any]
    decode_s: float  # from the first token to the newest
    cycles: tuple[Cycle, ...]
    right: bool | None = None  # None: that cannot be told

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self.figures["token_ids"])

    @property
    def complete(self) -> bool:
        return bool(self.figures["stop_reason"] != "cancelled")


@dataclass(frozen=True)
class Pace:
    """How long all the answers at one temperature took together."""

    temperature: float
    decode_s: float  # of the cycles, the reading of prompts left out
    seconds: float  # with everything


@dataclass(frozen=True)
class PartResult:
    """One engine process."""

    variant: str
    concurrency: int
    run: int
    complete: bool
    answers: tuple[AnswerResult, ...] = ()
    paces: tuple[Pace, ...] = ()
    start_s: float | None = None  # until the target was ready, the process and its imports included
    target_s: float | None = None  # of these, loading the target
    drafter_s: float | None = None  # loading the drafter
    measured_s: float | None = None  # finding out what passes cost, which the chat does once for each pair
    peak_bytes: int | None = None  # of the engine process, which has no children
    memory: dict[str, Any] | None = None
    others_load: float | None = None  # what other processes took of all processors meanwhile, 0..1
    device: str = ""  # of the target's output layer
    began: str = ""  # local time
    error: str = ""

    def pace(self, temperature: float) -> Pace | None:
        return next((pace for pace in self.paces if pace.temperature == temperature), None)


@dataclass(frozen=True)
class Agreement:
    """A greedy answer against the baseline's, where they differ: the first difference and the target's logits there."""

    variant: str
    concurrency: int
    run: int
    question: str
    position: int
    baseline: int  # token ids; -1: the answer had ended
    other: int
    gap: float | None  # between the two logits; None: not measured
    noise: float | None  # of batched arithmetic at that place
    near_tie: bool | None


@dataclass(frozen=True)
class SampleTest:
    """Whether drawn answers with drafts have the distribution of those without."""

    variant: str
    temperature: float
    samples: int
    tokens: int
    distance: float  # chi-square statistic between the two tables of counts
    p: float  # how often chance alone gives at least that


@dataclass
class Results:
    machine: dict[str, Any]
    files: dict[str, dict[str, Any]]  # "target", "dflash", "dflash2": name, bytes, sha256, quantisation, …
    plan: Plan
    command: str
    started: str  # local time with its offset
    parts: list[PartResult] = field(default_factory=list)
    agreements: list[Agreement] = field(default_factory=list)
    compared: int = 0  # greedy answers held against the baseline's
    samples: list[SampleTest] = field(default_factory=list)
    finished: bool = False
    note: str = ""  # why it is not

    def has(self, part: Part) -> bool:
        return any(
            (done.variant, done.concurrency, done.run) == (part.variant.name, part.concurrency, part.run)
            and done.complete
            for done in self.parts
        )

    @property
    def fingerprint(self) -> str:
        """Equal for results that may be continued by one another."""
        return json.dumps([FORMAT, _plan_to_json(self.plan), self.files], sort_keys=True)


def write(results: Results, folder: Path) -> Path:
    """The file is replaced at once, so that it is whole at any moment. Raises OSError."""
    path = folder / FILE
    part = path.with_suffix(".part")
    part.write_text(json.dumps(to_json(results), ensure_ascii=False, separators=(",", ":")), "utf-8")
    os.replace(part, path)
    return path


def read(path: Path) -> Results:
    """`path`: the file, or the folder that holds it. Raises ModelFileError."""
    file = path / FILE if path.is_dir() else path
    try:
        return from_json(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(
            f"{file} is not a benchmark's results ({error}); give the {FILE} of a report's folder."
        ) from error


def to_json(results: Results) -> dict[str, Any]:
    found = {"format": FORMAT, **{name: value for name, value in vars(results).items() if name != "plan"}}
    found["plan"] = _plan_to_json(results.plan)
    for name in ("parts", "agreements", "samples"):
        found[name] = [asdict(entry) for entry in found[name]]
    for part in found["parts"]:
        for answer in part["answers"]:
            answer["cycles"] = [_short(cycle) for cycle in answer["cycles"]]
    return found


def from_json(found: dict[str, Any]) -> Results:
    if found.get("format") != FORMAT:
        raise ValueError(f"its format is {found.get('format')}, and this version reads {FORMAT}")
    parts = [
        PartResult(**{**part, "answers": _answers(part["answers"]), "paces": tuple(Pace(**p) for p in part["paces"])})
        for part in found["parts"]
    ]
    return Results(
        machine=found["machine"],
        files=found["files"],
        plan=_plan_from_json(found["plan"]),
        command=found["command"],
        started=found["started"],
        parts=parts,
        agreements=[Agreement(**entry) for entry in found["agreements"]],
        compared=found["compared"],
        samples=[SampleTest(**entry) for entry in found["samples"]],
        finished=found["finished"],
        note=found["note"],
    )


def _short(cycle: Cycle) -> list[Any]:
    drafted, accepted, emitted, draft_s, verify_s, stop = cycle
    return [drafted, accepted, emitted, None if draft_s is None else round(draft_s, 6), round(verify_s, 6), int(stop)]


def _answers(found: Sequence[dict[str, Any]]) -> tuple[AnswerResult, ...]:
    def cycle(entry: Sequence[Any]) -> Cycle:
        return (entry[0], entry[1], entry[2], entry[3], entry[4], bool(entry[5]))

    return tuple(AnswerResult(**{**a, "cycles": tuple(map(cycle, a["cycles"]))}) for a in found)


def _plan_to_json(plan: Plan) -> dict[str, Any]:
    """Files by their names alone: what they are stands in their hashes, and where they lie is nobody's business."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(plan)))
    found["conditions"]["target"] = os.path.basename(plan.conditions.target)
    for variant in found["variants"]:
        variant["drafter"] = variant["drafter"] and os.path.basename(variant["drafter"])
    return found


def _plan_from_json(found: dict[str, Any]) -> Plan:
    conditions = Conditions(**found["conditions"])
    conditions = replace(
        conditions, concurrency=tuple(conditions.concurrency), temperatures=tuple(conditions.temperatures)
    )
    questions = [Question(q["name"], q["kind"], q["text"], _check(q["check"])) for q in found["questions"]]
    variants = [Variant(**{**v, "mode": Mode(v["mode"])}) for v in found["variants"]]
    missing = [(Mode(mode), reason) for mode, reason in found["missing"]]
    return Plan(conditions, tuple(questions), tuple(variants), tuple(missing))


def _check(found: dict[str, Any] | None) -> Check | None:
    return None if found is None else Check(found["rule"], tuple(found["expected"]))
