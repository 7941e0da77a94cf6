"""The comparison of quantisations: its perplexity against the obvious way to compute it, and its timing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine import quantisation_bench
from engine.gguf_file import read_header
from engine.quantisation_bench import ROWS, _perplexity, _texts, _times
from engine.target import Target


@pytest.fixture
def target(target_file: Path) -> Iterator[Target]:
    target = Target(read_header(target_file), context=512, threads=1)
    yield target
    target.close()


def test_perplexity_is_that_of_reading_one_token_after_another(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantisation_bench, "_WINDOW", 100)
    monkeypatch.setattr(quantisation_bench, "_CONTEXT", 20)
    monkeypatch.setattr(quantisation_bench, "_WINDOWS", 1)
    text = _texts()[1]
    found = _perplexity(target, text)

    ids = target.vocabulary.tokenize(text)[:100]
    target.cut(0, 0)
    surprises = []
    for at, token in enumerate(ids[:-1]):
        logits = target.evaluate([(0, [token])]).logits[0].astype(np.float64)
        if at >= 20:
            surprises.append(np.log(np.exp(logits).sum()) - logits[ids[at + 1]])
    assert len(surprises) == 79
    assert found == pytest.approx(math.exp(np.mean(surprises)), rel=0.02)  # batched kernels round differently
    assert 2 < found < 200


def test_every_number_of_tokens_is_timed_in_every_round(target: Target) -> None:
    times = _times({"one": target}, 2)
    assert {key: len(found) for key, found in times.items()} == {("one", rows): 6 for rows in ROWS}
    assert all(milliseconds > 0 for found in times.values() for milliseconds in found)
