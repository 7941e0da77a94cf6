"""The command line: what it prints where, its exit statuses, and a sentence for everything that can go wrong."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from engine import catalog, commands
from engine.cli import build_parser, main
from engine.embedded import PART
from engine.events import Event, LoadProgress, Mode, PromptProgress

if TYPE_CHECKING:
    from tests.conftest import DrafterFiles

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
SHORT = ("--max-tokens", "8", "--context", "256", "--threads", "1")


class Said(NamedTuple):
    status: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command line in this process, without the drafters that come with the program."""
    monkeypatch.delenv(commands.DEBUG_VARIABLE, raising=False)
    monkeypatch.setattr("engine.catalog.drafter_folders", lambda: (catalog.user_drafter_folder(),))

    def run(*words: str | Path) -> Said:
        try:
            status = main([str(word) for word in words])
        except SystemExit as stop:  # argparse
            assert isinstance(stop.code, int)
            status = stop.code
        return Said(status, *capsys.readouterr())

    return run


def standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def is_one_sentence(said: Said) -> bool:
    return said.status == 2 and said.out == "" and said.err.count("\n") == 1 and "Traceback" not in said.err


# --- run --------------------------------------------------------------------------------------------------------------


def test_run_streams_the_answer_and_ends_with_the_statistics(command: Command, target_file: Path) -> None:
    said = command("run", "Write a haiku about rain.", *SHORT)
    assert said.status == 0
    assert said.out.strip() and said.out.endswith("\n") and said.out.count("\n") == 1 + said.out.strip().count("\n")
    lines = said.err.strip().splitlines()
    assert lines[0] == "Mode: baseline." and "No DFlash 2 drafter" in said.err
    assert re.fullmatch(
        r"Baseline: 8 tokens at [\d.]+ tokens/s, first token after [\d.]+ s, memory \d+ MiB, ended at the token limit",
        lines[-1],
    )


@pytest.mark.parametrize("mode", list(Mode))
def test_json_is_one_object_with_every_figure(
    command: Command, target_file: Path, drafter_dir: DrafterFiles, mode: Mode
) -> None:
    drafter = {Mode.BASELINE: None, Mode.DFLASH: drafter_dir.random_v1, Mode.DFLASH2: drafter_dir.random_v2}[mode]
    given = ("--mode", "baseline") if drafter is None else ("--drafter", drafter, "--draft-length", "3")
    said = command("run", "Write a haiku about rain.", "--json", *given, *SHORT)
    assert said.status == 0
    found = json.loads(said.out)
    assert list(found) == [
        "text", "token_ids", "mode", "target", "drafter", "prompt_tokens", "output_tokens", "tokens_per_second",
        "prompt_tokens_per_second", "time_to_first_token_s", "tokens_per_target_pass", "acceptance_length",
        "acceptance_rate", "acceptance_by_position", "verification_passes", "plain_tokens_per_second", "speed_up",
        "draft_length", "decision", "draft_ms", "verify_ms", "memory", "stop_reason",
    ]  # fmt: skip
    assert found["mode"] == mode.value and found["target"] == target_file.name
    assert found["drafter"] == (None if drafter is None else drafter.name)
    assert found["output_tokens"] == len(found["token_ids"]) == 8 and found["text"].strip()
    assert found["tokens_per_second"] > 0 and found["stop_reason"] == "max_tokens"
    assert found["memory"]["process"] > 0
    drafted = found["verification_passes"] > 0 and found["draft_ms"] > 0 and found["memory"]["drafter_kv"] > 0
    nothing_drafted = found["draft_ms"] is None and found["memory"]["drafter_kv"] is None
    assert nothing_drafted if drafter is None else drafted


def test_a_seed_repeats_a_sampled_answer(command: Command, target_file: Path) -> None:
    def answer(seed: str) -> str:
        sampling = ("--temperature", "1.5", "--top-k", "0", "--top-p", "1", "--min-p", "0", "--seed", seed)
        found: str = json.loads(command("run", "Name a city.", "--json", *sampling, *SHORT).out)["text"]
        return found

    first, again, other = answer("7"), answer("7"), answer("8")
    assert first == again != other


