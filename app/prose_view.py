"""Prose: blocks of Markdown as one text, of which only those that changed are set again.

What is copied is the Markdown it was made of. Formulas are drawn when the typesetter has set them; until then, and
where they cannot be read, they stand as typed. Knows nothing of code blocks and tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QTextBlockFormat, QTextCharFormat, QTextCursor, QTextOption
from PySide6.QtWidgets import QWidget

from app.formula_object import FormulaObject
from app.inline import Line, Span, read, source_of
from app.markdown import Block, Kind
from app.span_writer import insert
from app.text_view import LEADING, SHADE, TextView
from app.theme import font, px, theme
from app.typesetter import Typesetter

_CENTRE, _LEFT = Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignLeft


@dataclass
class _Run:
    """[start, end) of the document shows the source from `source` to `source_end` of its block."""

    start: int
    end: int
    span: Span


@dataclass
class _Entry:
    """A block in the document."""

    start: int
    block: Block
    text_start: int = 0
    end: int = 0
    runs: list[_Run] = field(default_factory=list)
    line: Line = field(default_factory=Line)


class ProseView(TextView):
    def __init__(self, typesetter: Typesetter | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFont(font(15))
        self._typesetter = typesetter
        self._entries: list[_Entry] = []
        self._quotes = False
        if typesetter is not None:
            FormulaObject.register(self, typesetter)
            typesetter.formula_set.connect(self._formula_set)

    def set_blocks(self, blocks: Sequence[Block]) -> None:
        """All blocks that are to be shown. Only those from the first one that looks different are set again."""
        same = 0
        for entry, block in zip(self._entries, blocks):
            if entry.block is not block and entry.block != block:
                break
            entry.block = block  # its source may have grown by blank lines
            same += 1
        if same < len(self._entries) or same < len(blocks):
            cursor = QTextCursor(self.document())
            with self._selection_kept():
                cursor.beginEditBlock()
                self._cut(same)
                self._append(blocks[same:])
                cursor.endEditBlock()

    def _cut(self, count: int) -> None:
        """Keep the first `count` entries."""
        if count < len(self._entries):
            cursor = QTextCursor(self.document())
            cursor.setPosition(self._entries[count - 1].end if count else 0)
            cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
            del self._entries[count:]

    def _append(self, blocks: Sequence[Block]) -> None:
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        for block in blocks:
            if self._entries:
                cursor.insertBlock(QTextBlockFormat(), QTextCharFormat())
            self._write(cursor, block)

    # --- writing

    def _write(self, cursor: QTextCursor, block: Block) -> None:
        first = not self._entries
        entry = _Entry(cursor.position(), block)
        self._entries.append(entry)
        self._quotes = self._quotes or block.quote > 0
        shape, base = _looks(block, first)
        cursor.setBlockFormat(shape)
        cursor.setBlockCharFormat(base)
        if block.kind is Kind.ITEM:
            cursor.insertText(f"{block.marker}\t", base)
        entry.text_start = cursor.position()
        if block.kind is Kind.FORMULA:
            latex = block.text.strip() if block.closed else ""
            typed = block.source.strip() or block.text
            entry.line = Line([Span(typed, 0, len(block.text), formula=latex, display=True)])
        elif block.kind is not Kind.RULE:
            entry.line = read(block.text)
        for span in entry.line.spans:
            start = cursor.position()
            insert(cursor, span, base, self._typesetter)
            entry.runs.append(_Run(start, cursor.position(), span))
        entry.end = cursor.position()

    def _formula_set(self, latex: str, display: bool) -> None:
        """A formula that stands as typed is known now."""
        assert self._typesetter is not None
        if self._typesetter.formula(latex, display) is None:
            return
        for number, entry in enumerate(self._entries):
            if any(run.span.formula == latex and run.span.display == display for run in entry.runs):
                self._write_again(number)

    def _write_again(self, number: int) -> None:
        """Set one block again; those after it move."""
        entry = self._entries[number]
        later = self._entries[number + 1 :]
        with self._selection_kept():
            cursor = QTextCursor(self.document())
            cursor.beginEditBlock()
            cursor.setPosition(entry.start)
            cursor.setPosition(entry.end, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
            del self._entries[number:]
            self._write(cursor, entry.block)
            cursor.endEditBlock()
        moved = self._entries[number].end - entry.end
        for other in later:
            other.start, other.text_start, other.end = other.start + moved, other.text_start + moved, other.end + moved
            for run in other.runs:
                run.start, run.end = run.start + moved, run.end + moved
        self._entries += later

    # --- looks

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and getattr(self, "_entries", None):
            self._color_links()

    def _color_links(self) -> None:
        style = QTextCharFormat()
        style.setForeground(theme().color("accent"))
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        for entry in self._entries:
            for run in entry.runs:
                if run.span.link:
                    cursor.setPosition(run.start)
                    cursor.setPosition(run.end, QTextCursor.MoveMode.KeepAnchor)
                    cursor.mergeCharFormat(style)
        cursor.endEditBlock()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._quotes:
            painter = QPainter(self.viewport())
            layout = self.document().documentLayout()
            above = (0, 0.0)  # how deep the block before stands in quotes, and where it ends
            for entry in self._entries:
                box = layout.blockBoundingRect(self.document().findBlock(entry.start))
                for depth in range(entry.block.quote):
                    top = above[1] if depth < above[0] else box.top()
                    painter.fillRect(px(2 + 18 * depth), round(top), px(3), round(box.bottom() - top), SHADE)
                above = (entry.block.quote, box.bottom())
            painter.end()
        super().paintEvent(event)

    # --- copying

    def chosen_text(self) -> str:
        """The Markdown of what is selected."""
        cursor = self.textCursor()
        begin, end = cursor.selectionStart(), cursor.selectionEnd()
        parts: list[str] = []
        for entry in self._entries:
            if entry.end < begin or entry.start > end or (entry.start == end and end > begin and entry.end > end):
                continue
            source = entry.block.source
            if (begin <= entry.start and end >= entry.end) or entry.block.kind is Kind.FORMULA:
                parts.append(source)
                continue
            text = entry.block.text
            first, last = _source_place(entry, max(begin, entry.text_start), False), _source_place(entry, end, True)
            if parts and entry.text_start <= end:
                parts.append(source[: max(0, source.find(text[:1] if text else ""))])
            parts.append(source_of(text, first, last, entry.line.marks) if first < last else "")
            if end > entry.end:
                parts.append(source[len(source.rstrip("\n")) :])
        return "".join(parts).rstrip("\n")


def _source_place(entry: _Entry, position: int, is_end: bool) -> int:
    """Where in a block's text a position of the document stands."""
    for run in entry.runs:
        if run.start <= position < run.end or (is_end and run.start < position <= run.end):
            span = run.span
            if position == run.start:
                return span.start
            if position == run.end:
                return span.end
            if len(span.text) != span.end - span.start:
                return span.end if is_end else span.start  # it cannot be divided
            shown = span.text.encode("utf-16-le")[: 2 * (position - run.start)].decode("utf-16-le", "ignore")
            return span.start + len(shown)
    return len(entry.block.text) if entry.runs and position >= entry.runs[-1].end else 0


