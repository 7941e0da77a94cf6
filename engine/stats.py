"""Every number shown about an answer, each with one definition, for the window, the command line and the benchmark.

Knows nothing of models: the generation loop tells an `AnswerRecorder` what happened, and asks for a snapshot when it
wants one. What the words mean:

verification pass       one target decode that checks at least one draft
target pass             any target decode behind the prompt, plain ones included
emitted by a pass       the tokens it added to the answer, the stop token included: accepted drafts and the target's own
                        token. Drafts accepted behind the stop token or past the limit were not emitted: not counted
acceptance length       tokens emitted by verification passes / verification passes
tokens per target pass  tokens emitted by target passes / target passes. The answer's first token comes from the
                        prompt's logits, not from a pass, and is not counted: without drafts this is exactly 1
acceptance rate         drafts accepted / drafts verified
acceptance at k         among the cycles in which draft k was verified, the share in which drafts 1..k were all
                        accepted. Both of these count what verification found, whether or not all of it was emitted
output tokens           the answer's token ids; the stop token is not one of them
tokens per second       tokens behind the first one, the stop token included / the time from the first token to the
                        newest: decoding alone, without the reading of the prompt
prompt tokens per s     prompt tokens read, not those taken from the cache / the time spent reading them. Tokens that
                        are read again, because the drafter's cache lacked them, count as read
time to first token     from the moment the recorder was made, which is when the question arrived
plain tokens per s      what plain decoding would give: 1 / the time of a plain pass on this machine at this context
                        length, measured when target and drafter were first used together, and corrected since
speed-up                tokens per second / plain tokens per second
draft length            drafts verified in the newest cycle
draft_ms, verify_ms     means over the draft steps and over the verification passes

A figure with nothing to divide by is None, "none", never 0.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from engine.draft_length import DraftLength
from engine.events import AnswerStatistics, Memory, Mode, StopReason


class AnswerRecorder:
    """What happened during one answer of one sequence. Make it when the question arrives.

    The order of calls is `prompt`, `prompt_read` for each chunk, `first_token`, then `cycle` once per target pass;
    `snapshot` at any time. `target`, `drafter`: file names.
    """

    def __init__(
        self, mode: Mode, target: str, drafter: str | None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._mode, self._target, self._drafter = mode, target, drafter
        self._clock = clock
        self._asked = clock()
        self._first: float | None = None  # when the first token came
        self._newest = self._asked  # when the newest one came
        self._prompt_tokens = self._prompt_cached = self._prompt_read = 0
        self._prompt_seconds = 0.0
        self._stopped = False  # a stop token was emitted; it is no output token
        self._emitted = 0  # by passes
        self._passes = 0
        self._verified_emitted = 0  # by verification passes
        self._verified_seconds = 0.0
        self._draft_steps = 0
        self._draft_seconds = 0.0
        self._newest_drafted: int | None = None  # by the newest cycle
        self.length: DraftLength | None = None  # what decides, in the drafting modes
        # How many verification passes checked m drafts, and how many accepted a: index m, index a.
        self._of_drafted = [0]
        self._of_accepted = [0]

    def prompt(self, tokens: int, cached: int) -> None:
        """The whole prompt has this many tokens, of which these are in the caches already."""
        self._prompt_tokens, self._prompt_cached = tokens, cached

    def prompt_read(self, tokens: int, seconds: float) -> None:
        """The target (and the drafter) has read this many further prompt tokens."""
        self._prompt_read += tokens
        self._prompt_seconds += seconds

    def first_token(self, *, stop_token: bool = False) -> None:
        """The prompt's logits have given the first token."""
        self._first = self._newest = self._clock()
        self._stopped = stop_token

    def cycle(
        self,
        *,
        drafted: int,
        accepted: int,
        emitted: int,
        verify_s: float,
        draft_s: float | None = None,
        stop_token: bool = False,
    ) -> None:
        """One target pass is over.

        drafted: drafts sent to verification, 0 for a plain pass; accepted: how many of them verification accepted;
        emitted: tokens added to the answer, counted to the stop token (included) or the limit, so at most accepted + 1;
        verify_s: seconds of the target's pass; draft_s: of the draft step, None when there was none;
        stop_token: the last one emitted is the stop token.
        """
        self._newest = self._clock()
        self._passes += 1
        self._emitted += emitted
        self._stopped = stop_token
        self._newest_drafted = drafted
        if draft_s is not None:
            self._draft_steps += 1
            self._draft_seconds += draft_s
        if drafted:
            self._verified_emitted += emitted
            self._verified_seconds += verify_s
            missing = drafted + 1 - len(self._of_drafted)
            if missing > 0:
                self._of_drafted.extend([0] * missing)
                self._of_accepted.extend([0] * missing)
            self._of_drafted[drafted] += 1
            self._of_accepted[accepted] += 1

    def snapshot(self, memory: Memory, stop_reason: StopReason | None = None) -> AnswerStatistics:
        """Everything so far. `stop_reason` None: the answer still runs."""
        passes = sum(self._of_drafted)
        drafted = sum(m * count for m, count in enumerate(self._of_drafted))
        accepted = sum(a * count for a, count in enumerate(self._of_accepted))
        first = 0 if self._first is None else 1
        tokens_per_second = None if self._first is None else _ratio(self._emitted, self._newest - self._first)
        plain_s = None if self.length is None else self.length.plain_s
        return AnswerStatistics(
            mode=self._mode,
            target=self._target,
            drafter=self._drafter,
            prompt_tokens=self._prompt_tokens,
            prompt_tokens_cached=self._prompt_cached,
            output_tokens=first + self._emitted - self._stopped,
            tokens_per_second=tokens_per_second,
            prompt_tokens_per_second=_ratio(self._prompt_read, self._prompt_seconds),
            time_to_first_token_s=None if self._first is None else self._first - self._asked,
            tokens_per_target_pass=_ratio(self._emitted, self._passes),
            acceptance_length=_ratio(self._verified_emitted, passes),
            acceptance_rate=_ratio(accepted, drafted),
            acceptance_by_position=tuple(
                _ratio(sum(self._of_accepted[k:]), sum(self._of_drafted[k:])) for k in range(1, len(self._of_drafted))
            ),
            verification_passes=passes,
            target_passes=self._passes,
            drafted_tokens=drafted,
            accepted_tokens=accepted,
            draft_ms=_ratio(1000 * self._draft_seconds, self._draft_steps),
            verify_ms=_ratio(1000 * self._verified_seconds, passes),
            memory=memory,
            stop_reason=stop_reason,
            plain_tokens_per_second=None if plain_s is None else 1 / plain_s,
            speed_up=None if plain_s is None or tokens_per_second is None else tokens_per_second * plain_s,
            decision=None if self.length is None or self._newest_drafted is None else self.length.explain(),
            draft_length=None if self.length is None else self._newest_drafted,
        )


