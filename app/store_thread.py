"""The thread that owns the store: the window never waits for the disk.

What is asked of it is done in order, so a conversation is read only after all that was written before. While nothing is
asked, what was said is made searchable, a little at a time. Knows nothing of Qt: answers come in this thread.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from app.i18n import translate
from app.store import Store, StoreError

_Result = TypeVar("_Result")


class StoreThread(threading.Thread):
    """`on_notice` hears every sentence the store has for the user, and every error. Called in this thread."""

    def __init__(self, path: Path | None, on_notice: Callable[[str], None]) -> None:
        super().__init__(name="store")
        self._path = path
        self._on_notice = on_notice
        self._orders: queue.SimpleQueue[Callable[[Store], object] | None] = queue.SimpleQueue()
        self._said: str | None = None  # the last error: one that lasts is told once
        self.start()

    def do(
        self,
        order: Callable[[Store], _Result],
        then: Callable[[_Result], None] | None = None,
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        """Carry out an order; `then` gets its result, `otherwise` is called when it failed."""

        def carry_out(store: Store) -> None:
            try:
                result = order(store)
            except Exception as error:  # whatever it is, what is said afterwards has to be stored
                self._explain(error)
                if otherwise is not None:
                    otherwise()
                return
            self._said = None
            if then is not None:
                then(result)

        self._orders.put(carry_out)

    def close(self) -> None:
        """Carry out what has been ordered, and end."""
        self._orders.put(None)
        self.join()

    def run(self) -> None:
        store = Store(self._path)
        try:
            while True:
                self._take_notices(store)
                order = self._next(store)
                if order is None:
                    return
                order(store)
        finally:
            store.close()

    def _next(self, store: Store) -> Callable[[Store], object] | None:
        """The next order; what nobody waits for is done meanwhile."""
        more = True
        while more:
            try:
                return self._orders.get_nowait()
            except queue.Empty:
                try:
                    more = store.index_some()
                except Exception as error:
                    self._explain(error)
                    more = False
        return self._orders.get()

    def _take_notices(self, store: Store) -> None:
        notices, store.notices = store.notices, []
        for notice in notices:
            self._on_notice(notice)

    def _explain(self, error: Exception) -> None:
        sentence = str(error)
        if not isinstance(error, StoreError):
            traceback.print_exc()
            sentence = translate("Store", "Conversations met an error that is not known ({reason}); please report it.")
            sentence = sentence.format(reason=f"{type(error).__name__}: {error}")
        if sentence != self._said:
            self._said = sentence
            self._on_notice(sentence)
