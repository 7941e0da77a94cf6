"""The thread that owns the engine process, with the scripted session."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import psutil
import pytest
from PySide6.QtCore import QObject, Signal
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from engine.events import Answered, Counted, Event, Failed, Loaded, LoadSettings, Tokens
from engine.host import Ask, Continue, Count, ListDevices, Load, Request, Restore, Rewind, Unload
from tests.app.conftest import SCRIPTED, WAIT_MS


class Listener(QObject):
    """Keeps what the thread says, in order. It is a QObject so that it hears in the test's thread."""

    changed = Signal()

    def __init__(self, qtbot: QtBot, engine: EngineThread) -> None:
        super().__init__()
        self.bot, self.engine = qtbot, engine
        self.heard: list[Event] = []
        self.owned: list[tuple[Event, Request | None]] = []
        self.begun: list[Request] = []
        self.failures: list[tuple[Request | None, Failed]] = []
        self.dones: list[tuple[Request, bool]] = []
        self.reasons: list[str] = []
        engine.begun.connect(self._begun)
        engine.received.connect(self._received)
        engine.failed.connect(self._failed)
        engine.done.connect(self._done)
        engine.stopped.connect(self._stopped)

    def _begun(self, request: Request) -> None:
        self.begun.append(request)
        self.changed.emit()

    def _received(self, event: Event, request: Request | None) -> None:
        self.heard.append(event)
        self.owned.append((event, request))
        self.changed.emit()

    def _failed(self, request: Request | None, failed: Failed) -> None:
        self.failures.append((request, failed))
        self.changed.emit()

    def _done(self, request: Request, well: bool) -> None:
        self.dones.append((request, well))
        self.changed.emit()

    def _stopped(self, reason: str) -> None:
        self.reasons.append(reason)
        self.changed.emit()

    def until(self, condition: Callable[[], bool]) -> None:
        if not condition():
            self.bot.waitSignal(self.changed, timeout=WAIT_MS, check_params_cb=condition).wait()

    def until_done(self, kind: type) -> bool:
        """Wait for the end of the newest request of that kind; whether it went well."""
        self.until(lambda: any(isinstance(request, kind) for request, _well in self.dones))
        well = next(well for request, well in reversed(self.dones) if isinstance(request, kind))
        self.dones.clear()
        return well

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.heard if isinstance(event, Tokens))


@pytest.fixture
def listener(qtbot: QtBot) -> Iterator[Listener]:
    engine = EngineThread(SCRIPTED)
    engine.start()
    yield Listener(qtbot, engine)
    engine.close()


def test_events_arrive_as_signals_in_the_order_in_which_they_were_sent(listener: Listener) -> None:
    listener.engine.load(LoadSettings())
    listener.engine.send(Ask("say a b"))
    assert listener.until_done(Ask)
    assert isinstance(listener.heard[-1], Answered) and listener.text == "a b "
    kinds = [type(event) for event in listener.heard]
    assert kinds.index(Loaded) < kinds.index(Tokens)


def test_a_failure_comes_with_its_request(listener: Listener) -> None:
    listener.engine.load(LoadSettings())
    listener.engine.send(Rewind(0))
    listener.engine.send(Ask("refuse"))
    assert not listener.until_done(Ask)
    (failure,) = listener.failures
    assert failure[0] == Ask("refuse") and failure[1].kind == "PromptError"
    listener.engine.send(Ask("say on"))
    assert listener.until_done(Ask)


def test_a_conversation_is_given_to_what_was_loaded(listener: Listener) -> None:
    listener.engine.load(LoadSettings(), (("q", "r"),))
    assert listener.until_done(Restore)
    listener.engine.send(Ask("history"))
    listener.until_done(Ask)
    assert listener.text == "q=r;"


def test_a_load_that_failed_is_given_no_conversation(listener: Listener) -> None:
    listener.engine.load(LoadSettings(target="missing"), (("q", "r"),))
    assert not listener.until_done(Load)
    conversation = Restore((("q", "r"),))
    assert [request for request, _failed in listener.failures] == [Load(LoadSettings(target="missing"), conversation)]
    listener.engine.load(LoadSettings())
    assert listener.until_done(Load)


