"""Writes a trained drafter as a GGUF file of llama.cpp's `dflash` architecture, quantised by ggml itself.

NumPy only, no PyTorch. Knows nothing of how the weights came to be.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.convert import TYPE_IDS, passed_on, quantised
from engine.drafter_config import DrafterConfig
from engine.events import Mode
from engine.gguf_file import Header
from engine.gguf_writer import NewTensor, write_gguf
from engine.tensor_types import TENSOR_TYPES

Array = NDArray[np.float32]
TABLES = ("selector_predecessor.weight", "selector_successor.weight")


def spread(table: Array, rows: NDArray[np.int64], vocabulary: int) -> Array:
    """A codebook with a row for each token of the target: nothing for those that are never proposed."""
    whole = np.zeros((vocabulary, table.shape[1]), np.float32)
    whole[rows] = table
    return whole


def write_drafter(
    path: Path,
    config: DrafterConfig,
    weights: Mapping[str, Array],
    head: Array | None,
    vocabulary: NDArray[np.int64] | None,
    target: Header,
    *,
    matrices: str,
    tables: str,
    notes: Mapping[str, Any],
) -> Path:
    """Write the file and return its path. `head` [Vd, H] with `vocabulary` [Vd], or neither: the target's is used then.

    `matrices`, `tables`: ggml types of what is multiplied and of the codebooks, where their rows allow. `notes`: more
    metadata keys (licence, data, budget).
    """
    metadata: dict[str, Any] = {"general.architecture": "dflash", **_settings(config), **passed_on(target)}
    metadata |= {"tokenizer.ggml.mask_token_id": config.mask_token, **notes}
    everything = dict(weights)
    tensors: list[NewTensor] = []
    if head is not None and vocabulary is not None:
        everything["output.weight"] = head
        tensors.append(_tensor("d2t", vocabulary.astype(np.int64), "I64"))
    for name, array in everything.items():
        if name in TABLES and vocabulary is not None:
            array = spread(array, vocabulary, config.vocabulary)
        kind = tables if name in TABLES else matrices
        if array.ndim != 2:
            kind = "F32"
        elif array.shape[1] % TENSOR_TYPES[TYPE_IDS[kind]].block:
            kind = "F16"
        tensors.append(_tensor(name, np.ascontiguousarray(array, np.float32), kind))
    part = path.with_suffix(".part")
    write_gguf(part, metadata, tensors)
    os.replace(part, path)
    return path


def _tensor(name: str, array: NDArray[Any], kind: str) -> NewTensor:
    """Quantised when it is written, so that only one is in memory twice."""
    return NewTensor(name, array.shape, TYPE_IDS[kind], lambda: [array if kind == "I64" else quantised(array, kind)])


def _settings(config: DrafterConfig) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "dflash.block_count": config.layers,
        "dflash.context_length": config.context_length,
        "dflash.embedding_length": config.hidden_size,
        "dflash.feed_forward_length": config.feed_forward,
        "dflash.attention.head_count": config.heads,
        "dflash.attention.head_count_kv": config.kv_heads,
        "dflash.attention.key_length": config.head_dim,
        "dflash.attention.value_length": config.head_dim,
        "dflash.attention.layer_norm_rms_epsilon": config.norm_eps,
        "dflash.rope.freq_base": config.rope.freq_base,
        "dflash.vocab_size": config.vocabulary,
        "dflash.block_size": config.block_size,
        "dflash.target_layers": np.array(config.target_layers, np.int32),
    }
    if config.version is Mode.DFLASH2:
        settings |= {
            "dflash.conv_kernel_size": config.conv_kernel,
            "dflash.conv_group_size": config.conv_group,
            "dflash.selector_rank": config.selector_rank,
            "dflash.selector_top_k": config.selector_top_k,
        }
    return settings
