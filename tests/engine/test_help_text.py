"""Help fits the terminal: prose is filled, examples stay lines."""

from __future__ import annotations

import argparse

import pytest

from engine.cli import build_parser
from engine.help_text import HelpFormatter


def test_no_help_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser = build_parser()
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    texts = {"": parser.format_help()} | {
        name: command.format_help() for name, command in commands.choices.items() if name != "window"
    }
    assert len(texts) > 5
    assert {name: line for name, text in texts.items() for line in text.splitlines() if len(line) > 80} == {}


def test_paragraphs_are_filled_and_examples_stay() -> None:
    text = """\
One sentence
of two lines.

examples:
  do this      what it is for
  do that with many words      what that is for
"""
    assert HelpFormatter("program")._fill_text(text, 35, "") == (
        "One sentence of two lines.\n\nexamples:\n  do this      what it is for\n  do that with many words\n"
        "      what that is for"
    )
