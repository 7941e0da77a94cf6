"""The token view: what is shown, in which colour, and what pointing at a token tells."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QHelpEvent, QTextCursor
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from app import theme
from app.conversation import NOT_KNOWN, Conversation, TokenMark
from app.conversation_view import ConversationView
from app.token_view import CHUNK, POSITIONS, OriginsText, OriginsView, color_of, tip_of
from engine.events import Mode

PIECES = ["**안", "녕**", " 👩", "👧", "\n", "end"]
ORIGINS = [0, 1, 2, 15, 16, NOT_KNOWN]
MARKS = [
    TokenMark(origin, len(piece.encode()), ((piece, 0.75), (" <b>", 0.2))) for piece, origin in zip(PIECES, ORIGINS)
]


@pytest.fixture
def view(qtbot: QtBot) -> OriginsView:
    view = OriginsView()
    qtbot.addWidget(view)
    view.resize(600, 300)
    view.show()
    return view


def texts(view: OriginsView) -> list[OriginsText]:
    return [part.widget for part in view.built if isinstance(part.widget, OriginsText)]


def origin_at(text: OriginsText, place: int) -> int:
    piece = text.piece_at(place)
    assert piece is not None
    return piece[1].origin


def grounds(text: OriginsText) -> list[tuple[str, QColor | None]]:
    """What is shown, in runs of one ground."""
    runs: list[tuple[str, QColor | None]] = []
    cursor = QTextCursor(text.document())
    while not cursor.atEnd():
        cursor.movePosition(QTextCursor.MoveOperation.NextCharacter, QTextCursor.MoveMode.KeepAnchor)
        brush = cursor.charFormat().background()
        ground = brush.color() if brush.style().value else None
        letter = cursor.selectedText()
        cursor.clearSelection()
        if runs and runs[-1][1] == ground:
            runs[-1] = (runs[-1][0] + letter, ground)
        else:
            runs.append((letter, ground))
    return runs


def test_the_text_stands_as_the_model_wrote_it_on_the_colours_of_its_tokens(view: OriginsView) -> None:
    view.set_tokens("".join(PIECES), MARKS)
    (text,) = texts(view)
    assert text.toPlainText() == "".join(PIECES)
    runs = grounds(text)
    assert runs[:3] == [("**안", None), ("녕**", color_of(1)), (" 👩", color_of(2))]
    assert runs[-1] == ("\u2029end", None)


def test_streaming_appends_and_a_character_may_take_several_tokens(view: OriginsView) -> None:
    data = "가나👩".encode()
    marks = [TokenMark(number % 3, 1) for number in range(len(data))]
    shown = ""
    for end in range(1, len(data) + 1):
        shown = data[:end].decode(errors="ignore")
        view.set_tokens(shown, marks[:end])
    (text,) = texts(view)
    assert text.toPlainText() == shown == "가나👩"
    assert [origin_at(text, place) for place in (0, 1, 2)] == [2, 2, 0]
    view.set_tokens("another", [TokenMark(1, 7)])
    assert [one.toPlainText() for one in texts(view)] == ["another"]


def test_a_long_answer_comes_in_parts_that_are_the_whole(view: OriginsView) -> None:
    pieces = [f"word{number}" + ("\n" if number % 9 == 0 else " ") for number in range(2000)]
    marks = [TokenMark(1, len(piece)) for piece in pieces]
    for count in (700, 2000):
        view.set_tokens("".join(pieces[:count]), marks[:count])
    assert len(view.parts) > 4
    assert max(len(one.toPlainText()) for one in texts(view)) < 2 * CHUNK
    assert "\n".join(one.toPlainText() for one in texts(view)) == "".join(pieces)


def test_pointing_at_a_token_shows_its_candidates(view: OriginsView, qtbot: QtBot) -> None:
    view.set_tokens("".join(PIECES), MARKS)
    view.fit(600)
    (text,) = texts(view)
    cursor = text.textCursor()
    cursor.setPosition(4)
    point = text.cursorRect(cursor).center()
    point.setX(point.x() + 4)
    QApplication.sendEvent(text.viewport(), QHelpEvent(QEvent.Type.ToolTip, point, text.mapToGlobal(point)))
    assert "75.0%" in QToolTip.text() and "position 1" in QToolTip.text() and "␣&lt;b&gt;" in QToolTip.text()
    cursor.setPosition(0)
    text.setTextCursor(cursor)
    qtbot.keyClick(text, Qt.Key.Key_Return)
    assert "target itself" in QToolTip.text()
    QToolTip.hideText()
    assert "target itself" in tip_of((PIECES[0], MARKS[0])) and "not kept" in tip_of((PIECES[5], MARKS[5]))


def luminance(color: QColor) -> float:
    channels = (color.redF(), color.greenF(), color.blueF())
    linear = [(one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4) for one in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_colour_leaves_the_text_readable_and_they_are_in_order(application: QApplication) -> None:
    for dark in (True, False):
        theme.apply(application, dark)
        colors = [color for position in range(1, POSITIONS + 1) if (color := color_of(position)) is not None]
        lights = [luminance(color) for color in colors]
        assert len(lights) == POSITIONS and lights == sorted(lights, reverse=not dark)
        text = luminance(theme.theme().color("text"))
        for light in lights:
            assert (max(text, light) + 0.05) / (min(text, light) + 0.05) >= 4.5


def test_the_conversation_switches_to_it_and_back_also_while_streaming(qtbot: QtBot) -> None:
    conversation = Conversation()
    conversation.ask("question", Mode.DFLASH)
    conversation.add_text("**one**", [TokenMark(1, 7)])
    view = ConversationView()
    qtbot.addWidget(view)
    view.resize(700, 500)
    view.show()
    view.show_conversation(conversation, idle=False)
    (turn,) = view.views
    assert turn.answer.isVisible() and not view.legend.isVisible()
    view.show_origins(True)
    assert view.legend.isVisible() and not turn.answer.isVisible()
    conversation.add_text(" two", [TokenMark(0, 4)])
    view.show_conversation(conversation, idle=False)
    assert turn.origins is not None and [one.toPlainText() for one in texts(turn.origins)] == ["**one** two"]
    view.show_origins(False)
    assert turn.answer.isVisible() and turn.answer.text == "**one** two" and not view.legend.isVisible()
