"""`python -m app.translations`: brings the Qt Linguist files up to date, says what they lack, and compiles them.

The texts stand in `assets/translations/dflash_*.ts`; edit them by hand or with `pyside6-linguist`, then run this again.
With `--check` nothing is written. Needs the Qt tools that PySide6 brings, but no window.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

APP = Path(__file__).resolve().parent
FOLDER = APP.parent / "assets" / "translations"
CALLS = ("translate", "QT_TRANSLATE_NOOP")  # (context, text), both literal


@dataclass(frozen=True, order=True)
class Message:
    context: str
    text: str


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m app.translations", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say what is missing")
    given = parser.parse_args(arguments)
    lacking = False
    for file in linguist_files():
        if not given.check:
            update(file)
        for message in missing(file):
            lacking = True
            print(f"{file.name}: {message.context}: {message.text}")
        if not given.check:
            compile_file(file, file.with_suffix(".qm"))
    return int(lacking)


def linguist_files() -> list[Path]:
    return sorted(FOLDER.glob("dflash_*.ts"))


def sources() -> list[Path]:
    return sorted(APP.rglob("*.py"))


def messages() -> set[Message]:
    """Every text of the sources that is to be translated."""
    return {message for path in sources() for message in messages_in(path.read_text(encoding="utf-8"))}


def messages_in(source: str) -> Iterator[Message]:
    """Raises ValueError where a call does not name its text literally: then it could not be collected."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or _name(node.func) not in CALLS or len(node.args) < 2:
            continue
        context, text = node.args[:2]
        if isinstance(context, ast.Constant) and isinstance(text, ast.Constant):
            yield Message(str(context.value), str(text.value))
        elif not isinstance(context, ast.Constant):
            if _name(node.func) == "translate" and isinstance(context, ast.Name):
                continue  # a function that hands its own arguments on
            raise ValueError(f"line {node.lineno}: the context is no literal")


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def translated(file: Path) -> dict[Message, str]:
    """The finished translations of a .ts file."""
    found: dict[Message, str] = {}
    for context in ElementTree.parse(file).getroot().iter("context"):
        name = context.findtext("name", "")
        for message in context.iter("message"):
            translation = message.find("translation")
            if translation is not None and translation.get("type") is None and translation.text:
                found[Message(name, message.findtext("source", ""))] = translation.text
    return found


def missing(file: Path) -> list[Message]:
    return sorted(messages() - set(translated(file)))


def update(file: Path) -> None:
    """Take new texts into a .ts file and old ones out of it."""
    options = ["-locations", "none", "-no-obsolete", "-silent"]
    _tool("lupdate", *map(os.path.relpath, sources()), *options, "-ts", os.path.relpath(file))


def compile_file(file: Path, to: Path) -> None:
    _tool("lrelease", "-silent", str(file), "-qm", str(to))


def _tool(name: str, *arguments: str) -> None:
    import PySide6

    program = Path(PySide6.__file__).parent / (f"{name}.exe" if sys.platform == "win32" else name)
    subprocess.run([str(program), *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
