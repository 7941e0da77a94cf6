"""How many drafts to verify in a cycle, and whether to draft at all: what gives the most tokens per second.

Two decisions in each cycle. *Before* the draft nothing is known of it, so whether it pays, and how long the block
should be, follows from the newest drafts' worth. *After* it its price is paid, and the number to verify follows from
each draft's chance of acceptance and from what a pass of that many rows costs. While drafting does not pay it is tried
again now and then, out of a budget that is a small share of the time, and more often again once a try was good. So a
text on which drafting loses costs little more than plain decoding, and one bad stretch switches nothing off for good.

What is verified may depend on confidences that were known before anything was drawn, never on what was drawn: rejection
sampling requires that. Knows no model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.acceptance import Acceptance
from engine.draft_length import _drafts, _one_more, block_lengths
from engine.pass_costs import CostCurve

_REMEMBERED = 16  # newest drafts whose worth decides whether the next one is made
_FADING = 0.88  # weight of a draft against the one after it
_REVIEW_EVERY = 4  # cycles between two looks at block length and rate, while drafting

_BUDGET = 0.005  # of the time of plain decoding may be lost on tries
_FIRST_BUDGET = 2.0  # plain passes that may be lost at first
_MOST_BUDGET = 6.0  # plain passes that can be saved up
_FIRST_WAIT, _LONGEST_WAIT = 8, 256  # plain passes between two tries
_FIRST_TRIES = 3  # drafts before anything is judged
_FIRST_DRAFTS = 7  # longest of these

# Cycles with drafts between two plain ones, which keep that cost known: at first, later, and where drafting pays well.
_PLAIN_AT_FIRST, _PLAIN_EVERY, _PLAIN_IF_CLEAR = 4, 64, 256
_CLEAR = 0.3  # gain from which on the cost of a plain pass need not be known so well
_MARGIN = 0.02  # of the tokens of a cycle: with less to gain, an error in the costs would decide
_SLACK, _CAUTION = 0.5, 0.1  # plain passes that drafting may have lost so far; more margin for each one beyond
_MOST_BALANCE = 4.0  # plain passes won that are remembered against later losses
_LIKELY = 2  # drafts likely to be accepted that a try verifies, even where the costs speak against it
_GUESS = 0.6  # confidence in each draft of a drafter that has not drafted yet


class AutomaticLength:
    """Decides for one pair of target and drafter; keep it as long as the pair, for it learns."""

    reads_confidence = True

    def __init__(self, verify: CostCurve, draft: CostCurve, block_size: int) -> None:
        """Costs of a target pass by its rows, and of a draft step by the rows of its block, of all streams together."""
        self.verify, self.draft, self.acceptance = verify, draft, Acceptance()
        self._longest = block_size - 1
        self._lengths = block_lengths(block_size)
        self._records: deque[list[float]] = deque(maxlen=_REMEMBERED)  # confidences of the newest drafts
        self._drafted = 0  # drafts made so far
        self._budget = _FIRST_BUDGET  # plain passes
        self._balance = 0.0  # tokens that drafting gave beyond what its time would have given plainly
        self._wait, self._next_wait = 0, _FIRST_WAIT
        self._since_plain, self._plain_every = 0, _PLAIN_AT_FIRST
        self._streams = 1
        self._depth = 0
        self._review_in = 0
        self._drafting = False
        self._block = self._lengths[-1]
        self._gain = 0.0  # expected of a cycle with drafts: tokens beyond what its time would give plainly
        self._rate = 0.0  # tokens per second that a moment is worth
        self._passes: list[float] = []  # seconds of a pass with 0.. drafts in all
        self._draft_s = 0.0
        self._waiting_s = 0.0  # to inject one position of many
        self._inject_s = 0.0  # to inject what waits now
        self._drew = False  # a block was drafted in this cycle
        # By stream: the newest block's confidences while its drafts can still be held against what the target says, its
        # drafts that were left out, and how many of the block are settled.
        self._blocks: dict[int, Sequence[float]] = {}
        self._left_out: dict[int, Sequence[int]] = {}
        self._behind: dict[int, int] = {}
        self.newest = 0
        self._reason = "plain"

    @property
    def plain_s(self) -> float:
        return self.verify.at(1, self._depth)

    # before the draft

    def begin(self) -> None:
        self._blocks.clear()
        self._next_wait = _FIRST_WAIT
        self._wait = min(self._wait, _FIRST_WAIT)
        self._review_in = 0

    def block(self, most: Sequence[int], depth: int, waiting: int = 0) -> int:
        limit = max(most)
        self._drew = False
        self._inject_s = waiting * self._waiting_s
        if len(most) != self._streams:
            self._streams = len(most)
            self.begin()
        if limit < 1:  # there is room for one token only: no decision, and the words stay what they were
            return 0
        self._depth = depth
        if self._drafting or self._drafted < _FIRST_TRIES:
            if self._review_in <= 0:
                self._review()
            self._review_in -= 1
            if self._drafted < _FIRST_TRIES:
                if self._budget > 0:
                    return self._block
            elif self._drafting:
                if self._since_plain < (self._plain_every if self._gain < _CLEAR else _PLAIN_IF_CLEAR):
                    return self._block
                self._plain_every = min(2 * self._plain_every, _PLAIN_EVERY)
                self._decided(0, "measuring")
                return 0
        self._wait -= 1
        if self._wait <= 0:
            self._review()
            if self._drafting:
                return self._block
            price = (self._draft_s + self._inject_s) / self._passes[0]
            if price <= self._budget:
                return self._block
            self._wait = max(1, int((price - self._budget) / _BUDGET))
        self._decided(0, "plain")
        return 0

    def _review(self) -> None:
        """What a cycle with drafts is worth, by the newest drafts; whether to draft, in which length, at which rate."""
        streams, depth, longest = self._streams, self._depth, self._longest
        self._review_in = _REVIEW_EVERY if self._drafted > _REMEMBERED else 1
        self._passes = self.verify.curve(range(streams, streams * (longest + 1) + 1), depth)
        passes = np.array(self._passes[::streams])  # [P+1]: with 0..P drafts for each stream
        tokens, weights = self._expected()  # [R, P+1], [R]
        # No longer than twice what was drafted of late: of what lies behind, too little is known.
        known = max(map(len, self._records), default=_FIRST_DRAFTS)
        lengths = [length for length in self._lengths if length - 1 <= 2 * known]
        ends = [length - 1 for length in lengths]
        drafts = np.array(self.draft.curve([streams * length for length in lengths], depth))
        plain = streams / passes[0]

        def worth(rate: float) -> tuple[int, float, float, float]:
            """The best length at a rate, its gain in tokens, and the tokens and seconds of a cycle with it."""
            values = streams * tokens - rate * passes  # [R, P+1]
            best = weights @ np.maximum.accumulate(values, axis=1)[:, ends] - rate * drafts
            at = int(best.argmax())
            chosen = values[:, : ends[at] + 1].argmax(axis=1)
            given = streams * float(weights @ tokens[np.arange(len(tokens)), chosen])
            return at, float(best[at]), given, float(weights @ passes[chosen] + drafts[at])

        at, gain, given, seconds = worth(plain)
        was = self._drafting
        self._drafting = gain > (_MARGIN + _CAUTION * max(0.0, -self._balance - _SLACK)) * given
        self._rate = plain
        if self._drafting:
            for _ in range(2):  # a moment is worth what drafting makes of it: that is more than plain decoding does
                self._rate = max(plain, given / seconds)
                at, _, given, seconds = worth(self._rate)
        elif was:
            self._wait = self._next_wait = _FIRST_WAIT
        self._gain = (given / seconds) / plain - 1
        self._block = lengths[at]
        self._draft_s = float(drafts[at])

    def _expected(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Tokens expected with 0..P verified drafts, for each remembered draft [R, P+1], and its weight [R]."""
        records = list(self._records) or [[_GUESS] * self._longest]
        longest = self._longest
        table = np.empty((len(records), longest + 1))
        table[:, 0] = 1.0
        for row, record in zip(table, records):
            chances = self.acceptance.chances(record)
            row[1 : len(chances) + 1] = chances
            row[len(chances) + 1 :] = sum(chances) / len(chances)  # of positions that were not drafted
        tokens = np.cumsum(np.cumprod(table, axis=1), axis=1)
        weights = _FADING ** np.arange(len(records) - 1, -1, -1.0)
        return tokens, weights / weights.sum()

    # after the draft

    def drafts(self, confidences: Sequence[Sequence[float] | None], most: Sequence[int]) -> list[int]:
        self._blocks.clear()
        counts = [0] * len(most)
        if not self._passes:
            self._review()
        survivals: list[tuple[float, int]] = []  # (chance that all drafts up to it are accepted, stream)
        for stream, (confidence, limit) in enumerate(zip(confidences, most)):
            if not confidence:
                continue
            self._blocks[stream] = confidence
            self._records.append(list(confidence))
            chance = 1.0
            for own in self.acceptance.chances(confidence)[:limit]:
                chance *= own
                survivals.append((chance, stream))
        self._drafted += 1
        self._drew = True
        if not self._blocks:  # a damaged drafter
            self._records.append([0.0])
            self._count_try(-self._draft_s / self._passes[0], -self._draft_s / self._passes[0])
            return counts
        if len(most) > 1:
            survivals.sort(key=lambda pair: -pair[0])  # stable, and falling within a stream: its drafts stay in order
        best, worth, done = 0, 0.0, 0.0
        likely, likely_done = 0, 0.0
        plain_best, plain = 0.0, len(most) / self._passes[0]
        gained = 0.0
        for count, (chance, _) in enumerate(survivals, 1):
            gained += chance
            extra = self._passes[count] - self._passes[0]
            if gained - self._rate * extra > worth:
                best, worth, done = count, gained - self._rate * extra, gained - plain * extra
            if chance >= 0.5:
                likely, likely_done = count, gained - plain * extra
            plain_best = max(plain_best, gained - plain * extra)
        if (
            not (best or self._drafting) and likely >= _LIKELY
        ):  # so that a cost that was measured wrongly comes to light
            best, done = likely, likely_done
        for _, stream in survivals[:best]:
            counts[stream] += 1
        price = plain * (self._draft_s if self._drafting else self._draft_s + self._inject_s)
        extra = self._passes[best] - self._passes[0]
        self._balance = min(self._balance - price - plain * extra, _MOST_BALANCE)
        self._count_try(plain_best - price, done - price)
        self._decided(best, "whole" if best == len(survivals) else "cost" if best else "unsure")
        return counts

    def _count_try(self, gain: float, done: float) -> None:
        """A draft was made that can be expected to gain so many tokens at best, and so many as decided, all paid."""
        if not self._drafting and self._drafted > _FIRST_TRIES:
            if gain > 0:  # the text may have changed: the old drafts hardly count any more
                while len(self._records) > 2:
                    self._records.popleft()
                self._next_wait = _FIRST_WAIT
                self._wait = 1
            else:
                self._wait = self._next_wait
                self._next_wait = min(2 * self._next_wait, _LONGEST_WAIT)
        self._budget = min(self._budget + done / self._streams, _MOST_BUDGET)

    # what came of it

    def took(self, rows: int, depth: int, verify_s: float) -> None:
        self.verify.observe(rows, depth, verify_s)
        if rows == self._streams:
            self._since_plain = 0
            if not self._drew:
                self._budget = min(self._budget + _BUDGET, _MOST_BUDGET)
                self._balance = min(self._balance + _BUDGET, _MOST_BALANCE)
        else:
            self._since_plain += 1

    def drafted(self, rows: int, depth: int, waiting: int, inject_s: float, draft_s: float) -> None:
        if waiting > rows:  # after a stretch without drafts: another matter than what a cycle costs
            self._waiting_s = inject_s / waiting
            inject_s = self._waiting_s * min(waiting, 4)
        self.draft.observe(rows, depth, draft_s + inject_s)

    def verified(self, stream: int, drafted: int, accepted: int, left_out: Sequence[int] = ()) -> None:
        confidence = self._blocks.get(stream)
        if confidence is None:
            return
        self._balance += accepted
        for index in range(min(accepted + 1, drafted)):
            self.acceptance.learn(index + 1, confidence[index], float(index < accepted))
        self._behind[stream] = drafted
        if accepted < drafted:
            del self._blocks[stream]
        self._left_out[stream] = left_out

    def said(self, stream: int, token: int) -> None:
        confidence = self._blocks.get(stream)
        if confidence is None:
            return
        left_out, index = self._left_out[stream], self._behind[stream]
        at = index - (len(confidence) - len(left_out))
        if not 0 <= at < len(left_out):
            del self._blocks[stream]
            return
        right = left_out[at] == token
        self.acceptance.learn(index + 1, confidence[index], float(right))
        self._behind[stream] = index + 1
        if not right:
            del self._blocks[stream]

    def overlap(self, stream: int, chance: float) -> None:
        confidence = self._blocks.get(stream)
        if confidence is not None:
            index = self._behind[stream]
            self.acceptance.learn(index + 1, confidence[index], chance)
            del self._blocks[stream]

    # in words

    def _decided(self, drafts: int, reason: str) -> None:
        self.newest, self._reason = drafts, reason

    def explain(self) -> str | None:
        if self._reason == "plain":
            return "Not drafting: plain decoding is faster for this text on this machine."
        if self._reason == "measuring":
            return "A plain pass, to see how fast that is now."
        if self._reason == "unsure":
            return "Nothing verified: the drafter is too unsure here."
        if self._reason == "whole":
            return f"{_drafts(self.newest)}: all that were proposed."
        return f"{_drafts(self.newest)}: {_one_more(self.newest + 1)} would cost more than it brings."

    # kept between sessions

    def as_dict(self) -> dict[str, Any]:
        """What was learned; the costs are not in it."""
        return {
            "acceptance": self.acceptance.as_dict(),
            "records": [list(record) for record in self._records],
            "drafted": self._drafted,
            "budget": self._budget,
        }

    def learn(self, found: Mapping[str, Any]) -> None:
        """Take over what `as_dict` gave. Raises AttributeError, KeyError, TypeError, ValueError for anything else."""
        acceptance = Acceptance.from_dict(found["acceptance"])
        records = [[min(max(0.0, float(value)), 1.0) for value in record] for record in found["records"]]
        if not all(1 <= len(record) <= self._longest for record in records):
            raise ValueError("records of another block size")
        drafted, budget = int(found["drafted"]), float(found["budget"])
        self.acceptance = acceptance
        self._records.extend(records)
        self._drafted = max(0, drafted)
        self._budget = min(max(-_MOST_BUDGET, budget), _MOST_BUDGET)  # in this order: what is no number becomes one
