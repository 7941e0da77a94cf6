"""What a model thinks before it answers: told apart from the answer, and folded away.

Models write it between `<think>` and `</think>`; where the template has already opened it, the text has only the end.
Knows nothing of conversations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from app.answer_view import AnswerView
from app.i18n import translate
from app.icons import icon
from app.theme import font, px, theme
from app.typesetter import Typesetter

_OPENS = re.compile(r"\s*<think>[ \t]*\n?")
_OPENING = "<think>"
_CLOSES = "</think>"


@dataclass(frozen=True)
class Parted:
    """`thought` None: there is none. `thinking`: it has not ended."""

    thought: str | None
    answer: str
    thinking: bool = False


def part(text: str) -> Parted:
    if match := _OPENS.match(text):
        end = text.find(_CLOSES, match.end())
        if end < 0:
            return Parted(text[match.end() :], "", thinking=True)
        return Parted(text[match.end() : end].strip("\n"), text[end + len(_CLOSES) :].lstrip())
    begun = text.lstrip()
    if begun and _OPENING.startswith(begun):
        return Parted("", "", thinking=True)
    end = text.find(_CLOSES)
    if end >= 0 and text[end + len(_CLOSES) :][:1] in ("", "\n") and "`" not in text[max(0, end - 1) : end]:
        return Parted(text[:end].strip("\n"), text[end + len(_CLOSES) :].lstrip())
    return Parted(None, text)


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
        """`seconds`: how long it took or has taken so far; None: nobody measured it."""
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
