"""How many drafts to verify in a cycle. Knows no model.

For now a fixed number: the one given, else a default by device. What it says depends on nothing that was drawn, as
rejection sampling requires.
"""

from __future__ import annotations

# Four rows in a pass: repacked CPU kernels work on rows in fours, and more rows cost nearly in proportion.
CPU_DRAFTS = 3


def draft_length(given: int | None, block_size: int, on_cpu: bool) -> int:
    """Drafts per cycle, 1 to block_size - 1. `given`: the user's number, cut to what the drafter can propose."""
    longest = block_size - 1
    if given is not None:
        return max(1, min(given, longest))
    return min(CPU_DRAFTS, longest) if on_cpu else longest
