"""The engine in a child process, and the client that owns it.

A ggml assertion or a machine out of memory takes its whole process along; with the engine in a process of its own, the
window and its text survive. The child runs one session and answers requests one after another; a thread of it reads the
pipe, so that `Cancel` reaches a request that is still running, and ends the process when the pipe closes. Only the
objects declared here and in `engine.events` travel on the pipe: what libraries print goes to a log file, whose last
lines become part of the reason when the process dies.

Knows nothing of windows, of Qt, or of what the session computes.
"""

from __future__ import annotations

import faulthandler
import importlib
import multiprocessing
import multiprocessing.connection
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.crash import exit_reason, log_tail, new_log_file
from engine.errors import Cancelled, DFlashChatError, EngineStopped
from engine.events import Answered, Event, Failed, LoadSettings, Mode, SamplerSettings

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

SESSION = "engine.session:Session.open"


# --- requests ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """Load a target. Ends with `Loaded` or `Failed`."""

    settings: LoadSettings = field(default_factory=LoadSettings)


@dataclass(frozen=True, slots=True)
class Ask:
    """Answer a prompt as the next turn. Ends with `Answered` or `Failed`."""

    prompt: str
    mode: Mode = Mode.BASELINE
    sampler: SamplerSettings = field(default_factory=SamplerSettings)
    max_tokens: int | None = None
    draft_length: int | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop whatever was asked for before this and has not ended. Has no end of its own."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """Keep only the first `turns` question/answer pairs."""

    turns: int


@dataclass(frozen=True, slots=True)
class Restore:
    """Take these (question, answer) texts as the conversation so far."""

    turns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Reset:
    """Start an empty conversation."""

    system: str | None = None


@dataclass(frozen=True, slots=True)
class Unload:
    """Give the target's and the drafters' memory back."""


@dataclass(frozen=True, slots=True)
class Quit:
    """Stop what is running and end the process."""


Request = Load | Ask | Cancel | Rewind | Restore | Reset | Unload | Quit


@dataclass(frozen=True, slots=True)
class Done:
    """`request` has been dealt with, well or not: follows its last event. Sent for every request but `Cancel`."""

    request: Request


# --- the child --------------------------------------------------------------------------------------------------------


def serve(connection: Connection, session_factory: str, log_file: str) -> None:
    """The child's main function."""
    _print_to(log_file)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in a terminal reaches the whole group; the parent decides
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # an abort would start a debugger first
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # to write all of a model to disk would take minutes
    _Host(connection, session_factory).run()


