"""How fast the engine's own part is: the draft step against libllama's, and what a cycle spends outside both.

    python -m tests.benchmark_step DRAFTER.gguf [--model TARGET.gguf] [--threads N] [--rounds R]

Prints, from one run: our draft step and libllama's own `dflash` graph for the same file at block lengths 4, 8 and
16, alternating (medians, and the median of the ratios); per draft length the milliseconds and the share of a cycle
that are neither in ggml nor in libllama, also where the length is decided in each cycle; and baseline mode against a
bare loop of `llama_decode` and argmax. A machine that does something else meanwhile makes all figures worthless.
"""

from __future__ import annotations

import argparse
import shutil
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
from llama_cpp import llama_cpp as libllama

from engine import ggml
from engine import target as target_room
from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.embedded import embedded_model
from engine.events import Answered, Memory, Mode, SamplerSettings
from engine.generate import Request, Stream, answer, run_cycle
from engine.gguf_file import read_header
from engine.graph import Device
from engine.sampling import Sampler
from engine.selector import greedy_path
from engine.stats import AnswerRecorder
from engine.target import Target
from engine.vocabulary import Message
from tests.libllama_dflash import LibllamaDrafter
from tests.steady_length import SteadyLength

PROMPT = "Explain step by step how a bicycle stays upright, and why it is easier at speed."
COMMITTED = 300
NO_MEMORY = Memory(0, 0, 0, 0)


def with_block_size(source: Path, block: int, folder: Path) -> Path:
    """A copy that claims another block size; what it drafts is nonsense there, what it costs is not."""
    copy = folder / f"block{block}-{source.name}"
    shutil.copy(source, copy)
    key = b"dflash.block_size"
    with copy.open("r+b") as file:
        start = file.read(1 << 20).index(key) + len(key)
        file.seek(start)
        assert struct.unpack("<I", file.read(4)) == (4,)  # uint32
        file.seek(start + 4)
        file.write(struct.pack("<I", block))
    return copy


def alternate(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float, float]:
    """Median seconds of each, and the median of ours / theirs, round by round."""
    mine: list[float] = []
    other: list[float] = []
    for _ in range(rounds):
        for function, times in ((ours, mine), (theirs, other)):
            started = time.perf_counter()
            function()
            times.append(time.perf_counter() - started)
    return median(mine), median(other), median(a / b for a, b in zip(mine, other))


def draft_steps(path: Path, target: Target, device: Device, rounds: int) -> None:
    print("\ndraft step (block length: ours ms, libllama ms, ours / libllama)")
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        long = with_block_size(path, 16, Path(folder))
        drafter = Drafter(
            str(long), device, context=1024, shared=SharedTensors(target.embeddings, target.head, target.file_name)
        )
        config = drafter.config
        theirs = LibllamaDrafter(long, target._context, n_ctx=1024, threads=target.threads, exact=False)
        features = rng.standard_normal((COMMITTED, len(config.target_layers) * config.hidden_size), np.float32)
        theirs.inject(features)
        drafter.inject(np.split(features, len(config.target_layers), axis=1))
        for block in (4, 8, 16):

            def ours(block: int = block) -> object:
                return greedy_path(drafter.draft([100], (0,), block)[0]).tokens

            def libllamas(block: int = block) -> object:
                return theirs.step(100, COMMITTED, block)

            for _ in range(5):
                ours()
                libllamas()
            a, b, ratio = alternate(ours, libllamas, rounds)
            print(f"  {block:2}: {a * 1e3:6.2f} {b * 1e3:6.2f} {ratio:6.3f}")
        theirs.close()
        drafter.close()


class Inside:
    """Seconds spent in ggml's and libllama's computations while it is entered."""

    def __enter__(self) -> Inside:
        self.seconds = 0.0
        self._kept = (ggml.backend_graph_compute, libllama.llama_decode, target_room._get_logits)

        def timed(function: Any) -> Any:
            def call(*args: Any) -> Any:
                started = time.perf_counter()
                result = function(*args)
                self.seconds += time.perf_counter() - started
                return result

            return call

        ggml.backend_graph_compute = timed(self._kept[0])
        libllama.llama_decode = timed(self._kept[1])
        target_room._get_logits = timed(self._kept[2])  # waits for what is still being computed
        return self

    def __exit__(self, *_: object) -> None:
        ggml.backend_graph_compute, libllama.llama_decode, target_room._get_logits = self._kept


