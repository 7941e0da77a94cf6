"""Whether the modes say the same: greedy answers token by token, drawn answers by their distribution.

Where greedy answers part, the target's logits of both tokens are looked at, and how far batched arithmetic moves them:
a difference within that is a near-tie. Drawn answers are counted and compared by a permutation test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.bench.figures import parts_of
from engine.bench.jobs import Counts, LookAt, Prepare, Sample, Seen
from engine.bench.plan import Variant
from engine.bench.process import Engine, Flag
from engine.bench.progress import Listener, Stage
from engine.bench.results import Agreement, AnswerResult, Results, SampleTest
from engine.bench.suite import Question
from engine.events import Mode, SamplerSettings

MOST_LOOKS = 40  # differences whose logits are looked at
SAMPLE_QUESTIONS = 4  # of different kinds
SAMPLE_TOKENS = 2  # behind the first
_PERMUTATIONS = 2000

Table = Mapping[tuple[int, ...], int]


def first_difference(baseline: AnswerResult, other: AnswerResult) -> tuple[int, int, int] | None:
    """(position, the baseline's token, the other's) where two greedy answers part; None: they are the same.

    -1 stands for the end by a stop token. An answer that was cut off by a limit agrees as far as it goes.
    """
    mine, theirs = _with_end(baseline), _with_end(other)
    for position, (a, b) in enumerate(zip(mine, theirs)):
        if a != b:
            return position, a, b
    return None


def _with_end(answer: AnswerResult) -> tuple[int, ...]:
    return (*answer.ids, -1) if answer.figures["stop_reason"] == "stop_token" else answer.ids


def compare_answers(results: Results, listener: Listener, cancel: Flag, session_factory: str) -> None:
    """Every greedy answer with the baseline's to the same question. Raises DFlashChatError, Cancelled."""
    results.agreements.clear()
    results.compared = 0
    baseline = next((v for v in results.plan.variants if v.mode is Mode.BASELINE), None)
    reference = next(iter(parts_of(results, baseline.name, results.plan.conditions.least)), None) if baseline else None
    if baseline is None or reference is None:
        return
    theirs = {a.question: a for a in reference.answers if a.temperature == 0 and a.complete}
    found: list[tuple[Agreement, LookAt]] = []
    questions = {question.name: question for question in results.plan.questions}
    for part in results.parts:
        if part is reference:
            continue
        for answer in part.answers:
            if answer.temperature != 0 or not answer.complete or answer.question not in theirs:
                continue
            results.compared += 1
            same = theirs[answer.question]
            difference = first_difference(same, answer)
            if difference is not None:
                position, a, b = difference
                agreement = Agreement(
                    part.variant, part.concurrency, part.run, answer.question, position, a, b, None, None, None
                )
                look = LookAt(questions[answer.question], same.ids, position, a, b, _rows(answer, part.concurrency))
                found.append((agreement, look))
    results.agreements += [agreement for agreement, _ in found]
    if found:
        listener(Stage("Looking at the tokens that differ"))
        results.agreements[:] = _looked_at(results, baseline, found, cancel, session_factory)


def _rows(answer: AnswerResult, concurrency: int) -> tuple[int, ...]:
    """How many rows the passes had, the commonest first; at least 2, for one row is what they are compared with."""
    counts = Counter((drafted + 1) * concurrency for drafted, *_ in answer.cycles)
    return tuple(rows for rows, _ in counts.most_common(4) if rows > 1) or (2,)


def _looked_at(
    results: Results,
    baseline: Variant,
    found: Sequence[tuple[Agreement, LookAt]],
    cancel: Flag,
    session_factory: str,
) -> list[Agreement]:
    seen: dict[tuple[str, int, int, int], Seen] = {}  # by question, position and the two tokens
    looks = 0

    def key(look: LookAt) -> tuple[str, int, int, int]:
        return look.question.name, look.position, look.theirs, look.other

    with Engine(results.plan, baseline, 1, cancel, session_factory) as engine:
        engine.start()
        for _, look in found:
            known = seen.get(key(look))
            if looks == MOST_LOOKS or (known is not None and known.near_tie):
                continue  # passes of other sizes need not be looked at
            looks += 1
            for event in engine.work(look):
                if isinstance(event, Seen):
                    seen[key(look)] = event
    return [
        replace(agreement, gap=known.gap, noise=known.noise, near_tie=known.near_tie)
        if (known := seen.get(key(look)))
        else agreement
        for agreement, look in found
    ]


