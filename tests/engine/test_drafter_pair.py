"""Which drafter fits which target: hidden size, vocabulary, layers, and an architecture that can be tapped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.drafter_config import (
    FEATURE_TAP_ARCHITECTURES,
    FINAL_TAP_ARCHITECTURES,
    DrafterConfig,
    check_pair,
    require_pair,
    target_layer_count,
    target_vocabulary,
)
from engine.errors import DrafterMismatch, ModelFileError
from engine.gguf_file import Header, read_header
from tests.drafter_files import Vocabulary, write_drafter, write_target
from tests.fixture_files import FIXTURES, FOLDER
from tests.packaged_target import packaged_target

VOCABULARY = 256


def fixture(name: str) -> Header:
    return read_header(FOLDER / f"{name}.gguf")


def changed(header: Header, metadata: Mapping[str, Any]) -> Header:
    """The header with some of its metadata replaced, or with None removed."""
    merged = header.metadata | dict(metadata)
    return replace(header, metadata={key: value for key, value in merged.items() if value is not None})


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("targets")


def target(folder: Path, name: str = "target", **changes: Any) -> Header:
    return read_header(write_target(folder / f"{name}.gguf", **changes))


@pytest.mark.parametrize("name", [name for name in FIXTURES if name != "dflash2_block16_k16"])
def test_a_pair_that_fits(targets: Path, name: str) -> None:
    drafter, llama = fixture(name), target(targets)
    assert check_pair(drafter, llama) == []
    assert require_pair(drafter, llama) == DrafterConfig.from_header(drafter)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hidden_size": 64}, "its hidden size is 96, the target's 64"),
        ({"vocabulary": Vocabulary.small(320)}, "its vocabulary has 256 tokens, the target's 320"),
        ({"layers": 5}, "it listens at layer 5, but the target has 5 layers and can be tapped up to layer 4"),
        ({"layers": 2}, "it listens at layer 5, but the target has 2 layers"),
        ({"metadata": {"llama.nextn_predict_layers": 1}}, "but the target has 5 layers"),
    ],
)
def test_pairs_that_do_not_fit(targets: Path, changes: dict[str, Any], said: str) -> None:
    drafter, other = fixture("dflash1"), target(targets, "other", **changes)
    (sentence,) = check_pair(drafter, other)
    assert said in sentence
    assert sentence.startswith("dflash1.gguf does not fit other.gguf: ")
    assert sentence.endswith("; use a drafter made for this target.")
    with pytest.raises(DrafterMismatch) as caught:
        require_pair(drafter, other)
    assert str(caught.value) == sentence


def test_all_reasons_stand_in_one_sentence(targets: Path) -> None:
    other = target(targets, hidden_size=64, layers=2)
    assert len(check_pair(fixture("dflash1"), other)) == 2
    with pytest.raises(DrafterMismatch, match="its hidden size is 96, the target's 64, and it listens at layer 5"):
        require_pair(fixture("dflash1"), other)


def test_different_tokens_are_counted_and_shown(targets: Path) -> None:
    vocabulary = Vocabulary.small()
    tokens = list(vocabulary.keys["tokenizer.ggml.tokens"])
    tokens[7], tokens[9] = "seven", "nine"
    other = target(targets, vocabulary=Vocabulary(dict(vocabulary.keys) | {"tokenizer.ggml.tokens": tokens}))
    (sentence,) = check_pair(fixture("dflash1"), other)
    assert "2 of 256 tokens differ (the first is token 7: 't7' in the drafter, 'seven' in the target)" in sentence


def test_the_mask_token_may_have_another_name(targets: Path) -> None:
    tokens = [header.metadata["tokenizer.ggml.tokens"] for header in (fixture("dflash1"), target(targets))]
    assert [i for i in range(VOCABULARY) if tokens[0][i] != tokens[1][i]] == [255]  # the fixtures' mask token
    moved = changed(fixture("dflash1"), {"tokenizer.ggml.mask_token_id": 254})
    (sentence,) = check_pair(moved, target(targets))
    assert "1 of 256 tokens differ (the first is token 255: '<mask>' in the drafter, 't255' in the target)" in sentence


def test_a_target_without_tokens_is_compared_by_its_size(targets: Path) -> None:
    header = changed(target(targets), {"tokenizer.ggml.tokens": None})
    assert target_vocabulary(header) == VOCABULARY
    assert check_pair(fixture("dflash1"), header) == []


@pytest.mark.parametrize("architecture", ["qwen2", "gemma3", "phi3", "granite", "qwen4exp"])
def test_a_target_without_a_tap(targets: Path, architecture: str) -> None:
    other = target(targets, architecture=architecture)
    (sentence,) = check_pair(fixture("dflash1"), other)
    assert f"target.gguf is of architecture '{architecture}'" in sentence
    with pytest.raises(ModelFileError):
        require_pair(fixture("dflash1"), other)


@pytest.mark.parametrize("architecture", sorted(FEATURE_TAP_ARCHITECTURES))
def test_targets_with_a_tap(targets: Path, architecture: str) -> None:
    assert check_pair(fixture("dflash2"), target(targets, architecture=architecture)) == []
    behind_the_last = check_pair(fixture("dflash2"), target(targets, architecture=architecture, layers=5))
    assert bool(behind_the_last) is (architecture not in FINAL_TAP_ARCHITECTURES)


def test_a_drafter_is_no_target_for_another() -> None:
    (sentence,) = check_pair(fixture("dflash1"), fixture("dflash2"))
    assert "dflash2.gguf cannot be a target, it is a DFlash 2 drafter" in sentence


def test_a_bad_drafter_gives_its_own_sentence(targets: Path) -> None:
    drafter = changed(fixture("dflash1"), {"dflash.target_layers": None})
    (sentence,) = check_pair(drafter, target(targets))
    assert sentence.startswith("dflash1.gguf lacks 'dflash.target_layers'")
    with pytest.raises(ModelFileError, match="target_layers"):
        require_pair(drafter, target(targets))


def test_the_packaged_target(tmp_path: Path) -> None:
    """A drafter with its geometry and vocabulary fits it; the small fixtures do not."""
    smollm = read_header(packaged_target())
    assert (target_layer_count(smollm), target_vocabulary(smollm)) == (30, 49152)
    drafter = write_drafter(
        tmp_path / "fitting.gguf",
        version=1,
        hidden_size=576,
        layers=1,
        target_layers=(2, 15, 29),
        own_embeddings=False,
        own_head=False,
    )
    tokens = smollm.metadata["tokenizer.ggml.tokens"]
    config = require_pair(changed(read_header(drafter), {"tokenizer.ggml.tokens": tokens}), smollm)
    assert config.token_digest == tokens.digest
    for name in FIXTURES:
        reasons = check_pair(fixture(name), smollm)
        assert len(reasons) == 2
        assert all("SmolLM2" in reason and f"{name}.gguf" in reason for reason in reasons)
