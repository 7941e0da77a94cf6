"""Choosing, renaming and deleting named presets, those of the program and the user's own.

Knows nothing of what a preset holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QInputDialog, QLineEdit, QPushButton, QWidget

from app.i18n import translate
from app.theme import font, px


class PresetChooser(QWidget):
    chosen = Signal(str)  # the name it is stored under
    renamed = Signal(str, str)  # one of the user's own: old name, new name
    deleted = Signal(str)  # one of the user's own

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(title)
        self.box = QComboBox()
        self.box.setFont(font(13))
        self.box.setAccessibleName(title)
        self.rename = _button(translate("Settings", "Rename…"), translate("Settings", "Rename this preset"))
        self.delete = _button(translate("Settings", "Delete"), translate("Settings", "Delete this preset"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(px(8))
        row.addWidget(self.box, 1)
        row.addWidget(self.rename)
        row.addWidget(self.delete)
        self.setFocusProxy(self.box)
        self.box.activated.connect(lambda number: self.chosen.emit(self.box.itemData(number)))
        self.rename.clicked.connect(self._rename)
        self.delete.clicked.connect(lambda: self.deleted.emit(self.current))

    @property
    def current(self) -> str:
        return str(self.box.currentData())

    def show_presets(self, with_program: Mapping[str, str], own: Sequence[str], current: str) -> None:
        """`with_program`: stored name and words of those that come with the program."""
        self.box.clear()
        for name, words in with_program.items():
            if name not in own:
                self.box.addItem(words, name)
        for name in own:
            self.box.addItem(name, name)
        self.box.setCurrentIndex(max(0, self.box.findData(current)))
        is_own = current in own
        self.rename.setEnabled(is_own)
        self.delete.setEnabled(is_own)

    def _rename(self) -> None:
        old = self.current
        new, well = QInputDialog.getText(
            self, translate("Settings", "Rename"), translate("Settings", "Name:"), QLineEdit.EchoMode.Normal, old
        )
        if well and new.strip() and new.strip() != old:
            self.renamed.emit(old, new.strip())


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """`wanted`, or with a number behind it where that is taken."""
    names, number, name = set(taken), 1, wanted
    while name in names:
        number += 1
        name = f"{wanted} {number}"
    return name


def _button(text: str, name: str) -> QPushButton:
    button = QPushButton(text)
    button.setAccessibleName(name)
    button.setProperty("role", "plain")
    button.setFont(font(13))
    button.setAutoDefault(False)  # Enter in a field of the dialog is no click
    return button
