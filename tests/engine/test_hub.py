"""A Hub over HTTP: what is found and told, each way in which it refuses, and where the token goes."""

from __future__ import annotations

import importlib
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.errors import HubError, SettingsError
from engine.hub import Hub
from engine.hub_token import TokenStore, clean_token
from engine.remote_model import parse_repository, refused_name
from tests.hub_server import TOKEN, HubFile, HubServer

ROOT = Path(__file__).parents[2]
DATA = bytes(range(256)) * 40


def refusal(hub: Hub, repository: str = "a/model") -> HubError:
    with pytest.raises(HubError) as caught:
        hub.repository(repository)
    return caught.value


def read(hub: Hub, repository: str = "a/model", name: str = "m.gguf") -> bytes:
    file = next(file for file in hub.repository(repository).files if file.name == name)
    with hub.open(file, 0) as response, hub.reading():
        return b"".join(response.iter_raw())


# --- what there is ----------------------------------------------------------------------------------------------------


def test_search_tells_what_a_list_needs(hub_server: HubServer, hub: Hub) -> None:
    facts = {"architecture": "dflash", "context_length": 4096, "total": 10**9}
    hub_server.add("a/Qwen3-8B-DFlash-GGUF", {"m.gguf": DATA}, downloads=5, gguf=facts, base_model="Qwen/Qwen3-8B")
    hub_server.add("b/Qwen3-8B-GGUF", {"m.gguf": DATA}, downloads=50, gated=True)
    hub_server.add("c/hidden-qwen3", {"m.gguf": DATA}, private=True)
    found = hub.search("qwen3")
    assert [repository.id for repository in found] == ["b/Qwen3-8B-GGUF", "a/Qwen3-8B-DFlash-GGUF"]
    popular, drafter = found
    assert popular.gated and not drafter.gated
    assert (drafter.architecture, drafter.context_length, drafter.parameters) == ("dflash", 4096, 10**9)
    assert (drafter.licence, drafter.base_models, drafter.downloads) == ("mit", ("Qwen/Qwen3-8B",), 5)
    assert drafter.url == f"{hub_server.url}/a/Qwen3-8B-DFlash-GGUF" and not drafter.left_out
    for words in ("qwen3 8b dflash", "DFlash  Qwen3", "a/qwen3-8b-d"):
        assert [repository.id for repository in hub.search(words)] == ["a/Qwen3-8B-DFlash-GGUF"]
    assert hub.search("qwen3 70b") == ()


def test_a_repository_tells_size_and_sha256_and_puts_parts_together(hub_server: HubServer, hub: Hub) -> None:
    parts = {f"big-Q8_0-0000{number}-of-00003.gguf": bytes([number]) * 10 for number in (1, 2, 3)}
    lacking = {"sub/half-00001-of-00002.gguf": b"h"}
    hub_server.add("a/model", {"z-Q4_K_M.gguf": DATA, "README.md": HubFile(b"hello", lfs=False), **parts, **lacking})
    repository = hub.repository("a/model")
    models = {model.name: model for model in repository.models}
    assert set(models) == {"big-Q8_0.gguf", "half.gguf", "z-Q4_K_M.gguf"}
    big = models["big-Q8_0.gguf"]
    assert (big.size, big.quantisation, len(big.files)) == (30, "Q8_0", 3) and big.problem is None
    assert [file.name[-19:] for file in big.files] == [f"0000{number}-of-00003.gguf"[-19:] for number in (1, 2, 3)]
    assert "lacks part 2 of 2" in (models["half.gguf"].problem or "")
    file = models["z-Q4_K_M.gguf"].files[0]
    assert (file.size, file.sha256) == (len(DATA), HubFile(DATA).sha256)
    readme = next(file for file in repository.files if file.name == "README.md")
    assert readme.sha256 is None and readme.blob == HubFile(b"hello").git


@pytest.mark.parametrize(
    "name",
    ["../evil.gguf", "a/../../evil.gguf", "/etc/evil.gguf", "a\\..\\evil.gguf", "C:evil.gguf", "nul.gguf", "a//b.gguf",
     "evil.gguf\n", "e\0vil.gguf", "a/./b.gguf", "x" * 300 + ".gguf", " a.gguf", "con", "a.gguf."],
)  # fmt: skip
def test_a_name_that_leads_out_of_its_folder_is_refused(hub_server: HubServer, hub: Hub, name: str) -> None:
    assert refused_name(name) is not None
    hub_server.add("a/model", {"m.gguf": DATA, "evil": HubFile(DATA, rename=name)})
    repository = hub.repository("a/model")
    assert [file.name for file in repository.files] == ["m.gguf"]
    assert len(repository.left_out) == 1 and "name" in repository.left_out[0]


