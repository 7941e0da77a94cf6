"""Where the user types: Enter sends, Shift+Enter breaks the line, and an input method's Enter does neither.

An input method shows its Enter in one of three ways. It keeps the key (nothing to do); it lets the key through while
the composition is still there (the key ends it); or it commits first and lets the key through right behind that, as
Hangul engines under IBus do. The last is told from a second Enter by what lies between: no key was let go, and no time
passed.

Knows nothing of what happens to the text.
"""

from __future__ import annotations

from math import ceil

from PySide6.QtCore import QElapsedTimer, QMimeData, Qt, Signal
from PySide6.QtGui import QFocusEvent, QGuiApplication, QInputMethodEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy, QWidget

from app.i18n import translate
from app.theme import font, px

LINES_SHOWN = 9
SAME_KEY_MS = 40  # a key that follows a commit sooner is the one that committed; nobody types that fast


class InputBox(QPlainTextEdit):
    submitted = Signal()
    files_given = Signal(list)  # paths, dropped or pasted

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._composing = False
        self._ended_by_us = False  # the composition's end was asked for by the Enter that is still held
        self._committed = QElapsedTimer()  # since an input method committed; invalid: not, or other keys came since
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFont(font(15))
        self.setPlaceholderText(translate("Input", "Write a message"))
        self.setAccessibleName(translate("Input", "Message"))
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
        is_commit = self._committed.isValid() and self._committed.elapsed() < SAME_KEY_MS
        self._committed.invalidate()
        if is_enter and self._composing:
            self._ended_by_us = True
            QGuiApplication.inputMethod().commit()  # this Enter ends the composition and nothing else
            event.accept()
        elif is_enter and is_commit:
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

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        self._committed.invalidate()
        super().keyReleaseEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        was_composing, self._composing = self._composing, bool(event.preeditString())
        if was_composing and event.commitString():
            if not self._ended_by_us:
                self._committed.start()
            self._ended_by_us = False
        super().inputMethodEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._composing = self._ended_by_us = False
        self._committed.invalidate()
        super().focusOutEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasUrls() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        files = local_files(source)
        if files:
            self.files_given.emit(files)
        elif source.hasText():
            self.textCursor().insertText(source.text())
            self.ensureCursorVisible()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width wraps the lines elsewhere, which Qt does not always tell."""
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self._fit()

    def _fit(self) -> None:
        lines = self.document().size().height()  # of a QPlainTextEdit: in lines, wrapped ones counted
        shown = min(max(1, ceil(lines)), LINES_SHOWN)
        scrolls = lines > LINES_SHOWN
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if scrolls else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        self.setFixedHeight(shown * self.fontMetrics().lineSpacing() + 2 * px(2) + px(2))


def local_files(source: QMimeData) -> list[str]:
    """The paths of the files that are dragged or pasted; links to other places are none."""
    return [url.toLocalFile() for url in source.urls() if url.isLocalFile()]
