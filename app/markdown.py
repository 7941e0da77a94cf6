"""Simple Markdown, read as it streams in: which blocks are finished, and which one may still grow.

Only what chat models write every day: paragraphs (their line breaks kept), headings, list items, quotes, rules, fenced
code, and bold, italic and code within a line. Tables are kept as typed. Everything else, HTML too, is text.

Knows nothing of how it is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    PARAGRAPH = "paragraph"
    HEADING = "heading"
    ITEM = "item"
    QUOTE = "quote"
    RULE = "rule"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True)
class Block:
    kind: Kind
    text: str
    level: int = 0  # heading 1..6; depth of an item, 0 = outermost
    marker: str = ""  # of an item: "•" or "3."; of code: its language


LONGEST = 3000  # characters of a paragraph; a longer one goes on in another, for to render it again takes too long


class MarkdownStream:
    """Feed it text; it gives each block once, when nothing can be added to it any more."""

    def __init__(self) -> None:
        self._rest = ""  # begins where the unfinished block begins
        self.tail: Block | None = None  # the block that may still grow

    def feed(self, text: str) -> list[Block]:
        """Take more text; returns the blocks that it finished."""
        self._rest += text
        found = _parse(self._rest)
        if not found:
            return []
        self._rest = self._rest[found[-1][0] :]
        self.tail = found[-1][1]
        return [block for _, block in found[:-1]]


def parse(text: str) -> list[Block]:
    """A whole text at once."""
    return [block for _, block in _parse(text)]


_FENCE = re.compile(r"^( *)(`{3,}|~{3,}) *([^`\n]*)\n$")
_HEADING = re.compile(r"^(#{1,6}) (.*)$", re.S)
_ITEM = re.compile(r"^( *)(?:([-*+])|(\d{1,9})[.)]) (.*)$", re.S)
_RULE = re.compile(r"^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*\n$")
_CUT = re.compile(r"\s(?=[^\W\d_])")
_QUOTE = re.compile(r"^> ?(.*)$", re.S)


def _parse(text: str) -> list[tuple[int, Block]]:
    """Blocks with the offsets at which they begin.

    What a line is must not change when more of it arrives, or a finished block would turn out to be none: it is
    decided by the line's first characters, or, where that cannot be (fences, rules), when the line is complete.
    """
    found: list[tuple[int, Block]] = []
    grows = False  # the next plain line belongs to the last block
    position = 0
    lines = _lines(text)
    number = 0
    while number < len(lines):
        line, start = lines[number], position
        position += len(line)
        number += 1
        if match := _FENCE.match(line):
            code: list[str] = []
            close = re.compile(rf"^ *{match[2][0]}{{{len(match[2])},}} *\n?$")
            while number < len(lines):
                line = lines[number]
                position += len(line)
                number += 1
                if close.match(line):
                    break
                code.append(re.sub(rf"^ {{0,{len(match[1])}}}", "", line) if match[1] else line)
            found.append((start, Block(Kind.CODE, "".join(code).removesuffix("\n"), marker=match[3].strip())))
            grows = False
        elif not line.strip():
            grows = False
        elif _RULE.match(line):
            found.append((start, Block(Kind.RULE, "")))
            grows = False
        elif match := _HEADING.match(line):
            found.append((start, Block(Kind.HEADING, match[2].strip(" #\n"), len(match[1]))))
            grows = False
        elif match := _ITEM.match(line):
            depth = 0 if len(match[1]) < 2 else 1 if len(match[1]) < 5 else 2
            marker = "•" if match[2] else f"{match[3]}."
            found.append((start, Block(Kind.ITEM, match[4].rstrip("\n"), depth, marker)))
            grows = True
        elif match := _QUOTE.match(line):
            _begin_or_grow(found, Kind.QUOTE, start, match[1], grows and found[-1][1].kind is Kind.QUOTE)
            grows = True
        elif line.startswith("|"):
            _begin_or_grow(found, Kind.TABLE, start, line, grows and found[-1][1].kind is Kind.TABLE)
            grows = True
        else:
            grows = grows and found[-1][1].kind is not Kind.TABLE
            _begin_or_grow(found, Kind.PARAGRAPH, start, line, grows)
            grows = True
    return [part for start, block in found for part in _cut(start, block)]


def _cut(start: int, block: Block) -> Iterator[tuple[int, Block]]:
    """A paragraph in parts of about `LONGEST`: each begins with a letter, so that on its own it is a paragraph too."""
    text = block.text
    while block.kind is Kind.PARAGRAPH and (place := _CUT.search(text, LONGEST)):
        yield start, Block(Kind.PARAGRAPH, text[: place.end()].rstrip())
        start, text = start + place.end(), text[place.end() :]
    yield start, block if text is block.text else Block(Kind.PARAGRAPH, text)


def _lines(text: str) -> list[str]:
    """Lines with their ends; only \\n ends a line."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _begin_or_grow(found: list[tuple[int, Block]], kind: Kind, start: int, line: str, grow: bool) -> None:
    line = line.rstrip("\n")
    if grow:
        begun, block = found[-1]
        more = line.lstrip() if block.kind is Kind.ITEM else line
        found[-1] = (begun, Block(block.kind, f"{block.text}\n{more}", block.level, block.marker))
    else:
        found.append((start, Block(kind, line)))


# --- within a line ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Span:
    text: str
    bold: bool = False
    italic: bool = False
    code: bool = False


_SPANS = re.compile(
    r"(?P<ticks>`+)(?P<code>[^`](?:.{0,400}?[^`])?)(?P=ticks)(?!`)"
    r"|\*\*(?=\S)(?P<bold>.{1,400}?)(?<=\S)\*\*(?!\*)"
    r"|(?<!\w)__(?=\S)(?P<bold_>.{1,400}?)(?<=\S)__(?!\w)"
    r"|(?<![A-Za-z0-9*])\*(?=[^\s*])(?P<italic>.{0,400}?[^\s*])\*(?![A-Za-z0-9*])"
    r"|(?<!\w)_(?=[^\s_])(?P<italic_>.{0,400}?[^\s_])_(?!\w)",
    re.S,
)


def spans(text: str, bold: bool = False, italic: bool = False) -> list[Span]:
    """The runs of one style. Marks that close nothing are text."""
    found: list[Span] = []
    position = 0
    for match in _SPANS.finditer(text):
        if match.start() > position:
            found.append(Span(text[position : match.start()], bold, italic))
        if match["code"] is not None:
            found.append(Span(match["code"], bold, italic, True))
        elif (inner := match["bold"] or match["bold_"]) is not None:
            found += spans(inner, True, italic)
        else:
            found += spans(match["italic"] or match["italic_"], bold, True)
        position = match.end()
    if position < len(text):
        found.append(Span(text[position:], bold, italic))
    return found
