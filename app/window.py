"""The window: widgets around one `ChatState`, and the engine thread that changes it.

What the user does becomes a request, what the engine says changes the state, and the widgets are brought up to date
with it a few dozen times a second at most. Decides nothing that the state could decide.
"""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMainWindow,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.banner import Banner
from app.composer import Composer
from app.conversation_view import COLUMN_WIDTH, ConversationView
from app.definitions import bytes_text
from app.engine_thread import EngineThread
from app.icons import icon
from app.mode_switch import ModeSwitch
from app.panel import LivePanel
from app.state import ChatState, Phase
from app.theme import font, px, theme
from app.welcome import Welcome
from engine.events import Event, Failed, LoadSettings, Mode, TargetInfo
from engine.host import Request, Reset, Rewind

FRAME_MS = 33  # between two refreshes while an answer streams, or longer where a refresh takes long
NARROW = 880  # logical pixels: below this width the panel gives way


class ChatWindow(QMainWindow):
    refreshed = Signal()  # the widgets show the state

    def __init__(self, engine: EngineThread, settings: LoadSettings) -> None:
        super().__init__()
        self.setWindowTitle("DFlash Chat")
        self.resize(px(1180), px(800))
        self.setMinimumSize(px(520), px(440))
        self.state = ChatState()
        self.engine = engine
        self._settings = settings
        self._wants_panel = True
        self._refresh_ms = 0  # how long the last one took
        self._frame = QTimer(self)
        self._frame.setSingleShot(True)
        self._frame.timeout.connect(self._refresh)
        self._build()
        self._connect()
        self._refresh()
        engine.start()
        self.load()

    # --- building

    def _build(self) -> None:
        self.conversation = ConversationView()
        self.welcome = Welcome()
        self._pages = QStackedWidget()
        self._pages.addWidget(self.welcome)
        self._pages.addWidget(self.conversation)
        self.banner = Banner()
        self.composer = Composer()
        self.panel = LivePanel()
        foot = QWidget()
        foot.setMaximumWidth(px(COLUMN_WIDTH + 36))
        column = QVBoxLayout(foot)
        column.setContentsMargins(0, 0, 0, px(10))
        column.setSpacing(px(12))
        column.addWidget(self.banner)
        column.addWidget(self.composer)
        foot_row = QHBoxLayout()
        foot_row.setContentsMargins(px(20), 0, px(20), 0)
        foot_row.addStretch(1)
        foot_row.addWidget(foot, 1000)
        foot_row.addStretch(1)
        talk = QVBoxLayout()
        talk.setSpacing(px(6))
        talk.addWidget(self._pages, 1)
        talk.addLayout(foot_row)
        body = QHBoxLayout()
        body.setSpacing(0)
        body.addLayout(talk, 1)
        body.addWidget(self.panel)
        whole = QWidget()
        rows = QVBoxLayout(whole)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(0)
        rows.addWidget(self._header())
        rows.addLayout(body, 1)
        self.setCentralWidget(whole)
        self.composer.input.setFocus()

    def _header(self) -> QWidget:
        header = QFrame()
        header.setObjectName("header")
        self.model_name, self.model_details = QLabel(), QLabel()
        self.model_name.setFont(font(15, bold=True))
        self.model_details.setFont(font(12))
        self.model_details.setProperty("role", "muted")
        for label in (self.model_name, self.model_details):
            label.setTextFormat(Qt.TextFormat.PlainText)
        names = QVBoxLayout()
        names.setSpacing(px(2))
        names.addWidget(self.model_name)
        names.addWidget(self.model_details)
        self.modes = ModeSwitch()
        self.new_button = _icon_button("New conversation", "New conversation (Ctrl+N)")
        self.panel_button = _icon_button("Live figures", "Show or hide the live figures")
        row = QHBoxLayout(header)
        row.setContentsMargins(px(22), px(10), px(16), px(10))
        row.setSpacing(px(10))
        row.addLayout(names, 1)
        row.addWidget(self.modes)
        row.addSpacing(px(6))
        row.addWidget(self.new_button)
        row.addWidget(self.panel_button)
        self._color_icons()
        return header

    def _connect(self) -> None:
        self.engine.received.connect(self._received)
        self.engine.failed.connect(self._failed)
        self.engine.done.connect(self._done)
        self.engine.stopped.connect(self._engine_stopped)
        self.composer.send.connect(self.ask)
        self.composer.stop.connect(self.stop)
        self.modes.chosen.connect(self.choose_mode)
        self.banner.remedy.connect(self.mend)
        self.banner.dismissed.connect(self._dismiss)
        self.conversation.ask_again.connect(self.ask_again)
        self.welcome.chosen.connect(self._take_example)
        self.new_button.clicked.connect(self.new_conversation)
        self.panel_button.clicked.connect(self._toggle_panel)
        QShortcut(QKeySequence.StandardKey.New, self, self.new_conversation)
        QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self.stop)

    # --- what the user does

    def load(self) -> None:
        """Load the target, and give it what has been said so far."""
        self.state.load()
        self.engine.load(self._settings, self.state.conversation.history())
        self._refresh()

    def mend(self) -> None:
        """The banner's button: start again where the engine stopped or did not load."""
        self.load()

    def ask(self, question: str) -> None:
        if self.state.can_send:
            self.engine.send(self.state.ask(question))
            self._refresh()
            self.conversation.go_to_newest()

    def ask_again(self) -> None:
        if self.state.can_send and (taken := self.state.conversation.take_back()):
            question, kept = taken
            self.engine.send(Rewind(kept))
            self.ask(question)

    def stop(self) -> None:
        if self.state.can_stop:
            self.state.stop()
            self.engine.cancel()
            self._refresh()

    def choose_mode(self, mode: Mode) -> None:
        self.state.wanted_mode = mode
        self._refresh()

    def new_conversation(self) -> None:
        if self.state.phase in (Phase.READY, Phase.STOPPED, Phase.EMPTY):
            self.state.clear()
            if self.state.phase is Phase.READY:
                self.engine.send(Reset())
            self._refresh()
            self.composer.input.setFocus()

    def _take_example(self, text: str) -> None:
        self.composer.input.setPlainText(text)
        self.composer.input.moveCursor(self.composer.input.textCursor().MoveOperation.End)
        self.composer.input.setFocus()

    def _dismiss(self) -> None:
        self.state.trouble = None
        self._refresh()

    def _toggle_panel(self) -> None:
        self._wants_panel = not self.panel.isVisible()
        self.panel.setVisible(self._wants_panel)

    # --- what the engine says

    def _received(self, event: Event) -> None:
        self.state.apply(event)
        self._refresh_soon()

    def _failed(self, request: Request | None, failed: Failed) -> None:
        self.state.fail(request, failed)
        self._refresh_soon()

    def _done(self, request: Request, succeeded: bool) -> None:
        self.state.done(request, succeeded)
        self._refresh_soon()

    def _engine_stopped(self, reason: str) -> None:
        self.state.engine_stopped(reason)
        self._refresh_soon()

    # --- showing it

    def _refresh_soon(self) -> None:
        if not self._frame.isActive():
            self._frame.start(max(FRAME_MS, 3 * self._refresh_ms))

    def _refresh(self) -> None:
        self._frame.stop()
        clock = QElapsedTimer()
        clock.start()
        state = self.state
        turns = state.conversation.turns
        self._pages.setCurrentWidget(self.conversation if turns else self.welcome)
        self.conversation.show_conversation(state.conversation, idle=state.can_send)
        self.modes.show_modes(state.modes, state.mode)
        self.composer.show_state(state)
        self.panel.show_state(state)
        self.banner.show_trouble(state.trouble)
        self.model_name.setText(state.target.name if state.target else "DFlash Chat")
        self.model_name.setToolTip(state.target.path if state.target else "")
        self.model_details.setText(_details(state.target) if state.target else state.status)
        self.new_button.setEnabled(bool(turns) and state.phase is not Phase.ANSWERING)
        self._refresh_ms = clock.elapsed()
        self.refreshed.emit()

    def _color_icons(self) -> None:
        self.new_button.setIcon(icon("new", theme().text))
        self.panel_button.setIcon(icon("panel", theme().text))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "new_button"):
            self._color_icons()
            self._refresh_soon()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.panel.setVisible(self._wants_panel and self.width() >= px(NARROW))

    def closeEvent(self, event: QCloseEvent) -> None:
        """The engine process goes with the window."""
        self._frame.stop()
        self.hide()  # ending the process may take a moment; nobody need watch
        self.engine.close()
        super().closeEvent(event)


def _icon_button(name: str, tip: str) -> QPushButton:
    button = QPushButton()
    button.setAccessibleName(name)
    button.setToolTip(tip)
    button.setFixedSize(px(34), px(34))
    return button


def _details(target: TargetInfo) -> str:
    size = f"{target.parameters / 1e9:.1f} B" if target.parameters >= 1e9 else f"{target.parameters / 1e6:.0f} M"
    parts = (target.quantisation, f"{size} parameters", bytes_text(target.file_bytes), target.device)
    return "  ·  ".join(part for part in parts if part)
