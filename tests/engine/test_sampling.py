"""The user's sampler settings: the fast path against its dense twin and against llama.cpp's own samplers."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import llama_cpp
import numpy as np
import pytest
from numpy.typing import NDArray

from engine.errors import DFlashChatError, SettingsError
from engine.events import SamplerSettings
from engine.sampling import Distribution, Sampler, best_tokens, draw
from tests.dense_sampler import dense_logits, dense_p

OFF = SamplerSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)


def dense(distribution: Distribution, vocabulary: int) -> NDArray[np.float64]:
    assert distribution.ids.dtype == np.int32
    assert len(set(distribution.ids.tolist())) == len(distribution.ids)
    assert (distribution.p > 0).all()
    p = np.zeros(vocabulary)
    p[distribution.ids] = distribution.p
    return p


def random_settings(rng: np.random.Generator) -> SamplerSettings:
    """Each setting is off about every third time."""

    def maybe(off: float, value: float) -> float:
        return off if rng.random() < 0.35 else float(value)

    return SamplerSettings(
        temperature=float(rng.choice([0.2, 0.7, 1.0, 1.9])),
        top_k=int(maybe(0, int(rng.integers(1, 200)))),
        top_p=maybe(1.0, rng.uniform(0.05, 0.999)),
        min_p=maybe(0.0, rng.uniform(0.0001, 0.5)),
        repetition_penalty=maybe(1.0, rng.uniform(0.7, 1.8)),
        presence_penalty=maybe(0.0, rng.normal()),
        frequency_penalty=maybe(0.0, rng.normal()),
        penalty_last_n=int(rng.choice([-1, 0, 1, 5, 64])),
    )


@pytest.mark.parametrize("seed", range(120))
def test_fast_rows_equal_the_dense_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vocabulary = int(rng.choice([2, 11, 300, 3000, 9001]))
    settings = random_settings(rng)
    logits = (rng.normal(size=(4, vocabulary)) * rng.uniform(0.5, 5)).astype(np.float32)
    untouched = logits.copy()
    history = rng.integers(0, min(vocabulary, 30), size=int(rng.integers(0, 80))).tolist()
    drafts = rng.integers(0, min(vocabulary, 30), size=3).tolist()
    sampler = Sampler(settings, history)

    rows = sampler.distributions(logits, drafts)
    choices = sampler.choices(logits, drafts)

    assert len(rows) == len(choices) == 4
    for i, (distribution, choice) in enumerate(zip(rows, choices)):
        text = history + drafts[:i]
        np.testing.assert_allclose(dense(distribution, vocabulary), dense_p(logits[i], settings, text), atol=2e-6)
        # The greedy token is the highest of the penalised logits, whatever the other settings are.
        twin = dense_logits(logits[i], settings, text)
        assert twin[choice] == pytest.approx(max(twin), abs=1e-5)
    np.testing.assert_array_equal(logits, untouched)  # the caller's buffer is not ours


def llama_cpp_p(row: NDArray[np.float32], settings: SamplerSettings, text: Sequence[int]) -> NDArray[np.float64]:
    """The same distribution through the samplers of the bundled libllama."""
    last_n = len(text) if settings.penalty_last_n < 0 else settings.penalty_last_n
    data = (llama_cpp.llama_token_data * len(row))(
        *(llama_cpp.llama_token_data(i, float(value), 0.0) for i, value in enumerate(row))
    )
    candidates = llama_cpp.llama_token_data_array(data, len(row), -1, False)
    chain: Any = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    try:
        for stage in (
            llama_cpp.llama_sampler_init_penalties(
                len(row), last_n, settings.repetition_penalty, settings.frequency_penalty, settings.presence_penalty
            ),
            llama_cpp.llama_sampler_init_top_k(settings.top_k),
            llama_cpp.llama_sampler_init_top_p(settings.top_p, 1),
            llama_cpp.llama_sampler_init_min_p(settings.min_p, 1),
            llama_cpp.llama_sampler_init_temp(settings.temperature),
            llama_cpp.llama_sampler_init_dist(0),  # turns logits into probabilities
        ):
            llama_cpp.llama_sampler_chain_add(chain, stage)
        for token in text:
            llama_cpp.llama_sampler_accept(chain, token)
        llama_cpp.llama_sampler_apply(chain, ctypes.pointer(candidates))
        p = np.zeros(len(row))
        for i in range(candidates.size):
            found: Any = candidates.data[i]
            p[found.id] = found.p
        return p
    finally:
        llama_cpp.llama_sampler_free(chain)


@pytest.mark.parametrize("seed", range(40))
def test_rows_equal_those_of_llama_cpp(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    settings = random_settings(rng)
    vocabulary = int(rng.choice([50, 2000]))
    row = (rng.normal(size=vocabulary) * 3).astype(np.float32)
    text = rng.integers(0, 30, size=70).tolist()
    ours = dense(Sampler(settings, text).distributions(row[None])[0], vocabulary)
    np.testing.assert_allclose(ours, llama_cpp_p(row, settings, text), atol=1e-5)


def test_top_p_and_min_p_look_at_the_probabilities_before_the_temperature() -> None:
    row = np.log(np.array([[0.5, 0.3, 0.15, 0.05]], np.float32))
    hot = Sampler(replace(OFF, temperature=100.0, top_p=0.7)).distributions(row)[0]
    assert sorted(hot.ids.tolist()) == [0, 1]
    np.testing.assert_allclose(hot.p, 0.5, atol=0.01)
    assert sorted(Sampler(replace(OFF, temperature=100.0, min_p=0.25)).distributions(row)[0].ids.tolist()) == [0, 1, 2]


def test_top_p_counts_only_what_top_k_left() -> None:
    row = np.log(np.array([[0.4, 0.3, 0.2, 0.1]], np.float32))
    kept = Sampler(replace(OFF, top_k=2, top_p=0.56)).distributions(row)[0]
    assert kept.ids.tolist() == [0]  # 0.4 of 0.7 is 0.571; of the whole it would be 0.4


def test_repetition_penalty_divides_positive_logits_and_multiplies_the_others() -> None:
    settings = replace(OFF, repetition_penalty=2.0)
    row = np.array([[2.0, -1.0, 0.0, 1.0]], np.float32)
    p = dense(Sampler(settings, [0, 1, 1]).distributions(row)[0], 4)
    expected = np.exp([1.0, -2.0, 0.0, 1.0])
    np.testing.assert_allclose(p, expected / expected.sum(), rtol=1e-6)


def test_frequency_penalty_counts_occurrences_and_presence_penalty_does_not() -> None:
    settings = replace(OFF, frequency_penalty=0.5, presence_penalty=0.25)
    p = dense(Sampler(settings, [0, 1, 1, 1]).distributions(np.zeros((1, 3), np.float32))[0], 3)
    expected = np.exp([-0.75, -1.75, 0.0])
    np.testing.assert_allclose(p, expected / expected.sum(), rtol=1e-6)


def test_each_row_is_penalised_for_the_drafts_before_it_only() -> None:
    settings = replace(OFF, temperature=0.0, presence_penalty=1.0)
    logits = np.array([[0.3, 0.2, 0.1]] * 4, np.float32)
    assert Sampler(settings).choices(logits, [0, 1, 2]).tolist() == [0, 1, 2, 0]
    # A window of one token forgets the draft before last.
    assert Sampler(replace(settings, penalty_last_n=1)).choices(logits, [0, 1, 2]).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("last_n", [-1, 0, 1, 3, 64])
def test_accepted_tokens_are_the_same_as_a_longer_history(last_n: int) -> None:
    rng = np.random.default_rng(5)
    settings = replace(OFF, repetition_penalty=1.3, frequency_penalty=0.2, penalty_last_n=last_n)
    text = rng.integers(0, 9, size=20).tolist()
    row = rng.normal(size=(1, 9)).astype(np.float32)
    sampler = Sampler(settings, text[:6])
    sampler.distributions(np.repeat(row, 4, axis=0), [1, 1, 1])  # drafts that are looked at are not yet text
    sampler.accept(text[6:7])
    sampler.accept(text[7:])
    at_once = Sampler(settings, text)
    np.testing.assert_array_equal(dense(sampler.distributions(row)[0], 9), dense(at_once.distributions(row)[0], 9))


def test_temperature_zero_is_all_of_the_mass_on_the_greedy_token() -> None:
    logits = np.array([[0.0, 3.0, 3.0, 1.0]], np.float32)
    found = Sampler(SamplerSettings(temperature=0.0)).distributions(logits)[0]
    assert (found.ids.tolist(), found.p.tolist()) == ([1], [1.0])


def test_a_temperature_near_zero_is_greedy_without_overflow() -> None:
    logits = np.array([[1.0, 3.0, -2.0, 2.999]], np.float32)
    found = Sampler(replace(OFF, temperature=1e-300)).distributions(logits)[0]
    assert (found.ids.tolist(), found.p.tolist()) == ([1], [1.0])


@pytest.mark.parametrize("vocabulary", [7, 600, 5000, 20011])
@pytest.mark.parametrize("k", [1, 5, 40, 700])
def test_best_tokens_puts_the_lower_id_first_among_equals(vocabulary: int, k: int) -> None:
    rng = np.random.default_rng(vocabulary + k)
    for levels in (1, 3, 50):  # few levels: many ties, at the border as well
        row = rng.integers(0, levels, size=vocabulary).astype(np.float32)
        ids, values = best_tokens(row, k)
        expected = sorted(range(vocabulary), key=lambda token: (-row[token], token))[:k]
        assert ids.tolist() == expected
        np.testing.assert_array_equal(values, row[expected])


def test_best_tokens_finds_the_highest_wherever_they_lie() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        row = rng.normal(size=10007).astype(np.float32)
        special = rng.choice(np.r_[0:5, 10000:10007, rng.integers(0, 10007, 5)], size=6, replace=False)
        row[special] += 20
        assert set(best_tokens(row, len(set(special.tolist())))[0].tolist()) == set(special.tolist())


def test_tokens_that_are_ruled_out_stay_out() -> None:
    row = np.full((1, 6000), -np.inf, np.float32)
    row[0, [17, 4000]] = 1.0
    for settings in (OFF, replace(OFF, top_k=40), replace(OFF, top_k=40, top_p=0.9), replace(OFF, min_p=0.1)):
        assert sorted(Sampler(settings).distributions(row)[0].ids.tolist()) == [17, 4000]


@pytest.mark.parametrize("place", [3, 5999])
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("settings", [OFF, replace(OFF, top_k=40), replace(OFF, min_p=0.1), replace(OFF, top_p=0.5)])
def test_logits_that_are_not_numbers_are_refused(settings: SamplerSettings, place: int, value: float) -> None:
    logits = np.zeros((2, 6000), np.float32)
    logits[1, place] = value
    sampler = Sampler(settings)
    with pytest.raises(DFlashChatError, match="not numbers"):
        sampler.distributions(logits, [0])
    with pytest.raises(DFlashChatError, match="not numbers"):
        sampler.choices(logits, [0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("temperature", "0.7"),
        ("top_k", -1),
        ("top_k", 4.5),
        ("top_p", 1.01),
        ("top_p", -0.5),
        ("top_p", math.nan),
        ("min_p", 1.5),
        ("min_p", None),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", math.inf),
        ("presence_penalty", math.nan),
        ("frequency_penalty", -math.inf),
        ("penalty_last_n", -2),
        ("seed", -1),
        ("seed", 0.5),
        ("seed", True),
    ],
)
def test_settings_out_of_range_are_named(name: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=f"{name} is .* must be"):
        Sampler(replace(SamplerSettings(), **{name: value}))


def test_the_limits_of_each_setting_are_allowed() -> None:
    logits = np.array([[1.0, 2.0, 0.0]], np.float32)
    for settings in (replace(OFF, top_p=0.0), replace(OFF, top_k=1), replace(OFF, min_p=1.0)):
        assert Sampler(settings).distributions(logits)[0].ids.tolist() == [1]
    assert len(Sampler(replace(OFF, top_k=10**9, seed=0)).distributions(logits)[0].ids) == 3


def test_the_same_seed_gives_the_same_draws_and_no_seed_others() -> None:
    def draws(seed: int | None) -> list[int]:
        sampler = Sampler(replace(OFF, seed=seed))
        distribution = sampler.distributions(np.zeros((1, 1000), np.float32))[0]
        return [distribution.sample(sampler.rng) for _ in range(20)]

    assert draws(7) == draws(7) != draws(8)
    assert draws(None) != draws(None)


def test_a_draw_never_falls_on_a_weight_of_zero() -> None:
    weights = np.array([0.0, 0.3, 0.0, 0.7, 0.0])
    highest = math.nextafter(1.0, 0.0)
    assert [draw(weights, u) for u in (0.0, 0.29, 0.31, highest)] == [1, 1, 3, 3]
    rounding = np.full(49, 1 / 49)  # sums to a little less than 1
    assert draw(rounding, highest) == 48


def test_probability_of_a_token_outside_is_zero() -> None:
    distribution = Distribution(np.array([5, 2], np.int32), np.array([0.25, 0.75]))
    assert [distribution.probability(token) for token in (5, 2, 0)] == [0.25, 0.75, 0.0]
