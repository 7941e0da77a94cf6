"""A formula as a thing within a text: its place on the line, and its drawing in the colour of the text.

Knows nothing of how formulas are set.
"""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QFontMetricsF,
    QPainter,
    QPixmap,
    QPixmapCache,
    QPyTextObject,
    QTextCharFormat,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QTextEdit

from app.theme import FAMILY, theme
from app.typesetter import Formula, Typesetter
from app.typesetting import EM

TYPE = QTextFormat.ObjectTypes.UserObject + 1
_LATEX = QTextFormat.Property.UserProperty + 1
_DISPLAY = QTextFormat.Property.UserProperty + 2
LARGER = 1.12  # than the text: the letters of the mathematical font are smaller


def formula_format(style: QTextCharFormat, latex: str, display: bool, formula: Formula) -> QTextCharFormat:
    """`style`, for the one character that stands for the formula."""
    made = QTextCharFormat(style)
    made.setObjectType(TYPE)
    made.setProperty(_LATEX, latex)
    made.setProperty(_DISPLAY, display)
    metrics = QFontMetricsF(style.font())
    flat = formula.descent * _scale(style.font().pixelSize()) <= metrics.descent()
    made.setVerticalAlignment(
        QTextCharFormat.VerticalAlignment.AlignBaseline if flat else QTextCharFormat.VerticalAlignment.AlignMiddle
    )
    return made


def _scale(font_pixels: float) -> float:
    return font_pixels * LARGER / EM


class FormulaObject(QPyTextObject):
    """Draws the formulas of one document."""

    def __init__(self, view: QTextEdit, typesetter: Typesetter) -> None:
        super().__init__(view)
        self._view = view
        self._typesetter = typesetter

    @classmethod
    def register(cls, view: QTextEdit, typesetter: Typesetter) -> None:
        view.document().documentLayout().registerHandler(TYPE, cls(view, typesetter))

    def intrinsicSize(self, document: QTextDocument, position: int, looks: QTextFormat) -> QSizeF:
        """With room above and below, so that Qt's alignments put the formula's baseline on the text's."""
        style = looks.toCharFormat()
        formula = self._formula(looks)
        if formula is None:
            return QSizeF(0, 0)
        scale = self._fitting_scale(formula, style)
        metrics = QFontMetricsF(style.font())
        if style.verticalAlignment() == QTextCharFormat.VerticalAlignment.AlignBaseline:
            height = formula.ascent * scale + metrics.descent()
        else:
            axis = metrics.xHeight() / 4
            height = 2 * max(formula.ascent * scale - axis, formula.descent * scale + axis)
        return QSizeF(formula.width * scale, height)

    def drawObject(
        self, painter: QPainter, box: QRectF | QRect, document: QTextDocument, position: int, looks: QTextFormat
    ) -> None:
        style = looks.toCharFormat()
        formula = self._formula(looks)
        if formula is None:
            return
        scale = self._fitting_scale(formula, style)
        metrics = QFontMetricsF(style.font())
        if style.verticalAlignment() == QTextCharFormat.VerticalAlignment.AlignBaseline:
            baseline = box.bottom() - metrics.descent()
        else:
            baseline = box.top() + (box.height() + metrics.xHeight() / 2) / 2
        height = (formula.ascent + formula.descent) * scale
        self._draw(painter, QRectF(box.left(), baseline - formula.ascent * scale, box.width(), height), formula, looks)

    def _draw(self, painter: QPainter, box: QRectF, formula: Formula, looks: QTextFormat) -> None:
        ratio = painter.device().devicePixelRatioF()
        color = theme().text
        key = f"{color} {box.width():.1f} {box.height():.1f} {ratio} {looks.property(_LATEX)}"
        pixmap = QPixmap()
        if not QPixmapCache.find(key, pixmap):
            pixmap = QPixmap(max(1, round(box.width() * ratio)), max(1, round(box.height() * ratio)))
            pixmap.fill(Qt.GlobalColor.transparent)
            svg = bytes(formula.svg.data()).replace(b'"black"', f'"{color}"'.encode())
            svg = svg.replace(b"<svg ", f'<svg font-family="{FAMILY}" '.encode(), 1)
            svg_painter = QPainter(pixmap)
            QSvgRenderer(svg).render(svg_painter, QRectF(pixmap.rect()))
            svg_painter.end()
            QPixmapCache.insert(key, pixmap)
        painter.drawPixmap(box, pixmap, QRectF(pixmap.rect()))

    def _formula(self, looks: QTextFormat) -> Formula | None:
        return self._typesetter.formula(str(looks.property(_LATEX)), bool(looks.property(_DISPLAY)))

    def _fitting_scale(self, formula: Formula, style: QTextCharFormat) -> float:
        """Smaller where the formula is wider than the text may be."""
        scale = _scale(style.font().pixelSize())
        room = self._view.document().textWidth() - 1
        return min(scale, room / formula.width) if room > 0 and formula.width > 0 else scale
