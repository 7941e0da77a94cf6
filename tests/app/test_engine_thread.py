"""The thread that owns the engine process, with the scripted session."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import psutil
import pytest
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from engine.events import Answered, Failed, Loaded, LoadSettings, Tokens
from engine.host import Ask, Load, Request, Restore, Rewind
from tests.app.conftest import SCRIPTED, WAIT_MS


class Listener:
    """Keeps what the thread says, in order."""

    def __init__(self, qtbot: QtBot, engine: EngineThread) -> None:
        self.bot, self.engine = qtbot, engine
        self.heard: list[object] = []
        self.failures: list[tuple[Request | None, Failed]] = []
        engine.received.connect(self.heard.append)
        engine.failed.connect(lambda request, failed: self.failures.append((request, failed)))
        engine.stopped.connect(self.heard.append)

    def until_done(self, request: type) -> bool:
        """Wait for the end of a request of that kind; whether it went well."""
        blocker = self.bot.waitSignal(
            self.engine.done, timeout=WAIT_MS, check_params_cb=lambda done, _well: isinstance(done, request)
        )
        blocker.wait()
        assert blocker.args is not None
        return bool(blocker.args[1])

    def until_stopped(self) -> str:
        blocker = self.bot.waitSignal(self.engine.stopped, timeout=WAIT_MS)
        blocker.wait()
        assert blocker.args is not None
        return str(blocker.args[0])

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
    assert [request for request, _failed in listener.failures] == [Load(LoadSettings(target="missing"))]
    listener.engine.load(LoadSettings())
    assert listener.until_done(Load)


def test_cancel_reaches_a_load(listener: Listener) -> None:
    with listener.bot.waitSignal(listener.engine.received, timeout=WAIT_MS):
        listener.engine.load(LoadSettings(target="slow"))
    listener.engine.cancel()
    assert not listener.until_done(Load)


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_after_a_crash_the_next_load_starts_a_new_process(listener: Listener) -> None:
    listener.engine.load(LoadSettings())
    listener.until_done(Load)
    first = listener.engine.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert "SIGKILL" in listener.until_stopped()
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
