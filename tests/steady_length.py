"""An automatic draft length whose costs stay as given: it decides by the drafts alone, not by the clock."""

from __future__ import annotations

from engine.automatic_length import AutomaticLength
from engine.pass_costs import CostCurve


class SteadyLength(AutomaticLength):
    """By default a row more costs a tenth of a pass, and so does a draft: lengths then follow the confidence."""

    def __init__(self, block_size: int, row: float = 0.1, draft: float = 0.1) -> None:
        super().__init__(CostCurve({1: 1.0, 17: 1 + 16 * row}), CostCurve({2: draft, 16: draft}), block_size)

    def drafted(self, rows: int, depth: int, waiting: int, inject_s: float, draft_s: float) -> None:
        pass

    def took(self, rows: int, depth: int, verify_s: float) -> None:
        super().took(rows, depth, self.verify.at(rows, depth))
