"""A conversation on the engine: one target, its drafters, the turns so far, and what the caches hold of them.

Whatever mode produced a prefix, the next answer reuses it; positions that a drafter has not seen are read again. When
the conversation outgrows the context, the oldest turns are left out (never the system prompt), and that is announced.
Knows nothing of processes and windows.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import psutil

from engine import catalog, ggml
from engine.draft_length import draft_length as drafts_per_cycle
from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.embedded import embedded_model
from engine.errors import Cancelled, ContextTooSmall, DrafterMismatch, PromptError, SettingsError
from engine.events import (
    Answered,
    ContextNotice,
    Event,
    Loaded,
    LoadProgress,
    LoadSettings,
    Memory,
    Mode,
    ModeInfo,
    SamplerSettings,
    StopReason,
    TargetInfo,
)  # fmt: skip
from engine.generate import Request, answer
from engine.gguf_file import read_header
from engine.graph import Device
from engine.sampling import Sampler
from engine.stats import AnswerRecorder, process_memory
from engine.target import Target
from engine.vocabulary import Message


@dataclass(frozen=True)
class _Turn:
    question: str
    answer: str
    ids: tuple[int, ...] | None  # None: restored from text


def _nobody(_event: Event) -> None:
    pass


class Session:
    """Open with `Session.open`; close it to give the memory back."""

    def __init__(
        self,
        target: Target,
        modes: tuple[ModeInfo, ...],
        on_event: Callable[[Event], None] = _nobody,
        *,
        key_value_type: int = ggml.F16,
    ) -> None:
        """Takes over the target. `key_value_type`: of the drafters' caches."""
        self.modes = modes
        self._key_value_type = key_value_type
        self._target = target
        self._on_event = on_event
        self._drafters: dict[Mode, Drafter] = {}
        self._device: Device | None = None
        self._system: str | None = None
        self._turns: list[_Turn] = []
        self._left_out = 0  # oldest turns that the context no longer holds

    @classmethod
    def open(
        cls,
        settings: LoadSettings,
        on_event: Callable[[Event], None] = _nobody,
        cancel: threading.Event | None = None,
    ) -> Session:
        """Load a target; drafters are loaded when first used. Emits LoadProgress and, at the end, Loaded.

        Raises DFlashChatError, Cancelled.
        """

        def check() -> None:
            if cancel is not None and cancel.is_set():
                raise Cancelled

        def preparing(part: str, fraction: float) -> None:
            check()
            on_event(LoadProgress(part, fraction))

        path = settings.target or str(embedded_model(preparing))
        check()
        header = read_header(path)
        catalog.require_target(header)
        modes = catalog.modes_for(header, given=settings.drafters)
        threads = settings.threads or psutil.cpu_count(logical=False) or 1
        target = Target(
            header,
            context=settings.context,
            threads=threads,
            gpu_layers=settings.gpu_layers,
            sequences=settings.sequences,
            on_progress=lambda fraction: on_event(LoadProgress("target", fraction)),
            cancel=cancel,
        )
        session = cls(target, modes, on_event)
        on_event(Loaded(target.info, modes, session.memory()))
        return session

    # what it is

    @property
    def info(self) -> TargetInfo:
        return self._target.info

    @property
    def turns(self) -> int:
        return len(self._turns)

    def memory(self) -> Memory:
        resident, peak = process_memory()
        drafters = self._drafters.values()
        return Memory(
            process=resident,
            peak=peak,
            target_weights=self._target.weight_bytes,
            target_context=self._target.context_bytes,
            drafter_weights=sum(drafter.weight_bytes for drafter in drafters) if drafters else None,
            drafter_kv=sum(drafter.cache_bytes for drafter in drafters) if drafters else None,
        )

    # the conversation

    def reset(self, system: str | None = None) -> None:
        """A new, empty conversation. The caches keep what they hold: the next prompt may begin alike."""
        self._system = system
        self._turns.clear()
        self._left_out = 0

    def rewind(self, turns: int) -> None:
        """Keep only the first `turns` pairs of question and answer, to edit or ask again."""
        del self._turns[max(0, turns) :]
        if self._left_out >= len(self._turns):  # nothing that the model sees is left: look again at what fits
            self._left_out = 0

    def restore(self, turns: Sequence[tuple[str, str]]) -> None:
        """Take over a conversation known as text, such as after a restart."""
        self._turns = [_Turn(question, text, None) for question, text in turns]
        self._left_out = 0

    def ask(
        self,
        prompt: str,
        *,
        mode: Mode = Mode.BASELINE,
        sampler: SamplerSettings | None = None,
        max_tokens: int | None = None,
        draft_length: int | None = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[Event]:
        """Answer a question: ContextNotice*, PromptProgress*, (Tokens | Progress | ContextNotice)*, Answered last.

        A cancelled answer also ends with Answered, and stays in the conversation. Raises DFlashChatError; then the
        conversation is as it was.
        """
        if not prompt.strip():
            raise PromptError("The prompt is empty; type a question first.")
        if max_tokens is not None and max_tokens < 1:
            raise SettingsError(f"The longest answer is given as {max_tokens} tokens; it must be 1 or more.")
        cancel = cancel or threading.Event()
        target = self._target
        recorder = AnswerRecorder(mode, target.file_name, self._drafter_name(mode))
        left_out, ids = self._prompt_ids(prompt, max_tokens)
        chosen = Sampler(sampler or SamplerSettings(), ids)
        try:
            drafter = self._drafter(mode, cancel)
        except Cancelled:
            self._turns.append(_Turn(prompt, "", ()))
            statistics = recorder.snapshot(self.memory(), StopReason.CANCELLED)
            yield Answered("", (), statistics, target.committed(), target.context)
            return
        if left_out > self._left_out:
            self._left_out = left_out
            yield self._dropped(len(ids))
        cached, again = self._keep_common_prefix(ids, drafter)
        target.tap(drafter.config.target_layers if drafter else ())
        drafts = 0
        if drafter is not None:
            assert self._device is not None
            drafts = drafts_per_cycle(draft_length, drafter.config.block_size, self._device.is_cpu)
        request = Request(0, ids, cached, again, chosen, drafts, max_tokens)
        for event in answer(target, drafter, request, recorder, self.memory, cancel):
            if isinstance(event, Answered):
                self._turns.append(_Turn(prompt, event.text, event.token_ids))
            yield event

    def _prompt_ids(self, prompt: str, max_tokens: int | None) -> tuple[int, list[int]]:
        """How many of the oldest turns are left out to make the new question fit, and the token ids of all the rest.

        Room for an answer is an eighth of the context (or max_tokens, if less); once turns have to go, enough go to
        leave a quarter, so that the next question need not drop more. Raises ContextTooSmall.
        """
        size = self._target.context
        room = min(size // 8, max_tokens if max_tokens is not None else size)
        left_out = self._left_out
        ids = self._render(prompt, left_out)
        if len(ids) + room > size:
            room = max(room, size // 4)
            while len(ids) + room > size and left_out < len(self._turns):
                left_out += 1
                ids = self._render(prompt, left_out)
        if len(ids) >= size:
            raise ContextTooSmall(
                f"The prompt has {len(ids)} tokens and the context holds {size}; shorten it or choose a longer context."
            )
        return left_out, ids

    def _dropped(self, used: int) -> ContextNotice:
        size, turns = self._target.context, self._left_out
        what = "the oldest question and its answer" if turns == 1 else f"the {turns} oldest questions and answers"
        sentence = f"The conversation outgrew the context of {size} tokens: the model no longer sees {what}."
        return ContextNotice("dropped", used, size, sentence, turns)

    def _render(self, prompt: str, left_out: int) -> list[int]:
        messages = [Message("system", self._system)] if self._system else []
        for turn in self._turns[left_out:]:
            messages.append(Message("user", turn.question))
            messages.append(Message("assistant", turn.answer, turn.ids))
        messages.append(Message("user", prompt))
        return self._target.vocabulary.render(messages)

    def _keep_common_prefix(self, ids: Sequence[int], drafter: Drafter | None) -> tuple[int, bool]:
        """Cut all caches to what the new prompt shares with them: (positions kept, whether some are read again)."""
        held = self._target.tokens()
        common = 0
        for mine, theirs in zip(held, ids[:-1]):  # the last one is always read: its logits are wanted
            if mine != theirs:
                break
            common += 1
        start = common if drafter is None else min(common, drafter.committed())
        start = self._target.cut(0, start)
        # Another drafter keeps what it has seen of the text, although the target forgets it and reads it again.
        for other in self._drafters.values():
            other.cut(0, start if other is drafter else common)
        return start, start < common

    # drafters

    def _drafter(self, mode: Mode, cancel: threading.Event) -> Drafter | None:
        """The drafter of a mode, loaded on first use.

        Raises DrafterMismatch, ModelFileError, OutOfMemory, Cancelled.
        """
        if mode is Mode.BASELINE:
            return None
        if mode in self._drafters:
            return self._drafters[mode]
        info = _info_of(mode, self.modes)
        if info.reason is not None or info.drafter is None:
            raise DrafterMismatch(info.reason or f"There is no drafter for the mode {mode.value}.")
        target = self._target
        header = read_header(info.drafter)
        # The file may be another one than when the session was opened.
        now = _info_of(mode, catalog.modes_for(catalog.header_of(target.path), (), {mode: info.drafter}))
        if now.reason is not None:
            raise DrafterMismatch(now.reason)
        if self._device is None:
            self._device = Device(target.device_handle, target.threads)
        drafter = Drafter(
            header,
            self._device,
            context=target.context,
            shared=SharedTensors(target.embeddings, target.head, target.file_name),
            key_value_type=self._key_value_type,
            on_progress=lambda fraction: self._on_event(LoadProgress("drafter", fraction)),
            cancel=cancel,
        )
        self._drafters[mode] = drafter
        return drafter

    def _drafter_name(self, mode: Mode) -> str | None:
        path = _info_of(mode, self.modes).drafter
        return os.path.basename(path) if path else None

    def close(self) -> None:
        for drafter in self._drafters.values():
            drafter.close()
        self._drafters.clear()
        if self._device is not None:
            self._device.close()
            self._device = None
        self._target.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _info_of(mode: Mode, modes: Sequence[ModeInfo]) -> ModeInfo:
    return next(info for info in modes if info.mode is mode)
