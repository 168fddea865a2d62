"""Whether a file that says it is a record holds what a recorder writes: SQLite lets any value stand in any column."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

from rewardkit.record.schema import LATER_TABLES, TABLES

_STORED = {"INTEGER": "'integer'", "REAL": "'real', 'integer'", "TEXT": "'text'", "BLOB": "'blob'"}
"""How SQLite calls what may stand in a column of a type."""
SHAPES = {
    ("session", "about"): "object",
    ("version", "settings"): "object",
    ("batch", "versions"): "array",
    ("batch", "weights"): "array",
    ("pass", "about"): "object",
    ("said", "metrics"): "object",
    ("said", "unanswered"): "array",
    ("summary", "causes"): "object",
    ("process", "actions"): "array",
    ("process", "rewards"): "object",
    ("change", "body"): "object",
    ("event", "body"): "object",
}
"""The kind of JSON in a column."""
STATUS = "skfSKF"  # The letters in `completion.status`


def unsound(connection: sqlite3.Connection) -> str | None:
    """Return a column with a value that no recorder writes, such as ``"session.about"``; ``None`` if all are sound.

    It reads the whole file, so call it only after reading has failed. Raises sqlite3.Error where it is damaged
    otherwise.
    """
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}
    for table, column, claim in _claims():
        if table in LATER_TABLES and table not in names:
            continue
        if connection.execute(f'SELECT 1 FROM "{table}" WHERE NOT ({claim}) LIMIT 1').fetchone():  # noqa: S608 - ours
            return f"{table}.{column}"
    return None


def _claims() -> Iterator[tuple[str, str, str]]:
    """Yield each table and column with the condition, as SQL, that all its values meet."""
    with contextlib.closing(sqlite3.connect(":memory:")) as empty:
        empty.executescript(TABLES)
        tables = empty.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        for (table,) in tables.fetchall():
            for _, column, kind, needed, _, key in empty.execute(f"PRAGMA table_info({table})"):
                kinds = _STORED[kind] + ("" if needed or key else ", 'null'")
                claim = f'typeof("{column}") IN ({kinds})'
                shape = SHAPES.get((table, column))
                if shape is not None:
                    test = f'CASE WHEN json_valid("{column}") THEN json_type("{column}") = \'{shape}\' ELSE FALSE END'
                    claim = f'{claim} AND ("{column}" IS NULL OR {test})'
                if (table, column) == ("completion", "status"):
                    claim = f"{claim} AND status NOT GLOB '*[^{STATUS}]*'"
                yield table, column, claim
