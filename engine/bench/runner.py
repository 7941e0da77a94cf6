"""Carries out a plan: one engine process after another, everything kept as soon as it is measured.

It may be cancelled at any time, and goes on later from what it has. What it does is told to a listener, which is called
in the thread that runs it. Knows nothing of terminals, windows and reports.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import psutil

from engine.bench.agreement import compare_answers, compare_samples
from engine.bench.jobs import AllAnswered, AnswerAll, AnswerDone, Heard, Prepare, Prepared
from engine.bench.machine import OthersLoad, local_time
from engine.bench.plan import Part
from engine.bench.process import SESSION, Engine, Flag, JobFailed, Until
from engine.bench.progress import Answering, Listener, PartBegan, PartEnded, QuestionDone
from engine.bench.results import AnswerResult, Pace, PartResult, Results, write
from engine.errors import Cancelled, DFlashChatError

CLOSER_LIMIT_S = 70.0  # for a second look at the answers, where the time is limited


class Runner:
    """`run` fills the results, from those that are there already, and writes them into the folder if there is one."""

    def __init__(
        self,
        results: Results,
        folder: Path | None,
        listener: Listener,
        cancel: Flag,
        session_factory: str = SESSION,
    ) -> None:
        self._results = results
        self._plan = results.plan
        self._folder = folder
        self._listener = listener
        self._cancel = cancel
        self._session_factory = session_factory
        self._until = Until(cancel, None)
        self._failed: set[str] = set()  # names of ways of decoding that cannot be run

    def run(self) -> Results:
        """Raises OSError when nothing can be written; DFlashChatError when no way of decoding can be run at all."""
        results = self._results
        results.parts[:] = [part for part in results.parts if part.complete]
        results.finished, results.note = False, ""
        self._until = Until(self._cancel, self._plan.conditions.limit_s)
        parts = list(self._plan.parts())
        todo = [(number, part) for number, part in enumerate(parts, 1) if not results.has(part)]
        for number, part in todo:
            if self._until.is_set():
                break
            if part.variant.name in self._failed:
                continue
            self._listener(PartBegan(part, number, len(parts)))
            result = self._measure(part)
            results.parts.append(result)
            if result.error:
                self._failed.add(part.variant.name)
            self._listener(PartEnded(part, result))
            self._keep()
        if not any(part.answers for part in results.parts) and not self._until.is_set():
            raise JobFailed(next(part.error for part in results.parts if part.error))
        self._look_closer()
        done = sum(results.has(part) for part in parts)
        if self._cancel.is_set():
            results.note = f"It was stopped after {done} of {len(parts)} parts; what was measured until then is here."
        elif self._until.is_over and done < len(parts):
            results.note = (
                f"Its time was over after {done} of {len(parts)} parts; what was measured until then is here."
            )
        results.finished = not self._cancel.is_set()
        self._keep()
        return results

    def _look_closer(self) -> None:
        """At what differs between the modes, once all answers are there."""
        if self._cancel.is_set():
            return
        limited = self._plan.conditions.limit_s is not None
        until = Until(self._cancel, CLOSER_LIMIT_S if limited else None)
        try:
            compare_answers(self._results, self._listener, until, self._session_factory)
            compare_samples(self._results, self._listener, until, self._session_factory)
        except Cancelled:
            pass

    def _keep(self) -> None:
        if self._folder is not None:
            write(self._results, self._folder)

    def _measure(self, part: Part) -> PartResult:
        """One engine process. What was answered before it was stopped, or died, is kept."""
        found = _Growing(part)
        others, ours = OthersLoad(), _own_seconds()
        try:
            with Engine(self._plan, part.variant, part.concurrency, self._until, self._session_factory) as engine:
                found.start_s = engine.start()
                found.device = engine.device
                self._answer(part, engine, found)
        except Cancelled:
            pass
        except DFlashChatError as error:
            found.error = str(error)
        return found.finished(others.share(found.processor_s + _own_seconds() - ours))

    def _answer(self, part: Part, engine: Engine, found: _Growing) -> None:
        plan = self._plan
        questions = plan.questions_of(part.variant)
        temperatures = plan.temperatures_of(part.variant)
        for event in engine.work(Prepare(part.variant, questions[0])):
            if isinstance(event, Prepared):
                found.prepared = event
        for temperature in temperatures:
            if self._until.is_set():
                return
            job = AnswerAll(questions, temperature, plan.conditions.max_tokens, plan.conditions.seed)
            for event in engine.work(job):
                if isinstance(event, Heard):
                    self._listener(Answering(part, event.question, event.event))
                elif isinstance(event, AnswerDone):
                    found.answers.append(event.result)
                    self._listener(
                        QuestionDone(part, event.result, len(found.answers), len(questions) * len(temperatures))
                    )
                elif isinstance(event, AllAnswered):
                    found.all_answered(temperature, event, len(questions))
        found.complete = len(found.paces) == len(temperatures)


class _Growing:
    """A part's result while it is measured."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.answers: list[AnswerResult] = []
        self.paces: list[Pace] = []
        self.start_s: float | None = None
        self.prepared: Prepared | None = None
        self.last: AllAnswered | None = None
        self.processor_s = 0.0
        self.complete = False
        self.error = self.device = ""
        self.began = local_time()

    def all_answered(self, temperature: float, event: AllAnswered, questions: int) -> None:
        """A run that was broken off has no pace of its own."""
        if sum(answer.temperature == temperature and answer.complete for answer in self.answers) == questions:
            self.paces.append(Pace(temperature, event.decode_s, event.seconds))
        self.last = event
        self.processor_s = event.processor_s

    def finished(self, others_load: float | None) -> PartResult:
        prepared, last = self.prepared, self.last
        return PartResult(
            variant=self.part.variant.name,
            concurrency=self.part.concurrency,
            run=self.part.run,
            complete=self.complete and not self.error,
            answers=tuple(self.answers),
            paces=tuple(self.paces),
            start_s=self.start_s,
            target_s=prepared.target_s if prepared else None,
            drafter_s=prepared.drafter_s if prepared else None,
            measured_s=prepared.measured_s if prepared else None,
            peak_bytes=last.memory.peak if last else None,
            memory=asdict(last.memory) if last else None,
            others_load=others_load if last else None,
            device=self.device,
            began=self.began,
            error=self.error,
        )


def _own_seconds() -> float:
    """Processor time of this process."""
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)
