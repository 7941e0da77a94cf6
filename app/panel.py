"""The live panel: speed, drafting and memory of the answer that runs, or of the last one.

Shows a `ChatState`; every label and meaning comes from `definitions`. Computes nothing but the rest of the memory bar.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.charts import PositionBars, StackedBar
from app.definitions import ACCEPTANCE_BY_POSITION, FIGURES, MEMORY, NONE, NOT_YET, PROCESS_MEMORY, bytes_text
from app.state import ChatState, Phase
from app.theme import font, px, theme
from engine.events import AnswerStatistics, Memory, Mode
from engine.stats import MODE_NAMES

SPEED_ROWS = ("time_to_first_token_s", "prompt_tokens_per_second")
DRAFTING_ROWS = (
    "acceptance_length",
    "tokens_per_target_pass",
    "acceptance_rate",
    "verification_passes",
    "draft_ms",
    "verify_ms",
)
WIDTH = 308


class LivePanel(QScrollArea):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("panel")
        self.setAccessibleName("Live figures")
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFixedWidth(px(WIDTH))
        self.values: dict[str, QLabel] = {}  # by the names of the statistics and of the memory parts
        contents = QWidget()
        contents.setObjectName("panelContents")
        self._column = QVBoxLayout(contents)
        self._column.setContentsMargins(px(24), px(18), px(24), px(16))
        self._column.setSpacing(px(8))

        self.heading = self._text(12, "muted", bold=True)
        self._add_speed()
        self._column.addSpacing(px(12))
        self._section("Drafting")
        self.drafting = self._text(13, "muted")
        self._add_rows(DRAFTING_ROWS)
        self._column.addSpacing(px(6))
        self._bars_title = self._text(12, "muted")
        self._bars_title.setText(ACCEPTANCE_BY_POSITION.label)
        self._bars_title.setToolTip(ACCEPTANCE_BY_POSITION.meaning)
        self.bars = PositionBars()
        self.bars.setToolTip(ACCEPTANCE_BY_POSITION.meaning)
        self._column.addWidget(self.bars)
        self._column.addSpacing(px(12))
        self._add_memory()
        self._column.addStretch(1)
        self._column.addSpacing(px(12))
        self.missing = self._text(12, "muted")
        self.setWidget(contents)

    # --- building

    def _text(self, size: float, role: str = "", bold: bool = False) -> QLabel:
        label = QLabel()
        label.setFont(font(size, bold=bold))
        label.setProperty("role", role)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setWordWrap(True)
        self._column.addWidget(label)
        return label

    def _section(self, title: str) -> None:
        self._text(14, bold=True).setText(title)

    def _add_speed(self) -> None:
        figure = FIGURES["tokens_per_second"]
        value = QLabel(NOT_YET)
        value.setFont(font(38, bold=True, figures=True))
        unit = QLabel(figure.unit)
        unit.setFont(font(14))
        unit.setProperty("role", "muted")
        row = QHBoxLayout()
        row.setSpacing(px(8))
        unit.setContentsMargins(0, 0, 0, px(7))  # on the line on which the large figure stands
        row.addWidget(value)
        row.addWidget(unit, 0, Qt.AlignmentFlag.AlignBottom)
        row.addStretch(1)
        for label in (value, unit):
            label.setToolTip(figure.meaning)
        value.setAccessibleName(figure.label)
        self.values["tokens_per_second"] = value
        self._column.addLayout(row)
        self._add_rows(SPEED_ROWS)

    def _add_rows(self, names: tuple[str, ...]) -> None:
        grid = QGridLayout()
        grid.setVerticalSpacing(px(6))
        grid.setColumnStretch(0, 1)
        for row, name in enumerate(names):
            figure = FIGURES[name]
            self._row(grid, row, name, figure.label, figure.meaning)
        self._column.addLayout(grid)

    def _row(self, grid: QGridLayout, row: int, name: str, label: str, meaning: str) -> None:
        title, value = QLabel(label), QLabel(NOT_YET)
        title.setFont(font(13))
        title.setProperty("role", "muted")
        value.setFont(font(13, figures=True))
        value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        value.setAccessibleName(label)
        for widget in (title, value):
            widget.setToolTip(meaning)
        columns = grid.columnCount()
        grid.addWidget(title, row, 0 if columns < 3 else 1)
        grid.addWidget(value, row, 1 if columns < 3 else 2)
        self.values[name] = value

    def _add_memory(self) -> None:
        self._section("Memory")
        self.process = self._text(13, "muted")
        self.process.setToolTip(PROCESS_MEMORY)
        self.stack = StackedBar()
        self._column.addWidget(self.stack)
        self._column.addSpacing(px(2))
        grid = QGridLayout()
        grid.setVerticalSpacing(px(6))
        grid.setHorizontalSpacing(px(8))
        grid.addWidget(QWidget(), len(MEMORY), 2)  # three columns from the start
        grid.setColumnStretch(1, 1)
        self._dots: list[QFrame] = []
        for row, (name, figure) in enumerate(MEMORY.items()):
            dot = QFrame()
            dot.setFixedSize(px(9), px(9))
            self._dots.append(dot)
            grid.addWidget(dot, row, 0, Qt.AlignmentFlag.AlignVCenter)
            self._row(grid, row, name, figure.label, figure.meaning)
        self._column.addLayout(grid)

    # --- showing

    def show_state(self, state: ChatState) -> None:
        statistics = state.statistics
        mode = statistics.mode if statistics else state.mode
        when = "This answer" if state.phase is Phase.ANSWERING else "Last answer" if statistics else "Next answer"
        _set(self.heading, f"{when}  ·  {MODE_NAMES[mode]}")
        for name in ("tokens_per_second", *SPEED_ROWS, *DRAFTING_ROWS):
            text = _figure_text(statistics, name)
            if name != "tokens_per_second" and FIGURES[name].unit and text not in (NONE, NOT_YET):
                text += f" {FIGURES[name].unit}"
            _set(self.values[name], text)
        _set(self.drafting, _drafting_sentence(state))
        shares = statistics.acceptance_by_position if statistics else ()
        self.bars.set_shares(shares)
        words = ", ".join(
            f"{k + 1}: {ACCEPTANCE_BY_POSITION.text(share)} %" for k, share in enumerate(shares) if share is not None
        )
        self.bars.setAccessibleName(f"{ACCEPTANCE_BY_POSITION.label}: {words or NONE}")
        self.bars.setVisible(bool(shares))
        self._bars_title.setVisible(bool(shares))
        self._show_memory(state.memory)
        reasons = [f"{MODE_NAMES[info.mode]} is not available. {info.reason}" for info in state.modes if info.reason]
        _set(self.missing, "\n\n".join(reasons).replace("/", "/\u200b"))  # so that a path can be broken
        self.missing.setVisible(bool(reasons))

    def _show_memory(self, memory: Memory | None) -> None:
        sizes: dict[str, int | None] = dict.fromkeys(MEMORY)
        if memory is not None:
            parts = ("target_weights", "target_context", "drafter_weights", "drafter_kv")
            sizes |= {name: getattr(memory, name) for name in parts}
            sizes["other"] = max(0, memory.process - sum(sizes[name] or 0 for name in parts))
            _set(self.process, f"{bytes_text(memory.process)} in use, {bytes_text(memory.peak)} at the peak")
        else:
            _set(self.process, "No model is loaded.")
        for number, (name, size) in enumerate(sizes.items()):
            _set(self.values[name], NOT_YET if memory is None else NONE if size is None else bytes_text(size))
            self._dots[number].setStyleSheet(f"background: {theme().series[number]}; border-radius: {px(4)}px;")
        self.stack.set_parts([(number, size) for number, size in enumerate(sizes.values()) if size])
        self.stack.setAccessibleName(f"Memory: {self.process.text()}")


def _figure_text(statistics: AnswerStatistics | None, name: str) -> str:
    if statistics is None:
        return NOT_YET
    value = getattr(statistics, name)
    drafted = statistics.verification_passes > 0
    if name == "verification_passes" and not drafted:
        return NONE
    if value is None and statistics.stop_reason is None and not drafted and name not in DRAFTING_ROWS:
        return NOT_YET  # it will be measured
    return FIGURES[name].text(value)


def _drafting_sentence(state: ChatState) -> str:
    statistics = state.statistics
    if statistics is None:
        if state.target is None:
            return "No model is loaded."
        if state.mode is Mode.BASELINE:
            if all(info.reason for info in state.modes if info.mode is not Mode.BASELINE):
                return "No drafter is there for this model: the target decodes alone."
            return "Drafting is off: the target decodes alone."
        drafter = next((info.drafter for info in state.modes if info.mode is state.mode), None)
        return f"Drafter: {Path(drafter).name}" if drafter else ""
    if statistics.mode is Mode.BASELINE:
        return "Drafting is off: the target decodes alone."
    words = f"Drafter: {statistics.drafter}"
    if statistics.stop_reason is not None and not statistics.drafted_tokens:
        words += ". Nothing was drafted in this answer."
    return words


def _set(label: QLabel, text: str) -> None:
    if label.text() != text:
        label.setText(text)
