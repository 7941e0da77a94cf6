"""A block of code with the name of its language, its colours, and a button that copies it.

The colours come from the typesetter, some moments after the text. Knows nothing of Markdown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtGui import QColor, QGuiApplication, QResizeEvent, QTextBlock, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget

from app.i18n import translate
from app.text_view import VerbatimView
from app.theme import font, px, theme
from app.typesetter import Runs, Typesetter
from app.typesetting import STYLES

COPIED_MS = 1500  # how long the copy button says so
SLICE_S = 0.004  # of colouring at a time
NAMES = {
    "py": "Python", "python": "Python", "js": "JavaScript", "javascript": "JavaScript", "ts": "TypeScript",
    "typescript": "TypeScript", "cpp": "C++", "c++": "C++", "c": "C", "cs": "C#", "csharp": "C#", "java": "Java",
    "html": "HTML", "css": "CSS", "json": "JSON", "yaml": "YAML", "yml": "YAML", "sql": "SQL", "bash": "Bash",
    "sh": "Shell", "shell": "Shell", "go": "Go", "rust": "Rust", "rs": "Rust", "kotlin": "Kotlin", "swift": "Swift",
    "ruby": "Ruby", "rb": "Ruby", "php": "PHP", "xml": "XML", "toml": "TOML", "latex": "LaTeX", "tex": "LaTeX",
}  # fmt: skip
LIGHT = {
    "keyword": "#82289E", "name": "#1F57B5", "type": "#0B6467", "string": "#2B6A1B", "number": "#974100",
    "comment": "#646870", "mark": "#96335A", "inserted": "#2B6A1B", "deleted": "#B02A20", "title": "#1F57B5",
}  # fmt: skip
DARK = {
    "keyword": "#D6A2F0", "name": "#8CB8FF", "type": "#6FD0C8", "string": "#A5D28A", "number": "#F0B27A",
    "comment": "#9A9EA7", "mark": "#F09AB5", "inserted": "#A5D28A", "deleted": "#FF9084", "title": "#8CB8FF",
}  # fmt: skip


class CodeView(QFrame):
    """`whole`: what the copy button copies; None: it goes on with the code of the view before, and has no head."""

    resized = Signal()

    def __init__(
        self,
        whole: Callable[[], str] | None,
        typesetter: Typesetter | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("code")
        self._whole = whole
        self._typesetter = typesetter
        self._language = ""
        self._colored = ""  # the text that was last coloured, or sent to be
        self._asking = False
        self._runs: Runs = []
        self._lines: list[list[tuple[int, int, int]]] = []  # per line what is shown: start, length, style
        self._work: Iterator[None] | None = None
        self._slice = QTimer(self)
        self._slice.setSingleShot(True)
        self._slice.timeout.connect(self._go_on)
        self.view = VerbatimView(code=True, parent=self)
        self.view.setAccessibleName(translate("Answer", "Code"))
        self.view.resized.connect(self.resized)
        self._head = QWidget(self)
        self._name = QLabel()
        self._name.setFont(font(12))
        self._name.setProperty("role", "muted")
        self.copy = QPushButton(translate("Answer", "Copy"))
        self.copy.setAccessibleName(translate("Answer", "Copy this code"))
        self.copy.setProperty("role", "quiet")
        self.copy.setFont(font(12))
        self.copy.clicked.connect(self._copy)
        self._copied = QTimer(self)
        self._copied.setSingleShot(True)
        self._copied.timeout.connect(lambda: self.copy.setText(translate("Answer", "Copy")))
        row = QHBoxLayout(self._head)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._name)
        row.addStretch(1)
        row.addWidget(self.copy)
        self._head.setVisible(whole is not None)

    def set_code(self, code: str, language: str) -> None:
        word = language.split()[0] if language.split() else ""
        self._name.setText(NAMES.get(word.lower(), language) or translate("Answer", "text"))
        self._language = language
        if not code.startswith(self.view.text) and not self.view.text.startswith(code):
            self._lines = []
        self.view.set_text(code)
        self._ask()

    def fit(self, width: int) -> int:
        side, top = px(14), px(8)
        if self._whole is not None:
            height = self._head.sizeHint().height()
            self._head.setGeometry(side, px(6), width - side - px(12), height)
            top = px(6) + height + px(6)
        code_height = self.view.fit(width - 2 * side)
        self.view.move(side, top)
        height = top + code_height + px(8)
        self.resize(width, height)
        return height

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.view.width() != self.width() - 2 * px(14):
            self.fit(self.width())

    def _copy(self) -> None:
        if self._whole is not None:
            QGuiApplication.clipboard().setText(self._whole())
            self.copy.setText(translate("Answer", "Copied"))
            self._copied.start(COPIED_MS)

    # --- colours

    def _ask(self) -> None:
        if self._typesetter is not None and self._language and not self._asking and self.view.text != self._colored:
            self._asking = True
            self._colored = self.view.text
            self._typesetter.color(self._colored, self._language, self._take)

    def _take(self, runs: Runs | None) -> None:
        self._asking = False
        if runs is not None and self.view.text.startswith(self._colored):
            self._runs = runs
            self._work = self._color()
            self._go_on()
        if runs is not None:
            self._ask()

    def _go_on(self) -> None:
        """A slice of the colouring."""
        end = perf_counter() + SLICE_S
        while self._work is not None and perf_counter() < end:
            if next(self._work, self) is self:
                self._work = None
        if self._work is not None:
            self._slice.start(0)

    def _color(self) -> Iterator[None]:
        """Line by line, those that look otherwise than before."""
        document = self.view.document()
        block = document.begin()
        formats = _formats()
        for number, line in enumerate(_by_line(self._colored, self._runs)):
            if not block.isValid():
                return
            if number >= len(self._lines) or self._lines[number] != line:
                self._lines[number : number + 1] = [line]
                _color_line(block, line, formats)
                document.markContentsDirty(block.position(), block.length())
                yield
            block = block.next()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and getattr(self, "_runs", None):
            self._lines = []
            self._work = self._color()
            self._slice.start(0)


def _formats() -> list[QTextCharFormat | None]:
    colors = DARK if theme().dark else LIGHT
    made: list[QTextCharFormat | None] = []
    for style in STYLES:
        looks = QTextCharFormat()
        if style in colors:
            looks.setForeground(QColor(colors[style]))
        made.append(looks if style in colors else None)
    return made


def _color_line(block: QTextBlock, line: list[tuple[int, int, int]], formats: list[QTextCharFormat | None]) -> None:
    ranges = []
    for start, length, style in line:
        looks = formats[style]
        if looks is not None:
            one = QTextLayout.FormatRange()
            one.start, one.length, one.format = start, length, looks
            ranges.append(one)
    block.layout().setFormats(ranges)


def _by_line(text: str, runs: Runs) -> Iterator[list[tuple[int, int, int]]]:
    """Per line (start, length, style), in Qt's units."""
    wide = any(letter > "\uffff" for letter in text)
    line: list[tuple[int, int, int]] = []
    column = position = 0
    for count, style in runs:
        pieces = text[position : position + count].split("\n")
        position += count
        for number, piece in enumerate(pieces):
            if number:
                yield line
                line, column = [], 0
            length = len(piece.encode("utf-16-le")) // 2 if wide else len(piece)
            if length and style:
                line.append((column, length, style))
            column += length
    yield line
