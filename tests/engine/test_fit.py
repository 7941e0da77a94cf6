"""What is computed from headers is what loading takes: weights, context and caches closely, the rest by a margin."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import drafter, fit, ggml, target
from engine.cli import main
from engine.drafter import Drafter
from engine.events import KV_TYPES, DeviceInfo, Loaded, LoadSettings
from engine.fit import MIB, Fit, Verdict, judge, need_of
from engine.gguf_file import Header, TensorInfo, read_header
from engine.graph import Device
from engine.host import EngineClient, Load
from engine.target import Target
from tests import tiny_chat
from tests.drafter_files import write_target
from tests.fixture_files import FIXTURES, FOLDER

SETTINGS = LoadSettings(threads=1, context=1024, gpu_layers=0)


@contextmanager
def reported() -> Iterator[dict[str, float]]:
    """The sizes in MiB that libllama reports of what it allocates in here; of several of one name, the largest."""
    sizes: dict[str, float] = {}

    class Reader(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if found := re.search(r"(KV|compute|model|RS) buffer size = +([\d.]+) MiB", record.getMessage()):
                sizes[found[1]] = max(sizes.get(found[1], 0.0), float(found[2]))

    log, reader = logging.getLogger("libllama"), Reader()
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(reader)
    try:
        yield sizes
    finally:
        log.removeHandler(reader)
        log.setLevel(level)


def test_it_knows_how_the_engine_sets_things_up() -> None:
    assert fit.PASS_TOKENS == target.PREFILL_CHUNK and fit.VERIFIED_ROWS == target.MAX_ROWS
    assert fit.CONTEXT_STEP == drafter._CONTEXT_STEP and set(fit.KV_BYTES) == set(KV_TYPES)


@pytest.mark.parametrize(("context", "kv_type"), [(1000, "f16"), (4096, "f16"), (1000, "q8_0")])
def test_the_embedded_model(target_file: Path, context: int, kv_type: str) -> None:
    """Weights to the byte, keys and values to the rounding of the report, working memory from -5 to +25 %."""
    header = read_header(target_file)
    settings = replace(SETTINGS, context=context, kv_type=kv_type)
    need = need_of(header, settings)
    with reported() as sizes:
        loaded = Target(header, context=context, threads=1, gpu_layers=0, kv_type=kv_type)
    with closing(loaded):
        assert need.target_weights == loaded.weight_bytes
    assert need.target_context / MIB == pytest.approx(sizes["KV"], abs=0.01)
    assert 0.95 * sizes["compute"] <= need.compute / MIB <= 1.25 * sizes["compute"]
    copies = sum(t.nbytes for t in header.tensors.values() if fit._is_repacked(t, tied=True))
    assert need.file_pages == sum(t.nbytes for t in header.tensors.values()) + copies - need.target_weights


@pytest.mark.parametrize("shape", [{"feed_forward": 2048}, {"heads": 16, "head_dim": 64}, {"kv_heads": 4}])
def test_tiny_targets(tmp_path: Path, shape: dict[str, Any]) -> None:
    """Working memory of other shapes: from -5 to +25 %, and a megabyte."""
    path = write_target(tmp_path / "tiny.gguf", layers=2, hidden_size=256, vocabulary=tiny_chat.vocabulary(), **shape)
    header = read_header(path)
    need = need_of(header, SETTINGS)
    with reported() as sizes:
        loaded = Target(header, context=1024, threads=1, gpu_layers=0)
    with closing(loaded):
        assert need.target_weights == loaded.weight_bytes
    assert need.target_context / MIB == pytest.approx(sizes["KV"], abs=0.01)
    assert 0.95 * sizes["compute"] <= need.compute / MIB <= 1.25 * sizes["compute"] + 1


@pytest.mark.parametrize("name", FIXTURES)
def test_drafters(device: Device, target_file: Path, name: str) -> None:
    """Weights and cache to the buffers' alignment of 32 bytes a tensor."""
    header = read_header(FOLDER / f"{name}.gguf")
    need = need_of(read_header(target_file), SETTINGS, [header])
    with closing(Drafter(header, device, context=1024, key_value_type=ggml.F16)) as loaded:
        slack = 32 * (len(header.tensors) + 4)
        assert loaded.weight_bytes - slack <= need.drafter_weights <= loaded.weight_bytes
        assert loaded.cache_bytes - slack <= need.drafter_cache <= loaded.cache_bytes


def test_the_process_grows_by_what_was_said(target_file: Path, tmp_path: Path) -> None:
    """Resident memory of a fresh engine process right after loading: within a tenth, for a tiny model 16 MiB."""
    tiny = tiny_chat.counting_target(tmp_path / "tiny.gguf")
    for path, margin in ((target_file, 0.1), (tiny, None)):
        need = need_of(read_header(path), SETTINGS)
        client = EngineClient()
        client.start()
        try:
            client.send(Load(replace(SETTINGS, target=str(path))))
            while not isinstance(event := client.receive(60), Loaded):
                assert event is not None
        finally:
            client.close()
        allowed = margin * event.memory.process if margin else 16 * MIB
        assert abs(need.resident - event.memory.process) < allowed


# --- models that are too large to be here -----------------------------------------------------------------------------


def header_of(architecture: str, metadata: dict[str, Any], tensors: dict[str, tuple[tuple[int, ...], int]]) -> Header:
    """A header alone, as of a large file."""
    keys = {"general.architecture": architecture} | {f"{architecture}.{key}": value for key, value in metadata.items()}
    infos = {name: TensorInfo(name, shape, 1, "F16", 0, nbytes) for name, (shape, nbytes) in tensors.items()}
    return Header("large.gguf", 3, keys, infos, architecture, 32, 9 << 20, 0)


