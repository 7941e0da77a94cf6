"""The foot of the window: the input box with its files and buttons, and under it the status line and the context meter.

Shows a `ChatState`. Knows nothing of the engine: how many tokens a file has is asked by a signal and told by a method.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.attachments import AttachmentRow, NotAttached, read_text_file, with_files
from app.charts import Meter
from app.definitions import context_meaning
from app.i18n import translate
from app.icons import icon
from app.input_box import InputBox, local_files
from app.state import NEARLY_FULL, ChatState, Phase
from app.theme import font, px, theme, tip
from engine.events import OVERFLOW_RULES, Counted

STEPS = 1000  # of the progress bar


class Composer(QWidget):
    send = Signal(str)  # what was typed, with the files
    stop = Signal()
    models_given = Signal(list)  # paths of GGUF files, which are no text for a prompt
    count = Signal(str, str)  # how many tokens has this text? the tag of the question; `show_count` takes the answer

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAcceptDrops(True)
        self.input = InputBox()
        self.send_button = self._round_button(translate("Composer", "Send"), translate("Composer", "Send (Enter)"))
        self.stop_button = self._round_button(
            translate("Composer", "Stop"), translate("Composer", "Stop the answer (Esc)")
        )
        self.attach_button = self._round_button(
            translate("Composer", "Add text files"), translate("Composer", "Add text files (Ctrl+O), or drop them here")
        )
        self.attach_button.setProperty("role", "bare")
        self.files = AttachmentRow()
        self.refused = QLabel()
        self.refused.setFont(font(12))
        self.refused.setProperty("role", "warning")
        self.refused.setTextFormat(Qt.TextFormat.PlainText)
        self.refused.setWordWrap(True)
        self.refused.hide()
        self._can_send = False
        self._room: int | None = None  # tokens the context has left
        frame = QFrame()
        frame.setObjectName("inputFrame")
        inside = QVBoxLayout(frame)
        inside.setContentsMargins(px(8), px(9), px(9), px(9))
        inside.setSpacing(px(8))
        inside.addWidget(self.files)
        inside.addWidget(self.refused)
        row = QHBoxLayout()
        row.setSpacing(px(6))
        row.addWidget(self.attach_button, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.input, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.send_button, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.stop_button, 0, Qt.AlignmentFlag.AlignBottom)
        inside.addLayout(row)
        self._frame = frame
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(px(8))
        column.addWidget(frame)
        column.addLayout(self._status_line())
        self.input.submitted.connect(self._submit)
        self.input.files_given.connect(self.add_files)
        self.files.changed.connect(self._show_buttons)
        self.attach_button.clicked.connect(self.choose_files)
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
        self.progress.setAccessibleName(translate("Composer", "Progress"))
        self.cancel_button = QPushButton(translate("Composer", "Cancel"))
        self.cancel_button.setAccessibleName(translate("Composer", "Cancel loading"))
        self.cancel_button.setProperty("role", "quiet")
        self.meter = Meter(NEARLY_FULL)
        self.meter.setAccessibleName(translate("Composer", "Context"))
        self.context = QLabel()
        line = QHBoxLayout()
        line.setContentsMargins(px(8), 0, px(8), 0)
        line.setSpacing(px(10))
        for label in (self.status, self.context):
            label.setFont(font(12, figures=True))
            label.setProperty("role", "muted")
        self.cancel_button.setFont(font(12))
        line.addWidget(self.status)
        line.addWidget(self.progress, 0, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(self.cancel_button)
        line.addStretch(1)
        line.addWidget(self.meter, 0, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(self.context)
        self.show_rule(OVERFLOW_RULES[0])
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
        self._room = max(0, state.context_size - state.context_used) if known else None
        if known:
            self._show_context(state)

    def _show_context(self, state: ChatState) -> None:
        self.meter.set_share(state.context_used / state.context_size)
        if state.context_nearly_full:
            words = translate("Composer", "{used} of {size} tokens, nearly full")
        else:
            words = translate("Composer", "{used} of {size} tokens")
        text = words.format(used=f"{state.context_used:,}", size=f"{state.context_size:,}")
        if text != self.context.text():
            self.context.setText(text)
            self.meter.setAccessibleDescription(text)
        role = "warning" if state.context_nearly_full else "muted"
        if self.context.property("role") != role:
            self.context.setProperty("role", role)
            self.context.style().polish(self.context)

    def show_rule(self, overflow: str) -> None:
        """What happens when the context is full: one of `engine.events.OVERFLOW_RULES`."""
        for widget in (self.meter, self.context):
            widget.setToolTip(tip(context_meaning(overflow)))

    # --- files

    def choose_files(self) -> None:
        paths, _ = QFileDialog.getOpenFileNames(self, translate("Composer", "Add text files to the prompt"))
        self.add_files(paths)

    def add_files(self, paths: Sequence[str]) -> None:
        """Let these files go along with the question, as far as they are text; says which cannot."""
        models = [path for path in paths if path.lower().endswith(".gguf")]
        refused = []
        for path in paths:
            if path in models:
                continue
            try:
                file = read_text_file(Path(path))
            except NotAttached as reason:
                refused.append(str(reason))
                continue
            self.files.add(file)
            self.count.emit(file.text, file.tag)
        self.refused.setText("\n".join(refused))
        self.refused.setVisible(bool(refused))
        self.input.setFocus()
        if models:
            self.models_given.emit(models)

    def show_count(self, counted: Counted) -> None:
        self.files.show_tokens(counted.tag, counted.tokens, self._room)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if local_files(event.mimeData()):
            event.acceptProposedAction()
            self.highlight(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.highlight(self.input.hasFocus())
        super().dragLeaveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:
        self.highlight(self.input.hasFocus())
        self.add_files(local_files(event.mimeData()))
        event.acceptProposedAction()

    # --- sending

    def _show_buttons(self) -> None:
        enabled = self._can_send and (bool(self.input.text().strip()) or bool(self.files.files))
        if enabled != self.send_button.isEnabled():
            self.send_button.setEnabled(enabled)
            self._color_icons()

    def _submit(self) -> None:
        text = with_files(self.input.text(), self.files.files)
        if self._can_send and text.strip():
            self.input.clear()
            self.files.clear()
            self.refused.hide()
            self.send.emit(text)

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        if watched is self.input and event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.highlight(event.type() == QEvent.Type.FocusIn)
        return False

    def highlight(self, on: bool) -> None:
        """Show where what is typed or dropped goes."""
        self._frame.setProperty("focused", on)
        self._frame.style().polish(self._frame)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_frame"):
            self._color_icons()

    def _color_icons(self) -> None:
        c = theme()
        self.send_button.setIcon(icon("send", c.on_accent if self.send_button.isEnabled() else c.muted))
        self.stop_button.setIcon(icon("stop", c.on_accent))
        self.attach_button.setIcon(icon("attach", c.muted))


class ChatArea(QWidget):
    """The whole chat: a file that is dropped anywhere on it is given to the composer."""

    def __init__(self, composer: Composer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAcceptDrops(True)
        self._composer = composer

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        self._composer.dragEnterEvent(event)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._composer.dragLeaveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:
        self._composer.dropEvent(event)
