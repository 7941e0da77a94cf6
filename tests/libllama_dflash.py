"""libllama's own `dflash` graph as an oracle: the same drafter file through llama-cpp-python's low-level interface.

It drives a drafter as llama.cpp's speculative decoding does: a batch of embeddings injects features, a batch of tokens
drafts a block, which is cut off again afterwards. `draft` reads out everything there is to compare, `step` does only
what upstream needs of a draft and is what a benchmark may time. It knows one sequence, and nothing of the engine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from llama_cpp import llama_cpp_ext
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

GGML_TYPE_F32, GGML_TYPE_F16 = 0, 1
ROPE_TYPE_MROPE = 8


@llama_cpp.llama_log_callback
def _silence(level: int, text: bytes, user_data: ctypes.c_void_p) -> None:
    """libllama keeps the pointer, so this function lives as long as the module."""


@contextmanager
def quiet() -> Iterator[None]:
    """libllama says nothing in here; afterwards the log goes where it went before."""
    callback, data = llama_cpp.llama_log_callback(), ctypes.c_void_p()
    llama_cpp.llama_log_get(ctypes.byref(callback), ctypes.byref(data))
    llama_cpp.llama_log_set(_silence, ctypes.c_void_p())
    try:
        yield
    finally:
        llama_cpp.llama_log_set(callback, data)


@dataclass(frozen=True)
class LibllamaDraft:
    """One block pass, rows for the block positions 1..B-1 (P = B-1)."""

    hidden: Floats  # [P, H], after the output norm
    logits: Floats  # [P, V]; in DFlash (v1) libllama applies neither logit scale nor soft cap
    path: Ints  # [P], the greedy path
    candidates: Ints | None  # [P, k], best first; None in DFlash (v1), as all below
    unary: Floats | None  # [P, k], their logits
    score_first: Floats | None  # [k]
    score_rest: Floats | None  # [P-1, k, k], candidate b of position i+2 after candidate a of position i+1


class LibllamaDrafter:
    """A drafter file in libllama; `close` it.

    `target` is a `llama_context` pointer, needed where the file has no embeddings or no head.
    `exact`, for comparisons, keeps keys and values in float32 and attends without flash attention; without it both are
    libllama's defaults, float16 and flash attention.
    """

    def __init__(
        self,
        path: str | Path,
        target: Any = None,
        n_ctx: int = 1024,
        threads: int = 1,
        exact: bool = True,
        batch: int = 128,
    ) -> None:
        self._ctx: Any = None
        self._model: Any = None
        with quiet():
            self._load(str(path), target, n_ctx, threads, exact, batch)
        self._memory: Any = llama_cpp.llama_get_memory(self._ctx)

        vocab = llama_cpp.llama_model_get_vocab(self._model)
        assert vocab is not None
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(vocab)
        self.mask_token = llama_cpp.llama_vocab_mask(vocab)
        self.hidden_size = llama_cpp.llama_model_n_embd(self._model)
        self.block_size = int(self._metadata("dflash.block_size", "16"))
        self.top_k = int(self._metadata("dflash.selector_top_k", "0"))  # 0: DFlash (v1)
        causal = self._metadata("dflash.attention.causal", "false") == "true"
        with quiet():
            llama_cpp.llama_set_causal_attn(self._ctx, causal)
            # the lattice comes out where other models give the hidden states of their next-token layers
            llama_cpp_ext.llama_set_embeddings_nextn(self._ctx, True, self.top_k == 0)
        self._positions_per_row = 4 if llama_cpp.llama_model_rope_type(self._model) == ROPE_TYPE_MROPE else 1
        self._arrays: tuple[Any, ...] = ()  # what the batch in flight points to

    def _load(self, path: str, target: Any, n_ctx: int, threads: int, exact: bool, batch: int) -> None:
        llama_cpp.llama_backend_init()
        model_params = llama_cpp.llama_model_default_params()
        model_params.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(path.encode(), model_params)
        if not self._model:
            raise ValueError(f"libllama cannot load {path}")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = n_ctx
        params.n_batch = params.n_ubatch = batch  # libllama reserves logits for every row of a batch
        params.n_threads = params.n_threads_batch = threads
        params.type_k = params.type_v = GGML_TYPE_F32 if exact else GGML_TYPE_F16
        if exact:  # libllama's flash attention turns float32 keys and values into float16
            params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.kv_unified = True
        params.ctx_other = target
        self._ctx = llama_cpp.llama_init_from_model(self._model, params)
        if not self._ctx:
            self.close()
            raise ValueError(f"libllama cannot make a context for {path}")

    def close(self) -> None:
        with quiet():
            if self._ctx:
                llama_cpp.llama_free(self._ctx)
                self._ctx = None
            if self._model:
                llama_cpp.llama_model_free(self._model)
                self._model = None

    def inject(self, features: Floats, positions: Sequence[int] | Ints | None = None) -> None:
        """The features of committed positions, [n, F*H]; positions default to the next ones."""
        if positions is None:
            start = llama_cpp.llama_memory_seq_pos_max(self._memory, 0) + 1
            positions = np.arange(start, start + len(features))
        chunk = llama_cpp.llama_n_ubatch(self._ctx)
        for i in range(0, len(features), chunk):
            rows = np.ascontiguousarray(features[i : i + chunk], np.float32)
            self._decode(None, rows, np.asarray(positions[i : i + chunk]), outputs=False)

    def cut(self, n: int) -> None:
        """Keep only the positions below n."""
        if not llama_cpp.llama_memory_seq_rm(self._memory, 0, n, -1):
            raise RuntimeError(f"libllama could not cut the drafter's cache back to {n} positions")

    def draft(self, anchor: int, start: int, block_length: int | None = None) -> LibllamaDraft:
        """One block [anchor, mask, mask, ...] at positions start, start+1, ...; the cache stays as it is."""
        length = block_length or self.block_size
        with quiet():
            llama_cpp.llama_set_embeddings(self._ctx, True)
            try:
                self._decode_block(anchor, start, length, outputs=True)
                hidden = self._read(llama_cpp.llama_get_embeddings(self._ctx), length, self.hidden_size)[1:]
                logits = self._read(llama_cpp.llama_get_logits(self._ctx), length, self.vocabulary)[1:]
                if self.top_k == 0:
                    return LibllamaDraft(hidden, logits, np.argmax(logits, axis=-1), None, None, None, None)
                return self._sorted_lattice(hidden, logits)
            finally:
                llama_cpp.llama_set_embeddings(self._ctx, False)
                self.cut(start)

    def step(self, anchor: int, start: int, block_length: int | None = None) -> list[int]:
        """The greedy drafts of one block, [P], with nothing done that upstream does not need."""
        length = block_length or self.block_size
        is_v2 = self.top_k > 0
        self._decode_block(anchor, start, length, outputs=not is_v2)
        drafts = []
        if is_v2:
            lattice = self._view(llama_cpp_ext.llama_get_embeddings_nextn(self._ctx), length, self.hidden_size)
            taken = 0
            for row in lattice[1:]:
                begin = self.top_k * (1 + taken)
                taken = int(row[begin : begin + self.top_k].argmax())
                drafts.append(int(row[taken]))
        else:
            logits = self._view(llama_cpp.llama_get_logits(self._ctx), length, self.vocabulary)
            drafts = [int(row.argmax()) for row in logits[1:]]
        self.cut(start)
        return drafts

    # ------------------------------------------------------------------------------------------------------------------

    def _metadata(self, key: str, default: str) -> str:
        buffer = ctypes.create_string_buffer(256)
        size = llama_cpp.llama_model_meta_val_str(self._model, key.encode(), buffer, len(buffer))
        return default if size < 0 else buffer.value.decode()

    def _decode_block(self, anchor: int, start: int, length: int, outputs: bool) -> None:
        if not 1 < length <= self.block_size:
            raise ValueError(f"a block of {length} positions, where the drafter was trained for 2 to {self.block_size}")
        tokens = np.full(length, self.mask_token, np.int32)
        tokens[0] = anchor
        self._decode(tokens, None, np.arange(start, start + length), outputs)

    def _decode(
        self, tokens: NDArray[np.int32] | None, embeddings: Floats | None, positions: Ints, outputs: bool
    ) -> None:
        n = len(positions)
        pos = positions.astype(np.int32)
        if embeddings is not None and self._positions_per_row == 4:
            pos = np.concatenate([pos, pos, pos, np.zeros(n, np.int32)])  # M-RoPE: temporal, height, width, none
        wanted = np.full(n, outputs, np.int8)
        batch = llama_cpp.llama_batch(
            n_tokens=n,
            token=None if tokens is None else tokens.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token)),
            embd=None if embeddings is None else embeddings.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
            pos=pos.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_pos)),
            n_seq_id=None,  # every row belongs to sequence 0
            seq_id=None,
            logits=wanted.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
        )
        self._arrays = (tokens, embeddings, pos, wanted)
        if (status := llama_cpp.llama_decode(self._ctx, batch)) != 0:
            raise RuntimeError(f"libllama's decode of a drafter batch returned {status}")

    @staticmethod
    def _view(pointer: Any, rows: int, columns: int) -> Floats:
        """libllama's memory, valid until the next decode."""
        return np.ctypeslib.as_array(pointer, shape=(rows, columns))

    def _read(self, pointer: Any, rows: int, columns: int) -> Floats:
        return self._view(pointer, rows, columns).copy()

    def _sorted_lattice(self, hidden: Floats, logits: Floats) -> LibllamaDraft:
        """Undo the packing: a row of H floats holds k ids, then k * k scores, in no order of the candidates."""
        k, rows = self.top_k, len(hidden)
        packed = self._read(llama_cpp_ext.llama_get_embeddings_nextn(self._ctx), rows + 1, self.hidden_size)[1:]
        ids = packed[:, :k].astype(np.int64)
        scores = packed[:, k : k + k * k].reshape(rows, k, k)  # [P, candidate before, candidate]
        path, taken = [], 0
        for p in range(rows):
            taken = int(np.argmax(scores[p, taken]))
            path.append(int(ids[p, taken]))
        unary = np.take_along_axis(logits, ids, axis=1)
        order = np.argsort(-unary, axis=1, kind="stable")
        first = scores[0, 0][order[0]]  # every row of position 1 holds the scores after the anchor
        rest = [scores[p][order[p - 1]][:, order[p]] for p in range(1, rows)]
        return LibllamaDraft(
            hidden=hidden,
            logits=logits,
            path=np.array(path),
            candidates=np.take_along_axis(ids, order, axis=1),
            unary=np.take_along_axis(unary, order, axis=1),
            score_first=first,
            score_rest=np.stack(rest) if rest else np.zeros((0, k, k), np.float32),
        )
