"""The target by itself: passes of any shape compute the same, and cuts leave nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from engine import ggml
from engine.devices import devices
from engine.errors import Cancelled, ContextTooSmall, SettingsError
from engine.gguf_file import read_header
from engine.target import MAX_ROWS, PREFILL_CHUNK, Target
from tests.conversation import SetWhenAskedOften
from tests.drafter_files import _write, write_target
from tests.fixture_files import relative_difference
from tests.tiny_chat import vocabulary

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

Floats = NDArray[np.float32]
TOLERANCE = 1e-5
LAYERS = (1, 3, 5)


@pytest.fixture(scope="module")
def target(tiny_models: TinyModels) -> Iterator[Target]:
    """Its cache can hold three sequences."""
    with closing(Target(read_header(tiny_models.wandering), context=640, threads=1, sequences=3, exact=True)) as target:
        yield target


@pytest.fixture(autouse=True)
def _from_nothing(target: Target) -> None:
    for sequence in range(3):
        target.cut(sequence, 0)
    target.tap(LAYERS)


def tokens(n: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(32, 127, n).tolist()


def read(target: Target, ids: Sequence[int], sizes: Sequence[int], sequence: int = 0) -> tuple[Floats, Floats]:
    """In passes of these sizes: logits [n, V] and features [taps, n, H] of all positions."""
    logits, features, begin = [], [], 0
    for size in sizes:
        result = target.evaluate([(sequence, ids[begin : begin + size])])
        logits.append(result.logits.copy())
        features.append(np.stack(result.features))
        begin += size
    return np.concatenate(logits), np.concatenate(features, axis=1)


# --- passes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[32] * 3, [1] * 96, [7, 1, 20, 4, 32, 32]])
def test_passes_of_any_size_compute_the_same(target: Target, sizes: list[int]) -> None:
    ids = tokens(96)
    logits, features = read(target, ids, [24] * 4)
    target.cut(0, 0)
    other_logits, other_features = read(target, ids, sizes)
    assert relative_difference(other_logits, logits) < TOLERANCE
    assert relative_difference(other_features, features) < TOLERANCE
    assert target.committed() == 96 and target.tokens() == ids


def test_only_the_last_logits_of_a_prefill(target: Target) -> None:
    ids = tokens(300)
    result = target.evaluate([(0, ids)], last_only=True)
    assert result.logits.shape == (1, target.vocabulary.size)
    assert [layer.shape for layer in result.features] == [(300, target.hidden_size)] * 3
    last, features = result.logits.copy(), np.stack(result.features)
    target.cut(0, 0)
    logits, others = read(target, ids, [30] * 10)
    assert relative_difference(logits[-1:], last) < TOLERANCE
    assert relative_difference(others, features) < TOLERANCE


def test_several_sequences_in_one_pass_equal_each_alone(target: Target) -> None:
    """Rows of different numbers; positions and caches are each sequence's own."""
    texts = [tokens(20, seed) for seed in range(3)]
    alone = [read(target, ids, [20], sequence) for sequence, ids in enumerate(texts)]
    for sequence in range(3):
        target.cut(sequence, 0)
    parts = [[], [], []]  # type: list[list[tuple[Floats, Floats]]]
    for sizes in ((5, 1, 12), (15, 0, 8), (0, 19, 0)):
        rows = [
            (s, texts[s][target.committed(s) : target.committed(s) + size]) for s, size in enumerate(sizes) if size
        ]
        result = target.evaluate(rows)
        begin = 0
        for sequence, ids in rows:
            end = begin + len(ids)
            parts[sequence].append((result.logits[begin:end].copy(), np.stack([f[begin:end] for f in result.features])))
            begin = end
    for sequence in range(3):
        logits = np.concatenate([part[0] for part in parts[sequence]])
        features = np.concatenate([part[1] for part in parts[sequence]], axis=1)
        assert target.tokens(sequence) == texts[sequence]
        assert relative_difference(logits, alone[sequence][0]) < TOLERANCE
        assert relative_difference(features, alone[sequence][1]) < TOLERANCE


