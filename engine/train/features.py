"""Features and soft labels: what the target computes at every token of a conversation, through the tap of inference.

Beside the features of every position its best next tokens are kept, with their logits: the target's own distribution, a
better label than the one token that happened to be chosen. The corpus keeps them as it is written; conversations that
came as text are read once here. Kept as shards in a folder; a run that was interrupted goes on behind its last shard.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.target import Target
from engine.train.batch_target import best_tokens

if TYPE_CHECKING:
    from engine.train.corpus import Conversation

LABELS = 16  # tokens kept of each distribution
SHARD = 48  # conversations
_READ_AT_ONCE = 512  # tokens of one pass


@dataclass(frozen=True)
class Example:
    """One conversation of n tokens as training sees it. Row i of the labels is what the target says after token i."""

    ids: NDArray[np.int32]  # [n]
    start: int  # of the answer
    kind: str
    temperature: float
    features: NDArray[np.float16]  # [n, F*H], on disk
    label_ids: NDArray[np.int32]  # [n, LABELS]
    label_logits: NDArray[np.float16]  # [n, LABELS], -inf where there is none


def extract(
    target: Target,
    layers: Sequence[int],
    conversations: Sequence[Conversation],
    folder: Path,
    on_progress: Callable[[int, int], bool] | None = None,
) -> int:
    """Write the shards that are missing; `on_progress(shards done, all)` may end it early by returning False.

    `target` needs 16 sequences, so that it hands out the logits of a whole pass. Returns how many shards there are.
    Raises ModelFileError when the folder holds features of other layers or another model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _check(folder, target, layers)
    shards = [conversations[i : i + SHARD] for i in range(0, len(conversations), SHARD)]
    target.tap(layers)
    for number, shard in enumerate(shards):
        path = folder / f"{number:05}.npz"
        if not path.exists():
            write_examples(path, [_read(target, conversation) for conversation in shard])
        if on_progress is not None and not on_progress(number + 1, len(shards)):
            return number + 1
    return len(shards)


def _check(folder: Path, target: Target, layers: Sequence[int]) -> None:
    made_for = {"target": target.file_name, "bytes": os.path.getsize(target.path), "layers": list(layers)}
    note = folder / "made_for.json"
    if not note.exists():
        note.write_text(json.dumps(made_for), "utf-8")
    elif json.loads(note.read_text("utf-8")) != made_for:
        raise ModelFileError(
            f"{folder} holds features of another model or of other layers; remove it or choose another folder."
        )


def _read(target: Target, conversation: Conversation) -> Example:
    width = len(target.taps) * target.hidden_size
    n = len(conversation.ids)
    features = np.empty((n, width), np.float16)
    label_ids, label_logits = np.zeros((n, LABELS), np.int32), np.full((n, LABELS), -np.inf, np.float16)
    target.cut(0, 0)
    for begin in range(0, n, _READ_AT_ONCE):
        ids = conversation.ids[begin : begin + _READ_AT_ONCE].tolist()
        end = begin + len(ids)
        result = target.evaluate([(0, ids)])
        np.concatenate(result.features, axis=1, out=features[begin:end], casting="same_kind")
        first = max(conversation.start - 1, begin)  # only what follows the question is a label
        if first < end:
            best, logits = best_tokens(result.logits[first - begin :], LABELS)
            label_ids[first:end] = best
            label_logits[first:end] = logits - logits[:, :1]
    target.cut(0, 0)
    return Example(
        conversation.ids, conversation.start, conversation.kind, conversation.temperature, features, label_ids,
        label_logits,
    )  # fmt: skip


def write_examples(path: Path, examples: Sequence[Example]) -> None:
    """A shard `path` (.npz) with its features beside it. It is there as a whole or not at all."""
    np.save(path.with_suffix(".features.npy"), np.concatenate([e.features for e in examples]))
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(
            file,
            ids=np.concatenate([e.ids for e in examples]).astype(np.int32),
            lengths=np.array([len(e.ids) for e in examples], np.int32),
            starts=np.array([e.start for e in examples], np.int32),
            temperatures=np.array([e.temperature for e in examples], np.float32),
            kinds=np.array([e.kind for e in examples]),
            label_ids=np.concatenate([e.label_ids for e in examples]),
            label_logits=np.concatenate([e.label_logits for e in examples]),
        )
    os.replace(part, path)


def read_examples(folder: Path) -> list[Example]:
    """All examples of a folder; their features stay on disk until they are used."""
    examples: list[Example] = []
    for path in sorted(folder.glob("*.npz")):
        features = np.load(path.with_suffix(".features.npy"), mmap_mode="r")
        with np.load(path) as data:
            arrays = {name: data[name] for name in data.files}
        row = 0
        for length, start, temperature, kind in zip(
            arrays["lengths"], arrays["starts"], arrays["temperatures"], arrays["kinds"]
        ):
            at = slice(row, row + int(length))
            examples.append(
                Example(
                    arrays["ids"][at], int(start), str(kind), float(temperature),
                    features[at], arrays["label_ids"][at], arrays["label_logits"][at],
                )
            )  # fmt: skip
            row += int(length)
    return examples
