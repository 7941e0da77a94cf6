"""What a target and its drafters will take, before they are loaded or downloaded, against the memory that is free.

Computed from headers alone, by the rules of libllama and of our own drafter; the tests hold it against what loading
really took. A judgement is a warning and an advice, never a wall: nothing here refuses anything. Loads nothing.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil
from typing import Any

import numpy as np
import psutil

from engine.events import DeviceInfo, LoadSettings
from engine.file_kind import Kind, kind_of
from engine.gguf_file import Header, TensorInfo
from engine.tensor_types import TENSOR_TYPES

# As engine/target.py and engine/drafter.py set libllama and the caches up; a test compares them.
PASS_TOKENS = 512
VERIFIED_ROWS = 32
CONTEXT_STEP = 256
LEAST_CONTEXT = 512  # a shorter one is of no use for an advice
USUAL_CONTEXT = 4096  # that a smaller quantisation should have room for

KIB, MIB = 1 << 10, 1 << 20
PROGRAM_BYTES = 60 * MIB  # Python, NumPy and libllama themselves
KV_BYTES = {"f16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
# Types for which ggml has kernels on matrices in another order, so that it keeps a copy in that order.
_REPACKED = {"Q4_0", "Q4_K", "IQ4_NL", "MXFP4"}
_REPACKED_ON_ARM = _REPACKED | {"Q5_K", "Q6_K", "Q8_0"}
_TIGHT = 0.9  # of what is free
# Quantisations of whole models by their usual bits per weight, mixtures included, the best first.
LADDER = (
    ("Q8_0", 8.5),
    ("Q6_K", 6.6),
    ("Q5_K_M", 5.7),
    ("Q4_K_M", 4.9),
    ("IQ4_NL", 4.6),
    ("Q3_K_M", 3.9),
    ("Q2_K", 3.0),
)
_HYBRID_INTERVAL = 4  # of Qwen's hybrid models where the file does not say: every fourth layer attends


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes.

    `file_pages`: parts of the mapped file of which a copy in another order is used. The system takes them back when
    memory is short, so that they do not count; until then they are part of the process.
    """

    target_weights: int
    target_context: int  # keys, values and recurrent states
    compute: int
    drafter_weights: int
    drafter_cache: int
    program: int
    file_pages: int
    on_devices: int = 0  # of all of these, what lies on devices other than the CPU

    @property
    def total(self) -> int:
        parts = (self.target_weights, self.target_context, self.compute)
        return sum(parts) + self.drafter_weights + self.drafter_cache + self.program

    @property
    def in_ram(self) -> int:
        return self.total - self.on_devices

    @property
    def resident(self) -> int:
        """What the process will be seen to take of RAM when memory is not short."""
        return self.in_ram + self.file_pages


class Verdict(Enum):
    FITS = "fits"
    TIGHT = "tight"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class Fit:
    """`longest_context`: tokens that would fit (None: no length does). `quantisation`: the best to fit, in bytes."""

    need: Need
    verdict: Verdict
    free_ram: int
    free_devices: int
    context: int
    longest_context: int | None
    quantisation: tuple[str, int] | None

    @property
    def needed(self) -> int:
        """Of what is short, or shortest."""
        return self.need.on_devices if self._device_is_short else self.need.in_ram

    @property
    def free(self) -> int:
        return self.free_devices if self._device_is_short else self.free_ram

    @property
    def _device_is_short(self) -> bool:
        on_devices, in_ram = self.need.on_devices, self.need.in_ram
        return on_devices * max(self.free_ram, 1) > in_ram * max(self.free_devices, 1)

    @property
    def sentence(self) -> str:
        needed, free = _gb(self.needed), _gb(self.free)
        if self.verdict is Verdict.FITS:
            return f"Takes about {needed} of the {free} that are free."
        if self.verdict is Verdict.TIGHT:
            return f"Takes about {needed}, nearly all of the {free} that are free; close other programs first."
        return f"Takes about {needed}, but only {free} are free; {self.advice}."

    @property
    def advice(self) -> str:
        if self.longest_context is not None:
            return f"a context of {self.longest_context:,} tokens would fit"
        if self.quantisation is not None:
            name, size = self.quantisation
            return f"the model in {name} (about {_gb(size)}) would fit"
        return "choose a smaller model"


