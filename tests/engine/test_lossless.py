"""Greedy answers with drafts are greedy answers without: on the default target, whatever the drafter is worth.

A quantised target computes a little differently in a batch, so tokens may differ at near-ties; the measured gap and
noise are printed (`pytest -s`). With float32 weights nothing differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.gguf_file import read_header
from engine.graph import Device
from engine.lossless import Comparison, Difference, compare, continue_greedily
from engine.target import Target
from engine.vocabulary import Message

if TYPE_CHECKING:
    from tests.conftest import DrafterFiles
    from tests.engine.conftest import TinyModels

TOKENS = 48
QUESTIONS = (
    "Explain how a bicycle works, and why it stays upright.",
    "한국의 수도는 어디인가요? 한국어로 답해 주세요.",
    "Write a Python function that returns the second largest number in a list.",
    "What is 17 times 23? Show the steps.",
    "Write a haiku about rain.",
    "Translate into French: The weather is nice today, and the children play in the garden. 🙂",
)


@pytest.fixture(scope="module")
def target(target_file: Path) -> Iterator[Target]:
    with closing(Target(read_header(target_file), context=256, threads=1)) as target:
        yield target


@pytest.mark.parametrize("name", ["random_v1", "random_v2", "wrong_v1", "wrong_v2"])
def test_the_default_target_gives_the_same_answers(
    target: Target, device: Device, drafter_dir: DrafterFiles, name: str
) -> None:
    """Every difference is a near-tie. Questions take turns with 3 and 7 drafts per cycle."""
    shared = SharedTensors(target.embeddings, target.head)
    compared = passes = differences = 0
    with closing(Drafter(str(getattr(drafter_dir, name)), device, context=256, shared=shared)) as drafter:
        for number, question in enumerate(QUESTIONS):
            prompt = target.vocabulary.render([Message("user", question)])
            result = compare(target, drafter, prompt, TOKENS, 3 if number % 2 else 7)
            for d in result.differences:
                print(f"{name}, question {number + 1}, token {d.position + 1}: gap {d.gap:.3f}, noise {d.noise:.3f}")
            assert result.lossless
            compared += result.tokens
            passes += result.passes
            differences += len(result.differences)
    print(f"{name}: {compared} tokens in {passes} passes, {differences} near-ties")
    assert compared > 4 * TOKENS
    assert differences < compared / 10, "near-ties are rare; a noise this large is no rounding"
    if name.startswith("wrong"):
        assert passes + len(QUESTIONS) + differences == compared, "nothing was accepted"


# --- the comparison itself, on the float32 target ---------------------------------------------------------------------


@pytest.fixture
def exact(tiny_models: TinyModels) -> Iterator[Target]:
    with closing(Target(read_header(tiny_models.wandering), context=256, threads=1, exact=True)) as target:
        yield target


@pytest.fixture
def drafter(tiny_models: TinyModels, device: Device) -> Iterator[Drafter]:
    with closing(Drafter(str(tiny_models.wandering_v2), device, context=256)) as drafter:
        yield drafter


@pytest.mark.parametrize("drafts", [1, 3, 7])
def test_with_float32_weights_nothing_differs(exact: Target, drafter: Drafter, drafts: int) -> None:
    for question in ("first", "second one", "3"):
        prompt = exact.vocabulary.render([Message("user", question)])
        result = compare(exact, drafter, prompt, 60, drafts)
        assert result.differences == () and result.lossless and result.tokens > 1


def test_where_an_answer_ends(exact: Target, drafter: Drafter, tiny_models: TinyModels, device: Device) -> None:
    """With its stop token, at its limit, where another answer differs, or where the context is full."""
    exact.tap(drafter.config.target_layers)
    stops = exact.vocabulary.is_stop
    for number in range(50):
        prompt = exact.vocabulary.render([Message("user", f"question {number}")])
        plain, _ = continue_greedily(exact, drafter, prompt, 1000, 0)
        if len(plain) > 20 and stops(plain[-1]):  # it does not end with the context
            break
    for drafts in (0, 7):
        ids, passes = continue_greedily(exact, drafter, prompt, 1000, drafts)
        assert ids == plain and [stops(token) for token in ids].index(True) == len(ids) - 1 > 20
        assert passes == len(ids) - 1 if drafts == 0 else passes < len(ids)
        assert continue_greedily(exact, drafter, prompt, 10, drafts)[0] == ids[:10]
        assert continue_greedily(exact, drafter, prompt, 20, drafts, given=ids[:12])[0] == ids[:20]
        other = [*ids[:5], ids[5] + 1, *ids[6:]]
        assert continue_greedily(exact, drafter, prompt, 20, drafts, like=other)[0] == ids[:6]
    with (
        closing(Target(read_header(tiny_models.counting), context=128, threads=1)) as endless,
        closing(Drafter(str(tiny_models.counting_v2), device, context=128)) as right,
    ):
        endless.tap(right.config.target_layers)
        for drafts in (0, 7):
            ids, _ = continue_greedily(endless, right, prompt, 1000, drafts)
            assert bytes(ids).startswith(b"abcdefgh") and endless.committed() == 128
            assert len(ids) == 128 - len(prompt) + 1, "the newest token is in no cache"


class Forgetful(Target):
    """Cuts one position too few in a drafted answer, as a fault in the cycle might: a rejected draft stays."""

    def rewind(self, sequence: int, length: int) -> None:
        super().rewind(sequence, length + bool(self.taps))


def test_answers_that_are_not_the_same_are_found(tiny_models: TinyModels, drafter: Drafter) -> None:
    """By a gap that no rounding explains. Drafter and target go on in step, so only the tokens can tell."""
    with closing(Forgetful(read_header(tiny_models.wandering), context=256, threads=1, exact=True)) as forgetful:
        prompt = forgetful.vocabulary.render([Message("user", "second one")])
        result = compare(forgetful, drafter, prompt, 40, 3)
    assert not result.lossless
    assert any(d.gap > 100 * d.noise for d in result.differences)


def test_a_near_tie_is_a_gap_of_at_most_twice_the_noise() -> None:
    def result(gap: float, noise: float) -> Comparison:
        return Comparison(5, 3, (Difference(2, 7, 8, gap, noise),))

    assert result(0.2, 0.1).lossless and result(0.0, 0.0).lossless
    assert not result(0.21, 0.1).lossless and not result(0.1, 0.0).lossless
    assert Comparison(5, 3, ()).lossless
