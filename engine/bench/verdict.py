"""What the figures say, in sentences: which mode is faster here, what it costs, and whether the answers are the same.

A mode is called faster or slower only where all runs agree. Knows nothing of layout.
"""

from __future__ import annotations

from statistics import median

from engine.bench.figures import Spread, acceptance_of, figures, parts_of, ratio
from engine.bench.plan import whole_block
from engine.bench.results import Agreement, Results
from engine.events import Mode
from engine.stats import MODE_NAMES

BASELINE, DFLASH, DFLASH2 = (MODE_NAMES[mode] for mode in Mode)
NOISY = 0.10  # of the processors, taken by others: from there on speeds are called provisional
BUSY = 0.25  # and from there on nobody is called faster
HARDLY = 1.05  # tokens per target pass below which a mode has hardly drafted


def verdict(results: Results) -> list[str]:
    """Sentences, the most important first."""
    sentences = [] if not results.note else [results.note]
    others = busiest(results)
    if others >= NOISY:
        sentences.append(
            f"Other programs took up to {others:.0%} of the processors meanwhile: read the speeds as ratios, and "
            "measure again on a quiet machine before relying on them."
        )
    return [
        *sentences,
        *_speed(results),
        *_acceptance(results),
        *_several(results),
        *_price(results),
        *_same(results),
        *_missing(results),
    ]


def busiest(results: Results) -> float:
    """The most that other programs took of all processors, in any part."""
    return max((part.others_load or 0.0 for part in results.parts), default=0.0)


def _speed(results: Results) -> list[str]:
    sentences = []
    least = results.plan.conditions.least
    once = "one question at a time" if least == 1 else f"{least} questions at once"
    busy = busiest(results) >= BUSY
    for temperature in results.plan.conditions.temperatures:
        against = {name: ratio(results, name, BASELINE, least, temperature) for name in (DFLASH, DFLASH2)}
        known = {name: spread for name, spread in against.items() if spread is not None}
        if not known:
            continue
        parts = [f"{name} {_times(spread, busy)}" for name, spread in known.items()]
        words = f"Temperature {temperature:g}, {once}: against the baseline's tokens/s, {' and '.join(parts)}."
        between = ratio(results, DFLASH2, DFLASH, least, temperature)
        if between is not None:
            words += f" Against {DFLASH}'s, {DFLASH2} {_times(between, busy)}."
            one = known.get(DFLASH)
            if one is not None and min(one.runs, between.runs) > 1 and not busy:
                held = between.low > 1 and one.low > 1
                words += f" The order {DFLASH2}, {DFLASH}, baseline {'held' if held else 'did not hold'} in every run."
        sentences.append(words)
        sentences += _hardly(results, least, temperature)
    return sentences


def _hardly(results: Results, concurrency: int, temperature: float) -> list[str]:
    """A mode whose draft length is automatic may do what the baseline does: its speed then says nothing of drafts."""
    said = []
    for name in (DFLASH, DFLASH2):
        found = figures(results, name, concurrency, temperature)
        tokens = found.tokens_per_target_pass if found is not None else None
        if tokens is not None and tokens.value < HARDLY:
            said.append(f"{name} ({tokens.value:.2f} tokens per target pass)")
    if not said:
        return []
    return [f"At temperature {temperature:g} hardly anything was drafted, or accepted, with {' and '.join(said)}."]


def _acceptance(results: Results) -> list[str]:
    """Of whole blocks where those were measured: there no policy decides how many drafts are verified."""
    conditions = results.plan.conditions
    temperature = conditions.temperatures[0]
    names = {mode: whole_block(mode).name for mode in (Mode.DFLASH, Mode.DFLASH2)}
    concurrency, how = 1, "With every draft of a block verified, a pass"
    if not any(figures(results, name, 1, temperature) for name in names.values()):
        names = {mode: MODE_NAMES[mode] for mode in names}
        concurrency, how = conditions.least, "A verification pass"
    said = [
        (found.acceptance_length.value, MODE_NAMES[mode])
        for mode, name in names.items()
        if (found := figures(results, name, concurrency, temperature)) and found.acceptance_length
    ]
    if not said:
        return []
    more = ratio(results, names[Mode.DFLASH2], names[Mode.DFLASH], concurrency, temperature, measure=acceptance_of)
    times = f" ({more.value:.2f} times as many)" if more is not None else ""
    words = " and ".join(f"{value:.2f} with {name}" for value, name in said).replace(" with", " tokens with", 1)
    return [f"{how} gave {words}{times}."]


