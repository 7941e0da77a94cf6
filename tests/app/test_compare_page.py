"""The Compare page on tiny models and real engine processes: three answers side by side, the suite, a stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.compare_control import CompareControl
from app.compare_page import ComparePage
from app.compare_state import Comparison, Phase, Step
from engine.bench import prepare
from engine.bench.plan import Conditions, Part, Variant
from engine.bench.progress import Answering, PartBegan
from engine.events import LoadSettings, Mode, Tokens
from tests import tiny_chat
from tests.app.conftest import WAIT_MS


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> LoadSettings:
    """The target that counts, a DFlash drafter that is hardly ever right, and a DFlash 2 drafter that always is."""
    folder = tmp_path_factory.mktemp("compared")
    return LoadSettings(
        str(tiny_chat.counting_target(folder / "counting.gguf")),
        {
            Mode.DFLASH: str(tiny_chat.wandering_drafter(folder / "one.gguf", 1, own_embeddings=False)),
            Mode.DFLASH2: str(tiny_chat.counting_drafter(folder / "two.gguf")),
        },
        context=256,
        threads=1,
    )


@dataclass
class Desk:
    bot: QtBot
    control: CompareControl
    page: ComparePage

    def until(self, condition: Callable[[Comparison], bool]) -> None:
        if not condition(self.control.state):
            wait = self.bot.waitSignal(
                self.control.changed, timeout=WAIT_MS, check_params_cb=lambda: condition(self.control.state)
            )
            wait.wait()

    def until_idle(self) -> None:
        self.until(lambda state: state.phase is Phase.IDLE)


@pytest.fixture
def desk(qtbot: QtBot, tiny: LoadSettings, tmp_path: Path) -> Iterator[Desk]:
    control = CompareControl(lambda: (tiny, 3), folder=tmp_path / "reports")
    page = ComparePage(control)
    qtbot.addWidget(page)
    page.show()
    yield Desk(qtbot, control, page)
    control.close()


def test_a_question_is_answered_in_the_three_modes(desk: Desk) -> None:
    page = desk.page
    page.question.setPlainText("Go on.")
    page.tokens.setValue(17)
    seen: list[set[Step]] = []
    desk.control.changed.connect(lambda: seen.append({c.step for c in desk.control.state.columns.values()}))
    page.compare.click()
    assert desk.control.state.phase is Phase.RUNNING and not page.compare.isEnabled() and page.stop.isEnabled()
    page.compare.click()  # a second time does nothing
    desk.until_idle()
    assert desk.control.state.trouble == "" and page.compare.isEnabled()
    for mode, column in page.columns.items():
        statistics = desk.control.state.columns[mode].statistics
        assert column.text.toPlainText() == "abcdefghijklmnopa"
        assert statistics is not None and statistics.mode is mode and statistics.tokens_per_second is not None
        assert column.speed.text() == f"{statistics.tokens_per_second:.1f}"
        assert column.step.text() == "done"
    speeds = [desk.control.state.speed(mode) or 0.0 for mode in Mode]
    two = page.columns[Mode.DFLASH2]
    assert two.ratio.text() == f"{speeds[2] / speeds[0]:.2f} × Baseline  ·  {speeds[2] / speeds[1]:.2f} × DFlash"
    assert page.columns[Mode.BASELINE].ratio.text().strip() == ""
    assert two.values["acceptance_length"].text() == "4.00 tokens"
    assert page.columns[Mode.BASELINE].values["acceptance_length"].text() == "none"
    assert any(Step.WAITING in steps and Step.DONE in steps for steps in seen), "one after another"
    assert page.outcome.isVisibleTo(page)
    results = desk.control.state.results
    assert results is not None and results.compared == 2 and results.agreements == []


def test_the_suite_runs_with_progress_and_can_be_stopped(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured until then is in the report."""
    short = Conditions("", max_tokens=8, runs=1, temperatures=(0.0,))
    monkeypatch.setattr("app.compare_control.usual", lambda _quick: short)
    assert prepare.usual(True).runs == 2, "what it is in truth"
    desk.page.quick.click()
    desk.until(lambda state: state.columns[Mode.DFLASH].step is not Step.WAITING)
    assert 0 < desk.control.state.progress < 1 and desk.page.progress.value() > 0
    desk.page.stop.click()
    assert desk.control.state.phase is Phase.STOPPING and not desk.page.stop.isEnabled()
    desk.until_idle()
    state = desk.control.state
    assert state.results is not None and state.results.note.startswith("It was stopped after 1 of 5 parts")
    assert state.report is not None and state.report.exists() and state.results.note in state.report.read_text("utf-8")
    assert state.columns[Mode.DFLASH2].step is Step.NONE


def test_a_mode_without_a_drafter_says_why_and_the_chat_comes_first(qtbot: QtBot, tiny: LoadSettings) -> None:
    control = CompareControl(lambda: (LoadSettings(tiny.target, context=32, threads=1), None))
    page = ComparePage(control)
    qtbot.addWidget(page)
    try:
        page.let_start(False)
        page.question.setPlainText("Go on.")
        page.compare.click()
        page.question.submitted.emit()
        assert control.state.phase is Phase.IDLE and "chat's answer" in page.status.text()
        page.let_start(True)
        page.compare.click()
        qtbot.waitUntil(lambda: control.state.phase is Phase.IDLE, timeout=WAIT_MS)
        assert "too small" in page.trouble.text() and page.trouble.isVisibleTo(page)
        assert "No DFlash 2 drafter" in page.columns[Mode.DFLASH2].ratio.text()
    finally:
        control.close()


def test_an_error_that_nobody_foresaw_ends_the_comparison(qtbot: QtBot, tiny: LoadSettings) -> None:
    strange = replace(tiny, drafters={Mode.DFLASH: 3})  # type: ignore[dict-item]
    control = CompareControl(lambda: (strange, None))
    with qtbot.waitSignal(control.changed, timeout=WAIT_MS, check_params_cb=lambda: control.state.phase is Phase.IDLE):
        control.ask("1", 4)
    assert "TypeError" in control.state.trouble and "report it" in control.state.trouble
    control.close()


def test_the_text_shown_of_several_at_once_is_of_one_question() -> None:
    state = Comparison()
    state.begin(whole_suite=True)
    part = Part(Variant("DFlash", Mode.DFLASH), 2, 1)
    state.apply(PartBegan(part, 1, 4))
    for question, text in ((0, "a"), (1, "x"), (0, "b"), (1, "y")):
        state.apply(Answering(part, question, Tokens((1,), (0,), text)))
    assert state.columns[Mode.DFLASH].text == "ab" and state.columns[Mode.BASELINE].step is Step.WAITING
