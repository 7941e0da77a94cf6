"""A report as Markdown, for a README, and as a table for the terminal that fits one screen."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence

from engine.bench.glance import Table
from engine.bench.sections import Section


def markdown(title: str, subtitle: str, sections: Sequence[Section], page: str) -> str:
    """`page`: the name of the HTML page beside it, which has the pictures."""
    parts = [f"# {title}", subtitle]
    pictures = False
    for section in sections:
        if section.points or section.paragraphs or section.tables:
            parts.append(f"## {section.title}")
        parts += section.paragraphs
        if section.points:
            parts.append("\n".join(f"- {point}" for point in section.points))
        parts += [_markdown_table(table) for table in section.tables]
        pictures = pictures or bool(section.pictures)
    if pictures:
        parts.append(f"The same with pictures: [{page}]({page}).")
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    lines = [f"### {table.title}", ""] if table.title else []
    lines += [_row(table.head), _row(["---", *["---:"] * (len(table.head) - 1)])]
    lines += [_row(row) for row in table.rows]
    return "\n".join([*lines, *(["", table.note] if table.note else [])])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def screen(title: str, table: Table, sentences: Sequence[str], width: int = 100) -> str:
    """The table in columns, and the sentences below it."""
    columns = list(zip(table.head, *table.rows))
    widths = [max(map(_width, column)) for column in columns]
    lines = [title, table.title, ""]
    for row in (table.head, *table.rows):
        gaps = [" " * (wide - _width(cell)) for cell, wide in zip(row, widths)]
        right = [gap + cell for gap, cell in zip(gaps[1:], row[1:])]
        lines.append("  ".join([row[0] + gaps[0], *right]))
        if row is table.head:
            lines.append("─" * (sum(widths) + 2 * (len(widths) - 1)))
    if table.note:
        lines += ["", table.note]
    for sentence in sentences:
        lines += ["", *textwrap.wrap(sentence, width, initial_indent="• ", subsequent_indent="  ")]
    return "\n".join(lines)


def _width(text: str) -> int:
    """Columns of a terminal."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
