"""Compares greedy decoding with drafts against plain decoding, token by token.

Batched and single-token kernels round differently, so the two may part at a near-tie: where the target's own best two
logits are closer than that rounding. What the rounding is at that place is measured here, by the target alone and never
assumed; after a difference the comparison goes on from the baseline's prefix. Knows nothing of conversations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
    """A token that differs: `gap` between the two tokens' logits in single decoding, and the `noise` there."""

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
    differences: list[Difference] = []
    begin = passes = 0
    while begin < len(baseline):
        target.tap(drafter.config.target_layers)
        drafted, took = continue_greedily(
            target, drafter, prompt, len(baseline), drafts, given=baseline[:begin], like=baseline
        )
        passes += took
        at = len(drafted) - 1
        if drafted == baseline[: at + 1]:
            break
        differences.append(measured_difference(target, prompt, baseline, begin, at, drafted[at], drafts))
        begin = at + 1
    return Comparison(len(baseline), passes, tuple(differences))


def continue_greedily(
    target: Target,
    drafter: Drafter | None,
    prompt: Sequence[int],
    tokens: int,
    drafts: int,
    *,
    given: Sequence[int] = (),
    like: Sequence[int] | None = None,
) -> tuple[list[int], int]:
    """From nothing: read `prompt`, then decode an answer of up to `tokens` tokens; a stop token is its last.

    The answer begins with the tokens `given`, which are decoded one at a time, as if they had been chosen. With `like`
    it ends behind the first token that is another than there. Returns the answer and the number of target passes
    behind the given tokens.
    """
    logits = _read(target, drafter, prompt, given)
    sampler = Sampler(_GREEDY)
    stream = Stream(0, sampler, int(sampler.choices(logits)[0]), 0)
    ids = list(given)
    passes = 0
    chosen: Sequence[int] = (stream.anchor,)
    while True:
        for token in chosen:
            ids.append(token)
            if target.vocabulary.is_stop(token) or (like is not None and token != like[len(ids) - 1]):
                return ids, passes
        room = min(tokens - len(ids), target.context - target.committed())
        if room < 1:
            return ids, passes
        stream.drafts = min(drafts, room - 1)
        (outcome,), _ = run_cycle(target, drafter, (stream,))
        passes += 1
        chosen = outcome.tokens


def _read(target: Target, drafter: Drafter | None, prompt: Sequence[int], given: Sequence[int]) -> NDArray[np.float32]:
    """From nothing: the prompt in chunks, the given tokens one at a time; logits [1, V] behind the last one."""
    target.cut(0, 0)
    if drafter is not None:
        drafter.cut(0, 0)
    chunks = [prompt[begin : begin + PREFILL_CHUNK] for begin in range(0, len(prompt), PREFILL_CHUNK)]
    logits = np.empty(0, np.float32)
    for chunk in (*chunks, *([token] for token in given)):
        result = target.evaluate([(0, chunk)], last_only=True)
        if drafter is not None:
            drafter.inject(result.features)
        logits = result.logits
    return logits


def measured_difference(
    target: Target, prompt: Sequence[int], baseline: Sequence[int], begin: int, at: int, drafted: int, drafts: int
) -> Difference:
    """Where a drafted answer says another token at `at` than `baseline`: the two logits, and the noise there.

    Decodes baseline[begin:at] again, one at a time and in verification batches, and compares the logits behind it;
    needs begin < at. The last of these tokens stands once in each row of its batch, which is filled up as if with
    rejected drafts.
    """
    target.tap(())
    pair = [baseline[at], drafted]
    _read(target, None, prompt, baseline[:begin])
    start = target.committed()

    def logits(blocks: Sequence[Sequence[int]], row: int) -> NDArray[np.float32]:
        target.rewind(0, start)
        for block in blocks[:-1]:
            target.evaluate([(0, block)])
        return target.evaluate([(0, blocks[-1])]).logits[row, pair]  # a copy

    single = logits([[token] for token in baseline[begin:at]], 0)
    size = drafts + 1
    noise = 0.0
    for row in range(min(size, at - begin)):
        first = at - 1 - row  # of the last block
        cuts = [begin, *range(begin + (first - begin) % size, first + 1, size)]
        blocks = [baseline[a:b] for a, b in pairwise(cuts) if a < b]
        filling = min(size, target.context - len(prompt) - first) - (row + 1)
        blocks.append([*baseline[first:at], *[baseline[at - 1]] * filling])
        noise = max(noise, float(np.abs(single - logits(blocks, row)).max()))
    return Difference(at, pair[0], pair[1], float(single[0] - single[1]), noise)
