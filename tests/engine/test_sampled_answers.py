"""Sampled answers with drafts have the target's distribution: thousands of them against all continuations.

The target alone gives the exact distribution of the first three tokens; it decodes four rows at a time for that, as the
cycles do, because fewer rows would take other kernels, whose rounding 2,000 samples can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.events import SamplerSettings
from engine.generate import Stream, run_cycle
from engine.gguf_file import read_header
from engine.graph import Device
from engine.sampling import Distribution, Sampler
from engine.target import Target
from engine.vocabulary import Message
from tests.drafter_files import random_drafter, target_keys

DRAFTS = 3
TOP_K = 5
TOKENS = 3
Continuations = dict[tuple[int, ...], float]


def settings(seed: int = 0, temperature: float = 0.9) -> SamplerSettings:
    return SamplerSettings(temperature=temperature, top_k=TOP_K, top_p=1, min_p=0, seed=seed)


@pytest.fixture(scope="module")
def target(target_file: Path) -> Iterator[Target]:
    """It has read a question, and is cut back to it after whatever is decoded behind."""
    with closing(Target(read_header(target_file), context=256, threads=1)) as target:
        yield target


class Question:
    """A question that was read, and what the target would say to it."""

    def __init__(self, target: Target, text: str) -> None:
        self._target = target
        self.ids = target.vocabulary.render([Message("user", text)])
        target.cut(0, 0)
        self.logits = target.evaluate([(0, self.ids)], last_only=True).logits.copy()

    def rows(self, tokens: tuple[int, ...]) -> list[np.ndarray]:
        """The target's logits behind each of the tokens, from a pass of as many rows as a cycle has."""
        self._target.cut(0, len(self.ids))
        filled = (*tokens, *tokens[-1:] * (DRAFTS + 1 - len(tokens)))
        return list(self._target.evaluate([(0, filled)]).logits[: len(tokens)].copy())

    def continuations(self, temperature: float) -> Continuations:
        """The probability of every three tokens."""
        sampler = Sampler(settings(temperature=temperature))

        def behind(logits: np.ndarray) -> Distribution:
            (distribution,) = sampler.distributions(logits.reshape(1, -1))
            return distribution

        found: Continuations = {}
        first = behind(self.logits)
        for a, p_a in zip(first.ids.tolist(), first.p):
            second = behind(self.rows((a,))[0])
            for b, p_b in zip(second.ids.tolist(), second.p):
                third = behind(self.rows((a, b))[1])
                for c, p_c in zip(third.ids.tolist(), third.p):
                    found[a, b, c] = float(p_a * p_b * p_c)
        return found


@pytest.fixture(scope="module")
def question(target: Target) -> Question:
    return Question(target, "Tell me a short story about a fox.")


@pytest.fixture(scope="module")
def exact(question: Question) -> Continuations:
    return question.continuations(0.9)


def p_value(samples: list[tuple[int, ...]], exact: Continuations) -> float:
    """Of the chi-square test, with what is expected fewer than five times counted as one."""
    counts = Counter(samples)
    assert set(counts) <= set(exact), "a continuation that the target never gives"
    observed, expected = [0.0], [0.0]
    for continuation, p in exact.items():
        if p * len(samples) >= 5:
            observed.append(counts[continuation])
            expected.append(p * len(samples))
        else:
            observed[0] += counts[continuation]
            expected[0] += p * len(samples)
    return float(stats.chisquare(observed, expected).pvalue)


def drafter_of_frequent_tokens(path: Path, target_file: Path, version: int, exact: Continuations) -> Path:
    """A random drafter that proposes the sixteen tokens which come most often, none of them with much confidence, so
    that a good part of its drafts is accepted."""
    often: Counter[int] = Counter()
    for continuation, p in exact.items():
        for token in continuation[1:]:
            often[token] += p  # type: ignore[assignment]
    rng = np.random.default_rng(0)
    width = target_keys(target_file)["llama.embedding_length"]
    tensors = {"output.weight": 0.03 * rng.standard_normal((16, width), np.float32)}
    if version == 2:
        tensors["selector_hidden.weight"] = 0.01 * rng.standard_normal((32, width), np.float32)
    return random_drafter(
        path,
        target_file,
        version,
        layers=1,
        own_head=True,
        d2t=sorted(token for token, _ in often.most_common(16)),
        selector_top_k=16,
        tensors=tensors,
    )


@pytest.mark.parametrize(("version", "n"), [(1, 500), (2, 2000)])
def test_sampled_answers_have_the_targets_distribution(
    target: Target, target_file: Path, device: Device, question: Question, exact: Continuations, tmp_path: Path,
    version: int, n: int,
) -> None:  # fmt: skip
    path = drafter_of_frequent_tokens(tmp_path / "drafter.gguf", target_file, version, exact)
    shared = SharedTensors(target.embeddings, target.head)
    length = len(question.ids)
    samples, accepted = [], 0
    with closing(Drafter(str(path), device, context=256, shared=shared)) as drafter:
        target.tap(drafter.config.target_layers)
        target.cut(0, 0)
        drafter.inject(target.evaluate([(0, question.ids)], last_only=True).features)

        def sample(seed: int) -> tuple[tuple[int, ...], int]:
            target.cut(0, length)
            drafter.cut(0, length)
            sampler = Sampler(settings(seed))
            stream = Stream(0, sampler, sampler.distributions(question.logits)[0].sample(sampler.rng), DRAFTS)
            tokens, kept = [stream.anchor], 0
            while len(tokens) < TOKENS:
                (outcome,), _ = run_cycle(target, drafter, (stream,))
                tokens += outcome.tokens
                kept += outcome.accepted
            return tuple(tokens), kept

        for seed in range(n):
            tokens, kept = sample(seed)
            samples.append(tokens[:TOKENS])
            accepted += kept
        assert [sample(seed)[0][:TOKENS] for seed in range(9)] == samples[:9], "a seed gives the same text"
    target.tap(())
    found = p_value(samples, exact)
    print(f"v{version}: p-value {found:.3f} over {len(set(samples))} continuations, {accepted} drafts accepted")
    assert accepted > n / 6
    assert found > 0.001
    assert p_value(samples, question.continuations(1.4)) < 1e-4, "so many samples do tell another temperature"
