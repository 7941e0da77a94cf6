"""The number of drafts per cycle: the user's, within what the drafter can propose, else a default."""

from __future__ import annotations

from engine.draft_length import CPU_DRAFTS, draft_length


def test_the_given_number_is_taken_within_bounds() -> None:
    assert draft_length(5, block_size=8, on_cpu=True) == 5
    assert draft_length(99, block_size=8, on_cpu=True) == 7
    assert draft_length(0, block_size=8, on_cpu=True) == 1


def test_the_default_is_short_on_a_cpu_and_the_whole_block_elsewhere() -> None:
    assert draft_length(None, block_size=8, on_cpu=True) == CPU_DRAFTS
    assert draft_length(None, block_size=3, on_cpu=True) == 2
    assert draft_length(None, block_size=16, on_cpu=False) == 15
