"""The column of turns: what is kept, and when it follows the newest text."""

from __future__ import annotations

import psutil
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.code_view import CodeView
from app.conversation import Conversation, Turn
from app.conversation_view import ConversationView
from app.input_box import InputBox
from app.prose_view import ProseView
from app.text_view import TextView
from engine.events import Mode
from tests.app.conftest import WAIT_MS

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
    settle(view)  # what is built there is not quite as high as was thought
    place = view.verticalScrollBar().value()
    assert abs(place - 120) < 40
    for _ in range(5):
        conversation.add_text(LINE * 10)
        show(view, conversation)
        assert view.verticalScrollBar().value() == place
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


def finished(*questions: str) -> Conversation:
    conversation = Conversation()
    for question in questions:
        conversation.ask(question, Mode.BASELINE)
        conversation.add_text("answer")
        conversation.break_off("ended")
    return conversation


def test_turns_that_did_not_change_keep_their_widgets(view: ConversationView) -> None:
    conversation = finished("one", "two", "three", "four")
    show(view, conversation, idle=True)
    before = list(view.views)
    assert len(before) == 4 and all(turn.again.isVisible() for turn in before)
    conversation.ask_again(conversation.turns[3], Mode.BASELINE)
    show(view, conversation)
    assert view.views[:3] == before[:3] and view.views[3] is not before[3]
    assert not any(turn.again.isVisible() for turn in view.views)
    show(view, Conversation())
    assert view.views == []


def test_what_can_be_done_with_a_turn(view: ConversationView, qtbot: QtBot) -> None:
    conversation = finished("one", "two")
    turn = conversation.turns[0]
    show(view, conversation, idle=True)
    (first, second) = view.views
    said: list[tuple[object, ...]] = []
    view.ask_again.connect(lambda turn: said.append(("again", turn)))
    view.edited.connect(lambda turn, text: said.append(("edited", turn, text)))
    view.go_on.connect(lambda turn: said.append(("on", turn)))
    view.leaf.connect(lambda turn, step: said.append(("leaf", turn, step)))
    first.again.click()
    first.bar.further.click()
    first.question.edit.click()
    box = first.findChildren(InputBox)[0]
    box.setPlainText("forget this")
    qtbot.keyClick(box, Qt.Key.Key_Escape)
    assert not first.question.editing and first.question.edit.isEnabled()
    first.question.edit.click()
    assert not first.question.edit.isVisible()
    box = next(box for box in first.findChildren(InputBox) if box.isVisible())
    assert box.text() == "one"
    qtbot.keyClicks(box, " more")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert said == [("again", turn), ("on", turn), ("edited", turn, "one more")]
    assert not second.bar.earlier.isVisible()

    conversation.ask_again(conversation.turns[1], Mode.BASELINE)
    conversation.add_text("another")
    conversation.break_off("")
    show(view, conversation, idle=True)
    bar = view.views[1].bar
    assert bar.place.text() == "2/2" and bar.earlier.isEnabled() and not bar.later.isEnabled()
    bar.earlier.click()
    assert said[-1] == ("leaf", conversation.turns[1], -1)
    conversation.leaf(conversation.turns[1], -1)
    show(view, conversation, idle=True)
    assert view.views[1].turn.answer == "answer" and view.views[1].bar.place.text() == "1/2"


def test_a_complete_answer_is_not_to_be_continued(view: ConversationView) -> None:
    conversation = finished("one", "two")
    conversation.turns[0].complete = True
    show(view, conversation, idle=True)
    assert [one.bar.further.isVisible() for one in view.views] == [False, True]


def test_thousands_of_turns_need_few_widgets_and_nothing_jumps(view: ConversationView) -> None:
    conversation = Conversation()
    parent = conversation.root
    for number in range(5000):
        words = f"question {number} " + "with words " * (number % 40)
        parent.children.append(Turn(words, Mode.BASELINE, "answer", ended=True, parent=parent))
        parent = parent.children[0]
    show(view, conversation, idle=True)
    assert 0 < len(view.views) < 12 and view.views[-1].turn is conversation.turns[-1] and at_bottom(view)
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    settle(view)
    for _ in range(40):
        top = next(one for one in view.views if one.visibleRegion().boundingRect().height() > 0)
        before = top.mapTo(view, QPoint(0, 0)).y()
        bar.setValue(bar.value() - 37)
        settle(view)
        assert top.mapTo(view, QPoint(0, 0)).y() == before + 37
        assert len(view.views) < 20
    view.go_to(conversation.turns[700])
    settle(view)
    (found,) = [one for one in view.views if one.turn is conversation.turns[700]]
    assert 0 <= found.mapTo(view, QPoint(0, 0)).y() < 40 and not view.following


