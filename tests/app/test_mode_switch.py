"""The mode switch: by mouse and keys, and what it says of a mode that cannot be used."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt, QVariantAnimation
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.mode_switch import ModeSwitch
from engine.events import Mode, ModeInfo

MODES = (
    ModeInfo(Mode.BASELINE, None, None),
    ModeInfo(Mode.DFLASH, "/models/d.gguf", None),
    ModeInfo(Mode.DFLASH2, None, "No DFlash 2 drafter for this model was found."),
)


@pytest.fixture
def switch(qtbot: QtBot) -> ModeSwitch:
    switch = ModeSwitch()
    qtbot.addWidget(switch)
    switch.show_modes(MODES, Mode.DFLASH)
    switch.show()
    return switch


def test_a_click_asks_and_the_answer_moves_the_plate(qtbot: QtBot, switch: ModeSwitch) -> None:
    with qtbot.waitSignal(switch.chosen, check_params_cb=lambda mode: mode is Mode.BASELINE):
        qtbot.mouseClick(switch.buttons[Mode.BASELINE], Qt.MouseButton.LeftButton)
    assert switch.buttons[Mode.DFLASH].isChecked()  # until the window says otherwise
    slide = switch._slide
    with qtbot.waitSignal(slide.finished):
        switch.show_modes(MODES, Mode.BASELINE)
    assert switch.buttons[Mode.BASELINE].isChecked()
    assert switch._plate == switch.buttons[Mode.BASELINE].geometry()


def test_with_reduced_motion_the_plate_is_there_at_once(switch: ModeSwitch, qapp: QApplication) -> None:
    try:
        theme.choose(qapp, theme.Look(reduced_motion=True))
        switch.show_modes(MODES, Mode.BASELINE)
        assert switch._slide.state() is QVariantAnimation.State.Stopped
        assert switch._plate == switch.buttons[Mode.BASELINE].geometry()
    finally:
        theme.choose(qapp, theme.Look())


def test_a_missing_drafter_is_explained_and_can_be_got(qtbot: QtBot, switch: ModeSwitch) -> None:
    switch.offers[Mode.DFLASH2] = "Get the DFlash 2 drafter (1.0 GB)"
    with qtbot.assertNotEmitted(switch.chosen):
        qtbot.mouseClick(switch.buttons[Mode.DFLASH2], Qt.MouseButton.LeftButton)
    sheet = switch.reason
    assert sheet.isVisible() and switch.buttons[Mode.DFLASH].isChecked()
    assert "No DFlash 2 drafter" in sheet.sentence.text() and "DFlash 2" in sheet.title.text()
    assert sheet.button.text() == "Get the DFlash 2 drafter (1.0 GB)"
    with qtbot.waitSignal(switch.get_drafter, check_params_cb=lambda mode: mode is Mode.DFLASH2):
        sheet.button.click()
    assert not sheet.isVisible()


def test_arrow_keys_and_space(qtbot: QtBot, switch: ModeSwitch) -> None:
    switch.buttons[Mode.BASELINE].setFocus()
    switch.activateWindow()
    qtbot.waitUntil(switch.buttons[Mode.BASELINE].hasFocus)
    qtbot.keyClick(switch.buttons[Mode.BASELINE], Qt.Key.Key_Right)
    assert switch.buttons[Mode.DFLASH].hasFocus()
    with qtbot.waitSignal(switch.chosen, check_params_cb=lambda mode: mode is Mode.DFLASH):
        qtbot.keyClick(switch.buttons[Mode.DFLASH], Qt.Key.Key_Space)
