"""Tiny models for the engine's tests, written once, and sessions on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from engine.session import Session


@dataclass(frozen=True)
class TinyModels:
    """Files of `tests/tiny_chat.py`. The wandering drafters fit the counting target too, and are hardly ever right."""

    counting: Path
    counting_v2: Path
    wandering: Path
    wandering_v1: Path
    wandering_v2: Path


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    from tests import tiny_chat

    folder = tmp_path_factory.mktemp("tiny")
    return TinyModels(
        counting=tiny_chat.counting_target(folder / "counting.gguf"),
        counting_v2=tiny_chat.counting_drafter(folder / "counting-v2.gguf"),
        wandering=tiny_chat.wandering_target(folder / "wandering.gguf"),
        wandering_v1=tiny_chat.wandering_drafter(folder / "wandering-v1.gguf", 1, own_embeddings=False),
        wandering_v2=tiny_chat.wandering_drafter(folder / "wandering-v2.gguf", 2),
    )


@pytest.fixture
def counting(tiny_models: TinyModels) -> Iterator[Session]:
    """A session on the target that counts; its DFlash 2 drafter is always right."""
    from tests.conversation import opened

    with opened(tiny_models.counting, tiny_models.wandering_v1, tiny_models.counting_v2) as session:
        yield session


@pytest.fixture
def wandering(tiny_models: TinyModels) -> Iterator[Session]:
    """A session on the random target."""
    from tests.conversation import opened

    with opened(tiny_models.wandering, tiny_models.wandering_v1, tiny_models.wandering_v2) as session:
        yield session
