"""The window: widgets around one `ChatState`, and the engine thread that changes it.

What the user does becomes a request, what the engine says changes the state, and the widgets are brought up to date
with it a few dozen times a second at most. Decides nothing that the state could decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QElapsedTimer, QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMainWindow,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.announce import announce
from app.attachments import Attachment
from app.banner import Banner
from app.chats import Chats
from app.compare_control import CompareControl
from app.compare_page import ComparePage
from app.composer import ChatArea, Composer
from app.conversation import Turn
from app.conversation_view import COLUMN_WIDTH, ConversationView
from app.definitions import mode_name
from app.drafting_words import measured_by_mode
from app.drafts import Drafts
from app.engine_thread import EngineThread
from app.header import Header
from app.i18n import translate
from app.library import Library
from app.mode_switch import KEYS
from app.models_desk import ModelsDesk
from app.panel import LivePanel
from app.preferences import Preferences
from app.settings import SettingsStore
from app.shortcuts import Shortcuts, ShortcutsDialog
from app.sidebar import WIDTH as SIDEBAR_WIDTH
from app.sidebar import Sidebar
from app.state import ChatState, Phase, Trouble
from app.theme import px
from app.welcome import Welcome
from app.window_state import WindowState
from engine.events import (
    Answered,
    Counted,
    DevicesListed,
    Event,
    Failed,
    Loaded,
    LoadSettings,
    Mode,
    ModesFound,
)
from engine.host import Cancel, Count, ListDevices, Request, Unload

FRAME_MS = 100  # between two refreshes while an answer streams, or longer: on two cores each takes time from the engine
NARROW = 788  # logical pixels: where the talk and the panel have less together, the panel gives way
SIDEBAR_NEEDS = 760  # of the window's width; below it the sidebar gives way


class ChatWindow(QMainWindow):
    refreshed = Signal()  # the widgets show the state

    def __init__(self, engine: EngineThread, store: SettingsStore, folder: Path | None = None) -> None:
        """`folder`: where conversations and the window's state are kept; None: nowhere."""
        super().__init__()
        self.setWindowTitle("DFlash Chat")
        self.resize(px(1280), px(820))
        self.state = ChatState()
        self.engine = engine
        self.preferences = Preferences(store, self.state, self)
        self.shortcuts = Shortcuts(self)
        self.chats = Chats(Library(folder, self), self.state, engine.send, self._system_prompt, self)
        self._kept = WindowState(folder)
        self._drafts = Drafts(self._kept.text("drafts"))
        self._wants_panel = self._kept.flag("panel", True)
        self._wants_sidebar = self._kept.flag("sidebar", True)
        self._refresh_ms = 0  # how long the last one took
        self._frame = QTimer(self)
        self._frame.setSingleShot(True)
        self._frame.timeout.connect(self._refresh)
        self.desk = ModelsDesk(self.state, self.preferences, engine.send, self)
        self.comparison = CompareControl(self._for_comparison, parent=self)
        self._build()
        self._connect_engine()
        self._connect()
        self._restore()
        self._refresh()
        engine.start()
        self.load()
        self.desk.start()
        if store.trouble:
            self.state.trouble = Trouble(translate("Window", "The settings were set back"), store.trouble, None)
            self._refresh()

    # --- building

    def _build(self) -> None:
        self.setMinimumSize(px(580), px(440))  # what the header needs without the model's name
        self.desk.build()
        self.conversation = ConversationView()
        self.welcome = Welcome()
        self._pages = QStackedWidget()
        self._pages.addWidget(self.welcome)
        self._pages.addWidget(self.conversation)
        self.banner = Banner()
        self.composer = Composer()
        self.panel = LivePanel()
        foot = QWidget()
        foot.setMaximumWidth(px(COLUMN_WIDTH + 36))
        column = QVBoxLayout(foot)
        column.setContentsMargins(0, 0, 0, px(10))
        column.setSpacing(px(12))
        column.addWidget(self.banner)
        column.addWidget(self.composer)
        foot_row = QHBoxLayout()
        foot_row.setContentsMargins(px(20), 0, px(20), 0)
        foot_row.addStretch(1)
        foot_row.addWidget(foot, 1000)
        foot_row.addStretch(1)
        talk = QVBoxLayout()
        talk.setSpacing(px(6))
        talk.addWidget(self._pages, 1)
        talk.addLayout(foot_row)
        body = QHBoxLayout()
        body.setSpacing(0)
        body.addLayout(talk, 1)
        body.addWidget(self.panel)
        right = QWidget()
        rows = QVBoxLayout(right)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(0)
        rows.addWidget(self._header())
        rows.addWidget(self.desk.strip)
        chat = ChatArea(self.composer)
        chat.setLayout(body)
        body.setContentsMargins(0, 0, 0, 0)
        self.views = QStackedWidget()  # the chat, and what can take its place
        self.views.addWidget(chat)
        self.views.addWidget(self.desk.page)
        self.compare_page = ComparePage(self.comparison)
        self.views.addWidget(self.compare_page)
        rows.addWidget(self.views, 1)
        self.sidebar = Sidebar()
        self._splitter = QSplitter()
        self._splitter.setHandleWidth(1)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(self.sidebar)
        self._splitter.addWidget(right)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setSizes([px(SIDEBAR_WIDTH), px(1280 - SIDEBAR_WIDTH)])
        self._splitter.splitterMoved.connect(lambda: self._make_room())
        self.setCentralWidget(self._splitter)
        self.chats.attach(self.sidebar)
        self.composer.input.setFocus()

    def _header(self) -> QWidget:
        header = Header()
        self.modes, self.model_name, self.model_details = header.modes, header.model_name, header.model_details
        self.sidebar_button, self.new_button = header.sidebar_button, header.new_button
        self.tokens_button, self.panel_button = header.tokens_button, header.panel_button
        self.compare_button, self.models_button = header.compare_button, header.models_button
        self.settings_button = header.settings_button
        self.header = header
        return header

    def _connect_engine(self) -> None:
        self.engine.received.connect(self._received)
        self.engine.failed.connect(self._failed)
        self.engine.done.connect(self._done)
        self.engine.stopped.connect(self._engine_stopped)
        self.chats.refresh.connect(self._refresh)
        self.chats.went_to.connect(self._went_to)
        self.preferences.rebuild.connect(self._rebuild)
        self.preferences.refresh.connect(self._refresh)
        self.preferences.reload.connect(self.load)
        self.preferences.opened.connect(lambda: self.engine.send(ListDevices()))
        self.desk.load.connect(self.load)
        self.desk.switch.connect(self.choose_mode)
        self.desk.unload.connect(self.unload)
        self.desk.closed.connect(self.show_chat)

    def _connect(self) -> None:
        """What the widgets say; they may be made again."""
        self.composer.send.connect(self.ask)
        self.composer.stop.connect(self.stop)
        self.composer.models_given.connect(self._import_models)
        self.composer.count.connect(lambda text, tag: self.engine.send(Count(text, tag)))
        self.modes.chosen.connect(self.choose_mode)
        self.desk.attach(self.modes)
        self.models_button.clicked.connect(self._toggle_models)
        self.compare_button.clicked.connect(self._toggle_comparison)
        self.tokens_button.clicked.connect(self._toggle_origins)
        self.compare_page.closed.connect(self.show_chat)
        self.settings_button.clicked.connect(lambda: self.preferences.open())
        self.banner.remedy.connect(self.mend)
        self.banner.dismissed.connect(self._dismiss)
        self.conversation.ask_again.connect(self.ask_again)
        self.conversation.edited.connect(self.ask_otherwise)
        self.conversation.go_on.connect(self.go_on)
        self.conversation.leaf.connect(self.leaf)
        self.welcome.chosen.connect(self._take_example)
        self.new_button.clicked.connect(self.new_conversation)
        self.sidebar_button.clicked.connect(self._toggle_sidebar)
        self.panel_button.clicked.connect(self._toggle_panel)
        self._add_shortcuts()

    def _add_shortcuts(self) -> None:
        add, mention = self.shortcuts.add, self.shortcuts.mention
        mention(translate("Shortcuts", "Send the message"), "Return")
        mention(translate("Shortcuts", "A new line in the message"), "Shift+Return")
        add(translate("Shortcuts", "Stop the answer"), "Esc", self.stop)
        add(translate("Shortcuts", "New conversation"), "Ctrl+N", self.new_conversation)
        add(translate("Shortcuts", "Search all conversations"), "Ctrl+K", self._search, "Ctrl+Shift+F")
        add(translate("Shortcuts", "Next conversation"), "Ctrl+PgDown", lambda: self.chats.step(1))
        add(translate("Shortcuts", "Previous conversation"), "Ctrl+PgUp", lambda: self.chats.step(-1))
        add(translate("Shortcuts", "Rename the conversation"), "Ctrl+R", self._rename)
        add(translate("Shortcuts", "Delete the conversation"), "Ctrl+Shift+Backspace", self._delete)
        add(translate("Shortcuts", "Show or hide the conversations"), "Ctrl+B", self._toggle_sidebar)
        mention(translate("Shortcuts", "Undo the deletion, in the list of conversations"), "Ctrl+Z")
        add(translate("Shortcuts", "Go to the message"), "Ctrl+L", self.composer.input.setFocus)
        add(translate("Shortcuts", "Add text files"), "Ctrl+O", self.composer.choose_files)
        for mode, keys in KEYS.items():
            words = translate("Shortcuts", "Mode: {name}").format(name=mode_name(mode))
            add(words, keys, partial(self.modes.choose, mode))
        add(translate("Shortcuts", "Colour answers by where their tokens came from"), "Ctrl+T", self._toggle_origins)
        add(translate("Shortcuts", "Show or hide the live figures"), "Ctrl+I", self._toggle_panel)
        add(translate("Shortcuts", "Show or hide the details of the figures"), "Ctrl+D", self.panel.fold.toggle)
        add(translate("Shortcuts", "Models and drafters"), "Ctrl+M", self._toggle_models)
        add(translate("Shortcuts", "Compare the modes"), "Ctrl+Shift+C", self._toggle_comparison)
        add(translate("Shortcuts", "Unload the model"), "Ctrl+Shift+U", self.unload)
        add(translate("Shortcuts", "Settings"), "Ctrl+,", self.preferences.open)
        add(translate("Shortcuts", "Larger text"), "Ctrl++", lambda: self.preferences.zoom(1), "Ctrl+=")
        add(translate("Shortcuts", "Smaller text"), "Ctrl+-", lambda: self.preferences.zoom(-1))
        add(translate("Shortcuts", "Usual size of text"), "Ctrl+0", lambda: self.preferences.zoom(0))
        add(translate("Shortcuts", "This list"), "F1", self.show_shortcuts)

    def _rebuild(self) -> None:
        """Other widgets for the same state: the language or the size of text has changed."""
        text, files = self.composer.input.text(), list(self.composer.files.files)
        page, unfolded = self.views.currentIndex(), self.panel.fold.isChecked()
        sizes, sidebar = self._splitter.sizes(), self.sidebar
        self.shortcuts.clear()
        self._build()
        self._connect()
        self._splitter.setSizes(sizes)
        if (layout := self.layout()) is not None:
            layout.activate()  # so that it is known how much room there is
        self.sidebar.take_over(sidebar)
        self.views.setCurrentIndex(page)
        self.panel.fold.setChecked(unfolded)
        self.composer.show_rule(self.preferences.settings.overflow)
        self._put_into_box(text, files)
        self._make_room()
        self._refresh()

    def _put_into_box(self, text: str, files: Sequence[Attachment]) -> None:
        """What was typed and not sent."""
        box = self.composer.input
        box.setPlainText(text)
        box.moveCursor(QTextCursor.MoveOperation.End)
        self.composer.files.clear()
        for file in files:
            self.composer.files.add(file)
            if file.tokens is None:
                self.engine.send(Count(file.text, file.tag))

    def _restore(self) -> None:
        """Be as the window was when it was last closed."""
        if geometry := self._kept.bytes("geometry"):
            self.restoreGeometry(geometry)
        if splitter := self._kept.bytes("splitter"):
            self._splitter.restoreState(splitter)
        draft = self._drafts.begin(self.state.conversation)
        self._put_into_box(draft.text, draft.files)
        if last := self._kept.text("conversation"):
            self.chats.open(last)
        self._make_room()

    def _make_room(self) -> None:
        """Show the sidebar and the panel where they are wanted and there is room for them."""
        self.sidebar.setVisible(self._wants_sidebar and self.width() >= px(SIDEBAR_NEEDS))
        left = 0 if self.sidebar.isHidden() else self._splitter.sizes()[0]  # which may not be in view yet
        self.panel.setVisible(self._wants_panel and self.width() - left >= px(NARROW))

    # --- what the user does

    def load(self) -> None:
        """Load the target; an answer that is being written is stopped, and can be continued."""
        self._stop_whoever_is_answered()
        self.state.load()
        self.engine.load(self.preferences.load_settings())
        self.composer.show_rule(self.preferences.settings.overflow)
        self._refresh()

    def unload(self) -> None:
        """Give the memory of the model back."""
        self._stop_whoever_is_answered()
        if self.state.engine is Phase.LOADING:
            self.engine.send(Cancel())
        self.state.unload()
        self.engine.send(Unload())
        self._refresh()

    def _stop_whoever_is_answered(self) -> None:
        if (job := self.state.running) is not None and (request := self.state.stop(job.conversation)):
            self.engine.send(request)

    def mend(self) -> None:
        """The banner's button: start again where the engine stopped or did not load."""
        self.load()

    def ask(self, question: str) -> None:
        if self.state.can_send:
            self.state.ask(question)
            self._asked()

    def ask_again(self, turn: Turn) -> None:
        if self.state.can_send:
            self.state.ask_again(turn)
            self._asked()

    def ask_otherwise(self, turn: Turn, question: str) -> None:
        """A question was edited."""
        if self.state.can_send:
            self.state.ask_again(turn, question)
            self._asked()

    def go_on(self, turn: Turn) -> None:
        if self.state.can_send and turn.can_continue:
            self.state.go_on(turn)
            self._asked()

    def leaf(self, turn: Turn, step: int) -> None:
        """Show an earlier or a later version of a turn."""
        self.state.conversation.leaf(turn, step)
        self._refresh()

    def _asked(self) -> None:
        self.chats.asked()
        self._send_next()
        self._refresh()
        if not self.conversation.following:
            self.conversation.go_to_newest()

    def _send_next(self) -> None:
        if request := self.state.next_request():
            self.engine.send(request)

    def stop(self) -> None:
        if self.views.currentWidget() is self.compare_page:
            self.comparison.stop()
        elif self.state.can_stop:
            if request := self.state.stop():
                self.engine.send(request)
            self._refresh()

    def choose_mode(self, mode: Mode) -> None:
        self.preferences.change(mode=mode)

    def new_conversation(self) -> None:
        self.chats.new()
        self._refresh()

    def _went_to(self, turn: Turn | None) -> None:
        """Another conversation is shown."""
        self.views.setCurrentIndex(0)
        if turn is not None:
            self.conversation.go_to(turn)
        elif not self.conversation.following:  # it would be laid out a second time for nothing
            self.conversation.go_to_newest()
        if not self.sidebar.list.hasFocus():  # with the arrow keys one goes on to the next one
            self.composer.input.setFocus()

    def _system_prompt(self) -> str | None:
        return self.preferences.settings.system_prompt()

    def _search(self) -> None:
        self.sidebar.show()
        self.sidebar.search.setFocus()
        self.sidebar.search.selectAll()

    def _rename(self) -> None:
        self.sidebar.show()
        self.sidebar.rename_shown()

    def _delete(self) -> None:
        if self.state.conversation.turns:
            self.sidebar.delete(self.state.conversation.id)

    def show_shortcuts(self) -> None:
        dialog = ShortcutsDialog(self.shortcuts, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _take_example(self, text: str) -> None:
        self.composer.input.setPlainText(text)
        self.composer.input.moveCursor(QTextCursor.MoveOperation.End)
        self.composer.input.setFocus()

    def _dismiss(self) -> None:
        self.state.dismiss()
        self._refresh()

    def _toggle_origins(self) -> None:
        self.preferences.change(show_origins=not self.preferences.settings.show_origins)

    def _toggle_sidebar(self) -> None:
        self._wants_sidebar = not self.sidebar.isVisible()
        self.sidebar.setVisible(self._wants_sidebar)

    def _toggle_panel(self) -> None:
        self._wants_panel = not self.panel.isVisible()
        self.panel.setVisible(self._wants_panel)

    def _toggle_models(self) -> None:
        if self.views.currentWidget() is self.desk.page:
            self.show_chat()
        else:
            self.views.setCurrentWidget(self.desk.page)
            self.desk.opened()

    def _import_models(self, paths: list[str]) -> None:
        """Model files that were dropped on the chat."""
        self.views.setCurrentWidget(self.desk.page)
        self.desk.opened()
        self.desk.page.take(paths)

    def _toggle_comparison(self) -> None:
        if self.views.currentWidget() is self.compare_page:
            self.show_chat()
        else:
            self.views.setCurrentWidget(self.compare_page)
            self.compare_page.question.setFocus()

    def _for_comparison(self) -> tuple[LoadSettings, int | None]:
        """What the modes are compared with: the settings as they are now."""
        settings = self.preferences.settings
        return settings.load_settings(), settings.draft_length

    def show_chat(self) -> None:
        self.views.setCurrentIndex(0)
        self.composer.input.setFocus()

    # --- what the engine says

    def _received(self, event: Event) -> None:
        if isinstance(event, Counted):
            self.composer.show_count(event)
            return
        if isinstance(event, DevicesListed):
            self.preferences.show_devices(event.devices)
            return
        self.state.apply(event)
        if isinstance(event, ModesFound):
            self.desk.modes_found(event)
        if isinstance(event, Answered):
            self.desk.answered()
            words = translate("Window", "The answer is done: {tokens} tokens.")
            announce(self.conversation, words.format(tokens=event.statistics.output_tokens))
        if isinstance(event, Loaded):
            self.preferences.show_loaded()
            self.desk.target_loaded()
            announce(self.conversation, translate("Window", "The model is ready."))
            self._send_next()  # who asked before
        self._refresh_soon()

    def _failed(self, request: Request | None, failed: Failed) -> None:
        waiting = [job.conversation for job in self.state.jobs]
        self.state.fail(request, failed)
        self.chats.keep_changed(waiting)
        self._refresh_soon()

    def _done(self, request: Request, succeeded: bool) -> None:
        job = self.state.running
        self.state.done(request, succeeded)
        if job is not None:
            self.chats.ended(job.conversation)
        self._send_next()
        self._refresh_soon()

    def _engine_stopped(self, reason: str) -> None:
        waiting = [job.conversation for job in self.state.jobs]
        self.state.engine_stopped(reason)
        self.chats.keep_changed(waiting)
        self._refresh_soon()

    # --- showing it

    def _refresh_soon(self) -> None:
        if not self._frame.isActive():
            self._frame.start(max(FRAME_MS, 3 * self._refresh_ms))

    def _refresh(self) -> None:
        self._frame.stop()
        clock = QElapsedTimer()
        clock.start()
        state = self.state
        turns = state.conversation.turns
        box, files = self.composer.input, self.composer.files.files
        if (draft := self._drafts.turn_to(state.conversation, box.text(), files)) is not None:
            self._put_into_box(draft.text, draft.files)
        self._pages.setCurrentWidget(self.conversation if turns else self.welcome)
        if self.conversation.shows_origins is not self.preferences.settings.show_origins:
            self.conversation.show_origins(self.preferences.settings.show_origins)
        self.tokens_button.setChecked(self.preferences.settings.show_origins)
        self.conversation.show_conversation(state.conversation, idle=state.can_send)
        self.modes.show_modes(state.modes, state.mode, measured_by_mode(state))
        self.composer.show_state(state)
        self.panel.show_state(state)
        self.compare_page.let_start(state.running is None)
        self.banner.show_trouble(state.banner)
        self.header.show_target(state.target, state.status)
        self.desk.show_in_use()
        self.new_button.setEnabled(bool(turns))
        self.chats.show()
        self._refresh_ms = clock.elapsed()
        self.refreshed.emit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "new_button"):
            self._refresh_soon()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def closeEvent(self, event: QCloseEvent) -> None:
        """The engine process goes with the window."""
        self._frame.stop()
        self._kept.keep(
            geometry=self.saveGeometry(),
            splitter=self._splitter.saveState(),
            sidebar=self._wants_sidebar,
            panel=self._wants_panel,
            drafts=self._drafts.to_text(self.composer.input.text()),
            conversation=self.state.conversation.id,
        )
        self.hide()  # ending the process may take a moment; nobody need watch
        self.desk.close()
        self.comparison.close()
        self.chats.close()
        self.engine.close()
        super().closeEvent(event)
