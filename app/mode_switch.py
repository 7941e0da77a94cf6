"""Baseline, DFlash, DFlash 2: one of them is chosen; what cannot be used says why.

Knows nothing of drafters.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QFrame, QHBoxLayout, QPushButton, QWidget

from app.definitions import MODES
from app.theme import font, px
from engine.events import Mode, ModeInfo
from engine.stats import MODE_NAMES


class ModeSwitch(QFrame):
    chosen = Signal(object)  # Mode, by the user's hand

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("modes")
        self.setAccessibleName("Decoding mode")
        row = QHBoxLayout(self)
        row.setContentsMargins(px(3), px(3), px(3), px(3))
        row.setSpacing(px(2))
        group = QButtonGroup(self)
        self.buttons: dict[Mode, QPushButton] = {}
        for mode in Mode:
            button = QPushButton(MODE_NAMES[mode])
            button.setCheckable(True)
            button.setFont(font(13))
            button.setAccessibleName(f"Mode: {MODE_NAMES[mode]}")
            button.clicked.connect(lambda _checked, mode=mode: self.chosen.emit(mode))
            group.addButton(button)
            row.addWidget(button)
            self.buttons[mode] = button
        self.show_modes((), Mode.BASELINE)

    def show_modes(self, modes: Sequence[ModeInfo], current: Mode) -> None:
        infos = {info.mode: info for info in modes}
        for mode, button in self.buttons.items():
            info = infos.get(mode)
            reason = info.reason if info else "No model is loaded."
            button.setEnabled(reason is None)
            explanation = MODES[mode.value] if reason is None else f"{MODES[mode.value]}\n\nNot available: {reason}"
            button.setToolTip(explanation)
            button.setAccessibleDescription(explanation)
            button.setChecked(mode is current)
