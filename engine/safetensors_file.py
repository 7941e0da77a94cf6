"""Reads weights in safetensors form: one file, or the parts of a folder. The files are untrusted input.

NumPy and JSON only. The format: the header's length as u64, the header as JSON (name -> dtype, shape, data_offsets),
then the data, little-endian. Knows nothing of what the tensors are for.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError

MAX_HEADER_BYTES = 100 << 20  # the format's own limit
INDEX = "model.safetensors.index.json"
_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where one tensor lies. `shape` in NumPy's order; `offset` in bytes from the beginning of the file."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int

    def rows(self, begin: int, end: int) -> NDArray[np.float32]:
        """Rows [begin, end) of the first dimension as float32; the others are not read."""
        if self.dtype not in _DTYPES:
            raise ModelFileError(
                f"{self.path.name} stores weights as {self.dtype}, which cannot be converted; "
                "get the drafter in BF16, F16 or F32."
            )
        inner = math.prod(self.shape[1:])
        count = (end - begin) * inner
        with self.path.open("rb") as file:
            file.seek(self.offset + begin * inner * _SIZES[self.dtype])
            values = np.fromfile(file, _DTYPES[self.dtype], count)
        if len(values) != count:
            raise ModelFileError(f"{self.path.name} became shorter while it was read; download it again.")
        if self.dtype == "BF16":  # the upper half of a float32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return values.astype(np.float32, copy=False).reshape(end - begin, *self.shape[1:])


def read_folder(folder: Path) -> dict[str, StoredTensor]:
    """All tensors of a folder's .safetensors files, by name. Raises `ModelFileError`."""
    paths = sorted(path for path in folder.glob("*.safetensors") if path.is_file())
    if not paths:
        raise ModelFileError(f"{folder} holds no .safetensors file; choose the folder of a drafter in that form.")
    _check_parts(folder, {path.name for path in paths})
    tensors: dict[str, StoredTensor] = {}
    for path in paths:
        for name, tensor in read_file(path).items():
            if name in tensors:
                raise ModelFileError(
                    f"The tensor '{name}' is in {tensors[name].path.name} and in {path.name}; "
                    "keep the files of one drafter in the folder."
                )
            tensors[name] = tensor
    return tensors


def read_file(path: Path) -> dict[str, StoredTensor]:
    """The tensors of one file, by name. Raises `ModelFileError`."""

    def damaged(what: str) -> ModelFileError:
        return ModelFileError(f"{path.name} is damaged ({what}); download it again.")

    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(8)
            if len(head) < 8:
                raise damaged("it has no header")
            (length,) = struct.unpack("<Q", head)
            if length > min(MAX_HEADER_BYTES, size - 8):
                raise damaged("its header is longer than it can be")
            header = json.loads(file.read(length))
    except OSError as error:
        raise ModelFileError(
            f"{path} cannot be read ({error.strerror or error}); check the disk or the path."
        ) from error
    except (ValueError, RecursionError) as error:
        raise damaged("its header is not JSON") from error
    if not isinstance(header, dict):
        raise damaged("its header is no table")
    tensors: dict[str, StoredTensor] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape, (begin, end) = str(entry["dtype"]), tuple(entry["shape"]), entry["data_offsets"]
            numbers = (*shape, begin, end)
            if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers):
                raise ValueError("not whole numbers")
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(f"the entry of '{name}' is not one of a tensor") from error
        if not begin <= end <= size - 8 - length:
            raise damaged(f"the tensor '{name}' lies outside it")
        if dtype in _SIZES and math.prod(shape) * _SIZES[dtype] != end - begin:
            raise damaged(f"the tensor '{name}' has {end - begin} bytes for the shape {list(shape)}")
        tensors[name] = StoredTensor(path, dtype, shape, 8 + length + begin, end - begin)
    return tensors


def read_json(path: Path) -> Mapping[str, Any]:
    """A JSON file whose outermost value is a table. Raises `ModelFileError`."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ModelFileError(
            f"{path} is missing; choose the folder that holds it together with the .safetensors files."
        ) from None
    except OSError as error:
        raise ModelFileError(
            f"{path} cannot be read ({error.strerror or error}); check the disk or the path."
        ) from error
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not valid JSON; download it again.") from error
    if not isinstance(found, dict):
        raise ModelFileError(f"{path} holds no table; download it again.")
    return found


def _check_parts(folder: Path, there: set[str]) -> None:
    """Where an index names the parts, all of them must be there."""
    if not (folder / INDEX).is_file():
        return
    parts = read_json(folder / INDEX).get("weight_map")
    wanted = {str(name) for name in parts.values()} if isinstance(parts, dict) else set()
    if missing := sorted(wanted - there):
        raise ModelFileError(
            f"{folder} lacks {missing[0]}{f' and {len(missing) - 1} more parts' if len(missing) > 1 else ''}; "
            "download all of the repository's files."
        )
