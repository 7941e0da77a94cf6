"""The engine process and its client, with a scripted session where the process itself is under test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engine.errors import EngineStopped
from engine.events import (
    Answered,
    Counted,
    DevicesListed,
    Event,
    Failed,
    Loaded,
    LoadProgress,
    LoadSettings,
    Mode,
    PromptProgress,
    StopReason,
    Tokens,
)
from engine.host import (
    Ask,
    Cancel,
    Continue,
    Count,
    Done,
    EngineClient,
    ListDevices,
    Load,
    Request,
    Reset,
    Restore,
    Rewind,
    Unload,
)

SCRIPTED = "tests.scripted_session:ScriptedSession.open"
WAIT = 300.0  # seconds; a limit for a test that hangs, not a measurement

posix_only = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[EngineClient]:
    with EngineClient(SCRIPTED, tmp_path / "logs") as client:
        yield client


def receive(client: EngineClient) -> Event | Done:
    message = client.receive(WAIT)
    assert message is not None, "nothing came"
    return message


def carry_out(client: EngineClient, request: Request) -> list[Event]:
    """Every event of one request."""
    client.send(request)
    return events_until_done(client, request)


def events_until_done(client: EngineClient, request: Request) -> list[Event]:
    events: list[Event] = []
    while not isinstance(message := receive(client), Done):
        events.append(message)
    assert message.request == request
    return events


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Tokens))


def receive_until_stopped(client: EngineClient) -> tuple[list[Event | Done], str]:
    messages: list[Event | Done] = []
    with pytest.raises(EngineStopped) as stopped:
        while True:
            messages.append(receive(client))
    return messages, str(stopped.value)


def test_a_load_reports_progress_and_ends_with_loaded(client: EngineClient) -> None:
    *progress, loaded = carry_out(client, Load(LoadSettings(context=2048)))
    assert progress and all(isinstance(event, LoadProgress) for event in progress)
    assert isinstance(loaded, Loaded)
    assert loaded.target.context_served == 2048
    assert [info.mode for info in loaded.modes] == list(Mode)


def test_answers_come_in_order_and_the_session_remembers(client: EngineClient) -> None:
    carry_out(client, Load())
    events = carry_out(client, Ask("say a b c", Mode.DFLASH))
    assert text_of(events) == "a b c "
    assert isinstance(events[-1], Answered) and events[-1].text == "a b c "
    assert events[-1].statistics.mode is Mode.DFLASH
    carry_out(client, Ask("say d"))
    assert text_of(carry_out(client, Ask("history"))) == "say a b c=a b c ;say d=d ;"
    carry_out(client, Rewind(1))
    assert text_of(carry_out(client, Ask("history"))) == "say a b c=a b c ;"
    carry_out(client, Restore((("q", "r"),)))
    assert text_of(carry_out(client, Ask("history"))) == "q=r;"
    carry_out(client, Reset())
    assert text_of(carry_out(client, Ask("history"))) == ""


def test_requests_sent_together_are_carried_out_one_after_another(client: EngineClient) -> None:
    requests: list[Request] = [Load(), Ask("say a"), Reset(), Ask("history"), Unload()]
    for request in requests:
        client.send(request)
    assert [client.current for request in requests if events_until_done(client, request) is not None][-1] is None


def test_a_failure_belongs_to_the_request_that_is_current(client: EngineClient) -> None:
    client.send(Load())
    client.send(Ask("refuse"))
    client.send(Ask("say still here"))
    events_until_done(client, Load())
    failed = receive(client)
    assert isinstance(failed, Failed) and failed.kind == "PromptError"
    assert failed.sentence == "The prompt is not to the script's liking; write another."
    assert client.current == Ask("refuse")
    assert receive(client) == Done(Ask("refuse"))
    assert text_of(events_until_done(client, Ask("say still here"))) == "still here "


@pytest.mark.parametrize(
    ("request_", "kind", "part"),
    [
        (Load(LoadSettings(target="missing")), "ModelFileError", "missing.gguf does not exist"),
        (Ask("say a"), "DFlashChatError", "No model is loaded"),
        (Restore(()), "DFlashChatError", "No model is loaded"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    client: EngineClient, request_: Request, kind: str, part: str
) -> None:
    (failed,) = [event for event in carry_out(client, request_) if isinstance(event, Failed)]
    assert failed.kind == kind and part in failed.sentence and failed.detail


def test_an_unexpected_error_leaves_the_process_alive(client: EngineClient) -> None:
    carry_out(client, Load())
    (failed,) = carry_out(client, Ask("bug"))
    assert isinstance(failed, Failed) and "ZeroDivisionError" in failed.sentence and "Traceback" in failed.detail
    assert text_of(carry_out(client, Ask("say on"))) == "on "


def test_cancel_reaches_a_running_load(client: EngineClient) -> None:
    client.send(Load(LoadSettings(target="slow")))
    assert receive(client) == LoadProgress("target", 0.0)
    client.send(Cancel())
    (failed,) = events_until_done(client, Load(LoadSettings(target="slow")))
    assert isinstance(failed, Failed) and failed.kind == "Cancelled"
    assert isinstance(carry_out(client, Load())[-1], Loaded)


def test_cancel_reaches_a_running_answer_and_only_that(client: EngineClient) -> None:
    carry_out(client, Load())
    client.send(Ask("endless-prompt"))
    assert receive(client) == PromptProgress(1, 1000)
    client.send(Cancel())
    answered = events_until_done(client, Ask("endless-prompt"))[-1]
    assert isinstance(answered, Answered) and answered.statistics.stop_reason is StopReason.CANCELLED
    assert text_of(carry_out(client, Ask("say next"))) == "next "


def test_cancel_also_reaches_what_has_not_begun(client: EngineClient) -> None:
    carry_out(client, Load())
    for request in (Ask("endless-prompt"), Ask("endless-prompt again"), Cancel()):
        client.send(request)
    for request in (Ask("endless-prompt"), Ask("endless-prompt again")):
        answered = events_until_done(client, request)[-1]
        assert isinstance(answered, Answered) and answered.statistics.stop_reason is StopReason.CANCELLED


def test_of_two_chats_the_waiting_one_is_cancelled_alone(client: EngineClient) -> None:
    """Then the running one, then the waiting one while it runs."""
    carry_out(client, Load())
    for stopped in ("b", "a"):
        requests: list[Request] = [
            Ask("endless-prompt", tag="a"),
            Restore((("q", "r"),)),
            Ask("endless-prompt", tag="b"),
        ]
        for request in requests:
            client.send(request)
        assert receive(client) == PromptProgress(1, 1000) and client.current == requests[0]
        client.send(Cancel("nobody"))
        client.send(Cancel(stopped))
        if stopped == "b":
            client.send(Count("x"))  # answered after the cancels were read
            assert receive(client) == Counted(1) and client.receive(0) is None, "the first one runs on"
            client.send(Cancel("a"))
        for request in requests[:2]:
            events_until_done(client, request)
        assert client.current == requests[2]
        if stopped == "a":
            assert receive(client) == PromptProgress(1, 1000)
            client.send(Cancel("b"))
        answered = events_until_done(client, requests[2])[-1]
        assert isinstance(answered, Answered) and answered.statistics.stop_reason is StopReason.CANCELLED


def test_an_answer_is_continued(client: EngineClient) -> None:
    carry_out(client, Load(LoadSettings(), Restore((("q", "r ", (1, 2)),), "Be brief.")))
    events = carry_out(client, Continue(candidates=True))
    assert text_of(events) == "and more " and isinstance(events[-1], Answered) and events[-1].text == "r and more "
    assert [event.candidates != () for event in events if isinstance(event, Tokens)] == [True, True]
    assert text_of(carry_out(client, Ask("history"))) == "q=r and more ;"


def test_tokens_are_counted_while_an_answer_runs(client: EngineClient) -> None:
    client.send(Count("a b c", "before"))
    assert receive(client) == Counted(None, "before"), "no model is loaded yet"
    carry_out(client, Load())
    client.send(Count("raise", "a bug"))
    assert receive(client) == Counted(None, "a bug"), "whatever happens, it is answered"
    client.send(Ask("endless-prompt"))
    assert receive(client) == PromptProgress(1, 1000)
    client.send(Count("a b c", "meanwhile"))
    assert receive(client) == Counted(3, "meanwhile")
    assert client.current == Ask("endless-prompt")
    client.send(Cancel())
    events_until_done(client, Ask("endless-prompt"))


def test_devices_are_listed_without_a_model(client: EngineClient) -> None:
    (listed,) = carry_out(client, ListDevices())
    assert isinstance(listed, DevicesListed) and listed.devices[-1].kind == "cpu"


def test_unloading_ends_the_process_unless_more_was_asked_for(client: EngineClient) -> None:
    carry_out(client, Load())
    process = psutil.Process(client.pid)
    client.send(Unload())
    client.send(Ask("say a"))
    client.send(Load())
    events_until_done(client, Unload())
    events_until_done(client, Ask("say a"))
    events_until_done(client, Load())
    carry_out(client, Unload())
    assert not process.is_running() and client.pid is None and client.exit_reason is None
    client.start()
    carry_out(client, Load())


def test_what_is_printed_goes_to_the_log_and_not_into_the_pipe(client: EngineClient) -> None:
    carry_out(client, Load())
    assert text_of(carry_out(client, Ask("print"))) == "one two three four five six "
    log_file = client.log_file
    assert log_file is not None
    client.close(patience=WAIT)  # C's stdout is a file, so its buffer is written when the process ends
    log = log_file.read_text()
    assert "a line from Python" in log and "a line from C" in log and "session closed" in log


def test_close_leaves_no_process_behind_even_in_the_middle_of_a_flood(client: EngineClient) -> None:
    carry_out(client, Load())
    client.send(Ask("flood"))
    receive(client)  # from here on the child fills the pipe and blocks
    process = psutil.Process(client.pid)
    client.close()
    assert not process.is_running() and client.pid is None and not client.is_alive
    with pytest.raises(EngineStopped):
        client.send(Load())


def test_close_ends_a_process_that_cannot_answer(client: EngineClient) -> None:
    carry_out(client, Load())
    process = psutil.Process(client.pid)
    process.suspend()
    client.close(patience=0.0)
    assert not process.is_running()


@posix_only
def test_a_killed_process_says_so_and_can_be_started_again(client: EngineClient) -> None:
    carry_out(client, Load())
    client.send(Ask("hang"))
    text = ""
    while not isinstance(message := receive(client), Tokens) or (text := text + message.text) != "one two three four ":
        pass
    assert client.pid is not None
    os.kill(client.pid, signal.SIGKILL)
    _, reason = receive_until_stopped(client)
    assert "SIGKILL" in reason and "memory" in reason
    assert client.exit_reason == reason and not client.is_alive
    with pytest.raises(EngineStopped, match="SIGKILL"):
        client.send(Ask("say more"))
    client.start()
    carry_out(client, Load())
    carry_out(client, Restore((("hang", text),)))
    assert text_of(carry_out(client, Ask("history"))) == "hang=one two three four ;"


@posix_only
@pytest.mark.parametrize(
    ("how", "parts"),
    [
        ("SIGABRT", ("SIGABRT", "ggml.c:1: GGML_ASSERT(scripted) failed")),
        ("SIGSEGV", ("SIGSEGV", "GGML_ASSERT(scripted)")),
        ("SIGTERM", ("ended from outside", "SIGTERM")),
        ("exit", ("exit status 3", "GGML_ASSERT(scripted)")),
    ],
)
def test_a_crash_gives_every_event_that_left_and_then_the_reason(
    client: EngineClient, how: str, parts: tuple[str, str]
) -> None:
    carry_out(client, Load())
    client.send(Ask(f"die {how}"))
    messages, reason = receive_until_stopped(client)
    assert all(part in reason for part in parts), reason
    assert "".join(message.text for message in messages if isinstance(message, Tokens)) == "one two three four "
    assert not any(isinstance(message, (Answered, Failed)) for message in messages)


ORPHAN = """
import os, signal, sys
from pathlib import Path
from engine.host import Ask, EngineClient, Load
if __name__ == "__main__":
    client = EngineClient("tests.scripted_session:ScriptedSession.open", Path(sys.argv[1]))
    client.start()
    client.send(Load())
    client.send(Ask("endless-prompt"))
    while type(client.receive()).__name__ != "PromptProgress":
        pass
    print(client.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@posix_only
def test_the_process_ends_with_its_parent_even_in_the_middle_of_an_answer(tmp_path: Path) -> None:
    program = tmp_path / "orphan.py"
    program.write_text(ORPHAN)
    root = Path(__file__).parents[2]
    parent = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    with parent.stdout:
        engine = int(parent.stdout.readline())
        child = psutil.Process(engine) if psutil.pid_exists(engine) else None
    parent.wait(WAIT)
    if child is not None:
        child.wait(WAIT)
    assert not psutil.pid_exists(engine)


def test_logs_do_not_pile_up(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"engine-{number}.log").write_text("")
    with EngineClient(SCRIPTED, tmp_path) as client:
        carry_out(client, Load())
        assert client.log_file is not None and client.log_file.exists()
        assert len(list(tmp_path.glob("*.log"))) == 10


def test_a_log_folder_that_cannot_be_made_does_not_stop_the_engine(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with EngineClient(SCRIPTED, tmp_path / "file" / "logs") as client:
        assert isinstance(carry_out(client, Load())[-1], Loaded)
        log_file = client.log_file
    assert log_file is not None
    log_file.unlink()
