"""Compares quantisations of the embedded model on this machine: what they cost in quality and what they gain in time.

Quality is perplexity on text of Python's own documentation and library, the same for all. Time is that of a pass over
1, 4 and 8 tokens at position 256, as plain decoding and verification do them; the models take turns, so that a busy
moment of the machine does not fall on one of them alone. Prints nothing; knows nothing of drafters.
"""

from __future__ import annotations

import heapq
import inspect
import math
import pydoc_data.topics
import statistics
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psutil

from engine.embedded import RECIPE, packaged_model
from engine.gguf_file import read_header
from engine.requantise import Recipe, requantise
from engine.target import MAX_ROWS, Target

RECIPES = {
    "IQ4_NL": Recipe("IQ4_NL"),
    "IQ4_NL, ffn_down Q4_K": Recipe("IQ4_NL", (("ffn_down", "Q4_K"),)),
    "IQ4_NL, ffn_down Q4_K, keys and values Q8_0": RECIPE,
    "the same, embeddings Q8_0 too": Recipe(RECIPE.type, (*RECIPE.exceptions, ("token_embd", "Q8_0"))),
    "Q4_0": Recipe("Q4_0"),
    "Q8_0": Recipe("Q8_0"),
}
ROWS = (1, 4, 8)
_DEPTH = 256  # positions in the cache while passes are timed
_WINDOW = 512  # tokens of text that are read from an empty cache
_CONTEXT = 64  # of these, the first that are not counted
_WINDOWS = 4  # of each text


def measure(threads: int | None, rounds: int, say: Callable[[str], None]) -> Iterator[str]:
    """The lines of a Markdown table. `say` hears what is going on meanwhile. Raises DFlashChatError."""
    threads = threads or psutil.cpu_count(logical=False) or 1
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dflash-chat-")))
        files = {"Q4_1, embeddings Q8_0 (as shipped)": packaged_model()}
        for number, (name, recipe) in enumerate(RECIPES.items()):
            say(f"writing {name}")
            files[name] = folder / f"{number}.gguf"
            requantise(packaged_model(), files[name], recipe, lambda _size: None)
        targets: dict[str, Target] = {}
        for name, path in files.items():
            target = targets[name] = Target(read_header(path), context=_WINDOW + MAX_ROWS, threads=threads)
            stack.callback(target.close)
        say(f"timing {rounds} rounds with {threads} threads")
        times = _times(targets, rounds)
        prose, code = _texts()
        yield "| matrices | MiB | perplexity, prose | perplexity, code | 1 token, ms | 4 tokens | 8 tokens | tokens/s |"
        yield "|---|---|---|---|---|---|---|---|"
        for name, target in targets.items():
            say(f"reading text with {name}")
            size = files[name].stat().st_size / 2**20
            quality = [_perplexity(target, text) for text in (prose, code)]
            one, four, eight = (statistics.median(times[name, rows]) for rows in ROWS)
            yield (
                f"| {name} | {size:.0f} | {quality[0]:.2f} | {quality[1]:.2f} "
                f"| {one:.2f} | {four / one:.2f}× | {eight / one:.2f}× | {1000 / one:.0f} |"
            )


def _texts() -> tuple[str, str]:
    topics = pydoc_data.topics.topics
    prose = "\n".join(topics[name] for name in ("lambda", "with", "exceptions", "import", "naming", "objects", "class"))
    return prose, inspect.getsource(textwrap) + inspect.getsource(heapq)


def _times(targets: dict[str, Target], rounds: int) -> dict[tuple[str, int], list[float]]:
    """Milliseconds of each pass, by model and number of tokens."""
    times: dict[tuple[str, int], list[float]] = {(name, rows): [] for name in targets for rows in ROWS}
    ids: list[int] = []
    for target in targets.values():
        ids = ids or list(target.vocabulary.tokenize(_texts()[0]))[: _DEPTH + max(ROWS)]
        target.evaluate([(0, ids[:_DEPTH])], last_only=True)
    for _ in range(rounds):
        for name, target in targets.items():
            for rows in ROWS:
                for _ in range(3):
                    target.cut(0, _DEPTH)
                    begun = time.perf_counter()
                    target.evaluate([(0, ids[_DEPTH : _DEPTH + rows])])
                    times[name, rows].append(1000 * (time.perf_counter() - begun))
    return times


def _perplexity(target: Target, text: str) -> float:
    ids = list(target.vocabulary.tokenize(text))[: _WINDOWS * _WINDOW]
    total, count = 0.0, 0
    for begin in range(0, len(ids) - _WINDOW + 1, _WINDOW):
        window = ids[begin : begin + _WINDOW]
        target.cut(0, 0)
        target.evaluate([(0, window[:_CONTEXT])], last_only=True)
        for at in range(_CONTEXT, _WINDOW - 1, MAX_ROWS):
            read = window[at : min(at + MAX_ROWS, _WINDOW - 1)]
            logits = target.evaluate([(0, read)]).logits.astype(np.float64)  # [rows, V]
            logits -= logits.max(axis=1, keepdims=True)
            following = window[at + 1 : at + 1 + len(read)]
            likely = logits[np.arange(len(read)), following] - np.log(np.exp(logits).sum(axis=1))
            total -= float(likely.sum())
            count += len(read)
    return math.exp(total / count)
