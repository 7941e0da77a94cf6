"""The parts of a report, the same for every format: paragraphs, tables and pictures.

Everything shown is computed by `engine.bench.figures`. Knows nothing of HTML, Markdown and terminals.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from engine import stats
from engine.bench.figures import ALL, Figures, Spread, figures, parts_of, ratio
from engine.bench.glance import MODES, NOTHING, Table, counted, glance, ratio_text, ratio_texts, spread_text
from engine.bench.plan import DRAFT_LENGTH, SWEEPS, whole_block
from engine.bench.results import PartResult, Results
from engine.bench.verdict import BASELINE, DFLASH, DFLASH2, verdict
from engine.events import Mode, SamplerSettings
from engine.pictures import bar_chart, line_chart
from engine.stats import MODE_NAMES

DRAFTING = (Mode.DFLASH, Mode.DFLASH2)


@dataclass(frozen=True)
class Section:
    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[str, ...] = ()  # SVG
    points: tuple[str, ...] = field(default=())  # a list


def sections(results: Results, beside: Results | None = None) -> list[Section]:
    """In the order in which they are read; those without content are left out."""
    found = [
        Section("What it says", points=tuple(verdict(results))),
        Section("At a glance", tables=tuple(glance(results, t) for t in results.plan.conditions.temperatures)),
        _beside(results, beside) if beside is not None else Section(""),
        _kinds(results),
        _positions(results),
        _concurrency(results),
        _start(results),
        _quality(results),
        *_sweeps(results),
        _conditions(results),
        Section(
            "How to repeat it",
            ("On the machine that is asked about, with nothing else running:", f"    {results.command}"),
        ),
        _words(),
    ]
    return [s for s in found if s.tables or s.paragraphs or s.points or s.pictures]


# --- the others -------------------------------------------------------------------------------------------------------


def _kinds(results: Results) -> Section:
    kinds = list(dict.fromkeys(question.kind for question in results.plan.questions))
    if len(kinds) < 2:
        return Section("")
    tables, pictures = [], []
    for temperature in results.plan.conditions.temperatures:
        rows = []
        speeds: dict[str, list[float | None]] = {name: [] for name in MODES}
        for kind in kinds:
            of = {name: figures(results, name, results.plan.conditions.least, temperature, kind) for name in MODES}
            for name, found in of.items():
                speeds[name].append(found.throughput.value if found and found.throughput else None)
            alone = [of_drafter(results, mode, temperature, kind) for mode in DRAFTING]
            lengths = [spread_text(f.acceptance_length if f else None, "{:.2f}", short=True) for f in alone]
            rows.append(
                (
                    kind,
                    *(spread_text(f.throughput if f else None, "{:.1f}", short=True) for f in of.values()),
                    *ratio_texts(results, results.plan.conditions.least, temperature, kind),
                    *lengths,
                )
            )
        head = (
            "kind", *MODES, f"{DFLASH} / baseline", f"{DFLASH2} / {DFLASH}",
            f"acceptance length, {DFLASH}", f"acceptance length, {DFLASH2}",
        )  # fmt: skip
        tables.append(Table(head, tuple(rows), f"Tokens/s at temperature {temperature:g}, one question at a time"))
        measured = {name: values for name, values in speeds.items() if any(values)}
        if measured:
            title = f"Tokens/s by kind, temperature {temperature:g}"
            pictures.append(bar_chart(title, "tokens/s", kinds, measured, order=MODES))
    return Section("By kind of question", tables=tuple(tables), pictures=tuple(pictures))


def of_drafter(results: Results, mode: Mode, temperature: float, kind: str = ALL) -> Figures | None:
    """Of whole blocks where those were measured: where the program decides, only likely drafts are verified."""
    alone = figures(results, whole_block(mode).name, 1, temperature, kind)
    return alone or figures(results, MODE_NAMES[mode], results.plan.conditions.least, temperature, kind)


def _positions(results: Results) -> Section:
    rows: list[tuple[str, ...]] = []
    pictures = []
    for temperature in results.plan.conditions.temperatures:
        lines = {}
        for mode in DRAFTING:
            name = MODE_NAMES[mode]
            found = of_drafter(results, mode, temperature)
            shares = found.by_position if found else ()
            if found is not None and any(share is not None for share in shares):
                cells = (NOTHING if share is None else f"{100 * share:.0f}" for share in shares)
                passes = spread_text(found.verification_passes, "{:g}", short=True)
                rows.append((f"{name}, temperature {temperature:g}", passes, *cells))
                lines[name] = [(k, 100 * share) for k, share in enumerate(shares, 1) if share is not None]
        if lines:
            title = f"Drafts 1 to k all accepted, temperature {temperature:g}"
            pictures.append(line_chart(title, "position k", "% of the passes that verified it", lines, order=MODES))
    width = max((len(row) for row in rows), default=2)
    padded = tuple((*row, *[NOTHING] * (width - len(row))) for row in rows)
    head = ("% of the passes that verified draft k", "passes", *(str(k) for k in range(1, width - 1)))
    return Section("Acceptance by position", tables=(Table(head, padded),) if rows else (), pictures=tuple(pictures))


def _concurrency(results: Results) -> Section:
    conditions = results.plan.conditions
    if len(conditions.concurrency) < 2:
        return Section("")
    temperature = conditions.temperatures[0]
    in_all: dict[str, list[float | None]] = {}
    for name in MODES:
        found = [figures(results, name, count, temperature) for count in conditions.concurrency]
        values = [f.throughput.value if f and f.throughput else None for f in found]
        if any(values):
            in_all[name] = values
    if not in_all:
        return Section("")
    groups = [f"{count} at once" for count in conditions.concurrency]
    text = (
        "Several questions in one engine: their drafts in one pass of the drafter, their verifications in one pass of "
        "the target. A question whose answer ends gives its place to the next. In all: tokens of all cycles / time of "
        "all cycles, the reading of prompts left out."
    )
    picture = bar_chart(f"Tokens/s in all, temperature {temperature:g}", "tokens/s", groups, in_all, order=MODES)
    return Section("Several at once", (text,), pictures=(picture,))


def drafter_mib(part: PartResult) -> float | None:
    weights = part.memory["drafter_weights"] if part.memory else None
    return None if weights is None else float(weights) / 2**20


def _start(results: Results) -> Section:
    """Start-up and memory by part, with the fewest answers at once; medians over the runs."""
    least = results.plan.conditions.least
    of = [[p for p in parts_of(results, name, least) if p.start_s is not None] for name in MODES]
    rows: list[tuple[str, ...]] = []

    def row(
        label: str, pattern: str, value: Callable[[PartResult], float | None], groups: list[list[PartResult]]
    ) -> None:
        spreads = [Spread.of(map(value, parts)) for parts in groups]
        if any(spreads):
            rows.append((label, *(spread_text(spread, pattern, short=True) for spread in spreads)))

    def part_of_memory(name: str) -> Callable[[PartResult], float | None]:
        return lambda part: None if not part.memory or part.memory[name] is None else part.memory[name] / 2**20

    row("process and libraries, s", "{:.2f}", lambda p: (p.start_s or 0) - (p.target_s or 0), of)
    row("loading the target, s", "{:.2f}", lambda p: p.target_s, of)
    row("loading the drafter, s", "{:.2f}", lambda p: p.drafter_s, of)
    row("measuring what passes cost (the chat does it once for a pair), s", "{:.2f}", lambda p: p.measured_s, of)
    for count in results.plan.conditions.concurrency:
        at_once = [parts_of(results, name, count) for name in MODES]
        label = "peak memory, MiB" if count == 1 else f"peak memory with {count} at once, MiB"
        row(label, "{:.0f}", lambda p: None if p.peak_bytes is None else p.peak_bytes / 2**20, at_once)
    for name, label in (
        ("target_weights", "target's weights"),
        ("target_context", "target's context"),
        ("drafter_weights", "drafter's weights"),
        ("drafter_kv", "drafter's keys and values"),
    ):
        row(f"of which the {label}, MiB", "{:.1f}", part_of_memory(name), of)
    note = "Memory: resident memory of the engine process, which has no children. The files had been read before."
    return Section("Start-up and memory", tables=(Table(("", *MODES), tuple(rows), note=note),) if rows else ())


def _quality(results: Results) -> Section:
    tables = []
    if results.agreements:
        rows = [
            (
                a.variant, str(a.concurrency), a.question, str(a.position + 1),
                NOTHING if a.gap is None else f"{a.gap:.3f}", NOTHING if a.noise is None else f"{a.noise:.3f}",
                {True: "near-tie", False: "NO", None: NOTHING}[a.near_tie],
            )
            for a in results.agreements
        ]  # fmt: skip
        head = ("mode", "at once", "question", "token", "gap of the logits", "rounding there", "explained")
        tables.append(
            Table(head, tuple(dict.fromkeys(rows)), "Greedy answers that differ: the first difference",
                  "A near-tie: the gap between the two logits is at most twice what batched arithmetic moves them by.")
        )  # fmt: skip
    scores: list[tuple[str, ...]] = []
    for temperature in results.plan.conditions.temperatures:
        of = [figures(results, name, results.plan.conditions.least, temperature) for name in MODES]
        if any(f and f.right for f in of):
            cells = [f"{f.right[0]} of {f.right[1]}" if f and f.right else NOTHING for f in of]
            scores.append((f"temperature {temperature:g}", *cells))
    if scores:
        note = (
            "Answers with a known result, over all runs. Modes that say the same score the same; drawn answers differ "
            "by chance."
        )
        tables.append(Table(("right answers", *MODES), tuple(scores), "Scores", note))
    if results.samples:
        drawn = [
            (s.variant, f"{s.temperature:g}", str(s.samples), str(s.tokens), f"{s.distance:.1f}", f"{s.p:.3f}")
            for s in results.samples
        ]
        columns = ("mode", "temperature", "answers drawn", "tokens of each", "chi-square", "p")
        note = (
            "p: how often two samples of the same distribution differ at least as much (permutation test). "
            "Below 0.01 would be a reason to worry."
        )
        tables.append(Table(columns, tuple(drawn), "Drawn answers against the baseline's", note))
    return Section("Are the answers the same?", tables=tuple(tables))


def _sweeps(results: Results) -> list[Section]:
    found = []
    temperature = results.plan.conditions.temperatures[0]
    for sweep, title in SWEEPS.items():
        variants = [variant for variant in results.plan.variants if variant.sweep == sweep]
        rows = []
        lines: dict[str, list[tuple[float, float]]] = {}
        for variant in variants:
            of = figures(results, variant.name, 1, temperature)
            if of is None:
                continue
            against = ratio(results, variant.name, BASELINE, 1, temperature)
            rows.append(
                (
                    variant.name,
                    spread_text(of.acceptance_length, "{:.2f}"),
                    spread_text(of.tokens_per_target_pass, "{:.2f}"),
                    spread_text(of.throughput, "{:.1f}"),
                    ratio_text(against),
                    spread_text(Spread.of(map(drafter_mib, parts_of(results, variant.name, 1))), "{:.1f}", short=True),
                )
            )
            if sweep == DRAFT_LENGTH and variant.draft_length is not None and against is not None:
                lines.setdefault(variant.name.partition(",")[0], []).append((variant.draft_length, against.value))
        if not rows:
            continue
        head = ("", "acceptance length", "tokens per target pass", "tokens/s", "× baseline", "drafter in memory, MiB")
        note = f"Temperature {temperature:g}, one question at a time; the baseline at the same questions."
        chart = "Tokens/s against the baseline's, by drafts verified"
        pictures = (line_chart(chart, "drafts", "× baseline", lines, order=MODES),) if lines else ()
        found.append(Section(title, tables=(Table(head, tuple(rows), note=note),), pictures=pictures))
    return found


def _beside(results: Results, other: Results) -> Section:
    conditions, theirs = results.plan.conditions, other.plan.conditions
    rows = []
    for temperature in conditions.temperatures:
        for count in conditions.concurrency:
            for name in MODES:
                mine, old = (figures(r, name, count, temperature) for r in (results, other))
                if mine is None or old is None:
                    continue
                quotient = (
                    f"{mine.throughput.value / old.throughput.value:.2f}"
                    if mine.throughput and old.throughput
                    else NOTHING
                )
                rows.append(
                    (
                        name, f"{temperature:g}", str(count),
                        spread_text(mine.throughput, "{:.1f}"), spread_text(old.throughput, "{:.1f}"), quotient,
                        spread_text(mine.acceptance_length, "{:.2f}", short=True),
                        spread_text(old.acceptance_length, "{:.2f}", short=True),
                    )
                )  # fmt: skip
    said = [f"Beside the report of {other.started}, on {other.machine['processor']}."]
    differing = [
        name
        for name, a, b in (
            ("the target's file", results.files["target"]["sha256"], other.files["target"]["sha256"]),
            ("the drafters' files", _hashes(results), _hashes(other)),
            ("the questions", results.plan.questions, other.plan.questions),
            ("the longest answer", conditions.max_tokens, theirs.max_tokens),
            ("the processor", results.machine["processor"], other.machine["processor"]),
            ("the threads", results.machine["threads_used"], other.machine["threads_used"]),
            ("the program's versions", results.machine["versions"], other.machine["versions"]),
        )
        if a != b
    ]
    said.append(f"What differs: {', '.join(differing)}." if differing else "The conditions are the same.")
    if not rows:
        said.append("The two have no figure in common.")
    head = ("mode", "temperature", "at once", "tokens/s here", "tokens/s there", "here / there",
            "acceptance length here", "there")  # fmt: skip
    return Section("Beside another report", tuple(said), (Table(head, tuple(rows)),) if rows else ())


def _hashes(results: Results) -> list[str]:
    return [file["sha256"] for key, file in sorted(results.files.items()) if key != "target"]


def _conditions(results: Results) -> Section:
    machine, conditions, usual = results.machine, results.plan.conditions, SamplerSettings()
    cores = counted(machine["cores"] or machine["threads_of_the_machine"], "core")
    loads = [part.others_load for part in results.parts if part.others_load is not None]
    rows = [
        ("begun", results.started),
        ("processor", f"{machine['processor']}, {cores}, {counted(machine['threads_used'], 'thread')} used"),
        ("memory", f"{machine['memory_bytes'] / 2**30:.1f} GiB"),
        ("system", f"{machine['system']}, Python {machine['python']}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in machine["versions"].items())),
        ("load before", NOTHING if machine["load_before"] is None else f"{machine['load_before']:.2f}"),
    ]
    if loads:
        rows.append(("other programs meanwhile", f"{min(loads):.0%} to {max(loads):.0%} of all processors"))
    rows += [
        ("questions", f"{len(results.plan.questions)} ({conditions.suite})"),
        ("longest answer", f"{conditions.max_tokens} tokens"),
        ("context", f"{conditions.context} tokens for each sequence, keys and values {conditions.kv_type}"),
        ("device", next((part.device for part in results.parts if part.device), NOTHING)),
        ("runs", f"{conditions.runs}, each mode in a fresh process, the modes taking turns, after a warm-up"),
        ("seeds", f"{conditions.seed} and on, one for each question, the same in all modes"),
        (
            "sampling",
            f"temperature as given; top-k {usual.top_k}, top-p {usual.top_p}, min-p {usual.min_p}, no penalties",
        ),
    ]
    files = []
    for key, file in results.files.items():
        size = f"{file['bytes'] / 1e6:.1f} MB"
        files.append((key, file["file"], file["quantisation"], size, file["sha256"]))
    head = ("", "file", "quantisation", "size", "SHA-256")
    return Section("Conditions", tables=(Table(("", ""), tuple(rows)), Table(head, tuple(files))))


def _words() -> Section:
    """The definitions, as they stand beside the code that computes the figures."""
    points: list[str] = []
    for line in (stats.__doc__ or "").splitlines():
        found = re.match(r"(\S.*?) {2,}(\S.*)", line)
        if found:
            points.append(f"{found[1]}: {found[2]}")
        elif points and line.startswith(" "):
            points[-1] += f" {line.strip()}"
    return Section("What the words mean", points=tuple(points))