def judge(
    target: Header,
    settings: LoadSettings,
    drafters: Sequence[Header] = (),
    devices: Sequence[DeviceInfo] = (),
    *,
    free_ram: int | None = None,
    given_back: int = 0,
) -> Fit:
    """Hold a target with its drafters against what is free now.

    `given_back`: bytes of RAM that will be free before, such as those of the model that is loaded. Raises
    `ModelFileError` for a header without the numbers that every model has.
    """
    ram = (psutil.virtual_memory().available if free_ram is None else free_ram) + given_back
    used = _used_devices(settings, devices)
    on_devices = sum(device.free or 0 for device in used)

    def fits(wanted: LoadSettings, share: float = 1.0) -> bool:
        need = need_of(target, wanted, drafters, offloading=bool(used))
        return need.in_ram <= share * ram and need.on_devices <= share * on_devices

    need = need_of(target, settings, drafters, offloading=bool(used))
    context = served_context(target, settings)
    if fits(settings):
        verdict = Verdict.FITS if fits(settings, _TIGHT) else Verdict.TIGHT
        return Fit(need, verdict, ram, on_devices, context, context, None)
    longest = _longest(lambda tokens: fits(replace(settings, context=tokens)), context)
    shorter = replace(settings, context=min(context, USUAL_CONTEXT))
    rest = need_of(target, shorter, drafters, offloading=bool(used)).total - need.target_weights
    room = int((ram + on_devices) * _TIGHT) - rest
    sizes = ((name, int(target.parameters * bits / 8)) for name, bits in LADDER)
    quantisation = next(((n, size) for n, size in sizes if size <= room and size < need.target_weights), None)
    return Fit(need, Verdict.TOO_LARGE, ram, on_devices, context, longest, quantisation)


def need_of(
    target: Header, settings: LoadSettings, drafters: Sequence[Header] = (), *, offloading: bool = False
) -> Need:
    """`offloading`: there is a device besides the CPU that layers go to."""
    context = served_context(target, settings)
    tensors = sum(tensor.nbytes for tensor in target.tensors.values())
    embeddings = target.tensors.get("token_embd.weight")
    tied = embeddings is not None and "output.weight" not in target.tensors
    share = _offloaded_share(target, settings) if offloading else 0.0
    copies = sum(t.nbytes for t in target.tensors.values() if _is_repacked(t, tied)) * (1 - share)
    second_head = embeddings.nbytes if tied and embeddings and (share or _is_repacked(embeddings, tied)) else 0
    weights = tensors + second_head
    kept_back = embeddings.nbytes if embeddings else 0  # embeddings are looked up on the CPU
    states = 1 + max((min(_block_size(drafter), VERIFIED_ROWS) for drafter in drafters), default=0)
    cache = _context_bytes(target, context, settings, states)
    compute = _compute_bytes(target, context, settings)
    of_drafters = [_drafter_bytes(drafter, context, settings, target) for drafter in drafters]
    drafter_weights, drafter_cache, drafter_compute = (
        (sum(part) for part in zip(*of_drafters)) if drafters else (0, 0, 0)
    )
    on_devices = share * (weights - kept_back + cache)
    if share == 1:
        on_devices += compute + drafter_weights + drafter_cache + drafter_compute
    return Need(
        target_weights=weights,
        target_context=cache,
        compute=compute + drafter_compute,
        drafter_weights=drafter_weights,
        drafter_cache=drafter_cache,
        program=PROGRAM_BYTES + 3 * target.data_offset,
        file_pages=max(0, round(tensors * (1 - share) + copies - weights * (1 - share))),
        on_devices=round(on_devices),
    )


def served_context(target: Header, settings: LoadSettings) -> int:
    trained = target.count("context_length") or settings.context
    return min(settings.context, trained)


# --- the target -------------------------------------------------------------------------------------------------------


