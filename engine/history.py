"""The turns of one conversation, and what of them the model reads: prompts as token ids that fit the context.

When the conversation outgrows the context, the oldest turns are left out (never the system prompt), or no more is
answered, as the user chose. Knows nothing of caches and decoding.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import ContextTooSmall
from engine.events import ContextNotice, KnownTurn
from engine.vocabulary import Message, Vocabulary

_LONG = 16  # characters for each token of the context: several times what it can hold


@dataclass(frozen=True)
class Turn:
    question: str
    answer: str
    ids: tuple[int, ...] | None  # of the answer, without a stop token; None: only its text is known


@dataclass(frozen=True)
class Prompt:
    """What the model reads before it says more."""

    ids: list[int]
    begun: tuple[int, ...]  # of these, the last ones: what there is of the answer already
    left_out: int  # how many of the oldest turns are missing


class History:
    """`context`: tokens. `drops`: the oldest turns make room for new ones; otherwise a full context is an error."""

    def __init__(self, vocabulary: Vocabulary, context: int, drops: bool) -> None:
        self.turns: list[Turn] = []
        self._vocabulary = vocabulary
        self._context = context
        self._drops = drops
        self._system: str | None = None
        self._left_out = 0  # oldest turns that the context no longer holds

    def restore(self, turns: Sequence[KnownTurn], system: str | None) -> None:
        """Another conversation. Ids that do not spell the answer, such as another model's, are not used."""
        self._system = system
        self._left_out = 0
        self.turns = []
        for question, text, *rest in turns:
            ids = rest[0] if rest else None
            if ids is not None and not self._vocabulary.spells(ids, text):
                ids = None
            self.turns.append(Turn(question, text, None if ids is None else tuple(ids)))

    def rewind(self, turns: int) -> None:
        """Keep only the first turns."""
        del self.turns[max(0, turns) :]
        if self._left_out >= len(self.turns):  # nothing that the model sees is left: look again at what fits
            self._left_out = 0

    def prompt(self, earlier: Sequence[Turn], turn: Turn, max_tokens: int | None) -> Prompt:
        """To answer the turn's question behind `earlier`, or to go on with its answer.

        Room for an answer is an eighth of the context (or max_tokens, if less); once turns have to go, enough go to
        leave a quarter, so that the next question need not drop more. Raises ContextTooSmall.
        """
        size = self._context
        alone = len(self._vocabulary.tokenize(turn.question))
        if alone >= size:
            raise _too_long(alone, size)
        begun = self._begun(turn)
        room = min(size // 8, max_tokens if max_tokens is not None else size)
        left_out = max(self._left_out, self._surely_too_many(earlier))
        if left_out and not self._drops:
            raise _outgrown(size)
        ids = self._render(earlier[left_out:], turn.question, begun)
        if self._drops and (left_out > self._left_out or len(ids) + room > size):
            room = max(room, size // 4)
            places = range(left_out, len(earlier))
            left_out += bisect_left(
                places,
                room - size,
                key=lambda place: -len(self._render(earlier[place:], turn.question, begun)),
            )
            ids = self._render(earlier[left_out:], turn.question, begun)
        if len(ids) < size:
            return Prompt(ids, begun, left_out)
        if left_out < len(earlier):
            raise _outgrown(size)
        if begun:
            raise ContextTooSmall(
                f"The answer fills the context of {size} tokens; choose a longer context to go on with it."
            )
        raise _too_long(len(ids), size)

    def leave_out(self, prompt: Prompt) -> ContextNotice | None:
        """This prompt is used; what there is to say of it."""
        if prompt.left_out <= self._left_out:
            return None
        self._left_out = turns = prompt.left_out
        what = "the oldest question and its answer" if turns == 1 else f"the {turns} oldest questions and answers"
        sentence = f"The conversation outgrew the context of {self._context} tokens: the model no longer sees {what}."
        return ContextNotice("dropped", len(prompt.ids), self._context, sentence, turns)

    def _begun(self, turn: Turn) -> tuple[int, ...]:
        """The tokens of the answer so far; where they are not known, those of its text behind the question."""
        if turn.ids is not None:
            return turn.ids
        question = [Message("user", turn.question)]
        before = self._vocabulary.render(question)
        whole = self._vocabulary.render(question, begun=turn.answer)
        if whole[: len(before)] == before:
            return tuple(whole[len(before) :])
        return tuple(self._vocabulary.tokenize(turn.answer))  # its beginning and the template's end would be one token

    def _surely_too_many(self, earlier: Sequence[Turn]) -> int:
        """How many of the oldest turns cannot be there, since the texts behind them fill the context already.

        Rendering a conversation of thousands of turns takes seconds; this looks only at as many as could fit. A short
        one is simply rendered.
        """
        if sum(len(turn.question) + len(turn.answer) for turn in earlier) < _LONG * self._context:
            return 0
        tokens = 0
        for place in range(len(earlier) - 1, -1, -1):
            turn = earlier[place]
            tokens += len(self._vocabulary.tokenize(turn.question))
            tokens += len(self._vocabulary.tokenize(turn.answer) if turn.ids is None else turn.ids)
            if tokens > self._context:
                return place + 1
        return 0

    def _render(self, turns: Sequence[Turn], question: str, begun: Sequence[int]) -> list[int]:
        messages = [Message("system", self._system)] if self._system else []
        for turn in turns:
            messages.append(Message("user", turn.question))
            messages.append(Message("assistant", turn.answer, turn.ids))
        messages.append(Message("user", question))
        return [*self._vocabulary.render(messages), *begun]


def _too_long(tokens: int, size: int) -> ContextTooSmall:
    return ContextTooSmall(
        f"The prompt has {tokens} tokens and the context holds {size}; shorten it or choose a longer context."
    )


def _outgrown(size: int) -> ContextTooSmall:
    return ContextTooSmall(
        f"The conversation has outgrown the context of {size} tokens; start a new chat, choose a longer context, "
        "or let the oldest questions and answers be left out."
    )
