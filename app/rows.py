"""What goes into the database and comes out of it: snapshots of conversations, and turns made of rows.

A snapshot is taken in the window's thread and written in another one. Knows nothing of SQLite.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from app.conversation import Conversation, TokenMark, Turn, pack
from app.records import mode_from_plain, statistics_to_text, strings_from_plain
from engine.events import AnswerStatistics


@dataclass(frozen=True, slots=True)
class Header:
    """A conversation in the list."""

    id: str
    title: str
    pinned: bool
    updated: float  # seconds since 1970


@dataclass(frozen=True, slots=True)
class Hit:
    """Where a search found something: the newest place in a conversation."""

    conversation: str
    turn: str | None  # None: in the title
    excerpt: str


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn as it was at one moment; cheap to make, since strings are not copied."""

    id: str
    parent: str | None
    shown: int
    question: str
    answer: str
    mode: str
    note: str
    notices: tuple[str, ...]
    statistics: AnswerStatistics | str | None  # str: packed already
    ended: bool
    complete: bool
    created: float
    details: bytes | None  # packed already
    thought_seconds: float | None = None
    marks: tuple[TokenMark, ...] = ()
    ids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What changed in a conversation."""

    id: str
    title: str
    system: str | None
    pinned: bool
    created: float
    updated: float
    shown: int
    turns: tuple[TurnRow, ...] = field(repr=False)


def snapshot(conversation: Conversation, turns: Iterable[Turn]) -> Snapshot:
    """The state of a conversation, and of those of its turns that are to be written, for another thread."""
    root = conversation.root
    return Snapshot(
        conversation.id,
        conversation.title,
        conversation.system,
        conversation.pinned,
        conversation.created,
        conversation.updated,
        root.shown,
        tuple(_row(turn, root) for turn in turns if turn is not root),
    )


def _row(turn: Turn, root: Turn) -> TurnRow:
    packed = turn.packed
    unpacked = turn.ended and packed is None
    return TurnRow(
        turn.id,
        turn.parent.id if turn.parent is not None and turn.parent is not root else None,
        turn.shown,
        turn.question,
        turn.answer,
        turn.mode.value,
        turn.note,
        tuple(turn.notices),
        turn.packed_statistics or turn.statistics,
        turn.ended,
        turn.complete,
        turn.created,
        packed,
        turn.thought_seconds,
        tuple(turn.tokens) if unpacked else (),
        turn.token_ids if unpacked else None,
    )


def stored_values(turn: TurnRow, conversation: str) -> tuple[Any, ...]:
    """In the order of `schema.COLUMNS`, but for the number."""
    details = turn.details
    if details is None and (turn.marks or turn.ids is not None):
        details = pack(turn.marks, turn.ids)
    statistics = turn.statistics
    if isinstance(statistics, AnswerStatistics):
        statistics = statistics_to_text(statistics)
    return (
        turn.id, conversation, turn.parent, turn.shown, turn.question, turn.answer, turn.mode, turn.note,
        json.dumps(turn.notices), statistics, turn.ended, turn.complete, turn.created, details,
        turn.thought_seconds,
    )  # fmt: skip


def turn_of(values: dict[str, Any], parent: Turn) -> Turn:
    return Turn(
        values["question"],
        mode_from_plain(values["mode"]),
        values["answer"],
        strings_from_plain(_json(values["notices"])),
        text_of(values["note"]),
        thought_seconds=number_of(values["thought_seconds"]) or None,
        ended=bool(values["ended"]),
        complete=bool(values["complete"]),
        id=values["id"],
        created=number_of(values["created"]),
        parent=parent,
        shown=int(number_of(values["shown"])),
        packed=values["details"] if isinstance(values["details"], bytes) else None,
        packed_statistics=values["statistics"] if isinstance(values["statistics"], str) else None,
    )


def _json(found: Any) -> Any:
    try:
        return json.loads(found) if isinstance(found, str) else None
    except (ValueError, RecursionError):
        return None


def text_of(found: Any) -> str:
    return found if isinstance(found, str) else ""


def number_of(found: Any) -> float:
    return found if isinstance(found, (int, float)) else 0.0
