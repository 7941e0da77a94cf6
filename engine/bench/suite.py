"""What is asked: the suite's own questions or a file of the user's, and whether an answer is right, where one can tell.

The suite is for measuring; nothing is ever trained on it. Knows nothing of models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import PromptError

SUITE = Path(__file__).resolve().parents[2] / "models" / "suite" / "questions.json"
OWN = "suite"  # what --suite calls it
RULES = ("last_number", "contains", "in_order", "boxed")

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True)
class Check:
    """How to tell whether an answer is right.

    "last_number": the last number in the answer is this one. "contains": it holds all of these texts. "in_order": and
    in this order. "boxed": what stands in its last \\boxed{}, else its last number, is this. Letter case and the commas
    of thousands do not matter.
    """

    rule: str
    expected: tuple[str, ...]

    def passes(self, answer: str) -> bool:
        if self.rule == "last_number":
            return _last_number(answer) == _as_number(self.expected[0])
        if self.rule == "boxed":
            boxed = _boxed(answer)
            if boxed is None:
                found = _last_number(answer)
                return found is not None and found == _as_number(self.expected[0])
            return _bare(boxed) == _bare(self.expected[0])
        text = answer.casefold()
        at = 0
        for part in self.expected:
            found_at = text.find(part.casefold(), at if self.rule == "in_order" else 0)
            if found_at < 0:
                return False
            at = found_at + len(part)
        return True


@dataclass(frozen=True)
class Question:
    name: str  # unique in a plan, such as "code 3"
    kind: str
    text: str
    check: Check | None = None


def suite(file: Path = SUITE, kinds: Sequence[str] = (), per_kind: int | None = None) -> list[Question]:
    """The questions of a file, kind by kind; of the `kinds` given, up to `per_kind` of each.

    A file is JSON: {"kind": ["question", {"text": …, "check": {"contains": […]}}, …]}. Raises PromptError.
    """
    try:
        found = json.loads(file.read_text("utf-8"))
        read = {str(kind): [_entry(entry) for entry in group] for kind, group in found.items()}
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"The questions in {file} cannot be read ({error}); give a UTF-8 file.") from error
    except (ValueError, AttributeError, TypeError, KeyError, IndexError) as error:
        raise PromptError(f'{file} is not of the form {{"kind": ["question", …]}} ({error}).') from error
    return _numbered(read, kinds, per_kind)


def _numbered(
    groups: Mapping[str, Iterable[tuple[str, Check | None]]], kinds: Sequence[str], per_kind: int | None
) -> list[Question]:
    unknown = [kind for kind in kinds if kind not in groups]
    if unknown:
        raise PromptError(f"There are no questions of the kind {unknown[0]}; there are: {', '.join(groups)}.")
    return [
        Question(f"{kind} {number + 1}", kind, text, check)
        for kind, entries in groups.items()
        if not kinds or kind in kinds
        for number, (text, check) in enumerate(list(entries)[:per_kind])
    ]


def _entry(entry: Any) -> tuple[str, Check | None]:
    if isinstance(entry, str):
        return entry, None
    given = entry.get("check")
    if given is None:
        return str(entry["text"]), None
    ((rule, expected),) = given.items()
    if rule not in RULES:
        raise ValueError(f"the check {rule} is none of {', '.join(RULES)}")
    parts = expected if isinstance(expected, list) else [expected]
    return str(entry["text"]), Check(rule, tuple(str(part) for part in parts))


def _as_number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _last_number(text: str) -> float | None:
    found = _NUMBER.findall(text)
    return _as_number(found[-1]) if found else None


def _boxed(text: str) -> str | None:
    """What the last \\boxed{…} holds, braces in it counted."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth = 0
    for at in range(start + len("\\boxed"), len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start + len("\\boxed{") : at]
    return None


def _bare(formula: str) -> str:
    """A formula without what does not change its meaning."""
    for useless in ("\\left", "\\right", "\\!", "\\,", "\\$", "$", " "):
        formula = formula.replace(useless, "")
    return formula.replace("dfrac", "frac").replace("tfrac", "frac").rstrip(".")
