"""The corpus: conversations whose answers, and most questions, the target wrote itself.

A drafter learns what its target would say, so the data are the target's own answers: half of them greedy, half sampled.
Questions come from a file, are composed from patterns, or are written by the model behind its template's user header.
What the target computes while it writes, its features and its own distribution at every token, is kept with the text:
to read it all once more would take as long again. Kept as shards in a folder; a run that was interrupted goes on behind
its last shard. Knows nothing of drafters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.target import PREFILL_CHUNK
from engine.train.batch_target import BatchTarget, best_tokens, turn_frame
from engine.train.features import LABELS, Example, write_examples
from engine.train.prompts import STARTERS, Prompt, composed
from engine.vocabulary import Message, Vocabulary

ANSWER_TEMPERATURE = 0.7  # of the half that is sampled
QUESTION_TOKENS = 100
SHARD = 128  # conversations
_TOP_K, _TOP_P = 60, 0.95
_HELD_OUT = 0.04  # of the prompts
SELF_WRITTEN = "self-written"


@dataclass(frozen=True)
class Conversation:
    """`ids`: template, question and answer, with the stop token if it was reached. The answer begins at `start`."""

    ids: NDArray[np.int32]
    start: int
    temperature: float
    kind: str

    @property
    def held_out(self) -> bool:
        return is_held_out(self.ids[: self.start])


def is_held_out(question: NDArray[np.int32]) -> bool:
    """Decided by the question alone, so that no question stands on both sides."""
    digest = hashlib.sha256(question.astype("<i4").tobytes()).digest()
    return int.from_bytes(digest[:4], "little") < _HELD_OUT * 2**32


# --- shards -----------------------------------------------------------------------------------------------------------


def read_shard(path: Path) -> list[Conversation]:
    """The text of a shard. Also reads the form `ids`, `lens`, `rs`, `temp`, whose questions are the model's own."""
    with np.load(path) as data:
        try:
            if "lens" in data:
                lengths, starts, temperatures = data["lens"], data["rs"], data["temp"]
                kinds = np.full(len(lengths), SELF_WRITTEN)
            else:
                lengths, starts, temperatures = data["lengths"], data["starts"], data["temperatures"]
                kinds = data["kinds"]
            pieces = np.split(data["ids"].astype(np.int32), np.cumsum(lengths)[:-1])
        except KeyError as error:
            raise ModelFileError(f"{path} is no corpus ({error}); leave it out or write it again.") from error
    return [
        Conversation(ids, int(start), float(temperature), str(kind))
        for ids, start, temperature, kind in zip(pieces, starts, temperatures, kinds)
    ]


def read_corpus(paths: Sequence[Path]) -> list[Conversation]:
    """All conversations of files and folders of shards, without repetitions; the order is that of the paths."""
    unique: dict[bytes, Conversation] = {}
    for path in paths:
        for file in sorted(path.glob("*.npz")) if path.is_dir() else [path]:
            for conversation in read_shard(file):
                if len(conversation.ids) - conversation.start > 1:
                    unique.setdefault(conversation.ids.tobytes(), conversation)
    return list(unique.values())


# --- writing it -------------------------------------------------------------------------------------------------------


@dataclass
class _Slot:
    """One sequence of the batch: what it still has to read, and what it is writing."""

    prompt: Prompt | None = None  # None: the question is the model's own
    todo: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    start: int = 0  # of the answer; 0 while the question is being written
    begin: int = 0  # of the question
    temperature: float = 1.0
    limit: int = 0  # of ids
    features: list[NDArray[np.float16]] = field(default_factory=list)  # [n, F*H] of each pass
    label_ids: list[NDArray[np.int32]] = field(default_factory=list)  # [LABELS] behind each token of the answer
    label_logits: list[NDArray[np.float16]] = field(default_factory=list)


