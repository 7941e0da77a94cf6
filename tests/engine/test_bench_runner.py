"""The benchmark on tiny models: its jobs in a session, and a plan in real engine processes, stopped and taken up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.bench.agreement import compare_answers, compare_samples
from engine.bench.jobs import AllAnswered, AnswerAll, AnswerDone, Counts, Heard, LookAt, Prepare, Prepared, Sample, Seen
from engine.bench.plan import Conditions, Variant
from engine.bench.prepare import Wanted, begun, make_plan
from engine.bench.process import JobFailed
from engine.bench.progress import PartBegan, PartEnded, QuestionDone, RunEvent
from engine.bench.report import for_terminal
from engine.bench.results import read
from engine.bench.runner import Runner
from engine.bench.session import BenchSession
from engine.bench.suite import Check, Question
from engine.errors import DrafterMismatch, SettingsError
from engine.events import LoadSettings, Mode, SamplerSettings
from tests.tiny_chat import LETTERS

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

QUESTIONS = (
    Question("letters 1", "letters", "Go on.", Check("contains", ("ABCDEF",))),
    Question("letters 2", "letters", "And again, please.", Check("contains", ("xyz",))),
)
NEVER = threading.Event()


@pytest.fixture
def session(tiny_models: TinyModels) -> Iterator[BenchSession]:
    """The target that counts; its DFlash 2 drafter is always right."""
    drafters = {Mode.DFLASH2: str(tiny_models.counting_v2)}
    settings = LoadSettings(str(tiny_models.counting), drafters, context=256, threads=1)
    with BenchSession.open(settings) as opened:
        yield opened


def variant(tiny_models: TinyModels, **changes: object) -> Variant:
    return Variant("DFlash 2", Mode.DFLASH2, str(tiny_models.counting_v2), 3, **changes)  # type: ignore[arg-type]


def test_the_jobs_of_an_engine(session: BenchSession, tiny_models: TinyModels) -> None:
    (prepared,) = session.work(Prepare(variant(tiny_models), QUESTIONS[0]), NEVER)
    assert isinstance(prepared, Prepared) and prepared.target_s > 0 and (prepared.drafter_s or 0) > 0
    events = list(session.work(AnswerAll(QUESTIONS, 0.0, 17, 1), NEVER))
    one, two = (event.result for event in events if isinstance(event, AnswerDone))
    assert bytes(one.ids) == bytes(two.ids) == bytes(LETTERS) + b"a"
    assert (one.right, two.right) == (True, False)
    # The first token comes from the prompt; four cycles of three right drafts and one token more give the other 16.
    assert [cycle[:3] for cycle in one.cycles] == [(3, 3, 4)] * 4
    assert one.figures["acceptance_length"] == 4 and one.figures["acceptance_by_position"] == [1, 1, 1]
    assert one.decode_s == pytest.approx(16 / one.figures["tokens_per_second"])
    assert {event.question for event in events if isinstance(event, Heard)} == {0, 1}
    assert isinstance(events[-1], AllAnswered) and events[-1].decode_s == pytest.approx(one.decode_s + two.decode_s)
    # The same two at once.
    settings = LoadSettings(str(tiny_models.counting), context=256, threads=1, sequences=2)
    with BenchSession.open(settings) as both:
        list(both.work(Prepare(variant(tiny_models), QUESTIONS[0]), NEVER))
        at_once = list(both.work(AnswerAll(QUESTIONS, 0.0, 17, 1), NEVER))
    results = [event.result for event in at_once if isinstance(event, AnswerDone)]
    assert [(r.question, r.ids) for r in results] == [(one.question, one.ids), (two.question, two.ids)]
    # Drawn at a temperature at which the next letter is certain.
    (counts,) = session.work(Sample(QUESTIONS[0], SamplerSettings(0.1, seed=3), 5, 2), NEVER)
    assert isinstance(counts, Counts) and counts.drawn == {(LETTERS[1], LETTERS[2]): 5}
    # Where the answers would part: the letter that comes, against one that is far behind.
    (seen,) = session.work(LookAt(QUESTIONS[0], one.ids, 3, LETTERS[3], ord("z"), (4,)), NEVER)
    assert isinstance(seen, Seen) and seen.gap > 1 and not seen.near_tie and seen.noise < seen.gap / 2


def test_a_part_left_out_or_a_whole_block_for_a_few_drafts_changes_no_answer(tiny_models: TinyModels) -> None:
    """The drafter that counts is right by its selector; without it, it is hardly ever."""
    drafters = {Mode.DFLASH2: str(tiny_models.counting_v2)}
    settings = LoadSettings(str(tiny_models.counting), drafters, context=256, threads=1)
    accepted = {}
    for without, whole in (("", True), ("selector", False), ("convolution", False)):
        with BenchSession.open(settings) as opened:
            list(opened.work(Prepare(variant(tiny_models, without=without, whole_block=whole), QUESTIONS[0]), NEVER))
            events = list(opened.work(AnswerAll(QUESTIONS[:1], 0.0, 17, 1), NEVER))
        (result,) = (event.result for event in events if isinstance(event, AnswerDone))
        assert bytes(result.ids) == bytes(LETTERS) + b"a"
        accepted[without] = sum(cycle[1] for cycle in result.cycles)
    assert accepted[""] == accepted["convolution"] == 12 > accepted["selector"]


def test_a_plan_is_carried_out_stopped_and_taken_up_again(tiny_models: TinyModels, tmp_path: Path) -> None:
    many = tuple(Question(f"letters {n}", "letters", f"Go on, {n}.", QUESTIONS[0].check) for n in range(24))
    wanted = Wanted(
        many, str(tiny_models.counting), {Mode.DFLASH2: str(tiny_models.counting_v2)},
        (Mode.BASELINE, Mode.DFLASH2), draft_length=3, sweeps=(),
    )  # fmt: skip
    conditions = Conditions("", max_tokens=17, runs=1, threads=1, context=256)
    plan = make_plan(wanted, conditions)
    cancel = threading.Event()
    heard: list[RunEvent] = []

    def stop_in_the_second_part(event: RunEvent) -> None:
        heard.append(event)
        if isinstance(event, QuestionDone) and event.part.variant.mode is Mode.DFLASH2:
            cancel.set()

    first = Runner(begun(plan, "command", tmp_path), tmp_path, stop_in_the_second_part, cancel).run()
    assert [part.complete for part in first.parts] == [True, False] and not first.finished
    assert first.note.startswith("It was stopped after 1 of 2 parts")
    assert 1 <= len(first.parts[1].answers) < 24 and first.parts[1].paces == (), "what was answered is kept"
    assert len(read(tmp_path).parts) == 2

    notices: list[str] = []
    heard.clear()
    results = Runner(begun(plan, "command", tmp_path, notices.append), tmp_path, heard.append, NEVER).run()
    assert "1 parts are done" in notices[0]
    assert [event.number for event in heard if isinstance(event, PartBegan)] == [2]
    assert results.finished and results.note == "" and all(part.complete for part in results.parts)
    assert all(event.result.error == "" for event in heard if isinstance(event, PartEnded))
    assert results.compared == 24 and results.agreements == []
    said = {answer.ids for part in results.parts for answer in part.answers}
    assert {bytes(ids) for ids in said} == {bytes(LETTERS) + b"a"}
    for part in results.parts:
        assert (part.drafter_s is None) == (part.variant == "Baseline")
        assert (part.start_s or 0) > (part.target_s or 0) > 0 and (part.peak_bytes or 0) > 0
        assert len(part.answers) == 24 and all(answer.right for answer in part.answers)
    with pytest.raises(SettingsError, match="finished"):
        begun(plan, "command", tmp_path)
    with pytest.raises(SettingsError, match="something else"):
        begun(make_plan(wanted, Conditions("", 5, 1, threads=1)), "command", tmp_path)

    # What would part is looked at in an engine, and drawn answers are counted in one for each mode.
    results.parts[1].answers[0].figures["token_ids"][2] = ord("z")
    compare_answers(results, heard.append, NEVER, "engine.bench.session:BenchSession.open")
    (difference,) = results.agreements
    assert (difference.position, difference.baseline, difference.other) == (2, LETTERS[2], ord("z"))
    assert difference.near_tie is False and (difference.gap or 0) > 1


def test_a_mode_that_cannot_run_is_named(tiny_models: TinyModels, tmp_path: Path) -> None:
    wanted = Wanted(QUESTIONS, str(tiny_models.counting), {Mode.DFLASH: str(tiny_models.counting_v2)})
    with pytest.raises(DrafterMismatch, match="give it for DFlash 2"):
        make_plan(wanted, Conditions("", 5, 1))
    plan = make_plan(Wanted(QUESTIONS, str(tiny_models.counting), {}), Conditions("", 5, 1, context=32))
    assert [mode for mode, _ in plan.missing] == [Mode.DFLASH, Mode.DFLASH2]
    assert [v.name for v in plan.variants] == ["Baseline"]
    results = begun(plan, "", tmp_path)
    with pytest.raises(JobFailed, match="too small"):
        Runner(results, tmp_path, lambda _event: None, NEVER).run()
    assert "too small" in results.parts[0].error


def test_when_its_time_is_over_it_says_how_far_it_came(tiny_models: TinyModels, tmp_path: Path) -> None:
    """Without starting an engine."""
    plan = make_plan(Wanted(QUESTIONS, str(tiny_models.counting), {}), Conditions("", 5, 3, limit_s=0.0))
    results = Runner(begun(plan, "", tmp_path), tmp_path, lambda _event: None, NEVER).run()
    assert results.finished and results.note.startswith("Its time was over after 0 of 3 parts")
    assert results.note in for_terminal(results)


def test_distributions_are_compared_where_asked_for(tiny_models: TinyModels, tmp_path: Path) -> None:
    wanted = Wanted(
        (Question("own", "own", "three"),), str(tiny_models.wandering), {Mode.DFLASH2: str(tiny_models.wandering_v2)},
        (Mode.BASELINE, Mode.DFLASH2),
    )  # fmt: skip
    plan = make_plan(wanted, Conditions("", 4, 1, temperatures=(1.0,), threads=1, context=128, samples=60))
    results = begun(plan, "", tmp_path)
    compare_samples(results, lambda _event: None, NEVER, "engine.bench.session:BenchSession.open")
    (test,) = results.samples
    assert (test.variant, test.temperature, test.samples) == ("DFlash 2", 1.0, 60)
    assert test.distance > 0 and test.p > 0.001
