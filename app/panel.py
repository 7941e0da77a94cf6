"""The live panel: speed, drafting and memory of the answer that runs, or of the last one.

Plain words and pictures first, the other figures in a fold. Shows a `ChatState`; every label and meaning comes from
`definitions`. Computes nothing but the rest of the memory bar.
"""

from __future__ import annotations

import psutil
from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.charts import Curve, History, Meter, PositionBars, StackedBar
from app.definitions import (
    ACCEPTANCE_BY_POSITION,
    ACCEPTANCE_HISTORY,
    FIGURES,
    MEMORY,
    NOT_YET,
    SPEED_CURVE,
    Figure,
    bytes_text,
    mode_name,
    none_text,
    process_memory_meaning,
)
from app.drafting_words import drafting_sentence, gain_sentence, missing_sentences
from app.engine_words import in_words
from app.i18n import translate
from app.icons import icon
from app.state import ChatState, Phase
from app.theme import font, px, theme, tip
from engine.events import AnswerStatistics, Memory

DETAIL_ROWS = (
    "time_to_first_token_s",
    "prompt_tokens_per_second",
    "plain_tokens_per_second",
    "tokens_per_target_pass",
    "acceptance_rate",
    "draft_length",
    "verification_passes",
    "draft_ms",
    "verify_ms",
)
# Figures of drafting: where nothing is drafted they are none, not unknown.
OF_DRAFTING = {"acceptance_length", "acceptance_rate", "draft_length", "verification_passes", "draft_ms", "verify_ms"}
OF_DRAFTING |= {"tokens_per_target_pass", "speed_up"}
WIDTH = 316
MOST_BARS = 40  # of the history
NEARLY_ALL = 0.85  # of the machine's memory: others need some, too


