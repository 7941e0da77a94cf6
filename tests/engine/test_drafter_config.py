"""What drafter files say: every key and its default, every way in which a file can be wrong, and which target fits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.drafter_config import (
    DrafterConfig,
    Rope,
    check_pair,
)
from engine.errors import ModelFileError
from engine.events import Mode
from engine.file_kind import Kind, kind_of
from engine.gguf_file import Header, StringArray, read_header
from tests.drafter_files import write_drafter, write_target
from tests.fixture_files import FOLDER

HIDDEN, VOCABULARY = 96, 256


def fixture(name: str) -> Header:
    return read_header(FOLDER / f"{name}.gguf")


def changed(header: Header, metadata: Mapping[str, Any]) -> Header:
    """The header with some of its metadata replaced, or with None removed."""
    merged = header.metadata | dict(metadata)
    return replace(header, metadata={key: value for key, value in merged.items() if value is not None})


def config_with(metadata: Mapping[str, Any], name: str = "dflash1") -> DrafterConfig:
    return DrafterConfig.from_header(changed(fixture(name), metadata))


def refused(header: Header) -> str:
    """The sentence of a refusal: one line, ending in a full stop, naming the file."""
    with pytest.raises(ModelFileError) as caught:
        DrafterConfig.from_header(header)
    sentence = str(caught.value)
    assert header.file_name in sentence
    assert sentence.endswith(".") and "\n" not in sentence and ";" in sentence
    return sentence


# --- what is read -----------------------------------------------------------------------------------------------------


def test_every_field_of_a_dflash_drafter() -> None:
    header = fixture("dflash1")
    assert DrafterConfig.from_header(header) == DrafterConfig(
        path=str(FOLDER / "dflash1.gguf"),
        name="dflash1",
        version=Mode.DFLASH,
        hidden_size=HIDDEN,
        layers=2,
        feed_forward=160,
        heads=4,
        kv_heads=2,
        head_dim=32,
        context_length=4096,
        norm_eps=float(np.float32(1e-6)),
        rope=Rope(
            dims=32,
            freq_base=10000.0,
            scaling="none",
            factor=1.0,
            original_context=4096,
            attention_factor=1.0,
            beta_fast=32.0,
            beta_slow=1.0,
            ext_factor=0.0,
            sections=None,
        ),
        block_size=8,
        target_layers=(1, 3, 5),
        vocabulary=VOCABULARY,
        mask_token=255,
        token_digest=header.metadata["tokenizer.ggml.tokens"].digest,
        conv_kernel=None,
        conv_group=None,
        selector_rank=None,
        selector_top_k=None,
        logit_scale=1.0,
        soft_cap=None,
        embedding_scale=1.0,
        value_scale=1.0,
        attention_scale=32**-0.5,
        activation="silu",
        causal=False,
        window=None,
        sliding=(False, False),
        own_embeddings=True,
        own_head=True,
        draft_vocabulary=None,
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dflash2", {"version": Mode.DFLASH2, "conv_kernel": 2, "conv_group": 16, "selector_rank": 16}),
        ("dflash2", {"selector_top_k": 8, "block_size": 8, "causal": False}),
        ("dflash2_block16_k16", {"hidden_size": 288, "layers": 3, "heads": 8, "kv_heads": 1, "head_dim": 32}),
        ("dflash2_block16_k16", {"block_size": 16, "selector_rank": 32, "selector_top_k": 16}),
        ("dflash2_sliding", {"window": 24, "sliding": (True, True), "causal": False}),
        ("dflash2_scaled", {"logit_scale": 0.5, "soft_cap": 12.0, "embedding_scale": 3.0}),
        ("dflash2_causal", {"causal": True, "window": None}),
    ],
)
def test_fixtures(name: str, expected: dict[str, Any]) -> None:
    config = DrafterConfig.from_header(fixture(name))
    assert {field: getattr(config, field) for field in expected} == expected


def test_absent_keys_mean_what_they_mean_in_llama_cpp() -> None:
    absent = (
        "dflash.attention.head_count_kv",  # as many as heads: then the shapes no longer fit, see below
        "dflash.block_size",
        "dflash.rope.freq_base",
        "dflash.vocab_size",
    )
    config = config_with(dict.fromkeys(absent[1:]))
    assert (config.block_size, config.rope.freq_base, config.vocabulary) == (16, 10000.0, VOCABULARY)
    assert "'blk.0.attn_k.weight' in the shape [64, 96]" in refused(changed(fixture("dflash1"), {absent[0]: None}))
    # the head size defaults to hidden size / heads = 24
    lengths = dict.fromkeys(("dflash.attention.key_length", "dflash.attention.value_length"))
    assert "metadata wants [96, 96]" in refused(changed(fixture("dflash1"), lengths))


@pytest.mark.parametrize(
    ("key", "value", "field", "expected"),
    [
        ("logit_scale", 0.25, "logit_scale", 0.25),
        ("logit_scale", 0.0, "logit_scale", 1.0),  # 0 is "none" in llama.cpp
        ("embedding_scale", 0.0, "embedding_scale", 1.0),
        ("attention.value_scale", 0.5, "value_scale", 0.5),
        ("attention.scale", 0.125, "attention_scale", 0.125),
        ("attention.scale", 0.0, "attention_scale", 32**-0.5),
        ("final_logit_softcapping", 30.0, "soft_cap", 30.0),
        ("final_logit_softcapping", 0.0, "soft_cap", None),
        ("hidden_activation", "gelu", "activation", "gelu"),
        ("hidden_activation", "gelu_pytorch_tanh", "activation", "gelu"),
        ("hidden_activation", "silu", "activation", "silu"),
        ("attention.causal", True, "causal", True),
        ("block_count", np.array([2, 2], np.int32), "layers", 2),
    ],
)
def test_optional_keys(key: str, value: Any, field: str, expected: Any) -> None:
    assert getattr(config_with({f"dflash.{key}": value}), field) == expected


def test_vocabulary_size_without_tokens() -> None:
    config = config_with({"tokenizer.ggml.tokens": None})
    assert (config.vocabulary, config.token_digest) == (VOCABULARY, None)


@pytest.mark.parametrize(
    ("window", "pattern", "expected"),
    [
        (24, [True, False], (24, (True, False))),
        (24, [False, False], (None, (False, False))),
        (24, [], (None, (False, False))),  # what a converter writes that knows no layer types
        (0, [True, True], (None, (False, False))),
    ],
)
def test_sliding_window(window: int, pattern: list[bool], expected: tuple[int | None, tuple[bool, ...]]) -> None:
    config = config_with(
        {
            "dflash.attention.sliding_window": window,
            "dflash.attention.sliding_window_pattern": np.array(pattern, np.bool_),
        }
    )
    assert (config.window, config.sliding) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"dimension_count": 16}, {"dims": 16}),
        ({"freq_base": 1e6}, {"freq_base": 1e6}),
        ({"scaling.factor": 4.0}, {"scaling": "linear", "factor": 4.0, "ext_factor": 0.0}),
        ({"scale_linear": 2.0}, {"scaling": "linear", "factor": 2.0}),
        ({"scale_linear": 2.0, "scaling.factor": 4.0}, {"factor": 4.0}),
        ({"scaling.type": "linear", "scaling.factor": 0.0}, {"scaling": "none", "factor": 1.0}),
        ({"scaling.type": "none", "scaling.factor": 4.0}, {"scaling": "none", "factor": 1.0}),
        (
            {"scaling.type": "yarn", "scaling.factor": 4.0, "scaling.original_context_length": 1024},
            {"scaling": "yarn", "factor": 4.0, "original_context": 1024, "ext_factor": 1.0, "attention_factor": 1.0},
        ),
        (
            {"scaling.type": "yarn", "scaling.factor": 4.0},
            {"original_context": 4096, "beta_fast": 32.0, "beta_slow": 1.0},
        ),
        ({"scaling.type": "yarn", "scaling.attn_factor": 1.5}, {"attention_factor": 1.5}),
        ({"scaling.yarn_beta_fast": 64.0, "scaling.yarn_beta_slow": 2.0}, {"beta_fast": 64.0, "beta_slow": 2.0}),
        ({"dimension_sections": np.array([16, 0, 0, 0], np.int32)}, {"sections": (16, 0, 0, 0)}),
        ({"dimension_sections": np.array([8, 4, 4], np.int32)}, {"sections": (8, 4, 4, 0)}),
        ({"dimension_sections": np.array([0, 0, 0, 0], np.int32)}, {"sections": None}),
    ],
)
def test_rope(keys: dict[str, Any], expected: dict[str, Any]) -> None:
    rope = config_with({f"dflash.rope.{key}": value for key, value in keys.items()}).rope
    assert {field: getattr(rope, field) for field in expected} == expected


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, 8.0, 40.0])
def test_the_attention_factor_of_yarn_is_llama_cpps(factor: float) -> None:
    """ggml turns with attn_factor * (1 + 0.1 ln factor); the whole shall be YaRN's own factor, times the file's."""
    keys = {"dflash.rope.scaling.type": "yarn", "dflash.rope.scaling.factor": factor}
    rope = config_with(keys | {"dflash.rope.scaling.attn_factor": 0.9}).rope
    magnitude = 1.0 if factor <= 1.0 else 0.1 * math.log(factor) + 1.0
    assert rope.attention_factor * (1 + 0.1 * math.log(factor)) == pytest.approx(0.9 * magnitude)


def test_a_drafter_with_all_optional_tensors(tmp_path: Path) -> None:
    for version in (1, 2):
        path = write_drafter(
            tmp_path / "all.gguf",
            version=version,
            d2t=list(range(0, 256, 2)),
            no_attn_v=True,
            post_norms=True,
            layer_scale=True,
            sinks=True,
            rope_freqs=True,
        )
        config = DrafterConfig.from_header(read_header(path))
        assert config.draft_vocabulary == 128
        assert config.vocabulary == VOCABULARY


def test_a_drafter_without_embeddings_and_head(tmp_path: Path) -> None:
    for embeddings, head in ((False, False), (True, False), (False, True)):
        path = write_drafter(tmp_path / "d.gguf", version=2, own_embeddings=embeddings, own_head=head)
        config = DrafterConfig.from_header(read_header(path))
        assert (config.own_embeddings, config.own_head) == (embeddings, head)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("dflash.target_layers", None, "lacks 'dflash.target_layers', so nobody knows which layers"),
        ("dflash.target_layers", np.array([], np.int32), "where a list of layer numbers from 1 on belongs"),
        ("dflash.target_layers", np.array([0, 3], np.int32), "= [0, 3] where"),
        ("dflash.target_layers", 3, "= 3 where a list"),
        ("tokenizer.ggml.mask_token_id", None, "has no mask token"),
        ("tokenizer.ggml.mask_token_id", -1, "has no mask token"),
        ("tokenizer.ggml.mask_token_id", 0xFFFFFFFF, "has no mask token"),
        ("tokenizer.ggml.mask_token_id", 256, "where a token id below 256 belongs"),
        ("dflash.embedding_length", None, "lacks 'dflash.embedding_length'"),
        ("dflash.block_count", None, "lacks 'dflash.block_count'"),
        ("dflash.block_count", 0, "= 0 where a whole number from 1 to 512"),
        ("dflash.block_count", 1 << 30, "where a whole number from 1 to 512"),
        ("dflash.block_count", 3, "lacks the tensors 'blk.2.attn_norm.weight'"),
        ("dflash.block_count", 1, "tensors that DFlash does not know"),
        ("dflash.block_size", 1, "= 1 where a whole number from 2"),
        ("dflash.context_length", None, "lacks 'dflash.context_length'"),
        ("dflash.feed_forward_length", None, "lacks 'dflash.feed_forward_length'"),
        ("dflash.attention.head_count", None, "lacks 'dflash.attention.head_count'"),
        ("dflash.attention.head_count", np.array([4, 2], np.int32), "= [4, 2] where"),
        ("dflash.attention.head_count_kv", 3, "where a divisor of the 4 heads"),
        ("dflash.attention.value_length", 16, "where the key length 32"),
        ("dflash.attention.layer_norm_rms_epsilon", None, "lacks 'dflash.attention.layer_norm_rms_epsilon'"),
        ("dflash.attention.layer_norm_rms_epsilon", math.nan, "where a number belongs"),
        ("dflash.logit_scale", "loud", "= 'loud' where a number belongs"),
        ("dflash.attention.causal", 1, "where true or false belongs"),
        ("dflash.hidden_activation", "relu", "activation 'relu', which is not supported"),
        ("dflash.rope.dimension_count", 64, "where an even number of at most 32"),
        ("dflash.rope.dimension_count", 15, "where an even number of at most 32"),
        ("dflash.rope.scaling.type", "longrope", "scales its positions by 'longrope', which is not supported"),
        ("dflash.rope.scaling.factor", -2.0, "where a number above 0"),
        ("dflash.rope.dimension_sections", np.array([8, 4, 4, 4], np.int32), "0 as its last section"),
        ("dflash.attention.sliding_window", 24, "lacks 'dflash.attention.sliding_window_pattern'"),
        ("dflash.embedding_length", 64, "in the shape [96, 288] where its metadata wants [64, 192]"),
        ("tokenizer.ggml.tokens", StringArray(b"\1\0\0\0\0\0\0\0a" * 300, 300), "where its metadata wants [300, 96]"),
    ],
)
def test_bad_metadata(key: str, value: Any, said: str) -> None:
    assert said in refused(changed(fixture("dflash1"), {key: value}))


@pytest.mark.parametrize("key", ["conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k"])
def test_missing_convolution_and_selector_keys(key: str) -> None:
    sentence = refused(changed(fixture("dflash2"), {f"dflash.{key}": None}))
    assert f"is a DFlash 2 drafter without 'dflash.{key}' in its metadata" in sentence


def test_all_convolution_and_selector_keys_missing() -> None:
    keys = ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k")
    sentence = refused(changed(fixture("dflash2"), {f"dflash.{key}": None for key in keys}))
    assert "without 'dflash.conv_kernel_size', 'dflash.conv_group_size', 'dflash.selector_rank' and 1 more" in sentence


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("conv_group_size", 36, "where a divisor of the hidden size 96"),
        ("conv_kernel_size", 3, "'blk.0.attn_conv_base' in the shape [2, 2, 96] where its metadata wants [2, 3, 96]"),
        ("selector_rank", 8, "'selector_predecessor.weight' in the shape [256, 16]"),
        ("selector_top_k", 300, "wants 300 candidates ('dflash.selector_top_k') out of 256 tokens"),
        ("selector_top_k", 0, "where a whole number from 1"),
    ],
)
def test_bad_convolution_and_selector_keys(key: str, value: int, said: str) -> None:
    assert said in refused(changed(fixture("dflash2"), {f"dflash.{key}": value}))


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("dflash1", "fc.weight"),
        ("dflash1", "enc.output_norm.weight"),
        ("dflash1", "blk.1.ffn_down.weight"),
        ("dflash2", "selector_hidden.weight"),
        ("dflash2", "selector_successor.weight"),
        ("dflash2", "blk.0.attn_conv_base"),
        ("dflash2", "blk.1.ffn_conv_proj.weight"),
    ],
)
def test_missing_tensor(name: str, tensor: str) -> None:
    header = fixture(name)
    tensors = {key: value for key, value in header.tensors.items() if key != tensor}
    assert f"lacks the tensor '{tensor}'" in refused(replace(header, tensors=tensors))


def test_bad_tensors(tmp_path: Path) -> None:
    small = np.zeros((4, 4), np.float32)

    def made(**changes: Any) -> Header:
        return read_header(write_drafter(tmp_path / "made.gguf", version=1, **changes))

    assert "'fc.weight' in the shape [4, 4]" in refused(made(tensors={"fc.weight": small}))
    assert "a tensor that DFlash does not know ('blk.0.attn_q.bias')" in refused(
        made(tensors={"blk.0.attn_q.bias": np.zeros(128, np.float32)})
    )
    assert "no 'output.weight'" in refused(made(d2t=[1, 2, 3], own_head=False))
    assert "stores 'd2t' as I32 instead of I64" in refused(made(d2t=[1, 2, 3], tensors={"d2t": np.zeros(3, np.int32)}))
    assert "wants 8 candidates" in refused(read_header(write_drafter(tmp_path / "made.gguf", version=2, d2t=[1, 2, 3])))


def test_other_drafters(tmp_path: Path) -> None:
    markov = np.zeros((256, 8), np.float32)
    dspark = write_drafter(tmp_path / "dspark.gguf", version=1, tensors={"markov_w1.weight": markov})
    community = write_target(tmp_path / "community.gguf", architecture="dflash-draft")
    eagle = write_target(tmp_path / "eagle.gguf", architecture="eagle3")
    deepseek = write_drafter(tmp_path / "v4.gguf", version=1, metadata={"dflash.hyper_connection.count": 4})
    target = write_target(tmp_path / "target.gguf")
    for path, kind, said in (
        (dspark, Kind.DSPARK, "is a DSpark drafter (it has 'markov_w1.weight')"),
        (community, Kind.COMMUNITY_DFLASH, "is of the community architecture 'dflash-draft'"),
        (eagle, Kind.OTHER_DRAFTER, "a drafter of another method of architecture 'eagle3'"),
        (deepseek, Kind.HYPER_CONNECTION, "DeepSeek-V4 with hyper-connections, a backbone that is not supported"),
        (target, Kind.TARGET, "is not a DFlash drafter but a chat model (target) of architecture 'llama'"),
    ):
        header = read_header(path)
        assert kind_of(header) is kind
        assert said in refused(header)


@pytest.mark.parametrize("name", ["dflash1", "dflash2_sliding", "dflash2_scaled"])
def test_no_value_of_any_key_brings_more_than_a_refusal(name: str) -> None:
    header = fixture(name)
    keys = set(header.metadata) | {
        f"dflash.{key}"
        for key in [
            "hidden_activation",
            "rope.scaling.type",
            "rope.scaling.factor",
            "rope.dimension_sections",
            "rope.dimension_count",
            "hyper_connection.count",
            "attention.scale",
            "nextn_predict_layers",
        ]
    }
    odd: list[Any] = [
        None,
        -1,
        0,
        1 << 63,
        True,
        math.inf,
        -0.5,
        "",
        "\udcff",
        np.array([], np.int32),
        np.array([1, 2], np.uint64),
        np.array([0.5, math.nan]),
        np.array([True]),
        StringArray(b"", 0),
        StringArray(bytes(16), 2),
    ]
    refusals = 0
    for key in sorted(keys):
        for value in odd:
            damaged = changed(header, {key: value})
            try:
                check_pair(damaged, damaged)
                check_pair(header, changed(damaged, {"general.architecture": "llama"}))
                kind_of(damaged)
                DrafterConfig.from_header(damaged)
            except ModelFileError:
                refusals += 1
    assert refusals > 100