# --- drawn answers ----------------------------------------------------------------------------------------------------


def compare_samples(results: Results, listener: Listener, cancel: Flag, session_factory: str) -> None:
    """The drafting modes' drawn answers with the baseline's, where the plan asks for it. Raises as compare_answers."""
    results.samples.clear()
    conditions = results.plan.conditions
    temperature = next((t for t in conditions.temperatures if t > 0), 0.8)
    modes = [variant for variant in results.plan.variants if not variant.sweep]
    if conditions.samples < 1 or len(modes) < 2 or modes[0].mode is not Mode.BASELINE:
        return
    kinds: dict[str, Question] = {}
    for question in results.plan.questions:
        kinds.setdefault(question.kind, question)
    questions = list(kinds.values())[:SAMPLE_QUESTIONS]
    tables: dict[str, list[Table]] = {}
    for variant in modes:
        listener(Stage(f"Drawing answers to compare their distribution: {variant.name}"))
        tables[variant.name] = _drawn(results, variant, questions, temperature, cancel, session_factory)
    for variant in modes[1:]:
        distance, p = permutation_test(tables[modes[0].name], tables[variant.name], conditions.seed)
        results.samples.append(
            SampleTest(
                variant.name, temperature, conditions.samples * len(questions), SAMPLE_TOKENS, distance, p
            )
        )  # fmt: skip


def _drawn(
    results: Results,
    variant: Variant,
    questions: Sequence[Question],
    temperature: float,
    cancel: Flag,
    session_factory: str,
) -> list[Table]:
    conditions = results.plan.conditions
    tables: list[Table] = []
    with Engine(results.plan, variant, 1, cancel, session_factory) as engine:
        engine.start()
        for _ in engine.work(Prepare(variant, questions[0])):
            pass
        for number, question in enumerate(questions):
            # Each mode has random numbers of its own: drafting draws others for the same token anyway.
            seed = conditions.seed + 1000 * list(Mode).index(variant.mode) + number
            job = Sample(question, SamplerSettings(temperature, seed=seed), conditions.samples, SAMPLE_TOKENS)
            tables += [event.drawn for event in engine.work(job) if isinstance(event, Counts)]
    return tables


def permutation_test(ours: Sequence[Table], theirs: Sequence[Table], seed: int = 0) -> tuple[float, float]:
    """(chi-square statistic, how often chance gives at least that) of pairs of tables of counts, one for each question.

    Under the hypothesis that both were drawn from the same, any split of their sum into two of these sizes is equally
    likely; many such splits are drawn.
    """
    rng = np.random.default_rng(seed)
    observed = 0.0
    by_chance = np.zeros(_PERMUTATIONS)
    for mine, other in zip(ours, theirs):
        keys = sorted({*mine, *other})
        a = np.array([mine.get(key, 0) for key in keys])
        b = np.array([other.get(key, 0) for key in keys])
        both = a + b
        observed += float(_chi_square(a, both, a.sum() / both.sum()))
        drawn = rng.multivariate_hypergeometric(both, int(a.sum()), size=_PERMUTATIONS)
        by_chance += _chi_square(drawn, both, a.sum() / both.sum())
    return observed, float((1 + (by_chance >= observed - 1e-9).sum()) / (1 + _PERMUTATIONS))


def _chi_square(counts: np.ndarray, both: np.ndarray, share: float) -> np.ndarray:
    """counts [..., K] of one of the two tables, both [K] of their sum -> [...]."""
    expected = both * share
    statistic: np.ndarray = (np.square(counts - expected) / (expected * (1 - share))).sum(axis=-1)
    return statistic
