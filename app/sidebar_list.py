"""The list of conversations: what it contains, how a row looks, and what its keys do.

Groups by day, or what a search found. Knows nothing of where conversations are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import IntEnum

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QContextMenuEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.i18n import translate
from app.icons import icon
from app.rows import Header, Hit
from app.theme import font, px, theme

Index = QModelIndex | QPersistentModelIndex
ROW, FOUND_ROW = 36, 54  # logical pixels
MORE = 30  # the width of the place that opens a row's menu


class Role(IntEnum):
    ROW = Qt.ItemDataRole.UserRole  # the Row itself


@dataclass(frozen=True)
class Row:
    """A conversation, or the heading of a group."""

    text: str
    id: str = ""  # empty: a heading
    pinned: bool = False
    excerpt: str = ""
    turn: str | None = None  # where a search found something
    activity: str = ""  # "answering" or "waiting"


def grouped(headers: Sequence[Header], today: date) -> list[Row]:
    """The newest first, the pinned ones before all, under a heading for each group."""
    rows: list[Row] = []
    for pinned in (True, False):
        heading = None
        for header in headers:
            if header.pinned is pinned:
                group = translate("Sidebar", "Pinned") if pinned else _group(header.updated, today)
                if group != heading:
                    heading = group
                    rows.append(Row(group))
                rows.append(Row(header.title, header.id, header.pinned))
    return rows


def _group(updated: float, today: date) -> str:
    days = (today - datetime.fromtimestamp(updated).date()) / timedelta(days=1)
    if days < 1:
        return translate("Sidebar", "Today")
    if days < 2:
        return translate("Sidebar", "Yesterday")
    if days < 8:
        return translate("Sidebar", "Previous 7 days")
    if days < 31:
        return translate("Sidebar", "Previous 30 days")
    return translate("Sidebar", "Earlier")


def found_rows(headers: Sequence[Header], hits: Sequence[Hit]) -> list[Row]:
    """What a search found, with the place, the newest first."""
    by_id = {hit.conversation: hit for hit in hits}
    return [
        Row(header.title, header.id, header.pinned, hit.excerpt, hit.turn)
        for header in headers
        if (hit := by_id.get(header.id)) is not None
    ]


class ConversationModel(QAbstractListModel):
    renamed = Signal(str, str)  # id, title

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: list[Row] = []

    def set_rows(self, rows: list[Row]) -> None:
        if rows == self.rows:
            return
        if [row.id or row.text for row in rows] == [row.id or row.text for row in self.rows]:
            self.rows = rows
            self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def place(self, id_: str) -> QModelIndex:
        """Where a conversation is; an invalid index where it is not."""
        for number, row in enumerate(self.rows):
            if row.id == id_:
                return self.index(number)
        return QModelIndex()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.rows[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return row.text
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{row.text}, {translate('Sidebar', 'Pinned')}" if row.pinned else row.text
        if role == Role.ROW:
            return row
        return None

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        title = " ".join(str(value).split())
        row = self.rows[index.row()]
        if role != Qt.ItemDataRole.EditRole or not title or title == row.text:
            return False
        self.renamed.emit(row.id, title)
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not self.rows[index.row()].id:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable


class RowDelegate(QStyledItemDelegate):
    """Paints a row. All rows have one height, so that thousands need no measuring."""

    row_height = ROW

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(px(80), px(self.row_height))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = index.data(Role.ROW)
        colors = theme()
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not row.id:
            painter.setFont(font(12, bold=True))
            painter.setPen(colors.color("muted"))
            painter.drawText(rect.adjusted(px(12), 0, -px(8), -px(6)), _BOTTOM_LEFT, row.text)
            painter.restore()
            return
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        body = rect.adjusted(0, px(1), 0, -px(1))
        if chosen or hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.color("chosen" if chosen else "hover"))
            painter.drawRoundedRect(body, px(8), px(8))
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(colors.color("accent"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(body.adjusted(1, 1, -1, -1), px(8), px(8))
        inside = body.adjusted(px(12), 0, -px(10), 0)
        if chosen or hovered:
            self._sign(painter, more_place(body), "more", colors.muted)
            inside.setRight(more_place(body).left())
        elif row.activity:
            self._activity(painter, inside, row.activity)
            inside.setRight(inside.right() - px(18))
        elif row.pinned:
            self._sign(painter, more_place(body), "pin", colors.faint)
            inside.setRight(more_place(body).left())
        self._words(painter, inside, row)
        painter.restore()

    def _words(self, painter: QPainter, inside: QRect, row: Row) -> None:
        title = QRect(inside)
        if row.excerpt:
            title.setHeight(inside.height() // 2 + px(2))
            below = inside.adjusted(0, title.height(), 0, -px(7))
            painter.setFont(font(12))
            painter.setPen(theme().color("muted"))
            text = painter.fontMetrics().elidedText(row.excerpt, Qt.TextElideMode.ElideRight, below.width())
            painter.drawText(below, _MIDDLE_LEFT, text)
        painter.setFont(font(13))
        painter.setPen(theme().color("text"))
        text = painter.fontMetrics().elidedText(row.text, Qt.TextElideMode.ElideRight, title.width())
        painter.drawText(title, _MIDDLE_LEFT, text)

    @staticmethod
    def _sign(painter: QPainter, place: QRect, name: str, color: str) -> None:
        size = px(16)
        square = QRect(0, 0, size, size)
        square.moveCenter(place.center())
        icon(name, color, size).paint(painter, square)

    @staticmethod
    def _activity(painter: QPainter, inside: QRect, activity: str) -> None:
        radius = px(4)
        center = QPoint(inside.right() - radius, inside.center().y())
        painter.setPen(theme().color("accent"))
        painter.setBrush(theme().color("accent") if activity == "answering" else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(center, radius, radius)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = QLineEdit(parent)
        editor.setAccessibleName(translate("Sidebar", "Title"))
        editor.setFont(font(13))
        return editor

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        rect: QRect = option.rect
        height = min(rect.height(), px(ROW))
        editor.setGeometry(rect.left(), rect.top(), rect.width(), height)


_MIDDLE_LEFT = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
_BOTTOM_LEFT = int(Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft)


def more_place(body: QRect) -> QRect:
    """The part of a row that opens its menu."""
    return QRect(body.right() - px(MORE), body.top(), px(MORE), body.height())


class ConversationList(QListView):
    """Enter or a click opens, F2 renames, Delete deletes, the menu key shows the rest."""

    opened = Signal(object)  # Row
    delete_wanted = Signal(str)
    undo_wanted = Signal()
    menu_wanted = Signal(object, QPoint)  # Row, a place on the screen

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("conversations")
        self.setAccessibleName(translate("Sidebar", "Conversations"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.delegate = RowDelegate(self)
        self.setItemDelegate(self.delegate)
        self.list_model = ConversationModel()
        self.list_model.setParent(self)
        self.setModel(self.list_model)
        self.clicked.connect(self._open)

    @property
    def is_renaming(self) -> bool:
        return self.state() is QAbstractItemView.State.EditingState

    def set_row_height(self, height: int) -> None:
        if height != self.delegate.row_height:
            self.delegate.row_height = height
            self.scheduleDelayedItemsLayout()

    def choose(self, id_: str) -> None:
        """Mark a conversation as the one that is shown."""
        place = self.list_model.place(id_)
        if not place.isValid():
            self.clearSelection()
        elif place != self.currentIndex() or not self.selectionModel().isSelected(place):
            self.setCurrentIndex(place)

    def rename(self, id_: str) -> None:
        self.setCurrentIndex(self.list_model.place(id_))
        self.edit(self.currentIndex())

    def _open(self, index: QModelIndex) -> None:
        if index.isValid() and (row := index.data(Role.ROW)).id:
            self.opened.emit(row)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        row = self.currentIndex().data(Role.ROW) if self.currentIndex().isValid() else None
        if self.is_renaming or row is None:
            super().keyPressEvent(event)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._open(self.currentIndex())
        elif event.key() == Qt.Key.Key_Delete:  # never Backspace: people hit it while they think they are typing
            self.delete_wanted.emit(row.id)
        elif event.key() == Qt.Key.Key_F2:
            self.edit(self.currentIndex())
        elif event.key() == Qt.Key.Key_Z and event.modifiers() == Qt.KeyboardModifier.ControlModifier:
            self.undo_wanted.emit()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        if (
            index.isValid()
            and event.button() == Qt.MouseButton.LeftButton
            and index.data(Role.ROW).id
            and more_place(self.visualRect(index)).contains(event.position().toPoint())
        ):
            self.menu_wanted.emit(index.data(Role.ROW), event.globalPosition().toPoint())
            return
        super().mousePressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        index = self.currentIndex() if by_key else self.indexAt(event.pos())
        if index.isValid() and (row := index.data(Role.ROW)).id:
            place = self.viewport().mapToGlobal(self.visualRect(index).center()) if by_key else event.globalPos()
            self.menu_wanted.emit(row, place)

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            index = self.indexAt(event.pos())
            row = index.data(Role.ROW) if index.isValid() else None
            width = self.viewport().width() - px(24)
            cut_off = row is not None and self.fontMetrics().horizontalAdvance(row.text) > width
            self.setToolTip(row.text if row is not None and row.id and cut_off else "")
        return super().viewportEvent(event)
