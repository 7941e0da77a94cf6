"""Finds the drafters on a Hub that fit a target, and says of each why it fits or does not.

Where to look: the catalogue first, then a search, then whatever repository a user names. What is decided is decided by
the header alone, read over the network before anything is downloaded; names only say in which order to look.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.catalog import METHOD_NAMES, MODE_OF
from engine.drafter_config import DrafterConfig, check_pair, has_feature_tap, no_tap_sentence
from engine.errors import Cancelled, HubError, ModelFileError
from engine.events import Mode
from engine.file_kind import Kind, kind_of, require_drafter
from engine.gguf_file import Header
from engine.known_pairs import known_drafters, target_words, words_of
from engine.remote_model import RemoteModel, Repository, choose, parse_repository

if TYPE_CHECKING:
    from engine.hub import Hub

# Four bits first: a drafter is only as good as it is quick, and the acceptance lengths that were published for the 27B
# drafter differ by 5 % between 4, 8 and 16 bits.
PREFERRED = ("Q4_K_M", "Q4_0", "IQ4_NL", "IQ4_XS", "Q4_K_S", "Q5_K_M", "Q8_0", "Q6_K", "Q5_K_S", "BF16", "F16", "F32")
MOST_REPOSITORIES = 6  # of a search whose headers are read
MOST_FILES = 4  # of a repository that nothing is known of
_COMMON_WORDS = frozenset({"base", "chat", "dflash", "dflash2", "gguf", "instruct", "it", "model"})  # say nothing
_DRAFTER_ARCHITECTURES = ("dflash", "dflash-draft")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a drafter fits a target. Never a bare yes or no: `sentence` says why."""

    fits: bool
    mode: Mode | None  # None for what is no DFlash drafter
    reasons: tuple[str, ...]  # why not: a sentence for each difference; none when it fits
    sentence: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A drafter on the Hub, with what its header says."""

    model: RemoteModel
    repository: Repository
    source: str  # "catalogue", "search" or "given"
    verdict: Verdict
    quantisation: str
    parameters: int | None
    licence: str | None
    path: str | None  # where it is on this disk, when it is there already
    others: tuple[RemoteModel, ...] = ()  # the same drafter in other quantisations: not read, checked when chosen


@dataclass(frozen=True, slots=True)
class Look:
    """What is being looked at, for a progress line: a repository, then bytes of a header."""

    sentence: str
    bytes: int = 0
    problem: bool = False  # it is a repository that had to be passed over, and why


OnLook = Callable[[Look], None]


def verdict(drafter: Header, target: Header) -> Verdict:
    """By the two headers. Raises nothing: a bad file is a reason."""
    try:
        require_drafter(drafter)
        mode = MODE_OF[kind_of(drafter)]
    except ModelFileError as error:
        return Verdict(False, None, (str(error),), str(error))
    reasons = tuple(check_pair(drafter, target))
    if reasons:
        return Verdict(False, mode, reasons, " ".join(reasons))
    return Verdict(True, mode, (), _why_it_fits(DrafterConfig.from_header(drafter), target))


def _why_it_fits(config: DrafterConfig, target: Header) -> str:
    layers = ", ".join(str(layer) for layer in config.target_layers)
    tokens = "the same" if config.token_digest is not None else "as many"
    return (
        f"It fits {target.name}: a {METHOD_NAMES[config.version]} drafter of hidden size {config.hidden_size}, {tokens}"
        f" {config.vocabulary:,} tokens (mask token {config.mask_token}), blocks of {config.block_size}, listening at"
        f" layers {layers}."
    )


def check(
    hub: Hub, model: RemoteModel, target: Header, on_look: OnLook | None = None, cancel: threading.Event | None = None
) -> Verdict:
    """Read a model's header and judge it. Raises HubError and Cancelled; an unreadable file is a verdict."""
    try:
        return verdict(_header(hub, model, on_look or _nobody, cancel), target)
    except ModelFileError as error:
        return Verdict(False, None, (str(error),), str(error))


def find_drafters(
    hub: Hub,
    target: Header,
    *,
    given: Sequence[str] = (),
    mode: Mode | None = None,
    search: bool = True,
    on_look: OnLook | None = None,
    cancel: threading.Event | None = None,
) -> Iterator[Offer]:
    """Offers for a target as they are found, fitting or not; only `given` repositories when there are any.

    A repository that cannot be looked into is told to `on_look` and passed over, unless it was given. Raises HubError
    when the Hub as a whole cannot be asked, ModelFileError for a target that no drafter can serve, Cancelled.
    """
    tell = on_look or _nobody
    if not has_feature_tap(target):
        raise ModelFileError(no_tap_sentence(target))
    seen: set[str] = set()
    for name, wanted, source in _places(hub, target, given, mode, search, tell):
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        if cancel is not None and cancel.is_set():
            raise Cancelled
        tell(Look(f"Looking into {name}"))
        try:
            repository = hub.repository(name)
            yield from _offers_of(hub, repository, target, wanted, source, mode, tell, cancel)
        except HubError as error:
            if source == "given" or error.kind in ("offline", "proxy", "certificate"):
                raise
            tell(Look(str(error), problem=True))


