"""Writes what stands within a line of Markdown into a text document. Knows nothing of blocks."""

from __future__ import annotations

from PySide6.QtGui import QTextCharFormat, QTextCursor

from app.formula_object import formula_format
from app.inline import Span
from app.text_view import LINE_SEPARATOR, SHADE
from app.theme import code_font, font, theme
from app.typesetter import Typesetter


def insert(cursor: QTextCursor, span: Span, base: QTextCharFormat, typesetter: Typesetter | None) -> None:
    """`base`: how plain text looks here. A formula that is not known, or never will be, stands as typed."""
    style = QTextCharFormat(base)
    if span.bold:
        style.setFontWeight(600)
    if span.italic:
        style.setFontItalic(True)
    if span.struck:
        style.setFontStrikeOut(True)
    if span.link:
        style.setAnchor(True)
        style.setAnchorHref(span.link)
        style.setForeground(theme().color("accent"))
    if span.formula and typesetter is not None and typesetter.knows(span.formula, span.display):
        formula = typesetter.formula(span.formula, span.display)
        if formula is not None:
            cursor.insertText("\ufffc", formula_format(style, span.formula, span.display, formula))
            return
    if span.code or span.formula:
        made = code_font()
        made.setPixelSize(round(made.pixelSize() * base.font().pixelSize() / font(14).pixelSize()))
        made.setWeight(style.font().weight())
        style.setFont(made)
    if span.code:
        style.setBackground(SHADE)
    cursor.insertText(span.text.replace("\n", LINE_SEPARATOR), style)
