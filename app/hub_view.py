"""Finding models on the Hub: a search field, what was found, and the files of a repository with what speaks for each.

Shows `Found` and `Checked`; says what the user wants. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QLineEdit, QPushButton, QScrollArea, QToolButton, QVBoxLayout, QWidget

from app.engine_words import in_words
from app.i18n import translate
from app.model_parts import button, card, emptied, label, row, set_role
from app.model_words import fit_words, remote_words, repository_words, size_words
from app.theme import font, px

if TYPE_CHECKING:
    from app.model_steps import Checked, Found
    from engine.remote_model import RemoteModel, Repository


class HubView(QWidget):
    search = Signal(str)
    open_repository = Signal(str)
    back = Signal()
    check = Signal(object)  # a RemoteModel
    download = Signal(object, bool)  # a RemoteModel; although it does not fit
    convert = Signal(object)  # a Repository that holds a drafter in safetensors form
    token = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = QLineEdit()
        self.field.setFont(font(14))
        self.field.setPlaceholderText(translate("Models", "Words, or a repository as owner/name"))
        self.field.setAccessibleName(translate("Models", "Search the Hub"))
        self.field.setClearButtonEnabled(True)
        for clear in self.field.findChildren(QToolButton):
            clear.setAccessibleName(translate("Models", "Clear the search"))
        self.search_button = button(translate("Models", "Search"), "primary")
        self.token_button = button(translate("Models", "Token…"))
        self.field.returnPressed.connect(self._search)
        self.search_button.clicked.connect(self._search)
        self.notice = Notice()
        self.notice.again.clicked.connect(self._search)
        self.notice.token.connect(self.token)
        self.token_button.clicked.connect(self.notice.ask_for_token)
        self.repositories: dict[str, RepositoryRow] = {}
        self.convert_button: QPushButton | None = None
        self.models: dict[str, RemoteRow] = {}  # by key
        self._list = QScrollArea()
        self._list.setWidgetResizable(True)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inside = QWidget()
        inside.setObjectName("column")
        self._column = QVBoxLayout(inside)
        self._column.setContentsMargins(0, 0, px(8), px(12))
        self._column.setSpacing(px(8))
        self._list.setWidget(inside)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(px(10))
        line = row(self.field, self.search_button, self.token_button)
        line.setStretch(0, 1)
        whole.addLayout(line)
        whole.addWidget(self.notice)
        whole.addWidget(self._list, 1)

    def _search(self) -> None:
        self.search.emit(self.field.text())

    def show_found(self, found: Found, checked: Mapping[str, Checked], here: Mapping[str, bool]) -> None:
        """`here`: keys of models that are on the disk (True), or on their way to it."""
        self.notice.show_found(found)
        if not self.field.text() and not self.field.hasFocus():
            self.field.setText(found.text)
        emptied(self._column)
        self.repositories, self.models = {}, {}
        if found.opened is not None:
            self._show_repository(found.opened, bool(found.repositories), checked, here)
        else:
            for repository in found.repositories:
                made = RepositoryRow(repository)
                made.clicked.connect(lambda _=False, name=repository.id: self.open_repository.emit(name))
                self.repositories[repository.id] = made
                self._column.addWidget(made)
        if found.running:
            self._column.addWidget(label(translate("Models", "Asking the Hub…"), 13, "muted"))
        elif found.opened is None and not found.repositories and not found.trouble:
            words = (
                translate("Models", "Nothing was found. Try fewer words.")
                if found.text
                else translate("Models", "Search for a model by its name, such as “qwen3 8b”, or paste its address.")
            )
            self._column.addWidget(label(words, 13, "muted"))
        self._column.addStretch(1)

    def _show_repository(
        self, repository: Repository, has_results: bool, checked: Mapping[str, Checked], here: Mapping[str, bool]
    ) -> None:
        if has_results:
            back = button(translate("Models", "Back to what was found"), "quiet")
            back.clicked.connect(self.back)
            self._column.addLayout(row(back, 1))
        title = label(repository.id, 16, bold=True)
        page = button(translate("Models", "Open its page"), "quiet")
        page.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(repository.url)))
        line = row(title, page)
        line.setStretch(0, 1)
        self._column.addLayout(line)
        self._column.addWidget(label(repository_words(repository), 12, "muted"))
        for model in repository.models:
            made = self.models[model.key] = RemoteRow(model)
            made.check.connect(lambda model=model: self.check.emit(model))
            made.download.connect(lambda anyway, model=model: self.download.emit(model, anyway))
            made.show_checked(checked.get(model.key), here.get(model.key))
            self._column.addWidget(made)
        if repository.safetensors_drafter:
            self._column.addWidget(self._convertible(repository))
        for sentence in repository.left_out:
            self._column.addWidget(label(sentence, 12, "warning"))

    def _convertible(self, repository: Repository) -> QWidget:
        frame, column = card()
        size = sum(file.size for file in repository.files if file.name.endswith(".safetensors"))
        words = translate("Models", "Weights in safetensors form, {size}. A DFlash drafter can be converted to GGUF.")
        self.convert_button = button(translate("Models", "Download and convert…"), "primary")
        self.convert_button.clicked.connect(lambda: self.convert.emit(repository))
        line = row(label(words.format(size=size_words(size))), self.convert_button)
        line.setStretch(0, 1)
        column.addLayout(line)
        return frame

    def show_checked(self, key: str, checked: Checked | None, here: bool | None) -> None:
        if key in self.models:
            self.models[key].show_checked(checked, here)


class RepositoryRow(QPushButton):
    """A repository in the list of results; the whole row opens it."""

    def __init__(self, repository: Repository, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "example")
        self.setAccessibleName(f"{repository.id}: {repository_words(repository)}")
        column = QVBoxLayout(self)
        column.setContentsMargins(px(16), px(9), px(16), px(9))
        column.setSpacing(px(2))
        name, details = label(repository.id, 13, bold=True), label(repository_words(repository), 12, "muted")
        for part in (name, details):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            column.addWidget(part)
        self.setMinimumHeight(column.sizeHint().height())


class RemoteRow(QFrame):
    """A model in a repository: its size, what its header says of it, and the button that fetches it."""

    check = Signal()
    download = Signal(bool)  # although it does not fit

    def __init__(self, model: RemoteModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self._model = model
        self._anyway = False
        self.name = label(model.name, 13, bold=True)
        self.details = label(remote_words(model), 12, "muted")
        self.verdict = label("", 12, "muted")
        self.check_button = button(
            translate("Models", "Check"), "plain", translate("Models", "Check {name}").format(name=model.name)
        )
        self.download_button = button(
            translate("Models", "Download"), "primary", translate("Models", "Download {name}").format(name=model.name)
        )
        self.check_button.clicked.connect(self.check)
        self.download_button.clicked.connect(lambda: self.download.emit(self._anyway))
        column = QVBoxLayout(self)
        column.setContentsMargins(px(16), px(10), px(12), px(10))
        column.setSpacing(px(3))
        line = row(self.name, self.check_button, self.download_button)
        line.setStretch(0, 1)
        column.addLayout(line)
        column.addWidget(self.details)
        column.addWidget(self.verdict)

    def show_checked(self, checked: Checked | None, here: bool | None) -> None:
        words, role, self._anyway = self._model.problem or "", "danger" if self._model.problem else "muted", False
        if checked is not None and checked.running:
            words = translate("Models", "Reading its header, {size} so far").format(size=size_words(checked.bytes))
        elif checked is not None and checked.trouble is not None:
            words, role = in_words(checked.trouble), "danger"
        elif checked is not None and checked.fit is not None:
            words, role = fit_words(checked.fit)
        elif checked is not None:
            words = in_words(checked.sentence)
            self._anyway = checked.verdict is not None and not checked.verdict.fits
            role = "warning" if self._anyway else "muted"
        self.verdict.setText(words)
        set_role(self.verdict, role)
        self.verdict.setVisible(bool(words))
        self.check_button.setVisible(checked is None and here is None and not self._model.problem)
        set_role(self.download_button, "plain" if self._anyway else "primary")
        running = checked is not None and checked.running
        self.download_button.setEnabled(here is None and not self._model.problem and not running)
        self.download_button.setText(
            translate("Models", "Is here")
            if here
            else translate("Models", "Downloading")
            if here is not None
            else translate("Models", "Download all the same")
            if self._anyway
            else translate("Models", "Download")
        )


class Notice(QFrame):
    """Why the Hub gave nothing, and what helps: another try, its page, or a token."""

    token = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("notice")
        self.sentence = label("", 13, "warning")
        self.again = button(translate("Models", "Try again"), "plain")
        self.page = button(translate("Models", "Open its page"), "plain")
        self.field = QLineEdit()
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.field.setPlaceholderText(translate("Models", "Your token, from the page “Access Tokens” of the Hub"))
        self.field.setAccessibleName(translate("Models", "Access token"))
        self.keep = button(translate("Models", "Keep the token"), "primary")
        self._link: str | None = None
        self.page.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(self._link or "")))
        self.keep.clicked.connect(self._keep)
        self.field.returnPressed.connect(self._keep)
        column = QVBoxLayout(self)
        column.setContentsMargins(px(16), px(12), px(16), px(12))
        column.setSpacing(px(8))
        column.addWidget(self.sentence)
        line = row(self.field, self.keep)
        line.setStretch(0, 1)
        column.addLayout(line)
        column.addLayout(row(self.again, self.page, 1))
        self.hide()

    def show_found(self, found: Found) -> None:
        self.setVisible(found.trouble is not None)
        if found.trouble is None:
            return
        self.sentence.setText(in_words(found.trouble))
        self._link = found.link
        self.again.show()
        self.page.setVisible(found.link is not None)
        for widget in (self.field, self.keep):
            widget.setVisible(found.wants_token)

    def ask_for_token(self) -> None:
        """Open the place for a token without a failure before."""
        self.sentence.setText(
            translate("Models", "A token lets the program fetch gated and private models that your account may read.")
        )
        self._link = None
        self.page.hide()
        self.again.hide()
        for widget in (self, self.field, self.keep):
            widget.show()
        self.field.setFocus()

    def _keep(self) -> None:
        if self.field.text().strip():
            self.token.emit(self.field.text())
            self.field.clear()
