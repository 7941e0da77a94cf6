"""Stopping an answer at any moment: it ends within one pass, and the conversation goes on as if nothing had been."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.errors import Cancelled
from engine.events import Event, LoadProgress, LoadSettings, Mode, PromptProgress, StopReason, Tokens
from engine.session import Session
from engine.target import PREFILL_CHUNK
from tests.conversation import (
    SetWhenAskedOften,
    abandoned_after,
    answer_to,
    answered,
    ask,
    cancelled_after,
    check_events,
    of_type,
    opened,
)
from tests.tiny_chat import LETTERS

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

COUNT = bytes(LETTERS).decode() * 40
MODES = list(Mode)
LONG = "a long question " * 150  # five chunks


def committed(session: Session) -> list[int]:
    """Positions in all caches that are in use, the target's first."""
    return [session._target.committed(), *(drafter.committed() for drafter in session._drafters.values())]


def goes_on(session: Session, mode: Mode) -> None:
    """The next answer is right, and all its positions are in both caches."""
    end = answer_to(session, "and now?", mode=mode, max_tokens=20, draft_length=7)
    assert end.text == COUNT[:20] and end.statistics.stop_reason is StopReason.MAX_TOKENS
    assert set(committed(session)) == {end.context_used}


@pytest.mark.parametrize("mode", MODES)
def test_during_an_answer(counting: Session, mode: Mode) -> None:
    """What had been said stays in the conversation."""
    events = cancelled_after(counting, 6, "count!", mode=mode, draft_length=3)
    end = answered(events)
    assert end.statistics.stop_reason is StopReason.CANCELLED
    assert len(of_type(events, Tokens)) == 4, "the event at which it was cancelled was the last of its kind"
    assert end.text and COUNT.startswith(end.text)
    assert counting.turns == 1
    expected = end.context_used
    assert answer_to(counting, "go on", mode=mode, max_tokens=4).statistics.prompt_tokens_cached == expected
    goes_on(counting, mode)


