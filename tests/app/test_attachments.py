"""Text files that go along with a question."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.attachments import LARGEST, Attachment, NotAttached, read_text_file, with_files
from app.composer import Composer
from app.state import ChatState, Phase
from engine.events import Counted


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("안녕\r\n둘".encode(), "안녕\n둘"),
        ("\ufeffmarked".encode(), "marked"),
        ("marked 안녕".encode("utf-16"), "marked 안녕"),
        ("옛 파일".encode("cp949"), "옛 파일"),
        (b"", ""),
    ],
)
def test_text_is_read_whatever_wrote_it(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    assert read_text_file(tmp_path / "a.txt").text == text


def test_what_is_no_text_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (tmp_path / "large.txt").write_bytes(b"x" * (LARGEST + 1))
    for name, word in (("picture.png", "not a text file"), ("large.txt", "at most"), ("gone.txt", "not a file")):
        with pytest.raises(NotAttached, match=word) as refused:
            read_text_file(tmp_path / name)
        assert name in str(refused.value)


def test_no_line_of_a_file_closes_its_fence() -> None:
    prompt = with_files("What is this?", [Attachment("a.md", "```\ncode\n````"), Attachment("b.txt", "b\n")])
    assert prompt == "a.md:\n`````\n```\ncode\n````\n`````\n\nb.txt:\n```\nb\n```\n\nWhat is this?"
    assert with_files("alone", []) == "alone"


@pytest.fixture
def composer(qtbot: QtBot) -> Composer:
    composer = Composer()
    qtbot.addWidget(composer)
    composer.resize(700, 200)
    composer.show()
    composer.show_state(ChatState(engine=Phase.READY, context_used=20, context_size=1020))
    return composer


def dropped(composer: Composer, *paths: Path) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    copy, left, none = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(composer.rect().center(), copy, mime, left, none)
    QApplication.sendEvent(composer, enter)
    assert enter.isAccepted()
    QApplication.sendEvent(composer, QDropEvent(QPointF(composer.rect().center()), copy, mime, left, none))


def test_files_are_dropped_counted_and_sent(qtbot: QtBot, composer: Composer, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("some notes")
    (tmp_path / "picture.png").write_bytes(b"\0\1\2")
    asked: list[tuple[str, str]] = []
    composer.count.connect(lambda text, tag: asked.append((text, tag)))
    dropped(composer, tmp_path / "notes.txt", tmp_path / "picture.png")
    assert [text for text, _ in asked] == ["some notes"]
    assert composer.refused.isVisible() and "picture.png" in composer.refused.text()
    chip = composer.files.chips[0]
    assert chip.length.text() == "10 B"
    composer.show_count(Counted(1234, asked[0][1]))
    assert chip.length.text() == "1,234 tokens, more than the context has left"
    composer.show_count(Counted(321, asked[0][1]))
    assert chip.length.text() == "321 tokens" and chip.accessibleName() == "notes.txt, 321 tokens"
    assert composer.send_button.isEnabled()  # a file alone is a question, too
    composer.input.setPlainText("Sum it up.")
    with qtbot.waitSignal(
        composer.send, check_params_cb=lambda text: text == "notes.txt:\n```\nsome notes\n```\n\nSum it up."
    ):
        qtbot.keyClick(composer.input, Qt.Key.Key_Return)
    assert composer.files.files == [] and not composer.files.isVisible() and not composer.refused.isVisible()


def test_a_file_can_be_taken_out_again(composer: Composer, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("some notes")
    dropped(composer, tmp_path / "notes.txt")
    button = composer.files.chips[0].remove
    assert button.accessibleName() == "Take notes.txt out"
    button.click()
    assert composer.files.files == [] and not composer.send_button.isEnabled()