def test_the_prompt_can_come_from_stdin(
    command: Command, target_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = json.loads(command("run", "Was kostet 1 €?", "--json", *SHORT).out)
    standard_input(monkeypatch, "Was kostet 1 €?".encode())
    piped = json.loads(command("run", "-", "--json", *SHORT).out)
    assert piped["prompt_tokens"] == direct["prompt_tokens"] and piped["token_ids"] == direct["token_ids"]


def test_a_system_prompt_reaches_the_model(command: Command, target_file: Path) -> None:
    without = json.loads(command("run", "Hello", "--json", *SHORT).out)
    system = "You are a pirate who answers in one short sentence and never uses the letter e if that can be avoided."
    with_one = json.loads(command("run", "Hello", "--system", system, "--json", *SHORT).out)
    assert with_one["prompt_tokens"] != without["prompt_tokens"]


def test_ctrl_c_ends_the_answer_and_still_prints_the_statistics(target_file: Path) -> None:
    words = ("run", "Count from one to a thousand, in words.", "--mode", "baseline", "--threads", "1")
    program = [sys.executable, "-m", "engine", *words]
    process = subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    last = err.decode().strip().splitlines()[-1]
    assert last.startswith("Baseline: ") and last.endswith("stopped by you")
    assert b"Traceback" not in err


def test_nobody_reading_the_output_is_no_fault(target_file: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    program = [sys.executable, "-m", "engine", "run", "Hello", *SHORT]
    ran = subprocess.run(program, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert ran.returncode == 2 and "Error" not in ran.stderr


# --- which mode -------------------------------------------------------------------------------------------------------


def test_a_drafter_says_itself_which_mode_it_is_for(drafter_dir: DrafterFiles) -> None:
    for drafter, mode in ((drafter_dir.random_v1, Mode.DFLASH), (drafter_dir.random_v2, Mode.DFLASH2)):
        given = build_parser().parse_args(["run", "Hello", "--drafter", str(drafter)])
        assert commands._wanted_mode(given) == (mode, {mode: str(drafter)})


def test_the_best_mode_that_has_a_drafter_is_taken(
    command: Command, target_file: Path, drafter_dir: DrafterFiles, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("engine.catalog.user_drafter_folder", lambda: tmp_path)
    (tmp_path / "one.gguf").symlink_to(drafter_dir.random_v1)
    assert "Mode: DFlash, with one.gguf.\n" in command("run", "Hello", *SHORT).err
    (tmp_path / "two.gguf").symlink_to(drafter_dir.random_v2)
    assert "Mode: DFlash 2, with two.gguf.\n" in command("run", "Hello", *SHORT).err
    assert "Mode:" not in command("run", "Hello", "--mode", "dflash", *SHORT).err


def test_a_mode_without_a_drafter_is_refused_with_the_reason(command: Command, target_file: Path) -> None:
    said = command("run", "Hello", "--mode", "dflash2", *SHORT)
    assert is_one_sentence(said) and "No DFlash 2 drafter" in said.err and "--drafter" in said.err


def test_a_drafter_for_another_mode_is_refused(
    command: Command, target_file: Path, drafter_dir: DrafterFiles
) -> None:
    said = command("run", "Hello", "--mode", "dflash2", "--drafter", drafter_dir.random_v1, *SHORT)
    assert is_one_sentence(said)
    assert drafter_dir.random_v1.name in said.err and "is a DFlash drafter" in said.err


def test_baseline_says_that_it_does_not_use_the_drafter(
    command: Command, target_file: Path, drafter_dir: DrafterFiles
) -> None:
    said = command("run", "Hello", "--mode", "baseline", "--drafter", drafter_dir.random_v1, *SHORT)
    assert said.status == 0 and "The drafter is not used" in said.err


# --- what can be wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", ["", "  \n\t"])
def test_an_empty_prompt(command: Command, prompt: str) -> None:
    said = command("run", prompt)
    assert is_one_sentence(said) and "empty" in said.err


def test_text_that_is_not_utf_8(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from_argument = command("run", os.fsdecode(b"caf\xe9"))
    system = command("run", "Hello", "--system", os.fsdecode(b"\xff"))
    standard_input(monkeypatch, b"caf\xe9")
    from_stdin = command("run", "-")
    for said in (from_argument, from_stdin, system):
        assert is_one_sentence(said) and "not valid UTF-8" in said.err


def test_a_model_that_is_missing_or_no_model(command: Command, tmp_path: Path, drafter_dir: DrafterFiles) -> None:
    text = tmp_path / "notes.gguf"
    text.write_text("not a model at all")
    for file in (tmp_path / "gone.gguf", text, drafter_dir.random_v1):
        said = command("run", "Hello", "--model", file)
        assert is_one_sentence(said) and file.name in said.err
        if file != drafter_dir.random_v1:
            said = command("run", "Hello", "--drafter", file)
            assert is_one_sentence(said) and file.name in said.err


def test_a_context_that_is_too_small(command: Command, target_file: Path) -> None:
    tiny = command("run", "Hello", "--context", "8", "--threads", "1")
    assert is_one_sentence(tiny) and "too small" in tiny.err
    long = command("run", "word " * 300, "--context", "128", "--threads", "1", "--mode", "baseline")
    assert is_one_sentence(long) and "the context holds 128" in long.err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--temperature", "-1"), "not a number of at least 0"),
        (("--temperature", "nan"), "not a number of at least 0"),
        (("--top-p", "1.5"), "not a number from 0 to 1"),
        (("--top-k", "2.5"), "not a whole number"),
        (("--max-tokens", "0"), "not a whole number of at least 1"),
        (("--repetition-penalty", "0"), "not a number above 0"),
        (("--threads", "0"), "not a whole number from 1 to"),
        (("--threads", "10000000"), "not a whole number from 1 to"),
        (("--threads", "1" + 20 * "0"), "not a whole number from 1 to"),
        (("--model", ""), "--model: No file name was given"),
        (("--drafter", " "), "--drafter: No file name was given"),
        (("--mode", "fast"), "dflash2"),
        (("--no-such-option",), "--no-such-option"),
    ],
)
def test_wrong_options_get_a_sentence(command: Command, words: tuple[str, ...], part: str) -> None:
    said = command("run", "Hello", *words)
    assert is_one_sentence(said) and part in said.err and "--help" in said.err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--seed", "-1"), "--seed is -1; it must be"),
        (("--presence-penalty", "inf"), "--presence-penalty is inf; it must be"),
        (("--penalty-last-n", "-2"), "--penalty-last-n is -2; it must be"),
    ],
)
def test_sampler_settings_are_checked_before_anything_is_loaded(
    command: Command, words: tuple[str, ...], part: str
) -> None:
    said = command("run", "Hello", "--model", "gone.gguf", *words)
    assert is_one_sentence(said) and part in said.err


@pytest.mark.parametrize(
    ("redirection", "part"), [("<&-", "The prompt is empty"), ("0> /dev/null", "cannot be read from stdin")]
)
def test_no_standard_input(redirection: str, part: str) -> None:
    said = in_shell(f"run - {redirection}")
    assert is_one_sentence(said) and part in said.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_outputs_that_take_nothing() -> None:
    fixture = FIXTURES / "dflash2.gguf"
    said = in_shell(f"inspect '{fixture}' > /dev/full")
    assert is_one_sentence(said) and said.err.startswith("The output cannot be written (")
    assert in_shell(f"inspect '{fixture}' >&-") == (0, "", "")
    status, out, err = in_shell(f"inspect '{fixture}' 2>&-")
    assert (status, err) == (0, "") and "DFlash 2" in out
    assert in_shell("inspect gone.gguf 2> /dev/full") == (2, "", "")


def in_shell(words: str) -> Said:
    line = f"'{sys.executable}' -m engine {words}"
    ran = subprocess.run(line, cwd=ROOT, shell=True, capture_output=True, text=True)
    return Said(ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "Stopped.\n"),
        (
            ModuleNotFoundError("No module named 'numpy'"), 2,
            "The environment is incomplete (No module named 'numpy'); run python3 start.py again.\n",
        ),
    ],
)
def test_imports_that_are_interrupted_or_fail(
    command: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, said: str
) -> None:
    def fails(_words: list[str]) -> int:
        raise error

    monkeypatch.setattr("engine.cli._obey", fails)
    assert command("run", "Hello") == (status, "", said)


