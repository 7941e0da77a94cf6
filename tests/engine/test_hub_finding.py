"""Finding drafters on a Hub: what is read over the network, what is decided by it, and what a person gets to see."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.cli import main
from engine.errors import Cancelled, HubError, ModelFileError
from engine.events import Mode
from engine.finding import Look, best_drafter, check, find_drafters, verdict
from engine.gguf_file import Header, read_header
from engine.gguf_writer import NewTensor, header_bytes
from engine.hub import Hub
from engine.known_pairs import KnownPair, catalogue, known_drafters
from engine.remote_model import RemoteModel
from tests.drafter_files import Vocabulary, write_drafter, write_target
from tests.engine.test_split_model import split
from tests.fixture_files import FOLDER
from tests.hub_server import HubFile, HubServer

V1, V2 = FOLDER / "dflash1.gguf", FOLDER / "dflash2.gguf"


@pytest.fixture(scope="module")
def target_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It fits the recorded drafters, and says its name."""
    names = {"general.name": "Tiny 1B", "general.basename": "Tiny", "general.size_label": "1B"}
    return write_target(tmp_path_factory.mktemp("target") / "tiny.gguf", metadata=names)


@pytest.fixture(scope="module")
def target(target_path: Path) -> Header:
    return read_header(target_path)


def model_of(hub: Hub, repository: str = "a/model") -> RemoteModel:
    return hub.repository(repository).models[0]


# --- the header, over the network -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [V1, V2])
def test_a_header_costs_at_most_twice_its_length(hub_server: HubServer, hub: Hub, path: Path) -> None:
    hub_server.add("a/model", {"d.gguf": path})
    told: list[int] = []
    header = hub.header(model_of(hub), told.append)
    there = read_header(path)
    assert (header.metadata.keys(), header.tensors, header.file_bytes) == (
        there.metadata.keys(), there.tensors, there.file_bytes,
    )  # fmt: skip
    assert hub_server.content_bytes() == told[-1] <= max(2 * there.data_offset, 16 << 10)
    assert told == sorted(told)


def big_header(vocabulary: int, hidden: int = 96) -> bytes:
    """The header of a recorded drafter with a vocabulary of another size."""
    header = read_header(V2)
    size = len(header.metadata["tokenizer.ggml.tokens"])
    keys: dict[str, Any] = dict(header.metadata)
    keys["tokenizer.ggml.tokens"] = [f"token{i:06}" for i in range(vocabulary)]
    keys["tokenizer.ggml.token_type"] = np.ones(vocabulary, np.int32)
    keys["tokenizer.ggml.merges"] = [f"t{i:05} n{i:05}" for i in range(vocabulary)]
    keys["dflash.vocab_size"] = vocabulary
    tensors = [
        NewTensor(t.name, tuple(vocabulary if n == size else n for n in t.shape), t.type, list)
        for t in header.tensors.values()
    ]
    return header_bytes(keys, tensors)


def test_a_vocabulary_of_a_quarter_million_tokens(hub_server: HubServer, hub: Hub) -> None:
    data = big_header(250_000)
    assert len(data) > 9 << 20
    hub_server.add("a/model", {"d.gguf": HubFile(data + bytes(len(data)), claims=1 << 30)})
    told: list[int] = []
    header = hub.header(model_of(hub), told.append)
    tokens = header.metadata["tokenizer.ggml.tokens"]
    assert (len(tokens), tokens[249_999]) == (250_000, "token249999")
    assert hub_server.content_bytes() <= 2 * len(data)
    assert 4 <= len(told) <= 12  # it shows progress, in few requests


def test_a_server_that_ignores_ranges_is_read_no_further_than_the_header(hub_server: HubServer, hub: Hub) -> None:
    data = big_header(60_000)
    hub_server.add("a/model", {"d.gguf": data + bytes(64 << 20)})
    hub_server.trouble.ignore_ranges = True
    header = hub.header(model_of(hub))
    assert len(header.metadata["tokenizer.ggml.tokens"]) == 60_000
    assert len([seen for seen in hub_server.seen if seen.host == "second"]) == 1


def test_reading_a_header_can_be_stopped(hub_server: HubServer, hub: Hub) -> None:
    import threading

    cancel = threading.Event()
    hub_server.add("a/model", {"d.gguf": HubFile(big_header(60_000), claims=1 << 30)})
    with pytest.raises(Cancelled):
        hub.header(model_of(hub), lambda _count: cancel.set(), cancel)


