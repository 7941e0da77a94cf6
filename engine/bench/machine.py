"""The machine, the software and the files of a benchmark, so that somebody else can tell whether theirs are alike.

Knows nothing of what is measured.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from engine.gguf_file import read_header

_PACKAGES = ("dflash-chat", "llama-cpp-python", "numpy")


def machine(threads: int) -> dict[str, Any]:
    """Plain values, for the report."""
    return {
        "processor": _processor(),
        "cores": psutil.cpu_count(logical=False),
        "threads_of_the_machine": psutil.cpu_count(),
        "threads_used": threads,
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} on {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _PACKAGES},
        "load_before": load(),
    }


def file_facts(path: str) -> dict[str, Any]:
    """Name, size, SHA-256 and what the header says. Raises ModelFileError, OSError."""
    header = read_header(path)
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return {
        "file": os.path.basename(path),
        "name": header.name,
        "architecture": header.architecture,
        "quantisation": header.quantisation,
        "bytes": header.file_bytes,
        "sha256": digest.hexdigest(),
    }


def load() -> float | None:
    """Processes that wanted to run in the last minute, on average."""
    try:
        return round(float(psutil.getloadavg()[0]), 2)
    except OSError:  # not counted on this system
        return None


def local_time() -> str:
    return time.strftime("%Y-%m-%d %H:%M %z")


class OthersLoad:
    """What other processes take of all processors while something of ours is measured."""

    def __init__(self) -> None:
        self._before = _busy()

    def share(self, ours_s: float) -> float | None:
        """Since this was made, 0..1. `ours_s`: processor seconds of our own processes meanwhile."""
        busy, whole = (now - before for now, before in zip(_busy(), self._before))
        return None if whole <= 0 else round(min(1.0, max(0.0, (busy - ours_s) / whole)), 3)


def _busy() -> tuple[float, float]:
    """Seconds of all processors that were at work, and all seconds."""
    times = psutil.cpu_times()
    whole = sum(times)
    # On Linux guest time is counted in user time as well.
    whole -= getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return whole - times.idle - getattr(times, "iowait", 0.0), whole


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    if package == "dflash-chat":
        from engine.cli import version

        return version()
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
