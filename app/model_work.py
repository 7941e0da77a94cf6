"""What the models page and the one click have done in the background: looking, searching, downloading, importing.

It holds what is known and says when that has changed; who shows it asks. Every method returns at once. Knows nothing of
widgets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, Signal

from app.i18n import translate
from app.model_steps import Checked, Conversion, Found, fetched_folder, judged, left_over, opened, unused
from app.shelf import Shelf, Surroundings, look
from app.tasks import Task, Tasks
from engine.catalog import header_of, user_drafter_folder
from engine.errors import DFlashChatError
from engine.library import LocalModel

if TYPE_CHECKING:
    from engine.downloads import Download, DownloadQueue
    from engine.hub import Hub
    from engine.remote_model import RemoteModel, Repository


class ModelWork(QObject):
    shelf_changed = Signal()
    found_changed = Signal()
    checked_changed = Signal(str)  # key of a model on the Hub
    downloads_changed = Signal()
    conversions_changed = Signal()
    drafters_changed = Signal()  # there are others on the disk: the mode switch may have changed
    told = Signal(str)  # a sentence for the user
    _heard = Signal(object)  # a Download, from the queue's thread

    def __init__(self, surroundings: Callable[[], Surroundings], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.tasks = Tasks(self)
        self.shelf = Shelf()
        self.looking = False
        self.found = Found()
        self.checked: dict[str, Checked] = {}
        self.downloads: dict[str, Download] = {}  # in the queue's order
        self.conversions: list[Conversion] = []
        self.whole: set[str] = set()  # keys of models on the Hub that are on the disk
        self._surroundings = surroundings
        self._look_again = False
        self._search: Task | None = None
        self._opening = threading.Lock()
        self._hub: Hub | None = None
        self._queue: DownloadQueue | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._heard.connect(self._hear, Qt.ConnectionType.QueuedConnection)

    def close(self) -> None:
        """End all of it; what was being downloaded goes on at the next start."""
        self._unsubscribe()
        self.tasks.close()
        if self._queue is not None:
            self._queue.close()

    # --- the disk

    def look(self) -> None:
        """Bring the shelf up to date."""
        if self.looking:
            self._look_again = True
            return
        self.looking = True
        surroundings = self._surroundings()
        self.tasks.start(lambda task: look(surroundings, task.cancel_event), self._looked, self._not_looked)
        self.shelf_changed.emit()

    def _looked(self, shelf: Shelf) -> None:
        self.shelf, self.looking = shelf, False
        self.shelf_changed.emit()
        if self._look_again:
            self._look_again = False
            self.look()

    def _not_looked(self, error: DFlashChatError) -> None:
        self.told.emit(str(error))
        self._looked(self.shelf)

    def remove(self, model: LocalModel) -> None:
        from engine.library import remove_model

        self.tasks.start(lambda task: remove_model(model), lambda freed: self._changed_disk(), self._tell)

    def check_file(self, model: LocalModel) -> None:
        """Hold the file against its SHA-256."""
        from engine.library import verify_model

        def checked(checks: list[Any]) -> None:
            for check in checks:
                self.told.emit(check.sentence)

        self.tasks.start(lambda task: verify_model(model, task.tell, task.cancel_event), checked, self._tell)

    def import_files(self, paths: list[str]) -> None:
        """GGUF files from elsewhere, which stay where they are."""
        from engine.library import import_model

        def work(task: Task) -> list[LocalModel]:
            return [import_model(path) for path in paths]

        self.tasks.start(work, lambda models: self._changed_disk(), self._tell)

    def convert(self, source: str | Repository, target: str, type_: str | None) -> None:
        """A drafter in safetensors form, for a target on this disk, into the user's folder of drafters.

        `source`: a folder, or a repository of the Hub, whose files are fetched first.
        """
        from engine.convert_process import convert_apart

        name = Path(source).name if isinstance(source, str) else source.id.partition("/")[2]
        conversion = Conversion(name, fetching=not isinstance(source, str))
        self.conversions.append(conversion)

        def work(task: Task) -> Any:
            header = header_of(target)
            if isinstance(source, str):
                folder = Path(source)
            else:
                folder = fetched_folder(self._open_hub(), source, header, task)
            out = unused(user_drafter_folder() / f"{name}{f'-{type_}' if type_ else ''}.gguf")
            return convert_apart(folder, target, out, type_, lambda done: task.tell((False, done)))

        def progress(told: tuple[bool, float]) -> None:
            conversion.fetching, conversion.fraction = told
            self.conversions_changed.emit()

        def done(result: Any) -> None:
            conversion.fraction, conversion.done, conversion.notes = 1.0, True, result.notes
            self.conversions_changed.emit()
            self._changed_disk()

        def failed(error: DFlashChatError) -> None:
            conversion.trouble = str(error)
            self.conversions_changed.emit()

        conversion.task = self.tasks.start(work, done, failed, progress)
        self.conversions_changed.emit()

    def drop_conversion(self, conversion: Conversion) -> None:
        """Cancel it, or take it off the list."""
        if conversion.task is not None:
            conversion.task.cancel()
        with suppress(ValueError):
            self.conversions.remove(conversion)
        self.conversions_changed.emit()

    def _changed_disk(self) -> None:
        self.look()
        self.drafters_changed.emit()

    def _tell(self, error: DFlashChatError) -> None:
        self.told.emit(str(error))

    # --- the Hub

    def with_hub(
        self,
        work: Callable[[Task, Hub], Any],
        on_done: Callable[[Any], None],
        on_failed: Callable[[DFlashChatError], None],
        on_progress: Callable[[Any], None] | None = None,
    ) -> Task:
        """A task that needs the Hub. The first one waits for what it takes to know one."""
        return self.tasks.start(lambda task: work(task, self._open_hub()), on_done, on_failed, on_progress)

    def _open_hub(self) -> Hub:
        """In a task's thread: the library behind it takes half a second to import."""
        with self._opening:
            if self._hub is None:
                from engine.downloads import DownloadQueue, queue_file
                from engine.hub import Hub

                hub = Hub()
                queue = DownloadQueue(hub, record=queue_file(), resume=True)
                self._unsubscribe = queue.subscribe(self._heard.emit)
                self._hub, self._queue = hub, queue
                for download in queue.downloads():
                    self._heard.emit(download)
        return self._hub

    def go_on(self) -> None:
        """Take up the downloads of the last start, if there are any; without them the Hub is not needed yet."""
        self.tasks.start(lambda task: self._open_hub() if left_over() else None, on_failed=self._tell)

    def search(self, text: str) -> None:
        """Words, or a repository as owner/name or by its address. "" shows what is most downloaded."""
        self._begin_search(Found(text.strip(), running=True))

        def work(task: Task, hub: Hub) -> Any:
            from engine.remote_model import parse_repository

            if "/" in text:
                name, _ = parse_repository(text)
                return opened(hub, name)
            return hub.search(text)

        def done(result: Any) -> None:
            if "/" in text:
                self._show_repository(*result)
            else:
                self.found.repositories = result
            self._end_search()

        self._search = self.with_hub(work, done, self._not_found)

    def open_repository(self, name: str) -> None:
        """Show the files of one of those found."""
        self._begin_search(replace(self.found, running=True, opened=None, trouble=None, link=None))

        def done(result: tuple[Repository, set[str]]) -> None:
            self._show_repository(*result)
            self._end_search()

        self._search = self.with_hub(lambda task, hub: opened(hub, name), done, self._not_found)

    def back_to_results(self) -> None:
        self._begin_search(replace(self.found, running=False, opened=None, trouble=None, link=None))

    def _begin_search(self, found: Found) -> None:
        if self._search is not None:
            self._search.cancel()
            self._search = None
        self.found = found
        self.found_changed.emit()

    def _show_repository(self, repository: Repository, here: set[str]) -> None:
        self.found.opened = repository
        self.whole |= here
        if not repository.models and not repository.safetensors_drafter:
            words = translate("Models", "{name} holds no GGUF file; choose another repository.")
            self.found.trouble = words.format(name=repository.id)
        for model in [model for model in repository.models if model.problem is None][:1]:
            self.check(model)

    def _end_search(self) -> None:
        self._search, self.found.running, self.found.offline = None, False, False
        self.found_changed.emit()

    def _not_found(self, error: DFlashChatError) -> None:
        kind = getattr(error, "kind", "")
        self.found.trouble, self.found.link = str(error), getattr(error, "link", None)
        self.found.offline, self.found.wants_token = kind == "offline", kind in ("gated", "token", "forbidden")
        self._search, self.found.running = None, False
        self.found_changed.emit()

    def check(self, model: RemoteModel, then: Callable[[Checked], None] = lambda _checked: None) -> None:
        """Read a model's header over the network and judge it, before anything is downloaded."""
        known = self.checked.get(model.key)
        if known is not None and (known.running or known.trouble is None):
            if not known.running:
                then(known)
            return
        checked = self.checked[model.key] = Checked(running=True)
        surroundings = self._surroundings()

        def work(task: Task, hub: Hub) -> tuple[Any, ...]:
            return judged(hub.header(model, task.tell, task.cancel_event), surroundings)

        def progress(count: int) -> None:
            checked.bytes = count
            self.checked_changed.emit(model.key)

        def done(result: tuple[Any, ...]) -> None:
            checked.running = False
            checked.verdict, checked.fit, checked.sentence = result
            self.checked_changed.emit(model.key)
            then(checked)

        def failed(error: DFlashChatError) -> None:
            checked.running, checked.trouble = False, str(error)
            self.checked_changed.emit(model.key)

        self.with_hub(work, done, failed, progress)
        self.checked_changed.emit(model.key)

    # --- downloads

    def download(self, model: RemoteModel, *, first: bool = False) -> None:
        """Queue it; one that is queued already goes on."""

        def work(task: Task, hub: Hub) -> str:
            assert self._queue is not None
            return self._queue.add(model, first=first)

        self.with_hub(work, lambda id: None, self._tell)

    def download_if_good(self, model: RemoteModel) -> None:
        """Check the header first. What does not fit is not fetched; the page shows the reason and asks."""
        self.check(model, lambda checked: self.download(model) if checked.is_good else None)

    def pause(self, id: str) -> None:
        if self._queue is not None:
            self._queue.pause(id)

    def resume(self, id: str) -> None:
        if self._queue is not None:
            self._queue.resume(id)

    def drop(self, id: str) -> None:
        """Cancel a download and take it off the list. What was fetched is thrown away, but not what is whole."""
        queue = self._queue
        if queue is None:
            return
        download = queue.get(id)

        def work(task: Task) -> None:
            if download is not None and download.path is None:
                queue.cancel(id, discarded=True)
            queue.remove(id)

        def done(_: None) -> None:
            self.downloads.pop(id, None)
            self.downloads_changed.emit()

        self.tasks.start(work, done, self._tell)

    def _hear(self, download: Download) -> None:
        before = self.downloads.get(download.id)
        if before is None and download.state.value == "cancelled":
            return  # news of one that was taken off the list
        self.downloads[download.id] = download
        self.downloads_changed.emit()
        if download.path is not None and (before is None or before.path is None):
            self.whole.add(download.id)
            self._changed_disk()

    # --- the token

    def keep_token(self, text: str, then: Callable[[], None]) -> None:
        """Where the operating system keeps secrets. `then` is called when it is there."""

        def work(task: Task, hub: Hub) -> str:
            return hub.tokens.keep(text)

        def done(place: str) -> None:
            self.told.emit(translate("Models", "The token is kept in {place}.").format(place=place))
            then()

        self.with_hub(work, done, self._tell)
