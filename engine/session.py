"""A conversation on the engine: one target, its drafters, the turns so far, and what the caches hold of them.

Whatever mode or conversation produced a prefix, the next answer reuses it; positions that a drafter has not seen are
read again. Knows nothing of processes and windows.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import psutil

from engine import catalog, ggml
from engine.draft_length import DraftLength, FixedLength, drafts_at_most
from engine.drafter import Drafter
from engine.drafter_config import DrafterConfig
from engine.drafter_weights import SharedTensors
from engine.embedded import embedded_model
from engine.errors import Cancelled, DrafterMismatch, PromptError, SettingsError
from engine.events import (
    OVERFLOW_RULES,
    Answered,
    Event,
    KnownTurn,
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
from engine.history import History, Turn
from engine.pair_record import PairRecord
from engine.sampling import Sampler
from engine.stats import AnswerRecorder, process_memory
from engine.target import MAX_ROWS, Target

CANDIDATES = 5  # per token, where they are asked for
_SEED_STEP = 1_000_003


def _nobody(_event: Event) -> None:
    pass


class Session:
    """Open with `Session.open`; close it to give the memory back."""

    # What a measurement replaces by something that also takes notes, or leaves a part out.
    recorder_type: type[AnswerRecorder] = AnswerRecorder
    drafter_type: type[Drafter] = Drafter

    def __init__(
        self,
        target: Target,
        modes: tuple[ModeInfo, ...],
        on_event: Callable[[Event], None] = _nobody,
        *,
        key_value_type: int = ggml.F16,
        drops: bool = True,
    ) -> None:
        """Takes over the target. `key_value_type`: of the drafters' caches. `drops`: the oldest turns, to make room."""
        self.modes = modes
        self._key_value_type = key_value_type
        self._target = target
        self._on_event = on_event
        self._drafters: dict[Mode, Drafter] = {}
        self._records: dict[Mode, PairRecord] = {}
        self._device: Device | None = None
        self._history = History(target.vocabulary, target.context, drops)

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

        if settings.overflow not in OVERFLOW_RULES:
            rules = " or ".join(OVERFLOW_RULES)
            raise SettingsError(f"The rule for a full context is given as {settings.overflow!r}; it must be {rules}.")
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
            device=settings.device,
            kv_type=settings.kv_type,
            states=max((_block_size(info.drafter) for info in modes if info.drafter is not None), default=0),
            on_progress=lambda fraction: on_event(LoadProgress("target", fraction)),
            cancel=cancel,
        )
        session = cls(target, modes, on_event, drops=settings.overflow == "drop")
        on_event(Loaded(target.info, modes, session.memory()))
        return session

    # what it is

    @property
    def info(self) -> TargetInfo:
        return self._target.info

    @property
    def turns(self) -> int:
        return len(self._history.turns)

    def memory(self) -> Memory:
        resident, peak = process_memory()
        drafters = self._drafters.values()
        offloaded = self._target.offloaded_bytes
        if self._device is not None and not self._device.is_cpu:
            offloaded += sum(drafter.weight_bytes + drafter.cache_bytes for drafter in drafters)
        return Memory(
            process=resident,
            peak=peak,
            target_weights=self._target.weight_bytes,
            target_context=self._target.context_bytes,
            drafter_weights=sum(drafter.weight_bytes for drafter in drafters) if drafters else None,
            drafter_kv=sum(drafter.cache_bytes for drafter in drafters) if drafters else None,
            offloaded=offloaded or None,
        )

    # the conversation

    def reset(self, system: str | None = None) -> None:
        """A new, empty conversation. The caches keep what they hold: the next prompt may begin alike."""
        self.restore((), system)

    def rewind(self, turns: int) -> None:
        """Keep only the first `turns` pairs of question and answer, to edit or ask again."""
        self._history.rewind(turns)

    def restore(self, turns: Sequence[KnownTurn], system: str | None = None) -> None:
        """Another conversation, such as after a restart: (question, answer) or (question, answer, its token ids).

        The caches keep what they hold. Ids that do not spell the answer, such as another model's, are not used.
        """
        self._history.restore(turns, system)

    def count(self, text: str) -> int:
        """How many tokens a text has. May be called in another thread while an answer runs. Raises PromptError."""
        return len(self._target.vocabulary.tokenize(text))

    def ask(
        self,
        prompt: str,
        *,
        mode: Mode = Mode.BASELINE,
        sampler: SamplerSettings | None = None,
        max_tokens: int | None = None,
        draft_length: int | None = None,
        candidates: bool = False,
        cancel: threading.Event | None = None,
    ) -> Iterator[Event]:
        """Answer a question: ContextNotice*, PromptProgress*, (Tokens | Progress | ContextNotice)*, Answered last.

        A cancelled answer also ends with Answered, and stays in the conversation. `candidates`: fill those of Tokens.
        Raises DFlashChatError; then the conversation is as it was.
        """
        if not prompt.strip():
            raise PromptError("The prompt is empty; type a question first.")
        earlier, turn = self._history.turns[:], Turn(prompt, "", ())
        yield from self._answer(earlier, turn, mode, sampler, max_tokens, draft_length, candidates, cancel)

    def go_on(
        self,
        *,
        mode: Mode = Mode.BASELINE,
        sampler: SamplerSettings | None = None,
        max_tokens: int | None = None,
        draft_length: int | None = None,
        candidates: bool = False,
        cancel: threading.Event | None = None,
    ) -> Iterator[Event]:
        """Go on with the last answer, whatever ended it; events and errors as in `ask`.

        Tokens and statistics are of what is new, and so is `max_tokens`; Answered has the whole answer. A greedy answer
        becomes what it would have been without the break.
        """
        if not self._history.turns:
            raise PromptError("There is no answer to go on with; ask a question first.")
        *earlier, turn = self._history.turns
        yield from self._answer(earlier, turn, mode, sampler, max_tokens, draft_length, candidates, cancel)

    def _answer(
        self,
        earlier: list[Turn],
        begun: Turn,
        mode: Mode,
        sampler: SamplerSettings | None,
        max_tokens: int | None,
        draft_length: int | None,
        candidates: bool,
        cancel: threading.Event | None,
    ) -> Iterator[Event]:
        """Answer a question behind `earlier`, going on with what there is of its answer."""
        if max_tokens is not None and max_tokens < 1:
            raise SettingsError(f"The longest answer is given as {max_tokens} tokens; it must be 1 or more.")
        cancel = cancel or threading.Event()
        target = self._target
        recorder = self.recorder_type(mode, target.file_name, self._drafter_name(mode))
        prompt = self._history.prompt(earlier, begun, max_tokens)
        settings = sampler or SamplerSettings()
        if settings.seed is not None and prompt.begun:  # not the numbers again that the answer began with
            settings = replace(settings, seed=settings.seed + _SEED_STEP * len(prompt.begun))
        chosen = Sampler(settings, prompt.ids)
        detokenizer = target.vocabulary.detokenizer()
        detokenizer.push(prompt.begun)

        def ended(new: Answered) -> Answered:
            whole = replace(new, text=begun.answer + new.text, token_ids=prompt.begun + new.token_ids)
            self._history.turns = [*earlier, Turn(begun.question, whole.text, whole.token_ids)]
            return whole

        try:
            if cancel.is_set():  # while it waited: the caches are left to the conversation that they are of
                raise Cancelled
            drafter = self._drafter(mode, cancel)
            length = self._length(mode, drafter, draft_length, settings.temperature > 0, cancel)
        except Cancelled:
            statistics = recorder.snapshot(self.memory(), StopReason.CANCELLED)
            yield ended(Answered("", (), statistics, target.committed(), target.context))
            return
        if notice := self._history.leave_out(prompt):
            yield notice
        cached, again = self._keep_common_prefix(prompt.ids, drafter)
        target.tap(drafter.config.target_layers if drafter else ())
        drafts = drafts_at_most(draft_length, drafter.config.block_size) if drafter else 0
        asked = CANDIDATES if candidates else 0
        request = Request(0, prompt.ids, cached, again, chosen, drafts, max_tokens, detokenizer, asked, length)
        for event in answer(target, drafter, request, recorder, self.memory, cancel):
            yield ended(event) if isinstance(event, Answered) else event

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

    def find_drafters(self, given: Mapping[Mode, str]) -> tuple[ModeInfo, ...]:
        """Look for drafters again, as when the target was loaded. One that gives way to another file is unloaded."""
        self.modes = catalog.modes_for(catalog.header_of(self._target.path), given=given)
        for info in self.modes:
            if info.mode in self._drafters and self._drafters[info.mode].path != info.drafter:
                self._forget(info.mode)
        return self.modes

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
        target.keep_states(_block_size(info.drafter))  # no more than when it was loaded, unless the drafter is new
        if self._device is None:
            self._device = Device(target.device_handle, target.threads)
        drafter = self.drafter_type(
            header,
            self._device,
            context=target.context,
            sequences=target.sequences,
            shared=SharedTensors(target.embeddings, target.head, target.file_name),
            key_value_type=self._key_value_type,
            on_progress=lambda fraction: self._on_event(LoadProgress("drafter", fraction)),
            cancel=cancel,
        )
        self._drafters[mode] = drafter
        return drafter

    def _length(
        self, mode: Mode, drafter: Drafter | None, given: int | None, drawn: bool, cancel: threading.Event
    ) -> DraftLength | None:
        """What decides how many drafts are verified. When a pair is first used automatically, its costs are measured.

        Raises Cancelled, OutOfMemory.
        """
        if drafter is None:
            return None
        record = self._records.get(mode) or PairRecord.read(self._target, drafter)
        if record is None and given is None:
            record = PairRecord.measured(
                self._target, drafter, cancel, lambda fraction: self._on_event(LoadProgress("measuring", fraction))
            )
        if record is not None:
            self._records[mode] = record
        if given is not None:
            return FixedLength(record.verify if record else None)
        assert record is not None
        return record.drawn if drawn else record.greedy

    def _forget(self, mode: Mode) -> None:
        """Unload a mode's drafter; what was learned of it is kept in its record."""
        drafter, record = self._drafters.pop(mode), self._records.pop(mode, None)
        if record is not None:
            record.write(self._target, drafter)
        drafter.close()

    def _drafter_name(self, mode: Mode) -> str | None:
        path = _info_of(mode, self.modes).drafter
        return os.path.basename(path) if path else None

    def close(self) -> None:
        for mode in tuple(self._drafters):
            self._forget(mode)
        if self._device is not None:
            self._device.close()
            self._device = None
        self._target.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _block_size(drafter: str) -> int:
    """The longest block of a drafter file that is verified: as many positions of a pass may have to be cut again."""
    return min(DrafterConfig.from_header(catalog.header_of(drafter)).block_size, MAX_ROWS)


def _info_of(mode: Mode, modes: Sequence[ModeInfo]) -> ModeInfo:
    return next(info for info in modes if info.mode is mode)
