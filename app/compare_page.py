"""The Compare page: one question in the three modes side by side, or the whole suite, with progress and a stop.

Shows a `Comparison` and says what the user wants. Computes nothing.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QProgressBar, QScrollArea, QSpinBox, QVBoxLayout, QWidget

from app.compare_control import CompareControl
from app.compare_parts import ModeColumn, Outcome, plain_label, role_button
from app.compare_state import Comparison, Phase
from app.definitions import mode_name
from app.engine_words import in_words
from app.i18n import translate
from app.input_box import InputBox
from app.model_parts import IconButton
from app.theme import px, tip
from engine.events import Mode

USUAL_TOKENS, MOST_TOKENS = 128, 4096
NARROW = 700  # logical pixels, below which three answers do not fit side by side


class ComparePage(QScrollArea):
    """May be made again for the same control at any time."""

    closed = Signal()  # the page is to give way to the chat

    def __init__(self, control: CompareControl, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("conversation")
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._control = control
        self._can_start = True
        page = QWidget()
        page.setObjectName("column")
        self._rows = QVBoxLayout(page)
        self._rows.setContentsMargins(px(28), px(22), px(28), px(24))
        self._rows.setSpacing(px(14))
        self._add_head()
        self._add_question()
        self._add_progress()
        self._add_columns()
        self.outcome = Outcome()
        self._rows.addWidget(self.outcome)
        self._rows.addStretch(1)
        self.setWidget(page)
        control.changed.connect(self._show)
        self._show()

    # --- building

    def _add_head(self) -> None:
        title = plain_label(20, bold=True)
        title.setText(translate("Compare", "Compare the modes"))
        words = plain_label(13, "muted")
        words.setText(
            translate(
                "Compare",
                "The same question in the three modes, one after another, each in a fresh engine process. What the "
                "model says is the same; what differs is how long it takes.",
            )
        )
        close = IconButton("close", translate("Compare", "Back to the chat"))
        close.clicked.connect(self.closed)
        row = QHBoxLayout()
        row.addWidget(title, 1)
        row.addWidget(close)
        self._rows.addLayout(row)
        self._rows.addWidget(words)

    def _add_question(self) -> None:
        self.question = InputBox()
        self.question.setPlaceholderText(translate("Compare", "A question of your own"))
        self.question.setAccessibleName(translate("Compare", "Question to compare"))
        self.question.submitted.connect(self._ask)
        frame = QFrame()
        frame.setObjectName("inputFrame")
        inside = QVBoxLayout(frame)
        inside.setContentsMargins(px(14), px(10), px(14), px(10))
        inside.addWidget(self.question)
        self.tokens = QSpinBox()
        self.tokens.lineEdit().setTextMargins(px(7), 0, 0, 0)  # a style sheet's padding does not reach it
        self.tokens.setRange(1, MOST_TOKENS)
        self.tokens.setValue(USUAL_TOKENS)
        self.tokens.setAccessibleName(translate("Compare", "Longest answer, in tokens"))
        self.tokens.setToolTip(translate("Compare", "Longest answer, in tokens"))
        longest = plain_label(13, "muted")
        longest.setText(translate("Compare", "Longest answer"))
        longest.setWordWrap(False)
        self.compare = role_button(translate("Compare", "Compare"), "primary")
        self.compare.clicked.connect(self._ask)
        self.quick = role_button(translate("Compare", "Quick suite"), "plain")
        self.quick.setToolTip(
            tip(translate("Compare", "Fourteen questions of seven kinds; takes a few minutes with a small model."))
        )
        self.quick.clicked.connect(lambda: self._control.run_suite(quick=True))
        self.whole = role_button(translate("Compare", "Whole suite"), "plain")
        self.whole.setToolTip(
            tip(translate("Compare", "All questions, one, two and four at a time, three times each. Takes long."))
        )
        self.whole.clicked.connect(lambda: self._control.run_suite(quick=False))
        row = QHBoxLayout()
        row.setSpacing(px(10))
        for widget in (longest, self.tokens):
            row.addWidget(widget)
        row.addStretch(1)
        for button in (self.quick, self.whole, self.compare):
            row.addWidget(button)
        self._rows.addWidget(frame)
        self._rows.addLayout(row)

    def _add_progress(self) -> None:
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setRange(0, 1000)
        self.progress.setAccessibleName(translate("Compare", "How far the comparison has come"))
        self.status = plain_label(13, "muted")
        self.stop = role_button(translate("Compare", "Stop"), "plain")
        self.stop.clicked.connect(self._control.stop)
        words = QVBoxLayout()
        words.setSpacing(px(6))
        words.addWidget(self.status)
        words.addWidget(self.progress)
        self._running = QWidget()
        row = QHBoxLayout(self._running)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(px(14))
        row.addLayout(words, 1)
        row.addWidget(self.stop)
        self._rows.addWidget(self._running)
        self.trouble = plain_label(13, "danger")
        self._rows.addWidget(self.trouble)

    def _add_columns(self) -> None:
        self.columns = {mode: ModeColumn(mode) for mode in Mode}
        self._side_by_side = QHBoxLayout()
        self._side_by_side.setSpacing(px(14))
        for column in self.columns.values():
            self._side_by_side.addWidget(column, 1)
        self._rows.addLayout(self._side_by_side)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Side by side where there is room, else one below the other."""
        wide = self.viewport().width() >= px(NARROW)
        direction = QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom
        if self._side_by_side.direction() != direction:
            self._side_by_side.setDirection(direction)
        super().resizeEvent(event)

    # --- what the user does

    def let_start(self, allowed: bool) -> None:
        """Not while the chat answers: both would be slower than they are."""
        if allowed != self._can_start:
            self._can_start = allowed
            self._show()

    def _ask(self) -> None:
        text = self.question.text().strip()
        if text and self.compare.isEnabled():
            self._control.ask(text, self.tokens.value())

    # --- showing

    def _show(self) -> None:
        state = self._control.state
        idle = state.phase is Phase.IDLE
        for button in (self.compare, self.quick, self.whole):
            button.setEnabled(idle and self._can_start)
        self._running.setVisible(not idle)
        self.stop.setEnabled(state.phase is Phase.RUNNING)
        self.progress.setValue(round(1000 * state.progress))
        self.status.setText(_status(state, self._can_start))
        self.trouble.setText(in_words(state.trouble))
        self.trouble.setVisible(bool(state.trouble))
        for mode, column in self.columns.items():
            column.show_column(state.columns[mode], _ratio_words(state, mode))
        self.outcome.show_outcome(state)


def _status(state: Comparison, can_start: bool) -> str:
    if state.phase is Phase.STOPPING:
        return translate("Compare", "Stopping; what was measured is kept.")
    if state.phase is Phase.RUNNING:
        return in_words(state.part) or translate("Compare", "Getting ready")
    return "" if can_start else translate("Compare", "Wait until the chat's answer is finished.")


def _ratio_words(state: Comparison, mode: Mode) -> str:
    """This mode's speed over the others'."""
    others = {Mode.BASELINE: (), Mode.DFLASH: (Mode.BASELINE,), Mode.DFLASH2: (Mode.BASELINE, Mode.DFLASH)}[mode]
    pattern = translate("Compare", "{times} × {mode}")
    said = [
        pattern.format(times=f"{ratio:.2f}", mode=mode_name(other))
        for other in others
        if (ratio := state.ratio(mode, other)) is not None
    ]
    return "  ·  ".join(said)
