"""The conversation on the screen: a column of questions and answers that follows the newest text while its reader does.

Only the turns near the reader exist as widgets. Shows a `Conversation`; changes nothing in it. Knows nothing of the
engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QPushButton, QScrollArea, QWidget

from app.column import Column, Part
from app.conversation import Conversation, Turn
from app.i18n import translate
from app.icons import icon
from app.question_view import QuestionView
from app.theme import code_font, font, px, theme
from app.token_view import Legend
from app.turn_view import TurnView
from app.typesetter import Typesetter

__all__ = ["COLUMN_WIDTH", "ConversationView", "QuestionView", "TurnView"]

COLUMN_WIDTH = 760  # logical pixels: longer lines are hard to read
MARGIN = 28
NEAR = 0.7  # of a screen: so far beyond the edges widgets exist
SLICE_S = 0.012  # of building at a time


class TurnPart(Part):
    def __init__(self, view: ConversationView, turn: Turn) -> None:
        self.gap = view.gap
        self.turn = turn
        self._view = view

    def build(self, parent: QWidget) -> QWidget:
        return self._view.make(self.turn, parent)

    def estimate(self, width: int) -> int:
        turn = self.turn  # one of thousands, perhaps: nothing exact
        return 5 * self.gap + (len(turn.question) + len(turn.answer)) * self._view.letter // width

    def may_go(self) -> bool:
        return super().may_go() and not (isinstance(self.widget, TurnView) and self.widget.question.editing)


class ConversationView(QScrollArea):
    """All turns. Follows the newest text while the reader is at the bottom; otherwise stays where they scrolled to."""

    ask_again = Signal(object)  # a turn
    edited = Signal(object, str)  # a turn, and its new question
    go_on = Signal(object)  # a turn whose answer is to be continued
    leaf = Signal(object, int)  # a turn, and -1 or 1: show the version before or after it

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("conversation")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.following = True
        self._idle = False
        self._origins = False
        self._arranging = False
        self._conversation: Conversation | None = None
        self._set_sizes()
        self._typesetter = Typesetter(self)
        self._page = QWidget()
        self._page.setObjectName("column")
        self._turns = Column(self._page)
        self._turns.show_range(0, 0, 0.0)
        self._turns.resized.connect(self._arrange_soon)
        self.setWidget(self._page)
        self.legend = Legend(self)
        self.legend.hide()
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self._arrange)

        self._newest = QPushButton(self)
        self._newest.setProperty("role", "float")
        self._newest.setFixedSize(px(34), px(34))
        self._newest.hide()
        self._newest.clicked.connect(self.go_to_newest)
        self._name()
        self._color_icons()
        self.verticalScrollBar().valueChanged.connect(self._scrolled)

    # --- content

    @property
    def views(self) -> list[TurnView]:
        """The turns that have a widget, oldest first."""
        return [part.widget for part in self._turns.built if isinstance(part.widget, TurnView)]

    def show_conversation(self, conversation: Conversation, idle: bool) -> None:
        """Bring the screen up to date; only what changed is touched. `idle`: the engine could answer."""
        if conversation is not self._conversation:
            self._conversation, self.following = conversation, True
        self._idle = idle
        turns, parts = conversation.turns, self._turns.parts
        kept = 0
        for part, turn in zip(parts, turns):
            if not (isinstance(part, TurnPart) and part.turn is turn):
                break
            kept += 1
        with self._quiet():
            if kept < len(parts) or kept < len(turns):
                self._turns.put(kept, [TurnPart(self, turn) for turn in turns[kept:]])
            self._refresh()
        self._arrange()

    def show_origins(self, shown: bool) -> None:
        """Whether answers are coloured by where their tokens came from."""
        self._origins = shown
        self.legend.setVisible(shown)
        self._place_legend()
        with self._quiet():
            self._refresh()
        self._arrange()

    @property
    def shows_origins(self) -> bool:
        return self._origins

    def make(self, turn: Turn, parent: QWidget) -> TurnView:
        view = TurnView(turn, self._typesetter, lazy=True, parent=parent)
        view.ask_again.connect(self.ask_again)
        view.edited.connect(self.edited)
        view.go_on.connect(self.go_on)
        view.leaf.connect(self.leaf)
        last = self._turns.parts[-1]
        view.refresh(isinstance(last, TurnPart) and last.turn is turn, self._idle, self._origins)
        return view

    def _refresh(self) -> None:
        for part in self._turns.built:
            view = part.widget
            if isinstance(view, TurnView) and view.refresh(part is self._turns.parts[-1], self._idle, self._origins):
                self._turns.touch(part)

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Heights that change inside are looked at afterwards."""
        before, self._arranging = self._arranging, True
        yield
        self._arranging = before

    # --- places

    def _arrange(self) -> None:
        """Put every turn in its place, build those that are near the reader, and keep what they read where it is."""
        if self._arranging:
            return
        end = perf_counter() + SLICE_S
        with self._quiet():
            self._place()
            while True:
                top, height = self.verticalScrollBar().value(), self.viewport().height()
                near = round(NEAR * height)
                offset = self._turns.y()
                if not self._turns.show_range(top - near - offset, top + height + near - offset, end):
                    break
                self._place()
                if perf_counter() > end:
                    self._later.start(0)
                    break

    def _arrange_soon(self) -> None:
        if not self._later.isActive():
            self._later.start(0)

    def _place(self) -> None:
        anchor = self._anchor()
        room = self.width() - self.verticalScrollBar().sizeHint().width()  # be it there or not
        width = max(px(120), min(px(COLUMN_WIDTH), room - 2 * px(MARGIN)))
        height = self._turns.fit(width)
        self._turns.move((room - width) // 2, px(MARGIN))
        self._page.resize(self.viewport().width(), max(height + 2 * px(MARGIN), self.viewport().height()))
        bar = self.verticalScrollBar()
        if self.following:
            bar.setValue(bar.maximum())
        elif anchor is not None:
            widget, above = anchor
            bar.setValue(widget.mapTo(self._page, QPoint(0, 0)).y() + above)
        self._newest.setVisible(not self.following and bar.maximum() > 0)

    def _anchor(self) -> tuple[QWidget, int] | None:
        """The widget at the top of the screen, and how much of it is above."""
        top = self.verticalScrollBar().value()
        column: Column | None = self._turns
        found = None
        while column is not None:
            y = top - column.mapTo(self._page, QPoint(0, 0)).y()
            widget = next(
                (one.widget for one in column.built if one.widget is not None and _reaches(one.widget, y)), None
            )
            if widget is None:
                break
            found = (widget, top - widget.mapTo(self._page, QPoint(0, 0)).y())
            answer = widget.answer if isinstance(widget, TurnView) and not widget.answer.isHidden() else None
            column = answer if answer is not None and _reaches(answer, y - widget.y()) and answer.y() < y else None
        return found

    # --- following

    def go_to_newest(self) -> None:
        self.following = True
        self._arrange()

    def go_to(self, turn: Turn) -> None:
        """Bring the beginning of a turn to the top of the screen."""
        part = next((part for part in self._turns.parts if isinstance(part, TurnPart) and part.turn is turn), None)
        if part is not None:
            self.following = False
            self._arrange()
            for _ in range(8):  # what is built there then may have another height than was thought
                self.verticalScrollBar().setValue(part.top + px(MARGIN) - px(12))

    def _scrolled(self, value: int) -> None:
        if not self._arranging:
            self.following = value >= self.verticalScrollBar().maximum() - px(4)
            self._newest.setVisible(not self.following)
            self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        with self._quiet():
            super().resizeEvent(event)
        self._newest.move((self.width() - self._newest.width()) // 2, self.height() - self._newest.height() - px(12))
        self._place_legend()
        self._arrange()

    def _place_legend(self) -> None:
        self.setViewportMargins(0, self.legend.fit(self.width()) if self._origins else 0, 0, 0)

    # --- keys

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab goes from top to bottom, in whatever order the widgets were made."""
        stops = [one for one in self._page.findChildren(QWidget) if _is_stop(one)]
        stops.sort(key=lambda one: (lambda place: (place.y(), place.x()))(one.mapTo(self._page, QPoint(0, 0))))
        focus = self.focusWidget()
        if self._page.isAncestorOf(focus) and focus in stops:
            number = stops.index(focus) + (1 if forward else -1)
        else:
            number = 0 if forward and self.hasFocus() else -1
        if not 0 <= number < len(stops):
            return super().focusNextPrevChild(forward)
        stops[number].setFocus(Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason)
        self.ensureWidgetVisible(stops[number])
        return True

    # --- the window's moods

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if not hasattr(self, "_newest"):
            return
        if event.type() == QEvent.Type.LanguageChange:
            self._name()
            self._rebuild()
        elif event.type() in (QEvent.Type.PaletteChange, QEvent.Type.StyleChange, QEvent.Type.FontChange):
            self._color_icons()
            if self._sizes != _sizes():
                self._set_sizes()
                self._rebuild()

    def _rebuild(self) -> None:
        """Widgets that exist keep the sizes and the language they were made with."""
        turns = [part.turn for part in self._turns.parts if isinstance(part, TurnPart)]
        self._turns.put(0, [TurnPart(self, turn) for turn in turns])
        self.legend.deleteLater()
        self.legend = Legend(self)
        self.legend.setVisible(self._origins)
        self._place_legend()
        self._later.start(0)

    def _name(self) -> None:
        self.setAccessibleName(translate("Conversation", "Conversation"))
        self._newest.setAccessibleName(translate("Conversation", "Go to the newest text"))
        self._newest.setToolTip(translate("Conversation", "Go to the newest text"))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._typesetter.resume()
        self._arrange()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if not event.spontaneous():
            self._typesetter.stop()

    def _set_sizes(self) -> None:
        self._sizes = _sizes()
        self.gap = px(36)  # between turns
        self.letter = px(28) * px(8)  # about the area that a letter takes

    def _color_icons(self) -> None:
        self._newest.setIcon(icon("down", theme().text))


def _reaches(widget: QWidget, y: int) -> bool:
    return widget.y() + widget.height() > y


def _is_stop(widget: QWidget) -> bool:
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and widget.isVisible() and widget.isEnabled()


def _sizes() -> tuple[int, str, str]:
    """Whatever widgets do not follow by themselves."""
    return px(100), font().toString(), code_font().toString()
