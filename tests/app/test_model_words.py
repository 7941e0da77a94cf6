"""What is said of models and downloads, for every case that can be met."""

from __future__ import annotations

from typing import Any

import pytest

from app.model_words import download_words, fit_words, number_words, offer_words, size_words, time_words
from engine.downloads import Download, State
from engine.events import Mode
from engine.fit import Fit, Need, Verdict
from engine.remote_model import RemoteFile, RemoteModel

GB = 10**9


def fit(verdict: Verdict, longest: int | None = None, quantisation: tuple[str, int] | None = None) -> Fit:
    need = Need(16 * GB, 2 * GB, GB, GB, 0, 0, 4 * GB)
    return Fit(need, verdict, 12 * GB, 0, 4096, longest, quantisation)


def test_fit_is_a_figure_and_an_advice() -> None:
    assert fit_words(fit(Verdict.FITS)) == ("Takes about 20.0 GB of memory; 12.0 GB are free.", "muted")
    words, role = fit_words(fit(Verdict.TIGHT))
    assert "nearly all of the 12.0 GB" in words and role == "warning"
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"longest": 2048}, "A context of 2,048 tokens would fit."),
        ({"quantisation": ("Q3_K_M", 9 * GB)}, "In Q3_K_M (about 9.0 GB) it would fit."),
        ({}, "Choose a smaller model."),
    )
    for given, advice in cases:
        words, role = fit_words(fit(Verdict.TOO_LARGE, **given))
        assert words.endswith(advice) and "12.0 GB are free" in words and role == "danger"


@pytest.mark.parametrize(
    ("download", "said"),
    [
        ({"state": State.WAITING}, "Waiting  ·  0 kB of 1.1 GB"),
        (
            {"state": State.RUNNING, "done": 412_000_000, "bytes_per_second": 12.3e6, "seconds_left": 56.0},
            "Downloading  ·  412 MB of 1.1 GB  ·  12 MB/s  ·  56 s left",
        ),
        ({"state": State.CHECKING, "done": 1_143_006_752}, "Checking its SHA-256  ·  1.1 GB of 1.1 GB"),
        ({"state": State.PAUSED, "done": 5_000_000}, "Paused  ·  5 MB of 1.1 GB"),
    ],
)
def test_what_a_download_is_doing(download: dict[str, Any], said: str) -> None:
    model = RemoteModel((RemoteFile("a/b", "x.gguf", 1_143_006_752, "0" * 40, "1" * 64),))
    given: dict[str, Any] = {"id": "x", "model": model, "done": 0, **download}
    assert download_words(Download(**given)) == said


def test_sizes_numbers_and_times() -> None:
    assert [size_words(n) for n in (1_012_704, 999_600_000, 512_000)] == ["1 MB", "1.0 GB", "512 kB"]
    assert [number_words(n) for n in (950, 22_200, 135_000_000, 27_000_000_000)] == ["950", "22.2 k", "135 M", "27.0 B"]
    assert [time_words(n) for n in (0.2, 89, 600, 7200)] == ["1 s left", "89 s left", "10 min left", "2 h left"]
    assert offer_words(Mode.DFLASH2, 1_000_000_000) == "Get the DFlash 2 drafter (1.0 GB)"
    assert offer_words(Mode.DFLASH, None) == "Get the DFlash drafter"
