"""What a drafter's cache holds after any course of a conversation: what a fresh prefill of the same tokens would leave.

A hole, a position too many or one of another text would show in nothing but the acceptance, of which a random drafter
has none; so keys and values are compared, and the block that is drafted from them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine import ggml
from engine.catalog import modes_for
from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.errors import ContextTooSmall
from engine.events import Mode, SamplerSettings
from engine.gguf_file import read_header
from engine.graph import Device
from engine.session import Session
from engine.target import PREFILL_CHUNK, Target
from tests.conversation import abandoned_after, ask, cancelled_after
from tests.drafter_comparison import assert_same_but_near_ties
from tests.fixture_files import relative_difference

if TYPE_CHECKING:
    from tests.conftest import DrafterFiles
    from tests.engine.conftest import TinyModels

TOLERANCE = 1e-3
DRAFTING = (Mode.DFLASH, Mode.DFLASH2)


class Conversation:
    """A session, and a second target with drafters to compare with; all keys and values are float32."""

    def __init__(self, target: Path, drafters: dict[Mode, Path], device: Device, context: int, own: ExitStack) -> None:
        header = read_header(target)
        modes = modes_for(header, given={mode: str(path) for mode, path in drafters.items()})
        self.target = Target(header, context=context, threads=1, exact=True)
        self.session = own.enter_context(Session(self.target, modes, key_value_type=ggml.F32))
        self._fresh = own.enter_context(closing(Target(header, context=context, threads=1, exact=True)))
        shared = SharedTensors(self._fresh.embeddings, self._fresh.head)
        self._fresh_drafters = {
            mode: own.enter_context(
                closing(Drafter(str(path), device, context=context, shared=shared, key_value_type=ggml.F32))
            )
            for mode, path in drafters.items()
        }

    def drafter(self, mode: Mode) -> Drafter | None:
        """The session's own, once it has been used."""
        return self.session._drafters.get(mode)

    def prefilled(self, mode: Mode, chunk: int = PREFILL_CHUNK) -> Drafter:
        """A drafter whose cache was filled by a fresh prefill of the tokens that the session's own has committed.

        Reading again for one drafter may have been cancelled where the other one still holds more than the target;
        those positions are cut before the next answer.
        """
        ours, theirs = self.drafter(mode), self._fresh_drafters[mode]
        assert ours is not None
        tokens = self.target.tokens()[: ours.committed()]
        self._fresh.tap(theirs.config.target_layers)
        self._fresh.cut(0, 0)
        theirs.cut(0, 0)
        for begin in range(0, len(tokens), chunk):
            theirs.inject(self._fresh.evaluate([(0, tokens[begin : begin + chunk])], last_only=True).features)
        return theirs

    def check(self, tolerance: float = TOLERANCE) -> None:
        """Every drafter that was used holds what a fresh prefill leaves, and drafts the same block from it."""
        for mode in DRAFTING:
            ours = self.drafter(mode)
            if ours is not None and ours.committed():
                theirs = self.prefilled(mode)
                assert distance(ours, theirs) < tolerance
                if ours.committed() == theirs.committed():
                    anchor = self.target.tokens()[0]
                    assert_same_but_near_ties(ours.draft([anchor])[0], theirs.draft([anchor])[0], tolerance)


def distance(ours: Drafter, theirs: Drafter) -> float:
    """The largest difference between keys and between values of their positions, relative to the largest value."""
    n = theirs.committed()
    return max(relative_difference(a[:, :n], b) for a, b in zip(ours.key_values(), theirs.key_values()))


@pytest.fixture
def tiny(tiny_models: TinyModels, device: Device) -> Iterator[Callable[[int], Conversation]]:
    """Makes a conversation with a context of so many tokens."""
    drafters = {Mode.DFLASH: tiny_models.wandering_v1, Mode.DFLASH2: tiny_models.wandering_v2}
    with ExitStack() as own:
        yield lambda context: Conversation(tiny_models.wandering, drafters, device, context, own)


# --- any course -------------------------------------------------------------------------------------------------------


