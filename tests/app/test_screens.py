"""The program that takes the pictures, and how the window is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from app.screens import Photographer, play
from engine.events import LoadSettings
from tests.app.conftest import SCRIPTED, OpenWindow

ROOT = Path(__file__).parents[2]


def test_it_shows_every_page_and_keeps_it_in_both_themes(
    open_window: OpenWindow, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = open_window(LoadSettings(), SCRIPTED)
    photographer = Photographer(screen.window, tmp_path)
    in_two_languages = Photographer(screen.window, tmp_path, ("ko", "en"))
    names = []
    for name, what in play(photographer):
        names.append(name)
        if name == "window":
            photographer.keep(name, what)
        elif name == "settings-answers":
            in_two_languages.keep(name, what)
        else:  # to change the look of the whole window takes a moment each time
            widget = what()
            assert widget is not None and widget.isVisible(), name
    wanted = "loading welcome window search waiting details page-1 shortcuts reason stopped narrow"
    assert set(wanted.split()) < set(names)
    pictures = {path.stem: QImage(str(path)) for path in tmp_path.iterdir()}
    assert len(pictures) == 6 == len(capsys.readouterr().out.splitlines())
    assert all(not picture.isNull() for picture in pictures.values())
    assert pictures["window-light"] != pictures["window-dark"]
    assert pictures["settings-answers-light-ko"] != pictures["settings-answers-light-en"]


def test_the_entry_point_does_not_import_qt_before_it_is_called() -> None:
    """The engine process imports the main module again."""
    program = "import sys, app.__main__; print([name for name in sys.modules if name.startswith('PySide6')])"
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_drafter_that_is_none_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "no.gguf").write_bytes(b"not a model")
    command = [sys.executable, "-m", "app", "--drafter", str(tmp_path / "no.gguf")]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 1 and len(found.stderr.splitlines()) == 1 and "no.gguf" in found.stderr
