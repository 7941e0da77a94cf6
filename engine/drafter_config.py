"""What a drafter file says about itself, and whether it fits a target. Reads headers only.

Keys and tensors are those of llama.cpp's `dflash` architecture, and an absent key means what it means there. It knows
nothing of weights, graphs or ggml.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.drafter_tensors import ANOTHER_FILE, check_tensors, listed
from engine.errors import DrafterMismatch, ModelFileError
from engine.events import Mode
from engine.file_kind import ARCHITECTURE, SELECTOR_KEYS, Kind, kind_of, require_drafter
from engine.gguf_file import Header, StringArray

# Architectures whose llama.cpp graph (as in llama-cpp-python 0.3.36) hands out the residual stream entering each layer,
# one row of the hidden size per token. On any other, asking for it aborts the process. qwen4exp fills its tap too, but
# with several streams side by side, which libllama then refuses with an abort.
FEATURE_TAP_ARCHITECTURES = frozenset(
    {
        "bailingmoe3",
        "deepseek4",
        "gemma4",
        "gpt-oss",
        "hunyuan-dense",
        "hunyuan_vl",
        "lfm2",
        "lfm2moe",
        "llama",
        "mimo2",
        "minimax-01",
        "minimax-m2",
        "muse-glimmer",
        "nanbeige",
        "nemotron_h",
        "nemotron_h_moe",
        "qwen3",
        "qwen35",
        "qwen35moe",
        "qwen3moe",
        "qwen3next",
    }
)
# Those that also hand out what leaves the last layer (target layer = number of layers).
FINAL_TAP_ARCHITECTURES = frozenset({"deepseek4", "mimo2", "nemotron_h", "nemotron_h_moe"})

MAX_LAYERS = 512  # llama.cpp's own limit; a header that claims more is not worth walking


@dataclass(frozen=True, slots=True)
class Rope:
    """How positions turn queries and keys, in the terms of `ggml_rope_ext` (NeoX halves).

    `ggml_rope_ext` takes `freq_scale = 1 / factor`, and `attention_factor` just as it is here for `attn_factor`.
    """

    dims: int  # of each head, from its beginning
    freq_base: float
    scaling: str  # "none", "linear" or "yarn"
    factor: float  # 1 when not scaled
    original_context: int
    attention_factor: float
    beta_fast: float
    beta_slow: float
    ext_factor: float  # 1 with YaRN, else 0
    sections: tuple[int, int, int, int] | None  # M-RoPE; with text positions the same as plain NeoX


@dataclass(frozen=True, slots=True)
class DrafterConfig:
    """A DFlash or DFlash 2 drafter. `H` hidden size, `V` vocabulary, `L` layers."""

    path: str
    name: str
    version: Mode  # DFLASH or DFLASH2
    hidden_size: int
    layers: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_dim: int
    context_length: int
    norm_eps: float
    rope: Rope
    block_size: int  # B, the anchor included
    target_layers: tuple[int, ...]  # t = the residual stream entering target layer t
    vocabulary: int
    mask_token: int
    token_digest: str | None  # of the token texts; None where the file carries none
    conv_kernel: int | None  # K, DFlash 2 only, like the next three
    conv_group: int | None  # G
    selector_rank: int | None  # R
    selector_top_k: int | None  # k
    logit_scale: float
    soft_cap: float | None
    embedding_scale: float
    value_scale: float
    attention_scale: float
    activation: str  # "silu" or "gelu"
    causal: bool  # within the block
    window: int | None  # positions that a sliding layer sees
    sliding: tuple[bool, ...]  # [L]
    own_embeddings: bool  # token_embd.weight; without it the target's
    own_head: bool  # output.weight; without it the own embeddings, and without these the target's head
    draft_vocabulary: int | None  # rows of the reduced head, which `d2t` maps to token ids
    # Causal in the sliding layers though not in the others, as the reference has it where its config leaves it open.
    # The key is our converter's; llama.cpp has one setting for all layers.
    sliding_causal: bool = False

    @classmethod
    def from_header(cls, header: Header) -> DrafterConfig:
        """Read and check the metadata and the tensor list. Raises `ModelFileError` with one sentence."""
        require_drafter(header)
        config = _Reader(header).config()
        check_tensors(header, config)
        return config


class _Reader:
    """Takes typed values out of a header's metadata and says what is wrong with them."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.file = header.file_name

    def missing(self, key: str) -> ModelFileError:
        return ModelFileError(f"{self.file} lacks '{key}' in its metadata; {ANOTHER_FILE}.")

    def wrong(self, key: str, value: Any, wanted: str) -> ModelFileError:
        shown = repr(value.tolist() if isinstance(value, np.ndarray) else value)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return ModelFileError(f"{self.file} has '{key}' = {shown} where {wanted} belongs; {ANOTHER_FILE}.")

    def count(self, key: str, default: int | None = None, least: int = 1, most: int = (1 << 31) - 1) -> int:
        full = f"{ARCHITECTURE}.{key}"
        given = self.header.metadata.get(full)
        value = default if given is None else self.header.count(key)
        if given is None and default is None:
            raise self.missing(full)
        if value is None or not least <= value <= most:
            raise self.wrong(full, default if given is None else given, f"a whole number from {least} to {most}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        full = f"{ARCHITECTURE}.{key}"
        value = self.header.metadata.get(full, default)
        if value is None:
            raise self.missing(full)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
            raise self.wrong(full, value, "a number")
        return float(value)

    def scale(self, key: str) -> float:
        """A factor for which llama.cpp reads 0 as "none"."""
        return self.number(key, 1.0) or 1.0

    def text(self, key: str, default: str) -> str:
        full = f"{ARCHITECTURE}.{key}"
        value = self.header.metadata.get(full, default)
        if not isinstance(value, str):
            raise self.wrong(full, value, "a text")
        return value

    def flag(self, key: str) -> bool:
        full = f"{ARCHITECTURE}.{key}"
        value = self.header.metadata.get(full, False)
        if not isinstance(value, bool):
            raise self.wrong(full, value, "true or false")
        return value

    def config(self) -> DrafterConfig:
        second = kind_of(self.header) is Kind.DFLASH2
        hidden, heads = self.count("embedding_length"), self.count("attention.head_count")
        kv_heads = self.count("attention.head_count_kv", heads)
        if heads % kv_heads:
            raise self.wrong("dflash.attention.head_count_kv", kv_heads, f"a divisor of the {heads} heads")
        head_dim = self.count("attention.key_length", hidden // heads)
        if self.count("attention.value_length", hidden // heads) != head_dim:
            raise self.wrong(
                "dflash.attention.value_length", self.header.get("attention.value_length"), f"the key length {head_dim}"
            )
        layers, context = self.count("block_count", most=MAX_LAYERS), self.count("context_length")
        vocabulary, digest = self.vocabulary()
        window, sliding = self.sliding(layers)
        soft_cap = self.number("final_logit_softcapping", 0.0)
        kernel, group, rank, top_k = self.selector(hidden) if second else (None, None, None, None)
        tensors = self.header.tensors
        return DrafterConfig(
            path=self.header.path,
            name=self.header.name,
            version=Mode.DFLASH2 if second else Mode.DFLASH,
            hidden_size=hidden,
            layers=layers,
            feed_forward=self.count("feed_forward_length"),
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            context_length=context,
            norm_eps=self.number("attention.layer_norm_rms_epsilon"),
            rope=self.rope(head_dim, context),
            block_size=self.count("block_size", 16, least=2),
            target_layers=self.target_layers(),
            vocabulary=vocabulary,
            mask_token=self.mask_token(vocabulary),
            token_digest=digest,
            conv_kernel=kernel,
            conv_group=group,
            selector_rank=rank,
            selector_top_k=top_k,
            logit_scale=self.scale("logit_scale"),
            soft_cap=soft_cap if soft_cap > 0 else None,
            embedding_scale=self.scale("embedding_scale"),
            value_scale=self.scale("attention.value_scale"),
            attention_scale=self.number("attention.scale", 0.0) or head_dim**-0.5,
            activation=self.activation(),
            causal=self.flag("attention.causal"),
            window=window,
            sliding=sliding,
            own_embeddings="token_embd.weight" in tensors,
            own_head="output.weight" in tensors,
            draft_vocabulary=math.prod(tensors["d2t"].shape) if "d2t" in tensors else None,
            sliding_causal=self.flag("attention.sliding_causal"),
        )

    def vocabulary(self) -> tuple[int, str | None]:
        """Size and digest. Like llama.cpp, count the tokens where the file carries them."""
        tokens = self.header.metadata.get("tokenizer.ggml.tokens")
        if isinstance(tokens, StringArray) and len(tokens):
            return len(tokens), tokens.digest
        return self.count("vocab_size"), None

    def mask_token(self, vocabulary: int) -> int:
        key = "tokenizer.ggml.mask_token_id"
        mask = self.header.metadata.get(key)
        # converted without the target's vocabulary, a drafter loses its mask token: absent, or -1 in either signedness
        if mask is None or (isinstance(mask, int) and mask in (-1, 0xFFFFFFFF)):
            raise ModelFileError(
                f"{self.file} has no mask token ('{key}'), so its block cannot be filled; "
                "convert it again together with its target's vocabulary, or get it from another source."
            )
        if not isinstance(mask, int) or isinstance(mask, bool) or not 0 <= mask < vocabulary:
            raise self.wrong(key, mask, f"a token id below {vocabulary}")
        return mask

    def target_layers(self) -> tuple[int, ...]:
        key = f"{ARCHITECTURE}.target_layers"
        layers = self.header.metadata.get(key)
        if layers is None:
            raise ModelFileError(
                f"{self.file} lacks '{key}', so nobody knows which layers of the target it listens to; "
                "get it from another source or convert it again with a current llama.cpp."
            )
        if not isinstance(layers, np.ndarray) or layers.dtype.kind not in "iu" or not layers.size or (layers < 1).any():
            raise self.wrong(key, layers, "a list of layer numbers from 1 on")
        return tuple(int(t) for t in layers)

    def selector(self, hidden: int) -> tuple[int, int, int, int]:
        lacking = [f"{ARCHITECTURE}.{key}" for key in SELECTOR_KEYS if self.header.get(key) is None]
        if lacking:
            raise ModelFileError(
                f"{self.file} is a DFlash 2 drafter without {listed(lacking)} in its metadata; {ANOTHER_FILE}."
            )
        kernel, group, rank, top_k = (self.count(key) for key in SELECTOR_KEYS)
        if hidden % group:
            raise self.wrong("dflash.conv_group_size", group, f"a divisor of the hidden size {hidden}")
        return kernel, group, rank, top_k

    def activation(self) -> str:
        name = self.text("hidden_activation", "silu")
        if name == "silu":
            return "silu"
        if name in ("gelu", "gelu_pytorch_tanh"):
            return "gelu"
        raise ModelFileError(
            f"{self.file} uses the activation {name!r}, which is not supported; choose a drafter with silu or gelu."
        )

    def sliding(self, layers: int) -> tuple[int | None, tuple[bool, ...]]:
        none = (False,) * layers
        window = self.count("attention.sliding_window", 0, least=0)
        if not window:
            return None, none
        key = f"{ARCHITECTURE}.attention.sliding_window_pattern"
        pattern = self.header.metadata.get(key)
        if pattern is None:
            raise self.missing(key)
        if not isinstance(pattern, np.ndarray) or pattern.dtype.kind not in "biu" or pattern.size not in (0, layers):
            raise self.wrong(key, pattern, f"a list of {layers} times true or false")
        sliding = tuple(bool(s) for s in pattern) or none
        return (window, sliding) if any(sliding) else (None, none)

    def rope(self, head_dim: int, context: int) -> Rope:
        dims = self.count("rope.dimension_count", head_dim)
        if dims > head_dim or dims % 2:
            raise self.wrong("dflash.rope.dimension_count", dims, f"an even number of at most {head_dim}")
        scaling = self.text("rope.scaling.type", "linear")
        if scaling not in ("none", "linear", "yarn"):
            raise ModelFileError(
                f"{self.file} scales its positions by {scaling!r}, which is not supported; "
                "choose a drafter with linear or YaRN scaling, or none."
            )
        # "scale_linear" is the key's old name; 0 says "not scaled"
        factor = self.number("rope.scaling.factor", self.number("rope.scale_linear", 0.0)) or 1.0
        if factor < 0:
            raise self.wrong("dflash.rope.scaling.factor", factor, "a number above 0")
        if scaling == "none":
            factor = 1.0
        elif scaling == "linear" and factor == 1.0:
            scaling = "none"
        attention_factor = self.number("rope.scaling.attn_factor", 1.0)
        if scaling == "yarn" and factor < 1.0:
            # ggml multiplies by 1 + 0.1 ln(factor) on its own, which YaRN wants only where positions are stretched
            attention_factor /= 1.0 + 0.1 * math.log(factor)
        return Rope(
            dims=dims,
            freq_base=self.number("rope.freq_base", 10000.0),
            scaling=scaling,
            factor=factor,
            original_context=self.count("rope.scaling.original_context_length", 0, least=0) or context,
            attention_factor=attention_factor,
            beta_fast=self.number("rope.scaling.yarn_beta_fast", 32.0),
            beta_slow=self.number("rope.scaling.yarn_beta_slow", 1.0),
            ext_factor=1.0 if scaling == "yarn" else 0.0,
            sections=self.sections(),
        )

    def sections(self) -> tuple[int, int, int, int] | None:
        key = f"{ARCHITECTURE}.rope.dimension_sections"
        value = self.header.metadata.get(key)
        if value is None:
            return None
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or value.size > 4 or (value < 0).any():
            raise self.wrong(key, value, "four numbers")
        first, second, third, fourth = (*value.tolist(), 0, 0, 0, 0)[:4]
        if fourth:
            # llama.cpp gives text the position 0 on this axis, so it would not be plain NeoX any more
            raise self.wrong(key, [first, second, third, fourth], "a list with 0 as its last section")
        return (first, second, third, fourth) if first or second or third else None


# --- the pair ---------------------------------------------------------------------------------------------------------


def has_feature_tap(target: Header) -> bool:
    return target.architecture in FEATURE_TAP_ARCHITECTURES


def no_tap_sentence(target: Header) -> str:
    return (
        f"{target.file_name} is of architecture '{target.architecture}', whose layers this program's llama.cpp does "
        "not hand out to a drafter; use the baseline mode, or a target of another architecture."
    )


def check_pair(drafter: Header, target: Header) -> list[str]:
    """Why this drafter cannot draft for this target: sentences that name both files; none when it fits.

    A drafter file that is bad in itself gives its own sentence.
    """
    try:
        _, differences = _compare(drafter, target)
    except ModelFileError as error:
        return [str(error)]
    return [_mismatch(drafter, target, [difference]) for difference in differences]


def require_pair(drafter: Header, target: Header) -> DrafterConfig:
    """The config of a drafter that fits; raises `DrafterMismatch`, or `ModelFileError` for a file bad in itself."""
    config, differences = _compare(drafter, target)
    if differences:
        raise DrafterMismatch(_mismatch(drafter, target, differences))
    return config


def _mismatch(drafter: Header, target: Header, differences: Sequence[str]) -> str:
    names = drafter.file_name, target.file_name
    one, other = (drafter.path, target.path) if names[0] == names[1] else names
    return f"{one} does not fit {other}: {', and '.join(differences)}; use a drafter made for this target."


def _compare(drafter: Header, target: Header) -> tuple[DrafterConfig, list[str]]:
    config = DrafterConfig.from_header(drafter)
    kind = kind_of(target)
    if kind is not Kind.TARGET:
        raise ModelFileError(f"{target.file_name} cannot be a target, it is {kind.value}; choose a chat model.")
    if not has_feature_tap(target):
        raise ModelFileError(no_tap_sentence(target))
    differences = []
    hidden = target.count("embedding_length")
    if hidden != config.hidden_size:
        differences.append(f"its hidden size is {config.hidden_size}, the target's {hidden}")
    differences += _compare_vocabularies(config, drafter, target)
    layers = target_layer_count(target)
    last = layers if target.architecture in FINAL_TAP_ARCHITECTURES else layers - 1
    highest = max(config.target_layers)
    if highest > last:
        differences.append(
            f"it listens at layer {highest}, but the target has {layers} layers and can be tapped up to layer {last}"
        )
    return config, differences


def target_layer_count(target: Header) -> int:
    """Layers that a plain decode runs: those for predicting further tokens stand behind them and are not counted."""
    return (target.count("block_count") or 0) - (target.count("nextn_predict_layers") or 0)


def target_vocabulary(target: Header) -> int:
    tokens = target.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, StringArray):
        return len(tokens)
    return target.count("vocab_size") or 0


def _compare_vocabularies(config: DrafterConfig, drafter: Header, target: Header) -> list[str]:
    size = target_vocabulary(target)
    if size != config.vocabulary:
        return [f"its vocabulary has {config.vocabulary} tokens, the target's {size}"]
    mine, theirs = (h.metadata.get("tokenizer.ggml.tokens") for h in (drafter, target))
    if not isinstance(mine, StringArray) or not isinstance(theirs, StringArray) or mine.digest == theirs.digest:
        return []
    # the mask token stands for no text: a drafter may give its id a name of its own
    different = [i for i in range(size) if i != config.mask_token and mine.entry(i) != theirs.entry(i)]
    if not different:
        return []
    first = different[0]
    texts = f"{mine[first]!r} in the drafter, {theirs[first]!r} in the target"
    return [f"{len(different)} of {size} tokens differ (the first is token {first}: {texts})"]
