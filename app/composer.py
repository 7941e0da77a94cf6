"""The foot of the window: the input box with its send and stop buttons, and the status line under it.

Shows a `ChatState`. Knows nothing of the engine.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app.charts import Meter
from app.definitions import CONTEXT
from app.icons import icon
from app.input_box import InputBox
from app.state import NEARLY_FULL, ChatState, Phase
from app.theme import font, px, theme

STEPS = 1000  # of the progress bar


class Composer(QWidget):
    send = Signal(str)  # what was typed
    stop = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.input = InputBox()
        self.send_button = self._round_button("Send", "Send (Enter)")
        self.stop_button = self._round_button("Stop", "Stop the answer (Esc)")
        self._can_send = False
        frame = QFrame()
        frame.setObjectName("inputFrame")
        row = QHBoxLayout(frame)
        row.setContentsMargins(px(18), px(9), px(9), px(9))
        row.setSpacing(px(10))
        row.addWidget(self.input, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.send_button, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.stop_button, 0, Qt.AlignmentFlag.AlignBottom)
        self._frame = frame
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(px(8))
        column.addWidget(frame)
        column.addLayout(self._status_line())
        self.input.submitted.connect(self._submit)
        self.send_button.clicked.connect(self._submit)
        self.stop_button.clicked.connect(self.stop)
        self.cancel_button.clicked.connect(self.stop)
        self.input.textChanged.connect(self._show_buttons)
        self.input.installEventFilter(self)
        self._color_icons()

    def _round_button(self, name: str, tip: str) -> QPushButton:
        button = QPushButton()
        button.setAccessibleName(name)
        button.setToolTip(tip)
        button.setProperty("role", "round")
        button.setFixedSize(px(34), px(34))
        button.setIconSize(QSize(px(20), px(20)))
        return button

    def _status_line(self) -> QHBoxLayout:
        self.status = QLabel()
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setRange(0, STEPS)
        self.progress.setFixedWidth(px(140))
        self.progress.setAccessibleName("Progress")
        self.cancel_button = QPushButton("Cancel")
        self.cancel_button.setAccessibleName("Cancel loading")
        self.cancel_button.setProperty("role", "quiet")
        self.meter = Meter(NEARLY_FULL)
        self.meter.setAccessibleName("Context")
        self.context = QLabel()
        line = QHBoxLayout()
        line.setContentsMargins(px(8), 0, px(8), 0)
        line.setSpacing(px(10))
        for label in (self.status, self.context):
            label.setFont(font(12, figures=True))
            label.setProperty("role", "muted")
        self.cancel_button.setFont(font(12))
        for widget in (self.meter, self.context):
            widget.setToolTip(CONTEXT)
        line.addWidget(self.status)
        line.addWidget(self.progress, 0, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(self.cancel_button)
        line.addStretch(1)
        line.addWidget(self.meter, 0, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(self.context)
        self.status.setMinimumHeight(px(24))
        return line

    def show_state(self, state: ChatState) -> None:
        self._can_send = state.can_send
        answering = state.phase is Phase.ANSWERING
        self.stop_button.setVisible(answering)
        self.stop_button.setEnabled(state.can_stop)
        self.send_button.setVisible(not answering)
        self._show_buttons()
        self.status.setText(state.status)
        progress = state.progress
        self.progress.setVisible(progress is not None)
        self.progress.setValue(round(STEPS * (progress or 0.0)))
        self.cancel_button.setVisible(state.phase is Phase.LOADING)
        self.cancel_button.setEnabled(state.can_stop)
        known = state.context_size > 0
        self.meter.setVisible(known)
        self.context.setVisible(known)
        if known:
            self.meter.set_share(state.context_used / state.context_size)
            full = ", nearly full" if state.context_nearly_full else ""
            self.context.setText(f"{state.context_used:,} of {state.context_size:,} tokens{full}")

    def _show_buttons(self) -> None:
        enabled = self._can_send and bool(self.input.text().strip())
        if enabled != self.send_button.isEnabled():
            self.send_button.setEnabled(enabled)
            self._color_icons()

    def _submit(self) -> None:
        text = self.input.text()
        if self._can_send and text.strip():
            self.input.clear()
            self.send.emit(text)

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        if watched is self.input and event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self._frame.setProperty("focused", event.type() == QEvent.Type.FocusIn)
            self._frame.style().polish(self._frame)
        return False

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_frame"):
            self._color_icons()

    def _color_icons(self) -> None:
        c = theme()
        self.send_button.setIcon(icon("send", c.on_accent if self.send_button.isEnabled() else c.muted))
        self.stop_button.setIcon(icon("stop", c.on_accent))
