"""What a model thinks before it answers, told apart from the answer. Plain Python.

Models write it between `<think>` and `</think>`; where the template has already opened it, the text has only the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPENS = re.compile(r"\s*<think>[ \t]*\n?")
_OPENING = "<think>"
CLOSES = "</think>"


@dataclass(frozen=True)
class Parted:
    """`thought` None: there is none. `thinking`: it has not ended."""

    thought: str | None
    answer: str
    thinking: bool = False


def part(text: str) -> Parted:
    if match := _OPENS.match(text):
        end = text.find(CLOSES, match.end())
        if end < 0:
            return Parted(text[match.end() :], "", thinking=True)
        return Parted(text[match.end() : end].strip("\n"), text[end + len(CLOSES) :].lstrip())
    begun = text.lstrip()
    if begun and _OPENING.startswith(begun):
        return Parted("", "", thinking=True)
    end = text.find(CLOSES)
    if end >= 0 and text[end + len(CLOSES) :][:1] in ("", "\n") and "`" not in text[max(0, end - 1) : end]:
        return Parted(text[:end].strip("\n"), text[end + len(CLOSES) :].lstrip())
    return Parted(None, text)
