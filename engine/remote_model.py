"""What a Hub offers, as plain data: repositories, the files in them, and the models that these make up.

Names come from strangers. One that could leave its folder, or that some system reads as something else, is refused
here, once, so that nobody after has to think of it. Knows nothing of HTTP and of disks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from engine.errors import HubError
from engine.split_model import PART

_REPOSITORY = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?", re.ASCII)
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)  # what Windows takes for devices
_QUANTISATION = re.compile(
    r"(?:^|[-._])((?:UD-)?(?:I?Q\d\w*|TQ\d_\d|BF16|F16|F32|MXFP4\w*|NVFP4))(?=$|[-._])", re.IGNORECASE
)
MOST_BYTES = 1 << 50  # a petabyte: what claims to be larger is no file


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file of a repository at one commit. Checked by `sha256`, or, where the Hub keeps it in git, by `blob`."""

    repository: str  # "owner/name"
    name: str  # within the repository, with "/" between folders
    size: int  # bytes
    commit: str  # 40 hexadecimal digits
    blob: str  # what the Hub's cache calls its content: the SHA-256, or git's own SHA-1 for a small file
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """One model: one file, or all parts of a split one in their order."""

    files: tuple[RemoteFile, ...]
    problem: str | None = None  # why it cannot be downloaded

    @property
    def repository(self) -> str:
        return self.files[0].repository

    @property
    def name(self) -> str:
        """The file's name without its folder, and without the number of a part."""
        name = PurePosixPath(self.files[0].name).name
        found = PART.fullmatch(name)
        return f"{found['stem']}.gguf" if found else name

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def quantisation(self) -> str:
        """As the name says it, for lists; "" where it does not. The header knows better."""
        found = _QUANTISATION.findall(self.name.removesuffix(".gguf"))
        return str(found[-1]).upper() if found else ""

    @property
    def key(self) -> str:
        """The same for the same content: what a queue knows a download by."""
        return f"{self.repository}/{self.files[0].name}@{self.files[0].blob}"


@dataclass(frozen=True, slots=True)
class Repository:
    """A model repository. What a search gives lacks commit, files and models; `Hub.repository` gives it all."""

    id: str
    url: str
    gated: bool = False
    private: bool = False
    licence: str | None = None
    downloads: int | None = None
    base_models: tuple[str, ...] = ()
    architecture: str | None = None  # of its GGUF, where the Hub says so
    context_length: int | None = None
    parameters: int | None = None
    commit: str | None = None
    files: tuple[RemoteFile, ...] = ()
    models: tuple[RemoteModel, ...] = ()
    left_out: tuple[str, ...] = ()  # a sentence for each file that was refused

    @property
    def safetensors_drafter(self) -> bool:
        """Whether it holds a drafter to be converted: weights with a config, and no GGUF."""
        names = {file.name for file in self.files}
        return not self.models and "config.json" in names and any(name.endswith(".safetensors") for name in names)


def models_of(files: Iterable[RemoteFile]) -> tuple[RemoteModel, ...]:
    """The GGUF models among files, parts put together. Split models that lack a part say so."""
    whole: list[RemoteModel] = []
    parts: dict[tuple[str, int], dict[int, RemoteFile]] = {}
    for file in files:
        if not file.name.lower().endswith(".gguf"):
            continue
        found = PART.fullmatch(file.name)
        if found:
            parts.setdefault((found["stem"], int(found["count"])), {})[int(found["part"])] = file
        else:
            whole.append(RemoteModel((file,)))
    for (stem, count), given in parts.items():
        lacking = [number for number in range(1, count + 1) if number not in given]
        problem = None
        if lacking:
            name = PurePosixPath(stem).name
            problem = f"{name} lacks part {lacking[0]} of {count}, so it cannot be used; choose another file."
        whole.append(RemoteModel(tuple(given[number] for number in sorted(given)), problem))
    return tuple(sorted(whole, key=lambda model: model.files[0].name))


def refused_name(name: str) -> str | None:
    """Why a file of that name is not taken, or None."""
    parts = name.split("/")
    if (
        not name
        or len(name.encode("utf-8", "replace")) > 500
        or any(part in ("", ".", "..") or part != part.strip() or part.endswith(".") for part in parts)
        or any(len(part.encode("utf-8", "replace")) > 240 or _RESERVED.fullmatch(part) for part in parts)
        or any(ord(letter) < 32 or letter in '\\:*?"<>|\x7f' or 0xD800 <= ord(letter) < 0xE000 for letter in name)
    ):
        return f"The file {name!r} has a name that could lead out of its folder or that not every system can keep."
    return None


def parse_repository(text: str) -> tuple[str, str | None]:
    """What a user typed: "owner/name", with ":quantisation" or "/file.gguf" behind it, or the address of a page.

    Returns the repository and what stood behind it. Raises HubError.
    """
    given = text.strip()
    if "://" in given:
        try:
            given = urlsplit(given).path
        except ValueError:  # no address, as with half of a bracket
            given = ""
    elif given.lower().startswith(("huggingface.co/", "hf.co/")):
        given = given.split("/", 1)[1]
    given = given.strip("/")
    given, _, quantisation = given.partition(":")
    parts = given.split("/")
    if len(parts) > 3 and parts[2] in ("resolve", "blob", "tree"):
        parts = parts[:2] + parts[4:]
    rest = "/".join(parts[2:]) or quantisation or None
    if not is_repository("/".join(parts[:2])):
        raise HubError(
            f"{text.strip()!r} names no repository; give it as owner/name, or paste the address of its page."
        )
    return "/".join(parts[:2]), rest


def is_repository(name: str) -> bool:
    """Whether it can be the name of a repository, "owner/name"."""
    parts = name.split("/")
    return len(parts) == 2 and all(_is_name(part) for part in parts)


def _is_name(part: str) -> bool:
    sane = bool(_REPOSITORY.fullmatch(part)) and len(part) <= 96
    return sane and "--" not in part and ".." not in part and not part.endswith(".git")


def choose(models: Iterable[RemoteModel], wanted: str | None) -> list[RemoteModel]:
    """Those that a user means by a file's name, the end of one, or a quantisation; all without a wish."""
    models = list(models)
    if not wanted:
        return models
    wish = wanted.lower()
    named = [m for m in models if wish in (m.name.lower(), *(file.name.lower() for file in m.files))]
    return (
        named or [m for m in models if m.quantisation.lower() == wish] or [m for m in models if wish in m.name.lower()]
    )
