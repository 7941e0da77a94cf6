"""Small pictures of figures: a curve, a history, bars by position, a stacked bar, a meter. They draw what is given.

Knows nothing of what the figures mean.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme import font, px, theme


class Chart(QWidget):
    """As wide as it may be and of one height."""

    HEIGHT = 84

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(px(220), px(self.HEIGHT))


class Curve(Chart):
    """Values over time, from zero up, with the newest one marked; `level` is a dashed line to compare with."""

    HEIGHT = 72

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.points: tuple[tuple[float, float], ...] = ()  # (time, value), time rising
        self.level: float | None = None

    def set_points(self, points: Sequence[tuple[float, float]], level: float | None = None) -> None:
        if tuple(points) != self.points or level != self.level:
            self.points, self.level = tuple(points), level
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        colors = theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        room = QRectF(0, px(6), self.width() - px(6), self.height() - px(8))
        painter.setPen(QPen(colors.color("line"), 1))
        painter.drawLine(QPointF(0, room.bottom()), QPointF(self.width(), room.bottom()))
        highest = 1.08 * max([value for _, value in self.points] + [self.level or 0.0, 1e-9])

        def height(value: float) -> float:
            return room.bottom() - room.height() * value / highest

        if self.level is not None:
            pen = QPen(colors.color("muted"), 1, Qt.PenStyle.CustomDashLine)
            pen.setDashPattern([4, 4])
            painter.setPen(pen)
            painter.drawLine(QPointF(0, height(self.level)), QPointF(self.width(), height(self.level)))
        if self.points:
            self._draw_curve(painter, room, [(time, height(value)) for time, value in self.points])
        painter.end()

    def _draw_curve(self, painter: QPainter, room: QRectF, points: Sequence[tuple[float, float]]) -> None:
        """`points`: (time, height on the screen)."""
        accent = theme().color("accent")
        first, last = points[0][0], points[-1][0]
        scale = room.width() / (last - first) if last > first else 0.0
        places = [QPointF((time - first) * scale if scale else room.right(), at) for time, at in points]
        line = QPainterPath(places[0])
        for place in places[1:]:
            line.lineTo(place)
        if len(places) > 1:
            under = QPainterPath(line)
            under.lineTo(places[-1].x(), room.bottom())
            under.lineTo(places[0].x(), room.bottom())
            shade = QLinearGradient(0, room.top(), 0, room.bottom())
            for at, alpha in ((0.0, 70), (1.0, 6)):
                color = QColor(accent)
                color.setAlpha(alpha)
                shade.setColorAt(at, color)
            painter.fillPath(under, shade)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            pen = QPen(accent, px(2))
            pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
            painter.setPen(pen)
            painter.drawPath(line)
        painter.setPen(QPen(theme().color("panel"), px(2)))
        painter.setBrush(accent)
        painter.drawEllipse(places[-1], px(4), px(4))


class History(Chart):
    """A bar for each of the newest values, the newest one in the accent; None: a gap. Bars begin at `floor`."""

    HEIGHT = 46
    SHOWN = 24

    def __init__(self, floor: float = 0.0, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.values: tuple[float | None, ...] = ()
        self._floor = floor

    def set_values(self, values: Sequence[float | None]) -> None:
        newest = tuple(values[-self.SHOWN :])
        if newest != self.values:
            self.values = newest
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        colors = theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colors.color("line"), 1))
        painter.drawLine(QPointF(0, self.height() - 0.5), QPointF(self.width(), self.height() - 0.5))
        painter.setPen(Qt.PenStyle.NoPen)
        known = [value for value in self.values if value is not None]
        highest = max([*known, self._floor + 1.0]) - self._floor
        step = self.width() / max(len(self.values), 12)
        newest = max((number for number, value in enumerate(self.values) if value is not None), default=-1)
        for number, value in enumerate(self.values):
            if value is None:
                continue
            bar = max(2.0, (self.height() - px(2)) * (value - self._floor) / highest)
            painter.setBrush(colors.color("accent") if number == newest else QColor(colors.series[1]))
            painter.drawRoundedRect(
                QRectF(number * step, self.height() - bar, min(0.7 * step, px(16)), bar), px(2), px(2)
            )
        painter.end()


class PositionBars(Chart):
    """One bar per position, each a share of 1; None: nothing was measured there."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.shares: tuple[float | None, ...] = ()

    def set_shares(self, shares: Sequence[float | None]) -> None:
        if tuple(shares) != self.shares:
            self.shares = tuple(shares)
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if not self.shares:
            return
        colors = theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(font(10, figures=True))
        label = px(15)
        count = max(len(self.shares), 6)
        step = self.width() / count
        width = min(step * 0.72, px(30))
        height = self.height() - 2 * label
        for number, share in enumerate(self.shares):
            left = number * step + (step - width) / 2
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.color("hover"))
            painter.drawRoundedRect(QRectF(left, label, width, height), px(3), px(3))
            if share:
                bar = max(2.0, share * height)
                painter.setBrush(colors.color("accent"))
                painter.drawRoundedRect(QRectF(left, label + height - bar, width, bar), px(3), px(3))
            painter.setPen(colors.color("muted"))
            cell = QRectF(number * step, self.height() - label, step, label)
            painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, str(number + 1))
            if share is not None and step >= px(22):
                painter.drawText(QRectF(number * step, 0, step, label), Qt.AlignmentFlag.AlignCenter, f"{share:.0%}")
        painter.end()


class StackedBar(Chart):
    """Parts of a whole, side by side, in the theme's series colours."""

    HEIGHT = 12

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.parts: tuple[tuple[int, int], ...] = ()  # (colour number, size)

    def set_parts(self, parts: Sequence[tuple[int, int]]) -> None:
        if tuple(parts) != self.parts:
            self.parts = tuple(parts)
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outline = QPainterPath()
        outline.addRoundedRect(QRectF(self.rect()), self.height() / 2, self.height() / 2)
        painter.setClipPath(outline)
        painter.fillRect(self.rect(), theme().color("hover"))
        whole = sum(size for _, size in self.parts)
        left = 0.0
        for color, size in self.parts:
            width = self.width() * size / whole if whole else 0.0
            painter.fillRect(QRectF(left, 0, max(0.0, width - 1), self.height()), QColor(theme().series[color]))
            left += width
        painter.end()


class Meter(QWidget):
    """How full something is, 0..1; in the colour of a warning past `warn_at`."""

    def __init__(self, warn_at: float, width: int | None = 72, parent: QWidget | None = None) -> None:
        """`width` None: as wide as it may be."""
        super().__init__(parent)
        self.share = 0.0
        self._warn_at = warn_at
        self.setFixedHeight(px(5))
        if width is not None:
            self.setFixedWidth(px(width))

    def set_share(self, share: float) -> None:
        if share != self.share:
            self.share = share
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        radius = self.height() / 2
        painter.setBrush(theme().color("hover"))
        painter.drawRoundedRect(QRectF(self.rect()), radius, radius)
        if self.share > 0:
            painter.setBrush(theme().color("warning" if self.share >= self._warn_at else "muted"))
            width = max(float(self.height()), self.width() * min(1.0, self.share))
            painter.drawRoundedRect(QRectF(0, 0, width, self.height()), radius, radius)
        painter.end()
