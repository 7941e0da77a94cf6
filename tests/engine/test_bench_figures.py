"""The benchmark's figures by hand, on runs with round numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.bench.agreement import first_difference, permutation_test
from engine.bench.command import SET_NAMES, SWEEP_NAMES
from engine.bench.figures import Spread, acceptance_of, figures, pooled, ratio, throughput
from engine.bench.plan import (
    QUANTISATIONS,
    SWEEPS,
    Conditions,
    Plan,
    Variant,
    mode_variants,
    sweep_variants,
    whole_block,
)
from engine.bench.results import AnswerResult, from_json, read, to_json, write
from engine.bench.sets import SETS
from engine.bench.suite import RULES, SUITE, Check, suite
from engine.drafter_config import DrafterConfig
from engine.errors import ModelFileError, PromptError, SettingsError
from engine.events import Mode, StopReason
from engine.gguf_file import read_header
from tests.engine.bench_results import DRAFTERS, QUESTIONS, answer, part, results

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

CODE, CHAT = QUESTIONS
BASE, ONE, TWO = Mode.BASELINE, Mode.DFLASH, Mode.DFLASH2


def test_pooled_figures_weigh_every_cycle_alike() -> None:
    """Everything accepted in one answer; in the other a plain cycle, and a stop token among the accepted drafts."""
    everything = answer(CODE, TWO, [(3, 3, 4)] * 5, 0.5)
    # A plain cycle; one with two of three accepted; one whose second accepted draft, of three, is the stop token.
    mixed = answer(CHAT, TWO, [(0, 0, 1), (3, 2, 3), (3, 3, 2)], 0.3, ends=StopReason.STOP_TOKEN)
    found = pooled([everything, mixed])
    assert found.verification_passes == 7 and found.target_passes == 8
    assert found.acceptance_length == pytest.approx((20 + 3 + 2) / 7)
    assert found.tokens_per_target_pass == pytest.approx((20 + 1 + 3 + 2) / 8)
    assert found.acceptance_rate == pytest.approx((15 + 2 + 3) / 21)
    assert found.acceptance_by_position == pytest.approx((1, 1, 6 / 7))
    assert found.tokens_per_second == pytest.approx(26 / 0.8)
    assert found.draft_ms == pytest.approx(2) and found.verify_ms == pytest.approx(10)
    # Of one answer it is exactly what the answer's own figures say.
    assert pooled([everything]).tokens_per_second == pytest.approx(everything.figures["tokens_per_second"])
    assert mixed.figures["output_tokens"] == 1 + 1 + 3 + 1, "the stop token is none"


def test_nothing_drafted_has_no_acceptance_and_one_token_a_pass() -> None:
    found = figures(results([part(ONE, 1, [answer(CODE, ONE, [(0, 0, 1)] * 10, 2.0)])]), "DFlash")
    assert found is not None
    assert found.acceptance_length is None and found.acceptance_rate is None and found.by_position == ()
    assert found.draft_ms is None and found.verify_ms is None
    assert found.tokens_per_target_pass == Spread(1, 1, 1, 1)
    assert found.throughput is not None and found.throughput.value == pytest.approx(5)


def test_medians_over_runs_and_ratios_run_by_run() -> None:
    """The baseline takes 1, 2, 4 s for ten tokens, DFlash 2 half of that: the runs differ, the ratios do not."""
    parts = []
    for run, seconds in enumerate((1.0, 2.0, 4.0), 1):
        parts.append(part(BASE, run, [answer(CODE, BASE, [(0, 0, 1)] * 10, seconds, right=True)]))
        parts.append(part(TWO, run, [answer(CODE, TWO, [(1, 1, 2)] * 5, seconds / 2, right=run > 1)]))
    whole = results(parts, runs=3)
    found = figures(whole, "DFlash 2")
    assert found is not None and found.throughput is not None
    assert (found.throughput.value, found.throughput.low, found.throughput.high) == pytest.approx((10, 5, 20))
    assert found.runs == 3 and found.answers == 1 and found.right == (2, 3)
    times = ratio(whole, "DFlash 2", "Baseline")
    assert times is not None and (times.value, times.low, times.high) == pytest.approx((2, 2, 2)) and times.runs == 3
    assert ratio(whole, "DFlash 2", "DFlash") is None


def test_a_cancelled_run_keeps_its_answers_and_compares_only_what_both_have() -> None:
    """DFlash was stopped in its second answer. Its one answer is as fast as the baseline's to the same question."""
    slow = answer(CHAT, BASE, [(0, 0, 1)] * 10, 10.0)
    whole = results(
        [
            part(BASE, 1, [answer(CODE, BASE, [(0, 0, 1)] * 10, 1.0), slow]),
            part(
                ONE, 1,
                [answer(CODE, ONE, [(1, 0, 1)] * 10, 1.0),
                 answer(CHAT, ONE, [(1, 1, 2)], 0.001, ends=StopReason.CANCELLED)],
                complete=False,
            ),
        ]
    )  # fmt: skip
    base, one = figures(whole, "Baseline"), figures(whole, "DFlash")
    assert base is not None and base.complete and base.throughput is not None
    assert base.throughput.value == pytest.approx(20 / 11)
    assert one is not None and not one.complete and one.answers == 1 and one.throughput is not None
    assert one.throughput.value == pytest.approx(10), "the cancelled answer does not count"
    speed = ratio(whole, "DFlash", "Baseline")
    assert speed is not None and speed.value == pytest.approx(1.0)
    assert figures(whole, "DFlash", kind="chat") is None


