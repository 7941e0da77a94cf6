"""Reads the header of a GGUF file: its metadata and where each tensor lies. The file is untrusted input.

Pure Python and NumPy, no ggml, so a header can be read from a file, a stream or the first bytes of a download.
The data of the tensors is never touched. It knows the container only, nothing of targets and drafters.

The format is the one of llama.cpp's `gguf.h`, versions 2 and 3, little-endian.
"""

from __future__ import annotations

import hashlib
import io
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, overload

import numpy as np

from engine.errors import ModelFileError
from engine.tensor_types import TENSOR_TYPES

# A vocabulary of 250,000 tokens with its merges makes a header of about 20 MB; what claims to be far larger is damage.
MAX_HEADER_BYTES = 256 << 20
MAX_KEY_BYTES = 65535  # as the format says
MAX_TENSOR_NAME_BYTES = 63  # ggml keeps names in 64 bytes
MAX_DIMENSIONS = 4
MAX_NESTING = 2  # of arrays in arrays
MAX_PARTS = 1000  # of a split model
DEFAULT_ALIGNMENT = 32
_LATEST_THINKABLE = 100  # version of the format; beyond it, the field is damaged

DOWNLOAD_AGAIN = "download it again"


class HeaderIncomplete(ModelFileError):
    """The bytes end inside the header: a file cut short, or a prefix that was too small.

    `reached` bytes were there, and at least `needed` are wanted (there may be more behind them).
    """

    def __init__(self, sentence: str, reached: int, needed: int) -> None:
        super().__init__(sentence)
        self.reached = reached
        self.needed = needed

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.reached, self.needed)


class CannotOpen(ModelFileError):
    """There are no bytes to look at: no such file, a folder, or a file that this user may not read."""


# GGUF's value types
_BOOL, _STRING, _ARRAY = 7, 8, 9
_NUMBERS: dict[int, np.dtype[Any]] = {
    0: np.dtype("u1"),
    1: np.dtype("i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    7: np.dtype("u1"),  # bool: one byte
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}

# How the files begin that people mistake for a GGUF, and what to tell them.
_MISTAKEN = (
    (
        b"version https://git-lfs",
        "is only a Git LFS pointer to a model file; run 'git lfs pull' or download the real one",
    ),
    (b"<", "is a web page saved under a model's name; download the file itself"),
    (b"PK\x03\x04", "is a zip archive or a PyTorch checkpoint, not a GGUF file; get the GGUF version of the model"),
    (b"ggjt", "is in llama.cpp's old format before GGUF; get the model's GGUF version"),
    (b"tjgg", "is in llama.cpp's old format before GGUF; get the model's GGUF version"),
    (b"lmgg", "is in llama.cpp's old format before GGUF; get the model's GGUF version"),
)

_u32 = struct.Struct("<I")
_u64 = struct.Struct("<Q")


class StringArray(Sequence[str]):
    """An array of strings as it stands in the file; entries are decoded only when asked for.

    Token texts need not be valid UTF-8 on their own: what is not is replaced. `entry` gives the bytes.
    """

    def __init__(self, raw: bytes, count: int) -> None:
        self._raw = raw  # per entry: its length as u64, then its bytes
        self._count = count

    @cached_property
    def _starts(self) -> np.ndarray:  # [count + 1] int64: where each entry's length stands, and the end
        starts = np.empty(self._count + 1, np.int64)
        raw, position, length_at = self._raw, 0, _u64.unpack_from
        for i in range(self._count):
            starts[i] = position
            position += 8 + length_at(raw, position)[0]
        starts[self._count] = position
        return starts

    @property
    def raw(self) -> bytes:
        """The entries as they stand in the file: per entry its length as u64, then its bytes."""
        return self._raw

    @cached_property
    def digest(self) -> str:
        """SHA-256 in hexadecimal over the entries with their lengths: equal only for equal strings in order."""
        return hashlib.sha256(self._raw).hexdigest()

    def entry(self, index: int) -> bytes:
        if index < 0:
            index += self._count
        if not 0 <= index < self._count:
            raise IndexError(index)
        return self._raw[int(self._starts[index]) + 8 : int(self._starts[index + 1])]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        return self.entry(index).decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(self._count))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StringArray) and self._count == other._count and self._raw == other._raw

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"StringArray({self._count} strings)"


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where one tensor lies. `shape` is in NumPy's order, slowest dimension first (ggml lists the fastest first)."""

    name: str
    shape: tuple[int, ...]
    type: int  # ggml's type id
    type_name: str
    offset: int  # bytes from the beginning of the file; of a split model, of the part that it lies in
    nbytes: int


