"""A closer look at what the target says, in the engine: how drawn answers begin, and its logits where answers part.

Knows nothing of why somebody looks.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from engine.bench.jobs import Counts, LookAt, Sample, Seen
from engine.drafter import Drafter
from engine.errors import Cancelled
from engine.generate import Stream, run_cycle
from engine.lossless import measured_difference
from engine.sampling import Sampler
from engine.target import MAX_ROWS, Target

LOOK_BACK = 16  # tokens in front of a difference that are decoded in batches again
SAMPLE_DRAFTS = 3  # in each pass of drawn answers


def drawn(
    target: Target, drafter: Drafter | None, prompt: Sequence[int], job: Sample, cancel: threading.Event
) -> Counts:
    """The first token is the likeliest one, for no draft decides it; those behind it are drawn and counted.

    From empty caches. Raises Cancelled, OutOfMemory.
    """
    target.tap(drafter.config.target_layers if drafter else ())
    result = target.evaluate([(0, prompt)], last_only=True)
    if drafter is not None:
        drafter.inject(result.features)
    first = int(result.logits[0].argmax())
    drafts = 0 if drafter is None else min(SAMPLE_DRAFTS, drafter.config.block_size - 1)
    sampler = Sampler(job.sampler, prompt)
    found: Counter[tuple[int, ...]] = Counter()
    for _ in range(job.samples):
        if cancel.is_set():
            raise Cancelled
        target.rewind(0, len(prompt))
        if drafter is not None:
            drafter.cut(0, len(prompt))
        stream = Stream(0, sampler, first, drafts)
        tokens: tuple[int, ...] = ()
        while len(tokens) < job.tokens:
            (outcome,), _ = run_cycle(target, drafter, (stream,))
            tokens += outcome.tokens
        found[tokens[: job.tokens]] += 1
    return Counts(dict(found))


def looked_at(target: Target, prompt: Sequence[int], job: LookAt) -> Seen:
    """The two tokens' logits when decoded one by one, and how far those of passes with more rows lie from them.

    From empty caches. Raises OutOfMemory.
    """
    target.tap(())
    before = job.baseline[: job.position]
    logits = target.evaluate([(0, prompt)], last_only=True).logits[0]
    for token in before:
        logits = target.evaluate([(0, (token,))]).logits[0]
    ends = [token for token in range(target.vocabulary.size) if target.vocabulary.is_stop(token)]
    end = max(ends, key=lambda token: float(logits[token]))  # an answer that ended there said this one
    pair = [end if token < 0 else token for token in (job.theirs, job.other)]
    if not before:
        return Seen(float(logits[pair[0]] - logits[pair[1]]), 0.0, False)
    at, ids = len(before), (*before, pair[0])
    widest = Seen(float("nan"), -1.0, False)
    for begin in sorted({max(0, at - LOOK_BACK), 0}, reverse=True):  # the newest tokens alone usually explain it
        for rows in job.rows:
            found = measured_difference(target, prompt, ids, begin, at, pair[1], min(rows, MAX_ROWS) - 1)
            if found.noise > widest.noise:
                widest = Seen(found.gap, found.noise, found.near_tie)
            if found.near_tie:
                return widest
    return widest
