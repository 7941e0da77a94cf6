"""What the benchmark asks of an engine process, and what it hears back. Plain values: they travel on the pipe."""

from __future__ import annotations

from dataclasses import dataclass

from engine.bench.plan import Variant
from engine.bench.results import AnswerResult
from engine.bench.suite import Question
from engine.events import Event, Memory, SamplerSettings


@dataclass(frozen=True, slots=True)
class Prepare:
    """Load the drafter, and answer a question that nobody counts. Ends with Prepared."""

    variant: Variant
    warm_up: Question


@dataclass(frozen=True, slots=True)
class AnswerAll:
    """Answer these questions, as many at once as the engine has sequences. Ends with AllAnswered.

    Each question has a seed of its own, the same in every process.
    """

    questions: tuple[Question, ...]
    temperature: float
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class Sample:
    """Draw `samples` short answers to one question and count what they say. Ends with Counts."""

    question: Question
    sampler: SamplerSettings
    samples: int
    tokens: int


@dataclass(frozen=True, slots=True)
class LookAt:
    """The target's logits where a greedy answer differs from the baseline's. Ends with Seen.

    `theirs`, `other`: the token of the baseline and of the other answer at `position`, -1 where that one had ended.
    `rows`: how many rows the passes had that wrote the other answer, at least 2 each.
    """

    question: Question
    baseline: tuple[int, ...]
    position: int
    theirs: int
    other: int
    rows: tuple[int, ...]


Job = Prepare | AnswerAll | Sample | LookAt


@dataclass(frozen=True, slots=True)
class Prepared:
    target_s: float
    drafter_s: float | None
    measured_s: float | None  # finding out what passes cost, where the draft length is automatic
    memory: Memory


@dataclass(frozen=True, slots=True)
class Heard:
    """An event of the answer to one of the questions."""

    question: int
    event: Event


@dataclass(frozen=True, slots=True)
class AnswerDone:
    question: int
    result: AnswerResult


@dataclass(frozen=True, slots=True)
class AllAnswered:
    decode_s: float
    seconds: float
    memory: Memory
    processor_s: float  # processor time of the engine process, from its beginning


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each row of tokens was drawn."""

    drawn: dict[tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Seen:
    gap: float
    noise: float
    near_tie: bool


JobEvent = Prepared | Heard | AnswerDone | AllAnswered | Counts | Seen
