"""Writes a GGUF file, version 3, one tensor after another, so that no more than a few rows are in memory.

Written here instead of taken from a library because the target's vocabulary is passed on byte by byte (token texts need
not be UTF-8, and a list of 250,000 strings takes the usual writer seconds), and because the data are streamed, with
progress and a way to stop. Knows the container only; its reader is `engine/gguf_file.py`.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from engine.gguf_file import DEFAULT_ALIGNMENT, StringArray
from engine.tensor_types import TENSOR_TYPES

_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY, _UINT64, _INT64 = 4, 5, 6, 7, 8, 9, 10, 11
_ARRAY_TYPES = {"u1": 0, "i1": 1, "u2": 2, "i2": 3, "u4": 4, "i4": 5, "f4": 6, "b1": 7, "u8": 10, "i8": 11, "f8": 12}


@dataclass(frozen=True, slots=True)
class NewTensor:
    """A tensor to be written: `shape` in NumPy's order, `type` ggml's id, `data` yields its bytes in order."""

    name: str
    shape: tuple[int, ...]
    type: int
    data: Callable[[], Iterable[NDArray[Any]]]

    @property
    def nbytes(self) -> int:
        kind = TENSOR_TYPES[self.type]
        return math.prod(self.shape) // kind.block * kind.block_bytes


def write_gguf(
    path: Path,
    metadata: Mapping[str, Any],
    tensors: Sequence[NewTensor],
    on_bytes: Callable[[int], None] = lambda _written: None,
) -> None:
    """Write the file; `on_bytes` hears how many bytes of data are written so far, and may raise to stop.

    Metadata values: bool, int, float (as float32), str, a list of str, a NumPy array or a `StringArray`.
    Raises OSError, and what `data` and `on_bytes` raise; then a part of the file is left behind.
    """
    with open(path, "wb") as file:
        file.write(b"".join(_header(metadata, tensors)))
        _pad(file)
        written = 0
        for tensor in tensors:
            begin = file.tell()
            for piece in tensor.data():
                file.write(np.ascontiguousarray(piece).data)
                written += piece.nbytes
                on_bytes(written)
            if file.tell() - begin != tensor.nbytes:
                raise ValueError(f"the tensor {tensor.name} has {file.tell() - begin} bytes, not {tensor.nbytes}")
            _pad(file)
        file.flush()
        os.fsync(file.fileno())


def header_bytes(metadata: Mapping[str, Any], tensors: Sequence[NewTensor]) -> bytes:
    """The header alone, as it will stand in the file: for a look at it before the data are written."""
    return b"".join(_header(metadata, tensors))


def _header(metadata: Mapping[str, Any], tensors: Sequence[NewTensor]) -> Iterable[bytes]:
    yield struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        yield _text(key)
        yield from _value(value)
    offset = 0
    for tensor in tensors:
        yield _text(tensor.name)
        yield struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *reversed(tensor.shape))
        yield struct.pack("<IQ", tensor.type, offset)
        offset += -(-tensor.nbytes // DEFAULT_ALIGNMENT) * DEFAULT_ALIGNMENT


def _value(value: Any) -> Iterable[bytes]:
    if isinstance(value, bool):
        yield struct.pack("<I?", _BOOL, value)
    elif isinstance(value, int):
        kind, form = (_INT64, "q") if value < -(1 << 31) else (_INT32, "i") if value < 0 else (_UINT32, "I")
        if value >= 1 << 32:
            kind, form = _UINT64, "Q"
        yield struct.pack(f"<I{form}", kind, value)
    elif isinstance(value, float):
        yield struct.pack("<If", _FLOAT32, value)
    elif isinstance(value, str):
        yield struct.pack("<I", _STRING) + _text(value)
    elif isinstance(value, StringArray):
        yield struct.pack("<IIQ", _ARRAY, _STRING, len(value))
        yield value.raw
    elif isinstance(value, np.ndarray):
        kind = _ARRAY_TYPES[f"{value.dtype.kind}{value.dtype.itemsize}"]
        yield struct.pack("<IIQ", _ARRAY, kind, len(value))
        yield value.astype(value.dtype.newbyteorder("<")).tobytes()
    elif isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        yield struct.pack("<IIQ", _ARRAY, _STRING, len(value))
        yield b"".join(_text(entry) for entry in value)
    else:
        raise TypeError(f"a GGUF file cannot hold a value of type {type(value).__name__}")


def _text(text: str) -> bytes:
    raw = text.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def _pad(file: BinaryIO) -> None:
    file.write(bytes(-file.tell() % DEFAULT_ALIGNMENT))