class _Host:
    """Requests in, events out, one request at a time."""

    def __init__(self, connection: Connection, session_factory: str) -> None:
        self._connection = connection
        self._session_factory = session_factory
        self._session: Any = None
        self._requests: queue.SimpleQueue[tuple[Request, threading.Event]] = queue.SimpleQueue()
        self._unfinished: deque[threading.Event] = deque()  # one cancel flag per request that has not ended
        self._queueing = threading.Lock()
        self._writing = threading.Lock()

    def run(self) -> None:
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        while True:
            request, cancel = self._requests.get()
            if isinstance(request, Quit):
                self._close_session()
                return
            try:
                self._carry_out(request, cancel)
            except Cancelled:
                self._emit(Failed("Cancelled", "Stopped before it was finished."))
            except DFlashChatError as error:
                self._emit(Failed(type(error).__name__, str(error), traceback.format_exc()))
            except Exception as error:  # whatever it is, the process goes on and the person is told
                traceback.print_exc()
                sentence = (
                    f"The engine met an error it does not know ({type(error).__name__}: {error}); please report it."
                )
                self._emit(Failed(type(error).__name__, sentence, traceback.format_exc()))
            with self._queueing:
                self._unfinished.popleft()
            self._emit(Done(request))

    def _read(self) -> None:
        while True:
            try:
                request = self._connection.recv()
            except (EOFError, OSError):
                os._exit(0)  # nobody is listening any more; the main thread may be deep inside a library
            with self._queueing:
                if isinstance(request, (Cancel, Quit)):
                    for flag in self._unfinished:
                        flag.set()
                if not isinstance(request, Cancel):
                    flag = threading.Event()
                    self._unfinished.append(flag)
                    self._requests.put((request, flag))

    def _carry_out(self, request: Request, cancel: threading.Event) -> None:
        if isinstance(request, Load):
            self._close_session()
            self._session = _import(self._session_factory)(request.settings, self._emit, cancel)
        elif isinstance(request, Unload):
            self._close_session()
        elif self._session is None:
            raise DFlashChatError("No model is loaded; load one first.")
        elif isinstance(request, Ask):
            self._answer(request, cancel)
        elif isinstance(request, Rewind):
            self._session.rewind(request.turns)
        elif isinstance(request, Restore):
            self._session.restore(request.turns)
        elif isinstance(request, Reset):
            self._session.reset(request.system)
        else:
            raise TypeError(f"not a request: {request!r}")

    def _answer(self, request: Ask, cancel: threading.Event) -> None:
        event: Event | None = None
        for event in self._session.ask(
            request.prompt,
            mode=request.mode,
            sampler=request.sampler,
            max_tokens=request.max_tokens,
            draft_length=request.draft_length,
            cancel=cancel,
        ):
            self._emit(event)
        if not isinstance(event, Answered):
            raise RuntimeError("the answer had no end")

    def _emit(self, message: Event | Done) -> None:
        with self._writing:
            try:
                self._connection.send(message)
            except OSError:
                os._exit(0)

    def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _import(name: str) -> Callable[..., Any]:
    """`package.module:Class.method` -> the object."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def _print_to(log_file: str) -> None:
    """Send what this process prints, C libraries included, to the log file."""
    log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
    faulthandler.enable(2)


# --- the client -------------------------------------------------------------------------------------------------------


class EngineClient:
    """Starts the engine process, sends it requests and receives its events. Belongs to one thread.

    `receive` and `send` raise `EngineStopped` once the process has died; `start` may then be called again.
    """

    def __init__(self, session_factory: str = SESSION, log_folder: Path | None = None) -> None:
        self._session_factory = session_factory
        self._log_folder = log_folder
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._waiting: deque[Request] = deque()
        self.log_file: Path | None = None
        self.exit_reason: str | None = None  # one sentence, once the process has died by itself

    def start(self) -> None:
        if self._process is not None:
            raise RuntimeError("the engine process is already running")
        self.exit_reason = None
        self._waiting.clear()
        self.log_file = new_log_file(self._log_folder)
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=serve, args=(theirs, self._session_factory, str(self.log_file)), name="engine", daemon=True
        )
        try:
            process.start()
        except OSError as error:
            ours.close()
            raise EngineStopped(f"The engine process could not be started ({error}).") from error
        finally:
            theirs.close()
        self._process, self._connection = process, ours

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    @property
    def current(self) -> Request | None:
        """The request being carried out: the oldest that has not been `Done`. A `Failed` belongs to it."""
        return self._waiting[0] if self._waiting else None

    @property
    def readable(self) -> Connection | None:
        """What `multiprocessing.connection.wait` can wait for, together with other things; None: no process."""
        return self._connection

    def send(self, request: Request) -> None:
        connection = self._open_connection()
        try:
            connection.send(request)
        except OSError:
            raise self._stopped() from None
        if not isinstance(request, (Cancel, Quit)):
            self._waiting.append(request)

    def receive(self, timeout: float | None = None) -> Event | Done | None:
        """The next event; None after `timeout` seconds without one (`timeout=None`: wait without end)."""
        connection = self._open_connection()
        try:
            if not connection.poll(timeout):
                return None
            message: Event | Done = connection.recv()
        except (EOFError, OSError):
            raise self._stopped() from None
        if isinstance(message, Done):
            self._waiting.popleft()
        return message

    def close(self, patience: float = 3.0) -> None:
        """End the process: politely, and after `patience` seconds by force. Returns when it is gone."""
        process, connection = self._process, self._connection
        if process is None or connection is None:
            return
        end = time.monotonic() + patience
        try:
            connection.send(Quit())
            while connection.poll(max(0.0, end - time.monotonic())):
                connection.recv()  # a child that blocks on a full pipe would never come to the Quit
        except (EOFError, OSError):
            pass
        connection.close()
        process.join(max(0.1, end - time.monotonic()))
        self._bury(process)

    def _open_connection(self) -> Connection:
        if self._connection is None:
            raise EngineStopped(self.exit_reason or "The engine has not been started.")
        return self._connection

    def _stopped(self) -> EngineStopped:
        process, connection = self._process, self._connection
        assert process is not None and connection is not None
        connection.close()
        process.join(30.0)  # its end of the pipe is closed, so it is ending; to give gigabytes back takes a moment
        self.exit_reason = exit_reason(process.exitcode, log_tail(self.log_file))
        self._bury(process)
        return EngineStopped(self.exit_reason)

    def _bury(self, process: SpawnProcess) -> None:
        if process.is_alive():
            process.kill()
            process.join()
        process.close()
        self._process = self._connection = None
        self._waiting.clear()

    def __enter__(self) -> EngineClient:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
