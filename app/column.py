"""A column of parts of which only those near the reader exist as widgets; the others have a height that is estimated.

Columns may stand in columns. Placed by hand, since Qt's layouts would ask every part again for every line of text that
streams in. Knows nothing of what the parts show, and of scrolling.
"""

from __future__ import annotations

from bisect import bisect_right
from time import perf_counter
from typing import Protocol, cast

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QTextEdit, QWidget

from app.joined_selection import JoinedSelection
from app.text_view import TextView


class Fitting(Protocol):
    """A widget that takes a width, in logical pixels, and answers with the height it then has."""

    def fit(self, width: int) -> int: ...


def fit(widget: QWidget, width: int) -> int:
    """`Fitting` for any widget."""
    if hasattr(widget, "fit"):
        return cast(Fitting, widget).fit(width)
    if isinstance(widget, QLabel) and widget.wordWrap():
        height = widget.heightForWidth(width)
    else:
        height = widget.sizeHint().height()
    widget.resize(width, height)
    return height


class Part:
    """A piece of a column. `widget` is there while it is near the reader."""

    widget: QWidget | None = None
    indent = 0  # from the left
    gap = 0  # above, but not above the first one
    top = 0
    height = 0
    joint = "\n\n"  # what stands between its text and that of the part above
    fitted = 0  # the width for which the height is right, or estimated

    def build(self, parent: QWidget) -> QWidget:
        raise NotImplementedError

    def estimate(self, width: int) -> int:
        """A height for this width, without a widget."""
        raise NotImplementedError

    def chosen_text(self) -> str:
        """What is selected in it, where more is selected than that."""
        view = self.text_view
        return view.chosen_text() if view is not None and view.textCursor().hasSelection() else ""

    @property
    def text_view(self) -> TextView | None:
        """The text in it, if it is one."""
        inner = getattr(self.widget, "view", self.widget)
        return inner if isinstance(inner, TextView) else None

    def may_go(self) -> bool:
        """The widget holds nothing that would be missed: no keyboard focus, no selection."""
        widget = self.widget
        if widget is None or widget.hasFocus() or widget.isAncestorOf(_focus(widget)):
            return False
        return not any(text.textCursor().hasSelection() for text in widget.findChildren(QTextEdit))


def _focus(widget: QWidget) -> QWidget:
    return widget.window().focusWidget() or widget


class Column(QWidget):
    """Until `show_range` is called, every part has its widget."""

    resized = Signal()  # it wants another height than it has

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.parts: list[Part] = []
        self._tops: list[int] = []
        self._range: tuple[int, int] | None = None
        self._width = 0
        self._dirty = 0  # the first part whose place may have changed
        self._height = 0
        self._busy = False  # heights change because we ask for it
        self._built: list[Part] = []
        self._selection = JoinedSelection(self._text_views, self._chosen, self)

    # --- parts

    def put(self, start: int, parts: list[Part]) -> None:
        """Replace the parts from `start` on; those that stay are the same objects."""
        staying = set(map(id, parts))
        for part in self.parts[start:]:
            if id(part) not in staying:
                self._drop(part)
        self.parts[start:] = parts
        del self._tops[start:]
        self._tops += [0] * len(parts)
        self._dirty = min(self._dirty, start)
        if self._range is None:
            for part in parts:
                self._build(part)

    def touch(self, part: Part) -> None:
        """Its content has changed."""
        part.fitted = 0
        self._dirty = min(self._dirty, self.parts.index(part))

    def at(self, y: int) -> int:
        """The number of the part at this height; the first or the last one beyond the ends."""
        return max(0, bisect_right(self._tops, y) - 1)

    # --- places

    def fit(self, width: int) -> int:
        if width != self._width:
            self._width, self._dirty = width, 0
        self._busy = True
        first = self._dirty
        for number in range(first, len(self.parts)):
            part = self.parts[number]
            if part.fitted != width:
                room = width - part.indent
                part.height = fit(part.widget, room) if part.widget is not None else part.estimate(room)
                part.fitted = width
            before = self.parts[number - 1] if number else None
            top = self._tops[number - 1] + before.height + part.gap if before is not None else 0
            self._tops[number] = part.top = top
            if part.widget is not None:
                part.widget.move(part.indent, top)
        self._dirty = len(self.parts)
        self._height = self._tops[-1] + self.parts[-1].height if self.parts else 0
        self.resize(width, self._height)
        self._busy = False
        return self._height

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self._busy and self.width() != self._width:
            self.fit(self.width())

    def sizeHint(self) -> QSize:
        return QSize(self._width, self._height)

    def _part_resized(self) -> None:
        widget = self.sender()
        for part in self._built:
            if part.widget is widget and not self._busy:
                self.touch(part)
                self.resized.emit()
                return

    # --- what exists

    def show_range(self, top: int, bottom: int, until: float) -> bool:
        """Have widgets from `top` to `bottom`, if that can be done by `until` (of `perf_counter`), and few elsewhere.

        Returns whether something was built; then `fit` has to be called, and this again.
        """
        self._range = (top, bottom)
        away = (bottom - top) // 2
        for part in list(self._built):
            if (part.top > bottom + away or part.top + part.height < top - away) and part.may_go():
                self._drop(part)
        built = False
        number = self.at(top)
        while number < len(self.parts) and self._tops[number] <= bottom:
            part = self.parts[number]
            if part.top + part.height < top:  # the gap below it is near, at most
                number += 1
                continue
            new = part.widget is None
            if new:
                if built and perf_counter() > until:
                    return True
                self._build(part)
                self._busy = True
                fit(cast(QWidget, part.widget), max(1, self._width - part.indent))
                self._busy = False
            changed = new
            if part.widget is not None and hasattr(part.widget, "show_range"):
                changed = part.widget.show_range(top - part.top, bottom - part.top, until) or changed
            if changed:
                part.fitted = 0
                self._dirty = min(self._dirty, number)
            built = built or changed
            number += 1
        return built

    def _build(self, part: Part) -> None:
        if part.widget is None:
            part.widget = part.build(self)
            part.widget.show()
            part.fitted = 0
            self._built.append(part)
            if (view := part.text_view) is not None:
                self._selection.join(view)
            if hasattr(part.widget, "resized"):
                part.widget.resized.connect(self._part_resized)

    def _drop(self, part: Part) -> None:
        if part.widget is not None:
            self._built.remove(part)
            part.widget.hide()
            part.widget.deleteLater()
            part.widget = None

    def _text_views(self) -> list[TextView]:
        return [view for part in self.built if (view := part.text_view) is not None]

    def _chosen(self) -> str:
        text = ""
        for part in self.built:
            if chosen := part.chosen_text():
                text += (part.joint if text else "") + chosen
        return text

    @property
    def built(self) -> list[Part]:
        """The parts that have a widget, from top to bottom."""
        return sorted(self._built, key=lambda part: part.top)