def test_progress_is_told_in_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    events: tuple[Event, ...] = (PromptProgress(2, 5), PromptProgress(4, 5), PromptProgress(5, 5))
    shown = commands._Shown(stream=False, context=64)
    for event in events:
        shown.event(event)
    assert capsys.readouterr().err == ""  # it was fast
    monkeypatch.setattr(commands, "PROGRESS_SECONDS", 0)
    shown = commands._Shown(stream=False, context=64)
    events += (LoadProgress(PART, 0.0), LoadProgress(PART, 0.5), LoadProgress(PART, 1.0))
    for event in events:
        shown.event(event)
    assert capsys.readouterr().err.splitlines() == [
        "reading the prompt: 40 %", "reading the prompt: 80 %", "Preparing the embedded model (this happens once)…",
        "preparing the embedded model: 0 %", "preparing the embedded model: 50 %",
    ]  # fmt: skip


def test_what_is_not_used_as_given_is_said(
    command: Command, target_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "DEFAULT_MAX_TOKENS", 4)
    given = ("--mode", "baseline", "--draft-length", "3", "--context", "8193", "--threads", "1")
    said = command("run", "Write a haiku about rain.", *given)
    assert said.status == 0
    assert said.err.splitlines()[:-1] == [
        "The model was trained for 8192 tokens of context; that is used.",
        "The draft length is not used: the mode baseline does not draft.",
        "Stopped after 4 tokens; --max-tokens allows more.",
    ]


