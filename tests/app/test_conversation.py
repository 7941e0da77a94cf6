"""What the window knows, without the window."""

from __future__ import annotations

import pytest

from app.conversation import NOT_KNOWN, Conversation, TokenMark
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
from engine.host import Ask, Cancel, Continue, ListDevices, Load, Request, Restore, Rewind, Unload
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


def begin(state: ChatState) -> list[Request]:
    """Let the engine do what comes before the next answer; what it was sent, the answer's request last."""
    sent: list[Request] = []
    while (request := state.next_request()) is not None:
        sent.append(request)
        if isinstance(request, (Ask, Continue)):
            break
        state.done(request, True)
    return sent


def end(state: ChatState, text: str, reason: StopReason = StopReason.STOP_TOKEN) -> None:
    """Let the running answer come to its end."""
    job = state.running
    assert job is not None
    state.apply(answered(text, reason))
    state.done(job.request, True)


def asked_and_answered(state: ChatState, question: str, answer: str) -> None:
    state.ask(question)
    begin(state)
    end(state, answer)


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
    turn = state.ask("q")
    assert begin(state) == [Ask("q", Mode.DFLASH, tag=state.conversation.id)]
    assert state.phase is Phase.ANSWERING and state.statistics is None and not state.can_send
    state.apply(LoadProgress("drafter", 0.5))
    assert state.status == "Loading the drafter" and state.progress == 0.5
    state.apply(PromptProgress(512, 2048))
    assert state.status == "Reading the prompt: 512 of 2,048 tokens" and state.progress == 0.25
    state.apply(PromptProgress(5, 9, again=True))
    assert state.status == "Reading the prompt again, for the drafter: 5 of 9 tokens"
    state.apply(Tokens((1, 2), (0, 3), "안", ("안".encode()[:1], "안".encode()[1:]), ((("안", 0.9),), ())))
    assert turn.tokens == [TokenMark(0, 1, (("안", 0.9),)), TokenMark(3, 2)]
    state.apply(Progress(SESSION._statistics(Mode.DFLASH, 1, None), 40, 4096))
    assert state.status == "Answering" and state.progress is None
    assert turn.answer == "안" and state.context_used == 40 and not turn.ended
    end(state, "안녕")
    assert (turn.answer, turn.token_ids, turn.note) == ("안녕", (1, 2), "")
    assert turn.ended and turn.complete and not turn.can_continue
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
    turn = state.ask("q")
    begin(state)
    assert state.stop() == Cancel(state.conversation.id)
    assert state.status == "Stopping" and not state.can_stop
    end(state, "a", reason)
    assert turn.note == note and turn.can_continue and not state.stopping


def test_notices_belong_to_the_turn_in_which_they_came() -> None:
    state = ready()
    state.ask("q")
    begin(state)
    state.apply(ContextNotice("dropped", 3900, 4096, "The oldest turn was dropped.", 1))
    assert state.conversation.turns[-1].notices == ["The oldest turn was dropped."]
    assert state.context_nearly_full


def test_a_refused_question_stays_with_the_reason() -> None:
    state = ready()
    turn = state.ask("too long")
    (request,) = begin(state)
    state.fail(request, Failed("ContextTooSmall", "The prompt is too long; shorten it."))
    state.done(request, False)
    assert (turn.question, turn.note, turn.ended) == ("too long", "The prompt is too long; shorten it.", True)
    assert state.phase is Phase.READY and state.trouble is None and not state.jobs
    state.ask("shorter")
    assert [type(request) for request in begin(state)] == [Ask]  # it never was a turn of the engine's


def test_the_button_that_restarts_stays_whatever_else_goes_wrong() -> None:
    state = ready()
    state.engine_stopped("Killed.")
    state.fail(ListDevices(), Failed("EngineStopped", "No device answers."))
    assert state.banner is not None and state.banner.remedy == "Restart"
    state.load()
    assert state.banner is not None and state.banner.sentence == "No device answers."


def test_another_load_behind_an_unload_is_not_called_off() -> None:
    state = ready()
    state.unload()
    state.load()
    state.done(Unload(), True)
    assert state.phase is Phase.LOADING and state.banner is None
    state.apply(LOADED)
    assert state.phase is Phase.READY and state.banner is None


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


def test_after_a_crash_the_text_stays_and_the_answer_goes_on() -> None:
    state = ready()
    asked_and_answered(state, "first", "one")
    turn = state.ask("second")
    begin(state)
    state.apply(Tokens((1,), (0,), "tw", (b"tw",)))
    state.engine_stopped("Killed.")
    assert state.phase is Phase.STOPPED and not state.can_send and state.memory is None
    assert [turn.answer for turn in state.conversation.turns] == ["one", "tw"] and turn.can_continue
    assert state.trouble is not None
    assert (state.trouble.sentence, state.trouble.remedy) == ("Killed.", "Restart and go on")
    state.load()
    state.apply(LOADED)
    restore, go_on = begin(state)
    assert restore == Restore((("first", "one", (1, 2)), ("second", "tw", None)))
    assert isinstance(go_on, Continue) and state.phase is Phase.ANSWERING and state.trouble is None
    state.apply(Tokens((1,), (2,), "o", (b"o",)))
    end(state, "two")
    assert turn.answer == "two" and [mark.size for mark in turn.tokens] == [2, 1]
    state.ask("third")
    assert [type(request) for request in begin(state)] == [Ask]  # nothing has to be told again


def test_a_crash_before_the_first_word_asks_again() -> None:
    state = ready()
    turn = state.ask("first")
    begin(state)
    state.engine_stopped("Killed.")
    assert turn.ended and not turn.can_continue
    state.load()
    state.apply(LOADED)
    assert begin(state) == [Ask("first", Mode.DFLASH, tag=state.conversation.id)]


