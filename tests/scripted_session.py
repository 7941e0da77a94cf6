"""A session that computes nothing: it plays what the first word of the prompt asks for.

Stands in for `engine.session.Session` where the process around it is under test, and for crashes, which the real one
must not have. `LoadSettings.target` takes the same words.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from engine.errors import Cancelled, ModelFileError, PromptError
from engine.events import (
    Answered,
    AnswerStatistics,
    ContextNotice,
    Event,
    KnownTurn,
    Loaded,
    LoadProgress,
    LoadSettings,
    Memory,
    Mode,
    ModeInfo,
    Progress,
    PromptProgress,
    SamplerSettings,
    StopReason,
    TargetInfo,
    Tokens,
)

MEGABYTE = 1 << 20
MEMORY = Memory(410 * MEGABYTE, 430 * MEGABYTE, 92 * MEGABYTE, 90 * MEGABYTE, 22 * MEGABYTE, 12 * MEGABYTE)
MISSING = "No DFlash 2 drafter for this model was found."


class ScriptedSession:
    def __init__(self, settings: LoadSettings) -> None:
        self.settings = settings
        self.history: list[tuple[str, str]] = []

    @staticmethod
    def open(
        settings: LoadSettings, on_event: Callable[[Event], None], cancel: threading.Event | None = None
    ) -> ScriptedSession:
        on_event(LoadProgress("target", 0.0))
        if settings.target == "slow":
            assert cancel is not None
            cancel.wait()
        if settings.target == "deaf":  # to a cancel, as a step inside of a library may be; with a helper process
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
            on_event(LoadProgress("target", 0.5))
            threading.Event().wait()
        if cancel is not None and cancel.is_set():
            raise Cancelled
        if settings.target == "missing":
            raise ModelFileError("missing.gguf does not exist; choose another file.")
        on_event(LoadProgress("target", 1.0))
        session = ScriptedSession(settings)
        on_event(Loaded(session.info, session.modes, session.memory()))
        return session

    @property
    def info(self) -> TargetInfo:
        name = self.settings.target or "Scripted 1B"
        return TargetInfo(
            path=f"/models/{name}.gguf",
            name=name,
            architecture="llama",
            quantisation="Q4_0",
            parameters=1_100_000_000,
            file_bytes=640 * MEGABYTE,
            context_served=self.settings.context,
            context_trained=8192,
            vocabulary=50000,
            hidden_size=2048,
            layers=16,
            device="CPU",
        )

    @property
    def modes(self) -> tuple[ModeInfo, ...]:
        return (
            ModeInfo(Mode.BASELINE, None, None),
            ModeInfo(Mode.DFLASH, "/models/scripted-dflash.gguf", None),
            ModeInfo(Mode.DFLASH2, None, MISSING),
        )

    @property
    def turns(self) -> int:
        return len(self.history)

    def memory(self) -> Memory:
        return MEMORY

    def ask(
        self,
        prompt: str,
        *,
        mode: Mode,
        sampler: SamplerSettings,
        max_tokens: int | None = None,
        draft_length: int | None = None,
        candidates: bool = False,
        cancel: threading.Event | None = None,
    ) -> Iterator[Event]:
        assert cancel is not None
        word, _, rest = prompt.partition(" ")
        if word == "refuse":
            raise PromptError("The prompt is not to the script's liking; write another.")
        if word == "bug":
            raise ZeroDivisionError("a bug in the script")
        if word == "endless-prompt":
            yield PromptProgress(1, 1000)
            cancel.wait()
        if word == "notice":
            yield ContextNotice("nearly_full", 3900, 4096, "The context is nearly full.")
        yield PromptProgress(10, 10)
        text = ""
        words = self._words(word, rest)
        for number, piece in enumerate(words):
            if cancel.is_set():
                break
            text += piece
            yield self._token(number, piece, candidates)
            yield Progress(self._statistics(mode, number + 1, None), number + 11, self.settings.context)
            if word == "die" and number == 3:
                self._die(rest)
            if word == "hang" and number == 3:
                cancel.wait()
        self.history.append((prompt, text))
        reason = StopReason.CANCELLED if cancel.is_set() else StopReason.STOP_TOKEN
        yield Answered(
            text, tuple(range(len(words))), self._statistics(mode, len(words), reason), 20, self.settings.context
        )

    def go_on(
        self,
        *,
        mode: Mode,
        sampler: SamplerSettings,
        max_tokens: int | None = None,
        draft_length: int | None = None,
        candidates: bool = False,
        cancel: threading.Event | None = None,
    ) -> Iterator[Event]:
        """Says "and more " behind the last answer."""
        if not self.history:
            raise PromptError("There is no answer to go on with; ask a question first.")
        question, text = self.history[-1]
        begun = len(text.split())
        yield PromptProgress(1, 1)
        for number, piece in enumerate(("and ", "more "), begun):
            text += piece
            yield self._token(number, piece, candidates)
        self.history[-1] = question, text
        statistics = self._statistics(mode, 2, StopReason.STOP_TOKEN)
        yield Answered(text, tuple(range(begun + 2)), statistics, 22, self.settings.context)

    @staticmethod
    def _token(number: int, piece: str, candidates: bool) -> Tokens:
        likeliest = (((piece, 0.75), ("other ", 0.2), ("<|im_end|>", 0.05)),) if candidates else ()
        return Tokens((number,), (0,), piece, (piece.encode(),), likeliest)

    def count(self, text: str) -> int:
        if text == "raise":
            raise RuntimeError("a bug while counting")
        return len(text.split())

    def _words(self, word: str, rest: str) -> Sequence[str]:
        if word == "history":
            return [f"{question}={answer};" for question, answer in self.history]
        if word == "flood":  # more than a pipe holds
            return ["x" * 50_000] * 40
        if word == "print":
            print("a line from Python")
            ctypes.CDLL(None).puts(b"a line from C")
            sys.stdout.flush()
        said = rest if word == "say" else "one two three four five six"
        return [f"{piece} " for piece in said.split()]

    @staticmethod
    def _die(how: str) -> None:
        print("ggml.c:1: GGML_ASSERT(scripted) failed", file=sys.stderr)
        if how == "exit":
            os._exit(3)
        os.kill(os.getpid(), getattr(signal, how))
        signal.pause()

    def _statistics(self, mode: Mode, tokens: int, reason: StopReason | None) -> AnswerStatistics:
        drafted = mode is not Mode.BASELINE
        return AnswerStatistics(
            mode=mode,
            target="scripted.gguf",
            drafter="scripted-dflash.gguf" if drafted else None,
            prompt_tokens=10,
            prompt_tokens_cached=4,
            output_tokens=tokens,
            tokens_per_second=128.4,
            prompt_tokens_per_second=910.0,
            time_to_first_token_s=0.031,
            tokens_per_target_pass=2.61 if drafted else 1.0,
            acceptance_length=2.75 if drafted else None,
            acceptance_rate=0.44 if drafted else None,
            acceptance_by_position=(0.78, 0.55, 0.31, 0.11) if drafted else (),
            verification_passes=tokens // 2 if drafted else 0,
            target_passes=tokens,
            drafted_tokens=tokens if drafted else 0,
            accepted_tokens=tokens // 2 if drafted else 0,
            draft_ms=2.31 if drafted else None,
            verify_ms=7.9 if drafted else None,
            memory=MEMORY,
            stop_reason=reason,
        )

    def rewind(self, turns: int) -> None:
        del self.history[turns:]

    def restore(self, turns: Sequence[KnownTurn], system: str | None = None) -> None:
        self.history = [(question, answer) for question, answer, *_ in turns]

    def reset(self, system: str | None = None) -> None:
        self.history = []

    def close(self) -> None:
        print("session closed")
