"""What is told of every token beside its id: its bytes, and the target's likeliest tokens there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from engine.events import Mode, SamplerSettings, Tokens
from engine.sampling import Sampler
from engine.session import CANDIDATES, Session
from tests.conversation import answered, ask, of_type, opened

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

MODES = list(Mode)
PENALISED = SamplerSettings(repetition_penalty=1.3, presence_penalty=0.5)
SAMPLED = SamplerSettings(temperature=0.8, top_k=7, top_p=0.99, min_p=0.0, seed=3)
Row = tuple[tuple[str, float], ...]


def rows_of(session: Session, mode: Mode, sampler: SamplerSettings) -> tuple[str, list[Row]]:
    """The answer, and the candidates of each of its tokens, after checking what holds for every one."""
    session.reset()
    events = ask(session, "Say", mode=mode, sampler=sampler, max_tokens=24, draft_length=3, candidates=True)
    rows: list[Row] = []
    for part in of_type(events, Tokens):
        assert len(part.candidates) == len(part.pieces) == len(part.ids)
        for piece, row in zip(part.pieces, part.candidates):
            shares = [p for _, p in row]
            assert 0 < len(row) <= CANDIDATES and shares == sorted(shares, reverse=True)
            assert shares[-1] > 0 and sum(shares) <= 1 + 1e-6
            if sampler.temperature == 0:
                assert row[0][0] == piece.decode() and len(row) == CANDIDATES
        rows += part.candidates
    return answered(events).text, rows


@pytest.mark.parametrize("sampler", [SamplerSettings(), PENALISED, SAMPLED], ids=["greedy", "penalised", "sampled"])
def test_all_modes_tell_the_same_of_the_same_text(wandering: Session, sampler: SamplerSettings) -> None:
    """As far as the texts are equal: sampled ones part where a draft's random numbers come in."""
    text, plain = rows_of(wandering, Mode.BASELINE, sampler)
    for mode in MODES[1:]:
        other, rows = rows_of(wandering, mode, sampler)
        assert sampler is SAMPLED or other == text
        for place, (mine, theirs) in enumerate(zip(plain, rows)):
            assert [p for _, p in mine] == pytest.approx([p for _, p in theirs], abs=1e-2)
            if text[place : place + 1] != other[place : place + 1]:
                break


def test_they_are_the_softmax_or_what_the_settings_left_of_it() -> None:
    logits = np.array([[2.0, 1.0, 3.0, 0.0], [0.0, 0.0, 0.0, 5.0]], np.float32)
    soft = np.exp(logits[0]) / np.exp(logits[0]).sum()
    first, second = Sampler(SamplerSettings()).candidates(logits, (2,), 3)
    assert [token for token, _ in first] == [2, 0, 1] and [p for _, p in first] == pytest.approx(soft[[2, 0, 1]])
    assert second[0][0] == 3
    (row,) = Sampler(SamplerSettings(temperature=2.0, top_k=2, top_p=1.0, min_p=0.0)).candidates(logits[:1], (), 3)
    two = np.exp(logits[0, [2, 0]] / 2)
    assert [token for token, _ in row] == [2, 0] and [p for _, p in row] == pytest.approx(two / two.sum())
    penalised = Sampler(SamplerSettings(presence_penalty=9.0), [2]).candidates(logits, (0,), 4)
    assert [token for token, _ in penalised[0]] == [0, 1, 3, 2]
    assert [token for token, _ in penalised[1]] == [3, 1, 0, 2], "the draft before it counts as seen"


def test_without_being_asked_for_there_are_none_and_the_pieces_spell_the_answer(tiny_models: TinyModels) -> None:
    with opened(tiny_models.counting, v2=tiny_models.counting_v2) as session:
        events = ask(session, "count!", mode=Mode.DFLASH2, max_tokens=20)
        parts = of_type(events, Tokens)
        assert all(part.candidates == () for part in parts)
        assert b"".join(piece for part in parts for piece in part.pieces).decode() == answered(events).text
        session.reset()
        first = of_type(ask(session, "count!", max_tokens=1, candidates=True), Tokens)[0]
        assert first.candidates[0][0][0] == "a"
        assert session._target.vocabulary.label(session._target.vocabulary.tokenize("<|im_end|>", special=True)[0]) == (
            "<|im_end|>"
        )
