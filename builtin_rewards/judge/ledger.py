"""What judges have spent and what their calls in flight may still cost, in one SQLite file for all processes of a run.

Owns the sums and that they stay true when processes die. What a cap means, and what a call may cost at most, is told
by :mod:`builtin_rewards.judge.budget`.
"""

from __future__ import annotations

import operator
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from builtin_rewards.judge.database import Database, Layout
from builtin_rewards.judge.errors import Fault, JudgeUnavailableError

_LAYOUT = Layout(
    "budget ledger",
    "Budget(ledger=...)",
    application_id=0x726B6A6C,  # "rkjl"
    version=2,
    schema=(
        "CREATE TABLE spent (judge TEXT PRIMARY KEY, usd REAL NOT NULL, prompt INTEGER NOT NULL, "
        "completion INTEGER NOT NULL, requests INTEGER NOT NULL, unpriced INTEGER NOT NULL)",
        # AUTOINCREMENT: the number of a call that was counted as lost is never given to another.
        "CREATE TABLE flights (id INTEGER PRIMARY KEY AUTOINCREMENT, judge TEXT NOT NULL, usd REAL NOT NULL, "
        "prompt INTEGER NOT NULL, completion INTEGER NOT NULL, requests INTEGER NOT NULL, unpriced INTEGER NOT NULL, "
        "at REAL NOT NULL)",
    ),
)
_AMOUNTS = "usd, prompt, completion, requests, unpriced"
_SUMS = "total(usd), total(prompt), total(completion), total(requests), total(unpriced)"
_ADD = (
    "INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (judge) DO UPDATE SET usd = usd + excluded.usd, "
    "prompt = prompt + excluded.prompt, completion = completion + excluded.completion, "
    "requests = requests + excluded.requests, unpriced = unpriced + excluded.unpriced"
)
_LOST_AFTER_S = 3600.0
"""A call in flight for this long is counted as lost: its process has died."""


class Spend(NamedTuple):
    """What was spent.

    Attributes:
        usd: Cost in USD of the requests whose model has a price.
        prompt_tokens: Tokens read.
        completion_tokens: Tokens written.
        requests: Requests sent that are billed, or may be.
        unknown_price_requests: Those of them whose model has no price, so that ``usd`` leaves them out.
    """

    usd: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 0
    unknown_price_requests: int = 0

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens

    def plus(self, other: Spend) -> Spend:
        """Both together."""
        usd, *counts = map(operator.add, self, other)
        return Spend(usd, *counts)

    def minus(self, other: Spend) -> Spend:
        """Without the other."""
        return self.plus(Spend(-other.usd, *(-count for count in other[1:])))


class Held(NamedTuple):
    """How the ledger stands where a call is not let through.

    Attributes:
        spent: What was spent.
        in_flight: What the calls in flight may cost at most; its ``requests`` is their number.
    """

    spent: Spend
    in_flight: Spend


class Ledger:
    """The sums of a run. Pickles as its path; all processes with the same path share them.

    Args:
        path: The file, absolute.
        busy_s: Seconds to wait for another process's transaction.
    """

    def __init__(self, path: Path, busy_s: float = 5.0) -> None:
        self._database = Database(path, _LAYOUT, busy_s=busy_s)

    def found(self) -> None:
        """Make the file if there is none.

        Raises:
            JudgeSetupError: It can neither be made nor used.
        """
        self._database.found()

    def enter(self, judge: str, most: Spend, fits: Callable[[Spend], bool]) -> int | Held:
        """Note a call that is about to be made, if it fits.

        Args:
            judge: Whose call.
            most: What it may cost at most.
            fits: Whether a call may be made where that much is spent or in flight. Nothing else changes the sums
                while it is asked.

        Returns:
            The call's number; or how things stand, if it does not fit.

        Raises:
            JudgeUnavailableError: The ledger cannot be written.
        """
        with self._transaction() as connection:
            spent, in_flight = _sums(connection, "spent"), _sums(connection, "flights")
            if not fits(spent.plus(in_flight)):
                if _count_lost(connection):
                    spent, in_flight = _sums(connection, "spent"), _sums(connection, "flights")
                return Held(spent, in_flight)
            row = connection.execute(
                f"INSERT INTO flights (judge, {_AMOUNTS}, at) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                (judge, *most, time.time()),
            ).lastrowid
            assert row is not None
            return row

    def leave(self, number: int, judge: str, most: Spend, spent: Spend) -> None:
        """Note what a call did cost. One that was counted as lost meanwhile is put right.

        Raises:
            JudgeUnavailableError: The ledger cannot be written; the call goes on to count as in flight, at its most.
        """
        with self._transaction() as connection:
            there = connection.execute("DELETE FROM flights WHERE id = ?", (number,)).rowcount
            connection.execute(_ADD, (judge, *(spent if there else spent.minus(most))))

    def totals(self) -> dict[str, Spend]:
        """What each judge has spent; calls of processes that died count at their most, after an hour.

        Raises:
            JudgeUnavailableError: The ledger cannot be used.
        """
        with self._transaction() as connection:
            _count_lost(connection)
            rows = connection.execute(f"SELECT judge, {_AMOUNTS} FROM spent ORDER BY judge").fetchall()  # noqa: S608
        return {judge: Spend(*amounts) for judge, *amounts in rows}

    def close(self) -> None:
        """Close this process's connection; the next use opens another."""
        self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._database.transaction() as connection:
                yield connection
        except sqlite3.Error as error:
            raise JudgeUnavailableError(
                f"the budget's ledger {self._database.path} cannot be used ({error}), so no call is made: "
                "free the disk, or make the Budget with a ledger in another place",
                Fault.BUDGET,
            ) from error


def _sums(connection: sqlite3.Connection, table: str) -> Spend:
    usd, *counts = connection.execute(f"SELECT {_SUMS} FROM {table}").fetchone()  # noqa: S608
    return Spend(usd, *map(int, counts))


def _count_lost(connection: sqlite3.Connection) -> bool:
    """Count the calls of processes that died as spent at their most, and say whether there were any.

    The sum of what is spent and in flight stays as it is, so it never makes room for more calls.
    """
    lost = (time.time() - _LOST_AFTER_S,)
    rows = connection.execute(f"SELECT judge, {_AMOUNTS} FROM flights WHERE at < ?", lost).fetchall()  # noqa: S608
    connection.executemany(_ADD, rows)
    connection.execute("DELETE FROM flights WHERE at < ?", lost)
    return bool(rows)
