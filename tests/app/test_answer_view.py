"""Answers and questions on the screen: what is rendered, what is rendered again, and what is copied."""

from __future__ import annotations

import random
import re
from math import inf
from typing import ClassVar

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication, QKeySequence, QMouseEvent, QTextCursor
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.answer_view import AnswerView
from app.code_view import CodeView
from app.conversation import Conversation, Turn
from app.prose_view import ProseView
from app.question_view import QuestionView
from app.table_view import TableView
from app.thoughts import Parted, part
from app.turn_view import TurnView
from engine.events import Mode
from tests.app.test_markdown import SAMPLE

ODD = "안녕 👩‍👩‍👧 **not bold** <b>no html</b>\n\n    indented\ttab\nno\u00a0break &amp; `code`  "


def shown(view: AnswerView) -> list[str]:
    """What stands on the screen, part by part."""
    texts = []
    for widget in widgets(view):
        if isinstance(widget, CodeView):
            texts.append("CODE " + widget.view.toPlainText())
        elif isinstance(widget, TableView):
            texts.append("TABLE " + " ".join(widget.toPlainText().split()))
        else:
            assert isinstance(widget, ProseView)
            texts.append(widget.toPlainText())
    return texts


def widgets(view: AnswerView) -> list[QWidget]:
    return [part.widget for part in view.built if part.widget is not None]


def units(text: str) -> int:
    """The length of a text as Qt counts it."""
    return len(text.encode("utf-16-le")) // 2


def prose_of(view: AnswerView) -> ProseView:
    """The only part."""
    (widget,) = widgets(view)
    assert isinstance(widget, ProseView)
    return widget


@pytest.fixture
def view(qtbot: QtBot) -> AnswerView:
    view = AnswerView()
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.show()
    return view


def test_streaming_gives_the_same_screen_as_the_whole_text(qtbot: QtBot, view: AnswerView) -> None:
    for seed in range(5):
        streams_as_the_whole(qtbot, view, seed)


def streams_as_the_whole(qtbot: QtBot, view: AnswerView, seed: int) -> None:
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
    prose = widgets(view)[0]
    assert isinstance(prose, ProseView)
    cursor = QTextCursor(prose.document())
    cursor.setPosition(prose.toPlainText().index("bold") + 1)
    assert cursor.charFormat().fontWeight() == 600


def test_only_the_unfinished_end_is_rendered_again(view: AnswerView) -> None:
    view.set_text("".join(f"paragraph {number}\n\n" for number in range(50)) + "the end")
    prose = prose_of(view)
    changes: list[int] = []
    prose.document().contentsChange.connect(lambda position, _removed, _added: changes.append(position))
    begin = prose.toPlainText().index("the end") - 1
    text = view.text
    for word in ("is", " near", "\n\nand", " now", "\n\n```\ncode", "\nmore\n```\n", "last"):
        text += word
        view.set_text(text)
    assert changes and min(changes) >= begin
    assert widgets(view)[0] is prose
    assert shown(view)[1:] == ["CODE code\nmore", "last"]


def test_code_that_grows_is_appended_to(view: AnswerView) -> None:
    view.set_text("```\nfirst line\n")
    (part,) = widgets(view)
    assert isinstance(part, CodeView)
    document = part.view.document()
    removed: list[int] = []
    document.contentsChange.connect(lambda _position, gone, _added: removed.append(gone))
    view.set_text("```\nfirst line\nsecond line\nthird")
    assert document.toPlainText() == "first line\nsecond line\nthird"
    view.set_text("```\nfirst line\nsecond line\nthird\n``")
    view.set_text("```\nfirst line\nsecond line\nthird\n```")
    assert document.toPlainText() == "first line\nsecond line\nthird"
    assert removed and max(removed) <= 4  # the closing fence, as long as it was none
    assert widgets(view) == [part]


def test_a_text_that_is_not_a_continuation_replaces_the_old_one(view: AnswerView) -> None:
    view.set_text("one\n\ntwo")
    view.set_text("other")
    assert shown(view) == ["other"] and view.text == "other"


def test_a_selection_survives_what_streams_in_behind_it(view: AnswerView) -> None:
    view.set_text("first paragraph\n\nsecond")
    prose = prose_of(view)
    cursor = prose.textCursor()
    cursor.setPosition(0)
    cursor.setPosition(5, QTextCursor.MoveMode.KeepAnchor)
    prose.setTextCursor(cursor)
    view.set_text("first paragraph\n\nsecond goes on\n\nthird")
    assert prose.textCursor().selectedText() == "first"


