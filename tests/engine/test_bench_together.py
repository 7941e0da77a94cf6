"""Several answers at once: every one has the tokens it gets alone, in all modes, and its own figures."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest

from engine import ggml
from engine.bench.session import CycleRecorder
from engine.bench.together import Asked, Together
from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.errors import ContextTooSmall
from engine.events import Answered, Memory, Mode, SamplerSettings, StopReason, Tokens
from engine.gguf_file import read_header
from engine.graph import Device
from engine.sampling import Sampler
from engine.session import Session
from engine.target import Target
from engine.vocabulary import Message

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

PLACES = 4
LIMIT = 40
QUESTIONS = ("first", "a second question", "3", "the fourth one, longer than the others", "fifth", "six")
GREEDY = SamplerSettings(temperature=0.0)


@pytest.fixture(scope="module")
def target(tiny_models: TinyModels) -> Iterator[Target]:
    """In float32, where batches of any size agree. It ends its answers itself, now and then."""
    header = read_header(tiny_models.wandering)
    with closing(Target(header, context=256, threads=1, sequences=PLACES, exact=True)) as target:
        yield target


class Answers:
    """What a run gave for each question."""

    def __init__(
        self,
        target: Target,
        drafter: Drafter | None,
        places: int,
        drafts: int,
        settings: SamplerSettings = GREEDY,
        *,
        cancel_after: int | None = None,
    ) -> None:
        target.tap(drafter.config.target_layers if drafter else ())
        mode = Mode.BASELINE if drafter is None else Mode.DFLASH2
        asked = []
        self.recorders = [CycleRecorder(mode, target.file_name, None) for _ in QUESTIONS]
        for number, (text, recorder) in enumerate(zip(QUESTIONS, self.recorders)):
            ids = target.vocabulary.render([Message("user", text)])
            own = SamplerSettings(settings.temperature, seed=number)
            asked.append(Asked(ids, Sampler(own, ids), LIMIT, recorder))
        cancel = threading.Event()
        run = Together(target, drafter, places, drafts, None, lambda: Memory(0, 0, 0, 0), cancel)
        self.streamed: dict[int, list[int]] = {number: [] for number in range(len(QUESTIONS))}
        self.ended: dict[int, Answered] = {}
        self.most = 0  # answers that were under way at the same time
        for count, (number, event) in enumerate(run.answers(asked)):
            if isinstance(event, Tokens):
                self.streamed[number] += event.ids
            else:
                assert isinstance(event, Answered) and number not in self.ended
                self.ended[number] = event
            self.most = max(self.most, sum(bool(ids) for ids in self.streamed.values()) - len(self.ended))
            if count == cancel_after:
                cancel.set()
        self.cycles_s = run.cycles_s

    @property
    def ids(self) -> list[tuple[int, ...]]:
        return [self.ended[number].token_ids for number in range(len(QUESTIONS))]


@pytest.mark.parametrize("version", [0, 1, 2], ids=["baseline", "dflash", "dflash2"])
def test_four_at_once_say_what_each_says_alone(
    target: Target, tiny_models: TinyModels, device: Device, version: int
) -> None:
    """And what a conversation says that is asked the same."""
    file = {0: None, 1: tiny_models.wandering_v1, 2: tiny_models.wandering_v2}[version]
    with ExitStack() as own:
        drafter = None
        if file is not None:
            shared = SharedTensors(target.embeddings, target.head)
            drafter = own.enter_context(
                closing(
                    Drafter(str(file), device, context=256, sequences=PLACES, shared=shared, key_value_type=ggml.F32)
                )
            )
        alone = Answers(target, drafter, 1, 3)
        together = Answers(target, drafter, PLACES, 3)
        plain = alone if drafter is None else Answers(target, None, 1, 0)
        assert together.ids == alone.ids == plain.ids
        assert alone.most == 1 and together.most == PLACES, "a place that is free is taken at once"
        assert all(tuple(together.streamed[n]) == answered.token_ids for n, answered in together.ended.items())
        reasons = {answered.statistics.stop_reason for answered in together.ended.values()}
        assert reasons == {StopReason.STOP_TOKEN, StopReason.MAX_TOKENS}, "both ends were met"
        assert together.cycles_s > 0
        for one, other in zip(alone.recorders, together.recorders):
            tokens = sum(emitted for _, _, emitted, *_ in other.cycles)
            assert tokens == sum(emitted for _, _, emitted, *_ in one.cycles)
            if drafter is not None:
                assert [cycle[:3] for cycle in one.cycles] == [cycle[:3] for cycle in other.cycles]
        if drafter is not None:
            accepted = sum(cycle[1] for recorder in together.recorders for cycle in recorder.cycles)
            assert accepted > 0, "drafts were accepted, by chance"
        sampled = [Answers(target, drafter, n, 3, SamplerSettings(temperature=1.0)).ids for n in (1, PLACES)]
        if drafter is None:  # with drafts, the random numbers fall to other draws
            assert sampled[0] == sampled[1]
    assert all(not target.tokens(sequence) for sequence in range(PLACES)), "nothing stays in the caches"


def test_a_cancelled_run_ends_with_what_was_written(target: Target) -> None:
    run = Answers(target, None, PLACES, 0, cancel_after=8)
    assert len(run.ended) < len(QUESTIONS), "some were never asked"
    assert {number for number, ids in run.streamed.items() if ids} == set(run.ended)
    stopped = [a for a in run.ended.values() if a.statistics.stop_reason is StopReason.CANCELLED]
    assert 1 <= len(stopped) <= PLACES
    for number, answered in run.ended.items():
        assert answered.token_ids == tuple(run.streamed[number]) and 0 < len(answered.token_ids) < LIMIT


def test_a_question_that_does_not_fit_is_refused(tiny_models: TinyModels) -> None:
    with closing(Target(read_header(tiny_models.wandering), context=64, threads=1)) as small:
        ids = small.vocabulary.render([Message("user", "x" * 100)])
        asked = [Asked(ids, Sampler(GREEDY), 5, CycleRecorder(Mode.BASELINE, "", None))]
        run = Together(small, None, 1, 0, None, lambda: Memory(0, 0, 0, 0), threading.Event())
        with pytest.raises(ContextTooSmall, match="longer context"):
            list(run.answers(asked))


def test_one_place_is_what_a_conversation_does(wandering: Session) -> None:
    """Token for token, and cycle for cycle."""
    target, cancel = wandering._target, threading.Event()
    for mode in Mode:
        drafter = wandering._drafter(mode, cancel)
        target.tap(drafter.config.target_layers if drafter else ())
        ids = target.vocabulary.render([Message("user", QUESTIONS[1])])
        recorder = CycleRecorder(mode, "", None)
        run = Together(target, drafter, 1, 3, None, wandering.memory, cancel)
        *_, (_, found) = run.answers([Asked(ids, Sampler(GREEDY, ids), LIMIT, recorder)])
        wandering.recorder_type = CycleRecorder
        wandering.reset()
        *_, answered = wandering.ask(QUESTIONS[1], mode=mode, max_tokens=LIMIT, draft_length=3)
        assert isinstance(found, Answered) and isinstance(answered, Answered)
        assert found.token_ids == answered.token_ids and found.text == answered.text
        assert [c[:3] for c in recorder.cycles] == [c[:3] for c in CycleRecorder.newest.cycles]
