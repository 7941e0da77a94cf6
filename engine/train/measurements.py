"""Everything a model card reports, measured with the engine and kept in a JSON file, so that nothing is done twice."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.ablation import PlainChoice, without_convolution
from engine.events import Mode
from engine.graph import Device
from engine.target import Target
from engine.train.evaluate import (
    Accuracy,
    Answer,
    Question,
    accuracy,
    answers,
    opened,
    speed,
)

TEMPERATURES = (0.0, 0.8)
SPEED_LENGTHS = (1, 2, 3, 5, 7)
NO_SELECTOR, NO_CONVOLUTION = "without the selector", "without the convolution"

Report = Callable[[str], None]


class Measurements:
    """Results by name. A name says what was measured of which drafter file, so another file is measured anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.results: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def once(self, key: Sequence[str], measure: Callable[[], Any]) -> Any:
        name = " | ".join(key)
        if name not in self.results:
            self.results[name] = measure()
            part = self._path.with_suffix(".part")
            part.write_text(json.dumps(self.results, indent=1), "utf-8")
            os.replace(part, self._path)
        return self.results[name]


def state_of(path: Path) -> str:
    state = path.stat()
    return f"{path.name} {state.st_size} {state.st_mtime_ns}"


class Evaluation:
    """Measures drafters of one target on sets of questions."""

    def __init__(self, target: Target, device: Device, kept: Measurements, tokens: int, report: Report) -> None:
        self._target = target
        self._device = device
        self._kept = kept
        self._tokens = tokens
        self._report = report

    def answered(
        self, mode: Mode, path: Path, name: str, questions: Sequence[Question], temperature: float, without: str = ""
    ) -> list[Answer]:
        """All answers, the whole block verified every time; `without` leaves a part of DFlash 2 out."""

        def measure() -> list[dict[str, Any]]:
            self._report(f"{mode.value} {without}: {len(questions)} answers, {name}, temperature {temperature}")
            with tempfile.TemporaryDirectory() as folder:
                used = without_convolution(path, Path(folder) / path.name) if without == NO_CONVOLUTION else path
                kind = {"kind": PlainChoice} if without == NO_SELECTOR else {}
                with opened(used, self._target, self._device, **kind) as drafter:
                    found = answers(self._target, drafter, questions, self._tokens, temperature)
            return [asdict(answer) for answer in found]

        key = ("answers", state_of(path), name, f"{len(questions)} of {self._tokens}", f"{temperature}", without)
        return [_answer(fields) for fields in self._kept.once(key, measure)]

    def accuracy(self, path: Path, conversations: Sequence[tuple[Sequence[int], int]]) -> Accuracy:
        def measure() -> dict[str, Any]:
            self._report(f"accuracy by position of {path.name}")
            with opened(path, self._target, self._device) as drafter:
                return asdict(accuracy(self._target, drafter, conversations))

        found: Mapping[str, Any] = self._kept.once(("accuracy", state_of(path), str(len(conversations))), measure)
        return Accuracy(tuple(found["top_1"]), tuple(found["top_k"]), found["anchors"])

    def speed(self, path: Path, questions: Sequence[Question]) -> dict[int, list[float]]:
        """Tokens/s of each question by drafts per cycle, 0 being the plain way."""

        def measure() -> dict[str, list[float]]:
            self._report(f"tokens/s with {path.name}")
            with opened(path, self._target, self._device) as drafter:
                lengths = [n for n in SPEED_LENGTHS if n < drafter.config.block_size]
                found = speed(self._target, drafter, questions, self._tokens, lengths)
            return {str(length): values for length, values in found.tokens_per_second.items()}

        found = self._kept.once(("speed", state_of(path), str(len(questions)), str(self._target.threads)), measure)
        return {int(length): values for length, values in found.items()}


def _answer(fields: Mapping[str, Any]) -> Answer:
    return Answer(fields["kind"], fields["emitted"], fields["passes"], tuple(fields["accepted"]))
