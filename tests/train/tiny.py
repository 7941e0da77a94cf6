"""A tiny random target that can chat, and questions to ask it."""

from __future__ import annotations

from pathlib import Path

from tests.drafter_files import write_target
from tests.tiny_chat import TEMPLATE, vocabulary

QUESTIONS = [f"What is {a} plus {b}?" for a in range(20) for b in range(20)]


def tiny_target(path: Path) -> Path:
    return write_target(
        path,
        hidden_size=128,
        layers=4,
        vocabulary=vocabulary(),
        metadata={"tokenizer.chat_template": TEMPLATE, "general.license": "apache-2.0"},
    )
