"""What is said of models in the window: their figures in a line, their fit, and what a download is doing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.definitions import mode_name
from app.i18n import translate
from engine.events import Mode
from engine.fit import Fit, Verdict
from engine.library import LocalModel, Origin

if TYPE_CHECKING:
    from engine.downloads import Download
    from engine.remote_model import RemoteModel, Repository

SEPARATOR = "  ·  "


def size_words(count: int) -> str:
    """Bytes in thousands, as the Hub counts them."""
    if count >= 999_500_000:
        return f"{count / 1e9:.1f} GB"
    if count >= 999_500:
        return f"{count / 1e6:.0f} MB"
    return f"{count / 1e3:.0f} kB"


def number_words(count: int) -> str:
    """How many parameters, or downloads."""
    for unit, factor in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}" if count < 100 * factor else f"{count / factor:.0f} {unit}"
    return str(count)


def joined(parts: Iterable[str | None]) -> str:
    return SEPARATOR.join(part for part in parts if part)


def target_words(model: LocalModel) -> str:
    """Size, quantisation, context, architecture, licence, and where it is from."""
    context = translate("Models", "{tokens} tokens of context")
    parameters = translate("Models", "{count} parameters")
    return joined(
        (
            size_words(model.bytes),
            model.quantisation,
            parameters.format(count=number_words(model.parameters)) if model.parameters else None,
            context.format(tokens=f"{model.context_length:,}") if model.context_length else None,
            model.architecture,
            model.licence,
            origin_words(model),
        )
    )


def drafter_words(model: LocalModel) -> str:
    return joined((model.name, size_words(model.bytes), model.quantisation, model.licence, origin_words(model)))


def origin_words(model: LocalModel) -> str:
    if model.origin is Origin.DOWNLOADED:
        return translate("Models", "from {repository}").format(repository=model.repository)
    return {
        Origin.BUNDLED: translate("Models", "came with the program"),
        Origin.FOLDER: translate("Models", "in your folder"),
        Origin.IMPORTED: translate("Models", "imported"),
    }[model.origin]


def fit_words(fit: Fit) -> tuple[str, str]:
    """The sentence, and the role of its label."""
    needed, free = size_words(fit.needed), size_words(fit.free)
    if fit.verdict is Verdict.FITS:
        words = translate("Models", "Takes about {needed} of memory; {free} are free.")
        return words.format(needed=needed, free=free), "muted"
    if fit.verdict is Verdict.TIGHT:
        words = translate(
            "Models", "Takes about {needed}, nearly all of the {free} that are free: close other programs."
        )
        return words.format(needed=needed, free=free), "warning"
    words = translate("Models", "Takes about {needed} of memory, but {free} are free.")
    if fit.longest_context is not None:
        advice = translate("Models", "A context of {tokens} tokens would fit.").format(
            tokens=f"{fit.longest_context:,}"
        )
    elif fit.quantisation is not None:
        name, size = fit.quantisation
        advice = translate("Models", "In {quantisation} (about {size}) it would fit.")
        advice = advice.format(quantisation=name, size=size_words(size))
    else:
        advice = translate("Models", "Choose a smaller model.")
    return f"{words.format(needed=needed, free=free)} {advice}", "danger"


def offer_words(mode: Mode, size: int | None) -> str:
    """Of the button that gets a drafter."""
    if size:
        words = translate("Models", "Get the {mode} drafter ({size})")
        return words.format(mode=mode_name(mode), size=size_words(size))
    return translate("Models", "Get the {mode} drafter").format(mode=mode_name(mode))


def repository_words(repository: Repository) -> str:
    downloads = translate("Models", "{count} downloads")
    return joined(
        (
            downloads.format(count=number_words(repository.downloads)) if repository.downloads is not None else None,
            repository.architecture,
            number_words(repository.parameters) if repository.parameters else None,
            repository.licence,
            translate("Models", "gated") if repository.gated else None,
            translate("Models", "private") if repository.private else None,
        )
    )


def remote_words(model: RemoteModel) -> str:
    parts = translate("Models", "{count} parts").format(count=len(model.files)) if len(model.files) > 1 else None
    return joined((size_words(model.size), model.quantisation, parts))


def download_words(download: Download) -> str:
    """What it is doing, how far it has come, how fast, and how long it will take."""
    states = {
        "waiting": translate("Downloads", "Waiting"),
        "downloading": translate("Downloads", "Downloading"),
        "checking": translate("Downloads", "Checking its SHA-256"),
        "paused": translate("Downloads", "Paused"),
        "failed": translate("Downloads", "Stopped"),
        "done": translate("Downloads", "Done"),
        "cancelled": translate("Downloads", "Cancelled"),
    }
    amount = translate("Downloads", "{done} of {total}")
    speed, left = download.bytes_per_second, download.seconds_left
    return joined(
        (
            states[download.state.value],
            amount.format(done=size_words(download.done), total=size_words(download.total)),
            f"{size_words(round(speed))}/s" if speed else None,
            time_words(left) if left is not None else None,
        )
    )


def time_words(seconds: float) -> str:
    if seconds < 90:
        return translate("Downloads", "{seconds} s left").format(seconds=max(1, round(seconds)))
    if seconds < 5400:
        return translate("Downloads", "{minutes} min left").format(minutes=round(seconds / 60))
    return translate("Downloads", "{hours} h left").format(hours=round(seconds / 3600))
