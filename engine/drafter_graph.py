"""Builds the drafter's two computations: injecting features into its KV cache, and drafting one block.

Both follow llama.cpp's `dflash` graph (and the torch reference published with the checkpoints), batched over
sequences. Shapes in comments are ggml's, fastest dimension first; H hidden size, n rows, b block length, S sequences,
k candidates, R selector rank. Knows nothing of what is done with the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import ggml
from engine.drafter_config import DrafterConfig
from engine.drafter_weights import DrafterWeights
from engine.events import Mode
from engine.graph import Graph, shape

_F32 = 4  # bytes
DFLASH_CANDIDATES = 16  # how many candidates a DFlash (v1) draft reports; its own choice is the first


@dataclass(frozen=True)
class Cache:
    """The drafter's keys and values: a table per layer, `slots` rows for each sequence and one that nobody reads."""

    keys: tuple[int, ...]  # (kv heads * head dim, sequences * slots + 1) each
    values: tuple[int, ...]
    slots: int
    row_bytes: int
    element_bytes: int


def _rope(graph: Graph, x: int, positions: int, config: DrafterConfig, weights: DrafterWeights) -> int:
    """Positions of text in M-RoPE targets use the first section only, which makes them ordinary ones."""
    rope = config.rope
    return graph.rope(
        x, positions, weights.get("rope_freqs.weight"), rope.dims, rope.original_context, rope.freq_base,
        1.0 / rope.factor, rope.ext_factor, rope.attention_factor, rope.beta_fast, rope.beta_slow,
    )  # fmt: skip


def _keys_and_values(
    graph: Graph, x: int, layer: int, positions: int, config: DrafterConfig, weights: DrafterWeights
) -> tuple[int, int]:
    """x (H, n) -> key and value rows (kv heads * head dim, n); without attn_v the value is the unscaled normed key."""
    block = f"blk.{layer}."
    n = shape(x)[1]
    key = graph.mul_mat(weights[block + "attn_k.weight"], x)
    value_matrix = weights.get(block + "attn_v.weight")
    width = config.kv_heads * config.head_dim
    if value_matrix is None:
        value = graph.rms_norm(graph.reshape(key, config.head_dim, config.kv_heads, n), config.norm_eps)
        value = graph.reshape(value, width, n)
    else:
        value = graph.mul_mat(value_matrix, x)
    key = graph.reshape(key, config.head_dim, config.kv_heads, n)
    key = graph.rms_norm(key, config.norm_eps, weights[block + "attn_k_norm.weight"])
    key = _rope(graph, key, positions, config, weights)
    return graph.reshape(key, width, n), value


def build_injection(graph: Graph, config: DrafterConfig, weights: DrafterWeights, cache: Cache, n: int) -> None:
    """Inputs: features (F*H, n), positions (n), slots (n). Writes n rows of every layer's cache."""
    features = graph.input("features", ggml.F32, len(config.target_layers) * config.hidden_size, n)
    positions = graph.input("positions", ggml.I32, n)
    slots = graph.input("slots", ggml.I64, n)
    fused = graph.mul_mat(weights["fc.weight"], features)  # (H, n)
    fused = graph.rms_norm(fused, config.norm_eps, weights["enc.output_norm.weight"])
    for layer in range(config.layers):
        key, value = _keys_and_values(graph, fused, layer, positions, config, weights)
        graph.expand(graph.set_rows(cache.keys[layer], key, slots))
        graph.expand(graph.set_rows(cache.values[layer], value, slots))


