"""Asking a session in a test; whatever is asked, the order of events and what they say of the text is checked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from engine.events import Answered, ContextNotice, Event, LoadSettings, Mode, Progress, PromptProgress, Tokens
from engine.session import Session


def opened(target: Path, v1: Path | None = None, v2: Path | None = None, context: int = 1024) -> Session:
    given = {mode: str(path) for mode, path in ((Mode.DFLASH, v1), (Mode.DFLASH2, v2)) if path is not None}
    return Session.open(LoadSettings(target=str(target), drafters=given, context=context, threads=1))


_STAGES: tuple[tuple[type, ...], ...] = (
    (ContextNotice,),
    (PromptProgress,),
    (Tokens, Progress, ContextNotice),
    (Answered,),
)


def ask(session: Session, prompt: str, **settings: Any) -> list[Event]:
    """Every event of one answer."""
    events = list(session.ask(prompt, **settings))
    check_events(events)
    return events


def answer_to(session: Session, prompt: str, **settings: Any) -> Answered:
    return answered(ask(session, prompt, **settings))


def answered(events: list[Event]) -> Answered:
    last = events[-1]
    assert isinstance(last, Answered)
    return last


def of_type(events: list[Event], type_: type) -> list[Any]:
    return [event for event in events if isinstance(event, type_)]


def check_events(events: list[Event]) -> None:
    """The order is that of `Session.ask`, and the answer is what its parts were."""
    stage = 0
    for event in events:
        while not isinstance(event, _STAGES[stage]):
            stage += 1
            assert stage < len(_STAGES), f"{event} comes too late"
    last = answered(events)
    parts = of_type(events, Tokens)
    assert "".join(part.text for part in parts) == last.text
    assert tuple(token for part in parts for token in part.ids) == last.token_ids
    assert all(len(part.ids) == len(part.origins) for part in parts)
    assert last.statistics.output_tokens == len(last.token_ids)
    assert last.statistics.stop_reason is not None
    done = [event.done for event in of_type(events, PromptProgress)]
    assert done == sorted(set(done))


def cancelled_after(session: Session, events: int, prompt: str, **settings: Any) -> list[Event]:
    """All events of an answer that is cancelled when so many have come."""
    cancel = threading.Event()
    seen: list[Event] = []
    for event in session.ask(prompt, cancel=cancel, **settings):
        seen.append(event)
        if len(seen) == events:
            cancel.set()
    check_events(seen)
    return seen


def abandoned_after(session: Session, events: int, prompt: str, **settings: Any) -> None:
    """An answer whose listener goes away when so many events have come."""
    stream: Iterator[Event] = session.ask(prompt, **settings)
    for _ in zip(range(events), stream):
        pass
    stream.close()  # type: ignore[attr-defined]


class SetWhenAskedOften(threading.Event):
    """A flag that calls `at` when it has been looked at so many times; that may set it."""

    def __init__(self, times: int, at: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.looks = 0
        self._times = times
        self._at = at or self.set

    def is_set(self) -> bool:
        self.looks += 1
        if self.looks == self._times:
            self._at()
        return super().is_set()
