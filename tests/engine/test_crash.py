"""The sentence that says why the engine process ended."""

from __future__ import annotations

import signal

import pytest

from engine.crash import exit_reason, last_words

ABORT = "loading\nggml.c:7: GGML_ASSERT(a == b) failed\n#0 frame\nFatal Python error: Aborted\nThread 1\n"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (ABORT, "ggml.c:7: GGML_ASSERT(a == b) failed"),
        ("one\nlast\n\nFatal Python error: Segmentation fault\nThread\n", "last"),
        ("terminate called after throwing\n  what():  std::bad_alloc\nbye", "what():  std::bad_alloc"),
        ("", ""),
    ],
)
def test_last_words_are_the_line_that_tells_the_cause(log: str, words: str) -> None:
    assert last_words(log) == words


def test_last_words_are_cut_to_a_sentence() -> None:
    assert len(last_words("x" * 999)) == 240


@pytest.mark.parametrize(
    ("exit_code", "parts"),
    [
        (0, ["without being asked"]),
        (3, ["exit status 3", "the cause"]),
        (0xC0000005, ["0xC0000005", "the cause"]),
        (-signal.SIGABRT, ["SIGABRT", "the cause"]),
        (-63, ["signal 63", "the cause"]),
        (-9, ["SIGKILL", "out of memory"]),
        (-signal.SIGTERM, ["ended from outside", "SIGTERM"]),
        (None, ["did not end"]),
    ],
)
def test_every_way_to_end_has_its_sentence(exit_code: int | None, parts: list[str]) -> None:
    sentence = exit_reason(exit_code, "loading\nthe cause\n")
    assert all(part in sentence for part in parts), sentence
