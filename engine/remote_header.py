"""Reads the header of a GGUF file on a Hub, and no more of the file than it must.

Only its end says how long a header is, so it is fetched in ranges that grow with what has been read: the whole costs at
most twice the header. Where a server ignores ranges, its answer is read as a stream, and dropped when the header is
complete.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from engine.errors import Cancelled, HubError
from engine.gguf_file import Header, read_header
from engine.remote_model import RemoteFile

if TYPE_CHECKING:
    from engine.hub import Hub

FIRST_BYTES = 16 << 10  # less than the header of any model with a real vocabulary
MOST_FIRST_BYTES = 1 << 20
OnBytes = Callable[[int], None]


def read_remote_header(
    hub: Hub, file: RemoteFile, on_bytes: OnBytes | None = None, cancel: threading.Event | None = None
) -> Header:
    """`on_bytes` hears how much has been fetched. Raises HubError, ModelFileError, Cancelled."""
    with _Ranges(hub, file, on_bytes or (lambda _count: None), cancel or threading.Event()) as stream:
        return read_header(stream, name=file.name, file_bytes=file.size)  # type: ignore[arg-type]


class _Ranges(ExitStack):
    """A stream over HTTP ranges, each half as long as all before it, or as long while they are short."""

    def __init__(self, hub: Hub, file: RemoteFile, on_bytes: OnBytes, cancel: threading.Event) -> None:
        super().__init__()
        self._hub, self._file, self._on_bytes, self._cancel = hub, file, on_bytes, cancel
        self._fetched = 0
        self._whole: Any = None  # the body of a server that ignores ranges, as an iterator

    def read(self, _wanted: int = -1) -> bytes:
        """The next bytes, as many as suit; none at the end of the file."""
        if self._cancel.is_set():
            raise Cancelled
        if self._fetched >= self._file.size:
            return b""
        data = self._next()
        self._fetched += len(data)
        self._on_bytes(self._fetched)
        return data

    def _next(self) -> bytes:
        if self._whole is not None:
            with self._hub.reading():
                return next(self._whole, b"")
        first = min(max(self._file.size >> 10, FIRST_BYTES), MOST_FIRST_BYTES)
        grown = self._fetched if self._fetched < MOST_FIRST_BYTES else self._fetched // 2
        end = min(self._fetched + max(grown, first), self._file.size)
        opened = self.enter_context(ExitStack())
        response = opened.enter_context(self._hub.open(self._file, self._fetched, end))
        if response.status_code == 206:
            if not response.headers.get("content-range", "").startswith(f"bytes {self._fetched}-"):
                raise HubError(f"The Hub sends another part of {self._file.name} than was asked for; try again later.")
            buffer = io.BytesIO()
            with self._hub.reading():
                for chunk in response.iter_raw():
                    buffer.write(chunk)
                    if buffer.tell() > end - self._fetched:
                        raise HubError(f"The Hub sends more of {self._file.name} than was asked for; try again.")
                    if self._cancel.is_set():
                        raise Cancelled
            opened.close()
            return buffer.getvalue()
        if response.status_code == 416 or self._fetched:
            raise HubError(f"{self._file.name} is shorter than the Hub says, or changes just now; try again.")
        self._whole = response.iter_raw()
        return next(self._whole, b"")
