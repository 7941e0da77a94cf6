"""Split models: one header, one download, and loaded by libllama as one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
import pytest

from engine.catalog import gguf_files, modes_for
from engine.convert import convert
from engine.errors import ModelFileError
from engine.file_kind import require_drafter
from engine.gguf_file import read_header
from engine.hub import Hub
from engine.train.start import TargetWeights
from tests import tiny_chat
from tests.fixture_files import FOLDER
from tests.hub_server import HubServer
from tests.safetensors_files import hf_folder, target_of

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels


def split(path: Path, folder: Path, tensors: int) -> list[Path]:
    """A copy of a model in parts of so many tensors, written by the gguf package."""
    reader = gguf.GGUFReader(path)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(folder / path.name, architecture, split_max_tensors=tensors)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        value: Any = field.contents()
        kinds = field.types
        writer.add_key_value(name, value, kinds[0], kinds[-1] if kinds[0] is gguf.GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.array(tensor.data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(folder.glob("*.gguf"))


def test_the_first_part_stands_for_the_whole(tiny_models: TinyModels, tmp_path: Path) -> None:
    parts = split(tiny_models.wandering, tmp_path, 20)
    assert len(parts) == 3 and parts[0].name == "wandering-00001-of-00003.gguf"
    whole, one = read_header(parts[0]), read_header(tiny_models.wandering)
    assert whole.tensors.keys() == one.tensors.keys() and whole.parameters == one.parameters
    assert {name: t.nbytes for name, t in whole.tensors.items()} == {name: t.nbytes for name, t in one.tensors.items()}
    assert whole.file_bytes == sum(part.stat().st_size for part in parts) and whole.parts == 1
    with pytest.raises(
        ModelFileError, match="is part 2 of 3 of a split model; open its first part, wandering-00001-of"
    ):
        read_header(parts[1])
    parts[2].rename(tmp_path / "away")
    with pytest.raises(ModelFileError, match="lacks its part 3 of 3; put wandering-00003-of-00003.gguf beside it"):
        read_header(parts[0])
    (tmp_path / "away").rename(parts[2])
    renamed = parts[0].rename(tmp_path / "model.gguf")
    with pytest.raises(ModelFileError, match="is one of 3 parts of a split model, but is not called"):
        read_header(renamed)
    renamed.rename(parts[0])
    parts[1].write_bytes(parts[2].read_bytes())
    with pytest.raises(ModelFileError, match="is not part 2 of 3"):
        read_header(parts[0])


def test_it_answers_like_the_model_in_one_file(tiny_models: TinyModels, tmp_path: Path) -> None:
    from engine.events import Mode
    from tests.conversation import opened

    parts = split(tiny_models.counting, tmp_path, 30)
    with opened(parts[0], tiny_models.wandering_v1, tiny_models.counting_v2) as session:
        said = "".join(getattr(event, "text", "") for event in session.ask("x", mode=Mode.DFLASH2, max_tokens=8))
    assert said.startswith("abcdefgh") and session.info.file_bytes == sum(part.stat().st_size for part in parts)


def test_on_a_hub_it_is_one_model_with_one_header(
    hub_server: HubServer, hub: Hub, tiny_models: TinyModels, tmp_path: Path
) -> None:
    parts = split(tiny_models.wandering, tmp_path, 20)
    hub_server.add("a/model", {part.name: part for part in parts})
    (model,) = hub.repository("a/model").models
    told: list[int] = []
    header = hub.header(model, told.append)
    assert header.tensors.keys() == read_header(tiny_models.wandering).tensors.keys()
    assert header.file_bytes == model.size and told == sorted(told)
    assert hub_server.content_bytes() == told[-1] < model.size / 3


def test_what_reads_the_data_refuses_parts(tmp_path: Path) -> None:
    """Each tensor's offset is of its own part's file."""
    whole = target_of("dflash2", tmp_path / "whole.gguf")
    parts = split(whole, tmp_path, 1)
    with pytest.raises(ModelFileError, match="is split into parts; to copy embeddings from it, join them first"):
        convert(hf_folder("dflash2"), parts[0], tmp_path / "d.gguf", with_embeddings=True)
    with pytest.raises(ModelFileError, match="to start a drafter from it, join them first"):
        TargetWeights(read_header(parts[0]))


def test_a_split_drafter_is_refused_and_its_parts_are_no_drafters(tmp_path: Path) -> None:
    parts = split(FOLDER / "dflash2.gguf", tmp_path, 20)
    with pytest.raises(ModelFileError, match="is a split drafter; join its parts"):
        require_drafter(read_header(parts[0]))
    target = read_header(tiny_chat.wandering_target(tmp_path / "t.gguf"))
    assert modes_for(target, [tmp_path])[2].drafter is None
    assert len(gguf_files([tmp_path])) == 2