def _looks(block: Block, first: bool) -> tuple[QTextBlockFormat, QTextCharFormat]:
    shape, base = QTextBlockFormat(), QTextCharFormat()
    size, bold, above = 15.0, False, 12.0
    indent = px(26)
    left = px(18) * block.quote + indent * block.indent
    if block.kind is Kind.HEADING:
        size, bold, above = {1: 21.0, 2: 18.0, 3: 16.0}.get(block.level, 15.0), True, 20.0
        shape.setHeadingLevel(block.level)
    elif block.kind is Kind.ITEM:
        left += indent * (block.level + 1)
        above = 4.0
        shape.setTextIndent(-indent)
        shape.setTabPositions([QTextOption.Tab(indent, QTextOption.TabType.LeftTab)])
    elif block.kind is Kind.RULE:
        shape.setProperty(QTextBlockFormat.Property.BlockTrailingHorizontalRulerWidth, 1.0)
        shape.setBackground(SHADE)
        above = 16.0
    elif block.kind is Kind.FORMULA:
        indent_free = block.indent == 0 and block.quote == 0
        shape.setAlignment(_CENTRE if indent_free else _LEFT)
    if block.continues:
        above = 4.0
    shape.setTopMargin(0 if first else px(above))
    shape.setLeftMargin(left)
    shape.setLineHeight(px(9), LEADING)
    base.setFont(font(size, bold=bold))
    return shape, base
