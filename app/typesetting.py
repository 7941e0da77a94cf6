"""`python -m app.typesetting`: the process that colours code and sets formulas; the window never waits for either.

Reads one request a line from its input and writes one reply a line, both JSON, until the input ends. `typesetter` is
its client. Knows nothing of Qt and of the window.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from typing import Any

from app.formula_letters import SQUARE, leave_out, put_in

STYLES = ("text", "keyword", "name", "type", "string", "number", "comment", "mark", "inserted", "deleted", "title")
EM = 20.0  # the size of type that the lengths of a formula are given in
LONGEST_FORMULA = 3000  # characters
_NUMBERED = re.compile(r"\\(begin|end)\{(equation|align|gather|multline|eqnarray)\}")
_BY_TOKEN = {  # Pygments' names of tokens, the longer ones first
    "Keyword.Constant": "number",
    "Keyword.Type": "type",
    "Keyword": "keyword",
    "Operator.Word": "keyword",
    "Name.Function": "name",
    "Name.Class": "type",
    "Name.Builtin": "type",
    "Name.Exception": "type",
    "Name.Decorator": "mark",
    "Name.Tag": "keyword",
    "Name.Attribute": "name",
    "Name.Variable": "name",
    "Literal.String.Escape": "mark",
    "Literal.String.Interpol": "mark",
    "Literal.String": "string",
    "Literal.Number": "number",
    "Comment.Preproc": "mark",
    "Comment": "comment",
    "Generic.Inserted": "inserted",
    "Generic.Deleted": "deleted",
    "Generic.Heading": "title",
    "Generic.Subheading": "title",
}


def runs_of(code: str, language: str) -> list[tuple[int, int]] | None:
    """(characters, index into `STYLES`) from the first character on; None: nobody knows the language."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(re.split(r"[\s:{,]", language.strip(), maxsplit=1)[0].lower())
    except ClassNotFound:
        return None
    runs: list[tuple[int, int]] = []
    for _, token, text in lexer.get_tokens_unprocessed(code):
        style = _style(tuple(token))
        if runs and runs[-1][1] == style:
            runs[-1] = (runs[-1][0] + len(text), style)
        else:
            runs.append((len(text), style))
    return runs


def _style(token: tuple[str, ...]) -> int:
    for length in range(len(token), 0, -1):
        if (style := _BY_TOKEN.get(".".join(token[:length]))) is not None:
            return STYLES.index(style)
    return 0


def formula(latex: str, display: bool) -> dict[str, Any] | None:
    """The formula as SVG without a colour, with its width, ascent and descent at `EM`; None: it cannot be read."""
    import ziamath
    from latex2mathml.converter import convert

    latex = _NUMBERED.sub(r"\\\1{\2*}", latex)
    if len(latex) > LONGEST_FORMULA or "\\" in convert(latex):  # an unknown command would be shown as its name
        return None
    ziamath.config.svg2 = False  # QtSvg knows no symbols
    font = ziamath.Latex("x", size=EM).font
    latex, letters = leave_out(latex, lambda letter: letter > "\x7f" and not font.glyphindex(letter))
    svg = ziamath.Latex(latex, size=EM, inline=not display).svg()
    if letters:
        square = font.glyph(SQUARE)
        box = square.path.bbox
        svg = put_in(svg, letters, (box.xmin, box.xmax, box.ymin), square.advance()) or ""
    if (view := re.search(r'viewBox="([-\d.e]+) ([-\d.e]+) ([-\d.e]+) ([-\d.e]+)"', svg)) is None:
        return None
    _, top, width, height = (float(number) for number in view.groups())
    return {"svg": svg, "width": width, "ascent": -top, "descent": height + top}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    reply: dict[str, Any] = {"id": request["id"]}
    try:
        if "code" in request:
            reply["runs"] = runs_of(request["code"], request["language"])
        else:
            reply["formula"] = formula(request["formula"], request["display"])
    except Exception as error:  # whatever a library makes of text that a model wrote
        reply["error"] = f"{type(error).__name__}: {error}"
    return reply


def replies(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield json.dumps(answer(json.loads(line))).encode() + b"\n"


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the window's end is this one's
    if hasattr(os, "nice"):
        os.nice(5)  # tokens first
    for reply in replies(iter(sys.stdin.buffer.readline, b"")):
        sys.stdout.buffer.write(reply)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
