"""Places a drafter's weights on the device: which tensor goes to which kind of memory.

Matrices that are only multiplied go to a repacking buffer type where the device supports that; tables looked up
row by row (embeddings, codebooks) and small vectors stay plain. What the file lacks is the target's, shared by pointer.
Knows nothing of graphs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine import ggml
from engine.drafter_config import DrafterConfig
from engine.errors import Cancelled, DrafterMismatch, ModelFileError
from engine.gguf_file import Header, TensorInfo
from engine.graph import Device, Store, write

_TABLES = ("token_embd.weight", "selector_predecessor.weight", "selector_successor.weight")
_BF16 = 30


@dataclass(frozen=True)
class SharedTensors:
    """The target's own embedding matrix and head, as ggml tensors on the drafter's device (None: not reachable)."""

    embeddings: int | None
    head: int | None
    file: str = "the target"


class DrafterWeights:
    """All tensors of one drafter. Subscript with the GGUF name; `get` for optional ones."""

    def __init__(
        self,
        header: Header,
        config: DrafterConfig,
        device: Device,
        shared: SharedTensors | None = None,
        on_progress: Callable[[float], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> None:
        """Raises ModelFileError, DrafterMismatch, OutOfMemory, Cancelled."""
        self._device = device
        self._tensors: dict[str, int] = {}
        self._stores: dict[int, Store] = {}
        shared = shared or SharedTensors(None, None)
        if not config.own_embeddings and shared.embeddings is None:
            raise DrafterMismatch(
                f"The drafter {header.path} has no token embeddings of its own and those of {shared.file} cannot be "
                "shared; use a drafter file that carries them."
            )
        if not (config.own_head or config.own_embeddings) and shared.head is None:
            raise DrafterMismatch(
                f"The drafter {header.path} has no output matrix of its own and that of {shared.file} cannot be "
                "shared; use a drafter file that carries one."
            )
        try:
            self._place(header, config, device, on_progress, cancel)
        except BaseException:
            self.close()
            raise
        self.embeddings = self._tensors.get("token_embd.weight") or shared.embeddings or 0
        own_head = self._tensors.get("output.weight") or self._tensors.get("token_embd.weight")
        self.head = own_head or shared.head or 0

    def __getitem__(self, name: str) -> int:
        return self._tensors[name]

    def get(self, name: str) -> int | None:
        return self._tensors.get(name)

    @property
    def nbytes(self) -> int:
        """Memory taken by the drafter's own weights; shared ones count for the target."""
        return sum(store.nbytes for store in self._stores.values())

    def is_repacked(self, tensor: int) -> bool:
        """Whether a matrix lies in another order than the file's; its products then want rows in whole groups."""
        buffer = ggml.read(tensor).buffer
        return bool(buffer) and ggml.buffer_get_type(buffer) in self._device.repacking_buffer_types

    def close(self) -> None:
        for store in self._stores.values():
            store.close()
        self._stores.clear()

    def _place(
        self,
        header: Header,
        config: DrafterConfig,
        device: Device,
        on_progress: Callable[[float], None] | None,
        cancel: threading.Event | None,
    ) -> None:
        placed: list[tuple[int, TensorInfo]] = []
        for info in header.tensors.values():
            shape = tuple(reversed(info.shape))
            type_ = _kept_type(header, info)
            buffer_type = device.buffer_type
            if len(shape) == 2 and info.name.endswith(".weight") and info.name not in _TABLES:
                buffer_type = device.buffer_type_for_matrix(type_, shape[0], shape[1])
            if buffer_type not in self._stores:
                self._stores[buffer_type] = Store(buffer_type, len(header.tensors))
            tensor = self._stores[buffer_type].tensor(info.name, type_, *shape)
            self._tensors[info.name] = tensor
            placed.append((tensor, info))
        for store in self._stores.values():
            store.allocate(weights=True)
        total = sum(info.nbytes for _, info in placed) or 1
        done = 0
        data = np.memmap(header.path, dtype=np.uint8, mode="r")
        try:
            for tensor, info in placed:
                if cancel is not None and cancel.is_set():
                    raise Cancelled
                write(tensor, _kept_data(header, info, data[info.offset : info.offset + info.nbytes]))
                done += info.nbytes
                if on_progress is not None:
                    on_progress(done / total)
        finally:
            del data


def _kept_type(header: Header, info: TensorInfo) -> int:
    """Vectors and kernels enter additions and products element by element and are kept as float32; ids as int32."""
    if info.name == "d2t":
        return ggml.I32
    if info.name.endswith(".weight") and len(info.shape) > 1:
        return info.type
    if info.type not in (ggml.F32, ggml.F16, _BF16):
        raise ModelFileError(
            f"In the drafter {header.path} the tensor {info.name} is {info.type_name}, but must be F32, F16 or BF16; "
            "convert the drafter again with its vectors unquantised."
        )
    return ggml.F32


def _kept_data(header: Header, info: TensorInfo, raw: NDArray[np.uint8]) -> NDArray[np.generic]:
    if info.name == "d2t":
        ids = raw.view(np.int64)
        return ids.astype(np.int32)
    if _kept_type(header, info) == info.type:
        return raw
    if info.type == ggml.F16:
        return raw.view(np.float16).astype(np.float32)
    return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)  # bfloat16: the upper half of a float32
