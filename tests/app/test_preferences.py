"""The settings at work in the window: looks, language and answers change at once, and nothing typed is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app import announce, i18n, theme
from app.attachments import Attachment
from app.settings import SAMPLERS, Settings, SettingsStore
from app.shortcuts import ShortcutsDialog
from app.state import Phase
from engine.events import Mode
from tests.app.conftest import Screen


@pytest.fixture(autouse=True)
def the_usual_look(qapp: QApplication) -> Iterator[None]:
    yield
    theme.choose(qapp, theme.Look())
    i18n.use_language("en")


def test_another_language_at_once_and_nothing_typed_is_lost(scripted: Screen) -> None:
    window = scripted.window
    scripted.ask_and_wait("say hello")
    window.composer.input.setPlainText("half a thought")
    window.composer.files.add(Attachment("notes.txt", "notes", 3))
    old = window.panel
    window.preferences.open(2)
    dialog = window.preferences.dialog
    assert dialog is not None and dialog.windowTitle() == "Settings"
    window.resize(theme.px(900), theme.px(700))  # the panel has given way
    window.preferences.change(language="ko")
    assert window.panel.isHidden() and not window.sidebar.isHidden()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert not isValid(old)  # what is no longer shown is no longer there
    assert window.composer.input.text() == "half a thought"
    assert [file.name for file in window.composer.files.files] == ["notes.txt"]
    assert window.composer.send_button.toolTip() == "보내기(Enter)"
    assert scripted.answer == "hello "
    again = window.preferences.dialog
    assert again is not None and again is not dialog and again.isVisible()
    assert again.windowTitle() == "설정" and again.sections.currentRow() == 2
    scripted.bot.keyClick(window, Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)  # each key is bound once
    assert window.state.mode is Mode.BASELINE
    scripted.ask_and_wait("")  # the files and what was typed
    assert scripted.window.state.conversation.turns[-1].question.endswith("half a thought")
    window.preferences.change(language="en")
    assert window.composer.send_button.toolTip() == "Send (Enter)"


def test_the_theme_whatever_the_system_says_and_larger_text_by_key(scripted: Screen) -> None:
    window = scripted.window
    window.preferences.change(theme="dark")
    assert theme.theme().dark
    window.preferences.change(theme="light")
    assert not theme.theme().dark
    usual = window.panel.width()
    scripted.bot.keyClick(window, Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    assert window.preferences.settings.font_size == Settings.font_size + 1
    assert window.panel.width() > usual
    scripted.bot.keyClick(window, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert window.preferences.settings.font_size == Settings.font_size and window.panel.width() == usual


def test_answers_are_made_as_the_settings_say_and_a_reload_takes_the_rest(scripted: Screen) -> None:
    window = scripted.window
    window.preferences.change(sampler_name="creative", draft_length=5, system_prompt_name="brief")
    assert window.state.options.sampler == SAMPLERS["creative"] and window.state.options.draft_length == 5
    assert window.state.conversation.system == window.preferences.settings.system_prompt()
    window.modes.choose(Mode.BASELINE)
    assert window.preferences.settings.mode is Mode.BASELINE
    scripted.ask_and_wait("say hello")
    window.new_conversation()
    assert window.state.conversation.system == window.preferences.settings.system_prompt()
    window.preferences.open(1)
    dialog = window.preferences.dialog
    assert dialog is not None and not dialog.note.isVisible()
    window.preferences.change(context=2048)
    assert dialog.note.isVisible()
    dialog.reload_button.click()
    assert window.state.phase is Phase.LOADING
    scripted.until_ready()
    assert window.state.context_size == 2048 and not dialog.note.isVisible()


def test_a_broken_settings_file_is_said_in_the_window(open_store: Screen) -> None:
    assert "settings-broken-1.json" in open_store.window.banner.sentence.text().replace("\u200b", "")


@pytest.fixture
def open_store(qtbot: QtBot, tmp_path: Path) -> Iterator[Screen]:
    from app.engine_thread import EngineThread
    from app.window import ChatWindow
    from tests.app.conftest import SCRIPTED

    (tmp_path / "settings.json").write_text("{")
    window = ChatWindow(EngineThread(SCRIPTED), SettingsStore(tmp_path / "settings.json"))
    qtbot.addWidget(window)
    window.show()
    screen = Screen(qtbot, window)
    screen.until_ready()
    yield screen
    window.close()


def test_the_list_of_shortcuts_names_each_key_once(scripted: Screen) -> None:
    window = scripted.window
    scripted.bot.keyClick(window, Qt.Key.Key_F1)
    dialog = window.findChild(ShortcutsDialog)
    assert dialog is not None and dialog.isVisible()
    keys = [shown for shown, _ in dialog.rows]
    assert len(keys) == len(set(keys)) and {"F1", "Esc", "Ctrl+N", "Ctrl+,", "Ctrl+3"} <= set(keys)
    assert all(words for _, words in dialog.rows)
    dialog.close()


def test_a_screen_reader_hears_of_the_answer_and_of_all_that_can_be_reached(
    scripted: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(
        announce.QAccessible, "updateAccessibility", lambda event: said.append(event.message()), raising=False
    )
    scripted.ask_and_wait("say one two")
    assert said == ["The answer is done: 2 tokens."]
    # It has a word for every button and every field, in the window and in the dialogs.
    window = scripted.window
    window.composer.files.add(Attachment("notes.txt", "notes"))
    window.preferences.open()
    dialog = window.preferences.dialog
    assert dialog is not None
    shortcuts = ShortcutsDialog(window.shortcuts, window)
    nameless = [
        f"{type(widget).__name__} {widget.objectName()} in {type(widget.parent()).__name__}"
        for top in (window, dialog, shortcuts)
        for widget in (top, *top.findChildren(QWidget))
        if _can_be_reached(widget) and not _name(widget)
    ]
    shortcuts.deleteLater()
    assert nameless == []


def _can_be_reached(widget: QWidget) -> bool:
    """A control; not the parts of which Qt makes one that has a name itself, nor what is read as text."""
    if widget.objectName().startswith("qt_") or widget.window().inherits("QComboBoxPrivateContainer"):
        return False
    if isinstance(widget, QAbstractButton):
        return widget.isVisible() or not isinstance(widget.parent(), QLineEdit)
    is_control = isinstance(widget, (QAbstractItemView, QAbstractSpinBox, QAbstractSlider, QComboBox, QLineEdit))
    is_typed_into = isinstance(widget, (QPlainTextEdit, QTextEdit)) and not widget.isReadOnly()
    return (is_control or is_typed_into) and bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)


def _name(widget: QWidget) -> str:
    interface = QAccessible.queryAccessibleInterface(widget)
    return interface.text(QAccessible.Text.Name) if interface else widget.accessibleName()


def test_tokens_are_coloured_by_a_key_and_their_candidates_are_asked_for(scripted: Screen) -> None:
    window = scripted.window
    assert not window.state.options.candidates and not window.conversation.shows_origins
    scripted.bot.keyClick(window, Qt.Key.Key_T, Qt.KeyboardModifier.ControlModifier)
    assert window.state.options.candidates and window.conversation.shows_origins and window.tokens_button.isChecked()
    window.tokens_button.click()
    assert not window.state.options.candidates and not window.conversation.shows_origins