def test_nothing_is_selected_by_streaming(view: AnswerView) -> None:
    for end in range(1, len(SAMPLE)):
        view.set_text(SAMPLE[:end])
    assert not any(part.textCursor().hasSelection() for part in widgets(view) if isinstance(part, ProseView))


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
    code.copy.click()
    assert QGuiApplication.clipboard().text() == 'def f():\n\n    return "**not bold**"'


COPIES = [
    ("a\u00a0b 👩‍👩‍👧\nsecond line\n\nnext", "", "a\u00a0b 👩‍👩‍👧\nsecond line\n\nnext"),
    ("# Title **bold**\n\n- one\n- `two`\n\n> $x^2$\n", "", "# Title **bold**\n\n- one\n- `two`\n\n> $x^2$"),
    ("# Title\n\nsome **bold** text", "bold", "**bold**"),
    ("# Title\n\nsome **bold** text", "ld te", "**ld** te"),
    ("- one\n- two **three**\n", "one\n•\ttwo th", "one\n- two **th**"),
    ("👩‍👩‍👧 *é* [link](https://x.org) end", "link", "[link](https://x.org)"),
    ("costs \\$5 and \\*", "$5 and", "\\$5 and"),
]


def test_copying_a_selection_gives_the_markdown_it_was_made_of(view: AnswerView) -> None:
    for text, chosen, copied in COPIES:
        copies(view, text, chosen, copied)


def copies(view: AnswerView, text: str, chosen: str, copied: str) -> None:
    view.set_text(text)
    prose = prose_of(view)
    if chosen:
        shown_text = prose.toPlainText()
        begin = units(shown_text[: shown_text.index(chosen)])
        cursor = prose.textCursor()
        cursor.setPosition(begin)
        cursor.setPosition(begin + units(chosen), QTextCursor.MoveMode.KeepAnchor)
        prose.setTextCursor(cursor)
    else:
        prose.selectAll()
    prose.copy()
    assert QGuiApplication.clipboard().text() == copied


def test_a_selection_goes_on_from_prose_over_code_to_prose(view: AnswerView, qtbot: QtBot) -> None:
    text = "first **words** here\n\n```py\ncode = 1\n```\n\nlast words"
    view.set_text(text)
    view.fit(600)
    first, code, last = widgets(view)
    assert isinstance(first, ProseView) and isinstance(code, CodeView) and isinstance(last, ProseView)

    def place(prose: ProseView, position: int) -> QPoint:
        cursor = prose.textCursor()
        cursor.setPosition(position)
        return prose.mapToGlobal(prose.cursorRect(cursor).center())

    def drag(begin: QPoint, end: QPoint) -> None:
        origin = first if first.rect().contains(first.mapFromGlobal(begin)) else last
        port = origin.viewport()
        qtbot.mousePress(port, Qt.MouseButton.LeftButton, pos=port.mapFromGlobal(begin))
        here = QPointF(port.mapFromGlobal(end))
        left = Qt.MouseButton.LeftButton
        QApplication.sendEvent(
            port,
            QMouseEvent(QEvent.Type.MouseMove, here, QPointF(end), left, left, Qt.KeyboardModifier.NoModifier),
        )
        qtbot.mouseRelease(port, left, pos=port.mapFromGlobal(end))
        origin.copy()

    drag(place(first, 8), place(last, 4))
    assert QGuiApplication.clipboard().text() == "**rds** here\n\n```py\ncode = 1\n```\n\nlast"
    drag(place(last, 7), place(first, 6))
    assert QGuiApplication.clipboard().text() == "**words** here\n\n```py\ncode = 1\n```\n\nlast wo"
    qtbot.mousePress(last.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(1, 1))
    assert not first.textCursor().hasSelection() and not code.view.textCursor().hasSelection()
    qtbot.keySequence(last, QKeySequence.StandardKey.SelectAll)
    last.copy()
    assert QGuiApplication.clipboard().text() == text


def test_tables_are_real_and_are_copied_as_markdown(view: AnswerView) -> None:
    text = "| a | **b** |\n|:--|--:|\n| 1 | 2 |\n"
    view.set_text(text)
    (table,) = widgets(view)
    assert isinstance(table, TableView) and table._table is not None
    assert (table._table.rows(), table._table.columns()) == (2, 2)
    format_of_2 = table._table.cellAt(1, 1).firstCursorPosition().blockFormat()
    assert format_of_2.alignment() == Qt.AlignmentFlag.AlignRight
    first = table._table
    view.set_text(text + "| three | 4 |\n")
    assert table._table is first and first.rows() == 3
    assert shown(view) == ["TABLE a b 1 2 three 4"]
    table.selectAll()
    table.copy()
    assert QGuiApplication.clipboard().text() == text + "| three | 4 |"


