"""Letters in formulas that the mathematical font lacks, Hangul above all: left out for setting, and put in afterwards.

Each stands in the LaTeX as a square of a colour of its own; in the picture, the squares are replaced by text, for which
Qt finds a font. Knows nothing of how formulas are set.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

SQUARE = "□"
_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|textsf|mathrm|mathbf|operatorname)\{([^{}]*)\}")
_PATH = re.compile(r'<path d="([^"]*)" fill="#01([0-9a-f]{2})([0-9a-f]{2})"\s*/>')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SIZE = 1.07  # of such a letter, in squares' advances: Hangul is not quite as wide as it is high


def leave_out(latex: str, is_lacking: Callable[[str], bool]) -> tuple[str, list[str]]:
    """The LaTeX with squares, and the letters they stand for."""
    letters: list[str] = []

    def squares(run: str) -> str:
        made = ""
        for letter in run:
            number = len(letters)
            letters.append(letter)
            made += rf"{{\color{{#01{number // 256:02x}{number % 256:02x}}}\text{{{SQUARE}}}}}"
        return made

    def runs(text: str, keep: Callable[[str], str]) -> str:
        made, plain = "", ""
        for letter in text:
            if is_lacking(letter):
                made += (keep(plain) if plain else "") + squares(letter)
                plain = ""
            else:
                plain += letter
        return made + (keep(plain) if plain else "")

    def words(match: re.Match[str]) -> str:
        if not any(map(is_lacking, match[1])):
            return match[0]
        return "{" + runs(match[1], _plain) + "}"

    return runs(_TEXT.sub(words, latex), lambda plain: plain), letters


def _plain(words: str) -> str:
    """Blanks at the begin would take the colour from the square before them."""
    kept = words.lstrip()
    return r"\;" * (len(words) > len(kept)) + (rf"\text{{{kept}}}" if kept else "")


def put_in(svg: str, letters: list[str], box: tuple[float, float, float], advance: float) -> str | None:
    """`box`: left, right and bottom of the square, and `advance` its room, all in one unit.

    None: not every square is to be found.
    """

    def text(match: re.Match[str]) -> str:
        numbers = [float(number) for number in _NUMBER.findall(match[1])]
        xs, ys = numbers[::2], numbers[1::2]
        scale = (max(xs) - min(xs)) / (box[1] - box[0])
        size = SIZE * advance * scale
        x = min(xs) - box[0] * scale
        baseline = max(ys) + box[2] * scale
        letter = letters[int(match[2], 16) * 256 + int(match[3], 16)]
        return f'<text x="{x:.3f}" y="{baseline:.3f}" font-size="{size:.3f}" fill="black">{escape(letter)}</text>'

    made, count = _PATH.subn(text, svg)
    return made if count == len(letters) else None
