"""One answer on the screen: prose and code in turn, growing as it streams in.

Finished parts are never rendered again; only the unfinished block at the end is. Knows nothing of the engine.
"""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.markdown import Block, Kind, MarkdownStream
from app.text_view import ProseView, VerbatimView
from app.theme import font, px

_Part = TypeVar("_Part", "ProseView", "CodeView")


class CodeView(QFrame):
    """A block of code with its language and a button that copies it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("code")
        self._code = ""
        self._language = QLabel()
        self._language.setFont(font(12))
        self._language.setProperty("role", "muted")
        copy = QPushButton("Copy")
        copy.setAccessibleName("Copy this code")
        copy.setProperty("role", "quiet")
        copy.setFont(font(12))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._code))
        self._view = VerbatimView(code=True)
        head = QHBoxLayout()
        head.addWidget(self._language)
        head.addStretch(1)
        head.addWidget(copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(px(14), px(6), px(8), px(12))
        column.setSpacing(px(4))
        column.addLayout(head)
        column.addWidget(self._view)

    def set_block(self, block: Block) -> None:
        self._code = block.text
        self._language.setText(block.marker or "text")
        self._view.set_text(block.text)


class AnswerView(QWidget):
    """`set_text` is given the whole text so far, again and again."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(px(16))
        self._text = ""
        self._stream = MarkdownStream()
        self._parts: list[ProseView | CodeView] = []
        self._tail_code: CodeView | None = None  # shows the unfinished block, when that is code

    @property
    def text(self) -> str:
        """The original text."""
        return self._text

    @property
    def parts(self) -> tuple[ProseView | CodeView, ...]:
        return tuple(self._parts)

    def set_text(self, text: str) -> None:
        if text == self._text:
            return
        if not text.startswith(self._text):
            self._clear()
        added, self._text = text[len(self._text) :], text
        for block in self._stream.feed(added):
            self._add(block)
        self._show_tail(self._stream.tail)

    def _clear(self) -> None:
        for part in self._parts:
            self._remove(part)
        self._parts.clear()
        self._tail_code = None
        self._stream = MarkdownStream()
        self._text = ""

    def _add(self, block: Block) -> None:
        if block.kind is Kind.CODE:
            self._code_for_tail().set_block(block)
            self._tail_code = None
        else:
            self._drop_tail_code()
            self._prose().add(block)

    def _show_tail(self, tail: Block | None) -> None:
        if tail is not None and tail.kind is Kind.CODE:
            self._code_for_tail().set_block(tail)
        elif tail is not None:
            self._drop_tail_code()
            self._prose().set_tail(tail)

    def _code_for_tail(self) -> CodeView:
        if self._tail_code is None:
            if self._parts and isinstance(last := self._parts[-1], ProseView):
                last.set_tail(None)  # what looked like prose has become code
                if last.is_empty:
                    self._remove(self._parts.pop())
            self._tail_code = self._append(CodeView())
        return self._tail_code

    def _drop_tail_code(self) -> None:
        if self._tail_code is not None:
            self._parts.remove(self._tail_code)
            self._remove(self._tail_code)
            self._tail_code = None

    def _prose(self) -> ProseView:
        if self._parts and isinstance(last := self._parts[-1], ProseView):
            return last
        return self._append(ProseView())

    def _append(self, part: _Part) -> _Part:
        self._parts.append(part)
        self._column.addWidget(part)
        return part

    def _remove(self, part: QWidget) -> None:
        self._column.removeWidget(part)
        part.hide()
        part.deleteLater()
