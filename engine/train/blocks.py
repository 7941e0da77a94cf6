"""Batches of blocks: which anchors of which conversations a training step sees, and what their drafts should be.

A batch depends on the seed and on the number of the step alone, so training goes on after an interruption with what it
would have seen, and every version trained together sees the same. NumPy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.train.features import Example

SOFT = 8  # of the kept labels that training uses


@dataclass(frozen=True)
class Batch:
    """B conversations of up to T tokens, A anchors in each, P drafted positions behind an anchor."""

    features: NDArray[np.float16]  # [B, T, F*H]
    starts: NDArray[np.int64]  # [B, A], the anchors' positions
    tokens: NDArray[np.int64]  # [B, A, P + 1], the anchor and what was said next
    soft_ids: NDArray[np.int64]  # [B, A, P, SOFT]
    soft: NDArray[np.float32]  # [B, A, P, SOFT], the target's own probabilities
    valid: NDArray[np.bool_]  # [B, A, P], False behind the end of the conversation


def order(examples: int, step: int, size: int, seed: int) -> list[int]:
    """The examples of a step: every example once, then every example once more in another order, and so on."""
    chosen = []
    for index in range(step * size, (step + 1) * size):
        epoch, at = divmod(index, examples)
        chosen.append(int(np.random.default_rng([seed, epoch]).permutation(examples)[at]))
    return chosen


def batch(examples: Sequence[Example], anchors: int, drafted: int, rng: np.random.Generator) -> Batch:
    """Random anchors of these examples: positions of the answer with at least one more token behind."""
    count = len(examples)
    ends = [len(example.ids) for example in examples]
    starts = np.zeros((count, anchors), np.int64)
    for i, example in enumerate(examples):
        possible = np.arange(example.start, ends[i] - 1)
        starts[i] = np.sort(rng.choice(possible, anchors, replace=len(possible) < anchors))
    longest = int(starts.max())  # no block looks further
    features = np.zeros((count, longest, examples[0].features.shape[1]), np.float16)
    tokens = np.zeros((count, anchors, drafted + 1), np.int64)
    soft_ids = np.zeros((count, anchors, drafted, SOFT), np.int64)
    soft = np.zeros((count, anchors, drafted, SOFT), np.float32)
    valid = np.zeros((count, anchors, drafted), np.bool_)
    for i, example in enumerate(examples):
        read = min(longest, ends[i])
        features[i, :read] = example.features[:read]
        positions = starts[i][:, None] + np.arange(drafted + 1)  # [A, P + 1]
        valid[i] = positions[:, 1:] < ends[i]
        positions = np.minimum(positions, ends[i] - 1)
        tokens[i] = example.ids[positions]
        before = positions[:, :-1]
        soft_ids[i] = example.label_ids[before][..., :SOFT]
        weights = np.exp(example.label_logits[before][..., :SOFT].astype(np.float32))
        soft[i] = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-9)  # nothing was read behind the last token
    return Batch(features, starts, tokens, soft_ids, soft, valid)
