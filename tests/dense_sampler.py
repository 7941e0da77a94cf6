"""The slow, obvious twin of engine/sampling.py: whole vocabularies, plain loops, one token at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.events import SamplerSettings


def dense_logits(row: NDArray[np.float32], settings: SamplerSettings, text: Sequence[int]) -> list[float]:
    """Logits [V] after the penalties, `text` being all tokens before the one to be drawn."""
    last_n = settings.penalty_last_n
    window = list(text) if last_n < 0 else list(text)[len(text) - min(last_n, len(text)) :]
    logits = [float(value) for value in row]
    for token in set(window):
        if logits[token] <= 0:
            logits[token] *= settings.repetition_penalty
        else:
            logits[token] /= settings.repetition_penalty
        logits[token] -= settings.presence_penalty + window.count(token) * settings.frequency_penalty
    return logits


def dense_p(row: NDArray[np.float32], settings: SamplerSettings, text: Sequence[int]) -> NDArray[np.float64]:
    """The distribution [V] that the next token is drawn from."""
    logits = dense_logits(row, settings, text)
    kept = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    if settings.temperature == 0:
        kept = kept[:1]
    if settings.top_k > 0:
        kept = kept[: settings.top_k]
    highest = logits[kept[0]]
    if settings.top_p < 1:
        total = sum(math.exp(logits[token] - highest) for token in kept)
        running = 0.0
        for i, token in enumerate(kept):
            running += math.exp(logits[token] - highest) / total
            if running >= settings.top_p:
                kept = kept[: i + 1]
                break
    if settings.min_p > 0:
        kept = [token for token in kept if math.exp(logits[token] - highest) >= settings.min_p]
    p = np.zeros(len(logits))
    for token in kept:
        p[token] = math.exp((logits[token] - highest) / (settings.temperature or 1.0))
    normalised: NDArray[np.float64] = p / p.sum()
    return normalised
