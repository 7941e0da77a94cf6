"""From a drafter's confidence in a draft to the chance that the target accepts it, learned from what it accepted.

The map is monotone: a draft with more confidence never gets a smaller chance. It begins as "confidence is chance" and
follows what is seen; the later positions of a block, which see less, have maps of their own as far as there is evidence
for them. Chances are conditional: given that all drafts before were accepted. Knows nothing of models.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Finer near 1: for long blocks it matters whether a chance is 0.97 or 0.99.
_EDGES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.88, 0.94, 0.97, 0.99, 0.997)
_MIDDLES = tuple(0.5 * (a + b) for a, b in zip((0.0, *_EDGES), (*_EDGES, 1.0)))
_GROUP_OF = (0, 1, 2, 2, 3, 3, 3, 3)  # position - 1 -> group; positions behind these form the last one
_GROUPS = 5
_PRIOR = 3.0  # observations that "confidence is chance" is worth
_TRUST = 0.95  # of that: drafters are surer than right, and too few drafts cost less than too many
_SHARED = 8.0  # observations that the map of all positions is worth within a group
_MEMORY = 150.0  # observations of a bin that count: texts change
_EVERY = 48  # observed drafts between two fittings, once there are many


@dataclass(frozen=True, slots=True)
class Reliability:
    """One range of confidence: what was promised there, and what came of it."""

    confidence: float  # the middle of the range
    chance: float  # what the map makes of it
    accepted: float  # share of the drafts seen
    drafts: float  # how many, the oldest faded out


class Acceptance:
    """Maps learned online. One for greedy drafts, another for drawn ones: their confidence means something else."""

    def __init__(self) -> None:
        bins = len(_MIDDLES)
        self._tried = [[0.0] * bins for _ in range(_GROUPS)]
        self._accepted = [[0.0] * bins for _ in range(_GROUPS)]
        self._maps: list[list[float]] = []
        self._new = 0  # observations since the maps were fitted
        self._seen = 0
        self._fit()

    def chances(self, confidence: Sequence[float]) -> list[float]:
        """[P] confidence of the drafts of one block, in order -> [P] conditional chances."""
        if self._new > min(self._seen // 16, _EVERY):  # what is little is looked at often
            self._fit()
        return [self._maps[_group(i)][bisect_right(_EDGES, value)] for i, value in enumerate(confidence)]

    def learn(self, position: int, confidence: float, accepted: float) -> None:
        """The draft at `position` (1 = the first), with all before it accepted, was accepted (1) or not (0).

        Between 0 and 1 where the chance itself is known.
        """
        group, index = _group(position - 1), bisect_right(_EDGES, confidence)
        tried, hits = self._tried[group], self._accepted[group]
        if tried[index] >= _MEMORY:
            keep = 1 - 1 / _MEMORY
            tried[index] *= keep
            hits[index] *= keep
        tried[index] += 1
        hits[index] += accepted
        self._new += 1
        self._seen += 1

    def _fit(self) -> None:
        self._new = 0
        bins = range(len(_MIDDLES))
        tried = [sum(group[i] for group in self._tried) for i in bins]
        hits = [sum(group[i] for group in self._accepted) for i in bins]
        weights = [n + _PRIOR for n in tried]
        shared = _monotone([(hits[i] + _PRIOR * _TRUST * _MIDDLES[i]) / weights[i] for i in bins], weights)
        self._maps = []
        for group in range(_GROUPS):
            own = [n + _SHARED for n in self._tried[group]]
            values = [(self._accepted[group][i] + _SHARED * shared[i]) / own[i] for i in bins]
            self._maps.append(_monotone(values, own))
        self._shared = shared

    def reliability(self) -> list[Reliability]:
        """Promise and outcome by range of confidence, ranges without drafts left out."""
        self._fit()
        found = []
        for i, middle in enumerate(_MIDDLES):
            tried = sum(group[i] for group in self._tried)
            if tried:
                accepted = sum(group[i] for group in self._accepted)
                found.append(Reliability(middle, self._shared[i], accepted / tried, tried))
        return found

    def as_dict(self) -> dict[str, Any]:
        return {"tried": self._tried, "accepted": self._accepted}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Acceptance:
        """Raises KeyError, TypeError, ValueError for what `as_dict` has not made."""
        acceptance = cls()
        for name, table in (("tried", acceptance._tried), ("accepted", acceptance._accepted)):
            rows = found[name]
            if [len(row) for row in rows] != [len(row) for row in table]:
                raise ValueError("maps of other shapes")
            for mine, theirs in zip(table, rows):
                mine[:] = [float(value) for value in theirs]
        if any(not 0 <= a <= n < float("inf") for pair in zip(acceptance._accepted, acceptance._tried)
               for a, n in zip(*pair)):  # fmt: skip
            raise ValueError("more drafts accepted than tried")
        acceptance._seen = int(sum(map(sum, acceptance._tried)))
        acceptance._fit()
        return acceptance


def _group(index: int) -> int:
    return _GROUP_OF[index] if index < len(_GROUP_OF) else _GROUPS - 1


def _monotone(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The rising sequence nearest to `values` by weighted squares (pool adjacent violators)."""
    pools: list[tuple[float, float, int]] = []  # value, weight, how many
    for value, weight in zip(values, weights):
        count = 1
        while pools and pools[-1][0] > value:
            before, heavy, many = pools.pop()
            value = (before * heavy + value * weight) / (heavy + weight)
            weight += heavy
            count += many
        pools.append((value, weight, count))
    return [value for value, _, count in pools for _ in range(count)]
