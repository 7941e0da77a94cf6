"""A conversation as the window keeps it: a tree of questions and answers, of which one path is shown.

Asking again makes a sibling with the same question, editing one with another; earlier versions stay and can be leafed
through. Whatever changes is noted, so that it can be stored. Plain Python; knows nothing of widgets, of files or of the
engine's process.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from app.i18n import translate
from app.records import statistics_from_text
from app.thoughts import CLOSES, part
from engine.events import Answered, AnswerStatistics, Mode, StopReason

NOT_KNOWN = -1  # the origin of text that a program which ended too early had not marked
TITLE_LENGTH = 60  # characters of the first question that name a conversation


@dataclass(frozen=True, slots=True)
class TokenMark:
    """Where a token of an answer came from."""

    origin: int  # 0 = the target's own, k >= 1 = accepted draft of block position k, NOT_KNOWN = it was not kept
    size: int  # UTF-8 bytes of the answer that it made
    candidates: tuple[tuple[str, float], ...] = ()  # (text, probability) of the target's distribution, best first


def _new_id() -> str:
    return uuid4().hex


@dataclass(eq=False)
class Turn:
    """A question and its answer, which may still be growing. Its siblings are other versions of it."""

    question: str
    mode: Mode
    answer: str = ""
    notices: list[str] = field(default_factory=list)  # about the context, shown between question and answer
    note: str = ""  # how the answer ended, where that needs a word
    ended: bool = False
    complete: bool = False  # the model itself ended the answer
    thought_seconds: float | None = None  # how long the model thought before it answered; None: not at all, or unknown
    wait: str = ""  # why the answer has not begun, while it is the turn of another conversation
    id: str = field(default_factory=_new_id)
    created: float = field(default_factory=time.time)  # seconds since 1970
    parent: Turn | None = field(default=None, repr=False)
    children: list[Turn] = field(default_factory=list, repr=False)
    shown: int = 0  # which of the children is on the shown path
    # As they are stored, until somebody asks: a long conversation opens at once.
    packed: bytes | None = field(default=None, repr=False)  # marks and ids
    packed_statistics: str | None = field(default=None, repr=False)
    _statistics: AnswerStatistics | None = field(default=None, repr=False)
    _tokens: list[TokenMark] | None = field(default=None, repr=False)
    _token_ids: tuple[int, ...] | None = field(default=None, repr=False)

    @property
    def statistics(self) -> AnswerStatistics | None:
        if self.packed_statistics is not None:
            packed, self.packed_statistics = self.packed_statistics, None
            self._statistics = statistics_from_text(packed)
        return self._statistics

    @statistics.setter
    def statistics(self, statistics: AnswerStatistics | None) -> None:
        self.packed_statistics, self._statistics = None, statistics

    @property
    def tokens(self) -> list[TokenMark]:
        """Where the answer's tokens came from, in its order; empty: not known."""
        if self.packed is not None:
            self._token_ids = self.token_ids
            packed, self.packed = self.packed, None
            self._tokens = unpack_tokens(packed)
        elif self._tokens is None:
            self._tokens = []
        return self._tokens

    @property
    def token_ids(self) -> tuple[int, ...] | None:
        """Of the whole answer; None: it is known as text only."""
        if self.packed is not None and self._token_ids is None:
            self._token_ids = unpack_ids(self.packed)
        return self._token_ids

    @token_ids.setter
    def token_ids(self, ids: tuple[int, ...] | None) -> None:
        _ = self.tokens  # what is packed holds the old ones
        self._token_ids = ids

    @property
    def siblings(self) -> Sequence[Turn]:
        """All versions of this turn, itself included, in the order of their making."""
        return self.parent.children if self.parent is not None else (self,)

    @property
    def place(self) -> int:
        """Which of its siblings it is, from 0."""
        return next(number for number, sibling in enumerate(self.siblings) if sibling is self)

    @property
    def can_continue(self) -> bool:
        """The answer ended before the model ended it."""
        return self.ended and bool(self.answer) and not self.complete

    def ancestors(self) -> list[Turn]:
        """The turns before this one, oldest first."""
        found: list[Turn] = []
        turn = self.parent
        while turn is not None and turn.parent is not None:  # the root is no turn
            found.append(turn)
            turn = turn.parent
        return found[::-1]


