"""What the window knows, without the window."""

from __future__ import annotations

import pytest

from app.conversation import Conversation
from app.state import ChatState, Phase
from engine.events import (
    Answered,
    ContextNotice,
    Failed,
    Loaded,
    LoadProgress,
    LoadSettings,
    Mode,
    Progress,
    PromptProgress,
    StopReason,
    Tokens,
)
from engine.host import Ask, Load, Restore, Rewind
from tests.scripted_session import MEMORY, MISSING, ScriptedSession

SESSION = ScriptedSession(LoadSettings())
LOADED = Loaded(SESSION.info, SESSION.modes, MEMORY)


def answered(text: str, reason: StopReason = StopReason.STOP_TOKEN, mode: Mode = Mode.DFLASH) -> Answered:
    return Answered(text, (1, 2), SESSION._statistics(mode, 2, reason), 50, 4096)


def ready() -> ChatState:
    state = ChatState()
    state.load()
    state.apply(LOADED)
    return state


def test_loading_is_shown_step_by_step() -> None:
    state = ChatState()
    assert state.phase is Phase.EMPTY and not state.can_send and not state.can_stop
    state.load()
    assert state.phase is Phase.LOADING and state.status == "Starting the engine" and state.progress == 0.0
    state.apply(LoadProgress("target", 0.25))
    assert state.status == "Loading the target" and state.progress == 0.25 and state.can_stop
    state.stop()
    assert state.status == "Stopping the load" and not state.can_stop
    state.apply(LOADED)
    assert state.phase is Phase.READY and state.status == "Ready" and state.progress is None
    assert state.context_size == 4096 and state.memory is MEMORY


def test_the_best_usable_mode_is_taken_until_the_user_chooses() -> None:
    state = ready()
    assert state.mode is Mode.DFLASH  # DFlash 2 lacks its drafter
    state.wanted_mode = Mode.DFLASH2
    assert state.mode is Mode.DFLASH
    state.wanted_mode = Mode.BASELINE
    assert state.mode is Mode.BASELINE
    assert next(info.reason for info in state.modes if info.mode is Mode.DFLASH2) == MISSING


def test_an_answer_grows_and_ends() -> None:
    state = ready()
    assert state.ask("q") == Ask("q", Mode.DFLASH)
    turn = state.conversation.turns[-1]
    assert state.phase is Phase.ANSWERING and state.statistics is None and not state.can_send
    state.apply(LoadProgress("drafter", 0.5))
    assert state.status == "Loading the drafter" and state.progress == 0.5
    state.apply(PromptProgress(512, 2048))
    assert state.status == "Reading the prompt: 512 of 2,048 tokens" and state.progress == 0.25
    state.apply(PromptProgress(5, 9, again=True))
    assert state.status == "Reading the prompt again, for the drafter: 5 of 9 tokens"
    state.apply(Tokens((1,), (0,), "안"))
    state.apply(Progress(SESSION._statistics(Mode.DFLASH, 1, None), 40, 4096))
    assert state.status == "Answering" and state.progress is None
    assert turn.answer == "안" and state.context_used == 40 and not turn.ended
    state.apply(answered("안녕"))
    assert turn.answer == "안녕" and turn.ended and turn.known and turn.note == ""
    assert state.phase is Phase.READY and state.statistics is turn.statistics


@pytest.mark.parametrize(
    ("reason", "note"),
    [
        (StopReason.MAX_TOKENS, "Stopped at the token limit."),
        (StopReason.CONTEXT_FULL, "Stopped because the context is full."),
        (StopReason.CANCELLED, "Stopped."),
    ],
)
def test_how_an_answer_ended_is_said(reason: StopReason, note: str) -> None:
    state = ready()
    state.ask("q")
    state.stop()
    assert state.status == "Stopping" and not state.can_stop
    state.apply(answered("a", reason))
    assert state.conversation.turns[-1].note == note and not state.stopping


