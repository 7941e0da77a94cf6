"""The benchmark's report: every format holds the same figures, and reads well whatever is missing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from engine.bench.page import page
from engine.bench.plan import Variant
from engine.bench.report import for_terminal, write_report
from engine.bench.results import Agreement, Results, SampleTest
from engine.bench.sections import sections
from engine.bench.verdict import verdict
from engine.events import Mode
from tests.engine.bench_results import DRAFTERS, QUESTIONS, answer, part, results

BASE, ONE, TWO = Mode.BASELINE, Mode.DFLASH, Mode.DFLASH2
CODE, CHAT = QUESTIONS


def whole() -> Results:
    """The baseline makes 10 tokens/s, DFlash 12.5, DFlash 2 20; four at once make twice as many."""
    sweep = Variant("DFlash 2, 1 draft", TWO, DRAFTERS[TWO], 1, whole_block=True, sweep="draft-length")
    parts = []
    for mode, cycles, seconds in (
        (BASE, [(0, 0, 1)] * 10, 1.0),
        (ONE, [(1, 1, 2)] * 5, 0.8),
        (TWO, [(3, 1, 2)] * 5, 0.5),
    ):
        answers = [answer(question, mode, cycles, seconds, right=question is CODE) for question in QUESTIONS]
        parts.append(part(mode, 1, answers))
        parts.append(part(mode, 1, answers, concurrency=4, decode_s=seconds))
    found = results([*parts], concurrency=(1, 4), more=[sweep])
    swept = part(TWO, 1, [answer(CODE, TWO, [(1, 1, 2)] * 5, 0.4)])
    found.parts.append(type(swept)(**{**vars(swept), "variant": sweep.name}))
    found.compared = 12
    found.agreements.append(Agreement("DFlash", 4, 1, "chat 1", 7, 11, 12, 0.02, 0.015, True))
    found.samples.append(SampleTest("DFlash 2", 0.8, 160, 2, 14.2, 0.61))
    return found


class Balanced(HTMLParser):
    """Fails on tags that do not close; collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def checked(found: Results, beside: Results | None = None) -> str:
    """The text of the page, which is well formed, stands alone, and has no number that is none."""
    text = page("title", "subtitle", sections(found, beside))
    parser = Balanced()
    parser.feed(text)
    assert parser.open == [] and parser.links == []
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        Xml.fromstring(picture)
    assert not re.search(r"\b(None|nan|inf|True|False)\b", parser.text)
    return parser.text


def test_every_format_holds_the_same_figures(tmp_path: Path) -> None:
    found = whole()
    text = checked(found)
    assert "Some <processor> & more" in text, "escaped, and shown as it is"
    _, mark, raw = write_report(found, tmp_path)
    terminal = for_terminal(found)
    assert len(terminal.splitlines()) < 50
    for line, cells in (
        ("tokens/s, one at a time", ("10.0", "12.5", "20.0", "1.25", "1.60")),
        ("tokens/s in all, 4 at once", ("20.0", "25.0", "40.0", "1.25", "1.60")),
        ("acceptance length", ("–", "2.00", "2.00", "–", "1.00")),
        ("drafts accepted, %", ("–", "100", "33", "–", "–")),
        ("verification passes", ("–", "10", "10", "–", "–")),
        ("ready after, s", ("2.00", "2.25", "2.25", "–", "–")),
        ("peak memory, MiB", ("320", "350", "350", "–", "–")),
        ("drafter on disk, MB", ("–", "25.0", "25.0", "–", "–")),
        ("right answers", ("1 of 2", "1 of 2", "1 of 2", "–", "–")),
    ):
        assert re.search(re.escape(line) + r"\s+" + r"\s+".join(map(re.escape, cells)) + r"\s*\n", terminal), line
        assert f"| {line} | {' | '.join(cells)} |" in mark.read_text("utf-8")
        assert re.search(re.escape(line) + r"\s+" + r"\s+".join(map(re.escape, cells)), text)
    assert raw.exists()
    assert "| DFlash 2, 1 draft | 2.00 | 2.00 | 25.0 | 2.50 | – |" in mark.read_text("utf-8")


def test_the_verdict_says_what_the_figures_say() -> None:
    said = " ".join(verdict(whole()))
    assert "against the baseline's tokens/s, DFlash 1.25 × (one run) and DFlash 2 2.00 ×" in said
    assert "Against DFlash's, DFlash 2 1.60 × (one run)." in said and "in every run" not in said
    assert "tokens/s in all 2.00 × with Baseline" in said
    assert "11 of 12 greedy answers" in said and "1 at a near-tie" in said
    assert "p = 0.61, no difference" in said
    assert "DFlash 2 +0.25 s of start-up, +30 MiB of memory and 25.0 MB on disk" in said


