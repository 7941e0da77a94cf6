"""A session that carries out the benchmark's jobs, inside the engine process.

One question at a time is answered as the chat answers it, by `Session.ask`; several at once by `engine.bench.together`.
Every question starts from empty caches. Knows nothing of plans and reports.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from engine.ablation import PlainChoice, without_convolution
from engine.bench.closer import drawn, looked_at
from engine.bench.jobs import (
    AllAnswered,
    AnswerAll,
    AnswerDone,
    Heard,
    Job,
    JobEvent,
    Prepare,
    Prepared,
    Sample,
)
from engine.bench.plan import NO_CONVOLUTION, NO_SELECTOR, Variant
from engine.bench.results import AnswerResult, Cycle
from engine.bench.suite import Question
from engine.bench.together import Asked, Together
from engine.draft_length import DraftLength, FixedLength, drafts_at_most
from engine.drafter import Drafter
from engine.errors import ModelFileError
from engine.events import Answered, Event, LoadSettings, Mode, ModeInfo, SamplerSettings, StopReason
from engine.pair_measurement import measure
from engine.pair_record import PairRecord
from engine.requantise import Recipe, RequantisationError, requantise
from engine.sampling import Sampler
from engine.selector import Lattice
from engine.session import Session
from engine.stats import AnswerRecorder, to_json
from engine.vocabulary import Message

WARM_UP_TOKENS = 16


class CycleRecorder(AnswerRecorder):
    """Keeps what it is told of every cycle."""

    newest: CycleRecorder  # the last one made

    def __init__(
        self, mode: Mode, target: str, drafter: str | None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        super().__init__(mode, target, drafter, clock)
        self.cycles: list[Cycle] = []
        CycleRecorder.newest = self

    def cycle(
        self,
        *,
        drafted: int,
        accepted: int,
        emitted: int,
        verify_s: float,
        draft_s: float | None = None,
        stop_token: bool = False,
    ) -> None:
        super().cycle(
            drafted=drafted,
            accepted=accepted,
            emitted=emitted,
            verify_s=verify_s,
            draft_s=draft_s,
            stop_token=stop_token,
        )
        self.cycles.append((drafted, accepted, emitted, draft_s, verify_s, stop_token))


class WholeBlock(Drafter):
    """Drafts the whole block, whatever is wanted of it."""

    def draft(
        self, anchors: Sequence[int], sequences: Sequence[int] = (0,), block_length: int | None = None
    ) -> list[Lattice]:
        return super().draft(anchors, sequences, None)


class BenchSession(Session):
    """Open it with `BenchSession.open`, as any session; then give it jobs, `Prepare` first."""

    recorder_type = CycleRecorder

    @classmethod
    def open(
        cls,
        settings: LoadSettings,
        on_event: Callable[[Event], None] = lambda _event: None,
        cancel: threading.Event | None = None,
    ) -> BenchSession:
        began = time.perf_counter()
        session = super().open(settings, on_event, cancel)
        assert isinstance(session, BenchSession)
        session._target_s = time.perf_counter() - began
        return session

    _target_s = 0.0
    _measured_s: float | None = None
    _variant = Variant("", Mode.BASELINE)
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> BenchSession:
        return self

    def close(self) -> None:
        super().close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def work(self, job: Job, cancel: threading.Event) -> Iterator[JobEvent]:
        """Raises DFlashChatError, Cancelled."""
        if isinstance(job, Prepare):
            yield self._prepare(job, cancel)
        elif isinstance(job, AnswerAll):
            yield from self._answer_all(job, cancel)
        elif isinstance(job, Sample):
            drafter = self._drafter(self._variant.mode, cancel)
            self._empty_caches()
            yield drawn(self._target, drafter, self._rendered(job.question), job, cancel)
        else:
            self._empty_caches()
            yield looked_at(self._target, self._rendered(job.question), job)

    # preparing

    def _prepare(self, job: Prepare, cancel: threading.Event) -> Prepared:
        variant = self._variant = job.variant
        if variant.without == NO_SELECTOR:
            self.drafter_type = PlainChoice
        elif variant.whole_block:
            self.drafter_type = WholeBlock
        if variant.drafter is not None:
            file = self._made(variant, Path(variant.drafter))
            others = (info for info in self.modes if info.mode is not variant.mode)
            self.modes = (*others, ModeInfo(variant.mode, str(file), None))
        began = time.perf_counter()
        drafter = self._drafter(variant.mode, cancel)
        drafter_s = None if drafter is None else time.perf_counter() - began
        for _ in self._answers((job.warm_up,), 0.0, WARM_UP_TOKENS, 0, cancel):
            pass
        return Prepared(self._target_s, drafter_s, self._measured_s, self.memory())

    def _made(self, variant: Variant, source: Path) -> Path:
        """The drafter's file, or a copy of it without a part or in another quantisation."""
        if variant.without != NO_CONVOLUTION and not variant.quantisation:
            return source
        self._folder = tempfile.TemporaryDirectory(prefix="dflash-chat-")
        copy = Path(self._folder.name) / f"{variant.quantisation or 'no-convolution'}-{source.name}"
        if variant.without == NO_CONVOLUTION:
            return without_convolution(source, copy)
        try:
            requantise(source, copy, Recipe(variant.quantisation), lambda _size: None)
        except RequantisationError as error:
            raise ModelFileError(f"{source.name} could not be written as {variant.quantisation} ({error}).") from error
        return copy

    # answering

    def _answer_all(self, job: AnswerAll, cancel: threading.Event) -> Iterator[JobEvent]:
        began = time.perf_counter()
        decode_s = 0.0
        for found in self._answers(job.questions, job.temperature, job.max_tokens, job.seed, cancel):
            if isinstance(found, float):
                decode_s = found
            else:
                yield found
        used = psutil.Process().cpu_times()
        yield AllAnswered(decode_s, time.perf_counter() - began, self.memory(), used.user + used.system)

    def _answers(
        self, questions: Sequence[Question], temperature: float, max_tokens: int, seed: int, cancel: threading.Event
    ) -> Iterator[Heard | AnswerDone | float]:
        """The last one is the time that the cycles took."""
        samplers = [SamplerSettings(temperature, seed=seed + number) for number in range(len(questions))]
        answers = self._one_by_one if self._target.sequences == 1 else self._together
        return answers(questions, samplers, max_tokens, cancel)

    def _one_by_one(
        self,
        questions: Sequence[Question],
        samplers: Sequence[SamplerSettings],
        max_tokens: int,
        cancel: threading.Event,
    ) -> Iterator[Heard | AnswerDone | float]:
        decode_s = 0.0
        for number, (question, sampler) in enumerate(zip(questions, samplers)):
            if cancel.is_set():
                break
            self.reset()
            self._empty_caches()
            for event in self.ask(
                question.text,
                mode=self._variant.mode,
                sampler=sampler,
                max_tokens=max_tokens,
                draft_length=self._variant.draft_length,
                cancel=cancel,
            ):
                yield Heard(number, event)
                if isinstance(event, Answered):
                    done = self._done(number, question, sampler.temperature, event, CycleRecorder.newest)
                    decode_s += done.result.decode_s
                    yield done
        yield decode_s

    def _together(
        self,
        questions: Sequence[Question],
        samplers: Sequence[SamplerSettings],
        max_tokens: int,
        cancel: threading.Event,
    ) -> Iterator[Heard | AnswerDone | float]:
        target = self._target
        drafter = self._drafter(self._variant.mode, cancel)
        target.tap(drafter.config.target_layers if drafter else ())
        self._empty_caches()
        asked: list[Asked] = []
        recorders: list[CycleRecorder] = []
        for question, settings in zip(questions, samplers):
            ids = self._rendered(question)
            recorders.append(
                CycleRecorder(self._variant.mode, target.file_name, self._drafter_name(self._variant.mode))
            )
            asked.append(Asked(ids, Sampler(settings, ids), max_tokens, recorders[-1]))
        variant, drawn = self._variant, samplers[0].temperature > 0
        length = self._length(variant.mode, drafter, variant.draft_length, drawn, cancel)
        drafts = drafts_at_most(variant.draft_length, drafter.config.block_size) if drafter else 0
        run = Together(target, drafter, target.sequences, drafts, length, self.memory, cancel)
        for number, event in run.answers(asked):
            yield Heard(number, event)
            if isinstance(event, Answered):
                yield self._done(number, questions[number], samplers[number].temperature, event, recorders[number])
        yield run.cycles_s

    def _length(
        self, mode: Mode, drafter: Drafter | None, given: int | None, drawn: bool, cancel: threading.Event
    ) -> DraftLength | None:
        """Costs are measured anew in each process, and nothing is kept, so that no run learns from one before it."""
        if drafter is None:
            return None
        if given is not None:
            return FixedLength()
        if mode not in self._records:
            began = time.perf_counter()
            costs = measure(self._target, drafter, cancel, lambda _fraction: None)
            self._records[mode] = PairRecord(*costs, drafter.config.block_size)
            self._measured_s = time.perf_counter() - began
        record = self._records[mode]
        return record.drawn if drawn else record.greedy

    def _forget(self, mode: Mode) -> None:
        self._records.pop(mode, None)
        self._drafters.pop(mode).close()

    def _rendered(self, question: Question) -> list[int]:
        return self._target.vocabulary.render([Message("user", question.text)])

    def _empty_caches(self) -> None:
        for sequence in range(self._target.sequences):
            self._target.cut(sequence, 0)
            for drafter in self._drafters.values():
                drafter.cut(sequence, 0)

    @staticmethod
    def _done(
        number: int, question: Question, temperature: float, answered: Answered, recorder: CycleRecorder
    ) -> AnswerDone:
        statistics = answered.statistics
        speed = statistics.tokens_per_second
        emitted = sum(cycle[2] for cycle in recorder.cycles)
        right = None
        if question.check is not None and statistics.stop_reason is not StopReason.CANCELLED:
            right = question.check.passes(answered.text)
        result = AnswerResult(
            question.name,
            question.kind,
            temperature,
            to_json(statistics, answered.text, answered.token_ids),
            emitted / speed if speed else 0.0,
            tuple(recorder.cycles),
            right,
        )
        return AnswerDone(number, result)