def test_notices_belong_to_the_turn_in_which_they_came() -> None:
    state = ready()
    state.ask("q")
    state.apply(ContextNotice("dropped", 3900, 4096, "The oldest turn was dropped.", 1))
    assert state.conversation.turns[-1].notices == ["The oldest turn was dropped."]
    assert state.context_nearly_full


def test_a_refused_question_stays_with_the_reason() -> None:
    state = ready()
    state.fail(state.ask("too long"), Failed("ContextTooSmall", "The prompt is too long; shorten it."))
    turn = state.conversation.turns[-1]
    assert (turn.question, turn.note, turn.ended, turn.known) == (
        "too long",
        "The prompt is too long; shorten it.",
        True,
        False,
    )
    assert state.phase is Phase.READY and state.trouble is None


def test_a_load_that_fails_can_be_tried_again() -> None:
    state = ChatState()
    state.load()
    state.fail(Load(), Failed("ModelFileError", "x.gguf does not exist; choose another."))
    assert state.phase is Phase.EMPTY and state.trouble is not None
    assert (state.trouble.sentence, state.trouble.remedy) == ("x.gguf does not exist; choose another.", "Try again")
    state.load()
    assert state.trouble is None
    state.fail(Load(), Failed("Cancelled", "Stopped before it was finished."))
    assert state.trouble is not None and state.trouble.remedy == "Load"


def test_after_a_crash_the_text_stays_and_a_fresh_engine_is_told() -> None:
    state = ready()
    state.ask("first")
    state.apply(answered("one"))
    state.ask("second")
    state.apply(Tokens((1,), (0,), "tw"))
    state.engine_stopped("Killed.")
    assert state.phase is Phase.STOPPED and not state.can_send and state.memory is None
    assert [turn.answer for turn in state.conversation.turns] == ["one", "tw"]
    assert all(turn.ended and not turn.known for turn in state.conversation.turns)
    assert state.trouble is not None and state.trouble.sentence == "Killed." and state.trouble.remedy == "Restart"
    assert state.conversation.history() == (("first", "one"), ("second", "tw"))
    state.load()
    state.apply(LOADED)
    state.done(Restore(state.conversation.history()), True)
    assert all(turn.known for turn in state.conversation.turns) and state.trouble is None


def test_a_crash_before_the_first_word_leaves_the_question() -> None:
    state = ready()
    state.ask("first")
    state.engine_stopped("Killed.")
    assert state.conversation.history() == ()
    state.load()
    state.apply(LOADED)
    assert state.conversation.take_back() == ("first", 0)


def test_turns_that_could_not_be_given_back_are_said_and_not_counted() -> None:
    state = ready()
    state.ask("first")
    state.apply(answered("one"))
    state.engine_stopped("Killed.")
    state.load()
    state.apply(LOADED)
    restore = Restore(state.conversation.history())
    state.fail(restore, Failed("TemplateError", "The template cannot be rendered."))
    state.done(restore, False)
    assert state.trouble is not None and state.trouble.sentence == "The template cannot be rendered."
    assert state.conversation.take_back() == ("first", 0)


def test_asking_again_keeps_what_the_engine_knows_before() -> None:
    conversation = Conversation()
    conversation.ask("one", Mode.BASELINE)
    assert conversation.take_back() is None  # it is still being answered
    conversation.finish(answered("1"))
    conversation.ask("refused", Mode.BASELINE)
    conversation.break_off("No.")
    conversation.ask("three", Mode.BASELINE)
    conversation.finish(answered("3"))
    assert conversation.take_back() == ("three", 1)
    assert [turn.question for turn in conversation.turns] == ["one", "refused"]


def test_events_of_an_answer_that_is_gone_change_no_turn() -> None:
    state = ready()
    state.apply(Tokens((1,), (0,), "late"))
    state.apply(answered("late"))
    state.fail(Rewind(0), Failed("X", "That went wrong."))
    assert state.conversation.turns == [] and state.trouble is not None and state.trouble.remedy is None