def _ratio(over: float, under: float) -> float | None:
    return over / under if under > 0 else None


def process_memory() -> tuple[int, int]:
    """Bytes of this process: resident set now, and at its highest."""
    information = psutil.Process().memory_info()
    resident = int(information.rss)
    return resident, max(resident, _peak(information))


def _peak(information: Any) -> int:
    if sys.platform == "win32":
        return int(information.peak_wset)
    if sys.platform == "linux":
        # getrusage would do, but a process starts with the peak of the one that started it, which may be far larger.
        for line in Path(f"/proc/{os.getpid()}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    import resource

    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(highest if sys.platform == "darwin" else 1024 * highest)  # bytes there, kilobytes elsewhere


# What `--json` prints behind `text` and `token_ids`, in this order.
_JSON_FIELDS = (
    "mode",
    "target",
    "drafter",
    "prompt_tokens",
    "output_tokens",
    "tokens_per_second",
    "prompt_tokens_per_second",
    "time_to_first_token_s",
    "tokens_per_target_pass",
    "acceptance_length",
    "acceptance_rate",
    "acceptance_by_position",
    "verification_passes",
    "plain_tokens_per_second",
    "speed_up",
    "draft_length",
    "decision",
    "draft_ms",
    "verify_ms",
    "memory",
    "stop_reason",
)


def to_json(statistics: AnswerStatistics, text: str, token_ids: Sequence[int]) -> dict[str, Any]:
    """An answer as one object that `json.dumps` takes. Memory is in bytes, times in the unit of their names."""
    found: dict[str, Any] = {"text": text, "token_ids": [int(token) for token in token_ids]}
    for name in _JSON_FIELDS:
        found[name] = getattr(statistics, name)
    found["mode"] = statistics.mode.value
    found["acceptance_by_position"] = list(statistics.acceptance_by_position)
    found["memory"] = asdict(statistics.memory)
    found["stop_reason"] = None if statistics.stop_reason is None else statistics.stop_reason.value
    return found


MODE_NAMES = {Mode.BASELINE: "Baseline", Mode.DFLASH: "DFlash", Mode.DFLASH2: "DFlash 2"}

_ENDINGS = {
    StopReason.MAX_TOKENS: "ended at the token limit",
    StopReason.CONTEXT_FULL: "ended because the context is full",
    StopReason.CANCELLED: "stopped by you",
}


def one_line(statistics: AnswerStatistics) -> str:
    """The answer's figures for a terminal, in one line of plain words."""
    tokens = statistics.output_tokens
    words = f"{MODE_NAMES[statistics.mode]}: {tokens} token{'' if tokens == 1 else 's'}"
    if statistics.tokens_per_second is not None:
        words += f" at {statistics.tokens_per_second:.1f} tokens/s"
    parts = [words]
    if statistics.time_to_first_token_s is not None:
        parts.append(f"first token after {statistics.time_to_first_token_s:.2f} s")
    if statistics.acceptance_length is not None and statistics.acceptance_rate is not None:
        parts.append(
            f"acceptance length {statistics.acceptance_length:.2f}"
            f" ({statistics.acceptance_rate:.0%} of {statistics.drafted_tokens} drafts accepted)"
        )
        if statistics.tokens_per_target_pass is not None:
            parts.append(f"{statistics.tokens_per_target_pass:.2f} tokens per target pass")
    elif statistics.mode is not Mode.BASELINE:
        parts.append("nothing was drafted")
    if statistics.speed_up is not None:
        parts.append(f"{statistics.speed_up:.2f} times plain decoding")
    parts.append(f"memory {statistics.memory.process / 2**20:.0f} MiB")
    if statistics.stop_reason in _ENDINGS:
        parts.append(_ENDINGS[statistics.stop_reason])
    return ", ".join(parts)
