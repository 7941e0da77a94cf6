"""`dflash-chat bench`: its arguments, the plan that follows from them, and what it prints while that is carried out."""

from __future__ import annotations

import argparse
import os
import shlex
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from engine.events import KV_TYPES, LoadSettings, Mode

if TYPE_CHECKING:
    from engine.bench.plan import Plan
    from engine.bench.progress import RunEvent
    from engine.bench.suite import Question

INTERRUPTED = 130
SWEEP_NAMES = ("whole", "draft-length", "block", "ablation", "quantisation")
SET_NAMES = ("gsm8k", "math-500", "humaneval", "mbpp", "mt-bench")
_SAY_EVERY_S = 5.0

TEXT = """\
Decode the same questions in the three modes under the same conditions, and report what came of it: tokens per second,
acceptance, start-up, memory, and whether the answers are the same. Each mode runs in a fresh process, the modes take
turns, and the report says how to repeat it. Ctrl-C stops at any time; what was measured until then is reported, and
the same command with the same --out goes on from there.

  dflash-chat bench --quick                        a few minutes on two cores
  dflash-chat bench --out report                   the whole suite
  dflash-chat bench --sweep draft-length,ablation --drafter drafter.gguf
  dflash-chat bench --suite gsm8k,humaneval --per-kind 20
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = TEXT
    models = parser.add_argument_group("models and modes")
    models.add_argument("--model", metavar="FILE", help="the target's GGUF file (default: the embedded model)")
    models.add_argument(
        "--drafter", metavar="FILE", action="append", default=[],
        help="a drafter's GGUF file; one for each version (default: those that fit)",
    )  # fmt: skip
    names = ",".join(mode.value for mode in Mode)
    models.add_argument("--modes", type=_modes, default=tuple(Mode), metavar="LIST", help=f"(default: {names})")
    models.add_argument("--draft-length", type=_count, metavar="N", help="drafts checked per pass (default: automatic)")
    questions = parser.add_argument_group("questions")
    questions.add_argument(
        "--suite", type=_words, default=("suite",), metavar="LIST",
        help="suite (the program's own, the default), FILE.json, or sets from the Hugging Face Hub: "
        + ", ".join(SET_NAMES),
    )  # fmt: skip
    questions.add_argument("--kinds", type=_words, default=(), metavar="LIST", help="of the suite (default: all)")
    questions.add_argument(
        "--per-kind", type=_count, metavar="N", help="questions of each kind (default: all; of a set from the Hub: 20)"
    )
    conditions = parser.add_argument_group("conditions")
    conditions.add_argument(
        "--concurrency", type=_counts, metavar="LIST", help="answers at once (default: 1,2,4; quick: 1,4)"
    )
    conditions.add_argument("--temperature", type=_temperatures, metavar="LIST", help="(default: 0,0.8; quick: 0)")
    conditions.add_argument("--max-tokens", type=_count, metavar="N", help="of an answer (default: 128; quick: 48)")
    conditions.add_argument("--runs", type=_count, metavar="R", help="(default: 3; quick: 2)")
    conditions.add_argument("--threads", type=_threads, metavar="N", help="CPU threads (default: physical cores)")
    conditions.add_argument("--context", type=_count, default=1024, metavar="N", help="tokens (default: %(default)s)")
    usual = LoadSettings()
    conditions.add_argument("--device", metavar="NAME", help="where layers go, such as CPU or CUDA0 (default: chosen)")
    conditions.add_argument(
        "--gpu-layers", type=_seed, metavar="N", default=usual.gpu_layers,
        help="how many layers go to a device other than the CPU (default: all)",
    )  # fmt: skip
    conditions.add_argument(
        "--kv-type", choices=KV_TYPES, metavar="TYPE", default=usual.kv_type,
        help=f"of the target's keys and values: {', '.join(KV_TYPES)} (default: %(default)s)",
    )  # fmt: skip
    conditions.add_argument("--seed", type=_seed, default=1, metavar="N", help="(default: %(default)s)")
    conditions.add_argument(
        "--samples", type=_seed, metavar="N",
        help="drawn answers for the test that distributions agree, to each of four questions; 0: no test "
        "(default: 200; quick: 25)",
    )  # fmt: skip
    conditions.add_argument(
        "--sweep", type=_sweeps, default=("whole",), metavar="LIST",
        help=f"also measure drafters in other ways: none, {', '.join(SWEEP_NAMES)} or all (default: whole)",
    )  # fmt: skip
    conditions.add_argument(
        "--quick", action="store_true", help="two questions of each kind, short answers, five minutes at most"
    )
    report = parser.add_argument_group("report")
    report.add_argument("--out", metavar="DIR", help="where the report goes (default: a new folder bench-DATE-TIME)")
    report.add_argument("--beside", metavar="FILE", help="an earlier report's bench.json, to lay beside this one")
    report.add_argument("--json", action="store_true", help="print the raw numbers instead of the table")


def run(
    given: argparse.Namespace, cancel: threading.Event, say: Callable[[str], None], show: Callable[[str], None]
) -> int:
    """The exit status. `say` takes progress and notices, `show` the result. Raises DFlashChatError, OSError."""
    import json

    from engine.bench.prepare import begun
    from engine.bench.report import for_terminal, write_report
    from engine.bench.results import read, to_json, write
    from engine.bench.runner import Runner

    beside = read(Path(given.beside)) if given.beside else None
    plan = _plan(given, say)
    folder = Path(given.out or time.strftime("bench-%Y%m%d-%H%M%S"))
    results = begun(plan, _command(given), folder, say)
    write(results, folder)
    Runner(results, folder, _Told(say), cancel).run()
    page, mark, raw = write_report(results, folder, beside)
    show(json.dumps(to_json(results), ensure_ascii=False) if given.json else for_terminal(results))
    say(f"Report: {page}; for a README: {mark}; raw numbers: {raw}")
    if cancel.is_set():
        say(f"Stopped; the same command with --out {folder} goes on from here.")
        return INTERRUPTED
    return 0


# --- the plan ---------------------------------------------------------------------------------------------------------


def _plan(given: argparse.Namespace, say: Callable[[str], None]) -> Plan:
    """Raises DFlashChatError."""
    from dataclasses import replace

    from engine.bench.prepare import Wanted, drafters_given, make_plan, usual

    conditions = usual(given.quick)
    conditions = replace(
        conditions,
        max_tokens=given.max_tokens or conditions.max_tokens,
        runs=given.runs or conditions.runs,
        concurrency=given.concurrency or conditions.concurrency,
        temperatures=given.temperature or conditions.temperatures,
        threads=given.threads,
        context=given.context,
        gpu_layers=given.gpu_layers,
        device=given.device,
        kv_type=given.kv_type,
        seed=given.seed,
        samples=conditions.samples if given.samples is None else given.samples,
        suite=", ".join(map(_suite_name, given.suite)),
    )
    wanted = Wanted(
        tuple(_questions(given)),
        given.model,
        drafters_given(given.drafter),
        given.modes,
        given.draft_length,
        given.sweep,
    )
    return make_plan(wanted, conditions, say)


def _questions(given: argparse.Namespace) -> list[Question]:
    from engine.bench.prepare import QUICK_PER_KIND
    from engine.bench.sets import named_set
    from engine.bench.suite import OWN, suite
    from engine.errors import PromptError

    per_kind = given.per_kind or (QUICK_PER_KIND if given.quick else None)
    found: list[Question] = []
    for name in given.suite:
        if name in SET_NAMES:
            found += named_set(name, per_kind or 20)
        elif name == OWN:
            found += suite(kinds=given.kinds, per_kind=per_kind)
        elif name.endswith(".json"):
            found += suite(Path(name), given.kinds, per_kind)
        else:
            raise PromptError(
                f"There are no questions called {name}; give suite, a FILE.json or one of {', '.join(SET_NAMES)}."
            )
    if not found:
        raise PromptError("There is no question to ask; choose other kinds.")
    return found


def _command(given: argparse.Namespace) -> str:
    """The command that asks for the same, with files by their names."""
    usual = argparse.ArgumentParser()
    add_arguments(usual)
    words = ["dflash-chat", "bench"]
    for name, value in vars(given).items():
        if name in ("command", "debug", "out", "beside", "json") or value == usual.get_default(name):
            continue
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif name in ("drafter", "model"):
            paths = [value] if isinstance(value, str) else value
            words += [word for path in paths for word in (option, Path(path).name)]
        elif name == "suite":
            words += [option, ",".join(map(_suite_name, value))]
        else:
            words += [option, ",".join(map(_word, value if isinstance(value, tuple) else (value,))) or "none"]
    return shlex.join(words)


def _suite_name(name: str) -> str:
    return Path(name).name if name.endswith(".json") else name


def _word(value: object) -> str:
    if isinstance(value, Mode):
        return value.value
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- progress ---------------------------------------------------------------------------------------------------------


class _Told:
    """Says which part is on, and how far it has come."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._due = 0.0
        self._where = ""

    def __call__(self, event: RunEvent) -> None:
        from engine.bench.progress import PartBegan, PartEnded, QuestionDone, Stage

        now = time.monotonic()
        if isinstance(event, PartBegan):
            self._where = f"{event.number} of {event.of}: {event.part.name}"
            self._due = now + _SAY_EVERY_S
            self._say(self._where)
        elif isinstance(event, PartEnded) and event.result.error:
            self._say(event.result.error)
        elif isinstance(event, Stage):
            self._say(event.text)
        elif isinstance(event, QuestionDone) and now >= self._due:
            self._due = now + _SAY_EVERY_S
            self._say(f"{self._where}, {event.done} of {event.of} answers")


