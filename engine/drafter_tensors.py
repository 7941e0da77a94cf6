"""The tensors of a DFlash or DFlash 2 drafter: which must be there, which may be, and their shapes. Reads no data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.errors import ModelFileError
from engine.gguf_file import Header

if TYPE_CHECKING:  # drafter_config imports this module
    from engine.drafter_config import DrafterConfig

ANOTHER_FILE = "get the drafter from another source, or convert it again with a current converter"


def check_tensors(header: Header, config: DrafterConfig) -> None:
    """Every tensor that the method needs is there, each has its shape, and there is none that nobody would read."""
    file, found = header.file_name, header.tensors
    required, optional = tensor_shapes(config)
    lacking = [name for name in required if name not in found]
    if lacking:
        raise ModelFileError(f"{file} lacks the tensor{'s' * (len(lacking) > 1)} {listed(lacking)}; {ANOTHER_FILE}.")
    for name, shape in (required | optional).items():
        if name in found and found[name].shape != shape:
            raise ModelFileError(
                f"{file} has the tensor '{name}' in the shape {list(found[name].shape)} where its metadata wants "
                f"{list(shape)}; {ANOTHER_FILE}."
            )
    if config.draft_vocabulary is not None:
        if found["d2t"].type_name != "I64":
            raise ModelFileError(f"{file} stores 'd2t' as {found['d2t'].type_name} instead of I64; {ANOTHER_FILE}.")
        if not config.own_head:
            raise ModelFileError(
                f"{file} maps a reduced vocabulary ('d2t') but has no 'output.weight'; {ANOTHER_FILE}."
            )
    choices = config.vocabulary if config.draft_vocabulary is None else config.draft_vocabulary
    if config.selector_top_k is not None and config.selector_top_k > choices:
        raise ModelFileError(
            f"{file} wants {config.selector_top_k} candidates ('dflash.selector_top_k') out of {choices} tokens; "
            f"{ANOTHER_FILE}."
        )
    unknown = [name for name in found if name not in required and name not in optional]
    if unknown:
        raise ModelFileError(
            f"{file} has {'tensors' if len(unknown) > 1 else 'a tensor'} that DFlash does not know ({listed(unknown)})"
            ", so it is a drafter of another kind; choose a DFlash or DFlash 2 drafter."
        )


def tensor_shapes(config: DrafterConfig) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """Shapes in NumPy's order, of the tensors that must be there and of those that may be."""
    hidden, ffn, vocabulary, head_dim = config.hidden_size, config.feed_forward, config.vocabulary, config.head_dim
    queries, keys = config.heads * head_dim, config.kv_heads * head_dim
    draft_vocabulary = vocabulary if config.draft_vocabulary is None else config.draft_vocabulary
    required: dict[str, tuple[int, ...]] = {
        "fc.weight": (hidden, len(config.target_layers) * hidden),
        "enc.output_norm.weight": (hidden,),
        "output_norm.weight": (hidden,),
    }
    optional: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (vocabulary, hidden),
        "output.weight": (draft_vocabulary, hidden),
        "d2t": (draft_vocabulary,),
        "rope_freqs.weight": (head_dim // 2,),
    }
    for i in range(config.layers):
        required |= {
            f"blk.{i}.attn_norm.weight": (hidden,),
            f"blk.{i}.attn_q.weight": (queries, hidden),
            f"blk.{i}.attn_k.weight": (keys, hidden),
            f"blk.{i}.attn_output.weight": (hidden, queries),
            f"blk.{i}.attn_q_norm.weight": (head_dim,),
            f"blk.{i}.attn_k_norm.weight": (head_dim,),
            f"blk.{i}.ffn_norm.weight": (hidden,),
            f"blk.{i}.ffn_gate.weight": (ffn, hidden),
            f"blk.{i}.ffn_up.weight": (ffn, hidden),
            f"blk.{i}.ffn_down.weight": (hidden, ffn),
        }
        optional |= {
            f"blk.{i}.attn_v.weight": (keys, hidden),
            f"blk.{i}.attn_sinks.weight": (config.heads,),
            f"blk.{i}.post_attention_norm.weight": (hidden,),
            f"blk.{i}.post_ffw_norm.weight": (hidden,),
            f"blk.{i}.layer_output_scale.weight": (1,),
        }
    kernel, group, rank = config.conv_kernel, config.conv_group, config.selector_rank
    if kernel is not None and group is not None and rank is not None:
        required |= {
            "selector_predecessor.weight": (vocabulary, rank),
            "selector_successor.weight": (vocabulary, rank),
            "selector_hidden.weight": (rank, hidden),
        }
        for i in range(config.layers):
            for part in ("attn", "ffn"):
                required[f"blk.{i}.{part}_conv_base"] = (2, kernel, hidden)
                required[f"blk.{i}.{part}_conv_proj.weight"] = (2 * kernel * hidden // group, hidden)
    return required, optional


def listed(names: Sequence[str], most: int = 3) -> str:
    """'a', 'b' and 7 more."""
    quoted = [f"'{name}'" for name in names]
    if len(quoted) <= most:
        return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
    return f"{', '.join(quoted[:most])} and {len(quoted) - most} more"
