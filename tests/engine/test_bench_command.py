"""`dflash-chat bench`: what it prints where, its exit statuses, and the sets of questions from a Hub."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.bench.results import read
from engine.bench.sets import SETS, named_set
from engine.cli import main
from engine.errors import PromptError

if TYPE_CHECKING:
    from tests.engine.conftest import TinyModels

Capture = pytest.CaptureFixture[str]


def bench(*words: str | Path) -> int:
    try:
        return main(["bench", *map(str, words)])
    except SystemExit as stop:  # argparse
        assert isinstance(stop.code, int)
        return stop.code


def test_a_report_is_made_and_not_made_twice(tiny_models: TinyModels, tmp_path: Path, capsys: Capture) -> None:
    questions = tmp_path / "mine.json"
    questions.write_text('{"letters": [{"text": "Go on.", "check": {"contains": "abc"}}]}')
    out = tmp_path / "report"
    words = (
        "--model", tiny_models.counting, "--drafter", tiny_models.counting_v2, "--modes", "dflash2",
        "--suite", questions, "--concurrency", "1", "--temperature", "0", "--max-tokens", "9", "--runs", "1",
        "--threads", "1", "--context", "256", "--sweep", "none", "--draft-length", "3", "--out", out,
    )  # fmt: skip
    assert bench(*words) == 0
    said = capsys.readouterr()
    assert "tokens/s, one at a time" in said.out and "acceptance length" in said.out
    assert "1 of 1: DFlash 2 × 1, run 1" in said.err and "report.html" in said.err
    results = read(out)
    assert results.finished and len(results.parts) == 1 and results.parts[0].answers[0].right is True
    assert results.command == (
        "dflash-chat bench --model counting.gguf --drafter counting-v2.gguf --modes dflash2 --draft-length 3 "
        "--suite mine.json --concurrency 1 --temperature 0 --max-tokens 9 --runs 1 --threads 1 --context 256 "
        "--sweep none"
    )
    assert "<html" in (out / "report.html").read_text("utf-8") and (out / "report.md").exists()
    assert bench(*words) == 2
    assert capsys.readouterr().err.strip().endswith("choose another folder with --out to repeat it.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--modes", "fast"), "fast is not a list of baseline, dflash, dflash2"),
        (("--concurrency", "0"), "0 is not a whole number of at least 1"),
        (("--temperature", "-1"), "-1 is not a list of numbers"),
        (("--sweep", "everything"), "everything is not none, all or a list of"),
        (("--suite", "riddles"), "There are no questions called riddles"),
        (("--kinds", "verse"), "There are no questions of the kind verse"),
        (("--threads", "9999999"), "9999999 is not a whole number from 1 to"),
        (("--beside", "nowhere.json"), "nowhere.json is not a benchmark's results"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    words: tuple[str, ...], said: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert bench(*words) == 2
    found = capsys.readouterr()
    assert said in found.err and found.out == "" and "Traceback" not in found.err
    assert not list(tmp_path.iterdir()), "no folder is made for it"


# --- sets from a Hub --------------------------------------------------------------------------------------------------

FILES: dict[str, dict[str, list[dict[str, Any]]]] = {
    "HuggingFaceH4/MATH-500": {"test.jsonl": [{"problem": "1+1?", "answer": "2"}, {"problem": "2+2?", "answer": "4"}]},
    "HuggingFaceH4/mt_bench_prompts": {"raw/question.jsonl": [{"prompt": ["First?", "Second?"]}]},
}


class Hub(BaseHTTPRequestHandler):
    """Answers for data sets as the Hub does."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        for repository, files in FILES.items():
            if path == f"/api/datasets/{repository}/tree/main":
                listed = [{"type": "file", "path": name, "size": 9, "oid": "1" * 40} for name in files]
                self._answer(json.dumps(listed).encode(), "application/json")
                return
            if path == f"/api/datasets/{repository}" or path.startswith(f"/api/datasets/{repository}/revision"):
                told = {"id": repository, "sha": "a" * 40, "siblings": [{"rfilename": name} for name in files]}
                self._answer(json.dumps(told).encode(), "application/json")
                return
            for name, rows in files.items():
                if path == f"/datasets/{repository}/resolve/main/{name}":
                    self._answer("\n".join(map(json.dumps, rows)).encode(), "text/plain")
                    return
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        for name, value in {
            "Content-Type": kind, "Content-Length": str(len(body)), "ETag": '"e1"', "X-Repo-Commit": "a" * 40
        }.items():  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        server.daemon_threads = False
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield address
        from huggingface_hub import close_session

        close_session()
        server.shutdown()
        thread.join()


def test_sets_come_by_name(hub: str) -> None:
    one, two = named_set("math-500", 5)
    assert one.text.startswith("1+1?") and one.kind == "MATH-500" and one.name == "MATH-500 1"
    assert two.check is not None and two.check.passes("It is \\boxed{4}.") and not two.check.passes("\\boxed{5}")
    assert [q.text for q in named_set("mt-bench", 5)] == ["First?"]


def test_a_set_that_cannot_be_had_is_said_in_a_sentence(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILES, "HuggingFaceH4/MATH-500", {"other.jsonl": []})
    with pytest.raises(PromptError, match="no longer holds test.jsonl"):
        named_set("math-500", 5)
    monkeypatch.delitem(FILES, "HuggingFaceH4/MATH-500")
    with pytest.raises(PromptError, match="could not be fetched"):
        named_set("math-500", 5)


def test_without_a_connection_a_set_is_left_out_by_a_sentence(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert bench("--suite", "math-500") == 2
    assert "MATH-500 could not be fetched" in capsys.readouterr().err


def test_rows_of_the_sets_become_questions() -> None:
    def question(name: str, row: dict[str, object]) -> str:
        text, check = SETS[name].question(row)
        return text if check is None else f"{text} → {check.expected[0]}"

    assert question("gsm8k", {"question": "How many?", "answer": "So it is\n#### 1,200"}) == "How many? → 1,200"
    assert "def f(" in question("humaneval", {"prompt": "def f():\n"})
    assert "assert f() == 1" in question("mbpp", {"prompt": "Write f.", "test_list": ["assert f() == 1"]})
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(PromptError, match="install pyarrow"):
            named_set("gsm8k", 1)
