"""The tiny target, opened for writing a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.gguf_file import read_header
from engine.train.batch_target import BatchTarget
from tests.train.tiny import tiny_target


@pytest.fixture(scope="session")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_target(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.fixture
def batch_target(tiny_file: Path) -> Iterator[BatchTarget]:
    target = BatchTarget(read_header(str(tiny_file)), context=256, threads=1, sequences=16)
    yield target
    target.close()
