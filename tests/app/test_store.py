"""Conversations on disk: what is written comes back, and no damage blocks the start."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.conversation import Conversation, TokenMark, Turn
from app.rows import Hit, snapshot
from app.schema import VERSION
from app.store import PIECE, Store
from app.store_thread import StoreThread
from engine.events import Answered, LoadSettings, Mode, StopReason
from tests.scripted_session import ScriptedSession

ROOT = Path(__file__).parents[2]
SESSION = ScriptedSession(LoadSettings())
MARKS = [TokenMark(0, 3, (("안", 0.5), ("네", 0.25))), TokenMark(2, 6)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "conversations.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    store = Store(path)
    yield store
    store.close()


def say(conversation: Conversation, question: str, answer: str) -> Turn:
    turn = conversation.ask(question, Mode.DFLASH)
    answered_with(conversation, answer)
    return turn


def answered_with(conversation: Conversation, answer: str) -> None:
    conversation.add_text("", MARKS)
    statistics = SESSION._statistics(Mode.DFLASH, 2, StopReason.STOP_TOKEN)
    conversation.finish(Answered(answer, (5, 70000), statistics, 50, 4096))


def save(store: Store, conversation: Conversation) -> None:
    store.save(snapshot(conversation, conversation.take_changes()))


def index(store: Store) -> None:
    while store.index_some():
        pass


def tree(turn: Turn) -> list[object]:
    """All that is to be kept of a turn and of what follows it."""
    values = (
        turn.question,
        turn.answer,
        turn.mode,
        turn.note,
        turn.notices,
        turn.statistics,
        turn.ended,
        turn.complete,
        turn.thought_seconds,
    )
    kept = (turn.id, turn.created, turn.tokens, turn.token_ids, turn.shown)
    return [values, kept, [tree(child) for child in turn.children]]


def branched() -> Conversation:
    conversation = Conversation(system="Be brief.", pinned=True)
    first = say(conversation, "첫 질문", "하나")
    say(conversation, "second", "two").thought_seconds = 2.5
    conversation.ask_again(first, Mode.BASELINE, "the first, edited")
    conversation.add_notice("The oldest turn was dropped.")
    conversation.break_off("Refused.")
    conversation.leaf(conversation.turns[0], -1)
    return conversation


def test_all_versions_come_back_as_they_were(store: Store) -> None:
    conversation = branched()
    save(store, conversation)
    found = store.load(conversation.id)
    assert found is not None and tree(found.root)[2] == tree(conversation.root)[2]
    assert (found.title, found.system, found.pinned) == ("첫 질문", "Be brief.", True)
    assert [turn.question for turn in found.turns] == ["첫 질문", "second"]
    assert found.turns[1].ancestors() == [found.turns[0]]
    found.ask("third", Mode.BASELINE)
    save(store, found)
    again = store.load(conversation.id)
    assert again is not None and [turn.question for turn in again.turns] == ["첫 질문", "second", "third"]
    assert again.turns[0].tokens == MARKS  # though only other turns were written anew
    assert store.load("nobody") is None


def test_the_list_is_newest_first_and_a_deletion_can_be_taken_back(store: Store) -> None:
    old, new = Conversation(), Conversation()
    say(old, "old", "1")
    say(new, "new", "2")
    old.updated, new.updated = 1.0, 2.0
    for conversation in (old, new):
        save(store, conversation)
    store.rename(old.id, "Renamed")
    store.pin(old.id, True)
    assert [(header.title, header.pinned) for header in store.headers()] == [("new", False), ("Renamed", True)]
    index(store)
    store.delete(old.id)
    assert [header.id for header in store.headers()] == [new.id] and store.search("old") == []
    store.undelete(old.id)
    assert len(store.headers()) == 2 and len(store.search("old")) == 1
    store.delete(old.id)
    store.purge()
    store.undelete(old.id)
    assert [header.id for header in store.headers()] == [new.id] and store.load(old.id) is None


@pytest.mark.parametrize(
    "words", ["날씨", "씨", "오늘의 날씨", "WEATHER 날", "weather", "天気", "a*b", '"quoted"', "%", "é"]
)
def test_search_finds_words_of_any_length_and_script(store: Store, words: str) -> None:
    conversation, other = Conversation("A talk"), Conversation()
    turn = say(conversation, "서울의 오늘의 날씨는?", 'Weather: 天気がいい, É, a*b, "quoted", 100 %.')
    say(other, "Something else", "nothing")
    save(store, conversation)
    save(store, other)
    assert store.search(words) == []  # not yet: it is made searchable while nothing else is to be done
    index(store)
    (hit,) = store.search(words)
    assert (hit.conversation, hit.turn) == (conversation.id, turn.id)
    assert words.split()[0].casefold() in hit.excerpt.casefold()


def test_search_knows_titles_decomposed_hangul_and_long_messages(store: Store) -> None:
    conversation = Conversation()
    turn = say(conversation, "q", "x" * (PIECE - 2) + " needle " + "y" * PIECE + " \u1100\u1161\u11ab end")
    conversation.title = "On lighthouses"
    save(store, conversation)
    index(store)
    assert store.search("lightHOUSE") == [Hit(conversation.id, None, "")]
    for words in ("needle", "간", "간 end"):
        assert [hit.turn for hit in store.search(words)] == [turn.id], words
    assert store.search("needle 간") == [] or len(store.search("needle 간")) == 1
    assert store.search("absent") == [] and store.search("  ") == []


# --- damage


def test_a_program_that_was_killed_leaves_its_text_marked(path: Path) -> None:
    conversation = Conversation()
    conversation.ask("q", Mode.BASELINE)
    conversation.add_text("half an ans")
    store = Store(path)
    save(store, conversation)
    store.close()
    store = Store(path)
    found = store.load(conversation.id)
    store.close()
    assert found is not None and store.notices == []
    (turn,) = found.turns
    assert turn.answer == "half an ans" and turn.ended and turn.can_continue and "ended here" in turn.note


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 300], ids=["empty", "other"])
def test_a_file_that_is_no_database_is_set_aside(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    store = Store(path)
    conversation = Conversation()
    say(conversation, "q", "a")
    save(store, conversation)
    assert len(store.headers()) == 1
    store.close()
    aside = [found.read_bytes() for found in path.parent.iterdir() if "damaged" in found.name]
    assert aside == ([content] if content else [])
    assert [("damaged" in notice) for notice in store.notices] == [True] * len(aside)


def test_what_a_damaged_file_still_holds_is_taken_over(path: Path) -> None:
    store = Store(path)
    for number in range(60):
        conversation = Conversation()
        say(conversation, f"question {number}", "answer " * 300)
        save(store, conversation)
    index(store)
    store.close()
    content = bytearray(path.read_bytes())
    place = content.index(b"question 30answer")
    content[place - 2000 : place + 2000] = os.urandom(4000)
    path.write_bytes(content)
    store = Store(path)
    readable = 0
    for header in store.headers():
        found = store.load(header.id)
        readable += found is not None and len(found.turns) == 1 and found.turns[0].answer == "answer " * 300
    index(store)
    assert len(store.search("question 5")) >= 5
    store.close()
    assert 50 <= readable < 60
    (notice,) = store.notices
    (aside,) = path.parent.glob("*damaged*.db")
    assert str(aside) in notice and path.exists()


def test_a_damaged_message_is_set_aside_and_the_rest_is_shown(store: Store, path: Path) -> None:
    conversation = branched()
    save(store, conversation)
    first, second = conversation.turns
    with sqlite3.connect(path) as other:
        other.execute("UPDATE turns SET question = x'00ff' WHERE id = ?", (first.id,))
        other.execute("UPDATE turns SET statistics = '{', details = x'01', mode = 'x' WHERE id = ?", (second.id,))
        other.execute("UPDATE turns SET notices = 5, shown = 'x', answer = CAST(x'6fff' AS TEXT) WHERE parent IS NULL")
        other.execute("DELETE FROM conversations")
    other.close()
    store.close()
    again = Store(path)
    (header,) = again.headers()
    found = again.load(header.id)
    assert found is not None and header.title == "Recovered conversation"
    assert sorted(child.answer for child in found.root.children) == ["o\N{REPLACEMENT CHARACTER}", "two"]
    kept = next(child for child in found.root.children if child.answer == "two")
    assert kept.statistics is None and kept.tokens == [] and kept.mode is Mode.BASELINE
    assert len(again.notices) == 2 and "Recovered" in again.notices[1]
    assert again.load(header.id) is not None and len(again.notices) == 2  # said once
    again.close()
    with sqlite3.connect(path) as other:
        assert "00ff" in other.execute("SELECT content FROM damaged").fetchone()[0]
    other.close()


def test_a_folder_that_cannot_be_written_is_said_and_what_is_there_can_be_read(path: Path) -> None:
    store = Store(path)
    save(store, branched())
    store.close()
    Path(f"{path}-wal").mkdir()  # stands for a folder that cannot be written: root may write anywhere
    store = Store(path)
    (header,) = store.headers()
    assert store.load(header.id) is not None and "will not be kept" in store.notices[0]
    save(store, branched())
    assert len(store.headers()) == 2
    store.close()
    (path.parent / "file").write_text("a file where a folder should be")
    store = Store(path.parent / "file" / "conversations.db")
    assert store.headers() == [] and "will not be kept" in store.notices[0]
    store.close()


def test_a_file_from_before_a_column_is_read_and_written(path: Path) -> None:
    conversation = branched()
    store = Store(path)
    save(store, conversation)
    store.close()
    old = sqlite3.connect(path)
    old.execute("ALTER TABLE turns DROP COLUMN thought_seconds")
    old.commit()
    old.close()
    store = Store(path)
    found = store.load(conversation.id)
    assert found is not None and found.turns[1].answer == "two" and found.turns[1].thought_seconds is None
    store.save(snapshot(conversation, conversation.all_turns()))
    again = store.load(conversation.id)
    store.close()
    assert again is not None and again.turns[1].thought_seconds == 2.5 and store.notices == []


def test_a_newer_version_of_the_file_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as newer:
        newer.execute("CREATE TABLE conversations (something TEXT)")
        newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    newer.close()
    before = path.read_bytes()
    for notices in (1, 0):
        store = Store(path)
        save(store, branched())
        store.close()
        assert path.read_bytes() == before and len(store.notices) == notices


def test_a_full_disk_is_said_and_what_was_not_written_is_named(path: Path) -> None:
    store = Store(path)
    notices: list[str] = []
    store.close()
    thread = StoreThread(path, notices.append)
    failed: list[bool] = []
    conversation = branched()
    changes = snapshot(conversation, conversation.take_changes())
    thread.do(lambda store: store._db.execute("PRAGMA max_page_count = 8"))
    big = Conversation()
    say(big, "q", "x" * 200_000)
    too_much = snapshot(big, big.take_changes())
    for _ in range(2):
        thread.do(lambda store: store.save(too_much), otherwise=lambda: failed.append(True))
    thread.do(lambda store: store._db.execute("PRAGMA max_page_count = 100000"))
    thread.do(lambda store: 1 // 0)  # even that must not end it
    thread.do(lambda store: store.save(changes))
    thread.close()
    assert failed == [True, True] and len(notices) == 2 and "full" in notices[0] and "ZeroDivision" in notices[1]
    store = Store(path)
    assert len(store.headers()) == 1
    store.close()


# A program that streams into the store, and one that ends it: forked, so that nothing is imported twenty times.
KILLED = """
import os, random, signal, sys, time
from pathlib import Path
from app.conversation import Conversation
from app.rows import snapshot
from app.store import Store
from app.store_thread import StoreThread
from engine.events import Mode

