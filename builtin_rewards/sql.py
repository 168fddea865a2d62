"""A reward for SQL: does the completion's query return what the row's gold query returns.

Both run in an SQLite of their own in memory, inside the reward's worker process.

Covered: SQLite's authorizer refuses writes, ``ATTACH``, ``PRAGMA``, extensions and all statements but queries; its
progress handler bounds time, and limits bound rows, bytes, expression depth and statement length.

Not covered: a single built-in function that takes long on one value; the worker's deadline ends it. The row's schema
script is trusted to be benign, and bounded in time.
"""

from __future__ import annotations

import functools
import math
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading.answer import AnswerRule, final_answer
from builtin_rewards.reading.markdown import last_code
from rewardkit import Reward, Score, reward

_STEPS = 10_000  # how many instructions SQLite's machine runs between two looks at the clock
_MAX_BYTES = 32_000_000  # the most bytes of text and blobs in one result
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 250_000,
}
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_REFUSED_FUNCTIONS = {"load_extension", "random", "randomblob", "fts3_tokenizer"}  # code, chance
# Marks of fenced blocks that hold SQL.
_MARKS = ("sql", "sqlite", "sqlite3", "postgresql", "postgres", "psql", "pgsql", "mysql", "mariadb", "tsql")
_ABSOLUTE = 1e-9  # absolute difference up to which two numbers are equal, for those near 0
_SHOWN_CHARS = 200
_LIMIT = re.compile(r"(?i)(?:limit\s+(?:(?P<before>\d+)\s*,\s*)?\d+(?:\s+offset\s+(?P<offset>\d+))?\s*)?")
_HIDDEN = re.compile(r"""--[^\n]*+|/\*(?>[^*]|\*(?!/))*+(?:\*/)?|'[^']*+'?|"[^"]*+"?|`[^`]*+`?|\[[^\]]*+\]?""")
_QUERY_START = r"\s*(?:select|with|values)\b"
_IS_QUERY = re.compile(rf"(?i){_QUERY_START}")
_INLINE_QUERY = re.compile(rf"(?i)(?<!`)`({_QUERY_START}[^`]+)`(?!`)")
_INNER = re.compile(r"\([^()]*\)")  # removed from the inside out
_Value = tuple[int, Any]
_Row = tuple[_Value, ...]  # a row, each value behind the number of its kind
_KINDS = {type(None): 0, int: 1, float: 1, str: 2, bytes: 3}


class _QueryError(Exception):
    """A script or query does not run, or goes beyond a bound."""


class _Result(NamedTuple):
    """What a query returns, and the tables that it reads."""

    columns: int
    rows: list[_Row]
    tables: frozenset[str]


@adjustable
def sql_result(
    *,
    timeout_s: float = 5.0,
    max_rows: int = 10_000,
    tolerance: float = 1e-6,
    any_column_order: bool = False,
    ties: bool = False,
) -> Reward[..., Score]:
    """Return ``sql_result`` with these settings.

    Args:
        timeout_s: Seconds that the schema and each query may take.
        max_rows: Rows that a query may give.
        tolerance: Relative difference up to which two numbers are equal, unless both are integers; from 0 to below 1.
        any_column_order: Let the columns come in another order, one for all rows. They are told by their values, and
            those that hold the same values by their place; names do not matter.
        ties: Let rows that the gold's ``ORDER BY`` leaves tied come in any order. Where its ``LIMIT`` (plain numbers)
            takes only some of them, allow as many others of them; then all rows must be equal exactly. Without an
            ``ORDER BY`` all rows are tied.
    """
    require(0 < timeout_s < math.inf, "a number above 0", timeout_s=timeout_s)
    require(max_rows >= 1, "1 or more", max_rows=max_rows)
    require(0 <= tolerance < 1, "0 to below 1", tolerance=tolerance)

    @reward(timeout_s=10.0 + 4 * timeout_s, score_range=(0, 1))
    def sql_result(completion: str, schema: str | None, answer: str | None) -> Score:
        """1.0 if the completion's query returns the same result as the gold query, otherwise 0.0 with the reason.

        It reads the last fenced block marked ``sql`` or a dialect of it (``sqlite``, ``postgresql``, ``mysql``, ...),
        else the last unmarked one, else the last query in single backticks, else the whole answer, as ``json_valid``
        finds it. This must be one query, ``SELECT``, ``WITH`` or ``VALUES``. Several statements, writes, access to
        anything outside, and ``random()`` are refused.

        Results are the same if they have as many columns, in the same order and under any name, and the same rows as a
        multiset; in the same order where the gold has an ``ORDER BY`` of its own, outside parentheses. Numbers are
        equal up to a relative difference of 1e-6, integers exactly; text to the letter; ``NULL`` equals ``NULL``. A
        query that reads no table, where the gold reads one, scores 0.0: its result is a guess. Guesses that name a
        table look like queries: keep the data out of the prompt. There is no partial credit.

        Columns: ``schema``, a script of ``CREATE`` and ``INSERT`` statements, run anew for each completion; ``answer``,
        the gold query. ``None`` where either is missing or does not run within the bounds, and where the gold returns
        no rows, which any query that finds nothing would match.
        """
        # audit: skip negated a query is run, not read: 'ORDER BY x is false' gives the same rows
        # audit: skip digits a query is run, not read: another bound can give the same rows
        if not schema or not schema.strip() or not answer or not answer.strip():
            return Score(None, reason="the row has no schema or no answer")
        with closing(sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)) as connection:
            run = functools.partial(_run, connection, timeout_s, max_rows)
            try:
                _build(connection, schema, timeout_s)
                gold = run(answer)
                expectation = _expected_rows(gold, answer, run if ties else None)
            except _QueryError as error:
                return Score(None, reason=f"the row's schema or answer cannot be used: {error}")
            if not gold.rows:
                return Score(None, reason="the gold query returns no rows: any query that finds nothing would match")
            query = _query_in(final_answer(completion, (AnswerRule.TAG,)))
            try:
                result = run(query)
            except _QueryError as error:
                return Score(0.0, reason=str(error) if query else "no query in the completion")
        difference = _difference(gold, result, *expectation, tolerance, any_column_order)
        metrics = {"rows": float(len(result.rows)), "gold_rows": float(len(gold.rows))}
        return Score(float(not difference), reason=difference or "the same result", metrics=metrics)

    return sql_result


