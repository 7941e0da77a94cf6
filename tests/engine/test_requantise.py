"""The process in which a model is requantised goes with the one that wants it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

from tests.packaged_target import packaged_target

_PROGRAM = """
import sys
from pathlib import Path
from engine.embedded import RECIPE
from engine.requantise import requantise

def told(size):
    if size:
        print(size, flush=True)

requantise(Path(sys.argv[1]), Path(sys.argv[2]), RECIPE, told)
"""


def test_a_killed_parent_takes_it_along(tmp_path: Path) -> None:
    copy = tmp_path / "copy.gguf"
    command = [sys.executable, "-c", _PROGRAM, str(packaged_target()), str(copy)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None and parent.stdout.readline(), "it writes"
        (child,) = psutil.Process(parent.pid).children()
        parent.kill()
    assert psutil.wait_procs([child], 300)[1] == []
    assert copy.stat().st_size < 70 << 20, "it did not come to its end"
