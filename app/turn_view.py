"""A question, notices about the context, the answer, how it ended, and what can be done with it.

Shows a `Turn`; changes nothing in it. Knows nothing of the other turns.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from app.answer_view import AnswerView
from app.column import fit
from app.conversation import Turn
from app.definitions import FIGURES, mode_name
from app.i18n import translate
from app.icons import icon
from app.question_view import QuestionView
from app.theme import font, px, theme, tip
from app.thinking import ThinkingView
from app.thoughts import part
from app.token_view import OriginsView
from app.typesetter import Typesetter

COPIED_MS = 1500  # how long the copy button says so


class TurnView(QWidget):
    ask_again = Signal(object)  # the turn
    edited = Signal(object, str)
    go_on = Signal(object)
    leaf = Signal(object, int)
    resized = Signal()

    def __init__(
        self,
        turn: Turn,
        typesetter: Typesetter | None = None,
        lazy: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        """`lazy`: only what `show_range` asks for is built."""
        super().__init__(parent)
        self.turn = turn
        self._typesetter = typesetter
        self._seen: object = None  # what was shown last
        self.question = QuestionView(turn.question, self)
        self.thinking: ThinkingView | None = None
        self.answer = AnswerView(typesetter, self)
        self.answer.setAccessibleName(translate("Answer", "Answer"))
        self._lazy = lazy
        if lazy:
            self.answer.show_range(0, 0, 0.0)
        self.origins: OriginsView | None = None  # in the answer's place, while it is wanted
        self.waiting = label("muted", "…", 15, self)
        self.note = label("muted", "", 13, self)
        self.bar = Actions(self)
        self.copy, self.again = self.bar.copy, self.bar.again
        self._notices: list[QLabel] = []
        self._copied = QTimer(self)
        self._copied.setSingleShot(True)
        self._copied.timeout.connect(lambda: self.copy.setText(translate("Answer", "Copy")))
        self.copy.clicked.connect(self._copy)
        self.again.clicked.connect(lambda: self.ask_again.emit(self.turn))
        self.bar.further.clicked.connect(lambda: self.go_on.emit(self.turn))
        self.bar.earlier.clicked.connect(lambda: self.leaf.emit(self.turn, -1))
        self.bar.later.clicked.connect(lambda: self.leaf.emit(self.turn, 1))
        self.question.edited.connect(lambda text: self.edited.emit(self.turn, text))
        self.question.resized.connect(self.resized)
        self.answer.resized.connect(self.resized)
        self.refresh(is_last=True, idle=False)

    def refresh(self, is_last: bool, idle: bool, origins: bool = False) -> bool:
        """Show the turn as it is now; whether it looks different. `idle`: the engine could answer again."""
        turn = self.turn
        state = (
            len(turn.answer), len(turn.notices), turn.note, turn.wait, turn.ended, turn.statistics, len(turn.siblings),
            turn.place, turn.can_continue, is_last, idle, origins, len(turn.tokens) if origins else 0,
        )  # fmt: skip
        if state == self._seen and (turn.ended or not turn.answer):
            return False
        self._seen = state
        for sentence in turn.notices[len(self._notices) :]:
            notice = label("warning", sentence, 13, self)
            notice.setObjectName("notice")
            notice.setContentsMargins(px(14), px(8), px(14), px(8))
            notice.show()
            self._notices.append(notice)
        parted = part(turn.answer)
        self._show_thought(parted.thought, parted.thinking)
        self.answer.set_text(parted.answer)
        self._show_origins(origins and bool(turn.tokens))
        self.answer.setVisible(bool(parted.answer) and self.origins is None)
        self.waiting.setText(turn.wait or "…")
        self.waiting.setVisible(not turn.answer and not turn.ended)
        self.note.setText(turn.note)
        self.note.setVisible(bool(turn.note))
        self.question.set_editable(idle)
        self.bar.setVisible(turn.ended or len(turn.siblings) > 1)
        self.bar.show_turn(turn, idle)
        return True

    def _show_thought(self, text: str | None, thinking: bool) -> None:
        if text is None:
            if self.thinking is not None:
                self.thinking.hide()
            return
        if self.thinking is None:
            self.thinking = ThinkingView(self._typesetter, self._lazy, self)
            self.thinking.resized.connect(self.resized)
        self.thinking.show_thought(text, thinking and not self.turn.ended, self.turn.thought_seconds)
        self.thinking.show()

    def _show_origins(self, wanted: bool) -> None:
        if wanted:
            if self.origins is None:
                self.origins = OriginsView(self)
                self.origins.resized.connect(self.resized)
                if self._lazy:
                    self.origins.show_range(0, 0, 0.0)
                self.origins.show()
            self.origins.set_tokens(self.turn.answer, self.turn.tokens)
        elif self.origins is not None:
            self.origins.hide()
            self.origins.deleteLater()
            self.origins = None

    # --- size

    def _rows(self) -> list[tuple[QWidget, int]]:
        """What is shown, from top to bottom, each with the gap above it."""
        thinking = [self.thinking] if self.thinking is not None else []
        answer = self.origins if self.origins is not None else self.answer
        rows: list[tuple[QWidget, int]] = [(self.question, 0)]
        rows += [(widget, px(14)) for widget in (*self._notices, *thinking, self.waiting, answer, self.note)]
        return [(widget, gap) for widget, gap in [*rows, (self.bar, px(12))] if not widget.isHidden()]

    def fit(self, width: int) -> int:
        y = 0
        for widget, gap in self._rows():
            y += gap
            height = fit(widget, width)
            widget.move(0, y)
            y += height
        self.resize(width, y)
        return y

    def show_range(self, top: int, bottom: int, until: float) -> bool:
        built = False
        for widget, _ in self._rows():
            if hasattr(widget, "show_range"):
                built = widget.show_range(top - widget.y(), bottom - widget.y(), until) or built
        return built

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self.fit(self.width())

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(part(self.turn.answer).answer)
        self.copy.setText(translate("Answer", "Copied"))
        self._copied.start(COPIED_MS)
        self.bar.fit(self.bar.width())


class Actions(QWidget):
    """What can be done with an answer, and how it was made. Two lines where there is no room for one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.copy = quiet_button(translate("Answer", "Copy"), translate("Answer", "Copy this answer"), self)
        self.again = quiet_button(
            translate("Answer", "Ask again"), translate("Answer", "Ask this question again"), self
        )
        self.further = quiet_button(
            translate("Answer", "Continue"), translate("Answer", "Let the model go on with this answer"), self
        )
        self.earlier = _arrow(translate("Answer", "Show the version before"), self)
        self.place = label("muted", "", 12, self)
        self.place.setWordWrap(False)
        self.later = _arrow(translate("Answer", "Show the version after"), self)
        self.figures = label("muted", "", 12, self)

    def show_turn(self, turn: Turn, idle: bool) -> None:
        count, place = len(turn.siblings), turn.place
        self.copy.setVisible(turn.ended and bool(turn.answer))
        self.again.setVisible(turn.ended and idle)
        self.further.setVisible(turn.can_continue and idle)
        for widget in (self.earlier, self.place, self.later):
            widget.setVisible(count > 1)
        self.place.setText(f"{place + 1}/{count}")
        self.place.setAccessibleName(
            translate("Answer", "Version {place} of {count}").format(place=place + 1, count=count)
        )
        if count > 1 and self.earlier.icon().isNull():
            self._color_icons()
        self.earlier.setEnabled(idle and place > 0)
        self.later.setEnabled(idle and place < count - 1)
        self.figures.setText(_figures(turn))
        self.figures.setVisible(bool(self.figures.text()))
        self.figures.setToolTip(_figures_tip() if turn.statistics else "")

    def fit(self, width: int) -> int:
        x, height = 0, px(22)
        for widget in (self.earlier, self.place, self.later, self.copy, self.again, self.further):
            if not widget.isHidden():
                size = widget.sizeHint().expandedTo(widget.minimumSize()).boundedTo(widget.maximumSize())
                widget.setGeometry(x, (height - size.height()) // 2, size.width(), size.height())
                x += size.width() + (px(2) if widget in (self.earlier, self.place) else px(16))
        if not self.figures.isHidden():
            wanted = self.figures.fontMetrics().horizontalAdvance(self.figures.text()) + px(4)
            own_line = x + wanted > width and x > 0
            place = 0 if own_line else x
            tall = max(px(18), self.figures.heightForWidth(width - place))
            y = height + px(4) if own_line else (height - px(18)) // 2 + px(1)  # on the buttons' base line
            self.figures.setGeometry(place, y, width - place, tall)
            height = max(height, y + tall)
        self.resize(width, height)
        return height

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "later") and not self.later.icon().isNull():
            self._color_icons()

    def _color_icons(self) -> None:
        self.earlier.setIcon(icon("left", theme().muted, 16))
        self.later.setIcon(icon("right", theme().muted, 16))


