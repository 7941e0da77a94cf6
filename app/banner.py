"""A strip that says what went wrong, why, and offers the one button that mends it.

Knows nothing of what can go wrong.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.engine_words import in_words
from app.i18n import translate
from app.state import Trouble
from app.theme import font, px


class Banner(QFrame):
    remedy = Signal()
    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("banner")
        self.headline, self.sentence = QLabel(), QLabel()
        self.headline.setFont(font(14, bold=True))
        self.headline.setProperty("role", "danger")
        self.sentence.setFont(font(13))
        for label in (self.headline, self.sentence):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.button = QPushButton(translate("Banner", "Try again"))
        self.button.setProperty("role", "primary")
        self.button.clicked.connect(self.remedy)
        self.close_button = QPushButton(translate("Banner", "Close"))
        self.close_button.setAccessibleName(translate("Banner", "Close this message"))
        self.close_button.setProperty("role", "quiet")
        self.close_button.clicked.connect(self.dismissed)
        words = QVBoxLayout()
        words.setSpacing(px(4))
        words.addWidget(self.headline)
        words.addWidget(self.sentence)
        row = QHBoxLayout(self)
        row.setContentsMargins(px(18), px(14), px(16), px(14))
        row.setSpacing(px(16))
        row.addLayout(words, 1)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignVCenter)
        self.show_trouble(None)

    def show_trouble(self, trouble: Trouble | None) -> None:
        self.setVisible(trouble is not None)
        if trouble is None:
            return
        self.headline.setText(trouble.headline)
        self.sentence.setText(in_words(trouble.sentence).replace("/", "/\u200b"))  # so that a path can be broken
        self.button.setVisible(trouble.remedy is not None)
        self.close_button.setVisible(trouble.remedy is None)
        self.button.setText(trouble.remedy or "")
        self.button.setAccessibleName(trouble.remedy or "")
