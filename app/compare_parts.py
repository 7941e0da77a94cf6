"""The pieces of the Compare page: one mode's answer with its figures, and what came of a comparison.

They show what they are given.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QTextCursor
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.compare_state import Column, Comparison, Step
from app.definitions import FIGURES, NOT_YET, mode_name
from app.engine_words import in_words
from app.i18n import translate
from app.theme import font, px, tip
from engine.bench.glance import glance
from engine.bench.verdict import verdict
from engine.events import Mode

ROWS = (
    "time_to_first_token_s",
    "acceptance_length",
    "tokens_per_target_pass",
    "acceptance_rate",
    "draft_ms",
    "verify_ms",
)


class ModeColumn(QFrame):
    """One mode's answer and its figures."""

    def __init__(self, mode: Mode, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.setAccessibleName(mode_name(mode))
        name = plain_label(14, bold=True)
        name.setText(mode_name(mode))
        self.step = plain_label(12, "muted")
        self.step.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        figure = FIGURES["tokens_per_second"]
        self.speed = plain_label(28, bold=True, figures=True)
        self.speed.setWordWrap(False)
        self.speed.setAccessibleName(figure.label)
        unit = plain_label(13, "muted")
        unit.setText(figure.unit)
        unit.setWordWrap(False)
        unit.setContentsMargins(0, 0, 0, px(5))
        self.ratio = plain_label(13)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setFont(font(14))
        self.text.setMinimumHeight(px(190))
        self.text.viewport().setAutoFillBackground(False)
        self.text.document().setDocumentMargin(0)
        self.text.setAccessibleName(translate("Compare", "Answer: {mode}").format(mode=mode_name(mode)))
        self.values: dict[str, QLabel] = {}
        head = QHBoxLayout()
        head.addWidget(name)
        head.addWidget(self.step, 1)
        fast = QHBoxLayout()
        fast.setSpacing(px(6))
        fast.addWidget(self.speed)
        fast.addWidget(unit, 0, Qt.AlignmentFlag.AlignBottom)
        fast.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(px(18), px(14), px(18), px(16))
        column.setSpacing(px(8))
        column.addLayout(head)
        column.addLayout(fast)
        column.addWidget(self.ratio)
        column.addWidget(self.text, 1)
        column.addLayout(self._figures())

    def _figures(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setVerticalSpacing(px(4))
        grid.setColumnStretch(0, 1)
        for row, name in enumerate(ROWS):
            figure = FIGURES[name]
            title, value = plain_label(12, "muted"), plain_label(12, figures=True)
            title.setText(figure.label)
            value.setAccessibleName(figure.label)
            value.setAlignment(Qt.AlignmentFlag.AlignRight)
            for label in (title, value):
                label.setWordWrap(False)
                label.setToolTip(tip(figure.meaning))
            grid.addWidget(title, row, 0)
            grid.addWidget(value, row, 1)
            self.values[name] = value
        return grid

    def show_column(self, column: Column, ratio: str) -> None:
        statistics = column.statistics
        self.step.setText(_step_words(column.step))
        figure = FIGURES["tokens_per_second"]
        speed = statistics.tokens_per_second if statistics is not None else None
        self.speed.setText(NOT_YET if speed is None else figure.text(speed))
        self.ratio.setText(in_words(column.reason) or ratio or " ")
        self.ratio.setProperty("role", "muted" if column.reason else "")
        for name, value in self.values.items():
            value.setText(NOT_YET if statistics is None else FIGURES[name].with_unit(getattr(statistics, name)))
        self.text.setVisible(column.step is not Step.NONE)  # a page on which nothing was asked is short
        self._show_text(column.text)

    def _show_text(self, text: str) -> None:
        """What is new is added at the end; the view follows unless the reader has scrolled up."""
        shown = self.text.toPlainText()
        if text == shown:
            return
        bar = self.text.verticalScrollBar()
        follows = bar.value() >= bar.maximum()
        if shown and text.startswith(shown):
            cursor = QTextCursor(self.text.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(text[len(shown) :])
        else:
            self.text.setPlainText(text)
        if follows:
            bar.setValue(bar.maximum())


class Outcome(QFrame):
    """What came of it: sentences, the main table, and the way to the report."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self._shown: object = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(px(20), px(16), px(20), px(18))
        self._column.setSpacing(px(10))
        self._inside: QWidget | None = None

    def show_outcome(self, state: Comparison) -> None:
        results = state.results
        self.setVisible(results is not None and any(part.answers for part in results.parts))
        if results is self._shown:
            return
        self._shown = results
        if self._inside is not None:
            self._column.removeWidget(self._inside)
            self._inside.deleteLater()
            self._inside = None
        if results is None:
            return
        self._inside = QWidget()
        inside = QVBoxLayout(self._inside)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.setSpacing(px(10))
        if not state.whole_suite and state.same_text is not None:
            same = plain_label(13)
            same.setText(
                translate("Compare", "All answers are the same, word for word.")
                if state.same_text
                else translate("Compare", "The answers differ somewhere; how far that is rounding is said below.")
            )
            inside.addWidget(same)
        for sentence in verdict(results):
            words = plain_label(13)
            words.setText(in_words(sentence))
            words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            inside.addWidget(words)
        if state.whole_suite:
            for temperature in results.plan.conditions.temperatures:
                table = glance(results, temperature)
                heading = plain_label(14, bold=True)
                heading.setText(in_words(table.title))
                inside.addWidget(heading)
                inside.addWidget(_table((table.head, *table.rows)))
        if state.report is not None:
            report = state.report
            opener = role_button(translate("Compare", "Open the report"), "primary")
            opener.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(report))))
            where = plain_label(12, "muted")
            where.setText(str(report).replace("/", "/\u200b"))
            row = QHBoxLayout()
            row.addWidget(opener)
            row.addWidget(where, 1)
            inside.addLayout(row)
        self._column.addWidget(self._inside)


def _table(rows: tuple[tuple[str, ...], ...]) -> QScrollArea:
    """As high as it is, and scrolled sideways where the window is narrow."""
    table = QWidget()
    grid = QGridLayout(table)
    grid.setContentsMargins(0, 0, 0, px(12))
    grid.setHorizontalSpacing(px(18))
    grid.setVerticalSpacing(px(4))
    grid.setColumnStretch(0, 1)
    for y, row in enumerate(rows):
        for x, cell in enumerate(row):
            label = plain_label(12, "muted" if x == 0 or y == 0 else "", figures=True)
            label.setWordWrap(False)
            label.setText(in_words(cell) if x == 0 or y == 0 else cell)
            if x:
                label.setAlignment(Qt.AlignmentFlag.AlignRight)
            grid.addWidget(label, y, x)
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(table)
    area.viewport().setAutoFillBackground(False)
    table.setAutoFillBackground(False)  # which setWidget has switched on
    area.setFixedHeight(table.sizeHint().height())
    return area


def _step_words(step: Step) -> str:
    return {
        Step.NONE: "",
        Step.WAITING: translate("Compare", "waiting"),
        Step.LOADING: translate("Compare", "loading"),
        Step.WRITING: translate("Compare", "writing"),
        Step.DONE: translate("Compare", "done"),
        Step.FAILED: translate("Compare", "not possible"),
    }[step]


def plain_label(size: float, role: str = "", *, bold: bool = False, figures: bool = False) -> QLabel:
    label = QLabel()
    label.setFont(font(size, bold=bold, figures=figures))
    label.setProperty("role", role)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    return label


def role_button(text: str, role: str) -> QPushButton:
    button = QPushButton(text)
    button.setProperty("role", role)
    button.setFont(font(13))
    return button
