"""Conversations as files: JSON, which keeps everything, and Markdown, which reads well and keeps what is shown.

Writing and reading go conversation by conversation, so that thousands of them need neither much memory nor a long
pause. Knows nothing of the store.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from app.conversation import Conversation, TokenMark, Turn
from app.i18n import translate
from app.records import mode_from_plain, statistics_from_plain, statistics_to_plain, strings_from_plain
from engine.errors import DFlashChatError
from engine.events import Mode

FORMAT, VERSION = "dflash-chat", 1
MARKDOWN_SUFFIXES = (".md", ".markdown")
_MARK = re.compile(r"<!-- dflash-chat: (conversation|system|question|answer)(?: ([a-z0-9]+))? -->")
_LOOKS_LIKE_MARK = re.compile(r"<!-- (\\*)dflash-chat:")
_SPEAKERS = {"system": "**System prompt**", "question": "**Question**", "answer": "**Answer**"}


class TransferError(DFlashChatError):
    """A file of conversations that cannot be written or read; the sentence says why."""


class Export:
    """Writes conversations into a file, which appears when all are in it: `with Export(path) as file: file.add(…)`."""

    def __init__(self, path: Path) -> None:
        """The suffix decides the form. Raises TransferError."""
        self.path = path
        self._unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
        self._is_markdown = path.suffix.lower() in MARKDOWN_SUFFIXES
        self._count = 0
        try:
            self._file: TextIO = open(self._unfinished, "w", encoding="utf-8", newline="\n")
            if not self._is_markdown:
                self._file.write(f'{{"format": "{FORMAT}", "version": {VERSION}, "conversations": [\n')
        except OSError as error:
            raise _cannot_write(path, error) from error

    def add(self, conversation: Conversation) -> None:
        try:
            if self._is_markdown:
                self._file.write("\n" * bool(self._count) + to_markdown(conversation))
            else:  # one to a line, so that they can be read one by one
                text = json.dumps(to_plain(conversation), ensure_ascii=False)
                self._file.write(",\n" * bool(self._count) + text)
        except OSError as error:
            raise _cannot_write(self.path, error) from error
        self._count += 1

    def __enter__(self) -> Export:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and not self._is_markdown:
                self._file.write("\n]}\n")
            self._file.close()
            if kind is None:
                os.replace(self._unfinished, self.path)
        except OSError as problem:
            raise _cannot_write(self.path, problem) from problem
        finally:
            self._unfinished.unlink(missing_ok=True)


def read_conversations(path: Path) -> Iterator[Conversation]:
    """The conversations of an exported file, one after another. Raises TransferError, at the first one that is none."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            if path.suffix.lower() in MARKDOWN_SUFFIXES:
                yield from _from_markdown(file.read(), path)
            else:
                yield from _from_json(file, path)
    except OSError as error:
        sentence = translate("Transfer", "{file} cannot be read ({reason}); choose another file.")
        raise TransferError(sentence.format(file=path.name, reason=error.strerror or error)) from error
    except UnicodeDecodeError as error:
        sentence = translate("Transfer", "{file} is no text file; choose one that this program has exported.")
        raise TransferError(sentence.format(file=path.name)) from error


# --- JSON -------------------------------------------------------------------------------------------------------------


def to_plain(conversation: Conversation) -> dict[str, Any]:
    """All of a conversation, as `json` takes it: turns name the turn before them, the first ones None."""
    root = conversation.root
    return {
        "id": conversation.id,
        "title": conversation.title,
        "system": conversation.system,
        "pinned": conversation.pinned,
        "created": conversation.created,
        "updated": conversation.updated,
        "shown": root.shown,
        "turns": [_turn_to_plain(turn, root) for turn in conversation.all_turns()],
    }


def _turn_to_plain(turn: Turn, root: Turn) -> dict[str, Any]:
    return {
        "id": turn.id,
        "parent": turn.parent.id if turn.parent is not None and turn.parent is not root else None,
        "shown": turn.shown,
        "created": turn.created,
        "mode": turn.mode.value,
        "question": turn.question,
        "answer": turn.answer,
        "complete": turn.complete,
        "notices": turn.notices,
        "note": turn.note,
        "thought_seconds": turn.thought_seconds,
        "statistics": statistics_to_plain(turn.statistics) if turn.statistics else None,
        "tokens": [[mark.origin, mark.size, mark.candidates] for mark in turn.tokens],
        "token_ids": turn.token_ids,
    }


def _from_json(file: TextIO, path: Path) -> Iterator[Conversation]:
    first = file.readline()
    try:
        by_line = json.loads(f"{first}]}}") if first.endswith("[\n") else None
    except ValueError:
        by_line = None
    if by_line is not None:
        _check_head(by_line, path)
        for line in file:
            text = line.strip().removesuffix(",")
            if text == "]}":
                return
            if text:
                yield _from_plain(_parse(text, path), path)
        raise _cut_off(path)
    whole = _parse(first + file.read(), path)
    _check_head(whole, path)
    found = whole.get("conversations")
    if not isinstance(found, list):
        raise _no_conversation(path)
    for one in found:
        yield _from_plain(one, path)


