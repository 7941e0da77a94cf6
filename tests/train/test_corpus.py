"""Prompts, the corpus that a target writes, and its features: all of it on a tiny target, without PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.train.batch_target import BatchTarget, best_tokens, turn_frame
from engine.train.corpus import SELF_WRITTEN, Conversation, CorpusWriter, question, read_corpus, read_shard
from engine.train.features import LABELS, extract, read_examples
from engine.train.prompts import STARTERS, Prompt, composed
from engine.vocabulary import Message
from tests.prompts import PROMPTS
from tests.train.tiny import QUESTIONS

TAPS = (1, 3)


def asked(count: int) -> list[Prompt]:
    return [Prompt("sums", text) for text in QUESTIONS[:count]]


def written(target: BatchTarget, folder: Path, prompts: list[Prompt], conversations: int) -> list[Conversation]:
    writer = CorpusWriter(target, TAPS, folder, prompts, 24, seed=0)
    writer.run(lambda done, _tokens: done >= conversations)
    return read_corpus([folder])


def greedy(target: BatchTarget, ids: list[int], tokens: int) -> list[int]:
    """One token at a time."""
    target.cut(0, 0)
    made: list[int] = []
    todo = ids
    while len(made) < tokens and not (made and target.vocabulary.is_stop(made[-1])):
        made.append(int(target.evaluate([(0, todo)], last_only=True).logits[0].argmax()))
        todo = made[-1:]
    target.cut(0, 0)
    return made


# prompts


def test_composed_prompts_differ_and_cover_every_kind() -> None:
    prompts = composed(500)
    assert len({prompt.text for prompt in prompts}) == len(prompts) == 500
    assert len({prompt.kind for prompt in prompts[:20]}) == 10
    assert composed(50) == prompts[:50]
    assert not any("{" in prompt.text and prompt.kind != "code" for prompt in prompts)


def test_no_composed_prompt_is_one_that_drafters_are_measured_on() -> None:
    measured = {text for group in PROMPTS.values() for text in group}
    assert not measured & {prompt.text for prompt in composed(5000)}
    assert "" in STARTERS


# the best few tokens


def test_best_tokens_are_those_of_a_sorted_row() -> None:
    logits = np.random.default_rng(0).standard_normal((7, 300)).astype(np.float32) * 4
    ids, scores = best_tokens(logits, 5)
    for row in range(7):
        order = np.argsort(-logits[row], kind="stable")[:5]
        kept = np.isfinite(scores[row])
        assert kept[0]
        assert ids[row][kept].tolist() == order[: kept.sum()].tolist()
        assert np.array_equal(scores[row][kept], logits[row][order[: kept.sum()]])
        assert (logits[row][order[kept.sum() :]] < logits[row].max() - 7).all()


# the corpus


def test_half_of_the_answers_are_what_greedy_decoding_says(batch_target: BatchTarget, tmp_path: Path) -> None:
    found = written(batch_target, tmp_path, asked(40), 40)
    certain = [c for c in found if c.temperature == 0]
    assert 0.3 * len(found) <= len(certain) <= 0.7 * len(found)
    assert {c.kind for c in found} == {"sums"}
    same = 0
    for c in certain:
        prompt, answer = c.ids[: c.start].tolist(), c.ids[c.start :].tolist()
        same += answer == greedy(batch_target, prompt, len(answer))
    assert same >= 0.8 * len(certain)  # batches round differently, and a tiny random target has many near-ties


def test_a_question_is_rendered_like_in_a_chat(batch_target: BatchTarget, tmp_path: Path) -> None:
    vocabulary = batch_target.vocabulary
    for c in written(batch_target, tmp_path, asked(8), 8):
        text = question(c, vocabulary)
        assert text in QUESTIONS
        assert c.ids[: c.start].tolist() == vocabulary.render([Message("user", text)])


def test_without_prompts_the_target_writes_the_questions_behind_its_user_header(
    batch_target: BatchTarget, tmp_path: Path
) -> None:
    found = written(batch_target, tmp_path, [], 12)
    head, bridge = turn_frame(batch_target.vocabulary)
    assert found
    for c in found:
        assert c.kind == SELF_WRITTEN
        assert c.ids[: len(head)].tolist() == head
        assert c.ids[c.start - len(bridge) : c.start].tolist() == bridge
        assert len(c.ids) <= batch_target.context


def test_an_interrupted_corpus_goes_on_and_asks_nothing_twice(batch_target: BatchTarget, tmp_path: Path) -> None:
    first = written(batch_target, tmp_path, asked(30), 12)
    again = written(batch_target, tmp_path, asked(30), 30)
    assert len(first) >= 12
    prompts = [question(c, batch_target.vocabulary) for c in again]
    assert len(prompts) == len(set(prompts)) >= 30
    assert set(prompts) >= {question(c, batch_target.vocabulary) for c in first}


def test_repetitions_are_left_out_and_the_split_is_by_question(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        ids = rng.integers(0, 200, 20).astype(np.int32)
        other = ids.copy()
        other[10:] = 1  # another answer to the same question
        found += [(ids, 0.0), (ids, 0.7), (other, 0.0)]
    np.savez(
        tmp_path / "0000.npz",
        ids=np.concatenate([ids for ids, _ in found]), lengths=[20] * len(found), starts=[8] * len(found),
        temperatures=[t for _, t in found], kinds=["x"] * len(found),
    )  # fmt: skip
    kept = read_corpus([tmp_path])
    assert len(kept) == 800
    sides: dict[bytes, set[bool]] = {}
    for c in kept:
        sides.setdefault(c.ids[:8].tobytes(), set()).add(c.held_out)
    assert all(len(side) == 1 for side in sides.values())
    assert 0.01 < np.mean([c.held_out for c in kept]) < 0.1


def test_a_ready_corpus_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ready.npz"
    np.savez(path, ids=np.arange(9, dtype=np.uint16), lens=[5, 4], rs=[2, 1], temp=[0, 0.7])
    first, second = read_shard(path)
    assert (first.ids.tolist(), first.start, first.temperature, first.kind) == ([0, 1, 2, 3, 4], 2, 0.0, SELF_WRITTEN)
    assert (second.ids.tolist(), second.start) == ([5, 6, 7, 8], 1)
    np.savez(path, nothing=[1])
    with pytest.raises(ModelFileError, match=r"ready\.npz"):
        read_shard(path)


# features


def test_features_and_labels_are_those_of_reading_the_conversation(batch_target: BatchTarget, tmp_path: Path) -> None:
    conversations = written(batch_target, tmp_path / "corpus", asked(6), 6)
    extract(batch_target, TAPS, conversations, tmp_path / "features")
    examples = read_examples(tmp_path / "features")
    assert len(examples) == len(conversations)
    for c, example in zip(conversations, examples):
        assert example.ids.tolist() == c.ids.tolist()
        assert (example.start, example.kind) == (c.start, c.kind)
        result = batch_target.evaluate([(0, c.ids.tolist())])
        expected = np.concatenate(result.features, axis=1)
        assert np.allclose(example.features, expected, atol=2e-3 * abs(expected).max())
        answer = slice(c.start - 1, len(c.ids))
        assert (example.label_ids[answer, 0] == result.logits[answer].argmax(axis=1)).mean() > 0.9
        assert example.label_ids.shape == (len(c.ids), LABELS)
        assert (example.label_logits[answer, 0] == 0).all()
        batch_target.cut(0, 0)


def test_what_is_kept_while_writing_is_what_reading_gives(batch_target: BatchTarget, tmp_path: Path) -> None:
    """Prompts and single tokens of many sequences, each in the right row."""
    for prompts in (asked(20), []):
        folder = tmp_path / str(len(prompts))
        conversations = written(batch_target, folder, prompts, 20)
        batch_target.cut(0, 0)  # what was still being written
        for c, kept in zip(conversations, read_examples(folder)):
            assert (kept.ids.tolist(), kept.start, kept.temperature) == (c.ids.tolist(), c.start, c.temperature)
            result = batch_target.evaluate([(0, c.ids.tolist())])
            expected = np.concatenate(result.features, axis=1)
            scale = abs(expected).max()
            assert np.allclose(kept.features[:-1], expected[:-1], atol=5e-3 * scale)
            assert (kept.features[-1] == 0).all()
            answer = slice(c.start - 1, len(c.ids) - 1)
            assert (kept.label_ids[answer, 0] == result.logits[answer].argmax(axis=1)).mean() > 0.8
            assert np.isneginf(kept.label_logits[: c.start - 1]).all()
            batch_target.cut(0, 0)


def test_features_go_on_behind_the_last_shard_and_refuse_other_layers(
    batch_target: BatchTarget, tmp_path: Path
) -> None:
    conversations = written(batch_target, tmp_path / "corpus", asked(100), 100)
    folder = tmp_path / "features"
    assert extract(batch_target, TAPS, conversations, folder, lambda done, _all: done < 1) == 1
    before = (folder / "00000.npz").stat().st_mtime_ns
    assert len(read_examples(folder)) < len(conversations)
    extract(batch_target, TAPS, conversations, folder)
    assert (folder / "00000.npz").stat().st_mtime_ns == before
    assert len(read_examples(folder)) == len(conversations)
    with pytest.raises(ModelFileError, match="other layers"):
        extract(batch_target, (1, 2), conversations, folder)
