"""Going on with an answer that was broken off, and going from one conversation to another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.errors import ContextTooSmall, PromptError, SettingsError
from engine.events import (
    OVERFLOW_RULES,
    Answered,
    ContextNotice,
    Event,
    KnownTurn,
    LoadSettings,
    Mode,
    SamplerSettings,
    StopReason,
    Tokens,
)
from engine.session import Session
from engine.vocabulary import Message
from tests.conversation import answer_to, answered, ask, cancelled_after, of_type, opened
from tests.tiny_chat import LETTERS, counting_target

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

MODES = list(Mode)
COUNT = bytes(LETTERS).decode() * 20
PENALISED = SamplerSettings(repetition_penalty=1.3, frequency_penalty=0.4)


def go_on(session: Session, **settings: Any) -> list[Event]:
    """Every event, after checking that the whole answer is its beginning and what was added."""
    begun = session._history.turns[-1].answer
    events = list(session.go_on(**settings))
    end = answered(events)
    assert end.text == begun + "".join(part.text for part in of_type(events, Tokens))
    assert end.statistics.output_tokens == sum(len(part.ids) for part in of_type(events, Tokens))
    return events


# --- the whole answer -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", [SamplerSettings(), PENALISED], ids=["plain", "penalised"])
@pytest.mark.parametrize("mode", MODES)
def test_broken_off_and_continued_is_as_without_the_break(
    wandering: Session, mode: Mode, sampler: SamplerSettings
) -> None:
    """Broken off by the limit and by the user, also before the first token, and continued in another mode."""
    settings: dict[str, Any] = {"mode": mode, "sampler": sampler, "draft_length": 3}
    answer_to(wandering, "first", max_tokens=9)
    whole = answer_to(wandering, "Tell me!", max_tokens=40, **settings).token_ids
    assert len(whole) > 8
    for broken in (1, 2, 5):
        wandering.rewind(1)
        answer_to(wandering, "Tell me!", max_tokens=broken, **settings)
        other = MODES[(MODES.index(mode) + broken) % 3]
        held = len(wandering._target.tokens())
        events = go_on(wandering, **settings | {"mode": other}, max_tokens=3)
        figures = answered(events).statistics
        if other is mode:
            assert (figures.prompt_tokens_cached, figures.prompt_tokens) == (held, held + 1), "only its newest token"
        end = answered(go_on(wandering, max_tokens=40 - broken - 3, **settings))
        assert end.token_ids == whole and wandering.turns == 2
    for events_heard in (1, 4):
        wandering.rewind(1)
        cancelled_after(wandering, events_heard, "Tell me!", **settings)
        begun = wandering._history.turns[-1].ids
        assert begun is not None and len(begun) < len(whole)
        assert answered(go_on(wandering, max_tokens=40 - len(begun), **settings)).token_ids == whole


def test_half_a_character_is_completed(tmp_path: Path) -> None:
    with opened(counting_target(tmp_path / "hangul.gguf", (*"물새".encode(),))) as session:
        assert answer_to(session, "hi", max_tokens=4).text == "물"
        events = go_on(session, max_tokens=1)
        assert of_type(events, Tokens)[0].text == "" and answered(events).text == "물"
        events = go_on(session, max_tokens=2)
        assert [part.text for part in of_type(events, Tokens)] == ["새", ""]
        assert answered(events).text == "물새" and len(answered(events).token_ids) == 7


def test_a_seeded_answer_goes_on_repeatably_and_not_with_the_same_numbers(counting: Session) -> None:
    wild = SamplerSettings(temperature=50.0, top_k=0, top_p=1.0, min_p=0.0, seed=5)

    def both() -> tuple[tuple[int, ...], tuple[int, ...]]:
        counting.reset()
        first = answer_to(counting, "roll!", sampler=wild, max_tokens=8).token_ids
        return first, answered(go_on(counting, sampler=wild, max_tokens=8)).token_ids[len(first) :]

    first, second = both()
    assert both() == (first, second) and first != second


def test_nothing_to_go_on_with(counting: Session) -> None:
    with pytest.raises(PromptError, match="no answer to go on with"):
        list(counting.go_on())
    answer_to(counting, "count!", max_tokens=2)
    with pytest.raises(SettingsError):
        list(counting.go_on(max_tokens=0))
    assert counting.turns == 1


def test_what_a_full_context_broke_off_goes_on_in_a_longer_one(tiny_models: TinyModels) -> None:
    with opened(tiny_models.counting, context=64) as session:
        end = answer_to(session, "count!")
        assert end.statistics.stop_reason is StopReason.CONTEXT_FULL
        with pytest.raises(ContextTooSmall, match="fills the context of 64 tokens; choose a longer context"):
            list(session.go_on())
        assert session.turns == 1
    with opened(tiny_models.counting, context=256) as session:
        session.restore([known("count!", end)])
        assert answered(go_on(session, max_tokens=60)).text == COUNT[: len(end.text) + 60]


def test_going_on_leaves_out_the_oldest_turns_where_it_must(tiny_models: TinyModels) -> None:
    with opened(tiny_models.counting, context=128) as session:
        answer_to(session, "first", max_tokens=20)
        answer_to(session, "second")
        events = go_on(session, max_tokens=5)
        notice = events[0]
        assert isinstance(notice, ContextNotice) and (notice.kind, notice.dropped_turns) == ("dropped", 1)
        assert answered(events).text == COUNT[: len(answered(events).text)]


# --- restoring --------------------------------------------------------------------------------------------------------


def known(question: str, answer: Answered) -> KnownTurn:
    return question, answer.text, answer.token_ids


@pytest.mark.parametrize("mode", MODES)
def test_two_conversations_by_turns(wandering: Session, mode: Mode) -> None:
    """Going back and forth reads what the other one does not share, and nothing is answered differently."""
    systems = {"a": "Be brief.", "b": "Be polite."}
    settings: dict[str, Any] = {"mode": mode, "max_tokens": 12, "draft_length": 3}
    alone: dict[str, list[Answered]] = {}
    for name, system in systems.items():
        wandering.reset(system)
        alone[name] = [answer_to(wandering, f"{name}{turn}", **settings) for turn in range(3)]
    heard: dict[str, list[KnownTurn]] = {"a": [], "b": []}
    for turn in range(3):
        for name, system in systems.items():
            wandering.restore(heard[name], system)
            answer = answer_to(wandering, f"{name}{turn}", **settings)
            assert answer.token_ids == alone[name][turn].token_ids
            heard[name].append(known(f"{name}{turn}", answer))
    wandering.restore(heard["b"], systems["b"])
    held = len(wandering._target.tokens())
    assert answer_to(wandering, "more", **settings).statistics.prompt_tokens_cached == held


def test_a_letter_that_other_tokens_spell_is_read_from_its_ids(counting: Session) -> None:
    """The text "ab" would be one token; said, it was two. Restored with them, the caches hold it already."""
    answer = answer_to(counting, "count!", max_tokens=6)
    held = answer.context_used
    counting.restore([("count!", answer.text)])
    assert answer_to(counting, "more", max_tokens=1).statistics.prompt_tokens_cached < held
    for ids in (answer.token_ids[:-1], (*answer.token_ids[:-1], ord("z")), (1 << 30, -1)):
        counting.restore([("count!", answer.text, ids)])
        assert counting._history.turns[0].ids is None, "they do not spell the answer"
    counting.restore([("count!", answer.text)])
    assert answered(go_on(counting, max_tokens=4)).text == COUNT[:10]
    counting.restore([("count!", answer.text, answer.token_ids)])
    answer_to(counting, "more", max_tokens=1)
    counting.restore([("count!", answer.text, answer.token_ids)])
    assert answer_to(counting, "more", max_tokens=1).statistics.prompt_tokens_cached >= held


def test_tokens_are_counted(counting: Session) -> None:
    assert counting.count("") == 0 and counting.count("ab c") == 3
    with pytest.raises(PromptError):
        counting.count("\ud800")


# --- the rule for a full context --------------------------------------------------------------------------------------


def test_with_the_rule_to_stop_nothing_is_left_out(tiny_models: TinyModels) -> None:
    settings = LoadSettings(str(tiny_models.counting), context=128, threads=1, overflow="stop")
    with Session.open(settings) as session:
        first = ask(session, "first", max_tokens=30)
        ask(session, "second")
        held = list(session._target.tokens())
        for request in (session.ask("third"), session.go_on()):
            with pytest.raises(ContextTooSmall, match="outgrown the context of 128 tokens; start a new chat"):
                list(request)
        assert session.turns == 2 and session._target.tokens() == held
        session.rewind(1)
        assert not of_type(ask(session, "2", max_tokens=5), ContextNotice)
        assert answered(first).text == COUNT[:30]
        with pytest.raises(ContextTooSmall, match="shorten it"):
            session.reset()
            ask(session, "x" * 500)


def test_an_unknown_rule_is_refused(tiny_models: TinyModels) -> None:
    with pytest.raises(SettingsError, match="'forget'; it must be drop or stop"):
        Session.open(LoadSettings(str(tiny_models.counting), overflow="forget"))


@pytest.mark.parametrize("rule", OVERFLOW_RULES)
def test_a_conversation_of_thousands_of_turns_is_not_rendered_to_see_what_fits(
    tiny_models: TinyModels, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = LoadSettings(str(tiny_models.counting), context=256, threads=1, overflow=rule)
    with Session.open(settings) as session:
        vocabulary = session._target.vocabulary
        render, rendered = vocabulary.render, list[int]()

        def counted(messages: Sequence[Message], begun: str = "") -> list[int]:
            rendered.append(len(messages))
            return render(messages, begun)

        monkeypatch.setattr(vocabulary, "render", counted)
        session.restore([(f"question {turn}", "an answer of some words") for turn in range(3000)], "Be brief.")
        if rule == "stop":
            with pytest.raises(ContextTooSmall, match="outgrown"):
                ask(session, "and now?", max_tokens=3)
            return
        events = ask(session, "and now?", max_tokens=3)
        assert isinstance(events[0], ContextNotice) and 2990 < events[0].dropped_turns < 3000
        assert max(rendered) < 20
