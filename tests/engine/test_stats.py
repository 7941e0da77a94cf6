"""The figures of an answer, each by hand, on a clock that the test sets."""

from __future__ import annotations

import json
import mmap

import numpy as np
import pytest

from engine.draft_length import FixedLength
from engine.events import AnswerStatistics, Memory, Mode, StopReason
from engine.pass_costs import CostCurve
from engine.stats import AnswerRecorder, one_line, process_memory, to_json

MEMORY = Memory(
    process=300 * 2**20, peak=310 * 2**20, target_weights=90, target_context=20, drafter_weights=7, drafter_kv=3
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def recorder(mode: Mode = Mode.DFLASH2) -> tuple[AnswerRecorder, Clock]:
    clock = Clock()
    drafter = None if mode is Mode.BASELINE else "drafter.gguf"
    return AnswerRecorder(mode, "target.gguf", drafter, clock), clock


def drafted_answer() -> AnswerStatistics:
    """A prompt of 50 with 10 cached, read in two chunks; then verified and plain cycles, the last with a stop token."""
    record, clock = recorder()
    record.prompt(50, 10)
    record.prompt_read(32, 0.3)
    record.prompt_read(8, 0.1)
    clock.now += 0.5
    record.first_token()
    for drafted, accepted, emitted, draft_s, verify_s in (
        (3, 3, 4, 0.002, 0.010),  # everything accepted, and the bonus
        (3, 0, 1, 0.002, 0.010),  # the first one wrong
        (2, 1, 2, 0.001, 0.007),
        (0, 0, 1, 0.003, 0.004),  # drafted, and found not worth verifying
        (0, 0, 1, None, 0.004),  # not even drafted
    ):
        clock.now += 0.1
        record.cycle(drafted=drafted, accepted=accepted, emitted=emitted, draft_s=draft_s, verify_s=verify_s)
    clock.now += 0.1
    # Three drafts are right, and the second of them is the stop token.
    record.cycle(drafted=3, accepted=3, emitted=2, draft_s=0.002, verify_s=0.011, stop_token=True)
    clock.now += 50  # the time after the last token is no decoding
    return record.snapshot(MEMORY, StopReason.STOP_TOKEN)


def test_every_figure_by_hand() -> None:
    found = drafted_answer()
    assert (found.mode, found.target, found.drafter) == (Mode.DFLASH2, "target.gguf", "drafter.gguf")
    assert (found.prompt_tokens, found.prompt_tokens_cached) == (50, 10)
    assert found.prompt_tokens_per_second == pytest.approx(40 / 0.4)
    assert found.time_to_first_token_s == pytest.approx(0.5)
    assert found.output_tokens == 1 + 4 + 1 + 2 + 1 + 1 + 1  # the stop token is none
    assert found.tokens_per_second == pytest.approx((4 + 1 + 2 + 1 + 1 + 2) / 0.6)
    assert found.target_passes == 6
    assert found.tokens_per_target_pass == pytest.approx(11 / 6)
    assert found.verification_passes == 4
    # The draft behind the stop token was not emitted.
    assert found.acceptance_length == pytest.approx((4 + 1 + 2 + 2) / 4)
    assert (found.drafted_tokens, found.accepted_tokens) == (11, 7)
    assert found.acceptance_rate == pytest.approx(7 / 11)
    assert found.acceptance_by_position == pytest.approx((3 / 4, 2 / 4, 2 / 3))  # draft 3 was verified three times
    assert found.draft_ms == pytest.approx((2 + 2 + 1 + 3 + 2) / 5)
    assert found.verify_ms == pytest.approx((10 + 10 + 7 + 11) / 4)
    assert found.memory == MEMORY
    assert found.stop_reason is StopReason.STOP_TOKEN


def test_without_drafts_the_figures_of_drafting_are_none_and_a_pass_gives_one_token() -> None:
    record, clock = recorder(Mode.BASELINE)
    record.prompt(5, 0)
    record.prompt_read(5, 0.05)
    record.first_token()
    for _ in range(9):
        clock.now += 0.2
        record.cycle(drafted=0, accepted=0, emitted=1, verify_s=0.19)
    found = record.snapshot(MEMORY, StopReason.MAX_TOKENS)
    assert found.drafter is None
    assert found.output_tokens == 10
    assert found.tokens_per_second == pytest.approx(5.0)
    assert found.tokens_per_target_pass == 1.0
    assert (found.verification_passes, found.target_passes, found.drafted_tokens, found.accepted_tokens) == (0, 9, 0, 0)
    assert found.acceptance_length is None
    assert found.acceptance_rate is None
    assert found.acceptance_by_position == ()
    assert found.draft_ms is None
    assert found.verify_ms is None


def test_drafts_that_are_never_right_give_zero_and_not_none() -> None:
    record, clock = recorder()
    record.first_token()
    clock.now += 1
    record.cycle(drafted=2, accepted=0, emitted=1, draft_s=0.001, verify_s=0.002)
    found = record.snapshot(MEMORY)
    assert (found.acceptance_rate, found.acceptance_by_position, found.acceptance_length) == (0.0, (0.0, 0.0), 1.0)


def test_everything_accepted() -> None:
    record, clock = recorder()
    record.first_token()
    for _ in range(3):
        clock.now += 0.25
        record.cycle(drafted=7, accepted=7, emitted=8, draft_s=0.001, verify_s=0.01)
    found = record.snapshot(MEMORY)
    assert found.acceptance_length == found.tokens_per_target_pass == 8
    assert found.acceptance_rate == 1
    assert found.acceptance_by_position == (1.0,) * 7
    assert found.output_tokens == 25
    assert found.tokens_per_second == pytest.approx(24 / 0.75)


def test_drafts_accepted_past_the_limit_are_not_emitted() -> None:
    record, clock = recorder()
    record.first_token()
    clock.now += 0.1
    record.cycle(drafted=7, accepted=7, emitted=2, draft_s=0.001, verify_s=0.01)
    found = record.snapshot(MEMORY, StopReason.MAX_TOKENS)
    assert found.output_tokens == 3
    assert found.acceptance_length == 2
    assert found.acceptance_rate == 1  # verification found all of them right


def test_an_answer_cancelled_while_the_prompt_is_read() -> None:
    record, clock = recorder()
    record.prompt(1000, 0)
    record.prompt_read(256, 0.8)
    clock.now += 1
    found = record.snapshot(MEMORY, StopReason.CANCELLED)
    assert found.output_tokens == 0
    assert found.prompt_tokens_per_second == pytest.approx(320)
    assert found.tokens_per_second is None
    assert found.time_to_first_token_s is None
    assert found.tokens_per_target_pass is None


def test_a_prompt_that_was_cached_whole_has_no_rate() -> None:
    record, _ = recorder()
    record.prompt(30, 30)
    record.first_token()
    found = record.snapshot(MEMORY)
    assert found.prompt_tokens_per_second is None
    assert (found.output_tokens, found.tokens_per_second) == (1, None)  # one token takes no decoding


def test_an_answer_that_is_only_a_stop_token() -> None:
    record, _ = recorder()
    record.first_token(stop_token=True)
    assert record.snapshot(MEMORY, StopReason.STOP_TOKEN).output_tokens == 0


def test_a_snapshot_does_not_change_what_comes_after() -> None:
    record, clock = recorder()
    record.first_token()
    for _ in range(2):
        clock.now += 0.1
        record.cycle(drafted=1, accepted=1, emitted=2, draft_s=0.001, verify_s=0.01)
        assert record.snapshot(MEMORY) == record.snapshot(MEMORY)
    assert record.snapshot(MEMORY).verification_passes == 2


def test_json_has_its_fields_in_plain_values() -> None:
    ids = [np.int32(4), 5]
    found = json.loads(json.dumps(to_json(drafted_answer(), "Rain.", ids)))
    assert list(found) == [
        "text", "token_ids", "mode", "target", "drafter", "prompt_tokens", "output_tokens", "tokens_per_second",
        "prompt_tokens_per_second", "time_to_first_token_s", "tokens_per_target_pass", "acceptance_length",
        "acceptance_rate", "acceptance_by_position", "verification_passes", "plain_tokens_per_second", "speed_up",
        "draft_length", "decision", "draft_ms", "verify_ms", "memory", "stop_reason",
    ]  # fmt: skip
    assert (found["text"], found["token_ids"]) == ("Rain.", [4, 5])
    assert (found["mode"], found["stop_reason"]) == ("dflash2", "stop_token")
    assert found["acceptance_by_position"] == pytest.approx([0.75, 0.5, 2 / 3])
    assert found["memory"] == {
        "process": 300 * 2**20, "peak": 310 * 2**20, "target_weights": 90, "target_context": 20,
        "drafter_weights": 7, "drafter_kv": 3, "offloaded": None,
    }  # fmt: skip


def test_json_of_a_running_baseline_answer_says_null() -> None:
    record, _ = recorder(Mode.BASELINE)
    found = to_json(record.snapshot(Memory(1, 2, 3, 4)), "", [])
    assert found["memory"]["drafter_kv"] is None
    for name in ("drafter", "tokens_per_second", "acceptance_length", "acceptance_rate", "draft_ms", "stop_reason"):
        assert found[name] is None
    assert found["acceptance_by_position"] == []


def test_the_line_for_the_terminal() -> None:
    assert one_line(drafted_answer()) == (
        "DFlash 2: 11 tokens at 18.3 tokens/s, first token after 0.50 s, "
        "acceptance length 2.25 (64% of 11 drafts accepted), 1.83 tokens per target pass, memory 300 MiB"
    )
    record, _ = recorder(Mode.BASELINE)
    record.first_token()
    assert one_line(record.snapshot(MEMORY, StopReason.MAX_TOKENS)) == (
        "Baseline: 1 token, first token after 0.00 s, memory 300 MiB, ended at the token limit"
    )
    record, _ = recorder(Mode.DFLASH)
    assert one_line(record.snapshot(MEMORY, StopReason.CANCELLED)) == (
        "DFlash: 0 tokens, nothing was drafted, memory 300 MiB, stopped by you"
    )


def test_the_gain_over_plain_decoding_and_the_decision() -> None:
    """Eight tokens in two seconds, where a plain pass takes half a second; nothing of it in baseline."""
    record, clock = recorder()
    record.length = length = FixedLength(CostCurve({1: 0.5}))
    record.first_token()
    length.drafts([[0.0] * 3], (3,))
    for _ in range(2):
        clock.now += 1.0
        record.cycle(drafted=3, accepted=3, emitted=4, verify_s=0.6, draft_s=0.3)
    found = record.snapshot(MEMORY)
    assert (found.plain_tokens_per_second, found.speed_up, found.draft_length) == (2.0, 2.0, 3)
    assert found.decision == "3 drafts, as set."
    assert "2.00 times plain decoding" in one_line(found)
    plain = recorder(Mode.BASELINE)[0].snapshot(MEMORY)
    assert (plain.plain_tokens_per_second, plain.speed_up, plain.decision, plain.draft_length) == (None,) * 4


def test_process_memory_sees_what_is_taken_and_remembers_the_peak() -> None:
    before, _ = process_memory()
    block = mmap.mmap(-1, 64 * 2**20)  # from the system and back to it, which an allocator need not do
    block.write(bytes(len(block)))
    during, peak_during = process_memory()
    assert during > before + 48 * 2**20
    assert peak_during >= during
    block.close()
    after, peak_after = process_memory()
    assert after < during
    assert peak_after > during - 2**20  # the two are counted in different places, and not to the page
