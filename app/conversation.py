"""A conversation as the window keeps it: questions, answers and what became of them.

Plain Python; knows nothing of widgets or of the engine's process.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.events import Answered, AnswerStatistics, Mode, StopReason

ENDINGS = {
    StopReason.STOP_TOKEN: "",
    StopReason.MAX_TOKENS: "Stopped at the token limit.",
    StopReason.CONTEXT_FULL: "Stopped because the context is full.",
    StopReason.CANCELLED: "Stopped.",
}


@dataclass
class Turn:
    """A question and its answer, which may still be growing."""

    question: str
    mode: Mode
    answer: str = ""
    notices: list[str] = field(default_factory=list)  # about the context, shown between question and answer
    note: str = ""  # how the answer ended, where that needs a word
    statistics: AnswerStatistics | None = None
    ended: bool = False
    known: bool = False  # the engine's conversation has this turn


@dataclass
class Conversation:
    """The turns, oldest first."""

    turns: list[Turn] = field(default_factory=list)

    @property
    def open_turn(self) -> Turn | None:
        """The turn whose answer is being written."""
        return self.turns[-1] if self.turns and not self.turns[-1].ended else None

    def ask(self, question: str, mode: Mode) -> Turn:
        self.turns.append(Turn(question, mode))
        return self.turns[-1]

    def add_text(self, text: str) -> None:
        if turn := self.open_turn:
            turn.answer += text

    def finish(self, answered: Answered) -> None:
        if turn := self.open_turn:
            turn.answer = answered.text
            turn.statistics = answered.statistics
            turn.note = ENDINGS.get(answered.statistics.stop_reason or StopReason.STOP_TOKEN, "")
            turn.ended = turn.known = True

    def break_off(self, sentence: str) -> None:
        """The answer will not go on; its text so far stays."""
        if turn := self.open_turn:
            turn.note = sentence
            turn.ended = True

    def history(self) -> tuple[tuple[str, str], ...]:
        """What a fresh engine is told: every turn that has an answer, be it unfinished."""
        return tuple((turn.question, turn.answer) for turn in self.turns if turn.answer)

    def forgotten(self) -> None:
        """The engine that knew the turns is gone."""
        for turn in self.turns:
            turn.known = False

    def restored(self) -> None:
        """A fresh engine has taken `history()`."""
        for turn in self.turns:
            turn.known = bool(turn.answer)

    def take_back(self) -> tuple[str, int] | None:
        """Remove the last turn, to ask it again: its question, and how many turns the engine is to keep."""
        if not self.turns or not self.turns[-1].ended:
            return None
        turn = self.turns.pop()
        return turn.question, sum(earlier.known for earlier in self.turns)