def test_several_at_once_have_the_tokens_of_all_in_the_time_of_all() -> None:
    answers = [answer(question, TWO, [(1, 1, 2)] * 10, 4.0) for question in QUESTIONS]
    together = part(TWO, 1, answers, concurrency=2, decode_s=5.0)
    base = part(BASE, 1, [answer(q, BASE, [(0, 0, 1)] * 20, 8.0) for q in QUESTIONS], concurrency=2, decode_s=10.0)
    whole = results([together, base], concurrency=(1, 2))
    found = figures(whole, "DFlash 2", 2)
    assert found is not None and found.throughput is not None and found.each is not None
    assert found.throughput.value == pytest.approx(40 / 5) and found.each.value == pytest.approx(5)
    assert throughput(together, 0.0, "code") is None, "no kind has a time of its own"
    speed = ratio(whole, "DFlash 2", "Baseline", 2)
    assert speed is not None and speed.value == pytest.approx(2)
    broken_off = part(TWO, 1, answers, concurrency=2, complete=False)
    assert throughput(broken_off, 0.0) is None


def test_a_ratio_of_acceptance_lengths() -> None:
    whole = results(
        [
            part(ONE, 1, [answer(CODE, ONE, [(3, 1, 2)] * 4, 1.0)]),
            part(TWO, 1, [answer(CODE, TWO, [(3, 2, 3)] * 3, 1.0)]),
        ]
    )
    found = ratio(whole, "DFlash 2", "DFlash", measure=acceptance_of)
    assert found is not None and found.value == pytest.approx(1.5)


def test_where_greedy_answers_part() -> None:
    def said(*ids: int, stops: bool = False) -> AnswerResult:
        ends = StopReason.STOP_TOKEN if stops else StopReason.MAX_TOKENS
        return answer(CODE, BASE, [(0, 0, 1)], 1.0, ids=ids, ends=ends)

    assert first_difference(said(1, 2, 3), said(1, 2, 3)) is None
    assert first_difference(said(1, 2, 3), said(1, 5, 3)) == (1, 2, 5)
    assert first_difference(said(1, 2, stops=True), said(1, 2, 3)) == (2, -1, 3)
    assert first_difference(said(1, 2, stops=True), said(1, 2, stops=True)) is None
    assert first_difference(said(1, 2, 3), said(1, 2)) is None, "cut off by a limit"


def test_the_permutation_test_tells_distributions_apart() -> None:
    same: dict[tuple[int, ...], int] = {(1,): 50, (2,): 30, (3,): 20}
    distance, p = permutation_test([same, same], [same, same])
    assert distance == 0 and p == 1
    assert permutation_test([same], [{(1,): 54, (2,): 29, (3,): 17}])[1] > 0.5
    other: dict[tuple[int, ...], int] = {(1,): 30, (2,): 50, (4,): 20}
    distance, p = permutation_test([same], [other])
    assert distance == pytest.approx(20**2 / 80 + 20**2 / 80 + 20 + 20) and p < 0.01


def test_raw_numbers_are_written_and_read_whole(tmp_path: Path) -> None:
    sweep = Variant("DFlash 2, no selector", TWO, DRAFTERS[TWO], 7, without="selector", sweep="ablation")
    whole = results(
        [part(TWO, 1, [answer(CODE, TWO, [(3, 3, 2)], 1.0, ids=[7], ends=StopReason.STOP_TOKEN)], decode_s=1.0)],
        missing=[(ONE, "No drafter.")], more=[sweep], temperatures=(0.0, 0.8),
    )  # fmt: skip
    write(whole, tmp_path)
    assert read(tmp_path) == whole
    assert from_json(json.loads(json.dumps(to_json(whole)))).fingerprint == whole.fingerprint
    assert whole.has(next(p for p in whole.plan.parts() if p.variant.mode is TWO))
    assert not any(whole.has(p) for p in whole.plan.parts() if p.variant.name != "DFlash 2")
    for text in ('{"format": 99}', "[]", '{"format": 1, "parts": [3]}'):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(ModelFileError, match="not a benchmark"):
            read(tmp_path / "other.json")