class LivePanel(QScrollArea):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("panel")
        self.setAccessibleName(translate("Panel", "Live figures"))
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFixedWidth(px(WIDTH))
        self.values: dict[str, QLabel] = {}  # by the names of the statistics and of the memory parts
        self._machine = psutil.virtual_memory().total  # bytes
        contents = QWidget()
        contents.setObjectName("panelContents")
        self._column = QVBoxLayout(contents)
        self._column.setContentsMargins(px(24), px(18), px(24), px(16))
        self._column.setSpacing(px(8))
        self._add_speed()
        self._gap()
        self._add_drafting()
        self._gap()
        self._add_memory()
        self._gap()
        self._add_details()
        self._column.addSpacing(px(14))
        self._column.addStretch(1)
        self.missing = self._text(12, "muted")
        self.setWidget(contents)
        self._show_fold()

    # --- building

    def _gap(self) -> None:
        self._column.addSpacing(px(12))

    def _text(self, size: float, role: str = "", bold: bool = False) -> QLabel:
        label = _label(size, role, bold)
        label.setWordWrap(True)
        self._column.addWidget(label)
        return label

    def _value(self, name: str, figure: Figure, size: float, bold: bool = False) -> QLabel:
        """The label of a figure's value."""
        value = _label(size, "", bold, figures=True)
        value.setText(NOT_YET)
        value.setToolTip(tip(figure.meaning))
        value.setAccessibleName(figure.label)
        self.values[name] = value
        return value

    def _add_speed(self) -> None:
        self.heading = self._text(12, "muted", bold=True)
        figure = FIGURES["tokens_per_second"]
        value = self._value("tokens_per_second", figure, 38, bold=True)
        unit = _label(14, "muted")
        unit.setText(figure.unit)
        unit.setToolTip(tip(figure.meaning))
        unit.setContentsMargins(0, 0, 0, px(7))  # on the line on which the large figure stands
        times = self._value("speed_up", FIGURES["speed_up"], 13, bold=True)
        times.setObjectName("pill")
        row = QHBoxLayout()
        row.setSpacing(px(8))
        row.addWidget(value)
        row.addWidget(unit, 0, Qt.AlignmentFlag.AlignBottom)
        row.addStretch(1)
        row.addWidget(times, 0, Qt.AlignmentFlag.AlignVCenter)
        self._column.addLayout(row)
        self.curve = Curve()
        self.curve.setToolTip(tip(SPEED_CURVE.meaning))
        self._column.addWidget(self.curve)
        self.gain = self._text(13)

    def _add_drafting(self) -> None:
        self._text(14, bold=True).setText(translate("Panel", "Drafting"))
        self.decision = self._text(13)
        self.drafting = self._text(12, "muted")
        self._acceptance = QWidget()
        inside = QVBoxLayout(self._acceptance)
        inside.setContentsMargins(0, px(4), 0, 0)
        inside.setSpacing(px(6))
        figure = FIGURES["acceptance_length"]
        row = QHBoxLayout()
        title = _label(13, "muted")
        title.setText(figure.label)
        title.setToolTip(tip(figure.meaning))
        row.addWidget(title)
        row.addStretch(1)
        row.addWidget(self._value("acceptance_length", figure, 16, bold=True))
        inside.addLayout(row)
        self.history = History(floor=1.0)
        self._history_title = _chart_title(ACCEPTANCE_HISTORY)
        self.bars = PositionBars()
        self._bars_title = _chart_title(ACCEPTANCE_BY_POSITION)
        for head, chart, what in (
            (self._history_title, self.history, ACCEPTANCE_HISTORY),
            (self._bars_title, self.bars, ACCEPTANCE_BY_POSITION),
        ):
            chart.setToolTip(tip(what.meaning))
            inside.addWidget(head)
            inside.addWidget(chart)
        self._column.addWidget(self._acceptance)

    def _add_memory(self) -> None:
        self._text(14, bold=True).setText(translate("Panel", "Memory"))
        self.process = self._text(13, "muted")
        self.process.setToolTip(tip(process_memory_meaning()))
        self.stack = StackedBar()
        self.stack.setToolTip(tip(process_memory_meaning()))
        self._column.addWidget(self.stack)
        self.machine = Meter(NEARLY_ALL, width=None)
        self.machine.setToolTip(tip(process_memory_meaning()))
        self._column.addWidget(self.machine)
        self._column.addSpacing(px(2))
        grid = _grid()
        self._dots: list[QFrame] = []
        self._dot_colors: object = None  # the ones that they have
        for row, (name, figure) in enumerate(MEMORY.items()):
            dot = QFrame()
            dot.setFixedSize(px(9), px(9))
            self._dots.append(dot)
            grid.addWidget(dot, row, 0, Qt.AlignmentFlag.AlignVCenter)
            self._row(grid, row, name, figure)
        self._color_dots()
        self._column.addLayout(grid)

    def _add_details(self) -> None:
        self.fold = QPushButton(translate("Panel", "Details"))
        self.fold.setCheckable(True)
        self.fold.setProperty("role", "fold")
        self.fold.setFont(font(13, bold=True))
        self.fold.setIconSize(QSize(px(14), px(14)))
        self.fold.toggled.connect(self._show_fold)
        self._column.addWidget(self.fold, 0, Qt.AlignmentFlag.AlignLeft)
        self.details = QWidget()
        grid = _grid()
        grid.setContentsMargins(0, 0, 0, 0)
        self.details.setLayout(grid)
        for row, name in enumerate(DETAIL_ROWS):
            self._row(grid, row, name, FIGURES[name])
        self._column.addWidget(self.details)

    def _row(self, grid: QGridLayout, row: int, name: str, figure: Figure) -> None:
        title = _label(13, "muted")
        title.setText(figure.label)
        title.setToolTip(tip(figure.meaning))
        value = self._value(name, figure, 13)
        value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        grid.addWidget(title, row, 1)
        grid.addWidget(value, row, 2)

    def _show_fold(self) -> None:
        opened = self.fold.isChecked()
        self.details.setVisible(opened)
        self.fold.setIcon(icon("opened" if opened else "folded", theme().muted, 14))
        self.fold.setAccessibleName(
            translate("Panel", "Hide the details") if opened else translate("Panel", "Show the details")
        )

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "details"):
            self._show_fold()
            self._color_dots()

    def _color_dots(self) -> None:
        if self._dot_colors == (colors := theme().series):
            return  # a style sheet is parsed anew each time
        self._dot_colors = colors
        for dot, color in zip(self._dots, colors):
            dot.setStyleSheet(f"background: {color}; border-radius: {px(4)}px;")

    # --- showing

    def show_state(self, state: ChatState) -> None:
        statistics = state.statistics
        _set(self.heading, _heading(state))
        for name in (*DETAIL_ROWS, "acceptance_length"):
            _set(self.values[name], _figure_text(statistics, name, with_unit=True))
        _set(self.values["tokens_per_second"], _figure_text(statistics, "tokens_per_second"))
        self._show_speed(state)
        self._show_drafting(state)
        self._show_memory(state.memory)
        reasons = missing_sentences(state)
        _set(self.missing, "\n\n".join(reasons).replace("/", "/\u200b"))  # so that a path can be broken
        self.missing.setVisible(bool(reasons))

    def _show_speed(self, state: ChatState) -> None:
        statistics = state.statistics
        times = self.values["speed_up"]
        text = _figure_text(statistics, "speed_up")
        measured = statistics is not None and statistics.speed_up is not None
        _set(times, f"{text}×" if measured else text)
        times.setVisible(measured)
        points = state.speed.points
        self.curve.set_points(points, statistics.plain_tokens_per_second if statistics else None)
        self.curve.setVisible(len(points) > 1)
        now = SPEED_CURVE.with_unit(points[-1][1]) if points else none_text()
        self.curve.setAccessibleName(translate("Panel", "Speed over time, now {speed}").format(speed=now))
        gain = gain_sentence(statistics)
        _set(self.gain, gain)
        self.gain.setVisible(bool(gain))

    def _show_drafting(self, state: ChatState) -> None:
        statistics = state.statistics
        _set(self.drafting, drafting_sentence(state).replace("/", "/\u200b"))
        decision = in_words((statistics.decision if statistics else None) or "")
        _set(self.decision, decision)
        self.decision.setVisible(bool(decision))
        newest = state.conversation.turns[-History.SHOWN :]
        lengths = [turn.statistics.acceptance_length if turn.statistics else None for turn in newest]
        known = [FIGURES["acceptance_length"].text(length) for length in lengths if length is not None]
        self.history.set_values(lengths)
        self.history.setAccessibleName(f"{ACCEPTANCE_HISTORY.label}: {', '.join(known) or none_text()}")
        self.history.setVisible(len(known) > 1)
        self._history_title.setVisible(len(known) > 1)
        shares = statistics.acceptance_by_position if statistics else ()
        self.bars.set_shares(shares)
        words = ", ".join(
            f"{k + 1}: {ACCEPTANCE_BY_POSITION.with_unit(share)}" for k, share in enumerate(shares) if share is not None
        )
        self.bars.setAccessibleName(f"{ACCEPTANCE_BY_POSITION.label}: {words or none_text()}")
        self.bars.setVisible(bool(shares))
        self._bars_title.setVisible(bool(shares))

    def _show_memory(self, memory: Memory | None) -> None:
        sizes: dict[str, int | None] = dict.fromkeys(MEMORY)
        if memory is not None:
            parts = ("target_weights", "target_context", "drafter_weights", "drafter_kv")
            sizes |= {name: getattr(memory, name) for name in parts}
            sizes["other"] = max(0, memory.process - sum(sizes[name] or 0 for name in parts))
            words = translate("Panel", "{now} in use of this machine's {machine}, {peak} at the peak").format(
                now=bytes_text(memory.process), machine=bytes_text(self._machine), peak=bytes_text(memory.peak)
            )
        else:
            words = translate("Panel", "No model is loaded.")
        _set(self.process, words)
        for name, size in sizes.items():
            _set(self.values[name], NOT_YET if memory is None else none_text() if size is None else bytes_text(size))
        self.stack.set_parts([(number, size) for number, size in enumerate(sizes.values()) if size])
        self.machine.set_share(memory.process / self._machine if memory else 0.0)
        self.machine.setVisible(memory is not None)
        self.stack.setAccessibleName(translate("Panel", "Memory: {words}").format(words=words))


