"""Statistics, notices and dates as plain values and back: what the database and exported files share.

Reading is forgiving: a value that makes no sense is left out, since no chat is worth losing over a figure. Knows
nothing of files.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from engine.events import AnswerStatistics, Mode


def statistics_to_plain(statistics: AnswerStatistics) -> dict[str, Any]:
    """As `json` takes it."""
    return asdict(statistics)


def statistics_from_plain(found: Any) -> AnswerStatistics | None:
    """What `json` gave back; None where it means no statistics. A field that another version lacks is None."""
    try:
        statistics: AnswerStatistics = _dataclass(AnswerStatistics, found)
        return statistics
    except (TypeError, ValueError):
        return None


def statistics_to_text(statistics: AnswerStatistics) -> str:
    return json.dumps(statistics_to_plain(statistics))


def statistics_from_text(text: str) -> AnswerStatistics | None:
    """None where it means no statistics."""
    try:
        return statistics_from_plain(json.loads(text))
    except (ValueError, RecursionError):
        return None


def mode_from_plain(found: Any) -> Mode:
    """Baseline for a mode that this version does not know."""
    try:
        return Mode(found)
    except ValueError:
        return Mode.BASELINE


def strings_from_plain(found: Any) -> list[str]:
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _dataclass(kind: Any, found: Any) -> Any:
    if not isinstance(found, Mapping):
        raise TypeError
    types_of = _types(kind)
    values = {}
    for field in fields(kind):
        if field.name in found:
            values[field.name] = _value(types_of[field.name], found[field.name])
        elif type(None) in get_args(types_of[field.name]):
            values[field.name] = None
    return kind(**values)


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(type_: Any, found: Any) -> Any:
    """Raises TypeError or ValueError."""
    origin = get_origin(type_)
    if origin in (Union, types.UnionType):
        if found is None:
            return None
        return _value(next(one for one in get_args(type_) if one is not type(None)), found)
    if origin is tuple:
        if not isinstance(found, (list, tuple)):
            raise TypeError
        return tuple(_value(get_args(type_)[0], one) for one in found)
    if is_dataclass(type_):
        return _dataclass(type_, found)
    if issubclass(type_, Enum):
        return type_(found)
    if type_ is float and type(found) is int:
        return float(found)
    if type(found) is not type_:
        raise TypeError
    return found
