"""What a pass costs on this machine, in seconds: by its size, and by how much context it attends to.

A first measurement gives the shape; what is seen while running corrects it, by medians, which a machine that does
something else now and then does not disturb. Knows nothing of models: a pass is a size and a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

_RECENT = 21  # passes of one size whose median counts
_LEVEL = 31  # passes of any size that say how fast the machine is now
_TRUSTED = 3  # so many passes of a size speak for themselves
_LIFE = 400  # passes after which an observation is too old: the machine may have become slower or faster
_DEPTH_STEP = 256  # positions


def depth_class(depth: int) -> int:
    """Context lengths in steps that double: 0 up to 255 positions, 1 up to 511, 2 up to 1023 and so on."""
    return (depth // _DEPTH_STEP).bit_length()


class CostCurve:
    """Seconds of one kind of pass. `first`: the first measurement, seconds by size; it need not hold every size."""

    def __init__(self, first: Mapping[int, float]) -> None:
        """Raises ValueError without a measurement, or with one that no pass can take."""
        if not first or not all(size >= 1 and 0 < seconds < float("inf") for size, seconds in first.items()):
            raise ValueError("a cost curve needs at least one size with a time above 0")
        self._first = dict(sorted(first.items()))
        self._sizes, self._times = list(self._first), list(self._first.values())
        self._count = 0
        self._recent: dict[tuple[int, int], deque[tuple[int, float]]] = {}  # by (depth class, size): (when, seconds)
        self._levels: dict[int, deque[float]] = {}  # by depth class: seconds / first measurement

    def observe(self, size: int, depth: int, seconds: float) -> None:
        """A pass of this size over `depth` committed positions took so long."""
        self._count += 1
        where = depth_class(depth)
        self._recent.setdefault((where, size), deque(maxlen=_RECENT)).append((self._count, seconds))
        self._levels.setdefault(where, deque(maxlen=_LEVEL)).append(seconds / self._measured(size))

    def at(self, size: int, depth: int) -> float:
        """Seconds that a pass of this size takes now.

        The median of what was seen of late at such a depth. For a size that was hardly seen: the first measurement, as
        much slower or faster as the sizes seen have become.
        """
        where = depth_class(depth)
        recent = self._recent.get((where, size), ())
        times = [seconds for when, seconds in recent if self._count - when < _LIFE]
        missing = _TRUSTED - len(times)
        if missing > 0:
            times += [self._measured(size) * self._level(where)] * missing
        return _median(times)

    def curve(self, sizes: Sequence[int], depth: int) -> list[float]:
        return [self.at(size, depth) for size in sizes]

    def _level(self, where: int) -> float:
        """Of this depth, else of the nearest shallower one, else of any."""
        known = [depth for depth, seen in self._levels.items() if len(seen) >= _TRUSTED]
        if not known:
            return 1.0
        return _median(list(self._levels[max((depth for depth in known if depth <= where), default=min(known))]))

    def _measured(self, size: int) -> float:
        """The first measurement, on a straight line between the sizes measured, and on the last two's line beyond."""
        found = self._first.get(size)
        if found is not None:
            return found
        sizes, times = self._sizes, self._times
        if len(sizes) == 1 or size < sizes[0]:
            return times[0]
        right = min(bisect_left(sizes, size), len(sizes) - 1)
        left = right - 1
        slope = (times[right] - times[left]) / (sizes[right] - sizes[left])
        if size > sizes[-1]:
            slope = max(slope, 0.0)
            return times[-1] + slope * (size - sizes[-1])
        return times[left] + slope * (size - sizes[left])

    def as_dict(self) -> dict[str, Any]:
        """For a file: the first measurement, and what was seen since."""
        seen: dict[str, dict[str, float]] = {}
        for (where, size), recent in self._recent.items():
            if len(recent) >= _TRUSTED:
                seen.setdefault(str(where), {})[str(size)] = _median([seconds for _, seconds in recent])
        return {"first": {str(size): seconds for size, seconds in self._first.items()}, "seen": seen}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> CostCurve:
        """Raises AttributeError, KeyError, TypeError, ValueError for what `as_dict` has not made."""
        curve = cls({int(size): float(seconds) for size, seconds in found["first"].items()})
        for where, sizes in found["seen"].items():
            for size, seconds in sizes.items():
                if not 0 < float(seconds) < float("inf"):
                    raise ValueError("a time that no pass can take")
                for _ in range(_TRUSTED):
                    curve.observe(int(size), max(0, (_DEPTH_STEP << int(where)) - 1), float(seconds))
        return curve


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else 0.5 * (ordered[middle - 1] + ordered[middle])
