"""Markdown, read as it streams in: which blocks are finished, and which ones may still change.

What chat models write: paragraphs (their line breaks kept), headings, nested lists, quotes, rules, tables, fenced code
and formulas that stand alone. Everything else, HTML too, is text. Every block keeps its source, so that the sources of
all blocks, one after the other, are the text, but for blank lines at its beginning. What stands within a line is the
matter of `inline`; knows nothing of drawing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum

from app.tables import cells


class Kind(Enum):
    PARAGRAPH = "paragraph"
    HEADING = "heading"
    ITEM = "item"
    RULE = "rule"
    TABLE = "table"
    CODE = "code"
    FORMULA = "formula"


@dataclass(frozen=True)
class Block:
    kind: Kind
    text: str
    level: int = 0  # heading 1..6; depth of an item, 0 = outermost
    marker: str = ""  # of an item: "•", "☐", "☑" or "3."; of code: its language
    quote: int = 0  # how many quotes it stands in
    indent: int = 0  # how many items it belongs to, without being one
    continues: bool = False  # the block before it, which was cut because it is long
    closed: bool = True  # False: code or a formula whose end has not come
    source: str = field(default="", compare=False)  # the lines it was read from, with the blank ones after it


LONGEST = 3000  # characters of a paragraph; a longer one goes on in another, for to render it again takes too long
CODE_LINES = 250  # of one block; longer code goes on in another
CODE_LETTERS = 12_000  # likewise
TABLE_ROWS = 40  # of one block; a longer table begins again with its heading
FORMULA_LINES = 60


class MarkdownStream:
    """Feed it text; it gives each block once, when nothing can change it any more."""

    def __init__(self) -> None:
        self._rest = ""  # begins where the first unfinished block begins
        self._state = _State()
        self.tail: tuple[Block, ...] = ()  # blocks that may still change

    def feed(self, text: str) -> list[Block]:
        """Take more text; returns the blocks that it finished."""
        self._rest += text
        found, settled = _read(self._rest, self._state)
        finished = max(0, settled - 1)  # a complete line changes nothing before the last block
        blocks = _blocks(self._rest, found)
        self.tail = tuple(blocks[finished:])
        if found:
            first = found[finished]
            self._rest, self._state = self._rest[first.start :], first.state
        return blocks[:finished]


def parse(text: str) -> list[Block]:
    """A whole text at once."""
    return _blocks(text, _read(text, _State())[0])


@dataclass(frozen=True)
class _State:
    """What must be known where a block begins, to read on from there."""

    items: tuple[int, ...] = ()  # columns of the items that are open
    begun: Block | None = None  # the block that goes on, cut
    fence: str = ""  # inside of code: the fence that opened it
    fence_indent: int = 0
    heading: tuple[str, ...] = ()  # inside of a table: its first two lines


@dataclass
class _Found:
    """A block being read."""

    start: int
    state: _State
    block: Block  # without its text
    lines: list[str] = field(default_factory=list)
    last_line: int = 0  # where the last one begins
    text_start: int | None = None  # where the text begins in the source, None if it does not stand there as it is


_FENCE = re.compile(r"^( *)(`{3,}|~{3,}) *([^`\n]*)$")
_HEADING = re.compile(r"^ {0,3}(#{1,6}) (.*)$")
_ITEM = re.compile(r"^([ \t]*)(?:([-*+])|(\d{1,9})[.)])[ \t]+(.*)$")
_TASK = re.compile(r"^\[([ xX])\] ")
_RULE = re.compile(r"^ {0,3}(?:-{3,}|\*{3,}|_{3,}|(?:- ){2,}-|(?:\* ){2,}\*)\s*$")
_QUOTE = re.compile(r"^ {0,3}> ?")
_DELIMITERS = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_FORMULA = re.compile(r"^[ \t]*(\$\$|\\\[)(.*)$")
_ENVIRONMENT = re.compile(
    r"^[ \t]*\\begin\{((?:equation|aligned|align|gather|multline|eqnarray|cases|[pbvBV]?matrix)\*?)}"
)
_CUT = re.compile(r"\s(?=[^\W\d_])")


def _read(text: str, state: _State) -> tuple[list[_Found], int]:
    """The blocks, and how many there were when the last complete line had been read."""
    reader = _Reader(state)
    position = settled = 0
    while position < len(text):
        end = text.find("\n", position)
        complete = end >= 0
        end = end if complete else len(text)
        if not complete:
            settled = len(reader.found)
        reader.line(text[position:end], position, complete)
        position = end + 1
        if complete:
            settled = len(reader.found)
    return reader.found, settled


def _blocks(text: str, found: list[_Found]) -> list[Block]:
    ends = [other.start for other in found[1:]] + [len(text)]
    return [_block(one, text[one.start : end]) for one, end in zip(found, ends)]


def _block(found: _Found, source: str) -> Block:
    block = found.block
    text = "\n".join(found.lines)
    if block.kind is Kind.HEADING:
        text = text.strip(" #\n")
    return Block(
        block.kind, text, block.level, block.marker, block.quote, block.indent, block.continues, block.closed, source
    )


class _Reader:
    """Reads line by line. A line may change the last block and add new ones; what stands before is settled."""

    def __init__(self, state: _State) -> None:
        self.found: list[_Found] = []
        self._items = state.items
        self._grows = False  # the next plain line belongs to the last block
        self._fence, self._fence_indent = state.fence, state.fence_indent
        self._letters = 0  # of the code that is being read
        self._heading = state.heading
        self._closing = ""  # what ends the formula that is open
        self._begun = state.begun
        self._complete = True
        if state.fence and state.begun is not None:
            self._begin(state.begun, 0, None)
            self.found[0].state = state

    def line(self, line: str, start: int, complete: bool) -> None:
        self._complete = complete
        body, quote = line, 0
        limit = self.found[-1].block.quote if self._fence else 99
        while quote < limit and (match := _QUOTE.match(body)):
            body, quote = body[match.end() :], quote + 1
        if self.found and quote != self.found[-1].block.quote and (self._grows or self._fence or self._closing):
            self._fence, self._grows = "", False
            self._give_up_formula()
        if self._fence:
            self._code_line(body, start)
        elif self._closing:
            self._formula_line(body, start)
        else:
            self._plain_line(body, start, len(line) - len(body), quote)

    # --- code and formulas: they end where they say so

    def _code_line(self, body: str, start: int) -> None:
        last = self.found[-1]
        mark = self._fence[0]
        if body.strip() and set(body.strip()) == {mark} and len(body.strip()) >= len(self._fence):
            last.block = replace(last.block, closed=True)
            self._fence = ""
            self._grows = False
            return
        if len(last.lines) >= CODE_LINES or self._letters >= CODE_LETTERS:
            self._letters = 0
            block = replace(last.block, continues=True)
            state = _State(self._items, block, self._fence, self._fence_indent)
            self.found.append(last := _Found(start, state, block))
        spaces = len(body) - len(body.lstrip(" "))
        last.lines.append(body[min(spaces, self._fence_indent) :])
        self._letters += len(body)

    def _formula_line(self, body: str, start: int) -> None:
        last = self.found[-1]
        if not body.strip() or len(last.lines) > FORMULA_LINES:
            self._give_up_formula()
            if body.strip():
                self._grow(body, start)
            return
        opening = 0 if last.lines else len(body) - len(body.lstrip()) + 2
        end = body.find(self._closing, opening)
        last.lines.append(body)
        if end >= 0:
            after = body[end + len(self._closing) :]
            if not self._closing.startswith("\\end"):  # an environment is LaTeX itself
                last.lines[-1] = body[:end]
                last.lines[0] = last.lines[0].lstrip()[2:]
            last.block = replace(last.block, closed=True)
            self._closing, self._grows = "", False
            if after.strip(" .,;:"):
                block = Block(Kind.PARAGRAPH, "", quote=last.block.quote, indent=last.block.indent)
                self._begin_text(block, after, start + len(body) - len(after), None, block)

    def _give_up_formula(self) -> None:
        """It has no end: a paragraph, as typed."""
        if self._closing:
            last = self.found[-1]
            last.block = replace(last.block, kind=Kind.PARAGRAPH, closed=True)
            self._closing, self._grows = "", False

    def _opens_formula(self, body: str, start: int, quote: int) -> bool:
        indent = len(self._items) if body[:1] in " \t" else 0
        if match := _ENVIRONMENT.match(body):
            self._closing = f"\\end{{{match[1]}}}"
            self._begin(Block(Kind.FORMULA, "", quote=quote, indent=indent, closed=False), start, None)
            self._formula_line(body, start)
            return True
        if not (match := _FORMULA.match(body)):
            return False
        closing = "$$" if match[1] == "$$" else "\\]"
        if match[2].partition(closing)[2].strip(" .,;:"):
            return False  # it stands within a line
        if not match[2].strip() and not self._complete and match[1] == "$$":
            return False  # nobody knows yet
        self._begin(Block(Kind.FORMULA, "", quote=quote, indent=indent, closed=False), start, None)
        self._closing = closing
        self._formula_line(body, start)
        return True

    # --- everything else

    def _plain_line(self, body: str, start: int, cut: int, quote: int) -> None:
        """`cut`: how much of the line's beginning is not in `body`."""
        indented = body[:1] in (" ", "\t")
        begun = self._begun
        if begun is not None and begun.kind is Kind.PARAGRAPH:  # the rest of one, whatever it looks like
            self._begun = None
            self._begin_text(begun, body, start, cut if begun.continues else None, begun)
        elif not body.strip():
            self._grows = False
        elif (match := _FENCE.match(body)) and self._complete:
            indent = len(self._items) if match[1] else 0
            block = Block(Kind.CODE, "", marker=match[3].strip(), quote=quote, indent=indent, closed=False)
            self._begin(block, start, None)
            self._fence, self._fence_indent, self._grows = match[2], len(match[1]), False
            self._letters = 0
        elif _RULE.match(body) and self._complete:
            self._items = ()
            self._begin(Block(Kind.RULE, "", quote=quote), start, None)
        elif match := _HEADING.match(body):
            self._items = ()
            self._begin(Block(Kind.HEADING, "", len(match[1]), quote=quote), start, None, match[2])
        elif match := _ITEM.match(body):
            self._item(match, start, cut, quote)
        elif self._opens_formula(body, start, quote) or self._table_line(body, start, quote):
            pass
        elif self._grows:
            self._grow(body, start)
        else:
            self._items = self._items if indented else ()
            block = Block(Kind.PARAGRAPH, "", quote=quote, indent=len(self._items))
            self._begin_text(block, body, start, cut, None)

    def _begin_text(self, block: Block, body: str, start: int, cut: int | None, begun: Block | None) -> None:
        """A paragraph. `cut` None: it does not begin a line. `begun`: what says so to who reads on from here."""
        is_set_off = body.startswith(("    ", "\t"))  # on purpose, it seems
        text = body.lstrip() if block.indent or not is_set_off else body
        self._begin(block, start, None if cut is None else start + cut + len(body) - len(text), text)
        self.found[-1].state = _State(self._items, begun)
        self._grows = True
        self._cut()

    def _item(self, match: re.Match[str], start: int, cut: int, quote: int) -> None:
        column = len(match[1].expandtabs(4))
        items = self._items
        while items and column < items[-1]:
            items = items[:-1]
        if not items or column >= items[-1] + 2:
            items = (*items, column)
        marker, text = "•" if match[2] else f"{match[3]}.", match[4]
        if task := _TASK.match(text):
            marker, text = ("☐" if task[1] == " " else "☑"), text[task.end() :]
        text_start = start + cut + match.end() - len(text)
        self._begin(Block(Kind.ITEM, "", len(items) - 1, marker, quote), start, text_start, text)
        self._items = items
        self._grows = True
        self._cut()

    def _table_line(self, body: str, start: int, quote: int) -> bool:
        last = self.found[-1] if self.found else None
        if self._grows and last is not None and last.block.kind is Kind.TABLE:
            if "|" not in body:
                self._grows = False
                return False
            if len(last.lines) >= TABLE_ROWS + 2:
                block = replace(last.block, continues=True)
                self.found.append(last := _Found(start, _State(self._items, block, heading=self._heading), block))
                last.lines += self._heading
            last.lines.append(body)
            return True
        if self._heading and not self.found:  # the rest of a table that was cut
            self._begin(self._begun or Block(Kind.TABLE, ""), start, None)
            self.found[-1].state = _State(self._items, self._begun, heading=self._heading)
            self.found[-1].lines += [*self._heading, body]
            self._grows = True
            return True
        if (
            self._grows
            and last is not None
            and last.block.kind is Kind.PARAGRAPH
            and "|" in body
            and "|" in last.lines[-1]
            and self._complete
            and _DELIMITERS.match(body)
            and len(cells(body)) == len(cells(last.lines[-1]))
        ):
            heading = last.lines.pop()
            block = Block(Kind.TABLE, "", quote=quote, indent=last.block.indent)
            if last.lines:
                self._begin(block, last.last_line, None)
            else:
                last.block, last.text_start = block, None
            self._heading = (heading, body)
            self.found[-1].lines += [heading, body]
            self._grows = True
            return True
        return False

    def _grow(self, body: str, start: int) -> None:
        last = self.found[-1]
        if sum(map(len, last.lines)) > LONGEST and last.text_start is None:
            block = Block(Kind.PARAGRAPH, "", quote=last.block.quote, indent=_depth(last.block), continues=True)
            self._begin(block, start, None, body.strip())
            self.found[-1].state = _State(self._items, block)
            self._grows = True
            return
        more = body.lstrip() if last.block.kind is Kind.ITEM or last.block.indent else body
        if more != body or last.block.quote:
            last.text_start = None  # the text is no longer a part of the source as it stands
        last.lines.append(more)
        last.last_line = start
        self._cut()

    def _begin(self, block: Block, start: int, text_start: int | None, text: str | None = None) -> None:
        lines = [] if text is None else [text]
        self.found.append(_Found(start, _State(self._items), block, lines, start, text_start))
        self._grows = False

    def _cut(self) -> None:
        """The last block in parts of about `LONGEST`; each begins with a letter, so that on its own it is text too."""
        while (begin := (last := self.found[-1]).text_start) is not None:
            text = "\n".join(last.lines)
            if not (place := _CUT.search(text, LONGEST)):
                return
            head, rest = text[: place.end()].rstrip(), text[place.end() :]
            last.lines = [head]
            block = Block(Kind.PARAGRAPH, "", quote=last.block.quote, indent=_depth(last.block), continues=True)
            start = begin + place.end()
            self.found.append(_Found(start, _State(self._items, block), block, rest.split("\n"), start, start))
            self.found[-1].last_line = start + len(rest) - len(self.found[-1].lines[-1])


def _depth(block: Block) -> int:
    return block.level + 1 if block.kind is Kind.ITEM else block.indent
