"""Everything the window shows, as one plain object that changes by the engine's events.

The engine answers one question at a time, for whichever conversation asked first; the others wait in `jobs`. Before
each answer the engine is told what it does not know of that conversation, and nothing more. Widgets read this object
and never write it. It knows nothing of Qt, of processes or of how the figures were measured.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from app.conversation import Conversation, TokenMark, Turn
from app.engine_words import in_words
from app.i18n import translate
from app.speed import SpeedCurve
from engine.events import (
    Answered,
    AnswerStatistics,
    ContextNotice,
    Event,
    Failed,
    KnownTurn,
    Loaded,
    LoadProgress,
    Memory,
    Mode,
    ModeInfo,
    ModesFound,
    Progress,
    PromptProgress,
    SamplerSettings,
    TargetInfo,
    Tokens,
)
from engine.host import Ask, Cancel, Continue, Load, Request, Restore, Rewind, Unload

CHARACTERS_PER_TOKEN = 32  # more than any tokenizer gets out of one in a text of some length
NEARLY_FULL = 0.9  # of the context: where the engine says so too


class Phase(Enum):
    """What the shown conversation can do: while another one is answered, this one is ready."""

    EMPTY = "no model"
    LOADING = "loading"
    READY = "ready"
    ANSWERING = "answering"
    STOPPED = "engine stopped"


@dataclass(frozen=True)
class Trouble:
    """What the banner says: a headline, the sentence, and the label of the button that mends it."""

    headline: str
    sentence: str
    remedy: str | None


@dataclass(frozen=True)
class AnswerOptions:
    """How answers are made, beside the mode: the user's settings at the time of asking."""

    sampler: SamplerSettings = field(default_factory=SamplerSettings)
    max_tokens: int | None = None
    draft_length: int | None = None  # None = automatic
    candidates: bool = False  # the target's likeliest tokens are wanted, too


@dataclass(eq=False)
class Job:
    """A turn that waits for its answer, or whose answer is being written."""

    conversation: Conversation
    turn: Turn
    request: Ask | Continue
    statistics: AnswerStatistics | None = None  # live
    context_used: int = 0
    speed: SpeedCurve = field(default_factory=SpeedCurve)

    def history(self) -> list[Turn]:
        """The turns before the answer to be written; one without an answer would be no turn for the engine."""
        known = [turn for turn in self.turn.ancestors() if turn.answer]
        return [*known, self.turn] if isinstance(self.request, Continue) else known


