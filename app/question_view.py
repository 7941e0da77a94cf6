"""The user's own words, as typed, in a bubble no wider than they need; and a place to write them anew.

Knows nothing of conversations.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.answer_view import height_of
from app.column import Column, Part
from app.i18n import translate
from app.icons import icon
from app.input_box import InputBox
from app.text_view import VerbatimView
from app.theme import font, px, theme

CHUNK = 4000  # characters of one part
SIDE, TOP = 16, 11
WIDEST = 0.82  # of the column


class ChunkPart(Part):
    joint = "\n"

    def __init__(self, text: str) -> None:
        self.text = text

    def build(self, parent: QWidget) -> QWidget:
        view = VerbatimView(parent=parent)
        view.setAccessibleName(translate("Question", "Your message"))
        view.set_text(self.text)
        return view

    def estimate(self, width: int) -> int:
        return height_of(len(self.text), self.text.count("\n") + 1, width)


def chunks(text: str) -> list[str]:
    """The text in parts that end where a line ends, if one does near there. The line's end is in no part."""
    found: list[str] = []
    position = 0
    while len(text) - position > 2 * CHUNK:
        end = text.find("\n", position + CHUNK, position + 2 * CHUNK)
        cut = end if end >= 0 else position + CHUNK
        found.append(text[position:cut])
        position = cut + 1 if end >= 0 else cut
    found.append(text[position:])
    return found


class QuestionView(QWidget):
    edited = Signal(str)  # the new text
    resized = Signal()

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = text
        self._bubble = QFrame(self)
        self._bubble.setObjectName("bubble")
        self._words = Column(self._bubble)
        parts = chunks(text)
        if len(parts) > 1:
            self._words.show_range(0, 0, 0.0)  # none of them, until somebody looks
        self._words.put(0, [ChunkPart(part) for part in parts])
        self._words.resized.connect(self.resized)
        self.edit = QPushButton(self)
        self.edit.setProperty("role", "bare")
        self.edit.setAccessibleName(translate("Question", "Edit this message"))
        self.edit.setToolTip(translate("Question", "Edit this message and send it again"))
        self.edit.setFixedSize(px(28), px(28))
        self.edit.setIconSize(QSize(px(16), px(16)))
        self.edit.clicked.connect(self.begin_edit)
        self._editor: _Editor | None = None
        self._color_icon()

    @property
    def view(self) -> VerbatimView:
        """The first part of the text."""
        part = self._words.parts[0]
        assert isinstance(part.widget, VerbatimView)
        return part.widget

    @property
    def editing(self) -> bool:
        return self._editor is not None

    def set_editable(self, editable: bool) -> None:
        self.edit.setEnabled(editable)

    # --- size

    def fit(self, width: int) -> int:
        if self._editor is not None:
            height = self._editor.fit(width)
        else:
            most = round(WIDEST * width)
            wide = self._natural_width()
            inside = min(wide, most - 2 * px(SIDE)) if wide is not None else most - 2 * px(SIDE)
            text_height = self._words.fit(inside)
            self._words.move(px(SIDE), px(TOP))
            height = text_height + px(TOP) + px(TOP) - px(6)  # a line has its leading below
            self._bubble.setGeometry(width - inside - 2 * px(SIDE), 0, inside + 2 * px(SIDE), height)
            self.edit.move(self._bubble.x() - self.edit.width() - px(4), max(0, min(height, px(46)) - px(37)))
        self.resize(width, height)
        return height

    def _natural_width(self) -> int | None:
        """None: more than there is."""
        widget = self._words.parts[0].widget
        if len(self._words.parts) > 1 or not isinstance(widget, VerbatimView):
            return None
        return widget.natural_width()

    def show_range(self, top: int, bottom: int, until: float) -> bool:
        if self.editing:
            return False
        return self._words.show_range(top - px(TOP), bottom - px(TOP), until)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self.fit(self.width())

    # --- editing

    def begin_edit(self) -> None:
        if self._editor is None:
            self._editor = _Editor(self._text, self)
            self._editor.sent.connect(self._send)
            self._editor.cancelled.connect(self.end_edit)
            self._editor.resized.connect(self.resized)
            self._bubble.hide()
            self.edit.hide()
            self._editor.show()
            self._editor.box.setFocus()
            self.resized.emit()

    def end_edit(self) -> None:
        """Back to the bubble, with the words as they were."""
        if self._editor is not None:
            self._editor.hide()
            self._editor.deleteLater()
            self._editor = None
            self._bubble.show()
            self.edit.show()
            self.edit.setFocus()
            self.resized.emit()

    def _send(self, text: str) -> None:
        self.end_edit()
        self.edited.emit(text)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "edit"):
            self._color_icon()

    def _color_icon(self) -> None:
        self.edit.setIcon(icon("edit", theme().muted))


class _Editor(QFrame):
    """Enter sends, Esc cancels."""

    sent = Signal(str)
    cancelled = Signal()
    resized = Signal()

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("inputFrame")
        self.box = InputBox()
        self.box.setAccessibleName(translate("Question", "Your message"))
        self.box.setPlainText(text)
        self.box.moveCursor(self.box.textCursor().MoveOperation.End)
        self.send = QPushButton(translate("Question", "Send"))
        self.send.setProperty("role", "primary")
        self.cancel = QPushButton(translate("Question", "Cancel"))
        for button in (self.send, self.cancel):
            button.setFont(font(13))
            button.setAccessibleName(button.text())
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.cancel)
        buttons.addWidget(self.send)
        column = QVBoxLayout(self)
        column.setContentsMargins(px(14), px(10), px(10), px(10))
        column.addWidget(self.box)
        column.addLayout(buttons)
        self.send.clicked.connect(self._send)
        self.cancel.clicked.connect(self.cancelled)
        self.box.submitted.connect(self._send)
        self._fitting = False
        self._lines = self.box.document().documentLayout()
        self._lines.documentSizeChanged.connect(self._lines_changed)

    def fit(self, width: int) -> int:
        self._fitting = True
        layout = self.layout()
        assert layout is not None
        for _ in range(2):  # the box knows its height when it has its width
            self.resize(width, layout.sizeHint().height())
            layout.activate()
            self._lines.documentSizeChanged.emit(self._lines.documentSize())  # Qt is silent about lines that wrap anew
        self.resize(width, layout.sizeHint().height())
        self._fitting = False
        return self.height()

    def _lines_changed(self) -> None:
        if not self._fitting:
            self.resized.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    def _send(self) -> None:
        if self.box.text().strip():
            self.sent.emit(self.box.text())