# --- kinds of values --------------------------------------------------------------------------------------------------


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _modes(text: str) -> tuple[Mode, ...]:
    try:
        found = tuple(Mode(word) for word in _words(text))
    except ValueError:
        found = ()
    if not found:
        raise argparse.ArgumentTypeError(f"{text} is not a list of {', '.join(mode.value for mode in Mode)}")
    return found


def _sweeps(text: str) -> tuple[str, ...]:
    found = _words(text)
    if found == ("none",):
        return ()
    wrong = [word for word in found if word not in (*SWEEP_NAMES, "all")]
    if wrong or not found:
        raise argparse.ArgumentTypeError(f"{text} is not none, all or a list of {', '.join(SWEEP_NAMES)}")
    return found


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)


def _threads(text: str) -> int:
    most = 4 * (os.cpu_count() or 1)  # far more than help; ggml starts as many as it is told
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 to {most}")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 0")
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_count(word) for word in _words(text))) or (_count(text),)


def _temperatures(text: str) -> tuple[float, ...]:
    try:
        found = tuple(dict.fromkeys(float(word) for word in _words(text)))
    except ValueError:
        found = ()
    if not found or not all(0 <= value < float("inf") for value in found):
        raise argparse.ArgumentTypeError(f"{text} is not a list of numbers of at least 0")
    return found
