"""The thread that owns the engine process: the only room of the window that talks to the engine.

It starts the process, sends requests, turns what comes back into Qt signals, and starts a new process after a crash.
The window's own thread never waits for the pipe. Knows nothing of widgets.

Requests are carried out one after another, in the order in which they were sent; how several chats share the engine
stands in `engine/requests.py`. One that was sent and has not `begun` is waiting.
"""

from __future__ import annotations

import multiprocessing
import queue
import time
from multiprocessing.connection import wait
from pathlib import Path

from PySide6.QtCore import QObject, QThread, Signal

from engine.errors import EngineStopped
from engine.events import Counted, Event, Failed, KnownTurn, LoadSettings
from engine.host import SESSION, Cancel, Count, Done, EngineClient, ListDevices, Load, Request, Restore, Unload

PATIENCE_S = 0.15  # for a load to hear a cancel; then its process is ended


class _Close:
    """End the process and the thread."""


class EngineThread(QThread):
    """Methods may be called from the window's thread and return at once; signals arrive there."""

    begun = Signal(object)  # a request whose turn has come
    received = Signal(object, object)  # an event, all but Failed; the request that it belongs to (Counted: None)
    failed = Signal(object, object)  # the request that failed (None: unknown), Failed
    done = Signal(object, bool)  # a request, after its last event, and whether it went well
    stopped = Signal(str)  # the process died: one sentence. What it had not done is not reported one by one

    def __init__(
        self, session_factory: str = SESSION, log_folder: Path | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("engine")
        self._client = EngineClient(session_factory, log_folder)
        self._orders: queue.SimpleQueue[_Close | Request] = queue.SimpleQueue()
        self._bell, self._rope = multiprocessing.Pipe(duplex=False)  # pulled for every order
        self._current: Request | None = None  # the one that was last said to have begun
        self._went_well = True  # what is being carried out has not failed
        self._patience_ends: float | None = None  # with a load that was cancelled

    # --- for the window's thread

    @property
    def pid(self) -> int | None:
        return self._client.pid

    def load(self, settings: LoadSettings, turns: tuple[KnownTurn, ...] = (), system: str | None = None) -> None:
        """Load a target, in a new process where there is none, and give it a conversation, if there is one.

        `done` then comes for the `Load` and for the `Restore`. What is sent after this finds the conversation.
        """
        self._order(Load(settings, Restore(turns, system) if turns or system else None))

    def send(self, request: Request) -> None:
        """`Load` and `ListDevices` start an engine where there is none; `Ask` and its like are dropped then."""
        self._order(request)

    def cancel(self, tag: str | None = None) -> None:
        """Stop everything that was sent before and has not ended, or only what bears the tag."""
        self._order(Cancel(tag))

    def close(self) -> None:
        """End the process and the thread; returns when both are gone."""
        if self._rope.closed:
            return
        if self.isRunning():
            self._order(_Close())
            self.wait()
        self._rope.close()
        self._bell.close()

    def _order(self, order: _Close | Request) -> None:
        self._orders.put(order)
        self._rope.send_bytes(b"!")

    # --- in the thread

    def run(self) -> None:
        try:
            while True:
                pipe = self._client.readable
                ready = wait([self._bell, pipe] if pipe else [self._bell], self._patience_left())
                if not ready:
                    self._abandon()
                elif self._bell in ready:
                    self._bell.recv_bytes()
                    order = self._orders.get()
                    if isinstance(order, _Close):
                        return
                    self._follow(order)
                else:
                    self._receive()
                self._tell_what_has_begun()
        finally:
            self._client.close()

    def _follow(self, order: Request) -> None:
        try:
            if self._client.readable is None:
                if not isinstance(order, (Load, ListDevices)):
                    self._answer_without_engine(order)
                    return
                self._client.start()
            if isinstance(order, Cancel) and order.tag is None and isinstance(self._client.current, Load):
                self._patience_ends = time.monotonic() + PATIENCE_S
            self._client.send(order)
        except EngineStopped as stopped:
            self._ended(stopped)

    def _answer_without_engine(self, order: Request) -> None:
        """There is none yet, or the order crossed the news that it has died."""
        if isinstance(order, Count):
            self.received.emit(Counted(None, order.tag), None)
        elif isinstance(order, Unload):
            self.done.emit(order, True)

    def _receive(self) -> None:
        try:
            current = self._client.current
            message: Event | Done | None = self._client.receive(0)
        except EngineStopped as stopped:
            self._ended(stopped)
            return
        if isinstance(message, Done):
            self._finish(message.request, self._went_well)
        elif isinstance(message, Failed):
            self._went_well = False
            self.failed.emit(current, message)
        elif message is not None:
            self.received.emit(message, None if isinstance(message, Counted) else current)

    def _finish(self, request: Request, well: bool) -> None:
        self._went_well = True
        self._current = None
        if isinstance(request, Load):
            self._patience_ends = None
        self.done.emit(request, well)
        if well and isinstance(request, Load) and request.conversation is not None:
            self.done.emit(request.conversation, True)

    def _tell_what_has_begun(self) -> None:
        current = self._client.current
        if current is not None and current is not self._current:
            self._current = current
            self.begun.emit(current)

    def _ended(self, stopped: EngineStopped) -> None:
        self._went_well, self._current, self._patience_ends = True, None, None
        self.stopped.emit(str(stopped))

    def _patience_left(self) -> float | None:
        return None if self._patience_ends is None else max(0.0, self._patience_ends - time.monotonic())

    def _abandon(self) -> None:
        """A load that hears no cancel, deep inside a library, is ended with its process, which has nothing to lose."""
        self._patience_ends = None
        for request in self._client.abandon():
            self.failed.emit(request, Failed("Cancelled", "Stopped before it was finished."))
            self._finish(request, False)
