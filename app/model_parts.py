"""Small widgets that the models page is made of. They know nothing of models."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QMenu,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.icons import icon
from app.theme import font, px, theme

STEPS = 1000  # of a progress bar


def label(text: str = "", size: float = 13, role: str = "", *, bold: bool = False, wrap: bool = True) -> QLabel:
    """Plain text that can be selected by the mouse."""
    made = QLabel(text)
    made.setFont(font(size, bold=bold, figures=not bold))
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setProperty("role", role)
    made.setWordWrap(wrap)
    return made


def set_role(widget: QWidget, role: str) -> None:
    if widget.property("role") != role:
        widget.setProperty("role", role)
        widget.style().polish(widget)


def button(text: str, role: str = "plain", name: str = "") -> QPushButton:
    """`name`: what a screen reader says, where the text alone would not do."""
    made = QPushButton(text)
    made.setProperty("role", role)
    made.setFont(font(13))
    made.setAccessibleName(name or text)
    return made


class IconButton(QPushButton):
    """A small picture in the colour of the theme, with a name for screen readers and as its tip."""

    def __init__(self, picture: str, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._picture = picture
        self.setProperty("role", "bare")
        self.setIconSize(QSize(px(18), px(18)))
        self.setFixedSize(px(30), px(30))
        self.setAccessibleName(name)
        self.setToolTip(name)
        self._color()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_picture"):
            self._color()

    def _color(self) -> None:
        self.setIcon(icon(self._picture, theme().muted))


def menu_button(name: str) -> tuple[QPushButton, QMenu]:
    """Three dots that open a menu."""
    made = IconButton("more", name)
    menu = QMenu(made)
    made.clicked.connect(lambda: menu.popup(made.mapToGlobal(made.rect().bottomLeft())))
    return made, menu


def bar(name: str) -> QProgressBar:
    made = QProgressBar()
    made.setRange(0, STEPS)
    made.setTextVisible(False)
    made.setAccessibleName(name)
    return made


def card() -> tuple[QFrame, QVBoxLayout]:
    frame = QFrame()
    frame.setObjectName("card")
    column = QVBoxLayout(frame)
    column.setContentsMargins(px(16), px(12), px(12), px(12))
    column.setSpacing(px(5))
    return frame, column


def row(*widgets: QWidget | QLayout | int, spacing: float = 8) -> QHBoxLayout:
    """Widgets in a line; a number is a stretch."""
    line = QHBoxLayout()
    line.setSpacing(px(spacing))
    for widget in widgets:
        if isinstance(widget, int):
            line.addStretch(widget)
        elif isinstance(widget, QLayout):
            line.addLayout(widget)
        else:
            line.addWidget(widget)
    return line


def emptied(layout: QLayout) -> None:
    """Take everything out of a layout, and get rid of it."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
        elif (inner := item.layout()) is not None:
            emptied(inner)
            inner.deleteLater()
