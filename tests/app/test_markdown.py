"""Markdown as it streams in."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from app.inline import Span, read, source_of, spans
from app.markdown import CODE_LETTERS, CODE_LINES, LONGEST, TABLE_ROWS, Block, Kind, MarkdownStream, parse
from app.tables import Table, table

SAMPLE = """# 제목 `code` here

A paragraph with **bold**
and a second line.
- first item
  goes on
- second
    - inner
        - innermost
    - inner too
- [x] done
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
> - quoted item
>   ```
>   quoted code
>   ```
$$
\\int_0^1 x\\,dx
$$
\\[ a^2 \\]
$$ never closed

x | y
:-:|--:
`a|b` | c \\| d
\\begin{align}
a &= b
\\end{align}
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
        (Kind.ITEM, 2, "•"),
        (Kind.ITEM, 1, "•"),
        (Kind.ITEM, 0, "☑"),
        (Kind.ITEM, 0, "1."),
        (Kind.ITEM, 0, "2."),
        (Kind.PARAGRAPH, 0, ""),
        (Kind.RULE, 0, ""),
        (Kind.TABLE, 0, ""),
        (Kind.PARAGRAPH, 0, ""),
        (Kind.CODE, 0, "python"),
        (Kind.CODE, 0, ""),
        (Kind.ITEM, 0, "•"),
        (Kind.CODE, 0, ""),
        (Kind.PARAGRAPH, 0, ""),
        (Kind.ITEM, 0, "•"),
        (Kind.CODE, 0, ""),
        (Kind.FORMULA, 0, ""),
        (Kind.FORMULA, 0, ""),
        (Kind.PARAGRAPH, 0, ""),
        (Kind.TABLE, 0, ""),
        (Kind.FORMULA, 0, ""),
        (Kind.PARAGRAPH, 0, ""),
    ]
    blocks = parse(SAMPLE)
    assert blocks[1].text == "A paragraph with **bold**\nand a second line."
    assert blocks[2].text == "first item\ngoes on"
    assert (blocks[10].text, blocks[10].quote) == ("quoted\ntwice", 1)
    assert blocks[14].text == 'def f():\n\n    return "**not bold**"'
    assert (blocks[17].text, blocks[17].indent) == ("indented", 1)
    assert [(block.text, block.quote) for block in blocks[19:21]] == [("quoted item", 1), ("quoted code", 1)]
    assert [block.text.strip() for block in blocks[21:23]] == ["\\int_0^1 x\\,dx", "a^2"]
    assert blocks[23].text == "$$ never closed"
    assert table(blocks[24].text) == Table((("x", "y"), ("`a|b`", "c | d")), (0, 1))
    assert blocks[25].text == "\\begin{align}\na &= b\n\\end{align}"
    assert blocks[26].text.endswith("<b>no html</b>")
    assert "".join(block.source for block in blocks) == SAMPLE


def test_a_stream_in_any_pieces_gives_what_the_whole_gives() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        lines = SAMPLE.split("\n")
        if seed:
            rng.shuffle(lines)
        streams_as_the_whole("\n".join(lines), rng)
    for seed in range(50):
        rng = random.Random(seed)
        streams_as_the_whole("".join(rng.choice(PIECES) for _ in range(rng.randint(5, 60))), rng)


PIECES = (
    *(
        "\n",
        "\n\n",
        "|",
        "| a | b |\n|---|---|\n",
        "|x|\n",
        "```",
        "```py\n",
        "~~~\n",
        "$",
        "$$",
        "\\[",
        "\\]",
        "> ",
        "- ",
    ),
    *("  - ", "1. ", "# ", "**", "`", "word ", "가나 ", "---\n", "\\begin{align}", "\\end{align}", "    ", "\t"),
)


def streams_as_the_whole(text: str, rng: random.Random) -> None:
    stream, finished, position = MarkdownStream(), list[Block](), 0
    while position < len(text):
        size = rng.choice((1, 1, 2, 3, 8, 40))
        finished += stream.feed(text[position : position + size])
        position += size
        so_far = parse(text[:position])
        shown = [*finished, *stream.tail]
        assert shown == so_far  # what was given as finished never changes
        assert [block.source for block in shown] == [block.source for block in so_far]


def test_an_endless_paragraph_is_cut_alike_in_any_pieces() -> None:
    for text in [
        "word and 말 " * 900,
        "1 - 2 # x\n" * 900,
        "x" * 9000,
        "a b\n" * 2000,
        "> a b\n" * 2000,
        "- " + "가나 다 " * 2000,
    ]:
        check_an_endless_paragraph_is_cut_alike_in_any_pieces(text)


def check_an_endless_paragraph_is_cut_alike_in_any_pieces(text: str) -> None:
    rng = random.Random(0)
    stream, finished, position = MarkdownStream(), list[Block](), 0
    while position < len(text):
        size = rng.randint(1, 1500)
        finished += stream.feed(text[position : position + size])
        position += size
    whole = parse(text)
    assert [*finished, *stream.tail] == whole
    assert "".join(block.source for block in whole) == text
    words = re.sub(r"^(> |- )", "", text, flags=re.M)
    assert "".join("".join(block.text.split()) for block in whole) == "".join(words.split())
    if "word" in text:
        assert len(whole) > 3 and max(len(block.text) for block in whole) < LONGEST + 20


