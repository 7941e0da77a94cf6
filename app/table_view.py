"""A table as wide as its words need, and where that is more than there is room, one that scrolls sideways.

Copying gives its Markdown. Knows nothing of answers.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import (
    QFontMetricsF,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFrameFormat,
    QTextLength,
    QTextOption,
    QTextTable,
    QTextTableCellFormat,
    QTextTableFormat,
)
from PySide6.QtWidgets import QWidget

from app.formula_object import FormulaObject
from app.inline import spans
from app.markdown import Block
from app.span_writer import insert
from app.tables import Table, table
from app.text_view import LEADING, SHADE, TextView
from app.theme import font, px
from app.typesetter import Typesetter

_ALIGNMENTS = {-1: Qt.AlignmentFlag.AlignLeft, 0: Qt.AlignmentFlag.AlignHCenter, 1: Qt.AlignmentFlag.AlignRight}


class TableView(TextView):
    def __init__(self, typesetter: Typesetter | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent, sideways=True)
        self.setFont(font(14))
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setLineWrapMode(TextView.LineWrapMode.FixedPixelWidth)
        self._typesetter = typesetter
        self._block: Block | None = None
        self._shown = Table((), ())
        self._table: QTextTable | None = None
        self._cells: dict[tuple[int, int], tuple[float, float]] = {}  # the widths that a cell and its longest word want
        self._widths: list[int] = []
        if typesetter is not None:
            FormulaObject.register(self, typesetter)
            typesetter.formula_set.connect(self._formula_set)

    def set_block(self, block: Block) -> None:
        """Show it; rows that were there before are left alone."""
        self._block, shown = block, table(block.text)
        same = 0
        if shown.alignments == self._shown.alignments and shown.rows[0] == self._shown.rows[0]:
            while same < min(len(shown.rows), len(self._shown.rows)) and shown.rows[same] == self._shown.rows[same]:
                same += 1
        else:
            self._begin(shown)
        if same == len(shown.rows) == len(self._shown.rows):
            return
        assert self._table is not None
        with self._selection_kept():
            cursor = QTextCursor(self.document())
            cursor.beginEditBlock()
            if len(shown.rows) > self._table.rows():
                self._table.appendRows(len(shown.rows) - self._table.rows())
            elif len(shown.rows) < self._table.rows():
                self._table.removeRows(len(shown.rows), self._table.rows() - len(shown.rows))
            self._shown = shown
            for row in range(same, len(shown.rows)):
                self._fill(row)
            cursor.endEditBlock()
        self._widths = []
        self.resized.emit()

    def _begin(self, shown: Table) -> None:
        self._table = None
        self.document().clear()
        looks = QTextTableFormat()
        looks.setBorder(0)
        looks.setBorderCollapse(True)
        looks.setCellSpacing(0)
        looks.setCellPadding(px(7))
        looks.setHeaderRowCount(1)
        cursor = QTextCursor(self.document())
        self._table = cursor.insertTable(1, len(shown.alignments), looks)
        self._cells = {}
        self._shown = replace(shown, rows=())

    def _fill(self, row: int) -> None:
        assert self._table is not None
        base = QTextCharFormat()
        base.setFont(font(14, bold=row == 0))
        metrics = QFontMetricsF(base.font())
        line = QTextTableCellFormat()
        line.setFont(base.font())
        line.setBottomBorder(px(1))
        line.setBottomBorderBrush(SHADE)
        line.setBottomBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        if row == 0:
            line.setBackground(SHADE)
        for column, text in enumerate(self._shown.rows[row]):
            cell = self._table.cellAt(row, column)
            cursor = cell.firstCursorPosition()
            cursor.setPosition(cell.lastPosition(), QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
            shape = QTextBlockFormat()
            shape.setAlignment(_ALIGNMENTS[self._shown.alignments[column]])
            shape.setLineHeight(px(5), LEADING)
            cursor.setBlockFormat(shape)
            cell.setFormat(line)  # which is the format of the cell's first block, too
            for span in spans(text):
                insert(cursor, span, base, self._typesetter)
            self._cells[row, column] = _measure(cell.firstCursorPosition().block().text(), metrics)

    # --- size

    def fit(self, width: int) -> int:
        self._fitting = True
        self._set_widths(width)
        return super().fit(width)

    def _ideal_width(self) -> float:
        return sum(self._widths)

    def _set_widths(self, width: int) -> None:
        """Columns share the room; none is narrower than its longest word."""
        if self._table is None:
            return
        natural, least = ([0.0] * self._table.columns() for _ in range(2))
        for (row, column), (whole, word) in self._cells.items():
            if row < self._table.rows():
                natural[column] = max(natural[column], whole)
                least[column] = max(least[column], min(word, px(200)))
        wanted = [min(whole, max(px(420), word)) for whole, word in zip(natural, least)]
        if sum(wanted) > width:
            spare = max(0.0, width - sum(least))
            over = [whole - word for whole, word in zip(wanted, least)]
            share = min(1.0, spare / sum(over)) if sum(over) > 0 else 0.0
            wanted = [word + share * more for word, more in zip(least, over)]
        widths = [ceil(one) for one in wanted] if sum(wanted) > width else [int(one) for one in wanted]
        if widths != self._widths:
            self._widths = widths
            looks = self._table.format()
            looks.setColumnWidthConstraints([QTextLength(QTextLength.Type.FixedLength, one) for one in widths])
            self._table.setFormat(looks)
            self.setLineWrapColumnOrWidth(sum(widths))
            self.document().setTextWidth(sum(widths))

    def _formula_set(self, latex: str, display: bool) -> None:
        rows = [number for number, row in enumerate(self._shown.rows) if any(latex in cell for cell in row)]
        for row in rows:
            self._fill(row)
        if rows:
            self._widths = []
            self.resized.emit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and getattr(self, "_block", None) is not None:
            block = self._block
            if block is not None and "://" in block.text:  # links have the colour of the theme
                self._shown = Table((), ())
                self.set_block(block)

    # --- copying

    def chosen_text(self) -> str:
        """The Markdown of the rows that are touched, or the words of a single cell."""
        cursor = self.textCursor()
        if self._table is None or self._block is None:
            return super().chosen_text()
        lines = self._block.text.split("\n")
        first, last = (self._table.cellAt(place) for place in (cursor.selectionStart(), cursor.selectionEnd()))
        if first.isValid() and last.isValid() and (first.row(), first.column()) == (last.row(), last.column()):
            return super().chosen_text()
        begin = first.row() if first.isValid() else 0
        end = last.row() if last.isValid() else self._table.rows() - 1
        chosen = [lines[row + 1] for row in range(max(begin, 1), end + 1)]
        return "\n".join(lines[:2] + chosen if begin == 0 else chosen)


def _measure(text: str, metrics: QFontMetricsF) -> tuple[float, float]:
    """The width that a text wants, and that its longest word does."""
    padding = 2 * px(7) + 3
    formulas = text.count("\ufffc") * px(80)
    longest = max(metrics.horizontalAdvance(line) for line in text.split("\u2028"))
    word = max((metrics.horizontalAdvance(word) for word in text.split()), default=0.0)
    return longest * 1.04 + formulas + padding, word * 1.04 + formulas + padding