@pytest.mark.parametrize(
    ("content", "claims", "said"),
    [
        (b"<html>not found</html>", None, "is a web page"),
        (b"\0" * 5000, None, "holds only zeros"),
        (V2.read_bytes()[:5000], None, "is cut short: its header does not end within 5000 bytes"),
        (V2.read_bytes()[:100_000], None, "is cut short: it has 100000 bytes"),
        (b"GGUF" + (3).to_bytes(4, "little") + (1 << 60).to_bytes(8, "little") * 2 + b"\xff" * 3000, None, "damaged"),
        (V2.read_bytes()[:5000], 1 << 30, "shorter than the Hub says"),
        (b"", None, "is empty"),
    ],
)
def test_what_is_no_whole_header(
    hub_server: HubServer, hub: Hub, target: Header, content: bytes, claims: int | None, said: str
) -> None:
    hub_server.add("a/model", {"d.gguf": HubFile(content, claims=claims)})
    model = model_of(hub)
    if claims is None:
        judged = check(hub, model, target)
        assert not judged.fits and judged.mode is None and said in judged.sentence
    else:
        with pytest.raises(HubError, match=said):
            check(hub, model, target)


def test_the_header_of_a_file_that_is_there_needs_no_network(hub_server: HubServer, hub: Hub) -> None:
    from engine.transfer import fetch

    hub_server.add("a/model", {"d.gguf": V1})
    model = model_of(hub)
    fetch(hub, model.files[0])
    seen = len(hub_server.seen)
    assert hub.header(model).architecture == "dflash" and len(hub_server.seen) == seen


# --- the verdict: every mismatch is a reason --------------------------------------------------------------------------

Change = dict[str, Any]
OTHER_WORDS = Vocabulary({**Vocabulary.small().keys, "tokenizer.ggml.tokens": [f"u{i}" for i in range(256)]})


@pytest.mark.parametrize(
    ("version", "change", "mode", "said"),
    [
        (1, {}, Mode.DFLASH, None),
        (2, {}, Mode.DFLASH2, None),
        (2, {"hidden_size": 128}, Mode.DFLASH2, "its hidden size is 128, the target's 96"),
        (1, {"target_layers": (1, 3, 6)}, Mode.DFLASH, "it listens at layer 6, but the target has 6 layers"),
        (1, {"vocabulary": Vocabulary.small(300)}, Mode.DFLASH, "its vocabulary has 300 tokens, the target's 256"),
        (2, {"vocabulary": OTHER_WORDS}, Mode.DFLASH2, "255 of 256 tokens differ (the first is token 0: 'u0' in"),
        (1, {"metadata": {"tokenizer.ggml.mask_token_id": None}}, Mode.DFLASH, "has no mask token"),
        (1, {"metadata": {"tokenizer.ggml.mask_token_id": 0xFFFFFFFF}}, Mode.DFLASH, "has no mask token"),
        (1, {"mask_token": 256}, Mode.DFLASH, "'tokenizer.ggml.mask_token_id' = 256 where a token id below 256"),
        (1, {"metadata": {"dflash.block_size": 1}}, Mode.DFLASH, "'dflash.block_size' = 1 where"),
        (1, {"metadata": {"dflash.target_layers": None}}, Mode.DFLASH, "lacks 'dflash.target_layers'"),
        (2, {"metadata": {"dflash.selector_rank": None}}, Mode.DFLASH2, "without 'dflash.selector_rank'"),
        (1, {"metadata": {"general.architecture": "dflash-draft"}}, None, "community architecture 'dflash-draft'"),
        (1, {"metadata": {"general.architecture": "eagle3"}}, None, "a drafter of another method of architecture"),
        (1, {"tensors": {"markov_w1.weight": np.zeros((256, 4), np.float32)}}, None, "is a DSpark drafter"),
        (1, {"tensors": {"fc.weight": None}}, Mode.DFLASH, "fc.weight"),
    ],
)
def test_every_mismatch_is_a_reason_before_anything_is_downloaded(
    hub_server: HubServer, hub: Hub, target: Header, tmp_path: Path,
    version: int, change: Change, mode: Mode | None, said: str | None,
) -> None:  # fmt: skip
    path = write_drafter(tmp_path / "drafter.gguf", version=version, **change)
    hub_server.add("a/model", {"drafter.gguf": path})
    judged = check(hub, model_of(hub), target)
    assert (judged.fits, judged.mode) == (said is None, mode)
    assert judged.sentence.endswith(".")
    if said is None:
        assert judged.reasons == () and "It fits Tiny 1B" in judged.sentence and "256 tokens" in judged.sentence
    else:
        assert said in judged.sentence and judged.reasons and "drafter.gguf" in judged.reasons[0]
    assert hub_server.content_bytes() < path.stat().st_size / 10


