"""Baseline, DFlash, DFlash 2: one of them is chosen. What cannot be used says why, and offers what would help.

Knows nothing of drafters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEasingCurve, QPoint, QRect, QRectF, Qt, QVariantAnimation, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.definitions import mode_meaning, mode_name
from app.engine_words import in_words
from app.i18n import translate
from app.theme import font, moves, px, theme, tip
from engine.events import Mode, ModeInfo

SLIDE_MS = 140
KEYS = {mode: f"Ctrl+{number}" for number, mode in enumerate(Mode, 1)}


class ModeSwitch(QFrame):
    """The chosen mode lies on a plate that slides to it."""

    chosen = Signal(object)  # Mode, by the user's hand
    asked = Signal(object)  # Mode: the user wants to know why it cannot be used
    get_drafter = Signal(object)  # Mode: the user asks for a drafter that is missing

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("modes")
        self.setAccessibleName(translate("Modes", "Decoding mode"))
        self._row = row = QHBoxLayout(self)
        row.setContentsMargins(px(3), px(3), px(3), px(3))
        row.setSpacing(px(2))
        self._current = Mode.BASELINE
        self._infos: dict[Mode, ModeInfo] = {}
        self.offers: dict[Mode, str] = {}  # by mode: what the button that gets a drafter says; "": there is no button
        self._notes: dict[Mode, str] = {}  # by mode: what is known of the drafter on offer
        self._plate: QRect | None = None  # where the plate lies; None: not shown yet
        self._slide = QVariantAnimation(self)
        self._slide.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._slide.setDuration(SLIDE_MS)
        self._slide.valueChanged.connect(self._move_plate)
        self.reason = _Reason(self)
        self.reason.get.connect(lambda: self.get_drafter.emit(self.reason.mode))
        self.buttons: dict[Mode, QPushButton] = {}
        for mode in Mode:
            button = QPushButton(mode_name(mode))
            button.setCheckable(True)
            button.setFont(font(13, bold=True))
            button.setAccessibleName(translate("Modes", "Mode: {name}").format(name=mode_name(mode)))
            button.clicked.connect(lambda _checked, mode=mode: self.choose(mode))
            row.addWidget(button)
            self.buttons[mode] = button
        self.show_modes((), Mode.BASELINE)

    def show_modes(self, modes: Sequence[ModeInfo], current: Mode, measured: Mapping[Mode, str] | None = None) -> None:
        """`measured`: a sentence on what a mode reached, where it was used."""
        self._infos = {info.mode: info for info in modes}
        for mode, button in self.buttons.items():
            reason = self._why_not(mode)
            if button.property("available") is not (reason is None):
                button.setProperty("available", reason is None)
                button.style().polish(button)
            words = [mode_meaning(mode), *filter(None, [(measured or {}).get(mode)])]
            if reason is not None:
                words.append(translate("Modes", "Not available: {reason}").format(reason=reason))
            explanation = "\n\n".join(words)
            if explanation != button.accessibleDescription():
                button.setAccessibleDescription(explanation)
                button.setToolTip(tip(f"{explanation}\n\n{KEYS[mode]}"))
            button.setChecked(mode is current)
        self._current = current
        self._place_plate(moving=True)

    def choose(self, mode: Mode) -> None:
        """As a click does: take the mode, or say why it cannot be taken."""
        for other, button in self.buttons.items():
            button.setChecked(other is self._current)  # whoever is told decides
        reason = self._why_not(mode)
        if reason is None:
            self.chosen.emit(mode)
        else:
            self.asked.emit(mode)
            self.reason.say(mode, reason, self.offers.get(mode), self._notes.get(mode, ""), self.buttons[mode])

    def show_offer(self, mode: Mode, words: str, note: str = "") -> None:
        """What the button that gets this mode's drafter says ("": no button), and a sentence beside it."""
        self.offers[mode], self._notes[mode] = words, note
        reason = self._why_not(mode)
        if self.reason.isVisible() and self.reason.mode is mode and reason is not None:
            self.reason.say(mode, reason, words, note, self.buttons[mode])

    def _why_not(self, mode: Mode) -> str | None:
        info = self._infos.get(mode)
        if info is None:
            return translate("Modes", "No model is loaded.")
        return in_words(info.reason) if info.reason else None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The arrow keys move between the modes."""
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        buttons = list(self.buttons.values())
        focused = next((number for number, button in enumerate(buttons) if button.hasFocus()), None)
        if step is None or focused is None:
            super().keyPressEvent(event)
        else:
            buttons[(focused + step) % len(buttons)].setFocus(Qt.FocusReason.OtherFocusReason)

    # --- the plate

    def _place_plate(self, moving: bool) -> None:
        place = self.buttons[self._current].geometry()
        if place == (self._slide.endValue() if self._slide.state() is QVariantAnimation.State.Running else self._plate):
            return
        self._slide.stop()
        if moving and moves() and self.isVisible() and self._plate is not None:
            self._slide.setStartValue(self._plate)
            self._slide.setEndValue(place)
            self._slide.start()
        else:
            self._move_plate(place)

    def _move_plate(self, place: QRect) -> None:
        self._plate = place
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._row.activate()
        self._place_plate(moving=False)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._plate is None or not self._infos:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme().color("line"), 1))
        painter.setBrush(theme().color("chosen"))
        painter.drawRoundedRect(QRectF(self._plate).adjusted(0.5, 0.5, -0.5, -0.5), px(8), px(8))
        painter.end()


class _Reason(QFrame):
    """A small sheet under a mode that cannot be used: why, and the button that gets what is missing."""

    get = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setObjectName("sheet")
        self.mode = Mode.BASELINE
        self.title, self.sentence, self.note = QLabel(), QLabel(), QLabel()
        self.title.setFont(font(14, bold=True))
        self.sentence.setFont(font(13))
        self.note.setFont(font(12))
        self.note.setProperty("role", "muted")
        for label in (self.title, self.sentence, self.note):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
        self.button = QPushButton(translate("Modes", "Get a drafter…"))
        self.button.setProperty("role", "primary")
        self.button.clicked.connect(self._get)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(px(18), px(14), px(18), px(16))
        column.setSpacing(px(8))
        for widget in (self.title, self.sentence):
            column.addWidget(widget)
        column.addSpacing(px(4))
        column.addWidget(self.note)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        self.setFixedWidth(px(340))

    def say(self, mode: Mode, reason: str, offer: str | None, note: str, under: QWidget) -> None:
        self.mode = mode
        self.title.setText(translate("Modes", "{mode} cannot be used now").format(mode=mode_name(mode)))
        self.sentence.setText(reason.replace("/", "/\u200b"))  # so that a path can be broken
        self.note.setText(note)
        self.note.setVisible(bool(note))
        words = translate("Modes", "Get a drafter…") if offer is None else offer
        self.button.setVisible(bool(words))
        self.button.setText(words)
        self.button.setAccessibleName(words)
        self.setAccessibleName(f"{self.title.text()}. {reason}")
        self.adjustSize()
        self.setFixedHeight(self._column.totalHeightForWidth(self.width()))
        corner = under.mapToGlobal(QPoint(under.width() - self.width(), under.height() + px(8)))
        self.move(max(0, corner.x()), corner.y())
        self.show()
        self.button.setFocus()

    def _get(self) -> None:
        self.hide()
        self.get.emit()
