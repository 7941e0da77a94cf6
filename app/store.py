"""Conversations on disk: one SQLite file, written while answers stream in, searched in full.

What is damaged never blocks the start: it is set aside under a name that says so, what can still be read of it is taken
over, and `notices` says what happened. A store belongs to one thread (`app/store_thread.py`). Knows nothing of Qt.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
import unicodedata
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from app.conversation import Conversation, Turn
from app.i18n import translate
from app.rows import Header, Hit, Snapshot, TurnRow, number_of, snapshot, stored_values, text_of, turn_of
from app.salvage import free_name, salvage
from app.schema import COLUMNS, SCHEMA, VERSION, add_columns, words_table
from engine.errors import DFlashChatError

PIECE = 1 << 15  # characters of a message that are indexed at once: a few ten milliseconds
OVERLAP = 100  # of two pieces: what is found is not cut in two
PIECES = 1 << 12  # at most, of one turn
EXCERPT = 80  # characters shown around what was found
MOST_HITS = 200
_MARKUP = re.compile(r"\*\*|`+|^#+ ", re.MULTILINE)


class StoreError(DFlashChatError):
    """Conversations cannot be written or read; the sentence says why."""


_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def _guarded(
    method: Callable[Concatenate[Store, _Given], _Result],
) -> Callable[Concatenate[Store, _Given], _Result]:
    """A damaged file is set aside and the call made again on what could be saved of it; raises StoreError."""

    @wraps(method)
    def guarded(store: Store, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        try:
            return method(store, *args, **kwargs)
        except sqlite3.OperationalError as error:
            raise _cannot_write(error) from error
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.DataError):
                raise
            store._set_aside(error)
            return method(store, *args, **kwargs)

    return guarded


def _cannot_write(error: Exception) -> StoreError:
    return StoreError(
        translate(
            "Store", "Conversations cannot be stored at the moment ({reason}); make room or check the folder."
        ).format(reason=error)
    )


class Store:
    """`path` None keeps everything in memory. Whatever is wrong with the file, the store opens."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.notices: list[str] = []  # sentences for the user, to be taken away by who shows them
        self._has_trigrams = True
        self._db = self._open()

    def close(self) -> None:
        self._db.close()

    # --- opening

    def _open(self) -> sqlite3.Connection:
        if self.path is None:
            return self._prepare(sqlite3.connect(":memory:"))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return self._open_file(self.path)
        except (OSError, sqlite3.OperationalError) as error:
            return self._in_memory(self.path, error)
        except sqlite3.DatabaseError as error:
            return self._replace_damaged(error)

    def _in_memory(self, path: Path, error: Exception) -> sqlite3.Connection:
        """What was said before can be read, as far as the file can; nothing is kept."""
        sentence = translate(
            "Store", "Conversations of this session will not be kept: {file} cannot be written ({reason})."
        )
        self.notices.append(sentence.format(file=path, reason=error))
        self.path = None
        db = self._prepare(sqlite3.connect(":memory:"))
        if path.exists():
            salvage(path, db)
        return db

    def _open_file(self, path: Path) -> sqlite3.Connection:
        db = sqlite3.connect(path, timeout=5.0)
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version <= VERSION:
                return self._prepare(db)
        except BaseException:
            db.close()
            raise
        db.close()
        self.path = path.with_name(f"{path.stem}-version-{VERSION}{path.suffix}")
        if not self.path.exists():  # said once: from then on the file speaks for itself
            self.notices.append(
                translate(
                    "Store",
                    "The conversations were last written by a newer version of this program and are left as they are; "
                    "update the program to see them. New ones are kept in {file}.",
                ).format(file=self.path)
            )
        return self._open_file(self.path)

    def _prepare(self, db: sqlite3.Connection) -> sqlite3.Connection:
        """Bring a database up to date; raises sqlite3.Error."""
        db.isolation_level = None
        db.text_factory = lambda found: found.decode("utf-8", "replace")  # a damaged character is no damaged chat
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA:
            db.execute(statement)
        add_columns(db)
        self._has_trigrams = words_table(db)
        db.execute(f"PRAGMA user_version = {VERSION}")
        self._tidy(db)
        db.execute("COMMIT")
        return db

    def _tidy(self, db: sqlite3.Connection) -> None:
        """What a program that ended too early has left."""
        note = translate("Conversation", "The program ended here. The text so far is kept.")
        db.execute("UPDATE turns SET ended = 1, note = ? WHERE ended = 0", (note,))
        orphans = db.execute("SELECT DISTINCT conversation FROM turns EXCEPT SELECT id FROM conversations").fetchall()
        for (conversation,) in orphans:
            title = translate("Store", "Recovered conversation")
            now = time.time()
            db.execute(
                "INSERT INTO conversations (id, title, created, updated) VALUES (?, ?, ?, ?)",
                (conversation, title, now, now),
            )
        if orphans:
            self.notices.append(
                translate("Store", "Conversations that the list had lost are in it again: {count}.").format(
                    count=len(orphans)
                )
            )

    # --- damage

    def _set_aside(self, error: sqlite3.Error) -> None:
        self._db.close()
        self._db = self._replace_damaged(error)

    def _replace_damaged(self, error: sqlite3.Error) -> sqlite3.Connection:
        """Give the file a name that says it is damaged, and take over what can be read of it."""
        assert self.path is not None
        aside = free_name(self.path)
        try:
            for suffix in ("-wal", "-shm", ""):
                if (part := Path(f"{self.path}{suffix}")).exists():
                    os.replace(part, f"{aside}{suffix}")
            db = self._open_file(self.path)
        except (OSError, sqlite3.Error) as second:
            return self._in_memory(self.path, second)
        conversations, turns = salvage(aside, db)
        self.notices.append(
            translate(
                "Store",
                "The file of conversations was damaged ({reason}). What could be read of it is here (conversations: "
                "{conversations}, messages: {messages}); the damaged file is kept as {file}.",
            ).format(reason=error, conversations=conversations, messages=turns, file=aside)
        )
        return db

    # --- reading

    @_guarded
    def headers(self) -> list[Header]:
        """All conversations, the newest first."""
        rows = self._db.execute(
            "SELECT id, title, pinned, updated FROM conversations WHERE deleted IS NULL ORDER BY updated DESC"
        )
        return [Header(text_of(id_), text_of(title), bool(pinned), number_of(at)) for id_, title, pinned, at in rows]

    @_guarded
    def load(self, id_: str) -> Conversation | None:
        """A conversation with all its versions; None: there is none of that name."""
        row = self._db.execute(
            "SELECT title, system, pinned, created, updated, shown FROM conversations WHERE id = ?", (id_,)
        ).fetchone()
        if row is None:
            return None
        title, system, pinned, created, updated, shown = row
        found = Conversation(
            text_of(title), None if system is None else text_of(system), bool(pinned), id_, number_of(created),
            number_of(updated),
        )  # fmt: skip
        turns: dict[str, Turn] = {}
        damaged: list[int] = []
        columns = ", ".join(COLUMNS)
        for row in self._db.execute(f"SELECT {columns} FROM turns WHERE conversation = ? ORDER BY number", (id_,)):
            values = dict(zip(COLUMNS, row))
            parent = turns.get(values["parent"], found.root)
            if not (isinstance(values["question"], str) and isinstance(values["answer"], str)):
                damaged.append(values["number"])
                turns[values["id"]] = parent  # what follows it stays, behind what came before
                continue
            turn = turn_of(values, parent)
            parent.children.append(turn)
            turns[turn.id] = turn
        for turn in (found.root, *turns.values()):
            turn.shown = min(max(turn.shown, 0), max(len(turn.children) - 1, 0))
        found.root.shown = min(max(int(number_of(shown)), 0), max(len(found.root.children) - 1, 0))
        if damaged:
            self._put_away(damaged, found.title)
        return found

    def _put_away(self, numbers: list[int], title: str) -> None:
        with self._transaction():
            for number in numbers:
                row = self._db.execute("SELECT * FROM turns WHERE number = ?", (number,)).fetchone()
                content = json.dumps(row, default=lambda value: value.hex())
                self._db.execute("INSERT INTO damaged (content, since) VALUES (?, ?)", (content, time.time()))
                self._db.execute("DELETE FROM turns WHERE number = ?", (number,))
        self.notices.append(
            translate(
                "Store",
                "Damaged messages in “{title}”: {count}. They were set aside in the table “damaged” of {file}.",
            ).format(count=len(numbers), title=title, file=self.path)
        )

    # --- writing

    @_guarded
    def save(self, changes: Snapshot) -> None:
        """Write what changed; raises StoreError, and then nothing is written."""
        with self._transaction():
            self._db.execute(
                "INSERT INTO conversations (id, title, system, pinned, created, updated, shown)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET title = excluded.title,"
                " system = excluded.system, pinned = excluded.pinned, updated = excluded.updated,"
                " shown = excluded.shown",
                (
                    changes.id,
                    changes.title,
                    changes.system,
                    changes.pinned,
                    changes.created,
                    changes.updated,
                    changes.shown,
                ),
            )
            for turn in changes.turns:
                self._save_turn(changes.id, turn)

    def _save_turn(self, conversation: str, turn: TurnRow) -> None:
        names = (*COLUMNS[1:], "indexed")
        changed = ", ".join(
            f"{name} = excluded.{name}" for name in names if name not in ("id", "conversation", "parent")
        )
        self._db.execute(
            f"INSERT INTO turns ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
            f" ON CONFLICT (id) DO UPDATE SET {changed}",
            (*stored_values(turn, conversation), 0),
        )

    @_guarded
    def adopt(self, conversation: Conversation) -> None:
        """Write a conversation that came from elsewhere, under new names where its own are taken."""
        turns = conversation.all_turns()
        taken = self._db.execute("SELECT 1 FROM conversations WHERE id = ?", (conversation.id,)).fetchone()
        if taken or any(self._db.execute("SELECT 1 FROM turns WHERE id = ?", (turn.id,)).fetchone() for turn in turns):
            conversation.renew_ids()
        self.save(snapshot(conversation, turns))

    @_guarded
    def rename(self, id_: str, title: str) -> None:
        self._db.execute("UPDATE conversations SET title = ? WHERE id = ?", (title, id_))

    @_guarded
    def pin(self, id_: str, pinned: bool) -> None:
        self._db.execute("UPDATE conversations SET pinned = ? WHERE id = ?", (pinned, id_))

    @_guarded
    def delete(self, id_: str) -> None:
        """Take a conversation out of the list; it is gone for good only after `purge`."""
        self._db.execute("UPDATE conversations SET deleted = ? WHERE id = ?", (time.time(), id_))

    @_guarded
    def undelete(self, id_: str) -> None:
        self._db.execute("UPDATE conversations SET deleted = NULL WHERE id = ?", (id_,))

    @_guarded
    def purge(self) -> None:
        """Remove what was deleted."""
        with self._transaction():
            gone = (
                "SELECT number FROM turns WHERE conversation IN (SELECT id FROM conversations WHERE deleted NOT NULL)"
            )
            for (number,) in self._db.execute(gone).fetchall():
                self._forget_words(number)
            self._db.execute(f"DELETE FROM turns WHERE number IN ({gone})")
            self._db.execute("DELETE FROM conversations WHERE deleted NOT NULL")

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db)

    # --- searching

    @_guarded
    def index_some(self) -> bool:
        """Make a little more of what was said searchable; whether there is more to do. For when nothing else is."""
        row = self._db.execute(
            "SELECT number, question, answer, indexed FROM turns WHERE ended = 1 AND indexed >= 0 LIMIT 1"
        ).fetchone()
        if row is None:
            return False
        number, question, answer, piece = row
        text = fold(f"{text_of(question)}\n{text_of(answer)}")
        with self._transaction():
            if piece == 0:
                self._forget_words(number)
            start = piece * PIECE
            part = text[start : start + PIECE + OVERLAP]
            self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number * PIECES + piece, part))
            done = start + PIECE >= len(text) or piece + 1 == PIECES
            self._db.execute("UPDATE turns SET indexed = ? WHERE number = ?", (-1 if done else piece + 1, number))
        return True

    def _forget_words(self, number: int) -> None:
        self._db.execute("DELETE FROM words WHERE rowid BETWEEN ? AND ?", (number * PIECES, (number + 1) * PIECES - 1))

    @_guarded
    def search(self, text: str) -> list[Hit]:
        """The conversations in which all words of `text` are said in one message, or stand in the title."""
        wanted = fold(text).split()
        if not wanted:
            return []
        hits = {
            id_: Hit(id_, None, "")
            for id_, title in self._db.execute("SELECT id, title FROM conversations WHERE deleted IS NULL")
            if all(word in fold(text_of(title)) for word in wanted)
        }
        long = [word for word in wanted if len(word) >= 3 and self._has_trigrams]
        tests = ["words MATCH ?"] if long else []
        values: list[Any] = [" AND ".join('"' + word.replace('"', '""') + '"' for word in long)] if long else []
        for word in wanted:
            if word not in long:  # no trigram in it: look through all text
                tests.append("instr(words.text, ?) > 0")
                values.append(word)
        rows = self._db.execute(
            f"SELECT turns.conversation, turns.id, question, answer, max(words.rowid) FROM words"
            f" JOIN turns ON turns.number = words.rowid / {PIECES}"
            f" JOIN conversations ON conversations.id = turns.conversation AND conversations.deleted IS NULL"
            f" WHERE {' AND '.join(tests)} GROUP BY turns.conversation ORDER BY conversations.updated DESC LIMIT ?",
            (*values, MOST_HITS),
        )
        for conversation, turn, question, answer, _ in rows:
            text = f"{text_of(question)}\n{text_of(answer)}"
            hits[conversation] = Hit(conversation, turn, excerpt(text, wanted[0]))
        return list(hits.values())


class _Transaction:
    """All or nothing, also where a statement fails."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._db.execute("COMMIT")
        elif self._db.in_transaction:
            try:
                self._db.execute("ROLLBACK")
            except sqlite3.Error:
                pass  # the first error is the one to be told


def fold(text: str) -> str:
    """Text in which upper and lower case, and composed and decomposed Hangul, are the same."""
    return unicodedata.normalize("NFC", text).casefold()


def excerpt(text: str, word: str) -> str:
    """One line around the first place of a folded word."""
    text = unicodedata.normalize("NFC", text)
    folded = text.casefold()
    if len(folded) != len(text):
        text = folded  # a letter that folds into two, such as ß: places in it would not be places in the text
    at = max(folded.find(word), 0)
    start, end = max(at - EXCERPT // 5, 0), at + EXCERPT
    if start:
        start = text.find(" ", start, at) + 1 or start  # not in the middle of a word
    line = " ".join(_MARKUP.sub("", text[start:end]).split())
    return ("…" if start else "") + line + ("…" if end < len(text) else "")