def test_only_the_tail_is_kept() -> None:
    stream = MarkdownStream()
    for number in range(1000):
        stream.feed(f"paragraph {number}\n\n")
    assert stream.tail == (Block(Kind.PARAGRAPH, "paragraph 999", source="paragraph 999\n\n"),)
    assert len(stream._rest) < 20


def test_long_code_and_tables_go_on_in_another_block() -> None:
    for text, lines in [
        ("```py\n" + "x = 1\n" * 1000, CODE_LINES),
        ("```\n" + ("x" * 399 + "\n") * 100, CODE_LETTERS // 399 + 1),
        ("|a|b|\n|-|-|\n" + "|1|2|\n" * 150, TABLE_ROWS + 2),
    ]:
        check_long_code_and_tables_go_on_in_another_block(text, lines)


def check_long_code_and_tables_go_on_in_another_block(text: str, lines: int) -> None:
    rng = random.Random(1)
    stream, finished, position = MarkdownStream(), list[Block](), 0
    while position < len(text):
        size = rng.randint(1, 200)
        finished += stream.feed(text[position : position + size])
        position += size
    whole = parse(text)
    assert [*finished, *stream.tail] == whole and len(whole) == 4
    assert [block.continues for block in whole] == [False, True, True, True]
    assert max(block.text.count("\n") + 1 for block in whole) == lines
    assert len(stream._rest) < 2 * max(len(block.source) for block in whole)
    assert "".join(block.source for block in whole) == text


def test_spans_of_a_line() -> None:
    for text, expected in [
        ("plain", [Span("plain")]),
        ("a **b** c", [Span("a "), Span("b", bold=True), Span(" c")]),
        ("**굵게**는", [Span("굵게", bold=True), Span("는")]),
        ("*강조*는 _이것_", [Span("강조", italic=True), Span("는 "), Span("이것", italic=True)]),
        ("**a *b* c**", [Span("a ", bold=True), Span("b", bold=True, italic=True), Span(" c", bold=True)]),
        ("`x**y**z`", [Span("x**y**z", code=True)]),
        ("``a`b``", [Span("a`b", code=True)]),
        ("2*3*4 and snake_case_name", [Span("2*3*4 and snake_case_name")]),
        ("an **open mark", [Span("an **open mark")]),
        ("* not * italic", [Span("* not * italic")]),
        ("", []),
    ]:
        check_spans_of_a_line(text, expected)


def check_spans_of_a_line(text: str, expected: list[Span]) -> None:
    assert [replace(span, start=0, end=0) for span in spans(text)] == expected
    assert all(span.text == text[span.start : span.end] for span in spans(text))


def test_formulas_and_money() -> None:
    for text, formulas in [
        ("$x^2$ and $y$", ["x^2", "y"]),
        ("\\(a+b\\) or \\[c\\] or $$d$$", ["a+b", "c", "d"]),
        ("$5 and $10", []),
        ("it costs $5, or 3$ more, not $5-$10", []),
        ("US$5 is $HOME/bin:$PATH", []),
        ("$10^3$ and $2 x + 1$", ["10^3", "2 x + 1"]),
        ("값 $x_i$는 `$y$` \\$z$", ["x_i"]),
        ("$ x $ and $5", []),
        ("**$a$**", ["a"]),
    ]:
        check_formulas_and_money(text, formulas)


def check_formulas_and_money(text: str, formulas: list[str]) -> None:
    assert [span.formula for span in spans(text) if span.formula] == formulas


def test_only_the_web_and_mail_become_links() -> None:
    for text, links in [
        ("[a **b**](https://x.org/a_(b)) c", ["https://x.org/a_(b)"] * 2),
        ("see https://x.org/a?b=c, and <mailto:a@x.org>.", ["https://x.org/a?b=c", "mailto:a@x.org"]),
        ("https://x.org에서 (https://y.org)", ["https://x.org", "https://y.org"]),
        ("![picture](https://x.org/a.png)", ["https://x.org/a.png"]),
        ("[x](javascript:alert(1)) [y](file:///etc/passwd) [z](/a) [w](https://)", []),
    ]:
        check_only_the_web_and_mail_become_links(text, links)


def check_only_the_web_and_mail_become_links(text: str, links: list[str]) -> None:
    assert [span.link for span in spans(text) if span.link] == links


def test_a_cut_of_the_source_keeps_its_marks_in_pairs() -> None:
    for chosen, copied in [
        ("some bold and code here", None),
        ("bold", "**bold**"),
        ("ld and co", "**ld** and `co`"),
        ("e b", "e **b**"),
        ("some", "some"),
    ]:
        check_a_cut_of_the_source_keeps_its_marks_in_pairs(chosen, copied)


def check_a_cut_of_the_source_keeps_its_marks_in_pairs(chosen: str, copied: str | None) -> None:
    text = "some **bold** and `code` here"
    line = read(text)
    shown = "".join(span.text for span in line.spans)
    places = [span.start + offset for span in line.spans for offset in range(len(span.text))]
    begin = shown.index(chosen)
    start, end = places[begin], places[begin + len(chosen) - 1] + 1
    assert source_of(text, start, end, line.marks) == (copied or text)
