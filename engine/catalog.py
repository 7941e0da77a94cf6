"""Which drafter files belong to a target: decided by what the headers say, never by file names.

Reads headers only. It knows nothing of weights, and loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import platformdirs

from engine.drafter_config import check_pair, has_feature_tap, no_tap_sentence
from engine.errors import ModelFileError
from engine.events import Mode, ModeInfo
from engine.file_kind import Kind, kind_of, require_drafter, surely_no_drafter
from engine.gguf_file import Header, peek_architecture, read_header
from engine.hub_cache import HubCache
from engine.imports import imported_files
from engine.split_model import is_later_part

DRAFTING_MODES = (Mode.DFLASH, Mode.DFLASH2)
METHOD_NAMES = {Mode.BASELINE: "baseline", Mode.DFLASH: "DFlash", Mode.DFLASH2: "DFlash 2"}
MODE_OF = {Kind.DFLASH: Mode.DFLASH, Kind.DFLASH2: Mode.DFLASH2}


def user_drafter_folder() -> Path:
    """Where a user puts drafters. It need not exist."""
    return Path(platformdirs.user_data_dir("dflash-chat", appauthor=False)) / "drafters"


def drafter_folders() -> tuple[Path, ...]:
    """Where drafters are looked for: the user's own come before those that came with the program."""
    return user_drafter_folder(), Path(__file__).resolve().parent.parent / "models"


def drafter_places() -> tuple[Path, ...]:
    """Folders and files in which drafters are looked for: the user's own, imported, downloaded, then the program's."""
    own, *program = drafter_folders()
    return own, *imported_files(), *(path for _, path in HubCache().models()), *program


@dataclass(frozen=True, slots=True)
class FoundDrafters:
    """What the folders hold for one mode: paths that fit, the best first, and a sentence for each that does not."""

    fitting: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()

    @property
    def best(self) -> str | None:
        return self.fitting[0] if self.fitting else None


@lru_cache(maxsize=8)  # a header with its vocabulary takes megabytes
def _header_of(path: str, modified_ns: int, size: int) -> Header:
    return read_header(path)


def header_of(path: str | Path) -> Header:
    """Read a header, or take it from memory while the file has not changed. Raises `ModelFileError`."""
    try:
        state = Path(path).stat()
    except (OSError, ValueError):
        return read_header(path)  # which says what is wrong
    return _header_of(str(path), state.st_mtime_ns, state.st_size)


def gguf_files(places: Iterable[str | Path]) -> list[Path]:
    """The .gguf files of the folders and the folders in them: folder by folder, the newest file first.

    A place may be a file as well. Of a split model it is the first part.
    """
    files: list[Path] = []
    for place in map(Path, places):
        found: list[tuple[int, Path]] = []
        for path in [place] if place.is_file() else place.rglob("*"):
            try:
                if path.suffix.lower() == ".gguf" and not is_later_part(path.name) and path.is_file():
                    found.append((-path.stat().st_mtime_ns, path))
            except OSError:  # gone since, or not ours to read: then it is not offered
                continue
        files += [path for _, path in sorted(found) if path not in files]
    return files


def find_drafters(target: Header, folders: Iterable[str | Path] | None = None) -> dict[Mode, FoundDrafters]:
    """Look through the folders for drafters of this target; both drafting modes are always in the answer.

    Among several that fit, the earlier folder comes first, then the newer file. A drafter that cannot be told to belong
    to one of the modes (a damaged file, another method) stands in both, for whoever put it there wants to know why.
    """
    fitting: dict[Mode, list[str]] = {mode: [] for mode in DRAFTING_MODES}
    unfit: dict[Mode, list[str]] = {mode: [] for mode in DRAFTING_MODES}
    for path in gguf_files(drafter_places() if folders is None else folders):
        if surely_no_drafter(peek_architecture(path)):
            continue  # a chat model of many gigabytes has a header of many megabytes
        try:
            drafter = header_of(path)
            kind = kind_of(drafter)
            if not kind.is_drafter:
                continue
            require_drafter(drafter)
            reasons = check_pair(drafter, target)
        except ModelFileError as error:
            for mode in DRAFTING_MODES:
                unfit[mode].append(str(error))
            continue
        if reasons:
            unfit[MODE_OF[kind]].append(reasons[0])
        else:
            fitting[MODE_OF[kind]].append(str(path))
    return {mode: FoundDrafters(tuple(fitting[mode]), tuple(unfit[mode])) for mode in DRAFTING_MODES}


