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

from engine.draft_length import DraftLength, FixedLength
from engine.drafter import Drafter
from engine.errors import Cancelled
from engine.events import Answered, ContextNotice, Event, Memory, Progress, PromptProgress, StopReason, Tokens
from engine.sampling import Candidate, Distribution, Sampler
from engine.selector import Path, Proposal, greedy_path
from engine.stats import AnswerRecorder
from engine.target import MAX_ROWS, PREFILL_CHUNK, Target
from engine.verify import Verdict, overlap, verify_greedy, verify_sampled
from engine.vocabulary import Detokenizer

PROGRESS_EVERY_S = 0.25
NEARLY_FULL = 0.9  # of the context


@dataclass
class Stream:
    """One sequence that is being continued. Its anchor is the newest token, which neither cache has seen."""

    sequence: int
    sampler: Sampler
    anchor: int
    drafts: int  # to verify in the next cycle, or at most so many where that is decided; 0 for a plain pass
    candidates: int = 0  # how many to report for each token


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one cycle gave one stream: `tokens` are the accepted drafts and the target's own."""

    tokens: tuple[int, ...]
    drafted: int
    accepted: int
    candidates: Sequence[Sequence[Candidate]] = ()  # per token, where the stream asks for them
    damaged: bool = False  # what was drafted held values that are no numbers, and was not used


@dataclass(frozen=True, slots=True)
class CycleTime:
    draft_s: float | None  # drafting, and injecting what was committed; None: nothing was drafted
    verify_s: float


def run_cycle(
    target: Target, drafter: Drafter | None, streams: Sequence[Stream], length: DraftLength | None = None
) -> tuple[list[Outcome], CycleTime]:
    """One cycle for every stream, in one draft pass and one target pass; anchors and samplers move on.

    `length` decides how many drafts are verified, within what each stream allows; without it that is the number. With a
    drafter, the caches of both must hold the same positions, and still do afterwards.
    """
    if drafter is None and len(streams) == 1:
        return _plain_pass(target, None, streams[0], None)
    started = time.perf_counter()
    length = length or FixedLength()
    starts = [target.committed(stream.sequence) for stream in streams]
    depth = max(starts)
    block = length.block([stream.drafts for stream in streams], depth, drafter.waiting) if drafter else 0
    if not block and len(streams) == 1:
        return _plain_pass(target, drafter, streams[0], length)
    drafts: list[Sequence[int]] = [()] * len(streams)
    paths: list[Path | None] = [None] * len(streams)
    if block and drafter is not None:
        paths, counts = _draft(drafter, streams, block, depth, length)
        drafts = [path.tokens[:count].tolist() if path else () for path, count in zip(paths, counts)]
    drafted = time.perf_counter()

    rows = [(stream.sequence, [stream.anchor, *draft]) for stream, draft in zip(streams, drafts)]
    result = target.evaluate(rows)
    verified = time.perf_counter()

    outcomes: list[Outcome] = []
    row = 0
    for index, (stream, draft, path) in enumerate(zip(streams, drafts, paths)):
        logits = result.logits[row : row + len(draft) + 1]
        row += len(draft) + 1
        verdict = _verify(stream.sampler, logits, draft, path, index, length)
        tokens = (*draft[: verdict.accepted], verdict.token)
        candidates: Sequence[Sequence[Candidate]] = ()
        if stream.candidates:
            candidates = stream.sampler.candidates(logits[: len(tokens)], draft, stream.candidates)
        stream.sampler.accept(tokens)
        stream.anchor = verdict.token
        damaged = bool(block and stream.drafts) and path is None
        outcomes.append(Outcome(tokens, len(draft), verdict.accepted, candidates, damaged))

    if drafter is not None:
        _keep_features(drafter, result.features, streams, outcomes)
    chosen = time.perf_counter()
    for stream, start, outcome in zip(streams, starts, outcomes):
        if outcome.accepted < outcome.drafted:
            target.rewind(stream.sequence, start + 1 + outcome.accepted)
    rewound = time.perf_counter()
    length.took(row, depth, verified - drafted + rewound - chosen)
    return outcomes, CycleTime(drafted - started if block else None, verified - drafted)