def _several(results: Results) -> list[str]:
    conditions = results.plan.conditions
    most = max(conditions.concurrency)
    if most == 1 or 1 not in conditions.concurrency:
        return []
    temperature = conditions.temperatures[0]
    said = []
    for name in (BASELINE, DFLASH, DFLASH2):
        one, many = (figures(results, name, count, temperature) for count in (1, most))
        if one is not None and many is not None and one.throughput is not None and many.throughput is not None:
            said.append(f"{many.throughput.value / one.throughput.value:.2f} × with {name}")
    return [f"{most} answers at once, against one at a time: tokens/s in all {', '.join(said)}."] if said else []


def _price(results: Results) -> list[str]:
    said = []
    base = start_and_memory(results, BASELINE)
    for name, key in ((DFLASH, Mode.DFLASH.value), (DFLASH2, Mode.DFLASH2.value)):
        found, file = start_and_memory(results, name), results.files.get(key)
        if found is None or base is None or file is None:
            continue
        seconds, peak = found
        more = peak - base[1]
        said.append(
            f"{name} {_signed(seconds - base[0])} s of start-up, {_signed(more / 2**20, 0)} MiB of memory and "
            f"{file['bytes'] / 1e6:.1f} MB on disk"
        )
    return [f"The price: {'; '.join(said)}."] if said else []


def start_and_memory(results: Results, variant: str) -> tuple[float, float] | None:
    """Medians, with the fewest answers at once.

    (seconds until target and drafter are ready, bytes of the engine process at its peak)
    """
    parts = [
        p
        for p in parts_of(results, variant, results.plan.conditions.least)
        if p.start_s is not None and p.peak_bytes is not None
    ]
    if not parts:
        return None
    return (
        median((part.start_s or 0.0) + (part.drafter_s or 0.0) for part in parts),
        median(part.peak_bytes or 0 for part in parts),
    )


def _same(results: Results) -> list[str]:
    sentences = []
    if results.compared:
        kinds = counted(results.agreements)
        if not results.agreements:
            sentences.append(f"All {results.compared} greedy answers are the baseline's, token for token.")
        else:
            same = results.compared - len(results.agreements)
            said = [f"{count} {words}" for words, count in kinds.items() if count]
            sentences.append(
                f"{same} of {results.compared} greedy answers are the baseline's, token for token; the others part "
                f"from it: {', '.join(said)}."
            )
    for test in results.samples:
        judged = "no difference is to be seen" if test.p >= 0.01 else "the distributions differ: please report it"
        sentences.append(
            f"{test.samples} drawn beginnings of answers with {test.variant} against as many of the baseline's: "
            f"p = {test.p:.2f}, {judged}."
        )
    return sentences


def counted(agreements: list[Agreement]) -> dict[str, int]:
    return {
        "at a near-tie": sum(a.near_tie is True for a in agreements),
        "by more than rounding explains (please report it)": sum(a.near_tie is False for a in agreements),
        "not looked at": sum(a.near_tie is None for a in agreements),
    }


def _missing(results: Results) -> list[str]:
    sentences = [f"{MODE_NAMES[mode]} was not measured. {reason}" for mode, reason in results.plan.missing]
    seen = set()
    for part in results.parts:
        if part.error and part.variant not in seen:
            seen.add(part.variant)
            sentences.append(f"{part.variant} could not be measured: {part.error}")
    return sentences


def _times(spread: Spread, busy: bool) -> str:
    return f"{spread.value:.2f} × ({_judged(spread, busy)})"


def _judged(spread: Spread, busy: bool) -> str:
    if spread.runs < 2:
        return "one run"
    over = f"{spread.low:.2f}–{spread.high:.2f} in {spread.runs} runs"
    if busy:
        return f"{over}, on too busy a machine to judge"
    if spread.low > 1:
        return f"{over}, faster"
    if spread.high < 1:
        return f"{over}, slower"
    return f"{over}, no clear difference"


def _signed(value: float, digits: int = 2) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")
