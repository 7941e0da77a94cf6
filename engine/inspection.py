"""The report of `inspect FILE`: what a GGUF file is, what it fits, and what is wrong with it.

Reads headers only. A bad file is a finding and raises nothing, unlike one that cannot be opened. It prints nothing; the
command line does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.catalog import METHOD_NAMES, drafter_places, find_drafters, gguf_files, header_of
from engine.drafter_config import (
    DrafterConfig,
    check_pair,
    has_feature_tap,
    no_tap_sentence,
    target_layer_count,
    target_vocabulary,
)
from engine.errors import ModelFileError
from engine.events import Mode
from engine.file_kind import Kind, kind_of, require_drafter
from engine.gguf_file import CannotOpen, Header


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found. `facts` are in the order in which a person wants to read them, values plain enough for JSON."""

    path: str
    kind: str  # "target", "dflash", "dflash2", "dspark", …, or "unreadable"
    what: str  # the same in words: "a DFlash 2 drafter"
    usable: bool  # as a target or as a drafter of this program
    facts: dict[str, Any]
    problems: tuple[str, ...]  # a sentence each
    fits: tuple[str, ...]  # paths: of the targets that a drafter fits, or of the drafters that fit a target
    unfit: tuple[str, ...]  # why the others do not

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON; the names of facts become identifiers."""
        return asdict(self) | {"facts": {label.replace(" ", "_"): value for label, value in self.facts.items()}}

    def lines(self) -> list[str]:
        """The report as text, one line each."""
        name = Path(self.path).name or self.path
        lines = [f"{name} is {self.what}."]
        lines += fact_lines(self.facts)
        if self.problems:
            lines += ["What is wrong with it:", *(f"  {problem}" for problem in self.problems)]
        if self.fits:
            lines += ["It fits:", *(f"  {path}" for path in self.fits)]
        if self.unfit:
            lines += ["It does not fit:", *(f"  {sentence}" for sentence in self.unfit)]
        if self.usable and not self.fits and not self.unfit:
            other = "drafter" if self.kind == Kind.TARGET.name.lower() else "target"
            lines.append(f"There was no {other} to hold it against.")
        return lines


def inspect(
    path: str | Path,
    targets: Iterable[str | Path] = (),
    folders: Iterable[str | Path] | None = None,
) -> Inspection:
    """Look into a file. A drafter is held against `targets` and those in `folders`, a target against drafters there.

    `folders` default to those where drafters are looked for. Raises `CannotOpen`.
    """
    folders = drafter_places() if folders is None else tuple(folders)
    try:
        header = header_of(path)
    except CannotOpen:
        raise
    except ModelFileError as error:
        return Inspection(str(path), "unreadable", "no model file that can be read", False, {}, (str(error),), (), ())
    kind = kind_of(header)
    facts = _common_facts(header)
    problems: list[str] = []
    fits: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()
    if kind is Kind.TARGET:
        facts |= _target_facts(header)
        if not has_feature_tap(header):
            problems.append(no_tap_sentence(header))
        else:
            found = find_drafters(header, folders).values()
            fits = tuple(path for drafters in found for path in drafters.fitting)
            unfit = tuple(dict.fromkeys(sentence for drafters in found for sentence in drafters.unfit))
    elif kind.is_drafter:
        try:
            require_drafter(header)
            facts |= _drafter_facts(DrafterConfig.from_header(header))
            fits, unfit = _hold_against(header, [*targets, *gguf_files(folders)])
        except ModelFileError as error:
            problems.append(str(error))
    else:
        problems.append(f"{header.file_name} can be neither target nor drafter; choose another file.")
    usable = kind is Kind.TARGET or (kind.is_drafter and not problems)
    return Inspection(str(path), kind.name.lower(), kind.value, usable, facts, tuple(problems), fits, unfit)


def fact_lines(facts: dict[str, Any]) -> list[str]:
    """Facts as text, one line each, under one another."""
    width = max((len(label) for label in facts), default=0)
    return [f"  {label:<{width}}  {_shown(value)}" for label, value in facts.items()]


def facts_of(header: Header) -> dict[str, Any]:
    """The facts of a header alone, of a file that is not here yet. Raises ModelFileError for a bad drafter."""
    kind = kind_of(header)
    facts = {"is": kind.value} | _common_facts(header)
    if kind is Kind.TARGET:
        return facts | _target_facts(header)
    return facts | (_drafter_facts(DrafterConfig.from_header(header)) if kind.is_drafter else {})


def _hold_against(drafter: Header, paths: Iterable[str | Path]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The targets that a drafter fits, and why it does not fit the others."""
    fits: list[str] = []
    unfit: list[str] = []
    for path in dict.fromkeys(str(Path(path).absolute()) for path in paths):
        try:
            target = header_of(path)
        except ModelFileError:
            continue  # another file's trouble
        if kind_of(target) is not Kind.TARGET:
            continue
        reasons = check_pair(drafter, target)
        unfit += reasons
        if not reasons:
            fits.append(path)
    return tuple(fits), tuple(unfit)


