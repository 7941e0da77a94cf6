"""Where the tokens of an answer came from: its text as the model wrote it, each token on the colour of its origin.

The target's own tokens stand on plain ground. A draft that was accepted has a colour by its position in the block: from
yellow to blue and ever darker on a light ground, ever brighter on a dark one, which people tell apart who do not tell
red from green. Knows nothing of how tokens are drafted.
"""

from __future__ import annotations

import codecs
from bisect import bisect_right
from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QEvent, QPoint, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolTip, QWidget

from app.answer_view import height_of
from app.column import Column, Part
from app.conversation import NOT_KNOWN, TokenMark
from app.i18n import translate
from app.text_view import LEADING, TextView
from app.theme import font, px, theme

POSITIONS = 15  # colours; later positions have the last one
CHUNK = 2500  # characters of one part
LIGHT = ("#FFF2B3", "#D5DCC0", "#ACC3D3", "#85A6E0")
DARK = ("#41390F", "#364A3E", "#2E5478", "#3B62B8")

Piece = tuple[str, TokenMark]


def color_of(origin: int) -> QColor | None:
    """The ground of a token; None: plain."""
    if origin < 1:
        return None
    stops = [QColor(name) for name in (DARK if theme().dark else LIGHT)]
    place = (min(origin, POSITIONS) - 1) / (POSITIONS - 1) * (len(stops) - 1)
    first = min(int(place), len(stops) - 2)
    share = place - first
    a, b = stops[first], stops[first + 1]
    channels = ((a.red(), b.red()), (a.green(), b.green()), (a.blue(), b.blue()))
    return QColor(*(round(low + share * (high - low)) for low, high in channels))


def name_of(origin: int) -> str:
    if origin == NOT_KNOWN:
        return translate("Tokens", "Where this came from was not kept.")
    if origin == 0:
        return translate("Tokens", "Chosen by the target itself")
    return translate("Tokens", "Drafted at position {position}, and accepted").format(position=origin)


class OriginsText(TextView):
    """Some tokens. Pointing at one, or Enter, shows what the target thought of its place."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFont(font(15))
        self._starts: list[int] = []  # where each token begins in the document
        self._pieces: list[Piece] = []
        shape = QTextBlockFormat()
        shape.setLineHeight(px(9), LEADING)
        QTextCursor(self.document()).setBlockFormat(shape)

    @property
    def count(self) -> int:
        """How many tokens are shown."""
        return len(self._pieces)

    def set_pieces(self, pieces: Sequence[Piece]) -> None:
        """Those that were shown before are not set again."""
        cursor = QTextCursor(self.document())
        with self._selection_kept():
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.beginEditBlock()
            for text, mark in pieces[len(self._pieces) :]:
                self._starts.append(cursor.position())
                cursor.insertText(text, _looks(mark.origin))
            cursor.endEditBlock()
        self._pieces = list(pieces)

    def piece_at(self, position: int) -> Piece | None:
        """The token at a place in the document."""
        number = bisect_right(self._starts, position) - 1
        return self._pieces[number] if 0 <= number < len(self._pieces) else None

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            piece = self._piece_under(event.pos())
            QToolTip.showText(event.globalPos(), tip_of(piece) if piece else "", self)
            return True
        return super().viewportEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        piece = self.piece_at(self.textCursor().position())
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and piece is not None:
            QToolTip.showText(self.mapToGlobal(self.cursorRect().bottomLeft()), tip_of(piece), self)
        else:
            super().keyPressEvent(event)

    def _piece_under(self, point: QPoint) -> Piece | None:
        cursor = self.cursorForPosition(point)
        left = self.cursorRect(cursor).left()
        position = cursor.position() - 1 if point.x() < left else cursor.position()  # Qt gives the nearest gap
        return self.piece_at(max(0, position))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and getattr(self, "_pieces", None):
            cursor = QTextCursor(self.document())
            cursor.beginEditBlock()
            for start, (_, mark) in zip(self._starts, self._pieces):
                if mark.origin > 0:
                    cursor.setPosition(start)
                    following = bisect_right(self._starts, start)
                    end = self._starts[following] if following < len(self._starts) else -1
                    if end < 0:
                        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
                    else:
                        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
                    cursor.setCharFormat(_looks(mark.origin))
            cursor.endEditBlock()


def _looks(origin: int) -> QTextCharFormat:
    looks = QTextCharFormat()
    looks.setFont(font(15))
    if (color := color_of(origin)) is not None:
        looks.setBackground(color)
    return looks


def tip_of(piece: Piece) -> str:
    """The token's origin, and the candidates of its place with their probabilities."""
    text, mark = piece
    rows = "".join(
        f"<tr><td>{'<b>' * (name == text)}{escape(visible(name))}{'</b>' * (name == text)}&nbsp;&nbsp;</td>"
        f"<td align='right'>{share:.1%}</td></tr>"
        for name, share in mark.candidates
    )
    head = f"<p style='white-space:nowrap'>{escape(name_of(mark.origin))}</p>"
    return f"<qt>{head}<table cellpadding='2'>{rows}</table></qt>" if rows else f"<qt>{head}</qt>"