@dataclass(eq=False)
class Conversation:
    """The tree of turns. `root` is no turn of its own: it holds the first turns' versions."""

    title: str = ""
    system: str | None = None
    pinned: bool = False
    id: str = field(default_factory=_new_id)
    created: float = field(default_factory=time.time)
    updated: float = field(default_factory=time.time)  # when something was last said
    root: Turn = field(default_factory=lambda: Turn("", Mode.BASELINE), repr=False)
    open_turn: Turn | None = None  # the turn whose answer is being written or waited for
    _writing_since: float | None = field(default=None, repr=False)  # on the monotonic clock: its text began to come
    _path: list[Turn] | None = field(default=None, repr=False)
    _changed: dict[Turn, None] = field(default_factory=dict, repr=False)

    # --- what is shown

    @property
    def turns(self) -> list[Turn]:
        """The shown path, oldest first. Not to be changed."""
        if self._path is None:
            path: list[Turn] = []
            turn = self.root
            while turn.children:
                turn = turn.children[turn.shown]
                path.append(turn)
            self._path = path
        return self._path

    def all_turns(self) -> list[Turn]:
        """Every version of every turn; a turn comes behind the one it follows."""
        found: list[Turn] = []
        waiting = self.root.children[::-1]
        while waiting:
            found.append(waiting.pop())
            waiting.extend(reversed(found[-1].children))
        return found

    def leaf(self, turn: Turn, step: int) -> None:
        """Show the version that is `step` further; stays at the ends."""
        self.show(turn.siblings[min(max(turn.place + step, 0), len(turn.siblings) - 1)])

    def show(self, turn: Turn) -> None:
        """Bring a turn onto the shown path."""
        for below in (*turn.ancestors(), turn):
            above = below.parent
            if above is not None and above.children[above.shown] is not below:
                above.shown = below.place
                self._touch(above)
        self._path = None

    # --- what is asked

    def ask(self, question: str, mode: Mode) -> Turn:
        """A new turn at the end of the shown path."""
        return self._open(Turn(question, mode, parent=self.turns[-1] if self.turns else self.root))

    def ask_again(self, turn: Turn, mode: Mode, question: str | None = None) -> Turn:
        """Another version of `turn`, with the same question or with another one."""
        return self._open(Turn(question if question is not None else turn.question, mode, parent=turn.parent))

    def go_on(self, turn: Turn) -> None:
        """The answer is to be written further."""
        unmarked = len(turn.answer.encode()) - sum(mark.size for mark in turn.tokens)
        if unmarked > 0:
            turn.tokens.append(TokenMark(NOT_KNOWN, unmarked))
        turn.ended, turn.note = False, ""
        self.open_turn, self._writing_since = turn, None
        self.updated = time.time()
        self._touch(turn)

    def _open(self, turn: Turn) -> Turn:
        assert turn.parent is not None
        path = self.turns
        turn.parent.children.append(turn)
        if path and path[-1] is turn.parent:  # the usual case, without a walk to the beginning
            turn.parent.shown = turn.place
            self._path = [*path, turn]
        else:
            self.show(turn)
        self.title = self.title or title_of(turn.question)
        self.open_turn, self._writing_since = turn, None
        self.updated = time.time()
        self._touch(turn)
        return turn

    # --- what is answered

    def add_text(self, text: str, marks: Sequence[TokenMark] = ()) -> None:
        if turn := self.open_turn:
            turn.wait = ""
            if self._writing_since is None:
                self._writing_since = time.monotonic()
            before = len(turn.answer)
            turn.answer += text
            behind = max(0, before - len(CLOSES) + 1)
            if CLOSES in turn.answer[behind:] and turn.answer.find(CLOSES) >= behind:  # the first one, just now
                self._thought(turn)
            turn.tokens.extend(marks)
            self._touch(turn)

    def add_notice(self, sentence: str) -> None:
        if turn := self.open_turn:
            turn.notices.append(sentence)
            self._touch(turn)

    def finish(self, answered: Answered) -> None:
        if turn := self.open_turn:
            reason = answered.statistics.stop_reason or StopReason.STOP_TOKEN
            turn.answer, turn.token_ids, turn.statistics = answered.text, answered.token_ids, answered.statistics
            turn.complete = reason is StopReason.STOP_TOKEN
            self._close(turn, _ending(reason))

    def break_off(self, sentence: str) -> None:
        """The answer will not go on; its text so far stays."""
        if turn := self.open_turn:
            turn.token_ids = None
            self._close(turn, sentence)

    def _thought(self, turn: Turn) -> None:
        """Thinking has ended, or is broken off."""
        if self._writing_since is not None and part(turn.answer).thought is not None:
            turn.thought_seconds = (turn.thought_seconds or 0.0) + time.monotonic() - self._writing_since

    def _close(self, turn: Turn, note: str) -> None:
        if part(turn.answer).thinking:
            self._thought(turn)
        turn.note, turn.wait, turn.ended = note, "", True
        self.open_turn = None
        self.updated = time.time()
        self._touch(turn)

    # --- what is to be stored

    @property
    def has_changes(self) -> bool:
        return bool(self._changed)

    def keep_again(self, turns: Sequence[Turn]) -> None:
        """What `take_changes` gave could not be stored."""
        self._changed = dict.fromkeys((*turns, *self._changed))

    def renew_ids(self) -> None:
        """Make a copy of it that can be stored beside it."""
        self.id = _new_id()
        for turn in self.all_turns():
            turn.id = _new_id()

    def _touch(self, turn: Turn) -> None:
        self._changed[turn] = None

    def take_changes(self) -> list[Turn]:
        """The turns that changed since the last call, the root among them where another first turn is shown."""
        changed, self._changed = list(self._changed), {}
        return changed


