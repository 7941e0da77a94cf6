"""The questions of the benchmark's suite by kind; for comparisons on the real model."""

from __future__ import annotations

from engine.bench.suite import suite

PROMPTS: dict[str, list[str]] = {}
for _question in suite():
    PROMPTS.setdefault(_question.kind, []).append(_question.text)
