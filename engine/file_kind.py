"""What a GGUF file is: a target, a drafter of which method, or something else.

Told by metadata and tensor names, never by the file's name. It does not say whether a drafter is complete or fits.
"""

from __future__ import annotations

from enum import Enum

from engine.errors import ModelFileError
from engine.gguf_file import Header

ARCHITECTURE = "dflash"  # llama.cpp's, of DFlash and DFlash 2
SELECTOR_KEYS = ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k")  # DFlash 2 only


class Kind(str, Enum):
    """What a GGUF file is. The value completes the sentence "this file is …"."""

    TARGET = "a chat model (target)"
    DFLASH = "a DFlash drafter"
    DFLASH2 = "a DFlash 2 drafter"
    DSPARK = "a DSpark drafter"
    HYPER_CONNECTION = "a DeepSeek-V4 draft with hyper-connections"
    COMMUNITY_DFLASH = "a drafter of the community architecture 'dflash-draft'"
    OTHER_DRAFTER = "a drafter of another method"
    NOT_A_MODEL = "no language model"

    @property
    def is_drafter(self) -> bool:
        return self not in (Kind.TARGET, Kind.NOT_A_MODEL)


_OTHER_DRAFTERS = frozenset({"eagle3", "dspark", "gemma4-assistant"})
_NOT_MODELS = frozenset({"clip", "wavtokenizer-dec", "pockettts", "imatrix", ""})
_NOT_MODEL_TYPES = frozenset({"adapter", "mmproj", "imatrix"})


def surely_no_drafter(architecture: str | None) -> bool:
    """By the architecture alone, without the rest of the header; None is one that is not known."""
    return architecture is not None and architecture not in _OTHER_DRAFTERS | {ARCHITECTURE, "dflash-draft"}


def kind_of(header: Header) -> Kind:
    """Tell by metadata and tensors, never by the file's name."""
    if header.architecture == "dflash-draft":
        return Kind.COMMUNITY_DFLASH
    if header.architecture == ARCHITECTURE:
        if header.count("hyper_connection.count"):
            return Kind.HYPER_CONNECTION
        if "markov_w1.weight" in header.tensors:
            return Kind.DSPARK
        selector = any(name.startswith("selector_") or "_conv_" in name for name in header.tensors)
        return Kind.DFLASH2 if selector or any(header.count(key) for key in SELECTOR_KEYS) else Kind.DFLASH
    if header.architecture in _OTHER_DRAFTERS:
        return Kind.OTHER_DRAFTER
    if header.architecture in _NOT_MODELS or header.text("general.type") in _NOT_MODEL_TYPES or not header.tensors:
        return Kind.NOT_A_MODEL
    return Kind.TARGET


def require_drafter(header: Header) -> None:
    """Raise `ModelFileError` unless the file is a DFlash or DFlash 2 drafter, fit or not."""
    kind, file = kind_of(header), header.file_name
    if header.metadata.get("split.count", 1) != 1:
        raise ModelFileError(f"{file} is a split drafter; join its parts with 'llama-gguf-split --merge'.")
    if kind is Kind.COMMUNITY_DFLASH:
        raise ModelFileError(
            f"{file} is of the community architecture 'dflash-draft', which stores its drafter in another form; "
            "get the drafter in llama.cpp's own form (architecture 'dflash') or convert it from safetensors."
        )
    if kind is Kind.HYPER_CONNECTION:
        raise ModelFileError(
            f"{file} is a draft for DeepSeek-V4 with hyper-connections, a backbone that is not supported; "
            "choose a DFlash or DFlash 2 drafter."
        )
    if kind is Kind.DSPARK:
        raise ModelFileError(
            f"{file} is a DSpark drafter (it has 'markov_w1.weight'), another method on the same backbone, which is "
            "not supported; choose a DFlash or DFlash 2 drafter."
        )
    if kind not in (Kind.DFLASH, Kind.DFLASH2):
        raise ModelFileError(
            f"{file} is not a DFlash drafter but {kind.value} of architecture '{header.architecture}'; "
            "choose a file of architecture 'dflash'."
        )
