"""One answer on the screen: prose, code and tables in turn, growing as it streams in.

Finished parts are never rendered again; only what is unfinished at the end is. Long texts are read in slices, and parts
that are far from the reader do not exist as widgets. Knows nothing of the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget

from app.code_view import CodeView
from app.column import Column, Part
from app.markdown import Block, Kind, MarkdownStream
from app.prose_view import ProseView
from app.table_view import TableView
from app.theme import px
from app.typesetter import Typesetter

FULL = 3500  # characters of prose in one part
SLICE = 5_000  # characters read at a time
SLICE_S = 0.008


class BlocksPart(Part):
    """Blocks that one widget shows: one of code, a table, or some of prose."""

    def __init__(self, answer: AnswerView, kind: Kind) -> None:
        self._answer = answer
        self.kind = kind  # CODE, TABLE, or PARAGRAPH for any prose
        self.blocks: list[Block] = []
        self._letters = self._breaks = 0

    def set_blocks(self, blocks: list[Block]) -> bool:
        """Returns whether they look different from those before."""
        changed = blocks != self.blocks
        self.blocks = blocks
        self._letters = sum(len(block.text) for block in blocks)
        self._breaks = sum(block.text.count("\n") + 1 for block in blocks)
        first = blocks[0]
        self.gap = px(16)
        if self.kind is not Kind.PARAGRAPH:
            self.indent = px(26) * first.indent + px(18) * first.quote
            if first.continues and self.kind is Kind.CODE:
                self.gap, self.joint = 0, "\n"
        elif first.continues:
            self.gap = px(4)
        if self.widget is not None:
            self._show()
        return changed

    def chosen_text(self) -> str:
        view = self.text_view
        if view is not None and self.kind is Kind.CODE:
            cursor = view.textCursor()
            if cursor.selectionStart() == 0 and cursor.selectionEnd() == view.document().characterCount() - 1:
                return self.blocks[0].source.rstrip("\n")  # with its fences
        return super().chosen_text()

    def build(self, parent: QWidget) -> QWidget:
        typesetter = self._answer.typesetter
        if self.kind is Kind.CODE:
            whole = None if self.blocks[0].continues else lambda: self._answer.code_from(self)
            self.widget = CodeView(whole, typesetter, parent)
        elif self.kind is Kind.TABLE:
            self.widget = TableView(typesetter, parent)
        else:
            self.widget = ProseView(typesetter, parent)
        self._show()
        return self.widget

    def _show(self) -> None:
        if isinstance(self.widget, CodeView):
            self.widget.set_code(self.blocks[0].text, self.blocks[0].marker)
        elif isinstance(self.widget, TableView):
            self.widget.set_block(self.blocks[0])
        elif isinstance(self.widget, ProseView):
            self.widget.set_blocks(self.blocks)

    def estimate(self, width: int) -> int:
        if self.kind is Kind.CODE:
            return self._breaks * px(21) + px(44)
        if self.kind is Kind.TABLE:
            return self._breaks * px(36)
        return height_of(self._letters, self._breaks, width) + len(self.blocks) * px(10)


def height_of(letters: int, breaks: int, width: int) -> int:
    """About how high a text is; where a line ends by itself, half a line is lost."""
    return letters * px(7) * px(27) // width + breaks * px(16)


class AnswerView(Column):
    """`set_text` is given the whole text so far, again and again."""

    def __init__(self, typesetter: Typesetter | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.typesetter = typesetter
        self._text = ""
        self._read = 0  # so many characters have been read
        self._stream = MarkdownStream()
        self._open = 0  # the first part that may still change
        self._settled: list[Block] = []  # its blocks that will not
        self._slice = QTimer(self)
        self._slice.setSingleShot(True)
        self._slice.timeout.connect(self._go_on)

    @property
    def text(self) -> str:
        """The original text."""
        return self._text

    @property
    def reading(self) -> bool:
        """A part of the text has not been read yet."""
        return self._read < len(self._text)

    def show_range(self, top: int, bottom: int, until: float) -> bool:
        """While a long text is being read, its parts do not stay where they are: nothing is built."""
        return not self.reading and super().show_range(top, bottom, until)

    def set_text(self, text: str) -> None:
        if text == self._text:
            return
        if not text.startswith(self._text):
            self._clear()
        self._text = text
        if not self._slice.isActive():
            self._go_on()

    def _clear(self) -> None:
        self.put(0, [])
        self._stream = MarkdownStream()
        self._text, self._read, self._open, self._settled = "", 0, 0, []

    def _go_on(self) -> None:
        """Read a slice."""
        end = perf_counter() + SLICE_S
        finished: list[Block] = []
        while True:
            piece = self._text[self._read : self._read + SLICE]
            self._read += len(piece)
            finished += self._stream.feed(piece)
            if not self.reading or perf_counter() > end:
                break
        self._show([*self._settled, *finished], list(self._stream.tail))
        if self.reading:
            self._slice.start(0)
        if not self._busy:
            self.resized.emit()

    def _show(self, settled: list[Block], tail: list[Block]) -> None:
        """Blocks from the part `_open` on."""
        groups = _groups([*settled, *tail])
        parts: list[Part] = []
        first_changed: Part | None = None
        position = 0
        for number, blocks in enumerate(groups):
            kind = _kind(blocks[0])
            old = self.parts[self._open + number] if self._open + number < len(self.parts) else None
            part = old if isinstance(old, BlocksPart) and old.kind is kind else BlocksPart(self, kind)
            changed = part.set_blocks(blocks)
            if changed and first_changed is None:
                first_changed = part
            if changed:
                part.fitted = 0
            parts.append(part)
        self.put(self._open, parts)
        # where to go on: at the part that holds the last settled block, since more prose may join it
        for number, blocks in enumerate(groups):
            if position + len(blocks) >= len(settled):
                self._open += number
                self._settled = settled[position:]
                break
            position += len(blocks)
        else:
            self._settled = []

    def code_from(self, part: Part) -> str:
        """The whole code that begins in this part."""
        texts: list[str] = []
        for other in self.parts[self.parts.index(part) :]:
            if not isinstance(other, BlocksPart) or (texts and not other.blocks[0].continues):
                break
            texts.append(other.blocks[0].text)
        return "\n".join(texts)


def _kind(block: Block) -> Kind:
    return block.kind if block.kind in (Kind.CODE, Kind.TABLE) else Kind.PARAGRAPH


def _groups(blocks: Sequence[Block]) -> list[list[Block]]:
    """The blocks of each part. Depends on what is before a block only, so that parts stay as they are."""
    groups: list[list[Block]] = []
    length = 0
    for block in blocks:
        kind = _kind(block)
        if groups and kind is Kind.PARAGRAPH and _kind(groups[-1][0]) is kind and length < FULL:
            groups[-1].append(block)
        else:
            groups.append([block])
            length = 0
        length += len(block.text) + 40
    return groups