@pytest.mark.parametrize("mode", MODES)
def test_between_the_chunks_of_a_long_question(tiny_models: TinyModels, mode: Mode) -> None:
    with opened(tiny_models.counting, tiny_models.wandering_v1, tiny_models.counting_v2, context=4096) as session:
        for seen in (1, 2, 4):
            session.reset()
            events = cancelled_after(session, seen, LONG, mode=mode)
            assert len(events) == seen + 1 and answered(events).text == ""
            assert answered(events).statistics.stop_reason is StopReason.CANCELLED
            assert answered(events).statistics.time_to_first_token_s is None
            # what an earlier try has read is reused
            assert set(committed(session)) == {answered(events).context_used}
            assert answered(events).context_used % PREFILL_CHUNK == 0
        session.rewind(0)
        goes_on(session, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("looks", [3, 40, 300])
def test_while_a_chunk_is_being_decoded(tiny_models: TinyModels, mode: Mode, looks: int) -> None:
    """The pass itself is broken off; what it had begun is not kept. `looks`: how often the flag is looked at before."""
    with opened(tiny_models.counting, tiny_models.wandering_v1, tiny_models.counting_v2, context=4096) as session:
        ask(session, "?", mode=mode, max_tokens=1)  # loads the drafter
        session.reset()
        cancel = SetWhenAskedOften(looks)
        events = list(session.ask(LONG, mode=mode, cancel=cancel))
        check_events(events)
        figures, progress = answered(events).statistics, of_type(events, PromptProgress)[-1]
        assert figures.stop_reason is StopReason.CANCELLED and progress.done < progress.total
        assert set(committed(session)) == {figures.prompt_tokens_cached + progress.done}
        session.rewind(0)
        goes_on(session, mode)


@pytest.mark.parametrize("mode", MODES)
def test_the_flag_is_looked_at_once_per_cycle(counting: Session, mode: Mode) -> None:
    """Only while a prompt is read is it looked at inside of passes: that costs a call per node of the graph."""
    cancel = SetWhenAskedOften(1 << 30)
    begun = None
    for event in counting.ask("count!", mode=mode, max_tokens=33, draft_length=7, cancel=cancel):
        if begun is None and isinstance(event, Tokens):
            begun = cancel.looks
    assert begun is not None and 0 < cancel.looks - begun <= 33


def test_from_another_thread_while_a_chunk_is_being_decoded(tiny_models: TinyModels) -> None:
    reading = threading.Event()
    with opened(tiny_models.counting, v2=tiny_models.counting_v2, context=4096) as session:

        def meet() -> None:  # called inside a pass
            reading.set()
            stopper.join()

        cancel = SetWhenAskedOften(30, meet)

        def stop() -> None:
            reading.wait()
            cancel.set()

        stopper = threading.Thread(target=stop)
        stopper.start()
        end = answered(list(session.ask(LONG, mode=Mode.DFLASH2, cancel=cancel)))
        assert end.statistics.stop_reason is StopReason.CANCELLED and end.context_used == 0
        goes_on(session, Mode.DFLASH2)


@pytest.mark.parametrize("mode", MODES)
def test_before_it_begins(counting: Session, mode: Mode) -> None:
    """Also while its drafter is being loaded."""
    cancel = threading.Event()
    cancel.set()
    end = answered(list(counting.ask("count!", mode=mode, cancel=cancel)))
    assert end.statistics.stop_reason is StopReason.CANCELLED and end.text == "" and end.token_ids == ()
    assert end.statistics.mode is mode and (end.statistics.drafter is None) == (mode is Mode.BASELINE)
    assert counting.turns == 1
    goes_on(counting, mode)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_stopped_while_it_waits_leaves_the_caches_to_the_other_conversation(
    counting: Session, mode: Mode
) -> None:
    first = answer_to(counting, "count!", mode=mode, max_tokens=9, draft_length=3)
    held = committed(counting)
    cancel = threading.Event()
    cancel.set()
    counting.restore([], "Be brief.")
    list(counting.ask("something else", mode=mode, cancel=cancel))
    assert committed(counting) == held
    counting.restore([("count!", first.text, first.token_ids)])
    again = answer_to(counting, "and now?", mode=mode, max_tokens=9, draft_length=3)
    assert again.statistics.prompt_tokens_cached == first.context_used


@pytest.mark.parametrize("part", ["drafter", "measuring"])
def test_while_a_drafter_is_being_prepared(
    tiny_models: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """An answer that was to be continued keeps its beginning."""
    monkeypatch.setenv("DFLASH_CHAT_CACHE", str(tmp_path))  # where nothing was measured yet
    cancel = threading.Event()

    def stop(event: Event) -> None:
        if isinstance(event, LoadProgress) and event.part == part:
            cancel.set()

    drafters = {Mode.DFLASH2: str(tiny_models.counting_v2)}
    with Session.open(LoadSettings(str(tiny_models.counting), drafters, 256, threads=1), stop) as session:
        begun = answered(list(session.ask("count!", max_tokens=5)))
        end = answered(list(session.go_on(mode=Mode.DFLASH2, cancel=cancel)))
        assert end.statistics.stop_reason is StopReason.CANCELLED and end.token_ids == begun.token_ids
        assert cancel.is_set() and session.turns == 1
        session.rewind(0)
        goes_on(session, Mode.DFLASH2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seen", [0, 1, 2, 3, 5])
def test_a_listener_that_goes_away(counting: Session, mode: Mode, seen: int) -> None:
    """Nobody heard the end of the answer, so it is no turn."""
    abandoned_after(counting, seen, "count!", mode=mode)
    assert counting.turns == 0
    goes_on(counting, mode)


def test_while_the_target_is_being_loaded(tiny_models: TinyModels) -> None:
    cancel = threading.Event()

    def stop(event: Event) -> None:
        cancel.set()

    with pytest.raises(Cancelled):
        Session.open(LoadSettings(str(tiny_models.counting), context=256, threads=1), stop, cancel)
    with pytest.raises(Cancelled):
        Session.open(LoadSettings(str(tiny_models.counting), context=256, threads=1), cancel=cancel)