def test_the_last_logits_of_several_sequences(target: Target) -> None:
    texts = [tokens(9, seed) for seed in range(3)]
    together = target.evaluate(list(enumerate(texts)), last_only=True).logits.copy()
    for sequence, ids in enumerate(texts):
        target.cut(sequence, 0)
        assert relative_difference(target.evaluate([(sequence, ids)]).logits[-1], together[sequence]) < TOLERANCE


def test_more_rows_than_there_is_room_for_are_refused(target: Target) -> None:
    """libllama would end the process."""
    target.evaluate([(0, tokens(MAX_ROWS)), (1, tokens(MAX_ROWS)), (2, tokens(MAX_ROWS))])
    with pytest.raises(ValueError, match="97 rows with logits in one pass; at most 32 for each sequence"):
        target.evaluate([(0, tokens(MAX_ROWS)), (1, tokens(MAX_ROWS)), (2, tokens(MAX_ROWS + 1))])
    with pytest.raises(ValueError):
        target.evaluate([(0, tokens(PREFILL_CHUNK + 1))], last_only=True)
    assert [target.committed(sequence) for sequence in range(3)] == [MAX_ROWS] * 3


def test_a_sequence_cannot_outgrow_its_context(target: Target) -> None:
    for begin in range(0, 640, 320):
        target.evaluate([(0, tokens(320, begin))], last_only=True)
    held = list(target.tokens())
    for n in (1, 2):
        with pytest.raises(ContextTooSmall, match="The context holds 640 tokens"):
            target.evaluate([(1, tokens(3)), (0, tokens(n))])
    assert target.tokens() == held and target.committed(1) == 0
    target.evaluate([(1, tokens(3))])


# --- features ---------------------------------------------------------------------------------------------------------


def test_features_are_what_enters_a_layer(tiny_models: TinyModels) -> None:
    """The counting target's layers add nothing, so there it is the embedding."""
    ids = tokens(50)
    path = tiny_models.counting
    embeddings = next(t.data for t in gguf.GGUFReader(path).tensors if t.name == "token_embd.weight")
    with closing(Target(read_header(path), context=256, threads=1)) as counting:
        assert counting.taps == () and counting.evaluate([(0, ids)], last_only=True).features == []
        counting.tap((0, 2, 5))
        for layer in counting.evaluate([(0, ids)], last_only=True).features:
            assert np.array_equal(layer, embeddings[ids])


def test_taps_come_in_the_order_asked_for_and_can_change(target: Target) -> None:
    ids = tokens(10)
    _, features = read(target, ids, [10])
    for taps, order in (((5, 1), [2, 0]), ((3,), [1]), ((), []), ((1, 3, 5), [0, 1, 2])):
        target.cut(0, 0)
        target.tap(taps)
        assert target.taps == taps
        layers = target.evaluate([(0, ids)]).features
        assert len(layers) == len(order)
        for layer, index in zip(layers, order):
            assert relative_difference(layer, features[index]) < TOLERANCE


