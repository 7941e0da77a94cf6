"""The column of turns: what is kept, and when it follows the newest text."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.conversation import Conversation
from app.conversation_view import ConversationView
from engine.events import Mode

LINE = "a line of text that fills some of the width\n\n"


@pytest.fixture
def view(qtbot: QtBot, qapp: QApplication) -> ConversationView:
    view = ConversationView()
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.show()
    qtbot.waitExposed(view)
    return view


def show(view: ConversationView, conversation: Conversation, idle: bool = False) -> None:
    view.show_conversation(conversation, idle)
    settle(view)


def settle(view: ConversationView) -> None:
    """A new height passes from layout to layout, by one round of events each."""
    bar = view.verticalScrollBar()
    unchanged, last = 0, (-1, -1)
    while unchanged < 8:
        QApplication.processEvents()
        unchanged, last = (unchanged + 1 if (bar.value(), bar.maximum()) == last else 0), (bar.value(), bar.maximum())


def long_conversation() -> Conversation:
    conversation = Conversation()
    conversation.ask("question", Mode.BASELINE)
    conversation.add_text(LINE * 60)
    return conversation


def at_bottom(view: ConversationView) -> bool:
    return view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


def test_it_follows_while_the_reader_is_at_the_bottom(view: ConversationView) -> None:
    conversation = long_conversation()
    show(view, conversation)
    first = view.verticalScrollBar().maximum()
    assert first > 0 and at_bottom(view)
    for _ in range(5):
        conversation.add_text(LINE * 10)
        show(view, conversation)
        assert at_bottom(view)
    assert view.verticalScrollBar().maximum() > first


def test_it_stays_where_the_reader_went_and_comes_back_by_one_button(view: ConversationView) -> None:
    conversation = long_conversation()
    show(view, conversation)
    view.verticalScrollBar().setValue(120)
    for _ in range(5):
        conversation.add_text(LINE * 10)
        show(view, conversation)
        assert view.verticalScrollBar().value() == 120
    assert view._newest.isVisible()
    view._newest.click()
    assert at_bottom(view) and not view._newest.isVisible()
    conversation.add_text(LINE * 10)
    show(view, conversation)
    assert at_bottom(view)


def test_scrolling_down_to_the_end_follows_again(view: ConversationView) -> None:
    conversation = long_conversation()
    show(view, conversation)
    view.verticalScrollBar().setValue(0)
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())
    conversation.add_text(LINE * 10)
    show(view, conversation)
    assert at_bottom(view)


def test_a_new_width_keeps_the_bottom(view: ConversationView) -> None:
    show(view, long_conversation())
    for width in (300, 900, 500):
        view.resize(width, 400)
        settle(view)
        assert at_bottom(view)


def test_turns_that_did_not_change_keep_their_widgets(view: ConversationView) -> None:
    conversation = Conversation()
    for number in range(4):
        conversation.ask(f"question {number}", Mode.BASELINE)
        conversation.add_text("answer")
        conversation.break_off("ended")
        show(view, conversation, idle=True)
    before = list(view.views)
    assert [turn.again.isVisible() for turn in before] == [False, False, False, True]
    conversation.take_back()
    conversation.ask("another", Mode.BASELINE)
    show(view, conversation)
    assert view.views[:3] == before[:3] and view.views[3] is not before[3]
    assert not any(turn.again.isVisible() for turn in view.views)
    conversation.take_back()
    show(view, Conversation())
    assert view.views == []


def test_notices_and_the_end_of_an_answer_are_shown(view: ConversationView) -> None:
    conversation = Conversation()
    turn = conversation.ask("question", Mode.BASELINE)
    show(view, conversation)
    (shown,) = view.views
    assert shown.waiting.isVisible() and not shown.answer.isVisible() and not shown.note.isVisible()
    turn.notices.append("The oldest turn was dropped.")
    conversation.add_text("text")
    show(view, conversation)
    assert [notice.text() for notice in shown._notices] == ["The oldest turn was dropped."]
    assert not shown.waiting.isVisible() and shown.answer.isVisible()
    conversation.break_off("The engine stopped here.")
    show(view, conversation)
    assert shown.note.isVisible() and shown.note.text() == "The engine stopped here."
    assert len(shown._notices) == 1
