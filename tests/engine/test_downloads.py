"""Downloads: whatever happens on the way, a file is whole and right at the end, or not there and the reason is said."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import Cancelled, DownloadError, HubError
from engine.hub import Hub
from engine.remote_model import RemoteFile
from engine.transfer import Progress, Rules, Stop, fetch
from tests.download_trial import trial
from tests.hub_server import HubFile, HubServer

ROOT = Path(__file__).parents[2]
QUICK = Rules(flush_bytes=64 << 10, spare_bytes=1 << 20, waits_s=(0.0, 0.0), lock_s=0.01)
ONE_TRY = Rules(flush_bytes=64 << 10, spare_bytes=1 << 20, waits_s=())
CONTENT = random.Random(0).randbytes(1 << 20)
OTHER = random.Random(1).randbytes(1 << 20)
IN_FLIGHT = 2 << 20  # what sockets hold when a reader goes away


@pytest.fixture
def file(hub_server: HubServer, hub: Hub) -> RemoteFile:
    hub_server.add("a/model", {"m-Q8_0.gguf": CONTENT})
    return hub.repository("a/model").files[0]


def nothing_final(hub: Hub, file: RemoteFile) -> bool:
    return not hub.cache.blob(file).exists() and not os.path.lexists(hub.cache.pointer(file))


def cut_at(hub_server: HubServer, hub: Hub, file: RemoteFile, place: int) -> None:
    """A download that ended there."""
    hub_server.trouble.cuts = [place]
    with pytest.raises(HubError, match="connection"):
        fetch(hub, file, rules=ONE_TRY)


# --- cut, and gone on with --------------------------------------------------------------------------------------------


def test_cut_anywhere_and_by_anything_it_ends_whole_and_little_is_fetched_again() -> None:
    flush = 256 << 10
    ways = ("server", "stop", "server", "stop", "kill")
    result = trial(6 << 20, 10, Rules(flush, 1 << 20), seed=1, ways=ways)
    assert result.whole
    assert {way for way, _ in result.cuts} == {"server", "stop", "kill"} and result.requests >= 10
    assert max(result.twice) <= flush + IN_FLIGHT
    assert max(twice for (way, _), twice in zip(result.cuts, result.twice) if way == "server") == 0


def test_a_connection_that_breaks_is_taken_up_again_by_itself(
    hub_server: HubServer, hub: Hub, file: RemoteFile
) -> None:
    hub_server.trouble.cuts = [100_000, 1, 300_000]
    hub_server.trouble.statuses = [0, 503]
    told: list[Progress] = []
    assert fetch(hub, file, told.append, rules=QUICK).read_bytes() == CONTENT
    assert hub_server.content_bytes() == len(CONTENT)
    assert any("try again" in (progress.notice or "") for progress in told)
    assert told[-1] == Progress("checking", len(CONTENT))


def test_a_connection_that_says_nothing_any_more_is_left(
    hub_server: HubServer, hub: Hub, file: RemoteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.hub_connection.READ_S", 0.2)
    hub_server.trouble.pauses = [100_000]  # and nobody lets it go on
    told: list[Progress] = []
    assert fetch(hub, file, told.append, rules=QUICK).read_bytes() == CONTENT
    assert any("has stopped answering" in (progress.notice or "") for progress in told)


def test_without_a_new_byte_it_gives_up_after_some_tries(hub_server: HubServer, hub: Hub, file: RemoteFile) -> None:
    hub_server.trouble.statuses = [500] * 10
    with pytest.raises(HubError, match="fault of its own"):
        fetch(hub, file, rules=QUICK)
    assert len(hub_server.trouble.statuses) == 10 - 1 - len(QUICK.waits_s)


def test_what_a_power_cut_left_behind_the_last_flush_is_not_trusted(
    hub_server: HubServer, hub: Hub, file: RemoteFile
) -> None:
    cut_at(hub_server, hub, file, 500_000)
    part = hub.cache.part(file)
    record = part.with_name(part.name + ".json")
    kept = json.loads(record.read_text())
    assert kept["flushed"] == 500_000
    record.write_text(json.dumps(kept | {"flushed": 400_000}))
    part.write_bytes(part.read_bytes()[:400_000] + bytes(150_000))
    assert fetch(hub, file, rules=QUICK).read_bytes() == CONTENT
    assert hub_server.requests(f"/{file.sha256}")[-1].headers["range"] == "bytes=400000-"


@pytest.mark.parametrize("record", ["", "[]", '{"flushed": 1e9, "size": 1}', '{"flushed": -1}', '{"flushed": 9999999}'])
def test_a_damaged_record_costs_a_new_start_and_no_more(
    hub_server: HubServer, hub: Hub, file: RemoteFile, record: str
) -> None:
    cut_at(hub_server, hub, file, 500_000)
    part = hub.cache.part(file)
    part.with_name(part.name + ".json").write_text(record)
    assert fetch(hub, file, rules=QUICK).read_bytes() == CONTENT


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_a_pull_and_the_same_command_goes_on(hub_server: HubServer, hub: Hub, file: RemoteFile) -> None:
    hub_server.trouble.pauses = [500_000]
    program = [sys.executable, "-m", "engine", "models", "pull", "a/model"]
    process = subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert hub_server.paused.wait(30)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    hub_server.go_on.set()
    assert (process.returncode, out, err) == (130, "", "Stopped; the same command goes on from here.\n")
    assert 0 < hub.cache.part(file).stat().st_size <= 500_000 and nothing_final(hub, file)
    assert fetch(hub, file, rules=QUICK).read_bytes() == CONTENT


# --- servers that misbehave -------------------------------------------------------------------------------------------


def test_a_server_that_ignores_ranges_is_told_and_begins_again(
    hub_server: HubServer, hub: Hub, file: RemoteFile
) -> None:
    cut_at(hub_server, hub, file, 300_000)
    hub_server.trouble.ignore_ranges = True
    told: list[Progress] = []
    assert fetch(hub, file, told.append, rules=QUICK).read_bytes() == CONTENT
    assert any("cannot go on in the middle" in (progress.notice or "") for progress in told)
    assert hub_server.requests(f"/{file.sha256}")[-1].sent == len(CONTENT)


def test_a_file_that_changed_on_the_hub_is_not_mixed(hub_server: HubServer, hub: Hub, file: RemoteFile) -> None:
    cut_at(hub_server, hub, file, 300_000)
    hub_server.repositories["a/model"].files["m-Q8_0.gguf"] = HubFile(OTHER)
    with pytest.raises(DownloadError, match="has changed on the Hub since it was looked up"):
        fetch(hub, file, rules=QUICK)
    assert nothing_final(hub, file)
    again = hub.repository("a/model").files[0]
    assert fetch(hub, again, rules=QUICK).read_bytes() == OTHER


def test_a_content_that_changes_behind_the_hubs_back_is_begun_again_and_never_used(
    hub_server: HubServer, hub: Hub, file: RemoteFile
) -> None:
    cut_at(hub_server, hub, file, 300_000)
    hub_server.repositories["a/model"].files["m-Q8_0.gguf"].served = OTHER
    told: list[Progress] = []
    with pytest.raises(DownloadError, match="SHA-256 is another.*thrown away"):
        fetch(hub, file, told.append, rules=QUICK)
    assert any("has changed on the server" in (progress.notice or "") for progress in told)
    assert nothing_final(hub, file) and not hub.cache.part(file).exists()
    hub_server.repositories["a/model"].files["m-Q8_0.gguf"].served = None
    assert fetch(hub, file, rules=QUICK).read_bytes() == CONTENT


def test_ranges_that_are_not_those_asked_for_are_not_mixed_in(
    hub_server: HubServer, hub: Hub, file: RemoteFile
) -> None:
    hub_server.trouble.wrong_range = True
    with pytest.raises(HubError, match="another part of m-Q8_0.gguf than was asked for"):
        fetch(hub, file, rules=QUICK)
    assert nothing_final(hub, file)


def test_bytes_too_many_and_a_server_without_etags(hub_server: HubServer, hub: Hub, file: RemoteFile) -> None:
    hub_server.trouble.extra = b"more"
    hub_server.trouble.no_etag = True
    hub_server.trouble.cuts = [500_000]
    assert fetch(hub, file, rules=QUICK).read_bytes() == CONTENT


# --- the disk ---------------------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
from engine.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
sys.exit(main(["models", "pull", "a/model"]))
"""
NOT_ALLOWED = """
import os, sys
from engine.errors import DownloadError
from engine.hub import Hub
from engine.transfer import fetch
hub = Hub()
first, second = hub.repository("a/two").files
fetch(hub, first)
if os.geteuid() == 0:
    os.setuid(65534)
try:
    fetch(hub, second)
except DownloadError as error:
    print(error)
"""


