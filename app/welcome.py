"""What stands where the conversation will be: a greeting, the three modes in a sentence each, and first questions.

Knows nothing of the engine.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtSvgWidgets import QSvgWidget
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.definitions import mode_name
from app.i18n import QT_TRANSLATE_NOOP, translate
from app.theme import ASSETS, font, px
from engine.events import Mode

EXAMPLES = (
    QT_TRANSLATE_NOOP("Welcome", "Write a haiku about rain."),
    QT_TRANSLATE_NOOP("Welcome", "Why is the sky blue?"),
    QT_TRANSLATE_NOOP("Welcome", "Write a Python function that reverses a list."),
)
MODES = {
    Mode.BASELINE: QT_TRANSLATE_NOOP("Welcome", "The model works alone and writes one token per pass."),
    Mode.DFLASH: QT_TRANSLATE_NOOP(
        "Welcome", "A small drafter proposes a whole block of tokens, and the model checks them all in one pass."
    ),
    Mode.DFLASH2: QT_TRANSLATE_NOOP(
        "Welcome", "The drafter also picks words that follow each other, so that more of them are accepted."
    ),
}
WIDTH = 620


class Welcome(QScrollArea):
    chosen = Signal(str)  # an example, to be put into the input box

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("conversation")
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        picture = QSvgWidget(str(ASSETS / "icon.svg"))
        picture.setFixedSize(px(56), px(56))
        title = _line(24, bold=True)
        title.setText(translate("Welcome", "What would you like to know?"))
        line = _line(14, "muted")
        line.setText(translate("Welcome", "The model runs on this computer. Nothing you write leaves it."))
        page = QWidget()
        page.setObjectName("column")
        column = QVBoxLayout(page)
        column.setContentsMargins(px(24), px(24), px(24), px(12))
        column.setSpacing(px(10))
        column.addStretch(2)
        column.addWidget(picture, 0, Qt.AlignmentFlag.AlignHCenter)
        for label in (title, line):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            column.addWidget(label)
        column.addSpacing(px(14))
        middle = QHBoxLayout()
        middle.addStretch(1)
        middle.addWidget(self._modes(), 1000)
        middle.addStretch(1)
        column.addLayout(middle)
        column.addSpacing(px(14))
        self.examples: list[QPushButton] = []
        for source in EXAMPLES:
            example = translate("Welcome", source)
            button = QPushButton(example)
            button.setProperty("role", "example")
            button.setFont(font(14))
            button.setAccessibleName(translate("Welcome", "Example: {text}").format(text=example))
            button.clicked.connect(lambda _checked, example=example: self.chosen.emit(example))
            column.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
            self.examples.append(button)
        column.addStretch(3)
        self.setWidget(page)

    def _modes(self) -> QWidget:
        """What the three modes are; whichever is chosen, the words are the model's own."""
        table = QWidget()
        table.setMaximumWidth(px(WIDTH))
        grid = QGridLayout(table)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(px(18))
        grid.setVerticalSpacing(px(8))
        grid.setColumnStretch(1, 1)
        for row, (mode, sentence) in enumerate(MODES.items()):
            name, meaning = _line(13, bold=True), _line(13, "muted")
            name.setWordWrap(False)
            name.setText(mode_name(mode))
            meaning.setText(translate("Welcome", sentence))
            grid.addWidget(name, row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(meaning, row, 1)
        same = _line(13, "muted")
        same.setText(translate("Welcome", "All three give the same answer; only the speed differs."))
        grid.addWidget(same, len(MODES), 1)
        return table


def _line(size: float, role: str = "", bold: bool = False) -> QLabel:
    label = QLabel()
    label.setFont(font(size, bold=bold))
    label.setProperty("role", role)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    return label
