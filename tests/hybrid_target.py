"""A tiny target in the form of Qwen's hybrid models: every other layer keeps a recurrent state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.drafter_files import _write
from tests.tiny_chat import _TEMPLATE_KEY, END, SAID, vocabulary

WIDTH, LAYERS, HEAD, HEADS, STATE, KERNEL = 64, 4, 16, 2, 16, 4
KEY_HEADS, VALUE_HEADS = 1, 2


def hybrid_target(path: Path, *, metadata: dict[str, Any] | None = None) -> Path:
    """Random weights; vocabulary, template and what it says are the wandering target's."""
    rng = np.random.default_rng(0)
    words = vocabulary()
    inner = STATE * VALUE_HEADS
    mixed = 2 * STATE * KEY_HEADS + inner

    def matrix(*shape: int) -> NDArray[np.float32]:
        return rng.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[-1]))

    def ones(size: int) -> NDArray[np.float32]:
        return np.ones(size, np.float32)

    head = np.zeros((len(words), WIDTH), np.float32)
    said = [token for token in SAID if token != END]  # so it never comes to an end
    head[said] = matrix(len(said), WIDTH) * 4
    tensors = {
        "token_embd.weight": matrix(len(words), WIDTH) * 8,
        "output_norm.weight": ones(WIDTH),
        "output.weight": head,
    }
    for i in range(LAYERS):
        of_layer = {
            "attn_norm.weight": ones(WIDTH),
            "post_attention_norm.weight": ones(WIDTH),
            "ffn_gate.weight": matrix(128, WIDTH),
            "ffn_up.weight": matrix(128, WIDTH),
            "ffn_down.weight": matrix(WIDTH, 128),
        }
        if i % 2:
            of_layer |= {
                "attn_q.weight": matrix(2 * HEADS * HEAD, WIDTH),  # and its gate
                "attn_k.weight": matrix(HEADS * HEAD, WIDTH),
                "attn_v.weight": matrix(HEADS * HEAD, WIDTH),
                "attn_output.weight": matrix(WIDTH, HEADS * HEAD),
                "attn_q_norm.weight": ones(HEAD),
                "attn_k_norm.weight": ones(HEAD),
            }
        else:
            of_layer |= {
                "attn_qkv.weight": matrix(mixed, WIDTH),
                "attn_gate.weight": matrix(inner, WIDTH),
                "ssm_conv1d.weight": matrix(mixed, KERNEL),
                "ssm_dt.bias": np.zeros(VALUE_HEADS, np.float32),
                "ssm_a": -ones(VALUE_HEADS),
                "ssm_beta.weight": matrix(VALUE_HEADS, WIDTH),
                "ssm_alpha.weight": matrix(VALUE_HEADS, WIDTH),
                "ssm_norm.weight": ones(STATE),
                "ssm_out.weight": matrix(WIDTH, inner),
            }
        tensors |= {f"blk.{i}.{name}": array for name, array in of_layer.items()}
    keys = {
        "block_count": LAYERS,
        "context_length": 4096,
        "embedding_length": WIDTH,
        "feed_forward_length": 128,
        "attention.head_count": HEADS,
        "attention.head_count_kv": HEADS,
        "attention.key_length": HEAD,
        "attention.value_length": HEAD,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 10000.0,
        "rope.dimension_count": HEAD,
        "rope.dimension_sections": [HEAD // 2, 0, 0, 0],
        "ssm.conv_kernel": KERNEL,
        "ssm.inner_size": inner,
        "ssm.state_size": STATE,
        "ssm.time_step_rank": VALUE_HEADS,
        "ssm.group_count": KEY_HEADS,
        "full_attention_interval": 2,
        "vocab_size": len(words),
    }
    named = {f"qwen35.{key}": value for key, value in keys.items()}
    return _write(path, {**named, **words.keys, **_TEMPLATE_KEY, **(metadata or {})}, tensors, "F32", "qwen35")