# --- cuts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 30, 59])
def test_after_a_cut_nothing_remains(target: Target, length: int) -> None:
    ids, others = tokens(60), tokens(40, 1)
    read(target, ids, [30, 30])
    assert target.cut(0, length) == length and target.tokens() == ids[:length]
    logits, _ = read(target, others, [20, 20])
    target.cut(0, 0)
    expected, _ = read(target, [*ids[:length], *others], [length % 20] * (length > 0) + [20] * (length // 20 + 2))
    assert relative_difference(logits, expected[length:]) < TOLERANCE


def test_a_cut_behind_the_end_takes_nothing(target: Target) -> None:
    ids = tokens(10)
    read(target, ids, [10])
    assert target.cut(0, 10) == 10 and target.cut(0, 99) == 10
    assert target.tokens() == ids


def test_a_cut_leaves_other_sequences_alone(target: Target) -> None:
    ids = tokens(30)
    read(target, ids, [30], 0)
    read(target, ids, [30], 1)
    target.cut(0, 3)
    target.cut(2, 0)
    logits, _ = read(target, ids[:1], [1], 1)
    target.cut(1, 0)
    expected, _ = read(target, [*ids, ids[0]], [31], 1)
    assert relative_difference(logits[-1], expected[-1]) < TOLERANCE


def mamba(path: Path) -> Path:
    """A tiny recurrent target, whose state cannot be cut back by position."""
    rng = np.random.default_rng(0)
    width, inner, state, kernel, rank, layers = 64, 128, 16, 4, 4, 2
    words = vocabulary()

    def matrix(*shape: int) -> Floats:
        return rng.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[-1]))

    tensors = {
        "token_embd.weight": rng.standard_normal((len(words), width), np.float32),
        "output_norm.weight": np.ones(width, np.float32),
    }
    for i in range(layers):
        tensors |= {
            f"blk.{i}.attn_norm.weight": np.ones(width, np.float32),
            f"blk.{i}.ssm_in.weight": matrix(2 * inner, width),
            f"blk.{i}.ssm_conv1d.weight": matrix(inner, kernel),
            f"blk.{i}.ssm_conv1d.bias": np.zeros(inner, np.float32),
            f"blk.{i}.ssm_x.weight": matrix(rank + 2 * state, inner),
            f"blk.{i}.ssm_dt.weight": matrix(inner, rank),
            f"blk.{i}.ssm_dt.bias": np.zeros(inner, np.float32),
            f"blk.{i}.ssm_a": -np.tile(np.arange(1, state + 1, dtype=np.float32), (inner, 1)),
            f"blk.{i}.ssm_d": np.ones(inner, np.float32),
            f"blk.{i}.ssm_out.weight": matrix(width, inner),
        }
    keys = {
        "mamba.block_count": layers,
        "mamba.context_length": 4096,
        "mamba.embedding_length": width,
        "mamba.feed_forward_length": 0,
        "mamba.attention.head_count": 0,
        "mamba.attention.layer_norm_rms_epsilon": 1e-5,
        "mamba.ssm.conv_kernel": kernel,
        "mamba.ssm.inner_size": inner,
        "mamba.ssm.state_size": state,
        "mamba.ssm.time_step_rank": rank,
        "mamba.vocab_size": len(words),
        **words.keys,
    }
    return _write(path, keys, tensors, "F32", "mamba")


def test_a_target_that_cannot_be_cut_reads_again(tmp_path: Path) -> None:
    with closing(Target(read_header(mamba(tmp_path / "mamba.gguf")), context=1024, threads=1)) as recurrent:
        ids = tokens(600)
        for begin in (0, 500):
            recurrent.evaluate([(0, ids[begin : begin + 500])], last_only=True)
        recurrent.rewind(0, 560)
        assert recurrent.tokens() == ids[:560]
        logits = recurrent.evaluate([(0, ids[:2])]).logits.copy()
        assert recurrent.cut(0, 560) == 0 and recurrent.tokens() == [], "what cannot be cut is forgotten, and says so"
        for begin in (0, 512):
            recurrent.evaluate([(0, ids[begin : min(560, begin + 512)])], last_only=True)
        assert relative_difference(recurrent.evaluate([(0, ids[:2])]).logits, logits) < TOLERANCE
        recurrent.rewind(0, 562)
        assert recurrent.committed() == 562


# --- stopping ---------------------------------------------------------------------------------------------------------


def test_a_pass_that_is_stopped_commits_nothing(target: Target) -> None:
    texts = [tokens(20, seed) for seed in range(2)]
    for sequence, ids in enumerate(texts):
        target.evaluate([(sequence, ids)])
    target.cancellable(SetWhenAskedOften(20))
    with pytest.raises(Cancelled):
        target.evaluate([(0, tokens(200)), (1, tokens(200))], last_only=True)
    target.cancellable(None)
    assert [target.tokens(sequence) for sequence in range(2)] == texts
    stopped = target.evaluate([(0, [65]), (1, [66])]).logits.copy()
    for sequence, last in enumerate((65, 66)):
        target.cut(sequence, 0)
        expected, _ = read(target, [*texts[sequence], last], [21], sequence)
        assert relative_difference(stopped[sequence], expected[-1]) < TOLERANCE


