"""The target: a GGUF model driven through llama-cpp-python's C API.

Load with progress and cancel, prefill in chunks, evaluate a verification batch, read the features, cut back. Each
sequence's committed length is kept here, and every batch starts right behind it. Knows nothing of drafters.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llama_cpp import llama_cpp as libllama
from numpy.typing import NDArray

from engine import ggml
from engine.devices import device_handle
from engine.drafter_config import FEATURE_TAP_ARCHITECTURES
from engine.errors import Cancelled, ContextTooSmall, ModelFileError, OutOfMemory, SettingsError
from engine.events import KV_TYPES, TargetInfo
from engine.gguf_file import Header
from engine.vocabulary import Vocabulary

PREFILL_CHUNK = 512  # tokens in one pass over the prompt
MAX_ROWS = 32  # rows with logits in one pass and sequence: the longest block that can be verified
LEAST_CONTEXT = 64
_GGML_KV_TYPES = dict(zip(KV_TYPES, (ggml.F16, ggml.Q8_0, ggml.Q4_0)))

_set_layer_input = ggml.symbol(
    (
        "llama_set_embeddings_layer_inp",
        "_Z30llama_set_embeddings_layer_inpP13llama_contextjb",
        "?llama_set_embeddings_layer_inp@@YAXPEAUllama_context@@I_N@Z",
    ),
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_bool,
)  # fmt: skip
_get_logits = ggml.symbol("llama_get_logits", ctypes.c_void_p, ctypes.c_void_p)
_get_layer_input = ggml.symbol(
    (
        "llama_get_embeddings_layer_inp",
        "_Z30llama_get_embeddings_layer_inpP13llama_contextj",
        "?llama_get_embeddings_layer_inp@@YAPEAMPEAUllama_context@@I@Z",
    ),
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32,
)  # fmt: skip


libllama.llama_backend_init()
_NO_ABORT = libllama.ggml_abort_callback()  # a null function


@dataclass(frozen=True)
class Pass:
    """What one evaluation returned. The arrays are libllama's own memory: valid until the next evaluation.

    `logits` [rows asked for, V]; `features` one [n, H] array for each tapped layer, n counting all tokens of the batch.
    """

    logits: NDArray[np.float32]
    features: list[NDArray[np.float32]]


class Target:
    """A loaded target with a context for one or several sequences."""

    def __init__(
        self,
        header: Header,
        *,
        context: int,
        threads: int,
        gpu_layers: int = -1,
        sequences: int = 1,
        exact: bool = False,
        device: str | None = None,
        kv_type: str = "f16",
        states: int = 0,
        on_progress: Callable[[float], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> None:
        """`context`: tokens each sequence can hold, cut to what the model was trained for. `exact`: attention in
        float32, slower and with twice the memory; with float32 weights, single and batched decoding then agree to a
        millionth. `device`: the only one that layers go to, None = as libllama chooses. `kv_type`: one of KV_TYPES.
        `states`: as in `keep_states`.

        Raises ModelFileError, SettingsError, ContextTooSmall, OutOfMemory, Cancelled.
        """
        if kv_type not in _GGML_KV_TYPES:
            kinds = ", ".join(KV_TYPES)
            raise SettingsError(f"Keys and values are to be kept as {kv_type!r}; it must be one of {kinds}.")
        self.path = header.path
        self.file_name = os.path.basename(header.path)
        self.architecture = header.architecture
        self.threads = threads
        self.sequences = sequences
        self._context: Any = None
        self._batch: Any = None
        self._abort: Any = None
        self._exact = exact
        self._states = states
        self.kv_type = kv_type
        self.gpu_layers = gpu_layers
        self._taps: tuple[int, ...] = ()
        self._views: dict[tuple[int, int, int], NDArray[np.float32]] = {}
        self._held: list[list[int]] = [[] for _ in range(sequences)]
        with ggml.log_lines() as weights_said:
            self._model = self._load(gpu_layers, device, on_progress, cancel)
        try:
            trained = libllama.llama_model_n_ctx_train(self._model)
            self.context = min(context, trained) if trained > 0 else context
            if self.context < LEAST_CONTEXT:
                raise ContextTooSmall(
                    f"A context of {self.context} tokens is too small; choose at least {LEAST_CONTEXT}."
                )
            self.hidden_size: int = libllama.llama_model_n_embd(self._model)
            self.layers: int = libllama.llama_model_n_layer(self._model)
            # Sequences behind one another in the cache are cut by position only where attention keeps all positions.
            self.recurrent = bool(
                libllama.llama_model_is_recurrent(self._model) or libllama.llama_model_is_hybrid(self._model)
            )
            self._weight_buffers = _buffers(weights_said, "model")
            self._open_context()
            template = libllama.llama_model_chat_template(self._model, None)
            self.vocabulary = Vocabulary(
                self._model, template.decode("utf-8", "replace") if template else None, self.file_name
            )
            self._make_batch(max(PREFILL_CHUNK, MAX_ROWS * sequences))
            self._embeddings, self._head = self._look_for_shared_tensors()
            self.info = self._describe(header)
        except BaseException:
            self.close()
            raise

    # loading

    def _load(
        self,
        gpu_layers: int,
        device: str | None,
        on_progress: Callable[[float], None] | None,
        cancel: threading.Event | None,
    ) -> Any:
        params = libllama.llama_model_default_params()
        params.n_gpu_layers = min(gpu_layers, 1 << 20)  # a larger number would wrap; all are fewer
        if device is not None:
            chosen = device_handle(device)
            on_cpu = ggml.dev_type(chosen) == ggml.DEVICE_CPU
            # The list of devices to offload to ends with a null; an empty one means none.
            offload_to = (ctypes.c_void_p * 2)(None if on_cpu else chosen, None)
            params.devices = ctypes.cast(offload_to, ctypes.c_void_p)
            if on_cpu:
                params.n_gpu_layers = 0

        @libllama.llama_progress_callback
        def progress(fraction: float, _data: object) -> bool:
            if on_progress is not None:
                on_progress(fraction)
            return cancel is None or not cancel.is_set()

        params.progress_callback = progress
        ggml.last_errors.clear()
        model = libllama.llama_model_load_from_file(os.fsencode(self.path), params)
        if cancel is not None and cancel.is_set():
            if model:
                libllama.llama_model_free(model)
            raise Cancelled
        if not model:
            first = ggml.last_errors[0] if ggml.last_errors else "no reason given"  # those behind it say only that
            reason = first.rpartition("error loading model: ")[2]
            raise ModelFileError(
                f"The model {self.file_name} could not be loaded ({reason}); "
                "download it again, or choose another model."
            )
        return model

    def _context_params(self, context: int, sequences: int) -> Any:
        params = libllama.llama_context_default_params()
        params.n_ctx = context * sequences
        params.n_batch = max(PREFILL_CHUNK, MAX_ROWS * sequences)
        params.n_ubatch = params.n_batch
        params.n_seq_max = sequences
        params.n_outputs_max = MAX_ROWS * sequences  # sizes the logits buffer; more rows than this would abort
        params.n_threads = params.n_threads_batch = self.threads
        params.swa_full = True  # a cache that forgets cannot be cut back
        params.kv_unified = True  # one batch for sequences that verify different numbers of drafts
        if self._exact:  # flash attention computes in float16, whatever the cache holds
            params.type_k = params.type_v = ggml.F32
            params.flash_attn_type = libllama.LLAMA_FLASH_ATTN_TYPE_DISABLED
        elif self.kv_type != "f16":  # quantised values are read by flash attention only
            params.type_k = params.type_v = _GGML_KV_TYPES[self.kv_type]
            params.flash_attn_type = libllama.LLAMA_FLASH_ATTN_TYPE_ENABLED
        params.no_perf = True
        if self.recurrent:
            params.n_rs_seq = self._states
        return params

    def _open_context(self) -> None:
        with ggml.log_lines() as said:
            self._context = self._new_context()
        buffers = _buffers(said, "KV|RS")
        self.context_bytes = sum(size for _, size in buffers)
        self.offloaded_bytes = sum(
            size for name, size in (*self._weight_buffers, *buffers) if not _in_host_memory(name)
        )  # fmt: skip
        self._memory = libllama.llama_get_memory(self._context)

    def _new_context(self) -> Any:
        ggml.last_errors.clear()
        context = libllama.llama_init_from_model(self._model, self._context_params(self.context, self.sequences))
        if not context:
            said = " ".join(ggml.last_errors)
            if self.kv_type != "f16" and "alloc" not in said:
                raise SettingsError(
                    f"The model {self.file_name} cannot keep its keys and values as {self.kv_type} "
                    f"({said or 'no reason given'}); choose f16."
                )
            raise OutOfMemory(
                f"There is not enough free memory for a context of {self.context} tokens; choose a shorter one."
            )
        return context

    def _make_batch(self, capacity: int) -> None:
        self._batch = libllama.llama_batch_init(capacity, 0, 1)

        def array(pointer: Any, dtype: type[np.generic]) -> Any:
            size = capacity * np.dtype(dtype).itemsize
            memory: Any = (ctypes.c_char * size).from_address(ctypes.cast(pointer, ctypes.c_void_p).value or 0)
            return np.frombuffer(memory, dtype)

        self._tokens = array(self._batch.token, np.int32)
        self._positions = array(self._batch.pos, np.int32)
        self._wanted = array(self._batch.logits, np.int8)
        self._counting = np.arange(self.context, dtype=np.int32)
        array(self._batch.n_seq_id, np.int32)[:] = 1
        self._sequence_ids = [self._batch.seq_id[row] for row in range(capacity)]
        self._row_sequences = [0] * capacity  # what those point to now
        for pointer in self._sequence_ids:
            pointer[0] = 0

    def _look_for_shared_tensors(self) -> tuple[int | None, int | None]:
        """The embedding matrix and the head, found by watching one token go through a context of its own.

        No C call returns a model's tensors; the evaluation callback shows every node, and only looks.
        """
        found: dict[str, int] = {}

        @libllama.ggml_backend_sched_eval_callback
        def watch(node: int, _ask: bool, _data: object) -> bool:
            struct = ggml.read(node)
            operation = ggml.op_name(struct.op)
            if operation == b"GET_ROWS" and struct.src[0] and ggml.read(struct.src[0]).name == b"token_embd.weight":
                found.setdefault("embeddings", struct.src[0])
            elif operation == b"MUL_MAT" and struct.src[0]:
                found["last product"] = struct.src[0]  # the head is the last matrix of the graph
            return False

        params = self._context_params(LEAST_CONTEXT, 1)
        params.n_batch = params.n_ubatch = 1
        params.n_outputs_max = 1
        params.n_rs_seq = 0  # a pass must be longer than what can be taken back, else libllama aborts the process
        params.cb_eval = watch
        context = libllama.llama_init_from_model(self._model, params)
        if not context:
            return None, None
        try:
            token = (ctypes.c_int32 * 1)(0)
            libllama.llama_decode(context, libllama.llama_batch_get_one(token, 1))
        finally:
            libllama.llama_free(context)
        head = found.get("last product")
        if head is not None and list(ggml.read(head).ne[:2]) != [self.hidden_size, self.vocabulary.size]:
            head = None
        return found.get("embeddings"), head

    def _describe(self, header: Header) -> TargetInfo:
        return TargetInfo(
            path=self.path,
            name=header.name,
            architecture=self.architecture,
            quantisation=header.quantisation,
            parameters=libllama.llama_model_n_params(self._model),
            file_bytes=header.file_bytes,
            context_served=self.context,
            context_trained=libllama.llama_model_n_ctx_train(self._model),
            vocabulary=self.vocabulary.size,
            hidden_size=self.hidden_size,
            layers=self.layers,
            device=self.device_name,
        )

    # what it is

    @property
    def device_handle(self) -> int:
        """The ggml device that holds the output layer."""
        buffer = ggml.read(self._head).buffer if self._head else None
        device = ggml.buft_get_device(ggml.buffer_get_type(buffer)) if buffer else None
        return device or ggml.dev_by_type(ggml.DEVICE_CPU)  # type: ignore[no-any-return]

    @property
    def device_name(self) -> str:
        return str(ggml.dev_name(self.device_handle).decode())

    @property
    def embeddings(self) -> int | None:
        """The embedding matrix as a ggml tensor (H, V), of this model's memory."""
        return self._embeddings

    @property
    def head(self) -> int | None:
        """The output matrix as a ggml tensor (H, V), of this model's memory."""
        return self._head

    @property
    def weight_bytes(self) -> int:
        """Weights in memory; tied embeddings that libllama keeps in a second order for the head count twice."""
        total: int = libllama.llama_model_size(self._model)
        head, embeddings = self._head, self._embeddings
        if head and embeddings and head != embeddings and ggml.read(head).name == ggml.read(embeddings).name:
            total += ggml.nbytes(head)
        return total

    # features

    @property
    def taps(self) -> tuple[int, ...]:
        return self._taps

    def tap(self, layers: Sequence[int]) -> None:
        """From now on hand out the residual stream entering these layers. Only for architectures with a tap."""
        if layers and self.architecture not in FEATURE_TAP_ARCHITECTURES:
            raise ModelFileError(
                f"Models of the architecture '{self.architecture}' do not hand out the features that a drafter reads; "
                f"{self.file_name} can be used in baseline mode."
            )
        for layer in set(self._taps) - set(layers):
            _set_layer_input(self._context, layer, False)
        for layer in set(layers) - set(self._taps):
            _set_layer_input(self._context, layer, True)
        self._taps = tuple(layers)

    # evaluating

    def committed(self, sequence: int = 0) -> int:
        """How many positions of the sequence are in the cache."""
        return len(self._held[sequence])

    def tokens(self, sequence: int = 0) -> list[int]:
        """The tokens at the committed positions (the list itself: do not change it)."""
        return self._held[sequence]

    def evaluate(self, rows: Sequence[tuple[int, Sequence[int]]], *, last_only: bool = False) -> Pass:
        """Decode tokens behind the committed ones of each (sequence, tokens), in one batch, and commit them.

        Logits come for every token, or with `last_only` for the last of each sequence.
        Raises ContextTooSmall when a sequence would outgrow its context, OutOfMemory, Cancelled (an abort that
        `cancellable` allows).
        """
        n = 0
        for sequence, tokens in rows:
            count = len(tokens)
            start = len(self._held[sequence])
            if start + count > self.context:
                raise ContextTooSmall(f"The context holds {self.context} tokens; start with a longer one.")
            if count == 1:  # a plain pass: three numbers are written faster than three slices
                self._tokens[n], self._positions[n] = tokens[0], start
            else:
                self._tokens[n : n + count] = tokens
                self._positions[n : n + count] = self._counting[start : start + count]
                self._wanted[n : n + count] = not last_only
            self._wanted[n + count - 1] = True
            for row in range(n, n + count):
                if self._row_sequences[row] != sequence:
                    self._row_sequences[row] = sequence
                    self._sequence_ids[row][0] = sequence
            n += count
        if not last_only and n > MAX_ROWS * len(self._held):  # libllama aborts the process
            raise ValueError(f"{n} rows with logits in one pass; at most {MAX_ROWS} for each sequence")
        self._batch.n_tokens = n
        status = libllama.llama_decode(self._context, self._batch)
        if status:
            for sequence, _ in rows:  # what a broken pass has left of recurrent states is not known
                self.cut(sequence, 0 if self.recurrent else len(self._held[sequence]))
            if status == 2:
                raise Cancelled
            raise OutOfMemory(
                f"The model {self.file_name} could not read {n} more tokens (libllama status {status}); "
                "choose a longer context or start a new chat."
            )
        for sequence, tokens in rows:
            self._held[sequence].extend(tokens)
        outputs = len(rows) if last_only else n
        vocabulary = self.vocabulary.size
        logits = self._floats(_get_logits(self._context), outputs, vocabulary)
        features = [self._floats(_get_layer_input(self._context, tap), n, self.hidden_size) for tap in self._taps]
        return Pass(logits, features)

    def _floats(self, address: int, rows: int, columns: int) -> NDArray[np.float32]:
        """libllama's memory as an array. Its outputs stay in one place, so the arrays are kept, not made anew."""
        key = (address, rows, columns)
        array = self._views.get(key)
        if array is None:
            if len(self._views) >= 256:  # the outputs have moved, or many sizes were asked for
                self._views.clear()
            memory: Any = (ctypes.c_float * (rows * columns)).from_address(address)
            array = self._views[key] = np.frombuffer(memory, np.float32).reshape(rows, columns)
        return array

    def cancellable(self, cancel: threading.Event | None) -> None:
        """Let `cancel` stop a pass while it runs. Costs a Python call per graph node: for prefill, not for drafts."""
        if cancel is None:
            self._abort = None
            libllama.llama_set_abort_callback(self._context, _NO_ABORT, None)
            return

        @libllama.ggml_abort_callback
        def abort(_data: object) -> bool:
            return cancel.is_set()

        self._abort = abort  # libllama keeps the pointer only
        libllama.llama_set_abort_callback(self._context, abort, None)

    def cut(self, sequence: int, length: int) -> int:
        """Forget positions from `length` on. Returns the committed length: 0 when this model cannot be cut there."""
        if not libllama.llama_memory_seq_rm(self._memory, sequence, length, -1):
            libllama.llama_memory_seq_rm(self._memory, sequence, -1, -1)
            length = 0
        del self._held[sequence][length:]
        return len(self._held[sequence])

    def keep_states(self, positions: int) -> None:
        """From now on the newest `positions` can be cut also where layers keep a recurrent state: by a copy of the
        states for each of them and each sequence, gigabytes in a large model. No other model needs it.

        If there are fewer copies by now, all sequences are forgotten. Raises OutOfMemory; then it is as before, but
        for what was forgotten.
        """
        if not self.recurrent or positions <= self._states:
            return
        before, self._states = self._states, positions
        libllama.llama_free(self._context)  # first: there may not be room for both
        self._context = None
        for held in self._held:
            held.clear()
        self._views.clear()
        taps, self._taps = self._taps, ()
        try:
            self._open_context()
        except OutOfMemory:
            self._states = before
            self._open_context()
            raise
        finally:
            if self._context is not None:
                self.tap(taps)

    def rewind(self, sequence: int, length: int) -> None:
        """Cut back to the first `length` positions. A model that cannot be cut there reads them again: slow, but right.

        Then the arrays of the newest pass are no longer valid. Raises OutOfMemory.
        """
        tokens = self._held[sequence][:length]
        if self.cut(sequence, length) < length:
            for begin in range(0, length, PREFILL_CHUNK):
                self.evaluate([(sequence, tokens[begin : begin + PREFILL_CHUNK])], last_only=True)

    def close(self) -> None:
        if self._batch is not None:
            libllama.llama_batch_free(self._batch)
            self._batch = None
        if self._context is not None:
            libllama.llama_free(self._context)
            self._context = None
        if self._model is not None:
            libllama.llama_model_free(self._model)
            self._model = None


def _buffers(log: Sequence[str], kind: str) -> list[tuple[str, int]]:
    """(name of the buffer type, bytes) of the buffers that libllama says it has allocated; no call gives them."""
    found = [re.search(rf": +(\S+) (?:{kind}) buffer size = +([0-9.]+) MiB", line) for line in log]
    return [(match[1], round(float(match[2]) * 2**20)) for match in found if match]


def _in_host_memory(buffer_type: str) -> bool:
    """Whether it counts for the process: CPU, CPU_Mapped, CPU_REPACK, …, and what a device pins there (CUDA_Host)."""
    return buffer_type.startswith("CPU") or buffer_type.endswith("_Host")
