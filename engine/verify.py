"""Which drafts the target keeps, and the one token it adds: greedy acceptance and rejection sampling.

Pure functions on one sequence's arrays; several sequences are several calls. Knows nothing of models, nor of how drafts
were made, except for the distribution q that each was drawn from.

Rejection sampling (Leviathan et al., arXiv 2211.17192; Chen et al., arXiv 2302.01318) gives exactly the target's
distribution, whatever q is, under one condition that only the caller can keep: **whether a draft is verified must not
depend on what was drawn for it or behind it.** It may depend on the drafts before it and on q.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.sampling import Distribution, draw

Tokens = Sequence[int] | npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cycle's outcome: the first `accepted` drafts are kept, then comes `token`, the target's own."""

    accepted: int
    token: int  # the correction of the first wrong draft, or the bonus when all were right; the next anchor


def verify_greedy(choices: Iterable[int], drafts: Tokens) -> Verdict:
    """choices [m+1]: the target's greedy token behind the anchor and behind each draft; drafts [m].

    No choice behind the first that differs is asked for. Raises ValueError when there are too few.
    """
    for accepted, choice in enumerate(choices):
        if accepted == len(drafts) or choice != drafts[accepted]:
            return Verdict(accepted, int(choice))
    raise ValueError(f"{len(drafts)} drafts need {len(drafts) + 1} choices")


def verify_sampled(
    p: Iterable[Distribution],
    drafts: Tokens,
    q: Sequence[Distribution] | None,
    rng: np.random.Generator,
) -> Verdict:
    """p [m+1]: the target's distribution behind the anchor and behind each draft; drafts [m]; q [at least m], the
    distribution that each draft was drawn from, or None where nothing was drawn (point masses).

    Draft d is accepted with probability min(1, p(d) / q(d)). The first one rejected is replaced by a draw from
    max(p - q, 0), normalised; behind the last one accepted comes a draw from the last p. Raises ValueError for a draft
    that its q cannot have given. No p behind the first rejection is asked for.
    """
    rows = iter(p)
    for i, draft in enumerate(drafts):
        draft, row = int(draft), next(rows)
        proposed = 1.0 if q is None else q[i].probability(draft)
        if not proposed > 0:  # nor may it be no number at all: every comparison with that is false
            raise ValueError(f"draft {i + 1} (token {draft}) has no probability in the distribution it was drawn from")
        if not rng.random() * proposed < row.probability(draft):
            return Verdict(i, _correction(row, Distribution.point(draft) if q is None else q[i], rng))
    return Verdict(len(drafts), next(rows).sample(rng))


def overlap(p: Distribution, q: Distribution) -> float:
    """The chance that a draft drawn from q is accepted where the target's distribution is p: the sum of the minima."""
    return float(np.minimum(p.p, _at(p, q)).sum())


def _correction(p: Distribution, q: Distribution, rng: np.random.Generator) -> int:
    """A draw from max(p - q, 0), normalised; from p itself where nothing is left of that (p is q up to rounding)."""
    residual = np.maximum(p.p - _at(p, q), 0.0)
    return int(p.ids[draw(residual if residual.any() else p.p, rng.random())])


def _at(p: Distribution, q: Distribution) -> npt.NDArray[np.float64]:
    """[j]: the probability that q gives to each of p's tokens."""
    order = q.ids.argsort()
    ids = q.ids[order]
    at = np.minimum(ids.searchsorted(p.ids), len(ids) - 1)  # where each of p's tokens would stand among q's
    found: npt.NDArray[np.float64] = np.where(ids[at] == p.ids, q.p[order][at], 0.0)
    return found
