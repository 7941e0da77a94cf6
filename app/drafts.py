"""What was typed and not sent stays with its conversation while another one is shown, and when the window is closed.

Knows nothing of who shows conversations.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from app.attachments import Attachment
from app.conversation import Conversation

NEW = ""  # all conversations in which nothing was asked share one draft: leaving such a one gives it up
MOST = 1 << 20  # characters that are kept when the window is closed


@dataclass(frozen=True)
class Draft:
    text: str = ""
    files: tuple[Attachment, ...] = ()


class Drafts:
    def __init__(self, kept: str | None = None) -> None:
        """`kept`: what `to_text` gave when the window was closed; what makes no sense is left out."""
        self._kept = {name: Draft(text) for name, text in _texts(kept).items()}
        self._conversation: Conversation | None = None  # the one whose draft is in the input box
        self._name = NEW

    def turn_to(self, conversation: Conversation, text: str, files: Sequence[Attachment]) -> Draft | None:
        """Another conversation may be shown now: what is in the box is kept. Its own draft; None: it is the same."""
        name = conversation.id if conversation.root.children else NEW
        before, self._conversation = self._conversation, conversation
        if before is conversation:
            self._name = name
            return None
        self._kept[self._name] = Draft(text, tuple(files))
        self._name = name
        return self._kept.pop(name, Draft())

    def begin(self, conversation: Conversation) -> Draft:
        """The draft of the first conversation that is shown."""
        self._conversation, self._name = conversation, conversation.id if conversation.root.children else NEW
        return self._kept.pop(self._name, Draft())

    def to_text(self, text: str) -> str:
        """All of them, with what is in the box, without the files."""
        texts = {name: draft.text for name, draft in self._kept.items()} | {self._name: text}
        room, told = MOST, {}
        for name, one in reversed(texts.items()):  # the newest first
            if one.strip() and (room := room - len(one)) >= 0:
                told[name] = one
        return json.dumps(told)


def _texts(kept: str | None) -> dict[str, str]:
    try:
        found = json.loads(kept or "{}")
        return {name: text for name, text in found.items() if isinstance(text, str)}
    except (ValueError, AttributeError):
        return {}
