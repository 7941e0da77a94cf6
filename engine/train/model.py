"""The drafter in PyTorch: the same computation as the engine's graphs, on many blocks at once, with gradients.

Weights are a plain dictionary under their names in the GGUF file, so that what is trained is what is exported. Sliding
windows, causal blocks and scaled positions, which the recipe does not make, are not here.
Letters in shapes: B sequences, T committed positions, A anchors, b block length, P = b - 1, H hidden size.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from engine.drafter_config import DrafterConfig
from engine.events import Mode

Weights = Mapping[str, Tensor]
Cache = list[tuple[Tensor, Tensor]]  # per layer keys and values, each [B, T, kv heads, head dim]


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """In the type of the weight, which training chooses."""
    return functional.linear(x.to(weight.dtype), weight).float()


def rms_norm(x: Tensor, eps: float, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rope(x: Tensor, positions: Tensor, base: float) -> Tensor:
    """x [B, n, heads, d], positions [B, n]: pairs are the two halves of a head."""
    half = x.shape[-1] // 2
    frequencies = base ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = positions[..., None, None].float() * frequencies
    cos, sin = angles.cos(), angles.sin()
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def _keys_values(w: Weights, layer: int, x: Tensor, positions: Tensor, config: DrafterConfig) -> tuple[Tensor, Tensor]:
    shape = (*x.shape[:2], config.kv_heads, config.head_dim)
    block = f"blk.{layer}."
    key = linear(x, w[block + "attn_k.weight"]).view(shape)
    key = rms_norm(key, config.norm_eps, w[block + "attn_k_norm.weight"])
    return rope(key, positions, config.rope.freq_base), linear(x, w[block + "attn_v.weight"]).view(shape)


def inject(w: Weights, features: Tensor, config: DrafterConfig) -> Cache:
    """features [B, T, F*H] of the positions 0..T-1."""
    fused = rms_norm(linear(features, w["fc.weight"]), config.norm_eps, w["enc.output_norm.weight"])
    positions = torch.arange(features.shape[1]).expand(features.shape[:2])
    return [_keys_values(w, layer, fused, positions, config) for layer in range(config.layers)]


def convolution(h: Tensor, dynamic: Tensor, base: Tensor, side: int, config: DrafterConfig) -> Tensor:
    """h [N, b, H], dynamic [N, b, 2*K*H/G], base [2, K, H]: each token mixed with those before it in its block."""
    assert config.conv_kernel and config.conv_group
    n, b, size = h.shape
    groups = size // config.conv_group
    own = dynamic.view(n, b, 2, config.conv_kernel, groups, 1)[:, :, side]  # [N, b, K, groups, 1]
    grouped = h.view(n, b, groups, config.conv_group)
    total = torch.zeros_like(grouped)
    for tap in range(min(config.conv_kernel, b)):
        earlier = functional.pad(grouped, (0, 0, 0, 0, tap, 0))[:, :b] if tap else grouped
        total = total + earlier * (base[side, tap].view(groups, config.conv_group) + own[:, :, tap])
    return total.view(n, b, size)


def _attention(
    query: Tensor,
    cached: tuple[Tensor, Tensor],
    own: tuple[Tensor, Tensor],
    visible: Tensor,
    config: DrafterConfig,
    dtype: torch.dtype,
) -> Tensor:
    """query [B, A*b, heads, d] over T cached positions, as many as `visible` [B, A, T] says, and the block's own b."""
    batch, anchors, committed = visible.shape
    heads, kv, d = config.heads, config.kv_heads, config.head_dim
    b = query.shape[1] // anchors
    group = heads // kv
    # [B, kv, A, b*group, d]
    q = (
        query.to(dtype)
        .view(batch, anchors, b, kv, group, d)
        .permute(0, 3, 1, 2, 4, 5)
        .reshape(batch, kv, anchors, b * group, d)
    )
    keys, values = (x.to(dtype).permute(0, 2, 1, 3) for x in cached)  # [B, kv, T, d]
    block_keys, block_values = (x.to(dtype).view(batch, anchors, b, kv, d).permute(0, 3, 1, 2, 4) for x in own)
    far = (q.flatten(2, 3) @ keys.transpose(-1, -2)).view(batch, kv, anchors, b * group, committed).float()
    far = far.masked_fill(~visible[:, None, :, None, :], -torch.inf)
    near = (q @ block_keys.transpose(-1, -2)).float()  # [B, kv, A, b*group, b]
    weights = torch.softmax(torch.cat((far, near), -1) * config.attention_scale, -1).to(dtype)
    far, near = weights[..., :committed], weights[..., committed:]
    out = (far.flatten(2, 3) @ values).view(q.shape) + near @ block_values
    out = out.view(batch, kv, anchors, b, group, d).permute(0, 2, 3, 1, 4, 5)
    return out.reshape(batch, anchors * b, heads * d)


