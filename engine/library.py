"""The models on this disk: what came with the program, what was downloaded, what a user put or imported here.

Everything said about a file comes from its header. Drafters and chat models are told apart, and what is neither is not
shown. Knows nothing of the network, and loads nothing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from engine.catalog import MODE_OF, drafter_folders, gguf_files, header_of
from engine.drafter_config import DrafterConfig, check_pair, target_vocabulary
from engine.embedded import FILE as PACKAGED_FILE
from engine.embedded import SHA256 as PACKAGED_SHA256
from engine.errors import Cancelled, ModelFileError, SettingsError
from engine.events import Mode
from engine.file_kind import Kind, kind_of
from engine.gguf_file import Header, read_header
from engine.hub_cache import HubCache, content_is
from engine.imports import add_import, imported_files, remove_import
from engine.remote_model import RemoteFile
from engine.split_model import is_later_part


class Origin(str, Enum):
    """How a model came here. The value completes "this model is …"."""

    BUNDLED = "bundled"
    FOLDER = "in your folder"
    IMPORTED = "imported"
    DOWNLOADED = "downloaded"


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One model on the disk. Figures are None where the header does not say, or cannot be read (then see `problem`)."""

    path: str
    origin: Origin
    repository: str | None  # on the Hub, of what was downloaded
    kind: Kind | None
    mode: Mode | None  # of a drafter that this program can use
    name: str
    bytes: int
    architecture: str | None = None
    quantisation: str | None = None
    parameters: int | None = None
    context_length: int | None = None
    hidden_size: int | None = None
    vocabulary: int | None = None
    licence: str | None = None
    problem: str | None = None

    @property
    def is_target(self) -> bool:
        return self.kind is Kind.TARGET


_known: dict[tuple[str, int, int], LocalModel] = {}  # by path, time of change and size: a big header takes a while


def local_models(cache: HubCache | None = None) -> list[LocalModel]:
    """Chat models, then drafters, each by name. What is neither of them is left out, what is damaged is not."""
    found: dict[Path, LocalModel] = {}
    for path, origin, repository in _places(cache or HubCache()):
        try:
            content = path.resolve()
            state = content.stat()
        except (OSError, RuntimeError):
            continue
        if content in found or is_later_part(path.name):
            continue
        key = str(path), state.st_mtime_ns, state.st_size
        if key not in _known:
            _known[key] = _look(path, origin, repository, state.st_size)
        if _known[key].kind is not Kind.NOT_A_MODEL:
            found[content] = _known[key]
    return sorted(found.values(), key=lambda model: (not model.is_target, model.name.lower(), model.path))


def drafters_for(target: Header, models: Iterable[LocalModel]) -> Iterator[tuple[LocalModel, list[str]]]:
    """The drafters among the models, with why each does not fit the target (nothing: it fits)."""
    for model in models:
        if model.mode is not None:
            try:
                yield model, check_pair(header_of(model.path), target)
            except ModelFileError as error:
                yield model, [str(error)]


def targets_for(drafter: Header, models: Iterable[LocalModel]) -> list[LocalModel]:
    """The chat models among them that a drafter fits."""
    config = DrafterConfig.from_header(drafter)
    like = (config.hidden_size, config.vocabulary)
    same_size = [m for m in models if m.is_target and (m.hidden_size, m.vocabulary) == like]  # the others need no look
    return [model for model in same_size if not check_pair(drafter, header_of(model.path))]


def import_model(path: str | Path) -> LocalModel:
    """Add a GGUF file from elsewhere; it stays where it is. Raises ModelFileError for what is no model of any use."""
    header = read_header(path)
    if kind_of(header) is Kind.NOT_A_MODEL:
        raise ModelFileError(f"{header.file_name} is no language model and no drafter; choose another file.")
    added = add_import(path)
    return _look(added, Origin.IMPORTED, None, header.file_bytes)


