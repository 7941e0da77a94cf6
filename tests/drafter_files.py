"""Makers of model files for the tests: random drafters of any geometry, and tiny targets for them.

Drafters have the GGUF form of llama.cpp's `dflash` architecture. Weights are random but of a sensible size, so that
activations neither vanish nor explode. Files carry a whole tokenizer (a small invented one, or the copy of a target's)
and can be opened by libllama too. It knows nothing of the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

CONTROL = 3  # token type of llama.cpp: a token that stands for no text

_YARN = {
    "dflash.rope.scaling.type": "yarn",
    "dflash.rope.scaling.factor": 4.0,
    "dflash.rope.scaling.original_context_length": 64,
    "dflash.rope.scaling.attn_factor": 0.9,
}
_SLIDING = {"dflash.attention.sliding_window": 10, "dflash.attention.sliding_window_pattern": [True, False]}
# everything a drafter file may contain beside what the recorded drafters use: arguments of write_drafter
VARIANTS: dict[str, dict[str, Any]] = {
    "one head matrix": {"own_head": False},
    "reduced head": {"d2t": list(range(3, 253, 5))},
    "no value matrix": {"no_attn_v": True},
    "post norms": {"post_norms": True},
    "layer scale": {"layer_scale": True},
    "sinks": {"sinks": True},
    "frequency factors": {"rope_freqs": True},
    "partial rotary": {"metadata": {"dflash.rope.dimension_count": 16}},
    "linear rope": {"metadata": {"dflash.rope.scaling.type": "linear", "dflash.rope.scaling.factor": 4.0}},
    "yarn": {"metadata": _YARN},
    "rope sections": {"metadata": {"dflash.rope.dimension_sections": [16, 0, 0, 0]}},
    "some layers slide": {"metadata": _SLIDING},
    "causal and sliding": {"metadata": _SLIDING | {"dflash.attention.causal": True}},
    "value scale": {"metadata": {"dflash.attention.value_scale": 0.7}},
    "attention scale": {"metadata": {"dflash.attention.scale": 0.3}},
    "logit scale and soft cap": {"metadata": {"dflash.logit_scale": 0.5, "dflash.final_logit_softcapping": 4.0}},
    "eight taps, one key head, block of 5": {"target_layers": tuple(range(1, 9)), "kv_heads": 1, "block_size": 5},
    "heads wider than the hidden size": {"heads": 8, "head_dim": 64},
}


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer as its GGUF keys, `tokenizer.*`, with the mask token left out."""

    keys: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.keys["tokenizer.ggml.tokens"])

    @classmethod
    def small(cls, size: int = 256) -> Vocabulary:
        """Tokens t0, t1, ... that libllama accepts; good for no text."""
        return cls(
            {
                "tokenizer.ggml.model": "gpt2",
                "tokenizer.ggml.pre": "default",
                "tokenizer.ggml.tokens": [f"t{i}" for i in range(size)],
                "tokenizer.ggml.token_type": [1] * size,
                "tokenizer.ggml.merges": ["t 0"],
                "tokenizer.ggml.bos_token_id": 0,
                "tokenizer.ggml.eos_token_id": 1,
            }
        )

    @classmethod
    def of(cls, target: str | Path) -> Vocabulary:
        """The copy of a target's tokenizer."""
        keys = target_keys(target).items()
        return cls({k: v for k, v in keys if k.startswith("tokenizer.") and not k.endswith("chat_template")})


@lru_cache(maxsize=2)  # seconds for a vocabulary of 49k
def target_keys(path: str | Path) -> Mapping[str, Any]:
    """Every metadata key of a GGUF file."""
    return {name: field.contents() for name, field in gguf.GGUFReader(path).fields.items()}


