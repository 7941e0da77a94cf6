"""What a listener hears while a plan is carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.bench.plan import Part
from engine.bench.results import AnswerResult, PartResult
from engine.events import Event


@dataclass(frozen=True)
class PartBegan:
    part: Part
    number: int  # from 1
    of: int


@dataclass(frozen=True)
class PartEnded:
    part: Part
    result: PartResult


@dataclass(frozen=True)
class Stage:
    """What comes after the parts, in words."""

    text: str


@dataclass(frozen=True)
class Answering:
    """An event of an answer. `question`: its number among those of the part."""

    part: Part
    question: int
    event: Event


@dataclass(frozen=True)
class QuestionDone:
    part: Part
    result: AnswerResult
    done: int  # answers of this part, at all temperatures
    of: int


RunEvent = PartBegan | PartEnded | Stage | Answering | QuestionDone
Listener = Callable[[RunEvent], None]
