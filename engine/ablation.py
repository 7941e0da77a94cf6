"""A DFlash 2 drafter with one of its parts left out, to see what the part is worth.

A drafter that was trained without the part would do better than one that misses it. Knows nothing of measuring.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.drafter import Drafter
from engine.gguf_file import read_header
from engine.selector import Lattice


class PlainChoice(Drafter):
    """A DFlash 2 drafter whose selector is left out: each position proposes its likeliest token."""

    def draft(
        self, anchors: Sequence[int], sequences: Sequence[int] = (0,), block_length: int | None = None
    ) -> list[Lattice]:
        lattices = super().draft(anchors, sequences, block_length)
        return [Lattice(lattice.candidates, lattice.unary, None, None) for lattice in lattices]


def without_convolution(source: Path, copy: Path) -> Path:
    """A copy of a DFlash 2 drafter whose convolutions are the identity."""
    header = read_header(str(source))
    shutil.copyfile(source, copy)
    with copy.open("r+b") as file:
        for name, info in header.tensors.items():
            file.seek(info.offset)
            if name.endswith("_conv_proj.weight"):
                file.write(bytes(info.nbytes))  # every type reads zero bytes as zeros
            elif name.endswith("_conv_base"):
                base = np.zeros(info.shape, np.float32)
                base[:, 0] = 1
                file.write(base.tobytes())
    return copy
