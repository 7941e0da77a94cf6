"""The engine process with a real model in it: killed in the midst of an answer, and unloaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from engine.errors import EngineStopped
from engine.events import Answered, Event, LoadSettings, Mode, Tokens
from engine.host import Ask, Continue, Done, EngineClient, Load, Request, Restore, Unload

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

WAIT = 300.0  # seconds; a limit for a test that hangs, not a measurement
MEGABYTE = 1 << 20


@pytest.fixture
def client(tmp_path: Path) -> Iterator[EngineClient]:
    with EngineClient(log_folder=tmp_path / "logs") as client:
        yield client


def events_of(client: EngineClient, request: Request) -> Iterator[Event]:
    client.send(request)
    while not isinstance(message := client.receive(WAIT), Done):
        assert message is not None, "nothing came"
        yield message


def end_of(client: EngineClient, request: Request) -> Answered:
    *_, last = events_of(client, request)
    assert isinstance(last, Answered)
    return last


@pytest.mark.parametrize("with_ids", [True, False])
def test_what_a_killed_process_had_said_is_gone_on_with(
    client: EngineClient, tiny_models: TinyModels, with_ids: bool
) -> None:
    """The rest is what the answer would have been. As text alone, the answer's beginning is tokenised again."""
    settings = LoadSettings(str(tiny_models.wandering), {Mode.DFLASH2: str(tiny_models.wandering_v2)}, 512, threads=1)
    list(events_of(client, Load(settings)))
    first = end_of(client, Ask("first", Mode.DFLASH2, max_tokens=12, draft_length=3))
    whole = end_of(client, Ask("Tell me!", Mode.DFLASH2, max_tokens=40, draft_length=3))
    list(events_of(client, Load(settings, Restore((("first", first.text, first.token_ids),)))))

    ids: tuple[int, ...] = ()
    text = ""
    with pytest.raises(EngineStopped, match="SIGKILL|exit status"):
        for event in events_of(client, Ask("Tell me!", Mode.DFLASH2, max_tokens=40, draft_length=3)):
            if isinstance(event, Tokens) and len(ids) < 6:
                ids, text = ids + event.ids, text + event.text
                if len(ids) >= 6:
                    psutil.Process(client.pid).kill()
        client.send(Ask("for the case that it had ended before it died"))
        while client.receive(WAIT):
            pass
    assert 6 <= len(ids) < len(whole.token_ids)

    client.start()
    told = Restore((("first", first.text, first.token_ids), ("Tell me!", text, ids if with_ids else None)))
    list(events_of(client, Load(settings, told)))
    end = end_of(client, Continue(Mode.DFLASH2, max_tokens=40 - len(ids), draft_length=3))
    assert end.text.startswith(text)
    if with_ids:
        assert end.token_ids == whole.token_ids and end.text == whole.text


def test_unloading_gives_the_memory_back(client: EngineClient, target_file: Path) -> None:
    """Of the whole tree of processes, to within 30 MB of what it was before the engine was there."""
    client.close()
    before = memory_of_the_tree()
    client.start()
    list(events_of(client, Load(LoadSettings(str(target_file), context=2048, threads=1))))
    end_of(client, Ask("Hello!", max_tokens=3))
    assert memory_of_the_tree() > before + 100 * MEGABYTE
    list(events_of(client, Unload()))
    assert memory_of_the_tree() < before + 30 * MEGABYTE


def memory_of_the_tree() -> int:
    this = psutil.Process()
    total = 0
    for process in (this, *this.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total
