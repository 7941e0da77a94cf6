"""A drafter whose file is damaged, so that it computes values that are not numbers, changes no word of the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.drafter_config import DrafterConfig
from engine.events import Answered, ContextNotice, Event, Mode, SamplerSettings
from engine.gguf_file import read_header
from engine.selector import Lattice
from engine.verify import verify_sampled
from tests import tiny_chat
from tests.conversation import opened
from tests.engine.conftest import TinyModels


def _damaged(path: Path, version: int, **changes: Any) -> Path:
    sound = DrafterConfig.from_header(read_header(tiny_chat.wandering_drafter(path, version, **changes)))
    nan = np.full(sound.hidden_size, np.nan, np.float32)
    return tiny_chat.wandering_drafter(path, version, tensors={"output_norm.weight": nan}, **changes)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("mode", [Mode.DFLASH, Mode.DFLASH2])
def test_the_answer_is_the_targets_and_it_is_said(
    tiny_models: TinyModels, tmp_path: Path, mode: Mode, temperature: float
) -> None:
    v1 = _damaged(tmp_path / "v1.gguf", 1, own_embeddings=False)
    v2 = _damaged(tmp_path / "v2.gguf", 2)
    sampler = SamplerSettings(temperature, top_k=8, seed=7)
    answers: list[list[Event]] = []
    with opened(tiny_models.wandering, v1, v2) as session:
        for used in (Mode.BASELINE, mode):
            session.reset()
            answers.append(list(session.ask("hello", mode=used, sampler=sampler, max_tokens=24)))
    plain, drafted = answers
    ends = [events[-1] for events in answers]
    assert all(isinstance(end, Answered) for end in ends)
    assert ends[0].token_ids == ends[1].token_ids  # type: ignore[union-attr]
    assert not any(isinstance(event, ContextNotice) for event in plain)
    (notice,) = [event for event in drafted if isinstance(event, ContextNotice)]
    assert "not numbers" in notice.sentence and "download it again" in notice.sentence
    assert ends[1].statistics.acceptance_length is None  # type: ignore[union-attr]


def test_scores_that_are_no_numbers_make_a_lattice_unusable() -> None:
    candidates, unary = np.zeros((2, 3), np.int32), np.zeros((2, 3), np.float32)
    first, rest = np.zeros(3, np.float32), np.zeros((1, 3, 3), np.float32)
    assert Lattice(candidates, unary).is_usable and Lattice(candidates, unary, first, rest).is_usable
    for broken in (unary, first, rest):
        kept = broken.copy()
        broken.flat[1] = np.inf
        assert not Lattice(candidates, unary, first, rest).is_usable
        broken[...] = kept


def test_no_draft_is_accepted_against_a_proposal_that_is_no_number() -> None:
    from engine.sampling import Distribution

    p = [Distribution(np.array([1, 2], np.int32), np.array([0.5, 0.5]))] * 2
    q = (Distribution(np.array([1, 2], np.int32), np.array([np.nan, np.nan])),)
    with pytest.raises(ValueError, match="no probability"):
        verify_sampled(p, [1], q, np.random.default_rng(1))