def hybrid(layers: int = 64) -> Header:
    """The geometry of a 27B model with an attending layer among four, 4.9 bits a weight."""
    return header_of(
        "qwen35",
        {
            "block_count": layers, "context_length": 262144, "embedding_length": 5120, "feed_forward_length": 17408,
            "attention.head_count": 24, "attention.head_count_kv": 4, "attention.key_length": 256,
            "attention.value_length": 256, "full_attention_interval": 4, "ssm.inner_size": 6144,
            "ssm.state_size": 128, "ssm.conv_kernel": 4, "ssm.group_count": 16,
        },
        {
            "token_embd.weight": ((248320, 5120), 700 * MIB),
            "output.weight": ((248320, 5120), 1000 * MIB),
            "blk.0.ffn_up.weight": ((27_000_000_000 // 5120, 5120), 14 << 30),
        },
    )  # fmt: skip


def test_layers_that_do_not_attend_keep_states_instead() -> None:
    settings = replace(SETTINGS, context=8192)
    attending = 16 * 4 * (256 + 256) * 2 * 8192
    state = 4 * (128 * 6144 + 3 * (6144 + 2 * 16 * 128))
    assert need_of(hybrid(), settings).target_context == attending + 48 * state
    for block, copies in ((16, 17), (40, 33)):  # no longer block than a pass has rows is verified
        drafter = header_of("dflash", {"block_size": block}, {})
        assert need_of(hybrid(), settings, [drafter]).target_context == attending + 48 * state * copies
    longer = need_of(hybrid(), replace(settings, context=16384)).target_context
    assert longer - need_of(hybrid(), settings).target_context == attending


def test_heads_and_widths_may_differ_by_layer() -> None:
    metadata = {
        "block_count": 4, "context_length": 8192, "embedding_length": 512, "feed_forward_length": 1024,
        "attention.head_count": 8, "attention.head_count_kv": np.array([2, 2, 0, 4], np.int32),
        "attention.key_length": 64, "attention.value_length": 64, "attention.key_length_swa": 32,
        "attention.value_length_swa": 32, "attention.sliding_window_pattern": np.array([True, False, True, False]),
    }  # fmt: skip
    need = need_of(header_of("gemma4", metadata, {}), replace(SETTINGS, context=1000))
    assert need.target_context == 1024 * 2 * (2 * 64 + 2 * 128 + 4 * 128)


GPU = DeviceInfo("CUDA0", "a GPU", "gpu", 24 << 30, 24 << 30)


def judged(free_gib: float, **changes: Any) -> Fit:
    devices = changes.pop("devices", ())
    settings = replace(SETTINGS, context=32768, **changes)
    return judge(hybrid(), settings, devices=devices, free_ram=int(free_gib * (1 << 30)))


def test_the_advice_fits_and_nothing_longer_does() -> None:
    plenty = judged(64)
    assert plenty.verdict is Verdict.FITS and plenty.longest_context == 32768
    total = plenty.need.in_ram / (1 << 30)
    assert judged(total * 1.05).verdict is Verdict.TIGHT
    short = judged(total - 1)
    assert short.verdict is Verdict.TOO_LARGE and short.longest_context is not None
    assert "only" in short.sentence and f"{short.longest_context:,} tokens would fit" in short.sentence
    longest = replace(SETTINGS, context=short.longest_context)
    one_more = replace(SETTINGS, context=short.longest_context + 256)
    assert need_of(hybrid(), longest).in_ram <= short.free_ram < need_of(hybrid(), one_more).in_ram


def test_too_little_for_any_context_asks_for_a_smaller_quantisation() -> None:
    fit = judged(15)
    assert fit.longest_context is None and fit.quantisation is not None
    name, size = fit.quantisation
    assert size < fit.need.target_weights and f"in {name}" in fit.sentence
    assert "smaller model" in judged(4).sentence


def test_a_device_takes_all_but_the_embeddings() -> None:
    fit = judged(8, devices=(GPU,), gpu_layers=-1)
    need = fit.need
    assert need.in_ram == need.program + 700 * MIB and fit.free_devices == GPU.free
    assert need.on_devices + need.in_ram == need.total
    half = judged(32, devices=(GPU,), gpu_layers=32)
    assert 0 < half.need.on_devices < need.on_devices
    assert judged(64, devices=(GPU,), gpu_layers=-1, device="CPU").need.on_devices == 0
    small = replace(GPU, free=4 << 30)
    short = judged(64, devices=(small,), gpu_layers=-1)
    assert short.verdict is Verdict.TOO_LARGE and short.free == small.free


def test_memory_that_will_be_given_back_counts_as_free() -> None:
    need = need_of(hybrid(), SETTINGS)
    assert judge(hybrid(), SETTINGS, free_ram=need.in_ram // 2).verdict is Verdict.TOO_LARGE
    assert judge(hybrid(), SETTINGS, free_ram=need.in_ram // 2, given_back=need.in_ram).verdict is Verdict.FITS


def test_the_command_line_says_it_too(target_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "info", str(target_file)]) == 0
    assert re.search(r"Takes about \d+ MB of the [\d.]+ [GM]B that are free\.", capsys.readouterr().out)
    assert main(["models", "info", str(target_file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["memory"]
    assert told["needed"] == need_of(read_header(target_file), LoadSettings()).in_ram and told["context"] == 4096
    assert main(["models", "info", str(FOLDER / "dflash2.gguf"), "--json"]) == 0
    assert "memory" not in json.loads(capsys.readouterr().out)
