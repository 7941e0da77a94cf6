"""The NumPy twin computes what the reference recorded: every other test of a drafter may then compare with the twin."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fixture_files import FIXTURES, Record, relative_difference
from tests.numpy_drafter import NumpyDrafter

TOLERANCE = 1e-4  # of the largest value


@pytest.mark.parametrize("name", FIXTURES)
def test_agrees_with_the_recorded_cycles(name: str) -> None:
    record = Record.load(name)
    drafter = NumpyDrafter(record.drafter)
    for cycle in record.cycles:
        drafter.inject(cycle.features)
        assert len(drafter.positions) == cycle.start
        draft = drafter.draft(cycle.anchor, cycle.start)
        assert relative_difference(draft.hidden, cycle.hidden) < TOLERANCE
        assert relative_difference(draft.logits, cycle.logits) < TOLERANCE
        assert draft.path.tolist() == cycle.path.tolist()
        if cycle.candidates is not None:
            assert draft.candidates is not None and draft.candidates.tolist() == cycle.candidates.tolist()
            assert relative_difference(draft.unary, cycle.unary) < TOLERANCE
            assert relative_difference(draft.score_first, cycle.score_first) < TOLERANCE
            assert relative_difference(draft.score_rest, cycle.score_rest) < TOLERANCE
            assert relative_difference(draft.q_rows(0.7), cycle.q_rows) < TOLERANCE
        assert len(drafter.positions) == cycle.start, "a draft leaves nothing in the cache"


def test_versions_are_told_by_their_tensors() -> None:
    kinds = {name: NumpyDrafter(Record.load(name).drafter).is_v2 for name in FIXTURES}
    assert [name for name, is_v2 in kinds.items() if not is_v2] == ["dflash1"]


def test_cut_forgets_the_later_positions() -> None:
    record = Record.load("dflash2")
    features = record.cycles[0].features
    kept, cut = NumpyDrafter(record.drafter), NumpyDrafter(record.drafter)
    kept.inject(features[:20])
    cut.inject(features)
    cut.cut(20)
    cut.inject(features[20:25])
    kept.inject(features[20:25])
    assert cut.positions.tolist() == list(range(25))
    for layer in range(kept.layers):
        np.testing.assert_allclose(cut.keys[layer], kept.keys[layer], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(cut.values[layer], kept.values[layer], rtol=1e-4, atol=1e-5)
