"""The live panel: what it says in words and pictures, and that its figures are the engine's."""

from __future__ import annotations

from dataclasses import replace

import psutil
import pytest
from pytestqt.qtbot import QtBot

from app.conversation import Conversation
from app.definitions import FIGURES, MEMORY, NONE, NOT_YET, bytes_text
from app.drafting_words import gain_sentence, measured_by_mode
from app.panel import DETAIL_ROWS, LivePanel
from app.speed import MOST_MARKS, SpeedCurve
from app.state import ChatState, Phase
from app.theme import tip
from engine.events import AnswerStatistics, Mode, ModeInfo, StopReason
from tests.scripted_session import MEMORY as PARTS
from tests.scripted_session import ScriptedSession


def statistics(mode: Mode = Mode.DFLASH, tokens: int = 40, **values: object) -> AnswerStatistics:
    return replace(ScriptedSession._statistics(None, mode, tokens, StopReason.STOP_TOKEN), **values)  # type: ignore[arg-type]


@pytest.fixture
def panel(qtbot: QtBot) -> LivePanel:
    panel = LivePanel()
    qtbot.addWidget(panel)
    panel.resize(panel.width(), 900)
    panel.show()
    return panel


def test_every_figure_explains_itself(panel: LivePanel) -> None:
    assert set(panel.values) == set(FIGURES) | set(MEMORY)
    for name, label in panel.values.items():
        assert label.toolTip() == tip((FIGURES | MEMORY)[name].meaning) and label.accessibleName()
    for picture in (panel.curve, panel.history, panel.bars, panel.stack, panel.machine, panel.process):
        assert picture.toolTip()


def test_the_figures_are_the_engines(panel: LivePanel) -> None:
    answer = statistics(
        tokens_per_second=123.456, plain_tokens_per_second=61.2, speed_up=123.456 / 61.2, decision="Three drafts pay."
    )
    panel.show_state(ChatState(statistics=answer, memory=answer.memory, engine=Phase.READY))
    assert panel.values["tokens_per_second"].text() == "123.5"
    assert panel.values["speed_up"].text() == "2.02×" and panel.values["speed_up"].isVisible()
    assert panel.values["acceptance_length"].text() == "2.75 tokens"
    assert panel.gain.text() == "2.02 times as fast as plain decoding (61.2 tokens/s)."
    assert panel.decision.text() == "Three drafts pay."
    for name in DETAIL_ROWS:
        assert panel.values[name].text() == FIGURES[name].with_unit(getattr(answer, name))
    assert panel.bars.shares == answer.acceptance_by_position
    assert panel.heading.text() == "Last answer  ·  DFlash"


def test_words_for_a_gain_a_loss_and_nothing_measured() -> None:
    def words(speed_up: float | None, mode: Mode = Mode.DFLASH) -> str:
        plain = None if speed_up is None else 50.0
        return gain_sentence(statistics(mode, speed_up=speed_up, plain_tokens_per_second=plain))

    assert words(1.5) == "1.50 times as fast as plain decoding (50.0 tokens/s)."
    assert words(0.47).startswith("Drafting costs more than it gains here: 0.47 of the speed")
    assert "gains nothing" in words(1.01)
    assert "not been measured" in words(None)
    assert words(None, Mode.BASELINE) == "" and gain_sentence(None) == ""


def test_what_each_mode_reached_is_said_at_its_switch() -> None:
    conversation = Conversation()
    for mode, speed in ((Mode.DFLASH, 50.0), (Mode.BASELINE, 40.0), (Mode.DFLASH, 60.0)):
        conversation.ask("why?", mode).statistics = statistics(mode, tokens_per_second=speed)
        conversation.open_turn = None
    assert measured_by_mode(ChatState(conversation=conversation)) == {
        Mode.DFLASH: "Its last answer here: 60.0 tokens/s, acceptance length 2.75.",
        Mode.BASELINE: "Its last answer here: 40.0 tokens/s.",
    }


def test_a_mode_without_drafts_says_so_and_shows_no_pictures_of_them(panel: LivePanel) -> None:
    panel.show_state(ChatState(statistics=statistics(Mode.BASELINE), engine=Phase.READY))
    assert panel.drafting.text() == "Drafting is off: the target decodes alone."
    assert panel.values["acceptance_length"].text() == NONE
    assert not panel.bars.isVisible() and not panel.history.isVisible() and not panel.values["speed_up"].isVisible()
    reason = "No drafter fits; get one."
    modes = (ModeInfo(Mode.BASELINE, None, None), ModeInfo(Mode.DFLASH, None, reason))
    panel.show_state(ChatState(modes=modes))
    assert panel.missing.isVisible() and panel.missing.text() == f"DFlash is not available. {reason}"
    assert panel.values["tokens_per_second"].text() == NOT_YET


def test_memory_adds_up_and_stands_against_the_machine(panel: LivePanel) -> None:
    panel.show_state(ChatState(memory=PARTS))
    assert sum(size for _, size in panel.stack.parts) == PARTS.process
    total = psutil.virtual_memory().total
    assert panel.machine.share == PARTS.process / total and bytes_text(total) in panel.process.text()
    assert panel.values["drafter_kv"].text() == "12 MiB"
    panel.show_state(ChatState(memory=replace(PARTS, drafter_kv=None)))
    assert panel.values["drafter_kv"].text() == NONE


def test_the_acceptance_length_has_a_history(panel: LivePanel) -> None:
    conversation = Conversation()
    for length in (2.0, None, 3.5):
        turn = conversation.ask("why?", Mode.DFLASH)
        turn.statistics = statistics(acceptance_length=length)
        conversation.open_turn = None
    panel.show_state(ChatState(conversation=conversation, statistics=turn.statistics))
    assert panel.history.isVisible() and panel.history.values == (2.0, None, 3.5)
    assert panel.history.accessibleName() == "Over the answers: 2.00, 3.50"


def test_the_details_fold(panel: LivePanel) -> None:
    assert not panel.details.isVisible() and panel.fold.accessibleName() == "Show the details"
    panel.fold.click()
    assert panel.details.isVisible() and panel.fold.accessibleName() == "Hide the details"


def test_the_curve_is_worked_out_from_the_engines_figures() -> None:
    curve = SpeedCurve()
    # 10 tokens behind the first in 1 s, then 30 more in 1 s: 10 and 30 tokens/s, while the engine's mean goes to 20.
    for tokens, speed in ((11, 10.0), (41, 20.0)):
        curve.note(statistics(tokens=tokens, tokens_per_second=speed, stop_reason=None))
    curve.note(statistics(tokens=41, tokens_per_second=20.0, stop_reason=None))  # nothing new
    assert curve.points == ((1.0, 10.0), (2.0, 30.0))
    for number in range(3, 1000):
        curve.note(statistics(tokens=1 + 10 * number, tokens_per_second=10.0, stop_reason=None))
    assert len(curve.points) <= MOST_MARKS and curve.points[-1][0] == pytest.approx(999.0)


def test_the_curve_compares_with_plain_decoding(panel: LivePanel) -> None:
    state = ChatState(statistics=statistics(plain_tokens_per_second=15.0))
    for tokens, speed in ((11, 10.0), (41, 20.0)):
        state.speed.note(statistics(tokens=tokens, tokens_per_second=speed, stop_reason=None))
    panel.show_state(state)
    assert panel.curve.isVisible() and panel.curve.level == 15.0
    assert panel.curve.accessibleName() == "Speed over time, now 30.0 tokens/s"
    panel.show_state(ChatState())
    assert not panel.curve.isVisible()
