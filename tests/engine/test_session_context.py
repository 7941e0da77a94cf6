"""What of a conversation the context holds: prefixes reused, positions read again, and what happens when it is full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from engine.errors import ContextTooSmall
from engine.events import ContextNotice, Event, Mode, PromptProgress, StopReason
from engine.session import Session
from engine.vocabulary import Message
from tests.conversation import answer_to, answered, ask, of_type, opened
from tests.tiny_chat import LETTERS

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

COUNT = bytes(LETTERS).decode() * 40
MODES = list(Mode)


def read_of(events: list[Event]) -> tuple[int, int, bool]:
    """(tokens of the prompt that were cached, tokens read, whether some were read again), from all that says so."""
    figures = answered(events).statistics
    progress = of_type(events, PromptProgress)
    assert progress[0].done == 0 and progress[-1].done == progress[-1].total
    assert figures.prompt_tokens_cached + progress[-1].total == figures.prompt_tokens
    return figures.prompt_tokens_cached, progress[-1].total, progress[-1].again


# --- prefixes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_second_turn_reads_only_what_is_new(counting: Session, mode: Mode) -> None:
    first = answer_to(counting, "count!", mode=mode, max_tokens=20)
    cached, read, again = read_of(ask(counting, "more", mode=mode, max_tokens=20))
    assert cached == first.context_used, "all but the newest token of the answer"
    new = f"{first.text[-1]}<|im_end|>\n<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n"
    assert read == len(counting._target.vocabulary.tokenize(new, special=True)) and not again


def test_what_a_drafter_has_not_seen_is_read_again(counting: Session) -> None:
    """After turns in baseline and with the other drafter; each drafter has what it has seen still."""
    seen: dict[Mode, int] = {Mode.DFLASH: 0, Mode.DFLASH2: 0}
    held = 0
    for mode in (Mode.BASELINE, Mode.DFLASH, Mode.DFLASH2, Mode.BASELINE, Mode.DFLASH, Mode.DFLASH, Mode.DFLASH2):
        events = ask(counting, "go on", mode=mode, max_tokens=12)
        cached, _, again = read_of(events)
        assert cached == (held if mode is Mode.BASELINE else seen[mode])
        assert again == (cached < held)
        held = answered(events).context_used
        if mode is not Mode.BASELINE:
            seen[mode] = held
            assert counting._drafters[mode].committed() == held


@pytest.mark.parametrize("mode", MODES)
def test_asking_again_reads_one_token(counting: Session, mode: Mode) -> None:
    ask(counting, "one", mode=mode, max_tokens=9)
    first = answer_to(counting, "two", mode=mode, max_tokens=9)
    counting.rewind(1)
    assert counting.turns == 1
    events = ask(counting, "two", mode=mode, max_tokens=9)
    assert read_of(events) == (first.statistics.prompt_tokens - 1, 1, False)
    assert answered(events).text == first.text and counting.turns == 2


def test_a_new_conversation_reuses_what_begins_alike(counting: Session) -> None:
    counting.reset("Be brief.")
    ask(counting, "hello there", max_tokens=5)
    counting.reset("Be brief.")
    assert counting.turns == 0
    cached, _, _ = read_of(ask(counting, "help", max_tokens=5))
    begin = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhel"
    assert cached == len(counting._target.vocabulary.tokenize(begin, special=True))


def test_an_edited_question_is_read_from_where_it_differs(wandering: Session) -> None:
    """And the answers are those of a conversation which never was another."""
    answers = {}
    for keep, question in ((0, "first"), (1, "second"), (2, "third"), (1, "another second"), (2, "another third")):
        wandering.rewind(keep)
        answers[question] = answer_to(wandering, question, mode=Mode.DFLASH2, max_tokens=12)
    assert answers["another second"].statistics.prompt_tokens_cached >= answers["first"].context_used
    assert answers["another third"].statistics.prompt_tokens_cached >= answers["another second"].context_used
    wandering.reset()
    for question in ("first", "another second", "another third"):
        assert answer_to(wandering, question, max_tokens=12).token_ids == answers[question].token_ids


def test_a_restored_conversation_goes_on(wandering: Session) -> None:
    first = answer_to(wandering, "first", max_tokens=12)
    second = answer_to(wandering, "second", max_tokens=12)
    wandering.reset()
    answer_to(wandering, "something else", max_tokens=3)
    wandering.restore([("first", first.text)])
    assert wandering.turns == 1
    assert answer_to(wandering, "second", max_tokens=12).text == second.text


# --- a full context ---------------------------------------------------------------------------------------------------


@pytest.fixture
def small(tiny_models: TinyModels) -> Iterator[Session]:
    with opened(tiny_models.counting, tiny_models.wandering_v1, tiny_models.counting_v2, context=128) as session:
        yield session


@pytest.mark.parametrize("drafts", [1, 3, 7])
@pytest.mark.parametrize("mode", MODES)
def test_an_answer_ends_where_the_context_is_full(small: Session, mode: Mode, drafts: int) -> None:
    """It is announced before it happens, and every position is used."""
    events = ask(small, "count!", mode=mode, draft_length=drafts)
    end = answered(events)
    assert end.statistics.stop_reason is StopReason.CONTEXT_FULL
    assert end.context_used == end.context_size == 128
    assert end.text == COUNT[: 128 - end.statistics.prompt_tokens + 1]
    (notice,) = of_type(events, ContextNotice)
    assert notice.kind == "nearly_full" and notice.size == 128 and notice.used >= 116
    assert str(notice.used) in notice.sentence and "128" in notice.sentence
    assert events.index(notice) < len(events) - 1
    if mode is not Mode.BASELINE:
        assert small._drafters[mode].committed() == 128


@pytest.mark.parametrize("mode", MODES)
def test_the_oldest_turns_are_left_out_and_the_system_prompt_stays(small: Session, mode: Mode) -> None:
    small.reset("Be short.")
    answer_to(small, "first", mode=mode, max_tokens=20)
    answer_to(small, "second", mode=mode, max_tokens=20)
    events = ask(small, "third", mode=mode, max_tokens=4)
    notice = events[0]
    assert isinstance(notice, ContextNotice) and notice.kind == "dropped" and notice.dropped_turns == 1
    assert "no longer sees the oldest question and its answer" in notice.sentence
    answer = bytes(COUNT[:20], "ascii")
    messages = [
        Message("system", "Be short."),
        Message("user", "second"),
        Message("assistant", COUNT[:20], tuple(answer)),
        Message("user", "third"),
    ]
    expected = small._target.vocabulary.render(messages)
    assert small._target.tokens()[: len(expected)] == expected
    assert len(expected) <= 128 - 128 // 4, "room for an answer is made, so that the next question fits too"
    assert small.turns == 3, "the conversation itself keeps all turns"
    events = ask(small, "4", mode=mode, max_tokens=4)
    assert isinstance(events[0], PromptProgress), "nothing more is left out"


def test_the_notice_counts_all_turns_left_out(small: Session) -> None:
    told = []
    for turn in range(6):
        notices = of_type(ask(small, f"turn {turn}", max_tokens=30), ContextNotice)
        told += [notice for notice in notices if notice.kind == "dropped"]
    counts = [notice.dropped_turns for notice in told]
    assert counts == sorted(set(counts)) and counts[-1] == 4
    assert "the 4 oldest questions and answers" in told[-1].sentence


def test_turns_come_back_when_later_ones_are_taken_away(small: Session) -> None:
    for turn in range(5):
        ask(small, f"turn {turn}", max_tokens=30)
    small.rewind(1)
    events = ask(small, "again", max_tokens=4)
    assert not of_type(events, ContextNotice)
    text = small._target.vocabulary.detokenizer().push(small._target.tokens())
    assert text.startswith(f"user\nturn 0\nassistant\n{COUNT[:30]}\nuser\nagain\n")


def test_a_prompt_longer_than_the_context_changes_nothing(small: Session) -> None:
    ask(small, "first", max_tokens=5)
    held = list(small._target.tokens())
    for length in (109, 128, 1000):
        with pytest.raises(ContextTooSmall, match=r"The prompt has \d+ tokens and the context holds 128; shorten it"):
            ask(small, "x" * length)
        assert small.turns == 1 and small._target.tokens() == held
    events = ask(small, "second", max_tokens=5)
    assert not of_type(events, ContextNotice) and read_of(events)[0] == len(held), "the first turn is not forgotten"


def test_the_longest_prompt_that_fits_leaves_room_for_one_pass(small: Session) -> None:
    frame = len(small._target.vocabulary.render([Message("user", "")]))
    for mode in MODES:
        small.reset()
        end = answer_to(small, "x" * (127 - frame), mode=mode)
        assert end.statistics.prompt_tokens == 127
        assert end.text == COUNT[:2] and end.statistics.stop_reason is StopReason.CONTEXT_FULL
    small.reset()
    with pytest.raises(ContextTooSmall):
        ask(small, "x" * (128 - frame))


def test_a_context_too_small_to_be_of_use(tiny_models: TinyModels) -> None:
    with pytest.raises(ContextTooSmall, match="A context of 63 tokens is too small; choose at least 64"):
        opened(tiny_models.counting, context=63)
    with opened(tiny_models.counting, context=64) as session:
        assert answer_to(session, "hi", max_tokens=3).text == COUNT[:3]
