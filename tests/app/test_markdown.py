"""Markdown as it streams in."""

from __future__ import annotations

import random

import pytest

from app.markdown import LONGEST, Block, Kind, MarkdownStream, Span, parse, spans

SAMPLE = """# 제목 `code` here

A paragraph with **bold**
and a second line.
- first item
  goes on
- second
    - inner
1. one
2) two

> quoted
> twice

---
| a | b |
|---|---|
| 1 | 2 |
after the table

```python
def f():

    return "**not bold**"
```
~~~
tilde ``` inside
~~~
- item with code:
  ```
  indented
  ```
--- not a rule
```a` is not a fence
last words, 안녕 <b>no html</b>"""


def test_blocks_of_a_text() -> None:
    kinds = [(block.kind, block.level, block.marker) for block in parse(SAMPLE)]
    assert kinds == [
        (Kind.HEADING, 1, ""),
        (Kind.PARAGRAPH, 0, ""),
        (Kind.ITEM, 0, "•"),
        (Kind.ITEM, 0, "•"),
        (Kind.ITEM, 1, "•"),
        (Kind.ITEM, 0, "1."),
        (Kind.ITEM, 0, "2."),
        (Kind.QUOTE, 0, ""),
        (Kind.RULE, 0, ""),
        (Kind.TABLE, 0, ""),
        (Kind.PARAGRAPH, 0, ""),
        (Kind.CODE, 0, "python"),
        (Kind.CODE, 0, ""),
        (Kind.ITEM, 0, "•"),
        (Kind.CODE, 0, ""),
        (Kind.PARAGRAPH, 0, ""),
    ]
    blocks = parse(SAMPLE)
    assert blocks[1].text == "A paragraph with **bold**\nand a second line."
    assert blocks[2].text == "first item\ngoes on"
    assert blocks[11].text == 'def f():\n\n    return "**not bold**"'
    assert blocks[14].text == "indented"
    assert blocks[15].text.endswith("<b>no html</b>")


@pytest.mark.parametrize("seed", range(40))
def test_a_stream_in_any_pieces_gives_what_the_whole_gives(seed: int) -> None:
    rng = random.Random(seed)
    lines = SAMPLE.split("\n")
    if seed:
        rng.shuffle(lines)
    text = "\n".join(lines)
    stream, finished, position = MarkdownStream(), list[Block](), 0
    while position < len(text):
        size = rng.choice((1, 1, 2, 3, 8, 40))
        finished += stream.feed(text[position : position + size])
        position += size
        so_far = parse(text[:position])
        assert finished == so_far[:-1]  # what was given as finished never changes
        assert stream.tail == (so_far[-1] if so_far else None)


@pytest.mark.parametrize("text", ["word and 말 " * 900, "1 - 2 # x\n" * 900, "x" * 9000, "a b\n" * 2000])
def test_an_endless_paragraph_is_cut_alike_in_any_pieces(text: str) -> None:
    rng = random.Random(0)
    stream, finished, position = MarkdownStream(), list[Block](), 0
    while position < len(text):
        size = rng.randint(1, 500)
        finished += stream.feed(text[position : position + size])
        position += size
    whole = parse(text)
    assert [*finished, stream.tail] == whole
    assert "".join("".join(block.text.split()) for block in whole) == "".join(text.split())
    if "word" in text:
        assert len(whole) > 3 and max(len(block.text) for block in whole) < LONGEST + 20


def test_only_the_tail_is_kept() -> None:
    stream = MarkdownStream()
    for number in range(1000):
        stream.feed(f"paragraph {number}\n\n")
    assert stream.tail == Block(Kind.PARAGRAPH, "paragraph 999")
    assert len(stream._rest) < 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", [Span("plain")]),
        ("a **b** c", [Span("a "), Span("b", bold=True), Span(" c")]),
        ("**굵게**는", [Span("굵게", bold=True), Span("는")]),
        ("*강조*는 _이것_", [Span("강조", italic=True), Span("는 "), Span("이것", italic=True)]),
        ("**a *b* c**", [Span("a ", bold=True), Span("b", True, True), Span(" c", bold=True)]),
        ("`x**y**z`", [Span("x**y**z", code=True)]),
        ("``a`b``", [Span("a`b", code=True)]),
        ("2*3*4 and snake_case_name", [Span("2*3*4 and snake_case_name")]),
        ("an **open mark", [Span("an **open mark")]),
        ("* not * italic", [Span("* not * italic")]),
        ("", []),
    ],
)
def test_spans_of_a_line(text: str, expected: list[Span]) -> None:
    assert spans(text) == expected
