"""A target with recurrent states: they are copied as often as a drafter needs it, and answers stay the target's own."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engine.errors import Cancelled
from engine.events import Mode, SamplerSettings
from engine.gguf_file import read_header
from engine.target import Target
from tests.conversation import answer_to, opened
from tests.hybrid_target import hybrid_target
from tests.tiny_chat import wandering_drafter

GREEDY = SamplerSettings(temperature=0)
IDS = np.random.default_rng(0).integers(97, 120, 30).tolist()


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hybrid_target(tmp_path_factory.mktemp("hybrid") / "hybrid.gguf")


@pytest.fixture(scope="module")
def drafter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hybrid") / "drafter.gguf"
    return wandering_drafter(path, 2, hidden_size=64, target_layers=(1, 3))


def test_as_many_positions_can_be_cut_as_states_are_kept(hybrid: Path) -> None:
    sizes = []
    for states in (0, 4):
        with closing(Target(read_header(hybrid), context=256, threads=1, states=states)) as target:
            sizes.append(target.context_bytes)
            target.evaluate([(0, IDS[:20])])
            expected = target.evaluate([(0, IDS[20:28])]).logits[4].copy()
            assert target.cut(0, 28 - states) == 28 - states
            if states:
                assert np.allclose(target.evaluate([(0, IDS[24:25])]).logits[0], expected, atol=1e-4)
            assert target.cut(0, target.committed() - states - 1) == 0, "and no more"
    assert sizes[0] < sizes[1]


def test_more_states_can_be_asked_for_later(hybrid: Path) -> None:
    with closing(Target(read_header(hybrid), context=256, threads=1, states=2)) as target:
        target.tap((1, 3))
        before = target.context_bytes
        result = target.evaluate([(0, IDS)])
        logits, features = result.logits[-1].copy(), result.features[1].copy()
        target.keep_states(2)
        assert (target.committed(), target.context_bytes) == (len(IDS), before), "there were as many already"
        target.keep_states(6)
        assert target.committed() == 0 and target.context_bytes > before
        result = target.evaluate([(0, IDS)])
        assert (result.logits[-1] == logits).all() and (result.features[1] == features).all()
        assert target.cut(0, len(IDS) - 6) == len(IDS) - 6


def test_a_broken_pass_forgets_the_states(hybrid: Path) -> None:
    """It may have computed some of them already."""
    with closing(Target(read_header(hybrid), context=256, threads=1, states=16)) as target:
        target.evaluate([(0, IDS[:20])])
        stop = threading.Event()
        stop.set()
        target.cancellable(stop)
        with pytest.raises(Cancelled):
            target.evaluate([(0, IDS[20:28])])
        assert target.committed() == 0


@pytest.mark.parametrize("draft_length", [7, None])
def test_answers_are_the_targets_own(hybrid: Path, drafter: Path, draft_length: int | None) -> None:
    with opened(hybrid, v2=drafter, context=256) as session:
        plain = answer_to(session, "Why?", sampler=GREEDY, max_tokens=40)
        session.reset()
        held = session._target.tokens()
        drafted = answer_to(
            session, "Why?", mode=Mode.DFLASH2, sampler=GREEDY, max_tokens=40, draft_length=draft_length
        )  # fmt: skip
        assert drafted.token_ids == plain.token_ids and len(plain.token_ids) > 8
        assert session._target.tokens() is held, "the context is the one that was loaded"
        if draft_length:
            rate = drafted.statistics.acceptance_rate
            assert rate is not None and 0 < rate < 1


def test_a_drafter_that_is_found_later_gets_its_states(hybrid: Path, drafter: Path) -> None:
    with opened(hybrid, context=256) as session:
        plain = answer_to(session, "Why?", sampler=GREEDY, max_tokens=40)
        without = session.memory().target_context
        session.reset()
        session.find_drafters({Mode.DFLASH2: str(drafter)})
        drafted = answer_to(session, "Why?", mode=Mode.DFLASH2, sampler=GREEDY, max_tokens=40, draft_length=7)
        assert drafted.token_ids == plain.token_ids
        assert session.memory().target_context > without
