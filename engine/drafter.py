"""The drafter: weights and KV cache of one DFlash or DFlash 2 file on one device, `inject` and `draft`.

Positions 0..n-1 of a sequence are committed when their features have been injected; a draft then starts at n. Every
method takes several sequences at once; one is the usual case. Knows nothing of the target's sampler.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine import ggml
from engine.drafter_config import DrafterConfig
from engine.drafter_graph import Cache, build_block, build_injection
from engine.drafter_weights import DrafterWeights, SharedTensors
from engine.errors import ContextTooSmall
from engine.gguf_file import Header, read_header
from engine.graph import Device, Graph, GraphCache, Store
from engine.selector import Lattice

_CONTEXT_STEP = 256  # cache rows; graphs are built per rounded context length, so few shapes serve any length
_INJECTION_ROWS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
_KEPT_ROWS = 64  # positions that may wait for their injection
_GRAPHS = 24  # block lengths and numbers of injected rows in use, and a change of the context's length
_HIDDEN = np.float16(-np.inf)


@dataclass(frozen=True)
class Trace:
    """A draft with everything the reference records of it, for comparison. P = block length - 1."""

    lattice: Lattice
    hidden: NDArray[np.float32]  # [P, H]
    logits: NDArray[np.float32]  # [P, V], of the reduced vocabulary where the file has one


def _rounded(length: int, limit: int) -> int:
    """Up to a multiple of the step; beyond 4096 to eighths of the length, so that long contexts do not add shapes."""
    step = _CONTEXT_STEP
    while step * 16 <= length:
        step *= 2
    return min(-(-length // step) * step, limit)


class Drafter:
    """One drafter on one device. `close` gives its memory back; the device is the caller's."""

    def __init__(
        self,
        source: str | Header,
        device: Device,
        *,
        context: int,
        sequences: int = 1,
        shared: SharedTensors | None = None,
        key_value_type: int | None = None,
        on_progress: Callable[[float], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> None:
        """`context`: committed positions each sequence can hold. `key_value_type`: ggml's F32 or F16; by default F32 on
        the CPU, where it costs no time, and F16 elsewhere, where flash attention wants it.

        Raises ModelFileError, DrafterMismatch, OutOfMemory, Cancelled.
        """
        header = read_header(source) if isinstance(source, str) else source
        self.path = header.path
        self.file_name = os.path.basename(header.path)
        self.config = DrafterConfig.from_header(header)
        self.context = context
        self._device = device
        self._committed = [0] * sequences
        self._store: Store | None = None
        self._graphs: GraphCache | None = None
        self._host: Device | None = None  # where the embeddings are looked up when the device cannot reach them
        self._look_ups: GraphCache | None = None
        self._weights = DrafterWeights(header, self.config, device, shared, on_progress, cancel)
        try:
            if key_value_type is None:
                key_value_type = ggml.F32 if device.is_cpu else ggml.F16
            self._allocate_cache(sequences, key_value_type)
            self._graphs = GraphCache(device, _GRAPHS)
            if not self._reaches(self._weights.embeddings):
                self._host = Device.cpu(threads=1)
                self._look_ups = GraphCache(self._host, capacity=4)
        except BaseException:
            self.close()
            raise

    def _allocate_cache(self, sequences: int, type_: int) -> None:
        config = self.config
        width = config.kv_heads * config.head_dim
        slots = -(-(self.context + config.block_size) // _CONTEXT_STEP) * _CONTEXT_STEP
        rows = sequences * slots + 1
        self._counting = np.arange(slots)
        self._kept = np.empty((_KEPT_ROWS, len(config.target_layers) * config.hidden_size), np.float32)
        self._kept_positions, self._kept_slots = np.empty((2, _KEPT_ROWS), np.int64)
        self._waiting = 0
        self._store = Store(self._device.buffer_type, 2 * config.layers)
        layers = range(config.layers)
        keys = tuple(self._store.tensor(f"keys.{i}", type_, width, rows) for i in layers)
        values = tuple(self._store.tensor(f"values.{i}", type_, width, rows) for i in layers)
        self._store.allocate(zero=True)  # masked rows still enter sums: they must be numbers
        element = ggml.type_size(type_)
        self._cache = Cache(keys, values, slots, width * element, element)

    # state

    def committed(self, sequence: int = 0) -> int:
        """How many positions of the sequence have given their features, counted from 0 without a hole."""
        return self._committed[sequence]

    @property
    def waiting(self) -> int:
        """How many of the committed positions, of all sequences, are still to be injected."""
        return self._waiting

    def cut(self, sequence: int, length: int) -> None:
        """Forget the positions from `length` on."""
        if length < self._committed[sequence]:
            self.flush()  # what waits must not be written later over what is injected there next
            self._committed[sequence] = length

    @property
    def weight_bytes(self) -> int:
        return self._weights.nbytes

    @property
    def cache_bytes(self) -> int:
        return self._store.nbytes if self._store else 0

    def close(self) -> None:
        for graphs in (self._graphs, self._look_ups):
            if graphs:
                graphs.close()
        if self._host:
            self._host.close()
        if self._store:
            self._store.close()
        self._weights.close()
        self._graphs = self._look_ups = self._store = self._host = None

    # computing

    def inject(self, features: Sequence[NDArray[np.float32]], counts: dict[int, int] | None = None) -> None:
        """Append positions to the cache.

        `features`: one array [n, H] for each tapped layer, in the config's order. `counts`: rows for each sequence,
        in the order in which they lie in the arrays, which may have more behind them; without it all n rows belong to
        sequence 0. Raises ContextTooSmall when a sequence would outgrow its cache.
        """
        counts = {0: len(features[0])} if counts is None else counts
        positions, slots = self._places(counts)
        total = len(positions)
        for begin in range(0, total, _INJECTION_ROWS[-1]):
            end = min(total, begin + _INJECTION_ROWS[-1])
            graph = self._injection_graph(end - begin)
            table, hidden = graph.arrays["features"][0, 0], self.config.hidden_size
            for index, layer in enumerate(features):
                table[: end - begin, index * hidden : (index + 1) * hidden] = layer[begin:end]
            self._inject(graph, positions[begin:end], slots[begin:end])
        for sequence, count in counts.items():
            self._committed[sequence] += count

    def keep(self, features: Sequence[NDArray[np.float32]], counts: dict[int, int]) -> None:
        """As `inject`, but computed later, together with others: when a draft wants it, or when many are waiting.

        One by one behind plain passes, injections would cost several times as much.
        """
        positions, slots = self._places(counts)
        total = len(positions)
        if total > _KEPT_ROWS:
            self.inject(features, counts)
            return
        if self._waiting + total > _KEPT_ROWS:
            self.flush()
        begin, end, hidden = self._waiting, self._waiting + total, self.config.hidden_size
        for index, layer in enumerate(features):
            self._kept[begin:end, index * hidden : (index + 1) * hidden] = layer[:total]
        self._kept_positions[begin:end] = positions
        self._kept_slots[begin:end] = slots
        self._waiting = end
        for sequence, count in counts.items():
            self._committed[sequence] += count

    def flush(self) -> None:
        """Inject what was kept."""
        total = self._waiting
        if total:
            graph = self._injection_graph(total)
            graph.arrays["features"][0, 0, :total] = self._kept[:total]
            self._inject(graph, self._kept_positions[:total], self._kept_slots[:total])
            self._waiting = 0

    def _places(self, counts: dict[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions and cache rows of the next `counts` of each sequence. Raises ContextTooSmall."""
        spans = []
        for sequence, count in counts.items():
            start = self._committed[sequence]
            if start + count > self.context:
                raise ContextTooSmall(f"The drafter's cache holds {self.context} tokens; start with a longer context.")
            spans.append(self._counting[start : start + count])
        if len(spans) == 1 and 0 in counts:
            return spans[0], spans[0]
        shifted = [span + sequence * self._cache.slots for sequence, span in zip(counts, spans)]
        return np.concatenate(spans), np.concatenate(shifted)

    def _inject(self, graph: Graph, positions: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
        """Compute a graph whose features are written; it may have more rows than there are positions."""
        n, arrays = len(positions), graph.arrays
        arrays["features"][0, 0, n:] = 0
        for name, values, other in (
            ("positions", positions, 0),
            ("slots", slots, len(self._committed) * self._cache.slots),  # the row that nobody reads
        ):
            row = arrays[name][0, 0, 0]
            row[:n] = values
            row[n:] = other
        graph.compute()

    def _injection_graph(self, n: int) -> Graph:
        """For at least n rows."""
        assert self._graphs is not None
        rows = next(size for size in _INJECTION_ROWS if size >= n)
        return self._graphs.get(
            ("inject", rows), lambda graph: build_injection(graph, self.config, self._weights, self._cache, rows)
        )

    def draft(
        self, anchors: Sequence[int], sequences: Sequence[int] = (0,), block_length: int | None = None
    ) -> list[Lattice]:
        """The candidates of one block for each sequence, whose anchor stands right behind its committed positions.

        `block_length` counts the anchor: it proposes block_length - 1 drafts. Default: the drafter's block size.
        """
        graph = self._run(anchors, sequences, block_length or self.config.block_size, record=False)
        return [self._lattice(graph, index) for index in range(len(anchors))]

    def trace(self, anchor: int, sequence: int = 0, block_length: int | None = None) -> Trace:
        """One sequence's draft with its hidden states and logits."""
        graph = self._run([anchor], (sequence,), block_length or self.config.block_size, record=True)
        hidden, logits = graph.arrays["hidden"][0, 0], graph.arrays["logits"][0, 0]
        return Trace(self._lattice(graph, 0), hidden.astype(np.float32), logits.astype(np.float32))

    def key_values(self, sequence: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The committed keys and values, each [layers, n, kv heads * head dim]."""
        self.flush()
        width = self.config.kv_heads * self.config.head_dim
        n = self._committed[sequence]
        dtype = np.float16 if self._cache.element_bytes == 2 else np.float32
        both = []
        for tensors in (self._cache.keys, self._cache.values):
            array = np.empty((len(tensors), n, width), dtype)
            for index, tensor in enumerate(tensors):
                start = sequence * self._cache.slots * self._cache.row_bytes
                ggml.tensor_get(tensor, array[index].ctypes.data, start, array[index].nbytes)
            both.append(array.astype(np.float32))
        return both[0], both[1]

    def _run(self, anchors: Sequence[int], sequences: Sequence[int], b: int, record: bool) -> Graph:
        if not 2 <= b <= self.config.block_size:
            raise ValueError(f"a block of {b} tokens: this drafter's are 2 to {self.config.block_size}")
        self.flush()
        starts = [self._committed[sequence] for sequence in sequences]
        context = _rounded(max(starts) + b, self._cache.slots)
        key = ("block", tuple(sequences), b, context, record)

        def build(graph: Graph) -> None:
            build_block(
                graph, self.config, self._weights, self._cache, tuple(sequences), b, context,
                look_up=self._look_ups is None, record=record,
            )  # fmt: skip

        assert self._graphs is not None
        graph = self._graphs.get(key, build)
        arrays = graph.arrays
        if self._look_ups is None:
            self._fill_ids(arrays["ids"][0, 0, 0], anchors, b)
        else:
            ids = np.empty(b * len(starts), np.int32)
            self._fill_ids(ids, anchors, b)
            arrays["embeddings"][0, 0] = self._looked_up(self._look_ups, ids)
        if "anchors" in arrays:
            arrays["anchors"][0, 0, 0] = anchors
        positions, slots = arrays["positions"][0, 0, 0], arrays["slots"][0, 0, 0]
        for index, (sequence, start) in enumerate(zip(sequences, starts)):
            block = self._counting[start : start + b]
            positions[index * b : (index + 1) * b] = block
            slots[index * b : (index + 1) * b] = block + sequence * self._cache.slots if sequence else block
            if f"mask.{index}" in arrays:
                self._fill_mask(arrays[f"mask.{index}"][0, 0], start, b, None)
            if f"sliding.{index}" in arrays:
                self._fill_mask(arrays[f"sliding.{index}"][0, 0], start, b, self.config.window)
        graph.compute()
        return graph

    def _fill_ids(self, ids: NDArray[np.int32], anchors: Sequence[int], b: int) -> None:
        """[anchor, mask, mask, …] for each sequence."""
        ids[:] = self.config.mask_token
        ids[::b] = anchors

    def _reaches(self, tensor: int) -> bool:
        """Whether the device can read a tensor where it lies. Of an offloaded target the embeddings stay on the CPU."""
        return bool(ggml.dev_supports_buft(self._device.handle, ggml.buffer_get_type(ggml.read(tensor).buffer)))

    def _looked_up(self, graphs: GraphCache, ids: NDArray[np.int32]) -> NDArray[np.generic]:
        """[n] -> [n, H], computed where the embeddings lie."""

        def build(graph: Graph) -> None:
            graph.output("rows", graph.get_rows(self._weights.embeddings, graph.input("ids", ggml.I32, len(ids))))

        graph = graphs.get(len(ids), build)
        graph.arrays["ids"][0, 0, 0] = ids
        graph.compute()
        rows: NDArray[np.generic] = graph.arrays["rows"][0, 0]
        return rows

    def _fill_mask(self, mask: NDArray[np.generic], start: int, b: int, window: int | None) -> None:
        """mask [b, n_kv]: 0 where block row i (position start + i) sees the position of a cache row, else -inf."""
        mask[:, : start + b] = 0
        mask[:, start + b :] = _HIDDEN
        causal = self.config.causal or (window is not None and self.config.sliding_causal)
        if not causal and window is None:
            return
        for row in range(b):
            if causal:
                mask[row, start + row + 1 : start + b] = _HIDDEN
            if window is not None:
                mask[row, : max(0, start + row - window + 1)] = _HIDDEN

    def _lattice(self, graph: Graph, index: int) -> Lattice:
        """A copy of what the graph computed for one sequence: its memory serves the next computation."""
        arrays = graph.arrays
        candidates = arrays["candidates"][0, index].copy()  # [P, k]
        unary = arrays["unary"][0, index].copy()
        if "first" not in arrays:
            return Lattice(candidates, unary)
        first = arrays["first"][index, 0, 0].copy()  # [k]
        if "rest" not in arrays:
            return Lattice(candidates, unary, first, np.empty((0, len(first), len(first)), np.float32))
        return Lattice(candidates, unary, first, arrays["rest"][index].copy())  # [P-1, k predecessors, k successors]
