"""Features and soft labels: each conversation read once by the target, through the tap that drafting uses.

Beside the features of every position its best next tokens are kept, with their logits: the target's own distribution, a
better label than the one token that happened to be chosen. Kept as shards in a folder; a run that was interrupted goes
on behind its last shard.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.target import Target
from engine.train.batch_target import best_tokens
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
        if not (folder / f"{number:05}.npz").exists():
            _write(target, shard, folder, number)
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


def _write(target: Target, shard: Sequence[Conversation], folder: Path, number: int) -> None:
    total = sum(len(c.ids) for c in shard)
    width = len(target.taps) * target.hidden_size
    features = np.empty((total, width), np.float16)
    label_ids = np.zeros((total, LABELS), np.int32)
    label_logits = np.full((total, LABELS), -np.inf, np.float16)
    row = 0
    for conversation in shard:
        target.cut(0, 0)
        for begin in range(0, len(conversation.ids), _READ_AT_ONCE):
            ids = conversation.ids[begin : begin + _READ_AT_ONCE].tolist()
            result = target.evaluate([(0, ids)])
            end = row + len(ids)
            for index, layer in enumerate(result.features):
                features[row:end, index * target.hidden_size : (index + 1) * target.hidden_size] = layer
            # only what follows the question is a label
            first = min(max(conversation.start - 1 - begin, 0), len(ids))
            if first < len(ids):
                best, logits = best_tokens(result.logits[first:], LABELS)
                label_ids[row + first : end] = best
                label_logits[row + first : end] = logits - logits[:, :1]
            row = end
    target.cut(0, 0)
    path = folder / f"{number:05}.features.npy"
    np.save(path, features)
    part = folder / f"{number:05}.part"
    with part.open("wb") as file:
        np.savez(
            file,
            ids=np.concatenate([c.ids for c in shard]).astype(np.int32),
            lengths=np.array([len(c.ids) for c in shard], np.int32),
            starts=np.array([c.start for c in shard], np.int32),
            temperatures=np.array([c.temperature for c in shard], np.float32),
            kinds=np.array([c.kind for c in shard]),
            label_ids=label_ids,
            label_logits=label_logits,
        )
    os.replace(part, folder / f"{number:05}.npz")


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
