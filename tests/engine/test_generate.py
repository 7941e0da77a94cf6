"""Cycles by themselves: several sequences at once, and what each cycle leaves in both caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from engine import ggml
from engine.draft_length import DraftLength
from engine.drafter import Drafter
from engine.drafter_weights import SharedTensors
from engine.events import SamplerSettings
from engine.generate import Outcome, Stream, run_cycle
from engine.gguf_file import read_header
from engine.graph import Device
from engine.sampling import Sampler
from engine.target import Target
from tests.fixture_files import relative_difference
from tests.steady_length import SteadyLength
from tests.tiny_chat import LETTERS

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

TEXTS = ("one question", "another question, a little longer", "c")
GREEDY = SamplerSettings(temperature=0.0)
PENALISED = SamplerSettings(temperature=0.0, repetition_penalty=1.3, frequency_penalty=0.4, penalty_last_n=16)


class Pair:
    """A target and a drafter with three sequences each, all keys and values float32."""

    def __init__(self, own: ExitStack, target: Path, drafter: Path, device: Device) -> None:
        self.target = own.enter_context(
            closing(Target(read_header(target), context=256, threads=1, sequences=3, exact=True))
        )
        shared = SharedTensors(self.target.embeddings, self.target.head)
        self.drafter = own.enter_context(
            closing(Drafter(str(drafter), device, context=256, sequences=3, shared=shared, key_value_type=ggml.F32))
        )

    def begin(
        self, sequence: int, text: str, settings: SamplerSettings, drafts: int, *, drafted: bool = True
    ) -> Stream:
        """Read a text afresh and choose the first anchor."""
        ids = self.target.vocabulary.tokenize(text)
        self.target.tap(self.drafter.config.target_layers if drafted else ())
        self.target.cut(sequence, 0)
        self.drafter.cut(sequence, 0)
        result = self.target.evaluate([(sequence, ids)], last_only=True)
        if drafted:
            self.drafter.inject(result.features, {sequence: len(ids)})
        sampler = Sampler(settings, ids)
        anchor = int(sampler.choices(result.logits)[0])
        sampler.accept((anchor,))
        return Stream(sequence, sampler, anchor, drafts)

    def key_values(self, sequence: int) -> list[np.ndarray]:
        return [array.copy() for array in self.drafter.key_values(sequence)]


@pytest.fixture(scope="module", params=[1, 2], ids=["v1", "v2"])
def pair(request: pytest.FixtureRequest, tiny_models: TinyModels, device: Device) -> Iterator[Pair]:
    with ExitStack() as own:
        drafter = tiny_models.wandering_v2 if request.param == 2 else tiny_models.wandering_v1
        yield Pair(own, tiny_models.wandering, drafter, device)


def run(
    pair: Pair, streams: Sequence[Stream], cycles: int, *, drafted: bool = True, length: DraftLength | None = None
) -> list[list[Outcome]]:
    """The outcomes of each stream."""
    outcomes: list[list[Outcome]] = [[] for _ in streams]
    for _ in range(cycles):
        before = [(stream.anchor, pair.target.committed(stream.sequence)) for stream in streams]
        results, took = run_cycle(pair.target, pair.drafter if drafted else None, streams, length)
        assert took.verify_s > 0
        if length is None:
            assert (took.draft_s is None) == (not any(stream.drafts for stream in streams))
        for stream, (anchor, start), outcome, all_of_it in zip(streams, before, results, outcomes):
            all_of_it.append(outcome)
            assert 0 <= outcome.accepted <= outcome.drafted <= stream.drafts
            assert length is not None or outcome.drafted == stream.drafts
            assert len(outcome.tokens) == outcome.accepted + 1 and stream.anchor == outcome.tokens[-1]
            held = pair.target.tokens(stream.sequence)
            assert held[start:] == [anchor, *outcome.tokens[:-1]], "the anchor and the accepted drafts, no more"
            if drafted:
                assert pair.drafter.committed(stream.sequence) == len(held)
    return outcomes


def ids_of(outcomes: Sequence[Outcome]) -> list[int]:
    return [token for outcome in outcomes for token in outcome.tokens]


@pytest.mark.parametrize("settings", [GREEDY, PENALISED, SamplerSettings(1.5, top_k=8, seed=4)])
def test_several_sequences_get_what_each_gets_alone(pair: Pair, settings: SamplerSettings) -> None:
    """Tokens and the drafter's keys and values; they verify different numbers of drafts, one of them none."""
    # A drawn path takes as many random numbers as the longest block of the pass has drafts.
    lengths = (3, 0, 7) if settings.temperature == 0 else (5, 5, 5)
    alone, caches = [], []
    for sequence, (text, drafts) in enumerate(zip(TEXTS, lengths)):
        stream = pair.begin(sequence, text, settings, drafts)
        alone.append(run(pair, [stream], 12)[0])
        caches.append(pair.key_values(sequence))
    for order in ((0, 1, 2), (2, 0)):
        streams = [pair.begin(sequence, TEXTS[sequence], settings, lengths[sequence]) for sequence in order]
        together = run(pair, streams, 12)
        for sequence, outcomes in zip(order, together):
            assert ids_of(outcomes)[:12] == ids_of(alone[sequence])[:12]
            if lengths[sequence] == max(lengths):  # a shorter block than the others' drafts other tokens
                assert outcomes == alone[sequence]
                for ours, theirs in zip(pair.key_values(sequence), caches[sequence]):
                    assert relative_difference(ours, theirs) < 1e-4
    if settings.temperature > 0:
        assert any(outcome.accepted for outcomes in alone for outcome in outcomes)


