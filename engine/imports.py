"""The GGUF files that a user has added from elsewhere on the disk: a list of their paths. They stay where they are.

Knows nothing of what is in them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import platformdirs

from engine.errors import SettingsError


def imports_file() -> Path:
    return Path(platformdirs.user_data_dir("dflash-chat", appauthor=False)) / "imports.json"


def imported_files() -> tuple[Path, ...]:
    """Those that are still there, in the order in which they were added. A damaged list is an empty one."""
    return tuple(path for path in _listed() if path.is_file())


def add_import(path: str | Path) -> Path:
    """Raises SettingsError when the list cannot be written."""
    added = Path(os.path.abspath(path))
    _write([*(known for known in _listed() if known != added), added])
    return added


def remove_import(path: str | Path) -> bool:
    """Whether it was on the list. The file stays. Raises SettingsError."""
    removed, known = Path(os.path.abspath(path)), _listed()
    if removed not in known:
        return False
    _write([path for path in known if path != removed])
    return True


def _listed() -> list[Path]:
    try:
        files = json.loads(imports_file().read_text("utf-8"))["files"]
        return [Path(file) for file in files if isinstance(file, str)]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _write(files: list[Path]) -> None:
    path = imports_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        fresh.write_text(json.dumps({"files": [str(file) for file in files]}, indent=1), "utf-8")
        os.replace(fresh, path)
    except OSError as error:
        raise SettingsError(
            f"The list of imported models, {path}, cannot be written ({error.strerror or error})."
        ) from error