def test_a_flag_that_is_not_set_stops_nothing(target: Target) -> None:
    target.cancellable(threading.Event())
    read(target, tokens(40), [20, 20])
    target.cancellable(None)
    assert target.committed() == 40


# --- what it is -------------------------------------------------------------------------------------------------------


def test_what_it_says_of_itself(tiny_models: TinyModels) -> None:
    header = read_header(tiny_models.wandering)
    with closing(Target(header, context=300, threads=1)) as target:
        info = target.info
        assert (info.architecture, info.quantisation, info.layers, info.hidden_size) == ("llama", "F32", 6, 96)
        assert (info.context_served, info.context_trained, info.vocabulary) == (300, 4096, 261)
        assert info.file_bytes == header.file_bytes == tiny_models.wandering.stat().st_size
        assert info.parameters * 4 == sum(tensor.nbytes for tensor in header.tensors.values()) == target.weight_bytes
        assert info.device == target.device_name
        assert target.embeddings is not None and target.head is not None
        for tensor, name in ((target.embeddings, b"token_embd.weight"), (target.head, b"output.weight")):
            struct = ggml.read(tensor)
            assert struct.name == name and list(struct.ne[:2]) == [96, 261]


def test_tied_embeddings_are_head_and_embeddings(tmp_path: Path) -> None:
    path = write_target(tmp_path / "tied.gguf", vocabulary=vocabulary(), own_head=False)
    with closing(Target(read_header(path), context=64, threads=1)) as target:
        assert target.embeddings == target.head is not None


def test_closing_twice(tiny_models: TinyModels) -> None:
    target = Target(read_header(tiny_models.wandering), context=64, threads=1)
    target.close()
    target.close()


# --- where it lies and in which form ----------------------------------------------------------------------------------


def test_keys_and_values_take_what_their_type_takes(tiny_models: TinyModels) -> None:
    """Figures are libllama's own, in hundredths of MiB; values of a block share a scale of two bytes."""
    values = 2 * 6 * 2 * 32 * 4096  # keys and values, layers, heads, their size, positions
    for kv_type, bytes_of_32 in {"f16": 64, "q8_0": 34, "q4_0": 18}.items():
        with closing(Target(read_header(tiny_models.counting), context=4096, threads=1, kv_type=kv_type)) as target:
            assert target.context_bytes == pytest.approx(values * bytes_of_32 / 32, abs=2**20 / 100)
            assert target.offloaded_bytes == 0
            for token, following in ((ord("\n"), "a"), (ord("a"), "b")):
                said = target.evaluate([(0, [token])]).logits[0].argmax()
                assert target.vocabulary.label(int(said)) == following
    with pytest.raises(SettingsError, match="kept as 'f8'; it must be one of f16, q8_0, q4_0"):
        Target(read_header(tiny_models.counting), context=4096, threads=1, kv_type="f8")


def test_a_model_that_no_quantised_cache_fits_says_so(tmp_path: Path) -> None:
    path = write_target(tmp_path / "narrow.gguf", vocabulary=vocabulary(), head_dim=24)
    with pytest.raises(SettingsError, match=r"narrow.gguf cannot keep its keys and values as q8_0 \(.+\); choose f16"):
        Target(read_header(path), context=256, threads=1, kv_type="q8_0")


def test_the_device_can_be_named(tiny_models: TinyModels) -> None:
    listed = devices()
    assert listed[-1].kind == "cpu" and listed[-1].free and listed[-1].total and listed[-1].free < listed[-1].total
    for name in (listed[-1].name, listed[-1].name.lower()):
        with closing(Target(read_header(tiny_models.counting), context=256, threads=1, device=name)) as target:
            assert target.device_name == listed[-1].name
    with pytest.raises(SettingsError, match=f"no device 'Abacus0' here; choose one of: .*{listed[-1].name}"):
        Target(read_header(tiny_models.counting), context=256, threads=1, device="Abacus0")
