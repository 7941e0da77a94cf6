"""From what somebody wants compared to a plan and results to be filled. The command line and the window both ask here.

Reads headers and hashes files; starts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from engine import catalog
from engine.bench.machine import file_facts, local_time, machine
from engine.bench.plan import SWEEPS, WHOLE, Conditions, Plan, mode_variants, sweep_variants
from engine.bench.results import FILE, Results, read
from engine.bench.suite import Question
from engine.embedded import embedded_model
from engine.errors import DrafterMismatch, SettingsError
from engine.events import Mode
from engine.stats import MODE_NAMES

ALL_SWEEPS = "all"
QUICK_PER_KIND = 2  # questions
QUICK_LIMIT_S = 220.0  # with what comes behind, five minutes


@dataclass(frozen=True)
class Wanted:
    """What to compare. `target` None: the embedded model; `drafters`: given by hand, others are searched for."""

    questions: tuple[Question, ...]
    target: str | None = None
    drafters: Mapping[Mode, str] | None = None
    modes: tuple[Mode, ...] = tuple(Mode)
    draft_length: int | None = None
    sweeps: tuple[str, ...] = (WHOLE,)


def usual(quick: bool) -> Conditions:
    """What is measured unless somebody wants it otherwise: all of it, or what two cores do in a few minutes."""
    if quick:
        return Conditions(
            "", max_tokens=48, runs=2, concurrency=(1, 4), temperatures=(0.0,), samples=25, limit_s=QUICK_LIMIT_S
        )
    return Conditions("", max_tokens=128, runs=3, concurrency=(1, 2, 4), temperatures=(0.0, 0.8), samples=200)


def make_plan(wanted: Wanted, conditions: Conditions, notice: Callable[[str], None] = lambda _text: None) -> Plan:
    """The conditions' target and threads are filled in. `notice` hears which modes are left out, and why.

    Raises DFlashChatError, such as DrafterMismatch for a drafter given by hand that does not fit.
    """
    target = wanted.target or str(embedded_model())
    header = catalog.header_of(target)
    catalog.require_target(header)
    given = wanted.drafters or {}
    infos = {info.mode: info for info in catalog.modes_for(header, given=given)}
    modes = [mode for mode in Mode if mode in wanted.modes]
    missing = tuple((mode, infos[mode].reason or "") for mode in modes if infos[mode].reason is not None)
    for mode, reason in missing:
        if mode in given:
            raise DrafterMismatch(reason)
        notice(f"{MODE_NAMES[mode]} is left out. {reason}")
    found = {mode: path for mode in modes if (path := infos[mode].drafter) is not None}
    sweeps = tuple(SWEEPS) if ALL_SWEEPS in wanted.sweeps else wanted.sweeps
    threads = conditions.threads or psutil.cpu_count(logical=False) or 1
    return Plan(
        replace(conditions, target=target, threads=threads),
        wanted.questions,
        (*mode_variants(modes, found, wanted.draft_length), *sweep_variants(sweeps, found)),
        missing,
    )


def drafters_given(paths: Sequence[str]) -> dict[Mode, str]:
    """By the mode that each is for. Raises ModelFileError, and SettingsError when two are for one mode."""
    found: dict[Mode, str] = {}
    for path in paths:
        mode = catalog.drafter_mode(path)
        if mode in found:
            raise SettingsError(
                f"{Path(found[mode]).name} and {Path(path).name} are both {MODE_NAMES[mode]} drafters; give one."
            )
        found[mode] = path
    return found


def new_results(plan: Plan, command: str) -> Results:
    """Hashes the files. Raises ModelFileError, OSError."""
    files = {"target": file_facts(plan.conditions.target)}
    files |= {v.mode.value: file_facts(v.drafter) for v in plan.variants if v.drafter is not None}
    return Results(machine(plan.conditions.threads or 1), files, plan, command, local_time())


def begun(plan: Plan, command: str, folder: Path, notice: Callable[[str], None] = lambda _text: None) -> Results:
    """Those of the folder, where they are of the same plan and unfinished, else new ones.

    Raises SettingsError when the folder holds another report, DFlashChatError, OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    new = new_results(plan, command)
    if not (folder / FILE).exists():
        return new
    old = read(folder)
    if old.fingerprint != new.fingerprint:
        raise SettingsError(f"{folder} holds a report of something else; choose another folder with --out.")
    if old.finished:
        raise SettingsError(f"{folder} holds this report, finished; choose another folder with --out to repeat it.")
    old.plan = plan  # which knows where the files lie
    notice(f"Going on in {folder}, where {sum(part.complete for part in old.parts)} parts are done.")
    return old
