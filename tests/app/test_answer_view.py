"""Answers and questions on the screen: what is rendered, what is rendered again, and what is copied."""

from __future__ import annotations

import random

import pytest
from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.answer_view import AnswerView, CodeView
from app.conversation import Turn
from app.conversation_view import QuestionView, TurnView
from app.text_view import ProseView, VerbatimView
from engine.events import Mode
from tests.app.test_markdown import SAMPLE

ODD = "안녕 👩‍👩‍👧 **not bold** <b>no html</b>\n\n    indented\ttab\nno\u00a0break &amp; `code`  "


def shown(view: AnswerView) -> list[str]:
    """What stands on the screen, part by part."""
    return [
        part.toPlainText()
        if isinstance(part, ProseView)
        else "CODE " + part.findChildren(VerbatimView)[0].toPlainText()
        for part in view.parts
    ]


@pytest.fixture
def view(qtbot: QtBot) -> AnswerView:
    view = AnswerView()
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.show()
    return view


@pytest.mark.parametrize("seed", range(12))
def test_streaming_gives_the_same_screen_as_the_whole_text(qtbot: QtBot, view: AnswerView, seed: int) -> None:
    rng = random.Random(seed)
    lines = SAMPLE.split("\n")
    if seed:
        rng.shuffle(lines)
    text = "\n".join(lines)
    position = 0
    while position < len(text):
        position += rng.choice((1, 2, 5, 30, 100))
        view.set_text(text[:position])
    whole = AnswerView()
    qtbot.addWidget(whole)
    whole.set_text(text)
    assert shown(view) == shown(whole)
    assert view.text == whole.text == text


def test_marks_are_shown_as_looks(view: AnswerView) -> None:
    view.set_text("# Title\nsome **bold** and `code`\n- item\n\n```py\nx = 1\n```\nafter")
    assert shown(view) == ["Title\nsome bold and code\n•\titem", "CODE x = 1", "after"]
    prose = view.parts[0]
    assert isinstance(prose, ProseView)
    cursor = QTextCursor(prose.document())
    cursor.setPosition(prose.toPlainText().index("bold") + 1)
    assert cursor.charFormat().fontWeight() == 600


def test_only_the_unfinished_end_is_rendered_again(view: AnswerView) -> None:
    view.set_text("".join(f"paragraph {number}\n\n" for number in range(50)) + "the end")
    (prose,) = view.parts
    assert isinstance(prose, ProseView)
    changes: list[int] = []
    prose.document().contentsChange.connect(lambda position, _removed, _added: changes.append(position))
    begin = prose.toPlainText().index("the end") - 1
    text = view.text
    for word in ("is", " near", "\n\nand", " now", "\n\n```\ncode", "\nmore\n```\n", "last"):
        text += word
        view.set_text(text)
    assert changes and min(changes) >= begin
    assert view.parts[0] is prose
    assert shown(view)[1:] == ["CODE code\nmore", "last"]


def test_code_that_grows_is_appended_to(view: AnswerView) -> None:
    view.set_text("```\nfirst line\n")
    (part,) = view.parts
    assert isinstance(part, CodeView)
    document = part.findChildren(VerbatimView)[0].document()
    removed: list[int] = []
    document.contentsChange.connect(lambda _position, gone, _added: removed.append(gone))
    view.set_text("```\nfirst line\nsecond line\nthird")
    assert document.toPlainText() == "first line\nsecond line\nthird"
    assert removed and max(removed) <= 1  # Qt counts the end of the text in
    assert view.parts == (part,)


def test_a_text_that_is_not_a_continuation_replaces_the_old_one(view: AnswerView) -> None:
    view.set_text("one\n\ntwo")
    view.set_text("other")
    assert shown(view) == ["other"] and view.text == "other"


def test_a_selection_survives_what_streams_in_behind_it(view: AnswerView) -> None:
    view.set_text("first paragraph\n\nsecond")
    (prose,) = view.parts
    assert isinstance(prose, ProseView)
    cursor = prose.textCursor()
    cursor.setPosition(0)
    cursor.setPosition(5, QTextCursor.MoveMode.KeepAnchor)
    prose.setTextCursor(cursor)
    view.set_text("first paragraph\n\nsecond goes on\n\nthird")
    assert prose.textCursor().selectedText() == "first"


def test_nothing_is_selected_by_streaming(view: AnswerView) -> None:
    for end in range(1, len(SAMPLE)):
        view.set_text(SAMPLE[:end])
    assert not any(part.textCursor().hasSelection() for part in view.parts if isinstance(part, ProseView))


def test_the_users_words_are_shown_and_copied_as_typed(qtbot: QtBot) -> None:
    question = QuestionView(ODD)
    qtbot.addWidget(question)
    question.view.selectAll()
    question.view.copy()
    assert QGuiApplication.clipboard().text() == ODD
    assert "**not bold** <b>no html</b>" in question.view.toPlainText()


def test_a_bubble_is_as_wide_as_its_words_but_never_as_the_column(qtbot: QtBot) -> None:
    short, long = QuestionView("hi"), QuestionView("word " * 200)
    for question in (short, long):
        qtbot.addWidget(question)
        question.resize(600, 300)
        question.show()
    bubble_of_short, bubble_of_long = short.view.parentWidget(), long.view.parentWidget()
    assert bubble_of_short is not None and bubble_of_long is not None
    assert bubble_of_short.width() < 100 < bubble_of_long.width() < 600
    assert long.view.height() > 5 * short.view.height()


def test_copy_gives_the_original_text_of_the_answer(qtbot: QtBot) -> None:
    turn = Turn("q", Mode.BASELINE, answer=SAMPLE, ended=True)
    view = TurnView(turn)
    qtbot.addWidget(view)
    view.show()
    view.copy.click()
    assert QGuiApplication.clipboard().text() == SAMPLE
    assert view.copy.text() == "Copied"
    code = view.findChildren(CodeView)[0]
    code.findChildren(QPushButton)[0].click()
    assert QGuiApplication.clipboard().text() == 'def f():\n\n    return "**not bold**"'


def test_copying_a_selection_keeps_line_breaks_and_odd_spaces(view: AnswerView) -> None:
    view.set_text("a\u00a0b 👩‍👩‍👧\nsecond line\n\nnext")
    (prose,) = view.parts
    assert isinstance(prose, ProseView)
    prose.selectAll()
    prose.copy()
    assert QGuiApplication.clipboard().text() == "a\u00a0b 👩‍👩‍👧\nsecond line\nnext"
