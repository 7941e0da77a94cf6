"""What the drafter's cache holds after any course of a conversation: what a fresh prefill of the same tokens would leave.

A hole, a position too many or one of another text would show in nothing but the acceptance, which a random drafter has
none of; so keys and values are compared, and the block drafted from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from engine import ggml
from engine.catalog import modes_for
from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.events import Mode, SamplerSettings
from engine.gguf_file import read_header
from engine.graph import Device
from engine.session import Session
from engine.target import PREFILL_CHUNK, Target
from tests.conversation import abandoned_after, ask, cancelled_after
from tests.drafter_comparison import assert_same_but_near_ties
from tests.fixture_files import relative_difference
from tests.tiny_chat import wandering_drafter, wandering_target

if TYPE_CHECKING:
    from tests.conftest import DrafterFiles

DRAFTING = (Mode.DFLASH, Mode.DFLASH2)


class Conversation:
    """A session whose drafters keep keys and values in float32, with a second target and drafters to compare with."""

    def __init__(self, target: Path, drafters: dict[Mode, Path], device: Device, context: int, own: ExitStack) -> None:
        header = read_header(target)
        modes = modes_for(header, given={mode: str(path) for mode, path in drafters.items()})
        self.target = Target(header, context=context, threads=1, key_value_type=ggml.F32)
        self.session = own.enter_context(Session(self.target, modes, key_value_type=ggml.F32))
        self._fresh = own.enter_context(closing(Target(header, context=context, threads=1, key_value_type=ggml.F32)))
        shared = SharedTensors(self._fresh.embeddings, self._fresh.head)
        self._fresh_drafters = {
            mode: own.enter_context(
                closing(Drafter(str(path), device, context=context, shared=shared, key_value_type=ggml.F32))
            )
            for mode, path in drafters.items()
        }

    def drafter(self, mode: Mode) -> Drafter | None:
        return self.session._drafters.get(mode)

    def prefilled(self, mode: Mode, chunk: int) -> Drafter:
        """A drafter whose cache was filled from a fresh prefill of what the session's drafter has committed."""
        ours = self.drafter(mode)
        assert ours is not None
        tokens = self.target.tokens()[: ours.committed()]
        fresh = self._fresh_drafters[mode]
        self._fresh.tap(fresh.config.target_layers)
        self._fresh.cut(0, 0)
        fresh.cut(0, 0)
        for begin in range(0, len(tokens), chunk):
            fresh.inject(self._fresh.evaluate([(0, tokens[begin : begin + chunk])], last_only=True).features)
        return fresh

    def difference(self, mode: Mode) -> float:
        ours = self.drafter(mode)
        assert ours is not None
        if ours.committed() == 0:
            return 0.0
        return distance(ours, self.prefilled(mode, PREFILL_CHUNK))


def distance(ours: Drafter, theirs: Drafter) -> float:
    """The largest difference between keys and between values, relative to the largest value."""
    return max(relative_difference(a, b) for a, b in zip(ours.key_values(), theirs.key_values()))
