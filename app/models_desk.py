"""Where models meet the window: the page, the strip and the mode switch's offer, over one `ModelWork`.

The window gives it a place for its page, tells it what the engine says, and loads and switches when it asks. Knows
nothing of conversations.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.drafter_strip import DrafterStrip
from app.mode_switch import ModeSwitch
from app.model_words import offer_words
from app.model_work import ModelWork
from app.models_page import ModelsPage
from app.preferences import Preferences
from app.quest import DrafterQuest
from app.shelf import Surroundings
from app.state import ChatState, Phase
from engine.catalog import DRAFTING_MODES
from engine.drafter_config import FEATURE_TAP_ARCHITECTURES
from engine.embedded import copy_path
from engine.events import Mode, ModesFound
from engine.host import FindDrafters, ListDevices, Request
from engine.library import LocalModel


class ModelsDesk(QObject):
    load = Signal()  # the target that the settings name now
    switch = Signal(object)  # to this Mode
    unload = Signal()  # the target that is loaded
    closed = Signal()  # the page is to give way to the chat

    def __init__(
        self, state: ChatState, preferences: Preferences, send: Callable[[Request], None], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._state, self._preferences, self._send = state, preferences, send
        self._switch: ModeSwitch | None = None
        self.work = ModelWork(self._surroundings, self)
        self.quest = DrafterQuest(self.work, self)
        self.work.drafters_changed.connect(self._look_for_drafters)
        self.quest.changed.connect(self._show_quest)
        self.quest.ready.connect(self._ready)

    def build(self) -> None:
        """Make the widgets, or make them again."""
        self.page, self.strip = ModelsPage(self.work), DrafterStrip()
        self.page.load.connect(self._load)
        self.page.unload.connect(self.unload)
        self.page.get_drafter.connect(self.quest.get)
        self.page.closed.connect(self.closed)
        self.strip.cancel.connect(self.quest.cancel)
        self.strip.again.connect(self.quest.again)
        self.show_in_use()
        self.strip.show_quest(self.quest.quest)

    def attach(self, switch: ModeSwitch) -> None:
        """The mode switch offers what is missing."""
        self._switch = switch
        switch.asked.connect(self._price)
        switch.get_drafter.connect(self._get)
        self._show_offers()

    def start(self) -> None:
        """Go on with the downloads of the last time."""
        self.work.go_on()

    def close(self) -> None:
        self.work.close()

    # --- what the window tells

    def opened(self) -> None:
        """The page is in view."""
        self._send(ListDevices())

    def target_loaded(self) -> None:
        """Another target, or none."""
        self.quest.target_changed(self._loaded)
        self.show_in_use()
        self._show_offers()

    def show_in_use(self) -> None:
        """Which target the page calls the one in use: none that was unloaded, or whose engine has stopped."""
        gone = self._state.engine in (Phase.EMPTY, Phase.STOPPED)
        self.page.show_loaded(None if gone else self._loaded)

    def answered(self) -> None:
        """What the strip said of the next answer has come true."""
        if self.quest.quest is not None and self.quest.quest.stage == "on":
            self.quest.cancel()

    def modes_found(self, event: ModesFound) -> None:
        mode = self.quest.modes_found(event.modes)
        if mode is not None and self._state.mode is not mode:
            self.switch.emit(mode)

    # --- inside

    @property
    def _loaded(self) -> str | None:
        return self._state.target.path if self._state.target else None

    def _surroundings(self) -> Surroundings:
        memory = self._state.memory
        return Surroundings(
            self._preferences.settings.load_settings(),
            self._preferences.devices,
            self._loaded,
            memory.process if memory else 0,
        )

    def _load(self, model: LocalModel) -> None:
        own = model.path == str(copy_path())
        self._preferences.change(target=None if own else model.path)
        self.load.emit()
        self.closed.emit()

    def _look_for_drafters(self) -> None:
        if self._state.target is not None:
            settings = self._preferences.settings
            self._send(FindDrafters(settings.drafters_of(settings.target)))

    def _price(self, mode: Mode) -> None:
        if self._can_draft and self._loaded is not None:
            self.quest.price(mode, self._loaded)

    def _get(self, mode: Mode) -> None:
        if self._loaded is not None:
            self.quest.get(mode, self._loaded)

    def _ready(self, _mode: Mode) -> None:
        """The last step is the engine's, which looks for drafters anew; not for a target that is not loaded."""
        quest = self.quest.quest
        if quest is not None and quest.target != self._loaded:
            self.quest.finish_without_switch()

    @property
    def _can_draft(self) -> bool:
        target = self._state.target
        return target is not None and target.architecture in FEATURE_TAP_ARCHITECTURES

    def _show_quest(self) -> None:
        quest = self.quest.quest
        self.strip.show_quest(quest)
        if quest is not None and quest.size:
            self.page.show_size(quest.target, quest.mode, quest.size)
        self._show_offers()

    def _show_offers(self) -> None:
        """What the mode switch offers for a mode without a drafter: nothing where no drafter can help."""
        if self._switch is None:
            return
        quest = self.quest.quest
        for mode in DRAFTING_MODES:
            words = offer_words(mode, None) if self._can_draft else ""
            if quest is not None and quest.mode is mode and quest.target == self._loaded:
                words = "" if quest.stage == "none" else offer_words(mode, quest.size)
                self._switch.show_offer(mode, words, "" if quest.stage == "on" else quest.sentence)
            else:
                self._switch.show_offer(mode, words)
