"""Sampled answers whose draft lengths are decided in each cycle have the target's distribution.

A tiny target that says one of a dozen tokens gives the exact probability of every continuation of three. That the test
can tell is shown by a rule that looks at what was drawn: its answers have another distribution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from engine import ggml
from engine.draft_length import DraftLength, FixedLength
from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.events import SamplerSettings
from engine.generate import Stream, run_cycle
from engine.gguf_file import read_header
from engine.graph import Device
from engine.sampling import Sampler
from engine.selector import Path, Proposal
from engine.target import Target
from tests.steady_length import SteadyLength

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

TOKENS = 3
SAMPLES = 500
Continuations = dict[tuple[int, ...], float]


class Varied(SteadyLength):
    """A moment is worth more in one cycle than in the next, so that all lengths occur; confidence does the rest."""

    def __init__(self, block_size: int) -> None:
        super().__init__(block_size, row=0.16, draft=0.01)
        self._factors = cycle((0.2, 0.6, 1.0, 1.4, 0.1))

    def drafts(self, confidences: Sequence[Sequence[float] | None], most: Sequence[int]) -> list[int]:
        rate = self._rate
        self._rate *= next(self._factors)
        counts = super().drafts(confidences, most)
        self._rate = rate
        return counts


def settings(seed: int = 0) -> SamplerSettings:
    return SamplerSettings(temperature=1.6, top_k=5, top_p=1, min_p=0, seed=seed)


def exact(target: Target, prompt: list[int]) -> Continuations:
    """Each continuation's probability, from the target alone."""
    sampler = Sampler(settings())
    found: Continuations = {(): 1.0}
    for _ in range(TOKENS):
        longer: Continuations = {}
        for tokens, p in found.items():
            target.cut(0, 0)
            logits = target.evaluate([(0, [*prompt, *tokens])], last_only=True).logits
            (row,) = sampler.distributions(logits)
            longer |= {(*tokens, token): p * q for token, q in zip(row.ids.tolist(), row.p.tolist())}
        found = longer
    return found


def p_value(samples: Sequence[tuple[int, ...]], expected: Continuations) -> float:
    """Of the chi-square test, with what is expected fewer than five times counted as one."""
    counts = Counter(samples)
    assert set(counts) <= set(expected), "a continuation that the target never gives"
    seen, due = [0.0], [1e-9]
    for continuation, p in expected.items():
        if p * len(samples) >= 5:
            seen.append(counts[continuation])
            due.append(p * len(samples))
        else:
            seen[0] += counts[continuation]
            due[0] += p * len(samples)
    return float(stats.chisquare(seen, np.array(due) * (sum(seen) / sum(due))).pvalue)


@pytest.mark.parametrize("version", [1, 2])
def test_answers_have_the_targets_distribution(
    tiny_models: TinyModels, device: Device, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_models.wandering_v2 if version == 2 else tiny_models.wandering_v1
    with (
        closing(Target(read_header(tiny_models.wandering), context=128, threads=1, exact=True)) as target,
        closing(
            Drafter(str(path), device, context=128, shared=target_tensors(target), key_value_type=ggml.F32)
        ) as drafter,
    ):
        prompt = target.vocabulary.tokenize("a")
        expected = exact(target, prompt)
        target.tap(drafter.config.target_layers)
        target.cut(0, 0)
        result = target.evaluate([(0, prompt)], last_only=True)
        drafter.inject(result.features)
        logits = result.logits.copy()

        def samples(length: DraftLength, count: int) -> tuple[list[tuple[int, ...]], Counter[int]]:
            drawn: list[tuple[int, ...]] = []
            lengths: Counter[int] = Counter()
            for seed in range(count):
                target.cut(0, len(prompt))
                drafter.cut(0, len(prompt))
                sampler = Sampler(settings(seed))
                stream = Stream(0, sampler, sampler.distributions(logits)[0].sample(sampler.rng), 3)
                tokens = [stream.anchor]
                while len(tokens) < TOKENS:
                    ((outcome,), _) = run_cycle(target, drafter, (stream,), length)
                    lengths[outcome.drafted] += 1
                    tokens += outcome.tokens
                drawn.append(tuple(tokens[:TOKENS]))
            return drawn, lengths

        automatic, lengths = samples(Varied(drafter.config.block_size), SAMPLES)
        assert sum(count > 30 for count in lengths.values()) > 1, f"{lengths}: the lengths differ"
        assert p_value(automatic, expected) > 0.001
        if version == 1:  # its drafts are too seldom right for the other rule to show
            return

        def only_the_likeliest(self: Proposal, rng: np.random.Generator) -> Path:
            """Leaves out what is drawn unless it is the best candidate."""
            path = original(self, rng)
            if path.taken[0]:
                assert path.q is not None
                return Path(path.tokens[:0], path.lattice, (), 1.6, path.q)
            return path

        original = Proposal.draw
        monkeypatch.setattr(Proposal, "draw", only_the_likeliest)
        assert p_value(samples(FixedLength(), SAMPLES)[0], expected) < 1e-4


def target_tensors(target: Target) -> SharedTensors:
    return SharedTensors(target.embeddings, target.head)
