"""Questions as people put them, composed from patterns by task kind, and beginnings of those a model writes itself.

The patterns and what fills their gaps stand in words.json; the answers are the target's. Knows nothing of models.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.bench.suite import suite

_DATA = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))
_GAP = re.compile(r"\{(\w+)\}")

# How a question may begin that the model goes on writing itself; the empty one leaves it free.
STARTERS: tuple[str, ...] = tuple(_DATA["starters"])


@dataclass(frozen=True)
class Prompt:
    kind: str
    text: str


def composed(count: int, seed: int = 0) -> list[Prompt]:
    """Up to `count` different prompts, the kinds taking turns, and in each kind its patterns.

    None is a question of the benchmark's suite, on which drafters are measured.
    """
    measured = {question.text for question in suite()}
    rng = np.random.default_rng(seed)
    words: Mapping[str, Sequence[str]] = _DATA["words"]
    sources = {kind: _in_turn(rng, patterns, words) for kind, patterns in _DATA["patterns"].items()}
    sources["mathematics"] = _mathematics(rng)
    prompts: dict[str, Prompt] = {}
    while sources and len(prompts) < count:
        for kind in list(sources):
            text = next(sources[kind], None)
            if text is None:
                del sources[kind]
            elif len(prompts) < count and text not in measured:
                prompts.setdefault(text, Prompt(kind, text))
    return list(prompts.values())


def _in_turn(rng: np.random.Generator, patterns: Sequence[str], words: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Every filling of the patterns in random order, one pattern after another, until all have been given."""
    filled = []
    for pattern in patterns:
        gaps = _GAP.findall(pattern)
        texts = [pattern.format(**dict(zip(gaps, chosen))) for chosen in itertools.product(*(words[g] for g in gaps))]
        filled.append([texts[i] for i in rng.permutation(len(texts))])
    for row in itertools.zip_longest(*filled):
        yield from (text[0].upper() + text[1:] for text in row if text is not None)


def _mathematics(rng: np.random.Generator) -> Iterator[str]:
    """Exercises with other numbers each time, without an end."""

    def n(low: int, high: int) -> int:
        return int(rng.integers(low, high))

    things = ("apples", "books", "coins", "tickets", "pencils", "eggs", "stamps", "chairs")
    names = ("Mia", "Tom", "Sara", "Ali", "Lena", "Ben", "Noor", "Jon")
    shapes = ("rectangle", "garden", "room", "field", "pool")
    while True:
        thing, name = things[n(0, len(things))], names[n(0, len(names))]
        yield from (
            f"What is {n(11, 99)} times {n(3, 40)}?",
            f"What is {n(100, 999)} plus {n(100, 999)}?",
            f"{name} has {n(12, 60)} {thing} and gives away {n(2, 11)}. How many are left?",
            f"Solve for x: {n(2, 9)}x + {n(1, 20)} = {n(30, 99)}",
            f"What is {n(5, 60)} percent of {n(2, 50) * 10}?",
            f"A {shapes[n(0, 5)]} is {n(3, 20)} m long and {n(2, 15)} m wide. What is its area?",
            f"{n(3, 9)} {thing} cost {n(4, 40)} dollars. How much do {n(10, 20)} cost?",
            f"A car drives {n(2, 6)} hours at {n(40, 120)} km/h. How far does it go?",
            f"What is the average of {n(1, 20)}, {n(1, 30)}, {n(5, 40)} and {n(5, 50)}? Show your work.",
            f"Convert {n(2, 90)} kilometres to miles.",
            f"Is {n(50, 400)} a prime number? Explain.",
            f"Write {n(2, 9)}/{n(10, 16)} as a decimal and round it to two places.",
            f"What is the square root of {n(3, 20) ** 2}?",
            f"{name} earns {n(10, 30)} dollars an hour and works {n(5, 40)} hours. How much is that?",
        )
