"""`python -m app.screens FOLDER`: opens the window, plays a short conversation, and keeps pictures of the screen.

For looking at the window where there is no display, and for the README. `QT_SCALE_FACTOR=2` doubles the pictures.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from app.__main__ import drafters_by_mode
from engine.events import LoadSettings, Mode
from engine.host import SESSION

if TYPE_CHECKING:
    from app.window import ChatWindow

PATIENCE_MS = 300_000
QUESTIONS = (
    "What is the capital of France?",
    "Write a Python function that reverses a list, and explain it in a few words.",
)
STORY = "Tell me a long story about a lighthouse."


class Photographer:
    """Waits for what is to be seen, and keeps it in both themes."""

    def __init__(self, window: ChatWindow, folder: Path) -> None:
        self.window = window
        self._folder = folder

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

    def keep(self, name: str) -> None:
        from PySide6.QtWidgets import QApplication

        from app import theme

        application = QApplication.instance()
        assert isinstance(application, QApplication)
        for dark in (True, False):
            theme.apply(application, dark)
            for _ in range(20):  # a new size passes through the layouts in turns
                application.processEvents()
            path = self._folder / f"{name}-{'dark' if dark else 'light'}.png"
            self.window.grab().save(str(path))
            print(path)


def play(photographer: Photographer) -> Iterator[str]:
    """The conversation; stops for each picture and says its name."""
    from app.state import Phase

    window = photographer.window
    state = window.state
    photographer.wait(lambda: state.loading is not None or state.phase is Phase.READY)
    yield "loading"
    photographer.wait(lambda: state.phase is Phase.READY)
    yield "welcome"
    for question in QUESTIONS:
        window.ask(question)
        photographer.wait(lambda: state.phase is Phase.READY)
    yield "window"
    window.choose_mode(Mode.BASELINE)
    window.ask("다음 문장을 그대로 보여 주세요: **굵게** <b>아니요</b>\n    들여쓰기")
    photographer.wait(lambda: len(state.conversation.turns[-1].answer) > 20 or state.phase is Phase.READY)
    window.stop()
    photographer.wait(lambda: state.phase is Phase.READY)
    yield "baseline"
    window.ask("Sum this up. " + "The rain fell on the quiet town by the sea. " * 150)
    photographer.wait(lambda: state.progress is not None or state.phase is Phase.READY)
    yield "reading"
    window.stop()
    photographer.wait(lambda: state.phase is Phase.READY)
    window.ask(STORY)
    photographer.wait(lambda: len(state.conversation.turns[-1].answer) > 120 or state.phase is Phase.READY)
    pid = window.engine.pid
    assert pid is not None
    os.kill(pid, 9)
    photographer.wait(lambda: state.phase is Phase.STOPPED)
    yield "stopped"
    window.resize(640, 720)
    yield "narrow"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m app.screens", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", metavar="FILE")
    parser.add_argument("--drafter", metavar="FILE", action="append", default=[])
    parser.add_argument("--only", metavar="NAME", help="keep this picture and end")
    parser.add_argument("--session", default=SESSION, help="the session's importable name")
    given = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

    from PySide6.QtWidgets import QApplication

    from app import theme
    from app.engine_thread import EngineThread
    from app.window import ChatWindow

    application = QApplication(sys.argv[:1])
    theme.prepare(application)
    given.folder.mkdir(parents=True, exist_ok=True)
    settings = LoadSettings(target=given.model, drafters=drafters_by_mode(given.drafter))
    window = ChatWindow(EngineThread(given.session), settings)
    window.show()
    photographer = Photographer(window, given.folder)
    try:
        for name in play(photographer):
            if given.only in (None, name):
                photographer.keep(name)
            if given.only == name:
                break
    finally:
        window.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
