"""Which drafters are offered for a target: by metadata, with a reason for each mode that cannot be used."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.catalog import (
    drafter_folders,
    drafter_mode,
    find_drafters,
    gguf_files,
    header_of,
    modes_for,
    require_target,
    user_drafter_folder,
)
from engine.errors import ModelFileError
from engine.events import Mode, ModeInfo
from engine.gguf_file import Header, read_header
from tests.drafter_files import write_drafter, write_target
from tests.fixture_files import FOLDER

V1, V2 = FOLDER / "dflash1.gguf", FOLDER / "dflash2.gguf"
BASELINE = ModeInfo(Mode.BASELINE, None, None)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Header:
    return read_header(write_target(tmp_path_factory.mktemp("target") / "small.gguf"))


def put(source: Path, path: Path, modified: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, path)
    if modified is not None:
        os.utime(path, (modified, modified))
    return path


# --- finding ----------------------------------------------------------------------------------------------------------


def test_the_mode_of_a_file_is_in_its_metadata_not_in_its_name(tmp_path: Path, target: Header) -> None:
    second = put(V2, tmp_path / "dflash1-v1.gguf")
    first = put(V1, tmp_path / "some" / "folder" / "DFLASH2.GGUF")
    put(V1, tmp_path / "dflash.bin")
    found = find_drafters(target, [tmp_path])
    assert found[Mode.DFLASH].fitting == (str(first),)
    assert found[Mode.DFLASH2].fitting == (str(second),)
    assert (drafter_mode(first), drafter_mode(second)) == (Mode.DFLASH, Mode.DFLASH2)


def test_the_earlier_folder_and_then_the_newer_file_comes_first(tmp_path: Path, target: Header) -> None:
    bundled = put(V1, tmp_path / "bundled" / "a.gguf", 3000)
    old = put(V1, tmp_path / "mine" / "b.gguf", 1000)
    new = put(V1, tmp_path / "mine" / "c.gguf", 2000)
    folders = [tmp_path / "mine", tmp_path / "bundled", tmp_path / "mine", tmp_path / "absent"]
    assert gguf_files(folders) == [new, old, bundled]
    found = find_drafters(target, folders)[Mode.DFLASH]
    assert found.fitting == (str(new), str(old), str(bundled))
    assert found.best == str(new)


def test_what_does_not_fit_is_told_and_targets_are_left_out(tmp_path: Path, target: Header) -> None:
    write_target(tmp_path / "chat.gguf")
    write_drafter(tmp_path / "wide.gguf", version=1, hidden_size=128)
    (tmp_path / "broken.gguf").write_bytes(V2.read_bytes()[:5000])
    write_drafter(tmp_path / "dspark.gguf", version=1, tensors={"markov_w1.weight": np.zeros((256, 4), np.float32)})
    found = find_drafters(target, [tmp_path])
    told = {mode: " ".join(found[mode].unfit) for mode in found}
    assert all(found[mode].best is None for mode in found)
    assert "wide.gguf does not fit small.gguf: its hidden size is 128" in told[Mode.DFLASH]
    assert "wide.gguf" not in told[Mode.DFLASH2]
    for mode in found:
        assert "broken.gguf is cut short" in told[mode]
        assert "dspark.gguf is a DSpark drafter" in told[mode]
        assert "chat.gguf" not in told[mode]


def test_a_header_is_read_again_when_the_file_changes(tmp_path: Path) -> None:
    path = put(V1, tmp_path / "x.gguf", 1000)
    first = header_of(path)
    assert header_of(path) is first
    put(V2, path, 1000)
    assert "selector_hidden.weight" in header_of(path).tensors
    put(V2, path, 2000)
    assert header_of(path) is not first
    path.unlink()
    with pytest.raises(ModelFileError, match="does not exist"):
        header_of(path)


def test_the_users_folder_comes_before_the_programs() -> None:
    assert drafter_folders()[0] == user_drafter_folder()
    assert drafter_folders()[1].name == "models"
    assert user_drafter_folder().parts[-2:] == ("dflash-chat", "drafters")


# --- the mode switch --------------------------------------------------------------------------------------------------


def test_all_three_modes_with_both_drafters(tmp_path: Path, target: Header) -> None:
    first, second = put(V1, tmp_path / "a.gguf"), put(V2, tmp_path / "b.gguf")
    assert modes_for(target, [tmp_path]) == (
        BASELINE,
        ModeInfo(Mode.DFLASH, str(first), None),
        ModeInfo(Mode.DFLASH2, str(second), None),
    )


def test_no_drafter_says_where_to_put_one(tmp_path: Path, target: Header) -> None:
    assert modes_for(target, [tmp_path]) == (
        BASELINE,
        *(
            ModeInfo(
                mode,
                None,
                f"No {method} drafter for small was found; put its .gguf into {tmp_path} or give it with --drafter.",
            )
            for mode, method in ((Mode.DFLASH, "DFlash"), (Mode.DFLASH2, "DFlash 2"))
        ),
    )


def test_the_only_drafter_that_does_not_fit_is_named(tmp_path: Path, target: Header) -> None:
    write_drafter(tmp_path / "wide.gguf", version=2, hidden_size=128)
    _, first, second = modes_for(target, [tmp_path])
    assert second.drafter is None
    assert second.reason is not None and "wide.gguf does not fit small.gguf" in second.reason
    assert first.reason is not None and "wide.gguf" not in first.reason
    write_drafter(tmp_path / "wider.gguf", version=2, hidden_size=160)
    reason = modes_for(target, [tmp_path])[2].reason
    assert reason is not None and "2 drafters there do not fit it" in reason


def test_a_given_drafter_is_taken_instead(tmp_path: Path, target: Header) -> None:
    put(V1, tmp_path / "a.gguf")
    put(V2, tmp_path / "b.gguf")
    _, first, second = modes_for(target, [tmp_path], {Mode.DFLASH: str(V1)})
    assert (first.drafter, first.reason) == (str(V1), None)
    assert second.drafter == str(tmp_path / "b.gguf")
    both = {Mode.DFLASH: str(V1), Mode.DFLASH2: str(V2)}
    assert [info.drafter for info in modes_for(target, [], both)] == [None, str(V1), str(V2)]


def test_a_given_drafter_that_cannot_be_used_gives_the_reason(tmp_path: Path, target: Header) -> None:
    put(V1, tmp_path / "fits.gguf")
    wide = write_drafter(tmp_path / "wide.gguf", version=1, hidden_size=128)
    bad = write_drafter(tmp_path / "bad.gguf", version=1, metadata={"dflash.target_layers": None})
    chat = write_target(tmp_path / "chat.gguf")
    for given, said in (
        (wide, "wide.gguf does not fit small.gguf"),
        (bad, "bad.gguf lacks 'dflash.target_layers'"),
        (chat, "chat.gguf is not a DFlash drafter but a chat model"),
        (tmp_path / "gone.gguf", "gone.gguf does not exist"),
        (tmp_path, "is a folder"),
        (V2, "dflash2.gguf is a DFlash 2 drafter and was given for the mode DFlash; give it for DFlash 2."),
    ):
        info = modes_for(target, [tmp_path], {Mode.DFLASH: str(given)})[1]
        assert info.drafter is None
        assert info.reason is not None and said in info.reason


def test_a_target_without_a_tap_has_the_reason_in_both_drafting_modes(tmp_path: Path) -> None:
    put(V1, tmp_path / "a.gguf")
    qwen = read_header(write_target(tmp_path / "qwen.gguf", architecture="qwen2"))
    infos = modes_for(qwen, [tmp_path], {Mode.DFLASH: str(V1)})
    assert infos[0] == BASELINE
    for info in infos[1:]:
        assert info.drafter is None
        assert info.reason is not None and "qwen.gguf is of architecture 'qwen2'" in info.reason


# --- targets ----------------------------------------------------------------------------------------------------------


def test_a_chat_model_is_a_target(target: Header) -> None:
    require_target(target)


def test_what_is_no_target(tmp_path: Path, target: Header) -> None:
    community = read_header(write_target(tmp_path / "community.gguf", architecture="dflash-draft"))
    projector = read_header(write_target(tmp_path / "mmproj.gguf", architecture="clip"))
    adapter = read_header(write_target(tmp_path / "lora.gguf", metadata={"general.type": "adapter"}))
    nameless = read_header(write_target(tmp_path / "nameless.gguf", metadata={"general.architecture": None}))
    for header, said in (
        (read_header(V1), "dflash1.gguf is a DFlash drafter, not a chat model; give it with --drafter"),
        (
            read_header(V2),
            "dflash2.gguf is a DFlash 2 drafter, not a chat model; give it with --drafter and its target",
        ),
        (community, "of the community architecture 'dflash-draft', not a chat model; open the chat model that it was"),
        (projector, "mmproj.gguf is no language model (architecture 'clip'); choose a chat model's .gguf."),
        (adapter, "lora.gguf is no language model (architecture 'llama'); choose"),
        (nameless, "nameless.gguf is no language model; choose"),
        (replace(target, tensors={}), "small.gguf is no language model"),
    ):
        with pytest.raises(ModelFileError) as caught:
            require_target(header)
        assert said in str(caught.value)


def test_the_mode_of_what_is_no_drafter(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="is not a DFlash drafter but a chat model"):
        drafter_mode(write_target(tmp_path / "chat.gguf"))
