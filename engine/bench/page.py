"""A report as one HTML page that needs nothing beside it: tables, pictures drawn in it, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from engine.bench.glance import Table
from engine.bench.sections import Section

_STYLE = """
:root { --ground: #fbfbfa; --card: #ffffff; --ink: #1e2023; --muted: #61646b; --line: #e1e1dc; --head: #f4f4f1;
  --c0: #6b7078; --c1: #d1541f; --c2: #2f5fd0; --c3: #13806e; --c4: #8a4fbf; --c5: #8c6d1f; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #17181b; --card: #212327; --ink: #ecedef; --muted: #a2a6ae; --line: #32353b; --head: #1c1d21;
    --c0: #a2a6ae; --c1: #ff9a6b; --c2: #8cabff; --c3: #4fc0a9; --c4: #c79bf2; --c5: #efc06a; } }
* { box-sizing: border-box; }
body { background: var(--ground); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; margin: 0; }
main { max-width: 70rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
h1 { font-size: 1.75rem; margin: 0 0 .25rem; } h2 { font-size: 1.25rem; margin: 2.75rem 0 .75rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
p.of, p.note { color: var(--muted); margin: .25rem 0 1rem; } p.note { font-size: .875rem; }
li { margin: .35rem 0; }
.wide { overflow-x: auto; border: 1px solid var(--line); border-radius: .6rem; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .8rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { background: var(--head); font-weight: 600; white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; } tr:last-child td { border-bottom: none; }
table.facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
table.facts td:first-child { color: var(--muted); white-space: nowrap; }
pre { background: var(--head); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem;
  overflow-x: auto; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 28rem), 1fr)); gap: 1rem;
  margin: 1rem 0; }
svg { width: 100%; height: auto; border: 1px solid var(--line); border-radius: .6rem; }
svg .ground { fill: var(--card); } svg .ink { fill: var(--ink); } svg .grid { stroke: var(--line); }
""" + "".join(
    f"svg .c{n} {{ fill: var(--c{n}); }} svg .line.c{n} {{ fill: none; stroke: var(--c{n}); }}\n" for n in range(6)
)


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>",
        f'<h1>{escape(title)}</h1><p class="of">{escape(subtitle)}</p>',
    ]
    for section in sections:
        parts.append(f"<h2>{escape(section.title)}</h2>")
        parts += [_paragraph(text) for text in section.paragraphs]
        if section.points:
            parts.append("<ul>" + "".join(f"<li>{escape(point)}</li>" for point in section.points) + "</ul>")
        parts += [_table(table) for table in section.tables]
        if section.pictures:
            parts.append('<div class="pictures">' + "".join(section.pictures) + "</div>")
    return "\n".join([*parts, "</main></body></html>"]) + "\n"


def _paragraph(text: str) -> str:
    return f"<pre>{escape(text.strip())}</pre>" if text.startswith("    ") else f"<p>{escape(text)}</p>"


def _table(table: Table) -> str:
    title = f"<h3>{escape(table.title)}</h3>" if table.title else ""
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    facts = not any(table.head)  # names and values, without a head
    head = "" if facts else f"<tr>{_cells('th', table.head)}</tr>".replace("DFlash 2", "DFlash&nbsp;2")
    rows = "".join(f"<tr>{_cells('td', row)}</tr>" for row in table.rows)
    kind = ' class="facts"' if facts else ""
    return f'{title}<div class="wide"><table{kind}>{head}{rows}</table></div>{note}'


def _cells(tag: str, cells: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