def best_drafter(
    hub: Hub, target: Header, mode: Mode, on_look: OnLook | None = None, cancel: threading.Event | None = None
) -> Offer | None:
    """The first that fits, for one click. Raises as `find_drafters`."""
    offers = find_drafters(hub, target, mode=mode, on_look=on_look, cancel=cancel)
    return next((offer for offer in offers if offer.verdict.fits and offer.verdict.mode is mode), None)


# --- where to look ----------------------------------------------------------------------------------------------------


def _places(
    hub: Hub, target: Header, given: Sequence[str], mode: Mode | None, search: bool, tell: OnLook
) -> Iterator[tuple[str, str | None, str]]:
    """Repository, what is wanted of it, and who says so."""
    if given:
        for text in given:
            name, wanted = parse_repository(text)
            yield name, wanted, "given"
        return
    for known in known_drafters(target, mode):
        yield known.repository, None, "catalogue"
    if search:
        tell(Look("Searching the Hub"))
        for repository in _searched(hub, target)[:MOST_REPOSITORIES]:
            yield repository.id, None, "search"


def _searched(hub: Hub, target: Header) -> list[Repository]:
    """Repositories whose names speak of DFlash and of this target, the most alike first."""
    words = target_words(target) - _COMMON_WORDS
    found: dict[str, Repository] = {}
    for query in _queries(target):
        for repository in hub.search(query, limit=100):
            found.setdefault(repository.id, repository)

    def alike(repository: Repository) -> int:
        return len(words & words_of(repository.id.partition("/")[2]))

    likely = [
        repository
        for repository in found.values()
        if alike(repository)
        and (repository.architecture in _DRAFTER_ARCHITECTURES or "dflash" in repository.id.lower())
    ]
    return sorted(likely, key=lambda repository: -alike(repository))


def _queries(target: Header) -> list[str]:
    """Names under which drafters are published: with the whole name of the target, with no more than its size, any."""
    base = target.text("general.base_model.0.name") or target.text("general.basename") or target.name
    base = re.sub(r"[\s_]+", "-", base.removesuffix(".gguf").strip())
    size = target.text("general.size_label")
    if size and size.lower() not in base.lower():
        base = f"{base}-{size}"
    sized = re.match(r".*?-\d+(?:\.\d+)?[BM](?:-A\d+(?:\.\d+)?B)?(?=-|$)", base, re.IGNORECASE)
    return list(dict.fromkeys([f"{base}-DFlash", f"{sized[0]}-DFlash" if sized else "DFlash", "DFlash"]))


# --- what is there ----------------------------------------------------------------------------------------------------


def _offers_of(
    hub: Hub,
    repository: Repository,
    target: Header,
    wanted: str | None,
    source: str,
    mode: Mode | None,
    tell: OnLook,
    cancel: threading.Event | None,
) -> Iterator[Offer]:
    models = [model for model in choose(repository.models, wanted) if model.problem is None]
    if source == "given" and not models:
        raise HubError(_nothing_there(repository, wanted), "not found", repository.url)
    for family in _families(models)[:MOST_FILES]:
        model, *others = family
        header: Header | None = None
        try:
            header = _header(hub, model, tell, cancel)
            judged = verdict(header, target)
        except ModelFileError as error:
            judged = Verdict(False, None, (str(error),), str(error))
        if source != "given" and header is not None and kind_of(header) is Kind.TARGET:
            continue  # a chat model that lies in the same repository
        if mode is not None and judged.mode not in (mode, None):
            continue
        path = hub.cache.find(model.files[0])
        yield Offer(
            model=model,
            repository=repository,
            source=source,
            verdict=judged,
            quantisation=header.quantisation if header else model.quantisation,
            parameters=header.parameters if header else repository.parameters,
            licence=(header.text("general.license") if header else "") or repository.licence,
            path=None if path is None else str(path),
            others=tuple(others),
        )


def _nothing_there(repository: Repository, wanted: str | None) -> str:
    if repository.models:
        return f"{repository.id} has no GGUF file that {wanted!r} means; leave that out to see what there is."
    if repository.safetensors_drafter:
        return f"{repository.id} holds no GGUF file, but weights that can be converted: import them."
    return f"{repository.id} holds no GGUF file; name a repository that does."


def _families(models: Sequence[RemoteModel]) -> list[list[RemoteModel]]:
    """Models that differ in their quantisation only, the preferred first; those that are called drafters first."""
    families: dict[str, list[RemoteModel]] = {}
    for model in models:
        stem = model.name.lower().removesuffix(".gguf")
        alike = stem.replace(model.quantisation.lower(), "", 1) if model.quantisation else stem
        families.setdefault(alike, []).append(model)
    for family in families.values():
        family.sort(key=lambda model: (preference(model), model.size))
    return sorted(families.values(), key=lambda family: not re.search("dflash|draft", family[0].name.lower()))


def preference(model: RemoteModel) -> int:
    """What is offered first among the quantisations of one model: the smallest number."""
    return PREFERRED.index(model.quantisation) if model.quantisation in PREFERRED else len(PREFERRED)


def _header(hub: Hub, model: RemoteModel, tell: OnLook, cancel: threading.Event | None) -> Header:
    return hub.header(model, lambda count: tell(Look(f"Reading the header of {model.name}", count)), cancel)


def _nobody(_look: Look) -> None:
    pass
