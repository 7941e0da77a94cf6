"""How many drafts to verify in a cycle, and who decides it: a set number here, or `engine/automatic_length.py`.

Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.pass_costs import CostCurve

_BLOCKS = (2, 3, 4, 5, 6, 8, 12, 16, 24, 32)


def block_lengths(block_size: int) -> tuple[int, ...]:
    """The lengths of a block to choose from, its anchor counted; few, as each needs a graph of its own."""
    return (*(length for length in _BLOCKS if length < block_size), block_size)


def drafts_at_most(given: int | None, block_size: int) -> int:
    """Drafts per cycle, 1 to block_size - 1: the user's number, else as many as the drafter can propose."""
    longest = block_size - 1
    return longest if given is None else max(1, min(given, longest))


class DraftLength(Protocol):
    """What the cycle asks and tells. `most`: for each stream how many drafts may be verified."""

    reads_confidence: bool  # else any numbers do

    @property
    def newest(self) -> int:
        """The newest decision: drafts sent to verification."""

    @property
    def plain_s(self) -> float | None:
        """Seconds that a plain pass takes now, if that is known."""

    def explain(self) -> str | None:
        """The newest decision in words."""

    def begin(self) -> None:
        """Another text, or other streams, from now on."""

    def block(self, most: Sequence[int], depth: int, waiting: int = 0) -> int:
        """The length of the block to draft now, its anchor counted; 0: draft nothing. It may be longer than needed, for
        a graph of its own for each length would cost more than the drafts behind.

        depth: committed positions of the longest stream; waiting: positions to be injected before a draft.
        """

    def drafts(self, confidences: Sequence[Sequence[float] | None], most: Sequence[int]) -> list[int]:
        """How many drafts to verify of each stream, whose drafts have these confidences (None: nothing drafted)."""

    def drafted(self, rows: int, depth: int, waiting: int, inject_s: float, draft_s: float) -> None:
        """A block of so many rows, of all streams, was drafted, behind the injection of `waiting` positions."""

    def took(self, rows: int, depth: int, verify_s: float) -> None:
        """The cycle's pass had so many rows, of all streams."""

    def verified(self, stream: int, drafted: int, accepted: int, left_out: Sequence[int] = ()) -> None:
        """Of the stream's drafts so many were verified and accepted.

        left_out: the tokens of greedy drafts behind the verified ones, if all of those were accepted.
        """

    def said(self, stream: int, token: int) -> None:
        """The target's own token of this cycle: what was left out of it can be held against that."""

    def overlap(self, stream: int, chance: float) -> None:
        """The chance of acceptance of a drawn draft that was left out, behind accepted ones: known without a draw."""


class FixedLength:
    """Verify as many as may be. What it says depends on nothing that was drawn."""

    reads_confidence = False

    def __init__(self, verify: CostCurve | None = None) -> None:
        """`verify`: what passes cost, for those who want to compare."""
        self.newest = 0
        self._verify = verify
        self._depth = 0

    @property
    def plain_s(self) -> float | None:
        return None if self._verify is None else self._verify.at(1, self._depth)

    def explain(self) -> str | None:
        return f"{_drafts(self.newest)}, as set." if self.newest else None

    def begin(self) -> None:
        pass

    def block(self, most: Sequence[int], depth: int, waiting: int = 0) -> int:
        self._depth = depth
        longest = max(most)
        return longest + 1 if longest else 0

    def drafts(self, confidences: Sequence[Sequence[float] | None], most: Sequence[int]) -> list[int]:
        counts = [0 if drafts is None else min(len(drafts), limit) for drafts, limit in zip(confidences, most)]
        self.newest = sum(counts)
        return counts

    def drafted(self, rows: int, depth: int, waiting: int, inject_s: float, draft_s: float) -> None:
        pass

    def took(self, rows: int, depth: int, verify_s: float) -> None:
        pass

    def verified(self, stream: int, drafted: int, accepted: int, left_out: Sequence[int] = ()) -> None:
        pass

    def said(self, stream: int, token: int) -> None:
        pass

    def overlap(self, stream: int, chance: float) -> None:
        pass


def _drafts(count: int) -> str:
    return "1 draft" if count == 1 else f"{count} drafts"


def _one_more(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{'an' if number in (8, 11, 18) else 'a'} {number}{ending}"
