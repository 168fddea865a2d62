"""SQLite's words as PostgreSQL's."""

from __future__ import annotations

import re

import pytest

from rewardkit.record import questions
from rewardkit.record.dialect import columns, statements, tables, to_postgres
from rewardkit.record.schema import TABLES


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("SELECT 1 WHERE a = ?", "SELECT 1 WHERE a = %s"),
        ("a = :first AND b = :first", "a = %(first)s AND b = %(first)s"),
        ("batch.step IS ?", "batch.step IS NOT DISTINCT FROM %s"),
        ("step IS NULL AND x IS NOT NULL", "step IS NULL AND x IS NOT NULL"),
        ("FROM completion INDEXED BY completion_batch JOIN batch", "FROM completion JOIN batch"),
        ("a CROSS JOIN b ON a.x = b.x", "a JOIN b ON a.x = b.x"),
        ("CAST(completion.epoch AS INTEGER)", "CAST(trunc(completion.epoch) AS BIGINT)"),
        ("AND instr(summary.causes, :cause)", "AND (strpos(summary.causes, %(cause)s) > 0)"),
        ("a LIKE 'x%'", "a LIKE 'x%%'"),
        ("a::text", "a::text"),
    ],
)
def test_words_are_turned(words: str, expected: str) -> None:
    """Each difference between the two is one rule, and other words stay."""
    assert expected == to_postgres(words)


def test_the_tables_are_those_of_a_file() -> None:
    """Every table and column of SQLite's is there, with its type and no rule that SQLite does not check."""
    made = {one.split()[2]: one for one in tables(TABLES) if one.startswith("CREATE TABLE")}
    assert set(columns()) == set(made)
    for table, parts in columns().items():
        for part in parts:
            assert re.search(rf'\b"?{part.name}"? (BIGINT|DOUBLE PRECISION|TEXT COLLATE "C"|BYTEA)', made[table])
        assert not re.search(r"INTEGER|REFERENCES|ROWID|AUTOINCREMENT|\bBLOB\b|\bREAL\b", made[table])
    assert sum("CREATE INDEX" in one for one in tables(TABLES)) == TABLES.count("CREATE INDEX")


def test_a_script_is_split_where_statements_end() -> None:
    """A semicolon within a text ends nothing."""
    assert ["A 'x;y';", "B;"] == statements("A 'x;y'; B")


def test_no_question_holds_words_that_only_sqlite_knows() -> None:
    """What has no rule is written so that both take it."""
    for name in (one for one in dir(questions) if one.isupper()):
        words = getattr(questions, name)
        assert not re.search(r"PRAGMA|OR REPLACE|sqlite_|json_each|\btotal\(|GLOB|rowid", words), name
