"""What was copied from a selection must not bring the process down when it ends."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from PySide6.QtWidgets import QApplication
from app import clipboard

application = QApplication([])
application.clipboard().setMimeData(clipboard.plain_text("copied"))
if sys.argv[1] == "hand over":
    clipboard.hand_over()
assert application.clipboard().text() == "copied"
print("ended well")
"""


def test_a_copied_selection_outlives_python() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM, "hand over"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "ended well\n"), ended.stderr