@dataclass(frozen=True)
class Header:
    """All of a GGUF file but its data.

    Metadata values: bool, int, float, str, NumPy array, `StringArray`, or a list of arrays.
    """

    path: str
    version: int
    metadata: dict[str, Any] = field(repr=False)
    tensors: dict[str, TensorInfo] = field(repr=False)
    architecture: str  # "" when the file does not say
    alignment: int
    data_offset: int
    file_bytes: int  # of a stream whose length was not told: where its last tensor ends; of a split model: of all parts
    part: int = 0  # of a split model that is not put together, from 0
    parts: int = 1

    @property
    def file_name(self) -> str:
        return Path(self.path).name or self.path

    @property
    def name(self) -> str:
        """The model's own name, else the file's."""
        return self.text("general.name").strip() or self.file_name

    @property
    def parameters(self) -> int:
        return sum(math.prod(tensor.shape) for tensor in self.tensors.values())

    @property
    def quantisation(self) -> str:
        """The type that holds most of the weights, such as "IQ4_NL"; "" without tensors."""
        held: dict[str, int] = {}
        for tensor in self.tensors.values():
            held[tensor.type_name] = held.get(tensor.type_name, 0) + math.prod(tensor.shape)
        return max(held, key=lambda name: held[name], default="")

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `{architecture}.{key}`, such as `get("block_count")`."""
        return self.metadata.get(f"{self.architecture}.{key}", default)

    def text(self, key: str) -> str:
        """The text under the whole key, "" where there is none."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else ""

    def count(self, key: str) -> int | None:
        """The whole number `{architecture}.{key}`; None where there is none.

        llama.cpp lets some of them be arrays with an entry per layer: they count when all entries are equal.
        """
        value = self.get(key)
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size and (value == value[0]).all():
            value = int(value[0])
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_header(source: str | Path | BinaryIO, *, name: str | None = None, file_bytes: int | None = None) -> Header:
    """Read the header of a GGUF file, or of a stream that begins with one (a prefix of the file is enough).

    `name` is what the sentences of errors call a stream, `file_bytes` the length of the whole file where the stream
    holds only its beginning; without it, where the tensors' data lie in a stream is not checked. The first part of a
    split model gives the header of the whole, if the others lie beside it; a stream gives that of its part. Raises
    `ModelFileError`, and of that `HeaderIncomplete` when the bytes end too early, `CannotOpen` when there are none.
    """
    if not isinstance(source, (str, Path)):
        stream_name = name or str(getattr(source, "name", "the stream"))
        return _HeaderReader(source, stream_name, file_bytes).read()
    path = str(source)
    try:
        if not path.strip():
            raise CannotOpen("No file name was given; choose a .gguf file.")
        if Path(path).is_dir():
            raise CannotOpen(f"{path} is a folder, not a model file; choose a .gguf file in it.")
        if not Path(path).exists():
            raise CannotOpen(f"{path} does not exist; check the path or download the model.")
        if not Path(path).is_file():
            raise CannotOpen(f"{path} is not a regular file; choose a .gguf file.")
        header = read_part(path)
        if header.parts == 1:
            return header
        from engine.split_model import whole_header

        return whole_header(header)
    except ValueError as error:  # a path that cannot be one, such as one with a zero byte
        raise CannotOpen(f"{path!r} is not a path ({error}); choose a .gguf file.") from error
    except PermissionError as error:
        raise CannotOpen(f"{path} may not be read by this user; change its permissions.") from error
    except OSError as error:
        raise CannotOpen(f"{path} cannot be read ({error.strerror or error}); check the disk or the path.") from error


