"""The cycle: draft a block, verify it in one target pass, accept, commit; as a generator of events.

Baseline is the same loop with nothing drafted. A cycle handles several sequences at once; an answer is one of them.
Knows nothing of conversations, files and processes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.drafter import Drafter
from engine.errors import Cancelled
from engine.events import Answered, ContextNotice, Event, Memory, Progress, PromptProgress, StopReason, Tokens
from engine.sampling import Sampler
from engine.selector import Path, greedy_path, sampled_path
from engine.stats import AnswerRecorder
from engine.target import MAX_ROWS, PREFILL_CHUNK, Target
from engine.verify import verify_greedy, verify_sampled

PROGRESS_EVERY_S = 0.25
NEARLY_FULL = 0.9  # of the context


@dataclass
class Stream:
    """One sequence that is being continued. Its anchor is the newest token, which neither cache has seen."""

    sequence: int
    sampler: Sampler
    anchor: int
    drafts: int  # to verify in the next cycle, 0 for a plain pass


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one cycle gave one stream: `tokens` are the accepted drafts and the target's own."""

    tokens: tuple[int, ...]
    drafted: int
    accepted: int


@dataclass(frozen=True, slots=True)
class CycleTime:
    draft_s: float | None  # drafting, and injecting what was committed
    verify_s: float


def run_cycle(target: Target, drafter: Drafter | None, streams: Sequence[Stream]) -> tuple[list[Outcome], CycleTime]:
    """One cycle for every stream, in one draft pass and one target pass; anchors and samplers move on.

    With a drafter, the caches of both must hold the same positions, and still do afterwards.
    """
    if drafter is None and len(streams) == 1:
        return _plain_pass(target, streams[0])
    started = time.perf_counter()
    drafts: list[Sequence[int]] = [()] * len(streams)
    paths: list[Path | None] = [None] * len(streams)
    if drafter is not None:
        drafting = [index for index, stream in enumerate(streams) if stream.drafts]
        if drafting:
            lattices = drafter.draft(
                [streams[index].anchor for index in drafting],
                [streams[index].sequence for index in drafting],
                max(streams[index].drafts for index in drafting) + 1,
            )
            for index, lattice in zip(drafting, lattices):
                if not lattice.is_usable:
                    continue  # a damaged drafter: a plain pass for this one
                sampler = streams[index].sampler
                temperature = sampler.settings.temperature
                path = sampled_path(lattice, temperature, sampler.rng) if temperature > 0 else greedy_path(lattice)
                paths[index] = path
                drafts[index] = path.tokens[: streams[index].drafts].tolist()
    drafted = time.perf_counter()

    starts = [target.committed(stream.sequence) for stream in streams]
    rows = [(stream.sequence, [stream.anchor, *draft]) for stream, draft in zip(streams, drafts)]
    result = target.evaluate(rows)
    verified = time.perf_counter()

    outcomes: list[Outcome] = []
    row = 0
    for stream, draft, proposed in zip(streams, drafts, paths):
        logits = result.logits[row : row + len(draft) + 1]
        row += len(draft) + 1
        sampler = stream.sampler
        if sampler.settings.temperature > 0:
            verdict = verify_sampled(
                sampler.each_distribution(logits, draft), draft, proposed.q if proposed else None, sampler.rng
            )
        else:
            verdict = verify_greedy(sampler.each_choice(logits, draft), draft)
        tokens = (*draft[: verdict.accepted], verdict.token)
        sampler.accept(tokens)
        stream.anchor = verdict.token
        outcomes.append(Outcome(tokens, len(draft), verdict.accepted))

    chosen = time.perf_counter()
    if drafter is not None:
        _inject_kept(drafter, result.features, streams, outcomes)
    injected = time.perf_counter()
    for stream, start, outcome in zip(streams, starts, outcomes):
        if outcome.accepted < outcome.drafted:
            target.rewind(stream.sequence, start + 1 + outcome.accepted)
    draft_s = (drafted - started) + (injected - chosen) if any(drafts) else None
    return outcomes, CycleTime(draft_s, verified - drafted)


def _plain_pass(target: Target, stream: Stream) -> tuple[list[Outcome], CycleTime]:
    """One sequence, no drafts, in as few steps as it takes: plain decoding is what everything else must beat."""
    started = time.perf_counter()
    logits = target.evaluate(((stream.sequence, (stream.anchor,)),)).logits
    verified = time.perf_counter()
    sampler = stream.sampler
    if sampler.settings.temperature > 0:
        stream.anchor = next(sampler.each_distribution(logits)).sample(sampler.rng)
    else:
        stream.anchor = next(sampler.each_choice(logits))
    tokens = (stream.anchor,)
    sampler.accept(tokens)
    return [Outcome(tokens, 0, 0)], CycleTime(None, verified - started)


def _inject_kept(
    drafter: Drafter, features: Sequence[NDArray[np.float32]], streams: Sequence[Stream], outcomes: Sequence[Outcome]
) -> None:
    """Features of the anchor and the accepted drafts of each stream, into the drafter's cache."""
    counts = {stream.sequence: outcome.accepted + 1 for stream, outcome in zip(streams, outcomes)}
    if len(streams) == 1:
        drafter.inject(features, counts)  # the accepted rows come first
        return
    kept: list[int] = []
    row = 0
    for outcome in outcomes:
        kept.extend(range(row, row + outcome.accepted + 1))
        row += outcome.drafted + 1
    drafter.inject([layer[kept] for layer in features], counts)


