"""A drafter held against recorded numbers: right records pass, whatever is altered is found, bad ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.check_drafter import TOLERANCE, check
from engine.errors import DrafterMismatch, ModelFileError
from tests.drafter_files import requantise, write_drafter, write_target
from tests.fixture_files import FIXTURES, FOLDER
from tests.tiny_chat import _edit, _tensor

Arrays = dict[str, NDArray[Any]]


@pytest.fixture
def record() -> Arrays:
    with np.load(FOLDER / "dflash2.npz") as file:
        return {name: file[name] for name in file.files}


@pytest.fixture
def check_record(tmp_path: Path) -> Callable[[Arrays], Any]:
    """Holds the drafter of `record` against an altered one."""

    def run(arrays: Arrays) -> Any:
        np.savez(tmp_path / "record.npz", **arrays)  # type: ignore[arg-type]
        return check(str(FOLDER / "dflash2.gguf"), str(tmp_path / "record.npz"))

    return run


@pytest.mark.parametrize("name", FIXTURES)
def test_a_drafter_agrees_with_its_record(name: str) -> None:
    report = check(str(FOLDER / f"{name}.gguf"), str(FOLDER / f"{name}.npz"))
    assert report.passed and report.paths_equal and report.candidates_equal and report.cycles == 4
    compared = {"hidden", "logits"}
    if name != "dflash1":
        compared |= {"unary", "score_first", "score_rest", "q_rows_t0.7"}
    assert set(report.differences) == compared
    assert all(0 < difference < TOLERANCE for difference in report.differences.values())
    assert report.as_json()["differences"] == report.differences and report.as_json()["passed"]
    *lines, last = report.lines()
    assert len(lines) == len(compared) + 2
    assert last.startswith("The drafter agrees with the record over 4 cycles")


@pytest.mark.parametrize("quantity", ["hidden", "logits", "unary", "score_first", "score_rest", "q_rows_t0.7"])
@pytest.mark.parametrize("cycle", [0, 3])
def test_one_altered_number_is_found(
    record: Arrays, check_record: Callable[[Arrays], Any], cycle: int, quantity: str
) -> None:
    values = record[f"c{cycle}.{quantity}"]
    values.flat[values.size // 2] += 0.1 * np.abs(values).max()
    report = check_record(record)
    assert not report.passed and not report.as_json()["passed"]
    assert {name for name, difference in report.differences.items() if difference > TOLERANCE} == {quantity}
    assert report.differences[quantity] == pytest.approx(0.1, rel=0.1)
    assert "differs from the record" in report.lines()[-1]
    values.flat[0] = np.nan
    assert check_record(record).differences[quantity] == float("inf")


@pytest.mark.parametrize("quantity", ["path", "candidates"])
def test_one_altered_token_is_found(record: Arrays, check_record: Callable[[Arrays], Any], quantity: str) -> None:
    record[f"c2.{quantity}"].flat[3] += 1
    report = check_record(record)
    assert not report.passed
    assert (report.paths_equal, report.candidates_equal) == (quantity != "path", quantity != "candidates")
    assert sum("different" in line for line in report.lines()) == 1


def test_other_features_give_other_numbers(record: Arrays, check_record: Callable[[Arrays], Any]) -> None:
    """Swapped positions, say, or layers in another order."""
    record["c0.features"] = record["c0.features"][::-1]
    assert not check_record(record).passed


def test_quantities_that_are_absent_are_not_compared(record: Arrays, check_record: Callable[[Arrays], Any]) -> None:
    keep = ("features", "start", "anchor", "hidden", "path")
    report = check_record({name: array for name, array in record.items() if name.endswith(keep)})
    assert report.passed and set(report.differences) == {"hidden"}
    report = check_record({name: array for name, array in record.items() if not name.startswith("c1.")})
    assert report.cycles == 1, "cycles count on from 0"


def test_a_quantised_drafter_differs_by_its_quantisation(tmp_path: Path) -> None:
    """Candidates that change places, or fall out, do not count as other scores."""
    path = requantise(FOLDER / "dflash2.gguf", tmp_path / "q8.gguf", "Q8_0")
    strict, loose = (check(str(path), str(FOLDER / "dflash2.npz"), tolerance) for tolerance in (TOLERANCE, 0.1))
    assert not strict.passed and strict.differences == loose.differences
    assert not loose.candidates_equal and not loose.passed, "places are changed here"
    assert max(loose.differences.values()) < 0.05


def test_a_block_of_two_has_no_pairs(tmp_path: Path) -> None:
    """One draft only: score_rest is there and empty."""
    drafter = write_drafter(tmp_path / "two.gguf", version=2, block_size=2)
    features = np.random.default_rng(0).standard_normal((3, 3 * 96)).astype(np.float32)
    arrays: Arrays = {"c0.features": features, "c0.start": np.array(3), "c0.anchor": np.array(5)}
    arrays["c0.score_rest"] = np.empty((0, 8, 8), np.float32)
    np.savez(tmp_path / "two.npz", **arrays)  # type: ignore[arg-type]
    assert check(str(drafter), str(tmp_path / "two.npz")).passed


# --- what cannot be compared ------------------------------------------------------------------------------------------


def _without(name: str) -> Callable[[Arrays], Any]:
    return lambda arrays: arrays.pop(name)


def _with(name: str, array: Any) -> Callable[[Arrays], Any]:
    return lambda arrays: arrays.update({name: np.asarray(array)})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_without("c0.features"), "holds no cycle"),
        (_without("c0.anchor"), "holds no cycle"),
        (_with("c0.features", np.zeros(288, np.float32)), r"no \[n, F\*H\] features, one start and"),
        (_with("c1.anchor", [1, 2]), "one anchor in cycle 1"),
        (_with("c1.anchor", 1.5), "one anchor in cycle 1"),
        (_with("c1.start", 40), "drafts at position 40 after 41 positions"),
        (_with("c3.start", -1), "drafts at position -1 after"),
        (_with("c0.features", np.zeros((37, 96), np.float32)), r"\[37, 96\], but dflash2.gguf reads 3 layers of 96"),
        (_with("c2.anchor", 256), "the anchor 256, but dflash2.gguf knows 256 tokens"),
        (_with("c2.anchor", -1), "the anchor -1"),
        (_with("c0.hidden", np.zeros((7, 95), np.float32)), r"hidden of shape \[7, 95\], but .* computes \[7, 96\]"),
        (_with("c0.path", np.zeros(6, np.int64)), r"path of shape \[6\]"),
        (_with("c0.logits", np.full((7, 256), "x")), "logits of type <U1, not numbers"),
        (_with("c0.hidden", np.full((7, 96), None)), "cannot be read as an .npz file"),
    ],
)
def test_records_that_do_not_fit(
    record: Arrays, check_record: Callable[[Arrays], Any], change: Callable[[Arrays], Any], sentence: str
) -> None:
    change(record)
    with pytest.raises(ModelFileError, match=sentence) as refused:
        check_record(record)
    assert "record.npz" in str(refused.value) and refused.value.args[0].endswith(("file.", "form.", "drafter."))


def test_files_that_are_no_record(tmp_path: Path) -> None:
    drafter, record = str(FOLDER / "dflash2.gguf"), tmp_path / "record.npz"
    whole = (FOLDER / "dflash2.npz").read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 3 : len(whole) // 3 + 3000] = bytes(3000)
    np.save(tmp_path / "one.npy", np.zeros(3))
    contents = (None, b"", b"hello", whole[: len(whole) // 2], bytes(damaged), (tmp_path / "one.npy").read_bytes())
    for content in contents:
        if content is not None:
            record.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"The record .*record\.npz cannot be read as an \.npz file"):
            check(drafter, str(record))
    with pytest.raises(ModelFileError, match=r"missing\.gguf"):
        check(str(tmp_path / "missing.gguf"), str(FOLDER / "dflash2.npz"))
    with pytest.raises(ModelFileError, match=r"dflash2\.npz"):
        check(str(FOLDER / "dflash2.npz"), str(FOLDER / "dflash2.npz"))


def test_a_drafter_that_needs_its_target(tmp_path: Path) -> None:
    path = write_drafter(tmp_path / "sharing.gguf", version=2, own_embeddings=False, own_head=False)
    with pytest.raises(DrafterMismatch, match=r"sharing\.gguf has no token embeddings .* with --model"):
        check(str(path), str(FOLDER / "dflash2.npz"))


def test_a_drafter_that_shares_its_model_s_matrices_is_checked_with_them(tmp_path: Path) -> None:
    """The recorded drafter without its embeddings and head, and a model that has just these."""
    whole, shared = FOLDER / "dflash2.gguf", ("token_embd.weight", "output.weight")
    drafter = requantise(whole, tmp_path / "model.gguf", "F32", without=shared)
    (tmp_path / "models").mkdir()
    model = write_target(tmp_path / "models" / "model.gguf")
    _edit(model, {name: _tensor(whole, name) for name in shared})
    report = check(str(drafter), str(FOLDER / "dflash2.npz"), model_path=str(model))
    assert report.passed and report.cycles == 4 and "logits" in report.differences
    other = write_target(tmp_path / "other.gguf")
    assert not check(str(drafter), str(FOLDER / "dflash2.npz"), model_path=str(other)).passed
    wide = write_target(tmp_path / "models" / "model.gguf", hidden_size=64)
    with pytest.raises(DrafterMismatch) as error:
        check(str(drafter), str(FOLDER / "dflash2.npz"), model_path=str(wide))
    assert f"{drafter} does not fit {wide}" in str(error.value), "both are called model.gguf"