@pytest.mark.parametrize("settings", [GREEDY, PENALISED])
@pytest.mark.parametrize("drafts", [1, 2, 3, 7])
def test_greedy_cycles_give_what_plain_decoding_gives(pair: Pair, settings: SamplerSettings, drafts: int) -> None:
    plain = ids_of(run(pair, [pair.begin(0, TEXTS[1], settings, 0, drafted=False)], 40, drafted=False)[0])
    drafted = ids_of(run(pair, [pair.begin(0, TEXTS[1], settings, drafts)], 40)[0])
    assert drafted[:40] == plain


@pytest.mark.parametrize("settings", [GREEDY, PENALISED])
def test_lengths_decided_in_each_cycle_change_no_token(pair: Pair, settings: SamplerSettings) -> None:
    """Alone, and three sequences together, of which one may have fewer drafts."""
    plain = [
        ids_of(run(pair, [pair.begin(0, text, settings, 0, drafted=False)], 40, drafted=False)[0]) for text in TEXTS
    ]
    length = SteadyLength(pair.drafter.config.block_size, row=0.02)
    alone = run(pair, [pair.begin(0, TEXTS[1], settings, 7)], 40, length=length)
    assert ids_of(alone[0])[:40] == plain[1]
    assert len({outcome.drafted for outcome in alone[0]}) > 2, "the lengths differ"
    streams = [pair.begin(sequence, text, settings, 7 - 3 * sequence) for sequence, text in enumerate(TEXTS)]
    for outcomes, expected in zip(run(pair, streams, 40, length=length), plain):
        assert ids_of(outcomes)[:40] == expected


def test_plain_decoding_is_the_argmax_of_each_pass(pair: Pair) -> None:
    stream = pair.begin(0, TEXTS[0], GREEDY, 0, drafted=False)
    anchor = stream.anchor
    cycles = ids_of(run(pair, [stream], 20, drafted=False)[0])
    pair.target.cut(0, len(TEXTS[0]))
    by_hand = []
    for _ in range(20):
        anchor = int(pair.target.evaluate([(0, [anchor])]).logits[0].argmax())
        by_hand.append(anchor)
    assert cycles == by_hand


def test_the_draft_length_may_change_from_cycle_to_cycle(pair: Pair) -> None:
    """And a cycle without drafts leaves no hole."""
    plain = ids_of(run(pair, [pair.begin(0, TEXTS[2], GREEDY, 0)], 40)[0])
    stream = pair.begin(0, TEXTS[2], GREEDY, 0)
    ids: list[int] = []
    for drafts in (3, 0, 7, 1, 0, 0, 5, 2) * 3:
        stream.drafts = drafts
        ids += ids_of(run(pair, [stream], 1)[0])
    assert ids[: len(plain)] == plain[: len(ids)]
    ours, held = pair.key_values(0), list(pair.target.tokens())
    pair.target.cut(0, 0)
    pair.drafter.cut(0, 0)
    pair.drafter.inject(pair.target.evaluate([(0, held)], last_only=True).features)
    for array, fresh in zip(ours, pair.key_values(0)):
        assert relative_difference(array, fresh) < 1e-4


@pytest.mark.parametrize("last_n", [15, 20])
def test_accepted_drafts_count_in_the_penalties_of_those_behind(
    tiny_models: TinyModels, device: Device, last_n: int
) -> None:
    """The ring has 16 letters: of the 15 newest none comes next, but among 20 there is the next, and it is not said."""
    settings = SamplerSettings(temperature=0.0, presence_penalty=300, penalty_last_n=last_n)
    with ExitStack() as own:
        pair = Pair(own, tiny_models.counting, tiny_models.counting_v2, device)
        plain = ids_of(run(pair, [pair.begin(0, "123\n", settings, 0, drafted=False)], 60, drafted=False)[0])
        for drafts in (2, 7):
            stream = pair.begin(0, "123\n", settings, drafts)
            outcomes: list[Outcome] = []
            while len(ids_of(outcomes)) < 60:
                outcomes += run(pair, [stream], 1)[0]
            assert ids_of(outcomes)[:60] == plain
            if last_n == 15:
                assert all(outcome.accepted == drafts for outcome in outcomes)
    in_order = all(LETTERS[(LETTERS.index(a) + 1) % 16] == b for a, b in pairwise(plain) if a in LETTERS)
    assert in_order == (last_n == 15)
