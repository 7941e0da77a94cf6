"""Text files that go along with a question: read, shown above the input box, and written into the prompt.

Knows nothing of the engine; who shows the chips is told how many tokens a file has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.definitions import bytes_text
from app.i18n import translate
from app.icons import icon
from app.theme import font, px, theme

LARGEST = 2 << 20  # bytes of a file: far more than the context of most models
ENCODINGS = ("utf-8-sig", "utf-16", "cp949")  # the last one for Korean files of older programs


class NotAttached(Exception):
    """A file that cannot go along: one sentence says why."""


@dataclass(eq=False)
class Attachment:
    name: str
    text: str
    tokens: int | None = None  # by the loaded target's vocabulary; None: not counted
    tag: str = field(default_factory=lambda: uuid4().hex)  # of the question for the count


def read_text_file(path: Path) -> Attachment:
    """Raises `NotAttached` for what is no text, too large, or cannot be read."""
    try:
        if not path.is_file():
            raise NotAttached(translate("Files", "{file} is not a file; drop a text file.").format(file=path.name))
        size = path.stat().st_size
        if size > LARGEST:
            words = translate("Files", "{file} has {size}; a file for the prompt can have {largest} at most.")
            raise NotAttached(words.format(file=path.name, size=bytes_text(size), largest=bytes_text(LARGEST)))
        data = path.read_bytes()
    except OSError as error:
        words = translate("Files", "{file} cannot be read ({reason}).")
        raise NotAttached(words.format(file=path.name, reason=error.strerror or error)) from error
    return Attachment(path.name, _decoded(data, path.name))


def _decoded(data: bytes, name: str) -> str:
    marked = data.startswith((b"\xff\xfe", b"\xfe\xff"))  # UTF-16 is taken only where it says so itself
    if marked or b"\0" not in data:
        for encoding in ENCODINGS:
            if encoding == "utf-16" and not marked:
                continue
            try:
                text = data.decode(encoding)
            except UnicodeDecodeError:
                continue
            if "\0" not in text:
                return text.replace("\r\n", "\n")
    raise NotAttached(
        translate("Files", "{file} is not a text file; save it as plain text (UTF-8) first.").format(file=name)
    )


def with_files(question: str, files: Sequence[Attachment]) -> str:
    """The prompt: the files, each in a fence no line of it can close, and the question behind them."""
    parts = []
    for file in files:
        longest = max((len(run) for run in re.findall("`+", file.text)), default=0)
        fence = "`" * max(3, longest + 1)
        body = file.text if file.text.endswith("\n") else f"{file.text}\n"
        parts.append(f"{file.name}:\n{fence}\n{body}{fence}\n")
    return "\n".join([*parts, question] if question.strip() else parts)


class AttachmentRow(QWidget):
    """The files that will go along, each with its size in tokens and a button that takes it away."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.files: list[Attachment] = []
        self.chips: list[Chip] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(px(6))
        self.hide()

    def add(self, file: Attachment) -> None:
        chip = Chip(file)
        chip.removed.connect(self._remove)
        self.files.append(file)
        self.chips.append(chip)
        self._column.addWidget(chip, 0, Qt.AlignmentFlag.AlignLeft)
        self.show()
        self.changed.emit()

    def clear(self) -> None:
        for file in list(self.files):
            self._remove(file)

    def show_tokens(self, tag: str, tokens: int | None, room: int | None) -> None:
        """A count has come; `room`: how many tokens the context has left, None: not known."""
        for chip in self.chips:
            if chip.file.tag == tag:
                chip.file.tokens = tokens
                chip.show_size(room)

    def _remove(self, file: Attachment) -> None:
        number = self.files.index(file)
        del self.files[number]
        chip = self.chips.pop(number)
        self._column.removeWidget(chip)
        chip.hide()
        chip.deleteLater()
        self.setVisible(bool(self.files))
        self.changed.emit()


class Chip(QFrame):
    removed = Signal(object)  # its Attachment

    def __init__(self, file: Attachment, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("chip")
        self.file = file
        picture, name, self.length = QLabel(), QLabel(), QLabel()
        picture.setPixmap(icon("file", theme().muted, 16).pixmap(QSize(px(16), px(16))))
        name.setFont(font(13))
        name.setText(name.fontMetrics().elidedText(file.name, Qt.TextElideMode.ElideMiddle, px(280)))
        name.setToolTip(file.name)
        self.length.setFont(font(12, figures=True))
        for label in (name, self.length):
            label.setTextFormat(Qt.TextFormat.PlainText)
        self.remove = remove = QPushButton()
        remove.setIcon(icon("close", theme().muted, 14))
        remove.setIconSize(QSize(px(14), px(14)))
        remove.setFixedSize(px(22), px(22))
        remove.setStyleSheet("padding: 0;")
        words = translate("Files", "Take {file} out").format(file=file.name)
        remove.setAccessibleName(words)
        remove.setToolTip(words)
        remove.clicked.connect(lambda: self.removed.emit(self.file))
        row = QHBoxLayout(self)
        row.setContentsMargins(px(10), px(4), px(5), px(4))
        row.setSpacing(px(8))
        for widget in (picture, name, self.length, remove):
            row.addWidget(widget)
        self.show_size(None)

    def show_size(self, room: int | None) -> None:
        tokens = self.file.tokens
        too_large = tokens is not None and room is not None and tokens > room
        if tokens is None:
            words = bytes_text(len(self.file.text.encode()))
        elif too_large:
            words = translate("Files", "{tokens} tokens, more than the context has left").format(tokens=f"{tokens:,}")
        else:
            words = translate("Files", "{tokens} tokens").format(tokens=f"{tokens:,}")
        self.length.setText(words)
        self.length.setProperty("role", "warning" if too_large else "muted")
        self.length.style().polish(self.length)
        self.setAccessibleName(f"{self.file.name}, {words}")