def _parse(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _cut_off(path) from error


def _check_head(found: Any, path: Path) -> None:
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _no_conversation(path)
    version = found.get("version")
    if not isinstance(version, int) or version > VERSION:
        sentence = translate("Transfer", "{file} was exported by a newer version of this program; update the program.")
        raise TransferError(sentence.format(file=path.name))


def _from_plain(found: Any, path: Path) -> Conversation:
    """A conversation and its turns; a turn comes behind the one it follows."""
    try:
        conversation = Conversation(
            str(found["title"]),
            None if found.get("system") is None else str(found["system"]),
            bool(found.get("pinned")),
            str(found["id"]),
            float(found["created"]),
            float(found["updated"]),
        )
        turns: dict[str | None, Turn] = {None: conversation.root}
        for one in found["turns"]:
            turn = _turn_from_plain(one, turns[one["parent"]])
            assert turn.parent is not None
            turn.parent.children.append(turn)
            turns[turn.id] = turn
        conversation.root.shown = int(found["shown"])
        for turn in turns.values():
            if not 0 <= turn.shown < max(len(turn.children), 1):
                raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TransferError(
            translate(
                "Transfer", "{file} holds a conversation this program cannot read ({reason}); export it again."
            ).format(file=path.name, reason=f"{type(error).__name__}: {error}")
        ) from error
    return conversation


def _turn_from_plain(found: dict[str, Any], parent: Turn) -> Turn:
    turn = Turn(
        str(found["question"]),
        mode_from_plain(found.get("mode")),
        str(found["answer"]),
        strings_from_plain(found.get("notices")),
        str(found.get("note", "")),
        ended=True,
        complete=bool(found.get("complete", True)),
        id=str(found["id"]),
        created=float(found["created"]),
        parent=parent,
        shown=int(found.get("shown", 0)),
    )
    thought = found.get("thought_seconds")
    turn.thought_seconds = float(thought) if isinstance(thought, (int, float)) else None
    turn.statistics = statistics_from_plain(found.get("statistics"))
    turn.tokens.extend(
        TokenMark(int(origin), int(size), tuple((str(text), float(share)) for text, share in candidates))
        for origin, size, candidates in found.get("tokens") or ()
    )
    ids = found.get("token_ids")
    turn.token_ids = tuple(int(number) for number in ids) if ids is not None else None
    return turn


# --- Markdown ---------------------------------------------------------------------------------------------------------


def to_markdown(conversation: Conversation) -> str:
    """The shown path. Comments, which no reader of the page sees, tell the parts apart when it is imported."""
    title = " ".join(conversation.title.split())
    parts = [f"<!-- dflash-chat: conversation -->\n\n# {title}\n"]
    if conversation.system is not None:
        parts.append(_part("system", "", conversation.system))
    for turn in conversation.turns:
        parts.append(_part("question", "", turn.question))
        parts.append(_part("answer", f" {turn.mode.value}", turn.answer))
    return "\n".join(parts)


def _part(kind: str, more: str, text: str) -> str:
    escaped = _LOOKS_LIKE_MARK.sub(lambda found: f"<!-- \\{found[1]}dflash-chat:", text)
    return f"<!-- dflash-chat: {kind}{more} -->\n\n{_SPEAKERS[kind]}\n\n{escaped}\n"


def _from_markdown(text: str, path: Path) -> Iterator[Conversation]:
    marks = [found for found in _MARK.finditer(text) if text[: found.start()].endswith("\n") or found.start() == 0]
    if not marks:
        raise _no_conversation(path)
    conversation: Conversation | None = None
    for found, end in zip(marks, [*(mark.start() for mark in marks[1:]), len(text)]):
        kind, mode = found.groups()
        content = text[found.end() : end].removeprefix("\n\n")
        if kind == "conversation":
            if conversation is not None:
                yield _finished(conversation)
            conversation = Conversation(content.strip().removeprefix("# "))
            continue
        if conversation is None:
            raise _no_conversation(path)
        content = content.removeprefix(f"{_SPEAKERS[kind]}\n\n").removesuffix("\n\n" if end < len(text) else "\n")
        content = _LOOKS_LIKE_MARK.sub(lambda one: f"<!-- {one[1][:-1]}dflash-chat:", content)
        if kind == "system":
            conversation.system = content
        elif kind == "question":
            conversation.ask(content, Mode.BASELINE)
        elif turn := conversation.open_turn:
            turn.mode = mode_from_plain(mode)
            conversation.add_text(content)
            conversation.break_off("")
            turn.complete = True
    if conversation is not None:
        yield _finished(conversation)


def _finished(conversation: Conversation) -> Conversation:
    conversation.break_off("")
    return conversation


# --- what can be wrong ------------------------------------------------------------------------------------------------


def _cannot_write(path: Path, error: OSError) -> TransferError:
    sentence = translate("Transfer", "{file} cannot be written ({reason}); choose another place.")
    return TransferError(sentence.format(file=path.name, reason=error.strerror or error))


def _no_conversation(path: Path) -> TransferError:
    sentence = translate("Transfer", "{file} holds no conversations; choose a file that this program has exported.")
    return TransferError(sentence.format(file=path.name))


def _cut_off(path: Path) -> TransferError:
    sentence = translate("Transfer", "{file} is damaged or was cut off; export it again.")
    return TransferError(sentence.format(file=path.name))
