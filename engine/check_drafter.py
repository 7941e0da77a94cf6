"""Holds a drafter file against recorded numbers: for anyone who converts a drafter.

The record is an .npz with cycles `c0.…`, `c1.…`: `features` [n, F*H] injected just before the draft, `start`, `anchor`,
and what a reference computed: `hidden` [P, H], `logits` [P, V], `path` [P]; for DFlash 2 also `candidates` and `unary`
[P, k] sorted, `score_first` [k], `score_rest` [P-1, k, k] and `q_rows_t0.7` [P, k]. Quantities that are absent are not
compared. A drafter without embeddings or an output matrix of its own is checked with those of its model.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import ggml
from engine.drafter import Drafter, Trace
from engine.drafter_config import DrafterConfig, require_pair
from engine.drafter_weights import SharedTensors
from engine.errors import DrafterMismatch, ModelFileError
from engine.gguf_file import Header, read_header
from engine.graph import Device
from engine.selector import greedy_path
from engine.target import LEAST_CONTEXT, Target

TOLERANCE = 1e-3
_Q_ROWS, _TEMPERATURE = "q_rows_t0.7", 0.7
_OF_A_CYCLE = re.compile(r"c\d+\.")


@dataclass
class Report:
    """`differences`: per quantity the largest absolute difference relative to the largest recorded value."""

    tolerance: float
    cycles: int
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


def check(drafter_path: str, record_path: str, tolerance: float = TOLERANCE, model_path: str | None = None) -> Report:
    """Run the recorded cycles through the drafter on the CPU, keys and values in float32.

    `model_path`: the target, whose matrices serve where the drafter has none of its own. Raises ModelFileError for any
    of the files, DrafterMismatch for a drafter that needs its model or does not fit the one given.
    """
    record = _record(record_path)
    cycles = _cycles(record, record_path)
    report = Report(tolerance, cycles)
    context = int(record[f"c{cycles - 1}.start"])
    header = read_header(drafter_path)
    config = DrafterConfig.from_header(header)
    with ExitStack() as own:
        device = own.enter_context(Device.cpu(threads=1))
        shared = None
        if model_path is not None:
            shared = own.enter_context(_matrices_of(model_path, header))
        elif not config.own_embeddings:
            raise DrafterMismatch(
                f"The drafter {drafter_path} has no token embeddings of its own, but takes its model's; "
                "give that model with --model."
            )
        drafter = Drafter(header, device, context=context, shared=shared, key_value_type=ggml.F32)
        own.callback(drafter.close)
        for cycle in range(cycles):
            _check_cycle(drafter, record, f"c{cycle}.", record_path, report)
    return report


@contextmanager
def _matrices_of(model_path: str, drafter: Header) -> Iterator[SharedTensors]:
    model = read_header(model_path)
    require_pair(drafter, model)
    with closing(Target(model, context=LEAST_CONTEXT, threads=1, device="CPU")) as target:
        yield SharedTensors(target.embeddings, target.head, model_path)


def _record(path: str) -> Mapping[str, NDArray[Any]]:
    """The cycles' arrays, all of them numbers."""
    try:
        with zipfile.ZipFile(path):  # np.load reads other kinds of files, too
            pass
        with np.load(path, allow_pickle=False) as file:
            record = {name: file[name] for name in file.files if _OF_A_CYCLE.match(name)}
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ModelFileError(
            f"The record {path} cannot be read as an .npz file ({error}); give another file."
        ) from error
    for name, array in record.items():
        if array.dtype.kind not in "iuf":
            raise ModelFileError(f"The record {path} has {name} of type {array.dtype}, not numbers; give another file.")
    return record


