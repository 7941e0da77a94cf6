"""Reading what can still be read of a damaged database of conversations. Knows nothing of conversations."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

GAP = 2000  # rows that cannot be read, one after another: then there are no more


def free_name(path: Path) -> Path:
    day = time.strftime("%Y-%m-%d")
    number = 1
    while (aside := path.with_name(f"{path.stem}.damaged-{day}-{number}{path.suffix}")).exists():
        number += 1
    return aside


def salvage(damaged: Path, into: sqlite3.Connection) -> tuple[int, int]:
    """Copy the rows that can be read, one by one: how many conversations and turns."""
    old = _open(damaged)
    if old is None:
        return 0, 0
    old.text_factory = lambda found: found.decode("utf-8", "replace")
    try:
        conversations, turns = (_copy_rows(old, into, table) for table in ("conversations", "turns"))
    finally:
        old.close()
    into.execute("UPDATE turns SET indexed = 0")  # what was searched is not taken over
    return conversations, turns


def _open(path: Path) -> sqlite3.Connection | None:
    """For reading; in a folder that cannot be written without the newest changes, which lie beside the file."""
    for way in ("mode=ro", "immutable=1"):
        old = sqlite3.connect(f"{path.resolve().as_uri()}?{way}", uri=True)
        try:
            old.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return old
        except sqlite3.OperationalError:
            old.close()
        except sqlite3.DatabaseError:  # damaged from the first page on; rows may be readable all the same
            return old
    return None


def _copy_rows(old: sqlite3.Connection, into: sqlite3.Connection, table: str) -> int:
    known = [name for _, name, *_ in into.execute(f"PRAGMA table_info({table})")]
    try:
        there = {name for _, name, *_ in old.execute(f"PRAGMA table_info({table})")}
    except sqlite3.Error:
        return 0
    names = [name for name in known if name in there]
    if "number" not in names:
        return 0
    copied = number = unreadable = 0
    place = names.index("number")
    while unreadable < GAP:
        try:
            row = old.execute(
                f"SELECT {', '.join(names)} FROM {table} WHERE number > ? ORDER BY number LIMIT 1", (number,)
            ).fetchone()
        except sqlite3.Error:
            number, unreadable = number + 1, unreadable + 1
            continue
        if row is None:
            break
        number, unreadable = row[place], 0
        try:
            into.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", row)
            copied += 1
        except sqlite3.Error:
            continue
    return copied
