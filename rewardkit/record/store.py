"""What a record asks of a database: the same of SQLite's file and of a server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

Values: TypeAlias = Sequence[Any] | Mapping[str, Any]  # What stands for `?`, or for `:name`


class RecordRow(Protocol):
    """A row that is read by position and by name, as :class:`sqlite3.Row`."""

    def __getitem__(self, key: Any, /) -> Any: ...


class Answer(Protocol):
    """The rows of a question, each a :class:`RecordRow`."""

    @property
    def rowcount(self) -> int:
        """How many rows a statement has changed."""

    def fetchone(self) -> Any:
        """Return the next row; ``None`` after the last."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class RecordConnection(Protocol):
    """A connection to one record. Its SQL is SQLite's; where databases differ in kind, it has a method.

    Outside a transaction each statement takes effect at once.
    """

    cache: dict[str, Any]  # What is remembered of the record. A transaction that was taken back makes it void.

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    @property
    def is_alone(self) -> bool:
        """Whether nobody else writes to the record until this transaction ends."""

    @property
    def stamp(self) -> int:
        """A number that changes when another connection writes."""

    def execute(self, statement: str, values: Values = (), /) -> Answer:
        """Run one statement."""

    def tuples(self, query: str, values: Values = (), /) -> list[tuple[Any, ...]]:
        """Return the rows of a question as plain tuples, which takes half the time where there are a thousand."""

    def begin(self) -> None:
        """Begin a transaction. What it reads may change until :meth:`alone` is called."""

    def alone(self) -> None:
        """Wait until nobody else writes to the record, and keep it so until the transaction ends."""

    def commit(self) -> None:
        """End a transaction, and keep what it wrote."""

    def rollback(self) -> None:
        """End a transaction, and take back what it wrote."""

    def make(self, script: str) -> None:
        """Make the tables of a script that are not there yet, in a transaction that is alone."""

    def has_table(self, name: str) -> bool:
        """Return whether the record has a table."""

    def reserve(self, table: str, count: int) -> Sequence[int]:
        """Return numbers for further rows, greater than all before.

        In a transaction that is alone they follow one another, and are greater than those that anybody sees.
        """

    def insert(self, table: str, row: Mapping[str, Any]) -> int:
        """Write a row with a number of its own, which is returned."""

    def insert_all(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows, each with all columns of the table in their order."""

    def insert_batch(self, row: Mapping[str, Any], count: int) -> tuple[int, Sequence[int]]:
        """Write a row of ``batch``; return its number, and those of its completions, greater than all before."""

    def change_all(self, statement: str, rows: Sequence[Sequence[Any]], /) -> None:
        """Run a statement once for each row of values."""

    def wait_at_most(self, seconds: float) -> None:
        """End the wait for another writer after these seconds, with an error."""

    def end_questions(self, seconds: float) -> None:
        """End each question with an error once these seconds from now are over."""

    def remember(self, size: int) -> None:
        """Keep at most so many bytes of the record in this process's memory."""

    def unsound(self) -> str | None:
        """Return what in the record no recorder has written; ``None`` where nothing is found. It reads all of it."""

    def close(self) -> None:
        """Close the connection. A second call does nothing."""


@contextlib.contextmanager
def transaction(connection: RecordConnection) -> Iterator[None]:
    """Keep others from writing within the block; commit at its end, and roll back and raise at an error."""
    connection.begin()
    try:
        connection.alone()
        yield
        connection.commit()
    except BaseException:
        connection.cache.clear()
        if connection.in_transaction:  # SQLite has taken some back itself, such as one that filled the disk
            connection.rollback()
        raise