def test_several_mismatches_are_several_reasons(target: Header, tmp_path: Path) -> None:
    path = write_drafter(tmp_path / "d.gguf", version=1, hidden_size=128, target_layers=(9,), vocabulary=OTHER_WORDS)
    assert len(verdict(read_header(path), target).reasons) == 3


def test_a_target_that_no_drafter_can_serve(hub: Hub, tmp_path: Path) -> None:
    qwen = read_header(write_target(tmp_path / "qwen.gguf", architecture="qwen2"))
    assert "architecture 'qwen2'" in verdict(read_header(V1), qwen).sentence
    with pytest.raises(ModelFileError, match="architecture 'qwen2'"):
        list(find_drafters(hub, qwen))


# --- where is looked --------------------------------------------------------------------------------------------------


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, target: Header) -> None:
    """A catalogue with one pair, of which one repository has gone."""
    from engine.known_pairs import KnownDrafter

    drafters = tuple(KnownDrafter(f"maker/{name}", Mode.DFLASH2, ()) for name in ("gone", "Tiny-DFlash2-GGUF"))
    pair = KnownPair("Tiny-1B", 96, 256, ("maker/Tiny-1B",), drafters)
    monkeypatch.setattr("engine.known_pairs.catalogue", lambda: (pair,))


def fill(hub_server: HubServer, target_path: Path, folder: Path) -> None:
    wide = write_drafter(folder / "wide.gguf", version=1, hidden_size=128)
    drafters = {f"Tiny-DFlash2-{kind}.gguf": V2 for kind in ("Q8_0", "Q4_K_M", "BF16")}
    hub_server.add("maker/Tiny-DFlash2-GGUF", {**drafters, "tiny.gguf": target_path})
    hub_server.add("b/Tiny-1B-DFlash-GGUF", {"x.gguf": V1}, downloads=1)
    hub_server.add("c/Tiny-7B-DFlash-GGUF", {"Tiny-1B-DFlash.gguf": wide}, downloads=9)
    hub_server.add("d/Tiny-1B-GGUF", {"chat.gguf": target_path}, downloads=99, gguf={"architecture": "llama"})
    hub_server.add("e/Other-DFlash-GGUF", {"x.gguf": V1}, downloads=99)


def test_catalogue_and_search_in_their_order_with_a_reason_for_each(
    hub_server: HubServer, hub: Hub, target: Header, target_path: Path, tmp_path: Path, known: None
) -> None:
    fill(hub_server, target_path, tmp_path)
    looks: list[Look] = []
    offers = list(find_drafters(hub, target, on_look=looks.append))
    assert [(offer.repository.id, offer.source, offer.verdict.fits) for offer in offers] == [
        ("maker/Tiny-DFlash2-GGUF", "catalogue", True),
        ("b/Tiny-1B-DFlash-GGUF", "search", True),
        ("c/Tiny-7B-DFlash-GGUF", "search", False),  # whatever it is called
    ]
    best = offers[0]
    assert best.model.quantisation == "Q4_K_M" and [m.quantisation for m in best.others] == ["Q8_0", "BF16"]
    assert (best.verdict.mode, best.licence, best.quantisation, best.path) == (Mode.DFLASH2, "mit", "F32", None)
    told = " ".join(look.sentence for look in looks)
    assert "does not show maker/gone" in told and "Searching the Hub" in told and "Reading the header of x.gguf" in told
    assert not any("d/Tiny-1B-GGUF" in seen.path or "e/Other" in seen.path for seen in hub_server.seen)


def test_one_click_takes_the_first_of_the_mode_that_fits(
    hub_server: HubServer, hub: Hub, target: Header, target_path: Path, tmp_path: Path, known: None
) -> None:
    fill(hub_server, target_path, tmp_path)
    for mode, repository in ((Mode.DFLASH2, "maker/Tiny-DFlash2-GGUF"), (Mode.DFLASH, "b/Tiny-1B-DFlash-GGUF")):
        best = best_drafter(hub, target, mode)
        assert best is not None and best.repository.id == repository
    del hub_server.repositories["maker/Tiny-DFlash2-GGUF"]
    assert best_drafter(hub, target, Mode.DFLASH2) is None


