"""Several conversations in one window: which one is shown, what is stored of them, and what the sidebar asks for.

Stands between the state, the library and the sidebar, and knows nothing of the window's other widgets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from app.conversation import Conversation, Turn
from app.i18n import translate
from app.library import Library
from app.sidebar import Sidebar
from app.state import ChatState, Trouble
from engine.host import Request


class Chats(QObject):
    refresh = Signal()  # the widgets no longer show the state
    went_to = Signal(object)  # another conversation is shown; a Turn that is to be looked at, or None: the newest

    def __init__(
        self,
        library: Library,
        state: ChatState,
        send: Callable[[Request], None],
        system: Callable[[], str | None],
        parent: QObject | None = None,
    ) -> None:
        """`send` takes a request to the engine; `system` is the system prompt of a new conversation."""
        super().__init__(parent)
        self.library = library
        self._state, self._send, self._system = state, send, system
        self._wanted: tuple[str, str | None] | None = None  # what was asked for and has not come: conversation, turn
        self._sidebar: Sidebar | None = None
        library.opened.connect(self._opened)
        library.missing.connect(self._missing)
        library.listed.connect(self._listed)
        library.found.connect(lambda text, hits: self._sidebar and self._sidebar.show_found(text, hits))
        library.said.connect(self._said)

    def attach(self, sidebar: Sidebar) -> None:
        """Serve a sidebar; it may be made again."""
        self._sidebar = sidebar
        sidebar.open_wanted.connect(self.open)
        sidebar.rename_wanted.connect(self.library.rename)
        sidebar.pin_wanted.connect(self.library.pin)
        sidebar.delete_wanted.connect(self.delete)
        sidebar.undo_wanted.connect(self.undo)
        sidebar.search_wanted.connect(self.library.search)
        sidebar.export_wanted.connect(lambda ids, path: self.library.write(path, ids))
        sidebar.import_wanted.connect(self.library.read)
        self._listed()

    # --- what the user does

    def new(self) -> None:
        self._wanted = None
        if self._state.conversation.turns:
            self._state.open(Conversation(system=self._system()))
        self.went_to.emit(None)

    def open(self, id_: str, turn: str | None = None) -> None:
        """Show a conversation, at a turn."""
        if id_ != self._state.conversation.id or turn is not None:
            self._wanted = (id_, turn)
            self.library.open(id_)

    def step(self, by: int) -> None:
        """Show the next conversation in the list, or the one before."""
        ids = [header.id for header in self.library.headers]
        if not ids:
            return
        here = self._state.conversation.id
        self.open(ids[min(max(ids.index(here) + by, 0), len(ids) - 1)] if here in ids else ids[0])

    def delete(self, id_: str) -> None:
        """Until the program ends it can be undone."""
        for job in list(self._state.jobs):
            if job.conversation.id == id_:
                if request := self._state.stop(job.conversation):
                    self._send(request)
                self.library.keep(job.conversation)  # one that waited has ended, should it be taken back
        if self._wanted is not None and self._wanted[0] == id_:
            self._wanted = None
        ids = [header.id for header in self.library.headers]
        self.library.delete(id_)
        if id_ == self._state.conversation.id:
            rest = [other for other in ids if other != id_]
            self._state.open(Conversation(system=self._system()))
            if rest and id_ in ids:
                self.open(rest[min(ids.index(id_), len(rest) - 1)])
            self.refresh.emit()
            self.went_to.emit(None)

    def undo(self, id_: str) -> None:
        self.library.undelete(id_)
        self.open(id_)

    # --- keeping and showing

    def asked(self) -> None:
        """Something was asked: that is the conversation to stay at."""
        self._wanted = None
        self.library.keep(self._state.conversation)

    def show(self) -> None:
        """Bring the sidebar up to date, and store what has changed."""
        state = self._state
        shown = {job.conversation.id: "waiting" for job in state.jobs}
        if state.running is not None:
            shown[state.running.conversation.id] = "answering"
        if self._sidebar is not None:
            self._sidebar.show_current(state.conversation.id, shown)
        for conversation in (state.conversation, *(job.conversation for job in state.jobs)):
            self.library.keep_soon(conversation)

    def ended(self, conversation: Conversation) -> None:
        """An answer has come to its end."""
        self.library.keep(conversation)

    def keep_changed(self, conversations: Sequence[Conversation]) -> None:
        """Store what changed in these now: they may be shown no more, and no longer wait for an answer."""
        for conversation in conversations:
            if conversation.has_changes:
                self.library.keep(conversation)

    def close(self) -> None:
        self.show()
        self.library.close()

    # --- what the library says

    def _opened(self, conversation: Conversation) -> None:
        if self._wanted is None or self._wanted[0] != conversation.id:
            return  # something else was wanted meanwhile
        (_, turn_id), self._wanted = self._wanted, None
        turn = next((turn for turn in conversation.all_turns() if turn.id == turn_id), None) if turn_id else None
        if turn is not None:
            conversation.show(turn)
        if conversation is not self._state.conversation:
            self._state.open(conversation)
        self._look_at(turn)

    def _look_at(self, turn: Turn | None) -> None:
        self.refresh.emit()
        self.went_to.emit(turn)

    def _missing(self, id_: str) -> None:
        if self._wanted is not None and self._wanted[0] == id_:
            self._wanted = None
            self.refresh.emit()

    def _listed(self) -> None:
        if self._sidebar is not None:
            self._sidebar.show_list(self.library.headers)

    def _said(self, sentence: str, is_bad: bool) -> None:
        if not is_bad and self._sidebar is not None:
            self._sidebar.say(sentence)
            return
        news = Trouble(translate("Chats", "About your conversations"), sentence, None)
        if news not in self._state.news:
            self._state.news.append(news)
            self.refresh.emit()
