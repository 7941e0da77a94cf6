"""Why the engine process ended: its log file, and one sentence from the exit status and the log's last lines.

Knows nothing of what the process did.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import platformdirs

LOGS_KEPT = 10
LOG_TAIL_BYTES = 16384


def exit_reason(exit_code: int | None, log: str) -> str:
    """One sentence from the exit status (negative: the signal's number) and the end of the log."""
    if exit_code is None:
        return "The engine closed its connection and did not end; it was ended."
    if exit_code == 0:
        return "The engine process ended without being asked to."
    said = last_words(log)
    said = f": {said}" if said else ""
    if exit_code > 0:
        number = f"0x{exit_code:08X}" if exit_code > 255 else str(exit_code)  # Windows gives its faults as codes
        return f"The engine process ended with exit status {number}{said}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    if name == "SIGKILL":
        return (
            "The engine process was killed by the system (SIGKILL), possibly because the machine ran out of memory; "
            "a smaller model or a shorter context needs less."
        )
    if name in ("SIGTERM", "SIGINT", "SIGHUP"):
        return f"The engine process was ended from outside ({name})."
    return f"The engine process crashed ({name}){said}"


def last_words(log: str) -> str:
    """The log line that most likely tells the cause."""
    lines = [line.strip() for line in log.split("Fatal Python error:")[0].splitlines() if line.strip()]
    telling = [
        line for line in lines if re.search(r"GGML_ASSERT|ggml_abort|terminate called|what\(\):|[Oo]ut of memory", line)
    ]
    chosen = (telling or lines or [""])[-1]
    return chosen if len(chosen) <= 240 else chosen[:239] + "…"


def log_tail(log_file: Path | None) -> str:
    try:
        assert log_file is not None
        with open(log_file, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def new_log_file(folder: Path | None) -> Path:
    """A fresh log file, in a temporary folder where the usual one cannot be written; removes all but the newest few."""
    folder = folder or Path(platformdirs.user_log_dir("dflash-chat", appauthor=False))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(folder.glob("engine-*.log"), key=_modified, reverse=True)[LOGS_KEPT - 1 :]:
            with suppress(OSError):  # another window has it open, or it is gone
                old.unlink()
        handle, name = tempfile.mkstemp(prefix="engine-", suffix=".log", dir=folder)
    except OSError:
        handle, name = tempfile.mkstemp(prefix="dflash-chat-engine-", suffix=".log")
    os.close(handle)
    return Path(name)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
