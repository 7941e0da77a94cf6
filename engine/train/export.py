"""Writes a trained drafter as a GGUF file of llama.cpp's `dflash` architecture, quantised by ggml itself.

Needs `gguf` and NumPy, no PyTorch. Knows nothing of how the weights came to be.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from engine import ggml
from engine.drafter_config import DrafterConfig
from engine.events import Mode
from engine.gguf_file import Header, StringArray

Array = NDArray[np.float32]
TABLES = ("selector_predecessor.weight", "selector_successor.weight")


def quantised(matrix: Array, type_: gguf.GGMLQuantizationType) -> NDArray[np.generic]:
    """matrix [rows, columns] in a ggml type: bytes [rows, bytes of a row], or float arrays for F32 and F16."""
    if type_ == gguf.GGMLQuantizationType.F32:
        return matrix
    if type_ == gguf.GGMLQuantizationType.F16:
        return matrix.astype(np.float16)
    rows, columns = matrix.shape
    block, size = gguf.GGML_QUANT_SIZES[type_]
    source = np.ascontiguousarray(matrix, np.float32)
    out = np.empty((rows, columns // block * size), np.uint8)
    floats = source.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    ggml.quantize_chunk(int(type_), floats, out.ctypes.data, 0, rows, columns, None)
    return out


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
    part = path.with_suffix(".part")
    writer = gguf.GGUFWriter(part, "dflash")
    for key, value in (_settings(config) | _tokenizer(target) | dict(notes)).items():
        _add(writer, key, value)
    writer.add_uint32("tokenizer.ggml.mask_token_id", config.mask_token)
    everything = dict(weights)
    if head is not None and vocabulary is not None:
        everything["output.weight"] = head
        writer.add_tensor("d2t", vocabulary.astype(np.int64))
    for name, array in everything.items():
        if name in TABLES and vocabulary is not None:
            array = spread(array, vocabulary, config.vocabulary)
        type_ = gguf.GGMLQuantizationType[tables if name in TABLES else matrices]
        block, _ = gguf.GGML_QUANT_SIZES[type_]
        if array.ndim == 2 and array.shape[1] % block:
            type_ = gguf.GGMLQuantizationType.F16
        if array.ndim == 2:
            writer.add_tensor(name, quantised(array, type_), raw_dtype=type_)
        else:
            writer.add_tensor(name, np.ascontiguousarray(array, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(part, path)
    return path


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
        "dflash.target_layers": list(config.target_layers),
    }
    if config.version is Mode.DFLASH2:
        settings |= {
            "dflash.conv_kernel_size": config.conv_kernel,
            "dflash.conv_group_size": config.conv_group,
            "dflash.selector_rank": config.selector_rank,
            "dflash.selector_top_k": config.selector_top_k,
        }
    return settings


def _tokenizer(target: Header) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for key, value in target.metadata.items():
        if key.startswith("tokenizer.") and "chat_template" not in key and key != "tokenizer.ggml.mask_token_id":
            if isinstance(value, StringArray):
                keys[key] = list(value)
            else:
                keys[key] = value.tolist() if isinstance(value, np.ndarray) else value
    return keys


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif value:
        writer.add_array(key, value)