@dataclass
class ChatState:
    conversation: Conversation = field(default_factory=Conversation)  # the one that is shown
    engine: Phase = Phase.EMPTY  # what the engine does, for whomever; ANSWERING: no new request can start
    jobs: deque[Job] = field(default_factory=deque)  # the first is being answered where `running`, the others wait
    wanted_mode: Mode | None = None  # what the user chose; None = the best there is
    options: AnswerOptions = field(default_factory=AnswerOptions)
    target: TargetInfo | None = None
    modes: tuple[ModeInfo, ...] = ()
    memory: Memory | None = None
    statistics: AnswerStatistics | None = None  # of the running answer, else of the last one, in this conversation
    speed: SpeedCurve = field(default_factory=SpeedCurve)  # of the same answer, as far as it was heard in this run
    loading: LoadProgress | None = None
    reading: PromptProgress | None = None
    context_used: int = 0
    context_size: int = 0
    stopping: bool = False  # a cancel is on its way
    trouble: Trouble | None = None
    news: deque[Trouble] = field(default_factory=deque)  # said when there is no trouble, the oldest first
    interrupted: Job | None = None  # what the engine was writing when it died
    _told: list[Turn] | None = None  # the engine's conversation; None: not known
    _told_system: str | None = None
    _telling: list[Turn] = field(default_factory=list)  # what it will be when the `Restore` under way has ended
    _sent: Request | None = None  # what the engine is busy with and `next_request` named

    # --- what follows from it

    @property
    def phase(self) -> Phase:
        if self.engine in (Phase.READY, Phase.ANSWERING):
            return Phase.ANSWERING if self.conversation.open_turn else Phase.READY
        return self.engine

    @property
    def running(self) -> Job | None:
        """What is being answered."""
        return self.jobs[0] if self.jobs and self._sent is self.jobs[0].request else None

    @property
    def is_shown_running(self) -> bool:
        """The answer that is being written belongs to the shown conversation."""
        return (job := self.running) is not None and job.conversation is self.conversation

    @property
    def banner(self) -> Trouble | None:
        return self.trouble or (self.news[0] if self.news else None)

    @property
    def mode(self) -> Mode:
        """The mode of the next answer: the wanted one where it can be used, else the best that can."""
        usable = [info.mode for info in self.modes if info.reason is None]
        if self.wanted_mode is not None and (not self.modes or self.wanted_mode in usable):
            return self.wanted_mode
        return usable[-1] if usable else Mode.BASELINE

    @property
    def can_send(self) -> bool:
        return self.phase is Phase.READY

    @property
    def can_stop(self) -> bool:
        if self.phase is Phase.ANSWERING and not self.is_shown_running:
            return True  # it waits, and can be taken out of the queue
        return self.phase in (Phase.LOADING, Phase.ANSWERING) and not self.stopping

    @property
    def context_nearly_full(self) -> bool:
        return self.context_size > 0 and self.context_used >= NEARLY_FULL * self.context_size

    @property
    def status(self) -> str:
        """The status line."""
        if self.phase is Phase.LOADING:
            if self.stopping:
                return translate("Status", "Stopping the load")
            return _loading(self.loading) if self.loading else translate("Status", "Starting the engine")
        if self.phase is Phase.ANSWERING:
            if not self.is_shown_running:
                return translate("Status", "Waiting for the engine")
            if self.stopping:
                return translate("Status", "Stopping")
            if self.loading:
                return _loading(self.loading)
            if self.reading and self.reading.done < self.reading.total:
                text = (
                    translate("Status", "Reading the prompt again, for the drafter: {done} of {total} tokens")
                    if self.reading.again
                    else translate("Status", "Reading the prompt: {done} of {total} tokens")
                )
                return text.format(done=f"{self.reading.done:,}", total=f"{self.reading.total:,}")
            return translate("Status", "Answering")
        if self.phase is Phase.EMPTY:
            return translate("Status", "No model is loaded")
        if self.phase is Phase.STOPPED:
            return translate("Status", "The engine has stopped")
        return translate("Status", "Ready")

    @property
    def progress(self) -> float | None:
        """How far the step named in `status` has come, 0..1; None: it has no measure."""
        if self.phase is Phase.LOADING:
            return self.loading.fraction if self.loading else 0.0
        if not self.is_shown_running:
            return None
        if self.loading:
            return self.loading.fraction
        if self.reading and self.reading.done < self.reading.total:
            return self.reading.done / self.reading.total
        return None

    # --- what the user does

    def load(self) -> None:
        """A target is going to be loaded. An answer the engine's death broke off is to go on afterwards."""
        self.engine, self.trouble, self.stopping, self.loading = Phase.LOADING, None, False, None
        if (job := self.interrupted) is not None and job.conversation.open_turn is None:
            self._go_on(job.conversation, job.turn, first=True)
        self.interrupted = None

    def unload(self) -> None:
        """The target is going to be given up; who waits goes on waiting."""
        self.engine = Phase.EMPTY

    def ask(self, question: str) -> Turn:
        """A new turn at the end of the shown conversation."""
        return self._asked(self.conversation.ask(question, self.mode))

    def ask_again(self, turn: Turn, question: str | None = None) -> Turn:
        """Another version of a turn of the shown conversation, with the same question or with another one."""
        return self._asked(self.conversation.ask_again(turn, self.mode, question))

    def go_on(self, turn: Turn) -> None:
        """Write the answer of a turn of the shown conversation further."""
        self.conversation.show(turn)
        self._go_on(self.conversation, turn)
        self.trouble = None

    def _asked(self, turn: Turn) -> Turn:
        self._wait(Job(self.conversation, turn, self._ask(self.conversation, turn)))
        self.trouble = self.statistics = None
        self.speed = self.jobs[-1].speed
        return turn

    def _ask(self, conversation: Conversation, turn: Turn) -> Ask:
        options = self.options
        return Ask(
            turn.question,
            turn.mode,
            options.sampler,
            options.max_tokens,
            options.draft_length,
            options.candidates,
            tag=conversation.id,
        )

    def _go_on(self, conversation: Conversation, turn: Turn, first: bool = False) -> None:
        request: Ask | Continue = self._ask(conversation, turn)
        if turn.answer:
            assert isinstance(request, Ask)
            request = Continue(
                self.mode,
                request.sampler,
                request.max_tokens,
                request.draft_length,
                request.candidates,
                request.tag,
            )
        conversation.go_on(turn)
        job = Job(conversation, turn, request)
        if conversation is self.conversation:
            self.speed = job.speed
        self._wait(job, first)

    def _wait(self, job: Job, first: bool = False) -> None:
        if first:
            self.jobs.appendleft(job)
        else:
            self.jobs.append(job)
        self._say_who_waits()

    def _say_who_waits(self) -> None:
        before = self.jobs[0].conversation.title if self.jobs else ""
        for job in list(self.jobs)[1:]:
            job.turn.wait = translate("Status", "Waits until “{title}” is answered.").format(title=before)

    def stop(self, conversation: Conversation | None = None) -> Request | None:
        """Stop what is being done for a conversation, by default the shown one: what the engine must be told."""
        if self.engine is Phase.LOADING and conversation is None:
            self.stopping = True
            return Cancel()
        of = conversation or self.conversation
        job = next((job for job in self.jobs if job.conversation is of), None)
        if job is None:
            return None
        if job is self.running:
            self.stopping = True
            return Cancel(of.id)
        self.jobs.remove(job)
        of.break_off(translate("Conversation", "Not answered: it was cancelled while it waited."))
        self._say_who_waits()
        return None

    def dismiss(self) -> None:
        """What the banner says has been read."""
        if self.trouble is not None:
            self.trouble = None
        elif self.news:
            self.news.popleft()

    def open(self, conversation: Conversation) -> None:
        """Show another conversation."""
        self.conversation = conversation
        if (job := self.running) is not None and job.conversation is conversation:
            self.statistics, self.context_used, self.speed = job.statistics, job.context_used, job.speed
            return
        self.statistics, self.speed = _last_statistics(conversation), SpeedCurve()
        self.context_used = _context_used(conversation)

    # --- what the engine is to be asked

    def next_request(self) -> Request | None:
        """What to send to the engine now; None: nothing, it is busy or nobody asks. Its end comes to `done`."""
        if self.engine is not Phase.READY or not self.jobs:
            return None
        job = self.jobs[0]
        turns, system = job.history(), job.conversation.system
        enough = self._visible(turns)
        told = self._told if system == self._told_system else None
        if told is not None and enough <= len(told) <= len(turns) and told == turns[len(turns) - len(told) :]:
            request: Request = job.request
            job.turn.wait = ""
            self.reading, self.stopping = None, False
        elif told and turns and (kept := _begin_in(told, turns)) >= enough:
            request = Rewind(kept)
        else:
            self._telling = turns[len(turns) - enough :]
            request = Restore(self._known(self._telling), system)
        self.engine, self._sent = Phase.ANSWERING, request
        return request

    def _known(self, turns: Sequence[Turn]) -> tuple[KnownTurn, ...]:
        """What is told of them; token ids only of as many as the context could hold."""
        known: list[KnownTurn] = []
        room = self.context_size
        for turn in reversed(turns):
            ids = turn.token_ids if room > 0 else None
            room -= len(ids or ())
            known.append((turn.question, turn.answer, ids))
        return tuple(reversed(known))

    def _visible(self, turns: Sequence[Turn]) -> int:
        """How many of the newest turns the model could see at most. The engine need not know older ones."""
        characters = CHARACTERS_PER_TOKEN * self.context_size
        for number, turn in enumerate(reversed(turns), 1):
            characters -= len(turn.question) + len(turn.answer)
            if characters < 0:
                return number
        return len(turns)

    # --- what the engine says

    def apply(self, event: Event) -> None:
        match event:
            case LoadProgress():
                self.loading = event
            case Loaded():
                self.engine, self.loading, self.stopping = Phase.READY, None, False
                self.target, self.modes, self.memory = event.target, event.modes, event.memory
                self.context_size = event.target.context_served
                self.context_used = _context_used(self.conversation)
                self._told, self._told_system, self._sent = [], None, None
            case ModesFound():
                self.modes = event.modes
            case PromptProgress():
                self.reading, self.loading = event, None
            case ContextNotice():
                self._count_context(event.used, event.size)
                if job := self.running:
                    job.conversation.add_notice(in_words(event.sentence))
            case Tokens():
                self.reading = self.loading = None
                if job := self.running:
                    job.conversation.add_text(event.text, _marks(event))
            case Progress():
                self._measured(event.statistics)
                self._count_context(event.context_used, event.context_size)
            case Answered():
                self._measured(event.statistics)
                self._count_context(event.context_used, event.context_size)
                if job := self.running:
                    job.conversation.finish(event)
                    if isinstance(job.request, Ask) and self._told is not None:
                        self._told.append(job.turn)
                self.reading, self.loading, self.stopping = None, None, False

    def _measured(self, statistics: AnswerStatistics) -> None:
        self.memory = statistics.memory
        if job := self.running:
            job.statistics = statistics
            job.speed.note(statistics)
        if self.is_shown_running:
            self.statistics = statistics

    def _count_context(self, used: int, size: int) -> None:
        self.context_size = size
        if job := self.running:
            job.context_used = used
        if self.is_shown_running:
            self.context_used = used

    def fail(self, request: Request | None, failed: Failed) -> None:
        """A request ended with an error."""
        self.stopping = False
        if isinstance(request, Load):
            self.engine, self.loading, self.target, self.modes = Phase.EMPTY, None, None, ()
            if failed.kind == "Cancelled":
                self.trouble = Trouble(
                    translate("Status", "No model is loaded"),
                    translate("Status", "Loading was stopped."),
                    translate("Status", "Load"),
                )
            else:
                self.trouble = Trouble(
                    translate("Status", "The model could not be loaded"),
                    failed.sentence,
                    translate("Status", "Try again"),
                )
        elif isinstance(request, (Ask, Continue)):
            if job := self.running:
                job.conversation.break_off(in_words(failed.sentence))
            self.reading = self.loading = None
        elif isinstance(request, (Restore, Rewind)):
            if self.jobs and request == self._sent:
                self.jobs.popleft().conversation.break_off(in_words(failed.sentence))
        else:
            trouble = Trouble(translate("Status", "That did not work"), failed.sentence, None)
            if self.trouble is not None and self.trouble.remedy is not None:
                self.news.append(trouble)  # the button that loads or restarts must stay
            else:
                self.trouble = trouble

    def done(self, request: Request, succeeded: bool) -> None:
        """A request has come to its end."""
        if isinstance(request, Unload) and self.engine is not Phase.LOADING:  # then another target was asked for since
            self._unloaded()
        if self._sent is None or request != self._sent:
            return
        if job := self.running:
            self.jobs.popleft()
            if not succeeded and isinstance(job.request, Continue):
                self._told = None
        elif not succeeded:
            self._told = None
        elif isinstance(request, Restore):
            self._told, self._told_system = self._telling, request.system
        elif isinstance(request, Rewind) and self._told is not None:
            del self._told[request.turns :]
        self._sent = None
        if self.engine is Phase.ANSWERING:
            self.engine = Phase.READY
        self._say_who_waits()

    def _unloaded(self) -> None:
        self.engine, self.target, self.modes, self.memory = Phase.EMPTY, None, (), None
        self._told = self._sent = None
        self.trouble = Trouble(
            translate("Status", "No model is loaded"),
            translate("Status", "Its memory has been given back."),
            translate("Status", "Load"),
        )

    def engine_stopped(self, reason: str) -> None:
        """The engine process died; all text stays, and who waits goes on waiting."""
        if job := self.running:
            self.jobs.popleft()
            self.interrupted = job
            job.conversation.break_off(translate("Conversation", "The engine stopped here. The text so far is kept."))
        self.engine, self.loading, self.reading, self.stopping = Phase.STOPPED, None, None, False
        self._told = self._sent = self.memory = None
        self._say_who_waits()
        self.trouble = Trouble(
            translate("Status", "The engine stopped. Your text is kept."),
            reason,
            translate("Status", "Restart and go on") if self.interrupted else translate("Status", "Restart"),
        )


