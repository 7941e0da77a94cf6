"""A thin builder of ggml graphs: named inputs and outputs, operations as methods, allocated once, computed many times.

Shapes here are ggml's: the fastest dimension first. Arrays that go in and come out are NumPy's, slowest first, so a
tensor of shape (a, b) is an array of shape [b, a]. Tensors are plain pointers (int). Knows nothing of drafters.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import ggml
from engine.errors import OutOfMemory

_DTYPES = {ggml.F32: np.float32, ggml.F16: np.float16, ggml.I32: np.int32, ggml.I64: np.int64}


class Device:
    """A ggml device with a backend to compute on. Close it after everything that lives on it."""

    def __init__(self, handle: int, threads: int) -> None:
        self.handle = handle
        self.name = ggml.dev_name(handle).decode()
        self.is_cpu = ggml.dev_type(handle) == ggml.DEVICE_CPU
        self.buffer_type: int = ggml.dev_buffer_type(handle)
        self.repacking_buffer_types = ggml.extra_buffer_types(handle)
        self.backend: int | None = ggml.dev_init(handle, None)
        if not self.backend:
            raise OutOfMemory(f"The device {self.name} could not be started; choose another device or the CPU.")
        ggml.set_threads(handle, self.backend, threads)

    @classmethod
    def cpu(cls, threads: int) -> Device:
        return cls(ggml.dev_by_type(ggml.DEVICE_CPU), threads)

    def close(self) -> None:
        if self.backend:
            ggml.backend_free(self.backend)
            self.backend = None

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def buffer_type_for_matrix(self, type_: int, columns: int, rows: int) -> int:
        """The buffer type to keep a matrix in that is only ever multiplied: repacking if the device says it can."""
        for candidate in self.repacking_buffer_types:
            buffer = ggml.buft_alloc_buffer(candidate, 0)
            context = ggml.init(ggml.InitParams(4 * ggml.tensor_overhead(), None, True))
            try:
                matrix = ggml.new_tensor_4d(context, type_, columns, rows, 1, 1)
                ggml.read(matrix).buffer = buffer  # the probe has the placement, not the bytes
                vector = ggml.new_tensor_4d(context, ggml.F32, columns, 1, 1, 1)
                if ggml.dev_supports_op(self.handle, ggml.mul_mat(context, matrix, vector)):
                    return candidate
            finally:
                ggml.free(context)
                ggml.buffer_free(buffer)
        return self.buffer_type


class Store:
    """Tensors that stay (weights, caches), in one buffer of one buffer type: declare, `allocate`, then fill."""

    def __init__(self, buffer_type: int, capacity: int) -> None:
        self._buffer_type = buffer_type
        self._context = ggml.init(ggml.InitParams((capacity + 1) * ggml.tensor_overhead(), None, True))
        self._buffer: int | None = None

    def tensor(self, name: str, type_: int, *shape: int) -> int:
        ne = (*shape, 1, 1, 1)[:4]
        tensor: int = ggml.new_tensor_4d(self._context, type_, *ne)
        ggml.set_name(tensor, name.encode()[:63])
        return tensor

    def allocate(self, *, zero: bool = False, weights: bool = False) -> None:
        """Raises OutOfMemory."""
        self._buffer = ggml.alloc_ctx_tensors_from_buft(self._context, self._buffer_type)
        if not self._buffer:
            raise OutOfMemory(
                "There is not enough free memory for the drafter; choose a shorter context or close other programs."
            )
        if weights:
            ggml.buffer_set_usage(self._buffer, ggml.USAGE_WEIGHTS)
        if zero:
            ggml.buffer_clear(self._buffer, 0)

    @property
    def nbytes(self) -> int:
        return ggml.buffer_get_size(self._buffer) if self._buffer else 0

    def close(self) -> None:
        if self._buffer:
            ggml.buffer_free(self._buffer)
            self._buffer = None
        if self._context:
            ggml.free(self._context)
            self._context = None


def write(tensor: int, array: NDArray[np.generic], offset: int = 0) -> None:
    """Copy a contiguous array's bytes into a stored tensor, from byte `offset` on."""
    ggml.tensor_set(tensor, array.ctypes.data, offset, array.nbytes)


def shape(tensor: int) -> tuple[int, int, int, int]:
    ne = ggml.read(tensor).ne
    return ne[0], ne[1], ne[2], ne[3]


