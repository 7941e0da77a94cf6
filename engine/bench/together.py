"""Several answers at once in one engine: one draft pass and one target pass for all of them, each accepting its own.

A question whose answer ends gives its place to the next one. Every sequence goes through the cycle of
`engine.generate.run_cycle`; with one place this is what a single answer does. Knows nothing of processes and files.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.draft_length import DraftLength, FixedLength
from engine.drafter import Drafter
from engine.errors import Cancelled, ContextTooSmall
from engine.events import Answered, Memory, StopReason, Tokens
from engine.generate import Outcome, Stream, run_cycle
from engine.sampling import Sampler
from engine.stats import AnswerRecorder
from engine.target import MAX_ROWS, PREFILL_CHUNK, Target
from engine.vocabulary import Detokenizer


@dataclass(frozen=True)
class Asked:
    """A question: its rendered prompt, and how it is answered."""

    prompt: Sequence[int]
    sampler: Sampler
    max_tokens: int
    recorder: AnswerRecorder


@dataclass
class _Place:
    """A sequence, and the answer that is written in it."""

    index: int  # of the question
    asked: Asked
    stream: Stream
    detokenizer: Detokenizer
    ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    stopped: bool = False


class Together:
    """`answers` may be called once. `cycles_s`: seconds that the cycles took, the reading of prompts left out."""

    def __init__(
        self,
        target: Target,
        drafter: Drafter | None,
        places: int,
        drafts: int,
        length: DraftLength | None,
        memory: Callable[[], Memory],
        cancel: threading.Event,
    ) -> None:
        """`drafts`: for each answer in a cycle; at most so many where `length` decides, for all answers together."""
        self.cycles_s = 0.0
        self._target = target
        self._drafter = drafter
        self._drafts = drafts
        self._length = length or FixedLength()
        self._going: list[int] = []  # numbers of the questions of the newest cycle
        self._memory = memory
        self._cancel = cancel
        self._free = list(range(places))
        self._taken: list[_Place] = []

    def answers(self, questions: Sequence[Asked]) -> Iterator[tuple[int, Tokens | Answered]]:
        """(number of the question, Tokens* and Answered), those of different questions mixed.

        A cancelled run ends with the Answered of every question that was begun. Raises OutOfMemory, ContextTooSmall.
        """
        waiting = list(enumerate(questions))
        while waiting or self._taken:
            while waiting and self._free and not self._cancel.is_set():
                yield from self._begin(*waiting.pop(0))
            if self._cancel.is_set():
                for place in self._taken:
                    yield place.index, self._answered(place, StopReason.CANCELLED)
                return
            if self._taken:
                began = time.perf_counter()
                yield from self._cycle()
                self.cycles_s += time.perf_counter() - began
            yield from self._ended()

    def _begin(self, index: int, asked: Asked) -> Iterator[tuple[int, Tokens | Answered]]:
        """Read the prompt into a free sequence, and choose the first token."""
        sequence = self._free.pop(0)
        asked.recorder.prompt(len(asked.prompt), 0)
        stream = Stream(sequence, asked.sampler, -1, 0)
        place = _Place(index, asked, stream, self._target.vocabulary.detokenizer())
        try:
            logits = self._read(sequence, asked)
        except Cancelled:
            yield index, self._answered(place, StopReason.CANCELLED)
            return
        sampler = asked.sampler
        if sampler.settings.temperature > 0:
            stream.anchor = sampler.distributions(logits)[0].sample(sampler.rng)
        else:
            stream.anchor = int(sampler.choices(logits)[0])
        sampler.accept((stream.anchor,))
        place.stopped = self._target.vocabulary.is_stop(stream.anchor)
        asked.recorder.first_token(stop_token=place.stopped)
        self._taken.append(place)
        self._taken.sort(key=lambda taken: taken.stream.sequence)  # the drafter keeps a graph for each order
        if not place.stopped:
            yield index, self._emit(place, (stream.anchor,), (0,))

    def _read(self, sequence: int, asked: Asked) -> NDArray[np.float32]:
        """From nothing; logits [1, V] behind the prompt. Raises Cancelled, ContextTooSmall, OutOfMemory."""
        target, drafter, prompt = self._target, self._drafter, asked.prompt
        if len(prompt) >= target.context:
            raise ContextTooSmall(
                f"A question has {len(prompt)} tokens and the context holds {target.context}; give a longer context."
            )
        target.cut(sequence, 0)
        if drafter is not None:
            drafter.cut(sequence, 0)
        target.cancellable(self._cancel)
        try:
            for begin in range(0, len(prompt), PREFILL_CHUNK):
                started = time.perf_counter()
                chunk = prompt[begin : begin + PREFILL_CHUNK]
                result = target.evaluate([(sequence, chunk)], last_only=True)
                if drafter is not None:
                    drafter.inject(result.features, {sequence: len(chunk)})
                asked.recorder.prompt_read(len(chunk), time.perf_counter() - started)
            return result.logits
        finally:
            target.cancellable(None)

    def _cycle(self) -> Iterator[tuple[int, Tokens]]:
        """One cycle of all sequences."""
        going = [place for place in self._taken if self._reason(place) is None]
        if not going:
            return
        for place in going:
            room = self._target.context - self._target.committed(place.stream.sequence) - 1
            left = place.asked.max_tokens - len(place.ids) - 1
            place.stream.drafts = max(0, min(self._drafts, left, room, MAX_ROWS - 1)) if self._drafter else 0
        if [place.index for place in going] != self._going:
            self._going = [place.index for place in going]
            self._length.begin()
        outcomes, took = run_cycle(self._target, self._drafter, [place.stream for place in going], self._length)
        for place, outcome in zip(going, outcomes):
            tokens, origins = self._kept(place, outcome)
            place.asked.recorder.cycle(
                drafted=outcome.drafted,
                accepted=outcome.accepted,
                emitted=len(tokens) + place.stopped,
                verify_s=took.verify_s,
                draft_s=took.draft_s if outcome.drafted else None,
                stop_token=place.stopped,
            )
            if tokens:
                yield place.index, self._emit(place, tokens, origins)

    def _kept(self, place: _Place, outcome: Outcome) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The tokens in front of the first stop token, and the block positions that they come from."""
        origins = (*range(1, outcome.accepted + 1), 0)
        for at, token in enumerate(outcome.tokens):
            if self._target.vocabulary.is_stop(token):
                place.stopped = True
                return outcome.tokens[:at], origins[:at]
        return outcome.tokens, origins

    def _emit(self, place: _Place, tokens: tuple[int, ...], origins: tuple[int, ...]) -> Tokens:
        place.ids.extend(tokens)
        place.texts.append(place.detokenizer.push(tokens))
        return Tokens(tokens, origins, place.texts[-1])

    def _ended(self) -> Iterator[tuple[int, Answered]]:
        """Answers that have come to their end give their place free."""
        for place in list(self._taken):
            reason = self._reason(place)
            if reason is not None:
                self._taken.remove(place)
                self._free.append(place.stream.sequence)
                self._forget(place.stream.sequence)
                yield place.index, self._answered(place, reason)

    def _forget(self, sequence: int) -> None:
        """What stays in the caches would slow the others down."""
        self._target.cut(sequence, 0)
        if self._drafter is not None:
            self._drafter.cut(sequence, 0)

    def _reason(self, place: _Place) -> StopReason | None:
        if place.stopped:
            return StopReason.STOP_TOKEN
        if len(place.ids) >= place.asked.max_tokens:
            return StopReason.MAX_TOKENS
        if self._target.committed(place.stream.sequence) >= self._target.context:
            return StopReason.CONTEXT_FULL
        return None

    def _answered(self, place: _Place, reason: StopReason) -> Answered:
        return Answered(
            "".join(place.texts),
            tuple(place.ids),
            place.asked.recorder.snapshot(self._memory(), reason),
            self._target.committed(place.stream.sequence),
            self._target.context,
        )