def _loading(progress: LoadProgress) -> str:
    """The step by the name that the engine gives it."""
    steps = {
        "target": translate("Status", "Loading the target"),
        "drafter": translate("Status", "Loading the drafter"),
        "measuring": translate("Status", "Measuring what passes cost on this machine"),
        "embedded model": translate("Status", "Preparing a faster copy of the model, this once"),
    }
    return steps.get(progress.part) or translate("Status", "Loading: {part}").format(part=progress.part)


def _last_statistics(conversation: Conversation) -> AnswerStatistics | None:
    return next((turn.statistics for turn in reversed(conversation.turns) if turn.statistics), None)


def _context_used(conversation: Conversation) -> int:
    """What it took when it was last answered."""
    last = _last_statistics(conversation)
    return last.prompt_tokens + last.output_tokens if last else 0


def _begin_in(told: list[Turn], turns: list[Turn]) -> int:
    """How many of the first turns of `told` are the last ones of `turns`; 0: it is another conversation."""
    kept = next((number for number, turn in enumerate(told, 1) if turn is turns[-1]), 0)
    return kept if told[:kept] == turns[len(turns) - kept :] else 0


def _marks(event: Tokens) -> list[TokenMark]:
    candidates = event.candidates or ((),) * len(event.pieces)
    return [
        TokenMark(origin, len(piece), tuple((text, round(share, 4)) for text, share in best))
        for origin, piece, best in zip(event.origins, event.pieces, candidates)
    ]
