"""Asks for which model a drafter in safetensors form is to be converted, and what its weights are to be kept in."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QDialog, QVBoxLayout, QWidget

from app.i18n import translate
from app.model_parts import button, label, row
from app.theme import font, px
from engine.library import LocalModel

TYPES = ("Q8_0", "Q4_0", "Q4_K", "F16")


class ConvertDialog(QDialog):
    chosen = Signal(str, object)  # path of the target, type or None

    def __init__(
        self, name: str, targets: Sequence[LocalModel], loaded: str | None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(translate("Convert", "Convert a drafter"))
        self.target, self.type = QComboBox(), QComboBox()
        for model in targets:
            self.target.addItem(f"{model.name} ({model.quantisation})", model.path)
        self.target.setCurrentIndex(max(0, self.target.findData(loaded)))
        self.target.setAccessibleName(translate("Convert", "The drafter's model"))
        self.type.addItem(translate("Convert", "As they are stored"), None)
        for kind in TYPES:
            self.type.addItem(kind, kind)
        self.type.setCurrentIndex(1)
        self.type.setAccessibleName(translate("Convert", "Weights"))
        self.convert_button = button(translate("Convert", "Convert"), "primary")
        self.convert_button.setDefault(True)
        self.convert_button.setEnabled(bool(targets))
        self.convert_button.clicked.connect(self._choose)
        cancel = button(translate("Convert", "Cancel"))
        cancel.clicked.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(px(22), px(18), px(22), px(18))
        column.setSpacing(px(8))
        column.addWidget(label(name, 15, bold=True))
        words = translate(
            "Convert", "The drafter becomes a GGUF file in your folder of drafters, with the vocabulary of its model."
        )
        column.addWidget(label(words, 13, "muted"))
        column.addSpacing(px(6))
        for title, box in (
            (translate("Convert", "The model that it drafts for"), self.target),
            (translate("Convert", "Its weights"), self.type),
        ):
            box.setFont(font(13))
            column.addWidget(label(title, 13))
            column.addWidget(box)
        column.addSpacing(px(10))
        column.addLayout(row(1, cancel, self.convert_button))
        self.setFixedWidth(px(460))

    def _choose(self) -> None:
        self.chosen.emit(self.target.currentData(), self.type.currentData())
        self.accept()
