"""The window's small pictures, drawn as strokes on a 24 x 24 grid, in any colour and at any scale."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

STROKES = {
    "send": '<path d="M12 19V5M6 11l6-6 6 6"/>',
    "stop": '<rect x="7" y="7" width="10" height="10" rx="2" fill="COLOR"/>',
    "up": '<path d="M6 14.5l6-6 6 6"/>',
    "down": '<path d="M12 5v14M6 13l6 6 6-6"/>',
    "new": '<path d="M12 5v14M5 12h14"/>',
    "panel": '<rect x="4" y="5" width="16" height="14" rx="3"/><path d="M14.5 5v14"/>',
    "sidebar": '<rect x="4" y="5" width="16" height="14" rx="3"/><path d="M9.5 5v14"/>',
    "opened": '<path d="M6 9.5l6 6 6-6"/>',
    "folded": '<path d="M9.5 6l6 6-6 6"/>',
    "left": '<path d="M14.5 6l-6 6 6 6"/>',
    "right": '<path d="M9.5 6l6 6-6 6"/>',
    "close": '<path d="M6.5 6.5l11 11M17.5 6.5l-11 11"/>',
    "check": '<path d="M5 12.5l4.5 4.5L19 7.5"/>',
    "copy": '<rect x="9" y="9" width="11" height="11" rx="2.5"/><path d="M15 5.5A1.5 1.5 0 0 0 13.5 4h-8A1.5 1.5 0 0 0 '
    '4 5.5v8A1.5 1.5 0 0 0 5.5 15"/>',
    "edit": '<path d="M4.5 19.5l1-4.5L15.5 5a2.1 2.1 0 0 1 3 0l.5.5a2.1 2.1 0 0 1 0 3L9 18.5z"/>',
    "again": '<path d="M19 12a7 7 0 1 1-2.1-5M19 4v4.5h-4.5"/>',
    "search": '<circle cx="11" cy="11" r="6"/><path d="M15.5 15.5L20 20"/>',
    "pin": '<path d="M9 4h6l-.7 6 2.7 3H7l2.7-3zM12 13v7"/>',
    "trash": '<path d="M4.5 7h15M9.5 7V4.5h5V7M6.5 7l1 12.5h9l1-12.5"/>',
    "more": '<path d="M6 12h.01M12 12h.01M18 12h.01" stroke-width="3"/>',
    "settings": '<path d="M4 7.5h7M17 7.5h3M4 16.5h3M13 16.5h7"/><circle cx="14" cy="7.5" r="2.6"/>'
    '<circle cx="10" cy="16.5" r="2.6"/>',
    "keyboard": '<rect x="3" y="6.5" width="18" height="11" rx="2.5"/><path d="M7 10.3h.01M11 10.3h.01M15 10.3h.01'
    'M8.5 14h7"/>',
    "file": '<path d="M13.5 4H7.5A1.5 1.5 0 0 0 6 5.5v13A1.5 1.5 0 0 0 7.5 20h9'
    'a1.5 1.5 0 0 0 1.5-1.5V8.5zM13.5 4v4.5H18"/>',
    "attach": '<path d="M18.5 11.5l-6.4 6.4a4 4 0 0 1-5.7-5.7l7-7a2.7 2.7 0 0 1 3.8 3.8'
    'l-6.9 6.9a1.3 1.3 0 0 1-1.9-1.9l6-6"/>',
    "folder": '<path d="M4 7a1.5 1.5 0 0 1 1.5-1.5h4l2 2.5h7A1.5 1.5 0 0 1 20 9.5v8A1.5 1.5 0 0 1 18.5 19h-13A1.5 1.5 '
    '0 0 1 4 17.5z"/>',
    "download": '<path d="M12 4v10M7.5 10l4.5 4.5 4.5-4.5M5 19.5h14"/>',
    "models": '<path d="M12 3.5l8 4.300v8.400l-8 4.300-8-4.300V7.800zM4 7.800l8 4.400 8-4.400M12 12.200v8.300"/>',
    "chat": '<path d="M5.5 5h13A1.5 1.5 0 0 1 20 6.5v8a1.5 1.5 0 0 1-1.5 1.5H11l-4.5 4v-4h-1A1.5 1.5 0 0 1 4 '
    '14.5v-8A1.5 1.5 0 0 1 5.5 5z"/>',
    "compare": '<path d="M5 19.5V11M12 19.5v-15M19 19.5V8"/>',
    "tokens": '<rect x="4" y="8" width="6.5" height="8" rx="2"/><rect x="13.5" y="8" width="6.5" height="8" rx="2" '
    'fill="COLOR"/>',
}


def icon(name: str, color: str, size: int = 20) -> QIcon:
    """`size`: logical pixels."""
    made = QIcon()
    for image in _images(name, color, size):
        made.addPixmap(QPixmap.fromImage(image))
    return made


@lru_cache(maxsize=256)  # long lists show the same ones again and again
def _images(name: str, color: str, size: int) -> tuple[QImage, ...]:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="COLOR" stroke-width="2" '
        f'stroke-linecap="round" stroke-linejoin="round">{STROKES[name]}</svg>'
    ).replace("COLOR", color)
    renderer = QSvgRenderer(QByteArray(svg.encode()))
    made = []
    for ratio in (1, 2, 3):
        image = QImage(size * ratio, size * ratio, QImage.Format.Format_ARGB32_Premultiplied)
        image.fill(Qt.GlobalColor.transparent)
        painter = QPainter(image)
        renderer.render(painter, QRectF(image.rect()))
        painter.end()
        image.setDevicePixelRatio(ratio)
        made.append(image)
    return tuple(made)
