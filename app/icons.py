"""The window's small pictures, drawn as strokes on a 24 x 24 grid, in any colour and at any scale."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

STROKES = {
    "send": '<path d="M12 19V5M6 11l6-6 6 6"/>',
    "stop": '<rect x="7" y="7" width="10" height="10" rx="2" fill="COLOR"/>',
    "down": '<path d="M12 5v14M6 13l6 6 6-6"/>',
    "new": '<path d="M12 5v14M5 12h14"/>',
    "panel": '<rect x="4" y="5" width="16" height="14" rx="3"/><path d="M14.5 5v14"/>',
}


def icon(name: str, color: str, size: int = 20) -> QIcon:
    """`size`: logical pixels."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="COLOR" stroke-width="2" '
        f'stroke-linecap="round" stroke-linejoin="round">{STROKES[name]}</svg>'
    ).replace("COLOR", color)
    renderer = QSvgRenderer(QByteArray(svg.encode()))
    made = QIcon()
    for ratio in (1, 2, 3):
        pixmap = QPixmap(size * ratio, size * ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        renderer.render(painter, QRectF(pixmap.rect()))
        painter.end()
        pixmap.setDevicePixelRatio(ratio)
        made.addPixmap(pixmap)
    return made
