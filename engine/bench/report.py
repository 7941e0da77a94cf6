"""The report of a benchmark: a page, Markdown and raw numbers in a folder, and a table for the terminal."""

from __future__ import annotations

from pathlib import Path

from engine.bench.glance import counted, glance
from engine.bench.page import page as html_page
from engine.bench.results import Results, write
from engine.bench.sections import sections
from engine.bench.text import markdown, screen
from engine.bench.verdict import verdict

PAGE, MARKDOWN = "report.html", "report.md"


def title(results: Results) -> str:
    return f"Baseline, DFlash and DFlash 2 on {results.files['target']['name']}"


def subtitle(results: Results) -> str:
    conditions, machine = results.plan.conditions, results.machine
    return (
        f"{results.started[:16]} · {results.files['target']['quantisation']} · {machine['processor']}, "
        f"{counted(machine['threads_used'], 'thread')} · {len(results.plan.questions)} questions, up to "
        f"{conditions.max_tokens} tokens · {counted(conditions.runs, 'run')}"
    )


def write_report(results: Results, folder: Path, beside: Results | None = None) -> tuple[Path, Path, Path]:
    """The page, the Markdown and the raw numbers. Raises OSError."""
    parts = sections(results, beside)
    page, mark = folder / PAGE, folder / MARKDOWN
    page.write_text(html_page(title(results), subtitle(results), parts), "utf-8")
    mark.write_text(markdown(title(results), subtitle(results), parts, PAGE), "utf-8")
    return page, mark, write(results, folder)


def for_terminal(results: Results) -> str:
    table = glance(results, results.plan.conditions.temperatures[0], short=True)
    return screen(f"{title(results)}\n{subtitle(results)}", table, verdict(results))
