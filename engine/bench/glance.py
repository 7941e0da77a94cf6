"""The report's main table, and how its cells are written.

Knows nothing of HTML, Markdown and terminals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.bench.figures import ALL, Figures, Spread, acceptance_of, figures, ratio
from engine.bench.results import Results
from engine.bench.verdict import BASELINE, DFLASH, DFLASH2, start_and_memory
from engine.events import Mode

NOTHING = "–"
MODES = (BASELINE, DFLASH, DFLASH2)
_KEYS = {BASELINE: Mode.BASELINE.value, DFLASH: Mode.DFLASH.value, DFLASH2: Mode.DFLASH2.value}


@dataclass(frozen=True)
class Table:
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    note: str = ""


def glance(results: Results, temperature: float, short: bool = False) -> Table:
    """A row for each figure, a column for each mode, and the two ratios. `short`: ranges for the ratios only."""
    conditions = results.plan.conditions
    alone = {name: figures(results, name, results.plan.conditions.least, temperature) for name in MODES}
    rows: list[tuple[str, ...]] = []
    for count in conditions.concurrency:
        at_once = {name: figures(results, name, count, temperature) for name in MODES}
        label = "tokens/s, one at a time" if count == 1 else f"tokens/s in all, {count} at once"
        cells = [spread_text(f.throughput if f else None, "{:.1f}", short) for f in at_once.values()]
        rows.append((label, *cells, *ratio_texts(results, count, temperature)))
        if count > 1:
            cells = [spread_text(f.each if f else None, "{:.1f}", short) for f in at_once.values()]
            rows.append((f"tokens/s of each, {count} at once", *cells, NOTHING, NOTHING))
    lengths = (ratio_text(ratio(results, DFLASH2, DFLASH, conditions.least, temperature, measure=acceptance_of)),)

    def row(label: str, pattern: str, figure: Callable[[Figures], Spread | None], last: str = NOTHING) -> None:
        cells = [spread_text(figure(f) if f else None, pattern, short) for f in alone.values()]
        if any(cell != NOTHING for cell in cells):
            rows.append((label, *cells, NOTHING, last))

    row("time to first token, ms", "{:.0f}", lambda f: _scaled(f.first_token_s, 1000))
    row("acceptance length", "{:.2f}", lambda f: f.acceptance_length, *lengths)
    row("tokens per target pass", "{:.2f}", lambda f: f.tokens_per_target_pass)
    row("drafts accepted, %", "{:.0f}", lambda f: _scaled(f.acceptance_rate, 100))
    row("verification passes", "{:g}", lambda f: f.verification_passes if f.acceptance_length else None)
    row("draft step, ms", "{:.1f}", lambda f: f.draft_ms)
    row("verification pass, ms", "{:.1f}", lambda f: f.verify_ms)
    started = {name: start_and_memory(results, name) for name in MODES}
    if any(started.values()):
        rows.append(("ready after, s", *(f"{s[0]:.2f}" if s else NOTHING for s in started.values()), NOTHING, NOTHING))
        rows.append(
            ("peak memory, MiB", *(f"{s[1] / 2**20:.0f}" if s else NOTHING for s in started.values()), NOTHING, NOTHING)
        )
    sizes = [_disk(results, name) for name in MODES]
    if any(size != NOTHING for size in sizes):
        rows.append(("drafter on disk, MB", *sizes, NOTHING, NOTHING))
    rights = [f.right if f else None for f in alone.values()]
    if any(rights):
        rows.append(("right answers", *(f"{r[0]} of {r[1]}" if r else NOTHING for r in rights), NOTHING, NOTHING))
    answers = max((f.answers for f in alone.values() if f), default=0)
    note = f"{counted(answers, 'question')}, up to {counted(conditions.max_tokens, 'token')} each; "
    if conditions.runs == 1:
        note += "one run."
    else:
        note += f"medians over {conditions.runs} runs, in brackets the lowest and the highest."
    for name, found in alone.items():
        if found is not None and not found.complete:
            whole = counted(len(results.plan.questions), "question")
            note += f" {name} was stopped before its end, in one run at least: {found.answers} of {whole}."
    return Table(("", *MODES, f"{DFLASH} / baseline", f"{DFLASH2} / {DFLASH}"), tuple(rows),
                 f"Temperature {temperature:g}", note)  # fmt: skip


def ratio_texts(results: Results, concurrency: int, temperature: float, kind: str = ALL) -> tuple[str, str]:
    return (
        ratio_text(ratio(results, DFLASH, BASELINE, concurrency, temperature, kind)),
        ratio_text(ratio(results, DFLASH2, DFLASH, concurrency, temperature, kind)),
    )


def _disk(results: Results, name: str) -> str:
    file = results.files.get(_KEYS[name])
    return NOTHING if file is None or name == BASELINE else f"{file['bytes'] / 1e6:.1f}"


# --- cells ------------------------------------------------------------------------------------------------------------


def counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def spread_text(spread: Spread | None, pattern: str, short: bool = False) -> str:
    if spread is None:
        return NOTHING
    value, low, high = (pattern.format(v) for v in (spread.value, spread.low, spread.high))
    return value if short or spread.runs < 2 or low == high else f"{value} ({low}–{high})"


def ratio_text(spread: Spread | None) -> str:
    return spread_text(spread, "{:.2f}")


def _scaled(spread: Spread | None, by: float) -> Spread | None:
    return None if spread is None else Spread(spread.value * by, spread.low * by, spread.high * by, spread.runs)
