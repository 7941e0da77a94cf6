"""The settings dialog, driven by hand: what it changes, what it stores, and when it asks for a reload."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QSpinBox
from pytestqt.qtbot import QtBot

from app.settings import SAMPLERS, SettingsStore
from app.settings_page import SettingsDialog
from engine.events import DeviceInfo, LoadSettings, Mode, ModeInfo

MODES = (
    ModeInfo(Mode.BASELINE, None, None),
    ModeInfo(Mode.DFLASH, "/models/found.gguf", None),
    ModeInfo(Mode.DFLASH2, None, "None was found."),
)


@pytest.fixture
def store(tmp_path: Path) -> SettingsStore:
    return SettingsStore(tmp_path / "settings.json")


@pytest.fixture
def dialog(qtbot: QtBot, store: SettingsStore) -> SettingsDialog:
    dialog = SettingsDialog(store)
    qtbot.addWidget(dialog)
    dialog.show_loaded(LoadSettings(), MODES)
    dialog.show()
    return dialog


def choose(box: QComboBox, value: object) -> None:
    """As a user does."""
    number = box.findData(value)
    assert number >= 0
    box.setCurrentIndex(number)
    box.activated.emit(number)


def control(dialog: SettingsDialog, name: str) -> QComboBox | QSpinBox:
    for form in (dialog.answers, dialog.model, dialog.look):
        if name in form.controls:
            return form.controls[name]  # type: ignore[return-value]
    raise KeyError(name)


def test_a_change_is_stored_and_said_at_once(qtbot: QtBot, dialog: SettingsDialog, store: SettingsStore) -> None:
    box = control(dialog, "theme")
    assert isinstance(box, QComboBox)
    with qtbot.waitSignal(dialog.changed, check_params_cb=lambda names: names == {"theme"}):
        choose(box, "dark")
    assert store.path is not None and SettingsStore(store.path).settings.theme == "dark"
    length = control(dialog, "draft_length")
    assert isinstance(length, QSpinBox) and length.text() == "Automatic"
    length.setValue(5)
    assert store.settings.draft_length == 5
    length.setValue(0)
    assert store.settings.draft_length is None
    assert not dialog.note.isVisible()  # none of this concerns the loading


def test_what_needs_a_reload_says_so_until_it_was_loaded(
    qtbot: QtBot, dialog: SettingsDialog, store: SettingsStore
) -> None:
    context = control(dialog, "context")
    assert isinstance(context, QSpinBox)
    context.setValue(8192)
    assert store.settings.context == 8192
    assert dialog.note.isVisible() and dialog.reload_button.isVisible()
    with qtbot.waitSignal(dialog.reload):
        qtbot.mouseClick(dialog.reload_button, Qt.MouseButton.LeftButton)
    dialog.show_loaded(store.settings.load_settings(), MODES)
    assert not dialog.note.isVisible()
    context.setValue(2048)
    assert dialog.note.isVisible()
    context.setValue(8192)  # back to what is loaded
    assert not dialog.note.isVisible()


def test_a_drafter_belongs_to_its_target(dialog: SettingsDialog, store: SettingsStore) -> None:
    assert "found.gguf" in dialog.drafters[Mode.DFLASH].name.text()
    dialog.drafters[Mode.DFLASH].chosen.emit("/d1.gguf")
    dialog.target.chosen.emit("/big.gguf")
    assert store.settings.load_settings().drafters == {}
    dialog.drafters[Mode.DFLASH2].chosen.emit("/d2-big.gguf")
    assert store.settings.load_settings() == LoadSettings("/big.gguf", {Mode.DFLASH2: "/d2-big.gguf"})
    dialog.target.back.click()
    assert store.settings.load_settings() == LoadSettings(None, {Mode.DFLASH: "/d1.gguf"})
    dialog.drafters[Mode.DFLASH].back.click()
    assert store.settings.load_settings() == LoadSettings()


def test_changing_a_preset_makes_one_of_the_users_own(dialog: SettingsDialog, store: SettingsStore) -> None:
    form = dialog.samplers
    choose(form.chooser.box, "balanced")
    assert store.settings.sampler() == SAMPLERS["balanced"]
    temperature = form.fields.controls["temperature"]
    assert isinstance(temperature, QDoubleSpinBox) and temperature.value() == 0.7
    assert not form.chooser.rename.isEnabled() and not form.chooser.delete.isEnabled()
    temperature.setValue(0.5)
    assert store.settings.sampler_name == "Balanced, my version"
    assert store.settings.sampler().temperature == 0.5
    temperature.setValue(0.4)  # the same preset, changed again
    assert list(store.settings.samplers) == ["Balanced, my version"]
    form.chooser.renamed.emit("Balanced, my version", "Mine")
    assert store.settings.sampler_name == "Mine" and store.settings.sampler().temperature == 0.4
    choose(form.chooser.box, "balanced")
    assert store.settings.sampler() == SAMPLERS["balanced"]
    choose(form.chooser.box, "Mine")
    form.chooser.delete.click()
    assert store.settings.samplers == {} and store.settings.sampler() == SAMPLERS["precise"]


def test_a_system_prompt_is_taken_when_its_field_is_left(
    qtbot: QtBot, dialog: SettingsDialog, store: SettingsStore
) -> None:
    form = dialog.prompts
    choose(form.chooser.box, "brief")
    assert "briefly" in form.text.toPlainText()
    form.text.setPlainText("항상 존댓말로 답하세요.")
    assert store.settings.system_prompt_name == "brief"
    form.commit()
    assert store.settings.system_prompt() == "항상 존댓말로 답하세요."
    form.text.setPlainText("Last words")
    dialog.close()  # nothing that was typed is lost
    assert store.settings.system_prompt() == "Last words"


def test_devices_are_those_of_the_engine(dialog: SettingsDialog, store: SettingsStore) -> None:
    cpu = DeviceInfo("CPU", "a processor", "cpu", 1 << 33, 1 << 34)
    dialog.show_devices((cpu,))
    layers = dialog.model.controls["gpu_layers"]
    assert not layers.isEnabled() and "processor only" in dialog.model.hints["gpu_layers"].text()
    dialog.show_devices((DeviceInfo("CUDA0", "a card", "gpu", 1 << 34, 1 << 35), cpu))
    assert layers.isEnabled()
    choose(dialog._device, "CUDA0")
    assert store.settings.load_settings().device == "CUDA0"


def test_a_file_that_cannot_be_written_is_said_and_the_change_holds(
    qtbot: QtBot, dialog: SettingsDialog, store: SettingsStore, tmp_path: Path
) -> None:
    (tmp_path / "settings.json").mkdir()
    box = control(dialog, "language")
    assert isinstance(box, QComboBox)
    with qtbot.waitSignal(dialog.changed, check_params_cb=lambda names: names == {"language"}):
        choose(box, "ko")
    assert store.settings.language == "ko"
    assert dialog.note.isVisible() and "could not be stored" in dialog.note_text.text()
