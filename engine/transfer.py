"""Fetches one file of a Hub into the Hub cache, and goes on where it was broken off: by network, stop or power cut.

huggingface-hub throws a partial file away when a transfer breaks, so the transfer is ours; where files lie is its own.
The bytes go into a part beside the final name. After every few megabytes they are forced onto the disk, and a small
record says how far that is; whatever happens, no more than that is fetched again. The part gets its final name when its
SHA-256 is the one the Hub names. Two programs never write the same part: both take huggingface-hub's lock.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import filelock

from engine.errors import Cancelled, DownloadError, HubError
from engine.hub import Hub
from engine.hub_cache import content_is
from engine.hub_connection import BROKEN, TEMPORARY
from engine.remote_model import MOST_BYTES, RemoteFile

if TYPE_CHECKING:
    import httpx2

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True, slots=True)
class Rules:
    """How a transfer behaves; tests make it quicker."""

    flush_bytes: int = 4 << 20  # forced onto the disk after this many, and so fetched again at most
    spare_bytes: int = 64 << 20  # of the disk that are left to others
    waits_s: tuple[float, ...] = (1, 2, 4, 8, 15, 30, 60, 60, 60)  # before another try; as many without a new byte
    lock_s: float = 0.5  # between looks at a lock that another program holds


@dataclass(frozen=True, slots=True)
class Progress:
    """Of one file. `phase`: "waiting" (for another program), "downloading", "checking"."""

    phase: str
    done: int  # bytes
    notice: str | None = None  # something worth telling, such as that the server begins again


OnProgress = Callable[[Progress], None]


class Stop:
    """Asks a transfer to end, from any thread and at once: one that waits for bytes is woken."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._socket: Any = None

    def set(self) -> None:
        with self._lock:
            self._event.set()
            self._hang_up()

    def is_set(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        if self._event.is_set():
            raise Cancelled

    def wait(self, seconds: float) -> None:
        """Sleep that long. Raises Cancelled."""
        if self._event.wait(seconds):
            raise Cancelled

    @contextmanager
    def watching(self, response: httpx2.Response) -> Iterator[None]:
        stream = response.extensions.get("network_stream")
        with self._lock:
            self._socket = stream.get_extra_info("socket") if stream is not None else None
            if self._event.is_set():
                self._hang_up()
        try:
            yield
        finally:
            with self._lock:
                self._socket = None

    def _hang_up(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # of TCP, under any encryption


def fetch(
    hub: Hub,
    file: RemoteFile,
    on_progress: OnProgress | None = None,
    stop: Stop | None = None,
    rules: Rules | None = None,
) -> Path:
    """The path of the file in the cache, fetched unless it is there. Raises HubError, DownloadError, Cancelled."""
    transfer = _Transfer(hub, file, on_progress or (lambda _progress: None), stop or Stop(), rules or Rules())
    try:
        return transfer.run()
    except OSError as error:
        raise _disk_sentence(error, file, hub.cache.folder) from error


def discard(hub: Hub, file: RemoteFile) -> None:
    """Throw away what has been fetched of a file that is not whole. Raises DownloadError."""
    part = hub.cache.part(file)
    try:
        part.unlink(missing_ok=True)
        _record_of(part).unlink(missing_ok=True)
    except OSError as error:
        raise _disk_sentence(error, file, hub.cache.folder) from error


class _Transfer:
    def __init__(self, hub: Hub, file: RemoteFile, on_progress: OnProgress, stop: Stop, rules: Rules) -> None:
        self.hub, self.file, self.on_progress, self.stop, self.rules = hub, file, on_progress, stop, rules
        self.part = hub.cache.part(file)
        self.offset = 0  # bytes in the part
        self.flushed = 0  # of which this many are on the disk for sure
        self.etag: str | None = None  # of whoever sends the bytes; only good for asking whether they are still the same
        self.notice: str | None = None

    def run(self) -> Path:
        path = self.hub.cache.find(self.file)
        if path is not None:
            return path
        if self.file.size > MOST_BYTES:
            raise DownloadError(f"{self.file.name} claims to have {self.file.size} bytes, which no file has.")
        with self.locked():
            path = self.hub.cache.find(self.file)  # the one who had the lock may have fetched it
            if path is not None:
                return path
            self.part.parent.mkdir(parents=True, exist_ok=True)
            with open(self.part, "r+b" if self.part.exists() else "w+b") as out:
                self.take_up(out)
                self.check_room(self.file.size - self.offset)
                try:
                    self.fetch_all(out)
                finally:
                    self.flush(out)
                out.seek(0)
                good = content_is(self.file, out, self.checked, self.stop.check)
            if not good:
                discard(self.hub, self.file)
                raise DownloadError(
                    f"{self.file.name} was damaged on the way, or is not what the Hub says (its SHA-256 is another); "
                    "it was thrown away, download it again."
                )
            path = self.hub.cache.put(self.file)
            _record_of(self.part).unlink(missing_ok=True)
            return path

    def tell(self, phase: str) -> None:
        self.on_progress(Progress(phase, self.offset, self.notice))

    @contextmanager
    def locked(self) -> Iterator[None]:
        path = self.hub.cache.lock(self.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path)
        while True:
            self.stop.check()
            try:
                lock.acquire(timeout=0)
                break
            except filelock.Timeout:
                self.notice = "Another download of the same file is running; this one takes over what that leaves."
                self.tell("waiting")
                self.stop.wait(self.rules.lock_s)
        self.notice = None
        try:
            yield
        finally:
            lock.release()

    # --- what is there already

    def take_up(self, out: BinaryIO) -> None:
        """Go on at the last byte that is on the disk for sure."""
        record: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            record = json.loads(_record_of(self.part).read_text("utf-8"))
        flushed = record.get("flushed") if isinstance(record, dict) else None
        length = out.seek(0, os.SEEK_END)
        if isinstance(flushed, int) and record.get("size") == self.file.size and 0 <= flushed <= length:
            self.offset = self.flushed = flushed
            self.etag = record.get("etag") if isinstance(record.get("etag"), str) else None
        self.cut(out, self.offset)
        self.tell("downloading")

    def cut(self, out: BinaryIO, offset: int) -> None:
        out.seek(offset)
        out.truncate()
        self.offset, self.flushed = offset, min(self.flushed, offset)

    def flush(self, out: BinaryIO) -> None:
        out.flush()
        os.fsync(out.fileno())
        self.flushed = self.offset
        record = {"repository": self.file.repository, "file": self.file.name, "size": self.file.size}
        _write_record(self.part, record | {"etag": self.etag, "flushed": self.flushed})

    def check_room(self, wanted: int) -> None:
        free = shutil.disk_usage(self.part.parent).free
        if free < wanted + self.rules.spare_bytes:
            raise DownloadError(
                f"There is too little room for {self.file.name}: {size_text(wanted)} are still to come and "
                f"{size_text(free)} are free in {self.hub.cache.folder}; make room, or set HF_HOME to another folder."
            )

    # --- bytes

    def fetch_all(self, out: BinaryIO) -> None:
        """Ask until all bytes are there, again and again while new ones come."""
        tries, furthest = 0, self.offset
        while self.offset < self.file.size:
            self.stop.check()
            try:
                self.fetch_some(out)
                error = HubError(f"The connection to {self.hub.host} ends before the file does; try again.", BROKEN)
            except HubError as found:
                error = found
            if self.offset >= self.file.size:
                return
            self.stop.check()
            if self.offset > furthest:
                tries, furthest = 0, self.offset
            if error.kind not in TEMPORARY or tries >= len(self.rules.waits_s):
                raise error
            self.flush(out)
            wait = max(self.rules.waits_s[tries], error.wait_s or 0.0)
            self.notice = f"{error} It is tried again in {wait:.0f} seconds." if wait >= 1 else str(error)
            self.tell("downloading")
            self.stop.wait(wait)
            tries += 1

    def fetch_some(self, out: BinaryIO) -> None:
        """One request: as many bytes as the server gives."""
        validator = self.etag if self.offset else None
        with self.hub.open(self.file, self.offset, validator=validator) as response, self.stop.watching(response):
            self.begin(response, out)
            with self.hub.reading():
                for chunk in response.iter_raw():
                    self.stop.check()
                    self.write(chunk, out)

    def begin(self, response: httpx2.Response, out: BinaryIO) -> None:
        """See that what comes is what was asked for, and where it belongs."""
        self.require_same_content(response)
        etag = response.headers.get("etag")
        strong = etag if etag and not etag.startswith("W/") else None
        changed = self.offset > 0 and self.etag is not None and strong is not None and strong != self.etag
        if response.status_code == 206 and not changed:
            found = _CONTENT_RANGE.fullmatch(response.headers.get("content-range", ""))
            if found is None or int(found[1]) != self.offset or found[3] not in ("*", str(self.file.size)):
                raise HubError(f"The Hub sends another part of {self.file.name} than was asked for; try again later.")
            self.etag, self.notice = strong, None
            return
        had = self.offset
        self.cut(out, 0)
        if response.status_code != 200:  # a part of another content, or none: ask for the whole, with nothing in hand
            self.etag = None
            raise HubError(f"{self.file.name} has changed on the server; it is fetched from its beginning.", BROKEN)
        self.etag = strong
        self.notice = None
        if had and changed:
            self.notice = "The file has changed on the server, so it is fetched from its beginning."
        elif had:
            self.notice = "The server cannot go on in the middle of a file, so it is fetched from its beginning."

    def require_same_content(self, response: httpx2.Response) -> None:
        """The Hub's own answers, before it sends us elsewhere, name the content that they are about."""
        for answer in (*response.history, response):
            etag, size = answer.headers.get("x-linked-etag", "").strip('W/"'), answer.headers.get("x-linked-size", "")
            if (etag and etag != self.file.blob) or (size.isdigit() and int(size) != self.file.size):
                raise DownloadError(
                    f"{self.file.name} has changed on the Hub since it was looked up; look it up again."
                )

    def write(self, chunk: bytes, out: BinaryIO) -> None:
        chunk = chunk[: self.file.size - self.offset]  # what a server sends beyond the end is not the file's
        while chunk:  # no more than what may be fetched again is ever unsure
            piece = chunk[: self.flushed + self.rules.flush_bytes - self.offset]
            out.write(piece)
            self.offset += len(piece)
            chunk = chunk[len(piece) :]
            if self.offset - self.flushed >= self.rules.flush_bytes:
                self.flush(out)
                self.check_room(self.file.size - self.offset)
        self.tell("downloading")

    def checked(self, done: int) -> None:
        self.on_progress(Progress("checking", done))


# --- the record of a part ---------------------------------------------------------------------------------------------


def _record_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _write_record(part: Path, record: dict[str, Any]) -> None:
    """Whole or not at all: a record that was not written leaves the older one, which claims less."""
    path = _record_of(part)
    fresh = path.with_name(f"{path.name}.tmp")
    with fresh.open("w", encoding="utf-8") as file:
        json.dump(record, file)
        file.flush()
        os.fsync(file.fileno())  # else a power cut may leave an empty one under the name
    os.replace(fresh, path)


def _disk_sentence(error: OSError, file: RemoteFile, folder: Path) -> DownloadError:
    if error.errno in _FULL:
        return DownloadError(
            f"The disk is full ({folder}): make room and go on, or set HF_HOME to another folder. What has been "
            f"fetched of {file.name} is kept."
        )
    if error.errno in _NOT_OURS:
        return DownloadError(
            f"The models folder {folder} cannot be written by this user; change its permissions, or set HF_HOME to "
            "another folder."
        )
    return DownloadError(
        f"{file.name} cannot be written into {folder} ({error.strerror or error}); check the disk, or set HF_HOME to "
        "another folder."
    )


def size_text(count: int) -> str:
    """Bytes for people: "1.1 GB", "34 MB", "512 bytes". Thousands, as the Hub counts."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            value = count / factor
            return f"{value:.0f} {unit}" if value >= 99.5 or unit == "kB" else f"{value:.1f} {unit}"
    return f"{count} bytes"
