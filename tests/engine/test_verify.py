"""Acceptance: small cases by hand, and the distribution of what is emitted against the target's own, by chi-square.

Everything random has a fixed seed, so a test passes always or never.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from engine.events import SamplerSettings
from engine.sampling import Distribution, Sampler
from engine.selector import Lattice, Path, best_path, sampled_path
from engine.verify import Verdict, verify_greedy, verify_sampled
from tests.dense_sampler import dense_p

Proposals = list[Distribution] | None
Rule = Callable[[list[Distribution], list[int], Proposals, np.random.Generator], Verdict]
Drafter = Callable[[Lattice, np.random.Generator], Path]

VOCABULARY, CANDIDATES, POSITIONS = 8, 5, 3
SETTINGS = SamplerSettings(
    temperature=0.9,
    top_k=6,
    top_p=0.97,
    min_p=0.01,
    repetition_penalty=1.2,
    presence_penalty=0.3,
    frequency_penalty=0.2,
    penalty_last_n=4,
)
PROMPT = [3, 1, 3]


def distribution(*p: float) -> Distribution:
    return Distribution(np.arange(len(p), dtype=np.int32), np.array(p))


class World:
    """A random drafter and a small target: logits depend on the token before, penalties on the four before."""

    def __init__(self, seed: int, *, pairs: bool) -> None:
        self.seed, self.pairs = seed, pairs
        self.logits = (np.random.default_rng(seed).normal(size=(VOCABULARY, VOCABULARY)) * 1.5).astype(np.float32)
        self.p = cache(self._p)
        self.exact = cache(self._exact)
        self.lattice = cache(self._lattice)

    def _p(self, emitted: tuple[int, ...], drafts: tuple[int, ...]) -> list[Distribution]:
        """What a verification pass gives: one row behind the text and one behind each draft."""
        text = [*PROMPT, *emitted]
        rows = self.logits[[text[-1], *drafts]]
        return Sampler(SETTINGS, text).distributions(rows, drafts)

    def _exact(self, emitted: tuple[int, ...]) -> NDArray[np.float64]:
        text = [*PROMPT, *emitted]
        return dense_p(self.logits[text[-1]], SETTINGS, text)

    def _lattice(self, emitted: tuple[int, ...]) -> Lattice:
        rng = np.random.default_rng([self.seed, *emitted, 99])
        candidates = np.stack([rng.permutation(VOCABULARY)[:CANDIDATES] for _ in range(POSITIONS)]).astype(np.int32)
        unary = -np.sort(-rng.normal(size=(POSITIONS, CANDIDATES)).astype(np.float32), axis=1)
        if not self.pairs:
            return Lattice(candidates, unary)
        scores = unary[:, None, :] + rng.normal(size=(POSITIONS, CANDIDATES, CANDIDATES)).astype(np.float32)
        return Lattice(candidates, unary, scores[0, 0], scores[1:])


class ChiSquare:
    """Sums the statistic over many tables of counts; cells too small for it are put together."""

    def __init__(self) -> None:
        self.statistic, self.freedom = 0.0, 0
        self.impossible = False  # something was seen that has no probability

    def add(self, seen: NDArray[np.float64], p: NDArray[np.float64]) -> None:
        expected = seen.sum() * p
        self.impossible |= bool(seen[p == 0].any())
        small = expected < 8
        seen = np.append(seen[~small], seen[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
        seen, expected = seen[expected > 0], expected[expected > 0]
        if len(expected) > 1 and expected.min() > 2:
            self.statistic += float(((seen - expected) ** 2 / expected).sum())
            self.freedom += len(expected) - 1

    def p_value(self) -> float:
        return 0.0 if self.impossible else float(chi2.sf(self.statistic, self.freedom))


def draw_path(lattice: Lattice, rng: np.random.Generator) -> Path:
    return sampled_path(lattice, SETTINGS.temperature, rng)


def single_cycles(rule: Rule, drafter: Drafter, *, pairs: bool, samples: int) -> float:
    """The p-value of `samples` cycles, spread over four worlds, in which two of three drafts are verified.

    The first token emitted must have the target's distribution, the second that behind the first, among the cycles in
    which the first draft was kept, and so on.
    """
    test = ChiSquare()
    for seed in range(4):
        world, rng = World(seed, pairs=pairs), np.random.default_rng(1000 + seed)
        lattice = world.lattice(())
        counts: dict[tuple[int, ...], NDArray[np.float64]] = {}
        for _ in range(samples // 4):
            path = drafter(lattice, rng)
            drafts = path.tokens[:2].tolist()
            q = None if path.q is None else list(path.q[:2])
            verdict = rule(world.p((), tuple(drafts)), drafts, q, rng)
            emitted = (*drafts[: verdict.accepted], verdict.token)
            for i, token in enumerate(emitted):
                row = counts.get(emitted[:i])
                if row is None:
                    row = counts[emitted[:i]] = np.zeros(VOCABULARY)
                row[token] += 1
        assert counts[()].sum() == samples // 4
        for before, seen in counts.items():
            test.add(seen, world.exact(before))
    assert test.freedom > 15
    return test.p_value()


@pytest.mark.parametrize("pairs", [False, True], ids=["dflash", "dflash2"])
def test_drawn_drafts_leave_the_distribution_of_the_target(pairs: bool) -> None:
    assert single_cycles(verify_sampled, draw_path, pairs=pairs, samples=200_000) > 0.001


def test_drafts_that_were_not_drawn_leave_the_distribution_of_the_target() -> None:
    paths: dict[int, Path] = {}

    def viterbi(lattice: Lattice, rng: np.random.Generator) -> Path:
        return paths.setdefault(id(lattice), best_path(lattice))

    assert single_cycles(verify_sampled, viterbi, pairs=True, samples=60_000) > 0.001


def residual_keeps_q(p: list[Distribution], drafts: list[int], q: Proposals, rng: np.random.Generator) -> Verdict:
    """Draws the correction from p itself."""
    assert q is not None
    for i, draft in enumerate(drafts):
        if rng.random() * q[i].probability(draft) >= p[i].probability(draft):
            return Verdict(i, p[i].sample(rng))
    return Verdict(len(drafts), p[len(drafts)].sample(rng))


def ratio_upside_down(p: list[Distribution], drafts: list[int], q: Proposals, rng: np.random.Generator) -> Verdict:
    """Accepts with probability min(1, q / p)."""
    assert q is not None
    for i, draft in enumerate(drafts):
        if rng.random() * p[i].probability(draft) >= q[i].probability(draft):
            return Verdict(i, verify_sampled(p[i : i + 1], [], None, rng).token)
    return verify_sampled(p[len(drafts) :], [], None, rng)


def all_possible_drafts_accepted(
    p: list[Distribution], drafts: list[int], q: Proposals, rng: np.random.Generator
) -> Verdict:
    """Accepts whatever the target could have said."""
    for i, draft in enumerate(drafts):
        if p[i].probability(draft) == 0:
            return Verdict(i, p[i].sample(rng))
    return Verdict(len(drafts), p[len(drafts)].sample(rng))


def drawn_drafts_taken_for_point_masses(
    p: list[Distribution], drafts: list[int], q: Proposals, rng: np.random.Generator
) -> Verdict:
    """Accepts by the right rule, but takes only the draft itself out of p for the correction, not q."""
    assert q is not None
    for i, draft in enumerate(drafts):
        if rng.random() * q[i].probability(draft) >= p[i].probability(draft):
            return Verdict(i, verify_sampled([without(p[i], draft)], [], None, rng).token)
    return Verdict(len(drafts), p[len(drafts)].sample(rng))


def without(p: Distribution, token: int) -> Distribution:
    rest = np.where(p.ids == token, 0.0, p.p)
    return Distribution(p.ids, rest / rest.sum()) if rest.any() else p


def confident_drafts_verified(
    p: list[Distribution], drafts: list[int], q: Proposals, rng: np.random.Generator
) -> Verdict:
    """The right rule on as many drafts as were drawn with some confidence: a length that depends on the draws."""
    assert q is not None
    length = 0
    while length < len(drafts) and q[length].probability(drafts[length]) > 0.25:
        length += 1
    return verify_sampled(p[: length + 1], drafts[:length], q, rng)


@pytest.mark.parametrize(
    "wrong",
    [
        residual_keeps_q,
        ratio_upside_down,
        all_possible_drafts_accepted,
        drawn_drafts_taken_for_point_masses,
        confident_drafts_verified,
    ],
)
def test_wrong_rules_are_caught(wrong: Rule) -> None:
    assert single_cycles(wrong, draw_path, pairs=True, samples=20_000) < 1e-6


def always_two(path: Path) -> int:
    return 2


def by_proposal(path: Path) -> int:
    """As many drafts as have a clear favourite in q: a row depends on the drafts before, never on the draft itself."""
    assert path.q is not None
    length = 0
    while length < POSITIONS and path.q[length].p.max() > 0.35:
        length += 1
    return length


def by_confidence(path: Path) -> int:
    """As many drafts as were drawn with some confidence, which must not be."""
    length = 0
    while length < POSITIONS and path.confidence[length] > 0.25:
        length += 1
    return length


@pytest.mark.parametrize(
    ("pairs", "length", "right"),
    [(False, always_two, True), (True, always_two, True), (True, by_proposal, True), (True, by_confidence, False)],
)
def test_three_tokens_have_the_joint_distribution_of_the_target(
    pairs: bool, length: Callable[[Path], int], right: bool
) -> None:
    """Whole texts, cycle behind cycle, against the probability of every text of three tokens."""
    world, rng = World(7, pairs=pairs), np.random.default_rng(17)
    samples = 30_000
    seen = np.zeros((VOCABULARY,) * 3)
    lengths = set()
    for _ in range(samples):
        text: tuple[int, ...] = ()
        while len(text) < 3:
            path = draw_path(world.lattice(text), rng)
            m = length(path)
            lengths.add(m)
            drafts = path.tokens[:m].tolist()
            verdict = verify_sampled(world.p(text, tuple(drafts)), drafts, path.q, rng)
            text = (*text, *drafts[: verdict.accepted], verdict.token)
        seen[text[:3]] += 1
    if length is not always_two:
        assert len(lengths) > 2  # the length did change
    p = np.zeros_like(seen)
    for a, b in np.ndindex(VOCABULARY, VOCABULARY):
        p[a, b] = world.exact(())[a] * world.exact((a,))[b] * world.exact((a, b))
    assert p.sum() == pytest.approx(1)
    test = ChiSquare()
    test.add(seen.ravel(), p.ravel())
    assert test.freedom > 50
    assert test.p_value() > 0.001 if right else test.p_value() < 1e-6


def test_verifying_only_one_of_two_tokens_shifts_their_probability() -> None:
    """p = (.5, .5), q = (.9, .1), verified only when the draft is 0: P(0) becomes .55; verified always, it stays .5."""
    p, q = distribution(0.5, 0.5), distribution(0.9, 0.1)
    rng = np.random.default_rng(2)
    zeros = {"always": 0, "sometimes": 0}
    for _ in range(20_000):
        draft = q.sample(rng)
        for kind in zeros:
            drafts = [draft] if kind == "always" or draft == 0 else []
            verdict = verify_sampled([p, p], drafts, [q], rng)
            zeros[kind] += (*drafts[: verdict.accepted], verdict.token)[0] == 0
    assert zeros["always"] / 20_000 == pytest.approx(0.5, abs=0.012)
    assert zeros["sometimes"] / 20_000 == pytest.approx(0.55, abs=0.012)


def test_greedy_keeps_the_drafts_up_to_the_first_difference() -> None:
    assert verify_greedy([5, 6, 7, 8], [5, 6, 7]) == Verdict(3, 8)
    assert verify_greedy([5, 6, 7, 8], [5, 9, 7]) == Verdict(1, 6)
    assert verify_greedy([5, 6, 7, 8], [1, 6, 7]) == Verdict(0, 5)
    assert verify_greedy([5], []) == Verdict(0, 5)
    assert verify_greedy(np.array([5, 6], np.int32), np.array([5], np.int32)) == Verdict(1, 6)


def test_sampling_at_temperature_zero_is_greedy_acceptance() -> None:
    rng = np.random.default_rng(1)
    sampler = Sampler(SamplerSettings(temperature=0.0))
    for _ in range(200):
        logits = rng.normal(size=(4, 3)).astype(np.float32)
        drafts = rng.integers(0, 3, size=3).tolist()
        sampled = verify_sampled(sampler.distributions(logits, drafts), drafts, None, rng)
        assert sampled == verify_greedy(sampler.choices(logits, drafts), drafts)


def test_a_proposal_equal_to_the_target_is_always_accepted() -> None:
    rng = np.random.default_rng(6)
    for _ in range(500):
        weights = rng.random(7)
        p = distribution(*(weights / weights.sum()))
        assert verify_sampled([p, p], [p.sample(rng)], [p], rng).accepted == 1


def test_a_rejected_draft_never_comes_back_as_its_own_correction() -> None:
    rng = np.random.default_rng(8)
    p, q = distribution(0.2, 0.5, 0.3), distribution(0.8, 0.2, 0.0)
    rejected = 0
    for _ in range(2000):
        verdict = verify_sampled([p, p], [0], [q], rng)
        if verdict.accepted == 0:
            rejected += 1
            assert verdict.token in (1, 2)
    assert rejected / 2000 == pytest.approx(0.75, abs=0.04)


def test_a_draft_outside_of_the_target_is_rejected_and_replaced() -> None:
    rng = np.random.default_rng(9)
    p = Distribution(np.array([4, 1], np.int32), np.array([0.5, 0.5]))
    q = Distribution(np.array([9, 2], np.int32), np.array([0.5, 0.5]))
    for proposal in ([q], None):
        verdict = verify_sampled([p, p], [9], proposal, rng)
        assert verdict.accepted == 0
        assert verdict.token in (4, 1)


def test_where_nothing_is_left_the_correction_comes_from_the_target_itself() -> None:
    """A rounding below: the target's p is nowhere above q, yet the draft was rejected."""
    rng = np.random.default_rng(10)
    q = distribution(0.5, 0.5)
    p = distribution(0.5 - 1e-9, 0.0)
    tokens = {verify_sampled([p, p], [1], [q], rng).token for _ in range(50)}
    assert tokens == {0}


def test_a_draft_that_its_proposal_cannot_have_given_is_a_mistake() -> None:
    p = distribution(0.5, 0.5)
    with pytest.raises(ValueError, match=r"draft 1 \(token 3\)"):
        verify_sampled([p, p], [3], [p], np.random.default_rng(0))