def test_cancel_reaches_a_load(listener: Listener) -> None:
    listener.engine.load(LoadSettings(target="slow"))
    listener.until(lambda: listener.heard != [])
    listener.engine.cancel()
    assert not listener.until_done(Load)


def test_a_load_that_hears_no_cancel_is_ended_with_its_process(listener: Listener) -> None:
    deaf = LoadSettings(target="deaf")
    listener.engine.load(deaf)
    listener.engine.send(Ask("say a"))
    listener.until(lambda: len(listener.heard) == 2)
    process = psutil.Process(listener.engine.pid)
    (helper,) = process.children()
    listener.engine.cancel()
    assert not listener.until_done(Ask)
    assert [(request, failed.kind) for request, failed in listener.failures] == [
        (Load(deaf), "Cancelled"),
        (Ask("say a"), "Cancelled"),
    ]
    assert not process.is_running() and listener.reasons == []
    assert psutil.wait_procs([helper], WAIT_MS / 1000)[1] == []
    listener.engine.load(LoadSettings())
    assert listener.until_done(Load)


def test_of_two_chats_the_second_waits_and_is_cancelled_alone(listener: Listener) -> None:
    """Events come with the request that they belong to."""
    listener.engine.load(LoadSettings())
    listener.until_done(Load)
    first, second = Ask("endless-prompt", tag="first"), Ask("say a", tag="second")
    listener.engine.send(first)
    listener.engine.send(second)
    listener.engine.send(Count("a b", "file"))
    listener.until(lambda: Counted(2, "file") in listener.heard)
    assert listener.begun[-1] == first and second not in listener.begun
    listener.engine.cancel("second")
    listener.engine.cancel("first")
    listener.until(lambda: (second, True) in listener.dones)
    assert listener.begun[-2:] == [first, second]
    ends = [(event.text, request) for event, request in listener.owned if isinstance(event, Answered)]
    assert [request for _, request in ends] == [first, second] and ends[1][0] == ""


def test_the_engine_goes_with_the_model_and_comes_back_with_the_next(listener: Listener) -> None:
    listener.engine.load(LoadSettings())
    listener.until_done(Load)
    process = psutil.Process(listener.engine.pid)
    listener.engine.send(Unload())
    assert listener.until_done(Unload)
    assert not process.is_running() and listener.reasons == []
    listener.engine.send(Unload())
    listener.engine.send(Count("a b", "file"))
    assert listener.until_done(Unload)
    listener.until(lambda: Counted(None, "file") in listener.heard)
    listener.engine.send(ListDevices())
    assert listener.until_done(ListDevices)
    listener.engine.load(LoadSettings(), (("q", "r", None),))
    listener.engine.send(Continue())
    assert listener.until_done(Continue) and listener.text == "and more "


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_after_a_crash_the_next_load_starts_a_new_process(listener: Listener) -> None:
    listener.engine.load(LoadSettings())
    listener.until_done(Load)
    first = listener.engine.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    listener.until(lambda: listener.reasons != [])
    assert "SIGKILL" in listener.reasons[0]
    listener.engine.send(Ask("nobody hears this"))
    listener.engine.cancel()
    listener.engine.load(LoadSettings(), (("q", "r"),))
    assert listener.until_done(Restore)
    assert listener.engine.pid not in (None, first)


def test_close_may_be_called_at_any_time_and_twice(qtbot: QtBot) -> None:
    never_started = EngineThread(SCRIPTED)
    never_started.close()
    engine = EngineThread(SCRIPTED)
    engine.start()
    listener = Listener(qtbot, engine)
    engine.load(LoadSettings())
    listener.until_done(Load)
    process = psutil.Process(engine.pid)
    engine.send(Ask("endless-prompt"))
    engine.close()
    engine.close()
    assert not process.is_running() and engine.isFinished()
