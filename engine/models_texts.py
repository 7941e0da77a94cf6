"""How `dflash-chat models` says things: tables, sizes, progress on a terminal, and the objects of its JSON.

Stdout is for results, stderr for the rest. Knows nothing of what the commands do.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.downloads import Download
    from engine.finding import Look, Offer
    from engine.hub import Hub
    from engine.remote_model import RemoteModel, Repository


def offer_json(offer: Offer) -> dict[str, Any]:
    return model_json(offer.model) | {
        "source": offer.source,
        "fits": offer.verdict.fits,
        "mode": offer.verdict.mode.value if offer.verdict.mode else None,
        "reasons": offer.verdict.reasons,
        "sentence": offer.verdict.sentence,
        "quantisation": offer.quantisation,
        "parameters": offer.parameters,
        "licence": offer.licence,
        "path": offer.path,
        "others": [model_json(model) for model in offer.others],
    }


def model_json(model: RemoteModel) -> dict[str, Any]:
    return {
        "repository": model.repository,
        "name": model.name,
        "files": [{"name": f.name, "bytes": f.size, "sha256": f.sha256} for f in model.files],
        "bytes": model.size,
        "quantisation": model.quantisation or None,
        "commit": model.files[0].commit,
        "problem": model.problem,
    }


def repository_json(repository: Repository) -> dict[str, Any]:
    return {
        "repository": repository.id,
        "url": repository.url,
        "gated": repository.gated,
        "private": repository.private,
        "licence": repository.licence,
        "downloads": repository.downloads,
        "architecture": repository.architecture,
        "parameters": repository.parameters,
        "context_length": repository.context_length,
    }


def method_of(offer: Offer) -> str:
    from engine.catalog import METHOD_NAMES

    return METHOD_NAMES[offer.verdict.mode] if offer.verdict.mode else "?"


def access_of(repository: Repository) -> str:
    return "private" if repository.private else "gated" if repository.gated else ""


def on_disk(hub: Hub, model: RemoteModel) -> str:
    fetched = sum(hub.cache.fetched(file) for file in model.files)
    return "" if not fetched else "on this disk" if fetched == model.size else f"{size_of(fetched)} of it on this disk"


def download_line(download: Download) -> str:
    from engine.downloads import State

    if download.state is State.DONE or not download.state.active:
        return ""
    text = f"{download.state.value} {download.model.name}: {size_of(download.done)} of {size_of(download.total)}"
    if download.bytes_per_second:
        text += f", {size_of(int(download.bytes_per_second))}/s"
    if download.seconds_left is not None:
        minutes, seconds = divmod(round(download.seconds_left), 60)
        text += f", {minutes}:{seconds:02d} left"
    return f"{text}. {download.sentence}" if download.sentence else text


def size_of(count: int) -> str:
    from engine.transfer import size_text

    return size_text(count)


def count_text(value: int | None) -> str:
    if value is None:
        return ""
    if value >= 10**9:
        return f"{value / 10**9:.1f}B"
    return f"{value / 10**6:.0f}M" if value >= 10**7 else f"{value:,}"


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they must be."""
    lines = [titles, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    for number, line in enumerate(lines):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class ProgressLine:
    """A line on the terminal that is written over; nothing where stderr is none."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._lock = threading.Lock()

    def __enter__(self) -> ProgressLine:
        return self

    def __call__(self, text: str) -> None:
        if self._on:
            with self._lock, contextlib.suppress(OSError):
                sys.stderr.write(f"\r\x1b[K{text[:150]}")
                sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        self("")


def look_line(shown: ProgressLine) -> Callable[[Look], None]:
    return lambda look: shown(look.sentence + (f": {size_of(look.bytes)}" if look.bytes else ""))