@dataclass(frozen=True)
class Request:
    """One answer: what to continue and how."""

    sequence: int
    prompt: Sequence[int]  # token ids of the whole context so far
    cached: int  # leading positions that both caches already hold
    again: bool  # part of the rest was read before, without features
    sampler: Sampler
    drafts: int  # per cycle, 0 in baseline
    max_tokens: int | None  # at least 1


def answer(
    target: Target,
    drafter: Drafter | None,
    request: Request,
    recorder: AnswerRecorder,
    memory: Callable[[], Memory],
    cancel: threading.Event,
) -> Iterator[Event]:
    """Read the prompt, then run cycles until the answer ends. The last event is Answered.

    Raises OutOfMemory; nothing is raised for a cancelled answer.
    """
    sequence = request.sequence
    recorder.prompt(len(request.prompt), request.cached)
    detokenizer = target.vocabulary.detokenizer()
    ids: list[int] = []
    texts: list[str] = []

    def finished(reason: StopReason) -> Answered:
        return Answered(
            "".join(texts), tuple(ids), recorder.snapshot(memory(), reason), target.committed(sequence), target.context
        )

    try:
        logits = yield from _read_prompt(target, drafter, request, recorder, cancel)
    except Cancelled:
        yield finished(StopReason.CANCELLED)
        return

    sampler = request.sampler
    if sampler.settings.temperature > 0:
        anchor = sampler.distributions(logits)[0].sample(sampler.rng)
    else:
        anchor = int(sampler.choices(logits)[0])
    sampler.accept((anchor,))
    stream = Stream(sequence, sampler, anchor, 0)
    stopped = target.vocabulary.is_stop(anchor)
    recorder.first_token(stop_token=stopped)
    limit = request.max_tokens if request.max_tokens is not None else target.context
    if not stopped:
        ids.append(anchor)
        texts.append(detokenizer.push((anchor,)))
        yield Tokens((anchor,), (0,), texts[-1])

    shown = time.perf_counter()
    warned = told = False
    while True:
        if stopped:
            reason = StopReason.STOP_TOKEN
            break
        if len(ids) >= limit:
            reason = StopReason.MAX_TOKENS
            break
        room = target.context - target.committed(sequence)
        if room < 1:
            reason = StopReason.CONTEXT_FULL
            break
        if cancel.is_set():
            reason = StopReason.CANCELLED
            break
        stream.drafts = max(0, min(request.drafts, limit - len(ids) - 1, room - 1, MAX_ROWS - 1))
        (outcome,), took = run_cycle(target, drafter, (stream,))
        if stream.drafts and not outcome.drafted and drafter is not None and not told:
            told = True
            sentence = (
                f"The drafter {drafter.file_name} computes values that are not numbers, so nothing is drafted; "
                "its file may be damaged: download it again."
            )
            yield ContextNotice("drafter", target.committed(sequence), target.context, sentence)
        tokens = outcome.tokens
        origins = (*range(1, outcome.accepted + 1), 0)
        for index, token in enumerate(tokens):
            if target.vocabulary.is_stop(token):
                stopped = True
                tokens, origins = tokens[:index], origins[:index]
                break
        recorder.cycle(
            drafted=outcome.drafted,
            accepted=outcome.accepted,
            emitted=len(tokens) + stopped,
            verify_s=took.verify_s,
            draft_s=took.draft_s,
            stop_token=stopped,
        )
        if tokens:
            ids.extend(tokens)
            texts.append(detokenizer.push(tokens))
            yield Tokens(tokens, origins, texts[-1])
        now = time.perf_counter()
        if now - shown >= PROGRESS_EVERY_S:
            shown = now
            yield Progress(recorder.snapshot(memory()), target.committed(sequence), target.context)
        if not warned and target.committed(sequence) >= NEARLY_FULL * target.context:
            warned = True
            used = target.committed(sequence)
            yield ContextNotice(
                "nearly_full",
                used,
                target.context,
                f"The context is nearly full: {used} of {target.context} tokens are used.",
            )
    yield finished(reason)


def _read_prompt(
    target: Target, drafter: Drafter | None, request: Request, recorder: AnswerRecorder, cancel: threading.Event
) -> Generator[Event, None, NDArray[np.float32]]:
    """Decode what is not cached, chunk by chunk, injecting features. Returns logits [1, V] behind the last token.

    Raises Cancelled, OutOfMemory.
    """
    todo = request.prompt[request.cached :]
    yield PromptProgress(0, len(todo), request.again)
    target.cancellable(cancel)
    try:
        for begin in range(0, len(todo), PREFILL_CHUNK):
            if cancel.is_set():
                raise Cancelled
            started = time.perf_counter()
            chunk = todo[begin : begin + PREFILL_CHUNK]
            result = target.evaluate([(request.sequence, chunk)], last_only=True)
            if drafter is not None:
                drafter.inject(result.features, {request.sequence: len(chunk)})
            recorder.prompt_read(len(chunk), time.perf_counter() - started)
            yield PromptProgress(begin + len(chunk), len(todo), request.again)
        return result.logits  # the prompt is never cached as a whole
    finally:
        target.cancellable(None)
