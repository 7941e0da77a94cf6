"""The devices that a model's layers can be put on, as ggml names them. Knows nothing of models."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import psutil

from engine import ggml
from engine.errors import SettingsError
from engine.events import DeviceInfo

_KINDS = {0: "cpu", 1: "gpu", 2: "igpu"}  # enum ggml_backend_dev_type; what only helps the CPU (BLAS) is no choice


def devices() -> list[DeviceInfo]:
    """What this build of llama.cpp can use here, the CPU last. Memory is what is free now."""
    found = [(_KINDS[ggml.dev_type(handle)], handle) for handle in _handles() if ggml.dev_type(handle) in _KINDS]
    return [_describe(kind, handle) for kind, handle in sorted(found, key=lambda pair: pair[0] == "cpu")]


def device_handle(name: str) -> int:
    """The ggml device of that name, in any case of letters. Raises SettingsError, naming those that there are."""
    for handle in _handles():
        if ggml.dev_name(handle).decode().lower() == name.lower() and ggml.dev_type(handle) in _KINDS:
            return handle
    names = ", ".join(device.name for device in devices())
    raise SettingsError(f"There is no device {name!r} here; choose one of: {names}.")


def _handles() -> Iterator[int]:
    for index in range(ggml.dev_count()):
        yield ggml.dev_get(index)


def _describe(kind: str, handle: int) -> DeviceInfo:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    ggml.dev_memory(handle, ctypes.byref(free), ctypes.byref(total))
    name, description = ggml.dev_name(handle).decode(), ggml.dev_description(handle).decode("utf-8", "replace")
    if kind == "cpu":  # ggml counts pages that hold files as taken
        memory = psutil.virtual_memory()
        return DeviceInfo(name, description, kind, memory.available, memory.total)
    known = total.value > 0
    return DeviceInfo(name, description, kind, free.value if known else None, total.value if known else None)