def test_a_wide_table_scrolls_sideways_and_a_narrow_one_does_not(view: AnswerView) -> None:
    for words, scrolls in (("word", False), ("an_unbreakable_and_very_long_word", True)):
        row = "|" + f" {words} |" * 8
        view.set_text(f"{row}\n{'|---' * 8}|\n{row}")
        view.fit(600)
        (table,) = widgets(view)
        assert isinstance(table, TableView)
        assert (table.horizontalScrollBar().maximum() > 0) is scrolls


def test_only_the_web_and_mail_are_opened_and_only_on_a_click(view: AnswerView, qtbot: QtBot) -> None:
    class Browser(QObject):
        opened: ClassVar[list[str]] = []

        @Slot(QUrl)
        def open(self, address: QUrl) -> None:
            self.opened.append(address.toString())

    browser = Browser()
    for scheme in ("https", "file"):
        QDesktopServices.setUrlHandler(scheme, browser, "open")  # type: ignore[arg-type]  # bytes, say the stubs; str, says Qt
    try:
        view.set_text("[here](https://example.org/a) [there](file:///etc/passwd)")
        prose = prose_of(view)
        assert "[there](file:///etc/passwd)" in prose.toPlainText() and browser.opened == []
        cursor = prose.textCursor()
        for position in (2, prose.toPlainText().index("there") + 2):
            cursor.setPosition(position)
            point = prose.cursorRect(cursor).center()
            qtbot.mouseClick(prose.viewport(), Qt.MouseButton.LeftButton, pos=point)
        assert browser.opened == ["https://example.org/a"]
        cursor.setPosition(1)
        prose.setTextCursor(cursor)
        qtbot.keyClick(prose, Qt.Key.Key_Return)
        assert browser.opened == ["https://example.org/a"] * 2
    finally:
        for scheme in ("https", "file"):
            QDesktopServices.unsetUrlHandler(scheme)


def test_long_code_is_copied_whole(view: AnswerView) -> None:
    code = "\n".join(f"line {number}" for number in range(600))
    view.set_text(f"```\n{code}\n```\nafter")
    while view.reading:
        QApplication.processEvents()
    first = widgets(view)[0]
    assert isinstance(first, CodeView) and len(view.parts) == 4
    first.copy.click()
    assert QGuiApplication.clipboard().text() == code


def test_only_what_is_near_is_built(view: AnswerView) -> None:
    view.show_range(0, 0, 0.0)
    view.set_text("\n\n".join(f"paragraph {number} " + "word " * 60 for number in range(500)))
    while view.reading:
        QApplication.processEvents()
    height = view.fit(600)
    assert len(view.parts) > 30
    while view.show_range(5000, 5600, inf):
        view.fit(600)
    assert 0 < len(view.built) < 8
    tops = [(part.top, part.top + part.height) for part in view.built]
    assert tops[0][0] <= 5000 and tops[-1][1] >= 5600
    assert abs(view.fit(600) - height) < 0.3 * height


def test_thoughts_are_folded_and_say_how_long_they_took(qtbot: QtBot) -> None:
    conversation = Conversation()
    turn = conversation.ask("q", Mode.BASELINE)
    conversation.add_text("<think>\nhm")
    view = TurnView(turn)
    qtbot.addWidget(view)
    view.show()
    assert view.thinking is not None and view.thinking.head.text() == "Thinking…" and not view.answer.isVisible()
    for piece in (" yes\n</thi", "nk>", "\n\nThe answer."):
        conversation.add_text(piece)
    view.refresh(is_last=True, idle=False)
    assert re.fullmatch(r"Thought for \d+ s", view.thinking.head.text())
    assert view.answer.text == "The answer." and not view.thinking.body.isVisible()
    view.thinking.head.click()
    assert view.thinking.body.isVisible() and view.thinking.body.text == "hm yes"
    conversation.break_off("")
    view.refresh(is_last=True, idle=True)
    view.copy.click()
    assert QGuiApplication.clipboard().text() == "The answer."


PARTED = [
    ("plain", Parted(None, "plain")),
    ("<thi", Parted("", "", thinking=True)),
    ("<think>a", Parted("a", "", thinking=True)),
    ("\n<think>\na\n</think>\n\nb", Parted("a", "b")),
    ("opened by the template\n</think>\n\nb", Parted("opened by the template", "b")),
    ("Write `</think>` there", Parted(None, "Write `</think>` there")),
    ("<b>", Parted(None, "<b>")),
]


def test_thoughts_are_told_from_the_answer() -> None:
    assert [(text, part(text)) for text, _ in PARTED] == PARTED