def _query_in(answer: str) -> str:
    """Return the last fenced query of an answer, else the last one in backticks, else all of it, without its end."""
    code = last_code(answer, _MARKS) or ""
    inline = _INLINE_QUERY.findall(code) if code == answer and not _IS_QUERY.match(answer) else []
    return (inline[-1] if inline else code).rstrip("; \t\r\n")


def _build(connection: sqlite3.Connection, schema: str, timeout_s: float) -> None:
    """Run the row's script and set limits for later queries; raise ``_QueryError`` if it fails or is too slow."""
    connection.executescript("PRAGMA temp_store = FILE; PRAGMA cache_size = -8192;")
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")

    def allow(action: int, *details: str | None) -> int:
        if action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH) or details[1] == "load_extension":
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_IGNORE if action == sqlite3.SQLITE_PRAGMA else sqlite3.SQLITE_OK  # dumps begin with one

    connection.set_authorizer(allow)
    with _bounded(connection, timeout_s):
        connection.executescript(schema)
    if connection.in_transaction:
        connection.commit()
    for category, limit in _LIMITS.items():
        connection.setlimit(category, limit)


def _run(connection: sqlite3.Connection, timeout_s: float, max_rows: int, query: str) -> _Result:
    """Return a query's result; raise where it is not one query, fails, or goes beyond a bound."""
    tables: set[str] = set()

    def allow(action: int, *details: str | None) -> int:
        if action == sqlite3.SQLITE_READ and details[0]:
            tables.add(details[0].lower())
        is_refused = action == sqlite3.SQLITE_FUNCTION and (details[1] or "").lower() in _REFUSED_FUNCTIONS
        return sqlite3.SQLITE_OK if action in _ALLOWED and not is_refused else sqlite3.SQLITE_DENY

    connection.set_authorizer(allow)
    rows: list[_Row] = []
    size = 0
    with _bounded(connection, timeout_s), closing(connection.cursor()) as cursor:
        cursor.execute(query)
        if cursor.description is None:
            raise _QueryError("it is not a query")
        for row in cursor:
            rows.append(tuple((_KINDS[type(value)], value) for value in row))
            size += sum(len(value) for value in row if isinstance(value, str | bytes))
            if len(rows) > max_rows or size > _MAX_BYTES:
                raise _QueryError(f"it returns more than {max_rows} rows or {_MAX_BYTES} bytes")
    return _Result(len(cursor.description), rows, frozenset(tables))


@contextmanager
def _bounded(connection: sqlite3.Connection, timeout_s: float) -> Iterator[None]:
    deadline = time.monotonic() + timeout_s  # audit: ok the time limit of a query

    def is_late() -> bool:
        return time.monotonic() > deadline  # audit: ok the time limit of a query

    connection.set_progress_handler(is_late, _STEPS)
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        message = f"it takes more than {timeout_s} s" if is_late() else ""
        raise _QueryError(message or f"it does not run: {str(error)[:_SHOWN_CHARS]}") from None
    finally:
        connection.set_progress_handler(None, 0)


