"""The recipe: corpus, features, training, export, evaluation, one after another in one folder, within a time budget.

Every step leaves its result in the folder, and goes on where it was when it is started again. PyTorch is imported when
training starts and not before.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.drafter_config import FEATURE_TAP_ARCHITECTURES, no_tap_sentence
from engine.errors import ModelFileError
from engine.events import Mode
from engine.gguf_file import Header, StringArray, read_header
from engine.train import start
from engine.train.batch_target import BatchTarget
from engine.train.corpus import Conversation, CorpusWriter, is_held_out, mixed_prompts, read_corpus
from engine.train.export import write_drafter
from engine.train.features import Example, extract, read_examples

if TYPE_CHECKING:
    from engine.train.training import Training

STEPS = ("corpus", "features", "training", "export", "evaluation")
_SHARES = {"corpus": 0.35, "features": 0.1, "training": 0.45, "export": 0.0, "evaluation": 0.1}  # of the time
_CONTEXT = 512  # tokens of one conversation
_SEQUENCES = 16  # conversations written at once; also what it takes to get the logits of a whole pass
_MIXED = 3 / 5  # of the conversations answer composed or given prompts
_LEAST = 12  # tokens of an answer worth learning from
_CONTROL, _UNUSED = 3, 5  # token types

Report = Callable[[str, str], None]  # step, what it is doing


@dataclass(frozen=True)
class Recipe:
    """What the user chose."""

    target: str
    modes: tuple[Mode, ...] = (Mode.DFLASH, Mode.DFLASH2)
    hours: float = 1.0
    layers: int = 2
    block: int = 8
    draft_vocabulary: int = 12288
    matrices: str = "IQ4_NL"
    tables: str = "Q4_0"
    prompts: tuple[str, ...] = ()
    corpora: tuple[str, ...] = ()  # ready ones, used beside or, with `write_corpus` off, instead of the run's own
    write_corpus: bool = True
    questions: Mapping[str, Sequence[str]] = field(default_factory=dict)  # further ones to evaluate on, by kind
    answer_tokens: int = 220
    threads: int = 2
    seed: int = 0


class Run:
    """One folder in which the recipe is carried out."""

    def __init__(self, recipe: Recipe, out: Path, report: Report) -> None:
        """Raises ModelFileError when the folder belongs to another target or another design."""
        self.recipe = recipe
        self.out = out
        self.work = out / "work"
        self.report = report
        self.header = read_header(recipe.target)
        if self.header.architecture not in FEATURE_TAP_ARCHITECTURES:
            raise ModelFileError(no_tap_sentence(self.header))
        self.work.mkdir(parents=True, exist_ok=True)
        self.design = start.Design.usual(
            self.header, mask_token(self.header), recipe.layers, recipe.block, recipe.draft_vocabulary
        )
        self._agree()

    def _agree(self) -> None:
        note = self.work / "design.json"
        mine = {"target": os.path.getsize(self.header.path), **asdict(self.design)}
        mine = json.loads(json.dumps(mine))
        if not note.exists():
            note.write_text(json.dumps(mine, indent=1), "utf-8")
        elif json.loads(note.read_text("utf-8")) != mine:
            raise ModelFileError(
                f"{self.out} was begun for another target or with other settings; choose another folder."
            )

    def carry_out(self, steps: Sequence[str] = STEPS) -> None:
        """Raises DFlashChatError."""
        for step in steps:
            getattr(self, step)()

    # time

    def spent(self, step: str) -> float:
        note = self.work / f"{step}.seconds"
        return float(note.read_text()) if note.exists() else 0.0

    def left(self, step: str) -> float:
        """Seconds of the step's share that are left; training also gets what corpus and features did not need."""
        total = self.recipe.hours * 3600
        if step == "training":
            before = sum(_SHARES[s] for s in ("corpus", "features", "training")) * total
            return before - sum(self.spent(s) for s in ("corpus", "features", "training"))
        return _SHARES[step] * total - self.spent(step)

    @contextmanager
    def _clock(self, step: str) -> Iterator[Callable[[], float]]:
        """Seconds since the beginning; what a step took is added to what it took before."""
        before, began = self.spent(step), time.monotonic()
        try:
            yield lambda: time.monotonic() - began
        finally:
            (self.work / f"{step}.seconds").write_text(f"{before + time.monotonic() - began:.1f}")

    # steps

    def corpus(self) -> None:
        if not self.recipe.write_corpus or self.left("corpus") <= 0:
            return
        with self._clock("corpus") as seconds, self._target() as target:
            limit = self.left("corpus")
            # what is asked of the model, and a like number of its own questions, in the time there is
            asked = mixed_prompts(self.recipe.prompts, max(32, int(limit * _MIXED)), self.recipe.seed)
            writer = CorpusWriter(
                target, self.design.taps, self.work / "corpus", asked, self.recipe.answer_tokens, self.recipe.seed
            )
            said = 0.0

            def until(conversations: int, tokens: int) -> bool:
                nonlocal said
                if seconds() - said > 2:
                    said = seconds()
                    self.report(
                        "corpus",
                        f"{conversations} conversations, {tokens / said:.0f} tokens/s, {limit - said:.0f} s left",
                    )
                return seconds() >= limit

            writer.run(until)

    def conversations(self) -> tuple[list[Conversation], list[Conversation]]:
        """(to learn from, held out), in the order of the files."""
        own = self.work / "corpus"
        learned, held_out = self._conversations([*([own] if own.exists() else []), *self._ready])
        if not learned:
            raise ModelFileError(
                f"There is no conversation in {own}; give the step 'corpus' more time, or a ready corpus."
            )
        return learned, held_out

    @property
    def _ready(self) -> list[Path]:
        return [Path(path) for path in self.recipe.corpora]

    def _conversations(self, paths: Sequence[Path]) -> tuple[list[Conversation], list[Conversation]]:
        found = [c for c in read_corpus(paths) if _is_worth_it(len(c.ids), c.start)]
        return [c for c in found if not c.held_out], [c for c in found if c.held_out]

    def features(self) -> None:
        """Of the ready corpora; the run's own has them."""
        learned, held_out = self._conversations(self._ready)
        if not learned:
            return
        with self._clock("features") as seconds, self._target() as target:
            limit = self.left("features")

            def go_on(done: int, total: int) -> bool:
                self.report("features", f"{done} of {total} shards")
                return seconds() < limit

            extract(target, self.design.taps, held_out[:48], self.work / "held-out")
            extract(target, self.design.taps, learned, self.work / "features", go_on)

    def training(self) -> None:
        import torch

        from engine.train.training import keep_freed_memory

        torch.set_num_threads(self.recipe.threads)
        keep_freed_memory()
        training = self._prepared()
        examples, held_out = self._examples()
        with self._clock("training"):

            def on_step(now: Training) -> bool:
                losses = ", ".join(f"{t.config.version.value} {t.losses[-1][1]:.2f}" for t in now.learning)
                self.report(
                    "training", f"step {now.step}, {now.settings.seconds - now.seconds:.0f} s left, loss {losses}"
                )
                return True

            training.run(examples, held_out, on_step)
        self._keep_curves(training)

    def _keep_curves(self, training: Training) -> None:
        curves = {}
        for name, trainee in training.trainees.items():
            group = max(1, len(trainee.losses) // 100)
            pieces = [trainee.losses[i : i + group] for i in range(0, len(trainee.losses), group)]
            curves[name] = {
                "loss": [(piece[-1][0], float(np.mean([drafts for _, drafts, _ in piece]))) for piece in pieces],
                "acceptance": [(m.seconds, m.acceptance) for m in trainee.measurements],
            }
        (self.work / "curves.json").write_text(json.dumps(curves), "utf-8")

    def _examples(self) -> tuple[list[Example], list[Example]]:
        """(to learn from, held out and greedy)"""
        own = [e for e in read_examples(self.work / "corpus") if _is_worth_it(len(e.ids), e.start)]
        learned = [e for e in own if not is_held_out(e.ids[: e.start])] + read_examples(self.work / "features")
        held_out = [e for e in own if is_held_out(e.ids[: e.start])] + read_examples(self.work / "held-out")
        if not learned:
            raise ModelFileError(
                f"There are no features in {self.work}; run the step 'corpus' or, for ready ones, 'features' first."
            )
        return learned, [e for e in held_out if e.temperature == 0][:64]

    def vocabulary(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tokens that are drafted, and how often answers have them. Kept, so that it stays the same."""
        path = self.work / "vocabulary.npz"
        if not path.exists():
            whole = len(self.header.metadata["tokenizer.ggml.tokens"])
            answers = [c.ids[c.start :] for c in self.conversations()[0]]
            tokens = start.draft_vocabulary(answers, self.recipe.draft_vocabulary, whole)
            counts = np.bincount(np.concatenate(answers), minlength=whole)[tokens]
            np.savez(path, tokens=tokens, counts=counts)
        with np.load(path) as data:
            return data["tokens"], data["counts"]

    def configs(self) -> dict[str, Any]:
        return {mode.value: start.drafter_config(self.header, self.design, mode) for mode in self.recipe.modes}

    def _prepared(self) -> Training:
        from engine.train.training import Settings, Training

        tokens, counts = self.vocabulary()
        target = start.TargetWeights(self.header)
        scale = self._feature_scale()
        configs = {
            name: (config, start.initial_weights(config, target, self.design.sources, scale, tokens, self.recipe.seed))
            for name, config in self.configs().items()
        }
        seconds = self.left("training") + self.spent("training")
        settings = Settings(max(1.0, seconds), seed=self.recipe.seed)
        return Training(
            configs, target.embeddings, target.head[tokens], tokens, counts, settings, self.work / "training.pt"
        )

    def _feature_scale(self) -> NDArray[np.float32]:
        """[F], the usual size of each tapped layer's numbers. Kept, since training starts from it."""
        path = self.work / "feature_scale.npy"
        if not path.exists():
            some = np.concatenate([e.features[e.start :].astype(np.float32) for e in self._examples()[0][:20]])
            some = some.reshape(len(some), len(self.design.taps), -1)
            np.save(path, np.median(np.sqrt(np.square(some).mean(-1)), axis=0))
        scale: NDArray[np.float32] = np.load(path)
        return scale

    def export(self) -> None:
        """From what training saved last."""
        training = self._prepared()
        if not training.step:
            raise ModelFileError(f"Nothing has been trained in {self.out}; run the step 'training' first.")
        training.fork()
        for name, trainee in training.trainees.items():
            weights = {key: tensor.detach().numpy() for key, tensor in trainee.weights.items()}
            path = self.drafter_path(Mode(name))
            write_drafter(
                path, trainee.config, weights, training.head.float().numpy(), training.vocabulary, self.header,
                matrices=self.recipe.matrices, tables=self.recipe.tables, notes=self._notes(Mode(name), training),
            )  # fmt: skip
            self.report("export", f"{path.name}, {path.stat().st_size / 1e6:.1f} MB")
        self._keep_curves(training)

    def drafter_path(self, mode: Mode) -> Path:
        stem = (
            str(self.header.metadata.get("general.basename") or Path(self.header.path).stem).lower().replace(" ", "-")
        )
        size = str(self.header.metadata.get("general.size_label") or "").lower()
        return self.out / f"{'-'.join(part for part in (stem, size, mode.value) if part)}.gguf"

    def _notes(self, mode: Mode, training: Training) -> dict[str, Any]:
        learned, _ = self.conversations()
        examples, _ = self._examples()
        notes: dict[str, Any] = {
            "general.name": f"{self.header.name} {'DFlash' if mode is Mode.DFLASH else 'DFlash 2'}",
            "general.description": f"A drafter for {self.header.name}, trained on answers the model gave itself.",
            "training.conversations": len(examples),
            "training.tokens": int(sum(len(e.ids) - e.start for e in examples)),
            "training.steps": training.step,
            "training.blocks": training.blocks,
            "training.seconds": int(training.seconds),
            "training.questions": ", ".join(sorted({c.kind for c in learned})),
        }
        licence = self.header.metadata.get("general.license")
        if licence:
            notes["general.license"] = str(licence)
        return notes

    def evaluation(self) -> None:
        from engine.train.card import evaluate_run

        with self._clock("evaluation"):
            evaluate_run(self)

    @contextmanager
    def _target(self) -> Iterator[BatchTarget]:
        target = BatchTarget(self.header, context=_CONTEXT, threads=self.recipe.threads, sequences=_SEQUENCES)
        try:
            yield target
        finally:
            target.close()


def _is_worth_it(tokens: int, start: int) -> bool:
    """A conversation of so many tokens whose answer begins at `start`."""
    return tokens - start >= _LEAST and tokens <= _CONTEXT


def mask_token(target: Header) -> int:
    """A token that stands for no text and that neither the chat template nor an answer uses."""
    metadata = target.metadata
    tokens, types = metadata.get("tokenizer.ggml.tokens"), metadata.get("tokenizer.ggml.token_type")
    if not isinstance(tokens, StringArray) or types is None:
        raise ModelFileError(f"{target.file_name} does not carry its vocabulary; choose a model made for chat.")
    template = str(metadata.get("tokenizer.chat_template", ""))
    taken = {value for key, value in metadata.items() if key.startswith("tokenizer.ggml.") and key.endswith("token_id")}
    for wanted in (_CONTROL, _UNUSED):
        ids = [int(i) for i in np.flatnonzero(np.asarray(types) == wanted)]
        free = [i for i in ids if i not in taken and tokens[i] not in template]
        if free:
            return free[-1]
    return len(tokens) - 1
