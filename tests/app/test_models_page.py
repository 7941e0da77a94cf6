"""Models in the window, against a real Hub server: one click, finding, downloading, importing, removing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl, SignalInstance
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QMessageBox

from app.convert_dialog import ConvertDialog
from app.download_view import ConversionRow
from app.model_work import ModelWork
from app.models_desk import ModelsDesk
from app.models_page import ModelsPage
from app.shelf_view import TargetCard
from app.state import Phase
from engine.embedded import copy_path
from engine.events import LoadSettings, Mode
from tests import tiny_chat
from tests.app.conftest import SCRIPTED, OpenWindow, Screen
from tests.drafter_files import write_drafter
from tests.hub_server import HubFile, HubServer
from tests.safetensors_files import hf_folder, target_of

DRAFTER, TARGET = "someone/counting-DFlash2-GGUF", "someone/counting-GGUF"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """The Hub that the program talks to, with a cache and a list of downloads of the test's own."""
    for name in ("HF_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with HubServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def counting(tmp_path: Path) -> Path:
    return tiny_chat.counting_target(tmp_path / "counting.gguf")


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    return tiny_chat.counting_drafter(tmp_path / "counting-dflash2.gguf")


class Desk:
    """A window and what is done at its models page; waits for the page's own signals."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.window = screen.window
        self.desk: ModelsDesk = screen.window.desk
        self.work: ModelWork = self.desk.work

    def until(self, signal: SignalInstance, condition: Callable[[], bool]) -> None:
        if not condition():
            self.screen.bot.waitSignal(signal, timeout=40_000, check_params_cb=lambda *_: condition()).wait()

    def open_page(self) -> None:
        self.window.models_button.click()
        self.until(self.work.shelf_changed, lambda: not self.work.looking)

    def search(self, text: str) -> None:
        self.desk.page.show_tab(1)
        self.desk.page.hub.field.setText(text)
        self.desk.page.hub.search_button.click()
        self.until(self.work.found_changed, lambda: not self.work.found.running)
        self.until(self.work.checked_changed, lambda: not any(c.running for c in self.work.checked.values()))

    def until_quest(self, *stages: str) -> None:
        self.until(
            self.desk.quest.changed, lambda: bool(self.desk.quest.quest and self.desk.quest.quest.stage in stages)
        )

    def until_paused(self, hub: HubServer) -> None:
        """The server waits in the middle of a file."""
        self.screen.bot.waitUntil(hub.paused.is_set, timeout=40_000)

    def until_download(self, state: str) -> None:
        self.until(
            self.work.downloads_changed, lambda: [d.state.value for d in self.work.downloads.values()] == [state]
        )


OpenDesk = Callable[..., Desk]


@pytest.fixture
def open_desk(open_window: OpenWindow, hub: HubServer) -> OpenDesk:
    """`open_desk(target)` on the real engine, `open_desk()` on the scripted one."""

    def make(target: Path | None = None) -> Desk:
        settings = LoadSettings(target=str(target) if target else None, context=128, threads=1)
        desk = Desk(open_window(settings) if target else open_window(settings, SCRIPTED))
        desk.screen.until_ready()
        return desk

    return make


# --- one click --------------------------------------------------------------------------------------------------------


def test_one_click_gets_the_drafter_and_the_next_answer_uses_it(
    open_desk: OpenDesk, hub: HubServer, counting: Path, drafter: Path
) -> None:
    hub.add(DRAFTER, {"counting-DFlash2-F32.gguf": drafter}, gguf={"architecture": "dflash"})
    here = open_desk(counting)
    window, strip = here.window, here.desk.strip
    window.preferences.change(draft_length=3)
    here.screen.ask_and_wait("count")
    plain = here.screen.answer
    statistics = window.state.statistics
    assert statistics is not None and statistics.mode is Mode.BASELINE

    window.modes.buttons[Mode.DFLASH2].click()
    sheet = window.modes.reason
    assert sheet.isVisible() and "No DFlash 2 drafter" in sheet.sentence.text() and not strip.isVisible()
    here.until_quest("offered")
    assert sheet.button.text() == "Get the DFlash 2 drafter (1 MB)" and "It fits counting" in sheet.note.text()
    fetched = hub.content_bytes()
    assert 0 < fetched < 100_000  # the header alone

    hub.trouble.pauses = [400_000]
    sheet.button.click()
    here.until_quest("downloading")
    here.until_paused(hub)
    assert strip.isVisible() and "of 1 MB" in strip.sentence.text() and not sheet.isVisible()
    window.new_conversation()
    here.screen.ask_and_wait("count")  # the chat goes on meanwhile
    assert here.screen.answer == plain
    hub.go_on.set()
    here.until_quest("on", "failed")
    assert "DFlash 2 is on" in strip.sentence.text() and not strip.bar.isVisible()
    here.screen.until(lambda: window.state.mode is Mode.DFLASH2)
    window.new_conversation()
    here.screen.ask_and_wait("count")
    statistics = window.state.statistics
    assert statistics is not None and statistics.mode is Mode.DFLASH2
    assert statistics.accepted_tokens > 0 and statistics.drafter == "counting-DFlash2-F32.gguf"
    assert here.screen.answer == plain and not strip.isVisible()


def test_a_click_that_fails_says_why_and_goes_on_where_it_stopped(
    open_desk: OpenDesk, hub: HubServer, counting: Path, drafter: Path
) -> None:
    here = open_desk(counting)
    strip = here.desk.strip
    here.desk.quest.get(Mode.DFLASH2, str(counting))
    here.until_quest("none")
    assert "no DFlash 2 drafter that fits" in strip.sentence.text()
    hub.add(DRAFTER, {"counting-DFlash2-F32.gguf": drafter}, gguf={"architecture": "dflash"}, gated=True)
    here.desk.quest.get(Mode.DFLASH2, str(counting))
    here.until_quest("none")
    assert f"{DRAFTER} is gated: sign in at" in strip.sentence.text().replace("\u200b", "")
    hub.repositories[DRAFTER].gated = False
    hub.trouble.statuses = [0, 403]  # the header, then the file
    here.desk.quest.get(Mode.DFLASH2, str(counting))
    here.until_quest("failed")
    assert strip.again_button.isVisible() and strip.sentence.text()
    strip.again_button.click()
    here.until_quest("on")
    assert here.window.state.modes[2].reason is None


# --- the page ---------------------------------------------------------------------------------------------------------


def test_a_drafter_that_does_not_fit_is_not_fetched_but_with_a_reason_and_a_second_click(
    open_desk: OpenDesk, hub: HubServer, counting: Path, tmp_path: Path
) -> None:
    other = write_drafter(tmp_path / "other.gguf", version=2, hidden_size=128)
    hub.add("someone/other-DFlash2-GGUF", {"other.gguf": other}, gguf={"architecture": "dflash"}, downloads=5)
    hub.add("someone/other-GGUF", {"readme.md": b"nothing"})
    here = open_desk(counting)
    here.open_page()
    here.search("other")
    view = here.desk.page.hub
    assert list(view.repositories) == ["someone/other-DFlash2-GGUF", "someone/other-GGUF"]
    view.repositories["someone/other-DFlash2-GGUF"].click()
    here.until(here.work.checked_changed, lambda: any(c.verdict for c in here.work.checked.values()))
    (line,) = view.models.values()
    assert "hidden size is 128, the target's 96" in line.verdict.text()
    assert line.download_button.text() == "Download all the same" and not here.work.downloads
    line.download_button.click()
    here.until_download("done")
    here.until(here.work.shelf_changed, lambda: not here.work.looking and bool(here.work.shelf.lone_drafters))
    assert [model.name for model in here.work.shelf.lone_drafters] == ["other"]
    assert all(path != str(other) for path in here.desk.page.shelf.cards), "drafters are no chat models"


def test_a_target_from_the_hub_is_listed_with_its_drafter_and_loads(
    open_desk: OpenDesk, hub: HubServer, counting: Path, drafter: Path, tmp_path: Path
) -> None:
    wandering = tiny_chat.wandering_target(tmp_path / "wandering.gguf")
    hub.add(TARGET, {"counting-F32.gguf": counting, "sub/counting-DFlash2-F32.gguf": drafter}, licence="apache-2.0")
    here = open_desk(wandering)
    here.open_page()
    here.search(f"{hub.url}/{TARGET}/blob/main/counting-F32.gguf")
    view = here.desk.page.hub
    for line in view.models.values():
        line.download_button.click()
    here.until(here.work.downloads_changed, lambda: {d.state.value for d in here.work.downloads.values()} == {"done"})
    here.until(
        here.work.shelf_changed,
        lambda: any(t.drafters for t in here.work.shelf.targets if t.model.repository == TARGET),
    )
    here.desk.page.show_tab(0)
    target = next(t for t in here.work.shelf.targets if t.model.repository == TARGET)
    card = here.desk.page.shelf.cards[target.model.path]
    for word in ("2 MB", "F32", "4,096 tokens of context", "llama", f"from {TARGET}"):
        assert word in card.details.text()
    assert [d.mode for d in target.drafters] == [Mode.DFLASH2] and list(card.offers) == [Mode.DFLASH]
    assert "Takes about" in card.fit.text() and not card.pill.isVisibleTo(card)
    card.load_button.click()
    here.screen.until(lambda: here.window.state.phase is Phase.LOADING)
    here.screen.until_ready()
    assert here.window.state.target is not None and here.window.state.target.path == target.model.path
    assert here.window.views.currentIndex() == 0 and here.window.state.mode is Mode.DFLASH2
    here.open_page()
    assert not here.desk.page.shelf.cards[target.model.path].pill.isHidden()


def test_pause_resume_cancel_and_the_next_start(
    open_desk: OpenDesk, hub: HubServer, drafter: Path, tmp_path: Path
) -> None:
    hub.add(DRAFTER, {"counting-DFlash2-F32.gguf": drafter})
    here = open_desk()
    here.open_page()
    here.search(DRAFTER)
    hub.trouble.pauses = [400_000]
    (line,) = here.desk.page.hub.models.values()
    line.download_button.click()
    here.until_download("downloading")
    here.until_paused(hub)
    here.screen.bot.waitUntil(
        lambda: sum(part.stat().st_size for part in (tmp_path / "hf_home").rglob("*.incomplete")) >= 300_000,
        timeout=40_000,
    )
    (shown,) = here.desk.page.downloads.rows.values()
    assert shown.isVisible() and "of 1 MB" in shown.doing.text() and shown.bar.isVisible()
    shown.pause_button.click()
    here.until_download("paused")
    assert shown.resume_button.isVisible() and not shown.pause_button.isVisible()
    hub.go_on.set()
    hub.paused.clear()
    hub.go_on.clear()
    hub.trouble.pauses = [100_000]
    shown.resume_button.click()
    here.until_paused(hub)
    here.window.close()  # in the middle of it
    hub.go_on.set()
    kept = json.loads((tmp_path / "xdg_data_home" / "dflash-chat" / "downloads.json").read_text())
    assert [entry["state"] for entry in kept["downloads"]] == ["waiting"]

    sent = hub.content_bytes()
    again = open_desk()
    again.until_download("done")
    assert hub.content_bytes() - sent <= drafter.stat().st_size - 300_000  # it went on where it was
    again.open_page()
    (shown,) = again.desk.page.downloads.rows.values()
    shown.drop_button.click()
    again.until(again.work.downloads_changed, lambda: not again.work.downloads)
    assert not again.desk.page.downloads.isVisible()


def test_a_token_for_what_is_not_public_and_a_hub_that_is_gone(
    open_desk: OpenDesk, hub: HubServer, drafter: Path, target_file: Path
) -> None:
    hub.add(DRAFTER, {"x.gguf": drafter}, private=True)
    hub.tokens.add("hf_right")
    here = open_desk()
    here.open_page()
    here.search(DRAFTER)
    page = here.desk.page
    assert page.hub.notice.isVisible() and not page.hub.models
    page.hub.token_button.click()
    page.hub.notice.field.setText("two\nlines")
    page.hub.notice.keep.click()
    page.hub.notice.field.setText(" hf_right ")
    page.hub.notice.keep.click()
    here.until(here.work.found_changed, lambda: here.work.found.opened is not None)
    assert list(page.hub.models) and not page.hub.notice.isVisible()
    assert "hf_right" not in page.told.sentence.text() and page.hub.notice.field.text() == ""
    hub.__exit__()
    here.search("counting")
    assert page.hub.notice.isVisible() and "offline" in page.hub.notice.sentence.text()
    assert page.hub.notice.again.isVisible()
    page.show_tab(0)
    assert str(target_file) in page.shelf.cards, "what is on the disk is still there"


# --- importing and removing -------------------------------------------------------------------------------------------


def drop(page: ModelsPage, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    how = Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    page.dropEvent(QDropEvent(QPointF(5, 5), *how))


def test_a_dropped_file_is_linked_and_a_removed_one_forgotten(open_desk: OpenDesk, counting: Path) -> None:
    here = open_desk()
    here.open_page()
    page = here.desk.page
    drop(page, counting)
    here.until(here.work.shelf_changed, lambda: str(counting) in page.shelf.cards and not here.work.looking)
    copies = [path for path in Path(counting.parent).rglob("*.gguf") if path != counting]
    assert not copies and "imported" in page.shelf.cards[str(counting)].details.text()
    drop(page, counting.parent)
    assert "can be imported" in page.told.sentence.text()
    page.shelf.remove.emit(next(t.model for t in here.work.shelf.targets if t.model.path == str(counting)))
    box = page.dialog
    assert isinstance(box, QMessageBox) and "stays where it is" in box.informativeText()
    next(b for b in box.buttons() if b.text() == "Remove").click()
    here.until(here.work.shelf_changed, lambda: str(counting) not in page.shelf.cards and not here.work.looking)
    assert counting.exists()


def test_a_safetensors_drafter_is_converted_and_used(open_desk: OpenDesk, hub: HubServer, tmp_path: Path) -> None:
    """From the Hub, and from a folder that is dropped. What does not fit is not fetched."""
    target = target_of("dflash2", tmp_path / "target.gguf", {"tokenizer.chat_template": tiny_chat.TEMPLATE})
    for name in ("dflash2", "dflash2_block16_k16"):
        config = HubFile(hf_folder(name) / "config.json", lfs=False)
        hub.add(f"someone/{name}", {"config.json": config, "model.safetensors": hf_folder(name) / "model.safetensors"})
    here = open_desk(target)
    assert here.window.state.modes[2].reason is not None
    here.open_page()
    page = here.desk.page

    def convert() -> ConversionRow:
        dialog = page.dialog
        assert isinstance(dialog, ConvertDialog) and dialog.target.currentData() == str(target)
        dialog.convert_button.click()
        here.until(here.work.conversions_changed, lambda: here.work.conversions[0].has_ended)
        (line,) = page.downloads.conversion_rows.values()
        return line

    here.search("someone/dflash2_block16_k16")
    assert page.hub.convert_button is not None
    page.hub.convert_button.click()
    line = convert()
    assert "hidden size is 288, the target's 96" in line.doing.text() and hub.content_bytes() < 5000
    line.drop_button.click()
    assert not here.work.conversions and not page.downloads.isVisible()

    here.search("someone/dflash2")
    page.hub.convert_button.click()
    assert "Converted" in convert().doing.text()
    here.screen.until(lambda: here.window.state.modes[2].reason is None)
    used = here.window.state.modes[2].drafter
    assert used is not None and used.endswith("dflash2-Q8_0.gguf")
    here.work.drop_conversion(here.work.conversions[0])

    drop(page, hf_folder("dflash2"))
    assert "Converted" in convert().doing.text()
    assert (Path(used).parent / "dflash2-hf-Q8_0.gguf").is_file()


def test_what_came_with_the_program_cannot_be_removed_and_loads_as_itself(
    open_desk: OpenDesk, target_file: Path
) -> None:
    here = open_desk()
    here.open_page()
    card = here.desk.page.shelf.cards[str(copy_path())]
    assert "came with the program" in card.details.text()
    card.load_button.click()
    assert here.window.preferences.settings.target is None
    here.screen.until_ready()


def test_a_model_that_is_dropped_on_the_chat_is_imported(open_desk: OpenDesk, counting: Path) -> None:
    here = open_desk()
    (counting.parent / "notes.txt").write_text("some notes")
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(counting)), QUrl.fromLocalFile(str(counting.parent / "notes.txt"))])
    chat = here.window.views.currentWidget()
    assert chat is not None and chat.acceptDrops()
    how = (Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(chat, QDragEnterEvent(QPoint(9, 9), *how))
    QApplication.sendEvent(chat, QDropEvent(QPointF(9, 9), *how))
    assert [file.name for file in here.window.composer.files.files] == ["notes.txt"]
    assert not here.window.composer.refused.isVisible()
    assert here.window.views.currentWidget() is here.desk.page
    here.until(here.work.shelf_changed, lambda: str(counting) in here.desk.page.shelf.cards)


def test_the_model_in_use_can_be_unloaded_and_loaded_again(open_desk: OpenDesk, counting: Path) -> None:
    here = open_desk(counting)
    here.desk.page.take([str(counting)])
    here.open_page()
    here.until(here.work.shelf_changed, lambda: str(counting) in here.desk.page.shelf.cards)

    def card() -> TargetCard:
        return here.desk.page.shelf.cards[str(counting)]

    def offered() -> list[bool]:
        return [not one.isHidden() for one in (card().pill, card().unload_button, card().load_button)]

    assert offered() == [True, True, False]
    assert card().unload_button.accessibleName().startswith("Unload ") and card().unload_button.toolTip()
    card().unload_button.click()
    here.screen.until(lambda: here.window.state.target is None)
    assert here.window.engine.pid is None and offered() == [False, False, True]
    card().load_button.click()
    here.screen.until_ready()
    assert offered() == [True, True, False]
