"""Windows for the tests, on the real engine or on the scripted one; they are closed, and nothing of Qt stays behind."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator

os.environ["QT_QPA_PLATFORM"] = "offscreen"  # before Qt is imported

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt, QThread, QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app import clipboard, theme
from app.engine_thread import EngineThread
from app.settings import SettingsStore, given_by
from app.state import Phase
from app.window import ChatWindow
from engine.events import LoadSettings, Mode
from engine.host import SESSION
from tests.conftest import DrafterFiles

SCRIPTED = "tests.scripted_session:ScriptedSession.open"
WAIT_MS = 300_000  # a limit for a test that hangs, not a measurement


@pytest.fixture(scope="session", autouse=True)
def application(qapp: QApplication) -> Iterator[QApplication]:
    theme.prepare(qapp)
    yield qapp
    clipboard.hand_over()


@pytest.fixture(autouse=True)
def nothing_of_qt_left(qapp: QApplication) -> Iterator[None]:
    """A test must close and free its widgets, and stop its timers and threads."""
    before = set(qapp.topLevelWidgets())
    yield
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    gc.collect()
    left = [f"widget {widget!r}" for widget in qapp.topLevelWidgets() if widget not in before]
    for thing in gc.get_objects():
        # by its type: to ask any object for its __class__ may run code of its own
        if issubclass(type(thing), (QTimer, QThread)) and isValid(thing) and _is_running(thing):
            left.append(repr(thing))
    assert not left, f"left behind: {', '.join(left)}"


def _is_running(thing: QTimer | QThread) -> bool:
    return thing.isActive() if isinstance(thing, QTimer) else thing.isRunning()


class Screen:
    """A window and what its user does; waits for the window's own signals."""

    def __init__(self, qtbot: QtBot, window: ChatWindow) -> None:
        self.bot = qtbot
        self.window = window

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for the refresh after which `condition` holds."""
        if not condition():
            self.bot.waitSignal(self.window.refreshed, timeout=WAIT_MS, check_params_cb=condition).wait()

    def until_ready(self) -> None:
        self.until(lambda: self.window.state.phase is Phase.READY)

    def ask(self, text: str) -> None:
        """Put a question into the box and press Enter."""
        box = self.window.composer.input
        box.insertPlainText(text)  # QTest's keys are ASCII only
        self.bot.keyClick(box, Qt.Key.Key_Return)

    def ask_and_wait(self, text: str) -> None:
        self.ask(text)
        self.until_ready()

    @property
    def answer(self) -> str:
        """The newest answer as it stands on the screen."""
        return self.window.conversation.views[-1].answer.text


OpenWindow = Callable[..., Screen]


@pytest.fixture
def open_window(qtbot: QtBot) -> Iterator[OpenWindow]:
    """`open_window(settings)` on the real engine, `open_window(settings, SCRIPTED)` on the scripted one."""
    screens: list[Screen] = []

    def make(settings: LoadSettings, session_factory: str = SESSION) -> Screen:
        window = ChatWindow(EngineThread(session_factory), SettingsStore(given=given_by(settings)))
        qtbot.addWidget(window)
        window.show()
        screens.append(Screen(qtbot, window))
        return screens[-1]

    yield make
    for screen in screens:
        if isValid(screen.window):
            screen.window.close()


@pytest.fixture
def scripted(open_window: OpenWindow) -> Screen:
    """A loaded window on the scripted engine."""
    screen = open_window(LoadSettings(), SCRIPTED)
    screen.until_ready()
    return screen


@pytest.fixture(scope="session")
def with_drafters(drafter_dir: DrafterFiles) -> LoadSettings:
    """The default target with random drafters: they propose nonsense, and the answer is the target's all the same."""
    drafters = {Mode.DFLASH: str(drafter_dir.random_v1), Mode.DFLASH2: str(drafter_dir.random_v2)}
    return LoadSettings(drafters=drafters, context=1024, threads=1)
