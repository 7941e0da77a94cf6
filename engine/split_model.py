"""Split models: several GGUF files, NAME-00001-of-0000N.gguf and so on, that are one model.

The first carries the metadata, each some of the tensors. libllama opens the first and finds the others beside it; so
does this. Knows the container only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine.errors import ModelFileError
from engine.gguf_file import DOWNLOAD_AGAIN, Header, TensorInfo, read_part

PART = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<count>\d{5})(?P<end>\.gguf)", re.IGNORECASE)  # of a whole name


def whole_header(first: Header) -> Header:
    """The header of the whole, from that of its first part and the files beside it. Raises ModelFileError, OSError."""
    found = PART.fullmatch(first.file_name)
    if not found or (int(found["part"]), int(found["count"])) != (first.part + 1, first.parts):
        raise ModelFileError(
            f"{first.file_name} is one of {first.parts} parts of a split model, but is not called as such a part is; "
            "give the parts the names that they had."
        )
    names = [f"{found['stem']}-{number:05}-of-{first.parts:05}{found['end']}" for number in range(1, first.parts + 1)]
    if first.part:
        raise ModelFileError(
            f"{first.file_name} is part {first.part + 1} of {first.parts} of a split model; open its first part, "
            f"{names[0]}."
        )
    paths = [Path(first.path).with_name(name) for name in names]
    for number, path in enumerate(paths):
        if not path.is_file():
            raise ModelFileError(
                f"{first.file_name} lacks its part {number + 1} of {first.parts}; put {path.name} beside it."
            )
    return join_parts([first, *(read_part(str(path)) for path in paths[1:])])


def is_later_part(name: str) -> bool:
    """Whether a file is called as a part that is not the first: it is no model by itself."""
    found = PART.fullmatch(name)
    return found is not None and int(found["part"]) > 1


def require_one_file(header: Header, to: str) -> None:
    """Where the data are read, not the header alone: each part has its own. Raises ModelFileError."""
    if header.metadata.get("split.count", 1) != 1:
        raise ModelFileError(
            f"{header.file_name} is split into parts; {to} it, join them first, with 'llama-gguf-split --merge'."
        )


def join_parts(parts: Sequence[Header]) -> Header:
    """The header of the whole, from those of all its parts in their order. Raises ModelFileError."""
    first = parts[0]
    tensors: dict[str, TensorInfo] = {}
    for number, header in enumerate(parts):
        if (header.part, header.parts) != (number, len(parts)):
            raise ModelFileError(f"{header.file_name} is not part {number + 1} of {len(parts)}; {DOWNLOAD_AGAIN}.")
        tensors |= header.tensors
    count = first.metadata.get("split.tensors.count", len(tensors))
    if len(tensors) != count:
        raise ModelFileError(
            f"The parts of {first.file_name} hold {len(tensors)} of {count} tensors; download them again."
        )
    return replace(first, tensors=tensors, file_bytes=sum(header.file_bytes for header in parts), parts=1)
