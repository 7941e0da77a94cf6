"""Small line and bar charts as SVG text. No library needed.

Every shape carries a class (`ground`, `ink`, `grid`, `c0`…), so that a page that holds the picture can colour it anew,
such as in the dark; by itself it is light.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 44, 88
COLOURS = ("#1f6feb", "#d1541f", "#2f855a", "#8a4fbf", "#8c6d1f", "#5f6b76")

Line = Sequence[tuple[float, float]]


def line_chart(
    title: str, across: str, up: str, lines: Mapping[str, Line], *, from_zero: bool = True, order: Sequence[str] = ()
) -> str:
    """A chart of named lines of (x, y) points. `order`: names whose places give them their colours, in every chart."""
    points = [point for line in lines.values() for point in line]
    if not points:
        raise ValueError("a chart without points")
    low_x, high_x = _span([x for x, _ in points])
    low_y, high_y, step = _scale([y for _, y in points] + ([0.0] if from_zero else []))

    def at(x: float, y: float) -> tuple[float, float]:
        return (_LEFT + (x - low_x) / (high_x - low_x) * (_WIDTH - _LEFT - _RIGHT), _up(y, low_y, high_y))

    parts = _frame(title, across, up, low_y, high_y, step)
    columns = sorted({x for x, _ in points})
    if len(columns) > 10 or any(x != int(x) for x in columns):
        columns = [low_x + (high_x - low_x) * i / 5 for i in range(6)]
    parts += [_text(at(x, low_y)[0], _HEIGHT - _BOTTOM + 18, _number(x), "middle") for x in columns]
    for index, (label, line) in enumerate(lines.items()):
        colour, name = _colour(label, index, order)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line))
        parts.append(f'<polyline class="line {name}" points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(line) <= 32:
            parts += [
                f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
                for x, y in (at(*point) for point in line)
            ]
    return _finished(parts, list(lines), order)


def bar_chart(
    title: str,
    up: str,
    groups: Sequence[str],
    bars: Mapping[str, Sequence[float | None]],
    *,
    order: Sequence[str] = (),
) -> str:
    """Named bars side by side in each of the groups, from zero; None leaves a gap. Each bar bears its figure."""
    heights = [value for values in bars.values() for value in values if value is not None]
    if not heights:
        raise ValueError("a chart without bars")
    low, high, ticks = _scale([0.0, *heights])
    parts = _frame(title, "", up, low, high, ticks)
    step = (_WIDTH - _LEFT - _RIGHT) / max(1, len(groups))
    width = min(step * 0.8 / len(bars), 46)
    floor = _up(0.0, low, high)
    for place, group in enumerate(groups):
        middle = _LEFT + (place + 0.5) * step
        parts.append(_text(middle, _HEIGHT - _BOTTOM + 18, group, "middle"))
        for index, (label, values) in enumerate(bars.items()):
            value = values[place]
            if value is None:
                continue
            left = middle + (index - len(bars) / 2) * width
            top = _up(value, low, high)
            colour, name = _colour(label, index, order)
            parts.append(
                f'<rect class="{name}" x="{left + 1:.1f}" y="{min(top, floor):.1f}" width="{width - 2:.1f}" '
                f'height="{abs(floor - top):.1f}" fill="{colour}"/>'
            )
            if width >= 20:
                parts.append(_text(left + width / 2, top - 4, _number(value), "middle", size=10))
    return _finished(parts, list(bars), order)


def _frame(title: str, across: str, up: str, low: float, high: float, step: float) -> list[str]:
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" role="img" aria-label={quoteattr(title)}'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box}>',
        f'<rect class="ground" width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        _text(_WIDTH / 2, 24, title, "middle", size=15),
    ]
    for i in range(round((high - low) / step) + 1):
        value = low + i * step
        height = _up(value, low, high)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" y1="{height:.1f}" x2="{_WIDTH - _RIGHT}" y2="{height:.1f}" '
            'stroke="#dde1e6"/>'
        )
        parts.append(_text(_LEFT - 8, height + 4, _number(value), "end"))
    if across:
        parts.append(_text(_WIDTH / 2, _HEIGHT - _BOTTOM + 38, across, "middle"))
    middle = (_HEIGHT - _BOTTOM + _TOP) / 2
    parts.append(f'<g transform="translate(16,{middle:.0f}) rotate(-90)">{_text(0, 0, up, "middle")}</g>')
    return parts


def _colour(name: str, index: int, order: Sequence[str]) -> tuple[str, str]:
    """The colour and its class."""
    place = (order.index(name) if name in order else len(order) + index) % len(COLOURS)
    return COLOURS[place], f"c{place}"


def _finished(parts: list[str], names: Sequence[str], order: Sequence[str]) -> str:
    place = float(_LEFT)
    for index, name in enumerate(names):
        colour, kind = _colour(name, index, order)
        parts.append(f'<rect class="{kind}" x="{place:.0f}" y="{_HEIGHT - 26}" width="18" height="4" fill="{colour}"/>')
        parts.append(_text(place + 24, _HEIGHT - 20, name, "start"))
        place += 40 + 7 * len(name)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _up(y: float, low: float, high: float) -> float:
    return _HEIGHT - _BOTTOM - (y - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low, low + 1)


def _scale(values: Sequence[float]) -> tuple[float, float, float]:
    """Round ends around the values, and the round step of the lines between."""
    low, high = _span(values)
    rough = (high - low) / 5
    size = 10 ** math.floor(math.log10(rough))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= rough * 0.999)
    return step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9), step


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}".rstrip("0").rstrip(".") or "0"


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return (
        f'<text class="ink" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#24292f">'
        f"{escape(text)}</text>"
    )
