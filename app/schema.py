"""The tables of the conversations' database. Another version of them gets another number and a way to come there."""

from __future__ import annotations

import sqlite3

VERSION = 1

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS conversations (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL,
        system TEXT,
        pinned INTEGER NOT NULL DEFAULT 0,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        shown INTEGER NOT NULL DEFAULT 0,
        deleted REAL)""",
    """CREATE TABLE IF NOT EXISTS turns (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        conversation TEXT NOT NULL,
        parent TEXT,
        shown INTEGER NOT NULL DEFAULT 0,
        question TEXT NOT NULL,
        answer TEXT NOT NULL,
        mode TEXT NOT NULL,
        note TEXT NOT NULL,
        notices TEXT NOT NULL,
        statistics TEXT,
        ended INTEGER NOT NULL,
        complete INTEGER NOT NULL,
        created REAL NOT NULL,
        details BLOB,
        thought_seconds REAL,
        indexed INTEGER NOT NULL DEFAULT 0)""",
    "CREATE INDEX IF NOT EXISTS turns_of_conversation ON turns (conversation, number)",
    "CREATE INDEX IF NOT EXISTS turns_to_index ON turns (number) WHERE ended = 1 AND indexed >= 0",
    "CREATE INDEX IF NOT EXISTS turns_open ON turns (number) WHERE ended = 0",
    "CREATE TABLE IF NOT EXISTS damaged (content TEXT NOT NULL, since REAL NOT NULL)",
)
# Of `turns`, in the order in which the store reads and writes them. `indexed`: pieces that can be searched, -1 = all.
COLUMNS = (
    "number", "id", "conversation", "parent", "shown", "question", "answer", "mode", "note", "notices", "statistics",
    "ended", "complete", "created", "details", "thought_seconds",
)  # fmt: skip


def add_columns(db: sqlite3.Connection) -> None:
    """Those that a file of this version may lack: a program that does not know them can still write it."""
    known = {name for _, name, *_ in db.execute("PRAGMA table_info(turns)")}
    if "thought_seconds" not in known:
        db.execute("ALTER TABLE turns ADD COLUMN thought_seconds REAL")


def words_table(db: sqlite3.Connection) -> bool:
    """Make the table that is searched; whether it has an index of trigrams, which SQLite has had since 3.34."""
    found = db.execute("SELECT sql FROM sqlite_master WHERE name = 'words'").fetchone()
    if found is not None:
        return "trigram" in found[0]
    try:
        db.execute("CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'trigram')")
        return True
    except sqlite3.OperationalError:
        db.execute("CREATE TABLE words (text TEXT NOT NULL)")
        return False
