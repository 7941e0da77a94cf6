"""Two independent oracles agree: libllama's own `dflash` graph, the recorded cycles, and the NumPy twin.

The records cover what the published drafters use; the twin and libllama are held against each other on everything else
that a drafter file may contain, so that a test of the engine may take either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gguf
import llama_cpp
import numpy as np
import pytest

from tests.drafter_files import VARIANTS, write_drafter, write_target
from tests.fixture_files import FIXTURES, Record, relative_difference
from tests.libllama_dflash import LibllamaDraft, LibllamaDrafter, quiet
from tests.numpy_drafter import NumpyDraft, NumpyDrafter, load_tensors

TOLERANCE = 1e-4  # of the largest value


def assert_same(
    ours: NumpyDraft | LibllamaDraft, theirs: NumpyDraft | LibllamaDraft | Any, tolerance: float = TOLERANCE
) -> None:
    assert relative_difference(ours.hidden, theirs.hidden) < tolerance
    assert relative_difference(ours.logits, theirs.logits) < tolerance
    assert ours.path.tolist() == theirs.path.tolist()
    if ours.candidates is None or theirs.candidates is None:
        assert ours.candidates is theirs.candidates
    else:
        assert ours.candidates.tolist() == theirs.candidates.tolist()
        assert relative_difference(ours.unary, theirs.unary) < tolerance
        assert relative_difference(ours.score_first, theirs.score_first) < tolerance
        assert relative_difference(ours.score_rest, theirs.score_rest) < tolerance


@pytest.mark.parametrize("name", FIXTURES)
def test_agrees_with_the_recorded_cycles(name: str) -> None:
    record = Record.load(name)
    with closing(LibllamaDrafter(record.drafter)) as drafter:
        for cycle in record.cycles:
            drafter.inject(cycle.features)
            draft = drafter.draft(cycle.anchor, cycle.start)
            assert_same(draft, cycle)
            assert drafter.step(cycle.anchor, cycle.start) == draft.path.tolist()


# libllama applies the logit scale and the soft cap to DFlash 2 only, the twin to both
CASES = [
    (variant, version)
    for variant in VARIANTS
    for version in (1, 2)
    if (variant, version) != ("logit scale and soft cap", 1)
]


@pytest.mark.parametrize(("variant", "version"), CASES)
def test_the_twin_agrees_with_libllama(tmp_path: Path, variant: str, version: int) -> None:
    path = write_drafter(tmp_path / "drafter.gguf", version=version, seed=version, **VARIANTS[variant])
    _compare(path, NumpyDrafter(path), TOLERANCE)


@pytest.mark.parametrize("version", [1, 2])
def test_gelu(tmp_path: Path, version: int) -> None:
    """ggml looks gelu up in a float16 table, so that less can be asked."""
    path = write_drafter(tmp_path / "drafter.gguf", version=version, metadata={"dflash.hidden_activation": "gelu"})
    _compare(path, NumpyDrafter(path), 2e-3, scores=False)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("tied", [False, True])
def test_embeddings_and_head_of_the_target(target: tuple[Path, Any], tmp_path: Path, version: int, tied: bool) -> None:
    target_path, context = target
    weights = load_tensors(gguf.GGUFReader(target_path))
    # a drafter with its own embeddings and no head uses these for both, one with neither uses the target's two
    path = write_drafter(tmp_path / "drafter.gguf", version=version, own_embeddings=tied, own_head=False)
    twin = NumpyDrafter(path, weights["token_embd.weight"], weights["output.weight"])
    _compare(path, twin, TOLERANCE, context)


def test_a_file_without_embeddings_needs_a_target(tmp_path: Path) -> None:
    path = write_drafter(tmp_path / "drafter.gguf", version=2, own_embeddings=False, own_head=False)
    with pytest.raises(ValueError):
        NumpyDrafter(path)
    with pytest.raises(ValueError):
        LibllamaDrafter(path)


def test_cut_and_shorter_blocks() -> None:
    record = Record.load("dflash2")
    features = record.cycles[0].features
    twin = NumpyDrafter(record.drafter)
    with closing(LibllamaDrafter(record.drafter)) as drafter:
        for oracle in (drafter, twin):
            oracle.inject(features)
            oracle.cut(20)
            oracle.inject(features[30:35])
        for length in (2, 3, 8):
            assert_same(drafter.draft(7, 25, length), twin.draft(7, 25, length))
        with pytest.raises(ValueError):
            drafter.draft(7, 25, 9)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[tuple[Path, Any]]:
    """A tiny target file and its context in libllama."""
    path = write_target(tmp_path / "target.gguf")
    model_params = llama_cpp.llama_model_default_params()
    model_params.n_gpu_layers = 0
    with quiet():
        model: Any = llama_cpp.llama_model_load_from_file(str(path).encode(), model_params)
        context: Any = llama_cpp.llama_init_from_model(model, llama_cpp.llama_context_default_params())
    yield path, context
    with quiet():
        llama_cpp.llama_free(context)
        llama_cpp.llama_model_free(model)


def _compare(path: Path, twin: NumpyDrafter, tolerance: float, target: Any = None, scores: bool = True) -> None:
    """Two cycles, the second short of the first's positions, as after a rejection."""
    features = np.random.default_rng(5).standard_normal((45, len(twin.target_layers) * twin.hidden_size), np.float32)
    with closing(LibllamaDrafter(path, target)) as drafter:
        for begin, end in ((0, 40), (40, 45)):
            drafter.inject(features[begin:end])
            twin.inject(features[begin:end])
            ours, theirs = drafter.draft(9, end), twin.draft(9, end)
            if scores:
                assert_same(ours, theirs, tolerance)
            else:
                assert relative_difference(ours.hidden, theirs.hidden) < tolerance
                assert relative_difference(ours.logits, theirs.logits) < tolerance
