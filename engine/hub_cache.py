"""The Hub cache on this disk, in huggingface-hub's own layout, so that every program of this user finds the same files.

    models--OWNER--NAME/blobs/BLOB                    the content, once
    models--OWNER--NAME/snapshots/COMMIT/FILE         a link to it, or the file itself where there are no links
    models--OWNER--NAME/refs/main                     the newest commit that was asked for

A content lies under its final name only when it is whole and checked. Knows nothing of HTTP.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from engine.errors import HubError
from engine.remote_model import RemoteFile, is_repository, refused_name

_COMMIT = re.compile(r"[0-9a-f]{40}")
_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
PART = ".dflash.incomplete"  # the ending tells huggingface-hub's own clean-up what it is


def cache_folder() -> Path:
    """Of HF_HUB_CACHE or HF_HOME, else the usual one. It need not exist."""
    from huggingface_hub import constants  # which has read the environment

    return Path(os.environ.get("HF_HUB_CACHE") or _under_home() or constants.HF_HUB_CACHE).expanduser()


def _under_home() -> str | None:
    home = os.environ.get("HF_HOME")
    return os.path.join(home, "hub") if home else None


class HubCache:
    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = Path(folder) if folder is not None else cache_folder()

    # --- where things lie

    def repository(self, repository: str) -> Path:
        return self.folder / f"models--{repository.replace('/', '--')}"

    def blob(self, file: RemoteFile) -> Path:
        self._check(file)
        return self.repository(file.repository) / "blobs" / file.blob

    def pointer(self, file: RemoteFile) -> Path:
        """The path that users of the file see."""
        self._check(file)
        return self.repository(file.repository) / "snapshots" / file.commit / Path(*file.name.split("/"))

    def part(self, file: RemoteFile) -> Path:
        """What has been fetched of it so far."""
        blob = self.blob(file)
        return blob.with_name(blob.name + PART)

    def lock(self, file: RemoteFile) -> Path:
        """The same that huggingface-hub takes."""
        self._check(file)
        return self.folder / ".locks" / self.repository(file.repository).name / f"{file.blob}.lock"

    def _check(self, file: RemoteFile) -> None:
        sane = refused_name(file.name) is None and _COMMIT.fullmatch(file.commit) and _BLOB.fullmatch(file.blob)
        if not sane or not is_repository(file.repository):
            raise HubError(f"The Hub's answer about {file.name!r} is not what a Hub says; it is not downloaded.")

    # --- what is there

    def find(self, file: RemoteFile) -> Path | None:
        """The path of the whole file, made ready where only its content is there; None when it is to be downloaded."""
        pointer, blob = self.pointer(file), self.blob(file)
        if _is_whole(pointer, file.size):
            return pointer
        if _is_whole(blob, file.size):
            try:
                return self.link(file)
            except OSError:  # a cache that may only be read
                pass
        return None

    def fetched(self, file: RemoteFile) -> int:
        """How many bytes of it are on the disk, whole or not; for lists."""
        for path in (self.pointer(file), self.blob(file), self.part(file)):
            try:
                return min(path.stat().st_size, file.size)
            except OSError:
                continue
        return 0

    def models(self) -> Iterator[tuple[str, Path]]:
        """Repository and path of each GGUF file in the cache; of several commits with the same content only one."""
        try:
            folders = sorted(self.folder.glob("models--*"))
        except OSError:
            return
        for folder in folders:
            repository = folder.name.removeprefix("models--").replace("--", "/", 1)
            seen: set[Path] = set()
            for path in sorted((folder / "snapshots").glob("*/**/*"), key=_newest_first):
                if path.suffix.lower() != ".gguf":
                    continue
                try:
                    content = path.resolve(strict=True)
                except (OSError, RuntimeError):  # the content was removed
                    continue
                if content not in seen:
                    seen.add(content)
                    yield repository, path

    # --- putting and taking away

    def put(self, file: RemoteFile) -> Path:
        """Give the part its final name, whole and checked as it is. Raises OSError."""
        blob = self.blob(file)
        os.replace(self.part(file), blob)
        _sync_folder(blob.parent)
        return self.link(file)

    def link(self, file: RemoteFile) -> Path:
        """Make the content visible under its name. Raises OSError."""
        pointer, blob = self.pointer(file), self.blob(file)
        pointer.parent.mkdir(parents=True, exist_ok=True)
        fresh = pointer.with_name(f"{pointer.name}.{os.getpid()}.link")
        try:
            fresh.symlink_to(os.path.relpath(blob, pointer.parent))
            os.replace(fresh, pointer)
        except OSError:  # no links here: then the content itself goes there, as huggingface-hub does it
            if not _is_whole(blob, file.size):
                raise
            os.replace(blob, pointer)
        finally:
            fresh.unlink(missing_ok=True)
        _refer(self.repository(file.repository) / "refs" / "main", file.commit)
        return pointer

    def remove(self, path: Path) -> int:
        """Take a file of the cache away, its content too unless another commit shows it; the bytes that became free."""
        path = Path(os.path.abspath(path))
        snapshot = next((parent for parent in path.parents if parent.parent.name == "snapshots"), None)
        if self.folder.absolute() not in path.parents or snapshot is None:
            raise OSError(f"{path} is not in the Hub cache")
        blob, size = _linked(path), path.stat().st_size
        path.unlink()
        if blob is not None:
            shown = any(_linked(other) == blob for other in snapshot.parent.glob("*/**/*"))
            if shown or blob.parent != snapshot.parent.parent / "blobs":
                size = 0
            else:
                size = 0 if blob.is_symlink() else size  # huggingface-hub can share contents among repositories
                blob.unlink()
        for folder in path.parents:
            if folder == snapshot.parent or any(folder.iterdir()):
                break
            folder.rmdir()
        if not snapshot.exists():
            for reference in (snapshot.parent.parent / "refs").glob("**/*"):
                if reference.is_file() and reference.read_text("utf-8") == snapshot.name:
                    reference.unlink()
        return size


def content_is(file: RemoteFile, data: BinaryIO, on_bytes: Callable[[int], None], check: Callable[[], None]) -> bool:
    """Whether the bytes are the file's, by SHA-256, or by git's SHA-1 for those that the Hub keeps in git."""
    digest = hashlib.sha256() if file.sha256 else hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
    done = 0
    while chunk := data.read(1 << 20):
        check()
        digest.update(chunk)
        done += len(chunk)
        on_bytes(done)
    return done == file.size and digest.hexdigest() == (file.sha256 or file.blob)


def _linked(path: Path) -> Path | None:
    """What a link names, as written: a folder above may itself be a link."""
    return Path(os.path.normpath(path.parent / os.readlink(path))) if path.is_symlink() else None


def _is_whole(path: Path, size: int) -> bool:
    """By its size: what lies under a final name was checked before it came there."""
    try:
        return path.is_file() and path.stat().st_size == size
    except OSError:
        return False


def _newest_first(path: Path) -> tuple[float, str]:
    try:
        return -path.lstat().st_mtime, str(path)
    except OSError:
        return 0.0, str(path)


def _refer(reference: Path, commit: str) -> None:
    """Note the commit, as far as that is possible: files are found without it."""
    try:
        if reference.is_file() and reference.read_text("utf-8") == commit:
            return
        reference.parent.mkdir(parents=True, exist_ok=True)
        fresh = reference.with_name(f"{reference.name}.{os.getpid()}.tmp")
        fresh.write_text(commit, "utf-8")
        os.replace(fresh, reference)
    except OSError:
        pass


def _sync_folder(folder: Path) -> None:
    """So that the new name survives a power loss. Not every system lets a folder be opened."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
