"""What stands within a line of Markdown: emphasis, code, links and formulas, each with its place in the source.

The places are what copying needs: a part of what is shown leads back to the text that was written. Only addresses of
the web and of mail become links; anything else stays as typed. Knows nothing of blocks and of how things are drawn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

SCHEMES = ("http", "https", "mailto")


@dataclass(frozen=True)
class Span:
    """A run of one style. `start` and `end`: where it stands in the source, in characters."""

    text: str  # as shown; of a formula: its source with the dollar signs
    start: int = 0
    end: int = 0
    bold: bool = False
    italic: bool = False
    struck: bool = False
    code: bool = False
    link: str = ""  # the address
    formula: str = ""  # LaTeX without its delimiters
    display: bool = False  # the formula was written to stand alone


@dataclass(frozen=True)
class Mark:
    """A pair of marks around something: [opens, begins) and [ends, closes) in the source."""

    opens: int
    begins: int
    ends: int
    closes: int


@dataclass
class Line:
    spans: list[Span] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)


_MARKED = re.compile(
    r"(?P<ticks>`+)(?P<code>[^`](?:.{0,400}?[^`])?)(?P=ticks)(?!`)"
    r"|\\\((?P<paren>.{1,800}?)\\\)"
    r"|\\\[(?P<bracket>.{1,800}?)\\\]"
    r"|\$\$(?P<dollars>[^$]{1,800}?)\$\$"
    r"|(?<![\\$A-Za-z0-9])\$(?=[^\s$])(?P<dollar>(?:\\.|[^$\n\\]){0,400}?[^\s$\\])\$(?![A-Za-z0-9$])"
    r"|\\(?P<escape>[!-/:-@\[-`{-~])"
    r"|!?\[(?P<label>[^\[\]\n]{1,400})\]\((?P<address>[^\s()<>]{1,2000}(?:\([^\s()<>]*\)[^\s()<>]*)?)"
    r"(?:\s+\"[^\"\n]*\")?\)"
    r"|<(?P<angle>(?:https?://|mailto:)[^\s<>]{1,2000})>"
    r"|(?<![A-Za-z0-9])(?P<bare>https?://[!-;=?-~]{1,2000})"
    r"|\*\*(?=\S)(?P<bold>.{1,400}?)(?<=\S)\*\*(?!\*)"
    r"|(?<!\w)__(?=\S)(?P<bold_>.{1,400}?)(?<=\S)__(?!\w)"
    r"|~~(?=\S)(?P<struck>.{1,400}?)(?<=\S)~~"
    r"|(?<![A-Za-z0-9*])\*(?=[^\s*])(?P<italic>.{0,400}?[^\s*])\*(?![A-Za-z0-9*])"
    r"|(?<!\w)_(?=[^\s_])(?P<italic_>.{0,400}?[^\s_])_(?!\w)",
    re.S,
)
_MONEY = re.compile(r"\d[\d.,]*[kKMB]?(?![\w^])(?!.*[\\^_=+<>{}])", re.S)  # "5 for this and that", and no formula
_ENDS = tuple(".,;:!?'\"*_~`|]")
_STYLES: dict[str, dict[str, Any]] = {
    "bold": {"bold": True},
    "bold_": {"bold": True},
    "italic": {"italic": True},
    "italic_": {"italic": True},
    "struck": {"struck": True},
}


def read(text: str) -> Line:
    """The runs of one style. Marks that close nothing are text."""
    line = Line()
    _read(text, 0, len(text), Span(""), line)
    return line


def spans(text: str) -> list[Span]:
    return read(text).spans


def safe_address(address: str) -> bool:
    """Whether it may be opened at all: of the web or of mail, and complete."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in SCHEMES and bool(parts.path if parts.scheme == "mailto" else parts.hostname)


def source_of(text: str, start: int, end: int, marks: list[Mark]) -> str:
    """[start, end) of a source, with the marks that a cut would leave without their other half."""
    before = after = ""
    for mark in reversed(marks):  # inner ones first
        starts_in = mark.begins <= start < mark.ends
        ends_in = mark.begins < end <= mark.ends
        if starts_in and ends_in:
            if start == mark.begins and end == mark.ends and not before and not after:
                start, end = mark.opens, mark.closes
        elif starts_in and end > mark.ends:
            if start == mark.begins and not before:
                start = mark.opens
            else:
                before = text[mark.opens : mark.begins] + before
        elif ends_in and start < mark.begins:
            if end == mark.ends and not after:
                end = mark.closes
            else:
                after += text[mark.ends : mark.closes]
    return before + text[start:end] + after


def _read(text: str, position: int, end: int, style: Span, line: Line) -> None:
    shown = searched = position
    while (match := _MARKED.search(text, searched, end)) is not None:
        kind = match.lastgroup or ""
        if kind == "dollar" and _MONEY.match(match["dollar"]):
            searched = match.start() + 1
            continue
        if kind == "ticks":
            kind = "code"
        first, last = match.start(), match.end()
        label, address = "", ""
        if kind in ("address", "angle", "bare"):
            address = match[kind]
            if kind == "bare":
                address = _without_tail(address)
                last = first + len(address)
            if not safe_address(address):
                searched = first + 1
                continue
        if first > shown:
            line.spans.append(replace(style, text=text[shown:first], start=shown, end=first))
        if kind in _STYLES:
            begins, ends = match.span(kind)
            line.marks.append(Mark(first, begins, ends, last))
            _read(text, begins, ends, replace(style, **_STYLES[kind]), line)
        elif kind == "code":
            begins, ends = match.span("code")
            line.marks.append(Mark(first, begins, ends, last))
            line.spans.append(replace(style, text=match["code"], start=begins, end=ends, code=True))
        elif kind == "address":
            begins, ends = match.span("label")
            line.marks.append(Mark(first, begins, ends, last))
            _read(text, begins, ends, replace(style, link=address), line)
        elif kind in ("angle", "bare"):
            label = address.removeprefix("mailto:")
            line.spans.append(replace(style, text=label, start=first, end=last, link=address))
        elif kind == "escape":
            line.spans.append(replace(style, text=match["escape"], start=first, end=last))
        else:
            formula, display = match[kind].strip(), kind in ("bracket", "dollars")
            line.spans.append(
                replace(style, text=match[0], start=first, end=last, formula=formula or " ", display=display)
            )
        shown = searched = last
    if shown < end:
        line.spans.append(replace(style, text=text[shown:end], start=shown, end=end))


def _without_tail(address: str) -> str:
    """A bare address without what follows it in a sentence."""
    while address[-1:] in _ENDS or (address[-1:] == ")" and address.count("(") < address.count(")")):
        address = address[:-1]
    return address