def _draft(
    drafter: Drafter, streams: Sequence[Stream], block: int, depth: int, length: DraftLength
) -> tuple[list[Path | None], list[int]]:
    """A path for every stream that may have drafts, and how many drafts of it are to be verified.

    That is decided before anything is drawn.
    """
    drafting = [index for index, stream in enumerate(streams) if stream.drafts]
    anchors = [streams[index].anchor for index in drafting]
    sequences = [streams[index].sequence for index in drafting]
    waiting = drafter.waiting
    started = time.perf_counter()
    drafter.flush()
    injected = time.perf_counter()
    lattices = drafter.draft(anchors, sequences, block)
    length.drafted(block * len(drafting), depth, waiting, injected - started, time.perf_counter() - injected)

    paths: list[Path | None] = [None] * len(streams)
    proposals: dict[int, Proposal] = {}
    confidences: list[Sequence[float] | None] = [None] * len(streams)
    for index, lattice in zip(drafting, lattices):
        if not lattice.is_usable:
            continue  # a damaged drafter: a plain pass for this one
        temperature = streams[index].sampler.settings.temperature
        if temperature > 0:
            proposal = proposals[index] = Proposal(lattice, temperature)
            confidences[index] = proposal.confidence() if length.reads_confidence else [0.0] * len(lattice.unary)
        else:
            path = paths[index] = greedy_path(lattice)
            confidences[index] = path.confidence.tolist() if length.reads_confidence else [0.0] * len(path.taken)
    counts = length.drafts(confidences, [stream.drafts for stream in streams])
    for index, proposal in proposals.items():
        paths[index] = proposal.draw(streams[index].sampler.rng)
    return paths, counts


def _verify(
    sampler: Sampler, logits: NDArray[np.float32], draft: Sequence[int], path: Path | None, index: int,
    length: DraftLength,
) -> Verdict:  # fmt: skip
    """One stream's verdict; `length` hears of it, and of what the verified drafts say about those left out."""
    if sampler.settings.temperature == 0:
        verdict = verify_greedy(sampler.each_choice(logits, draft), draft)
        if path is not None:
            left_out = path.tokens[len(draft) :].tolist() if verdict.accepted == len(draft) else ()
            length.verified(index, len(draft), verdict.accepted, left_out)
        length.said(index, verdict.token)
        return verdict
    rows = _LastSeen(sampler.each_distribution(logits, draft))
    verdict = verify_sampled(rows, draft, path.q if path else None, sampler.rng)
    if path is not None and path.q is not None:
        length.verified(index, len(draft), verdict.accepted)
        if verdict.accepted == len(draft) < len(path.q) and length.reads_confidence:
            length.overlap(index, overlap(rows.last, path.q[len(draft)]))
    return verdict


class _LastSeen:
    """Passes distributions on, and remembers the newest."""

    def __init__(self, rows: Iterator[Distribution]) -> None:
        self._rows = rows
        self.last: Distribution

    def __iter__(self) -> Iterator[Distribution]:
        for row in self._rows:
            self.last = row
            yield row


def _plain_pass(
    target: Target, drafter: Drafter | None, stream: Stream, length: DraftLength | None
) -> tuple[list[Outcome], CycleTime]:
    """One sequence, no drafts, in as few steps as it takes: plain decoding is what everything else must beat."""
    depth = target.committed(stream.sequence)
    started = time.perf_counter()
    result = target.evaluate(((stream.sequence, (stream.anchor,)),))
    verify_s = time.perf_counter() - started
    logits, sampler = result.logits, stream.sampler
    if sampler.settings.temperature > 0:
        stream.anchor = next(sampler.each_distribution(logits)).sample(sampler.rng)
    else:
        stream.anchor = next(sampler.each_choice(logits))
    tokens = (stream.anchor,)
    candidates = sampler.candidates(logits, (), stream.candidates) if stream.candidates else ()
    sampler.accept(tokens)
    if drafter is not None:
        drafter.keep(result.features, {stream.sequence: 1})
    if length is not None:
        length.said(0, stream.anchor)
        length.took(1, depth, verify_s)
    return [Outcome(tokens, 0, 0, candidates)], CycleTime(None, verify_s)


