"""What the commands of the command line do.

Answers and reports go to stdout; progress, notices, the line of statistics and errors to stderr. An error is one
sentence, never a traceback. Knows how to talk to a terminal, and leaves the rest to the rooms that it calls.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any, TextIO

from engine import models_command
from engine.bench import command as bench
from engine.catalog import METHOD_NAMES, drafter_mode, header_of, require_target
from engine.cli import DEFAULT_MAX_TOKENS, ERROR, INTERRUPTED, incomplete
from engine.errors import Cancelled, DFlashChatError, DrafterMismatch, PromptError, SettingsError
from engine.events import (
    Answered,
    ContextNotice,
    Event,
    Loaded,
    LoadProgress,
    LoadSettings,
    Mode,
    ModeInfo,
    PromptProgress,
    SamplerSettings,
    StopReason,
    TargetInfo,
    Tokens,
)
from engine.train import command as train

FAILED_CHECK = 1
DEBUG_VARIABLE = "DFLASH_CHAT_DEBUG"
PROGRESS_SECONDS = 10.0  # between lines of progress where stderr is no terminal


class OutputError(DFlashChatError):
    """Stdout takes nothing more, such as on a full disk."""


def carry_out(given: argparse.Namespace) -> int:
    """Run the command that was asked for; the exit status."""
    debug = given.debug or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")
    if debug:
        logging.basicConfig(level=logging.DEBUG, format="%(name)s: %(message)s")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal or pipe in another encoding cannot show every answer
            stream.reconfigure(errors="replace")
    carried_out = {
        "run": run,
        "inspect": inspect_file,
        "check-drafter": check_drafter,
        "convert": convert_drafter,
        "measure-quantisation": measure_quantisation,
        "models": models_command.run,
        "bench": measure_modes,
        "train": train.run,
    }[given.command]
    try:
        return carried_out(given)
    except (Cancelled, KeyboardInterrupt):
        _say("Stopped.")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has gone
        _silence(sys.stdout)
        return ERROR
    except ImportError as error:
        sentence, whole_story = incomplete(error), traceback.format_exc()
    except DFlashChatError as error:
        sentence, whole_story = str(error), traceback.format_exc()
    except Exception as error:
        whole_story = traceback.format_exc()
        sentence = f"The program met an error that it does not know ({type(error).__name__}: {error}); please report it"
        sentence += "." if debug else ", with what the same command says with --debug."
    if debug:
        _say(whole_story)
    _say(sentence)
    return ERROR


def _say(text: str) -> None:
    _whisper(f"{text}\n")


def _whisper(text: str) -> None:
    """To stderr. Where nobody can read it, the answer is still wanted."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)


def _print(text: str, end: str = "\n") -> None:
    """To stdout, at once. Raises OutputError, BrokenPipeError."""
    try:
        sys.stdout.write(text + end)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _silence(sys.stdout)
        raise OutputError(f"The output cannot be written ({error.strerror or error}).") from error


def _silence(stream: TextIO) -> None:
    """What is still in the buffer would fail again when the program ends."""
    with contextlib.suppress(OSError):  # a stream without a descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _print_json(found: dict[str, Any]) -> None:
    _print(json.dumps(found, ensure_ascii=False))


# --- run --------------------------------------------------------------------------------------------------------------


def run(given: argparse.Namespace) -> int:
    prompt = _text(_stdin() if given.prompt == "-" else given.prompt, "prompt")
    if not prompt.strip():
        raise PromptError("The prompt is empty; give a question.")
    system = None if given.system is None else _text(given.system, "system prompt")
    sampler = SamplerSettings(
        temperature=given.temperature,
        top_k=given.top_k,
        top_p=given.top_p,
        min_p=given.min_p,
        repetition_penalty=given.repetition_penalty,
        presence_penalty=given.presence_penalty,
        frequency_penalty=given.frequency_penalty,
        penalty_last_n=given.penalty_last_n,
        seed=given.seed,
    )
    _check_sampler(sampler)
    wanted, drafters = _wanted_mode(given)
    settings = LoadSettings(
        target=given.model,
        drafters=drafters,
        context=given.context,
        threads=given.threads,
        gpu_layers=given.gpu_layers,
        device=given.device,
        kv_type=given.kv_type,
    )

    from engine.session import Session
    from engine.stats import one_line, to_json

    shown = _Shown(stream=not given.json, context=given.context)
    answered: Answered | None = None
    with _ctrl_c_sets() as cancel, Session.open(settings, shown.event, cancel) as session:
        mode = _choose_mode(wanted, session.modes)
        if mode is Mode.BASELINE and given.draft_length is not None:
            _say("The draft length is not used: the mode baseline does not draft.")
        if system is not None:
            session.reset(system)
        for event in session.ask(
            prompt,
            mode=mode,
            sampler=sampler,
            max_tokens=given.max_tokens or DEFAULT_MAX_TOKENS,
            draft_length=given.draft_length,
            cancel=cancel,
        ):
            shown.event(event)
            if isinstance(event, Answered):
                answered = event
    if answered is None:
        raise RuntimeError("the answer had no end")
    shown.end()
    if given.max_tokens is None and answered.statistics.stop_reason is StopReason.MAX_TOKENS:
        _say(f"Stopped after {DEFAULT_MAX_TOKENS} tokens; --max-tokens allows more.")
    if given.json:
        _print_json(to_json(answered.statistics, answered.text, answered.token_ids))
    else:
        _say(one_line(answered.statistics))
    return INTERRUPTED if answered.statistics.stop_reason is StopReason.CANCELLED else 0


