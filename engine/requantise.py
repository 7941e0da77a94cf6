"""Writes a copy of a GGUF model in other quantisation types, with libllama's own quantiser.

The quantiser runs in a process of its own, which is this file as a script: it can then be stopped at any moment, and
what libllama prints stays off the terminal. Knows nothing of which model it is for.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TYPES = {"Q4_0": (2, 2), "Q8_0": (7, 8), "Q4_K": (14, 12), "IQ4_NL": (25, 20)}  # enum llama_ftype, enum ggml_type
_STRING = 3  # enum llama_model_kv_override_type
_LOG_ERROR = 4  # enum ggml_log_level
_LOOK_AGAIN_S = 0.1


@dataclass(frozen=True)
class Recipe:
    """`type` for every matrix, but for those whose name matches one of `exceptions` (regular expression, type).

    `name`: what the copy calls itself; "" leaves the source's name.
    """

    type: str
    exceptions: tuple[tuple[str, str], ...] = ()
    name: str = ""

    def words(self) -> list[str]:
        return [self.type, self.name, *(f"{pattern}={type}" for pattern, type in self.exceptions)]

    @classmethod
    def from_words(cls, words: list[str]) -> Recipe:
        pairs = (word.rpartition("=") for word in words[2:])
        return cls(words[0], tuple((pattern, type) for pattern, _, type in pairs), words[1])

    def __str__(self) -> str:
        return " ".join(filter(None, self.words()))


class RequantisationError(Exception):
    """What the quantiser said when it failed."""


def requantise(source: Path, destination: Path, recipe: Recipe, on_size: Callable[[int], None]) -> None:
    """Write `destination`; meanwhile `on_size` hears how many bytes it has, and may raise to stop.

    Raises RequantisationError, OSError.
    """
    command = [sys.executable, "-I", __file__, str(source), str(destination), *recipe.words()]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=said)
        assert process.stdin is not None
        try:
            while True:
                try:
                    status = process.wait(_LOOK_AGAIN_S)
                    break
                except subprocess.TimeoutExpired:
                    on_size(destination.stat().st_size if destination.exists() else 0)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdin.close()
        if status != 0:
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").strip().splitlines()
            raise RequantisationError(lines[-1] if lines else f"exit status {status}")


def main(source: str, destination: str, *words: str) -> int:
    """Called in the process of its own. libllama's quantiser reports its errors through the log."""
    import ctypes
    import os
    import threading

    def end_with_parent() -> None:
        os.read(0, 1)  # returns when the other end of the pipe is gone
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    from llama_cpp import llama_cpp as libllama

    @libllama.llama_log_callback
    def errors_only(level: int, text: bytes, _data: object) -> None:
        if level == _LOG_ERROR:
            sys.stderr.write(text.decode("utf-8", "replace"))

    libllama.llama_log_set(errors_only, ctypes.c_void_p(0))
    recipe = Recipe.from_words(list(words))
    parameters = libllama.llama_model_quantize_default_params()
    parameters.ftype = _TYPES[recipe.type][0]
    parameters.pure = True  # no mixture of libllama's choosing
    parameters.allow_requantize = True
    parameters.nthread = os.cpu_count() or 1
    exceptions = (libllama.llama_model_tensor_override * (len(recipe.exceptions) + 1))()  # the last one stays empty
    for entry, (pattern, type) in zip(exceptions, recipe.exceptions):
        entry.pattern, entry.type = pattern.encode(), _TYPES[type][1]
    parameters.tt_overrides = exceptions
    names: Any = (libllama.llama_model_kv_override * 2)()  # here, too, an empty one ends the list
    if recipe.name:
        names[0].tag, names[0].key, names[0].value.val_str = _STRING, b"general.name", recipe.name.encode()
    parameters.kv_overrides = names
    failed = libllama.llama_model_quantize(os.fsencode(source), os.fsencode(destination), ctypes.byref(parameters))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