def _convolution(graph: Graph, h: int, dynamic: int, base: int, side: int, config: DrafterConfig, b: int) -> int:
    """Two-tap grouped dynamic causal convolution of h (H, n); a tap reads only inside its own block of b rows.

    dynamic (2 * K * H/G, n) holds one token's kernel as [side][tap][group], base (H, K, 2) the part all tokens share.
    """
    assert config.conv_kernel and config.conv_group
    size, taps, group = config.hidden_size, config.conv_kernel, config.conv_group
    groups = size // group
    n = shape(h)[1]
    row = shape(dynamic)[0] * _F32
    total = 0
    for tap in range(min(taps, b)):
        source = h
        if tap:
            blocks = graph.reshape(h, size, b, n // b)
            earlier = graph.view(blocks, (size, b - tap, n // b), (size * _F32, size * b * _F32))
            source = graph.pad_front(earlier, 1, tap)
        source = graph.reshape(source, group, groups, n)
        index = side * taps + tap
        shared = graph.view(base, (group, groups), (group * _F32,), index * size * _F32)
        own = graph.view(dynamic, (1, groups, n), (_F32, row), index * groups * _F32)
        term = graph.add(graph.mul(source, shared), graph.mul(source, own))
        total = graph.add(total, term) if tap else term
    return graph.reshape(total, size, n)


def _layer(
    graph: Graph,
    x: int,
    layer: int,
    inputs: _BlockInputs,
    config: DrafterConfig,
    weights: DrafterWeights,
    cache: Cache,
) -> int:
    block = f"blk.{layer}."
    b, n = inputs.block, inputs.block * len(inputs.sequences)
    h = graph.rms_norm(x, config.norm_eps, weights[block + "attn_norm.weight"])
    dynamic = 0
    attention_base = weights.get(block + "attn_conv_base")
    if attention_base is not None:
        dynamic = graph.mul_mat(weights[block + "attn_conv_proj.weight"], h)
        h = _convolution(graph, h, dynamic, attention_base, 0, config, b)
    query = graph.reshape(graph.mul_mat(weights[block + "attn_q.weight"], h), config.head_dim, config.heads, n)
    query = graph.rms_norm(query, config.norm_eps, weights[block + "attn_q_norm.weight"])
    query = _rope(graph, query, inputs.positions, config, weights)
    key, value = _keys_and_values(graph, h, layer, inputs.positions, config, weights)
    # Behind the committed rows: the next injection overwrites them, so the block's own keys and values are dropped.
    graph.expand(graph.set_rows(cache.keys[layer], key, inputs.slots))
    graph.expand(graph.set_rows(cache.values[layer], value, inputs.slots))

    head_bytes = config.head_dim * cache.element_bytes
    attended = []
    for index, sequence in enumerate(inputs.sequences):
        view = (config.head_dim, inputs.context, config.kv_heads), (cache.row_bytes, head_bytes)
        start = sequence * cache.slots * cache.row_bytes
        rows = graph.view(
            query, (config.head_dim, config.heads, b), (config.head_dim * _F32, config.head_dim * config.heads * _F32),
            index * b * config.head_dim * config.heads * _F32,
        )  # fmt: skip
        masks = inputs.sliding_masks if config.sliding[layer] else inputs.masks
        out = graph.attention(
            graph.permute(rows, 0, 2, 1, 3),
            graph.view(cache.keys[layer], *view, start),
            graph.view(cache.values[layer], *view, start),
            masks[index],
            config.attention_scale,
            weights.get(block + "attn_sinks.weight"),
        )
        attended.append(graph.reshape(out, config.head_dim * config.heads, b))
    out = graph.mul_mat(weights[block + "attn_output.weight"], graph.concat(attended, 1))
    out = graph.scale(out, config.value_scale)
    if attention_base is not None:
        out = _convolution(graph, out, dynamic, attention_base, 1, config, b)
    post_attention = weights.get(block + "post_attention_norm.weight")
    if post_attention is not None:
        out = graph.rms_norm(out, config.norm_eps, post_attention)
    x = graph.add(x, out)

    h = graph.rms_norm(x, config.norm_eps, weights[block + "ffn_norm.weight"])
    ffn_base = weights.get(block + "ffn_conv_base")
    if ffn_base is not None:
        dynamic = graph.mul_mat(weights[block + "ffn_conv_proj.weight"], h)
        h = _convolution(graph, h, dynamic, ffn_base, 0, config, b)
    gate = graph.mul_mat(weights[block + "ffn_gate.weight"], h)
    h = graph.gated(gate, graph.mul_mat(weights[block + "ffn_up.weight"], h), config.activation)
    h = graph.mul_mat(weights[block + "ffn_down.weight"], h)
    if ffn_base is not None:
        h = _convolution(graph, h, dynamic, ffn_base, 1, config, b)
    post_ffn = weights.get(block + "post_ffw_norm.weight")
    if post_ffn is not None:
        h = graph.rms_norm(h, config.norm_eps, post_ffn)
    x = graph.add(x, h)
    out_scale = weights.get(block + "layer_output_scale.weight")
    return x if out_scale is None else graph.mul(x, out_scale)


@dataclass(frozen=True)
class _BlockInputs:
    sequences: tuple[int, ...]
    block: int  # b
    context: int  # n_kv, padded
    positions: int
    slots: int
    masks: list[int]  # per sequence, (n_kv, b)
    sliding_masks: list[int]


def build_block(
    graph: Graph,
    config: DrafterConfig,
    weights: DrafterWeights,
    cache: Cache,
    sequences: tuple[int, ...],
    b: int,
    context: int,
    *,
    look_up: bool = True,
    record: bool = False,
) -> None:
    """One block of b rows for each sequence, attending to `context` of its cache rows (the mask says which).

    Inputs: ids (b*S) or, without `look_up`, embeddings (H, b*S); positions, slots (b*S); mask.i, sliding.i (n_kv, b).
    Outputs over the P = b - 1 drafted positions, best candidates first: candidates and unary (k, P, S); DFlash 2 also
    first (k, 1, 1, S) and rest (k successors, k predecessors, P-1, S). With `record` also hidden (H, P*S) and logits
    (V, P*S).
    """
    n = b * len(sequences)
    if look_up:
        ids = graph.input("ids", ggml.I32, n)
        x = graph.get_rows(weights.embeddings, ids)
    else:
        x = graph.input("embeddings", ggml.F32, config.hidden_size, n)
    x = graph.scale(x, config.embedding_scale)
    count = range(len(sequences))
    inputs = _BlockInputs(
        sequences,
        b,
        context,
        graph.input("positions", ggml.I32, n),
        graph.input("slots", ggml.I64, n),
        [] if all(config.sliding) else [graph.input(f"mask.{i}", ggml.F16, context, b) for i in count],
        [graph.input(f"sliding.{i}", ggml.F16, context, b) for i in count] if any(config.sliding) else [],
    )
    anchors = 0
    if config.version is Mode.DFLASH2:
        anchors = graph.input("anchors", ggml.I32, len(sequences))
    for layer in range(config.layers):
        x = _layer(graph, x, layer, inputs, config, weights, cache)
    z = graph.rms_norm(x, config.norm_eps, weights["output_norm.weight"])  # (H, b*S)
    _candidates(graph, z, anchors, config, weights, b, len(sequences), record)


def _candidates(
    graph: Graph, z: int, anchors: int, config: DrafterConfig, weights: DrafterWeights, b: int, s: int, record: bool
) -> None:
    """Head, the best k tokens of each drafted position, and for DFlash 2 the scores of every pair of neighbours."""
    size, drafted = config.hidden_size, b - 1
    rows = drafted * s
    needed = graph.view(z, (size, drafted, s), (size * _F32, size * b * _F32), size * _F32)
    if s > 1:
        needed = graph.cont(needed)
    needed = graph.reshape(needed, size, rows)
    vocabulary = shape(weights.head)[1]
    if s == 1 and b % 8 == 0 and weights.is_repacked(weights.head):
        # A repacked product takes rows in groups and is slow on the odd ones behind: the anchor's fills the last group.
        logits = graph.mul_mat(weights.head, z)
        logits = graph.view(logits, (vocabulary, rows), (vocabulary * _F32,), vocabulary * _F32)
    else:
        logits = graph.mul_mat(weights.head, needed)  # (V, rows)
    k = min(config.selector_top_k or DFLASH_CANDIDATES, vocabulary)
    candidates = graph.top_k(logits, k)  # (k, rows), an unordered set
    unary = graph.get_rows(graph.reshape(logits, 1, vocabulary, rows), candidates)  # (1, k, rows)
    best_first = graph.order(graph.reshape(unary, k, rows))
    candidates = graph.get_rows(graph.reshape(candidates, 1, k, rows), best_first)
    unary = graph.get_rows(unary, best_first)
    unary = _transformed(graph, unary, config)
    d2t = weights.get("d2t")
    if d2t is not None:
        flat = graph.reshape(candidates, k * rows)
        candidates = graph.get_rows(graph.reshape(d2t, 1, vocabulary), flat)
    candidates = graph.reshape(candidates, k, drafted, s)
    unary = graph.reshape(unary, k, drafted, s)
    graph.output("candidates", candidates)
    graph.output("unary", unary)
    if record:
        graph.output("hidden", graph.cont(needed))
        graph.output("logits", _transformed(graph, graph.cont(logits), config))
    if config.version is Mode.DFLASH2:
        _scores(graph, needed, candidates, unary, anchors, config, weights, drafted, s, k)


def _transformed(graph: Graph, logits: int, config: DrafterConfig) -> int:
    """Scale and soft cap, as the target's own head has them. Neither changes the order."""
    logits = graph.scale(logits, config.logit_scale)
    if config.soft_cap:
        logits = graph.scale(graph.tanh(graph.scale(logits, 1.0 / config.soft_cap)), config.soft_cap)
    return logits


def _scores(
    graph: Graph,
    z: int,
    candidates: int,
    unary: int,
    anchors: int,
    config: DrafterConfig,
    weights: DrafterWeights,
    drafted: int,
    s: int,
    k: int,
) -> None:
    """score_p(a -> b) = unary_p(b) + sum_r predecessor[a, r] gate_p[r] successor[b, r], for all pairs at once."""
    assert config.selector_rank
    rank = config.selector_rank
    gate = graph.reshape(graph.mul_mat(weights["selector_hidden.weight"], z), rank, 1, drafted, s)
    flat = graph.reshape(candidates, k * drafted * s)
    successor = graph.get_rows(weights["selector_successor.weight"], flat)
    successor = graph.reshape(successor, rank, k, drafted, s)

    def positions_from(x: int, first: int, count: int) -> int:
        """Positions first.. of a (d0, d1, drafted, S) tensor."""
        d0, d1, _, _ = shape(x)
        step = d0 * d1 * _F32
        return graph.view(x, (d0, d1, count, s), (d0 * _F32, step, step * drafted), first * step)

    def score(predecessor: int, first: int, count: int) -> int:
        conditioned = graph.mul(predecessor, positions_from(gate, first, count))
        pair = graph.mul_mat(positions_from(successor, first, count), conditioned)
        return graph.add(pair, positions_from(graph.reshape(unary, k, 1, drafted, s), first, count))

    anchor = graph.get_rows(weights["selector_predecessor.weight"], anchors)
    graph.output("first", score(graph.reshape(anchor, rank, 1, 1, s), 0, 1))
    if drafted > 1:
        earlier = graph.view(candidates, (k, drafted - 1, s), (k * _F32, k * drafted * _F32))
        if s > 1:
            earlier = graph.cont(earlier)
        table = weights["selector_predecessor.weight"]
        predecessor = graph.get_rows(table, graph.reshape(earlier, k * (drafted - 1) * s))
        graph.output("rest", score(graph.reshape(predecessor, rank, k, drafted - 1, s), 1, drafted - 1))
