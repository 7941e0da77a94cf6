"""What stands on the models page: chat models with their drafters beneath, and what each would take. Plain Python.

Made anew by looking at the disk, which takes its time: call `look` off the window's thread. Knows nothing of Qt.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.catalog import DRAFTING_MODES, header_of
from engine.drafter_config import check_pair, has_feature_tap
from engine.embedded import copy_path
from engine.errors import Cancelled, ModelFileError
from engine.events import DeviceInfo, LoadSettings, Mode
from engine.fit import Fit, judge
from engine.gguf_file import Header
from engine.known_pairs import known_drafters
from engine.library import LocalModel, Origin, local_models, packaged


@dataclass(frozen=True)
class Surroundings:
    """What a model is held against: how it would be loaded, and what is free for it."""

    settings: LoadSettings
    devices: tuple[DeviceInfo, ...] = ()
    loaded: str | None = None  # path of the target that is loaded
    given_back: int = 0  # bytes that loading another one would free


@dataclass(frozen=True)
class ShelvedTarget:
    model: LocalModel
    drafters: tuple[LocalModel, ...] = ()  # that fit it
    fit: Fit | None = None
    missing: tuple[Mode, ...] = ()  # modes that a drafter could be got for
    sizes: Mapping[Mode, int] = field(default_factory=dict)  # of these, what the catalogue says they weigh


@dataclass(frozen=True)
class Shelf:
    targets: tuple[ShelvedTarget, ...] = ()
    lone_drafters: tuple[LocalModel, ...] = ()  # whose target is not here
    others: tuple[LocalModel, ...] = ()  # that cannot be used; each has its `problem`

    @property
    def models(self) -> tuple[LocalModel, ...]:
        drafters = (drafter for target in self.targets for drafter in target.drafters)
        return (*(target.model for target in self.targets), *drafters, *self.lone_drafters, *self.others)


@dataclass
class Quest:
    """One click: a drafter is found, fetched and turned on. `wanted`: the user asked for it; else it is only priced."""

    mode: Mode
    target: str  # path
    wanted: bool = False
    stage: str = "finding"  # "offered", "none", "downloading", "switching", "on", "failed"
    sentence: str = ""
    link: str | None = None
    size: int | None = None  # bytes to download
    fraction: float | None = None
    passed_over: str = ""  # why a repository that may hold one could not be looked into
    download: str | None = None  # its id in the queue
    offer: object | None = field(default=None, repr=False)  # of engine.finding

    @property
    def is_running(self) -> bool:
        return self.stage in ("finding", "downloading", "switching")


def look(surroundings: Surroundings, cancel: threading.Event | None = None) -> Shelf:
    """Read the headers of all models on the disk. Raises Cancelled."""
    models = local_models()
    if copy_path().is_file() and all(model.path != str(copy_path()) for model in models):
        models.insert(0, packaged(copy_path()))
    loaded = surroundings.loaded
    if loaded is not None and all(model.path != loaded for model in models) and Path(loaded).is_file():
        models.insert(0, replace(packaged(loaded), origin=Origin.IMPORTED))  # given by its path
    drafters = [model for model in models if model.mode is not None]
    targets = []
    for model in models:
        if cancel is not None and cancel.is_set():
            raise Cancelled
        if model.is_target:
            targets.append(_shelved(model, drafters, surroundings))
    placed = {drafter.path for target in targets for drafter in target.drafters}
    return Shelf(
        tuple(targets),
        tuple(drafter for drafter in drafters if drafter.path not in placed),
        tuple(model for model in models if not model.is_target and model.mode is None),
    )


def _shelved(model: LocalModel, drafters: Sequence[LocalModel], surroundings: Surroundings) -> ShelvedTarget:
    try:
        header = header_of(model.path)
    except ModelFileError as error:  # gone or damaged since
        return ShelvedTarget(replace(model, problem=str(error)))
    fitting = tuple(drafter for drafter in _alike(model, drafters) if _fits(drafter, header))
    modes = {drafter.mode for drafter in fitting}
    missing = tuple(mode for mode in DRAFTING_MODES if mode not in modes) if has_feature_tap(header) else ()
    sizes = {mode: size for mode in missing if (size := known_size(header, mode)) is not None}
    return ShelvedTarget(model, fitting, fit_of(header, model.path, fitting, surroundings), missing, sizes)


def _alike(target: LocalModel, drafters: Iterable[LocalModel]) -> list[LocalModel]:
    """Those whose headers are worth a closer look."""
    like = (target.hidden_size, target.vocabulary)
    return [drafter for drafter in drafters if (drafter.hidden_size, drafter.vocabulary) == like]


def _fits(drafter: LocalModel, target: Header) -> bool:
    try:
        return not check_pair(header_of(drafter.path), target)
    except ModelFileError:
        return False


def fit_of(header: Header, path: str, drafters: Sequence[LocalModel], surroundings: Surroundings) -> Fit | None:
    """With the largest of its drafters, since only one drafts at a time; None where the header says too little."""
    headers = []
    for drafter in sorted(drafters, key=lambda drafter: -drafter.bytes)[:1]:
        try:
            headers.append(header_of(drafter.path))
        except ModelFileError:
            continue
    settings = replace(surroundings.settings, target=path)
    try:
        return judge(header, settings, headers, surroundings.devices, given_back=surroundings.given_back)
    except (ModelFileError, TypeError, ValueError, ZeroDivisionError):
        return None


def known_size(target: Header, mode: Mode) -> int | None:
    """What the catalogue says of the size of a drafter to download."""
    sizes = [file.size for known in known_drafters(target, mode) for file in known.files if file.size]
    return min(sizes, default=None)
