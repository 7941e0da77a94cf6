"""Small line charts as SVG text, for the model card. No library needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 44, 88
_COLOURS = ("#1f6feb", "#d1541f", "#2f855a", "#8a4fbf", "#8c6d1f", "#5f6b76")

Line = Sequence[tuple[float, float]]


def line_chart(title: str, across: str, up: str, lines: Mapping[str, Line], *, from_zero: bool = True) -> str:
    """A chart of named lines of (x, y) points."""
    points = [point for line in lines.values() for point in line]
    if not points:
        raise ValueError("a chart without points")
    low_x, high_x = _span([x for x, _ in points])
    low_y, high_y = _span([y for _, y in points] + ([0.0] if from_zero else []))

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            _LEFT + (x - low_x) / (high_x - low_x) * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - (y - low_y) / (high_y - low_y) * (_HEIGHT - _TOP - _BOTTOM),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        _text(_WIDTH / 2, 24, title, "middle", size=15),
    ]
    for i in range(6):
        y = low_y + (high_y - low_y) * i / 5
        x = low_x + (high_x - low_x) * i / 5
        left, height = at(low_x, y)
        parts.append(
            f'<line x1="{left:.1f}" y1="{height:.1f}" x2="{_WIDTH - _RIGHT}" y2="{height:.1f}" stroke="#dde1e6"/>'
        )
        parts.append(_text(left - 8, height + 4, _number(y), "end"))
        parts.append(_text(at(x, low_y)[0], _HEIGHT - _BOTTOM + 18, _number(x), "middle"))
    parts.append(_text(_WIDTH / 2, _HEIGHT - _BOTTOM + 38, across, "middle"))
    parts.append(
        f'<g transform="translate(16,{(_HEIGHT - _BOTTOM + _TOP) / 2:.0f}) rotate(-90)">{_text(0, 0, up, "middle")}</g>'
    )
    place = float(_LEFT)
    for index, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(line) <= 32:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in (at(*p) for p in line)]
        parts.append(f'<rect x="{place:.0f}" y="{_HEIGHT - 26}" width="18" height="4" fill="{colour}"/>')
        parts.append(_text(place + 24, _HEIGHT - 20, name, "start"))
        place += 40 + 7 * len(name)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low, low + 1)


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}".rstrip("0").rstrip(".") or "0"


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#24292f">{escape(text)}</text>'
    )
