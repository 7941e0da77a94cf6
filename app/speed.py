"""The speed of one answer over time, from the engine's own figures: without a clock, it cannot disagree with them.

Plain Python; knows nothing of widgets.
"""

from __future__ import annotations

from engine.events import AnswerStatistics, StopReason

SHORTEST = 0.1  # seconds between two points: over less, a rate says little
MOST_MARKS = 160  # beyond this every other one goes: more than a small picture can show


class SpeedCurve:
    """Fed with the statistics of one answer as they come; a curve of tokens per second between them."""

    def __init__(self) -> None:
        self._marks: list[tuple[float, int]] = []  # (seconds since the first token, tokens behind it), both rising

    def note(self, statistics: AnswerStatistics) -> None:
        """Take over live figures, or the last ones."""
        speed = statistics.tokens_per_second
        # What `tokens_per_second` counts: tokens behind the first one, the stop token included.
        tokens = statistics.output_tokens - (statistics.stop_reason is not StopReason.STOP_TOKEN)
        if not speed or tokens <= 0:
            return
        seconds = tokens / speed
        then, before = self._marks[-1] if self._marks else (0.0, 0)
        if seconds < then + SHORTEST or tokens <= before:
            return
        self._marks.append((seconds, tokens))
        if len(self._marks) > MOST_MARKS:
            self._marks = self._marks[::-2][::-1]  # the newest one stays

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """(seconds since the first token, tokens per second since the point before)."""
        before = [(0.0, 0), *self._marks]
        return tuple((now, (n - m) / (now - then)) for (then, m), (now, n) in zip(before, self._marks))
