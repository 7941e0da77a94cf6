"""What a model thinks before it answers, folded away under a line that says how long it took.

Knows nothing of conversations.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from app.answer_view import AnswerView
from app.i18n import translate
from app.icons import icon
from app.theme import font, px, theme
from app.typesetter import Typesetter


class ThinkingView(QWidget):
    """A line that says how long it took; a click shows the thoughts."""

    resized = Signal()

    def __init__(self, typesetter: Typesetter | None = None, lazy: bool = False, parent: QWidget | None = None) -> None:
        """`lazy`: only what `show_range` asks for is built."""
        super().__init__(parent)
        self._text = ""
        self.head = QPushButton(self)
        self.head.setProperty("role", "quiet")
        self.head.setFont(font(13))
        self.head.setCheckable(True)
        self.head.toggled.connect(self._toggled)
        self.body = AnswerView(typesetter, self)
        self.body.setAccessibleName(translate("Answer", "Thoughts"))
        self.body.hide()
        if lazy:
            self.body.show_range(0, 0, 0.0)
        self.body.resized.connect(self.resized)
        self._color_icon()

    def show_thought(self, text: str, thinking: bool, seconds: float | None) -> None:
        """`seconds`: how long it took; None: nobody measured it."""
        if thinking:
            words = translate("Answer", "Thinking…")
        elif seconds is None:
            words = translate("Answer", "Thought")
        else:
            words = translate("Answer", "Thought for {seconds} s").format(seconds=max(1, round(seconds)))
        self.head.setText(words)
        self.head.setAccessibleName(words)
        self._text = text
        if self.head.isChecked():
            self.body.set_text(text)

    def fit(self, width: int) -> int:
        size = self.head.sizeHint()
        self.head.setGeometry(0, 0, min(width, size.width() + px(4)), size.height())
        height = size.height()
        if self.head.isChecked():
            self.body.move(px(20), height + px(8))
            height += px(8) + self.body.fit(width - px(20))
        self.resize(width, height)
        return height

    def show_range(self, top: int, bottom: int, until: float) -> bool:
        if not self.head.isChecked():
            return False
        return self.body.show_range(top - self.body.y(), bottom - self.body.y(), until)

    def _toggled(self, opened: bool) -> None:
        self._color_icon()
        if opened:
            self.body.set_text(self._text)
        self.body.setVisible(opened)
        self.resized.emit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "head"):
            self._color_icon()

    def _color_icon(self) -> None:
        self.head.setIcon(icon("opened" if self.head.isChecked() else "folded", theme().muted, 16))
