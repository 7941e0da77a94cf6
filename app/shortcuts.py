"""The window's keyboard shortcuts: one list from which they are bound and shown (F1).

Knows nothing of what they do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QGridLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.i18n import translate
from app.theme import font, px

COLUMNS = 2


@dataclass(frozen=True)
class Entry:
    words: str  # what it does
    keys: str  # such as "Ctrl+N", as Qt writes them in a file

    @property
    def shown_keys(self) -> str:
        """As the keys are called on this system, such as ⌘N."""
        return QKeySequence(self.keys).toString(QKeySequence.SequenceFormat.NativeText)


class Shortcuts:
    """The shortcuts of one window, in the order in which they were added."""

    def __init__(self, window: QWidget) -> None:
        self._window = window
        self._bound: list[QShortcut] = []
        self.entries: list[Entry] = []

    def add(self, words: str, keys: str, action: Callable[[], object], *more_keys: str) -> None:
        """Bind `action` to `keys`, and to `more_keys`, which are not shown."""
        for sequence in (keys, *more_keys):
            shortcut = QShortcut(QKeySequence(sequence), self._window)
            shortcut.activated.connect(action)
            self._bound.append(shortcut)
        self.entries.append(Entry(words, keys))

    def mention(self, words: str, keys: str) -> None:
        """A key that a widget answers to by itself."""
        self.entries.append(Entry(words, keys))

    def clear(self) -> None:
        for shortcut in self._bound:
            shortcut.setEnabled(False)
            shortcut.deleteLater()
        self._bound.clear()
        self.entries.clear()


class ShortcutsDialog(QDialog):
    def __init__(self, shortcuts: Shortcuts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(translate("Shortcuts", "Keyboard shortcuts"))
        page = QWidget()
        grid = QGridLayout(page)
        grid.setContentsMargins(px(26), px(20), px(26), px(12))
        grid.setHorizontalSpacing(px(14))
        grid.setVerticalSpacing(px(9))
        self.rows: list[tuple[str, str]] = []
        rows = -(-len(shortcuts.entries) // COLUMNS)
        for number, entry in enumerate(shortcuts.entries):
            keys, words = QLabel(entry.shown_keys), QLabel(entry.words)
            keys.setObjectName("key")
            keys.setFont(font(12, figures=True))
            words.setFont(font(13))
            column, row = divmod(number, rows)
            grid.addWidget(keys, row, 3 * column, Qt.AlignmentFlag.AlignRight)
            grid.addWidget(words, row, 3 * column + 1)
            self.rows.append((entry.shown_keys, entry.words))
        for column in range(COLUMNS - 1):
            grid.setColumnMinimumWidth(3 * column + 2, px(20))
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(page)
        scroll.setAccessibleName(translate("Shortcuts", "Keyboard shortcuts"))
        close = QPushButton(translate("Shortcuts", "Close"))
        close.setProperty("role", "plain")
        close.clicked.connect(self.close)
        column_layout = QVBoxLayout(self)
        column_layout.setContentsMargins(0, 0, px(16), px(14))
        column_layout.addWidget(scroll, 1)
        column_layout.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)
        wanted = page.sizeHint()
        self.resize(wanted.width() + px(44), min(wanted.height() + px(76), px(640)))