def label(role: str, text: str, size: float, parent: QWidget) -> QLabel:
    made = QLabel(text, parent)
    made.setProperty("role", role)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setWordWrap(True)
    made.setFont(font(size))
    made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return made


def quiet_button(text: str, name: str, parent: QWidget) -> QPushButton:
    button = QPushButton(text, parent)
    button.setAccessibleName(name)
    button.setToolTip(name)
    button.setProperty("role", "quiet")
    button.setFont(font(12))
    return button


def _arrow(name: str, parent: QWidget) -> QPushButton:
    button = QPushButton(parent)
    button.setAccessibleName(name)
    button.setToolTip(name)
    button.setProperty("role", "bare")
    button.setFixedSize(px(22), px(22))
    button.setIconSize(QSize(px(14), px(14)))
    return button


def _figures(turn: Turn) -> str:
    """One line under an answer: how it was decoded and how fast."""
    if turn.statistics is None:
        return ""
    parts = [mode_name(turn.statistics.mode)]
    if turn.statistics.tokens_per_second is not None:
        parts.append(FIGURES["tokens_per_second"].with_unit(turn.statistics.tokens_per_second))
    if turn.statistics.acceptance_length is not None:
        figure = FIGURES["acceptance_length"]
        parts.append(
            translate("Answer", "acceptance length {length}").format(
                length=figure.text(turn.statistics.acceptance_length)
            )
        )
    return "  ·  ".join(parts)


def _figures_tip() -> str:
    names = ("tokens_per_second", "acceptance_length")
    return tip("\n".join(f"{FIGURES[name].label}: {FIGURES[name].meaning}" for name in names))