def _cycles(record: Mapping[str, NDArray[Any]], path: str) -> int:
    """How many cycles follow one another in the record; each has all that is needed to draft."""
    cycles = committed = 0
    while {f"c{cycles}.{name}" for name in ("features", "start", "anchor")} <= record.keys():
        features, start, anchor = (record[f"c{cycles}.{name}"] for name in ("features", "start", "anchor"))
        whole = all(number.size == 1 and number.dtype.kind in "iu" for number in (start, anchor))
        if features.ndim != 2 or not whole:
            raise ModelFileError(
                f"The record {path} has no [n, F*H] features, one start and one anchor in cycle {cycles}; "
                "it is damaged: give another file."
            )
        committed += len(features)
        if int(start.item()) != committed:
            raise ModelFileError(
                f"The record {path} drafts at position {int(start.item())} after {committed} positions; "
                "it is damaged: give another file."
            )
        cycles += 1
    if not cycles:
        raise ModelFileError(
            f"The record {path} holds no cycle (c0.features, c0.start, c0.anchor); give a file of that form."
        )
    return cycles


def _check_cycle(drafter: Drafter, record: Mapping[str, NDArray[Any]], prefix: str, path: str, report: Report) -> None:
    features, anchor = record[prefix + "features"], int(record[prefix + "anchor"].item())
    hidden, taps = drafter.config.hidden_size, len(drafter.config.target_layers)
    if features.shape[1] != hidden * taps:
        raise ModelFileError(
            f"The record {path} has features of shape {list(features.shape)}, but {drafter.file_name} reads "
            f"{taps} layers of {hidden} values; give the record of this drafter."
        )
    if not 0 <= anchor < drafter.config.vocabulary:
        raise ModelFileError(
            f"The record {path} has the anchor {anchor}, but {drafter.file_name} knows {drafter.config.vocabulary} "
            "tokens; give the record of this drafter."
        )
    if len(features):
        drafter.inject(np.split(features, taps, axis=1))
    ours = _quantities(drafter.trace(anchor))
    theirs = {name: record[prefix + name] for name in ours if prefix + name in record}
    for name, recorded in theirs.items():
        if ours[name].shape != recorded.shape:
            raise ModelFileError(
                f"The record {path} has {name} of shape {list(recorded.shape)}, but {drafter.file_name} computes "
                f"{list(ours[name].shape)}; give the record of this drafter."
            )
    _compare(ours, theirs, report)


def _compare(ours: dict[str, NDArray[Any]], theirs: dict[str, NDArray[Any]], report: Report) -> None:
    """One cycle. Scores are compared where both have the candidates, q rows where they belong to the same path."""
    same_candidates, same_path = (
        name not in theirs or bool((ours[name] == theirs[name]).all()) for name in ("candidates", "path")
    )
    report.candidates_equal &= same_candidates
    report.paths_equal &= same_path
    for name, recorded in theirs.items():
        if name in ("candidates", "path") or (name == _Q_ROWS and not (same_candidates and same_path)):
            continue
        values = ours[name]
        if not same_candidates and name.startswith("score"):
            values = _in_their_order(values, ours["candidates"], theirs["candidates"], recorded)
        report.differences[name] = max(report.differences.get(name, 0.0), _difference(values, recorded))


def _in_their_order(
    scores: NDArray[Any], ours: NDArray[Any], theirs: NDArray[Any], missing: NDArray[Any]
) -> NDArray[Any]:
    """Scores [k] or [P-1, k, k] by the candidates `theirs` [P, k] instead of `ours`; `missing` where ours has none."""
    same = theirs[:, :, None] == ours[:, None, :]  # [P, k of theirs, k of ours]
    at, there = same.argmax(axis=2), same.any(axis=2)
    if scores.ndim == 1:
        return np.where(there[0], scores[at[0]], missing)
    pairs = np.arange(len(scores))[:, None, None]
    moved = scores[pairs, at[:-1, :, None], at[1:, None, :]]
    return np.where(there[:-1, :, None] & there[1:, None, :], moved, missing)


def _difference(ours: NDArray[Any], theirs: NDArray[Any]) -> float:
    """The largest difference relative to the largest recorded value; infinite where anything is no finite number."""
    if not ours.size:
        return 0.0
    largest, difference = float(np.abs(theirs).max()), float(np.abs(ours - theirs).max())
    if not np.isfinite([largest, difference]).all():
        return float("inf")
    return difference / largest if largest else float("inf") if difference else 0.0


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
        _Q_ROWS: weights / weights.sum(axis=1, keepdims=True),
    }
