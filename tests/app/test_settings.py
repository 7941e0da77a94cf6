"""Settings are stored whole, and a file that makes no sense loses only what makes none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.settings import SAMPLERS, Settings, SettingsStore, given_by, settings_file
from engine.events import LoadSettings, Mode, SamplerSettings


def test_everything_comes_back_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config" / "settings.json"
    store = SettingsStore(path)
    assert store.settings == Settings() and store.trouble is None and not path.exists()
    own = SamplerSettings(temperature=0.3, top_k=7, seed=11)
    changed = store.change(
        mode=Mode.DFLASH,
        target="/models/모델.gguf",
        drafters={"/models/모델.gguf": {Mode.DFLASH2: "/d2.gguf"}},
        samplers={"mine": own},
        sampler_name="mine",
        system_prompts={"pirate": "Speak like a pirate."},
        system_prompt_name="pirate",
        draft_length=4,
        theme="dark",
        font_family="Pretendard",
    )
    assert len(changed) == 10
    again = SettingsStore(path).settings
    assert again == store.settings
    assert again.sampler() == own and again.system_prompt() == "Speak like a pirate."
    assert again.load_settings() == LoadSettings(target="/models/모델.gguf", drafters={Mode.DFLASH2: "/d2.gguf"})
    assert [kept.name for kept in path.parent.iterdir()] == ["settings.json"]  # nothing half-written beside it


@pytest.mark.parametrize("content", [b"{", b"", b"[1, 2]", b"\xff\xfe\x00", b"[" * 100_000])
def test_a_broken_file_is_kept_aside_and_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.json"
    (tmp_path / "settings-broken-1.json").write_text("an older one")
    path.write_bytes(content)
    store = SettingsStore(path)
    assert store.settings == Settings()
    assert store.trouble is not None and "settings-broken-2.json" in store.trouble
    assert (tmp_path / "settings-broken-2.json").read_bytes() == content
    assert (tmp_path / "settings-broken-1.json").read_text() == "an older one"
    store.change(context=2048)
    assert SettingsStore(path).settings.context == 2048


def test_fields_without_sense_fall_back_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    found = {
        "context": -5,
        "theme": "purple",
        "mode": "warp",
        "font_size": True,
        "samplers": {"mine": {"temperature": "hot"}},
        "draft_length": 3,
        "language": "ko",
        "of_a_later_version": 1,
    }
    path.write_text(json.dumps(found))
    store = SettingsStore(path)
    assert store.settings == Settings(draft_length=3, language="ko")
    assert store.trouble is not None
    for name in ("context", "theme", "mode", "font_size", "samplers"):
        assert name in store.trouble
    assert "of_a_later_version" not in store.trouble
    again = SettingsStore(path)
    assert again.settings == store.settings and again.trouble is None


def test_what_was_given_for_one_run_is_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    SettingsStore(path).change(target="/mine.gguf", context=2048)
    load = LoadSettings(target="/other.gguf", drafters={Mode.DFLASH: "/d.gguf"}, threads=2)
    run = SettingsStore(path, given_by(load))
    assert run.settings.load_settings() == LoadSettings("/other.gguf", {Mode.DFLASH: "/d.gguf"}, 2048, threads=2)
    run.change(theme="dark")
    assert SettingsStore(path).settings == Settings(target="/mine.gguf", context=2048, theme="dark")
    run.change(target="/third.gguf")  # by the user's hand: this is meant to stay
    assert SettingsStore(path).settings.target == "/third.gguf"
    assert SettingsStore(path).settings.threads is None


def test_drafters_that_were_given_are_for_the_target_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    SettingsStore(path).change(target="/mine.gguf", drafters={"": {Mode.DFLASH: "/old.gguf"}})
    run = SettingsStore(path, {"drafters": {Mode.DFLASH2: "/new.gguf"}})
    assert run.settings.load_settings() == LoadSettings("/mine.gguf", {Mode.DFLASH2: "/new.gguf"})
    assert run.settings.drafters_of(None) == {Mode.DFLASH: "/old.gguf"}


def test_the_defaults_come_back_and_what_the_user_wrote_stays() -> None:
    store = SettingsStore()
    store.change(context=512, system_prompts={"mine": "Be kind."}, system_prompt_name="mine")
    assert store.change(**store.defaults()) == {"context", "system_prompt_name"}
    assert store.settings == Settings(system_prompts={"mine": "Be kind."})


def test_a_preset_that_is_gone_is_no_error() -> None:
    settings = Settings(sampler_name="gone", system_prompt_name="gone")
    assert settings.sampler() == SAMPLERS["precise"] and settings.system_prompt() is None


def test_the_file_lies_in_the_users_folder() -> None:
    assert settings_file().name == "settings.json" and settings_file().parent.name == "dflash-chat"
