"""The catalogue in models/catalogue.json: which repositories are known to hold drafters for which targets.

It only says where to look first. Whether a drafter fits is decided by its header, like that of any other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.drafter_config import target_vocabulary
from engine.events import Mode
from engine.gguf_file import Header

CATALOGUE = Path(__file__).resolve().parent.parent / "models" / "catalogue.json"


@dataclass(frozen=True, slots=True)
class KnownFile:
    name: str
    size: int | None  # bytes; None where nobody has said it
    sha256: str | None


@dataclass(frozen=True, slots=True)
class KnownDrafter:
    repository: str
    mode: Mode
    files: tuple[KnownFile, ...]


@dataclass(frozen=True, slots=True)
class KnownPair:
    """A target by name, with what is known of its metadata (None where it is not), and where its drafters are."""

    name: str
    hidden_size: int | None
    vocabulary: int | None
    repositories: tuple[str, ...]  # of the target, the maker's first
    drafters: tuple[KnownDrafter, ...]

    def may_be(self, target: Header) -> bool:
        """By metadata, as far as that is known, and by the words of the name where that leaves it open."""
        if self.hidden_size is not None and self.vocabulary is not None:
            return (self.hidden_size, self.vocabulary) == (target.count("embedding_length"), target_vocabulary(target))
        return words_of(self.name) <= target_words(target)


@lru_cache(maxsize=1)
def catalogue(path: Path = CATALOGUE) -> tuple[KnownPair, ...]:
    return tuple(_pair(entry) for entry in json.loads(path.read_text("utf-8"))["pairs"])


def known_drafters(target: Header, mode: Mode | None = None) -> list[KnownDrafter]:
    """Those worth a look, DFlash 2 first; of targets of the same size those with the same name first."""
    words = target_words(target)
    pairs = sorted(
        (pair for pair in catalogue() if pair.may_be(target)), key=lambda pair: not words_of(pair.name) <= words
    )
    found = [drafter for pair in pairs for drafter in pair.drafters if mode in (None, drafter.mode)]
    return sorted(found, key=lambda drafter: drafter.mode is not Mode.DFLASH2)


def words_of(name: str) -> frozenset[str]:
    """The words of a model's name, such as {"qwen3", "8b"}; versions keep their point."""
    return frozenset(re.findall(r"[a-z0-9]+(?:\.[a-z0-9]+)*", name.lower()))


def target_words(target: Header) -> frozenset[str]:
    """All that a target's metadata says about its name."""
    said: Iterable[str] = (
        target.name,
        target.text("general.basename"),
        target.text("general.size_label"),
        target.text("general.base_model.0.name"),
        target.text("general.base_model.0.repo_url").rpartition("/")[2],
    )
    return frozenset().union(*(words_of(text.removesuffix(".gguf")) for text in said))


def _pair(entry: dict[str, Any]) -> KnownPair:
    return KnownPair(
        name=entry["target"],
        hidden_size=entry.get("hidden_size"),
        vocabulary=entry.get("vocabulary"),
        repositories=tuple(entry.get("repositories", ())),
        drafters=tuple(
            KnownDrafter(
                drafter["repository"],
                Mode(drafter["method"]),
                tuple(KnownFile(f["name"], f.get("bytes"), f.get("sha256")) for f in drafter.get("files", ())),
            )
            for drafter in entry["drafters"]
        ),
    )