def _keep_features(
    drafter: Drafter, features: Sequence[NDArray[np.float32]], streams: Sequence[Stream], outcomes: Sequence[Outcome]
) -> None:
    """Features of the anchor and the accepted drafts of each stream, for the drafter's cache."""
    counts = {stream.sequence: outcome.accepted + 1 for stream, outcome in zip(streams, outcomes)}
    if len(streams) == 1:
        drafter.keep(features, counts)  # the accepted rows come first
        return
    kept: list[int] = []
    row = 0
    for outcome in outcomes:
        kept.extend(range(row, row + outcome.accepted + 1))
        row += outcome.drafted + 1
    drafter.keep([layer[kept] for layer in features], counts)


@dataclass(frozen=True)
class Request:
    """One answer: what to continue and how."""

    sequence: int
    prompt: Sequence[int]  # token ids of the whole context so far
    cached: int  # leading positions that both caches already hold
    again: bool  # part of the rest was read before, without features
    sampler: Sampler
    drafts: int  # per cycle, or at most so many where `length` decides; 0 in baseline
    max_tokens: int | None  # at least 1
    detokenizer: Detokenizer | None = None  # one that has seen the answer's beginning, where the prompt ends with that
    candidates: int = 0  # how many to report for each token
    length: DraftLength | None = None  # decides in each cycle; None: the number is fixed


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
    length = request.length or FixedLength()
    length.begin()
    if request.drafts:
        recorder.length = length
    recorder.prompt(len(request.prompt), request.cached)
    vocabulary = target.vocabulary
    detokenizer = request.detokenizer or vocabulary.detokenizer()
    ids: list[int] = []
    texts: list[str] = []

    def finished(reason: StopReason) -> Answered:
        return Answered(
            "".join(texts), tuple(ids), recorder.snapshot(memory(), reason), target.committed(sequence), target.context
        )

    def emitted(
        tokens: tuple[int, ...], origins: tuple[int, ...], candidates: Sequence[Sequence[Candidate]]
    ) -> Tokens:
        ids.extend(tokens)
        texts.append(detokenizer.push(tokens))
        shown = tuple(tuple((vocabulary.label(token), p) for token, p in row) for row in candidates[: len(tokens)])
        return Tokens(tokens, origins, texts[-1], tuple(map(vocabulary.piece, tokens)), shown)

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
    candidates = sampler.candidates(logits, (), request.candidates) if request.candidates else ()
    sampler.accept((anchor,))
    stream = Stream(sequence, sampler, anchor, 0, request.candidates)
    stopped = vocabulary.is_stop(anchor)
    recorder.first_token(stop_token=stopped)
    limit = request.max_tokens if request.max_tokens is not None else target.context
    if not stopped:
        yield emitted((anchor,), (0,), candidates)

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
        (outcome,), took = run_cycle(target, drafter, (stream,), length)
        if outcome.damaged and drafter is not None and not told:
            told = True
            sentence = (
                f"The drafter {drafter.file_name} computes values that are not numbers, so nothing is drafted; "
                "its file may be damaged: download it again."
            )
            yield ContextNotice("drafter", target.committed(sequence), target.context, sentence)
        tokens = outcome.tokens
        origins = (*range(1, outcome.accepted + 1), 0)
        for index, token in enumerate(tokens):
            if vocabulary.is_stop(token):
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
            yield emitted(tokens, origins, outcome.candidates)
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
