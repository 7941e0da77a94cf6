"""What the passes of one target and drafter cost here, measured when the two are first used together.

Knows nothing of what is decided by it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from engine.draft_length import block_lengths
from engine.drafter import Drafter
from engine.errors import Cancelled
from engine.pass_costs import CostCurve
from engine.target import MAX_ROWS, Target

_SECONDS = 1.3  # after which no more is measured; the passes under way add to it
_ROUNDS = 5
_PLAIN_PASSES = 3  # per round: all else is compared with them
_ROWS = (2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32)


def measure(
    target: Target, drafter: Drafter, cancel: threading.Event, on_progress: Callable[[float], None]
) -> tuple[CostCurve, CostCurve]:
    """Seconds of a target pass by its rows, and of a draft step by the length of its block, in under two seconds.

    Works behind what sequence 0 has committed, and leaves that as it was; a target that has no room behind it, or
    cannot be cut back, forgets all. Taps what the drafter reads. Raises Cancelled, OutOfMemory.
    """
    config = drafter.config
    target.tap(config.target_layers)
    most = min(config.block_size, MAX_ROWS)
    rows = [1, most, *(size for size in _ROWS if size < most)]
    blocks = list(reversed(block_lengths(config.block_size)))
    start = target.committed()
    if start + 2 * most > target.context:
        start = target.cut(0, 0)
    held = min(drafter.committed(), drafter.context - 2 * most)
    drafter.cut(0, held)
    began = time.perf_counter()
    steps, done = _ROUNDS * (len(rows) + len(blocks)), 0
    passes: dict[int, list[float]] = {}
    drafts: dict[int, list[float]] = {}

    def timed(rows: int) -> float:
        tokens = [(7919 * (start + row)) % target.vocabulary.size for row in range(rows)]
        at = time.perf_counter()
        result = target.evaluate([(0, tokens)])
        seconds = time.perf_counter() - at
        drafter.keep(result.features, {0: min(rows, 2)})
        target.rewind(0, start)
        return seconds

    def drafted(block: int) -> float:
        if block not in drafts:
            drafter.draft([0], (0,), block)  # builds the graph
        timed(2)  # whose injection belongs to the step
        at = time.perf_counter()
        drafter.draft([0], (0,), block)
        seconds = time.perf_counter() - at
        drafter.cut(0, held)
        return seconds

    try:
        timed(1)
        for _ in range(_ROUNDS):
            for index in range(max(len(rows), len(blocks))):  # of both in turn, in case there is time for a few only
                if cancel.is_set():
                    raise Cancelled
                enough = len(passes) > 1 and drafts
                if enough and time.perf_counter() - began > _SECONDS:
                    break
                if index < len(rows):
                    size = rows[index]
                    passes.setdefault(size, []).extend(timed(size) for _ in range(_PLAIN_PASSES if size == 1 else 1))
                    done += 1
                if index < len(blocks):
                    drafts.setdefault(blocks[index], []).append(drafted(blocks[index]))
                    done += 1
                on_progress(max(done / steps, min(1.0, (time.perf_counter() - began) / _SECONDS)))
    finally:
        drafter.cut(0, held)
    on_progress(1.0)
    return (
        CostCurve({size: _undisturbed(times) for size, times in passes.items()}),
        CostCurve({size: _undisturbed(times) for size, times in drafts.items()}),
    )


def _undisturbed(times: list[float]) -> float:
    """The lower quartile: whatever else the machine does only adds time."""
    return sorted(times)[len(times) // 4]
