"""From the target's logits and the user's sampler settings to the distribution p that a token is drawn from.

The order is llama.cpp's: penalties, top-k, top-p, min-p, temperature. So top-p and min-p look at the probabilities
before the temperature, and a high temperature never brings back a token that they removed. Knows nothing of drafters: a
row of logits is treated alike whether it was decoded alone or in a verification batch.

Ties are settled everywhere the same way: the lower token id comes first.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.errors import DFlashChatError, SettingsError
from engine.events import SamplerSettings

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Candidate = tuple[int, float]  # token id, probability


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """A distribution over tokens, written down only where it is not zero. No id comes twice, p sums to 1."""

    ids: Ids  # [j]
    p: npt.NDArray[np.float64]  # [j]

    @classmethod
    def point(cls, token: int) -> Distribution:
        """All of the mass on one token."""
        return cls(np.array([token], np.int32), np.ones(1))

    def probability(self, token: int) -> float:
        at = (self.ids == token).nonzero()[0]
        return float(self.p[at[0]]) if at.size else 0.0

    def sample(self, rng: np.random.Generator) -> int:
        return int(self.ids[draw(self.p, rng.random())])


def draw(weights: npt.NDArray[np.float64], u: float) -> int:
    """The index that `u`, uniform in [0, 1), picks from weights [j] of any sum. Never one of weight zero."""
    cumulative = weights.cumsum()
    index = int(cumulative.searchsorted(u * cumulative[-1], side="right"))
    # The product can round up to the sum itself; the last index with weight is meant then.
    return index if index < len(weights) else int(weights.nonzero()[0][-1])


def check_settings(settings: SamplerSettings) -> None:
    """Raises SettingsError, with a sentence naming the setting, its value and its range."""

    def number(name: str, allowed: str, low: float, high: float = math.inf) -> None:
        value = getattr(settings, name)
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not (good and low <= value <= high):
            raise SettingsError(f"The sampler setting {name} is {value!r}; it must be {allowed}.")

    def whole(name: str, allowed: str, low: int) -> None:
        value = getattr(settings, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < low:
            raise SettingsError(f"The sampler setting {name} is {value!r}; it must be {allowed}.")

    number("temperature", "0 (always the likeliest token) or a positive number", 0)
    whole("top_k", "a whole number: 0 (off) or more", 0)
    number("top_p", "between 0 and 1 (off)", 0, 1)
    number("min_p", "between 0 (off) and 1", 0, 1)
    number("repetition_penalty", "between 0.01 and 100 (1 is off)", 0.01, 100)
    number("presence_penalty", "between -1000 and 1000 (0 is off)", -1000, 1000)
    number("frequency_penalty", "between -1000 and 1000 (0 is off)", -1000, 1000)
    whole("penalty_last_n", "a whole number: -1 (all tokens), 0 (off) or more", -1)
    if settings.seed is not None:
        whole("seed", "a whole number, 0 or more, or left out", 0)


class Sampler:
    """One answer's sampler: its settings, its random numbers, and the newest tokens, which the penalties look at.

    `history`: the tokens before the answer's first one, prompt included. Raises SettingsError.
    """

    def __init__(self, settings: SamplerSettings, history: Sequence[int] = ()) -> None:
        check_settings(settings)
        self.settings = settings
        self.rng = np.random.default_rng(settings.seed)
        penalties = (settings.repetition_penalty, settings.presence_penalty, settings.frequency_penalty)
        self._window: _Window | None = None
        self._scratch: Floats = np.empty(0, np.float32)  # [V], one penalised row
        if penalties != (1.0, 0.0, 0.0) and settings.penalty_last_n != 0:
            self._window = _Window(settings.penalty_last_n)
            self._window.extend(history)

    def accept(self, tokens: Iterable[int]) -> None:
        """These tokens now belong to the text."""
        if self._window is not None:
            self._window.extend(tokens)

    def choices(self, logits: Floats, drafts: Sequence[int] = ()) -> Ids:
        """[n, V] logits, at least n - 1 drafts -> [n] greedy tokens: the argmax of each row's penalised logits.

        Row i follows the text so far and drafts[:i], which count in its penalties.
        """
        return np.fromiter(self.each_choice(logits, drafts), np.int32, len(logits))

    def each_choice(self, logits: Floats, drafts: Sequence[int] = ()) -> Iterator[int]:
        """What `choices` gives, row by row: verification rarely needs them all."""
        for row in self._penalised(logits, drafts):
            at = int(row.argmax())
            if not math.isfinite(row[at]):
                raise _not_numbers()
            yield at

    def distributions(self, logits: Floats, drafts: Sequence[int] = ()) -> list[Distribution]:
        """[n, V] logits, at least n - 1 drafts -> n distributions; rows and drafts as in `choices`.

        At temperature 0 all of the mass lies on the greedy token.
        """
        return list(self.each_distribution(logits, drafts))

    def each_distribution(self, logits: Floats, drafts: Sequence[int] = ()) -> Iterator[Distribution]:
        """What `distributions` gives, row by row: verification rarely needs them all."""
        if self.settings.temperature == 0:
            yield from map(Distribution.point, self.each_choice(logits, drafts))
        else:
            yield from map(self._distribution, self._penalised(logits, drafts))

    def candidates(self, logits: Floats, drafts: Sequence[int], count: int) -> tuple[tuple[Candidate, ...], ...]:
        """[n, V] logits, at least n - 1 drafts -> the `count` likeliest tokens of each row, best first, to look at.

        Of the distribution that the token is drawn from; at temperature 0, where that is a single token, of the softmax
        of the penalised logits. Call it before `accept`.
        """
        rows: list[tuple[Candidate, ...]] = []
        for row in self._penalised(logits, drafts):
            if self.settings.temperature == 0:
                best, values = best_tokens(row, count)
                shares = np.exp(values - values[0]) / np.exp(row - values[0]).sum()
                rows.append(tuple(zip(best.tolist(), shares.tolist())))
            else:
                found = self._distribution(row)
                order = np.argsort(-found.p, kind="stable")[:count]
                rows.append(tuple(zip(found.ids[order].tolist(), found.p[order].tolist())))
        return tuple(rows)

    def _penalised(self, logits: Floats, drafts: Sequence[int]) -> Iterator[Floats]:
        """The rows one after another; each is good until the next one is asked for."""
        if self._window is None:
            yield from logits
            return
        if len(self._scratch) != logits.shape[1]:
            self._scratch = np.empty(logits.shape[1], np.float32)
        window = self._window.copy()
        for i, row in enumerate(logits):
            np.copyto(self._scratch, row)
            window.penalise(self._scratch, self.settings)
            yield self._scratch
            if i < len(logits) - 1:
                window.extend((drafts[i],))

    def _distribution(self, row: Floats) -> Distribution:
        """One row of penalised logits [V] through top-k, top-p, min-p and temperature."""
        ids, values = self._kept(row)
        p = np.exp((values - values.max()).astype(np.float64) / self.settings.temperature)
        if p.min() == 0:  # logits of -inf, or a temperature near 0
            ids, p = ids[p > 0], p[p > 0]
        return Distribution(ids.astype(np.int32), p / p.sum())

    def _kept(self, row: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
        """The tokens that top-k, top-p and min-p leave over, and their logits [j]: best first, unless nothing was cut.

        Every one of the three keeps the best few, so together they keep what the strictest of them does; only that many
        tokens have to be put in order. Top-p's shares are of what top-k left.
        """
        top_k, top_p, min_p = self.settings.top_k, self.settings.top_p, self.settings.min_p
        if 0 < top_k < len(row):
            ids, values = best_tokens(row, top_k)
            total = None  # of the exponentials of all that top-k left
        else:
            highest = row.max()
            if not np.isfinite(highest):
                raise _not_numbers()
            if min_p == 0 and top_p == 1:
                return np.arange(len(row)), row
            total = float(np.exp(row - highest).sum()) if top_p < 1 else None
            if min_p > 0:
                ids = (row >= _floor(highest, min_p)).nonzero()[0]
                ids, values = _in_order(ids, row[ids])
            else:
                ids, values = self._enough(row, highest, top_p * (total or 0.0))
        kept = len(ids)
        if top_p < 1:
            running = np.exp(values - values[0], dtype=np.float64).cumsum()
            # The token at which the sum reaches top-p still belongs to it.
            kept = min(kept, 1 + int(running.searchsorted(top_p * (total or running[-1]), side="left")))
        if min_p > 0:
            kept = min(kept, int((values >= _floor(values[0], min_p)).sum()))
        return ids[:kept], values[:kept]

    @staticmethod
    def _enough(row: Floats, highest: np.float32, needed: float) -> tuple[npt.NDArray[np.intp], Floats]:
        """The best tokens of the row, at least as many as it takes for their exponentials to sum to `needed`."""
        ids, values = best_tokens(row, 256)  # usually enough, and far cheaper than putting a whole vocabulary in order
        if len(ids) < len(row) and np.exp(values - highest, dtype=np.float64).sum() < needed:
            falling = np.sort(row)[::-1]
            running = np.exp(falling - highest, dtype=np.float64).cumsum()
            last = min(int(running.searchsorted(needed, side="left")), len(row) - 1)
            ids = (row >= falling[last]).nonzero()[0]
            return _in_order(ids, row[ids])
        return ids, values


class _Window:
    """The newest `last_n` tokens (-1: all of them) and how often each occurs."""

    def __init__(self, last_n: int) -> None:
        self._last_n = last_n
        self._tokens: deque[int] = deque()  # stays empty when nothing ever leaves the window
        self._counts: dict[int, int] = {}

    def copy(self) -> _Window:
        twin = _Window(self._last_n)
        twin._tokens, twin._counts = self._tokens.copy(), self._counts.copy()
        return twin

    def extend(self, tokens: Iterable[int]) -> None:
        counts = self._counts
        for token in tokens:
            token = int(token)
            counts[token] = counts.get(token, 0) + 1
            if self._last_n < 0:
                continue
            self._tokens.append(token)
            if len(self._tokens) > self._last_n:
                oldest = self._tokens.popleft()
                counts[oldest] -= 1
                if counts[oldest] == 0:
                    del counts[oldest]

    def penalise(self, row: Floats, settings: SamplerSettings) -> None:
        """Changes logits [V] in place.

        The repetition penalty divides a positive logit and multiplies the others, so that it always makes a token less
        likely; the other two are subtracted, once per token and once per occurrence.
        """
        ids = np.fromiter(self._counts.keys(), np.intp, len(self._counts))
        counts = np.fromiter(self._counts.values(), np.float32, len(self._counts))
        repetition = np.float32(settings.repetition_penalty)
        old = row[ids]
        new = np.where(old <= 0, old * repetition, old / repetition)
        row[ids] = new - (counts * np.float32(settings.frequency_penalty) + np.float32(settings.presence_penalty))


def best_tokens(row: Floats, k: int) -> tuple[npt.NDArray[np.intp], Floats]:
    """The k highest of logits [V], best first, the lower id first among equals; fewer where the others are -inf.

    One pass leaves the highest value of each of a few hundred groups. The k-th highest of these is no higher than the
    k-th highest logit (k groups hold one at least as high), and hardly lower, so a second pass, comparing with it, lets
    little more than k tokens through to be sorted. That is several times faster than a partition of the row.
    """
    groups = max(512, 8 * k)
    depth = len(row) // groups
    if depth < 4:
        highest: Floats = row
    else:
        highest = row[: groups * depth].reshape(depth, groups).max(axis=0)
        rest = row[groups * depth :]
        highest[: len(rest)] = np.maximum(highest[: len(rest)], rest)
    if not np.isfinite(highest.max()):  # a logit that is not a number would otherwise be lost in the comparison
        raise _not_numbers()
    k = min(k, len(row))
    bound = np.partition(highest, len(highest) - k)[len(highest) - k]
    ids = (row >= bound if bound > -np.inf else row > bound).nonzero()[0]
    ids, values = _in_order(ids, row[ids])
    return ids[:k], values[:k]


def _in_order(ids: npt.NDArray[np.intp], values: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Ascending ids and their logits -> highest logit first, ids still ascending among equals."""
    order = np.argsort(-values, kind="stable")
    return ids[order], values[order]


def _floor(highest: np.float32, min_p: float) -> np.float32:
    """The lowest logit whose probability is `min_p` of the highest one's."""
    floor: np.float32 = np.float32(highest + np.float32(math.log(min_p)))
    return floor


def _not_numbers() -> DFlashChatError:
    return DFlashChatError(
        "The target's output holds values that are not numbers; its file may be damaged or its quantisation may not "
        "work on this device: try the model in another quantisation, or on the CPU."
    )
