"""Costs of passes, the calibration of confidence, and the record of a pair that keeps both."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from engine import ggml
from engine.acceptance import Acceptance
from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.errors import Cancelled
from engine.gguf_file import read_header
from engine.graph import Device
from engine.pair_record import PairRecord, record_path
from engine.pass_costs import CostCurve
from engine.target import Target

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels


def test_sizes_that_were_not_measured_lie_between() -> None:
    curve = CostCurve({1: 1.0, 4: 2.5, 8: 3.5})
    assert curve.curve((1, 2, 4, 6, 8, 10), 0) == pytest.approx([1.0, 1.5, 2.5, 3.0, 3.5, 4.0])
    for wrong in ({}, {1: 0.0}, {0: 1.0}, {1: float("nan")}):
        with pytest.raises(ValueError, match="cost curve"):
            CostCurve(wrong)


def test_what_is_seen_corrects_the_first_measurement() -> None:
    """A few passes that were held up change nothing; sizes and depths that were not seen follow those that were."""
    curve = CostCurve({1: 1.0, 8: 3.0})
    rng = np.random.default_rng(0)
    for _ in range(40):
        curve.observe(8, 100, 6.0 * (10 if rng.random() < 0.2 else 1))
    assert curve.at(8, 100) == 6.0 and curve.at(1, 100) == 2.0, "twice as slow as measured"
    for _ in range(9):
        curve.observe(8, 3000, 9.0)
    assert curve.at(8, 3000) == 9.0 and curve.at(1, 3000) == 3.0 and curve.at(8, 100) == 6.0
    kept = CostCurve.from_dict(json.loads(json.dumps(curve.as_dict())))
    assert (kept.at(8, 3000), kept.at(8, 100), kept.at(1, 100)) == (9.0, 6.0, 2.0)


def test_confidence_becomes_the_chance_that_was_seen() -> None:
    rng = np.random.default_rng(1)
    acceptance = Acceptance()
    for _ in range(4000):
        confidence = float(rng.random())
        acceptance.learn(int(rng.integers(1, 8)), confidence, float(rng.random() < confidence**2))
    chances = [acceptance.chances([0.0] * 3 + [confidence])[3] for confidence in np.linspace(0, 1, 101)]
    assert chances == sorted(chances), "monotone"
    for confidence in (0.25, 0.55, 0.85):
        (chance,) = acceptance.chances([confidence])
        assert chance == pytest.approx(confidence**2, abs=0.12)
    for row in acceptance.reliability():
        assert row.accepted == pytest.approx(row.chance, abs=0.1)
    kept = Acceptance.from_dict(json.loads(json.dumps(acceptance.as_dict())))
    assert kept.chances([0.3, 0.9]) == acceptance.chances([0.3, 0.9])


def test_a_pair_is_measured_once_and_remembered(
    tiny_models: TinyModels, device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DFLASH_CHAT_CACHE", str(tmp_path))  # with no pair that another test has measured
    with (
        closing(Target(read_header(tiny_models.wandering), context=128, threads=1)) as target,
        closing(
            Drafter(
                str(tiny_models.wandering_v2), device, context=128, key_value_type=ggml.F32,
                shared=SharedTensors(target.embeddings, target.head),
            )
        ) as drafter,
    ):  # fmt: skip
        prompt = target.vocabulary.tokenize("a question")
        target.tap(drafter.config.target_layers)
        drafter.inject(target.evaluate([(0, prompt)], last_only=True).features)
        held = [array.copy() for array in drafter.key_values()]
        assert PairRecord.read(target, drafter) is None
        cancel = threading.Event()
        cancel.set()
        with pytest.raises(Cancelled):
            PairRecord.measured(target, drafter, cancel, lambda _fraction: None)
        heard: list[float] = []
        record = PairRecord.measured(target, drafter, threading.Event(), heard.append)
        assert heard == sorted(heard) and heard[-1] == 1.0
        assert target.tokens() == prompt and drafter.committed() == len(prompt)
        for before, after in zip(held, drafter.key_values()):
            np.testing.assert_array_equal(before, after)
        kept = PairRecord.read(target, drafter)
        assert kept is not None
        assert kept.verify.at(4, 0) == pytest.approx(record.verify.at(4, 0))
        path = record_path(target, drafter)
        assert [file.name for file in path.parent.iterdir()] == [path.name]
        path.write_text(path.read_text("utf-8")[:-9], "utf-8")
        assert PairRecord.read(target, drafter) is None, "half a record"
        path.unlink()
