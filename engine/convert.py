"""Converts a DFlash or DFlash 2 drafter from safetensors form (`config.json` and weights) to a GGUF file.

The file has the form of llama.cpp's architecture `dflash`, with its target's vocabulary, and is checked against that
target before anything is written. Quantised on request, by ggml itself. Knows nothing of where the drafter came from.
"""

from __future__ import annotations

import ctypes
import io
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.drafter_config import require_pair, target_vocabulary
from engine.errors import DrafterMismatch, ModelFileError
from engine.gguf_file import Header, StringArray, read_header
from engine.gguf_writer import NewTensor, header_bytes, write_gguf
from engine.hf_config import HfConfig
from engine.safetensors_file import StoredTensor, read_folder, read_json
from engine.split_model import require_one_file
from engine.tensor_types import TENSOR_TYPES

CONFIG = "config.json"
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K", "Q4_K", "Q4_0", "IQ4_NL")  # what can be asked for
TYPE_IDS = {kind.name: number for number, kind in TENSOR_TYPES.items()}
_PIECE = 4 << 20  # weights that are in memory at once

_OF_A_LAYER = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "self_attn.attention_sink_bias": "attn_sinks.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
    "attention_conv.base_kernel": "attn_conv_base",
    "attention_conv.kernel_projection.weight": "attn_conv_proj.weight",
    "mlp_conv.base_kernel": "ffn_conv_base",
    "mlp_conv.kernel_projection.weight": "ffn_conv_proj.weight",
}
_OF_THE_WHOLE = {
    "fc.weight": "fc.weight",
    "hidden_norm.weight": "enc.output_norm.weight",
    "norm.weight": "output_norm.weight",
    "candidate_selector.predecessor_codebook": "selector_predecessor.weight",
    "candidate_selector.successor_codebook": "selector_successor.weight",
    "candidate_selector.predecessor_codebook.weight": "selector_predecessor.weight",
    "candidate_selector.successor_codebook.weight": "selector_successor.weight",
    "candidate_selector.hidden_projection.weight": "selector_hidden.weight",
    "embed_tokens.weight": "token_embd.weight",
    "lm_head.weight": "output.weight",
}
# Looked up row by row, which some devices can do in these types only.
_TABLES = ("selector_predecessor.weight", "selector_successor.weight", "token_embd.weight")
_TABLE_TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0")


@dataclass(frozen=True)
class Converted:
    """The file that was written, and sentences about what a person should know of it."""

    path: Path
    notes: tuple[str, ...]


def is_drafter_folder(folder: str | Path) -> bool:
    """Whether a folder looks like a drafter in safetensors form. Reads its config only."""
    try:
        return isinstance(read_json(Path(folder) / CONFIG).get("dflash_config"), dict)
    except (ModelFileError, OSError, ValueError):
        return False


def convert(
    folder: str | Path,
    target: str | Path | Header,
    out: str | Path,
    *,
    type: str | None = None,
    with_embeddings: bool = False,
    on_progress: Callable[[float], None] = lambda _fraction: None,
) -> Converted:
    """Write the drafter in `folder` as the GGUF file `out`, for `target` (a GGUF file).

    `type`: one of `TYPES` for the matrices; None keeps what they are stored in. `with_embeddings`: copy the target's
    embeddings and head into the file, for programs that cannot share them. `on_progress` hears fractions of 1 and may
    raise to stop; then, as after any error, nothing is left behind. Raises ModelFileError, DrafterMismatch.
    """
    folder, out = Path(folder), Path(out)
    header = target if isinstance(target, Header) else read_header(target)
    if type is not None and type not in TYPES:
        raise ModelFileError(f"Weights cannot be written as {type}; choose one of {', '.join(TYPES)}.")
    config = HfConfig(read_json(folder / CONFIG), f"{folder.name}/{CONFIG}")
    stored = _renamed(read_folder(folder), folder.name)
    second = "selector_hidden.weight" in stored
    _check_vocabulary(config, header, folder.name)
    tensors = [_converted(name, tensor, type) for name, tensor in stored.items()]
    if (factors := config.rope_factors()) is not None:
        tensors.append(NewTensor("rope_freqs.weight", factors.shape, TYPE_IDS["F32"], lambda: [factors]))
    if with_embeddings:
        require_one_file(header, "to copy embeddings from")
        tensors += _copied_from(header, {tensor.name for tensor in tensors})
    metadata: dict[str, Any] = {
        "general.architecture": "dflash",
        "general.type": "model",
        "general.name": _name(config, folder, out),
    }
    if any(TENSOR_TYPES[tensor.type].block > 1 for tensor in tensors):
        metadata["general.quantization_version"] = 2  # GGML_QNT_VERSION, as llama.cpp wants it
    metadata |= config.metadata(second, _has_sections(header)) | passed_on(header)
    metadata["tokenizer.ggml.mask_token_id"] = config.mask_token
    _check_result(metadata, tensors, header, folder.name)
    _write(out, metadata, tensors, on_progress)
    return Converted(out, tuple(config.notes))