def _common_facts(header: Header) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": header.name,
        "architecture": header.architecture or None,
        "quantisation": header.quantisation or None,
        "parameters": header.parameters,
        "tensors": len(header.tensors),
        "file bytes": header.file_bytes,
    }
    licence = header.text("general.license")
    return facts | ({"licence": licence} if licence else {})


def _target_facts(target: Header) -> dict[str, Any]:
    tap = has_feature_tap(target)
    return {
        "hidden size": target.count("embedding_length"),
        "layers": target_layer_count(target),
        "vocabulary": target_vocabulary(target),
        "context trained": target.count("context_length"),
        "chat template": bool(target.text("tokenizer.chat_template")),
        "drafting": "possible" if tap else "not possible with this architecture",
    }


def _drafter_facts(config: DrafterConfig) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "method": METHOD_NAMES[config.version],
        "hidden size": config.hidden_size,
        "layers": config.layers,
        "heads": f"{config.heads}/{config.kv_heads} of {config.head_dim}",
        "block size": config.block_size,
        "listens at target layers": list(config.target_layers),
        "vocabulary": config.vocabulary,
        "mask token": config.mask_token,
        "embeddings": "its own" if config.own_embeddings else "the target's",
        "head": _head(config),
        "block attention": "causal" if config.causal else "in both directions",
        "positions": _positions(config),
    }
    if config.version is Mode.DFLASH2:
        facts["selector"] = f"rank {config.selector_rank}, {config.selector_top_k} candidates"
        facts["convolution"] = f"{config.conv_kernel} taps, groups of {config.conv_group}"
    if config.window is not None:
        facts["sliding window"] = f"{config.window} positions in {sum(config.sliding)} of {config.layers} layers"
    for label, value, usual in (
        ("logit scale", config.logit_scale, 1.0),
        ("soft cap", config.soft_cap, None),
        ("embedding scale", config.embedding_scale, 1.0),
        ("value scale", config.value_scale, 1.0),
        ("activation", config.activation, "silu"),
    ):
        if value != usual:
            facts[label] = value
    layer = max(config.target_layers)
    facts["needs a target with"] = (
        f"hidden size {config.hidden_size}, the same {config.vocabulary} tokens, more than {layer} layers"
    )
    return facts


def _head(config: DrafterConfig) -> str:
    if config.draft_vocabulary is not None:
        return f"its own, reduced to {config.draft_vocabulary} tokens"
    if config.own_head:
        return "its own"
    return "its own embeddings" if config.own_embeddings else "the target's"


def _positions(config: DrafterConfig) -> str:
    rope = config.rope
    scaled = "" if rope.scaling == "none" else f", {rope.scaling} scaling by {rope.factor:g}"
    partial = "" if rope.dims == config.head_dim else f", {rope.dims} of {config.head_dim} dimensions turned"
    return f"trained to {config.context_length}, rope base {rope.freq_base:g}{scaled}{partial}"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return str(value)
