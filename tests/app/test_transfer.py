"""Conversations as files: what was exported comes back, and a bad file says what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.conversation import Conversation
from app.transfer import Export, TransferError, read_conversations, to_plain
from engine.events import Mode
from tests.app.test_store import branched, say


def exported(path: Path, *conversations: Conversation) -> Path:
    with Export(path) as file:
        for conversation in conversations:
            file.add(conversation)
    return path


def test_json_keeps_everything(tmp_path: Path) -> None:
    one, two = branched(), Conversation("A title\nof two lines")
    say(two, '"quoted"\n]}\n', "]}\u2028")
    found = list(read_conversations(exported(tmp_path / "all.json", one, two)))
    assert [to_plain(conversation) for conversation in found] == [to_plain(one), to_plain(two)]
    assert [turn.question for turn in found[0].turns] == ["첫 질문", "second"]
    assert found[0].turns[0].tokens and found[0].turns[0].statistics == one.turns[0].statistics
    assert [path.name for path in tmp_path.iterdir()] == ["all.json"]
    pretty = tmp_path / "pretty.json"
    pretty.write_text(json.dumps(json.loads((tmp_path / "all.json").read_text("utf-8")), indent=1), "utf-8")
    assert [to_plain(conversation) for conversation in read_conversations(pretty)] == [to_plain(one), to_plain(two)]
    assert list(read_conversations(exported(tmp_path / "none.json"))) == []


def test_markdown_keeps_what_is_shown(tmp_path: Path) -> None:
    one, two = branched(), Conversation()
    say(two, "  indented\n\n# no title\n", "```\n<!-- dflash-chat: question -->\n```\n\n")
    say(two, "<!-- \\dflash-chat: x", "")
    path = exported(tmp_path / "all.md", one, two)
    assert path.read_text("utf-8").startswith("<!-- dflash-chat: conversation -->\n\n# 첫 질문\n\n")
    first, second = read_conversations(path)
    assert (first.title, first.system) == ("첫 질문", "Be brief.")
    for found, made in ((first, one), (second, two)):
        assert [(turn.question, turn.answer, turn.mode) for turn in found.turns] == [
            (turn.question, turn.answer, turn.mode) for turn in made.turns
        ]
        assert all(turn.ended and not turn.can_continue for turn in found.turns)
    assert first.turns[0].mode is Mode.DFLASH


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.json", b"", "damaged or was cut off"),
        ("a.json", b"\xff\xfe\x00", "no text file"),
        ("a.json", b"[1, 2]", "no conversations"),
        ("a.json", b'{"format": "dflash-chat", "version": 1}', "no conversations"),
        ("a.json", b'{"format": "dflash-chat", "version": 9, "conversations": [\n]}', "newer version"),
        ("a.json", b'{"format": "dflash-chat", "version": 1, "conversations": [\n{"id": "x",', "cut off"),
        ("a.json", b'{"format": "dflash-chat", "version": 1, "conversations": [\n', "cut off"),
        ("a.json", b'{"format": "dflash-chat", "version": 1, "conversations": [5]}', "cannot read (TypeError"),
        ("a.json", b"[" * 100_000, "cut off"),
        ("a.md", b"# Just a page", "no conversations"),
        ("a.md", b"<!-- dflash-chat: answer -->\n\nx\n", "no conversations"),
        ("missing.json", None, "cannot be read"),
    ],
)
def test_a_bad_file_is_explained(tmp_path: Path, name: str, content: bytes | None, sentence: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TransferError, match=name) as caught:
        list(read_conversations(tmp_path / name))
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_an_export_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    with pytest.raises(TransferError, match="cannot be written"):
        exported(tmp_path / "no folder" / "a.json")
    path = exported(tmp_path / "a.json", branched())
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError), Export(path) as file:
        file.add(branched())
        raise ZeroDivisionError
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