path, rng = Path(sys.argv[1]), random.Random(5)

def stream(number, out):
    conversation = Conversation(id=f"conversation {number}")
    conversation.ask("Count.", Mode.BASELINE)
    store = StoreThread(path, lambda notice: os.write(out, f"notice {notice}\\n".encode()))
    word = 0
    while True:
        for _ in range(9):
            conversation.add_text(f"{word} ")
            word += 1
        changes = snapshot(conversation, conversation.take_changes())
        length = len(conversation.open_turn.answer)
        store.do(lambda s: s.save(changes), lambda _, length=length: os.write(out, f"kept {length}\\n".encode()))
        time.sleep(0.002)

for number in range(20):
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        stream(number, theirs)
    os.close(theirs)
    heard = b""
    until = rng.randrange(1, 300)  # bytes of what it says
    while len(heard) < until:
        heard += os.read(ours, 100)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while more := os.read(ours, 1 << 16):
        heard += more
    os.close(ours)
    store = Store(path)
    turn = store.load(f"conversation {number}").turns[0]
    kept = heard.decode().splitlines()[-1]
    print(kept, len(turn.answer), turn.can_continue, len(store.headers()), *store.notices)
    store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the program forks")
def test_a_program_killed_at_any_moment_lacks_nothing_that_was_kept(path: Path) -> None:
    """Twenty times on one file, which is never repaired by hand."""
    found = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in found.stdout.splitlines()]
    assert [line[3:] for line in lines] == [["True", str(number)] for number in range(1, 21)], found.stdout
    for what, kept, length, *_ in lines:
        assert what == "kept" and int(length) >= int(kept) > 0
    assert len({kept for _, kept, *_ in lines}) > 10  # the moments differ