def three(first: float, second: float, others_load: float = 0.0) -> Results:
    """Two runs in which DFlash takes `first` of the baseline's time, and DFlash 2 `second`."""
    parts = []
    for run, slow in ((1, 1.0), (2, 1.1)):
        for mode, share in ((BASE, 1.0), (ONE, first), (TWO, second)):
            cycles = [(0, 0, 1)] * 10 if mode is BASE else [(1, 1, 2)] * 5
            found = part(mode, run, [answer(CODE, mode, cycles, slow * share)])
            parts.append(replace(found, others_load=others_load))
    return results(parts, runs=2)


def test_who_is_faster_is_said_where_all_runs_agree_on_a_quiet_machine() -> None:
    said = " ".join(verdict(three(0.8, 0.5)))
    assert "DFlash 1.25 × (1.25–1.25 in 2 runs, faster)" in said
    assert "The order DFlash 2, DFlash, baseline held in every run." in said
    assert "The order DFlash 2, DFlash, baseline did not hold in every run." in " ".join(verdict(three(0.5, 0.8)))
    said = " ".join(verdict(three(0.8, 0.5, others_load=0.4)))
    assert "faster" not in said and "The order" not in said and "too busy a machine to judge" in said
    assert "Other programs took up to 40% of the processors" in said


def test_a_mode_that_does_what_the_baseline_does_is_not_praised_for_it() -> None:
    plain = [answer(CODE, ONE, [(0, 0, 1)] * 10, 0.9)]
    said = verdict(results([part(ONE, 1, plain), part(BASE, 1, [answer(CODE, BASE, [(0, 0, 1)] * 10, 1.0)])]))
    assert any("hardly anything was drafted" in s and "DFlash (1.00 tokens per target pass)" in s for s in said)


def test_a_mode_that_is_slower_is_called_slower() -> None:
    found = results(
        [
            part(BASE, 1, [answer(CODE, BASE, [(0, 0, 1)] * 10, 1.0)]),
            part(ONE, 1, [answer(CODE, ONE, [(3, 0, 1)] * 10, 2.0)]),
            part(BASE, 2, [answer(CODE, BASE, [(0, 0, 1)] * 10, 1.0)]),
            part(ONE, 2, [answer(CODE, ONE, [(3, 0, 1)] * 10, 1.6)]),
        ],
        modes=(BASE, ONE), missing=[(TWO, "No DFlash 2 drafter was found.")], runs=2,
    )  # fmt: skip
    said = " ".join(verdict(found))
    assert "DFlash 0.56 × (0.50–0.62 in 2 runs, slower)" in said
    assert "DFlash 2 was not measured. No DFlash 2 drafter was found." in said
    assert "Against DFlash" not in said and "held" not in said


@pytest.mark.parametrize("modes", [(BASE,), (TWO,), (ONE, TWO), ()])
def test_a_report_with_modes_missing_reads_well(modes: tuple[Mode, ...]) -> None:
    parts = [part(mode, 1, [answer(CODE, mode, [(1, 0, 1)] * 3, 1.0)]) for mode in modes]
    left_out = [(mode, f"There is no {mode.value}.") for mode in (ONE, TWO) if mode not in modes]
    found = results(parts, modes=modes, missing=left_out)
    found.note = "It was stopped after 0 of 3 parts; what was measured until then is here."
    text = checked(found)
    assert found.note in text and all(reason in text for _, reason in left_out)
    terminal = for_terminal(found)
    assert found.note in terminal.replace("\n  ", " ")
    rows = [line for line in terminal.splitlines() if line.startswith("tokens/s, one at a time")]
    assert rows[0].split()[5:8] == [("3.0" if mode in modes else "–") for mode in Mode]


def test_a_run_that_was_stopped_is_named_below_the_table() -> None:
    found = results([part(ONE, 1, [answer(CODE, ONE, [(1, 1, 2)] * 4, 0.5)], complete=False)])
    assert "DFlash was stopped before its end, in one run at least: 1 of 2 questions." in checked(found)


def test_a_part_that_failed_is_reported() -> None:
    found = results(
        [
            part(BASE, 1, [answer(CODE, BASE, [(0, 0, 1)], 1.0)]),
            part(ONE, 1, [], complete=False, error="The drafter is damaged."),
        ]
    )
    assert "DFlash could not be measured: The drafter is damaged." in checked(found)


def test_another_report_is_laid_beside_it() -> None:
    ours, theirs = whole(), whole()
    theirs.parts = [p for p in theirs.parts if p.variant != "DFlash 2"]
    theirs.machine["threads_used"] = 1
    text = checked(ours, theirs)
    assert "What differs: the threads." in text
    assert re.search(r"DFlash\n0\n4\n25\.0\n25\.0\n1\.00\n", text)
    assert not re.search(r"DFlash 2\n0\n4\n40\.0\n40\.0", text)