def read_part(path: str) -> Header:
    """The header of this one file, a part of a split model or not. Raises ModelFileError, OSError."""
    with open(path, "rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        return _HeaderReader(file, path, size).read()


def peek_architecture(path: str | Path) -> str | None:
    """The architecture, when it stands among the first keys, as nearly always; else None. Raises nothing.

    Reads a few kilobytes, where the whole header may have megabytes.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(4096)
        if data[:4] != b"GGUF" or _u32.unpack_from(data, 4)[0] not in (2, 3):
            return None
        position = 24
        for _ in range(_u64.unpack_from(data, 16)[0]):
            length = _u64.unpack_from(data, position)[0]
            key = data[position + 8 : position + 8 + length]
            kind = _u32.unpack_from(data, position + 8 + length)[0]
            position += 12 + length
            if kind == _STRING:
                length = _u64.unpack_from(data, position)[0]
                value = data[position + 8 : position + 8 + length]
                if key == b"general.architecture":
                    return value.decode("utf-8") if len(value) == length else None
                position += 8 + length
            else:
                position += _NUMBERS[kind].itemsize
    except (OSError, ValueError, struct.error, KeyError, OverflowError):
        pass
    return None


class _HeaderReader:
    """Walks a header from front to back. Reads on only as far as it must, so that a stream need not be seekable."""

    def __init__(self, stream: BinaryIO, path: str, file_bytes: int | None) -> None:
        self.stream = stream
        self.path = path
        self.file_name = Path(path).name or path
        self.file_bytes = file_bytes
        self.buffer = bytearray()
        self.position = 0

    def fail(self, problem: str, remedy: str = DOWNLOAD_AGAIN) -> ModelFileError:
        return ModelFileError(f"{self.file_name} is damaged ({problem}); {remedy}.")

    # --- bytes ---

    def fill(self, end: int) -> None:
        """Read on until `end` bytes are in the buffer, or there are no more."""
        while len(self.buffer) < end:
            # as much again as there is: the whole stays linear, and no file is read far past its header
            chunk = self.stream.read(max(end - len(self.buffer), len(self.buffer), 1 << 20))
            if not chunk:
                return
            self.buffer += chunk

    def need(self, end: int) -> None:
        """Have `end` bytes from the beginning in the buffer."""
        if end > MAX_HEADER_BYTES:
            raise self.fail(f"its header claims to be longer than {MAX_HEADER_BYTES >> 20} MiB")
        known = self.file_bytes is not None and end > self.file_bytes  # then there is no use in reading on
        if not known:
            self.fill(end)
        if len(self.buffer) < end:
            reached = self.file_bytes if known and self.file_bytes is not None else len(self.buffer)
            raise HeaderIncomplete(
                f"{self.file_name} is cut short: its header does not end within {reached} bytes; {DOWNLOAD_AGAIN}.",
                reached,
                end,
            )

    def take(self, count: int) -> bytes:
        start, end = self.position, self.position + count
        self.need(end)
        self.position = end
        return bytes(self.buffer[start:end])

    def u32(self) -> int:
        return int(_u32.unpack(self.take(4))[0])

    def u64(self) -> int:
        return int(_u64.unpack(self.take(8))[0])

    def text(self, what: str, longest: int) -> str:
        length = self.u64()
        if length > longest:
            raise self.fail(f"the {what} at byte {self.position - 8} is {length} bytes long")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.fail(f"the {what} at byte {self.position - length} is not valid UTF-8") from error

    # --- values ---

    def value(self, kind: int, key: str, depth: int = 0) -> Any:
        if kind == _STRING:
            return self.take(self.u64()).decode("utf-8", "replace")
        if kind == _ARRAY:
            item, count = self.u32(), self.u64()
            if item == _STRING:
                return self.strings(count)
            if item == _ARRAY and depth < MAX_NESTING:  # the format knows it; some published drafters have such tags
                return [self.value(_ARRAY, key, depth + 1) for _ in range(count)]
            if item not in _NUMBERS:
                raise self.fail(f"'{key}' is an array of the unknown type {item}")
            array = np.frombuffer(self.take(count * _NUMBERS[item].itemsize), _NUMBERS[item])
            return array != 0 if item == _BOOL else array
        if kind not in _NUMBERS:
            raise self.fail(f"'{key}' has the unknown type {kind}")
        number = np.frombuffer(self.take(_NUMBERS[kind].itemsize), _NUMBERS[kind])[0].item()
        return number != 0 if kind == _BOOL else number

    def strings(self, count: int) -> StringArray:
        """Step over `count` strings. Nothing is decoded here: a vocabulary has a hundred thousand of them."""
        start = position = self.position
        length_at, buffer, seen = _u64.unpack_from, self.buffer, 0
        while seen < count:
            try:
                while seen < count:
                    position += 8 + length_at(buffer, position)[0]
                    seen += 1
            except (struct.error, OverflowError):  # past what has been read so far
                self.need(position + 8)
        self.need(position)
        self.position = position
        return StringArray(bytes(self.buffer[start:position]), count)

    # --- the whole ---

    def read(self) -> Header:
        version = self.begin()
        tensor_count, key_count = self.u64(), self.u64()
        metadata: dict[str, Any] = {}
        for _ in range(key_count):
            key = self.text("name of a metadata key", MAX_KEY_BYTES)
            if not key:
                raise self.fail("a metadata key has no name")
            if key in metadata:
                raise self.fail(f"the metadata key '{key}' occurs twice")
            metadata[key] = self.value(self.u32(), key)
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20 or alignment & (alignment - 1):
            raise self.fail(f"its alignment {alignment!r} is not a power of two")
        part, parts = self.split(metadata)
        infos: dict[str, TensorInfo] = {}
        for _ in range(tensor_count):
            info = self.tensor(alignment)
            if info.name in infos:
                raise self.fail(f"the tensor '{info.name}' occurs twice")
            infos[info.name] = info
        data_offset = -(-self.position // alignment) * alignment
        tensors = {
            info.name: TensorInfo(
                info.name, info.shape, info.type, info.type_name, data_offset + info.offset, info.nbytes
            )
            for info in infos.values()
        }
        end = self.check_extent(tensors, data_offset)
        architecture = metadata.get("general.architecture")
        return Header(
            path=self.path,
            version=version,
            metadata=metadata,
            tensors=tensors,
            architecture=architecture if isinstance(architecture, str) else "",
            alignment=alignment,
            data_offset=data_offset,
            file_bytes=end if self.file_bytes is None else self.file_bytes,
            part=part,
            parts=parts,
        )

    def begin(self) -> int:
        """Magic and version."""
        self.fill(4)
        magic = bytes(self.buffer[:4])
        if not magic or not b"GGUF".startswith(magic):
            raise ModelFileError(f"{self.file_name} {self.mistaken()}.")
        self.need(24)  # magic, version, two counts
        self.position = 4
        version = self.u32()
        if 0 < int.from_bytes(version.to_bytes(4, "little"), "big") <= _LATEST_THINKABLE:
            raise ModelFileError(
                f"{self.file_name} was written for big-endian machines, which this program cannot read; "
                "get the little-endian GGUF of the model."
            )
        if version == 1:
            raise ModelFileError(
                f"{self.file_name} is in version 1 of GGUF, which is no longer read; get a newer file."
            )
        if not 0 < version <= _LATEST_THINKABLE:
            raise self.fail(f"its version of GGUF is given as {version}")
        if version > 3:
            raise ModelFileError(
                f"{self.file_name} is in version {version} of GGUF, newer than this program; update the program."
            )
        return version

    def mistaken(self) -> str:
        """What a file is that is no GGUF, as far as its first bytes tell."""
        head = bytes(self.buffer[:64])
        if not head:
            return f"is empty; {DOWNLOAD_AGAIN}"
        for beginning, sentence in _MISTAKEN:
            if head.startswith(beginning):
                return sentence
        if head[8:10] == b'{"':
            return "is a safetensors file, not a GGUF file; get or make the GGUF version of the model"
        if not any(head):
            return f"holds only zeros where a GGUF file begins; {DOWNLOAD_AGAIN}"
        return "is not a GGUF file; choose a .gguf model file"

    def split(self, metadata: dict[str, Any]) -> tuple[int, int]:
        """Which part of a split model this is, from 0, and of how many."""
        count, number = metadata.get("split.count", 0), metadata.get("split.no", 0)
        if not isinstance(count, int) or count <= 1:
            return 0, 1
        if count > MAX_PARTS or not isinstance(number, int) or not 0 <= number < count:
            raise self.fail(f"it claims to be part {number} of {count}")
        return number, count

    def tensor(self, alignment: int) -> TensorInfo:
        """One entry of the tensor list; its offset still counts from the beginning of the data."""
        name = self.text("name of a tensor", MAX_TENSOR_NAME_BYTES)
        dimensions = self.u32()
        if dimensions > MAX_DIMENSIONS:
            raise self.fail(f"the tensor '{name}' has {dimensions} dimensions")
        shape = struct.unpack(f"<{dimensions}Q", self.take(8 * dimensions))[::-1]
        kind, offset = self.u32(), self.u64()
        if kind not in TENSOR_TYPES:
            raise ModelFileError(
                f"{self.file_name} stores the tensor '{name}' in the type number {kind}, which this program's llama.cpp"
                " does not know; get the model in another quantisation."
            )
        elements = math.prod(shape)
        if elements >= 1 << 62:
            raise self.fail(f"the tensor '{name}' claims the impossible shape {list(shape)}")
        tensor_type = TENSOR_TYPES[kind]
        row = shape[-1] if shape else 1
        if row % tensor_type.block:
            raise self.fail(
                f"the rows of the tensor '{name}' have {row} elements, not a multiple of {tensor_type.block} "
                f"as {tensor_type.name} wants"
            )
        if offset % alignment:
            raise self.fail(f"the tensor '{name}' does not begin at a multiple of {alignment} bytes")
        nbytes = elements // tensor_type.block * tensor_type.block_bytes
        return TensorInfo(name, shape, kind, tensor_type.name, offset, nbytes)

    def check_extent(self, tensors: dict[str, TensorInfo], data_offset: int) -> int:
        """Where the last tensor ends; raises when the file ends before."""
        last = max(tensors.values(), key=lambda t: t.offset + t.nbytes, default=None)
        end = data_offset if last is None else last.offset + last.nbytes
        if last is not None and self.file_bytes is not None and end > self.file_bytes:
            raise ModelFileError(
                f"{self.file_name} is cut short: it has {self.file_bytes} bytes, but its tensor '{last.name}' "
                f"ends at byte {end}; {DOWNLOAD_AGAIN}."
            )
        return end
