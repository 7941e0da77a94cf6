"""The models page: what is on this disk, what is on the Hub, and what is on its way from there.

Shows `ModelWork` and `DrafterQuest`, and asks the user where that must be asked: for a file, a folder, a confirmation.
Knows nothing of the engine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QShowEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QMenu, QMessageBox, QStackedWidget, QVBoxLayout, QWidget

from app.convert_dialog import ConvertDialog
from app.download_view import DownloadView
from app.engine_words import in_words
from app.hub_view import HubView
from app.i18n import translate
from app.model_parts import IconButton, button, label, row
from app.model_work import ModelWork
from app.shelf_view import ShelfView
from app.theme import px
from engine.events import Mode
from engine.library import LocalModel

if TYPE_CHECKING:
    from engine.remote_model import Repository


class ModelsPage(QWidget):
    load = Signal(object)  # a LocalModel that is a target
    unload = Signal()  # the one in use
    get_drafter = Signal(object, str)  # Mode, path of the target
    closed = Signal()

    def __init__(self, work: ModelWork, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAcceptDrops(True)
        self.setObjectName("column")
        self._work = work
        self._loaded: str | None = None
        self._sizes: dict[tuple[str, Mode], int] = {}
        self.shelf, self.hub, self.downloads = ShelfView(), HubView(), DownloadView()
        self.pages = QStackedWidget()
        self.pages.addWidget(self.shelf)
        self.pages.addWidget(self.hub)
        self.told = _Told()
        self.dialog: QFileDialog | QMessageBox | ConvertDialog | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(px(28), px(18), px(20), px(18))
        column.setSpacing(px(14))
        column.addLayout(self._head())
        column.addWidget(self.told)
        column.addWidget(self.pages, 1)
        column.addWidget(self.downloads)
        self._connect()
        self.show_shelf()
        self.show_found()
        self.show_downloads()

    def _head(self) -> QHBoxLayout:
        self.here_button = button(translate("Models", "On this computer"), "tab")
        self.hub_button = button(translate("Models", "On the Hub"), "tab")
        for number, tab in enumerate((self.here_button, self.hub_button)):
            tab.setCheckable(True)
            tab.ensurePolished()
            tab.setMinimumWidth(tab.sizeHint().width())
            tab.clicked.connect(lambda _checked, number=number: self.show_tab(number))
        self.here_button.setChecked(True)
        tabs = QFrame()
        tabs.setObjectName("tabs")
        inside = QHBoxLayout(tabs)
        inside.setContentsMargins(px(3), px(3), px(3), px(3))
        inside.setSpacing(px(2))
        inside.addWidget(self.here_button)
        inside.addWidget(self.hub_button)
        self.import_button = button(translate("Models", "Import…"))
        menu = QMenu(self.import_button)
        self.import_file = menu.addAction(translate("Models", "A GGUF file…"), self.choose_files)
        self.import_folder = menu.addAction(
            translate("Models", "A drafter in safetensors form (a folder)…"), self.choose_folder
        )
        self.import_button.setMenu(menu)
        self.close_button = IconButton("close", translate("Models", "Back to the chat"))
        self.close_button.clicked.connect(self.closed)
        title = label(translate("Models", "Models"), 20, bold=True, wrap=False)
        return row(title, tabs, 1, self.import_button, self.close_button, spacing=12)

    def _connect(self) -> None:
        work = self._work
        work.shelf_changed.connect(self.show_shelf)
        work.found_changed.connect(self.show_found)
        work.checked_changed.connect(self._show_checked)
        work.downloads_changed.connect(self.show_downloads)
        work.conversions_changed.connect(self.show_downloads)
        work.told.connect(self.told.tell)
        self.shelf.load.connect(self.load)
        self.shelf.unload.connect(self.unload)
        self.shelf.get_drafter.connect(self.get_drafter)
        self.shelf.check.connect(self._check_file)
        self.shelf.remove.connect(self.ask_to_remove)
        self.hub.search.connect(work.search)
        self.hub.open_repository.connect(work.open_repository)
        self.hub.back.connect(work.back_to_results)
        self.hub.check.connect(work.check)
        self.hub.download.connect(self._download)
        self.hub.convert.connect(self.ask_how_to_convert)
        self.hub.token.connect(lambda text: work.keep_token(text, self._search_again))
        self.downloads.pause.connect(work.pause)
        self.downloads.resume.connect(work.resume)
        self.downloads.drop.connect(work.drop)
        self.downloads.drop_conversion.connect(work.drop_conversion)

    # --- showing

    def show_tab(self, number: int) -> None:
        self.pages.setCurrentIndex(number)
        self.here_button.setChecked(number == 0)
        self.hub_button.setChecked(number == 1)
        if number == 1:
            self.hub.field.setFocus()

    def show_loaded(self, path: str | None) -> None:
        if path != self._loaded:
            self._loaded = path
            self.show_shelf()

    def show_size(self, target: str, mode: Mode, size: int) -> None:
        """What getting a drafter would cost has become known."""
        if self._sizes.get((target, mode)) != size:
            self._sizes[target, mode] = size
            self.show_shelf()

    def show_shelf(self) -> None:
        work = self._work
        self.shelf.show_shelf(work.shelf, self._loaded, looking=work.looking, sizes=self._sizes)

    def show_found(self) -> None:
        self.hub.show_found(self._work.found, self._work.checked, self._here())

    def show_downloads(self) -> None:
        self.downloads.show_downloads(self._work.downloads.values(), self._work.conversions)
        here = self._here()
        for key, line in self.hub.models.items():
            line.show_checked(self._work.checked.get(key), here.get(key))

    def _show_checked(self, key: str) -> None:
        self.hub.show_checked(key, self._work.checked.get(key), self._here().get(key))

    def _here(self) -> dict[str, bool]:
        """Keys of what is on the disk (True), or on its way to it."""
        coming = {key: False for key, download in self._work.downloads.items() if download.state.active}
        return coming | dict.fromkeys(self._work.whole, True)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._work.look()

    # --- what the user does

    def _download(self, model: object, anyway: bool) -> None:
        if anyway:
            self._work.download(model)  # type: ignore[arg-type]
        else:
            self._work.download_if_good(model)  # type: ignore[arg-type]

    def _check_file(self, model: LocalModel) -> None:
        self.told.tell(translate("Models", "Reading {name}…").format(name=Path(model.path).name))
        self._work.check_file(model)

    def _search_again(self) -> None:
        if self._work.found.text:
            self._work.search(self._work.found.text)

    def choose_files(self) -> None:
        dialog = QFileDialog(self, translate("Models", "Import a model"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setNameFilter(translate("Models", "GGUF models (*.gguf)"))
        dialog.filesSelected.connect(self.take)
        self._open(dialog)

    def choose_folder(self) -> None:
        dialog = QFileDialog(self, translate("Models", "Import a drafter's folder"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.filesSelected.connect(self.take)
        self._open(dialog)

    def take(self, paths: list[str]) -> None:
        """Files and folders that were chosen or dropped."""
        from engine.convert import is_drafter_folder

        files = [path for path in paths if Path(path).suffix.lower() == ".gguf"]
        folders = [path for path in paths if path not in files and is_drafter_folder(_folder_of(path))]
        if files:
            self._work.import_files(files)
        if folders:
            self.ask_how_to_convert(str(_folder_of(folders[0])))
        if not files and not folders:
            self.told.tell(
                translate("Models", "Only GGUF files, and folders of drafters with config.json, can be imported.")
            )
        self.show_tab(0)

    def ask_how_to_convert(self, source: str | Repository) -> None:
        """`source`: a folder, or a repository of the Hub."""
        targets = [target.model for target in self._work.shelf.targets if target.model.problem is None]
        name = Path(source).name if isinstance(source, str) else source.id
        dialog = ConvertDialog(name, targets, self._loaded, self)
        dialog.chosen.connect(lambda target, type_: self._work.convert(source, target, type_))
        self._open(dialog)

    def ask_to_remove(self, model: LocalModel) -> None:
        box = QMessageBox(self)
        box.setWindowTitle(translate("Models", "Remove"))
        box.setText(translate("Models", "Remove {name}?").format(name=model.name))
        stays = model.origin.value == "imported"
        box.setInformativeText(
            translate("Models", "The file stays where it is; the program forgets it.")
            if stays
            else translate("Models", "The file is deleted from the disk: {path}").format(path=model.path)
        )
        remove = box.addButton(translate("Models", "Remove"), QMessageBox.ButtonRole.DestructiveRole)
        keep = box.addButton(translate("Models", "Keep it"), QMessageBox.ButtonRole.RejectRole)
        for choice in (remove, keep):
            choice.setProperty("role", "plain")
        remove.clicked.connect(lambda: self._work.remove(model))
        self._open(box)

    def _open(self, dialog: QFileDialog | QMessageBox | ConvertDialog) -> None:
        self.dialog = dialog
        dialog.finished.connect(dialog.deleteLater)
        dialog.finished.connect(self._forget_dialog)
        dialog.open()

    def _forget_dialog(self) -> None:
        self.dialog = None

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(_is_wanted(url.toLocalFile()) for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.take([url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()])


class _Told(QFrame):
    """One sentence about what has happened, until it is put away or another one comes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("note")
        self.sentence = label("", 13)
        close = IconButton("close", translate("Models", "Close this message"))
        close.clicked.connect(self.hide)
        line = QHBoxLayout(self)
        line.setContentsMargins(px(14), px(6), px(8), px(6))
        line.addWidget(self.sentence, 1)
        line.addWidget(close)
        self.hide()

    def tell(self, sentence: str) -> None:
        self.sentence.setText(in_words(sentence).replace("/", "/\u200b"))  # so that a path can be broken
        self.show()


def _folder_of(path: str) -> Path:
    """Of a folder itself, or of a file in it."""
    return Path(path) if Path(path).is_dir() else Path(path).parent


def _is_wanted(path: str) -> bool:
    return bool(path) and (path.lower().endswith((".gguf", ".safetensors", "config.json")) or Path(path).is_dir())
