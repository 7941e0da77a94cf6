"""Paths through a lattice, against the recorded drafters and against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.selector import Lattice, Path, best_path, greedy_path, sampled_path
from tests.fixture_files import FIXTURES, Cycle, Record

DFLASH2 = [name for name in FIXTURES if name != "dflash1"]


def recorded(cycle: Cycle) -> Lattice:
    """The record's own lattice; for a DFlash record, the best eight of its logits."""
    if cycle.candidates is None or cycle.unary is None:
        candidates = np.argsort(-cycle.logits, axis=1, kind="stable")[:, :8]
        return Lattice(candidates.astype(np.int32), np.take_along_axis(cycle.logits, candidates, axis=1))
    return Lattice(cycle.candidates.astype(np.int32), cycle.unary, cycle.score_first, cycle.score_rest)


def random_lattice(rng: np.random.Generator, positions: int, k: int, *, pairs: bool) -> Lattice:
    candidates = np.stack([rng.permutation(100)[:k] for _ in range(positions)]).astype(np.int32)
    unary = -np.sort(-rng.normal(size=(positions, k)).astype(np.float32), axis=1)
    if not pairs:
        return Lattice(candidates, unary)
    pair_scores = rng.normal(size=(positions, k, k)).astype(np.float32) * 2
    return Lattice(candidates, unary, unary[0] + pair_scores[0, 0], unary[1:, None, :] + pair_scores[1:])


def score(lattice: Lattice, position: int, previous: int | None, candidate: int) -> float:
    if lattice.first is None or lattice.rest is None:
        return float(lattice.unary[position, candidate])
    if previous is None:
        return float(lattice.first[candidate])
    return float(lattice.rest[position - 1, previous, candidate])


def proposal(lattice: Lattice, position: int, previous: int | None, temperature: float) -> NDArray[np.float64]:
    k = lattice.candidates.shape[1]
    weights = np.exp([score(lattice, position, previous, b) / temperature for b in range(k)])
    normalised: NDArray[np.float64] = weights / weights.sum()
    return normalised


def indices(lattice: Lattice, path: Path) -> list[int]:
    return [ids.tolist().index(token) for ids, token in zip(lattice.candidates, path.tokens)]


def check_confidence(lattice: Lattice, path: Path, temperature: float = 1.0) -> None:
    previous: int | None = None
    for position, candidate in enumerate(indices(lattice, path)):
        expected = proposal(lattice, position, previous, temperature)[candidate]
        assert path.confidence[position] == pytest.approx(expected, rel=1e-5)
        previous = candidate


@pytest.mark.parametrize("name", FIXTURES)
def test_greedy_path_is_the_recorded_one(name: str) -> None:
    for cycle in Record.load(name).cycles:
        lattice = recorded(cycle)
        path = greedy_path(lattice)
        assert path.tokens.tolist() == cycle.path.tolist()
        assert path.q is None
        check_confidence(lattice, path)


class ForcedDraws(np.random.Generator):
    """Random numbers that were chosen beforehand."""

    def __init__(self, numbers: list[float]) -> None:
        super().__init__(np.random.PCG64(0))
        self.numbers = numbers

    def random(self, size: int) -> NDArray[np.float64]:  # type: ignore[override]
        assert size == len(self.numbers)
        return np.array(self.numbers)


@pytest.mark.parametrize("name", DFLASH2)
def test_proposals_along_the_greedy_path_are_the_recorded_ones(name: str) -> None:
    """Numbers that make the draws follow the greedy path bring out the same q rows as the reference."""
    for cycle in Record.load(name).cycles:
        assert cycle.q_rows is not None
        lattice = recorded(cycle)
        taken = indices(lattice, greedy_path(lattice))
        middles = [float(row[:b].sum() + row[b] / 2) for row, b in zip(cycle.q_rows, taken)]
        path = sampled_path(lattice, 0.7, ForcedDraws(middles))
        assert path.tokens.tolist() == cycle.path.tolist()
        assert path.q is not None
        for ids, row, q in zip(lattice.candidates, cycle.q_rows, path.q):
            assert q.ids.tolist() == ids.tolist()
            np.testing.assert_allclose(q.p, row, atol=1e-5)
        check_confidence(lattice, path, 0.7)


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_best_path_has_the_highest_total_of_all_paths(seed: int, pairs: bool) -> None:
    rng = np.random.default_rng(seed)
    lattice = random_lattice(rng, int(rng.integers(1, 6)), int(rng.integers(1, 5)), pairs=pairs)
    positions, k = lattice.candidates.shape

    def total(path: tuple[int, ...]) -> float:
        return sum(score(lattice, i, path[i - 1] if i else None, b) for i, b in enumerate(path))

    highest = max(itertools.product(range(k), repeat=positions), key=total)
    path = best_path(lattice)
    assert tuple(indices(lattice, path)) == highest
    assert path.q is None
    check_confidence(lattice, path)


def test_best_path_can_leave_the_greedy_one() -> None:
    candidates = np.array([[1, 2], [3, 4]], np.int32)
    lattice = Lattice(
        candidates, np.zeros((2, 2), np.float32), np.array([1, 0], np.float32), np.array([[[0, 0], [5, 0]]], np.float32)
    )
    assert greedy_path(lattice).tokens.tolist() == [1, 3]
    assert best_path(lattice).tokens.tolist() == [2, 3]


@pytest.mark.parametrize("rule", [greedy_path, best_path])
def test_equal_scores_fall_to_the_first_candidate(rule: type) -> None:
    candidates = np.arange(12, dtype=np.int32).reshape(3, 4)
    even = Lattice(candidates, np.zeros((3, 4), np.float32), np.zeros(4, np.float32), np.zeros((2, 4, 4), np.float32))
    assert rule(even).tokens.tolist() == [0, 4, 8]


@pytest.mark.parametrize("pairs", [True, False])
def test_draws_follow_their_q_rows(pairs: bool) -> None:
    """Each q row is the softmax behind what was drawn, and the draws have the distribution that the rows say."""
    rng = np.random.default_rng(11)
    lattice = random_lattice(rng, 3, 3, pairs=pairs)
    samples = 20_000
    seen = np.zeros((3, 3, 3))
    for _ in range(samples):
        path = sampled_path(lattice, 1.3, rng)
        seen[tuple(indices(lattice, path))] += 1
    for taken in np.ndindex(3, 3, 3):
        expected, previous = float(samples), None
        for position, candidate in enumerate(taken):
            expected *= proposal(lattice, position, previous, 1.3)[candidate]
            previous = candidate
        assert abs(seen[taken] - expected) < 5 * np.sqrt(expected) + 5
    assert path.q is not None
    previous = None
    for position, candidate in enumerate(indices(lattice, path)):
        np.testing.assert_allclose(path.q[position].p, proposal(lattice, position, previous, 1.3), rtol=1e-5)
        previous = candidate
    check_confidence(lattice, path, 1.3)


@pytest.mark.parametrize("pairs", [True, False])
def test_a_low_temperature_draws_the_greedy_path(pairs: bool) -> None:
    rng = np.random.default_rng(4)
    lattice = random_lattice(rng, 7, 16, pairs=pairs)
    path = sampled_path(lattice, 1e-9, rng)
    assert path.tokens.tolist() == greedy_path(lattice).tokens.tolist()
    np.testing.assert_array_equal(path.confidence, 1.0)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_nothing_is_drawn_at_a_temperature_that_is_not_above_zero(temperature: float) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="temperature above 0"):
        sampled_path(random_lattice(rng, 2, 2, pairs=True), temperature, rng)
