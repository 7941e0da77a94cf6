"""Results of a benchmark that never ran, with round numbers: what the tests of figures and reports look at."""

from __future__ import annotations

from collections.abc import Sequence

from engine.bench.plan import Conditions, Plan, Variant, mode_variants
from engine.bench.results import AnswerResult, Cycle, Pace, PartResult, Results
from engine.bench.suite import Question
from engine.events import Memory, Mode, StopReason
from engine.stats import MODE_NAMES, AnswerRecorder, to_json

MEMORY = Memory(300 << 20, 320 << 20, 90 << 20, 40 << 20)
QUESTIONS = (Question("code 1", "code", "Write a loop."), Question("chat 1", "chat", "Hello!"))
DRAFTERS = {Mode.DFLASH: "one.gguf", Mode.DFLASH2: "two.gguf"}


def answer(
    question: Question,
    mode: Mode,
    cycles: Sequence[tuple[int, int, int]],
    seconds: float,
    *,
    ids: Sequence[int] = (),
    ends: StopReason = StopReason.MAX_TOKENS,
    right: bool | None = None,
    temperature: float = 0.0,
) -> AnswerResult:
    """`cycles`: (drafted, accepted, emitted), all alike in time; `seconds` for all of them. First token after 0.2 s."""
    now = 5.0
    recorder = AnswerRecorder(mode, "target.gguf", None if mode is Mode.BASELINE else "d.gguf", clock=lambda: now)
    now += 0.2
    recorder.first_token()
    kept: list[Cycle] = []
    for number, (drafted, accepted, emitted) in enumerate(cycles):
        now += seconds / len(cycles)
        stop = ends is StopReason.STOP_TOKEN and number == len(cycles) - 1
        draft_s = 0.002 if drafted else None
        recorder.cycle(
            drafted=drafted, accepted=accepted, emitted=emitted, verify_s=0.01, draft_s=draft_s, stop_token=stop
        )
        kept.append((drafted, accepted, emitted, draft_s, 0.01, stop))
    figures = to_json(recorder.snapshot(MEMORY, ends), "text", ids)
    return AnswerResult(question.name, question.kind, temperature, figures, seconds, tuple(kept), right)


def part(
    mode: Mode,
    run: int,
    answers: Sequence[AnswerResult],
    *,
    concurrency: int = 1,
    decode_s: float | None = None,
    complete: bool = True,
    error: str = "",
) -> PartResult:
    return PartResult(
        variant=MODE_NAMES[mode],
        concurrency=concurrency,
        run=run,
        complete=complete,
        answers=tuple(answers),
        paces=() if decode_s is None else (Pace(0.0, decode_s, decode_s + 1),),
        start_s=None if error else 2.0,
        target_s=None if error else 0.5,
        drafter_s=None if error or mode is Mode.BASELINE else 0.25,
        peak_bytes=None if error else (320 << 20) + (0 if mode is Mode.BASELINE else 30 << 20),
        others_load=None if error else 0.02,
        error=error,
    )


def results(
    parts: Sequence[PartResult],
    *,
    modes: Sequence[Mode] = tuple(Mode),
    missing: Sequence[tuple[Mode, str]] = (),
    more: Sequence[Variant] = (),
    **conditions: object,
) -> Results:
    settings: dict[str, object] = {"target": "target.gguf", "max_tokens": 32, "runs": 1, "threads": 2, **conditions}
    plan = Plan(
        Conditions(**settings),  # type: ignore[arg-type]
        QUESTIONS,
        (*mode_variants(modes, DRAFTERS), *more),
        tuple(missing),
    )
    machine = {
        "processor": "Some <processor> & more",
        "cores": 2,
        "threads_of_the_machine": 2,
        "threads_used": 2,
        "memory_bytes": 8 << 30,
        "system": "Linux",
        "python": "3.12",
        "versions": {"dflash-chat": "1"},
        "load_before": 0.1,
    }
    file = {"file": "f.gguf", "name": "A Model", "architecture": "llama", "quantisation": "Q4_0", "bytes": 25_000_000}
    files = {key: {**file, "sha256": key} for key in ("target", "dflash", "dflash2")}
    return Results(machine, files, plan, "dflash-chat bench", "2026-01-02 03:04 +0000", list(parts), finished=True)
