"""Drafters in safetensors form become GGUF files that compute what was recorded, in the engine and in libllama."""

from __future__ import annotations

import json
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.check_drafter import check
from engine.cli import CONVERTED_TYPES, main
from engine.convert import TYPES, convert, is_drafter_folder
from engine.convert_process import convert_apart
from engine.drafter_config import DrafterConfig, require_pair
from engine.errors import Cancelled, DrafterMismatch, ModelFileError
from engine.gguf_file import Header, StringArray, read_header
from engine.graph import Device
from tests.drafter_comparison import assert_agrees, inject, opened, random_features
from tests.fixture_files import FIXTURES, FOLDER, Record, relative_difference
from tests.libllama_dflash import LibllamaDrafter
from tests.numpy_drafter import NumpyDrafter
from tests.safetensors_files import changed_copy, hf_folder, read_safetensors, target_of, write_safetensors


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all recorded drafters but one."""
    return target_of("dflash2", tmp_path_factory.mktemp("target") / "target.gguf")


def converted(folder: Path, target: Path, out: Path, **settings: Any) -> Header:
    return read_header(convert(folder, target, out, **settings).path)


# --- the numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIXTURES)
def test_a_recorded_drafter_computes_what_was_recorded(tmp_path: Path, name: str) -> None:
    target = target_of(name, tmp_path / "target.gguf")
    out = tmp_path / "drafter.gguf"
    header = converted(hf_folder(name), target, out, with_embeddings=True)
    recorded = read_header(FOLDER / f"{name}.gguf")
    assert header.tensors.keys() == recorded.tensors.keys()
    for key, value in recorded.metadata.items():
        if key != "general.name":
            assert (
                np.array_equal(header.metadata[key], value)
                if isinstance(value, np.ndarray)
                else (header.metadata[key] == value)
            ), key
    report = check(str(out), str(FOLDER / f"{name}.npz"))
    assert report.passed and len(report.differences) >= 2 and max(report.differences.values()) < 1e-4
    record = Record.load(name)
    with closing(LibllamaDrafter(out)) as libllama:
        for cycle in record.cycles[:2]:
            libllama.inject(cycle.features)
            draft = libllama.draft(cycle.anchor, cycle.start)
            assert draft.path.tolist() == cycle.path.tolist()
            assert relative_difference(draft.logits, cycle.logits) < 1e-4


def test_without_copies_the_target_lends_embeddings_and_head(tmp_path: Path, target: Path) -> None:
    header = converted(hf_folder("dflash2"), target, tmp_path / "drafter.gguf")
    config = require_pair(header, read_header(target))
    assert not config.own_embeddings and not config.own_head and config.mask_token == 255


@pytest.mark.parametrize(
    ("type_", "matrix", "tolerance"), [("Q8_0", "Q8_0", 0.03), ("Q4_K", "Q8_0", 0.03), ("Q4_0", "Q4_0", 0.3)]
)
def test_quantised_on_request(tmp_path: Path, target: Path, type_: str, matrix: str, tolerance: float) -> None:
    """A row of 96 is no multiple of 256, so that Q4_K gives way; a row of 16, as in the codebooks, only goes as F16."""
    out = tmp_path / "drafter.gguf"
    header = converted(hf_folder("dflash2"), target, out, type=type_, with_embeddings=True)
    types = {name: tensor.type_name for name, tensor in header.tensors.items()}
    assert types["blk.0.attn_q.weight"] == types["fc.weight"] == matrix
    assert types["selector_predecessor.weight"] == "F16"
    assert types["blk.0.attn_norm.weight"] == types["blk.0.attn_conv_base"] == "F32"
    cycle = Record.load("dflash2").cycles[0]
    with closing(LibllamaDrafter(out)) as libllama:
        libllama.inject(cycle.features)
        difference = relative_difference(libllama.draft(cycle.anchor, cycle.start).hidden, cycle.hidden)
    assert 1e-5 < difference < tolerance


def test_half_precision_parts_with_a_prefix(tmp_path: Path, target: Path) -> None:
    """bfloat16 is kept as it is; parts named by an index are one drafter."""
    folder = changed_copy(tmp_path / "drafter", "dflash2")
    weights = read_safetensors(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    halves = {f"model.{name}": (array.view(np.uint32) >> 16).astype(np.uint16) for name, array in weights.items()}
    names = sorted(halves)
    for part in (0, 1):
        write_safetensors(folder / f"part-{part}.safetensors", {name: halves[name] for name in names[part::2]})
    index = {"weight_map": {name: f"part-{number % 2}.safetensors" for number, name in enumerate(names)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    header = converted(folder, target, tmp_path / "drafter.gguf")
    assert header.tensors["fc.weight"].type_name == "BF16"
    raw = (tmp_path / "drafter.gguf").read_bytes()
    for ours, theirs, dtype in (
        ("fc.weight", "model.fc.weight", np.uint16),
        ("output_norm.weight", "model.norm.weight", np.uint32),
    ):
        at = header.tensors[ours]
        stored = np.frombuffer(raw[at.offset : at.offset + at.nbytes], dtype).astype(np.uint32)
        expected = halves[theirs].astype(np.uint32).ravel() << (0 if dtype == np.uint16 else 16)
        assert stored.tolist() == expected.tolist()
    (folder / "part-1.safetensors").unlink()
    with pytest.raises(ModelFileError, match="lacks part-1"):
        convert(folder, target, tmp_path / "drafter.gguf")


# --- the metadata -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("types", "is_causal", "causal", "noted"),
    [
        (["sliding_attention"] * 2, None, True, False),
        (["sliding_attention", "full_attention"], None, False, True),
        (["full_attention"] * 2, None, False, False),
        (["sliding_attention"] * 2, False, False, False),
        (["full_attention"] * 2, True, True, False),
    ],
)
def test_the_block_attends_as_in_the_reference(
    tmp_path: Path, target: Path, types: list[str], is_causal: bool | None, causal: bool, noted: bool
) -> None:
    folder = changed_copy(tmp_path / "drafter", "dflash2_sliding", layer_types=types, is_causal=is_causal)
    result = convert(folder, target, tmp_path / "drafter.gguf")
    header = read_header(result.path)
    config = DrafterConfig.from_header(header)
    assert header.metadata["dflash.attention.causal"] is causal and config.causal is causal
    assert config.sliding == tuple(kind == "sliding_attention" for kind in types)
    assert config.window == (24 if any(config.sliding) else None)
    assert bool(result.notes) is noted


def test_layers_that_differ_attend_each_in_its_way(tmp_path: Path, target: Path, device: Device) -> None:
    """The plain twin agrees, and the setting makes a difference."""
    folder = changed_copy(
        tmp_path / "drafter", "dflash2_sliding", layer_types=["sliding_attention", "full_attention"], is_causal=None
    )
    out = convert(folder, target, tmp_path / "drafter.gguf", with_embeddings=True).path
    twin, without = NumpyDrafter(out), NumpyDrafter(out)
    without.sliding_causal = False
    features = random_features(twin, 40)
    for oracle in (twin, without):
        oracle.inject(features)
    with opened(out, device) as drafter:
        inject(drafter, features)
        assert_agrees(drafter.trace(9), twin.draft(9, 40))
    assert relative_difference(without.draft(9, 40).hidden, twin.draft(9, 40).hidden) > 0.01


def test_stretched_positions(tmp_path: Path, target: Path) -> None:
    rope: dict[str, Any] = {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8.0}
    rope |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    folder = changed_copy(tmp_path / "llama3", "dflash2", rope_parameters=rope)
    header = converted(folder, target, tmp_path / "llama3.gguf")
    at = header.tensors["rope_freqs.weight"]
    factors = np.frombuffer((tmp_path / "llama3.gguf").read_bytes()[at.offset : at.offset + at.nbytes], np.float32)
    for index, factor in enumerate(factors):  # by wave lengths, as the method is published
        length = 2 * np.pi * 5e5 ** (2 * index / 32)
        smooth = (64 / length - 1.0) / (4.0 - 1.0)
        expected = 1.0 if length < 64 / 4 else 8.0 if length > 64 / 1 else 1 / ((1 - smooth) / 8 + smooth)
        assert factor == pytest.approx(expected, rel=1e-5)
    assert {1.0, 8.0} < set(factors.tolist())
    yarn = {"rope_theta": 1e6, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}
    folder = changed_copy(tmp_path / "yarn", "dflash2", rope_parameters=yarn | {"attention_factor": 1.0})
    rope_of = DrafterConfig.from_header(converted(folder, target, tmp_path / "yarn.gguf")).rope
    assert (rope_of.scaling, rope_of.factor, rope_of.original_context, rope_of.freq_base) == ("yarn", 4.0, 1024, 1e6)
    assert rope_of.attention_factor * (1 + 0.1 * np.log(4.0)) == pytest.approx(1.0)


def test_the_vocabulary_is_the_targets_to_the_byte(tmp_path: Path) -> None:
    """Also token texts that are no UTF-8; positions of several axes are said; the chat template stays behind."""
    extra = {"llama.rope.dimension_sections": [8, 8, 0, 0], "tokenizer.chat_template": "{{ messages }}"}
    target = target_of("dflash2", tmp_path / "target.gguf", extra)
    raw = target.read_bytes()
    assert raw.count(b"t254") == 1
    target.write_bytes(raw.replace(b"t254", b"t\xff\xfe4"))
    header = converted(hf_folder("dflash2"), target, tmp_path / "drafter.gguf")
    tokens = header.metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, StringArray) and tokens.entry(254) == b"t\xff\xfe4"
    assert tokens == read_header(target).metadata["tokenizer.ggml.tokens"]
    assert header.metadata["dflash.rope.dimension_sections"].tolist() == [16, 0, 0, 0]
    assert "tokenizer.chat_template" not in header.metadata


# --- refusals ---------------------------------------------------------------------------------------------------------

CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "no theta": ({"rope_parameters": {"rope_type": "default"}}, "lacks 'rope_theta'"),
    "dynamic rope": ({"rope_parameters": {"rope_theta": 1e4, "rope_type": "dynamic", "factor": 2}}, "'dynamic'"),
    "no mask token": ({"dflash_config": {"mask_token_id": None}}, "lacks 'mask_token_id'"),
    "no taps": ({"dflash_config": {"target_layer_ids": []}}, "target_layer_ids"),
    "not a drafter": ({"dflash_config": None}, "no 'dflash_config'"),
    "words for numbers": ({"hidden_size": "96"}, "hidden_size"),
    "another vocabulary": ({"vocab_size": 300}, "300 tokens, the target's 256"),
    "another shape": ({"intermediate_size": 161}, "ffn_gate"),
    "a layer too deep": ({"dflash_config": {"target_layer_ids": [0, 2, 7]}}, "listens at layer 8"),
    "an activation": ({"hidden_act": "relu"}, "'relu'"),
    "too many layers": ({"num_hidden_layers": 10**12}, "num_hidden_layers"),
    "too long": ({"max_position_embeddings": 10**30}, "max_position_embeddings"),
    "too large a number": ({"rms_norm_eps": 10**400}, "rms_norm_eps"),
    "a layer beyond all": ({"dflash_config": {"target_layer_ids": [10**20]}}, "target_layer_ids"),
    "shrunk positions": ({"rope_parameters": {"rope_theta": 1e4, "rope_type": "yarn", "factor": -1}}, "above 0"),
    "bounds that are one": (
        {"rope_parameters": {
            "rope_theta": 1e4, "rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4,
            "original_max_position_embeddings": 8192,
        }},
        "two bounds that rise",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_that_does_not_serve_is_refused(tmp_path: Path, target: Path, name: str) -> None:
    changes, sentence = CONFIGS[name]
    folder = changed_copy(tmp_path / "drafter", "dflash2", **changes)
    with pytest.raises((ModelFileError, DrafterMismatch), match=sentence):
        convert(folder, target, tmp_path / "out" / "drafter.gguf")
    assert not (tmp_path / "out").exists()


def test_another_targets_drafter_is_refused(tmp_path: Path, target: Path) -> None:
    with pytest.raises(DrafterMismatch, match="hidden size is 288, the target's 96"):
        convert(hf_folder("dflash2_block16_k16"), target, tmp_path / "drafter.gguf")
    with pytest.raises(ModelFileError, match="cannot be a target"):
        convert(hf_folder("dflash2"), FOLDER / "dflash2.gguf", tmp_path / "drafter.gguf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        ({"markov_head.markov_w1.weight": np.zeros((4, 4), np.float32)}, "DSpark"),
        ({"layers.0.self_attn.q_proj.bias": np.zeros(4, np.float32)}, "q_proj.bias"),
        ({"fc.weight": np.zeros((96, 288), np.uint8)}, "F8_E4M3"),
    ],
)
def test_weights_of_another_kind_are_refused(
    tmp_path: Path, target: Path, tensors: dict[str, np.ndarray], sentence: str
) -> None:
    folder = changed_copy(tmp_path / "drafter", "dflash2")
    weights = read_safetensors(folder / "model.safetensors")
    write_safetensors(folder / "model.safetensors", {**weights, **tensors})
    with pytest.raises(ModelFileError, match=sentence):
        convert(folder, target, tmp_path / "drafter.gguf")
    assert [path.name for path in tmp_path.iterdir()] == ["drafter"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has no header"),
        (struct.pack("<Q", 1 << 60) + b"{}", "longer than it can be"),
        (struct.pack("<Q", 4) + b"nope", "not JSON"),
        (struct.pack("<Q", 2) + b"[]", "no table"),
        (struct.pack("<Q", 20) + b'{"fc.weight": [1,2]}', "not one of a tensor"),
        (None, "lies outside"),
    ],
)
def test_damaged_weights_are_refused(tmp_path: Path, target: Path, content: bytes | None, sentence: str) -> None:
    folder = changed_copy(tmp_path / "drafter", "dflash2")
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-1] if content is None else content)
    with pytest.raises(ModelFileError, match=sentence):
        convert(folder, target, tmp_path / "drafter.gguf")


def test_a_folder_without_weights_or_config(tmp_path: Path, target: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelFileError, match=r"config\.json is missing"):
        convert(tmp_path / "empty", target, tmp_path / "drafter.gguf")
    assert not is_drafter_folder(tmp_path / "empty") and not is_drafter_folder(tmp_path / "nowhere")
    assert is_drafter_folder(hf_folder("dflash1"))
    with pytest.raises(ModelFileError, match=f"choose one of {', '.join(TYPES)}"):
        convert(hf_folder("dflash1"), target, tmp_path / "drafter.gguf", type="Q3_K")


def test_the_command_line_offers_what_there_is() -> None:
    assert CONVERTED_TYPES == TYPES


def test_in_a_process_of_its_own(tmp_path: Path, target: Path) -> None:
    """The same file and the same errors; stopped in the middle, neither process nor file is left."""
    out, alike = tmp_path / "apart" / "drafter.gguf", tmp_path / "drafter.gguf"
    heard: list[float] = []
    result = convert_apart(hf_folder("dflash2"), str(target), out, "Q8_0", heard.append)
    convert(hf_folder("dflash2"), target, alike, type="Q8_0")
    assert result.path == out and out.read_bytes() == alike.read_bytes() and heard == sorted(heard)
    with pytest.raises(DrafterMismatch, match="hidden size is 288"):
        convert_apart(hf_folder("dflash2_block16_k16"), str(target), tmp_path / "no.gguf", None, heard.append)

    def stop(fraction: float) -> None:
        if fraction > 0:
            raise Cancelled

    with pytest.raises(Cancelled):
        convert_apart(hf_folder("dflash2"), str(target), tmp_path / "stopped" / "drafter.gguf", None, stop)
    assert not [path for path in (tmp_path / "stopped").rglob("*") if path.suffix == ".part"]


def test_stopped_in_the_middle_nothing_is_left_and_what_was_there_stays(tmp_path: Path, target: Path) -> None:
    out = tmp_path / "drafter.gguf"
    out.write_bytes(b"good")
    heard = []

    def hear(fraction: float) -> None:
        heard.append(fraction)
        if fraction > 0.5:
            raise Cancelled

    with pytest.raises(Cancelled):
        convert(hf_folder("dflash2"), target, out, on_progress=hear)
    assert out.read_bytes() == b"good" and [path.name for path in tmp_path.iterdir()] == ["drafter.gguf"]
    assert heard == sorted(heard) and heard[0] == 0.0
    convert(hf_folder("dflash2"), target, out, on_progress=heard.append)
    assert heard[-1] == 1.0 and read_header(out).architecture == "dflash"


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "drafter.gguf"
    words = ["convert", str(hf_folder("dflash2")), "--target", str(target), "--out", str(out)]
    assert main([*words, "--type", "q8_0"]) == 0
    assert "DFlash 2, Q8_0" in capsys.readouterr().out and read_header(out).architecture == "dflash"
    assert main([*words[:3], str(FOLDER / "dflash2.gguf"), *words[4:]]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and "cannot be a target" in said.err
    with pytest.raises(SystemExit):
        main([*words, "--type", "Q1"])
