"""The engine in a child process, and the client that owns it.

A ggml assertion or a machine out of memory takes its whole process along; with the engine in a process of its own, the
window and its text survive. The child runs one session and answers requests one after another; a thread of it reads the
pipe, so that `Cancel` reaches a request that is still running, and ends the process when the pipe closes. Only the
objects of `engine.requests` and `engine.events` travel on the pipe: what libraries print goes to a log file, whose last
lines become part of the reason when the process dies.

Several chats can share the engine: `engine/requests.py` says how.

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
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from engine.crash import exit_reason, log_tail, new_log_file
from engine.errors import Cancelled, DFlashChatError, EngineStopped
from engine.events import Answered, Counted, DevicesListed, Event, Failed, ModesFound
from engine.requests import (
    ASIDE,
    Ask,
    Cancel,
    Continue,
    Count,
    Done,
    FindDrafters,
    ListDevices,
    Load,
    Quit,
    Request,
    Reset,
    Restore,
    Rewind,
    Unload,
    Work,
)

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

__all__ = [
    "SESSION",
    "Ask",
    "Cancel",
    "Continue",
    "Count",
    "Done",
    "EngineClient",
    "FindDrafters",
    "ListDevices",
    "Load",
    "Quit",
    "Request",
    "Reset",
    "Restore",
    "Rewind",
    "Unload",
    "Work",
    "serve",
]

SESSION = "engine.session:Session.open"


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
        self._unfinished: deque[tuple[Request, threading.Event]] = deque()  # and their cancel flags, the oldest first
        self._counts: queue.SimpleQueue[Count] = queue.SimpleQueue()
        self._queueing = threading.Lock()
        self._writing = threading.Lock()
        self._counting = threading.Lock()  # held while the session is used for it, so that it is not closed meanwhile

    def run(self) -> None:
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        threading.Thread(target=self._count, name="counts", daemon=True).start()
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
            if isinstance(request, Count):
                self._counts.put(request)
                continue
            with self._queueing:
                if isinstance(request, (Cancel, Quit)):
                    for other, flag in self._unfinished:
                        if isinstance(request, Quit) or request.tag in (None, getattr(other, "tag", None)):
                            flag.set()
                if not isinstance(request, Cancel):
                    flag = threading.Event()
                    self._unfinished.append((request, flag))
                    self._requests.put((request, flag))

    def _count(self) -> None:
        """In a thread of its own: an answer may take minutes, and to count a long text may delay a `Cancel`."""
        while True:
            question = self._counts.get()
            with self._counting:
                try:
                    tokens = self._session.count(question.text) if self._session is not None else None
                except DFlashChatError:  # no text; who asks it hears so
                    tokens = None
                except Exception:  # this thread must go on: the next question is answered
                    traceback.print_exc()
                    tokens = None
            self._emit(Counted(tokens, question.tag))

    def _carry_out(self, request: Request, cancel: threading.Event) -> None:
        if isinstance(request, Load):
            self._close_session()
            self._session = _import(self._session_factory)(request.settings, self._emit, cancel)
            if request.conversation is not None:
                self._session.restore(request.conversation.turns, request.conversation.system)
        elif isinstance(request, Unload):
            self._close_session()
        elif isinstance(request, ListDevices):
            self._emit(DevicesListed(tuple(_import("engine.devices:devices")())))
        elif self._session is None:
            raise DFlashChatError("No model is loaded; load one first.")
        elif isinstance(request, (Ask, Continue)):
            self._answer(request, cancel)
        elif isinstance(request, Work):
            for event in self._session.work(request.job, cancel):
                self._emit(event)
        elif isinstance(request, FindDrafters):
            self._emit(ModesFound(self._session.find_drafters(request.given)))
        elif isinstance(request, Rewind):
            self._session.rewind(request.turns)
        elif isinstance(request, Restore):
            self._session.restore(request.turns, request.system)
        elif isinstance(request, Reset):
            self._session.reset(request.system)
        else:
            raise TypeError(f"not a request: {request!r}")

    def _answer(self, request: Ask | Continue, cancel: threading.Event) -> None:
        session = self._session
        answer = partial(session.ask, request.prompt) if isinstance(request, Ask) else session.go_on
        event: Event | None = None
        for event in answer(
            mode=request.mode,
            sampler=request.sampler,
            max_tokens=request.max_tokens,
            draft_length=request.draft_length,
            candidates=request.candidates,
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
        with self._counting:
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
        if not isinstance(request, ASIDE):
            self._waiting.append(request)

    def receive(self, timeout: float | None = None) -> Event | Done | None:
        """The next event; None after `timeout` seconds without one (`timeout=None`: wait without end).

        When all that was asked has been done and the last of it was `Unload`, the process has been ended: what a
        library keeps for the next time goes back, too.
        """
        connection = self._open_connection()
        try:
            if not connection.poll(timeout):
                return None
            message: Event | Done = connection.recv()
        except (EOFError, OSError):
            raise self._stopped() from None
        if isinstance(message, Done):
            self._waiting.popleft()
            if isinstance(message.request, Unload) and not self._waiting:
                self.close()
        return message

    def abandon(self) -> tuple[Request, ...]:
        """End the process at once, whatever it does. What had been asked for and has not ended, the oldest first."""
        process, connection = self._process, self._connection
        if process is None or connection is None:
            return ()
        unfinished = tuple(self._waiting)
        self._bury(process, connection)
        return unfinished

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
        process.join(max(0.1, end - time.monotonic()))
        self._bury(process, connection)

    def _open_connection(self) -> Connection:
        if self._connection is None:
            raise EngineStopped(self.exit_reason or "The engine has not been started.")
        return self._connection

    def _stopped(self) -> EngineStopped:
        process, connection = self._process, self._connection
        assert process is not None and connection is not None
        process.join(30.0)  # its end of the pipe is closed, so it is ending; to give gigabytes back takes a moment
        self.exit_reason = exit_reason(process.exitcode, log_tail(self.log_file))
        self._bury(process, connection)
        return EngineStopped(self.exit_reason)

    def _bury(self, process: SpawnProcess, connection: Connection) -> None:
        if process.is_alive():  # it would end when the pipe closes, but leave its own processes behind
            with suppress(psutil.NoSuchProcess):
                for helper in psutil.Process(process.pid).children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        helper.kill()
            process.kill()
            process.join()
        connection.close()
        process.close()
        self._process = self._connection = None
        self._waiting.clear()

    def __enter__(self) -> EngineClient:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
