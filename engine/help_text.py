"""How help is laid out on the terminal: prose in lines as wide as it is, examples line by line. Knows no command."""

from __future__ import annotations

import argparse
import re
import textwrap
from itertools import groupby


class HelpFormatter(argparse.HelpFormatter):
    """Paragraphs are filled; lines that begin with a space stay, and a remark that does not fit goes below its line."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        shown: list[str] = []
        for is_prose, lines in groupby(text.strip("\n").splitlines(), key=lambda line: line[:1].strip() != ""):
            if is_prose:
                shown += textwrap.wrap(" ".join(lines), width, initial_indent=indent, subsequent_indent=indent)
            else:
                for line in lines:
                    shown += _in_width(indent + line, width)
        return "\n".join(shown)


def _in_width(line: str, width: int) -> list[str]:
    found = re.match(r"( *\S.*\S)  +(\S.*)", line)
    if len(line) <= width or found is None:
        return [line]
    return [found[1], *textwrap.wrap(found[2], width, initial_indent=" " * 6, subsequent_indent=" " * 6)]
