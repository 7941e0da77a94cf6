"""`dflash-chat train`: its arguments, and what it prints while the recipe is carried out."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.train.recipe import Recipe

STEPS = ("corpus", "features", "training", "export", "evaluation")
_METHODS = {"dflash": ("dflash",), "dflash2": ("dflash2",), "both": ("dflash", "dflash2")}
_REPORT_EVERY_S = 2.0
INTERRUPTED = 130

TEXT = """\
Make a DFlash and a DFlash 2 drafter for a model, from nothing but the model: it writes conversations, its features at
every token are kept, the drafters learn from them, are written as GGUF files into DIR, and measured. Started again with
the same DIR, the command goes on where it was stopped. Needs the extra [train] (PyTorch, gguf).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = TEXT
    parser.add_argument("target", metavar="TARGET.gguf", nargs="?", help="the model (default: the embedded one)")
    parser.add_argument("--out", metavar="DIR", required=True, help="where the drafters, their card and the work go")
    parser.add_argument(
        "--method", choices=tuple(_METHODS), default="both", help="which drafters (default: %(default)s)"
    )
    parser.add_argument("--hours", type=_positive, default=1.0, metavar="H", help="time for all of it (default: 1)")
    parser.add_argument("--step", choices=STEPS, help="do this step only")
    parser.add_argument("--threads", type=_count, metavar="N", help="CPU threads (default: physical cores)")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    design = parser.add_argument_group("the drafters")
    design.add_argument("--layers", type=_count, default=2, metavar="L", help="(default: %(default)s)")
    design.add_argument("--block", type=_count, default=8, metavar="B", help="anchor and drafts (default: %(default)s)")
    design.add_argument(
        "--draft-vocabulary", type=_count, default=12288, metavar="N",
        help="propose only the N tokens that answers use most: the whole head is slow (default: %(default)s)",
    )  # fmt: skip
    design.add_argument("--type", default="IQ4_NL", metavar="TYPE", help="of the matrices: IQ4_NL, Q4_0, Q8_0 or F16")
    data = parser.add_argument_group("the data")
    data.add_argument("--prompts", metavar="FILE", help="questions to ask the model, one a line")
    data.add_argument(
        "--corpus", metavar="PATH", action="append", default=[], help="a ready corpus (.npz or a folder of them)"
    )
    data.add_argument("--no-own-corpus", action="store_true", help="learn from the ready corpora alone")
    data.add_argument(
        "--answer-tokens", type=_count, default=220, metavar="N", help="of one answer (default: %(default)s)"
    )
    data.add_argument(
        "--evaluate-on", metavar="FILE", help='further questions to measure on, as JSON: {"kind": ["question", ...]}'
    )


def run(args: argparse.Namespace) -> int:
    """The exit status. Raises DFlashChatError."""
    try:
        import gguf  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        remedy = f"{sys.executable} -m pip install torch==2.13.0 gguf"
        print(f"Training needs {error.name}; install it with: {remedy}", file=sys.stderr)
        return 2
    from engine.train.recipe import Run

    last = 0.0
    shown = ""

    def report(step: str, text: str) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if step != shown or now - last >= _REPORT_EVERY_S:
            print(f"{step}: {text}", file=sys.stderr, flush=True)
            last, shown = now, step

    run = Run(_recipe(args), Path(args.out), report)
    try:
        run.carry_out((args.step,) if args.step else STEPS)
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from here.", file=sys.stderr)
        return INTERRUPTED
    return 0


def _recipe(args: argparse.Namespace) -> Recipe:
    import psutil

    from engine.embedded import embedded_model
    from engine.errors import PromptError
    from engine.events import Mode
    from engine.train.recipe import Recipe

    def text_of(path: str) -> str:
        try:
            return Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PromptError(f"{path} could not be read as text ({error}); give a UTF-8 file.") from error

    questions = {}
    if args.evaluate_on:
        try:
            questions = {
                str(kind): [str(q) for q in group] for kind, group in json.loads(text_of(args.evaluate_on)).items()
            }
        except (ValueError, AttributeError, TypeError) as error:
            raise PromptError(
                f'{args.evaluate_on} is not of the form {{"kind": ["question", ...]}} ({error}).'
            ) from error
    prompts = [line.strip() for line in text_of(args.prompts).splitlines()] if args.prompts else []
    return Recipe(
        target=args.target or str(embedded_model()),
        modes=tuple(Mode(name) for name in _METHODS[args.method]),
        hours=args.hours,
        layers=args.layers,
        block=args.block,
        draft_vocabulary=args.draft_vocabulary,
        matrices=args.type.upper(),
        prompts=tuple(line for line in prompts if line),
        corpora=tuple(args.corpus),
        write_corpus=not args.no_own_corpus,
        questions=questions,
        answer_tokens=args.answer_tokens,
        threads=args.threads or psutil.cpu_count(logical=False) or 1,
        seed=args.seed,
    )


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 on")
    return value


def _positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value