class Graph:
    """One computation. Build it with the methods, `finish` it, then set the inputs and `compute` as often as wanted.

    All inputs must be written before each `compute`: graphs of one cache share their working memory.
    """

    def __init__(self, device: Device, max_nodes: int = 2048) -> None:
        self._device = device
        size = max_nodes * ggml.tensor_overhead() + ggml.graph_overhead_custom(max_nodes, False)
        self._context = ggml.init(ggml.InitParams(size, None, True))
        self._graph = ggml.new_graph_custom(self._context, max_nodes, False)
        self._inputs: dict[str, int] = {}
        self._outputs: dict[str, int] = {}
        self.arrays: dict[str, NDArray[Any]] = {}  # inputs and outputs in host memory, viewed in place
        self._host = False

    # building

    def input(self, name: str, type_: int, *shape_: int) -> int:
        tensor: int = ggml.new_tensor_4d(self._context, type_, *(*shape_, 1, 1, 1)[:4])
        ggml.set_input(tensor)
        self._inputs[name] = tensor
        return tensor

    def output(self, name: str, tensor: int) -> None:
        ggml.set_output(tensor)
        self._outputs[name] = tensor
        self.expand(tensor)

    def expand(self, tensor: int) -> None:
        """Put `tensor` and what it needs into the graph now, before whatever is added later."""
        ggml.build_forward_expand(self._graph, tensor)

    def mul_mat(self, matrix: int, x: int) -> int:
        return ggml.mul_mat(self._context, matrix, x)  # type: ignore[no-any-return]

    def add(self, a: int, b: int) -> int:
        return ggml.add(self._context, a, b)  # type: ignore[no-any-return]

    def mul(self, a: int, b: int) -> int:
        return ggml.mul(self._context, a, b)  # type: ignore[no-any-return]

    def scale(self, x: int, factor: float) -> int:
        return x if factor == 1.0 else ggml.scale(self._context, x, factor)

    def tanh(self, x: int) -> int:
        return ggml.tanh(self._context, x)  # type: ignore[no-any-return]

    def rms_norm(self, x: int, eps: float, weight: int | None = None) -> int:
        normed: int = ggml.rms_norm(self._context, x, eps)
        return normed if weight is None else self.mul(normed, weight)

    def gated(self, gate: int, up: int, activation: str) -> int:
        operation = ggml.geglu_split if activation == "gelu" else ggml.swiglu_split
        return operation(self._context, gate, up)  # type: ignore[no-any-return]

    def get_rows(self, table: int, rows: int) -> int:
        return ggml.get_rows(self._context, table, rows)  # type: ignore[no-any-return]

    def set_rows(self, table: int, values: int, rows: int) -> int:
        return ggml.set_rows(self._context, table, values, rows)  # type: ignore[no-any-return]

    def top_k(self, x: int, k: int) -> int:
        return ggml.top_k(self._context, x, k)  # type: ignore[no-any-return]

    def order(self, x: int) -> int:
        """Indices that sort each row of x, largest first."""
        return ggml.argsort(self._context, x, ggml.SORT_DESCENDING)  # type: ignore[no-any-return]

    def concat(self, parts: Sequence[int], dimension: int) -> int:
        joined = parts[0]
        for part in parts[1:]:
            joined = ggml.concat(self._context, joined, part, dimension)
        return joined

    def cont(self, x: int) -> int:
        return ggml.cont(self._context, x)  # type: ignore[no-any-return]

    def permute(self, x: int, a: int, b: int, c: int, d: int) -> int:
        return ggml.permute(self._context, x, a, b, c, d)  # type: ignore[no-any-return]

    def reshape(self, x: int, *shape_: int) -> int:
        return ggml.reshape_4d(self._context, x, *(*shape_, 1, 1, 1)[:4])  # type: ignore[no-any-return]

    def view(self, x: int, shape_: Sequence[int], strides: Sequence[int], offset: int = 0) -> int:
        """`strides` in bytes, of dimensions 1.. (dimension 0 is dense); missing ones continue the last."""
        ne = (*shape_, 1, 1, 1)[:4]
        nb = list(strides)
        while len(nb) < 3:
            nb.append(nb[-1] * ne[len(nb)] if nb else ggml.read(x).nb[0] * ne[0])
        return ggml.view_4d(self._context, x, *ne, *nb, offset)  # type: ignore[no-any-return]

    def pad_front(self, x: int, dimension: int, count: int) -> int:
        """`count` zero rows before the first row of `dimension`."""
        pads = [0] * 8
        pads[2 * dimension] = count
        return ggml.pad_ext(self._context, x, *pads)  # type: ignore[no-any-return]

    def rope(
        self,
        x: int,
        positions: int,
        frequencies: int | None,
        dims: int,
        original_context: int,
        freq_base: float,
        freq_scale: float,
        ext_factor: float,
        attn_factor: float,
        beta_fast: float,
        beta_slow: float,
    ) -> int:
        """Rotary positions on the first `dims` values of each head, halves paired (NeoX)."""
        return ggml.rope_ext(  # type: ignore[no-any-return]
            self._context, x, positions, frequencies, dims, ggml.ROPE_NEOX, original_context,
            freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow,
        )  # fmt: skip

    def attention(self, q: int, k: int, v: int, mask: int, scale: float, sinks: int | None = None) -> int:
        """q (d, n, heads), k and v (d, n_kv, kv heads), mask (n_kv, n) f16 -> (d, heads, n)."""
        result: int = ggml.flash_attn_ext(self._context, q, k, v, mask, scale, 0.0, 0.0)
        if sinks is not None:
            ggml.flash_attn_ext_add_sinks(result, sinks)
        return result

    # using

    def finish(self, allocator: int) -> None:
        """Give every tensor its place in the allocator's working memory. Raises OutOfMemory."""
        if not (ggml.gallocr_reserve(allocator, self._graph) and ggml.gallocr_alloc_graph(allocator, self._graph)):
            raise OutOfMemory("There is not enough free memory to run the drafter; choose a shorter context.")
        for name, tensor in (*self._inputs.items(), *self._outputs.items()):
            struct = ggml.read(tensor)
            ne = tuple(reversed(struct.ne[:]))
            dtype: np.dtype[Any] = np.dtype(_DTYPES[struct.type])
            self._host = bool(struct.buffer and ggml.buffer_is_host(struct.buffer))
            if self._host:
                memory: Any = (ctypes.c_char * (int(np.prod(ne)) * dtype.itemsize)).from_address(struct.data)
                self.arrays[name] = np.frombuffer(memory, dtype).reshape(ne)
            else:
                self.arrays[name] = np.empty(ne, dtype=dtype)

    def compute(self) -> None:
        """Run on what `arrays` holds as inputs; afterwards `arrays` holds the outputs."""
        if not self._host:
            for name, tensor in self._inputs.items():
                write(tensor, self.arrays[name])
        status = ggml.backend_graph_compute(self._device.backend, self._graph)
        if status != ggml.STATUS_SUCCESS:
            raise OutOfMemory(f"The device {self._device.name} could not run the drafter (ggml status {status}).")
        if not self._host:
            for name, tensor in self._outputs.items():
                array = self.arrays[name]
                ggml.tensor_get(tensor, array.ctypes.data, 0, array.nbytes)

    def close(self) -> None:
        self.arrays.clear()
        if self._context:
            ggml.free(self._context)
            self._context = None


