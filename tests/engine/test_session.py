"""Conversations with tiny models: what an answer says of itself, what is read again, and what ends an answer.

The counting pair says letters in their order whatever it is asked, and its drafter is always right; so every expected
figure can be written down.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.events import KV_TYPES, Loaded, LoadProgress, LoadSettings, Mode, SamplerSettings, StopReason, Tokens
from engine.session import Session
from engine.vocabulary import Message
from tests.conversation import answer_to, answered, ask, of_type, opened
from tests.tiny_chat import LETTERS, counting_drafter, counting_target

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

COUNT = bytes(LETTERS).decode() * 20
DRAFTS = 7


# --- opening ----------------------------------------------------------------------------------------------------------


def test_opening_reports_progress_and_what_was_loaded(
    tiny_models: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DFLASH_CHAT_CACHE", str(tmp_path))  # with no pair that another test has measured
    events: list[Any] = []
    drafters = {Mode.DFLASH: str(tiny_models.wandering_v1), Mode.DFLASH2: str(tiny_models.counting_v2)}
    settings = LoadSettings(str(tiny_models.counting), drafters, context=512, threads=1)
    with Session.open(settings, events.append) as session:
        *progress, loaded = events
        assert progress and all(isinstance(event, LoadProgress) and event.part == "target" for event in progress)
        fractions = [event.fraction for event in progress]
        assert fractions == sorted(fractions) and fractions[-1] == 1
        assert loaded == Loaded(session.info, session.modes, loaded.memory)
        assert session.info.context_served == 512 and session.info.context_trained == 4096
        assert session.info.quantisation == "F32"
        assert [info.reason for info in session.modes] == [None, None, None]
        assert loaded.memory.drafter_weights is None, "drafters are loaded when first used"
        ask(session, "hi", mode=Mode.DFLASH2, max_tokens=3)
        later = events[len(progress) + 1 :]
        assert list(dict.fromkeys(event.part for event in later)) == ["drafter", "measuring"]
        assert [event.fraction for event in later if event.part == "measuring"][-1] == 1
        assert (session.memory().drafter_weights or 0) > 0 and (session.memory().drafter_kv or 0) > 0


def test_a_context_longer_than_the_model_was_trained_for_is_cut(tiny_models: TinyModels) -> None:
    with opened(tiny_models.counting, context=100_000) as session:
        assert session.info.context_served == 4096


def test_the_context_is_kept_in_the_type_and_on_the_device_that_were_chosen(tiny_models: TinyModels) -> None:
    """And drafting goes on as ever."""
    drafters = {Mode.DFLASH2: str(tiny_models.counting_v2)}
    sizes = []
    for kv_type in KV_TYPES:
        settings = LoadSettings(str(tiny_models.counting), drafters, 512, threads=1, device="CPU", kv_type=kv_type)
        with Session.open(settings) as session:
            end = answer_to(session, "count!", mode=Mode.DFLASH2, max_tokens=41, draft_length=DRAFTS)
            assert end.text == COUNT[:41] and end.statistics.acceptance_length == DRAFTS + 1
            memory = end.statistics.memory
            sizes.append(memory.target_context)
            assert memory.offloaded is None, "nothing lies elsewhere"
    assert sizes[0] > sizes[1] > sizes[2] > 0


# --- one answer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(Mode))
def test_an_answer_and_its_figures(counting: Session, mode: Mode) -> None:
    events = ask(counting, "count!", mode=mode, max_tokens=41, draft_length=DRAFTS)
    end = answered(events)
    assert end.text == COUNT[:41]
    figures = end.statistics
    assert figures.mode is mode and figures.stop_reason is StopReason.MAX_TOKENS
    assert figures.target == "counting.gguf"
    assert figures.prompt_tokens == len(counting._target.vocabulary.render([Message("user", "count!")]))
    assert figures.prompt_tokens_cached == 0
    assert end.context_used == figures.prompt_tokens + 40, "the newest token is in no cache"
    if mode is Mode.BASELINE:
        assert counting._target.taps == (), "nobody reads features, so nobody pays for them"
        assert figures.drafter is None and figures.acceptance_length is None and figures.acceptance_rate is None
        assert figures.target_passes == 40 and figures.verification_passes == 0
    if mode is Mode.DFLASH2:
        assert figures.drafter == "counting-v2.gguf"
        assert figures.acceptance_length == DRAFTS + 1 and figures.acceptance_rate == 1
        assert figures.target_passes == figures.verification_passes == 5
        assert figures.acceptance_by_position == (1.0,) * DRAFTS
        first, *cycles = of_type(events, Tokens)
        assert first.origins == (0,)
        assert [cycle.origins for cycle in cycles] == [(*range(1, DRAFTS + 1), 0)] * 5


@pytest.mark.parametrize("mode", list(Mode))
def test_the_token_limit_is_kept_exactly(counting: Session, mode: Mode) -> None:
    for limit in range(1, 20):
        end = answer_to(counting, "count!", mode=mode, max_tokens=limit, draft_length=DRAFTS)
        assert end.text == COUNT[:limit]
        assert end.statistics.stop_reason is StopReason.MAX_TOKENS


@pytest.mark.parametrize("key", ["eos_token_id", "eot_token_id", "eom_token_id"])
def test_every_stop_token_of_the_file_ends_an_answer(tmp_path: Path, key: str) -> None:
    """Also in the midst of accepted drafts, and it is not part of the answer."""
    ring = (*b"stopnw", ord("!"))  # the answer is "stopnw", and "!" is the stop token
    target = counting_target(tmp_path / "target.gguf", ring, metadata={f"tokenizer.ggml.{key}": ord("!")})
    drafter = counting_drafter(tmp_path / "drafter.gguf", ring)
    with opened(target, v2=drafter) as session:
        for drafts in range(1, DRAFTS + 1):
            for mode in (Mode.BASELINE, Mode.DFLASH2):
                end = answer_to(session, f"question {drafts}", mode=mode, draft_length=drafts)
                assert end.text == "stopnw" and end.token_ids == tuple(b"stopnw")
                assert end.statistics.stop_reason is StopReason.STOP_TOKEN
                assert end.statistics.output_tokens == 6


@pytest.mark.parametrize("mode", list(Mode))
def test_the_same_seed_gives_the_same_text(wandering: Session, mode: Mode) -> None:
    def text(seed: int) -> str:
        wandering.reset()
        settings = SamplerSettings(temperature=1.5, top_k=12, seed=seed)
        return answer_to(wandering, "roll!", mode=mode, sampler=settings, max_tokens=40, draft_length=3).text

    assert text(7) == text(7)
    assert len({text(seed) for seed in range(6)}) > 3
