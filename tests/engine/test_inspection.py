"""The report about a GGUF file: what it is, what it fits, what is wrong with it; as lines and as JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from engine.gguf_file import CannotOpen
from engine.inspection import Inspection, inspect
from tests.drafter_files import write_drafter, write_target
from tests.fixture_files import FIXTURES, FOLDER
from tests.packaged_target import packaged_target


def checked(report: Inspection) -> str:
    """The text of a report; its JSON form must hold the same."""
    again = json.loads(json.dumps(report.as_dict()))
    assert (again["kind"], again["usable"], again["problems"]) == (report.kind, report.usable, list(report.problems))
    assert list(again["facts"].values()) == list(report.facts.values())
    assert all(label.isidentifier() for label in again["facts"])
    lines = report.lines()
    assert not any("\n" in line for line in lines)
    text = "\n".join(lines)
    assert Path(report.path).name in lines[0]
    assert all(sentence in text for sentence in (*report.problems, *report.fits, *report.unfit))
    return text


@pytest.mark.parametrize("name", FIXTURES)
def test_fixtures(tmp_path: Path, name: str) -> None:
    report = inspect(FOLDER / f"{name}.gguf", folders=[tmp_path])
    text = checked(report)
    second = name != "dflash1"
    assert report.kind == ("dflash2" if second else "dflash")
    assert report.usable and not report.problems
    assert text.startswith(f"{name}.gguf is a DFlash {'2 ' if second else ''}drafter.\n")
    assert ("selector" in report.facts) is second
    assert text.endswith("There was no target to hold it against.")


def test_what_a_drafter_says_about_itself(tmp_path: Path) -> None:
    facts = inspect(FOLDER / "dflash2_scaled.gguf", folders=[tmp_path]).facts
    assert facts["listens at target layers"] == [1, 3, 5]
    assert (facts["logit scale"], facts["soft cap"], facts["embedding scale"]) == (0.5, 12.0, 3.0)
    assert "value scale" not in facts  # only what is unusual
    assert facts["needs a target with"] == "hidden size 96, the same 256 tokens, more than 5 layers"
    sliding = inspect(FOLDER / "dflash2_sliding.gguf", folders=[tmp_path]).facts
    assert sliding["sliding window"] == "24 positions in 2 of 2 layers"
    assert inspect(FOLDER / "dflash2_causal.gguf", folders=[tmp_path]).facts["block attention"] == "causal"
    reduced = write_drafter(tmp_path / "reduced.gguf", version=2, d2t=list(range(64)), own_embeddings=False)
    assert inspect(reduced, folders=[]).facts["head"] == "its own, reduced to 64 tokens"
    scaled = {"dflash.rope.scaling.type": "yarn", "dflash.rope.scaling.factor": 4.0, "dflash.rope.dimension_count": 16}
    shared = write_drafter(tmp_path / "shared.gguf", version=1, own_embeddings=False, own_head=False, metadata=scaled)
    facts = inspect(shared, folders=[]).facts
    assert facts["head"] == facts["embeddings"] == "the target's"
    assert facts["positions"] == "trained to 4096, rope base 10000, yarn scaling by 4, 16 of 32 dimensions turned"


def test_a_drafter_against_targets(tmp_path: Path) -> None:
    fitting = write_target(tmp_path / "fitting.gguf")
    wide = write_target(tmp_path / "wide.gguf", hidden_size=128, vocabulary=None, layers=3)
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    report = inspect(FOLDER / "dflash1.gguf", targets=[fitting, fitting, FOLDER / "dflash2.gguf"], folders=[tmp_path])
    text = checked(report)
    assert report.fits == (str(fitting),)
    assert len(report.unfit) == 2 and all(f"does not fit {wide.name}" in sentence for sentence in report.unfit)
    assert text.index("It fits:") < text.index("It does not fit:")


def test_a_target_against_drafters(tmp_path: Path) -> None:
    for name in ("dflash1", "dflash2", "dflash2_block16_k16"):
        shutil.copyfile(FOLDER / f"{name}.gguf", tmp_path / f"{name}.gguf")
    report = inspect(write_target(tmp_path / "target.gguf"), folders=[tmp_path])
    text = checked(report)
    assert (report.kind, report.usable, report.problems) == ("target", True, ())
    assert report.fits == (str(tmp_path / "dflash1.gguf"), str(tmp_path / "dflash2.gguf"))
    assert len(report.unfit) == 1 and "its hidden size is 288, the target's 96" in report.unfit[0]
    assert "is a chat model (target)." in text
    assert (report.facts["layers"], report.facts["vocabulary"], report.facts["chat template"]) == (6, 256, False)


def test_a_target_without_a_tap_is_still_usable(tmp_path: Path) -> None:
    shutil.copyfile(FOLDER / "dflash1.gguf", tmp_path / "dflash1.gguf")
    report = inspect(write_target(tmp_path / "target.gguf", architecture="gemma3"), folders=[tmp_path])
    checked(report)
    assert report.usable
    assert "use the baseline mode" in report.problems[0]
    assert report.facts["drafting"] == "not possible with this architecture"
    assert report.fits == report.unfit == ()


def test_the_packaged_target(tmp_path: Path) -> None:
    report = inspect(packaged_target(), folders=[FOLDER])
    text = checked(report)
    assert "134,515,008" in text and "Q4_1" in text and "apache-2.0" in text
    assert report.facts["context trained"] == 8192
    assert report.facts["chat template"] is True
    assert not report.fits and len(report.unfit) == len(FIXTURES)


def test_what_cannot_be_opened_is_an_error_and_no_finding(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "gone.gguf", "does not exist"), (tmp_path, "is a folder"), ("", "No file name")):
        with pytest.raises(CannotOpen, match=said):
            inspect(path, folders=[])


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "f.gguf").touch()
    markov = {"markov_w1.weight": np.zeros((256, 4), np.float32)}
    cases = {
        "dspark": (write_drafter(tmp_path / "a.gguf", version=1, tensors=markov), "another method"),
        "community_dflash": (write_target(tmp_path / "b.gguf", architecture="dflash-draft"), "llama.cpp's own form"),
        "not_a_model": (write_target(tmp_path / "c.gguf", architecture="clip"), "neither target nor drafter"),
        "dflash": (
            write_drafter(tmp_path / "d.gguf", version=1, metadata={"dflash.target_layers": None}),
            "lacks 'dflash.target_layers'",
        ),
        "dflash2": (
            write_drafter(tmp_path / "e.gguf", version=2, metadata={"dflash.selector_rank": None}),
            "without 'dflash.selector_rank'",
        ),
        "unreadable": (tmp_path / "f.gguf", "is empty"),
    }
    for kind, (path, said) in cases.items():
        report = inspect(path, folders=[])
        text = checked(report)
        assert report.kind == kind
        assert not report.usable
        assert len(report.problems) == 1 and said in report.problems[0]
        assert "What is wrong with it:" in text
        assert "hold it against" not in text
