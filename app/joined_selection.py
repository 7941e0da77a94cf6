"""A selection that goes on from one text view to the next, in a column of them.

The view in which the mouse was pressed keeps the keyboard; what is copied there is copied from all of them, in order.
Knows nothing of what the texts are.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QPoint
from PySide6.QtGui import QTextCursor

from app.text_view import TextView

_KEEP = QTextCursor.MoveMode.KeepAnchor


class JoinedSelection(QObject):
    """`views`: those that exist, from top to bottom. `chosen`: the text that is selected in all of them."""

    def __init__(
        self, views: Callable[[], list[TextView]], chosen: Callable[[], str], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._views = views
        self._chosen = chosen

    def join(self, view: TextView) -> None:
        view.joined = self._copied
        view.pressed.connect(self._pressed)
        view.dragged.connect(self._dragged)
        view.all_wanted.connect(self._select_all)

    def _copied(self) -> str | None:
        """None: a single view has a selection, and knows better."""
        return self._chosen() if sum(view.textCursor().hasSelection() for view in self._views()) > 1 else None

    def _pressed(self) -> None:
        for view in self._views():
            if view is not self.sender():
                _clear(view)

    def _dragged(self, place: QPoint) -> None:
        """`place`: where the mouse is, of the screen."""
        views, origin = self._views(), self.sender()
        if origin not in views:
            return
        start = next(number for number, view in enumerate(views) if view is origin)
        inside = [number for number, view in enumerate(views) if view.mapFromGlobal(place).y() >= 0]
        end = inside[-1] if inside else 0
        down = end > start
        for number, view in enumerate(views):
            if not min(start, end) <= number <= max(start, end):
                _clear(view)
            elif number == start:
                if end != start:
                    _extend(view, view.textCursor().anchor(), _end(view) if down else 0)
            elif number == end:
                here = view.cursorForPosition(view.mapFromGlobal(place)).position()
                _extend(view, 0 if down else _end(view), here)
            else:
                _extend(view, 0, _end(view))

    def _select_all(self) -> None:
        for view in self._views():
            _extend(view, 0, _end(view))


def _end(view: TextView) -> int:
    return view.document().characterCount() - 1


def _clear(view: TextView) -> None:
    cursor = view.textCursor()
    if cursor.hasSelection():
        cursor.clearSelection()
        view.setTextCursor(cursor)


def _extend(view: TextView, anchor: int, position: int) -> None:
    cursor = view.textCursor()
    if (cursor.anchor(), cursor.position()) != (anchor, position):
        cursor.setPosition(anchor)
        cursor.setPosition(position, _KEEP)
        view.setTextCursor(cursor)