def test_what_a_user_may_type_for_a_repository() -> None:
    for text, meant in (
        ("a/b", ("a/b", None)),
        (" https://huggingface.co/a/b-GGUF/ ", ("a/b-GGUF", None)),
        ("hf.co/a/b:Q4_K_M", ("a/b", "Q4_K_M")),
        ("a/b/sub/x.gguf", ("a/b", "sub/x.gguf")),
        ("https://huggingface.co/a/b/blob/main/x.gguf", ("a/b", "x.gguf")),
        ("http://localhost:8080/a/b/resolve/main/d/x.gguf?download=true", ("a/b", "d/x.gguf")),
    ):
        assert parse_repository(text) == meant
    for text in (
        "",
        "b",
        "a/..",
        "../etc",
        "a/b--c",
        "-a/b",
        "a b/c",
        "a/b.git",
        "https://huggingface.co",
        "http://[a/b",
    ):
        with pytest.raises(HubError, match="names no repository"):
            parse_repository(text)


# --- refusals: a sentence each, and nothing is tried again behind the user's back -----------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [(500, "server", "a fault of its own (500)"), (503, "server", "fault"), (429, "busy", "again in 7 seconds"),
     (403, "forbidden", "refuses a/model"), (404, "not found", "does not show a/model"), (418, "answer", "HF_END")],
)  # fmt: skip
def test_each_status_is_a_sentence(hub_server: HubServer, hub: Hub, status: int, kind: str, said: str) -> None:
    hub_server.add("a/model", {"m.gguf": DATA})
    hub_server.trouble.retry_after = "7"
    for ask in (lambda: hub.repository("a/model"), lambda: hub.search("a/model")):
        hub_server.trouble.api_statuses = [status]
        with pytest.raises(HubError) as caught:
            ask()
        assert caught.value.kind == kind
        assert hub_server.trouble.api_statuses == []
    hub_server.trouble.api_statuses = [status]
    assert said in str(refusal(hub))
    assert len(hub_server.seen) == 3


