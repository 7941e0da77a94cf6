"""The queue of downloads: one after another, in a thread of its own, with pause, resume, cancel, speed and time left.

Whoever shows it subscribes and gets a `Download` whenever one has changed: plain values, no Qt. The list survives the
program's end; what was fetched stays on the disk until it is discarded, and is gone on with.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import platformdirs

from engine.errors import Cancelled, DFlashChatError, HubError
from engine.hub import Hub
from engine.remote_model import RemoteFile, RemoteModel
from engine.transfer import Progress, Rules, Stop, discard, fetch

log = logging.getLogger(__name__)

TELL_S = 0.1  # between two notices of mere figures
SPEED_S = 5.0  # over which the speed is taken


class State(str, Enum):
    WAITING = "waiting"  # for its turn, or for another program that fetches the same
    RUNNING = "downloading"
    CHECKING = "checking"  # its SHA-256
    PAUSED = "paused"
    FAILED = "failed"  # `sentence` says why; it can be resumed
    DONE = "done"
    CANCELLED = "cancelled"

    @property
    def active(self) -> bool:
        return self in (State.WAITING, State.RUNNING, State.CHECKING)


@dataclass(frozen=True, slots=True)
class Download:
    """One download as it stands now."""

    id: str
    model: RemoteModel
    state: State
    done: int  # bytes, of all its files
    bytes_per_second: float | None = None
    seconds_left: float | None = None
    sentence: str | None = None  # why it failed, or something worth telling
    link: str | None = None  # a page where a person can do something about a failure
    error_kind: str | None = None  # of the HubError: "gated", "token", "offline", …
    path: str | None = None  # of the (first) file, when done

    @property
    def total(self) -> int:
        return self.model.size

    @property
    def fraction(self) -> float:
        return self.done / self.total if self.total else 1.0


Listener = Callable[[Download], None]


def queue_file() -> Path:
    """Where the list is kept between two starts."""
    return Path(platformdirs.user_data_dir("dflash-chat", appauthor=False)) / "downloads.json"


@dataclass
class _Job:
    now: Download
    stop: Stop = field(default_factory=Stop)
    then: State = State.PAUSED  # what it becomes when it has been stopped
    discarded: bool = False  # what was fetched goes with it


class DownloadQueue:
    """All methods may be called from any thread and return at once; only `close` and `wait` take their time.

    Listeners are called with the queue's lock held: they only pass on what they hear.
    """

    def __init__(
        self, hub: Hub, *, record: Path | None = None, rules: Rules | None = None, resume: bool = False
    ) -> None:
        """`record`: the file in which the list survives (see `queue_file`); None keeps none.

        `resume`: go on at once with what the last program left; otherwise it is there, paused.
        """
        self._hub, self._record, self._rules = hub, record, rules
        self._jobs: dict[str, _Job] = {}  # in the order in which they are fetched
        self._listeners: list[Listener] = []
        self._changed = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._working = False
        self._closing = False
        self._restore(State.WAITING if resume else State.PAUSED)

    # --- for those who show it

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear of every change, in the thread in which it happens, mostly the queue's own. Returns how to stop that."""
        with self._changed:
            self._listeners.append(listener)

        def unsubscribe() -> None:
            with self._changed, suppress(ValueError):
                self._listeners.remove(listener)

        return unsubscribe

    def downloads(self) -> tuple[Download, ...]:
        """All of them in their order, finished ones too, until they are removed."""
        with self._changed:
            return tuple(job.now for job in self._jobs.values())

    def get(self, id: str) -> Download | None:
        with self._changed:
            return self._jobs[id].now if id in self._jobs else None

    # --- what a user can do

    def add(self, model: RemoteModel, *, first: bool = False) -> str:
        """Queue a model, before all others that wait if `first`; its id. One that is there already goes on."""
        with self._changed:
            id = model.key
            job = self._jobs.get(id)
            if job is None:
                done = sum(self._hub.cache.fetched(file) for file in model.files)
                job = self._jobs[id] = _Job(Download(id, model, State.PAUSED, done))
            if first:
                self._jobs = {id: self._jobs.pop(id), **self._jobs}
        self.resume(id)
        return id

    def pause(self, id: str) -> None:
        self._end(id, State.PAUSED)

    def cancel(self, id: str, *, discarded: bool = False) -> None:
        """Stop it. What was fetched stays, so that the same download goes on another time, unless it is `discarded`."""
        with self._changed:
            if id in self._jobs:
                self._jobs[id].discarded = discarded
            self._end(id, State.CANCELLED)

    def resume(self, id: str) -> None:
        """Go on with one that is paused, failed or cancelled."""
        with self._changed:
            job = self._jobs.get(id)
            if job is None or (job.now.state.active and not job.stop.is_set()):
                return
            if job.now.model.problem is not None:
                self._set(job, state=State.FAILED, sentence=job.now.model.problem)
                return
            job.stop, job.then, job.discarded = Stop(), State.PAUSED, False
            self._set(job, state=State.WAITING, sentence=None, link=None, error_kind=None, path=None)
            self._start()

    def remove(self, id: str) -> None:
        """Take it off the list; stops it. What was fetched stays on the disk."""
        self._end(id, State.CANCELLED)
        with self._changed:
            self._jobs.pop(id, None)
            self._write()

    def wait(self, id: str, timeout: float | None = None) -> Download | None:
        """Until it is no longer active. For programs without a window."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while (job := self._jobs.get(id)) is not None and job.now.state.active:
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    break
                self._changed.wait(left)
            return job.now if job is not None else None

    def close(self) -> None:
        """Stop all of it and end the thread. What was under way waits for the next start."""
        with self._changed:
            self._closing = True
            for job in self._jobs.values():
                if job.now.state.active and not job.stop.is_set():  # else it is ending as the user wants it
                    job.then = State.WAITING
                    job.stop.set()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._write()

    # --- the thread

    def _start(self) -> None:
        if not self._working and not self._closing:
            self._working = True
            self._thread = threading.Thread(target=self._work, name="downloads", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                job = next((job for job in self._jobs.values() if job.now.state is State.WAITING), None)
                if self._closing or job is None:
                    self._working = False
                    return
                stop = job.stop
            try:
                self._fetch(job, stop)
            except Exception:
                log.exception("The download of %s", job.now.id)
                self._finish(
                    job, stop, State.FAILED, sentence="The download met an error that the program does not know."
                )

    def _fetch(self, job: _Job, stop: Stop) -> None:
        """All files of one model, in this thread."""
        model, rate, paths = job.now.model, _Rate(), []
        before, latest = 0, job.now.done
        ended = threading.Event()

        def progress(file: RemoteFile, progress: Progress) -> None:
            nonlocal latest
            state = _PHASES[progress.phase]
            with self._changed:
                latest = before + (file.size if progress.phase == "checking" else progress.done)
                if state is State.RUNNING:
                    rate.add(time.monotonic(), latest)
                if (state, progress.notice) != (job.now.state, job.now.sentence):
                    tell(state, progress.notice)

        def tell(state: State, notice: str | None) -> None:
            if job.stop is not stop or stop.is_set():  # then only its end is told
                return
            speed = rate.per_second(time.monotonic()) if state is State.RUNNING else None
            left = (model.size - latest) / speed if speed else None
            if (state, notice, latest, speed) != (
                job.now.state, job.now.sentence, job.now.done, job.now.bytes_per_second,
            ):  # fmt: skip
                self._set(job, state=state, done=latest, sentence=notice, bytes_per_second=speed, seconds_left=left)

        def tell_figures() -> None:
            """From a thread of its own: who waits for bytes that do not come cannot say so."""
            while not ended.wait(TELL_S):
                with self._changed:
                    tell(job.now.state, job.now.sentence)

        telling = threading.Thread(target=tell_figures, name="download figures", daemon=True)
        telling.start()
        try:
            try:
                for file in model.files:
                    hear = partial(progress, file)
                    paths.append(fetch(self._hub, file, hear, stop, self._rules))
                    before += file.size
            finally:
                ended.set()
                telling.join()
        except Cancelled:
            self._finish(job, stop, job.then, done=latest)
        except HubError as error:
            self._finish(
                job, stop, State.FAILED, done=latest, sentence=str(error), link=error.link, error_kind=error.kind
            )
        except DFlashChatError as error:
            self._finish(job, stop, State.FAILED, done=latest, sentence=str(error))
        else:
            self._finish(job, stop, State.DONE, done=model.size, path=str(paths[0]))

    def _finish(self, job: _Job, stop: Stop, state: State, **changes: Any) -> None:
        with self._changed:
            if job.stop is stop:  # else it was resumed meanwhile, and waits for its turn
                if state is State.CANCELLED:
                    changes |= self._discard(job)
                self._set(job, state=state, bytes_per_second=None, seconds_left=None, **{"sentence": None} | changes)

    def _end(self, id: str, state: State) -> None:
        with self._changed:
            job = self._jobs.get(id)
            if job is None or job.now.state is State.DONE:
                return
            if job.now.state in (State.RUNNING, State.CHECKING) or (job.now.state.active and job.now.sentence):
                job.then = state
                job.stop.set()  # the thread sets the state when it has really stopped
            elif job.now.state.active or state is State.CANCELLED:
                job.then = state
                job.stop.set()
                changes = self._discard(job) if state is State.CANCELLED else {}
                self._set(job, state=state, sentence=None, **changes)

    def _discard(self, job: _Job) -> dict[str, Any]:
        """Throw away what was fetched, if that is wanted; what has changed by it."""
        if not job.discarded:
            return {}
        files = job.now.model.files
        for file in files:
            with suppress(DFlashChatError):
                discard(self._hub, file)
        return {"done": sum(self._hub.cache.fetched(file) for file in files)}

    def _set(self, job: _Job, **changes: Any) -> None:
        """Change what is shown of a download, and tell, unless it was removed meanwhile."""
        before = job.now
        job.now = replace(before, **changes)
        self._changed.notify_all()
        if self._jobs.get(job.now.id) is not job:
            return
        if job.now.state is not before.state:
            self._write()
        for listener in tuple(self._listeners):
            try:
                listener(job.now)
            except Exception:
                log.exception("A listener of the downloads")

    # --- the list on the disk

    def _write(self) -> None:
        """Whole or not at all. A list that cannot be written is no reason to stop a download."""
        if self._record is None:
            return
        with self._changed:
            kept = [
                {"files": [asdict(file) for file in job.now.model.files], "state": _kept(job.now.state).value}
                for job in self._jobs.values()
                if job.now.state not in (State.DONE, State.CANCELLED)
            ]
        try:
            self._record.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._record.with_name(f"{self._record.name}.{os.getpid()}.tmp")
            fresh.write_text(json.dumps({"downloads": kept}, indent=1), "utf-8")
            os.replace(fresh, self._record)
        except OSError as error:
            log.warning("The list of downloads cannot be written: %s", error)

    def _restore(self, waiting: State) -> None:
        """What is damaged in the list is left out."""
        try:
            kept = json.loads(self._record.read_text("utf-8"))["downloads"] if self._record is not None else []
        except (OSError, ValueError, KeyError, TypeError):
            return
        for entry in kept if isinstance(kept, list) else []:
            try:
                model = RemoteModel(tuple(_file(given) for given in entry["files"]))
                state = waiting if entry["state"] == State.WAITING.value else State(entry["state"])
                key, done = model.key, sum(self._hub.cache.fetched(file) for file in model.files)
            except (DFlashChatError, KeyError, TypeError, ValueError, IndexError):
                continue
            self._jobs[key] = _Job(Download(key, model, state, done))
        if any(job.now.state is State.WAITING for job in self._jobs.values()):
            with self._changed:
                self._start()


_PHASES = {"waiting": State.WAITING, "downloading": State.RUNNING, "checking": State.CHECKING}


def _kept(state: State) -> State:
    """What a state is at the next start."""
    return State.WAITING if state.active else State.PAUSED


def _file(given: dict[str, Any]) -> RemoteFile:
    file = RemoteFile(**given)
    names = (file.repository, file.name, file.commit, file.blob)
    if not all(isinstance(name, str) for name in names) or not isinstance(file.size, int) or file.size < 0:
        raise ValueError("no file")
    return file


class _Rate:
    """Bytes per second over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, now: float, done: int) -> None:
        if self._seen and done < self._seen[-1][1]:  # begun again
            self._seen.clear()
        if self._seen and now < self._seen[-1][0] + TELL_S / 2:  # as often as it is told is enough
            return
        self._seen.append((now, done))
        while self._seen[0][0] < now - SPEED_S and len(self._seen) > 2:
            self._seen.popleft()

    def per_second(self, now: float) -> float | None:
        """None as long as it is not known, and when nothing has come for a while."""
        if len(self._seen) < 2 or self._seen[-1][0] - self._seen[0][0] < 0.3 or now - self._seen[-1][0] > SPEED_S:
            return None
        return (self._seen[-1][1] - self._seen[0][1]) / (self._seen[-1][0] - self._seen[0][0])
