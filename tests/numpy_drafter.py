"""The drafter's slow, obvious twin: DFlash and DFlash 2 in plain NumPy, one matrix after another, all in float32.

It reads a GGUF drafter with the `gguf` package, dequantises every tensor, and computes what the paper
(arXiv 2602.06036), the torch reference (`dflash` 0.1.0) and llama.cpp's `dflash` graph compute. It shares no code with
the engine, so that an agreement of the two means something. It knows one sequence, no devices and no speed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import gguf
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class NumpyDraft:
    """What one block pass computes, for the block positions 1..B-1 (P = B-1 rows)."""

    hidden: Floats  # [P, H], after the output norm
    logits: Floats  # [P, V], -inf where a reduced head has no row
    path: Ints  # [P], the greedy path
    candidates: Ints | None = None  # [P, k], best first; None in DFlash (v1), as all below
    unary: Floats | None = None  # [P, k], their logits
    score_first: Floats | None = None  # [k], position 1 after the anchor
    score_rest: Floats | None = None  # [P-1, k, k], candidate b of position i+2 after candidate a of position i+1

    def q_rows(self, temperature: float) -> Floats:
        """The proposal distributions along the greedy path, [P, k], in the order of the candidates."""
        assert self.candidates is not None and self.score_first is not None and self.score_rest is not None
        rows = [self.score_first]
        for i in range(len(self.path) - 1):
            taken = int(np.flatnonzero(self.candidates[i] == self.path[i])[0])
            rows.append(self.score_rest[i, taken])
        return softmax(np.stack(rows) / np.float32(temperature))


def top_k(logits: Floats, k: int) -> tuple[Ints, Floats]:
    """The k best ids of each row, best first, and their logits: two [rows, k]."""
    ids = np.argsort(-logits, axis=-1, kind="stable")[:, :k]
    return ids, np.take_along_axis(logits, ids, axis=-1)


def softmax(x: Floats) -> Floats:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def load_tensors(reader: gguf.GGUFReader) -> dict[str, NDArray[Any]]:
    """Every tensor by name, dequantised to float32 (integers as they are), slowest dimension first."""
    tensors: dict[str, NDArray[Any]] = {}
    for tensor in reader.tensors:
        data = np.asarray(tensor.data)
        if data.dtype.kind == "i":
            tensors[tensor.name] = data.copy()
        else:
            values = gguf.quants.dequantize(data, tensor.tensor_type)
            tensors[tensor.name] = np.array(values, dtype=np.float32)  # a copy: the reader maps the file
    return tensors


class NumpyDrafter:
    """One drafter file with its KV cache.

    `token_embd` and `head`, [V, H] each, are the target's: used where the file has none.
    """

    def __init__(self, path: str | Path, token_embd: Floats | None = None, head: Floats | None = None) -> None:
        reader = gguf.GGUFReader(path)

        def value(key: str, default: Any = None, prefix: str = "dflash.") -> Any:
            entry = reader.get_field(prefix + key)
            return default if entry is None else entry.contents()

        self.tensors = load_tensors(reader)
        self.hidden_size = int(value("embedding_length"))
        self.layers = int(value("block_count"))
        self.heads = int(value("attention.head_count"))
        self.kv_heads = int(value("attention.head_count_kv", self.heads))
        self.head_dim = int(value("attention.key_length", self.hidden_size // self.heads))
        self.eps = np.float32(value("attention.layer_norm_rms_epsilon"))
        self.block_size = int(value("block_size", 16))
        self.mask_token = int(value("mask_token_id", prefix="tokenizer.ggml."))
        self.target_layers = [int(layer) for layer in value("target_layers")]

        self.embedding_scale = np.float32(value("embedding_scale", 1.0))
        self.value_scale = np.float32(value("attention.value_scale", 1.0))
        self.attention_scale = np.float32(value("attention.scale", 0.0) or self.head_dim**-0.5)
        self.logit_scale = np.float32(value("logit_scale", 1.0))
        self.soft_cap = np.float32(value("final_logit_softcapping", 0.0))
        self.gelu = str(value("hidden_activation", "silu")).startswith("gelu")
        self.causal = bool(value("attention.causal", False))
        self.sliding_causal = bool(value("attention.sliding_causal", False))  # no key of llama.cpp's
        self.window = int(value("attention.sliding_window", 0))
        self.sliding = [
            bool(s) and self.window > 0 for s in value("attention.sliding_window_pattern", [False] * self.layers)
        ]

        self.is_v2 = "selector_hidden.weight" in self.tensors
        self.kernel_size = int(value("conv_kernel_size", 0))
        self.group_size = int(value("conv_group_size", 0))
        self.candidates = int(value("selector_top_k", 0))

        self.rope_dims = int(value("rope.dimension_count", self.head_dim))
        self.rope_base = float(value("rope.freq_base", 10000.0))
        self.rope_scaling = str(value("rope.scaling.type", "linear"))  # without a factor this scales nothing
        self.rope_factor = 1.0 if self.rope_scaling == "none" else float(value("rope.scaling.factor", 1.0))
        self.rope_original = float(value("rope.scaling.original_context_length", value("context_length", 0)))
        self.rope_magnitude = float(value("rope.scaling.attn_factor", 1.0))
        self.beta_fast = float(value("rope.scaling.yarn_beta_fast", 32.0))
        self.beta_slow = float(value("rope.scaling.yarn_beta_slow", 1.0))

        own_embd = self.tensors.get("token_embd.weight")
        own_head = self.tensors.get("output.weight", own_embd)
        if (own_embd is None and token_embd is None) or (own_head is None and head is None):
            raise ValueError(f"{path} has no embeddings or no head of its own: give the target's")
        self.token_embd: Floats = cast(Floats, own_embd if own_embd is not None else token_embd)
        self.head: Floats = cast(Floats, own_head if own_head is not None else head)
        self.vocabulary = len(self.token_embd)

        self.positions: Ints = np.zeros(0, np.int64)  # [n], the committed positions
        empty = np.zeros((0, self.kv_heads, self.head_dim), np.float32)
        self.keys: list[Floats] = [empty] * self.layers  # per layer [n, kv_heads, head_dim], rotated
        self.values: list[Floats] = [empty] * self.layers

    # --- the KV cache -------------------------------------------------------------------------------------------------

    def inject(self, features: Floats, positions: Sequence[int] | Ints | None = None) -> None:
        """Append the features of committed positions, [n, F*H]; positions default to the next ones."""
        if positions is None:
            start = int(self.positions[-1]) + 1 if len(self.positions) else 0
            positions = np.arange(start, start + len(features))
        positions = np.asarray(positions, np.int64)
        g = self._norm(features @ self.tensors["fc.weight"].T, "enc.output_norm.weight")  # [n, H]
        for layer in range(self.layers):
            k, v = self._keys_values(layer, g, positions)
            self.keys[layer] = np.concatenate([self.keys[layer], k])
            self.values[layer] = np.concatenate([self.values[layer], v])
        self.positions = np.concatenate([self.positions, positions])

    def cut(self, n: int) -> None:
        """Keep only the positions below n."""
        keep = self.positions < n
        self.positions = self.positions[keep]
        self.keys = [k[keep] for k in self.keys]
        self.values = [v[keep] for v in self.values]

    # --- the block pass -----------------------------------------------------------------------------------------------

    def draft(self, anchor: int, start: int, block_length: int | None = None) -> NumpyDraft:
        """One block [anchor, mask, mask, ...] at positions start, start+1, ...; the cache stays as it is."""
        length = block_length or self.block_size
        ids = np.array([anchor] + [self.mask_token] * (length - 1))
        positions = np.arange(start, start + length)
        x = self.token_embd[ids] * self.embedding_scale  # [B, H]
        for layer in range(self.layers):
            x = x + self._attention_sublayer(layer, x, positions)
            x = x + self._ffn_sublayer(layer, x)
            if (scale := self.tensors.get(f"blk.{layer}.layer_output_scale.weight")) is not None:
                x = x * scale
        z = self._norm(x, "output_norm.weight")[1:]  # [P, H]: the anchor's row predicts nothing
        logits = self._logits(z)
        if not self.is_v2:
            return NumpyDraft(z, logits, np.argmax(logits, axis=-1))
        return self._select(anchor, z, logits)

    def _attention_sublayer(self, layer: int, x: Floats, positions: Ints) -> Floats:
        w = self.tensors
        h = self._norm(x, f"blk.{layer}.attn_norm.weight")
        dynamic = self._dynamic(layer, "attn", h)
        h = self._conv(layer, "attn", h, dynamic, side=0)
        q = (h @ w[f"blk.{layer}.attn_q.weight"].T).reshape(len(h), self.heads, self.head_dim)
        q = self._rope(self._norm(q, f"blk.{layer}.attn_q_norm.weight"), positions)
        k, v = self._keys_values(layer, h, positions)
        k = np.concatenate([self.keys[layer], k])  # [n+B, kv_heads, head_dim]
        v = np.concatenate([self.values[layer], v])
        key_positions = np.concatenate([self.positions, positions])
        o = self._attention(layer, q, k, v, positions, key_positions).reshape(len(h), -1)
        o = (o @ w[f"blk.{layer}.attn_output.weight"].T) * self.value_scale
        o = self._conv(layer, "attn", o, dynamic, side=1)
        return self._norm(o, f"blk.{layer}.post_attention_norm.weight", optional=True)

    def _ffn_sublayer(self, layer: int, x: Floats) -> Floats:
        w = self.tensors
        h = self._norm(x, f"blk.{layer}.ffn_norm.weight")
        dynamic = self._dynamic(layer, "ffn", h)
        h = self._conv(layer, "ffn", h, dynamic, side=0)
        gate = h @ w[f"blk.{layer}.ffn_gate.weight"].T
        if self.gelu:
            active = 0.5 * gate * (1 + np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))
        else:
            active = gate / (1 + np.exp(-gate))
        h = (active * (h @ w[f"blk.{layer}.ffn_up.weight"].T)) @ w[f"blk.{layer}.ffn_down.weight"].T
        h = self._conv(layer, "ffn", h, dynamic, side=1)
        return self._norm(h, f"blk.{layer}.post_ffw_norm.weight", optional=True)

    def _keys_values(self, layer: int, h: Floats, positions: Ints) -> tuple[Floats, Floats]:
        """[n, H] -> rotated keys and values, [n, kv_heads, head_dim] each."""
        shape = (len(h), self.kv_heads, self.head_dim)
        k = (h @ self.tensors[f"blk.{layer}.attn_k.weight"].T).reshape(shape)
        wv = self.tensors.get(f"blk.{layer}.attn_v.weight")
        # without a value matrix the key, normed but not weighted, is the value
        v = self._norm(k, None) if wv is None else (h @ wv.T).reshape(shape)
        return self._rope(self._norm(k, f"blk.{layer}.attn_k_norm.weight"), positions), v

    def _attention(self, layer: int, q: Floats, k: Floats, v: Floats, q_pos: Ints, k_pos: Ints) -> Floats:
        """q [B, heads, d] against k, v [m, kv_heads, d] -> [B, heads, d]."""
        distance = q_pos[:, None] - k_pos[None, :]  # [B, m]
        hidden = np.zeros(distance.shape, bool)
        if self.causal or (self.sliding[layer] and self.sliding_causal):
            hidden |= distance < 0
        if self.sliding[layer]:
            hidden |= distance >= self.window
        sinks = self.tensors.get(f"blk.{layer}.attn_sinks.weight")
        out = np.empty_like(q)
        for head in range(self.heads):
            group = head // (self.heads // self.kv_heads)
            score = (q[:, head] @ k[:, group].T) * self.attention_scale  # [B, m]
            score = np.where(hidden, np.float32(-np.inf), score)
            if sinks is not None:  # a sink takes its share of the softmax and gives nothing
                score = np.concatenate([score, np.full((len(score), 1), sinks[head], np.float32)], axis=1)
            out[:, head] = softmax(score)[:, : len(k)] @ v[:, group]
        return out

    # --- the parts ----------------------------------------------------------------------------------------------------

    def _norm(self, x: Floats, weight: str | None, optional: bool = False) -> Floats:
        """Root mean square norm over the last axis; an optional norm that the file lacks is none."""
        if optional and weight not in self.tensors:
            return x
        normed = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.eps)
        return normed if weight is None else normed * self.tensors[weight]

    def _rope(self, x: Floats, positions: Ints) -> Floats:
        """Rotate x [n, heads, head_dim] in NeoX halves. For text positions, M-RoPE with one section is the same."""
        half = self.rope_dims // 2
        i = np.arange(half)
        angle = positions[:, None] * self.rope_base ** (-2.0 * i / self.rope_dims)  # [n, half]
        if "rope_freqs.weight" in self.tensors:
            angle = angle / self.tensors["rope_freqs.weight"]
        magnitude = self.rope_magnitude
        interpolated = angle / self.rope_factor
        if self.rope_scaling == "yarn":
            # YaRN (arXiv 2309.00071): fast dimensions keep their frequency, slow ones are interpolated, a ramp between
            low, high = (self._yarn_dimension(beta) for beta in (self.beta_fast, self.beta_slow))
            low, high = max(0.0, math.floor(low)), min(self.rope_dims - 1.0, math.ceil(high))
            keep = 1 - np.clip((i - low) / max(0.001, high - low), 0, 1)
            angle = interpolated * (1 - keep) + angle * keep
            magnitude *= 1 + 0.1 * math.log(self.rope_factor)
        else:
            angle = interpolated
        cos = (np.cos(angle) * magnitude).astype(np.float32)[:, None, :]
        sin = (np.sin(angle) * magnitude).astype(np.float32)[:, None, :]
        a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        return np.concatenate([a * cos - b * sin, a * sin + b * cos, rest], axis=-1)

    def _yarn_dimension(self, turns: float) -> float:
        """The rotary dimension that makes so many turns over the original context."""
        return self.rope_dims * math.log(self.rope_original / (turns * 2 * math.pi)) / (2 * math.log(self.rope_base))

    def _dynamic(self, layer: int, sublayer: str, h: Floats) -> Floats | None:
        """The convolution's per-token kernel, [B, 2 sides, K, H/G]; None in DFlash (v1)."""
        if not self.is_v2:
            return None
        groups = self.hidden_size // self.group_size
        projected = h @ self.tensors[f"blk.{layer}.{sublayer}_conv_proj.weight"].T
        return cast(Floats, projected.reshape(len(h), 2, self.kernel_size, groups))

    def _conv(self, layer: int, sublayer: str, h: Floats, dynamic: Floats | None, side: int) -> Floats:
        if dynamic is None:
            return h
        base = self.tensors[f"blk.{layer}.{sublayer}_conv_base"]  # [2, K, H]
        out = np.zeros_like(h)
        for p in range(len(h)):
            for tap in range(self.kernel_size):
                if p - tap >= 0:  # the taps read only inside the block
                    out[p] += (base[side, tap] + np.repeat(dynamic[p, side, tap], self.group_size)) * h[p - tap]
        return out

    def _logits(self, z: Floats) -> Floats:
        logits = (z @ self.head.T) * self.logit_scale
        if self.soft_cap > 0:
            logits = self.soft_cap * np.tanh(logits / self.soft_cap)
        if "d2t" not in self.tensors:
            return logits
        full = np.full((len(z), self.vocabulary), -np.inf, np.float32)
        full[:, self.tensors["d2t"]] = logits
        return full

    def _select(self, anchor: int, z: Floats, logits: Floats) -> NumpyDraft:
        candidates, unary = top_k(logits, self.candidates)
        gate = z @ self.tensors["selector_hidden.weight"].T  # [P, R]
        predecessor = self.tensors["selector_predecessor.weight"]  # [V, R]
        successor = self.tensors["selector_successor.weight"]

        def scores(p: int, before: Ints) -> Floats:
            """[len(before), k]: every candidate of position p+1 after every token of `before`."""
            return unary[p] + (predecessor[before] * gate[p]) @ successor[candidates[p]].T

        first = scores(0, np.array([anchor]))[0]
        rest = [scores(p, candidates[p - 1]) for p in range(1, len(z))]
        taken = int(np.argmax(first))
        path = [candidates[0, taken]]
        for p, pairs in enumerate(rest, start=1):
            taken = int(np.argmax(pairs[taken]))
            path.append(candidates[p, taken])
        k = self.candidates
        score_rest = np.stack(rest) if rest else np.zeros((0, k, k), np.float32)
        return NumpyDraft(z, logits, np.array(path), candidates, unary, first, score_rest)
