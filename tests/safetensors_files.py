"""Makers of drafters in safetensors form, and targets for the recorded ones. Knows nothing of the engine."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.drafter_files import Vocabulary, write_target
from tests.fixture_files import FOLDER

_NAMES = {"<f4": "F32", "<f2": "F16", "<u2": "BF16", "|u1": "F8_E4M3", "<i8": "I64"}


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> Path:
    """float32 and float16 as they are; uint16 is taken for bfloat16, uint8 for an 8-bit float."""
    header, offset = {}, 0
    for name, array in tensors.items():
        end = offset + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype.str],
            "shape": list(array.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in tensors.values()))
    return path


def read_safetensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """A file that holds float32 only."""
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + length])
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        found[name] = np.frombuffer(raw[8 + length + begin : 8 + length + end], np.float32).reshape(entry["shape"])
    return found


def hf_folder(name: str) -> Path:
    """A recorded drafter in safetensors form."""
    return FOLDER / f"{name}-hf"


def changed_copy(folder: Path, name: str, **changes: Any) -> Path:
    """A copy of a recorded drafter; `changes` to its config, None removes; `dflash_config` is merged."""
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((hf_folder(name) / "config.json").read_text())
    for key, value in changes.items():
        if key == "dflash_config" and isinstance(value, dict):
            config[key] = {k: v for k, v in (config[key] | value).items() if v is not None}
        elif value is None:
            config.pop(key, None)
        else:
            config[key] = value
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes((hf_folder(name) / "model.safetensors").read_bytes())
    return folder


def target_of(name: str, path: Path, metadata: Mapping[str, Any] | None = None) -> Path:
    """A target that a recorded drafter fits, with the embeddings and the head that its record was made with."""
    recorded = {tensor.name: np.array(tensor.data) for tensor in gguf.GGUFReader(FOLDER / f"{name}.gguf").tensors}
    width = recorded["token_embd.weight"].shape[1]
    write_target(path, hidden_size=width, vocabulary=Vocabulary.of(FOLDER / f"{name}.gguf"), metadata=metadata)
    reader = gguf.GGUFReader(path, "r+")
    for tensor in reader.tensors:
        if tensor.name in ("token_embd.weight", "output.weight"):
            tensor.data[:] = recorded[tensor.name]
    reader.data.flush()
    return path