def pack(tokens: Sequence[TokenMark], ids: Sequence[int] | None) -> bytes:
    """Marks and ids in little room; the ids can be had without the marks, which are many times as much."""
    parts = (  # in pieces, since the encoder lets no other thread run
        json.dumps([(mark.origin, mark.size, mark.candidates) for mark in tokens[start : start + 500]])[1:-1]
        for start in range(0, len(tokens), 500)
    )
    return zlib.compress(f"{json.dumps(ids)}\n[{', '.join(parts)}]".encode(), 1)


def unpack_ids(packed: bytes) -> tuple[int, ...] | None:
    """The ids that `pack` was given; None, where there are none or they are damaged."""
    try:
        found = json.loads(zlib.decompress(packed).partition(b"\n")[0])
        return tuple(int(number) for number in found) if found is not None else None
    except (zlib.error, ValueError, TypeError):
        return None


def unpack_tokens(packed: bytes) -> list[TokenMark]:
    """The marks that `pack` was given; none, where they are damaged."""
    try:
        return [
            TokenMark(int(origin), int(size), tuple((str(text), float(share)) for text, share in candidates))
            for origin, size, candidates in json.loads(zlib.decompress(packed).partition(b"\n")[2])
        ]
    except (zlib.error, ValueError, TypeError):
        return []


def title_of(question: str) -> str:
    """A question in one line, short enough for a list."""
    line = " ".join(question[: 8 * TITLE_LENGTH].split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


def _ending(reason: StopReason) -> str:
    return {
        StopReason.STOP_TOKEN: "",
        StopReason.MAX_TOKENS: translate("Conversation", "Stopped at the token limit."),
        StopReason.CONTEXT_FULL: translate("Conversation", "Stopped because the context is full."),
        StopReason.CANCELLED: translate("Conversation", "Stopped."),
    }[reason]
