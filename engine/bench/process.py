"""An engine process for one way of decoding: it is started, given jobs, and cancelled.

Knows nothing of what the jobs are for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Protocol

from engine.bench.jobs import Job, JobEvent
from engine.bench.plan import Plan, Variant
from engine.errors import Cancelled, DFlashChatError, EngineStopped
from engine.events import Event, Failed, Loaded, LoadProgress, LoadSettings
from engine.host import Cancel, Done, EngineClient, Load, Request, Work

SESSION = "engine.bench.session:BenchSession.open"
_LOOK_AGAIN_S = 0.1  # for a cancel
_PATIENCE_S = 20.0  # for an engine that was told to stop


class Flag(Protocol):
    """What an engine looks at to see whether to stop; an Event is one."""

    def is_set(self) -> bool: ...


class Until:
    """Set once `cancel` is, or when the time is over."""

    def __init__(self, cancel: Flag, limit_s: float | None) -> None:
        self._cancel = cancel
        self._end = math.inf if limit_s is None else time.monotonic() + limit_s

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._end

    def is_set(self) -> bool:
        return self._cancel.is_set() or self.is_over


class JobFailed(DFlashChatError):
    """The engine's own sentence."""


class Engine:
    """A fresh engine process for one way of decoding; `start`, then `work`."""

    def __init__(
        self, plan: Plan, variant: Variant, concurrency: int, cancel: Flag, session_factory: str = SESSION
    ) -> None:
        conditions = plan.conditions
        self._client = EngineClient(session_factory)
        self._cancel = cancel
        self._cancelled_at: float | None = None
        self.device = ""  # of the target's output layer, once it is loaded
        self._settings = LoadSettings(
            target=conditions.target,
            drafters={variant.mode: variant.drafter} if variant.drafter else {},
            context=conditions.context,
            threads=conditions.threads,
            gpu_layers=conditions.gpu_layers,
            device=conditions.device,
            kv_type=conditions.kv_type,
            sequences=concurrency,
        )

    def start(self) -> float:
        """Seconds until the target was ready. Raises DFlashChatError, Cancelled."""
        began = time.perf_counter()
        self._client.start()
        ready: float | None = None
        for message in self._carried_out(Load(self._settings)):
            if isinstance(message, Loaded):
                ready = time.perf_counter() - began
                self.device = message.target.device
        if ready is None:
            raise EngineStopped("The engine did not say that it is ready; try again.")
        return ready

    def work(self, job: Job) -> Iterator[JobEvent]:
        """Raises DFlashChatError, Cancelled."""
        for message in self._carried_out(Work(job)):
            if not isinstance(message, LoadProgress):
                yield message  # type: ignore[misc]  # a job's events are its own

    def _carried_out(self, request: Request) -> Iterator[Event]:
        self._client.send(request)
        while True:
            if self._cancel.is_set():
                self._pass_on_cancel()
            message = self._client.receive(_LOOK_AGAIN_S)
            if isinstance(message, Failed):
                raise Cancelled if message.kind == "Cancelled" else JobFailed(message.sentence)
            if isinstance(message, Done):
                return
            if message is not None:
                yield message

    def _pass_on_cancel(self) -> None:
        now = time.monotonic()
        if self._cancelled_at is None:
            self._cancelled_at = now
            self._client.send(Cancel())
        elif now - self._cancelled_at > _PATIENCE_S:
            raise Cancelled

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
