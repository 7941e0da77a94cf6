"""What is known of models on the Hub and of conversions, and the steps that take their time.

The steps run in a task's thread. Knows nothing of widgets.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.i18n import translate
from app.shelf import Surroundings, fit_of
from app.tasks import Task
from engine.catalog import header_of, user_drafter_folder
from engine.errors import ModelFileError
from engine.fit import Fit

if TYPE_CHECKING:
    from engine.finding import Verdict
    from engine.gguf_file import Header
    from engine.hub import Hub
    from engine.remote_model import Repository


@dataclass
class Found:
    """What a search or a look into a repository gave. `trouble`: why it gave nothing."""

    text: str = ""
    running: bool = False
    repositories: tuple[Repository, ...] = ()
    opened: Repository | None = None  # whose files are shown
    trouble: str | None = None
    link: str | None = None
    offline: bool = False
    wants_token: bool = False


@dataclass
class Checked:
    """What the header of a model on the Hub says, once it has been read."""

    running: bool = False
    bytes: int = 0  # read so far
    verdict: Verdict | None = None  # of a drafter, against the loaded target
    fit: Fit | None = None  # of a target
    sentence: str = ""
    trouble: str | None = None

    @property
    def is_good(self) -> bool:
        return self.trouble is None and (self.verdict is None or self.verdict.fits)


@dataclass
class Conversion:
    """A drafter on its way from safetensors to GGUF; its weights may have to be fetched first."""

    name: str
    fetching: bool = False
    fraction: float = 0.0
    trouble: str | None = None
    notes: tuple[str, ...] = ()
    done: bool = False
    task: Task | None = field(default=None, repr=False)

    @property
    def has_ended(self) -> bool:
        return self.done or self.trouble is not None


def fetched_folder(hub: Hub, repository: Repository, target: Header, task: Task) -> Path:
    """The files of a drafter in safetensors form, in the Hub cache. Its config comes first, and must fit the target."""
    from engine.convert import CONFIG, check_config
    from engine.transfer import Stop, fetch

    wanted = [
        file for file in repository.files if "/" not in file.name and file.name.endswith((".safetensors", ".json"))
    ]
    wanted.sort(key=lambda file: (file.name != CONFIG, file.size))
    total, before = sum(file.size for file in wanted) or 1, 0
    stop = Stop()
    task.on_cancel(stop.set)
    folder = Path()
    for file in wanted:
        path = fetch(hub, file, lambda p, before=before: task.tell((True, (before + p.done) / total)), stop)  # type: ignore[misc]
        before += file.size
        if file.name == CONFIG:
            check_config(path, target)
            folder = path.parent
    return folder


def opened(hub: Hub, name: str) -> tuple[Repository, set[str]]:
    """A repository, and the keys of its models that are on the disk already."""
    repository = hub.repository(name)
    whole = (m for m in repository.models if all(hub.cache.find(file) is not None for file in m.files))
    return repository, {model.key for model in whole}


def judged(header: Any, surroundings: Surroundings) -> tuple[Any, Any, str]:
    """A header from the Hub against what is loaded, or against the memory: verdict, fit, and the sentence."""
    from engine.file_kind import Kind, kind_of
    from engine.finding import verdict

    kind = kind_of(header)
    if kind is Kind.TARGET:
        fit = fit_of(header, header.path, (), surroundings)
        return None, fit, ""
    if kind.is_drafter and surroundings.loaded is not None:
        with suppress(ModelFileError):  # the loaded model's file has gone meanwhile
            found = verdict(header, header_of(surroundings.loaded))
            return found, None, found.sentence
    return None, None, translate("Models", "This is {kind}.").format(kind=kind.value)


def unused(path: Path) -> Path:
    number, free = 2, path
    while free.exists():
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
        number += 1
    return free


def left_over() -> bool:
    """Whether the last start left downloads; without importing what fetches them."""
    try:
        return bool(json.loads((user_drafter_folder().parent / "downloads.json").read_text("utf-8"))["downloads"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
