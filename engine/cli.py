"""The command line's arguments: `dflash-chat run`, `inspect`, `check-drafter` and the others.

What a command does stands in `engine/commands.py`, which is imported when one runs, so that --help does not wait.
Knows nothing of Qt, and of the window only how to start it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from engine import models_command
from engine.bench import command as bench
from engine.events import KV_TYPES, LoadSettings, Mode, SamplerSettings
from engine.help_text import HelpFormatter
from engine.train import command as train

ERROR = 2
INTERRUPTED = 130
CONVERTED_TYPES = ("F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K", "Q4_K", "Q4_0", "IQ4_NL")
DEFAULT_MAX_TOKENS = 1024  # a small greedy model can repeat itself until the context is full

RECORD_TEXT = """\
The record is a NumPy .npz file of cycles c0., c1., …, one drafted behind the other, whose arrays are
  c0.features    [n, F*H]     what enters the F layers that the drafter taps
                              (in its order), of n positions new to it
  c0.start       a number     positions before the block, of all cycles
  c0.anchor      a number     the token that the block begins with
and what a reference computed at the P = block size - 1 drafted positions, of which any may be left out:
  c0.hidden      [P, H]       behind the last norm
  c0.logits      [P, V]
  c0.path        [P]          the tokens that are proposed greedily
and, for DFlash 2 with k candidates at each position,
  c0.candidates  [P, k]       token ids, best first
  c0.unary       [P, k]       their logits
  c0.score_first [k]          scores at the first position
  c0.score_rest  [P-1, k, k]  scores of [predecessor, successor]
  c0.q_rows_t0.7 [P, k]       probabilities along the path, temperature 0.7
"""

EXAMPLES = """\
examples:
  dflash-chat                                      open the chat window
  dflash-chat run "Write a haiku about rain."      answer in the terminal
  dflash-chat run - < question.txt                 the same, with the question from a file
  dflash-chat run "Why is the sky blue?" --drafter drafter.gguf --json
  dflash-chat inspect drafter.gguf                 what is this file, and which model does it fit?

