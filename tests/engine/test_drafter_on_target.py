"""Drafters on the default target: features from its layers, and its own quantised embeddings and head, shared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from engine import ggml
from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.gguf_file import read_header
from engine.graph import Device
from engine.selector import greedy_path
from engine.target import Target
from tests.drafter_comparison import assert_same_but_near_ties, lattice_of
from tests.drafter_files import CONTROL, target_keys
from tests.libllama_dflash import LibllamaDrafter

if TYPE_CHECKING:
    from tests.conftest import DrafterFiles

TEXT = "The quick brown fox jumps over the lazy dog, and the dog does not mind at all."


@pytest.fixture(scope="module")
def target(target_file: Path) -> Iterator[Target]:
    with closing(Target(read_header(target_file), context=512, threads=1)) as target:
        yield target


@pytest.mark.parametrize("name", ["random_v1", "random_v2", "wrong_v1", "wrong_v2"])
def test_agrees_with_libllama(
    target: Target, target_file: Path, device: Device, drafter_dir: DrafterFiles, name: str
) -> None:
    """Both look embeddings up in, and multiply with, the very memory that holds the target."""
    path: Path = getattr(drafter_dir, name)
    tokens = target.vocabulary.tokenize(TEXT)
    context: Any = target._context
    shared = SharedTensors(target.embeddings, target.head)
    with (
        closing(Drafter(str(path), device, context=512, shared=shared, key_value_type=ggml.F16)) as ours,
        closing(LibllamaDrafter(path, target=context, n_ctx=512, exact=False)) as theirs,
    ):
        target.cut(0, 0)
        target.tap(ours.config.target_layers)
        features = [layer.copy() for layer in target.evaluate([(0, tokens)], last_only=True).features]
        target.tap(())
        for begin, end in ((0, 12), (12, len(tokens) - 1)):
            rows = [layer[begin:end] for layer in features]
            ours.inject(rows)
            theirs.inject(np.concatenate(rows, axis=1))
            (lattice,) = ours.draft([tokens[end]])
            draft = theirs.draft(tokens[end], end)
            assert_same_but_near_ties(lattice, lattice_of(draft, lattice.candidates.shape[1]), 0.02)
            if name.startswith("wrong"):
                types = target_keys(target_file)["tokenizer.ggml.token_type"]
                assert all(types[token] == CONTROL for token in greedy_path(lattice).tokens)


class _ReachesNothing(Drafter):
    """As on a device that cannot read the memory in which the target's embeddings lie."""

    def _reaches(self, tensor: int) -> bool:
        return False


def test_embeddings_looked_up_elsewhere_give_the_same_drafts(
    target: Target, device: Device, drafter_dir: DrafterFiles
) -> None:
    shared = SharedTensors(target.embeddings, target.head)
    path = str(drafter_dir.random_v2)
    rng = np.random.default_rng(3)
    with (
        closing(Drafter(path, device, context=256, shared=shared)) as here,
        closing(_ReachesNothing(path, device, context=256, shared=shared)) as elsewhere,
    ):
        features = [rng.standard_normal((20, target.hidden_size), np.float32) for _ in here.config.target_layers]
        for block in (8, 4, 8):
            lattices = []
            for drafter in (here, elsewhere):
                drafter.inject(features)
                lattices.append(drafter.draft([1234], block_length=block)[0])
            np.testing.assert_array_equal(lattices[0].candidates, lattices[1].candidates)
            np.testing.assert_array_equal(lattices[0].rest, lattices[1].rest)
