"""Compares greedy decoding with drafts against plain decoding, token by token.

Batched and single-token kernels round differently, so the two may part at a near-tie: where the target's own best two
logits are closer than that rounding. What the rounding is at that place is measured here, never assumed; after a
difference the comparison goes on from the baseline's prefix. Knows nothing of conversations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.drafter import Drafter
from engine.events import SamplerSettings
from engine.generate import Stream, run_cycle
from engine.sampling import Sampler
from engine.target import PREFILL_CHUNK, Target

_GREEDY = SamplerSettings(temperature=0.0)


@dataclass(frozen=True)
class Difference:
    """The first token that differs: `gap` between the two tokens' logits in single decoding, and the `noise` there."""

    position: int  # in the answer, from 0
    baseline: int
    drafted: int
    gap: float
    noise: float  # the largest difference between single and batched decoding of either logit

    @property
    def near_tie(self) -> bool:
        return self.gap <= 2 * self.noise


@dataclass(frozen=True)
class Comparison:
    tokens: int  # compared
    passes: int  # target passes of the drafted run
    differences: tuple[Difference, ...]

    @property
    def lossless(self) -> bool:
        return all(difference.near_tie for difference in self.differences)


def compare(target: Target, drafter: Drafter, prompt: Sequence[int], tokens: int, drafts: int) -> Comparison:
    """Greedy answers of up to `tokens` tokens to `prompt` (ids), with `drafts` drafts per cycle and without.

    Uses sequence 0 of both and leaves it as it falls. `target` taps what the drafter reads afterwards.
    """
    target.tap(())
    baseline, _ = continue_greedily(target, None, prompt, tokens, 0)
    target.tap(drafter.config.target_layers)
    differences: list[Difference] = []
    done = passes = 0
    while done < len(baseline):
        prefix = [*prompt, *baseline[:done]]
        drafted, took = continue_greedily(target, drafter, prefix, len(baseline) - done, drafts)
        passes += took
        same = 0
        while same < len(drafted) and drafted[same] == baseline[done + same]:
            same += 1
        done += same
        if done == len(baseline):
            break
        differences.append(_measured(target, prompt, baseline, done, drafted[same], drafts))
        target.tap(drafter.config.target_layers)
        done += 1
    return Comparison(len(baseline), passes, tuple(differences))


def continue_greedily(
    target: Target, drafter: Drafter | None, prompt: Sequence[int], tokens: int, drafts: int
) -> tuple[list[int], int]:
    """From nothing: read `prompt`, then decode up to `tokens` tokens; a stop token is the last. (ids, target passes)"""
    logits = _read(target, drafter, prompt)
    sampler = Sampler(_GREEDY)
    stream = Stream(0, sampler, int(sampler.choices(logits)[0]), 0)
    ids = [stream.anchor]
    passes = 0
    while len(ids) < tokens and not target.vocabulary.is_stop(ids[-1]):
        room = min(tokens - len(ids), target.context - target.committed())
        if room < 1:
            break
        stream.drafts = min(drafts, room - 1)
        (outcome,), _ = run_cycle(target, drafter, (stream,))
        passes += 1
        for token in outcome.tokens:
            ids.append(token)
            if target.vocabulary.is_stop(token):
                break
    return ids, passes


def _read(target: Target, drafter: Drafter | None, prompt: Sequence[int]) -> NDArray[np.float32]:
    """Prefill from nothing; logits [1, V] behind the last token."""
    target.cut(0, 0)
    if drafter is not None:
        drafter.cut(0, 0)
    logits = np.empty(0, np.float32)
    for begin in range(0, len(prompt), PREFILL_CHUNK):
        chunk = prompt[begin : begin + PREFILL_CHUNK]
        result = target.evaluate([(0, chunk)], last_only=True)
        if drafter is not None:
            drafter.inject(result.features)
        logits = result.logits
    return logits


def _measured(
    target: Target, prompt: Sequence[int], baseline: Sequence[int], at: int, drafted: int, drafts: int
) -> Difference:
    """Decode the baseline's prefix again, singly and in batches of every alignment, and compare the two logits."""
    target.tap(())
    pair = [baseline[at], drafted]

    def logits(first: int, step: int) -> NDArray[np.float32]:
        row = _read(target, None, prompt)[0]
        begin = 0
        size = first
        while begin < at:
            row = target.evaluate([(0, baseline[begin : min(begin + size, at)])]).logits[-1]
            begin += size
            size = step
        return row[pair].copy()

    single = logits(1, 1)
    batched = [logits(first, drafts + 1) for first in range(1, drafts + 2)]
    noise = max(float(np.abs(single - row).max()) for row in batched)
    return Difference(at, pair[0], pair[1], float(single[0] - single[1]), noise)
