"""What is known of a pair of target and drafter on this machine: its costs, and what was learned while it ran.

It stands in the user's cache folder, under a name made of all that the costs depend on: both files, the threads, the
device and the build of libllama. A record that cannot be read is made anew, and one that cannot be written is not kept:
nothing is lost but time. Knows nothing of conversations.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llama_cpp

from engine.automatic_length import AutomaticLength
from engine.drafter import Drafter
from engine.embedded import cache_folder
from engine.pair_measurement import measure
from engine.pass_costs import CostCurve
from engine.target import Target


class PairRecord:
    """Costs of one pair, and what decides by them: greedy drafts and drawn ones are learned apart."""

    def __init__(self, verify: CostCurve, draft: CostCurve, block_size: int) -> None:
        self.verify, self.draft = verify, draft
        self.greedy = AutomaticLength(verify, draft, block_size)
        self.drawn = AutomaticLength(verify, draft, block_size)

    @classmethod
    def measured(
        cls, target: Target, drafter: Drafter, cancel: threading.Event, on_progress: Callable[[float], None]
    ) -> PairRecord:
        """Takes up to two seconds; what it does to the caches stands at `measure`. Raises Cancelled, OutOfMemory."""
        record = cls(*measure(target, drafter, cancel, on_progress), drafter.config.block_size)
        record.write(target, drafter)
        return record

    @classmethod
    def read(cls, target: Target, drafter: Drafter) -> PairRecord | None:
        """What an earlier session has left, if there is such a thing."""
        try:
            found = json.loads(record_path(target, drafter).read_text("utf-8"))
            verify, draft = CostCurve.from_dict(found["verify"]), CostCurve.from_dict(found["draft"])
            record = cls(verify, draft, drafter.config.block_size)
            record.greedy.learn(found["greedy"])
            record.drawn.learn(found["drawn"])
        except (OSError, AttributeError, KeyError, OverflowError, TypeError, ValueError):
            return None
        return record

    def write(self, target: Target, drafter: Drafter) -> None:
        """Under another name first, so that there is never half a record."""
        text = json.dumps(
            {
                "verify": self.verify.as_dict(),
                "draft": self.draft.as_dict(),
                "greedy": self.greedy.as_dict(),
                "drawn": self.drawn.as_dict(),
            }
        )
        with contextlib.suppress(OSError):
            path = record_path(target, drafter)
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{path.name}.{os.getpid()}.part")
            try:
                part.write_text(text, "utf-8")
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)


def record_path(target: Target, drafter: Drafter) -> Path:
    """Where the record of this pair stands. Raises OSError when one of the two files is gone."""
    parts: list[Any] = [target.threads, target.device_name, target.gpu_layers, target.kv_type, target.sequences]
    parts.append(llama_cpp.__version__)
    for path in (target.path, drafter.path):
        state = os.stat(path)
        parts += [os.path.abspath(path), state.st_size, state.st_mtime_ns]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    return cache_folder() / "pairs" / f"{digest}.json"
