"""Holds a drafter file against recorded numbers: for anyone who converts a drafter.

The record is an .npz with cycles `c0.…`, `c1.…`: `features` [n, F*H] injected just before the draft, `start`, `anchor`,
and what a reference computed: `hidden` [P, H], `logits` [P, V], `path` [P]; for DFlash 2 also `candidates` and `unary`
[P, k] sorted, `score_first` [k], `score_rest` [P-1, k, k] and `q_rows_t0.7` [P, k]. Quantities that are absent are not
compared. Knows nothing of targets.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import ggml
from engine.drafter import Drafter, Trace
from engine.errors import ModelFileError
from engine.graph import Device
from engine.selector import greedy_path

TOLERANCE = 1e-3
_TEMPERATURE = 0.7  # of the recorded q rows


@dataclass
class Report:
    """`differences`: per quantity the largest absolute difference relative to the largest recorded value."""

    tolerance: float
    cycles: int = 0
    differences: dict[str, float] = field(default_factory=dict)
    paths_equal: bool = True
    candidates_equal: bool = True

    @property
    def passed(self) -> bool:
        within = all(difference <= self.tolerance for difference in self.differences.values())
        return within and self.paths_equal and self.candidates_equal

    def lines(self) -> list[str]:
        shown = [f"{name:<12} {value:9.2e}" for name, value in self.differences.items()]
        shown.append(f"{'candidates':<12} {'equal' if self.candidates_equal else 'different'}")
        shown.append(f"{'greedy paths':<12} {'equal' if self.paths_equal else 'different'}")
        verdict = "agrees with" if self.passed else "differs from"
        shown.append(
            f"The drafter {verdict} the record over {self.cycles} cycles "
            f"(largest difference relative to the largest value, tolerance {self.tolerance:g})."
        )
        return shown

    def as_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "cycles": self.cycles,
            "tolerance": self.tolerance,
            "differences": self.differences,
            "candidates_equal": self.candidates_equal,
            "paths_equal": self.paths_equal,
        }


def check(drafter_path: str, record_path: str, tolerance: float = TOLERANCE) -> Report:
    """Run the recorded cycles through the drafter on the CPU, keys and values in float32.

    Raises ModelFileError for either file, DrafterMismatch for a drafter without embeddings of its own.
    """
    record = _record(record_path)
    report = Report(tolerance)
    starts = [int(record[f"c{cycle}.start"]) for cycle in range(_cycles(record, record_path))]
    with Device.cpu(threads=1) as device:
        drafter = Drafter(drafter_path, device, context=max(starts), key_value_type=ggml.F32)
        try:
            for cycle in range(len(starts)):
                _check_cycle(drafter, record, f"c{cycle}.", record_path, report)
        finally:
            drafter.close()
    report.cycles = len(starts)
    return report


def _record(path: str) -> Mapping[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile, AttributeError) as error:
        raise ModelFileError(
            f"The record {path} cannot be read as an .npz file ({error}); give another file."
        ) from error


def _cycles(record: Mapping[str, NDArray[Any]], path: str) -> int:
    cycles = 0
    while {f"c{cycles}.{name}" for name in ("features", "start", "anchor")} <= record.keys():
        cycles += 1
    if not cycles:
        raise ModelFileError(
            f"The record {path} holds no cycle (c0.features, c0.start, c0.anchor); give a file of that form."
        )
    return cycles


def _check_cycle(
    drafter: Drafter, record: Mapping[str, NDArray[Any]], prefix: str, path: str, report: Report
) -> None:
    features = record[prefix + "features"]
    hidden, taps = drafter.config.hidden_size, len(drafter.config.target_layers)
    if features.ndim != 2 or features.shape[1] != hidden * taps:
        raise ModelFileError(
            f"The record {path} has features of shape {list(features.shape)}, but {drafter.file_name} reads "
            f"{taps} layers of {hidden} values; give the record of this drafter."
        )
    drafter.inject([features[:, index * hidden : (index + 1) * hidden] for index in range(taps)])
    if drafter.committed() != int(record[prefix + "start"]):
        raise ModelFileError(
            f"The record {path} drafts at position {int(record[prefix + 'start'])} after {drafter.committed()} "
            "positions; it is damaged: give another file."
        )
    trace = drafter.trace(int(record[prefix + "anchor"]))
    for name, ours in _quantities(trace).items():
        theirs = record.get(prefix + name)
        if theirs is None:
            continue
        if ours.shape != theirs.shape:
            raise ModelFileError(
                f"The record {path} has {name} of shape {list(theirs.shape)}, but {drafter.file_name} computes "
                f"{list(ours.shape)}; give the record of this drafter."
            )
        if name == "candidates":
            report.candidates_equal &= bool((ours == theirs).all())
        elif name == "path":
            report.paths_equal &= bool((ours == theirs).all())
        else:
            difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
            if not np.isfinite(difference):
                difference = float("inf")
            report.differences[name] = max(report.differences.get(name, 0.0), difference)


def _quantities(trace: Trace) -> dict[str, NDArray[Any]]:
    lattice = trace.lattice
    path = greedy_path(lattice)
    quantities: dict[str, NDArray[Any]] = {"hidden": trace.hidden, "logits": trace.logits, "path": path.tokens}
    if lattice.first is None or lattice.rest is None:
        return quantities
    taken = (lattice.candidates == path.tokens[:, None]).argmax(axis=1).tolist()
    scores = lattice.rows(taken).astype(np.float64) / _TEMPERATURE
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return quantities | {
        "candidates": lattice.candidates,
        "unary": lattice.unary,
        "score_first": lattice.first,
        "score_rest": lattice.rest,
        "q_rows_t0.7": weights / weights.sum(axis=1, keepdims=True),
    }
