"""Text that can be selected and copied, as high as its content; the page around it scrolls, not the text.

A view is given its width by `fit`, which answers with the height that it then has. Knows nothing of conversations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil

from PySide6.QtCore import QEvent, QMimeData, QPoint, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QTextBlockFormat,
    QTextCursor,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QTextEdit, QToolTip, QWidget

from app import clipboard
from app.inline import safe_address
from app.theme import code_font, font, px

SHADE = QColor(128, 128, 128, 44)  # on light and on dark ground; part of the text, so it must not depend on the theme
LINE_SEPARATOR = "\u2028"  # a line break within a block of a QTextDocument
LEADING = QTextBlockFormat.LineHeightTypes.LineDistanceHeight.value


class TextView(QTextEdit):
    """Read-only text of any length without a scroll bar of its own, but for `sideways` text, which scrolls sideways."""

    resized = Signal()  # it wants another height than it has
    pressed = Signal()  # the mouse, here
    dragged = Signal(QPoint)  # the mouse, held since it was pressed here; where it is on the screen
    all_wanted = Signal()  # the user wants to select all there is

    def __init__(self, parent: QWidget | None = None, *, sideways: bool = False) -> None:
        super().__init__(parent)
        self.joined: Callable[[], str | None] = lambda: None  # what is selected here and elsewhere, if there is more
        self._sideways = sideways
        self._fitting = True  # until the first width is given, sizes mean nothing
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if sideways else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        self.setWordWrapMode(
            QTextOption.WrapMode.NoWrap if sideways else QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
        )
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.viewport().setAutoFillBackground(False)
        self.viewport().setMouseTracking(True)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self._size_changed)

    # --- size

    def fit(self, width: int) -> int:
        """Take this width, in logical pixels; returns the height."""
        self._fitting = True
        if not self._sideways:
            self.document().setTextWidth(width)
        height = self._wanted_height(width)
        if (width, height) != (self.width(), self.height()):
            self.resize(width, height)
        self._fitting = False
        return height

    def _wanted_height(self, width: int) -> int:
        height = max(1, ceil(self.document().size().height()))
        return height + (px(11) if self._sideways and self._ideal_width() > width else 0)

    def _ideal_width(self) -> float:
        return self.document().idealWidth()

    def _size_changed(self) -> None:
        if not self._fitting and self._wanted_height(self.width()) != self.height():
            self.resized.emit()

    def sizeHint(self) -> QSize:
        return QSize(px(200), self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(px(40), self.height())

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

    # --- keys and mouse

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self._sideways and event.angleDelta().x() and not event.angleDelta().y():
            super().wheelEvent(event)
        else:
            event.ignore()  # the page scrolls

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown, Qt.Key.Key_Escape):
            event.ignore()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._open(self._address_at_cursor()):
            event.accept()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.selectAll()
            self.all_wanted.emit()
            event.accept()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.pressed.emit()
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.dragged.emit(event.globalPosition().toPoint())
        over = bool(self.anchorAt(event.position().toPoint()))
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if over else Qt.CursorShape.IBeamCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and not self.textCursor().hasSelection():
            self._open(self.anchorAt(event.position().toPoint()))

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            address = self.anchorAt(event.pos())
            if address:
                QToolTip.showText(event.globalPos(), address, self)
                return True
        return super().viewportEvent(event)

    def _address_at_cursor(self) -> str:
        cursor = self.textCursor()
        if not cursor.hasSelection():
            cursor.movePosition(QTextCursor.MoveOperation.Right, QTextCursor.MoveMode.KeepAnchor)
        return cursor.charFormat().anchorHref()

    def _open(self, address: str) -> bool:
        return bool(address) and safe_address(address) and QDesktopServices.openUrl(QUrl(address))

    # --- copying

    def chosen_text(self) -> str:
        """The selection as it is copied. (Qt's own would turn no-break spaces into spaces.)"""
        return self.textCursor().selectedText().replace("\u2029", "\n").replace(LINE_SEPARATOR, "\n")

    def createMimeDataFromSelection(self) -> QMimeData:
        """Copy text, not its looks."""
        joined = self.joined()
        return clipboard.plain_text(self.chosen_text() if joined is None else joined)


class VerbatimView(TextView):
    """Plain text, growing at its end. `code`: in the code font, scrolling sideways where a line is long."""

    def __init__(self, code: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent, sideways=code)
        self._shown = ""
        self._leading = px(6 if code else 8)
        self.setFont(code_font() if code else font(15))
        if code:
            self.setTabStopDistance(4 * QFontMetricsF(self.font()).horizontalAdvance(" "))

    @property
    def text(self) -> str:
        return self._shown

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
        elif text and self._shown.startswith(text):
            cursor.setPosition(len(text.encode("utf-16-le")) // 2)  # as Qt counts
            cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
        else:
            cursor.select(QTextCursor.SelectionType.Document)
            cursor.removeSelectedText()
            spacing = QTextBlockFormat()
            spacing.setLineHeight(self._leading, LEADING)
            cursor.setBlockFormat(spacing)
            cursor.insertText(text)

    def natural_width(self) -> int:
        """The width that the longest line wants."""
        metrics = QFontMetricsF(self.font())
        return ceil(max(metrics.horizontalAdvance(line) for line in self._shown.split("\n"))) + 2
