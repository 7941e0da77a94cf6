"""Small pictures of figures: bars by position, a stacked bar, a meter. They draw what they are given.

Knows nothing of what the figures mean.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme import font, px, theme


class PositionBars(QWidget):
    """One bar per position, each a share of 1; None: nothing was measured there."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.shares: tuple[float | None, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(px(220), px(84))

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


class StackedBar(QWidget):
    """Parts of a whole, side by side, in the theme's series colours."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.parts: tuple[tuple[int, int], ...] = ()  # (colour number, size)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(px(220), px(12))

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

    def __init__(self, warn_at: float, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.share = 0.0
        self._warn_at = warn_at
        self.setFixedSize(px(72), px(5))

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