def remove_model(model: LocalModel, cache: HubCache | None = None) -> int:
    """Take a model away; the bytes that became free. An imported file stays where it is, a bundled one here.

    Raises SettingsError.
    """
    path = Path(model.path)
    try:
        if model.origin is Origin.IMPORTED:
            remove_import(path)
            return 0
        if model.origin is Origin.DOWNLOADED:
            return sum((cache or HubCache()).remove(part) for part in _parts(path))
        if model.origin is Origin.FOLDER:
            freed = 0
            for part in _parts(path):
                freed += part.stat().st_size
                part.unlink()
            return freed
    except OSError as error:
        raise SettingsError(f"{path} cannot be removed ({error.strerror or error}); remove it by hand.") from error
    raise SettingsError(f"{model.name} came with the program and stays with it.")


@dataclass(frozen=True, slots=True)
class Check:
    """What checking a file found. `checked`: "sha256" where there was one to hold it against, else "header"."""

    path: str
    good: bool
    checked: str
    sentence: str


def verify_model(
    model: LocalModel, on_bytes: Callable[[int], None] | None = None, cancel: threading.Event | None = None
) -> list[Check]:
    """Read a model's files again and hold them against the SHA-256 under which the Hub cache keeps them.

    Raises Cancelled.
    """
    return [_verify(path, on_bytes or (lambda _done: None), cancel) for path in _parts(Path(model.path))]


# --- one file ---------------------------------------------------------------------------------------------------------


def _places(cache: HubCache) -> Iterator[tuple[Path, Origin, str | None]]:
    own, *program = drafter_folders()
    for path in gguf_files([own]):
        yield path, Origin.FOLDER, None
    for path in imported_files():
        yield path, Origin.IMPORTED, None
    for repository, path in cache.models():
        yield path, Origin.DOWNLOADED, repository
    for path in gguf_files(program):
        yield path, Origin.BUNDLED, None


def packaged(path: str | Path) -> LocalModel:
    """The model that comes with the program, as a list shows it."""
    return _look(Path(path), Origin.BUNDLED, None, Path(path).stat().st_size)


def _look(path: Path, origin: Origin, repository: str | None, size: int) -> LocalModel:
    try:
        header = read_header(path)
    except ModelFileError as error:
        return LocalModel(str(path), origin, repository, None, None, path.name, size, problem=str(error))
    kind, problem = kind_of(header), None
    if kind.is_drafter:
        try:
            DrafterConfig.from_header(header)
        except ModelFileError as error:
            problem = str(error)
    return LocalModel(
        path=str(path),
        origin=origin,
        repository=repository,
        kind=kind,
        mode=None if problem else MODE_OF.get(kind),
        name=header.name,
        bytes=header.file_bytes,
        architecture=header.architecture or None,
        quantisation=header.quantisation or None,
        parameters=header.parameters,
        context_length=header.count("context_length"),
        hidden_size=header.count("embedding_length"),
        vocabulary=target_vocabulary(header) or None,
        licence=header.text("general.license") or None,
        problem=problem,
    )


def _parts(path: Path) -> list[Path]:
    """The files of a model: itself, or all parts of a split one."""
    found = re.fullmatch(r"(.+)-00001-of-(\d{5})\.gguf", path.name, re.IGNORECASE)
    if not found:
        return [path]
    parts = [path.with_name(f"{found[1]}-{number:05d}-of-{found[2]}.gguf") for number in range(1, int(found[2]) + 1)]
    return [part for part in parts if part.is_file()]


def _verify(path: Path, on_bytes: Callable[[int], None], cancel: threading.Event | None) -> Check:
    def stop() -> None:
        if cancel is not None and cancel.is_set():
            raise Cancelled

    digest = path.resolve().name  # of a downloaded file, that is what the cache calls its content
    if path.name == Path(PACKAGED_FILE).name:
        digest = PACKAGED_SHA256
    try:
        if re.fullmatch(r"[0-9a-f]{64}", digest):
            with open(path, "rb") as data:
                file = RemoteFile("", path.name, path.stat().st_size, "", digest, digest)
                good = content_is(file, data, on_bytes, stop)
            sentence = f"{path.name} is what it was when it was published, by its SHA-256."
            if not good:
                sentence = f"{path.name} is damaged (its SHA-256 is another); remove it and get it again."
            return Check(str(path), good, "sha256", sentence)
        read_header(path)
    except (ModelFileError, OSError) as error:
        return Check(str(path), False, "header", str(error))
    return Check(
        str(path), True, "header", f"{path.name} has a whole header and all its tensors; nobody has said its SHA-256."
    )