def _heading(state: ChatState) -> str:
    if state.phase is Phase.ANSWERING:
        when = translate("Panel", "This answer")
    elif state.statistics:
        when = translate("Panel", "Last answer")
    else:
        when = translate("Panel", "Next answer")
    mode = state.statistics.mode if state.statistics else state.mode
    return f"{when}  ·  {mode_name(mode)}"


def _figure_text(statistics: AnswerStatistics | None, name: str, with_unit: bool = False) -> str:
    if statistics is None:
        return NOT_YET
    value = getattr(statistics, name)
    drafted = statistics.verification_passes > 0
    if name == "verification_passes" and not drafted:
        return none_text()
    if value is None and statistics.stop_reason is None and not drafted and name not in OF_DRAFTING:
        return NOT_YET  # it will be measured
    return FIGURES[name].with_unit(value) if with_unit else FIGURES[name].text(value)


def _label(size: float, role: str = "", bold: bool = False, figures: bool = False) -> QLabel:
    label = QLabel()
    label.setFont(font(size, bold=bold, figures=figures))
    label.setProperty("role", role)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label


def _chart_title(figure: Figure) -> QLabel:
    label = _label(12, "muted")
    label.setText(figure.label)
    label.setToolTip(tip(figure.meaning))
    return label


def _grid() -> QGridLayout:
    """Three columns: a dot, a title, a value."""
    grid = QGridLayout()
    grid.setVerticalSpacing(px(6))
    grid.setHorizontalSpacing(px(8))
    grid.setColumnStretch(1, 1)
    return grid


def _set(label: QLabel, text: str) -> None:
    if label.text() != text:
        label.setText(text)
