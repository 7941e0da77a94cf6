"""A comparison as the Compare page shows it: the three modes' answers, how far it has come, and what came of it.

Plain Python, changed by what the runner tells. Knows nothing of widgets and threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from engine.bench.progress import Answering, PartBegan, PartEnded, QuestionDone, RunEvent, Stage
from engine.bench.results import Results
from engine.events import Answered, AnswerStatistics, LoadProgress, Mode, Progress, Tokens


class Phase(Enum):
    IDLE = "idle"
    RUNNING = "running"
    STOPPING = "stopping"


class Step(Enum):
    """Of one mode's answer."""

    NONE = "none"
    WAITING = "waiting"
    LOADING = "loading"
    WRITING = "writing"
    DONE = "done"
    FAILED = "failed"


@dataclass
class Column:
    """One mode. `text` is of the question that is being answered, or was answered last."""

    mode: Mode
    step: Step = Step.NONE
    text: str = ""
    statistics: AnswerStatistics | None = None
    reason: str = ""  # why there is no answer


@dataclass
class Comparison:
    phase: Phase = Phase.IDLE
    whole_suite: bool = False
    columns: dict[Mode, Column] = field(default_factory=lambda: {mode: Column(mode) for mode in Mode})
    part: str = ""  # the part that is being measured, or the step behind the last one
    progress: float = 0.0  # 0..1
    trouble: str = ""
    results: Results | None = None
    report: Path | None = None  # the page, where one was written
    _parts: int = 1
    _number: int = 0

    def begin(self, whole_suite: bool) -> None:
        self.phase, self.whole_suite, self.part, self.progress, self.trouble = Phase.RUNNING, whole_suite, "", 0.0, ""
        self.results = self.report = None
        self.columns = {mode: Column(mode, Step.WAITING) for mode in Mode}

    def stop(self) -> None:
        self.phase = Phase.STOPPING

    def apply(self, event: RunEvent) -> None:
        if isinstance(event, PartBegan):
            self._number, self._parts = event.number, event.of
            self.part = event.part.name if self.whole_suite else event.part.variant.name
            self.progress = (event.number - 1) / event.of
            column = self.columns[event.part.variant.mode]
            column.step, column.text, column.statistics, column.reason = Step.LOADING, "", None, ""
        elif isinstance(event, Answering):
            self._answering(event)
        elif isinstance(event, QuestionDone):
            self.progress = (self._number - 1 + event.done / event.of) / self._parts
        elif isinstance(event, PartEnded):
            column = self.columns[event.part.variant.mode]
            column.step = Step.FAILED if event.result.error else Step.DONE
            column.reason = event.result.error
            self.progress = self._number / self._parts
        elif isinstance(event, Stage):
            self.part = event.text

    def _answering(self, told: Answering) -> None:
        column = self.columns[told.part.variant.mode]
        event = told.event
        if told.question % told.part.concurrency:
            return  # of several at once the first one's text is shown
        if column.step is Step.LOADING or (column.statistics is not None and column.statistics.stop_reason is not None):
            column.text, column.statistics = "", None  # another question
        if isinstance(event, LoadProgress):
            return
        column.step = Step.WRITING
        if isinstance(event, Tokens):
            column.text += event.text
        elif isinstance(event, Progress):
            column.statistics = event.statistics
        elif isinstance(event, Answered):
            column.text, column.statistics = event.text, event.statistics

    def finish(self, results: Results | None, report: Path | None, trouble: str = "") -> None:
        """The runner is through: with results, with a sentence that says why not, or with both."""
        self.phase, self.results, self.report, self.trouble = Phase.IDLE, results, report, trouble
        self.part = ""
        missing = dict(results.plan.missing) if results is not None else {}
        for mode, column in self.columns.items():
            if column.step in (Step.WAITING, Step.LOADING, Step.WRITING):
                column.step = Step.NONE if not column.text else Step.DONE
            if mode in missing:
                column.step, column.reason = Step.FAILED, missing[mode]

    # --- what follows from it

    def speed(self, mode: Mode) -> float | None:
        statistics = self.columns[mode].statistics
        return statistics.tokens_per_second if statistics is not None else None

    def ratio(self, over: Mode, under: Mode) -> float | None:
        """Of the speeds; None where one of them is not known, or its answer still runs."""
        for mode in (over, under):
            statistics = self.columns[mode].statistics
            if statistics is None or statistics.stop_reason is None:
                return None
        a, b = self.speed(over), self.speed(under)
        return a / b if a is not None and b else None

    @property
    def same_text(self) -> bool | None:
        """Whether all answers say the same; None while that cannot be told."""
        texts = [column.text for column in self.columns.values() if column.step is Step.DONE and column.text]
        return len(set(texts)) == 1 if len(texts) > 1 else None
