"""The conversation on the screen: a column of questions and answers that follows the newest text while its reader does.

Shows a `Conversation`; changes nothing in it. Knows nothing of the engine.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.answer_view import AnswerView
from app.conversation import Conversation, Turn
from app.definitions import FIGURES
from app.icons import icon
from app.text_view import VerbatimView
from app.theme import font, px, theme
from engine.stats import MODE_NAMES

COLUMN_WIDTH = 760  # logical pixels: longer lines are hard to read
COPIED_MS = 1500  # how long the copy button says so


class QuestionView(QWidget):
    """The user's own words, as typed, in a bubble no wider than they need."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = VerbatimView()
        self.view.set_text(text)
        self.view.setAccessibleName("Your message")
        self._bubble = QFrame()
        self._bubble.setObjectName("bubble")
        inside = QVBoxLayout(self._bubble)
        inside.setContentsMargins(px(16), px(11), px(16), px(5))  # a line has its leading below
        inside.addWidget(self.view)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self._bubble)
        self._natural = self.view.natural_width() + px(32)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._bubble.setFixedWidth(min(self._natural, round(0.82 * self.width())))


class TurnView(QWidget):
    """A question, notices about the context, the answer, how it ended, and what can be done with it."""

    ask_again = Signal()

    def __init__(self, turn: Turn, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.turn = turn
        self.question = QuestionView(turn.question)
        self.answer = AnswerView()
        self.answer.setAccessibleName("Answer")
        self.waiting = _label("muted", "…", 15)
        self.note = _label("muted", "", 13)
        self.figures = _label("muted", "", 12)
        self.copy = _quiet_button("Copy", "Copy this answer")
        self.again = _quiet_button("Ask again", "Ask this question again")
        self._notices: list[QLabel] = []
        self._copied = QTimer(self)
        self._copied.setSingleShot(True)
        self._copied.timeout.connect(lambda: self.copy.setText("Copy"))
        self.copy.clicked.connect(self._copy)
        self.again.clicked.connect(self.ask_again)

        self._actions = QWidget()
        row = QHBoxLayout(self._actions)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(px(16))
        row.addWidget(self.copy)
        row.addWidget(self.again)
        row.addWidget(self.figures, 1)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(px(14))
        self._column.addWidget(self.question)
        for widget in (self.waiting, self.answer, self.note, self._actions):
            self._column.addWidget(widget)
        self.refresh(is_last=True, idle=False)

    def refresh(self, is_last: bool, idle: bool) -> None:
        """Show the turn as it is now. `idle`: the engine could answer again."""
        turn = self.turn
        for sentence in turn.notices[len(self._notices) :]:
            notice = _label("warning", sentence, 13)
            notice.setObjectName("notice")
            notice.setContentsMargins(px(14), px(8), px(14), px(8))
            self._notices.append(notice)
            self._column.insertWidget(len(self._notices), notice)
        self.answer.set_text(turn.answer)
        self.answer.setVisible(bool(turn.answer))
        self.waiting.setVisible(not turn.answer and not turn.ended)
        self.note.setText(turn.note)
        self.note.setVisible(bool(turn.note))
        self._actions.setVisible(turn.ended)
        self.copy.setVisible(bool(turn.answer))
        self.again.setVisible(is_last and idle)
        self.figures.setText(_figures(turn))
        self.figures.setToolTip(self._figures_tip() if turn.statistics else "")

    def _figures_tip(self) -> str:
        names = ("tokens_per_second", "acceptance_length")
        return "\n".join(f"{FIGURES[name].label}: {FIGURES[name].meaning}" for name in names)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.turn.answer)
        self.copy.setText("Copied")
        self._copied.start(COPIED_MS)


class ConversationView(QScrollArea):
    """All turns. Follows the newest text while the reader is at the bottom; otherwise stays where they scrolled to."""

    ask_again = Signal()  # the last question

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("conversation")
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Conversation")
        self.views: list[TurnView] = []
        self.following = True
        self._page = QWidget()
        self._page.setObjectName("column")
        self._column = QWidget()
        self._column.setMaximumWidth(px(COLUMN_WIDTH))
        self._turns = QVBoxLayout(self._column)
        self._turns.setContentsMargins(0, 0, 0, 0)
        self._turns.setSpacing(px(36))
        page = QVBoxLayout(self._page)
        page.setContentsMargins(px(28), px(28), px(28), px(28))
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self._column, 1000)
        row.addStretch(1)
        page.addLayout(row)
        page.addStretch(1)
        self.setWidget(self._page)

        self._newest = QPushButton(self)
        self._newest.setAccessibleName("Go to the newest text")
        self._newest.setToolTip("Go to the newest text")
        self._newest.setProperty("role", "float")
        self._newest.setFixedSize(px(34), px(34))
        self._newest.hide()
        self._newest.clicked.connect(self.go_to_newest)
        self._color_icons()
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._scrolled)
        bar.rangeChanged.connect(self._grown)

    # --- content

    def show_conversation(self, conversation: Conversation, idle: bool) -> None:
        """Bring the screen up to date; only what changed is touched."""
        turns = conversation.turns
        kept = 0
        while kept < min(len(turns), len(self.views)) and self.views[kept].turn is turns[kept]:
            kept += 1
        for view in self.views[kept:]:
            self._turns.removeWidget(view)
            view.hide()
            view.deleteLater()
        unchanged = min(kept, len(self.views) - 1, len(turns) - 1)  # the last one, old or new, may look different now
        del self.views[kept:]
        for turn in turns[kept:]:
            view = TurnView(turn)
            view.ask_again.connect(self.ask_again)
            self._turns.addWidget(view)
            self.views.append(view)
        for number in range(max(0, unchanged - 1), len(self.views)):
            self.views[number].refresh(is_last=number == len(self.views) - 1, idle=idle)

    # --- following

    def go_to_newest(self) -> None:
        self.following = True
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
        self._newest.hide()

    def _scrolled(self, value: int) -> None:
        self.following = value >= self.verticalScrollBar().maximum() - px(4)
        self._newest.setVisible(not self.following)

    def _grown(self, _minimum: int, maximum: int) -> None:
        if self.following:
            self.verticalScrollBar().setValue(maximum)
        else:
            self._newest.setVisible(maximum > 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        follow = self.following
        super().resizeEvent(event)
        self._newest.move((self.width() - self._newest.width()) // 2, self.height() - self._newest.height() - px(12))
        if follow:
            self.go_to_newest()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_newest"):
            self._color_icons()

    def _color_icons(self) -> None:
        self._newest.setIcon(icon("down", theme().text))


def _label(role: str, text: str, size: float) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", role)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setFont(font(size))
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def _quiet_button(text: str, name: str) -> QPushButton:
    button = QPushButton(text)
    button.setAccessibleName(name)
    button.setProperty("role", "quiet")
    button.setFont(font(12))
    return button


def _figures(turn: Turn) -> str:
    """One line under an answer: how it was decoded and how fast."""
    if turn.statistics is None:
        return ""
    parts = [MODE_NAMES[turn.statistics.mode]]
    if turn.statistics.tokens_per_second is not None:
        parts.append(f"{FIGURES['tokens_per_second'].text(turn.statistics.tokens_per_second)} tokens/s")
    if turn.statistics.acceptance_length is not None:
        parts.append(f"acceptance length {FIGURES['acceptance_length'].text(turn.statistics.acceptance_length)}")
    return "  ·  ".join(parts)
