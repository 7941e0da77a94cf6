"""From a block's lattice of candidates to one path of drafts, with the confidence of each.

The rules: the published one (walk left to right, each time the best successor of the candidate just taken), its sampled
form with the distribution q of every draft, and the path of the highest total score (Viterbi). Knows nothing of how the
scores were computed, nor of the target.

A DFlash 2 drafter scores pairs of neighbouring candidates (its candidate selector); a DFlash drafter scores each
position on its own, which is the same lattice with scores that do not depend on the predecessor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.sampling import Distribution, draw


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """The candidates of the P = B - 1 positions behind a block's anchor, best first, and their scores.

    `rest[i][a, b]` is the score of candidate b at block position i + 2 behind candidate a at position i + 1 (the anchor
    has position 0); `first` holds the scores behind the anchor. Both are None for a DFlash drafter: there `unary` is
    the score.
    """

    candidates: npt.NDArray[np.int32]  # [P, k] token ids
    unary: npt.NDArray[np.float32]  # [P, k] logits, falling
    first: npt.NDArray[np.float32] | None = None  # [k]
    rest: npt.NDArray[np.float32] | None = None  # [P-1, k, k]

    @property
    def is_usable(self) -> bool:
        """Whether all scores are numbers. A damaged drafter gives others, and no distribution follows from them."""
        scores = (self.unary, self.first, self.rest)
        return all(np.isfinite(part).all() for part in scores if part is not None)

    def rows(self, taken: list[int]) -> npt.NDArray[np.float32]:
        """[P, k]: each position's scores behind the predecessor on the path of the candidates `taken` [P]."""
        if self.first is None or self.rest is None:
            return self.unary
        return np.concatenate([self.first[None], self.rest[np.arange(len(taken) - 1), taken[:-1]]])


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """One path through a lattice: its tokens, and what each was drawn from (None: nothing was drawn, point masses)."""

    tokens: npt.NDArray[np.int32]  # [P]
    lattice: Lattice
    taken: tuple[int, ...]  # [P] indices into the candidates
    temperature: float = 1.0  # of the draw
    q: tuple[Distribution, ...] | None = None  # [P]

    @property
    def confidence(self) -> npt.NDArray[np.float32]:
        """[P] The proposal's probability of each draft behind its predecessor, among the k candidates: at temperature
        1 where nothing was drawn, else at the temperature of the draw.

        For drawn drafts it must not decide what is verified: it is a property of what was drawn. Use `q` for that.
        """
        rows = _softmax(self.lattice.rows(list(self.taken)), self.temperature)
        return rows[np.arange(len(self.taken)), list(self.taken)].astype(np.float32)


def greedy_path(lattice: Lattice) -> Path:
    """The published rule: the best first candidate, then each time the best behind the one just taken."""
    if lattice.first is None or lattice.rest is None:
        return _chosen(lattice, [0] * len(lattice.unary))
    taken = [int(lattice.first.argmax())]
    for pairs in lattice.rest:
        taken.append(int(pairs[taken[-1]].argmax()))
    return _chosen(lattice, taken)


def best_path(lattice: Lattice) -> Path:
    """The path of the highest total score (Viterbi, from the end); among equals the first candidates come first."""
    if lattice.first is None or lattice.rest is None:
        return greedy_path(lattice)
    ahead = np.zeros(len(lattice.first))  # [k]: the best total that can still be reached from each candidate
    successors: list[list[int]] = []
    for pairs in lattice.rest[::-1].astype(np.float64):
        totals = pairs + ahead  # [k, k]
        best = totals.argmax(axis=1)
        successors.append(best.tolist())
        ahead = totals[np.arange(len(best)), best]
    taken = [int((lattice.first + ahead).argmax())]
    for row in reversed(successors):
        taken.append(row[taken[-1]])
    return _chosen(lattice, taken)


class Proposal:
    """What a path is drawn from at a temperature above 0: the softmax of score / temperature."""

    def __init__(self, lattice: Lattice, temperature: float) -> None:
        if not temperature > 0:
            raise ValueError(f"a path is drawn at a temperature above 0, not at {temperature}")
        self._lattice, self._temperature = lattice, temperature
        self._first = _softmax(lattice.unary if lattice.first is None else lattice.first, temperature)
        self._rest = None if lattice.rest is None else _softmax(lattice.rest, temperature)

    def confidence(self) -> list[float]:
        """[P] The probability of each position's likeliest candidate, averaged over all predecessors by how probable
        they are. Known before anything is drawn, so it may decide what is verified."""
        if self._rest is None:
            return self._first.max(axis=1).tolist()  # type: ignore[no-any-return]
        reached = self._first  # [k]: how probable each candidate is
        confidence = [float(reached.max())]
        for pairs, highest in zip(self._rest, self._rest.max(axis=2)):
            confidence.append(float(reached @ highest))
            reached = reached @ pairs
        return confidence

    def draw(self, rng: np.random.Generator) -> Path:
        """The published rule: each draft drawn behind the one before it."""
        lattice = self._lattice
        uniform = rng.random(len(lattice.unary)).tolist()
        if self._rest is None:
            q = self._first
            taken = [draw(row, u) for row, u in zip(q, uniform)]
        else:
            first, rest = self._first, self._rest
            taken = [draw(first, uniform[0])]
            for rows, u in zip(rest, uniform[1:]):
                taken.append(draw(rows[taken[-1]], u))
            q = np.concatenate([first[None], rest[np.arange(len(rest)), taken[:-1]]])
        return Path(
            lattice.candidates[np.arange(len(taken)), taken],
            lattice,
            tuple(taken),
            self._temperature,
            tuple(Distribution(ids, p) for ids, p in zip(lattice.candidates, q)),
        )


def sampled_path(lattice: Lattice, temperature: float, rng: np.random.Generator) -> Path:
    """The published rule at a temperature above 0: each draft drawn from the softmax of score / temperature."""
    return Proposal(lattice, temperature).draw(rng)


def _chosen(lattice: Lattice, taken: list[int]) -> Path:
    return Path(lattice.candidates[np.arange(len(taken)), taken], lattice, tuple(taken))


def _softmax(scores: npt.NDArray[np.float32], temperature: float) -> npt.NDArray[np.float64]:
    """Over the last axis."""
    weights = np.exp((scores - scores.max(axis=-1, keepdims=True)).astype(np.float64) / temperature)
    normalised: npt.NDArray[np.float64] = weights / weights.sum(axis=-1, keepdims=True)
    return normalised
