"""The whole recipe on a tiny target: interrupted, gone on with, and ending in two files that the program finds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.catalog import modes_for
from engine.errors import ModelFileError, PromptError
from engine.events import Mode
from engine.gguf_file import read_header
from engine.train import command
from engine.train.recipe import STEPS, Recipe, Run
from tests.drafter_files import write_target


class Stopped(Exception):
    pass


def silent(_step: str, _text: str) -> None:
    pass


@pytest.fixture
def recipe(tiny_file: Path) -> Recipe:
    return Recipe(
        str(tiny_file), hours=20 / 3600, layers=1, block=4, draft_vocabulary=240, matrices="Q8_0", tables="Q8_0",
        questions={"sums": ["What is 30 plus 40?", "What is 7 plus 70?"]}, answer_tokens=40, threads=1,
    )  # fmt: skip


def stop_in(step: str, after: int) -> Callable[[str, str], None]:
    seen = 0

    def report(now: str, _text: str) -> None:
        nonlocal seen
        seen += now == step
        if seen > after:
            raise Stopped

    return report


def test_an_interrupted_run_goes_on_and_ends_with_two_drafters_and_a_card(recipe: Recipe, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="training needs PyTorch (the extra [train])")
    out = tmp_path / "out"
    for step in ("corpus", "training", "evaluation"):
        with pytest.raises(Stopped):
            Run(recipe, out, stop_in(step, 0)).carry_out()
    Run(recipe, out, silent).carry_out()
    infos = {info.mode: info for info in modes_for(read_header(recipe.target), [out])}
    for mode in (Mode.DFLASH, Mode.DFLASH2):
        assert infos[mode].reason is None
        drafter = read_header(str(infos[mode].drafter))
        assert drafter.metadata["general.license"] == "apache-2.0"
        assert drafter.metadata["training.steps"] > 0
        assert drafter.metadata["training.tokens"] > 0
    card = (out / "README.md").read_text("utf-8")
    for words in ("Acceptance length", "without the selector", "without the convolution", "Speed", "95 %", "sums"):
        assert words in card
    for picture in ("loss.svg", "acceptance.svg"):
        assert picture in card
        assert (out / picture).read_text("utf-8").startswith("<svg")
    # once more, nothing is left to do but to look at the results
    before = (out / "work" / "results.json").read_text("utf-8")
    Run(recipe, out, silent).carry_out(("evaluation",))
    assert (out / "work" / "results.json").read_text("utf-8") == before


def test_steps_without_what_they_need_say_which_step_is_missing(recipe: Recipe, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="training needs PyTorch (the extra [train])")
    with pytest.raises(ModelFileError, match="'corpus'"):
        Run(recipe, tmp_path / "out", silent).carry_out(("training",))


def test_a_folder_belongs_to_one_design(recipe: Recipe, tmp_path: Path) -> None:
    Run(recipe, tmp_path / "out", silent)
    with pytest.raises(ModelFileError, match="another target or with other settings"):
        Run(replace(recipe, layers=2), tmp_path / "out", silent)


def test_a_target_without_a_tap_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    other = write_target(tmp_path / "other.gguf", architecture="gemma3")
    with pytest.raises(ModelFileError, match="gemma3"):
        Run(replace(recipe, target=str(other)), tmp_path / "out", silent)


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def test_the_command_lines_arguments_become_a_recipe(tiny_file: Path, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("One?\n\nTwo?\n", "utf-8")
    questions = tmp_path / "questions.json"
    questions.write_text(json.dumps({"chat": ["Hello?"]}), "utf-8")
    recipe = command._recipe(
        parsed(
            str(tiny_file), "--out", "x", "--method", "dflash2", "--hours", "0.5", "--layers", "3", "--block", "6",
            "--prompts", str(prompts), "--evaluate-on", str(questions), "--threads", "1",
        )
    )  # fmt: skip
    assert recipe == Recipe(
        str(tiny_file), (Mode.DFLASH2,), 0.5, 3, 6, prompts=("One?", "Two?"), questions={"chat": ["Hello?"]}, threads=1
    )
    assert command.STEPS == STEPS
    questions.write_text("[1]", "utf-8")
    with pytest.raises(PromptError, match=r"questions\.json"):
        command._recipe(parsed(str(tiny_file), "--out", "x", "--evaluate-on", str(questions)))
    with pytest.raises(SystemExit):
        parsed(str(tiny_file), "--out", "x", "--hours", "0")
