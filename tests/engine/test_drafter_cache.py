"""The drafter's cache: long contexts, cuts, several sequences, many shapes. The NumPy twin says what must come out."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import ContextTooSmall
from engine.graph import Device
from tests.drafter_comparison import assert_agrees, assert_same_lattice, inject, lattice_of, opened, random_features
from tests.fixture_files import FIXTURES, Record
from tests.numpy_drafter import NumpyDrafter


def test_a_long_context(device: Device) -> None:
    """More positions than one injection takes and than one step of the context's rounding."""
    record = Record.load("dflash2_sliding")
    twin = NumpyDrafter(record.drafter)
    features = random_features(twin, 700)
    with opened(record.drafter, device) as drafter:
        for begin, end in ((0, 600), (600, 601), (601, 700)):
            inject(drafter, features[begin:end])
            twin.inject(features[begin:end])
            assert_agrees(drafter.trace(3), twin.draft(3, end))


@pytest.mark.parametrize("name", ["dflash1", "dflash2", "dflash2_sliding", "dflash2_causal"])
def test_after_a_cut_nothing_remains(device: Device, name: str) -> None:
    """Positions cut off and injected anew, as after every rejected draft, are as if the first ones had never been."""
    record = Record.load(name)
    twin = NumpyDrafter(record.drafter)
    features = random_features(twin, 60)
    twin.inject(np.concatenate([features[:20], features[50:60]]))
    with opened(record.drafter, device) as drafter:
        inject(drafter, features[:50])
        drafter.trace(1)
        drafter.cut(0, 20)
        assert drafter.committed() == 20
        inject(drafter, features[50:60])
        assert_agrees(drafter.trace(7), twin.draft(7, 30))
        drafter.cut(0, 40)
        assert drafter.committed() == 30, "a cut behind the end takes nothing"


@pytest.mark.parametrize("length", [2, 3, 4, 7, 8])
@pytest.mark.parametrize("name", ["dflash1", "dflash2", "dflash2_causal"])
def test_shorter_blocks(device: Device, name: str, length: int) -> None:
    record = Record.load(name)
    twin = NumpyDrafter(record.drafter)
    features = record.cycles[0].features
    twin.inject(features)
    with opened(record.drafter, device) as drafter:
        inject(drafter, features)
        assert_agrees(drafter.trace(5, block_length=length), twin.draft(5, len(features), length))


@pytest.mark.parametrize("name", FIXTURES)
def test_several_sequences_equal_each_alone(device: Device, name: str) -> None:
    """Injected and drafted together, with contexts of different lengths, in any order and any choice of them."""
    record = Record.load(name)
    twins = [NumpyDrafter(record.drafter) for _ in range(3)]
    lengths, anchors = (37, 300, 5), (11, 12, 13)
    features = [random_features(twins[0], n, seed) for seed, n in enumerate(lengths)]
    for twin, rows in zip(twins, features):
        twin.inject(rows)
    taps = len(twins[0].target_layers)
    with opened(record.drafter, device, context=400, sequences=3) as drafter:
        drafter.inject(np.split(np.concatenate(features), taps, axis=1), dict(enumerate(lengths)))
        assert [drafter.committed(s) for s in range(3)] == list(lengths)
        for sequences in ((0, 1, 2), (2, 0), (1,)):
            lattices = drafter.draft([anchors[s] for s in sequences], sequences)
            for sequence, lattice in zip(sequences, lattices):
                draft = twins[sequence].draft(anchors[sequence], lengths[sequence])
                assert_same_lattice(lattice, lattice_of(draft, lattice.candidates.shape[1]))
        # one sequence goes on, another is cut, the third stays
        more = random_features(twins[0], 9, 9)
        inject(drafter, more, sequence=1)
        twins[1].inject(more)
        drafter.cut(0, 30)
        twins[0].cut(30)
        for sequence, lattice in enumerate(drafter.draft(anchors, (0, 1, 2))):
            draft = twins[sequence].draft(anchors[sequence], len(twins[sequence].positions))
            assert_same_lattice(lattice, lattice_of(draft, lattice.candidates.shape[1]))


def test_a_draft_into_the_last_position(device: Device) -> None:
    """The cache has room for a block behind its last committed position."""
    record = Record.load("dflash2")
    twin = NumpyDrafter(record.drafter)
    features = random_features(twin, 256)
    twin.inject(features)
    with opened(record.drafter, device, context=256) as drafter:
        inject(drafter, features)
        assert_agrees(drafter.trace(4), twin.draft(4, 256))
        with pytest.raises(ContextTooSmall):
            inject(drafter, features[:1])
        assert drafter.committed() == 256


def test_many_shapes_keep_their_answers(device: Device) -> None:
    """More graphs than are kept, visited again: those thrown out are built again, those kept are not disturbed."""
    record = Record.load("dflash2")
    twin = NumpyDrafter(record.drafter)
    features = random_features(twin, 900)
    twin.inject(features)
    with opened(record.drafter, device) as drafter:
        inject(drafter, features)
        for _ in range(2):
            for end in (900, 500, 200):
                drafter.cut(0, end)
                twin.cut(end)
                for length in range(2, 9):
                    (lattice,) = drafter.draft([8], block_length=length)
                    assert_same_lattice(lattice, lattice_of(twin.draft(8, end, length), 8))
            inject(drafter, features[200:])
            twin.inject(features[200:])
