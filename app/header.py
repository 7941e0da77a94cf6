"""The head of the window: what is loaded, the mode, and the buttons of everything that can be shown.

Knows nothing of what the buttons do.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.elided_label import ElidedLabel
from app.i18n import translate
from app.icons import icon
from app.mode_switch import ModeSwitch
from app.model_words import size_words
from app.theme import font, px, theme
from engine.events import TargetInfo

NAMELESS = 620  # logical pixels, below which the model's name gives way


class Header(QFrame):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("header")
        self.model_name, self.model_details = ElidedLabel(), ElidedLabel()
        self.model_name.setFont(font(15, bold=True))
        self.model_details.setFont(font(12))
        self.model_details.setProperty("role", "muted")
        for label in (self.model_name, self.model_details):
            label.setTextFormat(Qt.TextFormat.PlainText)
        names = QVBoxLayout()
        names.setSpacing(px(2))
        names.addWidget(self.model_name)
        names.addWidget(self.model_details)
        self.modes = ModeSwitch()
        self.sidebar_button = _icon_button(
            translate("Window", "Conversations"), translate("Window", "Show or hide the conversations (Ctrl+B)")
        )
        self.new_button = _icon_button(
            translate("Window", "New conversation"), translate("Window", "New conversation (Ctrl+N)")
        )
        self.panel_button = _icon_button(
            translate("Window", "Live figures"), translate("Window", "Show or hide the live figures (Ctrl+I)")
        )
        self.tokens_button = _icon_button(
            translate("Window", "Where tokens came from"),
            translate("Window", "Colour answers by where their tokens came from (Ctrl+T)"),
        )
        self.tokens_button.setCheckable(True)
        self.tokens_button.setProperty("role", "toggle")
        self.models_button = _icon_button(
            translate("Window", "Models"), translate("Window", "Models and drafters (Ctrl+M)")
        )
        self.compare_button = _icon_button(
            translate("Window", "Compare"), translate("Window", "Compare the modes (Ctrl+Shift+C)")
        )
        self.settings_button = _icon_button(translate("Window", "Settings"), translate("Window", "Settings (Ctrl+,)"))
        row = QHBoxLayout(self)
        row.setContentsMargins(px(12), px(10), px(16), px(10))
        row.setSpacing(px(8))
        row.addLayout(_close_together(self.sidebar_button, self.new_button))
        row.addSpacing(px(4))
        row.addLayout(names, 1000)
        row.addStretch(1)  # where there is no room for them
        row.addWidget(self.modes)
        row.addSpacing(px(6))
        row.addLayout(
            _close_together(
                self.tokens_button, self.panel_button, self.compare_button, self.models_button, self.settings_button
            )
        )
        self._color_icons()

    def show_target(self, target: TargetInfo | None, status: str) -> None:
        """What is loaded; `status` where nothing is."""
        self.model_name.setText(target.name if target else "DFlash Chat")
        self.model_name.setToolTip(target.path if target else "")
        self.model_details.setText(_details(target) if target else status)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """No name rather than one letter of it."""
        super().resizeEvent(event)
        for name in (self.model_name, self.model_details):
            name.setVisible(self.width() >= px(NAMELESS))

    def _color_icons(self) -> None:
        for button, name in (
            (self.sidebar_button, "sidebar"),
            (self.new_button, "new"),
            (self.tokens_button, "tokens"),
            (self.panel_button, "panel"),
            (self.compare_button, "compare"),
            (self.models_button, "models"),
            (self.settings_button, "settings"),
        ):
            button.setIcon(icon(name, theme().text))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "settings_button"):
            self._color_icons()


def _icon_button(name: str, tip: str) -> QPushButton:
    button = QPushButton()
    button.setAccessibleName(name)
    button.setToolTip(tip)
    button.setFixedSize(px(34), px(34))
    button.setIconSize(QSize(px(18), px(18)))
    return button


def _close_together(*buttons: QPushButton) -> QHBoxLayout:
    """A group of their own, which leaves more room for the model's name."""
    group = QHBoxLayout()
    group.setSpacing(px(2))
    for button in buttons:
        group.addWidget(button)
    return group


def _details(target: TargetInfo) -> str:
    size = f"{target.parameters / 1e9:.1f} B" if target.parameters >= 1e9 else f"{target.parameters / 1e6:.0f} M"
    parameters = translate("Window", "{count} parameters").format(count=size)
    parts = (target.quantisation, parameters, size_words(target.file_bytes), target.device)
    return "  ·  ".join(part for part in parts if part)