def _is_repacked(tensor: TensorInfo, tied: bool) -> bool:
    """A matrix of a suitable type with rows in groups of eight. Embeddings are only looked up, unless they are tied."""
    types = _REPACKED_ON_ARM if platform.machine().lower() in ("arm64", "aarch64") else _REPACKED
    if tensor.type_name not in types or len(tensor.shape) < 2 or tensor.shape[-2] % 8:
        return False
    return tensor.name != "token_embd.weight" or tied


def _offloaded_share(target: Header, settings: LoadSettings) -> float:
    layers = (target.count("block_count") or 0) + 1  # the output counts as one
    return 1.0 if settings.gpu_layers < 0 else min(settings.gpu_layers, layers) / layers


def _cells(context: int, settings: LoadSettings) -> int:
    """Of libllama's cache."""
    return ceil(context * settings.sequences / CONTEXT_STEP) * CONTEXT_STEP


def _context_bytes(target: Header, context: int, settings: LoadSettings, states: int) -> int:
    """Of all sequences. Recurrent states are kept once more for every row that may have to be taken back: `states`."""
    cells = _cells(context, settings)
    layers = max(0, (target.count("block_count") or 0) - (target.count("nextn_predict_layers") or 0))
    kv_heads = _per_layer(target.get("attention.head_count_kv", target.get("attention.head_count")), layers)
    interval = target.count("full_attention_interval")
    if interval is None and target.architecture in ("qwen3next", "qwen35", "qwen35moe"):
        interval = _HYBRID_INTERVAL
    sliding = _per_layer(target.get("attention.sliding_window_pattern"), layers)
    sharing = target.count("attention.shared_kv_layers") or 0  # the last ones read what earlier ones wrote
    element, state = KV_BYTES[settings.kv_type], _state_bytes(target)
    attending = recurrent = 0.0
    for layer in range(layers):
        attends = kv_heads[layer] > 0 if interval is None else (layer + 1) % interval == 0
        if attends and layer < layers - sharing:
            width = sum(_head_width(target, name, bool(sliding[layer])) for name in ("key_length", "value_length"))
            attending += cells * kv_heads[layer] * width * element
        elif not attends and state and not _per_layer_is_set(target, "feed_forward_length", layer, interval):
            recurrent += state * settings.sequences * states
    return round(attending + recurrent)


def _state_bytes(target: Header) -> int:
    """Of one recurrent layer and one sequence, float32: the convolution's last inputs and the state proper."""
    if short := target.count("shortconv.l_cache"):
        return 4 * (short - 1) * (target.count("embedding_length") or 0)
    inner, state = target.count("ssm.inner_size") or 0, target.count("ssm.state_size") or 0
    taps, groups = target.count("ssm.conv_kernel") or 1, target.count("ssm.group_count") or 0
    return 4 * ((taps - 1) * (inner + 2 * groups * state) + inner * state)


def _per_layer(value: Any, layers: int) -> list[int]:
    """A number for all layers, or an array with one for each (a short one is repeated, as llama.cpp does)."""
    if isinstance(value, np.ndarray) and value.size:
        return [int(value[layer % value.size]) for layer in range(layers)]
    return [int(value or 0) if isinstance(value, (bool, int)) else 0] * layers


def _per_layer_is_set(target: Header, key: str, layer: int, interval: int | None) -> bool:
    """Whether a layer that does not attend is a feed-forward layer alone, as some models have them."""
    value = target.get(key)
    return interval is None and isinstance(value, np.ndarray) and layer < value.size and value[layer] > 0


def _head_width(target: Header, name: str, sliding: bool) -> int:
    usual = (target.count("embedding_length") or 0) // max(_first(target.get("attention.head_count")), 1)
    own = target.count(f"attention.{name}") or usual
    return (target.count(f"attention.{name}_swa") or own) if sliding else own


def _first(value: Any) -> int:
    """Of an array, the largest: layers that do not attend have none."""
    return int(value.max()) if isinstance(value, np.ndarray) and value.size else int(value or 0)


