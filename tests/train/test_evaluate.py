"""The arithmetic of evaluation, on answers made up by hand, and the card's pictures. Without PyTorch."""

from __future__ import annotations

import xml.etree.ElementTree as Xml
from pathlib import Path

import numpy as np
import pytest

from engine.ablation import PlainChoice, without_convolution
from engine.drafter import Drafter
from engine.events import Mode, SamplerSettings
from engine.gguf_file import read_header
from engine.graph import Device
from engine.pictures import line_chart
from engine.target import Target
from engine.train import evaluate
from engine.train.evaluate import Answer, Question, acceptance_length, by_kind, by_position, ratio
from engine.train.measurements import Measurements
from engine.vocabulary import Message
from tests.train.test_start_and_export import DESIGN, exported


def test_acceptance_length_weighs_passes_and_its_interval_holds_it() -> None:
    found = [Answer("a", 30, 10, ()), Answer("b", 10, 10, ())]
    assert acceptance_length(found).value == 2.0  # not the mean of the answers' own, which is the same here ...
    assert acceptance_length([Answer("a", 30, 10, ()), Answer("b", 1, 1, ())]).value == pytest.approx(
        31 / 11
    )  # ... but not here
    estimate = acceptance_length([Answer("a", 20 + i % 3, 10, ()) for i in range(40)])
    assert estimate.low < estimate.value < estimate.high
    assert estimate.high - estimate.low < 0.1
    same = acceptance_length([Answer("a", 20, 10, ())] * 5)
    assert (same.low, same.value, same.high) == (2.0, 2.0, 2.0)
    assert str(same) == "2.00 (2.00–2.00)"


def test_a_ratio_pairs_the_questions() -> None:
    rng = np.random.default_rng(0)
    base = [Answer("a", int(rng.integers(10, 90)), 10, ()) for _ in range(30)]
    better = [Answer("a", int(1.2 * answer.emitted), 10, ()) for answer in base]
    found = ratio(better, base)
    assert found.value == pytest.approx(1.2, abs=0.02)
    assert found.high - found.low < 0.02  # the questions differ widely, the pairs hardly at all


def test_acceptance_by_position_falls() -> None:
    found = [Answer("a", 0, 0, (0, 3, 1)), Answer("a", 0, 0, (2,))]
    assert by_position(found, 4) == [0.75, 0.5, 0.25, 0.0]
    assert list(by_kind([Answer("a", 0, 0, ()), Answer("b", 0, 0, ()), Answer("a", 0, 0, ())])) == ["a", "b"]


def test_nothing_is_measured_twice(tmp_path: Path) -> None:
    times = []

    def measure() -> int:
        times.append(1)
        return 5

    path = tmp_path / "results.json"
    assert Measurements(path).once(("a", "b"), measure) == 5
    assert Measurements(path).once(("a", "b"), measure) == 5
    assert Measurements(path).once(("a", "c"), measure) == 5
    assert len(times) == 2


def test_a_chart_shows_every_line() -> None:
    chart = line_chart("A & B", "x", "y", {"one": [(1, 2.0), (2, 3.0)], "two": [(1, 1.0), (2, 0.5)]})
    tree = Xml.fromstring(chart)
    lines = [e for e in tree.iter() if e.tag.endswith("polyline")]
    texts = [e.text for e in tree.iter() if e.tag.endswith("text")]
    assert len(lines) == 2
    assert {"A & B", "one", "two", "x", "y"} <= set(texts)
    # higher values stand higher
    first, second = (float(p.split(",")[1]) for p in (lines[0].get("points") or "").split())
    assert second < first
    with pytest.raises(ValueError):
        line_chart("", "", "", {})


def test_parts_of_a_drafter_are_left_out_and_the_text_stays(tiny_file: Path, device: Device, tmp_path: Path) -> None:
    header = read_header(str(tiny_file))
    path = tmp_path / "drafter.gguf"
    exported(header, path, Mode.DFLASH2)
    plain = without_convolution(path, tmp_path / "plain.gguf")
    target = Target(header, context=256, threads=1)
    try:
        question = Question("x", tuple(target.vocabulary.render([Message("user", "What is 3 plus 4?")])))
        texts, hidden = [], []
        variants: tuple[tuple[Path, type[Drafter]], ...] = ((path, Drafter), (path, PlainChoice), (plain, Drafter))
        for file, kind in variants:
            with evaluate.opened(file, target, device, kind) as drafter:
                answer, ids = evaluate.decode(target, drafter, question, 32, 7, SamplerSettings(temperature=0.0))
                assert answer.emitted == len(ids) - 1
                assert answer.passes == len(answer.accepted) <= answer.emitted
                texts.append(ids)
                evaluate.read_prompt(target, drafter, question.ids)
                hidden.append(drafter.trace(65).hidden)
                (lattice,) = drafter.draft([65])
                assert (lattice.first is None) == (kind is PlainChoice)
                found = evaluate.accuracy(target, drafter, [(question.ids, 4)], step=1)
                assert found.anchors == len(question.ids) - 5
                assert all(a <= b for a, b in zip(found.top_1, found.top_k))
                assert len(found.top_1) == DESIGN.block - 1
        plainly = evaluate.decode(target, None, question, 32, 0, SamplerSettings(temperature=0.0))[1]
        assert texts == [plainly] * 3
        assert np.array_equal(hidden[0], hidden[1])
        assert not np.allclose(hidden[0], hidden[2])
    finally:
        target.close()
