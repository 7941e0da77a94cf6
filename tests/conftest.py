"""What every test shares: folders that are not the user's, the default target, drafters for it, a check for leftovers.

It imports neither Qt nor the engine at the top, so that collecting one test file stays quick.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    from engine.graph import Device
    from engine.hub import Hub
    from tests.hub_server import HubServer

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

# Where programs keep what is a user's: pointed at one temporary folder for the whole session, child processes included.
_FOLDERS = {
    "DFLASH_CHAT_CACHE": "cache/dflash-chat",
    "HF_HOME": "cache/huggingface",
    "XDG_CACHE_HOME": "cache",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "XDG_RUNTIME_DIR": "runtime",
}
_HOME = pytest.StashKey[Path]()
_BEFORE = pytest.StashKey[dict[str, str | None]]()


def pytest_configure(config: pytest.Config) -> None:
    home = Path(tempfile.mkdtemp(prefix="dflash-chat-tests-"))
    config.stash[_HOME] = home
    config.stash[_BEFORE] = {name: os.environ.get(name) for name in _FOLDERS}
    for name, folder in _FOLDERS.items():
        (home / folder).mkdir(parents=True, exist_ok=True)
        os.environ[name] = str(home / folder)
    (home / _FOLDERS["XDG_RUNTIME_DIR"]).chmod(0o700)


def pytest_unconfigure(config: pytest.Config) -> None:
    for name, value in config.stash[_BEFORE].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    shutil.rmtree(config.stash[_HOME], ignore_errors=True)


@dataclass(frozen=True)
class DrafterFiles:
    """Drafters for the default target, made by the tests: random ones, and such as only propose what it never says."""

    folder: Path
    random_v1: Path
    random_v2: Path
    wrong_v1: Path
    wrong_v2: Path


@pytest.fixture(scope="session")
def target_file() -> Path:
    """The default target, prepared once for the session."""
    from engine.embedded import embedded_model

    return embedded_model()


@pytest.fixture(scope="session")
def drafter_dir(target_file: Path, tmp_path_factory: pytest.TempPathFactory) -> DrafterFiles:
    from tests.drafter_files import random_drafter, wrong_drafter

    folder = tmp_path_factory.mktemp("drafters")
    return DrafterFiles(
        folder=folder,
        random_v1=random_drafter(folder / "random-v1.gguf", target_file, 1),
        random_v2=random_drafter(folder / "random-v2.gguf", target_file, 2),
        wrong_v1=wrong_drafter(folder / "wrong-v1.gguf", target_file, 1),
        wrong_v2=wrong_drafter(folder / "wrong-v2.gguf", target_file, 2),
    )


@pytest.fixture(scope="session")
def device() -> Iterator[Device]:
    """The CPU with one thread: small models are no faster with more, and much slower on a busy machine."""
    from engine.graph import Device

    with Device.cpu(1) as device:
        yield device


@pytest.fixture
def hub_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """A Hub to which the whole program is pointed, child processes included, with empty folders of the user's."""
    from tests.hub_server import HubServer

    for name in ("HF_TOKEN", "HF_HUB_CACHE", "HF_TOKEN_PATH", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with HubServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield server


@pytest.fixture
def hub(hub_server: HubServer) -> Hub:
    from engine.hub import Hub

    return Hub()


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """A test must end the threads and processes it started; what a wider fixture started before it is not its own."""
    before = _running()
    yield
    left = {name for key, name in _running().items() if key not in before}
    assert not left, f"left running: {', '.join(sorted(left))}"


def _running() -> dict[tuple[str, float], str]:
    """Python's threads, and child processes; not multiprocessing's own helper, which lives as long as the program."""
    found: dict[tuple[str, float], str] = {}
    for thread in threading.enumerate():
        if not isinstance(thread, threading._DummyThread):  # a foreign thread that once ran Python is not ended by it
            found["thread", float(thread.ident or 0)] = f"thread {thread.name}"
    for process in psutil.Process().children():
        try:
            command = " ".join(process.cmdline())
            if process.status() != psutil.STATUS_ZOMBIE and "resource_tracker" not in command:
                found[f"process {process.pid}", process.create_time()] = f"process {process.pid} ({command})"
        except psutil.NoSuchProcess:
            continue
    return found
