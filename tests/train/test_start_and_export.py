"""Where training starts, and the file it ends in: read back by the engine and by libllama. Without PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.convert import quantised
from engine.drafter import Drafter
from engine.drafter_config import DrafterConfig, check_pair
from engine.drafter_weights import SharedTensors
from engine.events import Mode
from engine.gguf_file import Header, read_header
from engine.graph import Device
from engine.target import Target
from engine.train.export import spread, write_drafter
from engine.train.recipe import mask_token
from engine.train.start import Design, TargetWeights, draft_vocabulary, drafter_config, initial_weights
from tests.libllama_dflash import LibllamaDrafter
from tests.tiny_chat import MASK

DESIGN = Design(taps=(1, 3), sources=(1, 3), block=8, mask_token=MASK, rank=32, top_k=8, draft_vocabulary=120)
ROWS = np.arange(3, 243, 2)  # the draft vocabulary


@pytest.fixture(scope="module")
def header(tiny_file: Path) -> Header:
    return read_header(str(tiny_file))


def exported(header: Header, path: Path, mode: Mode, matrices: str = "Q8_0", tables: str = "Q8_0") -> DrafterConfig:
    config = drafter_config(header, DESIGN, mode)
    target = TargetWeights(header)
    weights = initial_weights(config, target, DESIGN.sources, np.ones(2, np.float32), ROWS, seed=0)
    if mode is Mode.DFLASH2:  # as after training: nothing of it zero
        rng = np.random.default_rng(0)
        for name in weights:
            if "conv" in name or "successor" in name:
                weights[name] = weights[name] + 0.1 * rng.standard_normal(weights[name].shape, np.float32)
    notes = {"general.license": "apache-2.0", "training.steps": 7, "training.questions": "a, b"}
    write_drafter(path, config, weights, target.head[ROWS], ROWS, header, matrices=matrices, tables=tables, notes=notes)
    return config


@pytest.fixture(scope="module")
def target(header: Header) -> Iterator[Target]:
    target = Target(header, context=256, threads=1)
    yield target
    target.close()


@pytest.mark.parametrize("mode", [Mode.DFLASH, Mode.DFLASH2])
@pytest.mark.parametrize("types", [("Q8_0", "Q8_0"), ("IQ4_NL", "Q4_0"), ("F16", "F16")])
def test_what_is_written_is_what_was_meant(header: Header, tmp_path: Path, mode: Mode, types: tuple[str, str]) -> None:
    path = tmp_path / "drafter.gguf"
    config = exported(header, path, mode, *types)
    drafter = read_header(str(path))
    found = DrafterConfig.from_header(drafter)
    rope = replace(found.rope, attention_factor=1.0)
    assert replace(found, path="", name="", token_digest=None, rope=rope) == replace(
        config, draft_vocabulary=len(ROWS), norm_eps=found.norm_eps
    )
    assert not check_pair(drafter, header)
    assert drafter.metadata["general.license"] == "apache-2.0"
    assert drafter.metadata["training.steps"] == 7
    assert drafter.tensors["blk.0.ffn_up.weight"].type_name == types[0]
    assert "tokenizer.chat_template" not in drafter.metadata


@pytest.mark.parametrize("mode", [Mode.DFLASH, Mode.DFLASH2])
def test_libllama_drafts_the_same_with_it(
    header: Header, target: Target, device: Device, tmp_path: Path, mode: Mode
) -> None:
    path = tmp_path / "drafter.gguf"
    exported(header, path, mode, "F16", "F16")
    target.cut(0, 0)
    target.tap(DESIGN.taps)
    features = [layer.copy() for layer in target.evaluate([(0, list(b"what is one plus two?"))]).features]
    shared = SharedTensors(target.embeddings, target.head)
    drafter = Drafter(str(path), device, context=256, shared=shared)
    theirs = LibllamaDrafter(path, target._context, n_ctx=256)
    try:
        drafter.inject(features)
        trace = drafter.trace(65)
        theirs.inject(np.concatenate(features, axis=1))
        other = theirs.draft(65, len(features[0]), DESIGN.block)
        assert np.allclose(trace.hidden, other.hidden, atol=2e-2 * abs(other.hidden).max())
        assert set(trace.lattice.candidates.ravel()) <= set(ROWS.tolist())
    finally:
        theirs.close()
        drafter.close()


def test_quantising_keeps_the_numbers_and_codebooks_get_a_row_for_every_token() -> None:
    import gguf

    matrix = np.random.default_rng(0).standard_normal((6, 64)).astype(np.float32)
    for name, error in (("Q8_0", 0.02), ("Q4_0", 0.35), ("IQ4_NL", 0.35), ("F16", 0.002), ("F32", 0)):
        type_ = gguf.GGMLQuantizationType[name]
        back = gguf.quants.dequantize(quantised(matrix, type_.name), type_)
        assert abs(back - matrix).max() <= error
    whole = spread(matrix, np.array([0, 3, 4, 7, 8, 9]), 12)
    assert whole.shape == (12, 64)
    assert np.array_equal(whole[[0, 3, 4, 7, 8, 9]], matrix)
    assert not whole[[1, 2, 5, 6, 10, 11]].any()


def test_the_first_weights_are_the_targets_and_the_new_parts_do_nothing(header: Header) -> None:
    config = drafter_config(header, DESIGN, Mode.DFLASH2)
    target = TargetWeights(header)
    weights = initial_weights(config, target, DESIGN.sources, np.array([2, 4], np.float32), ROWS, seed=0)
    assert np.array_equal(weights["blk.1.ffn_down.weight"], target["blk.3.ffn_down.weight"])
    # pairs of neighbouring rows become two halves of a head
    theirs = target["blk.1.attn_q.weight"].reshape(4, 32, -1)
    mine = weights["blk.0.attn_q.weight"].reshape(4, 32, -1)
    assert np.array_equal(mine[:, :16], theirs[:, 0::2])
    assert np.array_equal(mine[:, 16:], theirs[:, 1::2])
    x = np.random.default_rng(0).standard_normal((2, 128)).astype(np.float32)
    assert np.allclose(weights["fc.weight"] @ x.ravel(), (x[0] / 2 + x[1] / 4) / 2, atol=1e-5)
    assert (weights["blk.0.attn_conv_base"][:, 0] == 1).all()
    assert not weights["blk.0.attn_conv_base"][:, 1].any()
    assert not weights["blk.1.ffn_conv_proj.weight"].any()
    assert not weights["selector_successor.weight"].any()


def test_the_draft_vocabulary_is_what_answers_use_most() -> None:
    answers = [np.array([7, 7, 7, 2, 2, 9]), np.array([7, 2, 5])]
    assert draft_vocabulary(answers, 2, 10).tolist() == [2, 7]
    assert draft_vocabulary(answers, 6, 10).tolist() == [0, 1, 2, 5, 7, 9]
    assert len(draft_vocabulary(answers, 99, 10)) == 10


def test_the_mask_token_is_one_that_nobody_says(header: Header) -> None:
    tokens = header.metadata["tokenizer.ggml.tokens"]
    assert tokens[mask_token(header)] == "<mask>"


def test_the_usual_design_reads_where_the_future_is_known(target_file: Path) -> None:
    design = Design.usual(read_header(str(target_file)), 16, layers=2, block=8, draft_vocabulary=12288)
    assert design.taps == (10, 18, 24, 29)
    assert design.sources == (19, 29)