class GraphCache:
    """Graphs by shape, the least recently used thrown out; they share one working memory that only grows."""

    def __init__(self, device: Device, capacity: int = 12) -> None:
        self._device = device
        self._capacity = capacity
        self._allocator: int | None = ggml.gallocr_new(device.buffer_type)
        self._graphs: OrderedDict[Hashable, Graph] = OrderedDict()

    def get(self, key: Hashable, build: Callable[[Graph], None]) -> Graph:
        graph = self._graphs.get(key)
        if graph is not None:
            self._graphs.move_to_end(key)
            return graph
        graph = Graph(self._device)
        build(graph)
        before = self.nbytes
        assert self._allocator is not None
        graph.finish(self._allocator)
        if self.nbytes != before:  # the working memory moved: the older graphs point at what is gone
            self._drop(len(self._graphs))
        self._drop(len(self._graphs) + 1 - self._capacity)
        self._graphs[key] = graph
        return graph

    def _drop(self, count: int) -> None:
        for _ in range(count):
            self._graphs.popitem(last=False)[1].close()

    @property
    def nbytes(self) -> int:
        return ggml.gallocr_get_buffer_size(self._allocator, 0) if self._allocator else 0

    def close(self) -> None:
        self._drop(len(self._graphs))
        if self._allocator:
            ggml.gallocr_free(self._allocator)
            self._allocator = None
