"""`python -m tests.benchmark_chats`: how long the window stands still while it works with many conversations on disk.

The database has 2,000 conversations, one of 10,000 messages and one with a message of 1 MB. Stalls are measured as in
`benchmark_window`; "shown after" is the time from the click to the first picture with the text in it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app import theme
from app.conversation import Conversation, TokenMark
from app.engine_thread import EngineThread
from app.rows import Header, snapshot
from app.settings import SettingsStore
from app.store import Store
from app.window import ChatWindow
from engine.events import Answered, LoadSettings, Mode, StopReason
from tests.benchmark_window import Heartbeat, answer_of, wait
from tests.scripted_session import ScriptedSession

CONVERSATIONS, TURNS = 2000, 5000
WORDS = "The rain fell on the quiet town by the sea, 비가 내렸다. "
PATIENCE_MS = 60_000


def fill(store: Store) -> tuple[str, str]:
    """The ids of the long conversation and of the one with the long message."""
    statistics = ScriptedSession(LoadSettings())._statistics(Mode.DFLASH, 100, StopReason.STOP_TOKEN)

    def add(title: str, turns: list[tuple[str, str]], age: float) -> str:
        conversation = Conversation(title)
        for question, answer in turns:
            conversation.ask(question, Mode.DFLASH)
            conversation.add_text("", [TokenMark(number % 4, 4) for number in range(min(len(answer) // 4, 2000))])
            conversation.finish(Answered(answer, tuple(range(len(answer) // 4)), statistics, 100, 4096))
        conversation.updated -= age
        store.save(snapshot(conversation, conversation.take_changes()))
        return conversation.id

    for number in range(CONVERSATIONS):
        add(f"Conversation {number}", [(f"Question {number}", WORDS * 5)], 60.0 * number)
    long = add("10,000 messages", [(f"Question {n}", f"{n}. " + WORDS * (1 + n % 20)) for n in range(TURNS)], 10.0)
    big = add("A message of 1 MB", [("A megabyte", answer_of(1_000_000))], 20.0)
    return long, big


def main() -> int:
    application = QApplication(sys.argv[:1])
    theme.prepare(application)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "conversations.db")
        long, big = fill(store)
        store.close()
        begin = time.perf_counter()
        engine = EngineThread("tests.scripted_session:ScriptedSession.open")
        window = ChatWindow(engine, SettingsStore(), Path(folder))
        window.show()
        wait(PATIENCE_MS, lambda: len(window.chats.library.headers) > CONVERSATIONS)
        print(f"the window with {CONVERSATIONS:,} conversations: {time.perf_counter() - begin:.2f} s from nothing")
        wait(PATIENCE_MS, lambda: window.state.target is not None)
        beat = Heartbeat()

        def timed(name: str, action: Callable[[], object], until: Callable[[], bool]) -> None:
            beat.reset()
            begin = time.perf_counter()
            action()
            wait(PATIENCE_MS, until)
            print(f"{name}: shown after {time.perf_counter() - begin:.2f} s")
            wait(300)
            beat.report(name)

        def is_shown(id_: str) -> bool:
            return window.state.conversation.id == id_ and bool(window.conversation.views)

        timed("opening 10,000 messages", lambda: window.chats.open(long), lambda: is_shown(long))
        timed("opening a message of 1 MB", lambda: window.chats.open(big), lambda: is_shown(big))
        timed("and the 10,000 again", lambda: window.chats.open(long), lambda: is_shown(long))
        rows = window.sidebar.list.list_model
        timed("searching", lambda: window.sidebar.search.setText("lighthouse"), lambda: not rows.rows)
        timed("searching two syllables", lambda: window.sidebar.search.setText("비가"), lambda: len(rows.rows) > 100)
        window.sidebar.search.clear()
        header = Header("new", "A new one", False, time.time())
        timed("a new conversation in the list", lambda: window.chats.library._list(header), lambda: True)
        timed("an answer in the long one", lambda: window.ask("say fine"), lambda: window.state.can_send)
        beat.stop()
        window.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
