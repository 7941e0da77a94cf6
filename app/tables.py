"""The cells of a Markdown table. Knows nothing of what stands in them, and of the text around it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """`rows`: the heading first, each as long as the heading. `alignments`: per column -1 left, 0 centre, 1 right."""

    rows: tuple[tuple[str, ...], ...]
    alignments: tuple[int, ...]


_BREAK = re.compile(r"<br\s*/?>", re.I)


def table(text: str) -> Table:
    """The lines of a table, its heading and delimiters first."""
    heading, delimiters, *rows = text.split("\n")
    columns = cells(heading)
    alignments = tuple(
        0 if cell[:1] == ":" and cell[-1:] == ":" else 1 if cell[-1:] == ":" else -1 for cell in cells(delimiters)
    )
    filled = [(cells(row) + [""] * len(columns))[: len(columns)] for row in rows]
    return Table(tuple(tuple(_BREAK.sub("\n", cell) for cell in row) for row in [columns, *filled]), alignments)


def cells(line: str) -> list[str]:
    """The cells of a table's line: a bar in code, or with a backslash before it, divides nothing."""
    found, cell, ticks, escaped = [], "", "", False
    line = line.strip().removeprefix("|")
    for run in re.findall(r"\\.|`+|[^\\`|]+|.", line):
        if run.startswith("`"):
            ticks = "" if run == ticks else (ticks or (run if run in line.split(run, 1)[-1] else ""))
            cell += run
        elif run == "|" and not ticks:
            found.append(cell.strip())
            cell = ""
        else:
            cell += "|" if run == "\\|" else run
        escaped = run == "|" and not ticks
    if cell.strip() or not escaped:
        found.append(cell.strip())
    return found