def check_config(path: str | Path, target: Header) -> None:
    """Hold a drafter's `config.json` alone against a target: before gigabytes of weights are fetched.

    Raises ModelFileError, DrafterMismatch.
    """
    config, name = HfConfig(read_json(Path(path)), Path(path).name), Path(path).parent.name
    _check_vocabulary(config, target, name)
    hidden = target.count("embedding_length")
    if config.hidden_size != hidden:
        raise DrafterMismatch(
            f"{name} does not fit {target.file_name}: its hidden size is {config.hidden_size}, the target's {hidden}; "
            "choose the model that the drafter was made for."
        )
    config.metadata(False, False)


# --- what is read -----------------------------------------------------------------------------------------------------


def _renamed(found: Mapping[str, StoredTensor], folder: str) -> dict[str, StoredTensor]:
    """By the names of the GGUF form. Refuses what nobody would read: it would be another drafter without it."""
    renamed: dict[str, StoredTensor] = {}
    unknown = []
    for full, tensor in found.items():
        name = full.removeprefix("model.")
        layer = re.fullmatch(r"layers\.(\d{1,4})\.(.+)", name)
        if layer and layer[2] in _OF_A_LAYER:
            renamed[f"blk.{int(layer[1])}.{_OF_A_LAYER[layer[2]]}"] = tensor
        elif name in _OF_THE_WHOLE:
            renamed[_OF_THE_WHOLE[name]] = tensor
        elif not name.endswith("rotary_emb.inv_freq"):  # computed, and stored by some
            unknown.append(full)
    if markov := next((name for name in unknown if "markov" in name), None):
        raise ModelFileError(
            f"{folder} holds a DSpark drafter (it has '{markov}'), another method on the same backbone; "
            "choose a DFlash or DFlash 2 drafter."
        )
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise ModelFileError(
            f"{folder} has a tensor that DFlash does not know ('{unknown[0]}'{more}), so it is a drafter of another "
            "kind; choose a DFlash or DFlash 2 drafter."
        )
    return renamed


def _check_vocabulary(config: HfConfig, target: Header, folder: str) -> None:
    tokens = target_vocabulary(target)
    if not isinstance(target.metadata.get("tokenizer.ggml.tokens"), StringArray):
        raise ModelFileError(f"{target.file_name} has no vocabulary to pass on; choose the drafter's target.")
    if config.vocabulary != tokens:
        raise DrafterMismatch(
            f"{folder} does not fit {target.file_name}: its vocabulary has {config.vocabulary} tokens, the target's "
            f"{tokens}; choose the model that the drafter was made for."
        )


def passed_on(target: Header) -> dict[str, Any]:
    """A target's vocabulary, as metadata of its drafter: without its chat templates and its own mask token."""
    return {
        key: value
        for key, value in target.metadata.items()
        if key.startswith("tokenizer.") and "chat_template" not in key and key != "tokenizer.ggml.mask_token_id"
    }


def _has_sections(target: Header) -> bool:
    """Positions of several axes, as of models that see pictures: llama.cpp then feeds a drafter such ones, too."""
    return target.get("rope.dimension_sections") is not None


