"""Where training starts: a drafter's weights made from the target's own, and the settings that go with them.

Each drafter layer begins as a layer of the target; the tapped features are averaged into one vector that the keys and
values understand; the convolutions are the identity and the selector adds nothing. Needs NumPy and `gguf`, no PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gguf
import numpy as np
from numpy.typing import NDArray

from engine.drafter_config import DrafterConfig, Rope, target_vocabulary
from engine.errors import ModelFileError
from engine.events import Mode
from engine.gguf_file import Header
from engine.split_model import require_one_file

Array = NDArray[np.float32]
CONV_KERNEL, CONV_GROUP = 2, 16
INTERLEAVED = ("llama",)  # architectures whose files order a head's rows for rope in neighbouring pairs


@dataclass(frozen=True)
class Design:
    """What is chosen about a drafter, beside what its target decides. Layers are counted from 0."""

    taps: tuple[int, ...]  # target layers whose input is read
    sources: tuple[int, ...]  # target layers that the drafter's layers start from
    block: int
    mask_token: int
    rank: int
    top_k: int
    draft_vocabulary: int

    @classmethod
    def usual(cls, target: Header, mask_token: int, layers: int, block: int, draft_vocabulary: int) -> Design:
        """Taps from the second third of the target on, where what comes next is known best; sources likewise."""
        depth = target.count("block_count") or 0
        taps = tuple(sorted({max(1, min(depth - 1, round(depth * x))) for x in (1 / 3, 0.6, 0.8, 1.0)}))
        sources = tuple(max(0, min(depth - 1, round((depth - 1) * (i + 2) / (layers + 1)))) for i in range(layers))
        return cls(taps, sources, block, mask_token, 64, 16, draft_vocabulary)


class TargetWeights:
    """The target's matrices, dequantised one at a time."""

    def __init__(self, header: Header) -> None:
        require_one_file(header, "to start a drafter from")
        self.header = header
        self._data = np.memmap(header.path, np.uint8, mode="r")

    def __contains__(self, name: str) -> bool:
        return name in self.header.tensors

    def __getitem__(self, name: str) -> Array:
        info = self.header.tensors.get(name)
        if info is None:
            raise ModelFileError(
                f"{self.header.file_name} has no tensor {name}, from which a drafter's layer could start; "
                "this recipe is for dense models with a llama-like layer."
            )
        raw = self._data[info.offset : info.offset + info.nbytes]
        kind = gguf.GGMLQuantizationType(info.type)
        rows = raw.reshape(info.shape[0], -1) if len(info.shape) > 1 else raw
        return gguf.quants.dequantize(rows, kind).astype(np.float32).reshape(info.shape)

    @property
    def embeddings(self) -> Array:
        return self["token_embd.weight"]

    @property
    def head(self) -> Array:
        return self["output.weight" if "output.weight" in self else "token_embd.weight"]


def drafter_config(target: Header, design: Design, version: Mode) -> DrafterConfig:
    metadata = target.metadata
    a = target.architecture
    heads = int(metadata[f"{a}.attention.head_count"])
    hidden = int(metadata[f"{a}.embedding_length"])
    context = int(metadata[f"{a}.context_length"])
    head_dim = target.tensors["blk.0.attn_q.weight"].shape[0] // heads
    second = version is Mode.DFLASH2
    return DrafterConfig(
        path="",
        name="",
        version=version,
        hidden_size=hidden,
        layers=len(design.sources),
        feed_forward=int(metadata[f"{a}.feed_forward_length"]),
        heads=heads,
        kv_heads=int(metadata.get(f"{a}.attention.head_count_kv", heads)),
        head_dim=head_dim,
        context_length=context,
        norm_eps=float(metadata[f"{a}.attention.layer_norm_rms_epsilon"]),
        rope=Rope(
            head_dim,
            float(metadata.get(f"{a}.rope.freq_base", 10000.0)),
            "none",
            1.0,
            context,
            1.0,
            32.0,
            1.0,
            0.0,
            None,
        ),
        block_size=design.block,
        target_layers=design.taps,
        vocabulary=target_vocabulary(target),
        mask_token=design.mask_token,
        token_digest=None,
        conv_kernel=CONV_KERNEL if second else None,
        conv_group=CONV_GROUP if second else None,
        selector_rank=design.rank if second else None,
        selector_top_k=design.top_k if second else None,
        logit_scale=1.0,
        soft_cap=None,
        embedding_scale=1.0,
        value_scale=1.0,
        attention_scale=head_dim**-0.5,
        activation="silu",
        causal=False,
        window=None,
        sliding=(False,) * len(design.sources),
        own_embeddings=False,
        own_head=True,
        draft_vocabulary=design.draft_vocabulary,
    )


