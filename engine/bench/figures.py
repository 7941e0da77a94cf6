"""From raw results to figures: pooled over answers, medians over runs with their spread, ratios between the modes.

Every figure of speed and drafting is computed by `engine.stats.AnswerRecorder`, which is told again what happened in
each cycle; so it means here what it means in the live panel and in `--json`. Knows nothing of how figures are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from engine.bench.results import AnswerResult, PartResult, Results
from engine.events import AnswerStatistics, Memory, Mode
from engine.stats import AnswerRecorder

ALL = "all"  # every kind together
_NO_MEMORY = Memory(0, 0, 0, 0)


@dataclass(frozen=True)
class Spread:
    """Median over runs, lowest and highest."""

    value: float
    low: float
    high: float
    runs: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """None where nothing was measured."""
        known = [value for value in values if value is not None]
        return cls(median(known), min(known), max(known), len(known)) if known else None


@dataclass(frozen=True)
class Figures:
    """Of one way of decoding, at one concurrency and temperature, for one kind of question or all. None: not measured.

    `throughput`: tokens/s of all sequences together; `each`: of one answer (median over the answers).
    """

    answers: int  # different questions answered
    runs: int
    complete: bool  # no run was broken off
    throughput: Spread | None
    each: Spread | None
    first_token_s: Spread | None
    acceptance_length: Spread | None
    tokens_per_target_pass: Spread | None
    acceptance_rate: Spread | None
    by_position: tuple[float | None, ...]  # pooled over all runs
    verification_passes: Spread | None
    output_tokens: Spread | None
    draft_ms: Spread | None
    verify_ms: Spread | None
    right: tuple[int, int] | None  # of all runs: answers that are right, and those that can be checked


def pooled(answers: Sequence[AnswerResult], mode: Mode = Mode.BASELINE) -> AnswerStatistics:
    """The figures of several answers as if they were one, by the definitions of `engine.stats`.

    Counts of the first tokens of the answers are not in it: `output_tokens` is one answer's.
    """
    now = 0.0
    recorder = AnswerRecorder(mode, "", None, clock=lambda: now)
    recorder.first_token()
    for answer in answers:
        share = answer.decode_s / len(answer.cycles) if answer.cycles else 0.0
        for drafted, accepted, emitted, draft_s, verify_s, stop in answer.cycles:
            now += share
            recorder.cycle(
                drafted=drafted, accepted=accepted, emitted=emitted, verify_s=verify_s, draft_s=draft_s, stop_token=stop
            )
    return recorder.snapshot(_NO_MEMORY)


def parts_of(results: Results, variant: str, concurrency: int) -> list[PartResult]:
    return [part for part in results.parts if (part.variant, part.concurrency) == (variant, concurrency)]


def of_kind(part: PartResult, temperature: float, kind: str) -> list[AnswerResult]:
    """Answers that came to their end."""
    return [
        answer
        for answer in part.answers
        if answer.temperature == temperature and kind in (ALL, answer.kind) and answer.complete
    ]


def figures(
    results: Results, variant: str, concurrency: int = 1, temperature: float = 0.0, kind: str = ALL
) -> Figures | None:
    """None where nothing was measured."""
    runs = [
        (part, answers)
        for part in parts_of(results, variant, concurrency)
        if (answers := of_kind(part, temperature, kind))
    ]
    if not runs:
        return None
    statistics = [pooled(answers) for _, answers in runs]
    everything = pooled([answer for _, answers in runs for answer in answers])
    checked = [answer.right for _, answers in runs for answer in answers if answer.right is not None]

    def over_runs(figure: Callable[[AnswerStatistics], float | None]) -> Spread | None:
        return Spread.of(map(figure, statistics))

    def over_answers(name: str) -> Spread | None:
        return Spread.of(_median_of(answers, name) for _, answers in runs)

    return Figures(
        answers=len({answer.question for _, answers in runs for answer in answers}),
        runs=len(runs),
        complete=all(part.complete for part, _ in runs),
        throughput=Spread.of(throughput(part, temperature, kind) for part, _ in runs),
        each=over_answers("tokens_per_second"),
        first_token_s=over_answers("time_to_first_token_s"),
        acceptance_length=over_runs(lambda s: s.acceptance_length),
        tokens_per_target_pass=over_runs(lambda s: s.tokens_per_target_pass),
        acceptance_rate=over_runs(lambda s: s.acceptance_rate),
        by_position=everything.acceptance_by_position,
        verification_passes=over_runs(lambda s: s.verification_passes),
        output_tokens=Spread.of(sum(a.figures["output_tokens"] for a in answers) for _, answers in runs),
        draft_ms=over_runs(lambda s: s.draft_ms),
        verify_ms=over_runs(lambda s: s.verify_ms),
        right=(sum(checked), len(checked)) if checked else None,
    )


def _median_of(answers: Sequence[AnswerResult], name: str) -> float | None:
    known = [answer.figures[name] for answer in answers if answer.figures[name] is not None]
    return median(known) if known else None


def throughput(part: PartResult, temperature: float, kind: str = ALL) -> float | None:
    """Tokens/s of all sequences together.

    One sequence at a time: the tokens of its answers / the time from their first tokens to their newest ones. Several:
    the tokens of all cycles / the time of all cycles, which can be told for a whole run only, not for one kind.
    """
    if part.concurrency == 1:
        return pooled(of_kind(part, temperature, kind)).tokens_per_second
    pace = part.pace(temperature)
    if kind != ALL or pace is None or not pace.decode_s > 0:
        return None
    answers = [answer for answer in part.answers if answer.temperature == temperature]
    return sum(emitted for answer in answers for _, _, emitted, *_ in answer.cycles) / pace.decode_s


Measure = Callable[[list[AnswerResult]], float | None]


def speed_of(answers: list[AnswerResult]) -> float | None:
    return pooled(answers).tokens_per_second


def acceptance_of(answers: list[AnswerResult]) -> float | None:
    return pooled(answers).acceptance_length


def ratio(
    results: Results,
    over: str,
    under: str,
    concurrency: int = 1,
    temperature: float = 0.0,
    kind: str = ALL,
    measure: Measure = speed_of,
) -> Spread | None:
    """How many times one way's figure is the other's, run by run, over the questions that both have answered.

    Speed at a concurrency above 1 is compared over whole runs only. None where there is no such pair.
    """
    found: list[float | None] = []
    unders = {part.run: part for part in parts_of(results, under, concurrency)}
    for part in parts_of(results, over, concurrency):
        other = unders.get(part.run)
        if other is None:
            continue
        if concurrency > 1 and measure is speed_of:
            found.append(_quotient(throughput(part, temperature, kind), throughput(other, temperature, kind)))
            continue
        mine, theirs = of_kind(part, temperature, kind), of_kind(other, temperature, kind)
        common = {answer.question for answer in mine} & {answer.question for answer in theirs}
        both = [[answer for answer in group if answer.question in common] for group in (mine, theirs)]
        found.append(_quotient(measure(both[0]), measure(both[1])))
    return Spread.of(found)


def _quotient(over: float | None, under: float | None) -> float | None:
    return None if over is None or under is None or not under > 0 else over / under
