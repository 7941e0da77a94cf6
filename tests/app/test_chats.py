"""Several conversations in one window, with the scripted engine and a real database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.conversation import Conversation
from app.engine_thread import EngineThread
from app.rows import Header, snapshot
from app.settings import SettingsStore, given_by
from app.sidebar_list import ConversationList, Row, grouped
from app.state import Phase
from app.store import Store
from app.window import ChatWindow
from engine.events import LoadSettings, Mode
from tests.app.conftest import SCRIPTED, WAIT_MS, Screen

ROOT = Path(__file__).parents[2]
OpenAt = Callable[[Path], "Chat"]


class Chat(Screen):
    """A window with a folder, and what its user does with its conversations."""

    @property
    def rows(self) -> ConversationList:
        return self.window.sidebar.list

    @property
    def titles(self) -> list[str]:
        return [row.text for row in self.rows.list_model.rows if row.id]

    @property
    def questions(self) -> list[str]:
        return [turn.question for turn in self.window.state.conversation.turns]

    def row(self, title: str) -> Row:
        return next(row for row in self.rows.list_model.rows if row.id and row.text == title)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait for something that the store has to do with."""
        self.bot.waitUntil(condition, timeout=WAIT_MS)

    def open(self, title: str) -> None:
        index = self.rows.list_model.place(self.row(title).id)
        self.bot.mouseClick(self.rows.viewport(), Qt.MouseButton.LeftButton, pos=self.rows.visualRect(index).center())
        self.wait_for(lambda: self.window.state.conversation.title == title)

    def new(self, *questions: str) -> None:
        self.bot.keyClick(self.window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
        for question in questions:
            self.ask_and_wait(question)


@pytest.fixture
def open_at(qtbot: QtBot) -> Iterator[OpenAt]:
    chats: list[Chat] = []

    def make(folder: Path) -> Chat:
        settings = SettingsStore(given=given_by(LoadSettings()))
        window = ChatWindow(EngineThread(SCRIPTED), settings, folder)
        qtbot.addWidget(window)
        window.show()
        chat = Chat(qtbot, window)
        chats.append(chat)
        chat.until_ready()
        return chat

    yield make
    for chat in chats:
        if isValid(chat.window):
            chat.window.close()


@pytest.fixture
def chat(open_at: OpenAt, tmp_path: Path) -> Chat:
    return open_at(tmp_path)


def test_conversations_are_listed_opened_and_known_to_the_engine(chat: Chat) -> None:
    window = chat.window
    assert chat.titles == [] and window.sidebar.empty.isVisible() and window.panel.isVisible()
    for width, sidebar in ((900, True), (640, False)):  # what there is no room for gives way
        window.resize(width, 700)
        assert window.sidebar.isVisible() is sidebar and not window.panel.isVisible()
    window.sidebar_button.click()
    chat.ask_and_wait("say one")
    chat.new("say two")
    assert chat.titles == ["say two", "say one"] and not window.sidebar.empty.isVisible()
    assert chat.rows.list_model.rows[0].text == "Today"
    chat.open("say one")
    assert chat.answer == "one "
    chat.ask_and_wait("history")
    assert chat.answer == "say one=one ;"  # the engine knows this conversation, and not the other one
    assert chat.titles == ["say one", "say two"]  # the newest first
    chat.bot.keyClick(chat.window, Qt.Key.Key_PageDown, Qt.KeyboardModifier.ControlModifier)
    chat.wait_for(lambda: chat.questions == ["say two"])
    assert chat.rows.currentIndex().data() == "say two"


def test_what_is_on_the_screen_is_there_again_after_a_restart(chat: Chat, open_at: OpenAt, tmp_path: Path) -> None:
    chat.ask_and_wait("say one")
    chat.window.conversation.ask_again.emit(chat.window.state.conversation.turns[0])
    chat.until_ready()
    chat.new("say two")
    chat.open("say one")
    chat.window.resize(770, 701)  # less than the screen of the tests
    chat.window.panel_button.click()
    chat.window.close()
    again = open_at(tmp_path)
    again.wait_for(lambda: again.questions == ["say one"])
    assert len(again.window.state.conversation.turns[0].siblings) == 2 and again.answer == "one "
    assert again.window.width() == 770 and not again.window.panel.isVisible()
    assert again.window.state.context_used > 0
    again.ask_and_wait("history")
    assert again.answer == "say one=one ;"


def test_renaming_in_place_and_pinning(chat: Chat) -> None:
    chat.ask_and_wait("say one")
    chat.bot.keyClick(chat.window, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    editor = chat.rows.findChild(QLineEdit)
    assert editor is not None and editor.text() == "say one"
    editor.setText("  한글\u3000제목 ")
    chat.window.chats.library.listed.emit()  # the list changes meanwhile, and the editor stays
    assert chat.rows.is_renaming
    chat.bot.keyClick(editor, Qt.Key.Key_Return)
    chat.wait_for(lambda: chat.titles == ["한글 제목"])
    assert chat.window.state.conversation.title == "한글 제목"
    chat.ask_and_wait("say two")
    assert chat.titles == ["한글 제목"]
    chat.new("say two")
    pin = chat.window.sidebar.menu_of(chat.row("한글 제목")).actions()[1]
    assert pin.text() == "Pin"
    pin.trigger()
    assert [row.text for row in chat.rows.list_model.rows] == ["Pinned", "한글 제목", "Today", "say two"]
    assert chat.window.sidebar.menu_of(chat.row("한글 제목")).actions()[1].text() == "Unpin"


def test_deleting_and_taking_it_back(chat: Chat, open_at: OpenAt, tmp_path: Path) -> None:
    chat.ask_and_wait("say one")
    chat.new("say two")
    chat.rows.setFocus()
    chat.bot.keyClick(chat.rows, Qt.Key.Key_Backspace)
    assert len(chat.titles) == 2
    chat.bot.keyClick(chat.rows, Qt.Key.Key_Delete)
    assert chat.titles == ["say one"]
    chat.wait_for(lambda: chat.questions == ["say one"])  # the next one is shown
    assert chat.window.sidebar.foot.isVisible() and "say two" in chat.window.sidebar.said.text()
    chat.window.sidebar.undo_button.click()
    chat.wait_for(lambda: chat.questions == ["say two"])
    assert chat.titles == ["say two", "say one"] and not chat.window.sidebar.foot.isVisible()
    chat.window._delete()
    chat.wait_for(lambda: chat.questions == ["say one"])
    chat.bot.keyClick(chat.rows, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    chat.wait_for(lambda: len(chat.titles) == 2)
    chat.window.sidebar.delete(chat.row("say one").id)
    chat.window.close()
    again = open_at(tmp_path)
    again.wait_for(lambda: again.titles == ["say two"])


def test_what_was_typed_stays_with_its_conversation(chat: Chat, open_at: OpenAt, tmp_path: Path) -> None:
    box, files = chat.window.composer.input, chat.window.composer.files
    chat.ask_and_wait("say one")
    (tmp_path / "notes.txt").write_text("some notes")
    box.setPlainText("half a thou")
    chat.window.composer.add_files([str(tmp_path / "notes.txt")])
    chat.new()
    assert box.text() == "" and files.files == []
    box.setPlainText("something new")
    chat.open("say one")
    assert box.text() == "half a thou" and [file.name for file in files.files] == ["notes.txt"]
    files.clear()
    box.setPlainText("half a thought")
    chat.new()
    assert box.text() == "something new" and files.files == []  # of the conversation that has not begun
    box.setPlainText("say two")
    chat.bot.keyClick(box, Qt.Key.Key_Return)
    assert box.text() == ""
    chat.until_ready()
    chat.open("say one")
    assert box.text() == "half a thought"
    chat.open("say two")
    assert box.text() == ""
    box.setPlainText("안녕")
    chat.window.close()
    again = open_at(tmp_path)
    again.wait_for(lambda: again.questions == ["say two"])
    assert again.window.composer.input.text() == "안녕"
    again.open("say one")
    assert again.window.composer.input.text() == "half a thought"


def test_the_last_conversation_and_one_that_waits_are_deleted_and_taken_back(chat: Chat) -> None:
    window = chat.window
    chat.ask("hang")
    chat.until(lambda: chat.answer != "")
    chat.new()
    chat.ask("say two")
    chat.new()
    window.sidebar.delete(chat.row("say two").id)  # not shown, and not begun
    window.sidebar.undo()
    chat.wait_for(lambda: chat.questions == ["say two"])
    turn = window.state.conversation.turns[0]
    assert turn.ended and "cancelled" in turn.note
    chat.wait_for(lambda: len(chat.titles) == 2)
    window._delete()
    chat.wait_for(lambda: chat.questions == ["hang"])
    window._delete()
    assert chat.titles == [] and window.welcome.isVisible() and not window.conversation.isVisible()
    chat.until(lambda: not window.state.jobs)


def test_search_shows_where_it_was_found(chat: Chat) -> None:
    chat.ask_and_wait("say 오늘 날씨가 좋습니다")
    chat.ask_and_wait("say nothing")
    chat.new("say something else")
    chat.bot.keyClick(chat.window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    search = chat.window.sidebar.search
    search.setText("날씨")
    chat.wait_for(lambda: len(chat.titles) == 1 and chat.rows.list_model.rows[0].excerpt != "")
    assert "날씨가 좋습니다" in chat.rows.list_model.rows[0].excerpt
    chat.bot.keyClick(search, Qt.Key.Key_Return)
    chat.bot.keyClick(chat.rows, Qt.Key.Key_Return)
    chat.wait_for(lambda: len(chat.questions) == 2)
    search.setText("not there")
    chat.wait_for(lambda: chat.titles == [])
    assert chat.window.sidebar.empty.text() == "Nothing was found."
    chat.bot.keyClick(search, Qt.Key.Key_Escape)
    assert len(chat.titles) == 2 and search.text() == ""


def test_versions_and_continuing(chat: Chat) -> None:
    view = chat.window.conversation
    chat.ask_and_wait("say one")
    chat.ask("hang")
    chat.until(lambda: chat.answer != "")
    chat.bot.keyClick(chat.window, Qt.Key.Key_Escape)
    chat.until_ready()
    stopped = chat.window.state.conversation.turns[1]
    assert stopped.can_continue and chat.answer == "one two three four "
    view.go_on.emit(stopped)
    chat.until_ready()
    assert chat.answer == "one two three four and more " and stopped.complete
    first = chat.window.state.conversation.turns[0]
    view.edited.emit(first, "history")
    chat.until_ready()
    assert chat.questions == ["history"] and chat.answer == ""  # nothing was said before it
    view.leaf.emit(chat.window.state.conversation.turns[0], -1)
    assert chat.questions == ["say one", "hang"]
    chat.ask_and_wait("history")
    assert chat.answer == "say one=one ;hang=one two three four and more ;"


def test_a_second_chat_waits_for_the_first_and_both_are_answered(chat: Chat) -> None:
    window = chat.window
    chat.ask("hang")
    chat.until(lambda: chat.answer != "")
    window.new_button.click()
    chat.ask("say two")
    turn = window.state.conversation.turns[0]
    assert "hang" in turn.wait and window.composer.stop_button.isVisible()
    assert {row.text: row.activity for row in chat.rows.list_model.rows if row.id} == {
        "hang": "answering",
        "say two": "waiting",
    }
    window.composer.stop_button.click()
    assert "cancelled" in turn.note and window.composer.send_button.isVisible()
    chat.ask("say three")
    chat.open("hang")
    assert window.composer.stop_button.isVisible() and chat.answer.startswith("one two")
    window.composer.stop_button.click()
    chat.until(lambda: not window.state.jobs)
    chat.open("say two")
    assert [turn.answer for turn in window.state.conversation.turns] == ["", "three "]
    assert {row.activity for row in chat.rows.list_model.rows} == {""}
    chat.ask("hang")
    chat.until(lambda: chat.answer != "")
    window._delete()  # the one that is being answered
    chat.until(lambda: not window.state.jobs)
    assert chat.titles == ["hang"]


def test_export_and_import(chat: Chat, tmp_path: Path) -> None:
    chat.ask_and_wait("say one")
    chat.new("say two")
    sidebar, banner = chat.window.sidebar, chat.window.banner
    sidebar.export_wanted.emit(None, tmp_path / "all.json")
    chat.wait_for(sidebar.foot.isVisible)
    assert sidebar.said.text() == "Conversations written to all.json: 2."
    assert not sidebar.undo_button.isVisible()
    sidebar.import_wanted.emit(tmp_path / "all.json")
    chat.wait_for(lambda: len(chat.titles) == 4)
    sidebar.export_wanted.emit([chat.row("say one").id], tmp_path / "one.md")
    sidebar.import_wanted.emit(tmp_path / "one.md")
    chat.wait_for(lambda: len(chat.titles) == 5)
    (tmp_path / "bad.json").write_text("{")
    sidebar.import_wanted.emit(tmp_path / "bad.json")
    chat.wait_for(banner.isVisible)
    assert banner.sentence.text() == "bad.json is damaged or was cut off; export it again."
    banner.close_button.click()
    assert not banner.isVisible()


def test_a_damaged_file_is_said_and_the_window_opens(open_at: OpenAt, tmp_path: Path) -> None:
    (tmp_path / "conversations.db").write_bytes(b"nonsense" * 1000)
    (tmp_path / "window.ini").write_bytes(b"\xff[[[")
    chat = open_at(tmp_path)
    chat.wait_for(chat.window.banner.isVisible)
    assert "was damaged" in chat.window.banner.sentence.text()
    chat.ask_and_wait("say fine")
    assert chat.titles == ["say fine"]


def test_unloading_ends_the_engine_and_loading_goes_on(chat: Chat) -> None:
    window = chat.window
    chat.ask("hang")
    chat.until(lambda: chat.answer != "")
    window.unload()
    assert window.state.phase is Phase.EMPTY
    chat.until(lambda: window.state.memory is None)
    assert window.engine.pid is None
    assert window.banner.button.text() == "Load" and window.state.conversation.turns[0].can_continue
    window.banner.button.click()
    chat.until_ready()
    window.conversation.go_on.emit(window.state.conversation.turns[0])
    chat.until_ready()
    assert chat.answer == "one two three four and more "


PROGRAM = """
import os, signal, sys
from pathlib import Path
from PySide6.QtWidgets import QApplication
from app import theme
from app.engine_thread import EngineThread
from app.settings import SettingsStore
from app.window import ChatWindow

application = QApplication([])
theme.prepare(application)
window = ChatWindow(EngineThread("tests.scripted_session:ScriptedSession.open"), SettingsStore(), Path(sys.argv[1]))
window.show()
window._kept.keep(conversation=window.state.conversation.id)  # as if it had been closed once before

def look():
    if window.state.can_send and not window.state.conversation.turns:
        window.ask("hang")
    if window.state.conversation.turns and len(window.state.conversation.turns[0].answer) > 10:
        window.chats.library._thread.do(lambda store: store.load(window.state.conversation.id), stored)

def stored(conversation):
    if conversation is not None and len(conversation.turns[0].answer) > 10:
        os.kill(os.getpid(), signal.SIGKILL)

window.refreshed.connect(look)
timer = window.startTimer(50)
window.timerEvent = lambda event: look()
application.exec()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_killed_program_shows_the_partial_answer_and_goes_on(open_at: OpenAt, tmp_path: Path) -> None:
    program = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    chat = open_at(tmp_path)
    chat.wait_for(lambda: chat.questions == ["hang"])
    (turn,) = chat.window.state.conversation.turns
    before = turn.answer
    assert turn.can_continue and "ended here" in chat.window.conversation.views[-1].note.text()
    chat.window.conversation.go_on.emit(turn)
    chat.until_ready()
    assert chat.answer == f"{before}and more " and turn.note == ""


def test_groups_by_day() -> None:
    today = date(2026, 3, 1)
    noon = datetime(2026, 3, 1, 12)
    headers = [
        Header(str(days), f"{days} days ago", days == 3, (noon - timedelta(days=days)).timestamp())
        for days in (0, 1, 3, 5, 20, 400)
    ]
    assert [row.text for row in grouped(headers, today)] == [
        "Pinned", "3 days ago", "Today", "0 days ago", "Yesterday", "1 days ago", "Previous 7 days", "5 days ago",
        "Previous 30 days", "20 days ago", "Earlier", "400 days ago",
    ]  # fmt: skip


def test_a_long_list_a_long_conversation_and_a_damaged_message(open_at: OpenAt, tmp_path: Path) -> None:
    store = Store(tmp_path / "conversations.db")
    for number in range(300):
        conversation = Conversation(f"number {number}")
        for turn in range(90 if number == 0 else 1):
            conversation.ask(f"question {turn}", Mode.BASELINE)
            conversation.add_text("needle" * (turn == 7) + "word " * 200)
            conversation.break_off("")
        store.save(snapshot(conversation, conversation.take_changes()))
    store._db.execute("UPDATE turns SET answer = x'ff' WHERE number = (SELECT max(number) FROM turns)")
    store.close()
    chat = open_at(tmp_path)
    chat.wait_for(lambda: len(chat.titles) == 300)
    chat.window.sidebar.search.setText("needle")
    chat.wait_for(lambda: len(chat.titles) == 1)
    chat.bot.keyClick(chat.window.sidebar.search, Qt.Key.Key_Return)
    chat.bot.keyClick(chat.rows, Qt.Key.Key_Return)
    chat.wait_for(lambda: len(chat.questions) == 90)
    view = chat.window.conversation
    shown = [one.turn.question for one in view.views if not one.visibleRegion().isEmpty()]
    assert "question 7" in shown and len(view.views) < 20
    chat.window.sidebar.search.clear()
    index = chat.rows.list_model.place(chat.row("number 299").id)
    chat.rows.scrollTo(index)
    chat.bot.mouseClick(chat.rows.viewport(), Qt.MouseButton.LeftButton, pos=chat.rows.visualRect(index).center())
    chat.wait_for(chat.window.banner.isVisible)
    assert "Damaged messages in “number 299”: 1." in chat.window.banner.sentence.text()
    assert chat.window.state.phase is Phase.READY
