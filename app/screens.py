"""`python -m app.screens FOLDER`: opens the window, plays a short conversation, and keeps pictures of every page.

For looking at the window where there is no display, and for the README. Each page is taken in the light and the dark
theme, and in each language given; `--scale 2` doubles the pictures, as on a screen of 200 %.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.__main__ import drafters_by_mode, given_for_the_run
from engine.events import Mode
from engine.host import SESSION

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from app.window import ChatWindow

PATIENCE_MS = 300_000
QUESTIONS = (
    "What is the capital of France?",
    "Write a Python function that reverses a list, and explain it in a few words.",
)
EARLIER = ("Why is the sky blue?", "비에 대한 짧은 시를 써 주세요.", "Name three ways to sort a list.")  # other chats
STORY = "Tell me a long story about a lighthouse."


class Photographer:
    """Waits for what is to be seen, and keeps it in both themes and in the languages wanted."""

    def __init__(self, window: ChatWindow, folder: Path, languages: Sequence[str] = ("en",)) -> None:
        self.window = window
        self._folder = folder
        self._languages = languages

    def wait(self, condition: Callable[[], bool]) -> None:
        from PySide6.QtCore import QEventLoop, QTimer

        loop, limit = QEventLoop(), QTimer()
        limit.setSingleShot(True)
        limit.timeout.connect(lambda: loop.exit(1))
        limit.start(PATIENCE_MS)
        state = self.window.state
        watch = self.window.refreshed.connect(lambda: loop.exit(0) if condition() else None)
        late = not condition() and loop.exec() == 1
        self.window.refreshed.disconnect(watch)
        limit.stop()
        if late:
            raise TimeoutError(f"nothing came of it: {state.trouble or state.status}")

    def keep(self, name: str, what: Callable[[], QWidget | None]) -> None:
        """`what` shows the page and names it; it is asked each time, since another language makes other widgets."""
        from PySide6.QtCore import QCoreApplication, QEvent
        from PySide6.QtWidgets import QApplication

        from app import theme

        application = QApplication.instance()
        assert isinstance(application, QApplication)
        for language in self._languages:
            self.window.preferences.change(language=language)
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)  # the widgets of before
            for dark in (True, False):
                theme.apply(application, dark)
                what()
                for _ in range(20):  # a new size passes through the layouts in turns
                    application.processEvents()
                widget = what()
                assert widget is not None
                suffix = "" if len(self._languages) == 1 else f"-{language}"
                path = self._folder / f"{name}-{'dark' if dark else 'light'}{suffix}.png"
                widget.grab().save(str(path))
                print(path)


Picture = tuple[str, Callable[[], "QWidget | None"]]


def play(photographer: Photographer) -> Iterator[Picture]:
    """The conversation; stops for each picture and says its name and what is on it."""
    from app.state import Phase

    window = photographer.window
    state = window.state

    def whole() -> QWidget:
        window.show_chat()
        return window

    photographer.wait(lambda: state.loading is not None or state.phase is Phase.READY)
    yield "loading", whole
    photographer.wait(lambda: state.phase is Phase.READY)
    yield "welcome", whole
    for question in (*EARLIER, *QUESTIONS):
        window.ask(question)
        photographer.wait(lambda: state.phase is Phase.READY)
        if question in EARLIER:
            window.new_conversation()
    yield "window", whole
    yield from _conversations(photographer, whole)
    yield from _other_pages(window)
    window.choose_mode(Mode.BASELINE)
    window.ask("다음 문장을 그대로 보여 주세요: **굵게** <b>아니요</b>\n    들여쓰기")
    photographer.wait(lambda: len(state.conversation.turns[-1].answer) > 20 or state.phase is Phase.READY)
    window.stop()
    photographer.wait(lambda: state.phase is Phase.READY)
    yield "baseline", whole
    window.ask("Sum this up. " + "The rain fell on the quiet town by the sea. " * 150)
    photographer.wait(lambda: state.progress is not None or state.phase is Phase.READY)
    yield "reading", whole
    window.stop()
    photographer.wait(lambda: state.phase is Phase.READY)
    window.ask(STORY)
    photographer.wait(lambda: len(state.conversation.turns[-1].answer) > 120 or state.phase is Phase.READY)
    pid = window.engine.pid
    assert pid is not None
    os.kill(pid, 9)
    photographer.wait(lambda: state.phase is Phase.STOPPED)
    yield "stopped", whole
    window.resize(640, 720)
    yield "narrow", whole


def _conversations(photographer: Photographer, whole: Callable[[], QWidget]) -> Iterator[Picture]:
    """A search, and a chat that waits for another one, beside what was deleted."""
    from PySide6.QtCore import QEventLoop

    window = photographer.window
    before = window.state.conversation
    loop = QEventLoop()
    window.chats.library.found.connect(loop.quit)
    window.sidebar.search.setText("sk")
    loop.exec()
    yield "search", whole
    window.sidebar.search.clear()
    window.new_conversation()
    window.ask(STORY)
    window.new_conversation()
    window.ask(QUESTIONS[0])
    window.sidebar.delete(window.chats.library.headers[-1].id)
    yield "waiting", whole
    window.sidebar.undo()
    while window.state.jobs:  # the one that waits, and the one before it
        for job in list(window.state.jobs):
            if request := window.state.stop(job.conversation):
                window.engine.send(request)
        photographer.wait(lambda: window.state.running is None or not window.state.jobs)
    window.chats.open(before.id)
    photographer.wait(lambda: window.state.conversation is before)


def _other_pages(window: ChatWindow) -> Iterator[Picture]:
    """What can take the conversation's place, or lie above it."""
    from app.attachments import Attachment
    from app.shortcuts import ShortcutsDialog

    def details() -> QWidget:
        window.panel.fold.setChecked(True)
        if not window.composer.files.files:
            window.composer.files.add(Attachment("notes.txt", "some notes", 1234))
        return window

    def page(number: int) -> QWidget:
        window.views.setCurrentIndex(number)
        return window

    def settings(section: int) -> QWidget | None:
        window.preferences.open(section)
        return window.preferences.dialog

    def reason() -> QWidget:
        window.modes.choose(next(info.mode for info in window.state.modes if info.reason))
        return window.modes.reason

    yield "details", details
    window.composer.files.clear()
    window.panel.fold.setChecked(False)
    for number in range(1, window.views.count()):
        yield f"page-{number}", lambda number=number: page(number)  # type: ignore[misc]
    for number, name in enumerate(("answers", "model", "appearance")):
        yield f"settings-{name}", lambda number=number: settings(number)  # type: ignore[misc]
    assert window.preferences.dialog is not None
    window.preferences.dialog.close()
    shortcuts: list[ShortcutsDialog] = []

    def keys() -> QWidget:
        shortcuts.append(ShortcutsDialog(window.shortcuts, window))
        shortcuts[-1].show()
        return shortcuts[-1]

    yield "shortcuts", keys
    for dialog in shortcuts:
        dialog.close()
        dialog.deleteLater()
    if any(info.reason for info in window.state.modes):
        yield "reason", reason
        window.modes.reason.hide()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m app.screens", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", metavar="FILE")
    parser.add_argument("--drafter", metavar="FILE", action="append", default=[])
    parser.add_argument("--only", metavar="NAME", action="append", help="keep this picture alone; may be repeated")
    parser.add_argument("--language", metavar="NAME", action="append", help="en or ko; may be repeated")
    parser.add_argument("--scale", default="1", metavar="FACTOR", help="of the screen (default: 1)")
    parser.add_argument("--session", default=SESSION, help="the session's importable name")
    given = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ.setdefault("QT_SCALE_FACTOR", given.scale)

    from PySide6.QtWidgets import QApplication

    from app import theme
    from app.engine_thread import EngineThread
    from app.settings import SettingsStore
    from app.window import ChatWindow

    application = QApplication(sys.argv[:1])
    theme.prepare(application)
    given.folder.mkdir(parents=True, exist_ok=True)
    settings = given_for_the_run(given.model, drafters_by_mode(given.drafter), None)
    window = ChatWindow(EngineThread(given.session), SettingsStore(given=settings))
    window.show()
    photographer = Photographer(window, given.folder, given.language or ("en",))
    wanted = set(given.only) if given.only else None
    try:
        for name, what in play(photographer):
            if wanted is None:
                photographer.keep(name, what)
            elif name in wanted:
                photographer.keep(name, what)
                wanted.remove(name)
                if not wanted:
                    break
    finally:
        window.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