def test_a_conversation_that_the_engine_does_not_take_is_not_asked() -> None:
    state = ready()
    asked_and_answered(state, "first", "one")
    state.engine_stopped("Killed.")
    assert state.trouble is not None and state.trouble.remedy == "Restart"
    state.load()
    state.apply(LOADED)
    turn = state.ask("second")
    restore = state.next_request()
    assert isinstance(restore, Restore)
    state.fail(restore, Failed("TemplateError", "The template cannot be rendered."))
    state.done(restore, False)
    assert turn.ended and turn.note == "The template cannot be rendered." and state.next_request() is None
    assert state.can_send


def test_versions_of_a_turn_stay_and_the_engine_is_told_what_differs() -> None:
    state = ready()
    asked_and_answered(state, "first", "one")
    asked_and_answered(state, "second", "two")
    conversation = state.conversation
    first, second = conversation.turns
    again = state.ask_again(second)
    assert [type(request) for request in begin(state)] == [Rewind, Ask]
    end(state, "2")
    edited = state.ask_again(first, "First!")
    assert begin(state)[0] == Restore(())
    end(state, "1")
    assert conversation.turns == [edited] and (edited.place, len(edited.siblings)) == (1, 2)
    conversation.leaf(edited, -1)
    assert conversation.turns == [first, again] and again.question == "second"
    conversation.leaf(again, -1)
    conversation.leaf(second, -1)  # there is none before it
    assert conversation.turns == [first, second]
    state.ask("third")
    sent = begin(state)
    assert isinstance(sent[0], Restore) and [turn[:2] for turn in sent[0].turns] == [
        ("first", "one"),
        ("second", "two"),
    ]


def test_a_second_conversation_waits_and_can_be_cancelled() -> None:
    state = ready()
    one = state.conversation
    state.ask("one?")
    begin(state)
    state.apply(Progress(SESSION._statistics(Mode.DFLASH, 1, None), 40, 4096))
    two = Conversation()
    state.open(two)
    assert state.can_send and state.statistics is None and state.context_used == 0
    waiting = state.ask("two?")
    assert state.next_request() is None and state.phase is Phase.ANSWERING and state.can_stop
    assert "one?" in waiting.wait and state.status == "Waiting for the engine"
    state.apply(Tokens((1,), (0,), "1", (b"1",)))
    assert one.turns[0].answer == "1" and waiting.answer == ""
    assert state.stop() is None and waiting.ended and waiting.wait == "" and "cancelled" in waiting.note
    waiting = state.ask("two, please?")
    state.open(one)
    assert state.statistics is not None and state.context_used == 40
    end(state, "1.")
    restore = state.next_request()
    assert restore is None or not isinstance(restore, Ask)
    assert state.phase is Phase.READY
    state.open(two)
    if restore is not None:
        state.done(restore, True)
    assert [type(request) for request in begin(state)][-1] is Ask and waiting.wait == ""
    end(state, "2.")
    assert (one.turns[0].answer, waiting.answer) == ("1.", "2.")


def test_who_waits_is_asked_after_a_restart() -> None:
    state = ready()
    state.ask("one?")
    begin(state)
    state.open(Conversation())
    waiting = state.ask("two?")
    state.engine_stopped("Killed.")
    state.load()
    state.apply(LOADED)
    begin(state)
    assert state.running is not None and state.running.turn.question == "one?"
    end(state, "1.")
    begin(state)
    assert state.running is not None and state.running.turn is waiting


def test_text_without_marks_is_marked_as_not_known_when_it_goes_on() -> None:
    conversation = Conversation()
    turn = conversation.ask("q", Mode.BASELINE)
    conversation.add_text("안녕")
    conversation.break_off("Interrupted.")
    conversation.go_on(turn)
    assert turn.tokens == [TokenMark(NOT_KNOWN, 6)] and not turn.ended and turn.note == ""


def test_how_long_the_model_thought_is_kept_with_the_turn() -> None:
    conversation = Conversation()
    turn = conversation.ask("q", Mode.BASELINE)
    for piece in ("<think>", "hm"):
        conversation.add_text(piece)
        assert turn.thought_seconds is None
    conversation.break_off("Interrupted.")
    broken_off = turn.thought_seconds
    assert broken_off is not None and broken_off > 0
    conversation.go_on(turn)
    for piece in (" yes", "</thi", "nk>\n"):
        conversation.add_text(piece)
    whole = turn.thought_seconds
    assert whole is not None and whole > broken_off
    conversation.add_text("It is written </think>\n and said. </think>\n")
    conversation.break_off("")
    assert turn.thought_seconds == whole
    plain = conversation.ask("another", Mode.BASELINE)
    conversation.add_text("no thought")
    conversation.break_off("")
    assert plain.thought_seconds is None


def test_what_changed_is_named_once() -> None:
    conversation = Conversation()
    one = conversation.ask("a question  \n of two lines", Mode.BASELINE)
    assert conversation.title == "a question of two lines"
    conversation.add_text("1")
    assert conversation.take_changes() == [one] and conversation.take_changes() == []
    conversation.break_off("")
    other = conversation.ask_again(one, Mode.BASELINE)
    assert conversation.take_changes() == [one, conversation.root, other]
    conversation.leaf(other, -1)
    assert conversation.take_changes() == [conversation.root]


def test_events_of_an_answer_that_is_gone_change_no_turn() -> None:
    state = ready()
    state.apply(Tokens((1,), (0,), "late"))
    state.apply(answered("late"))
    state.fail(Rewind(0), Failed("X", "That went wrong."))
    assert state.conversation.turns == []