def test_unknown_private_and_gated_say_what_to_do(
    hub_server: HubServer, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_server.add("a/private", {"m.gguf": DATA}, private=True)
    hub_server.add("a/gated", {"m.gguf": DATA}, gated=True)
    for repository in ("a/unknown", "a/private"):
        error = refusal(hub, repository)
        assert error.kind == "not found" and f"does not show {repository}" in str(error) and "private" in str(error)
    with pytest.raises(HubError, match=r"a/gated is gated: sign in at http.*/a/gated, accept .* token") as caught:
        read(hub, "a/gated")
    assert (caught.value.kind, caught.value.link) == ("gated", f"{hub_server.url}/a/gated")
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert refusal(hub, "a/gated").kind == "token"
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert read(hub, "a/gated") == read(hub, "a/private") == DATA


def test_a_file_or_version_that_is_gone(hub_server: HubServer, hub: Hub) -> None:
    repository = hub_server.add("a/model", {"m.gguf": DATA})
    file = hub.repository("a/model").files[0]
    del repository.files["m.gguf"]
    with pytest.raises(HubError, match=r"a/model has no file m\.gguf \(any more\)"), hub.open(file, 0):
        pass
    repository.commit = "b" * 40
    with pytest.raises(HubError, match="no such version"), hub.open(file, 0):
        pass


def test_offline_is_told_at_once(hub: Hub, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    nobody = Hub(f"http://127.0.0.1:{port}", tmp_path)
    for ask in (lambda: nobody.search("x"), lambda: nobody.repository("a/b")):
        with pytest.raises(HubError, match=r"You are offline: 127\.0\.0\.1 cannot be reached; what is on disk works"):
            ask()


def test_a_dead_proxy_is_named_without_its_password(hub_server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import close_session

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@localhost:{port}")
    close_session()  # the client reads the environment when it is made
    try:
        with pytest.raises(HubError, match="through the proxy localhost") as caught:
            Hub().search("x")
        assert caught.value.kind == "proxy" and "secret" not in str(caught.value)
    finally:
        close_session()


def test_the_environment_can_forbid_to_ask(hub_server: HubServer) -> None:
    program = [sys.executable, "-m", "engine", "models", "find", "x"]
    ran = subprocess.run(program, cwd=ROOT, env=os.environ | {"HF_HUB_OFFLINE": "1"}, capture_output=True, text=True)
    assert ran.returncode == 2 and ran.stderr.startswith("HF_HUB_OFFLINE is set") and hub_server.seen == []


def test_what_is_no_hub_at_all(hub_server: HubServer, tmp_path: Path) -> None:
    elsewhere = Hub(hub_server.second_url, tmp_path)
    with pytest.raises(HubError):
        elsewhere.search("x")
    for endpoint in ("nonsense", "ftp://x", "http://", "http://x:y", "http://x:99999", "http://[::1"):
        with pytest.raises(HubError, match="no web address"):
            Hub(endpoint)
    with pytest.raises(HubError, match="a user's name or password in it") as caught:
        Hub("https://me:secret@hub.example")
    assert "secret" not in str(caught.value)


# --- the token --------------------------------------------------------------------------------------------------------


def test_the_token_goes_to_the_endpoint_alone_and_into_no_log(
    hub_server: HubServer, hub: Hub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hub_server.add("a/model", {"m.gguf": DATA}, gated=True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert read(hub) == DATA
    hub.search("model")
    sent = {seen.host: seen.headers.get("authorization") for seen in hub_server.seen}
    assert sent == {"hub": f"Bearer {TOKEN}", "second": None}
    hub_server.tokens.clear()
    assert TOKEN not in str(refusal(hub)) and TOKEN not in caplog.text
    assert hub_server.second_url not in caplog.text, "nor the address that was signed for its owner"


def test_even_a_hub_that_sends_its_own_client_away_does_not_pass_the_token_on(
    hub_server: HubServer, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes the request: the rule is the connection's."""
    from huggingface_hub import get_session

    for url, arrives in ((f"{hub_server.url}/api/models", True), (f"{hub_server.second_url}/x", False)):
        try:
            get_session().get(url, headers={"authorization": f"Bearer {TOKEN}"})
        except HubError:
            pass
        assert ("authorization" in hub_server.seen[-1].headers) is arrives


@pytest.mark.parametrize(
    "text", ["hf_abc\ndef", "hf_abc\r\nX-Evil: 1", "", "  ", "hf_ä", "hf_a b", "hf_\0", "x" * 5000]
)
def test_what_is_no_token(text: str) -> None:
    with pytest.raises(SettingsError, match="token"):
        clean_token(text)


@contextmanager
def keyring_is(backend: Any) -> Iterator[None]:
    import keyring

    before = keyring.get_keyring()
    keyring.set_keyring(backend)
    try:
        yield
    finally:
        keyring.set_keyring(before)


@pytest.fixture(params=["fail", "null"])
def no_keyring(request: pytest.FixtureRequest) -> Iterator[None]:
    """None, or one that keeps nothing."""
    with keyring_is(importlib.import_module(f"keyring.backends.{request.param}").Keyring()):
        yield


def test_a_pasted_token_loses_the_blanks_around_it_and_is_for_its_owner_alone(
    hub_server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_keyring: None
) -> None:
    store = TokenStore(hub_server.url)
    assert store.token() is None and store.place is None
    path = Path(store.keep(f"  {TOKEN}\n"))
    assert path == tmp_path / "hf" / "token" and path.stat().st_mode & 0o777 == 0o600
    assert store.token() == TOKEN and store.place == str(path)
    store.forget()
    assert store.token() is None and not path.exists()
    monkeypatch.setenv("HF_TOKEN", "hf_broken\nin two")
    assert store.token() is None


def test_a_keyring_keeps_the_token_where_there_is_one(hub_server: HubServer) -> None:
    from keyring.backend import KeyringBackend

    class Memory(KeyringBackend):  # a real backend of that library, for which nobody has to be asked
        priority = 1
        kept: dict[tuple[str, str], str] = {}  # noqa: RUF012

        def get_password(self, service: str, username: str) -> str | None:
            return self.kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.kept[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del self.kept[service, username]

    with keyring_is(Memory()):
        store = TokenStore(hub_server.url)
        assert store.token() is None
        assert store.keep(TOKEN) == store.place == "the system's keyring"
        assert store.token() == TOKEN and TokenStore("https://another.hub").token() is None
        store.forget()
        assert store.token() is None and Memory.kept == {}


# --- the whole program ------------------------------------------------------------------------------------------------


def test_the_environment_points_the_whole_program_at_a_hub(hub_server: HubServer, tmp_path: Path) -> None:
    hub_server.add("a/model-GGUF", {"m-Q8_0.gguf": DATA}, gated=True)
    environment = os.environ | {
        "HF_ENDPOINT": f"{hub_server.url}/",
        "HF_HOME": str(tmp_path / "home"),
        "HF_TOKEN": TOKEN,
    }
    program = [sys.executable, "-m", "engine", "models", "pull", "a/model-GGUF"]
    ran = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    path = Path(ran.stdout.strip())
    assert path.read_bytes() == DATA and tmp_path / "home" / "hub" in path.parents
    assert {seen.headers["user-agent"] for seen in hub_server.seen} == {"dflash-chat"}
    assert all(TOKEN not in text for text in (ran.stdout, ran.stderr))
