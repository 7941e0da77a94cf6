"""The sets of questions that papers use, by name, from the Hugging Face Hub. They are downloaded only when asked for.

Some are Parquet files, for which pyarrow must be there. Knows nothing of what is done with the questions.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.bench.suite import Check, Question
from engine.errors import PromptError

Row = Mapping[str, Any]


@dataclass(frozen=True)
class NamedSet:
    title: str
    repository: str
    files: str  # a pattern for the path in the repository
    question: Callable[[Row], tuple[str, Check | None]]


def _gsm8k(row: Row) -> tuple[str, Check | None]:
    return row["question"], Check("last_number", (row["answer"].rpartition("####")[2].strip(),))


def _math(row: Row) -> tuple[str, Check | None]:
    return f"{row['problem']}\n\nPut the final answer into \\boxed{{}}.", Check("boxed", (row["answer"],))


def _humaneval(row: Row) -> tuple[str, Check | None]:
    return f"Complete this Python function.\n\n```python\n{row['prompt']}```", None


def _mbpp(row: Row) -> tuple[str, Check | None]:
    tests = "\n".join(row["test_list"])
    return f"{row.get('prompt') or row['text']} Write it in Python. It must pass these tests:\n\n{tests}", None


def _mt_bench(row: Row) -> tuple[str, Check | None]:
    turns = row.get("prompt") or row["turns"]
    return turns[0], None  # the first of its two questions: every question here is a conversation of its own


SETS = {
    "gsm8k": NamedSet("GSM8K", "openai/gsm8k", "main/test*.parquet", _gsm8k),
    "math-500": NamedSet("MATH-500", "HuggingFaceH4/MATH-500", "test.jsonl", _math),
    "humaneval": NamedSet("HumanEval", "openai/openai_humaneval", "openai_humaneval/test*.parquet", _humaneval),
    "mbpp": NamedSet("MBPP", "google-research-datasets/mbpp", "sanitized/test*.parquet", _mbpp),
    "mt-bench": NamedSet("MT-Bench", "HuggingFaceH4/mt_bench_prompts", "raw/question.jsonl", _mt_bench),
}


def named_set(name: str, count: int) -> list[Question]:
    """The first `count` questions of a set. Raises PromptError when it cannot be had."""
    chosen = SETS[name]
    if chosen.files.endswith(".parquet") and importlib.util.find_spec("pyarrow") is None:
        raise PromptError(
            f"The set {chosen.title} is a Parquet file; install pyarrow to read it: {sys.executable} -m pip install "
            "pyarrow"
        )
    questions: list[Question] = []
    for row in _rows(_downloaded(chosen)):
        if len(questions) == count:
            break
        text, check = chosen.question(row)
        questions.append(Question(f"{chosen.title} {len(questions) + 1}", chosen.title, text, check))
    return questions


def _downloaded(chosen: NamedSet) -> Path:
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.utils import disable_progress_bars, tqdm

    from engine.hub_connection import connect, endpoint_of

    try:
        endpoint = endpoint_of()
        connect(endpoint)
        disable_progress_bars()
        tqdm.monitor_interval = 0  # even a bar that shows nothing starts a thread that stays
        files = HfApi(endpoint).list_repo_files(chosen.repository, repo_type="dataset")
        fitting = sorted(fnmatch.filter(files, chosen.files))
        if not fitting:
            raise PromptError(
                f"The repository {chosen.repository} no longer holds {chosen.files}; "
                "give the questions as a file with --suite FILE.json."
            )
        return Path(hf_hub_download(chosen.repository, fitting[0], repo_type="dataset", endpoint=endpoint))
    except PromptError:
        raise
    except Exception as error:  # the network's errors, the library's own, the disk's
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise PromptError(
            f"The set {chosen.title} could not be fetched from the Hugging Face Hub. {first} "
            "Without it, leave it out of --suite."
        ) from error


def _rows(file: Path) -> Iterator[Row]:
    if file.suffix == ".parquet":
        import pyarrow.parquet

        for batch in pyarrow.parquet.ParquetFile(file).iter_batches():
            yield from batch.to_pylist()
        return
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