def take_a_step(session: Session, rng: random.Random) -> str:
    """One thing that a user can do; says which."""
    words = rng.choice(["tell me more ", "비가 옵니다. ", "a\n", "<|im_end|> "])
    question = words * rng.choice([1, 2, 3, 9, 40])
    mode = rng.choice(list(Mode))
    settings = {
        "mode": mode,
        "sampler": SamplerSettings(temperature=rng.choice([0.0, 1.0, 2.0]), top_k=8, seed=rng.randrange(99)),
        "max_tokens": rng.choice([1, 2, 10, 30, None]),
        "draft_length": rng.choice([None, 1, 3, 7]),
    }
    action = rng.choice(["ask", "ask", "ask", "cancel", "abandon", "rewind", "edit", "reset", "restore"])
    if action == "edit":
        session.rewind(session.turns - 1)
    if action in ("ask", "edit"):
        ask(session, question, **settings)
    elif action == "cancel":
        cancelled_after(session, rng.randint(1, 8), question, **settings)
    elif action == "abandon":
        abandoned_after(session, rng.randint(0, 8), question, **settings)
    elif action == "rewind":
        session.rewind(rng.randint(0, session.turns))
    elif action == "reset":
        session.reset(rng.choice([None, "Answer in letters."]))
    elif action == "restore":
        session.restore([("a question", "an answer")] * rng.randint(0, 3))
    return f"{action} {mode.value}"


@pytest.mark.parametrize(("seed", "context"), [(0, 1024), (1, 1024), (2, 256), (3, 256)])
def test_any_course_of_a_conversation(tiny: Callable[[int], Conversation], seed: int, context: int) -> None:
    """In the small context answers end at its last position, turns are left out, and some questions do not fit."""
    rng = random.Random(seed)
    conversation = tiny(context)
    used: set[Mode] = set()
    for _ in range(30):
        try:
            print(take_a_step(conversation.session, rng))
        except ContextTooSmall as error:
            print(error)
        conversation.check()
        used |= {mode for mode in DRAFTING if (drafter := conversation.drafter(mode)) and drafter.committed()}
    assert used == set(DRAFTING)


def test_a_course_on_the_default_target(target_file: Path, drafter_dir: DrafterFiles, device: Device) -> None:
    """A quantised target computes other features in a batch than token by token, so the bound is what that makes of
    the same text; a hole or another text would make several times as much."""
    files = {Mode.DFLASH: drafter_dir.random_v1, Mode.DFLASH2: drafter_dir.random_v2}
    course = [
        (Mode.BASELINE, "Hello!", None),
        (Mode.DFLASH, "What is the capital of France?", None),
        (Mode.DFLASH2, "And of Korea? 한국어로 답해 주세요.", 4),
        (Mode.BASELINE, "Thank you. 🙂", None),
        (Mode.DFLASH2, "Say that again.", None),
        (Mode.DFLASH, "And once more.", None),
    ]
    with ExitStack() as own:
        conversation = Conversation(target_file, files, device, 512, own)
        for step, (mode, question, cancel_after) in enumerate(course):
            settings = {"mode": mode, "max_tokens": 8, "sampler": SamplerSettings(temperature=1.0, top_k=8, seed=step)}
            if cancel_after:
                cancelled_after(conversation.session, cancel_after, question, **settings)
            else:
                ask(conversation.session, question, **settings)
        conversation.session.rewind(4)
        ask(conversation.session, "Say it differently.", mode=Mode.DFLASH2, max_tokens=8)
        for mode in DRAFTING:
            ours = conversation.drafter(mode)
            assert ours is not None
            singly = [array.copy() for array in conversation.prefilled(mode, 1).key_values()]
            at_once = conversation.prefilled(mode)
            noise = max(relative_difference(a, b) for a, b in zip(singly, at_once.key_values()))
            difference = distance(ours, at_once)
            print(f"{mode.value}: {ours.committed()} positions, difference {difference:.1e}, noise {noise:.1e}")
            assert noise < 0.15
            assert difference < 2 * noise


# --- later turns ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", DRAFTING)
@pytest.mark.parametrize("before", list(Mode))
def test_later_turns_draft_from_all_positions(tiny: Callable[[int], Conversation], mode: Mode, before: Mode) -> None:
    """Turns 2 and 5 are drafted, the others are decoded in any mode."""
    conversation = tiny(2048)
    for turn in range(1, 6):
        now = mode if turn in (2, 5) else before
        ask(conversation.session, f"question {turn}", mode=now, max_tokens=12)
        if now is mode:
            drafter = conversation.drafter(mode)
            assert drafter is not None and drafter.committed() == conversation.target.committed()
            conversation.check()


@pytest.mark.parametrize("mode", DRAFTING)
def test_a_question_of_several_chunks(tiny: Callable[[int], Conversation], mode: Mode) -> None:
    conversation = tiny(2048)
    ask(conversation.session, "long " * 250, mode=mode, max_tokens=5)
    assert conversation.target.committed() > 2 * PREFILL_CHUNK
    conversation.check()
