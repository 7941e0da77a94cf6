"""Where the window was, and what it showed: kept when it is closed, taken up when it is opened again.

Knows nothing of what is in the window. A file that cannot be read or written is no trouble: then the window is as new.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings


class WindowState:
    """`folder` None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._file = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat) if folder else None

    def bytes(self, name: str) -> QByteArray | None:
        found = self._file.value(name) if self._file is not None else None
        return found if isinstance(found, QByteArray) else None

    def text(self, name: str) -> str | None:
        found = self._file.value(name) if self._file is not None else None
        return found if isinstance(found, str) and found else None

    def flag(self, name: str, default: bool) -> bool:
        return {"true": True, "false": False}.get(self.text(name) or "", default)

    def keep(self, **values: QByteArray | str | bool) -> None:
        if self._file is not None:
            for name, value in values.items():
                self._file.setValue(name, str(value).lower() if isinstance(value, bool) else value)
            self._file.sync()
