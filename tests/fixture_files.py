"""The recorded drafters in tests/fixtures: where they lie, and their records as typed rows.

Each is a tiny random drafter, `NAME.gguf`, with `NAME.npz`: four consecutive cycles as the torch reference had them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent / "fixtures"
FIXTURES = ("dflash1", "dflash2", "dflash2_block16_k16", "dflash2_sliding", "dflash2_scaled", "dflash2_causal")


@dataclass(frozen=True)
class Cycle:
    """One recorded cycle; P = block size - 1. The last five are None in DFlash (v1)."""

    features: NDArray[np.float32]  # [new positions, F*H], injected just before the draft
    start: int
    anchor: int
    hidden: NDArray[np.float32]  # [P, H]
    logits: NDArray[np.float32]  # [P, V]
    path: NDArray[np.int64]  # [P]
    candidates: NDArray[np.int64] | None  # [P, k], best first
    unary: NDArray[np.float32] | None  # [P, k]
    score_first: NDArray[np.float32] | None  # [k]
    score_rest: NDArray[np.float32] | None  # [P-1, k, k]
    q_rows: NDArray[np.float32] | None  # [P, k], along the path at temperature 0.7


@dataclass(frozen=True)
class Record:
    drafter: Path
    cycles: tuple[Cycle, ...]

    @classmethod
    def load(cls, name: str) -> Record:
        cycles = []
        with np.load(FOLDER / f"{name}.npz") as npz:
            for i in range(int(npz["n_cycles"])):

                def row(key: str, i: int = i) -> Any:
                    return npz[f"c{i}.{key}"] if f"c{i}.{key}" in npz.files else None

                cycles.append(
                    Cycle(
                        features=row("features"),
                        start=int(row("start")),
                        anchor=int(row("anchor")),
                        hidden=row("hidden"),
                        logits=row("logits"),
                        path=row("path"),
                        candidates=row("candidates"),
                        unary=row("unary"),
                        score_first=row("score_first"),
                        score_rest=row("score_rest"),
                        q_rows=row("q_rows_t0.7"),
                    )
                )
        return cls(FOLDER / f"{name}.gguf", tuple(cycles))


def relative_difference(ours: Any, theirs: Any) -> float:
    """The largest difference, relative to the largest value. Shapes and the places of infinities must be equal."""
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    assert a.shape == b.shape, f"shapes differ: {a.shape} and {b.shape}"
    if a.size == 0:
        return 0.0
    finite = np.isfinite(b)
    assert np.array_equal(a[~finite], b[~finite]), "infinities differ"
    return float(np.abs(a[finite] - b[finite]).max() / np.abs(b[finite]).max())
