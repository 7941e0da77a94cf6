"""The queue of downloads: what it tells, what a user can do with it, and that its list outlives the program."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.downloads import Download, DownloadQueue, State, _Rate
from engine.hub import Hub
from engine.remote_model import RemoteFile, RemoteModel
from engine.transfer import Rules, size_text
from tests.hub_server import TOKEN, HubServer

QUICK = Rules(flush_bytes=64 << 10, spare_bytes=1 << 20, waits_s=(0.0, 0.0), lock_s=0.01)
CONTENT = random.Random(0).randbytes(1 << 20)
IN_FLIGHT = 2 << 20  # what sockets hold when a reader goes away


@pytest.fixture
def file(hub_server: HubServer, hub: Hub) -> RemoteFile:
    hub_server.add("a/model", {"m-Q8_0.gguf": CONTENT})
    return hub.repository("a/model").files[0]


class Watched:
    """A queue and all that it tells."""

    def __init__(self, hub: Hub, **options: object) -> None:
        self.told: list[Download] = []
        self.queue = DownloadQueue(hub, rules=QUICK, **options)  # type: ignore[arg-type]
        self.queue.subscribe(self.told.append)

    def states(self, id: str) -> list[State]:
        states = [download.state for download in self.told if download.id == id]
        return [state for place, state in enumerate(states) if not place or states[place - 1] is not state]


@pytest.fixture
def watched(hub_server: HubServer, hub: Hub) -> Iterator[Callable[..., Watched]]:
    made: list[Watched] = []

    def make(**options: object) -> Watched:
        made.append(Watched(hub, **options))
        return made[-1]

    yield make
    hub_server.go_on.set()
    for one in made:
        one.queue.close()


def model_of(hub: Hub, repository: str = "a/model") -> RemoteModel:
    return hub.repository(repository).models[0]


def test_a_split_model_is_one_download(hub_server: HubServer, hub: Hub, watched: Callable[..., Watched]) -> None:
    parts = {f"big-0000{number}-of-00002.gguf": CONTENT[: 300_000 * number] for number in (1, 2)}
    hub_server.add("a/model", parts)
    one = watched()
    id = one.queue.add(model_of(hub))
    done = one.queue.wait(id, 30)
    assert done is not None and (done.state, done.done, done.total) == (State.DONE, 900_000, 900_000)
    assert done.path is not None and done.path.endswith("big-00001-of-00002.gguf")
    amounts = [download.done for download in one.told]
    assert amounts == sorted(amounts) and one.told[-1].fraction == 1
    assert all(Path(done.path).with_name(name).read_bytes() == data for name, data in parts.items())


def test_pause_resume_and_cancel(
    hub_server: HubServer, hub: Hub, file: RemoteFile, watched: Callable[..., Watched]
) -> None:
    one = watched()
    hub_server.trouble.pauses = [500_000]
    id = one.queue.add(model_of(hub))
    assert hub_server.paused.wait(30)
    one.queue.pause(id)  # while the server says nothing: it must not wait for the next byte
    paused = one.queue.wait(id, 30)
    assert paused is not None and paused.state is State.PAUSED and 0 < paused.done <= 500_000
    hub_server.go_on.set()
    one.queue.resume(id)
    done = one.queue.wait(id, 30)
    assert done is not None and done.state is State.DONE
    assert one.states(id) == [
        State.WAITING, State.RUNNING, State.PAUSED, State.WAITING, State.RUNNING, State.CHECKING, State.DONE,
    ]  # fmt: skip
    assert hub_server.content_bytes() <= len(CONTENT) + QUICK.flush_bytes + IN_FLIGHT


def test_the_last_figure_is_told_when_no_more_comes(
    hub_server: HubServer, hub: Hub, file: RemoteFile, watched: Callable[..., Watched]
) -> None:
    one, came = watched(), threading.Event()

    def listen(download: Download) -> None:
        if download.done == 700_000:
            came.set()

    one.queue.subscribe(listen)
    hub_server.trouble.pauses = [700_000]
    one.queue.add(model_of(hub))
    assert came.wait(10), [download.done for download in one.told]


def test_what_is_cancelled_stays_so_when_the_program_ends_at_once(
    hub_server: HubServer, hub: Hub, file: RemoteFile, watched: Callable[..., Watched], tmp_path: Path
) -> None:
    record = tmp_path / "downloads.json"
    queue = watched(record=record).queue
    hub_server.trouble.pauses = [200_000]
    id = queue.add(model_of(hub))
    assert hub_server.paused.wait(30)
    thread = queue._thread
    assert thread is not None
    with queue._changed:  # so that the transfer cannot end before the program does
        queue.cancel(id)
        thread.join = lambda timeout=None: queue.wait(id, 30)  # type: ignore
        queue.close()
    threading.Thread.join(thread, 30)
    now = queue.get(id)
    assert now is not None and now.state is State.CANCELLED
    assert watched(record=record).queue.downloads() == ()


def test_of_what_was_removed_no_more_is_told(
    hub_server: HubServer, hub: Hub, file: RemoteFile, watched: Callable[..., Watched]
) -> None:
    one = watched()
    hub_server.trouble.pauses = [200_000]
    id = one.queue.add(model_of(hub))
    assert hub_server.paused.wait(30)
    with one.queue._changed:  # so that the transfer has not ended yet
        one.queue.cancel(id, discarded=True)
        one.queue.remove(id)
        told = len(one.told)
    one.queue.close()
    assert len(one.told) == told and not hub.cache.part(file).exists()


def test_cancelled_it_goes_on_another_time_unless_discarded(
    hub_server: HubServer, hub: Hub, file: RemoteFile, watched: Callable[..., Watched]
) -> None:
    one = watched()
    for discarded, left in ((False, True), (True, False)):
        hub_server.paused.clear()
        hub_server.go_on.clear()
        hub_server.trouble.pauses = [300_000]
        id = one.queue.add(model_of(hub))
        assert hub_server.paused.wait(30)
        one.queue.cancel(id, discarded=discarded)
        now = one.queue.wait(id, 30)
        assert now is not None and now.state is State.CANCELLED
        assert hub.cache.part(file).exists() is left
        hub_server.go_on.set()
    one.queue.remove(id)
    assert one.queue.downloads() == ()


def test_they_are_fetched_in_their_order_and_one_can_go_first(
    hub_server: HubServer, hub: Hub, file: RemoteFile, watched: Callable[..., Watched]
) -> None:
    for name in ("b", "c"):
        hub_server.add(f"{name}/model", {"m.gguf": name.encode()})
    one = watched()
    hub_server.trouble.pauses = [100_000]
    first = one.queue.add(model_of(hub))
    assert hub_server.paused.wait(30)
    second, third = one.queue.add(model_of(hub, "b/model")), one.queue.add(model_of(hub, "c/model"), first=True)
    assert one.queue.add(model_of(hub)) == first  # is under way
    hub_server.go_on.set()
    for id in (first, second, third):
        one.queue.wait(id, 30)
    ended = [download.id for download in one.told if download.state is State.DONE]
    assert ended == [first, third, second]


def test_a_failure_says_why_and_where_to_go_and_can_be_resumed(
    hub_server: HubServer, hub: Hub, watched: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_server.add("a/model", {"m.gguf": CONTENT}, gated=True)
    one = watched()
    id = one.queue.add(model_of(hub))
    failed = one.queue.wait(id, 30)
    assert failed is not None and (failed.state, failed.error_kind) == (State.FAILED, "gated")
    assert "a/model is gated" in (failed.sentence or "") and failed.link == f"{hub_server.url}/a/model"
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    one.queue.resume(id)
    done = one.queue.wait(id, 30)
    assert done is not None and (done.state, done.sentence, done.link) == (State.DONE, None, None)


def test_the_list_survives_the_programs_end(
    hub_server: HubServer, hub: Hub, file: RemoteFile, watched: Callable[..., Watched], tmp_path: Path
) -> None:
    record = tmp_path / "downloads.json"
    hub_server.trouble.pauses = [200_000]
    first = watched(record=record)
    id = first.queue.add(model_of(hub))
    assert hub_server.paused.wait(30)
    first.queue.close()
    hub_server.go_on.set()
    (left,) = watched(record=record).queue.downloads()
    assert (left.id, left.state) == (id, State.PAUSED) and 0 < left.done <= 200_000
    third = watched(record=record, resume=True)
    done = third.queue.wait(id, 30)
    assert done is not None and done.state is State.DONE
    third.queue.close()
    assert watched(record=record).queue.downloads() == ()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"downloads": 3}', '{"downloads": [{"files": [], "state": "paused"}, {"files": [{}]}, 7]}']
)
def test_a_damaged_list_is_an_empty_one(hub: Hub, watched: Callable[..., Watched], tmp_path: Path, text: str) -> None:
    record = tmp_path / "downloads.json"
    record.write_text(text)
    assert watched(record=record).queue.downloads() == ()


def test_a_list_that_leads_out_of_the_folder_is_not_followed(
    hub: Hub, file: RemoteFile, watched: Callable[..., Watched], tmp_path: Path
) -> None:
    record = tmp_path / "downloads.json"
    kept = {"repository": "a/model", "name": "../../evil.gguf", "size": 1, "commit": "a" * 40, "blob": "b" * 64}
    record.write_text(json.dumps({"downloads": [{"files": [kept], "state": "waiting"}]}))
    assert watched(record=record, resume=True).queue.downloads() == ()


def test_speed_is_that_of_the_last_seconds() -> None:
    rate = _Rate()
    assert rate.per_second(0) is None
    for second in range(20):
        rate.add(second, 1000 * second if second < 10 else 10_000 + 3000 * (second - 10))
    assert rate.per_second(19) == 3000
    assert rate.per_second(30) is None, "nothing has come for a long time"
    rate.add(20, 0)  # begun again
    assert rate.per_second(20) is None
    rate.add(21, 500)
    assert rate.per_second(21) == 500


def test_sizes_are_for_people() -> None:
    sizes = [0, 999, 1000, 45_600, 1_234_567, 999_999_999, 1_143_006_752, 2**45]
    assert [size_text(size) for size in sizes] == [
        "0 bytes", "999 bytes", "1 kB", "46 kB", "1.2 MB", "1000 MB", "1.1 GB", "35.2 TB",
    ]  # fmt: skip