def test_only_where_a_user_says(hub_server: HubServer, hub: Hub, target: Header, tmp_path: Path) -> None:
    wide = write_drafter(tmp_path / "wide.gguf", version=1, hidden_size=128)
    hub_server.add("x/y", {"a-Q8_0.gguf": V1, "b-Q8_0.gguf": wide, "a-F32.gguf": V1})
    offers = list(find_drafters(hub, target, given=["https://huggingface.co/x/y"]))
    assert [(offer.model.name, offer.verdict.fits) for offer in offers] == [
        ("a-Q8_0.gguf", True),
        ("b-Q8_0.gguf", False),
    ]
    (one,) = find_drafters(hub, target, given=["x/y:F32"])
    assert one.model.name == "a-F32.gguf" and one.source == "given"
    hub_server.add("x/weights", {"config.json": HubFile(b"{}", lfs=False), "model.safetensors": b"0"})
    for given, said in (
        ("x/none", "does not show x/none"),
        ("x/y:Q2_K", "no GGUF file that 'Q2_K' means"),
        ("x/weights", "weights that can be converted"),
    ):
        with pytest.raises(HubError, match=said):
            list(find_drafters(hub, target, given=[given]))


def test_offline_is_not_the_same_as_nothing_there(target: Header, tmp_path: Path, known: None) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(HubError, match="You are offline"):
        list(find_drafters(Hub(f"http://127.0.0.1:{port}", tmp_path), target))


def test_the_catalogue_is_sane(tmp_path: Path) -> None:
    from engine.remote_model import parse_repository

    pairs = catalogue()
    assert len({pair.name for pair in pairs}) == len(pairs) > 10
    for pair in pairs:
        assert pair.drafters
        for repository in (*pair.repositories, *(drafter.repository for drafter in pair.drafters)):
            assert parse_repository(repository) == (repository, None)
        for file in (file for drafter in pair.drafters for file in drafter.files):
            assert file.sha256 is None or len(file.sha256) == 64
    names = {"general.basename": "Muse-Glimmer", "general.size_label": "30B"}
    named = read_header(write_target(tmp_path / "named.gguf", layers=0, metadata=names))
    assert known_drafters(named)[0].repository == "z-lab/Muse-Glimmer-30B-DFlash2-GGUF"
    assert known_drafters(named, Mode.DFLASH) == []
    names = {"general.basename": "Qwen3", "general.size_label": "8B"}
    assert known_drafters(read_header(write_target(tmp_path / "q.gguf", layers=0, metadata=names))) == []  # too narrow


