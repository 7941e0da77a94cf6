"""The installed PySide6 itself."""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject, Signal


class _Emitter(QObject):
    signal = Signal()


def test_emitting_a_signal_keeps_the_count_of_references_to_true() -> None:
    """PySide6 6.12.0 loses one at each `emit` on Pythons before 3.12, and after some hundreds the process aborts."""
    emitter = _Emitter()
    before = sys.getrefcount(True)
    for _ in range(50):
        emitter.signal.emit()
    assert sys.getrefcount(True) > before - 25
