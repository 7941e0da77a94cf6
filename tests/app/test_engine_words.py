"""The engine's sentences in Korean: the patterns are the engine's own words, and values come through."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app import i18n
from app.engine_words import SENTENCES, in_words
from engine.draft_length import _drafts, _one_more

ENGINE = Path(__file__).parents[2] / "engine"


@pytest.fixture
def korean(qapp: QApplication) -> Iterator[None]:
    i18n.use_language("ko")
    yield
    i18n.use_language("en")


def said_by_the_engine() -> set[str]:
    """Its strings, with every value left out."""
    found: set[str] = set()
    for path in ENGINE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
                found.add("".join(map(str, parts)).strip())
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def test_every_pattern_is_a_sentence_of_the_engine() -> None:
    said = said_by_the_engine()
    patterns = [sentence for sentence in SENTENCES if not re.match(r"an? \{number\}", sentence)]
    gone = [pattern for pattern in patterns if re.sub(r"\{\w+\}", "{}", pattern) not in said]
    assert gone == [], "the engine says this in other words now"


def test_values_come_through(korean: None) -> None:
    notice = (
        "The conversation outgrew the context of 4096 tokens: the model no longer sees the 3 oldest questions and "
        "answers."
    )
    assert (
        in_words(notice)
        == "대화가 4096토큰의 컨텍스트를 넘었습니다. 모델은 이제 가장 오래된 질문과 답변 3개를 보지 못합니다."
    )
    crash = "The engine process crashed (SIGABRT): ggml.c:1: GGML_ASSERT(a == {b}) failed"
    assert in_words(crash) == "엔진 프로세스가 비정상 종료되었습니다(SIGABRT): ggml.c:1: GGML_ASSERT(a == {b}) failed"
    for count in (1, 2, 3, 7, 10, 20, 21):
        words = in_words(f"{_drafts(count)}: {_one_more(count + 1)} would cost more than it brings.")
        assert f"드래프트 {count}개" in words and f"{count + 1}번째" in words


def test_several_sentences_and_lists(korean: None) -> None:
    speed = (
        "Temperature 0, one question at a time: against the baseline's tokens/s, DFlash 0.94 × (one run) and DFlash 2 "
        "1.52 × (1.48–1.60 in 3 runs, faster). Against DFlash's, DFlash 2 1.62 × (one run)."
    )
    words = in_words(speed)
    assert "DFlash 0.94배(1회 측정), DFlash 2 1.52배(3회 측정에서 1.48–1.60, 더 빠름)" in words
    assert words.endswith("DFlash 대비 DFlash 2 1.62배(1회 측정).")
    assert in_words("The context is nearly full: 1 of 2 tokens are used. Unheard of.").endswith(" Unheard of.")


def test_what_no_pattern_fits_stays_as_it_is(korean: None) -> None:
    assert in_words("Something else went wrong {here}.") == "Something else went wrong {here}."
    assert in_words("") == ""


def test_in_english_nothing_changes() -> None:
    assert in_words(SENTENCES[0]) == SENTENCES[0]
