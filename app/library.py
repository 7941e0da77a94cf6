"""All conversations, as the window sees them: a list in memory, and the store's thread behind it.

Every method returns at once; what takes time ends in a signal, in the window's thread. Knows nothing of widgets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from weakref import WeakValueDictionary

import platformdirs
from PySide6.QtCore import QObject, QTimer, Signal

from app.conversation import Conversation, Turn
from app.i18n import translate
from app.rows import Header, snapshot
from app.store import Store, StoreError
from app.store_thread import StoreThread
from app.transfer import Export, TransferError, read_conversations

KEEP_MS = 400  # what was said is stored no later than this: with the time of writing less than a second
TRY_AGAIN_MS = 5000  # after it could not be stored


def data_folder() -> Path:
    return Path(platformdirs.user_data_dir("dflash-chat", appauthor=False))


class Library(QObject):
    """`folder` None keeps everything in memory. Close it to end its thread."""

    listed = Signal()  # `headers` changed
    opened = Signal(object)  # a Conversation that was asked for
    missing = Signal(str)  # the id of one that was asked for and is not there
    found = Signal(str, object)  # what was searched for, a list of Hits
    said = Signal(str, bool)  # a sentence for the user, and whether it is bad news
    _arrived = Signal(object)  # something to call in the window's thread

    def __init__(self, folder: Path | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.headers: list[Header] = []  # the newest first
        self.is_listed = False  # they have been read
        self._live: WeakValueDictionary[str, Conversation] = WeakValueDictionary()
        self._unkept: dict[str, Conversation] = {}
        self._deleted: set[str] = set()
        self._long: deque[Callable[[Store], Generator[None, None, str]]] = deque()  # the first one is being done
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._keep_all)
        self._arrived.connect(lambda call: call())
        self._thread = StoreThread(folder / "conversations.db" if folder else None, self._notice)
        self._read_list()

    def close(self) -> None:
        """Store what is not stored yet, forget what was deleted, and end."""
        if self._thread.is_alive():
            self._timer.stop()
            self._keep_all()
            self._thread.do(Store.purge)
            self._thread.close()
            self._timer.stop()

    # --- one conversation

    def open(self, id_: str) -> None:
        """Ends with `opened` or `missing`."""
        if (there := self._live.get(id_)) is not None:
            self.opened.emit(there)
            return

        def show(conversation: Conversation | None) -> None:
            if conversation is None:
                self.missing.emit(id_)
            else:
                for header in self.headers:  # it may have been renamed or pinned since it was read
                    if header.id == id_:
                        conversation.title, conversation.pinned = header.title, header.pinned
                # Asked for twice, it was read twice: the first one may have been changed since.
                self.opened.emit(self._live.setdefault(id_, conversation))

        self._ask(lambda store: store.load(id_), show)

    def keep_soon(self, conversation: Conversation) -> None:
        """Store what changed in it, if anything did, within `KEEP_MS`."""
        if conversation.has_changes:
            self._unkept[conversation.id] = conversation
            if not self._timer.isActive():
                self._timer.start(KEEP_MS)

    def keep(self, conversation: Conversation) -> None:
        """Store what changed in it now."""
        self._unkept.pop(conversation.id, None)
        turns = conversation.take_changes()
        if not conversation.root.children:
            return
        changes = snapshot(conversation, turns)
        self._live[conversation.id] = conversation
        self._list(Header(changes.id, changes.title, changes.pinned, changes.updated))
        self._ask(lambda store: store.save(changes), otherwise=lambda: self._keep_again(conversation, turns))

    def _keep_all(self) -> None:
        for conversation in list(self._unkept.values()):
            self.keep(conversation)

    def _keep_again(self, conversation: Conversation, turns: Sequence[Turn]) -> None:
        conversation.keep_again(turns)
        self._unkept[conversation.id] = conversation
        if self._thread.is_alive():
            self._timer.start(TRY_AGAIN_MS)

    def rename(self, id_: str, title: str) -> None:
        if (conversation := self._live.get(id_)) is not None:
            conversation.title = title
        self._change(id_, title=title)
        self._ask(lambda store: store.rename(id_, title))

    def pin(self, id_: str, pinned: bool) -> None:
        if (conversation := self._live.get(id_)) is not None:
            conversation.pinned = pinned
        self._change(id_, pinned=pinned)
        self._ask(lambda store: store.pin(id_, pinned))

    def delete(self, id_: str) -> None:
        """Take it out of the list; `undelete` brings it back until the program ends."""
        self._deleted.add(id_)  # its answer may be running still
        self.headers = [header for header in self.headers if header.id != id_]
        self.listed.emit()
        self._ask(lambda store: store.delete(id_))

    def undelete(self, id_: str) -> None:
        self._deleted.discard(id_)
        self._ask(lambda store: store.undelete(id_))
        self._read_list()

    # --- all of them

    def search(self, text: str) -> None:
        """Ends with `found`."""
        self._ask(lambda store: store.search(text), lambda hits: self.found.emit(text, hits))

    def write(self, path: Path, ids: Sequence[str] | None = None) -> None:
        """Export these conversations, or all; ends with `said`."""
        self._keep_all()
        names = list(ids) if ids is not None else [header.id for header in self.headers]
        self._do_in_parts(lambda store: _write(store, path, names))

    def read(self, path: Path) -> None:
        """Import the conversations of a file; ends with `said`."""
        self._do_in_parts(lambda store: _read(store, path))

    def _do_in_parts(self, work: Callable[[Store], Generator[None, None, str]]) -> None:
        """A long piece of work, whose parts let in between them what others have asked for; one at a time."""
        self._long.append(work)
        if len(self._long) == 1:
            self._begin(work)

    def _begin(self, work: Callable[[Store], Generator[None, None, str]]) -> None:
        def begin(store: Store) -> None:
            go_on(work(store))

        def go_on(parts: Generator[None, None, str]) -> None:
            try:
                next(parts)
            except StopIteration as end:
                sentence: str = end.value
                self._arrived.emit(lambda: self._end(sentence, False))
            except (TransferError, StoreError) as error:
                reason = str(error)
                self._arrived.emit(lambda: self._end(reason, True))
            else:
                self._thread.do(lambda _store: go_on(parts))

        self._thread.do(begin)

    def _end(self, sentence: str, is_bad: bool) -> None:
        self._read_list()
        self.said.emit(sentence, is_bad)
        self._long.popleft()
        if self._long:
            self._begin(self._long[0])

    # --- the list

    def _read_list(self) -> None:
        def show(headers: list[Header]) -> None:
            # One that was deleted since they were read does not come back.
            self.headers, self.is_listed = [header for header in headers if header.id not in self._deleted], True
            self.listed.emit()

        self._ask(Store.headers, show)

    def _list(self, header: Header) -> None:
        if header.id not in self._deleted and header not in self.headers:
            others = [other for other in self.headers if other.id != header.id]
            self.headers = sorted((header, *others), key=lambda one: one.updated, reverse=True)
            self.listed.emit()

    def _change(self, id_: str, title: str | None = None, pinned: bool | None = None) -> None:
        self.headers = [
            Header(
                header.id,
                header.title if title is None else title,
                header.pinned if pinned is None else pinned,
                header.updated,
            )
            if header.id == id_
            else header
            for header in self.headers
        ]
        self.listed.emit()

    # --- the thread

    def _ask(
        self,
        order: Callable[[Store], object],
        then: Callable[..., None] | None = None,
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        """Let the thread carry out an order; what follows it is called in the window's thread."""
        self._thread.do(
            order,
            (lambda result: self._arrived.emit(lambda: then(result))) if then is not None else None,
            (lambda: self._arrived.emit(otherwise)) if otherwise is not None else None,
        )

    def _notice(self, sentence: str) -> None:
        self._arrived.emit(lambda: self.said.emit(sentence, True))


def _write(store: Store, path: Path, ids: Sequence[str]) -> Generator[None, None, str]:
    """Gives a sentence for the user; raises TransferError."""
    written = 0
    with Export(path) as file:
        for id_ in ids:
            if (conversation := store.load(id_)) is not None:
                file.add(conversation)
                written += 1
            yield
    sentence = translate("Transfer", "Conversations written to {file}: {count}.")
    return sentence.format(count=written, file=path.name)


def _read(store: Store, path: Path) -> Generator[None, None, str]:
    """Gives a sentence for the user; raises TransferError."""
    read = 0
    try:
        for conversation in read_conversations(path):
            store.adopt(conversation)
            read += 1
            yield
    except TransferError as error:
        if not read:
            raise
        sentence = translate(
            "Transfer", "Conversations read before the file was found to be damaged: {count}. {reason}"
        )
        raise TransferError(sentence.format(count=read, reason=error)) from error
    return translate("Transfer", "Conversations read from {file}: {count}.").format(count=read, file=path.name)
