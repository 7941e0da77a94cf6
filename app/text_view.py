"""Text that can be selected and copied, as high as its content; the page around it scrolls, not the text.

Knows nothing of conversations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil

from PySide6.QtCore import QMimeData, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextEdit, QWidget

from app import clipboard
from app.markdown import Block, Kind, spans
from app.theme import code_font, font, px

SHADE = QColor(128, 128, 128, 44)  # on light and on dark ground; part of the text, so it must not depend on the theme
LINE_SEPARATOR = "\u2028"  # a line break within a block of a QTextDocument


class TextView(QTextEdit):
    """Read-only text of any length without scroll bars of its own."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self._fit()

    def _fit(self) -> None:
        height = max(1, ceil(self.document().size().height())) + self._extra_height()
        if height != self.height():
            self.setFixedHeight(height)

    def _extra_height(self) -> int:
        return 0

    @contextmanager
    def _selection_kept(self) -> Iterator[None]:
        """Text that arrives at the end must not drag a cursor there along, nor what it selects."""
        before = self.textCursor()
        anchor, position = before.anchor(), before.position()
        yield
        after = self.textCursor()
        if (after.anchor(), after.position()) != (anchor, position):
            end = self.document().characterCount() - 1
            after.setPosition(min(anchor, end))
            after.setPosition(min(position, end), QTextCursor.MoveMode.KeepAnchor)
            self.setTextCursor(after)

    def minimumSizeHint(self) -> QSize:
        return QSize(px(40), self.height())

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the page scrolls

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            event.ignore()
        else:
            super().keyPressEvent(event)

    def createMimeDataFromSelection(self) -> QMimeData:
        """Copy text, not its looks. (Qt's own would turn no-break spaces into spaces.)"""
        text = self.textCursor().selectedText()
        return clipboard.plain_text(text.replace("\u2029", "\n").replace(LINE_SEPARATOR, "\n"))


class VerbatimView(TextView):
    """Plain text, growing at its end. `code`: in the code font, scrolling sideways where a line is long."""

    def __init__(self, code: bool = False, parent: QWidget | None = None) -> None:
        self._code = code
        super().__init__(parent)
        self._shown = ""
        self.setFont(code_font() if code else font(15))
        if code:
            self.setWordWrapMode(QTextOption.WrapMode.NoWrap)
            self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
            self.setTabStopDistance(4 * QFontMetricsF(self.font()).horizontalAdvance(" "))
            self.horizontalScrollBar().rangeChanged.connect(self._fit)

    def _extra_height(self) -> int:
        bar = self.horizontalScrollBar()
        return px(10) if self._code and bar.maximum() > bar.minimum() else 0

    def set_text(self, text: str) -> None:
        if text != self._shown:
            with self._selection_kept():
                self._write(text)
            self._shown = text

    def _write(self, text: str) -> None:
        cursor = QTextCursor(self.document())
        if self._shown and text.startswith(self._shown):
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(text[len(self._shown) :])
        else:
            cursor.select(QTextCursor.SelectionType.Document)
            cursor.removeSelectedText()
            spacing = QTextBlockFormat()
            spacing.setLineHeight(145.0, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
            cursor.setBlockFormat(spacing)
            cursor.insertText(text)

    def natural_width(self) -> int:
        """The width that the longest line wants."""
        metrics = QFontMetricsF(self.font())
        return ceil(max(metrics.horizontalAdvance(line) for line in self._shown.split("\n"))) + 2


class ProseView(TextView):
    """Blocks of simple Markdown. Finished ones are set once; the unfinished one at the end is set again as it grows."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFont(font(15))
        self._tail_start = 0  # position in the document where the unfinished block begins
        self._tail: Block | None = None  # what is shown from there on
        self._filled = False  # there is a finished block

    @property
    def is_empty(self) -> bool:
        return not self._filled and self.document().isEmpty()

    def add(self, block: Block) -> None:
        """A finished block, in the place of the unfinished one."""
        self.set_tail(block)
        self._tail_start = self.document().characterCount() - 1
        self._tail = None
        self._filled = True

    def set_tail(self, block: Block | None) -> None:
        if block == self._tail:
            return
        cursor = QTextCursor(self.document())
        with self._selection_kept():
            cursor.beginEditBlock()
            self._replace_tail(cursor, block)
            cursor.endEditBlock()
        self._tail = block

    def _replace_tail(self, cursor: QTextCursor, block: Block | None) -> None:
        cursor.setPosition(self._tail_start)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        if block is not None:
            if self._filled:
                cursor.insertBlock(QTextBlockFormat(), QTextCharFormat())
            self._write(cursor, block)

    def _write(self, cursor: QTextCursor, block: Block) -> None:
        shape = QTextBlockFormat()
        shape.setLineHeight(155.0, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        shape.setTopMargin(px(10) if self._filled else 0)
        base = QTextCharFormat()
        base.setFont(font(15))
        text = block.text
        match block.kind:
            case Kind.HEADING:
                base.setFont(font({1: 21, 2: 18}.get(block.level, 16), bold=True))
                shape.setTopMargin(px(18) if self._filled else 0)
                shape.setHeadingLevel(block.level)
            case Kind.ITEM:
                indent = px(24)
                shape.setLeftMargin(indent * (block.level + 1))
                shape.setTextIndent(-indent)
                shape.setTabPositions([QTextOption.Tab(indent, QTextOption.TabType.LeftTab)])
                shape.setTopMargin(px(4) if self._filled else 0)
            case Kind.QUOTE:
                shape.setLeftMargin(px(20))
                shape.setRightMargin(px(20))
                shape.setBackground(SHADE)
            case Kind.TABLE:
                base.setFont(code_font())
            case Kind.RULE:
                shape.setProperty(QTextBlockFormat.Property.BlockTrailingHorizontalRulerWidth, 1.0)
                shape.setBackground(SHADE)
                text = ""
        cursor.setBlockFormat(shape)
        cursor.setBlockCharFormat(base)
        if block.kind is Kind.TABLE:
            cursor.insertText(text.replace("\n", LINE_SEPARATOR), base)
            return
        if block.marker:
            cursor.insertText(f"{block.marker}\t", base)
        for span in spans(text):
            style = QTextCharFormat(base)
            if span.code:
                style.setFont(code_font())
                style.setBackground(SHADE)
            if span.bold:
                style.setFontWeight(600)
            if span.italic:
                style.setFontItalic(True)
            cursor.insertText(span.text.replace("\n", LINE_SEPARATOR), style)