def _name(config: HfConfig, folder: Path, out: Path) -> str:
    found = config.value("_name_or_path", "")
    return (found.rstrip("/").rpartition("/")[2] if isinstance(found, str) else "") or folder.name or out.stem


# --- what is written --------------------------------------------------------------------------------------------------


def _converted(name: str, tensor: StoredTensor, wanted: str | None) -> NewTensor:
    kind = _type_for(name, tensor, wanted)
    rows = tensor.shape[0] if tensor.shape else 0
    step = max(1, _PIECE // max(1, tensor.nbytes // max(rows, 1)))

    def pieces() -> Iterator[NDArray[Any]]:
        for begin in range(0, rows, step):
            yield quantised(tensor.rows(begin, min(begin + step, rows)), kind)

    return NewTensor(name, tensor.shape, TYPE_IDS[kind], pieces)


def _type_for(name: str, tensor: StoredTensor, wanted: str | None) -> str:
    """All but matrices are float32. A matrix whose rows are no multiple of a type's block takes the next type."""
    if len(tensor.shape) != 2:
        return "F32"
    kind = wanted or (tensor.dtype if tensor.dtype in ("F32", "F16", "BF16") else "F32")
    if name in _TABLES and kind not in _TABLE_TYPES:
        kind = "Q8_0"
    for fallback in (kind, "Q8_0", "F16"):
        if tensor.shape[1] % TENSOR_TYPES[TYPE_IDS[fallback]].block == 0:
            return fallback
    return "F32"


def quantised(values: NDArray[np.float32], kind: str) -> NDArray[Any]:
    """Values [rows, columns] in a ggml type, as they stand in a file."""
    if kind == "F32":
        return values
    if kind == "F16":
        return values.astype(np.float16)
    from engine import ggml  # starts libllama; looking at a drafter should not

    rows, columns = values.shape
    type_ = TENSOR_TYPES[TYPE_IDS[kind]]
    source = np.ascontiguousarray(values, np.float32)
    out = np.empty((rows, columns // type_.block * type_.block_bytes), np.uint8)
    floats = source.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    ggml.quantize_chunk(TYPE_IDS[kind], floats, out.ctypes.data, 0, rows, columns, None)
    return out


def _copied_from(target: Header, there: set[str]) -> list[NewTensor]:
    """The target's embeddings and head as they are, where the drafter has none of its own."""

    def pieces(offset: int, nbytes: int) -> Iterator[NDArray[Any]]:
        data = np.memmap(target.path, np.uint8, "r", offset, (nbytes,))
        for begin in range(0, nbytes, 4 * _PIECE):
            yield data[begin : begin + 4 * _PIECE]

    copied = []
    for name in ("token_embd.weight", "output.weight"):
        info = target.tensors.get(name)
        if info is not None and name not in there:
            copied.append(NewTensor(name, info.shape, info.type, partial(pieces, info.offset, info.nbytes)))
    return copied


def _check_result(metadata: Mapping[str, Any], tensors: list[NewTensor], target: Header, folder: str) -> None:
    """Read the header that is to be written as the program will read it, before a byte is on the disk."""
    header = read_header(io.BytesIO(header_bytes(metadata, tensors)), name=folder)
    require_pair(header, target)


def _write(
    out: Path, metadata: Mapping[str, Any], tensors: list[NewTensor], on_progress: Callable[[float], None]
) -> None:
    total = sum(tensor.nbytes for tensor in tensors)
    part: Path | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(out.parent).free < total + (64 << 20):
            raise ModelFileError(
                f"There is too little room in {out.parent} for the converted drafter ({total / 1e9:.2f} GB); make room "
                "or choose another folder."
            )
        # a name of its own: two conversions into one file must not write into each other
        with tempfile.NamedTemporaryFile(dir=out.parent, prefix=f"{out.name}.", suffix=".part", delete=False) as made:
            part = Path(made.name)
        on_progress(0.0)
        write_gguf(part, metadata, tensors, lambda written: on_progress(written / total))
        part.chmod(0o644)
        part.replace(out)
    except OSError as error:
        raise ModelFileError(f"{out} cannot be written ({error.strerror or error}); choose another folder.") from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
