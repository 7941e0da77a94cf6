"""Text for the clipboard that is ours to make, and its handing over to Qt before Python ends.

What was copied from a selection lies in the clipboard as an object that Python made. Qt keeps it until the process
exits, when there is no Python any more to free it, and the process would crash.
"""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QMimeData
from PySide6.QtGui import QClipboard, QGuiApplication

_OURS = "application/x-dflash-chat"


def plain_text(text: str) -> QMimeData:
    """For a selection that is being copied or dragged."""
    mime = QMimeData()
    mime.setText(text)
    mime.setData(_OURS, QByteArray(b"1"))
    return mime


def hand_over() -> None:
    """Replace what Python made by the same text, made by Qt. Call it when the program is about to end."""
    clipboard = QGuiApplication.clipboard()
    for mode in (QClipboard.Mode.Clipboard, QClipboard.Mode.Selection):
        mime = clipboard.mimeData(mode)
        if mime is not None and mime.hasFormat(_OURS):
            clipboard.setText(mime.text(), mode)
