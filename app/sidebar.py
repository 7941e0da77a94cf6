"""The side of the window with all conversations: search, the list, and what can be done with one of them.

Shows what the library lists and says by signals what the user wants; keeps and deletes nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n import translate
from app.icons import icon
from app.rows import Header, Hit
from app.sidebar_list import FOUND_ROW, ROW, ConversationList, Row, found_rows, grouped
from app.theme import font, px, theme

WIDTH, NARROWEST = 264, 200  # logical pixels
PAUSE_MS = 120  # in typing, before it is searched
SAID_MS = 12_000  # how long a sentence, and the way back from a deletion, stands at the foot
SUFFIXES = {"json": "JSON (*.json)", "md": "Markdown (*.md)"}


class Sidebar(QFrame):
    open_wanted = Signal(str, object)  # the id of a conversation, and of the turn that was searched for, or None
    rename_wanted = Signal(str, str)
    pin_wanted = Signal(str, bool)
    delete_wanted = Signal(str)
    undo_wanted = Signal(str)
    search_wanted = Signal(str)
    export_wanted = Signal(object, object)  # a list of ids, None = all; a path
    import_wanted = Signal(object)  # a path

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sidebar")
        self.setMinimumWidth(px(NARROWEST))
        self._headers: Sequence[Header] = ()
        self._activities: Mapping[str, str] = {}
        self._hits: Sequence[Hit] | None = None  # of what stands in the search field
        self._shown = ""
        self._deleted: list[str] = []  # the last one last
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.timeout.connect(self._search)
        self._said_ends = QTimer(self)
        self._said_ends.setSingleShot(True)
        self._said_ends.timeout.connect(lambda: self.foot.hide())
        self._build()
        self.list.opened.connect(lambda row: self.open_wanted.emit(row.id, row.turn))
        self.list.list_model.renamed.connect(self.rename_wanted)
        self.list.delete_wanted.connect(self.delete)
        self.list.undo_wanted.connect(self.undo)
        self.list.menu_wanted.connect(self._show_menu)
        self.list.delegate.closeEditor.connect(self._show_rows)  # what changed meanwhile
        self.search.textChanged.connect(self._typed)
        self._show_rows()
        self._color_icons()

    def _build(self) -> None:
        self.search = QLineEdit()
        self.search.setPlaceholderText(translate("Sidebar", "Search all conversations"))
        self.search.setAccessibleName(translate("Sidebar", "Search all conversations"))
        self.search.setClearButtonEnabled(True)
        self.search.setFont(font(13))
        self.search.installEventFilter(self)
        self._glass = QAction(self)
        self.search.addAction(self._glass, QLineEdit.ActionPosition.LeadingPosition)
        names = {True: translate("Sidebar", "Search"), False: translate("Sidebar", "Clear the search")}
        for button in self.search.findChildren(QToolButton):  # Qt leaves them without
            button.setAccessibleName(names[button.defaultAction() is self._glass])
        self.more_button = QPushButton()
        self.more_button.setAccessibleName(translate("Sidebar", "Import and export"))
        self.more_button.setToolTip(translate("Sidebar", "Import and export"))
        self.more_button.setProperty("role", "bare")
        self.more_button.setFixedSize(px(32), px(32))
        self.more_button.clicked.connect(self._show_file_menu)
        self.list = ConversationList()
        self.empty = QLabel()
        self.empty.setFont(font(13))
        self.empty.setProperty("role", "muted")
        self.empty.setWordWrap(True)
        self.empty.setContentsMargins(px(12), px(8), px(12), px(8))
        self.foot = QFrame()
        self.foot.setObjectName("chip")
        self.said = QLabel()
        self.said.setFont(font(12))
        self.said.setTextFormat(Qt.TextFormat.PlainText)
        self.said.setWordWrap(True)
        self.undo_button = QPushButton(translate("Sidebar", "Undo"))
        self.undo_button.setAccessibleName(translate("Sidebar", "Undo the deletion"))
        self.undo_button.setProperty("role", "quiet")
        self.undo_button.setFont(font(12, bold=True))
        self.undo_button.clicked.connect(self.undo)
        foot_row = QHBoxLayout(self.foot)
        foot_row.setContentsMargins(px(12), px(7), px(10), px(7))
        foot_row.addWidget(self.said, 1)
        foot_row.addWidget(self.undo_button)
        self.foot.hide()
        top = QHBoxLayout()
        top.setSpacing(px(4))
        top.addWidget(self.search, 1)
        top.addWidget(self.more_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(px(10), px(12), px(6), px(10))
        column.setSpacing(px(8))
        column.addLayout(top)
        column.addWidget(self.empty)
        column.addWidget(self.list, 1)
        column.addWidget(self.foot)

    # --- what it shows

    def take_over(self, before: Sidebar) -> None:
        """Go on as the sidebar in whose place it stands."""
        self.search.setText(before.search.text())
        self._pause.stop()
        self._hits, self._deleted = before._hits, before._deleted
        if not before.foot.isHidden():
            self._say(before.said.text(), undo=not before.undo_button.isHidden())
        before._said_ends.stop()
        self._show_rows()

    def show_list(self, headers: Sequence[Header]) -> None:
        self._headers = headers
        if self._hits is not None:
            self._search()  # it may be there or gone by now
        self._show_rows()

    def show_current(self, id_: str, activities: Mapping[str, str]) -> None:
        """The conversation that is shown, and which are being answered ("answering") or wait for it ("waiting")."""
        if activities != self._activities:
            self._activities = dict(activities)
            self._show_rows()
        if id_ != self._shown:
            self._shown = id_
            self.list.choose(id_)

    def show_found(self, text: str, hits: Sequence[Hit]) -> None:
        if text == self.search.text():
            self._hits = hits
            self._show_rows()

    def _show_rows(self) -> None:
        if self.list.is_renaming:
            return
        rows = grouped(self._headers, date.today()) if self._hits is None else found_rows(self._headers, self._hits)
        busy = self._activities
        if busy:
            rows = [
                Row(row.text, row.id, row.pinned, row.excerpt, row.turn, busy[row.id]) if row.id in busy else row
                for row in rows
            ]
        self.list.set_row_height(ROW if self._hits is None else FOUND_ROW)
        self.list.list_model.set_rows(rows)
        self.list.choose(self._shown)
        self.empty.setVisible(not rows)
        if self._hits is not None:
            self.empty.setText(translate("Sidebar", "Nothing was found."))
        else:
            self.empty.setText(translate("Sidebar", "Your conversations will be listed here."))

    # --- searching

    def _typed(self, text: str) -> None:
        if text.strip():
            self._pause.start(PAUSE_MS)
        else:
            self._pause.stop()
            self._hits = None
            self._show_rows()

    def _search(self) -> None:
        self._pause.stop()
        self.search_wanted.emit(self.search.text())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is not self.search or not isinstance(event, QKeyEvent):
            return False
        if event.type() == QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_Escape and self.search.text():
            event.accept()  # here it means no other thing that the window does with it
            return True
        if event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Escape and self.search.text():
                self.search.clear()
                return True
            if event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.list.setFocus()
                first = next((number for number, row in enumerate(self.list.list_model.rows) if row.id), None)
                if first is not None:
                    self.list.setCurrentIndex(self.list.list_model.index(first))
                return True
        return False

    # --- one of them

    def delete(self, id_: str) -> None:
        title = next((header.title for header in self._headers if header.id == id_), "")
        self._deleted.append(id_)
        self._say(translate("Sidebar", "“{title}” was deleted.").format(title=title), undo=True)
        self.delete_wanted.emit(id_)

    def say(self, sentence: str) -> None:
        """Tell the user that something has been done."""
        self._say(sentence, undo=False)

    def _say(self, sentence: str, undo: bool) -> None:
        self.said.setText(sentence)
        self.undo_button.setVisible(undo)
        self.foot.show()
        self._said_ends.start(SAID_MS)

    def undo(self) -> None:
        """Bring the conversation back that was deleted last."""
        if self._deleted:
            self.undo_wanted.emit(self._deleted.pop())
        self.foot.hide()
        self._said_ends.stop()

    def menu_of(self, row: Row) -> QMenu:
        menu = QMenu(self)
        menu.addAction(translate("Sidebar", "Rename"), lambda: self.list.rename(row.id))
        words = translate("Sidebar", "Unpin") if row.pinned else translate("Sidebar", "Pin")
        menu.addAction(words, lambda: self.pin_wanted.emit(row.id, not row.pinned))
        menu.addAction(translate("Sidebar", "Export…"), lambda: self._export([row.id], row.text))
        menu.addSeparator()
        menu.addAction(translate("Sidebar", "Delete"), lambda: self.delete(row.id))
        return menu

    def _show_menu(self, row: Row, place: QPoint) -> None:
        menu = self.menu_of(row)
        menu.exec(place)
        menu.deleteLater()

    def rename_shown(self) -> None:
        if self.list.list_model.place(self._shown).isValid():
            self.list.rename(self._shown)

    # --- all of them

    def file_menu(self) -> QMenu:
        menu = QMenu(self)
        menu.addAction(translate("Sidebar", "Import…"), self._import)
        export = menu.addAction(
            translate("Sidebar", "Export all…"), lambda: self._export(None, translate("Sidebar", "Conversations"))
        )
        export.setEnabled(bool(self._headers))
        return menu

    def _show_file_menu(self) -> None:
        menu = self.file_menu()
        menu.exec(self.more_button.mapToGlobal(QPoint(0, self.more_button.height())))
        menu.deleteLater()

    def _export(self, ids: Sequence[str] | None, name: str) -> None:
        suggested = "".join(letter if letter.isalnum() or letter in " -_" else " " for letter in name).strip()
        path, chosen = QFileDialog.getSaveFileName(
            self, translate("Sidebar", "Export"), f"{suggested or 'chat'}.json", ";;".join(SUFFIXES.values())
        )
        if path:
            suffix = next(suffix for suffix, words in SUFFIXES.items() if words == (chosen or SUFFIXES["json"]))
            self.export_wanted.emit(ids, Path(path) if Path(path).suffix else Path(f"{path}.{suffix}"))

    def _import(self) -> None:
        words = translate("Sidebar", "Exported conversations")
        path, _ = QFileDialog.getOpenFileName(self, translate("Sidebar", "Import"), "", f"{words} (*.json *.md)")
        if path:
            self.import_wanted.emit(Path(path))

    # --- how it looks

    def _color_icons(self) -> None:
        self._glass.setIcon(icon("search", theme().muted))
        self.more_button.setIcon(icon("more", theme().muted))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "more_button"):
            self._color_icons()