def initial_weights(
    config: DrafterConfig,
    target: TargetWeights,
    sources: Sequence[int],
    feature_scale: Array,
    rows: NDArray[np.int64],
    seed: int,
) -> dict[str, Array]:
    """Everything that is trained. `feature_scale` [F]: typical size of each tapped layer's residual stream.

    The codebooks have a row for each of `rows`, the draft vocabulary; the head is the target's and not among these.
    """
    rng = np.random.default_rng(seed)
    size, taps = config.hidden_size, len(config.target_layers)
    norms = [target[f"blk.{source}.attn_norm.weight"] for source in sources]
    weights: dict[str, Array] = {
        "fc.weight": np.concatenate(
            [np.eye(size, dtype=np.float32) / (taps * scale) for scale in feature_scale], axis=1
        ),
        "enc.output_norm.weight": np.mean(norms, axis=0),
        "output_norm.weight": target["output_norm.weight"],
    }
    for i, source in enumerate(sources):
        mine, theirs = f"blk.{i}.", f"blk.{source}."
        for name in ("attn_norm", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"):
            weights[f"{mine}{name}.weight"] = target[f"{theirs}{name}.weight"]
        for name, heads in (("attn_q", config.heads), ("attn_k", config.kv_heads)):
            weights[f"{mine}{name}.weight"] = _neox(target, f"{theirs}{name}.weight", heads)
            norm = f"{theirs}{name}_norm.weight"
            own = target[norm] if norm in target else np.ones(config.head_dim, np.float32)
            weights[f"{mine}{name}_norm.weight"] = own
        if config.version is Mode.DFLASH2:
            assert config.conv_kernel and config.conv_group
            for name in ("attn", "ffn"):
                base = np.zeros((2, config.conv_kernel, size), np.float32)
                base[:, 0] = 1
                weights[f"{mine}{name}_conv_base"] = base
                groups = 2 * config.conv_kernel * (size // config.conv_group)
                weights[f"{mine}{name}_conv_proj.weight"] = np.zeros((groups, size), np.float32)
    if config.version is Mode.DFLASH2:
        rank = config.selector_rank or 0
        table = target.embeddings[rows]
        table = table @ rng.standard_normal((size, rank), np.float32)  # tokens that are alike start alike
        weights["selector_predecessor.weight"] = table / (table.std() + 1e-6)
        weights["selector_successor.weight"] = np.zeros((len(rows), rank), np.float32)
        weights["selector_hidden.weight"] = rng.standard_normal((rank, size), np.float32) * np.float32(size**-0.5)
    return weights


def _neox(target: TargetWeights, name: str, heads: int) -> Array:
    """A query or key matrix, each head's rows ordered as two halves: that is how a drafter's positions turn them."""
    matrix = target[name]
    if target.header.architecture not in INTERLEAVED:
        return matrix
    out, inner = matrix.shape
    halves: Array = matrix.reshape(heads, out // heads // 2, 2, inner).swapaxes(1, 2).reshape(out, inner)
    return halves


def draft_vocabulary(answers: Sequence[NDArray[np.int32]], size: int, whole: int) -> NDArray[np.int64]:
    """The `size` tokens that answers use most, sorted; of unused ones those with low ids, which are the common ones."""
    counts = np.zeros(whole, np.int64)
    for ids in answers:
        counts += np.bincount(ids, minlength=whole)
    order = np.lexsort((np.arange(whole), -counts))
    return np.sort(order[: min(size, whole)]).astype(np.int64)