def drafter_mode(path: str | Path) -> Mode:
    """For which mode a drafter file is, by its own metadata. Raises `ModelFileError` when it is no DFlash drafter."""
    header = header_of(path)
    require_drafter(header)
    return MODE_OF[kind_of(header)]


def modes_for(
    target: Header,
    folders: Sequence[str | Path] | None = None,
    given: Mapping[Mode, str] | None = None,
) -> tuple[ModeInfo, ...]:
    """The mode switch of a target: all three modes in the order of `Mode`; the baseline is always usable.

    A drafter in `given` is taken instead of those in the folders; when it does not fit, its mode is not usable.
    """
    given = given or {}
    if not has_feature_tap(target):
        return (
            ModeInfo(Mode.BASELINE, None, None),
            *(ModeInfo(mode, None, no_tap_sentence(target)) for mode in DRAFTING_MODES),
        )
    folders = drafter_places() if folders is None else tuple(folders)
    searched = any(mode not in given for mode in DRAFTING_MODES)
    found = find_drafters(target, folders) if searched else {}
    infos = [ModeInfo(Mode.BASELINE, None, None)]
    for mode in DRAFTING_MODES:
        if mode in given:
            reason = _why_unfit(given[mode], mode, target)
            infos.append(ModeInfo(mode, None if reason else str(given[mode]), reason))
        elif found[mode].best is not None:
            infos.append(ModeInfo(mode, found[mode].best, None))
        else:
            infos.append(ModeInfo(mode, None, _missing(mode, target, folders, found[mode])))
    return tuple(infos)


def _why_unfit(path: str, mode: Mode, target: Header) -> str | None:
    """The reason why a drafter that was given for a mode cannot be used in it."""
    try:
        drafter = header_of(path)
        is_for = drafter_mode(path)
    except ModelFileError as error:
        return str(error)
    if is_for is not mode:
        return (
            f"{drafter.file_name} is a {METHOD_NAMES[is_for]} drafter and was given for the mode {METHOD_NAMES[mode]}; "
            f"give it for {METHOD_NAMES[is_for]}."
        )
    return next(iter(check_pair(drafter, target)), None)


def _missing(mode: Mode, target: Header, folders: Sequence[str | Path], found: FoundDrafters) -> str:
    folder = folders[0] if folders else user_drafter_folder()
    sentence = (
        f"No {METHOD_NAMES[mode]} drafter for {target.name} was found; "
        f"put its .gguf into {folder} or give it with --drafter."
    )
    if len(found.unfit) == 1:
        return f"{sentence} {found.unfit[0]}"
    if found.unfit:
        return f"{sentence} {len(found.unfit)} drafters there do not fit it; 'dflash-chat inspect FILE' says why."
    return sentence


def require_target(header: Header) -> None:
    """Raise `ModelFileError` unless the file can be opened as a chat model. Drafters are never offered as targets."""
    kind = kind_of(header)
    if kind is Kind.TARGET:
        return
    if kind in MODE_OF:
        remedy = "give it with --drafter and its target with --model"
    elif kind.is_drafter:
        remedy = "open the chat model that it was made for"
    else:
        remedy = "choose a chat model's .gguf"
    of = f" (architecture '{header.architecture}')" if header.architecture else ""
    what = f"{kind.value}{of}" if kind is Kind.NOT_A_MODEL else f"{kind.value}, not a chat model"
    raise ModelFileError(f"{header.file_name} is {what}; {remedy}.")