# --- the command ------------------------------------------------------------------------------------------------------

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def models(hub_server: HubServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    from engine import catalog

    monkeypatch.setattr("engine.library.drafter_folders", lambda: (catalog.user_drafter_folder(),))

    def run(*words: object) -> tuple[int, str, str]:
        status = main(["models", *map(str, words)])
        return status, *capsys.readouterr()

    return run


def test_find_prints_a_table_and_json(
    hub_server: HubServer, models: Command, target_path: Path, tmp_path: Path, known: None
) -> None:
    fill(hub_server, target_path, tmp_path)
    status, out, err = models("find", "--target", target_path)
    assert (status, err) == (0, "")
    table = out.split("\n\n")[0].splitlines()
    assert table[0].split() == ["fits", "method", "type", "size", "licence", "repository", "file"]
    assert table[2].split()[:4] == ["yes", "DFlash", "2", "F32"] and table[2].endswith("Tiny-DFlash2-Q4_K_M.gguf")
    assert table[-1].startswith("no ") and "its hidden size is 128" in out
    assert "Also as Q8_0" in out and "models pull maker/Tiny-DFlash2-GGUF/Tiny-DFlash2-Q4_K_M.gguf" in out
    status, out, _ = models("find", "--target", target_path, "--json")
    found = json.loads(out)["drafters"]
    assert [drafter["fits"] for drafter in found] == [True, True, False]
    assert found[0]["files"][0]["sha256"] == HubFile(V2).sha256 and found[2]["reasons"]
    assert models("find", "--target", target_path, "--in", "e/Other-DFlash-GGUF", "--mode", "dflash2")[0] == 1
    status, out, _ = models("find", "tiny", "gguf")
    assert status == 0 and out.splitlines()[2].startswith("d/Tiny-1B-GGUF")


def test_pull_list_verify_info_and_remove(
    hub_server: HubServer, models: Command, target_path: Path, tmp_path: Path
) -> None:
    hub_server.add("a/drafter-GGUF", {"d-Q8_0.gguf": V2, "d-F32.gguf": V1, "s-00001-of-00001.gguf": V1})
    status, out, err = models("pull", "a/drafter-GGUF")
    assert status == 2 and "holds several: Q8_0 (" in err and "a/drafter-GGUF:Q8_0" in err
    wide = write_target(tmp_path / "wide.gguf", hidden_size=128)
    status, out, _ = models("pull", "a/drafter-GGUF:Q8_0", "--target", wide)
    assert status == 1 and "does not fit wide.gguf" in out
    status, out, _ = models("pull", "a/drafter-GGUF:Q8_0", "--target", target_path)
    path = Path(out.strip())
    assert status == 0 and path.read_bytes() == V2.read_bytes()
    assert models("import", target_path)[0] == 0
    status, out, _ = models("list", "--json")
    listed = {entry["name"]: entry for entry in json.loads(out)["models"]}
    assert listed["dflash2"]["fits"] == [str(target_path)] and listed["dflash2"]["repository"] == "a/drafter-GGUF"
    assert (listed["Tiny 1B"]["origin"], listed["Tiny 1B"]["kind"]) == ("imported", "target")
    status, out, _ = models("list")
    assert any(line.startswith("dflash2") and line.endswith("Tiny 1B") for line in out.splitlines())
    status, out, _ = models("verify", path, target_path)
    assert status == 0 and "by its SHA-256" in out and "nobody has said its SHA-256" in out
    content = path.resolve()
    content.write_bytes(content.read_bytes()[:-1] + b"\0")
    status, out, _ = models("verify", "a/drafter-GGUF")
    assert status == 1 and out.startswith("BAD ") and "is damaged" in out
    assert models("info", "a/drafter-GGUF")[1].count("\n") == 6
    status, out, _ = models("info", "a/drafter-GGUF:F32", "--target", target_path)
    assert status == 0 and "DFlash" in out and "It fits Tiny 1B" in out
    assert models("remove", "a/drafter-GGUF")[0] == 0 and not content.exists() and not path.exists()
    assert models("remove", "Tiny 1B")[0] == 0 and target_path.exists()
    assert models("remove", "Tiny 1B")[0] == 2


def test_of_several_with_one_name_none_is_removed(models: Command, target_path: Path, tmp_path: Path) -> None:
    copies = [tmp_path / name for name in ("a.gguf", "b.gguf")]
    for copy in copies:
        copy.write_bytes(target_path.read_bytes() + bytes(copy == copies[1]))  # another file, and of the same name
        models("import", copy)
    status, out, err = models("remove", "Tiny 1B")
    assert (status, out) == (2, "") and all(str(copy) in err for copy in copies)
    assert models("remove", copies[0])[0] == 0 and models("remove", "Tiny 1B")[0] == 0


def test_a_split_model_of_the_own_folder_goes_as_a_whole(models: Command, target_path: Path) -> None:
    from engine import catalog

    folder = catalog.user_drafter_folder()
    folder.mkdir(parents=True)
    parts = split(target_path, folder, 20)
    assert len(parts) > 1
    status, out, _ = models("remove", parts[0], "--json")
    assert status == 0 and json.loads(out)["freed_bytes"] > 0 and not list(folder.iterdir())


def test_a_downloaded_drafter_is_found_without_being_asked_for(
    hub_server: HubServer, models: Command, target: Header, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine import catalog

    monkeypatch.setattr("engine.catalog.drafter_folders", lambda: (catalog.user_drafter_folder(),))
    assert catalog.modes_for(target)[2].drafter is None
    hub_server.add("a/drafter-GGUF", {"whatever.gguf": V2})
    path = models("pull", "a/drafter-GGUF")[1].strip()
    assert catalog.modes_for(target)[2].drafter == path


def test_import_refuses_what_is_no_model(models: Command, tmp_path: Path) -> None:
    projector = write_target(tmp_path / "mmproj.gguf", architecture="clip")
    (tmp_path / "x.gguf").write_bytes(b"no")
    for given, said in (
        (projector, "no language model and no drafter"),
        (tmp_path / "x.gguf", "not a GGUF file"),
        (tmp_path / "gone.gguf", "does not exist"),
        (tmp_path, "--target FILE"),
    ):
        status, out, err = models("import", given)
        assert (status, out) == (2, "") and said in err


def test_a_token_comes_from_stdin_and_is_not_shown(models: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.hub_server import TOKEN

    monkeypatch.setattr("engine.hub_token._keyring", lambda: None)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n"))
    status, out, err = models("token")
    assert status == 0 and out.startswith("The token is in ") and TOKEN not in out + err
    monkeypatch.setattr("sys.stdin", io.StringIO("two\nlines"))
    status, _, err = models("token")
    assert status == 2 and "line break" in err and "two" not in err
    assert models("token", "--forget")[1] == "There is no token any more.\n"