exit status: 0 well, 1 a check failed, 2 an error (one sentence on stderr says which), 130 stopped by Ctrl-C
"""

RUN_TEXT = """\
Answer one prompt. The answer is streamed to stdout; progress, notices and one line of statistics go to stderr.
Ctrl-C stops the answer and still prints the statistics.
"""

MODES_TEXT = """\
The target is the model that answers. A drafter proposes several tokens at once, which the target then checks in one
pass: the answer is the same, only the speed differs. Without --mode, the best mode is taken that has a drafter
(dflash2, then dflash, then baseline); a drafter given with --drafter says itself which mode it is for.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence, without the whole usage before it."""
        self.exit(ERROR, f"{message}; see {self.prog} --help\n")


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        print(f"dflash-chat {version()}")
        parser.exit()


def version() -> str:
    """Of the source tree that this file lies in, else of the installed package."""
    from importlib import metadata

    try:
        project = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text("utf-8")
        return str(re.findall(r'^version = "(.+)"', project, re.MULTILINE)[0])
    except (OSError, IndexError):
        return metadata.version("dflash-chat")


def build_parser() -> argparse.ArgumentParser:
    parser = _parser(_Parser, prog="dflash-chat", epilog=EXAMPLES, description=(
        "A chat program that drafts with DFlash and DFlash 2: the target's own answers, in fewer of its passes."
    ))  # fmt: skip
    parser.add_argument("--version", action=_Version, help="show the program's version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", required=True)
    commands.add_parser("window", help="open the chat window; so does no command at all", add_help=False)
    _add_run(commands)
    _add_inspect(commands)
    _add_check_drafter(commands)
    _add_convert(commands)
    _add_measure_quantisation(commands)
    measuring = _parser(commands.add_parser, "bench", help="compare baseline, DFlash and DFlash 2 on this machine")
    bench.add_arguments(measuring)
    _debug(measuring)
    models_command.add_arguments(_parser(commands.add_parser, "models", help="see, find, get and check models"))
    training = _parser(commands.add_parser, "train", help="make drafters for a model (needs the extra [train])")
    train.add_arguments(training)
    _debug(training)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    open_missing_streams()
    try:
        return _obey(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    except ImportError as error:
        print(incomplete(error), file=sys.stderr)
        return ERROR


def _obey(words: list[str]) -> int:
    if not words or words[0] == "window":
        return _open_window(words[1:])
    if " " in words[0].strip():  # a prompt, where a command should be
        print(f'"{words[0]}" is no command; to ask that, put the word run before it: run "…".', file=sys.stderr)
        return ERROR
    given = build_parser().parse_args(words)

    from engine import commands

    return commands.carry_out(given)


def open_missing_streams() -> None:
    """A standard stream whose descriptor was closed is None. Opened in order, each gets its own descriptor back."""
    for name, how in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, how, encoding="utf-8"))


def incomplete(error: ImportError) -> str:
    return f"The environment is incomplete ({error}); run python3 start.py again."


def _open_window(words: Sequence[str]) -> int:
    """A program of its own: the engine does not import it."""
    displays = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in displays) and not words:
        print(
            "There is no display to open a window on (neither DISPLAY nor WAYLAND_DISPLAY is set); start from a "
            'desktop session, or ask in the terminal: dflash-chat run "Write a haiku about rain."',
            file=sys.stderr,
        )
        return ERROR
    try:
        return subprocess.call([sys.executable, "-m", "app", *words])
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser(make: Callable[..., argparse.ArgumentParser], *names: str, **options: str) -> argparse.ArgumentParser:
    return make(*names, formatter_class=HelpFormatter, **options)


def _debug(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--debug", action="store_true", help="show libllama's log, and where an error came from")


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    usual = SamplerSettings()
    parser = _parser(commands.add_parser, "run", help="answer a prompt in the terminal", description=RUN_TEXT)
    parser.add_argument("prompt", metavar="PROMPT", help="the question, or - to read it from stdin")
    parser.add_argument("--system", metavar="TEXT", help="a system prompt")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead: the answer and all figures")
    _debug(parser)

    models = parser.add_argument_group("models and mode", MODES_TEXT)
    for name, text in (
        ("model", "the target's GGUF file (default: the embedded SmolLM2 135M)"),
        ("drafter", "the drafter's GGUF file (default: one that fits)"),
    ):
        models.add_argument(f"--{name}", type=_file, metavar="FILE", help=text)
    modes = [mode.value for mode in Mode]
    models.add_argument("--mode", choices=modes, metavar="MODE", help="baseline, dflash or dflash2")
    models.add_argument(
        "--draft-length", type=_count_or_auto, metavar="N|auto",
        help="drafts checked per pass; auto decides for each pass what is fastest here (default: auto)",
    )  # fmt: skip

    order = "Applied in this order: penalties, top-k, top-p, min-p, temperature."
    sampler = parser.add_argument_group("sampling", order)
    for name, type_, default, text in (
        ("repetition-penalty", _positive, usual.repetition_penalty, "divides the logits of tokens seen; 1 is off"),
        ("presence-penalty", float, usual.presence_penalty, "taken off the logits of tokens seen; 0 is off"),
        ("frequency-penalty", float, usual.frequency_penalty, "the same for each time it was seen; 0 is off"),
        ("penalty-last-n", int, usual.penalty_last_n, "how many of the newest tokens count as seen; -1 is all"),
        ("top-k", _count_or_none, usual.top_k, "keep the K likeliest tokens; 0 is off"),
        ("top-p", _share, usual.top_p, "keep the likeliest tokens up to this probability; 1 is off"),
        ("min-p", _share, usual.min_p, "keep tokens at least this likely, relative to the likeliest; 0 is off"),
        ("temperature", _not_negative, usual.temperature, "0 takes the likeliest token every time"),
    ):
        kind = "N" if type_ in (int, _count_or_none) else "X"
        sampler.add_argument(
            f"--{name}", type=type_, default=default, metavar=kind, help=f"{text} (default: %(default)s)"
        )  # fmt: skip
    sampler.add_argument("--seed", type=int, metavar="N", help="makes an answer repeatable; drafts: at a set length")

    limits = parser.add_argument_group("limits and memory")
    limits.add_argument(
        "--max-tokens", type=_count, metavar="N", help=f"end the answer after N tokens (default: {DEFAULT_MAX_TOKENS})"
    )
    limits.add_argument(
        "--context", type=_count, metavar="N", default=LoadSettings().context, help="tokens (default: %(default)s)"
    )
    limits.add_argument("--threads", type=_threads, metavar="N", help="CPU threads (default: physical cores)")
    limits.add_argument("--device", metavar="NAME", help="where layers go, such as CPU or CUDA0 (default: chosen)")
    limits.add_argument(
        "--gpu-layers", type=_count_or_none, metavar="N", default=LoadSettings().gpu_layers,
        help="how many layers go to a device other than the CPU (default: all)",
    )  # fmt: skip
    limits.add_argument(
        "--kv-type", choices=KV_TYPES, metavar="TYPE", default=LoadSettings().kv_type,
        help=f"what the context is kept in: {', '.join(KV_TYPES)} (default: %(default)s)",
    )  # fmt: skip


def _add_inspect(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _parser(commands.add_parser, "inspect", help="say what a GGUF file is and what it fits", description=(
        "Say what a GGUF file is (target, DFlash drafter, DFlash 2 drafter, …), what it fits, and what is wrong with\n"
        "it. Reads the file's header only. Exit status 1 when this program cannot use the file."
    ))  # fmt: skip
    parser.add_argument("file", type=_file, metavar="FILE")
    parser.add_argument(
        "--target", type=_file, metavar="FILE", action="append", default=[],
        help="a target to hold a drafter against, beside the embedded model and those found; may be repeated",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    _debug(parser)


def _add_check_drafter(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _parser(
        commands.add_parser, "check-drafter", help="hold a drafter file against recorded numbers", description=(
        "Hold a drafter file against recorded numbers, for anyone who converts drafters. Prints the largest relative\n"
        "difference of each quantity, and whether the drafted paths are equal. Exit status 1 past the tolerance."
    ), epilog=RECORD_TEXT)  # fmt: skip
    parser.add_argument("drafter", type=_file, metavar="FILE.gguf")
    parser.add_argument("record", type=_file, metavar="RECORD.npz")
    parser.add_argument(
        "--model", type=_file, metavar="FILE",
        help="the drafter's target, for a drafter without embeddings or an output matrix of its own",
    )  # fmt: skip
    parser.add_argument("--tolerance", type=_not_negative, default=1e-3, metavar="X", help="(default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    _debug(parser)


def _add_convert(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _parser(
        commands.add_parser, "convert", help="make a GGUF file of a drafter in safetensors form", description=(
        "Make a GGUF file of a DFlash or DFlash 2 drafter in safetensors form (a folder with config.json and\n"
        "weights), with the vocabulary of its target. Nothing is written unless the two fit."
    ))  # fmt: skip
    parser.add_argument("folder", type=_file, metavar="FOLDER")
    parser.add_argument("--target", type=_file, metavar="FILE", required=True, help="the GGUF of the drafter's target")
    parser.add_argument("--out", type=_file, metavar="FILE.gguf", required=True)
    parser.add_argument(
        "--type", metavar="TYPE", type=str.upper, choices=CONVERTED_TYPES,
        help=f"what to keep matrices in: {', '.join(CONVERTED_TYPES)} (default: what they are stored in)",
    )  # fmt: skip
    parser.add_argument(
        "--with-embeddings", action="store_true",
        help="copy the target's embeddings and head into the file, for programs that cannot share them",
    )  # fmt: skip
    _debug(parser)


def _add_measure_quantisation(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _parser(
        commands.add_parser, "measure-quantisation", help="compare quantisations of the embedded model", description=(
        "Compare quantisations of the embedded model on this machine: file size, perplexity, time of a pass over one\n"
        "token and over several. Takes some minutes; the quieter the machine, the better."
    ))  # fmt: skip
    parser.add_argument("--threads", type=_threads, metavar="N", help="CPU threads (default: physical cores)")
    parser.add_argument("--rounds", type=_count, default=20, metavar="N", help="of the timing (default: %(default)s)")
    _debug(parser)


# --- kinds of values --------------------------------------------------------------------------------------------------


def _file(name: str) -> str:
    if not name.strip():
        raise argparse.ArgumentTypeError("No file name was given")
    return name


def _checked(kind: type[int] | type[float], fits: Callable[[float], bool], what: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text} is not {what}") from None
        if not fits(value):  # nan fits nothing
            raise argparse.ArgumentTypeError(f"{text} is not {what}")
        return value

    return parse


_count = _checked(int, lambda value: value >= 1, "a whole number of at least 1")
_most_threads = 4 * (os.cpu_count() or 1)  # far more than help; ggml starts as many as it is told
_threads = _checked(int, lambda value: 1 <= value <= _most_threads, f"a whole number from 1 to {_most_threads}")


def _count_or_auto(text: str) -> float | None:
    return None if text.strip().lower() == "auto" else _count(text)


_count_or_none = _checked(int, lambda value: value >= 0, "a whole number of at least 0")
_positive = _checked(float, lambda value: 0 < value < float("inf"), "a number above 0")
_not_negative = _checked(float, lambda value: 0 <= value < float("inf"), "a number of at least 0")
_share = _checked(float, lambda value: 0 <= value <= 1, "a number from 0 to 1")

if __name__ == "__main__":
    sys.exit(main())
