"""Where the user types: Enter sends, Shift+Enter breaks the line, and an input method's Enter does neither.

Knows nothing of what happens to the text.
"""

from __future__ import annotations

from math import ceil

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QFocusEvent, QGuiApplication, QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy, QWidget

from app.theme import font, px

LINES_SHOWN = 9


class InputBox(QPlainTextEdit):
    submitted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._composing = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFont(font(15))
        self.setPlaceholderText("Write a message")
        self.setAccessibleName("Message")
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(px(2))
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self._fit()

    def text(self) -> str:
        """What was typed, as it was typed (Qt's own plain text would turn no-break spaces into spaces)."""
        return self.document().toRawText().replace("\u2029", "\n")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and self._composing:
            QGuiApplication.inputMethod().commit()  # this Enter ends the composition and nothing else
            event.accept()
        elif is_enter and not event.modifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier):
            self.submitted.emit()
            event.accept()
        elif is_enter:
            self.textCursor().insertBlock()  # Qt's Shift+Enter would insert U+2028
            self.ensureCursorVisible()
            event.accept()
        else:
            super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._composing = False
        super().focusOutEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if source.hasText():
            self.textCursor().insertText(source.text())
            self.ensureCursorVisible()

    def _fit(self) -> None:
        lines = self.document().size().height()  # of a QPlainTextEdit: in lines, wrapped ones counted
        shown = min(max(1, ceil(lines)), LINES_SHOWN)
        scrolls = lines > LINES_SHOWN
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if scrolls else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        self.setFixedHeight(shown * self.fontMetrics().lineSpacing() + 2 * px(2) + px(2))
