"""The thread that owns the engine process: the only room of the window that talks to the engine.

It starts the process, sends requests, turns what comes back into Qt signals, and starts a new process after a crash.
The window's own thread never waits for the pipe. Knows nothing of widgets.
"""

from __future__ import annotations

import multiprocessing
import queue
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

from PySide6.QtCore import QObject, QThread, Signal

from engine.errors import EngineStopped
from engine.events import Event, Failed, Loaded, LoadSettings
from engine.host import SESSION, Cancel, Done, EngineClient, Load, Request, Restore


@dataclass(frozen=True)
class _Open:
    """Load, in a new process where there is none, and give a conversation back to it."""

    settings: LoadSettings
    turns: tuple[tuple[str, str], ...]


class _Close:
    """End the process and the thread."""


class EngineThread(QThread):
    """Methods may be called from the window's thread and return at once; signals arrive there."""

    received = Signal(object)  # an event of engine.events, all but Failed
    failed = Signal(object, object)  # the request that failed (None: unknown), Failed
    done = Signal(object, bool)  # a request, after its last event, and whether it went well
    stopped = Signal(str)  # the process died: one sentence

    def __init__(
        self, session_factory: str = SESSION, log_folder: Path | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("engine")
        self._client = EngineClient(session_factory, log_folder)
        self._orders: queue.SimpleQueue[_Open | _Close | Request] = queue.SimpleQueue()
        self._bell, self._rope = multiprocessing.Pipe(duplex=False)  # pulled for every order
        self._turns: tuple[tuple[str, str], ...] = ()
        self._went_well = True  # what is being carried out has not failed

    # --- for the window's thread

    @property
    def pid(self) -> int | None:
        return self._client.pid

    def load(self, settings: LoadSettings, turns: tuple[tuple[str, str], ...] = ()) -> None:
        """Load a target, in a new process where there is none, and give it these (question, answer) pairs."""
        self._order(_Open(settings, turns))

    def send(self, request: Request) -> None:
        self._order(request)

    def cancel(self) -> None:
        self._order(Cancel())

    def close(self) -> None:
        """End the process and the thread; returns when both are gone."""
        if self._rope.closed:
            return
        if self.isRunning():
            self._order(_Close())
            self.wait()
        self._rope.close()
        self._bell.close()

    def _order(self, order: _Open | _Close | Request) -> None:
        self._orders.put(order)
        self._rope.send_bytes(b"!")

    # --- in the thread

    def run(self) -> None:
        try:
            while True:
                pipe = self._client.readable
                ready = wait([self._bell, pipe] if pipe else [self._bell])
                if self._bell in ready:
                    self._bell.recv_bytes()
                    order = self._orders.get()
                    if isinstance(order, _Close):
                        return
                    self._follow(order)
                elif ready:
                    self._receive()
        finally:
            self._client.close()

    def _follow(self, order: _Open | Request) -> None:
        try:
            if isinstance(order, _Open):
                if self._client.readable is None:
                    self._client.start()
                self._turns = order.turns
                self._client.send(Load(order.settings))
            elif self._client.readable is not None:  # an order may cross the news that the process has died
                self._client.send(order)
        except EngineStopped as stopped:
            self.stopped.emit(str(stopped))

    def _receive(self) -> None:
        try:
            current = self._client.current
            message: Event | Done | None = self._client.receive(0)
            if isinstance(message, Loaded) and self._turns:
                self._client.send(Restore(self._turns))
                self._turns = ()
        except EngineStopped as stopped:
            self.stopped.emit(str(stopped))
            return
        if isinstance(message, Done):
            self.done.emit(message.request, self._went_well)
            self._went_well = True
        elif isinstance(message, Failed):
            self._went_well = False
            self.failed.emit(current, message)
        elif message is not None:
            self.received.emit(message)
