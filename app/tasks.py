"""Work that takes its time, off the window's thread: each task a thread, its end a call in the window's thread.

A task is given to a function of the caller's, which reports progress through it and asks it whether to stop. What is
cancelled or closed calls nobody back. Knows nothing of what the work is.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal

from app.i18n import translate
from engine.errors import Cancelled, DFlashChatError

PATIENCE_S = 3.0  # at the end; a task that waits for a server longer than that is left to end by itself

log = logging.getLogger(__name__)
OnResult = Callable[[Any], None]


class Task(QObject):
    """One piece of work. `cancel` is an event that the work may hand on to the engine's rooms, which know such ones."""

    _said = Signal(str, object)

    def __init__(
        self, on_done: OnResult | None, on_failed: OnResult | None, on_progress: OnResult | None, parent: QObject
    ) -> None:
        super().__init__(parent)
        self.cancel_event = threading.Event()
        self._listeners = {"done": on_done, "failed": on_failed, "progress": on_progress}
        self._thread: threading.Thread | None = None
        self._on_cancel: Callable[[], None] = lambda: None
        self._said.connect(self._hear, Qt.ConnectionType.QueuedConnection)

    # --- for the window's thread

    def cancel(self) -> None:
        """Nobody is called any more; the work ends at its next look."""
        self.cancel_event.set()
        self._on_cancel()
        self._listeners = {}

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    # --- for the work

    def check(self) -> None:
        """Raises Cancelled."""
        if self.cancel_event.is_set():
            raise Cancelled

    def on_cancel(self, stop: Callable[[], None]) -> None:
        """Have something called that wakes the work where it waits."""
        self._on_cancel = stop
        if self.cancel_event.is_set():
            stop()

    def tell(self, progress: Any) -> None:
        """Raises Cancelled."""
        self.check()
        self._said.emit("progress", progress)

    # --- between

    def begin(self, work: Callable[[Task], Any]) -> None:
        self._thread = threading.Thread(target=self._run, args=(work,), name="task", daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self, work: Callable[[Task], Any]) -> None:
        try:
            what, result = "done", work(self)
        except Cancelled:
            what, result = "cancelled", None
        except DFlashChatError as error:
            what, result = "failed", error
        except Exception as error:
            log.exception("A task")
            sentence = translate("Tasks", "The program met an error that it does not know ({error}); please report it.")
            what, result = "failed", DFlashChatError(sentence.format(error=f"{type(error).__name__}: {error}"))
        try:
            self._said.emit(what, result)
        except RuntimeError:  # the window has gone meanwhile
            pass

    def _hear(self, what: str, result: Any) -> None:
        listener = self._listeners.get(what)
        if what != "progress":
            self._listeners = {}
            self.join(PATIENCE_S)
            self.deleteLater()
        if listener is not None:
            listener(result)


class Tasks(QObject):
    """Starts tasks, and ends them all when the window closes."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._closed = False

    def start(
        self,
        work: Callable[[Task], Any],
        on_done: OnResult | None = None,
        on_failed: OnResult | None = None,
        on_progress: OnResult | None = None,
    ) -> Task:
        """Run `work(task)` in a thread; exactly one of `on_done(result)` and `on_failed(error)` is called at its end.

        The error is a `DFlashChatError`, whose text is for people.
        """
        task = Task(on_done, on_failed, on_progress, self)
        if not self._closed:
            task.begin(work)
        return task

    def close(self) -> None:
        """Cancel everything and wait for it, but not for long."""
        self._closed = True
        tasks = self.findChildren(Task)
        for task in tasks:
            task.cancel()
        until = time.monotonic() + PATIENCE_S
        for task in tasks:
            task.join(max(0.0, until - time.monotonic()))
