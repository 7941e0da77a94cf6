"""Rows of settings: a title, a line of explanation, and a control that shows one field and says what the user changes.

Knows nothing of what the fields mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QLabel,
    QPlainTextEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.i18n import translate
from app.theme import font, px

CONTROL_WIDTH = 230


class Form(QWidget):
    """A column of rows. `changed` comes from the user's hand only."""

    changed = Signal(str, object)  # a field and its value

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.controls: dict[str, QWidget] = {}  # by field
        self.hints: dict[str, QLabel] = {}
        self._showing: dict[str, Callable[[Any], None]] = {}
        self._still = _NoWheel(self)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(px(28), px(22), px(28), px(22))
        self._column.setSpacing(px(18))

    # --- building

    def lie_flush(self) -> None:
        """Without margins: the form is a part of another one."""
        self._column.setContentsMargins(0, 0, 0, 0)

    def heading(self, text: str) -> None:
        label = QLabel(text)
        label.setFont(font(16, bold=True))
        self._column.addWidget(label)

    def row(self, name: str, title: str, hint: str, control: QWidget, below: bool = False) -> None:
        """`below`: the control takes the whole width, under the words."""
        words = QLabel(title)
        words.setFont(font(14))
        words.setBuddy(control)
        explanation = QLabel(hint)
        explanation.setFont(font(12))
        explanation.setProperty("role", "muted")
        explanation.setWordWrap(True)
        explanation.setTextFormat(Qt.TextFormat.PlainText)
        explanation.setVisible(bool(hint))
        if not control.accessibleName():
            control.setAccessibleName(title)
        control.setAccessibleDescription(hint)
        control.installEventFilter(self._still)
        grid = QGridLayout()
        grid.setHorizontalSpacing(px(18))
        grid.setVerticalSpacing(px(3))
        grid.setColumnStretch(0, 1)
        grid.addWidget(words, 0, 0)
        grid.addWidget(explanation, 1, 0)
        if below:
            grid.addWidget(control, 2, 0, 1, 2)
        else:
            control.setFixedWidth(px(CONTROL_WIDTH))
            grid.addWidget(control, 0, 1, 2, 1, Qt.AlignmentFlag.AlignTop)
        self._column.addLayout(grid)
        self.controls[name], self.hints[name] = control, explanation

    def add(self, widget: QWidget) -> None:
        self._column.addWidget(widget)

    def stretch(self) -> None:
        self._column.addStretch(1)

    def choice(self, name: str, title: str, hint: str, choices: Sequence[tuple[Any, str]]) -> QComboBox:
        """One of several values, each with its words."""
        box = QComboBox()
        box.setFont(font(13))

        def offer(value: Any) -> None:
            box.clear()
            for one, words in choices:
                box.addItem(words, one)
            place = next((number for number, (one, _) in enumerate(choices) if one == value), -1)
            if place < 0:  # a value from elsewhere is kept, and shown as it is
                box.addItem(str(value), value)
                place = box.count() - 1
            box.setCurrentIndex(place)

        box.activated.connect(lambda number: self.changed.emit(name, box.itemData(number)))
        self._showing[name] = offer
        self.row(name, title, hint, box)
        return box

    def number(
        self,
        name: str,
        title: str,
        hint: str,
        lowest: int,
        highest: int,
        step: int = 1,
        nothing: tuple[int, Any, str] | None = None,
    ) -> QSpinBox:
        """A whole number. `nothing`: (the number below all that stands for it, the value it means, its words)."""
        box = QSpinBox()
        box.setRange(lowest if nothing is None else nothing[0], highest)
        box.setSingleStep(step)
        box.setGroupSeparatorShown(True)
        if nothing is not None:
            box.setSpecialValueText(nothing[2])

        def show(value: Any) -> None:
            box.setValue(nothing[0] if nothing is not None and value == nothing[1] else value)

        def value_of(number: int) -> Any:
            if nothing is None:
                return number
            return nothing[1] if number == nothing[0] else max(number, lowest)

        self._spin(name, title, hint, box, show, lambda: value_of(box.value()))
        return box

    def decimal(self, name: str, title: str, hint: str, lowest: float, highest: float, step: float) -> QDoubleSpinBox:
        box = QDoubleSpinBox()
        box.setRange(lowest, highest)
        box.setSingleStep(step)
        box.setDecimals(2)
        self._spin(name, title, hint, box, box.setValue, lambda: round(box.value(), 4))
        return box

    def _spin(
        self,
        name: str,
        title: str,
        hint: str,
        box: QSpinBox | QDoubleSpinBox,
        show: Callable[[Any], None],
        value: Callable[[], Any],
    ) -> None:
        box.setFont(font(13, figures=True))
        box.lineEdit().setTextMargins(px(7), 0, 0, 0)  # a style sheet's padding does not reach it
        box.setKeyboardTracking(False)  # a number is taken when it is complete

        def quietly(given: Any) -> None:
            box.blockSignals(True)
            show(given)
            box.blockSignals(False)

        box.valueChanged.connect(lambda _: self.changed.emit(name, value()))
        self._showing[name] = quietly
        self.row(name, title, hint, box)

    def flag(self, name: str, title: str, hint: str) -> QCheckBox:
        box = QCheckBox(translate("Settings", "On"))
        box.setFont(font(13))
        box.setAccessibleName(title)
        box.clicked.connect(lambda on: self.changed.emit(name, on))
        self._showing[name] = box.setChecked
        self.row(name, title, hint, box)
        return box

    # --- showing

    def show_values(self, values: object) -> None:
        """Show the fields of an object that bear the rows' names."""
        for name, show in self._showing.items():
            show(getattr(values, name))


class TextField(QPlainTextEdit):
    """A text of several lines that is taken over when the user leaves it."""

    committed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "field")
        self.setFont(font(13))
        self.setTabChangesFocus(True)
        self.setFixedHeight(px(110))
        self._shown = ""

    def show_text(self, text: str) -> None:
        self._shown = text
        if text != self.toPlainText():
            self.setPlainText(text)

    def commit(self) -> None:
        if self.toPlainText() != self._shown:
            self._shown = self.toPlainText()
            self.committed.emit(self._shown)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.commit()


class _NoWheel(QObject):
    """Scrolling the page changes no control that the pointer happens to pass."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel and isinstance(watched, (QComboBox, QAbstractSpinBox)):
            event.ignore()
            return not watched.hasFocus()
        return False