def cycles(path: Path, target: Target, device: Device, count: int) -> None:
    print("\ncycle (drafts, or decided in each cycle: ms per cycle, ms outside ggml and libllama, share)")
    shared = SharedTensors(target.embeddings, target.head, target.file_name)
    drafter = Drafter(str(path), device, context=target.context, shared=shared)
    target.tap(drafter.config.target_layers)
    prompt = target.vocabulary.render([Message("user", PROMPT)])
    most = drafter.config.block_size - 1
    for drafts, length in ((3, None), (most, None), (most, SteadyLength(most + 1, row=0.02, draft=0.02))):
        target.cut(0, 0)
        drafter.cut(0, 0)
        result = target.evaluate([(0, prompt)], last_only=True)
        drafter.inject(result.features)
        stream = Stream(0, Sampler(SamplerSettings()), int(result.logits[0].argmax()), drafts)
        for _ in range(5):
            run_cycle(target, drafter, (stream,), length)
        wholes: list[float] = []
        outsides: list[float] = []
        for _ in range(count):
            with Inside() as inside:
                started = time.perf_counter()
                run_cycle(target, drafter, (stream,), length)
                wholes.append(time.perf_counter() - started)
            outsides.append(wholes[-1] - inside.seconds)
        whole, outside = median(wholes), median(outsides)
        name = drafts if length is None else "decided"
        print(f"  {name}: {whole * 1e3:6.2f} {outside * 1e3:6.3f} {outside / whole:6.1%}")
    drafter.close()
    target.tap(())


def baseline(target: Target, tokens: int, rounds: int) -> None:
    prompt: Sequence[int] = target.vocabulary.render([Message("user", PROMPT)])
    seconds = {"ours": 0.0, "bare": 0.0}

    def ours() -> None:
        target.cut(0, 0)
        recorder = AnswerRecorder(Mode.BASELINE, "", None)
        request = Request(0, prompt, 0, False, Sampler(SamplerSettings()), 0, tokens)
        for event in answer(target, None, request, recorder, lambda: NO_MEMORY, threading.Event()):
            if isinstance(event, Answered):
                speed = event.statistics.tokens_per_second
                assert speed
                seconds["ours"] = 1 / speed

    def bare() -> None:
        target.cut(0, 0)
        row = target.evaluate([(0, prompt)], last_only=True).logits[0]
        token = int(row.argmax())
        one = (libllama.llama_token * 1)(token)
        batch = libllama.llama_batch_get_one(one, 1)
        started = time.perf_counter()
        for _ in range(tokens - 1):
            one[0] = token
            libllama.llama_decode(target._context, batch)
            logits = np.ctypeslib.as_array(libllama.llama_get_logits(target._context), shape=(target.vocabulary.size,))
            token = int(logits.argmax())
        seconds["bare"] = (time.perf_counter() - started) / (tokens - 1)

    ratios = []
    pairs = []
    for _ in range(rounds):
        ours()
        bare()
        pairs.append((seconds["ours"], seconds["bare"]))
        ratios.append(seconds["ours"] / seconds["bare"])
    a, b = median(x for x, _ in pairs), median(y for _, y in pairs)
    print(f"\nbaseline mode {a * 1e3:.3f} ms a token, bare llama_decode loop {b * 1e3:.3f} ms")
    print(f"median of the ratios {median(ratios):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drafter", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--threads", type=int, default=psutil.cpu_count(logical=False) or 1)
    parser.add_argument("--rounds", type=int, default=101)
    args = parser.parse_args()
    header = read_header(str(args.model or embedded_model()))
    target = Target(header, context=2048, threads=args.threads)
    device = Device(target.device_handle, args.threads)
    print(f"{args.drafter.name} on {target.file_name}, {args.threads} threads, device {target.device_name}")
    draft_steps(args.drafter, target, device, args.rounds)
    cycles(args.drafter, target, device, args.rounds)
    baseline(target, 60, max(5, args.rounds // 3))
    device.close()
    target.close()


if __name__ == "__main__":
    main()
