"""How a drafter's numbers are held against those of a record or a twin, in all tests that do."""

from __future__ import annotations

import itertools
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import ggml
from engine.drafter import Drafter, Trace
from engine.graph import Device
from engine.selector import Lattice, greedy_path
from tests.fixture_files import Cycle, relative_difference
from tests.libllama_dflash import LibllamaDraft
from tests.numpy_drafter import NumpyDraft, NumpyDrafter, top_k

TOLERANCE = 1e-3  # of the largest value

Floats = NDArray[np.float32]


def opened(path: str | Path, device: Device, **settings: Any) -> closing[Drafter]:
    settings = {"context": 1000, "key_value_type": ggml.F32} | settings
    return closing(Drafter(str(path), device, **settings))


def inject(drafter: Drafter, features: Floats, sequence: int = 0) -> None:
    """Features [n, F*H] of the next n positions of one sequence."""
    drafter.inject(np.split(features, len(drafter.config.target_layers), axis=1), {sequence: len(features)})


def random_features(twin: NumpyDrafter, n: int, seed: int = 5) -> Floats:
    width = len(twin.target_layers) * twin.hidden_size
    return np.random.default_rng(seed).standard_normal((n, width), np.float32)


def assert_same_lattice(ours: Lattice, theirs: Lattice, tolerance: float = TOLERANCE) -> None:
    assert ours.candidates.tolist() == theirs.candidates.tolist()
    assert relative_difference(ours.unary, theirs.unary) < tolerance
    if ours.first is None or ours.rest is None:
        assert theirs.first is None and theirs.rest is None
    else:
        assert relative_difference(ours.first, theirs.first) < tolerance
        assert relative_difference(ours.rest, theirs.rest) < tolerance


def lattice_of(draft: NumpyDraft | LibllamaDraft | Cycle, k: int) -> Lattice:
    """The twin's, libllama's or a recorded draft as a lattice; a DFlash (v1) draft with its best k candidates."""
    if draft.candidates is None or draft.unary is None:
        ids, unary = top_k(draft.logits, k)
        return Lattice(ids.astype(np.int32), unary)
    return Lattice(draft.candidates.astype(np.int32), draft.unary, draft.score_first, draft.score_rest)


def assert_agrees(trace: Trace, draft: NumpyDraft | Cycle, tolerance: float = TOLERANCE) -> None:
    lattice = trace.lattice
    assert relative_difference(trace.hidden, draft.hidden) < tolerance
    if trace.logits.shape == draft.logits.shape:  # a reduced head's rows are not spread over the vocabulary
        assert relative_difference(trace.logits, draft.logits) < tolerance
    assert_same_lattice(lattice, lattice_of(draft, lattice.candidates.shape[1]), tolerance)
    assert greedy_path(lattice).tokens.tolist() == draft.path.tolist()


def assert_same_but_near_ties(ours: Lattice, theirs: Lattice, tolerance: float) -> None:
    """Equal scores for all candidates of both; one that only one side has must be about as good as the worst."""
    near = tolerance * float(np.abs(theirs.unary).max())
    assert np.abs(ours.unary - theirs.unary).max() < near
    places = []  # [P] x the same candidates' places (in ours, in theirs)
    for p in range(len(ours.candidates)):
        common, at, there = np.intersect1d(ours.candidates[p], theirs.candidates[p], return_indices=True)
        assert len(common) > 0
        for lattice, found in ((ours, at), (theirs, there)):
            only_here = np.delete(lattice.unary[p], found)
            assert np.all(np.abs(only_here - lattice.unary[p, -1]) < near)
        places.append((at, there))
        assert np.abs(ours.unary[p, at] - theirs.unary[p, there]).max() < near
    if ours.first is None or ours.rest is None or theirs.first is None or theirs.rest is None:
        assert ours.first is None and theirs.first is None
        return
    near = tolerance * float(np.abs(theirs.rest).max())
    assert np.abs(ours.first[places[0][0]] - theirs.first[places[0][1]]).max() < near
    for p, (before, (at, there)) in enumerate(itertools.pairwise(places)):
        difference = ours.rest[p][np.ix_(before[0], at)] - theirs.rest[p][np.ix_(before[1], there)]
        assert np.abs(difference).max() < near
