"""Everything the window shows, as one plain object that changes by the engine's events.

Widgets read it and never write it. It knows nothing of Qt, of processes or of how the figures were measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from app.conversation import Conversation
from engine.events import (
    Answered,
    AnswerStatistics,
    ContextNotice,
    Event,
    Failed,
    Loaded,
    LoadProgress,
    Memory,
    Mode,
    ModeInfo,
    Progress,
    PromptProgress,
    TargetInfo,
    Tokens,
)
from engine.host import Ask, Load, Request, Restore

NEARLY_FULL = 0.9  # of the context: where the engine says so too


class Phase(Enum):
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


@dataclass
class ChatState:
    conversation: Conversation = field(default_factory=Conversation)
    phase: Phase = Phase.EMPTY
    wanted_mode: Mode | None = None  # what the user chose; None = the best there is
    target: TargetInfo | None = None
    modes: tuple[ModeInfo, ...] = ()
    memory: Memory | None = None
    statistics: AnswerStatistics | None = None  # of the running answer, else of the last one
    loading: LoadProgress | None = None
    reading: PromptProgress | None = None
    context_used: int = 0
    context_size: int = 0
    stopping: bool = False  # a cancel is on its way
    trouble: Trouble | None = None

    # --- what follows from it

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
        return self.phase in (Phase.LOADING, Phase.ANSWERING) and not self.stopping

    @property
    def context_nearly_full(self) -> bool:
        return self.context_size > 0 and self.context_used >= NEARLY_FULL * self.context_size

    @property
    def status(self) -> str:
        """The status line."""
        if self.phase is Phase.LOADING:
            if self.stopping:
                return "Stopping the load"
            return f"Loading the {self.loading.part}" if self.loading else "Starting the engine"
        if self.phase is Phase.ANSWERING:
            if self.stopping:
                return "Stopping"
            if self.loading:
                return f"Loading the {self.loading.part}"
            if self.reading and self.reading.done < self.reading.total:
                again = " again, for the drafter" if self.reading.again else ""
                return f"Reading the prompt{again}: {self.reading.done:,} of {self.reading.total:,} tokens"
            return "Answering"
        return {Phase.EMPTY: "No model is loaded", Phase.STOPPED: "The engine has stopped"}.get(self.phase, "Ready")

    @property
    def progress(self) -> float | None:
        """How far the step named in `status` has come, 0..1; None: it has no measure."""
        if self.phase is Phase.LOADING and not self.loading:
            return 0.0
        if self.loading:
            return self.loading.fraction
        if self.phase is Phase.ANSWERING and self.reading and self.reading.done < self.reading.total:
            return self.reading.done / self.reading.total
        return None

    # --- what the user does

    def load(self) -> None:
        self.phase, self.trouble, self.stopping, self.loading = Phase.LOADING, None, False, None

    def ask(self, question: str) -> Ask:
        self.conversation.ask(question, self.mode)
        self.phase, self.stopping, self.reading = Phase.ANSWERING, False, None
        self.trouble = self.statistics = None
        return Ask(question, self.mode)

    def stop(self) -> None:
        self.stopping = True

    def clear(self) -> None:
        self.conversation = Conversation()
        self.statistics = None
        self.context_used = 0

    # --- what the engine says

    def apply(self, event: Event) -> None:
        match event:
            case LoadProgress():
                self.loading = event
            case Loaded():
                self.phase, self.loading, self.stopping = Phase.READY, None, False
                self.target, self.modes, self.memory = event.target, event.modes, event.memory
                self.context_size, self.context_used = event.target.context_served, 0
            case PromptProgress():
                self.reading, self.loading = event, None
            case ContextNotice():
                self.context_used, self.context_size = event.used, event.size
                if turn := self.conversation.open_turn:
                    turn.notices.append(event.sentence)
            case Tokens():
                self.reading = self.loading = None
                self.conversation.add_text(event.text)
            case Progress():
                self.statistics, self.memory = event.statistics, event.statistics.memory
                self.context_used, self.context_size = event.context_used, event.context_size
            case Answered():
                self.conversation.finish(event)
                self.statistics, self.memory = event.statistics, event.statistics.memory
                self.context_used, self.context_size = event.context_used, event.context_size
                self.phase, self.reading, self.loading, self.stopping = Phase.READY, None, None, False

    def fail(self, request: Request | None, failed: Failed) -> None:
        """A request ended with an error."""
        self.stopping = False
        if isinstance(request, Load):
            self.conversation.forgotten()
            self.phase, self.loading, self.target, self.modes = Phase.EMPTY, None, None, ()
            if failed.kind == "Cancelled":
                self.trouble = Trouble("No model is loaded", "Loading was stopped.", "Load")
            else:
                self.trouble = Trouble("The model could not be loaded", failed.sentence, "Try again")
        elif isinstance(request, Ask):
            self.conversation.break_off(failed.sentence)
            self.phase, self.reading, self.loading = Phase.READY, None, None
        elif isinstance(request, Restore):
            self.trouble = Trouble("The model does not know the turns above", failed.sentence, None)
        else:
            self.trouble = Trouble("That did not work", failed.sentence, None)

    def done(self, request: Request, succeeded: bool) -> None:
        """A request has come to its end."""
        if isinstance(request, Restore) and succeeded:
            self.conversation.restored()

    def engine_stopped(self, reason: str) -> None:
        """The engine process died; all text stays."""
        self.conversation.forgotten()
        self.conversation.break_off("The engine stopped here. The text so far is kept.")
        self.phase, self.loading, self.reading, self.stopping = Phase.STOPPED, None, None, False
        self.memory = None
        self.trouble = Trouble("The engine stopped. Your text is kept.", reason, "Restart")
