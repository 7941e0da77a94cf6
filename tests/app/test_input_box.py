"""Typing: Enter, Shift+Enter, input methods, and text that arrives as it was."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.input_box import InputBox


@pytest.fixture
def box(qtbot: QtBot) -> InputBox:
    box = InputBox()
    qtbot.addWidget(box)
    box.resize(400, 60)
    box.show()
    return box


def test_enter_sends_and_shift_enter_breaks_the_line(qtbot: QtBot, box: InputBox) -> None:
    qtbot.keyClicks(box, "one")
    with qtbot.assertNotEmitted(box.submitted):
        qtbot.keyClick(box, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(box, "two")
    assert box.text() == "one\ntwo"
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
        with qtbot.waitSignal(box.submitted):
            qtbot.keyClick(box, key)
    assert box.text() == "one\ntwo"  # whoever takes it clears it


def test_enter_while_a_syllable_is_being_composed_does_not_send(qtbot: QtBot, box: InputBox) -> None:
    qtbot.keyClicks(box, "a")
    QApplication.sendEvent(box, QInputMethodEvent("녀", []))
    with qtbot.assertNotEmitted(box.submitted):
        qtbot.keyClick(box, Qt.Key.Key_Return)
    commit = QInputMethodEvent()
    commit.setCommitString("녕")
    QApplication.sendEvent(box, commit)
    assert box.text() == "a녕"
    with qtbot.waitSignal(box.submitted):
        qtbot.keyClick(box, Qt.Key.Key_Return)
    assert box.text() == "a녕"


def test_an_enter_that_comes_with_the_commit_does_not_send(qtbot: QtBot, box: InputBox) -> None:
    """Hangul engines under IBus commit the syllable and let the key through behind it."""
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
        QApplication.sendEvent(box, QInputMethodEvent("녀", []))
        commit = QInputMethodEvent()
        commit.setCommitString("녕")
        QApplication.sendEvent(box, commit)
        with qtbot.assertNotEmitted(box.submitted):
            qtbot.keyPress(box, key)
        qtbot.keyRelease(box, key)
        with qtbot.waitSignal(box.submitted):
            qtbot.keyClick(box, key)
    assert box.text() == "녕녕"


def test_an_enter_behind_a_syllable_that_another_key_committed_sends(qtbot: QtBot, box: InputBox) -> None:
    QApplication.sendEvent(box, QInputMethodEvent("녀", []))
    commit = QInputMethodEvent()
    commit.setCommitString("녕")
    QApplication.sendEvent(box, commit)
    qtbot.keyClick(box, Qt.Key.Key_Space)
    with qtbot.waitSignal(box.submitted):
        qtbot.keyClick(box, Qt.Key.Key_Return)
    assert box.text() == "녕 "


def test_a_composition_that_was_given_up_does_not_block_enter(qtbot: QtBot, box: InputBox) -> None:
    QApplication.sendEvent(box, QInputMethodEvent("ㅎ", []))
    QApplication.sendEvent(box, QInputMethodEvent())
    with qtbot.waitSignal(box.submitted):
        qtbot.keyClick(box, Qt.Key.Key_Return)


def test_pasted_text_stays_as_it_is_and_loses_only_its_looks(box: InputBox) -> None:
    text = "no\u00a0break 👩‍👩‍👧\n\tcode\n\nlast "
    mime = QMimeData()
    mime.setText(text)
    mime.setHtml("<b>other</b>")
    box.insertFromMimeData(mime)
    assert box.text() == text


def test_it_grows_with_its_lines_up_to_a_limit(box: InputBox) -> None:
    heights = []
    for lines in (1, 2, 5, 9, 30):
        box.setPlainText("\n".join("x" * lines))
        heights.append(box.height())
    assert heights[0] < heights[1] < heights[2] < heights[3] == heights[4]


def test_it_follows_its_width(box: InputBox) -> None:
    box.setPlainText("word " * 40)
    heights = []
    for width in (400, 200, 800):
        box.resize(width, box.height())
        lines = box.document().size().height()
        heights.append(box.height())
        assert box.height() >= min(lines, 9) * box.fontMetrics().lineSpacing()
    assert heights[1] > heights[0] > heights[2]


def test_files_that_are_pasted_are_named_and_not_written_out(qtbot: QtBot, box: InputBox) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile("/tmp/notes.txt"), QUrl("https://example.org/other.txt")])
    assert box.canInsertFromMimeData(mime)
    with qtbot.waitSignal(box.files_given, check_params_cb=lambda paths: paths == ["/tmp/notes.txt"]):
        box.insertFromMimeData(mime)
    assert box.text() == ""
