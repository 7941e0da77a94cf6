"""The drafter in PyTorch against the reference's records; and training on a tiny target, from nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs PyTorch (the extra [train])")

from engine.drafter import Drafter  # noqa: E402
from engine.drafter_config import DrafterConfig  # noqa: E402
from engine.events import Mode, SamplerSettings  # noqa: E402
from engine.gguf_file import read_header  # noqa: E402
from engine.graph import Device  # noqa: E402
from engine.selector import Lattice  # noqa: E402
from engine.target import Target  # noqa: E402
from engine.train import evaluate, model  # noqa: E402
from engine.train.batch_target import BatchTarget  # noqa: E402
from engine.train.blocks import batch, order  # noqa: E402
from engine.train.corpus import Conversation, CorpusWriter, read_corpus  # noqa: E402
from engine.train.export import write_drafter  # noqa: E402
from engine.train.features import Example, extract, read_examples  # noqa: E402
from engine.train.prompts import Prompt  # noqa: E402
from engine.train.start import Design, TargetWeights, draft_vocabulary, drafter_config, initial_weights  # noqa: E402
from engine.train.training import Settings, Training  # noqa: E402
from tests.fixture_files import Record  # noqa: E402
from tests.tiny_chat import MASK  # noqa: E402
from tests.train.tiny import QUESTIONS  # noqa: E402

DESIGN = Design(taps=(2, 3), sources=(3,), block=5, mask_token=MASK, rank=16, top_k=8, draft_vocabulary=260)
STEPS = 150


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def tensors_of(path: Path) -> dict[str, Any]:
    return {
        t.name: torch.tensor(
            gguf.quants.dequantize(np.asarray(t.data), t.tensor_type).reshape(tuple(int(n) for n in t.shape[::-1]))
        )
        for t in gguf.GGUFReader(path).tensors
    }


@pytest.mark.parametrize("name", ["dflash1", "dflash2", "dflash2_block16_k16", "dflash2_scaled"])
def test_the_model_computes_what_the_reference_recorded(name: str) -> None:
    record = Record.load(name)
    config = DrafterConfig.from_header(read_header(str(record.drafter)))
    w = tensors_of(record.drafter)
    head = w["output.weight" if "output.weight" in w else "token_embd.weight"]
    features: list[np.ndarray] = []
    for cycle in record.cycles:
        features.append(cycle.features)
        given = torch.from_numpy(np.concatenate(features))[None]
        anchors = torch.tensor([[cycle.anchor]])
        table = w["token_embd.weight"]
        embedded = model.masked_block(anchors, table, table[config.mask_token], config.block_size)
        z = model.draft(w, model.inject(w, given, config), embedded, torch.tensor([[cycle.start]]), config)
        logits = model.logits(z, head, config)
        assert np.allclose(z[0, 0].numpy(), cycle.hidden, atol=1e-4)
        assert np.allclose(logits[0, 0].numpy(), cycle.logits, atol=1e-4)
        if cycle.candidates is None:
            continue
        gate = model.linear(z, w["selector_hidden.weight"])[0, 0]
        candidates = torch.from_numpy(cycle.candidates.astype(np.int64))
        unary = torch.from_numpy(cycle.unary)
        codes = w["selector_predecessor.weight"], w["selector_successor.weight"]
        first = model.selector_scores(gate[0], unary[0], codes[0][anchors[0]], codes[1][candidates[0]])
        rest = model.selector_scores(gate[1:], unary[1:], codes[0][candidates[:-1]], codes[1][candidates[1:]])
        assert cycle.score_first is not None
        assert cycle.score_rest is not None
        assert np.allclose(first[0].numpy(), cycle.score_first, atol=1e-4)
        assert np.allclose(rest.numpy(), cycle.score_rest, atol=1e-4)


def test_several_anchors_at_once_are_what_each_is_alone() -> None:
    record = Record.load("dflash2")
    config = DrafterConfig.from_header(read_header(str(record.drafter)))
    w = tensors_of(record.drafter)
    given = torch.from_numpy(np.concatenate([c.features for c in record.cycles]))[None]
    table = w["token_embd.weight"]
    anchors, starts = torch.tensor([[3, 9, 27]]), torch.tensor([[5, 20, 41]])
    embedded = model.masked_block(anchors, table, table[config.mask_token], config.block_size)
    together = model.draft(w, model.inject(w, given, config), embedded, starts, config)
    for i in range(3):
        cut = given[:, : int(starts[0, i])]  # what lies behind an anchor does not exist for it
        alone = model.draft(w, model.inject(w, cut, config), embedded[:, i : i + 1], starts[:, i : i + 1], config)
        assert torch.allclose(together[:, i], alone[:, 0], atol=1e-5)


def test_batches_depend_on_seed_and_step_and_show_every_example() -> None:
    seen = [i for step in range(6) for i in order(9, step, 3, seed=1)]
    assert sorted(seen[:9]) == sorted(seen[9:]) == list(range(9))
    assert order(9, 4, 3, seed=1) == seen[12:15]
    rng = np.random.default_rng(0)
    example = Example(
        np.arange(100, 120, dtype=np.int32), 6, "", 0.0, rng.standard_normal((20, 8)).astype(np.float16),
        np.tile(np.arange(16, dtype=np.int32), (20, 1)) + 1000 * np.arange(20, dtype=np.int32)[:, None],
        np.zeros((20, 16), np.float16),
    )  # fmt: skip
    blocks = batch([example], 12, 4, rng)
    assert blocks.starts.min() >= 6
    assert blocks.starts.max() <= 18
    assert (blocks.tokens[0, :, 0] == 100 + blocks.starts[0]).all()
    for a, start in enumerate(blocks.starts[0]):
        for k in range(1, 5):
            assert blocks.valid[0, a, k - 1] == (start + k < 20)
            if start + k < 20:
                assert blocks.tokens[0, a, k] == 100 + start + k
                assert blocks.soft_ids[0, a, k - 1, 0] == 1000 * (start + k - 1)
    assert np.allclose(blocks.soft.sum(-1), 1)


# --- from nothing to a drafter ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tiny_file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Conversation], Path]:
    """What the tiny target said, and the features of that."""
    folder = tmp_path_factory.mktemp("made")
    target = BatchTarget(read_header(str(tiny_file)), context=256, threads=1, sequences=16)
    try:
        prompts = [Prompt("sums", text) for text in QUESTIONS[::2]]
        writer = CorpusWriter(target, DESIGN.taps, folder / "corpus", prompts, 48, 0)
        writer.run(lambda done, _tokens: done >= len(prompts))
        conversations = [c for c in read_corpus([folder / "corpus"]) if len(c.ids) - c.start > 8]
        extract(target, DESIGN.taps, [c for c in conversations if not c.held_out], folder / "features")
    finally:
        target.close()
    return conversations, folder / "features"


def new_training(
    tiny_file: Path, conversations: list[Conversation], checkpoint: Path, seconds: float, fork: float = 0.0
) -> Training:
    header = read_header(str(tiny_file))
    target = TargetWeights(header)
    answers = [c.ids[c.start :] for c in conversations]
    whole = len(target.embeddings)
    rows = draft_vocabulary(answers, DESIGN.draft_vocabulary, whole)
    counts = np.bincount(np.concatenate(answers), minlength=whole)[rows]
    configs = {}
    for mode in (Mode.DFLASH, Mode.DFLASH2):
        config = drafter_config(header, DESIGN, mode)
        configs[mode.value] = (
            config, initial_weights(config, target, DESIGN.sources, np.ones(2, np.float32), rows, seed=0)
        )  # fmt: skip
    settings = Settings(
        seconds, sequences=4, anchors=12, learning_rate=3e-3, frequent=200, others=16, warm_up=1e-3, fork=fork
    )
    return Training(configs, target.embeddings, target.head[rows], rows, counts, settings, checkpoint)


def save_drafters(training: Training, tiny_file: Path, folder: Path) -> dict[str, Path]:
    paths = {}
    for name, trainee in training.trainees.items():
        weights = {key: tensor.detach().numpy() for key, tensor in trainee.weights.items()}
        paths[name] = write_drafter(
            folder / f"{name}.gguf", trainee.config, weights, training.head.float().numpy(), training.vocabulary,
            read_header(str(tiny_file)), matrices="Q8_0", tables="Q8_0", notes={},
        )  # fmt: skip
    return paths


def always(token: int) -> type[Drafter]:
    """A drafter that proposes one token always."""

    class Always(Drafter):
        def draft(
            self, anchors: Sequence[int], sequences: Sequence[int] = (0,), block_length: int | None = None
        ) -> list[Lattice]:
            drafted = (block_length or self.config.block_size) - 1
            return [Lattice(np.full((drafted, 1), token, np.int32), np.zeros((drafted, 1), np.float32))]

    return Always


def test_a_drafter_trained_for_seconds_is_accepted_more_than_an_untrained_one(
    tiny_file: Path, made: tuple[list[Conversation], Path], device: Device, tmp_path: Path
) -> None:
    conversations, features = made
    training = new_training(tiny_file, conversations, tmp_path / "training.pt", 3600)
    (tmp_path / "untrained").mkdir()
    untrained = save_drafters(training, tiny_file, tmp_path / "untrained")
    training.run(read_examples(features), [], lambda now: now.step < STEPS)
    trained = save_drafters(training, tiny_file, tmp_path)

    held_out = [c for c in conversations if c.held_out]
    assert held_out
    learned = np.concatenate([c.ids[c.start :] for c in conversations if not c.held_out])
    frequent = always(int(np.bincount(learned).argmax()))
    questions = [evaluate.Question(c.kind, tuple(c.ids[: c.start].tolist())) for c in held_out]

    target = Target(read_header(str(tiny_file)), context=256, threads=1)
    try:

        def length(path: Path, kind: type[Drafter] = Drafter) -> float:
            with evaluate.opened(path, target, device, kind) as drafter:
                found = evaluate.answers(target, drafter, questions, 40, 0.0)
            return evaluate.acceptance_length(found).value

        most_frequent = length(trained["dflash"], frequent)
        for name in ("dflash", "dflash2"):
            print(name, length(trained[name]), length(untrained[name]), most_frequent)
            assert length(trained[name]) > 1.1 * max(length(untrained[name]), most_frequent)

        # drafting changes nothing in what is said
        with evaluate.opened(trained["dflash2"], target, device) as drafter:
            for question in questions[:3]:
                greedy = SamplerSettings(temperature=0.0)
                drafted = evaluate.decode(target, drafter, question, 24, 4, greedy)[1]
                plain = evaluate.decode(target, None, question, 24, 0, greedy)[1]
                assert drafted == plain
    finally:
        target.close()


def test_interrupted_training_ends_where_uninterrupted_training_does(
    tiny_file: Path, made: tuple[list[Conversation], Path], tmp_path: Path
) -> None:
    conversations, features = made
    examples = read_examples(features)

    def trained(checkpoint: Path, stops: tuple[int, ...]) -> dict[str, Any]:
        for stop in stops:
            training = new_training(tiny_file, conversations, checkpoint, 1e9)  # of which no share is ever used up
            assert not training.run(examples, [], lambda now: now.step < stop)  # noqa: B023
        return training.trainees["dflash2"].weights

    once = trained(tmp_path / "once.pt", (6,))
    twice = trained(tmp_path / "twice.pt", (2, 6))
    assert all(torch.allclose(once[name], twice[name], atol=1e-5) for name in once)


def test_both_versions_learn_from_the_same_number_of_steps(
    tiny_file: Path, made: tuple[list[Conversation], Path], tmp_path: Path
) -> None:
    conversations, features = made
    training = new_training(tiny_file, conversations, tmp_path / "training.pt", 3600)
    examples = read_examples(features)
    training.run(examples, examples[:8], lambda now: now.step < 3)
    first, second = training.trainees.values()
    assert [step for step, _, _ in first.losses] == [step for step, _, _ in second.losses] == [0, 1, 2]
    assert first.losses[0][2] == 0
    assert second.losses[0][2] > 0
    for trainee in (first, second):
        (measured,) = trainee.measurements
        assert 1 <= measured.acceptance <= DESIGN.block
        assert all(a <= b for a, b in zip(measured.top1, measured.top_k))


def test_at_the_fork_dflash_2_takes_over_what_dflash_has_learnt(
    tiny_file: Path, made: tuple[list[Conversation], Path], tmp_path: Path
) -> None:
    conversations, features = made
    examples = read_examples(features)
    training = new_training(tiny_file, conversations, tmp_path / "training.pt", 3600, fork=0.5)
    first, second = training.trainees.values()
    training.run(examples, [], lambda now: now.step < 3)
    assert training.learning == [first]
    assert not second.losses

    resumed = new_training(tiny_file, conversations, tmp_path / "training.pt", 3600, fork=0.0)
    assert not resumed.forked
    resumed.fork()
    first, second = resumed.trainees.values()
    assert [step for step, _, _ in second.losses] == [0, 1, 2]
    for name, weight in first.weights.items():
        assert torch.equal(weight, second.weights[name])
        ours, theirs = first.optimiser.state[weight], second.optimiser.state[second.weights[name]]
        assert torch.equal(ours["exp_avg"], theirs["exp_avg"])
    blocks = batch(examples[:2], 4, DESIGN.block - 1, np.random.default_rng(0))
    found = {name: resumed._drafted(t.config, t.weights, blocks) for name, t in resumed.trainees.items()}
    assert (found["dflash"][1] == found["dflash2"][1]).all()
    resumed.run(examples, [], lambda now: now.step < 5)
    assert not torch.equal(first.weights["blk.0.attn_q.weight"], second.weights["blk.0.attn_q.weight"])
