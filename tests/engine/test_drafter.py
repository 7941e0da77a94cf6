"""The drafter on ggml computes what the reference recorded, and what its two slow twins compute.

Where numbers are compared closely, keys and values are float32; what the usual float16 costs has a test of its own.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from engine import ggml
from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.errors import DrafterMismatch
from engine.events import Mode
from engine.graph import Device, Store, write
from engine.selector import Lattice, best_path, greedy_path
from tests.drafter_comparison import (
    TOLERANCE,
    Floats,
    assert_agrees,
    assert_same_but_near_ties,
    assert_same_lattice,
    inject,
    lattice_of,
    opened,
    random_features,
)
from tests.drafter_files import VARIANTS, requantise, write_drafter, write_target
from tests.fixture_files import FIXTURES, Record, relative_difference
from tests.libllama_dflash import LibllamaDrafter
from tests.numpy_drafter import NumpyDrafter, load_tensors, softmax

# --- the recorded cycles ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIXTURES)
def test_agrees_with_the_recorded_cycles(device: Device, name: str) -> None:
    record = Record.load(name)
    with opened(record.drafter, device) as drafter:
        for cycle in record.cycles:
            inject(drafter, cycle.features)
            assert drafter.committed() == cycle.start
            trace = drafter.trace(cycle.anchor)
            assert_agrees(trace, cycle)
            if cycle.q_rows is not None:
                q = _q_rows(trace.lattice, cycle.path, 0.7)
                assert relative_difference(q, cycle.q_rows) < TOLERANCE
            (lattice,) = drafter.draft([cycle.anchor])
            assert_same_lattice(lattice, trace.lattice, 1e-6)
            assert drafter.committed() == cycle.start, "a draft commits nothing"


def _q_rows(lattice: Lattice, path: NDArray[np.int64], temperature: float) -> Floats:
    taken = [int(np.flatnonzero(ids == token)[0]) for ids, token in zip(lattice.candidates, path)]
    return softmax(lattice.rows(taken) / np.float32(temperature))


@pytest.mark.parametrize("name", FIXTURES)
def test_float16_keys_and_values_stay_close(device: Device, name: str) -> None:
    record = Record.load(name)
    with opened(record.drafter, device, key_value_type=ggml.F16) as drafter:
        for cycle in record.cycles:
            inject(drafter, cycle.features)
            assert relative_difference(drafter.trace(cycle.anchor).hidden, cycle.hidden) < 5e-3


@pytest.mark.parametrize(("quantisation", "tolerance"), [("Q8_0", 0.02), ("Q4_0", 0.15)])
@pytest.mark.parametrize("name", FIXTURES)
def test_quantised_copies_stay_close(
    device: Device, tmp_path: Path, name: str, quantisation: str, tolerance: float
) -> None:
    """Every matrix of a fixture quantised: what that costs in exact arithmetic (the twin), and little more.

    Single values of so small and random a drafter move further, in the twin as well: the root mean square is taken.
    """
    record = Record.load(name)
    path = requantise(record.drafter, tmp_path / "drafter.gguf", quantisation)
    twin = NumpyDrafter(path)
    with opened(path, device) as drafter:
        ours, exact = [], []
        for cycle in record.cycles:
            inject(drafter, cycle.features)
            twin.inject(cycle.features)
            ours.append(mean_difference(drafter.trace(cycle.anchor).hidden, cycle.hidden))
            exact.append(mean_difference(twin.draft(cycle.anchor, cycle.start).hidden, cycle.hidden))
    print(f"{name} {quantisation}: {max(ours):.4f}, in exact arithmetic {max(exact):.4f}")
    assert 1e-5 < max(ours) < tolerance
    assert max(ours) < max(exact) + 0.01  # activations are quantised to 8 bits on the way


def mean_difference(ours: Floats, theirs: Floats) -> float:
    """The root mean square of the differences, relative to the largest value."""
    return float(np.sqrt(np.mean((ours - theirs) ** 2)) / np.abs(theirs).max())


# --- the twins --------------------------------------------------------------------------------------------------------


def compare_with_twin(path: Path, device: Device, twin: NumpyDrafter, **settings: Any) -> None:
    features = random_features(twin, 45)
    with opened(path, device, **settings) as drafter:
        for begin, end in ((0, 40), (40, 45)):
            inject(drafter, features[begin:end])
            twin.inject(features[begin:end])
            assert_agrees(drafter.trace(9), twin.draft(9, end))
        keys, values = drafter.key_values()
        assert relative_difference(keys, np.stack(twin.keys).reshape(keys.shape)) < TOLERANCE
        assert relative_difference(values, np.stack(twin.values).reshape(values.shape)) < TOLERANCE


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("variant", VARIANTS)
def test_agrees_with_the_numpy_twin(device: Device, tmp_path: Path, variant: str, version: int) -> None:
    path = write_drafter(tmp_path / "drafter.gguf", version=version, seed=version, **VARIANTS[variant])
    compare_with_twin(path, device, NumpyDrafter(path))


@pytest.mark.parametrize("version", [1, 2])
def test_gelu(device: Device, tmp_path: Path, version: int) -> None:
    """ggml looks gelu up in a float16 table, so that less can be asked."""
    path = write_drafter(tmp_path / "drafter.gguf", version=version, metadata={"dflash.hidden_activation": "gelu"})
    twin = NumpyDrafter(path)
    features = random_features(twin, 40)
    twin.inject(features)
    with opened(path, device) as drafter:
        inject(drafter, features)
        assert relative_difference(drafter.trace(9).hidden, twin.draft(9, 40).hidden) < 2e-3


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("own_embeddings", [False, True])
def test_embeddings_and_head_of_the_target(device: Device, tmp_path: Path, version: int, own_embeddings: bool) -> None:
    """A drafter with neither shares both; one with embeddings only uses these as its head too."""
    weights = load_tensors(gguf.GGUFReader(write_target(tmp_path / "target.gguf")))
    path = write_drafter(tmp_path / "drafter.gguf", version=version, own_embeddings=own_embeddings, own_head=False)
    names = ("token_embd.weight", "output.weight")
    store = Store(device.buffer_type, 2)
    embeddings, head = (store.tensor(name, ggml.F32, *weights[name].T.shape) for name in names)
    store.allocate()
    try:
        write(embeddings, weights[names[0]])
        write(head, weights[names[1]])
        twin = NumpyDrafter(path, weights[names[0]], weights[names[1]])
        compare_with_twin(path, device, twin, shared=SharedTensors(embeddings, head))
    finally:
        store.close()


@pytest.mark.parametrize("name", FIXTURES)
def test_agrees_with_libllama(device: Device, name: str) -> None:
    record = Record.load(name)
    with opened(record.drafter, device) as ours, closing(LibllamaDrafter(record.drafter)) as theirs:
        for cycle in record.cycles:
            inject(ours, cycle.features)
            theirs.inject(cycle.features)
            for length in (2, 3, ours.config.block_size):
                (lattice,) = ours.draft([cycle.anchor], block_length=length)
                draft = theirs.draft(cycle.anchor, cycle.start, length)
                assert_same_lattice(lattice, lattice_of(draft, lattice.candidates.shape[1]), 1e-4)
                assert greedy_path(lattice).tokens.tolist() == draft.path.tolist()


@pytest.mark.parametrize("quantisation", ["Q8_0", "Q4_0"])
@pytest.mark.parametrize("name", FIXTURES)
def test_agrees_with_libllama_on_a_quantised_file(device: Device, tmp_path: Path, name: str, quantisation: str) -> None:
    """The same products from the same kernels, in both with float16 keys and values and flash attention.

    Activations are rounded to 8 bits before each product, so that a sum taken in another order can move a value by one
    of 127 steps, and near-ties may change places.
    """
    record = Record.load(name)
    path = requantise(record.drafter, tmp_path / "drafter.gguf", quantisation)
    with (
        opened(path, device, key_value_type=ggml.F16) as ours,
        closing(LibllamaDrafter(path, exact=False)) as theirs,
    ):
        for cycle in record.cycles:
            inject(ours, cycle.features)
            theirs.inject(cycle.features)
            (lattice,) = ours.draft([cycle.anchor])
            draft = theirs.draft(cycle.anchor, cycle.start)
            assert_same_but_near_ties(lattice, lattice_of(draft, lattice.candidates.shape[1]), 0.02)


# --- what it says -----------------------------------------------------------------------------------------------------


def test_what_it_says_of_itself(device: Device) -> None:
    record = Record.load("dflash2")
    with opened(record.drafter, device, context=256) as drafter:
        assert drafter.config.version is Mode.DFLASH2
        assert drafter.weight_bytes >= sum(int(t.n_bytes) for t in gguf.GGUFReader(record.drafter).tensors)
        width = drafter.config.kv_heads * drafter.config.head_dim
        assert drafter.cache_bytes >= 2 * drafter.config.layers * 256 * width * 4


def test_a_block_has_a_length_of_2_to_its_size(device: Device) -> None:
    record = Record.load("dflash2")
    with opened(record.drafter, device) as drafter:
        inject(drafter, record.cycles[0].features)
        for length in (1, 9):
            with pytest.raises(ValueError):
                drafter.draft([1], block_length=length)


def test_missing_embeddings_are_named(device: Device, tmp_path: Path) -> None:
    path = write_drafter(tmp_path / "drafter.gguf", version=2, own_embeddings=False)
    with pytest.raises(DrafterMismatch, match="embeddings"):
        Drafter(str(path), device, context=256)
    path = write_drafter(tmp_path / "drafter.gguf", version=2, own_embeddings=False, own_head=False)
    with pytest.raises(DrafterMismatch, match="embeddings"):
        Drafter(str(path), device, context=256)


def test_the_best_path_scores_no_less_than_the_greedy_one(device: Device) -> None:
    record = Record.load("dflash2_block16_k16")
    with opened(record.drafter, device) as drafter:
        for cycle in record.cycles:
            inject(drafter, cycle.features)
            (lattice,) = drafter.draft([cycle.anchor])
            totals = [_total(lattice, path.tokens) for path in (best_path(lattice), greedy_path(lattice))]
            assert totals[0] >= totals[1]


def _total(lattice: Lattice, tokens: NDArray[np.int32]) -> float:
    taken = [int(np.flatnonzero(ids == token)[0]) for ids, token in zip(lattice.candidates, tokens)]
    return float(lattice.rows(taken)[np.arange(len(taken)), taken].sum())