def test_a_message_of_a_megabyte_opens_with_few_widgets(view: ConversationView) -> None:
    conversation = Conversation()
    conversation.ask("word " * 200_000, Mode.BASELINE)
    conversation.add_text(("- item\n" * 5 + "\n" + "some text " * 180 + "\n\n") * 540)
    conversation.break_off("ended")
    view.show_conversation(conversation, idle=True)
    assert view.views[0].answer.reading  # in slices
    while view.views[0].answer.reading:
        QApplication.processEvents()
    settle(view)
    assert at_bottom(view) and len(view.findChildren(TextView)) < 12
    assert view.verticalScrollBar().maximum() > 300_000


def test_tab_goes_from_top_to_bottom(view: ConversationView, qtbot: QtBot) -> None:
    view.resize(600, 900)
    show(view, finished("one", "two"), idle=True)
    view.activateWindow()
    first, second = view.views
    first.question.view.setFocus()
    order = []
    for _ in range(8):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        order.append(QApplication.focusWidget())
    assert order.index(first.copy) < order.index(first.again) < order.index(second.question.view)
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Backtab)
    assert QApplication.focusWidget() is order[-2]


def test_another_theme_colours_what_is_there(view: ConversationView, application: QApplication) -> None:
    conversation = finished("one")
    conversation.turns[0].answer = "[link](https://x.org)"
    show(view, conversation)
    prose = view.views[0].findChildren(ProseView)[0]
    colors = []
    for dark in (True, False):
        theme.apply(application, dark)
        settle(view)
        cursor = prose.textCursor()
        cursor.setPosition(2)
        colors.append(cursor.charFormat().foreground().color().name().upper())
    assert colors == [theme.DARK.accent, theme.LIGHT.accent]


def test_another_size_and_another_language_reach_what_is_there(
    view: ConversationView, application: QApplication
) -> None:
    conversation = finished("one")
    show(view, conversation, idle=True)
    before = view.views[0].findChildren(ProseView)[0].font().pixelSize()
    try:
        theme.choose(application, theme.Look(scheme="light", text_size=21))
        settle(view)
        assert view.views[0].findChildren(ProseView)[0].font().pixelSize() > before
    finally:
        theme.choose(application, theme.Look())
    settle(view)
    assert view.views[0].findChildren(ProseView)[0].font().pixelSize() == before
    first = view.views[0]
    QApplication.sendEvent(view, QEvent(QEvent.Type.LanguageChange))
    settle(view)
    assert view.views[0] is not first and view.views[0].turn is first.turn


def test_formulas_and_code_are_typeset_and_the_process_goes_with_the_view(view: ConversationView, qtbot: QtBot) -> None:
    conversation = finished("one")
    conversation.turns[0].answer = "so $x^2$ and $\\nonsense$\n\n```python\ndef f(): pass\n```\n"
    children = set(psutil.Process().children())
    show(view, conversation)
    (prose,) = view.views[0].findChildren(ProseView)
    (code,) = view.views[0].findChildren(CodeView)
    assert prose.toPlainText() == "so $x^2$ and $\\nonsense$"
    (process,) = set(psutil.Process().children()) - children
    qtbot.waitUntil(lambda: not view._typesetter.busy and bool(code._lines), timeout=WAIT_MS)
    assert prose.toPlainText() == "so \ufffc and $\\nonsense$"
    colored = code.view.document().begin().layout().formats()
    assert [(one.start, one.length) for one in colored] == [(0, 3), (4, 1), (9, 4)]
    prose.selectAll()
    assert prose.chosen_text() == "so $x^2$ and $\\nonsense$"
    view.hide()
    assert not process.is_running()


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
