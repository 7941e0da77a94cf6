"""A target that reads many sequences at once, and the best few tokens of many rows of logits.

The engine's target keeps all its sequences in one cache, so that one batch can verify different numbers of drafts; with
dozens of unrelated sequences each would then attend over all the others' rows. Here every sequence has its own cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.target import Target
from engine.vocabulary import Message, Vocabulary

_REACH = 8.0  # logits further below the best than this have no weight that matters


class BatchTarget(Target):
    """A target whose sequences do not see each other's cache."""

    def _context_params(self, context: int, sequences: int) -> Any:
        params = super()._context_params(context, sequences)
        params.kv_unified = False
        return params


def best_tokens(logits: NDArray[np.float32], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """logits [n, V] -> the k best ids [n, k] and their logits, best first; those too far below the best are -inf.

    Much faster than sorting or partitioning a row: only the few tokens near the best are looked at.
    """
    n = len(logits)
    rows, ids = np.nonzero(logits > logits.max(axis=1, keepdims=True) - _REACH)
    values = logits[rows, ids]
    order = np.lexsort((-values, rows))
    rows, ids, values = rows[order], ids[order], values[order]
    counts = np.bincount(rows, minlength=n)
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = rank < k
    best = np.zeros((n, k), np.int32)
    scores = np.full((n, k), -np.inf, np.float32)
    best[rows[kept], rank[kept]] = ids[kept]
    scores[rows[kept], rank[kept]] = values[kept]
    return best, scores


def turn_frame(vocabulary: Vocabulary) -> tuple[list[int], list[int]]:
    """The ids the chat template puts before the text of a first user turn, and those between it and the answer."""
    one, other = (vocabulary.render([Message("user", text)]) for text in ("x", "1"))
    head = _common(one, other)
    tail = _common(one[::-1], other[::-1])
    return one[:head], one[len(one) - tail :]


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
