"""The models on this disk: a card for each chat model, with its drafters beneath, and what cannot be placed at the end.

Shows a `Shelf`; says what the user wants done. Knows nothing of how that is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QMenu, QPushButton, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app.definitions import mode_name
from app.i18n import translate
from app.model_parts import button, card, emptied, label, menu_button, row
from app.model_words import drafter_words, fit_words, joined, offer_words, target_words
from app.shelf import Shelf, ShelvedTarget
from app.theme import font, px
from engine.events import Mode
from engine.library import LocalModel, Origin


class ShelfView(QScrollArea):
    load = Signal(object)  # a LocalModel that is a target
    unload = Signal()  # the one in use
    get_drafter = Signal(object, str)  # Mode, path of the target
    remove = Signal(object)  # a LocalModel
    check = Signal(object)  # a LocalModel

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.cards: dict[str, TargetCard] = {}  # by path
        inside = QWidget()
        inside.setObjectName("column")
        self._column = QVBoxLayout(inside)
        self._column.setContentsMargins(0, 0, px(8), px(12))
        self._column.setSpacing(px(10))
        self.setWidget(inside)

    def show_shelf(
        self, shelf: Shelf, loaded: str | None, *, looking: bool, sizes: Mapping[tuple[str, Mode], int]
    ) -> None:
        """`loaded`: path of the target in use. `sizes`: what getting a drafter would cost, where that is known."""
        emptied(self._column)
        self.cards = {}
        for target in shelf.targets:
            made = TargetCard(target, target.model.path == loaded, sizes)
            made.load.connect(lambda model=target.model: self.load.emit(model))
            made.unload.connect(self.unload)
            made.get_drafter.connect(lambda mode, path=target.model.path: self.get_drafter.emit(mode, path))
            made.remove.connect(self.remove)
            made.check.connect(self.check)
            self.cards[target.model.path] = made
            self._column.addWidget(made)
        if not shelf.models:
            words = (
                translate("Models", "Looking at the disk…") if looking else translate("Models", "No model is here yet.")
            )
            self._column.addWidget(label(words, 13, "muted"))
        self._group(translate("Models", "Drafters whose model is not here"), shelf.lone_drafters)
        self._group(translate("Models", "Files that cannot be used"), shelf.others)
        self._column.addStretch(1)

    def _group(self, title: str, models: tuple[LocalModel, ...]) -> None:
        if not models:
            return
        self._column.addSpacing(px(10))
        self._column.addWidget(label(title, 14, bold=True))
        for model in models:
            frame, column = card()
            dots, menu = menu_button(translate("Models", "What can be done with {name}").format(name=model.name))
            _fill_menu(menu, model, self)
            said = drafter_words(model)
            if model.mode is not None:
                said = joined((mode_name(model.mode), said))
            column.addLayout(row(label(said), dots))
            if model.problem:
                column.addWidget(label(model.problem, 12, "muted"))
            self._column.addWidget(frame)


class TargetCard(QFrame):
    load = Signal()
    unload = Signal()
    get_drafter = Signal(object)  # Mode
    remove = Signal(object)
    check = Signal(object)

    def __init__(
        self, target: ShelvedTarget, loaded: bool, sizes: Mapping[tuple[str, Mode], int], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        model = target.model
        self.name = label(model.name, 14, bold=True)
        self.details = label(target_words(model), 12, "muted")
        self.load_button = button(
            translate("Models", "Load"), "primary", translate("Models", "Load {name}").format(name=model.name)
        )
        self.load_button.clicked.connect(self.load)
        self.load_button.setVisible(not loaded and model.problem is None)
        self.unload_button = button(
            translate("Models", "Unload"), "plain", translate("Models", "Unload {name}").format(name=model.name)
        )
        self.unload_button.setToolTip(translate("Models", "Give its memory back (Ctrl+Shift+U)"))
        self.unload_button.clicked.connect(self.unload)
        self.unload_button.setVisible(loaded)
        self.pill = label(translate("Models", "In use"), 12, wrap=False)
        self.pill.setObjectName("pill")
        self.pill.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)  # no button, beside some
        self.pill.setVisible(loaded)
        dots, menu = menu_button(translate("Models", "What can be done with {name}").format(name=model.name))
        _fill_menu(menu, model, self, removable=not loaded)
        column = QVBoxLayout(self)
        column.setContentsMargins(px(16), px(12), px(12), px(12))
        column.setSpacing(px(4))
        column.addLayout(row(self.name, 1, self.pill, self.load_button, self.unload_button, dots))
        column.addWidget(self.details)
        self.fit = label("", 12, "muted")
        if target.fit is not None:
            words, role = fit_words(target.fit)
            self.fit.setText(words)
            self.fit.setProperty("role", role)
        elif model.problem:
            self.fit.setText(model.problem)
            self.fit.setProperty("role", "danger")
        self.fit.setVisible(bool(self.fit.text()))
        column.addWidget(self.fit)
        for drafter in target.drafters:
            column.addLayout(self._drafter(drafter))
        self.offers: dict[Mode, QPushButton] = {}
        for mode in target.missing:
            self.offers[mode] = self._offer(mode, sizes.get((model.path, mode)) or target.sizes.get(mode))
        if self.offers:
            column.addSpacing(px(4))
            column.addLayout(row(*self.offers.values(), 1))

    def _drafter(self, drafter: LocalModel) -> QVBoxLayout:
        mode = label(mode_name(drafter.mode) if drafter.mode else "", 12, wrap=False)
        mode.setFont(font(12, bold=True))
        name = translate("Models", "What can be done with {name}").format(name=drafter.name)
        dots, menu = menu_button(name)
        _fill_menu(menu, drafter, self)
        said = label(drafter_words(drafter), 12, "muted")
        line = row(mode, said, dots)
        line.setStretch(1, 1)
        outer = QVBoxLayout()
        outer.setContentsMargins(px(14), 0, 0, 0)
        outer.addLayout(line)
        return outer

    def _offer(self, mode: Mode, size: int | None) -> QPushButton:
        made = button(offer_words(mode, size))
        made.setFont(font(12))
        made.clicked.connect(lambda: self.get_drafter.emit(mode))
        return made


def _fill_menu(menu: QMenu, model: LocalModel, view: ShelfView | TargetCard, removable: bool = True) -> None:
    folder = QUrl.fromLocalFile(str(Path(model.path).parent))
    menu.addAction(translate("Models", "Show its folder"), lambda: QDesktopServices.openUrl(folder))
    menu.addAction(translate("Models", "Check the file"), lambda: view.check.emit(model))
    if removable and model.origin is not Origin.BUNDLED:
        menu.addAction(translate("Models", "Remove…"), lambda: view.remove.emit(model))