def write_drafter(
    path: str | Path,
    *,
    version: int,
    hidden_size: int = 96,
    layers: int = 2,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int = 32,
    feed_forward: int = 160,
    block_size: int = 8,
    target_layers: Sequence[int] = (1, 3, 5),
    vocabulary: Vocabulary | None = None,
    mask_token: int | None = None,
    own_embeddings: bool = True,
    own_head: bool = True,
    d2t: Sequence[int] | None = None,
    no_attn_v: bool = False,
    post_norms: bool = False,
    layer_scale: bool = False,
    sinks: bool = False,
    rope_freqs: bool = False,
    selector_rank: int = 32,
    selector_top_k: int = 8,
    quantisation: str = "F32",
    seed: int = 0,
    metadata: Mapping[str, Any] | None = None,
    tensors: Mapping[str, NDArray[Any] | None] | None = None,
) -> Path:
    """Write a random drafter of that version (1 or 2) and return its path.

    `d2t` gives a reduced head (and needs `own_head`). `metadata` and `tensors` add to, replace or, with None, remove
    what would have been written: `{"dflash.target_layers": None}`. `mask_token` defaults to the vocabulary's last.
    """
    vocabulary = vocabulary or Vocabulary.small()
    rows, width = len(vocabulary), hidden_size
    rng = np.random.default_rng(seed)

    def matrix(out: int, inner: int) -> NDArray[np.float32]:
        return rng.standard_normal((out, inner), np.float32) / np.float32(np.sqrt(inner))

    def weights(size: int) -> NDArray[np.float32]:  # of a norm
        return 1 + np.float32(0.1) * rng.standard_normal(size, np.float32)

    made: dict[str, NDArray[Any] | None] = {
        "fc.weight": matrix(width, len(target_layers) * width),
        "enc.output_norm.weight": weights(width),
        "output_norm.weight": weights(width),
    }
    for i in range(layers):
        layer: dict[str, NDArray[Any]] = {
            "attn_norm.weight": weights(width),
            "attn_q.weight": matrix(heads * head_dim, width),
            "attn_k.weight": matrix(kv_heads * head_dim, width),
            "attn_output.weight": matrix(width, heads * head_dim),
            "attn_q_norm.weight": weights(head_dim),
            "attn_k_norm.weight": weights(head_dim),
            "ffn_norm.weight": weights(width),
            "ffn_gate.weight": matrix(feed_forward, width),
            "ffn_up.weight": matrix(feed_forward, width),
            "ffn_down.weight": matrix(width, feed_forward),
        }
        if not no_attn_v:
            layer["attn_v.weight"] = matrix(kv_heads * head_dim, width)
        if version == 2:
            for sublayer in ("attn", "ffn"):
                # near the identity: the token itself first, a little of the one before
                base = np.stack(
                    [weights(2 * width).reshape(2, width), 0.3 * weights(2 * width).reshape(2, width)], axis=1
                )
                layer[f"{sublayer}_conv_base"] = base.astype(np.float32)  # [2 sides, 2 taps, H]
                layer[f"{sublayer}_conv_proj.weight"] = 0.3 * matrix(2 * 2 * (width // 16), width)
        if post_norms:
            layer["post_attention_norm.weight"] = weights(width)
            layer["post_ffw_norm.weight"] = weights(width)
        if layer_scale:
            layer["layer_output_scale.weight"] = np.array([0.8 + 0.1 * i], np.float32)
        if sinks:
            layer["attn_sinks.weight"] = rng.standard_normal(heads, np.float32)
        made.update({f"blk.{i}.{name}": tensor for name, tensor in layer.items()})
    if rope_freqs:
        made["rope_freqs.weight"] = np.linspace(1, 4, head_dim // 2, dtype=np.float32)
    if version == 2:
        made["selector_predecessor.weight"] = rng.standard_normal((rows, selector_rank), np.float32)
        made["selector_successor.weight"] = matrix(rows, selector_rank)
        made["selector_hidden.weight"] = matrix(selector_rank, width)
    if own_embeddings:
        made["token_embd.weight"] = rng.standard_normal((rows, width), np.float32)
    if own_head:
        made["output.weight"] = np.float32(3) * matrix(rows if d2t is None else len(d2t), width)
    if d2t is not None:
        made["d2t"] = np.array(d2t, np.int64)
    made.update(tensors or {})

    keys: dict[str, Any] = {
        "general.name": Path(path).stem,
        "dflash.block_count": layers,
        "dflash.context_length": 4096,
        "dflash.embedding_length": width,
        "dflash.feed_forward_length": feed_forward,
        "dflash.attention.head_count": heads,
        "dflash.attention.head_count_kv": kv_heads,
        "dflash.attention.key_length": head_dim,
        "dflash.attention.value_length": head_dim,
        "dflash.attention.layer_norm_rms_epsilon": 1e-6,
        "dflash.rope.freq_base": 10000.0,
        "dflash.vocab_size": rows,
        "dflash.block_size": block_size,
        "dflash.target_layers": list(target_layers),
    }
    if version == 2:
        keys |= {
            "dflash.conv_kernel_size": 2,
            "dflash.conv_group_size": 16,
            "dflash.selector_rank": selector_rank,
            "dflash.selector_top_k": selector_top_k,
        }
    keys |= vocabulary.keys
    keys["tokenizer.ggml.mask_token_id"] = rows - 1 if mask_token is None else mask_token
    keys |= metadata or {}
    return _write(Path(path), keys, made, quantisation)


def requantise(path_in: str | Path, path_out: str | Path, quantisation: str, without: Sequence[str] = ()) -> Path:
    """A copy of a drafter with its matrices in another type, and without some tensors."""
    reader = gguf.GGUFReader(path_in)
    keys = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    keys.pop("general.architecture")
    tensors: dict[str, NDArray[Any] | None] = {}
    for tensor in reader.tensors:
        if tensor.name in without:
            continue
        data = np.asarray(tensor.data)
        tensors[tensor.name] = data if data.dtype.kind == "i" else gguf.quants.dequantize(data, tensor.tensor_type)
    return _write(Path(path_out), keys, tensors, quantisation)


def write_target(
    path: str | Path,
    *,
    hidden_size: int = 96,
    layers: int = 6,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int = 32,
    feed_forward: int = 160,
    vocabulary: Vocabulary | None = None,
    own_head: bool = True,
    architecture: str = "llama",
    seed: int = 0,
    metadata: Mapping[str, Any] | None = None,
) -> Path:
    """Write a tiny random target with float32 weights that the default drafters above fit."""
    vocabulary = vocabulary or Vocabulary.small()
    rng = np.random.default_rng(seed)

    def matrix(out: int, inner: int) -> NDArray[np.float32]:
        return rng.standard_normal((out, inner), np.float32) / np.float32(np.sqrt(inner))

    ones = np.ones(hidden_size, np.float32)
    tensors: dict[str, NDArray[Any] | None] = {
        "token_embd.weight": rng.standard_normal((len(vocabulary), hidden_size), np.float32),
        "output_norm.weight": ones,
    }
    if own_head:
        tensors["output.weight"] = np.float32(3) * matrix(len(vocabulary), hidden_size)
    for i in range(layers):
        tensors |= {
            f"blk.{i}.attn_norm.weight": ones,
            f"blk.{i}.attn_q.weight": matrix(heads * head_dim, hidden_size),
            f"blk.{i}.attn_k.weight": matrix(kv_heads * head_dim, hidden_size),
            f"blk.{i}.attn_v.weight": matrix(kv_heads * head_dim, hidden_size),
            f"blk.{i}.attn_output.weight": matrix(hidden_size, heads * head_dim),
            f"blk.{i}.ffn_norm.weight": ones,
            f"blk.{i}.ffn_gate.weight": matrix(feed_forward, hidden_size),
            f"blk.{i}.ffn_up.weight": matrix(feed_forward, hidden_size),
            f"blk.{i}.ffn_down.weight": matrix(hidden_size, feed_forward),
        }
    keys: dict[str, Any] = {
        "general.name": Path(path).stem,
        f"{architecture}.block_count": layers,
        f"{architecture}.context_length": 4096,
        f"{architecture}.embedding_length": hidden_size,
        f"{architecture}.feed_forward_length": feed_forward,
        f"{architecture}.attention.head_count": heads,
        f"{architecture}.attention.head_count_kv": kv_heads,
        f"{architecture}.attention.key_length": head_dim,
        f"{architecture}.attention.value_length": head_dim,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-6,
        f"{architecture}.rope.dimension_count": head_dim,
        f"{architecture}.rope.freq_base": 10000.0,
        f"{architecture}.vocab_size": len(vocabulary),
    }
    keys |= vocabulary.keys
    keys |= metadata or {}
    return _write(Path(path), keys, tensors, "F32", architecture)


def random_drafter(path: str | Path, target: str | Path, version: int, **changes: Any) -> Path:
    """A small random drafter for a Llama-like target: it loads, it drafts, and what it drafts means nothing.

    It has no embeddings and no head of its own; `changes` go to `write_drafter`.
    """
    keys = target_keys(target)
    depth = keys["llama.block_count"]
    settings: dict[str, Any] = {
        "hidden_size": keys["llama.embedding_length"],
        "heads": keys["llama.attention.head_count"],
        "kv_heads": keys["llama.attention.head_count_kv"],
        "head_dim": keys["llama.rope.dimension_count"],
        "feed_forward": 512,
        "target_layers": (2, depth // 2, depth - 2),
        "vocabulary": Vocabulary.of(target),
        "mask_token": 17,
        "own_embeddings": False,
        "own_head": False,
        "quantisation": "Q8_0",
        "metadata": {"dflash.context_length": keys["llama.context_length"]},
    }
    return write_drafter(path, version=version, **(settings | changes))


def wrong_drafter(path: str | Path, target: str | Path, version: int) -> Path:
    """A random drafter that is always wrong: its reduced head knows only control tokens that no answer contains."""
    keys = target_keys(target)
    types = keys["tokenizer.ggml.token_type"]
    said = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>"}
    never = [i for i, token in enumerate(keys["tokenizer.ggml.tokens"]) if types[i] == CONTROL and token not in said]
    assert len(never) >= 8, "the target has too few control tokens to propose"
    return random_drafter(path, target, version, own_head=True, d2t=never, seed=1)


def _write(
    path: Path,
    keys: Mapping[str, Any],
    tensors: Mapping[str, NDArray[Any] | None],
    quantisation: str,
    architecture: str = "dflash",
) -> Path:
    """Write a file; None removes a key or tensor. Tensors that a block type cannot hold stay float32."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in keys.items():
        if key == "general.architecture":
            writer.kv_data[0].pop(key)  # the writer's own: replaced, or removed with None
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        elif value is not None:
            writer.add_array(key, value)
    kind = gguf.GGMLQuantizationType[quantisation]
    block, _ = gguf.GGML_QUANT_SIZES[kind]
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        matrix = tensor.ndim == 2 and tensor.dtype == np.float32 and tensor.shape[1] % block == 0
        if matrix and quantisation != "F32":
            writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, np.ascontiguousarray(tensor))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