def test_a_prompt_without_run_before_it(command: Command) -> None:
    said = command("Write a haiku")
    assert is_one_sentence(said) and 'run "' in said.err


def test_the_version(command: Command) -> None:
    said = command("--version")
    assert said.status == 0 and re.fullmatch(r"dflash-chat \d+\.\d+\.\d+\n", said.out)


def test_what_nobody_foresaw_is_a_sentence_too_unless_the_whole_story_is_wanted(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_given: object) -> int:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(commands, "run", broken)
    said = command("run", "Hello")
    assert is_one_sentence(said) and "ZeroDivisionError: a fault" in said.err and "--debug" in said.err
    monkeypatch.setenv(commands.DEBUG_VARIABLE, "1")
    monkeypatch.setattr("logging.basicConfig", lambda **_: None)
    assert "Traceback" in command("run", "Hello").err


# --- the others -------------------------------------------------------------------------------------------------------


def test_inspect_tells_a_target_from_a_drafter(command: Command, target_file: Path, drafter_dir: DrafterFiles) -> None:
    target = command("inspect", target_file)
    assert target.status == 0 and "llama" in target.out
    drafter = command("inspect", drafter_dir.random_v2, "--target", target_file)
    assert drafter.status == 0 and "DFlash 2" in drafter.out and str(target_file) in drafter.out
    found = json.loads(command("inspect", drafter_dir.random_v1, "--json", "--target", target_file).out)
    assert found["kind"] == "dflash" and str(target_file) in found["fits"]


def test_inspect_says_what_is_wrong(command: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.gguf").write_text("not a model at all")
    said = command("inspect", tmp_path / "notes.gguf")
    assert said.status == 1 and "notes.gguf" in said.out and said.err == ""


def test_inspect_needs_a_file_to_look_at_and_targets_that_are_some(command: Command, tmp_path: Path) -> None:
    for path, part in ((tmp_path / "gone.gguf", "does not exist"), (tmp_path, "is a folder")):
        assert is_one_sentence(said := command("inspect", path)) and part in said.err
        assert is_one_sentence(said := command("inspect", FIXTURES / "dflash2.gguf", "--target", path))
        assert part in said.err
    said = command("inspect", FIXTURES / "dflash2.gguf", "--target", FIXTURES / "dflash2.gguf")
    assert is_one_sentence(said) and "not a chat model" in said.err


def test_check_drafter_passes_its_own_record_and_fails_past_the_tolerance(command: Command) -> None:
    files = (FIXTURES / "dflash2.gguf", FIXTURES / "dflash2.npz")
    said = command("check-drafter", *files)
    assert said.status == 0 and "agrees" in said.out
    for quantity in ("hidden", "logits", "unary", "score_first", "score_rest", "q_rows", "paths", "candidates"):
        assert quantity in said.out
    strict = command("check-drafter", *files, "--tolerance", "1e-12", "--json")
    report = json.loads(strict.out)
    assert strict.status == 1 and not report["passed"] and report["paths_equal"] and report["cycles"] == 4


def test_check_drafter_needs_the_right_files(command: Command, tmp_path: Path) -> None:
    assert is_one_sentence(command("check-drafter", tmp_path / "gone.gguf", FIXTURES / "dflash2.npz"))
    said = command("check-drafter", FIXTURES / "dflash2.gguf", tmp_path / "gone.npz")
    assert is_one_sentence(said) and "gone.npz" in said.err


def test_help_names_every_command_and_waits_for_nothing(command: Command) -> None:
    said = command("--help")
    assert said.status == 0 and "examples:" in said.out
    for name in ("window", "run", "inspect", "check-drafter", "measure-quantisation"):
        assert f"    {name}" in said.out
    program = (
        "import sys, engine.cli as c; c.build_parser().format_help(); print({'numpy', 'llama_cpp'} & {*sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert ran.stdout == "set()\n", ran.stderr


def test_no_command_and_no_display_says_how_to_ask_in_the_terminal() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment.pop("QT_QPA_PLATFORM", None)
    ran = subprocess.run([sys.executable, "-m", "engine"], cwd=ROOT, capture_output=True, text=True, env=environment)
    assert ran.returncode == 2 and "display" in ran.stderr and "dflash-chat run" in ran.stderr
