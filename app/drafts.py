"""What was typed and not sent stays with its conversation while another one is shown. Kept in memory.

Knows nothing of who shows conversations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.attachments import Attachment
from app.conversation import Conversation

NEW = ""  # all conversations in which nothing was asked share one draft: leaving such a one gives it up


@dataclass(frozen=True)
class Draft:
    text: str = ""
    files: tuple[Attachment, ...] = ()


class Drafts:
    def __init__(self) -> None:
        self._kept: dict[str, Draft] = {}
        self._conversation: Conversation | None = None  # the one whose draft is in the input box
        self._name = NEW

    def turn_to(self, conversation: Conversation, text: str, files: Sequence[Attachment]) -> Draft | None:
        """Another conversation may be shown now: its draft, and what is in the box is kept; None: it is the same."""
        name = conversation.id if conversation.root.children else NEW
        before, self._conversation = self._conversation, conversation
        if before is conversation or before is None:
            self._name = name
            return None
        self._kept[self._name] = Draft(text, tuple(files))
        self._name = name
        return self._kept.pop(name, Draft())