def child(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_full_disk_is_a_sentence_and_what_was_fetched_is_gone_on_with(
    hub_server: HubServer, hub: Hub, file: RemoteFile
) -> None:
    ran = child(LIMITED)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("The disk is full") and ran.stderr.count("\n") == 1
    assert nothing_final(hub, file) and hub.cache.part(file).stat().st_size == 600_000
    assert fetch(hub, file, rules=QUICK).read_bytes() == CONTENT


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_folder_that_may_not_be_written_is_a_sentence(hub_server: HubServer, hub: Hub) -> None:
    hub_server.add("a/two", {"first.gguf": b"1" * 100, "second.gguf": b"2" * 100})
    first, second = hub.repository("a/two").files
    fetch(hub, first)
    folder = hub.cache.blob(first).parent
    folder.chmod(0o555)
    try:
        said = child(NOT_ALLOWED)
    finally:
        folder.chmod(0o755)
    assert "cannot be written by this user; change its permissions" in said.stdout, said.stderr
    assert nothing_final(hub, second)


@pytest.mark.parametrize(("claims", "said"), [(1 << 60, "which no file has"), (1 << 45, "too little room.*35.2 TB")])
def test_sizes_that_no_disk_has(hub_server: HubServer, hub: Hub, claims: int, said: str) -> None:
    hub_server.add("a/model", {"m.gguf": HubFile(CONTENT, claims=claims)})
    with pytest.raises(DownloadError, match=said):
        fetch(hub, hub.repository("a/model").files[0], rules=QUICK)
    assert hub_server.content_bytes() == 0


def test_a_folder_that_is_none(hub_server: HubServer, file: RemoteFile, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with pytest.raises(DownloadError, match="cannot be written into"):
        fetch(Hub(cache=tmp_path / "plain" / "hub"), file, rules=QUICK)


# --- beside other downloads and programs ------------------------------------------------------------------------------


def test_two_at_once_fetch_one_file_once(hub_server: HubServer, hub: Hub, file: RemoteFile) -> None:
    hub_server.trouble.pauses = [100_000]
    paths: list[Path] = []
    first = threading.Thread(target=lambda: paths.append(fetch(hub, file, rules=QUICK)))
    first.start()
    assert hub_server.paused.wait(30)
    waiting = threading.Event()

    def told(progress: Progress) -> None:
        if progress.phase == "waiting":
            waiting.set()

    second = threading.Thread(target=lambda: paths.append(fetch(Hub(), file, told, rules=QUICK)))
    second.start()
    assert waiting.wait(30)
    hub_server.go_on.set()
    first.join()
    second.join()
    assert paths[0] == paths[1] and paths[0].read_bytes() == CONTENT
    assert hub_server.content_bytes() == len(CONTENT)


def test_one_that_waits_for_another_can_be_stopped(hub_server: HubServer, hub: Hub, file: RemoteFile) -> None:
    import filelock

    lock = hub.cache.lock(file)
    lock.parent.mkdir(parents=True)
    stop = Stop()
    with filelock.FileLock(lock), pytest.raises(Cancelled):
        fetch(hub, file, lambda progress: stop.set() if progress.phase == "waiting" else None, stop, QUICK)


def test_the_same_name_from_two_repositories(hub_server: HubServer, hub: Hub, file: RemoteFile) -> None:
    hub_server.add("b/model", {"m-Q8_0.gguf": OTHER})
    mine, theirs = fetch(hub, file), fetch(hub, hub.repository("b/model").files[0])
    assert mine.name == theirs.name
    assert (mine.read_bytes(), theirs.read_bytes()) == (CONTENT, OTHER)
    assert [repository for repository, _ in hub.cache.models()] == ["a/model", "b/model"]


def test_the_cache_is_the_one_of_huggingface_hub_in_both_directions(
    hub_server: HubServer, hub: Hub, file: RemoteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import hf_hub_download, scan_cache_dir, try_to_load_from_cache

    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)  # its thread would outlive the test
    hub_server.add("b/theirs", {"x.gguf": OTHER})
    theirs = hf_hub_download("b/theirs", "x.gguf", cache_dir=hub.cache.folder, endpoint=hub.endpoint, token=False)
    sent = hub_server.content_bytes()
    assert str(fetch(hub, hub.repository("b/theirs").files[0])) == theirs
    assert hub_server.content_bytes() == sent
    cut_at(hub_server, hub, file, 1000)
    mine = fetch(hub, file)
    assert try_to_load_from_cache("a/model", "m-Q8_0.gguf", cache_dir=hub.cache.folder) == str(mine)
    scanned = scan_cache_dir(hub.cache.folder)
    assert not scanned.warnings and {repo.repo_id for repo in scanned.repos} == {"a/model", "b/theirs"}
    assert scanned.size_on_disk == len(CONTENT) + len(OTHER)


def test_a_file_that_is_there_is_neither_fetched_nor_touched(hub_server: HubServer, hub: Hub, file: RemoteFile) -> None:
    path = fetch(hub, file)
    written = path.stat().st_mtime_ns
    seen = len(hub_server.seen)
    assert fetch(hub, file) == path and path.stat().st_mtime_ns == written
    path.unlink()  # the name alone is gone: the content is still there
    assert fetch(hub, file) == path and path.read_bytes() == CONTENT
    assert len(hub_server.seen) == seen


def test_removing_gives_the_room_back(hub_server: HubServer, hub: Hub, file: RemoteFile) -> None:
    from huggingface_hub import scan_cache_dir

    path = fetch(hub, file)
    with pytest.raises(OSError, match="not in the Hub cache"):
        hub.cache.remove(ROOT / "README.md")
    other = hub.cache.link(replace(file, commit="b" * 40))  # another commit with the same content
    assert hub.cache.remove(other) == 0 and path.read_bytes() == CONTENT
    assert hub.cache.remove(path) == len(CONTENT)
    assert nothing_final(hub, file) and list(hub.cache.models()) == []
    assert not scan_cache_dir(hub.cache.folder).warnings  # huggingface-hub finds nothing amiss


def test_where_there_are_no_links_the_file_itself_is_there(hub_server: HubServer, hub: Hub, file: RemoteFile) -> None:
    path = fetch(hub, file)
    os.replace(hub.cache.blob(file), path)
    assert fetch(hub, file) == path and not path.is_symlink()
    assert [found for _, found in hub.cache.models()] == [path]
    assert hub.cache.remove(path) == len(CONTENT) and nothing_final(hub, file)
