"""The model card: what was trained on what, and what it is worth, as Markdown with pictures.

All figures come from the engine, through `measurements`; the learning curve comes from training.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from engine.drafter_config import DrafterConfig
from engine.events import Mode
from engine.gguf_file import Header, read_header
from engine.graph import Device
from engine.pictures import Line, line_chart
from engine.stats import MODE_NAMES
from engine.target import Target
from engine.train.evaluate import Answer, Question, acceptance_length, by_kind, by_position, ratio
from engine.train.measurements import NO_CONVOLUTION, NO_SELECTOR, TEMPERATURES, Evaluation, Measurements
from engine.vocabulary import Message

if TYPE_CHECKING:
    from engine.train.recipe import Run

HELD_OUT, GIVEN = "held-out questions", "given questions"
_CONTEXT = 1024
_QUICK = 0.5  # hours: below it fewer and shorter answers are measured
_ORDER = (Mode.DFLASH, Mode.DFLASH2)


def evaluate_run(run: Run) -> None:
    """Measure the drafters a run has made, and write its card beside them."""
    quick = run.recipe.hours < _QUICK
    drafters = {mode: run.drafter_path(mode) for mode in run.recipe.modes if run.drafter_path(mode).exists()}
    curves = run.work / "curves.json"
    _, held_out = run.conversations()
    write_card(
        run.header, drafters, run.out, run.work / "results.json",
        held_out=[(c.kind, c.ids.tolist(), c.start, c.temperature) for c in held_out],
        questions=run.recipe.questions,
        curves=json.loads(curves.read_text("utf-8")) if curves.exists() else {},
        threads=run.recipe.threads,
        limit=12 if quick else 48,
        tokens=64 if quick else 96,
        report=lambda text: run.report("evaluation", text),
    )  # fmt: skip


def write_card(
    header: Header,
    drafters: Mapping[Mode, Path],
    out: Path,
    results: Path,
    *,
    held_out: Sequence[tuple[str, list[int], int, float]],
    questions: Mapping[str, Sequence[str]],
    curves: Mapping[str, Any],
    threads: int,
    limit: int,
    tokens: int,
    report: Any,
) -> Path:
    """`held_out`: (kind, ids, index of the answer's first token, temperature) of conversations not learnt from."""
    target = Target(header, context=_CONTEXT, threads=threads)
    try:
        with Device.cpu(threads) as device:
            evaluation = Evaluation(target, device, Measurements(results), tokens, report)
            sets: dict[str, list[Question]] = {}
            asked = _spread({(kind, tuple(ids[:start])) for kind, ids, start, _ in held_out}, limit)
            if asked:
                sets[HELD_OUT] = [Question(kind, ids) for kind, ids in asked]
            if questions:
                sets[GIVEN] = [
                    Question(kind, tuple(target.vocabulary.render([Message("user", text)])))
                    for kind, group in questions.items()
                    for text in group
                ]
            recorded = [(ids, start) for _, ids, start, temperature in held_out if temperature == 0][
                : max(1, limit // 2)
            ]
            parts = [_head(header, drafters)]
            parts += _acceptance(evaluation, drafters, sets)
            parts += _ablations(evaluation, drafters, sets)
            parts += _by_position(evaluation, drafters, sets, recorded, out)
            parts += _speed(evaluation, drafters, sets)
            parts += _learning(curves, out)
    finally:
        target.close()
    card = out / "README.md"
    card.write_text("\n\n".join(parts) + "\n", "utf-8")
    return card


def _spread(found: set[tuple[str, tuple[int, ...]]], limit: int) -> list[tuple[str, tuple[int, ...]]]:
    """Up to `limit` of them, the kinds taking turns."""
    kinds: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for item in sorted(found):
        kinds.setdefault(item[0], []).append(item)
    chosen: list[tuple[str, tuple[int, ...]]] = []
    while kinds and len(chosen) < limit:
        for kind in list(kinds):
            if len(chosen) < limit:
                chosen.append(kinds[kind].pop(0))
            if not kinds[kind]:
                del kinds[kind]
    return chosen


# --- parts ------------------------------------------------------------------------------------------------------------


def _head(header: Header, drafters: Mapping[Mode, Path]) -> str:
    lines = [f"# Drafters for {header.name}", "", "Made by `dflash-chat train` from the model's own answers.", ""]
    lines += [_row("file", "version", "MB", "layers", "block", "reads layers", "proposes from", "matrices")]
    lines += [_row(*["---"] * 8)]
    notes = ""
    for mode, path in drafters.items():
        drafter = read_header(str(path))
        config = DrafterConfig.from_header(drafter)
        kind = drafter.tensors["blk.0.ffn_up.weight"].type_name
        taps = ", ".join(map(str, config.target_layers))
        rows = f"{config.draft_vocabulary or config.vocabulary} tokens"
        size = f"{path.stat().st_size / 1e6:.1f}"
        lines.append(_row(f"`{path.name}`", MODE_NAMES[mode], size, config.layers, config.block_size, taps, rows, kind))
        notes = _budget(drafter.metadata)
    return "\n".join([*lines, "", notes])


def _budget(metadata: Mapping[str, Any]) -> str:
    try:
        return (
            f"Data: {metadata['training.conversations']} conversations, {metadata['training.tokens']} answer tokens; "
            f"questions: {metadata['training.questions']}. Budget: {metadata['training.seconds'] / 60:.0f} minutes of "
            f"training for all versions together, {metadata['training.steps']} steps, "
            f"{metadata['training.blocks']} blocks each, the same blocks in the same order. "
            f"Licence: {metadata.get('general.license', 'that of the model')}."
        )
    except KeyError:
        return "The files do not say what they were trained on."


def _acceptance(
    evaluation: Evaluation, drafters: Mapping[Mode, Path], sets: Mapping[str, Sequence[Question]]
) -> list[str]:
    introduction = (
        "Tokens that a verification pass emits, every draft of a block verified; with 95 % intervals from "
        "resampling the questions."
    )
    parts = ["## Acceptance length", introduction]
    modes = [mode for mode in _ORDER if mode in drafters]
    for name, questions in sets.items():
        for temperature in TEMPERATURES:
            found = {m: evaluation.answered(m, drafters[m], name, questions, temperature) for m in modes}
            lines = [f"### {name[0].upper()}{name[1:]}, temperature {temperature:g}", ""]
            both = len(modes) == 2
            lines.append(
                _row("kind", "questions", *(MODE_NAMES[m] for m in modes), *(["DFlash 2 / DFlash"] if both else []))
            )
            lines.append(_row(*["---"] * (2 + len(modes) + both)))
            grouped = {m: by_kind(found[m]) for m in modes}
            for kind in ("all", *grouped[modes[0]]):
                of = {m: found[m] if kind == "all" else grouped[m][kind] for m in modes}
                cells: list[Any] = [acceptance_length(of[m]) for m in modes]
                if both:
                    cells.append(ratio(of[Mode.DFLASH2], of[Mode.DFLASH]))
                lines.append(_row(kind, len(of[modes[0]]), *cells))
            parts.append("\n".join(lines))
    return parts


def _ablations(
    evaluation: Evaluation, drafters: Mapping[Mode, Path], sets: Mapping[str, Sequence[Question]]
) -> list[str]:
    path = drafters.get(Mode.DFLASH2)
    if path is None:
        return []
    introduction = (
        "Acceptance length at temperature 0, with a part of the trained drafter switched off. A drafter trained "
        "without the part would do better than one that misses it."
    )
    lines = [
        "## What the parts of DFlash 2 do",
        "",
        introduction,
        "",
        _row("", *sets),
        _row(*["---"] * (1 + len(sets))),
    ]
    for without in ("", NO_SELECTOR, NO_CONVOLUTION):
        cells = [
            acceptance_length(evaluation.answered(Mode.DFLASH2, path, name, questions, 0.0, without))
            for name, questions in sets.items()
        ]
        lines.append(_row(without or "complete", *cells))
    return ["\n".join(lines)]


def _by_position(
    evaluation: Evaluation,
    drafters: Mapping[Mode, Path],
    sets: Mapping[str, Sequence[Question]],
    recorded: Sequence[tuple[Sequence[int], int]],
    out: Path,
) -> list[str]:
    lines: list[str] = ["## By position", ""]
    curves: dict[str, Line] = {}
    for mode, path in drafters.items():
        drafted = DrafterConfig.from_header(read_header(str(path))).block_size - 1
        answered: list[Answer] = [
            answer
            for name, questions in sets.items()
            for answer in evaluation.answered(mode, path, name, questions, 0.0)
        ]
        accepted = by_position(answered, drafted)
        curves[MODE_NAMES[mode]] = [(k + 1, value) for k, value in enumerate(accepted)]
        if len(lines) == 2:
            lines += [_row("", *range(1, drafted + 1)), _row(*["---"] * (drafted + 1))]
        lines.append(_row(f"{MODE_NAMES[mode]}: drafts 1..k accepted", *_shares(accepted)))
        if recorded:
            found = evaluation.accuracy(path, recorded)
            lines.append(_row(f"{MODE_NAMES[mode]}: likeliest token right", *_shares(found.top_1)))
            lines.append(_row(f"{MODE_NAMES[mode]}: among the candidates", *_shares(found.top_k)))
    picture = out / "acceptance.svg"
    picture.write_text(
        line_chart(
            "Drafts accepted, temperature 0",
            "position k in the block",
            "share of passes with drafts 1..k accepted",
            curves,
        ),
        "utf-8",
    )
    lines += ["", "The last two rows of a drafter: behind recorded greedy answers, each position for itself.", ""]
    lines += [f"![Drafts accepted by position]({picture.name})"]
    return ["\n".join(lines)]


def _speed(evaluation: Evaluation, drafters: Mapping[Mode, Path], sets: Mapping[str, Sequence[Question]]) -> list[str]:
    questions = [question for group in sets.values() for question in group][::4][:16]
    if not questions:
        return []
    lines: list[str] = []
    for mode, path in drafters.items():
        found = evaluation.speed(path, questions)
        if not lines:
            introduction = (
                f"Greedy decoding on this machine, {len(questions)} questions, plain decoding and each draft length "
                "taking turns: the median over the questions of tokens/s divided by plain decoding's."
            )
            header = _row("drafts in a pass", *(n for n in found if n))
            lines = ["## Speed", "", introduction, "", header, _row(*["---"] * len(found))]
        relative = [median(a / b for a, b in zip(values, found[0])) for n, values in found.items() if n]
        lines.append(
            _row(f"{MODE_NAMES[mode]} (plain: {median(found[0]):.0f} tokens/s)", *(f"{x:.2f}" for x in relative))
        )
    return ["\n".join(lines)]


def _learning(curves: Mapping[str, Any], out: Path) -> list[str]:
    if not curves:
        return []
    losses = {MODE_NAMES[Mode(name)]: [(s, v) for s, v in curve["loss"]] for name, curve in curves.items()}
    measured = {MODE_NAMES[Mode(name)]: [(s / 60, v) for s, v in curve["acceptance"]] for name, curve in curves.items()}
    (out / "loss.svg").write_text(line_chart("Loss of the drafts", "step", "loss", losses, from_zero=False), "utf-8")
    parts = ["## Learning", "![Loss](loss.svg)"]
    if any(measured.values()):
        picture = line_chart(
            "Held-out acceptance while training", "minutes", "tokens of a cycle", measured, from_zero=False
        )
        (out / "learning.svg").write_text(picture, "utf-8")
        explanation = (
            "Where the curve still rises at the end, more time or more conversations would bring more. Computed at "
            "random anchors of held-out answers, in PyTorch and before quantisation."
        )
        parts += ["![Held-out acceptance while training](learning.svg)", explanation]
    return ["\n\n".join(parts)]


def _row(*cells: Any) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def _shares(values: Sequence[float]) -> list[str]:
    return [f"{value:.2f}" for value in values]
