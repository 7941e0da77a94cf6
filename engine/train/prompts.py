"""Questions as people put them, composed from patterns by task kind, and beginnings for questions a model writes itself.

The patterns only say how people ask; the answers are the target's. Knows nothing of models.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Prompt:
    kind: str
    text: str



# How a question may begin that the model goes on writing itself; the empty one leaves it free.


def _mathematics(rng: np.random.Generator) -> Iterator[str]:
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


def _cycle(rng: np.random.Generator, *groups: list[str]) -> Iterator[str]:
    """The texts of each group in random order, one group after another, until all have been given."""
    shuffled = [[group[i] for i in rng.permutation(len(group))] for group in groups]
    for row in itertools.zip_longest(*shuffled):
        yield from (text for text in row if text is not None)


def composed(count: int, seed: int = 0) -> list[Prompt]:
    """Up to `count` different prompts, the kinds taking turns."""
    rng = np.random.default_rng(seed)
    tasks = [f"Write a {a} function that {b}." for a in words["languages"] for b in words["code_tasks"]]
    tasks += [f"How do I write a program in {a} that {b}?" for a in words["languages"] for b in words["code_tasks"]]
    sources: dict[str, Iterator[str]] = {
        "code": _cycle(
            rng,
            tasks,
            [f"What is the difference between {topic}?" for topic in words["code_topics"]],
            [f"{ask} {snippet}" for ask in ("What does this code do?", "Explain this code:") for snippet in words["snippets"]],
            [f"Write a SQL query that returns {what}." for what in words["sql"]],
        ),
        "mathematics": _mathematics(rng),
        "explanation": _cycle(
            rng,
            [f"Explain {subject} to {audience}." for subject in words["subjects"] for audience in words["audiences"]],
            [f"Can you explain {subject} in a few sentences?" for subject in words["subjects"]],
            [f"What should I know about {subject}?" for subject in words["subjects"]],
            list(words["facts"]),
        ),
        "chat": _cycle(
            rng,
            [f"{worry[0].upper()}{worry[1:]}. {ask}" for worry in words["worries"]
             for ask in ("What can I do?", "Any advice?", "Please help me.")],
            [f"{ask} {thing}{end}" for thing in words["things"]
             for ask, end in (("Can you suggest", "?"), ("Recommend", "."), ("I am looking for", ". Any ideas?"))],
            [f"What is better, {choice}?" for choice in words["choices"]] + [f"Should I choose {choice}?" for choice in words["choices"]],
            [f"What can I cook with {food}?" for food in words["cooking"]] + [f"Give me a recipe with {food}." for food in words["cooking"]],
        ),
        "summarising": _cycle(
            rng,
            [f"{ask}: {passage}" for passage in words["passages"] for ask in (
                "Summarise this in one sentence", "What are the main points of this text", "Shorten this",
                "Write a title for this text", "Sum this up for a friend", "Give me three key points", "What is this about")],
        ),
        "extraction": _cycle(
            rng,
            [f"{ask} {passage}" for passage in words["passages"] for ask in (
                "List all names, dates and numbers in this text:", "Answer from the text: when does it happen?",
                "Which places are mentioned here?", "Give the facts of this text as JSON:")],
            [f"{ask} {review}" for review in words["reviews"] for ask in (
                "Is this review positive or negative?", "Classify the sentiment:", "Rate this review from 1 to 5:")],
        ),
        "rewriting": _cycle(
            rng,
            [f"Make this {style}: {sentence}" for style in words["styles"] for sentence in words["sentences"]],
            [f"Correct the grammar: {sentence}" for sentence in words["sentences"]],
        ),
        "lists": _cycle(
            rng,
            [f"{ask} {what}." for what in words["lists"] for ask in ("List ten", "Name five", "Give me a list of")],
        ),
        "stories": _cycle(
            rng,
            [f"{ask} {hero}." for hero in words["heroes"] for ask in (
                "Tell me a story about", "Write a short story about", "Write the beginning of a novel about",
                "Write a funny dialogue with")],
            [f"Describe {place}." for place in words["places"]] + [f"Write a scene set in {place}." for place in words["places"]],
            [f"Write {what} about {topic}." for what in ("a poem", "a haiku", "a short song") for topic in words["poems"]],
        ),
        "languages": _cycle(rng, list(words["korean"])),
    }  # fmt: skip
    prompts: dict[str, Prompt] = {}
    while sources and len(prompts) < count:
        for kind in list(sources):
            text = next(sources[kind], None)
            if text is None:
                del sources[kind]
            elif len(prompts) < count:
                prompts.setdefault(text, Prompt(kind, text))
    return list(prompts.values())
