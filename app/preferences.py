"""The settings at work: what is chosen in the dialog, or by a key, reaches the window's state, looks and language.

Knows nothing of how the window is built: where other widgets are needed it says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QWidget

from app import theme
from app.i18n import use_language
from app.settings import LARGEST_FONT, SMALLEST_FONT, Settings, SettingsStore
from app.settings_page import SettingsDialog
from app.state import ChatState
from engine.events import DeviceInfo, LoadSettings


def take_look(settings: Settings) -> bool:
    """Theme, fonts and language; whether widgets that are there already have to be made again."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    look = theme.Look(
        settings.theme, settings.font_family, settings.font_size, settings.code_size, settings.reduced_motion
    )
    resized = theme.choose(application, look)
    return use_language(settings.language) or resized


class Preferences(QObject):
    rebuild = Signal()  # the widgets are of another size or language now
    refresh = Signal()  # what they show has changed
    reload = Signal()  # the user wants the model loaded again
    opened = Signal()  # the dialog is there, and wants to know the devices

    def __init__(self, store: SettingsStore, state: ChatState, window: QWidget) -> None:
        super().__init__(window)
        self.store = store
        self._state = state
        self._window = window
        self._loaded: LoadSettings | None = None
        self._devices: tuple[DeviceInfo, ...] = ()
        self.dialog: SettingsDialog | None = None
        self._apply_answers(conversation=True)

    @property
    def settings(self) -> Settings:
        return self.store.settings

    def load_settings(self) -> LoadSettings:
        """What is to be loaded now; the dialog compares with it from now on."""
        self._loaded = self.settings.load_settings()
        self.show_loaded()
        return self._loaded

    @property
    def devices(self) -> tuple[DeviceInfo, ...]:
        """As the engine last listed them."""
        return self._devices

    # --- the dialog

    def open(self, section: int = 0) -> None:
        if self.dialog is None:
            self.dialog = SettingsDialog(self.store, self._window)
            self.dialog.changed.connect(self._apply)
            self.dialog.reload.connect(self.reload)
            self.show_loaded()
            self.dialog.show_devices(self._devices)
        self.dialog.sections.setCurrentRow(section)
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.activateWindow()
        self.opened.emit()

    def show_loaded(self) -> None:
        """The engine has loaded something, or nothing."""
        if self.dialog is not None:
            self.dialog.show_loaded(self._loaded, self._state.modes)

    def show_devices(self, devices: tuple[DeviceInfo, ...]) -> None:
        self._devices = devices
        if self.dialog is not None:
            self.dialog.show_devices(devices)

    # --- changes

    def change(self, **values: Any) -> None:
        """As the dialog does; where the file cannot be written the change holds until the program ends."""
        try:
            changed = self.store.change(**values)
        except OSError:
            changed = set(values)
        self._apply(changed)
        if self.dialog is not None:
            self.dialog.show_settings()

    def zoom(self, step: int) -> None:
        """Larger or smaller text; 0: the usual size."""
        size = self.settings.font_size + step if step else Settings.font_size
        self.change(font_size=min(max(size, SMALLEST_FONT), LARGEST_FONT))

    def _apply(self, changed: set[str]) -> None:
        self._apply_answers(conversation=bool(changed & {"system_prompt_name", "system_prompts"}))
        if take_look(self.settings):
            self._remake_dialog()
            self.rebuild.emit()
        self.refresh.emit()

    def _apply_answers(self, conversation: bool) -> None:
        state, settings = self._state, self.settings
        state.wanted_mode = settings.mode
        state.options = replace(
            state.options,
            sampler=settings.sampler(),
            draft_length=settings.draft_length,
            candidates=settings.show_origins,
        )
        if conversation:
            state.conversation.system = settings.system_prompt()

    def _remake_dialog(self) -> None:
        """The dialog in the new language and size, where it was."""
        old, self.dialog = self.dialog, None
        if old is None:
            return
        section, visible, place = old.sections.currentRow(), old.isVisible(), old.pos()
        old.changed.disconnect(self._apply)
        old.close()
        old.deleteLater()
        if visible:
            self.open(section)
            assert self.dialog is not None
            self.dialog.move(place)
