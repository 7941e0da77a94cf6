"""The window with the scripted engine: what the real one cannot be made to do at will."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontInfo, QRawFont
from PySide6.QtWidgets import QAbstractButton, QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.definitions import FIGURES, MEMORY, NONE, NOT_YET
from app.panel import LivePanel
from app.state import ChatState, Phase
from app.theme import FAMILY, font
from engine.events import LoadSettings, Mode
from tests.app.conftest import SCRIPTED, OpenWindow, Screen
from tests.scripted_session import MISSING


def test_a_mode_without_its_drafter_cannot_be_chosen_and_says_why(scripted: Screen) -> None:
    window = scripted.window
    button = window.modes.buttons[Mode.DFLASH2]
    assert button.isVisible() and button.property("available") is False
    assert MISSING in button.toolTip() and MISSING in button.accessibleDescription()
    assert window.panel.missing.isVisible() and MISSING in window.panel.missing.text()
    button.click()
    assert window.modes.reason.isVisible() and MISSING in window.modes.reason.sentence.text()
    window.modes.reason.hide()
    assert window.modes.buttons[Mode.DFLASH].isChecked()
    window.modes.buttons[Mode.BASELINE].click()
    assert window.state.mode is Mode.BASELINE and window.modes.buttons[Mode.BASELINE].isChecked()
    assert "Drafting is off" in window.panel.drafting.text()


def test_buttons_have_names_for_those_who_cannot_see_them(scripted: Screen) -> None:
    scripted.ask_and_wait("say hello")
    buttons = scripted.window.findChildren(QAbstractButton)
    assert len(buttons) > 10
    nameless = [button for button in buttons if not (button.accessibleName() or button.text())]
    assert nameless == []
    names = {button.accessibleName() for button in buttons}
    assert {"Send", "Stop", "Cancel loading", "New conversation", "Live figures", "Mode: DFlash 2"} <= names


def test_the_load_can_be_cancelled_and_started_again(open_window: OpenWindow) -> None:
    screen = open_window(LoadSettings(target="slow"), SCRIPTED)
    window = screen.window
    screen.until(lambda: window.state.loading is not None)
    assert window.composer.cancel_button.isVisible() and window.composer.progress.isVisible()
    assert window.composer.status.text() == "Loading the target"
    window.composer.cancel_button.click()
    screen.until(lambda: window.state.phase is Phase.EMPTY)
    assert window.banner.isVisible() and window.banner.button.text() == "Load"
    window.preferences.change(target=None)
    window.banner.button.click()
    screen.until_ready()
    assert not window.banner.isVisible()


def test_a_model_that_cannot_be_loaded_says_why(open_window: OpenWindow) -> None:
    screen = open_window(LoadSettings(target="missing"), SCRIPTED)
    window = screen.window
    screen.until(lambda: window.state.trouble is not None)
    assert window.banner.sentence.text() == "missing.gguf does not exist; choose another file."
    assert window.banner.button.text() == "Try again"
    window.composer.input.setPlainText("typed meanwhile")
    assert not window.composer.send_button.isEnabled()
    assert window.model_name.text() == "DFlash Chat"


def test_what_is_typed_while_an_answer_runs_stays(scripted: Screen) -> None:
    window = scripted.window
    scripted.ask("hang")
    scripted.until(lambda: scripted.answer != "")
    assert window.composer.stop_button.isVisible() and not window.composer.send_button.isVisible()
    scripted.ask("the next question")
    assert window.composer.input.text() == "the next question"
    assert len(window.state.conversation.turns) == 1
    scripted.bot.keyClick(window, Qt.Key.Key_Escape)
    scripted.until_ready()
    assert window.composer.send_button.isVisible() and window.composer.send_button.isEnabled()


def test_an_empty_question_is_not_sent(scripted: Screen) -> None:
    scripted.ask("  ")
    assert scripted.window.state.conversation.turns == []
    assert not scripted.window.composer.send_button.isEnabled()


def test_a_refused_question_says_why_and_the_next_one_is_answered(scripted: Screen) -> None:
    scripted.ask_and_wait("refuse")
    view = scripted.window.conversation.views[-1]
    assert view.note.text() == "The prompt is not to the script's liking; write another."
    scripted.ask_and_wait("say fine")
    assert scripted.answer == "fine "


def test_an_engine_that_aborts_is_explained_by_its_own_last_words(scripted: Screen) -> None:
    window = scripted.window
    scripted.ask_and_wait("say first")
    scripted.ask("die SIGABRT")
    scripted.until(lambda: window.state.phase is Phase.STOPPED)
    assert scripted.answer == "one two three four "
    assert window.banner.headline.text() == "The engine stopped. Your text is kept."
    assert "SIGABRT" in window.banner.sentence.text() and "GGML_ASSERT(scripted)" in window.banner.sentence.text()
    window.composer.input.setPlainText("typed before the restart")
    window.banner.button.click()
    scripted.until_ready()
    assert window.composer.input.text() == "typed before the restart"
    window.composer.input.clear()
    scripted.ask_and_wait("history")
    assert scripted.answer == "say first=first ;die SIGABRT=one two three four and more ;"  # the answer went on


def test_asking_again_replaces_the_last_answer(scripted: Screen) -> None:
    window = scripted.window
    scripted.ask_and_wait("say first")
    scripted.ask_and_wait("history")
    assert scripted.answer == "say first=first ;"
    window.conversation.views[-1].again.click()
    scripted.until_ready()
    assert scripted.answer == "say first=first ;"  # the engine had forgotten the answer that was replaced
    assert [turn.question for turn in window.state.conversation.turns] == ["say first", "history"]


def test_a_new_conversation_begins_empty_on_both_sides(scripted: Screen) -> None:
    window = scripted.window
    assert window.welcome.isVisible() and not window.new_button.isEnabled()
    scripted.ask_and_wait("say first")
    assert window.conversation.isVisible()
    window.new_button.click()
    assert window.welcome.isVisible() and window.conversation.views == []
    scripted.ask_and_wait("history")
    assert scripted.answer == ""


def test_an_example_is_put_into_the_input_box_to_be_sent_or_changed(scripted: Screen) -> None:
    scripted.window.welcome.examples[0].click()
    assert scripted.window.composer.input.text() == "Write a haiku about rain."
    assert scripted.window.state.conversation.turns == []


def test_the_context_notice_and_meter(scripted: Screen) -> None:
    scripted.ask_and_wait("notice")
    window = scripted.window
    assert window.conversation.views[-1]._notices[0].text() == "The context is nearly full."
    assert window.composer.context.text() == "20 of 4,096 tokens"
    window.state.context_used = 4000
    window._refresh()
    assert window.composer.context.text() == "4,000 of 4,096 tokens, nearly full"


def test_every_figure_of_the_panel_has_its_meaning(scripted: Screen) -> None:
    panel = scripted.window.panel
    assert set(panel.values) == set(FIGURES) | set(MEMORY)
    for name, label in panel.values.items():
        assert label.toolTip() == theme.tip((FIGURES | MEMORY)[name].meaning)
    assert panel.bars.toolTip() and panel.process.toolTip()


def test_what_nobody_drafted_is_none_and_not_zero(scripted: Screen) -> None:
    panel = scripted.window.panel
    assert {label.text() for name, label in panel.values.items() if name in FIGURES} == {NOT_YET}
    scripted.window.choose_mode(Mode.BASELINE)
    scripted.ask_and_wait("say one")
    for name in ("acceptance_length", "acceptance_rate", "verification_passes", "draft_ms", "verify_ms"):
        assert panel.values[name].text() == NONE
    assert panel.values["tokens_per_second"].text() == "128.4"
    assert not panel.bars.isVisible()
    assert panel.drafting.text() == "Drafting is off: the target decodes alone."


def test_a_panel_without_a_model_claims_nothing(qtbot: QtBot) -> None:
    panel = LivePanel()
    qtbot.addWidget(panel)
    panel.show_state(ChatState())
    assert {label.text() for label in panel.values.values()} == {NOT_YET}
    assert panel.drafting.text() == "No model is loaded." and panel.process.text() == "No model is loaded."


def test_both_themes_paint_every_text_readable(scripted: Screen, qapp: QApplication) -> None:
    scripted.ask_and_wait("say **bold** `code` 안녕")
    window = scripted.window
    try:
        for dark in (True, False):
            theme.apply(qapp, dark)
            QApplication.processEvents()
            picture = window.grab().toImage()
            ground = picture.pixelColor(picture.width() // 3, picture.height() // 2).lightness()
            assert (ground < 60) if dark else (ground > 200)
            colors = theme.theme()
            for text, under in (("text", "window"), ("muted", "window"), ("muted", "panel"), ("danger", "danger_soft"),
                                ("warning", "warning_soft"), ("on_accent", "accent"), ("text", "bubble")):  # fmt: skip
                assert contrast(colors, text, under) >= 4.5, (dark, text, under)
    finally:
        theme.apply(qapp, False)


def contrast(colors: theme.Theme, text: str, under: str) -> float:
    """The contrast ratio of WCAG 2: at least 4.5 for text."""

    def luminance(name: str) -> float:
        color = colors.color(name)
        parts = (color.redF(), color.greenF(), color.blueF())
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(text), luminance(under)))
    return (high + 0.05) / (low + 0.05)


def test_hangul_has_a_font_of_the_programs_own(qapp: QApplication) -> None:
    info = QFontInfo(font(14))
    assert info.family() == FAMILY and info.exactMatch()
    raw = QRawFont.fromFont(font(14))
    assert all(raw.supportsCharacter(ord(letter)) for letter in "한글가힣AzÄ–…")


def test_a_narrow_window_gives_the_panel_up(scripted: Screen) -> None:
    window = scripted.window
    assert window.panel.isVisible()
    window.resize(600, 600)
    assert not window.panel.isVisible()
    window.panel_button.click()
    assert window.panel.isVisible()
    window.resize(1100, 700)
    assert window.panel.isVisible()
    window.panel_button.click()
    window.resize(1120, 700)
    assert not window.panel.isVisible()
