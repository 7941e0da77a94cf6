"""Trains drafters: both versions on the same blocks in the same order, for the same number of steps.

Every drafted position learns the target's own distribution there, mixed with the token that was said; later positions
count less. DFlash 2's selector learns to choose among the drafter's candidates, given the token really said before.
A new DFlash 2 drafter computes what DFlash does: its convolutions are the identity, its selector adds nothing. So both
are one until the *fork*, where DFlash 2 takes over the weights and the optimiser's state, and both go on by themselves.
How fast weights move follows the share of the time budget that is used up, so training ends when the time does.
"""

from __future__ import annotations

import copy
import ctypes
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.drafter_config import DrafterConfig
from engine.events import Mode
from engine.train import model
from engine.train.blocks import Batch, batch, order
from engine.train.features import Example


@dataclass(frozen=True)
class Settings:
    seconds: float
    steps: int | None = None  # a budget in steps instead, such as for versions that are trained on two machines
    sequences: int = 6  # of one step
    anchors: int = 32  # of one sequence
    learning_rate: float = 8e-4
    warm_up: float = 0.03  # share of the budget; what DFlash 2 adds has its own behind the fork
    frequent: int = 3072  # tokens that are always in the loss's vocabulary
    others: int = 768  # random further ones, each standing for many
    fork: float = 0.45  # share of the budget until which the versions are one
    cool_down: float = 0.4  # share of the budget at the end, in which the rate falls to nothing
    hard: float = 0.5  # weight of the token said, against the target's distribution
    decay: float = 4.0  # position k counts exp(-(k - 1) / decay)
    seed: int = 0
    dtype: torch.dtype | None = None  # of the matrix products; None: whichever this machine is faster with
    checkpoint_seconds: float = 60.0
    measure_seconds: float = 300.0


def keep_freed_memory() -> None:
    """Let glibc keep what is freed: to map every large tensor anew costs a third of the time on a CPU."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the most it takes
            libc.mallopt(_M_TRIM_THRESHOLD, 2_000_000_000)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


def _is_added(name: str) -> bool:
    """What only DFlash 2 has."""
    return name.startswith("selector_") or "_conv_" in name


def faster_dtype() -> torch.dtype:
    """bfloat16 where the processor multiplies it faster than float32; many have to convert it first."""
    took = {}
    for dtype in (torch.float32, torch.bfloat16):
        a, b = torch.ones(1024, 512, dtype=dtype), torch.ones(512, 1024, dtype=dtype)
        a @ b  # warm
        began = time.perf_counter()
        for _ in range(8):
            a @ b
        took[dtype] = time.perf_counter() - began
    return min(took, key=took.__getitem__)


@dataclass
class Measurement:
    """On held-out anchors, with the target's own choices as the truth."""

    step: int
    seconds: float
    acceptance: float  # tokens of a cycle, at random anchors
    top1: list[float]  # by position, given nothing
    top_k: list[float]


@dataclass
class Trainee:
    """One drafter in training."""

    config: DrafterConfig
    weights: dict[str, Tensor]
    optimiser: torch.optim.Optimizer
    losses: list[tuple[int, float, float]] = field(default_factory=list)  # step, loss of drafts, loss of the selector
    measurements: list[Measurement] = field(default_factory=list)