def _blank_literals(query: str) -> str:
    text = _HIDDEN.sub(lambda match: " " * len(match[0]), query)
    while (outer := _INNER.sub(lambda match: " " * len(match[0]), text)) != text:
        text = outer
    return text


def _expected_rows(gold: _Result, query: str, run: Callable[[str], _Result] | None) -> tuple[list[_Row], list[int]]:
    """Return the rows that the gold may give, each behind the number of its tie, and the ties in their order.

    Without an order all rows are tied. Two more runs break ties by all columns, up and down: both give the same rows up
    to the end of a tie. Raises a :class:`_QueryError` where a run fails, or the limit is not a plain number.
    """
    clauses = _blank_literals(query).partition(";")[0]
    is_ordered = re.search(r"(?i)\border\s+by\b", clauses) is not None
    limit_start = next(re.finditer(r"(?i)\blimit\b|\Z", clauses)).start()
    if run is None or not (is_ordered or clauses[limit_start:]):
        turns = [*range(len(gold.rows))] if is_ordered else [0] * len(gold.rows)
        return _with_ties(turns, gold.rows), turns
    limit = _LIMIT.fullmatch(clauses, limit_start)
    if limit is None:
        raise _QueryError("its LIMIT is not a plain number, so its ties are not known")
    columns = range(1, gold.columns + 1)
    orders = ("".join(f"\n, {column} COLLATE BINARY {way}" for column in columns) for way in ("ASC", "DESC"))
    up, down = (run(query[:limit_start] + (way if is_ordered else "")).rows for way in orders)
    turns = _turns(up, down) if is_ordered else [0] * len(up)
    start = int(limit["before"] or limit["offset"] or 0)
    ties = turns[start : start + len(gold.rows)]
    rows = [row for row in _with_ties(turns, up) if ties[0] <= row[0][1] <= ties[-1]] if ties else []
    if not set(_with_ties(ties, gold.rows)) <= set(rows):
        raise _QueryError("it does not return the same rows each time, so its ties are not known")
    return rows, ties


def _turns(up: list[_Row], down: list[_Row]) -> list[int]:
    """Return the number of each row's tie; a tie ends where both ways have given the same rows."""
    turns, turn, balance = [], 0, Counter[_Row]()
    for row, other_row in zip(up, down, strict=True):
        turns.append(turn)
        balance[row] += 1
        balance[other_row] -= 1
        if not any(balance.values()):  # within a tie the first one stays till its end
            balance.clear()
            turn += 1
    return turns


def _with_ties(turns: list[int], rows: list[_Row]) -> list[_Row]:
    return [((1, turn), *row) for turn, row in zip(turns, rows, strict=True)]


def _difference(
    gold: _Result, result: _Result, rows: list[_Row], turns: list[int], tolerance: float, any_column_order: bool
) -> str | None:
    if gold.tables and not result.tables:
        return "the query reads no table: its result is a guess"
    if gold.columns != result.columns:
        return f"{result.columns} columns, {gold.columns} expected"
    if len(gold.rows) != len(result.rows):
        return f"{len(result.rows)} rows, {len(gold.rows)} expected"
    given_rows = _with_ties(turns, result.rows)
    if any_column_order:
        rows, given_rows = _in_order(rows), _in_order(given_rows)
    left, right = _unmatched_rows(rows, given_rows), _unmatched_rows(given_rows, rows)
    pairs = zip(left, right, strict=True) if len(left) == len(right) else ()
    unequal = len(right) - sum(all(map(functools.partial(_same, tolerance), *pair)) for pair in pairs)
    suffix = " in value or order" if len(set(turns)) > 1 else ""
    return f"{unequal} of {len(gold.rows)} rows differ{suffix}" if unequal else None


def _in_order(rows: list[_Row]) -> list[_Row]:
    order = sorted(range(1, len(rows[0])), key=lambda column: sorted(_order(row[column]) for row in rows))
    return [(row[0], *(row[column] for column in order)) for row in rows]


def _unmatched_rows(rows: list[_Row], other_rows: list[_Row]) -> list[_Row]:
    """Return the rows that the others lack, sorted so that nearly equal rows meet."""
    return sorted((Counter(rows) - Counter(other_rows)).elements(), key=lambda row: [*map(_order, row)])


def _order(value: _Value) -> _Value:
    """Return a value's key for sorting; numbers by six digits, so that the tolerance moves none."""
    return (1, float(f"{value[1]:.6g}")) if value[0] == 1 else value


def _same(tolerance: float, gold: _Value, value: _Value) -> bool:
    is_real = gold[0] == value[0] and float in (type(gold[1]), type(value[1]))
    return gold == value or (is_real and math.isclose(gold[1], value[1], rel_tol=tolerance, abs_tol=_ABSOLUTE))
