"""What the engine's process can be asked for: the requests that its pipe carries in, and the word that one is done.

Several chats share the engine. It holds one conversation at a time, so a chat that asks after another one did sends
`Restore` and then `Ask`; both wait in the queue until what was asked before has ended. A `tag` of the chat's own, such
as its number, says whose an `Ask`, `Continue` or `Count` is: `Cancel(tag)` stops that one, be it running or waiting,
and leaves the others alone. A request waits as long as it was sent and is not `EngineClient.current` yet.

Knows nothing of processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.events import KnownTurn, LoadSettings, Mode, SamplerSettings


@dataclass(frozen=True, slots=True)
class Load:
    """Load a target, and restore a conversation where one is given. Ends with `Loaded` or `Failed`."""

    settings: LoadSettings = field(default_factory=LoadSettings)
    conversation: Restore | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """Answer a prompt as the next turn. Ends with `Answered` or `Failed`."""

    prompt: str
    mode: Mode = Mode.BASELINE
    sampler: SamplerSettings = field(default_factory=SamplerSettings)
    max_tokens: int | None = None
    draft_length: int | None = None
    candidates: bool = False  # fill `Tokens.candidates`, at a price
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on with the last answer where it was broken off. Ends with `Answered` (the whole answer) or `Failed`.

    `Tokens` come for what is new only; `max_tokens` counts what is new.
    """

    mode: Mode = Mode.BASELINE
    sampler: SamplerSettings = field(default_factory=SamplerSettings)
    max_tokens: int | None = None
    draft_length: int | None = None
    candidates: bool = False
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop whatever was asked for before this and has not ended; with a tag, only what bears it.

    Has no end of its own. An answer that is stopped while it waits ends like a running one, with an empty `Answered`.
    """

    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """How many tokens has this text? `Counted` comes at once, between the events of what is running; no `Done`."""

    text: str
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Rewind:
    """Keep only the first `turns` question/answer pairs."""

    turns: int


@dataclass(frozen=True, slots=True)
class Restore:
    """Take these turns as the conversation so far, and this as its system prompt.

    A turn is (question, answer) or (question, answer, token ids of the answer, None where they are not known). With the
    ids the caches are found again. Ids that do not spell the answer, such as another model's, are not used.
    """

    turns: tuple[KnownTurn, ...]
    system: str | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """Start an empty conversation."""

    system: str | None = None


@dataclass(frozen=True, slots=True)
class FindDrafters:
    """Look again for drafters of the loaded target, those that are given first. Ends with `ModesFound`."""

    given: Mapping[Mode, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListDevices:
    """Ends with `DevicesListed`."""


@dataclass(frozen=True, slots=True)
class Unload:
    """Give the target's and the drafters' memory back. The process ends unless more has been asked for already."""


@dataclass(frozen=True, slots=True)
class Work:
    """Have the session carry out a job that it knows, such as the benchmark's. The events are the job's own."""

    job: Any


@dataclass(frozen=True, slots=True)
class Quit:
    """Stop what is running and end the process."""


Request = (
    Load
    | Ask
    | Continue
    | Cancel
    | Count
    | Rewind
    | Restore
    | Reset
    | FindDrafters
    | ListDevices
    | Work
    | Unload
    | Quit
)
ASIDE = (Cancel, Count, Quit)  # not queued, and without a Done


@dataclass(frozen=True, slots=True)
class Done:
    """`request` has been dealt with, well or not: follows its last event. Not sent for `Cancel` and `Count`."""

    request: Request