class Training:
    """Trainees that learn from the same batches."""

    def __init__(
        self,
        configs: dict[str, tuple[DrafterConfig, dict[str, NDArray[np.float32]]]],
        embeddings: NDArray[np.float32],
        head: NDArray[np.float32],
        vocabulary: NDArray[np.int64],
        frequency: NDArray[np.int64],
        settings: Settings,
        checkpoint: Path,
    ) -> None:
        """`embeddings` [V, H] and `head` [Vd, H] stay as they are; `vocabulary` [Vd] names the head's rows, and
        `frequency` [Vd] says how often each is said.

        Goes on from `checkpoint` when that file exists.
        """
        self.settings = settings
        self.dtype = settings.dtype or faster_dtype()
        self.embeddings = torch.from_numpy(embeddings)
        self.head = torch.from_numpy(head).to(self.dtype)
        self.vocabulary = vocabulary
        self._row = np.full(len(embeddings), -1, np.int64)  # token -> row of the head
        self._row[vocabulary] = np.arange(len(vocabulary))
        self._common = np.argsort(-frequency, kind="stable")[: settings.frequent]
        self._checkpoint = checkpoint
        self.step = 0
        self.blocks = 0
        self.seconds = 0.0
        self.forked = len(configs) < 2
        self.trainees = {name: self._trainee(config, weights) for name, (config, weights) in configs.items()}
        if checkpoint.exists():
            self._resume()

    def _trainee(self, config: DrafterConfig, arrays: dict[str, NDArray[np.float32]]) -> Trainee:
        weights = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in arrays.items()}
        added = [w for name, w in weights.items() if _is_added(name)]
        learnt = [w for name, w in weights.items() if not _is_added(name)]
        optimiser = torch.optim.AdamW(
            [
                {"params": [w for w in learnt if w.dim() == 2], "weight_decay": 0.01},
                {"params": [w for w in learnt if w.dim() != 2], "weight_decay": 0.0},
                {"params": added, "weight_decay": 0.0},
            ],
            lr=self.settings.learning_rate,
            betas=(0.9, 0.98),
            fused=True,
        )
        return Trainee(config, weights, optimiser)

    # keeping

    def save(self) -> None:
        state = {
            "step": self.step,
            "seconds": self.seconds,
            "blocks": self.blocks,
            "forked": self.forked,
            "trainees": {
                name: (t.weights, t.optimiser.state_dict(), t.losses, t.measurements)
                for name, t in self.trainees.items()
            },
        }
        part = self._checkpoint.with_suffix(".part")
        torch.save(state, part)
        os.replace(part, self._checkpoint)

    def _resume(self) -> None:
        state: dict[str, Any] = torch.load(self._checkpoint, weights_only=False)
        self.step, self.seconds, self.blocks = state["step"], state["seconds"], state["blocks"]
        self.forked = state["forked"]
        for name, (weights, optimiser, losses, measurements) in state["trainees"].items():
            trainee = self.trainees[name]
            with torch.no_grad():
                for key, tensor in weights.items():
                    trainee.weights[key].copy_(tensor)
            trainee.optimiser.load_state_dict(optimiser)
            trainee.losses, trainee.measurements = losses, measurements

    # running

    def run(
        self,
        examples: Sequence[Example],
        held_out: Sequence[Example],
        on_step: Callable[[Training], bool] | None = None,
    ) -> bool:
        """Train until the budget is used up (True), or until `on_step` returns False. Saves at the end either way."""
        saved = time.monotonic()
        measured = -math.inf
        while self.used < 1:
            began = time.monotonic()
            self._set_rate()
            rng = np.random.default_rng([self.settings.seed, self.step, 1])
            chosen = [examples[i] for i in order(len(examples), self.step, self.settings.sequences, self.settings.seed)]
            drafted = next(iter(self.trainees.values())).config.block_size - 1
            blocks = batch(chosen, self.settings.anchors, drafted, rng)
            if self.used >= self.settings.fork:
                self.fork()
            for trainee in self.learning:
                self._learn(trainee, blocks, np.random.default_rng([self.settings.seed, self.step, 2]))
            self.step += 1
            self.blocks += blocks.starts.size
            self.seconds += time.monotonic() - began
            if held_out and self.seconds - measured >= self.settings.measure_seconds:
                measured = self.seconds
                self.measure(held_out)
            if time.monotonic() - saved >= self.settings.checkpoint_seconds:
                self.save()
                saved = time.monotonic()
            if on_step is not None and not on_step(self):
                self.save()
                return False
        self.fork()
        if held_out:
            self.measure(held_out)
        self.save()
        return True

    @property
    def learning(self) -> list[Trainee]:
        """Those that are being trained: until the fork the first version, which stands for all."""
        trainees = list(self.trainees.values())
        return trainees if self.forked else trainees[:1]

    def fork(self) -> None:
        """Every other version takes over what the first has learnt so far; nothing, if that was done before."""
        if self.forked:
            return
        first, *others = self.trainees.values()
        names = {id(weight): name for name, weight in first.weights.items()}
        learnt = {names[id(weight)]: state for weight, state in first.optimiser.state.items()}
        for trainee in others:
            for name, weight in first.weights.items():
                with torch.no_grad():
                    trainee.weights[name].copy_(weight)
                if name in learnt:
                    trainee.optimiser.state[trainee.weights[name]] = copy.deepcopy(learnt[name])
            trainee.losses = list(first.losses)
            trainee.measurements = list(first.measurements)
        self.forked = True

    @property
    def used(self) -> float:
        """The share of the budget."""
        return self.step / self.settings.steps if self.settings.steps else self.seconds / self.settings.seconds

    def _set_rate(self) -> None:
        rising = (self.used + 1e-3) / self.settings.warm_up
        falling = (1 - self.used) / self.settings.cool_down
        rate = self.settings.learning_rate * min(1.0, rising, max(falling, 0.01))
        # The first steps move every weight by the whole rate, and all in the direction that counts.
        of_added = min(1.0, (self.used - self.settings.fork + 1e-3) / self.settings.warm_up)
        for trainee in self.trainees.values():
            matrices, vectors, added = trainee.optimiser.param_groups
            matrices["lr"] = vectors["lr"] = rate
            added["lr"] = rate * of_added

    def _learn(self, trainee: Trainee, blocks: Batch, rng: np.random.Generator) -> None:
        drafts, selector = self._loss(trainee, blocks, rng)
        trainee.optimiser.zero_grad(set_to_none=True)
        (drafts + selector).backward()
        torch.nn.utils.clip_grad_norm_(trainee.weights.values(), 1.0)
        trainee.optimiser.step()
        trainee.losses.append((self.step, float(drafts.detach()), float(selector.detach())))

    def _hidden(self, weights: dict[str, Tensor], config: DrafterConfig, blocks: Batch) -> Tensor:
        """z [B, A, P, H]."""
        features = torch.from_numpy(blocks.features).to(self.dtype)
        cache = model.inject(weights, features, config)
        anchors = torch.from_numpy(blocks.tokens[:, :, 0])
        embedded = model.masked_block(
            anchors, self.embeddings, self.embeddings[config.mask_token], blocks.tokens.shape[2]
        )
        return model.draft(weights, cache, embedded, torch.from_numpy(blocks.starts), config)

    def _loss(self, trainee: Trainee, blocks: Batch, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        settings, config = self.settings, trainee.config
        weights = model.for_computing(trainee.weights, self.dtype)
        z = self._hidden(weights, config, blocks)

        said = self._row[blocks.tokens[:, :, 1:]]  # [B, A, P]
        rows = np.concatenate([said[..., None], self._row[blocks.soft_ids]], axis=-1)  # [B, A, P, 1 + S]
        present, share = self._loss_vocabulary(rows[rows >= 0], rng)
        place = np.full(len(self.vocabulary) + 1, -1, np.int64)  # row -> index in the loss's vocabulary; -1 stays -1
        place[present] = np.arange(len(present))
        rows = place[rows]
        shares = np.concatenate([np.full((*said.shape, 1), settings.hard), (1 - settings.hard) * blocks.soft], axis=-1)
        truth = torch.from_numpy(np.where(rows >= 0, shares, 0).astype(np.float32))
        ids = torch.from_numpy(np.maximum(rows, 0))
        decay = np.exp(-np.arange(said.shape[2]) / settings.decay)
        importance = torch.from_numpy((blocks.valid * decay).astype(np.float32))

        logits = model.logits(z, self.head[torch.from_numpy(present)], config)  # [B, A, P, C]
        everything = torch.logsumexp(logits - torch.from_numpy(np.log(share)), -1, keepdim=True)
        surprise = (truth * (everything - logits.gather(-1, ids))).sum(-1)
        drafts = (importance * surprise).sum() / importance.sum()
        if config.version is not Mode.DFLASH2:
            return drafts, torch.zeros(())

        candidates = logits.detach().topk(config.selector_top_k or 1, -1).indices  # [B, A, P, k]
        before = self._row[blocks.tokens[:, :, :-1]]  # [B, A, P], the token really said before
        gate = model.linear(z, weights["selector_hidden.weight"])
        scores = model.selector_scores(
            gate,
            logits.gather(-1, candidates),
            weights["selector_predecessor.weight"][torch.from_numpy(np.maximum(before, 0))][..., None, :],
            weights["selector_successor.weight"][torch.from_numpy(present)[candidates]],
        )[..., 0, :]  # [B, A, P, k]
        wanted = ((candidates[..., None] == ids[..., None, :]) * truth[..., None, :]).sum(-1)  # [B, A, P, k]
        surprise = (wanted * (torch.logsumexp(scores, -1, keepdim=True) - scores)).sum(-1)
        importance = importance * torch.from_numpy(before >= 0)
        return drafts, (importance * surprise).sum() / importance.sum()

    def _loss_vocabulary(
        self, wanted: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """[C] rows of the head, and [C] the chance with which each got among them.

        What is often said, what should be said here, and some of all others. Those few stand for many: without their
        chances, everything that is rarely said would become far too likely.
        """
        present = np.union1d(self._common, wanted)
        rest = np.setdiff1d(np.arange(len(self.vocabulary)), present, assume_unique=True)
        others = rng.choice(rest, min(self.settings.others, len(rest)), replace=False)
        share = np.ones(len(present) + len(others), np.float32)
        share[len(present) :] = len(others) / max(1, len(rest))
        return np.concatenate([present, others]), share

    # measuring

    @torch.no_grad()
    def measure(self, held_out: Sequence[Example], anchors: int = 16) -> None:
        """Draft at random anchors of held-out conversations, and compare with what the target chooses itself."""
        for trainee in self.learning:
            weights = model.for_computing(trainee.weights, self.dtype)
            hits, found, lengths = [], [], []
            for begin in range(0, len(held_out), 8):
                blocks = batch(
                    held_out[begin : begin + 8], anchors, trainee.config.block_size - 1, np.random.default_rng(begin)
                )
                candidates, path = self._drafted(trainee.config, weights, blocks)
                right = blocks.tokens[:, :, 1:]
                accepted = np.cumprod((path == right) & blocks.valid, axis=-1)
                lengths.append(1 + accepted.sum(-1))
                hits.append(np.where(blocks.valid, candidates[..., 0] == right, np.nan))
                found.append(np.where(blocks.valid, (candidates == right[..., None]).any(-1), np.nan))
            trainee.measurements.append(
                Measurement(
                    self.step, self.seconds, float(np.concatenate(lengths).mean()),
                    np.nanmean(np.concatenate(hits), axis=(0, 1)).tolist(),
                    np.nanmean(np.concatenate(found), axis=(0, 1)).tolist(),
                )
            )  # fmt: skip

    def _drafted(
        self, config: DrafterConfig, weights: dict[str, Tensor], blocks: Batch
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Candidates [B, A, P, k] as tokens, and the path [B, A, P] that is proposed."""
        z = self._hidden(weights, config, blocks)
        unary, rows = model.logits(z, self.head, config).topk(config.selector_top_k or 16, -1)
        candidates: NDArray[np.int64] = self.vocabulary[rows.numpy()]
        if config.version is not Mode.DFLASH2:
            return candidates, candidates[..., 0]
        gate = model.linear(z, weights["selector_hidden.weight"])
        predecessors, successors = weights["selector_predecessor.weight"], weights["selector_successor.weight"]
        previous = torch.from_numpy(np.maximum(self._row[blocks.tokens[:, :, 0]], 0))
        path = []
        for p in range(z.shape[2]):
            scores = model.selector_scores(
                gate[:, :, p], unary[:, :, p], predecessors[previous][..., None, :], successors[rows[:, :, p]]
            )[..., 0, :]
            previous = rows[:, :, p].gather(-1, scores.argmax(-1, keepdim=True))[..., 0]
            path.append(self.vocabulary[previous.numpy()])
        return candidates, np.stack(path, axis=-1)