def visible(text: str) -> str:
    """A token with its blanks to be seen."""
    return text.replace("\n", "↵").replace("\t", "⇥").replace(" ", "␣") or "·"


class OriginsPart(Part):
    joint = "\n"

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.length = 0

    def build(self, parent: QWidget) -> QWidget:
        view = OriginsText(parent)
        view.setAccessibleName(translate("Tokens", "Answer, token by token"))
        view.set_pieces(self.pieces)
        return view

    def end_line(self) -> None:
        """The text goes on in another part: the line's end would leave an empty line."""
        text, mark = self.pieces[-1]
        self.pieces[-1] = (text[:-1], mark)
        if isinstance(self.widget, OriginsText):
            if self.widget.count == len(self.pieces):
                cursor = QTextCursor(self.widget.document())
                cursor.movePosition(QTextCursor.MoveOperation.End)
                cursor.deletePreviousChar()
            self.widget.set_pieces(self.pieces)

    def estimate(self, width: int) -> int:
        breaks = sum(text.count("\n") for text, _ in self.pieces)
        return height_of(self.length, breaks + 1, width)


class OriginsView(Column):
    """`set_tokens` is given the whole answer so far and where it came from, again and again."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._forget()

    def _forget(self) -> None:
        self._data = b""  # the text whose tokens are shown
        self._count = 0  # of the marks
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def set_tokens(self, text: str, marks: Sequence[TokenMark]) -> None:
        data = text.encode()
        if len(marks) < self._count or not data.startswith(self._data):
            self.put(0, [])
            self._forget()
        start = position = len(self._data)
        touched: dict[OriginsPart, None] = {}
        count = self._count
        while count < len(marks) and position < len(data):
            mark = marks[count]
            if position + mark.size > len(data):
                break  # its text is on the way
            piece = self._decoder.decode(data[position : position + mark.size])
            position, count = position + mark.size, count + 1
            if piece:  # a character may take several tokens: it belongs to the last one
                part = self._open_part()
                part.pieces.append((piece, mark))
                part.length += len(piece)
                touched[part] = None
        self._data, self._count = data[:position], count
        for part in touched:
            if isinstance(part.widget, OriginsText):
                part.widget.set_pieces(part.pieces)
            self.touch(part)
        if position > start and not self._busy:
            self.resized.emit()

    def _open_part(self) -> OriginsPart:
        last = self.parts[-1] if self.parts else None
        if isinstance(last, OriginsPart):
            ended = bool(last.pieces) and last.pieces[-1][0].endswith("\n")
            if last.length < CHUNK or (last.length < 2 * CHUNK and not ended):
                return last
            if ended:
                last.end_line()
                self.touch(last)
        made = OriginsPart()
        self.put(len(self.parts), [made])
        return made


class Legend(QFrame):
    """What the colours mean, in words."""

    resized = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("legend")
        self.setAccessibleName(translate("Tokens", "What the colours mean"))
        self._words = _words(
            translate(
                "Tokens",
                "Plain words were chosen by the target itself. Coloured ones were drafted and accepted; the colour is "
                "the position in the block. Point at a word to see what else the target considered there.",
            )
        )
        self._words.setWordWrap(True)
        row = QHBoxLayout(self)
        row.setContentsMargins(px(28), px(8), px(28), px(8))
        row.setSpacing(px(6))
        row.addWidget(self._words, 1)
        row.addSpacing(px(12))
        row.addWidget(_words("1"))
        row.addWidget(_Ramp())
        row.addWidget(_words(f"{POSITIONS}"))

    def fit(self, width: int) -> int:
        layout = self.layout()
        assert layout is not None
        height = layout.heightForWidth(width)
        self.resize(width, height)
        return height


def _words(text: str) -> QLabel:
    made = QLabel(text)
    made.setFont(font(12))
    made.setProperty("role", "muted")
    return made


class _Ramp(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(px(10) * POSITIONS, px(14))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        for position in range(1, POSITIONS + 1):
            color = color_of(position)
            assert color is not None
            width = self.width() / POSITIONS
            painter.fillRect(QRectF((position - 1) * width, 0, width, self.height()), color)
        painter.end()