def _text(text: str, what: str) -> str:
    """Python keeps bytes of the command line that are no UTF-8 as lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise PromptError(f"The {what} is not valid UTF-8 text; give it in that encoding.") from None
    return text


def _check_sampler(settings: SamplerSettings) -> None:
    """Before anything is loaded, and with the names that stand on the command line. Raises SettingsError."""
    from engine.sampling import check_settings

    try:
        check_settings(settings)
    except SettingsError as error:
        named = re.sub(
            r"The sampler setting (\w+)", lambda found: f"--{found[1].replace('_', '-')}", str(error), count=1
        )  # fmt: skip
        raise SettingsError(named) from None


def _stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except OSError as error:
        raise PromptError(f"The prompt cannot be read from stdin ({error.strerror or error}).") from error
    except UnicodeDecodeError:
        raise PromptError("The prompt is not valid UTF-8 text; give it in that encoding.") from None


def _wanted_mode(given: argparse.Namespace) -> tuple[Mode | None, dict[Mode, str]]:
    """The mode asked for by name or by drafter, and the drafters given. Raises ModelFileError."""
    mode = None if given.mode is None else Mode(given.mode)
    if given.drafter is None:
        return mode, {}
    if mode is Mode.BASELINE:
        _say("The drafter is not used: the mode baseline does not draft.")
        return mode, {}
    # Given for the wrong mode, it is refused by the catalogue, with the reason.
    mode = mode or drafter_mode(given.drafter)
    return mode, {mode: given.drafter}


def _choose_mode(wanted: Mode | None, modes: tuple[ModeInfo, ...]) -> Mode:
    """The mode asked for, else the best that has a drafter; says which, and what is missing."""
    by_mode = {info.mode: info for info in modes}
    if wanted is not None:
        reason = by_mode[wanted].reason
        if reason is not None:
            raise DrafterMismatch(reason)
        return wanted
    best = next(mode for mode in (Mode.DFLASH2, Mode.DFLASH, Mode.BASELINE) if by_mode[mode].reason is None)
    drafter = by_mode[best].drafter
    _say(f"Mode: {METHOD_NAMES[best]}" + (f", with {os.path.basename(drafter)}." if drafter else "."))
    if best is Mode.BASELINE:
        reasons = dict.fromkeys(info.reason for info in modes if info.reason is not None)
        for reason in reasons:
            _say(f"  {reason}")
    return best


@contextlib.contextmanager
def _ctrl_c_sets() -> Iterator[threading.Event]:
    """The first Ctrl-C sets the event, which ends an answer well; the second interrupts as usual."""
    cancel = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield cancel
        return

    def interrupted(number: int, frame: Any) -> None:
        if cancel.is_set():
            signal.default_int_handler(number, frame)
        cancel.set()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield cancel
    finally:
        signal.signal(signal.SIGINT, before)


class _Shown:
    """Events as text: the answer on stdout if `stream`, notices on stderr, progress there if that is a terminal."""

    def __init__(self, stream: bool, context: int) -> None:
        """`context`: how many tokens of it were asked for."""
        self._stream = stream
        self._context = context
        self._terminal = sys.stderr.isatty()
        self._progress = False  # a line of progress stands on the terminal
        self._last = "\n"
        self._told: set[str] = set()
        self._under_way = ""  # what the progress was of, and when a line of it was last due
        self._due = 0.0

    def event(self, event: Event) -> None:
        if isinstance(event, LoadProgress):
            self._load_progress(event)
        elif isinstance(event, Loaded):
            self._loaded(event.target)
        elif isinstance(event, PromptProgress) and event.total > 1:
            self._show_progress(f"reading the prompt{' again' if event.again else ''}", event.done / event.total)
        elif isinstance(event, ContextNotice):
            self._clear()
            self._end_line()
            _say(event.sentence)
        elif isinstance(event, Tokens) and event.text and self._stream:
            self._clear()
            _print(event.text, end="")
            self._last = event.text[-1]

    def progress(self, what: str, fraction: float) -> None:
        self._show_progress(what, fraction)

    def end(self) -> None:
        self._clear()
        self._end_line()

    def _load_progress(self, event: LoadProgress) -> None:
        if event.part == "measuring":  # takes a second or two
            if self._terminal:
                self._show_progress("measuring what drafts cost here", event.fraction)
        elif self._terminal:
            self._show_progress(f"loading the {event.part}", event.fraction)
        elif event.part not in ("target", "drafter"):  # something that takes its time, once
            if event.part not in self._told:
                self._told.add(event.part)
                _say(f"Preparing the {event.part} (this happens once)…")
            self._show_progress(f"preparing the {event.part}", event.fraction)

    def _loaded(self, target: TargetInfo) -> None:
        if 0 < target.context_trained < self._context:
            self._clear()
            _say(f"The model was trained for {target.context_trained} tokens of context; that is used.")

    def _show_progress(self, what: str, fraction: float) -> None:
        if fraction >= 1:
            self._clear()
        elif self._terminal:
            _whisper(f"\r\x1b[K{what}: {100 * fraction:.0f} %")
            self._progress = True
        else:
            self._progress_line(what, fraction)

    def _progress_line(self, what: str, fraction: float) -> None:
        now = time.monotonic()
        if what != self._under_way:
            self._under_way, self._due = what, now + PROGRESS_SECONDS
        if now >= self._due:
            _say(f"{what}: {100 * fraction:.0f} %")
            self._due = now + PROGRESS_SECONDS

    def _clear(self) -> None:
        if self._progress:
            _whisper("\r\x1b[K")
            self._progress = False

    def _end_line(self) -> None:
        if self._stream and self._last != "\n":
            _print("")
            self._last = "\n"


# --- the others -------------------------------------------------------------------------------------------------------


def inspect_file(given: argparse.Namespace) -> int:
    from engine.embedded import packaged_model
    from engine.inspection import inspect

    targets = list(given.target)
    for target in targets:
        require_target(header_of(target))
    with contextlib.suppress(DFlashChatError):  # without it there is one target less to hold a drafter against
        targets.append(str(packaged_model()))
    found = inspect(given.file, targets)
    if given.json:
        _print_json(found.as_dict())
    else:
        _print("\n".join(found.lines()))
    return 0 if found.usable else FAILED_CHECK


def check_drafter(given: argparse.Namespace) -> int:
    from engine.check_drafter import check

    report = check(given.drafter, given.record, given.tolerance, given.model)
    if given.json:
        _print_json(report.as_json())
    else:
        _print("\n".join(report.lines()))
    return 0 if report.passed else FAILED_CHECK


def convert_drafter(given: argparse.Namespace) -> int:
    from engine.convert import convert

    shown = _Shown(stream=False, context=0)
    with _ctrl_c_sets() as cancel:

        def progress(fraction: float) -> None:
            if cancel.is_set():
                raise Cancelled
            shown.progress("converting", fraction)

        result = convert(
            given.folder,
            given.target,
            given.out,
            type=given.type,
            with_embeddings=given.with_embeddings,
            on_progress=progress,
        )
    shown.end()
    for note in result.notes:
        _say(note)
    header, method = header_of(result.path), METHOD_NAMES[drafter_mode(result.path)]
    _print(f"{result.path}: {method}, {header.quantisation}, {header.file_bytes:,} bytes")
    return 0


def measure_quantisation(given: argparse.Namespace) -> int:
    from engine.quantisation_bench import measure

    for line in measure(given.threads, given.rounds, _say):
        _print(line)
    return 0


def measure_modes(given: argparse.Namespace) -> int:
    with _ctrl_c_sets() as cancel:
        try:
            return bench.run(given, cancel, _say, _print)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"The report cannot be written ({error.strerror or error}).") from error