class CorpusWriter:
    """Fills a folder with shards, `sequences` conversations at once."""

    def __init__(
        self,
        target: BatchTarget,
        layers: Sequence[int],
        folder: Path,
        prompts: Sequence[Prompt],
        answer_tokens: int,
        seed: int,
    ) -> None:
        """`prompts` are asked once each; after them the model writes the questions itself. `layers` are tapped."""
        self._target = target
        self._folder = folder
        self._answer_tokens = answer_tokens
        target.tap(layers)
        folder.mkdir(parents=True, exist_ok=True)
        self._shards = len(list(folder.glob("*.npz")))
        done = {c.ids[: c.start].tobytes() for c in read_corpus([folder])}
        self.conversations = len(done)
        vocabulary = target.vocabulary
        rendered = [(prompt, vocabulary.render([Message("user", prompt.text)])) for prompt in prompts]
        longest = min(PREFILL_CHUNK, target.context) // 2  # half of what a conversation can hold
        self._prompts = iter(
            [(p, ids) for p, ids in rendered if len(ids) <= longest and np.array(ids, np.int32).tobytes() not in done]
        )
        self._head, self._bridge = turn_frame(vocabulary)
        self._starters = [vocabulary.tokenize(text) for text in STARTERS]
        self._rng = np.random.default_rng([seed, self._shards])
        self._count = self.conversations

    def run(self, until: Callable[[int, int], bool]) -> None:
        """Go on until `until(conversations, tokens written in this run)`; it is asked after every step."""
        finished: list[Example] = []
        try:
            self._run(until, finished)
        finally:  # also when interrupted
            if finished:
                self._write(finished)

    def _run(self, until: Callable[[int, int], bool], finished: list[Example]) -> None:
        slots = [self._fresh() for _ in range(self._target.sequences)]
        for i in range(len(slots)):
            self._target.cut(i, 0)
        tokens = 0
        while not until(self.conversations, tokens):
            for rows in _passes(slots):
                for i, token in zip((i for i, _ in rows), self._read(slots, rows)):
                    tokens += 1
                    if self._advance(slots[i], int(token)):
                        finished.append(_example(slots[i]))
                        self.conversations += 1
                        self._target.cut(i, 0)
                        slots[i] = self._fresh()
            if len(finished) >= SHARD:
                self._write(finished)

    def _read(self, slots: Sequence[_Slot], rows: Sequence[tuple[int, list[int]]]) -> NDArray[np.int32]:
        """Let the target read what is to be read, keep what it computed, and choose each one's next token."""
        result = self._target.evaluate(rows, last_only=True)
        features = np.concatenate(result.features, axis=1).astype(np.float16)  # [n, F*H]
        ids, scores = best_tokens(result.logits, _TOP_K)
        at = 0
        for row, (i, read) in enumerate(rows):
            slots[i].features.append(features[at : at + len(read)])
            at += len(read)
            if slots[i].start:
                slots[i].label_ids.append(ids[row, :LABELS])
                slots[i].label_logits.append((scores[row, :LABELS] - scores[row, 0]).astype(np.float16))
        return self._choose(ids, scores, [slots[i].temperature if slots[i].start else 1.0 for i, _ in rows])

    def _write(self, finished: list[Example]) -> None:
        write_examples(self._folder / f"{self._shards:05}.npz", finished)
        self._shards += 1
        finished.clear()

    def _fresh(self) -> _Slot:
        self._count += 1
        temperature = 0.0 if self._count % 2 else ANSWER_TEMPERATURE
        prompt, ids = next(self._prompts, (None, None))
        if prompt is not None and ids is not None:
            slot = _Slot(prompt, list(ids), list(ids), len(ids), 0, temperature)
            slot.limit = len(ids) + self._answer_tokens
        else:
            starter = self._starters[self._rng.integers(len(self._starters))]
            ids = [*self._head, *starter]
            slot = _Slot(None, list(ids), list(ids), 0, len(self._head), temperature)
            slot.limit = len(ids) + QUESTION_TOKENS
        slot.limit = min(slot.limit, self._target.context)
        return slot

    def _advance(self, slot: _Slot, token: int) -> bool:
        """Add a token; whether the conversation is finished."""
        stop = self._target.vocabulary.is_stop(token)
        if slot.start:
            slot.ids.append(token)
            slot.todo = [token]
            return stop or len(slot.ids) >= slot.limit
        if not stop:
            slot.ids.append(token)
            slot.todo = [token]
            if len(slot.ids) < slot.limit:
                return False
        slot.todo = list(self._bridge)  # the question is complete, or long enough
        if not stop:
            slot.todo = [token, *self._bridge]
        slot.ids.extend(self._bridge)
        slot.start = len(slot.ids)
        slot.limit = min(slot.start + self._answer_tokens, self._target.context)
        return False

    def _choose(
        self, ids: NDArray[np.int32], scores: NDArray[np.float32], temperatures: Sequence[float]
    ) -> NDArray[np.int32]:
        """One of the best tokens for each row; questions are drawn at temperature 1."""
        heat = np.array([max(t, 1e-6) for t in temperatures])[:, None]
        weights = np.exp((scores - scores[:, :1]) / heat)
        weights /= weights.sum(axis=1, keepdims=True)
        before = np.cumsum(weights, axis=1) - weights
        weights[before >= _TOP_P] = 0
        cumulative = np.cumsum(weights, axis=1)
        u = self._rng.random((len(ids), 1)) * cumulative[:, -1:]
        at = np.minimum((cumulative <= u).sum(axis=1), _TOP_K - 1)
        chosen: NDArray[np.int32] = ids[np.arange(len(ids)), at]
        return chosen


def _passes(slots: Sequence[_Slot]) -> Iterator[list[tuple[int, list[int]]]]:
    """First every prompt by itself, then one token of each that writes: passes whose rows keep their order."""
    for i, slot in enumerate(slots):
        if len(slot.todo) > 1:
            yield [(i, slot.todo)]
    writing = [(i, slot.todo) for i, slot in enumerate(slots) if len(slot.todo) == 1]
    if writing:
        yield writing


def _example(slot: _Slot) -> Example:
    """What was written and what the target computed; the last token was never read, so its row is zero."""
    n = len(slot.ids)
    read = np.concatenate(slot.features)
    features = np.zeros((n, read.shape[1]), np.float16)
    features[: len(read)] = read
    label_ids, label_logits = np.zeros((n, LABELS), np.int32), np.full((n, LABELS), -np.inf, np.float16)
    label_ids[slot.start - 1 : n - 1] = slot.label_ids
    label_logits[slot.start - 1 : n - 1] = slot.label_logits
    kind = slot.prompt.kind if slot.prompt else SELF_WRITTEN
    return Example(np.array(slot.ids, np.int32), slot.start, kind, slot.temperature, features, label_ids, label_logits)


def question(conversation: Conversation, vocabulary: Vocabulary) -> str:
    """The question's text, for people."""
    head, bridge = turn_frame(vocabulary)
    ids = conversation.ids[len(head) : conversation.start - len(bridge)]
    return b"".join(vocabulary.piece(int(i)) for i in ids).decode("utf-8", "replace")


def mixed_prompts(given: Sequence[str], count: int, seed: int) -> list[Prompt]:
    """The user's own prompts first, then composed ones up to `count` in all."""
    own = [Prompt("given", text) for text in given]
    return own + composed(max(0, count - len(own)), seed)
