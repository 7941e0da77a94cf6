"""Downloads and conversions under way: each with a bar, what it is doing, and buttons to pause, go on and cancel.

Shows what it is given; says what the user wants. Knows nothing of queues.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.engine_words import in_words
from app.i18n import translate
from app.model_parts import STEPS, bar, button, label, row, set_role
from app.model_words import download_words
from app.theme import px

if TYPE_CHECKING:
    from app.model_steps import Conversion
    from engine.downloads import Download


class DownloadView(QWidget):
    pause = Signal(str)  # the id of a download
    resume = Signal(str)
    drop = Signal(str)
    drop_conversion = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: dict[str, DownloadRow] = {}
        self.conversion_rows: dict[int, ConversionRow] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(px(8))
        self.title = label(translate("Downloads", "Downloads"), 14, bold=True)
        self._column.addWidget(self.title)
        self.hide()

    def show_downloads(self, downloads: Iterable[Download], conversions: Iterable[Conversion]) -> None:
        """Rows stay while what they show stays, so that a button is not pulled away under the pointer."""
        wanted = {download.id: download for download in downloads}
        for key in [key for key in self.rows if key not in wanted]:
            self._drop_row(self.rows.pop(key))
        for key, download in wanted.items():
            if key not in self.rows:
                made = self.rows[key] = DownloadRow()
                made.pause.connect(lambda key=key: self.pause.emit(key))
                made.resume.connect(lambda key=key: self.resume.emit(key))
                made.drop.connect(lambda key=key: self.drop.emit(key))
                self._column.addWidget(made)
            self.rows[key].show_download(download)
        running = {id(conversion): conversion for conversion in conversions}
        for number in [number for number in self.conversion_rows if number not in running]:
            self._drop_row(self.conversion_rows.pop(number))
        for number, conversion in running.items():
            if number not in self.conversion_rows:
                line = self.conversion_rows[number] = ConversionRow(conversion)
                line.drop.connect(lambda conversion=conversion: self.drop_conversion.emit(conversion))
                self._column.addWidget(line)
            self.conversion_rows[number].show_conversion()
        self.setVisible(bool(self.rows or self.conversion_rows))

    def _drop_row(self, line: QWidget) -> None:
        line.hide()
        self._column.removeWidget(line)
        line.deleteLater()


class DownloadRow(QFrame):
    pause = Signal()
    resume = Signal()
    drop = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.name = label("", 13, bold=True)
        self.doing = label("", 12, "muted")
        self.sentence = label("", 12, "danger")
        self.bar = bar(translate("Downloads", "Progress of the download"))
        self.pause_button = button(translate("Downloads", "Pause"), "quiet")
        self.resume_button = button(translate("Downloads", "Go on"), "quiet")
        self.page_button = button(translate("Downloads", "Open its page"), "quiet")
        self.drop_button = button(translate("Downloads", "Cancel"), "quiet")
        self._link: str | None = None
        self.pause_button.clicked.connect(self.pause)
        self.resume_button.clicked.connect(self.resume)
        self.drop_button.clicked.connect(self.drop)
        self.page_button.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(self._link or "")))
        column = QVBoxLayout(self)
        column.setContentsMargins(px(16), px(10), px(16), px(12))
        column.setSpacing(px(6))
        buttons = (self.page_button, self.pause_button, self.resume_button, self.drop_button)
        head = row(self.name, *buttons, spacing=14)
        head.setStretch(0, 1)
        column.addLayout(head)
        column.addWidget(self.bar)
        column.addWidget(self.doing)
        column.addWidget(self.sentence)

    def show_download(self, download: Download) -> None:
        state = download.state.value
        self.name.setText(download.model.name)
        self.name.setToolTip(download.model.repository)
        self.bar.setValue(round(STEPS * download.fraction))
        self.doing.setText(download_words(download))
        self.sentence.setText(in_words(download.sentence or ""))
        set_role(self.sentence, "danger" if state == "failed" else "muted")
        self.sentence.setVisible(bool(download.sentence))
        self._link = download.link
        self.page_button.setVisible(download.link is not None)
        self.pause_button.setVisible(download.state.active)
        self.resume_button.setVisible(state in ("paused", "failed", "cancelled"))
        done = state == "done"
        self.bar.setVisible(not done)
        self.drop_button.setText(translate("Downloads", "Close") if done else translate("Downloads", "Cancel"))
        self.drop_button.setAccessibleName(self.drop_button.text())


class ConversionRow(QFrame):
    drop = Signal()

    def __init__(self, conversion: Conversion, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self._conversion = conversion
        self.name = label(conversion.name, 13, bold=True)
        self.doing = label("", 12, "muted")
        self.bar = bar(translate("Downloads", "Progress of the conversion"))
        self.drop_button = button(translate("Downloads", "Cancel"), "quiet")
        self.drop_button.clicked.connect(self.drop)
        column = QVBoxLayout(self)
        column.setContentsMargins(px(16), px(10), px(16), px(12))
        column.setSpacing(px(6))
        head = row(self.name, self.drop_button)
        head.setStretch(0, 1)
        column.addLayout(head)
        column.addWidget(self.bar)
        column.addWidget(self.doing)

    def show_conversion(self) -> None:
        conversion = self._conversion
        self.bar.setValue(round(STEPS * conversion.fraction))
        ended = conversion.has_ended
        self.bar.setVisible(not ended)
        self.drop_button.setText(translate("Downloads", "Close") if ended else translate("Downloads", "Cancel"))
        self.drop_button.setAccessibleName(self.drop_button.text())
        set_role(self.doing, "danger" if conversion.trouble else "muted")
        if conversion.trouble:
            self.doing.setText(conversion.trouble)
        elif conversion.done:
            self.doing.setText(" ".join((translate("Downloads", "Converted."), *conversion.notes)))
        else:
            words = (
                translate("Downloads", "Downloading its weights, {percent} %")
                if conversion.fetching
                else translate("Downloads", "Converting to GGUF, {percent} %")
            )
            self.doing.setText(words.format(percent=round(100 * conversion.fraction)))