def draft(
    w: Weights, cache: Cache, embeddings: Tensor, starts: Tensor, config: DrafterConfig, *, convolve: bool = True
) -> Tensor:
    """embeddings [B, A, b, H] of [anchor, mask, ...], anchors at positions starts [B, A] -> z [B, A, P, H].

    `convolve=False` leaves the convolutions out, for comparison.
    """
    batch, anchors, b, size = embeddings.shape
    committed = cache[0][0].shape[1]
    x = (embeddings * config.embedding_scale).view(batch, anchors * b, size)
    positions = (starts[..., None] + torch.arange(b)).view(batch, anchors * b)
    visible = torch.arange(committed) < starts[..., None]
    second = config.version is Mode.DFLASH2 and convolve
    eps = config.norm_eps

    def convolved(h: Tensor, dynamic: Tensor, base: Tensor, side: int) -> Tensor:
        blocks = batch * anchors
        return convolution(h.view(blocks, b, size), dynamic.view(blocks, b, -1), base, side, config).view(h.shape)

    for layer in range(config.layers):
        block = f"blk.{layer}."
        h = rms_norm(x, eps, w[block + "attn_norm.weight"])
        if second:
            dynamic = linear(h, w[block + "attn_conv_proj.weight"])
            h = convolved(h, dynamic, w[block + "attn_conv_base"], 0)
        query = linear(h, w[block + "attn_q.weight"]).view(batch, anchors * b, config.heads, config.head_dim)
        query = rope(rms_norm(query, eps, w[block + "attn_q_norm.weight"]), positions, config.rope.freq_base)
        own = _keys_values(w, layer, h, positions, config)
        h = _attention(query, cache[layer], own, visible, config, w[block + "attn_q.weight"].dtype)
        h = linear(h, w[block + "attn_output.weight"])
        if second:
            h = convolved(h, dynamic, w[block + "attn_conv_base"], 1)
        x = x + h
        h = rms_norm(x, eps, w[block + "ffn_norm.weight"])
        if second:
            dynamic = linear(h, w[block + "ffn_conv_proj.weight"])
            h = convolved(h, dynamic, w[block + "ffn_conv_base"], 0)
        gate, up = linear(h, w[block + "ffn_gate.weight"]), linear(h, w[block + "ffn_up.weight"])
        active = functional.silu(gate) if config.activation == "silu" else functional.gelu(gate, approximate="tanh")
        h = linear(active * up, w[block + "ffn_down.weight"])
        if second:
            h = convolved(h, dynamic, w[block + "ffn_conv_base"], 1)
        x = x + h
    return rms_norm(x, eps, w["output_norm.weight"]).view(batch, anchors, b, size)[:, :, 1:]


def logits(z: Tensor, head: Tensor, config: DrafterConfig) -> Tensor:
    """z [..., H], head [C, H] -> [..., C]."""
    raw = linear(z, head) * config.logit_scale
    return raw if config.soft_cap is None else config.soft_cap * torch.tanh(raw / config.soft_cap)


def selector_scores(gate: Tensor, unary: Tensor, predecessor: Tensor, successor: Tensor) -> Tensor:
    """gate [..., R], unary [..., k], codebook rows predecessor [..., a, R], successor [..., k, R] -> [..., a, k]."""
    return unary[..., None, :] + (predecessor * gate[..., None, :]) @ successor.transpose(-1, -2)


def masked_block(anchors: Tensor, table: Tensor, mask: Tensor, b: int) -> Tensor:
    """Embeddings [B, A, b, H] of blocks: the anchor's, a row of `table` for each of [B, A], then b - 1 masks."""
    blocks = mask.expand(*anchors.shape, b, mask.shape[-1]).clone()
    blocks[:, :, 0] = table[anchors]
    return blocks


def for_computing(w: Weights, dtype: torch.dtype) -> dict[str, Tensor]:
    """Matrices in `dtype`, everything that is added or multiplied element by element as it is. Gradients flow back."""
    return {
        name: tensor.to(dtype) if tensor.dim() == 2 and not name.startswith(_TABLES) else tensor
        for name, tensor in w.items()
    }


_TABLES = ("selector_predecessor", "selector_successor")
