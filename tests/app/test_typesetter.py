"""The process that colours code and sets formulas: what it answers, and what becomes of requests that it does not."""

from __future__ import annotations

import re

import psutil
import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.typesetter import Runs, Typesetter
from app.typesetting import STYLES, answer, formula, runs_of
from tests.app.conftest import WAIT_MS


class Receiver(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.taken: list[Runs | None] = []

    def take(self, runs: Runs | None) -> None:
        self.taken.append(runs)


def test_code_is_told_apart() -> None:
    code = "def f():\n    return '안녕'  # note\n"
    runs = runs_of(code, "python title=x")
    assert runs is not None and sum(length for length, _ in runs) == len(code)
    found, position = {}, 0
    for length, style in runs:
        found[code[position : position + length].strip()] = STYLES[style]
        position += length
    assert found["def"] == "keyword" and found["f"] == "name" and found["'안녕'"] == "string"
    assert found["# note"] == "comment"
    assert runs_of(code, "no such language") is None


@pytest.mark.filterwarnings("ignore:path is deprecated")  # how ziamath opens its font
def test_formulas_are_set_or_said_to_be_unreadable() -> None:
    found = formula(r"\frac{a}{b} + \sqrt{x}", True)
    assert found is not None and found["svg"].startswith("<svg") and found["ascent"] > found["descent"] > 0
    assert answer({"id": 1, "formula": r"\nosuchcommand{x}", "display": False}) == {"id": 1, "formula": None}
    for latex in ("x_{", r"\frac{a}{"):
        assert "error" in answer({"id": 1, "formula": latex, "display": False})


@pytest.mark.filterwarnings("ignore:path is deprecated")
def test_letters_that_the_mathematical_font_lacks_are_put_in_as_text() -> None:
    found = formula(r"\text{속도 v} = \frac{\text{거리}}{t_{시간}} + x", True)
    assert found is not None
    letters = re.findall(
        r'<text x="([-\d.]+)" y="([-\d.]+)" font-size="([\d.]+)" fill="black">(.)</text>', found["svg"]
    )
    assert [letter for *_, letter in letters] == list("속도거리시간") and "#01" not in found["svg"]
    x, y, size = ({letter: float(one[index]) for one in letters for letter in one[3]} for index in range(3))
    assert x["속"] < x["도"] < x["거"] < x["리"] and y["거"] < y["속"] < y["시"] and size["시"] < size["속"]


@pytest.fixture
def typesetter(qtbot: QtBot) -> Typesetter:
    return Typesetter()


def test_a_process_that_dies_costs_one_request(typesetter: Typesetter, qtbot: QtBot) -> None:
    receiver = Receiver()
    children = set(psutil.Process().children())
    typesetter.color("x = 1", "python", receiver.take)
    assert not typesetter.knows("x^2", False)
    (process,) = set(psutil.Process().children()) - children
    process.kill()
    qtbot.waitSignal(typesetter.formula_set, timeout=WAIT_MS).wait()
    assert receiver.taken == [None]
    assert typesetter.knows("x^2", False) and typesetter.formula("x^2", False) is not None
    (process,) = set(psutil.Process().children()) - children
    typesetter.stop()
    assert not process.is_running()


def test_what_was_asked_before_a_stop_is_answered_after_it(typesetter: Typesetter, qtbot: QtBot) -> None:
    receiver = Receiver()
    typesetter.color("{}", "json", receiver.take)
    typesetter.stop()
    assert typesetter.busy and not receiver.taken
    typesetter.resume()
    qtbot.waitUntil(lambda: bool(receiver.taken), timeout=WAIT_MS)
    assert receiver.taken[0] is not None
    typesetter.stop()
