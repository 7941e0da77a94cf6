"""Saying something to a screen reader that is nowhere to be seen on the screen, such as that an answer is done.

Knows nothing of what is said.
"""

from __future__ import annotations

from PySide6.QtGui import QAccessible, QAccessibleEvent
from PySide6.QtWidgets import QWidget

try:
    from PySide6.QtGui import QAccessibleAnnouncementEvent  # Qt 6.8
except ImportError:
    QAccessibleAnnouncementEvent = None  # type: ignore[assignment,misc]


def announce(speaker: QWidget, words: str) -> None:
    """Have a screen reader say `words`; does nothing where none runs."""
    if QAccessibleAnnouncementEvent is not None:
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(speaker, words))
    else:
        speaker.setAccessibleDescription(words)
        QAccessible.updateAccessibility(QAccessibleEvent(speaker, QAccessible.Event.Alert))
