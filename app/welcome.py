"""What stands where the conversation will be: a greeting and a few questions to begin with."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtSvgWidgets import QSvgWidget
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from app.theme import ASSETS, font, px

EXAMPLES = ("Write a haiku about rain.", "Why is the sky blue?", "Write a Python function that reverses a list.")


class Welcome(QWidget):
    chosen = Signal(str)  # an example, to be put into the input box

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        picture = QSvgWidget(str(ASSETS / "icon.svg"))
        picture.setFixedSize(px(64), px(64))
        title = QLabel("What would you like to know?")
        title.setFont(font(24, bold=True))
        line = QLabel("The model runs on this computer. Nothing you write leaves it.")
        line.setFont(font(14))
        line.setProperty("role", "muted")
        column = QVBoxLayout(self)
        column.setSpacing(px(10))
        column.addStretch(2)
        for widget in (picture, title, line):
            column.addWidget(widget, 0, Qt.AlignmentFlag.AlignHCenter)
            column.addSpacing(px(6))
        column.addSpacing(px(12))
        self.examples: list[QPushButton] = []
        for example in EXAMPLES:
            button = QPushButton(example)
            button.setProperty("role", "example")
            button.setFont(font(14))
            button.setAccessibleName(f"Example: {example}")
            button.clicked.connect(lambda _checked, example=example: self.chosen.emit(example))
            column.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
            self.examples.append(button)
        column.addStretch(3)