def test_the_modes_take_turns_and_begin_in_turn() -> None:
    conditions = Conditions("t.gguf", 8, runs=3, concurrency=(1, 4))
    sweep = Variant("a sweep", TWO, DRAFTERS[TWO], 1, sweep="block")
    plan = Plan(conditions, QUESTIONS, (*mode_variants(tuple(Mode), DRAFTERS), sweep))
    parts = list(plan.parts())
    assert len(parts) == 3 * (2 * 3 + 1) == len(set(parts))
    assert [p.variant.mode for p in parts if p.concurrency == 4] == [BASE, ONE, TWO, ONE, TWO, BASE, TWO, BASE, ONE]
    assert [p.run for p in parts] == sorted(p.run for p in parts)
    whole = whole_block(TWO, DRAFTERS[TWO], 8)
    both = Plan(Conditions("t.gguf", 8, runs=2, temperatures=(0.0, 0.8)), QUESTIONS * 9, (sweep, whole))
    assert [(p.variant.sweep, p.run) for p in both.parts()] == [("block", 1), ("whole", 1), ("block", 2)]
    assert both.temperatures_of(sweep) == (0.0,) and both.temperatures_of(whole) == (0.0, 0.8)
    assert len(both.questions_of(sweep)) == 2 * 3 and len(both.questions_of(whole)) == 18


def test_the_sweeps_look_at_one_thing_at_a_time(tiny_models: TinyModels) -> None:
    drafters = {ONE: str(tiny_models.wandering_v1), TWO: str(tiny_models.counting_v2)}
    block = DrafterConfig.from_header(read_header(drafters[TWO])).block_size
    found = {name: sweep_variants([name], drafters) for name in SWEEPS}
    assert len({v.name for group in found.values() for v in group}) == sum(map(len, found.values()))
    assert [v.draft_length for v in found["draft-length"] if v.mode is TWO] == [*range(1, block), None]
    assert all(v.whole_block for v in found["draft-length"] if v.draft_length)
    assert [v.draft_length for v in found["block"] if v.mode is TWO][-1] == block - 1
    assert [v.without for v in found["ablation"]] == ["", "selector", "convolution"]
    assert [v.quantisation for v in found["quantisation"] if v.mode is ONE] == ["", *QUANTISATIONS]
    with pytest.raises(SettingsError, match="no sweep everything"):
        sweep_variants(["everything"], drafters)


# --- what is asked ----------------------------------------------------------------------------------------------------


def test_the_suite_has_enough_of_every_kind_and_some_that_can_be_checked() -> None:
    found = suite()
    kinds = {kind: [q for q in found if q.kind == kind] for kind in dict.fromkeys(q.kind for q in found)}
    assert list(kinds) == ["code", "mathematics", "chat", "summarising", "extraction", "stories", "korean"]
    assert all(len(group) >= 8 for group in kinds.values())
    assert len({q.text for q in found}) == len({q.name for q in found}) == len(found)
    assert sum(q.check is not None for q in kinds["mathematics"]) >= 5
    assert sum(q.check is not None for q in kinds["extraction"]) >= 5
    assert all(any("가" <= letter <= "힣" for letter in q.text) for q in kinds["korean"] if "Korean" not in q.text)
    assert [q.name for q in suite(kinds=["chat"], per_kind=2)] == ["chat 1", "chat 2"]
    assert tuple(SWEEPS) == SWEEP_NAMES and tuple(SETS) == SET_NAMES


@pytest.mark.parametrize(
    ("rule", "expected", "right", "wrong"),
    [
        ("last_number", ["391"], "17 × 23 = 340 + 51 = **391**.", "391 or rather 392"),
        ("last_number", ["1200"], "That is 1,200 metres.", "none"),
        ("contains", ["Fox", "hen"], "A fox and the HENS", "a fox"),
        ("in_order", ["apple", "pear"], "apple, pear", "pear, apple"),
        ("boxed", ["\\frac{1}{2}"], "so \\boxed{ \\dfrac{1}{2} }.", "so \\boxed{\\frac{1}{3}}"),
        ("boxed", ["12"], "the answer is 12", "the answer is \\boxed{13} 12"),
    ],
)
def test_whether_an_answer_is_right(rule: str, expected: list[str], right: str, wrong: str) -> None:
    check = Check(rule, tuple(expected))
    assert rule in RULES and check.passes(right) and not check.passes(wrong) and not check.passes("")


def test_questions_of_the_user(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"own": ["One?", {"text": "Two?", "check": {"contains": "2"}}]}')
    one, two = suite(file)
    assert (one.name, one.check, two.text, two.check) == ("own 1", None, "Two?", Check("contains", ("2",)))
    for text in ("[1]", "{", '{"own": [{"text": "x", "check": {"guess": 1}}]}', '{"own": [3]}'):
        file.write_text(text)
        with pytest.raises(PromptError, match="not of the form"):
            suite(file)
    with pytest.raises(PromptError, match="cannot be read"):
        suite(tmp_path / "none.json")
    with pytest.raises(PromptError, match="no questions of the kind"):
        suite(SUITE, ["verse"])