def _compute_bytes(target: Header, context: int, settings: LoadSettings) -> int:
    """The mask and the widest step of a layer, or the logits in their place: -5 to +25 % of what was measured."""
    rows = min(max(PASS_TOKENS, VERIFIED_ROWS * settings.sequences), context * settings.sequences)
    hidden, heads = target.count("embedding_length") or 0, _first(target.get("attention.head_count"))
    experts = (target.count("expert_used_count") or 0) * (target.count("expert_feed_forward_length") or 0)
    inner = max(_first(target.get("feed_forward_length")), experts, target.count("ssm.inner_size") or 0)
    width = _head_width(target, "key_length", False)
    kv_width = _first(target.get("attention.head_count_kv", heads)) * width
    widest = kv_width + max(4 * inner + hidden, 2 * heads * width + 3 * hidden)
    embeddings = target.tensors.get("token_embd.weight")
    vocabulary = embeddings.shape[0] if embeddings and len(embeddings.shape) == 2 else 0
    mask = 2 * rows * _cells(context, settings)
    logits = 4 * VERIFIED_ROWS * settings.sequences * vocabulary + 4 * rows * hidden
    return max(mask + 4 * rows * widest, logits) + 64 * KIB  # and small inputs


# --- drafters ---------------------------------------------------------------------------------------------------------


def _drafter_bytes(drafter: Header, context: int, settings: LoadSettings, target: Header) -> tuple[int, int, int]:
    """Weights, cache and working memory."""
    weights = sum(_kept_bytes(tensor) for tensor in drafter.tensors.values())
    block = _block_size(drafter)
    slots = ceil((context + block) / CONTEXT_STEP) * CONTEXT_STEP
    heads = drafter.count("attention.head_count_kv") or drafter.count("attention.head_count") or 0
    width = heads * (drafter.count("attention.key_length") or _head_width(drafter, "key_length", False))
    layers = drafter.count("block_count") or 0
    cache = 2 * layers * (settings.sequences * slots + 1) * width * 2  # float16
    hidden, taps = drafter.count("embedding_length") or 0, len(drafter.get("target_layers", ()))
    injection = 4 * PASS_TOKENS * (taps + 3) * hidden
    head = drafter.tensors.get("output.weight") or target.tensors.get("output.weight")
    head = head or target.tensors.get("token_embd.weight")
    logits = 6 * block * settings.sequences * (head.shape[0] if head else 0)
    features = 2 * 4 * PASS_TOKENS * (taps + 1) * hidden  # on the target's side: kept in its graph, and handed out
    return weights, cache, max(injection, logits) + features


def _block_size(drafter: Header) -> int:
    return drafter.count("block_size") or 16


def _kept_bytes(tensor: TensorInfo) -> int:
    """Vectors and kernels are kept as float32, ids as int32, matrices as they are."""
    if tensor.name.endswith(".weight") and len(tensor.shape) > 1:
        return tensor.nbytes
    elements = tensor.nbytes // TENSOR_TYPES[tensor.type].block_bytes * TENSOR_TYPES[tensor.type].block
    return 4 * elements


# --- against what is free ---------------------------------------------------------------------------------------------


def _used_devices(settings: LoadSettings, devices: Iterable[DeviceInfo]) -> list[DeviceInfo]:
    """Those that layers go to: what the user names, else all that have memory of their own."""
    if settings.gpu_layers == 0 or settings.device == "CPU":
        return []
    named = [device for device in devices if device.name == settings.device]
    return named or [device for device in devices if device.kind == "gpu"]


def _longest(fits: Any, wanted: int) -> int | None:
    """The longest context in steps of 256 below `wanted` that fits, or None."""
    low, high = 0, (wanted - 1) // CONTEXT_STEP
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle * CONTEXT_STEP):
            low = middle
        else:
            high = middle - 1
    return low * CONTEXT_STEP if low * CONTEXT_STEP >= LEAST_CONTEXT else None


def is_judged(header: Header) -> bool:
    """Whether there is anything to judge: drafters and other files are not loaded on their own."""
    return kind_of(header) is Kind.TARGET


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
