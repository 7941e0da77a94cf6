"""The window on the real engine, with the embedded model and random drafters."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from app.definitions import FIGURES, MEMORY, NONE, bytes_text
from app.panel import DETAIL_ROWS
from app.state import Phase
from engine.events import LoadSettings, Mode, StopReason
from engine.stats import to_json
from tests.app.conftest import OpenWindow, Screen

STORY = "Write a very long story about a sailor, a storm and an island."


@pytest.fixture
def real(open_window: OpenWindow, with_drafters: LoadSettings) -> Screen:
    screen = open_window(with_drafters)
    screen.until_ready()
    return screen


def assert_panel_shows_the_json(screen: Screen) -> None:
    """Every figure in the panel is that of `--json`, to the digits shown."""
    panel, statistics = screen.window.panel, screen.window.state.statistics
    assert statistics is not None and statistics.stop_reason is not None
    json = to_json(statistics, "", ())
    for name in ("tokens_per_second", "acceptance_length", *DETAIL_ROWS):
        shown, value = panel.values[name].text(), json[name]
        if value is None or (name == "verification_passes" and value == 0):
            assert shown == NONE, name
        else:
            figure = FIGURES[name]
            digits = len(figure.text(value).partition(".")[2])
            assert float(shown.split()[0].replace(",", "")) == pytest.approx(
                value * figure.scale, abs=0.51 * 10**-digits
            ), name
    if json["speed_up"] is not None:
        assert panel.values["speed_up"].text() == f"{FIGURES['speed_up'].text(json['speed_up'])}×"
    for name in MEMORY:
        if name != "other":
            value = json["memory"][name]
            assert panel.values[name].text() == (NONE if value is None else bytes_text(value)), name
    assert bytes_text(json["memory"]["process"]) in panel.process.text()
    assert list(panel.bars.shares) == json["acceptance_by_position"]
    assert panel.bars.isVisible() == bool(json["acceptance_by_position"])


def test_a_conversation_through_all_three_modes(real: Screen) -> None:
    window = real.window
    assert window.model_name.text() and "CPU" in window.model_details.text()
    assert all(button.property("available") for button in window.modes.buttons.values())
    assert window.state.mode is Mode.DFLASH2  # the best there is
    cached = 0
    for mode, question in (
        (Mode.BASELINE, "What is the capital of France?"),
        (Mode.DFLASH, "And of Italy?"),
        (Mode.DFLASH2, "And of Spain?"),
    ):
        window.modes.buttons[mode].click()
        window.state.options = replace(window.state.options, draft_length=3)  # whether it pays or not
        real.ask_and_wait(question)
        statistics = window.state.statistics
        assert statistics is not None and statistics.mode is mode
        assert real.answer.strip() and window.conversation.views[-1].note.text() == ""
        assert (statistics.drafter is None) == (mode is Mode.BASELINE)
        assert (statistics.drafted_tokens > 0) == (mode is not Mode.BASELINE)
        assert statistics.prompt_tokens > cached  # the turns before are in the prompt
        cached = statistics.prompt_tokens
        assert_panel_shows_the_json(real)
    assert window.composer.context.text().startswith(f"{window.state.context_used:,} of 1,024")
    assert [turn.mode for turn in window.state.conversation.turns] == list(Mode)
    assert "Paris" in window.state.conversation.turns[0].answer


def test_stop_keeps_the_text_and_the_next_question_is_answered(real: Screen) -> None:
    window = real.window
    window.choose_mode(Mode.BASELINE)
    real.ask(STORY)
    real.until(lambda: len(real.answer) > 40)
    window.composer.stop_button.click()
    real.until_ready()
    turn = window.state.conversation.turns[0]
    assert turn.statistics is not None and turn.statistics.stop_reason is StopReason.CANCELLED
    assert len(turn.answer) > 40 and real.answer == turn.answer
    assert window.conversation.views[0].note.text() == "Stopped."
    real.ask_and_wait("What is the capital of France?")
    assert real.answer.strip()
    assert window.state._told == window.state.conversation.turns  # the stopped answer is known to the engine, too


def test_a_long_prompt_shows_how_far_it_is_read_and_can_be_stopped(
    open_window: OpenWindow, with_drafters: LoadSettings
) -> None:
    screen = open_window(replace(with_drafters, context=4096))
    screen.until_ready()
    window = screen.window
    window.composer.input.setPlainText("Sum up this text: " + "The rain fell on the quiet town by the sea. " * 300)
    window.composer.send_button.click()
    screen.until(lambda: window.state.reading is not None and window.state.reading.done > 0)
    assert "Reading the prompt" in window.composer.status.text() and window.composer.progress.isVisible()
    window.composer.stop_button.click()
    screen.until_ready()
    turn = window.state.conversation.turns[0]
    assert turn.statistics is not None and turn.statistics.stop_reason is StopReason.CANCELLED
    assert turn.answer == "" and window.conversation.views[0].note.text() == "Stopped."
    assert window.state.context_used < 3000
    window.new_button.click()
    screen.ask_and_wait("What is the capital of France?")
    assert screen.answer.strip()


def test_a_full_context_is_announced_and_the_conversation_goes_on(
    open_window: OpenWindow, with_drafters: LoadSettings
) -> None:
    screen = open_window(replace(with_drafters, context=192))
    screen.until_ready()
    window = screen.window
    window.choose_mode(Mode.BASELINE)
    screen.ask_and_wait(STORY)
    turn = window.state.conversation.turns[0]
    assert turn.statistics is not None and turn.statistics.stop_reason is StopReason.CONTEXT_FULL
    view = window.conversation.views[0]
    assert "nearly full" in view._notices[0].text() and "context is full" in view.note.text()
    assert "nearly full" in window.composer.context.text()
    window.modes.buttons[Mode.DFLASH].click()
    screen.ask_and_wait("What is the capital of France?")
    view = window.conversation.views[1]
    assert "no longer sees the oldest question" in view._notices[0].text()
    assert screen.answer.strip()
    window.composer.input.setPlainText("word " * 400)
    window.composer.send_button.click()
    screen.until_ready()
    assert "the context holds 192" in window.conversation.views[2].note.text()
    screen.ask_and_wait("What is the capital of Italy?")
    assert screen.answer.strip()


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_killed_engine_leaves_the_text_and_one_click_goes_on(real: Screen) -> None:
    window = real.window
    window.choose_mode(Mode.BASELINE)
    real.ask_and_wait("What is the capital of France?")
    first = real.answer
    real.ask(STORY)
    real.until(lambda: len(real.answer) > 40)
    pid = window.engine.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    real.until(lambda: window.state.phase is Phase.STOPPED)
    kept = real.answer
    assert len(kept) > 40 and window.conversation.views[0].answer.text == first
    assert "The text so far is kept" in window.conversation.views[1].note.text()
    assert window.banner.isVisible() and "SIGKILL" in window.banner.sentence.text()
    assert not window.composer.send_button.isEnabled()
    window.banner.button.click()
    real.until(lambda: len(real.answer) > len(kept) + 40)  # one click: it is started again, and the answer goes on
    assert not window.banner.isVisible() and window.engine.pid not in (None, pid)
    window.composer.stop_button.click()
    real.until_ready()
    longer = real.answer
    assert longer.startswith(kept)
    window.modes.buttons[Mode.DFLASH2].click()
    real.ask_and_wait("What is the capital of Italy?")
    statistics = window.state.statistics
    assert real.answer.strip() and [view.answer.text for view in window.conversation.views[:2]] == [first, longer]
    assert statistics is not None and statistics.prompt_tokens > len(longer) // 8  # what was said before is in it


def test_closing_the_window_during_an_answer_leaves_no_process(real: Screen) -> None:
    real.ask(STORY)
    real.until(lambda: real.answer != "")
    process = psutil.Process(real.window.engine.pid)
    real.window.close()
    assert not process.is_running() and real.window.engine.isFinished()


def test_the_bundled_drafters_are_found_without_being_asked_for(
    open_window: OpenWindow, with_drafters: LoadSettings
) -> None:
    screen = open_window(replace(with_drafters, drafters={}, context=256))
    screen.until_ready()
    window = screen.window
    for info in window.state.modes:
        assert info.reason is None and window.modes.buttons[info.mode].property("available")
    assert [info.drafter and Path(info.drafter).name for info in window.state.modes] == [
        None, "smollm2-135m-dflash.gguf", "smollm2-135m-dflash2.gguf",
    ]  # fmt: skip
    screen.ask_and_wait("What is the capital of France?")
    assert screen.answer.strip()
    assert window.state.statistics and window.state.statistics.drafter == "smollm2-135m-dflash2.gguf"
