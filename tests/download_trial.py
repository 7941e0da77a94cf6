"""Cuts a download at random places, by the server, by a stop and by kill -9, and counts what is transferred twice.

    python -m tests.download_trial [--megabytes 200] [--cuts 30] [--seed 0]

A trial of its own, since it takes a while; the tests run it with a few megabytes. After every cut the download goes on,
sometimes in this process and sometimes in one of its own; at the end its SHA-256 must be right.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from engine.errors import Cancelled, HubError
from engine.hub import Hub
from engine.hub_cache import content_is
from engine.remote_model import RemoteFile
from engine.transfer import Rules, Stop, fetch
from tests.hub_server import HubServer

ROOT = Path(__file__).parents[1]
REPOSITORY, NAME = "trial/model-GGUF", "model-Q4_0.gguf"
WAYS = ("server", "stop", "kill")


@dataclass(frozen=True)
class Result:
    size: int
    cuts: list[tuple[str, int]]  # the way, and where in the file
    twice: list[int]  # bytes that went out again after each cut
    whole: bool  # the right SHA-256 at the end
    requests: int
    seconds: float


def trial(size: int, cuts: int, rules: Rules, seed: int = 0, ways: tuple[str, ...] = WAYS) -> Result:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="download-trial-") as folder, HubServer() as server:
        content = Path(folder) / "content"
        with content.open("wb") as out:
            for at in range(0, size, 1 << 20):
                out.write(chance.randbytes(min(1 << 20, size - at)))
        server.add(REPOSITORY, {NAME: content})
        hub = Hub(server.url, Path(folder) / "hub")
        file = hub.repository(REPOSITORY).files[0]
        places = sorted(chance.sample(range(1, size), cuts))
        kinds = [ways[number % len(ways)] for number in range(cuts)]
        chance.shuffle(kinds)
        planned = list(zip(kinds, places))
        began = time.monotonic()
        for way, place in planned:
            _until(way, place, server, hub, file, rules)
        path = fetch(hub, file, rules=rules)
        seconds = time.monotonic() - began
        with path.open("rb") as data:
            whole = content_is(file, data, lambda _done: None, lambda: None)
        contents = [seen for seen in server.seen if seen.host == "second"]
        starts = [int(seen.headers["range"].removeprefix("bytes=").split("-")[0]) for seen in contents]
        ends = [start + seen.sent for start, seen in zip(starts, contents)]
        twice = [end - start for end, start in zip(ends, starts[1:])]
        return Result(size, planned, twice, whole, len(contents), seconds)


def _until(way: str, place: int, server: HubServer, hub: Hub, file: RemoteFile, rules: Rules) -> None:
    """Download until the place is reached, and be cut there."""
    reached = _next_start(hub, file)
    if place <= reached:  # the last cut lost nothing and this place is behind us
        return
    if way == "server":
        server.trouble.cuts = [place - reached]
        # one try only, so that every cut ends a download
        try:
            fetch(hub, file, rules=Rules(rules.flush_bytes, rules.spare_bytes, (), rules.lock_s))
        except HubError:
            pass
        return
    server.paused.clear()
    server.go_on.clear()
    server.trouble.pauses = [place - reached]
    if way == "stop":
        stop = Stop()
        thread = threading.Thread(target=_quietly, args=(hub, file, stop, rules))
        thread.start()
        assert server.paused.wait(60)
        stop.set()
        thread.join()
    else:
        program = [sys.executable, "-m", "tests.download_trial", "--fetch", server.url, str(hub.cache.folder)]
        child = subprocess.Popen([*program, str(rules.flush_bytes)], cwd=ROOT)
        assert server.paused.wait(60)
        child.kill()
        child.wait()
    server.go_on.set()


def _next_start(hub: Hub, file: RemoteFile) -> int:
    """Where the next download will go on: what its record says."""
    record = hub.cache.part(file).with_name(hub.cache.part(file).name + ".json")
    try:
        return int(json.loads(record.read_text())["flushed"])
    except OSError:
        return 0


def _quietly(hub: Hub, file: RemoteFile, stop: Stop, rules: Rules) -> None:
    try:
        fetch(hub, file, stop=stop, rules=rules)
    except Cancelled:
        pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--cuts", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fetch", nargs=3, metavar=("URL", "FOLDER", "FLUSH"), help="be the child that is killed")
    given = parser.parse_args()
    if given.fetch:
        url, folder, flush = given.fetch
        hub = Hub(url, folder)
        fetch(hub, hub.repository(REPOSITORY).files[0], rules=Rules(flush_bytes=int(flush)))
        return 0
    result = trial(given.megabytes << 20, given.cuts, Rules(), given.seed)
    for (way, place), twice in zip(result.cuts, result.twice):
        print(f"cut by {way:6} at {place / 1e6:7.2f} MB: {twice / 1e6:5.2f} MB again")
    print(
        f"{result.size / 1e6:.0f} MB in {result.seconds:.1f} s, {result.requests} requests, "
        f"{sum(result.twice) / 1e6:.1f} MB transferred twice, at most {max(result.twice) / 1e6:.2f} MB per cut; "
        f"SHA-256 {'right' if result.whole else 'WRONG'}"
    )
    return 0 if result.whole and max(result.twice) <= 8 << 20 else 1


if __name__ == "__main__":
    sys.exit(main())
