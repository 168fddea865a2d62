"""How a reader asks a record: an error names the record and the reason, or the stored value that is wrong."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Self

from rewardkit.errors import RecordError
from rewardkit.record.place import RecordPlace, Stamp
from rewardkit.record.places import place_of_record
from rewardkit.record.sqlite_file import explain
from rewardkit.shown.text import shortened

PAGE = 500  # Rows that are fetched at once
_UNSOUND = (
    zlib.error, struct.error, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip
"""What is raised where a stored value is not what was written."""


class OpenedRecord:
    """A run's record, open for reading in one thread; RecordError where this release can read no record there."""

    def __init__(self, run: str | os.PathLike[str] | RecordPlace) -> None:
        self.path = place_of_record(run)
        self._connection = self.path.connect_to_read()

    @property
    def name(self) -> str:
        """The run's name: that of its folder."""
        return self.path.name

    @property
    def stamp(self) -> Stamp:
        """A value that differs for each state of the record and for another record of its name, not for readers."""
        with self._errors():
            return self.path.stamp(self._connection)

    def within(self, seconds: float) -> None:
        """End each question to the file with an error once these seconds are over, whatever stands in it."""
        with self._errors():
            self._connection.end_questions(seconds)

    def unsound(self) -> str | None:
        """Return what in the file no recorder has written; ``None`` where nothing is found. It reads all of it."""
        with self._errors():
            return self._connection.unsound()

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        with self._errors():
            self._connection.close()

    def remember(self, size: int) -> None:
        """Keep at most so many bytes of the file in memory; 32 MB unless this is called."""
        with self._errors():
            self._connection.remember(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _decoding(self) -> Iterator[None]:
        """Raise RecordError, saying that the record is damaged, where a stored value cannot be read."""
        try:
            yield
        except _UNSOUND as error:
            reason = shortened(" ".join(str(error).split()), 120)
            raise RecordError(f"{self.path}: damaged: {type(error).__name__}: {reason}") from error

    def _rows(self, query: str, *values: object, **parameters: object) -> list[Any]:
        with self._errors():
            return self._connection.execute(query, parameters or values).fetchall()

    def _tuples(self, query: str, *values: object, **parameters: object) -> list[tuple[Any, ...]]:
        """Return rows as plain tuples: half the time where there are a thousand."""
        with self._errors():
            return self._connection.tuples(query, parameters or values)

    def _rows_in(self, query: str, numbers: Sequence[int], *values: object) -> list[Any]:
        """Return the rows of a query with ``IN ({})`` for many numbers, some at a time: SQLite bounds their count."""
        rows: list[Any] = []
        for start in range(0, len(numbers), PAGE):
            page = numbers[start : start + PAGE]
            rows += self._rows(query.format(",".join("?" * len(page))), *values, *page)
        return rows

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise SQLite's errors as RecordErrors that name the file and the cause."""
        try:
            yield
        except sqlite3.ProgrammingError as error:
            if "closed database" in str(error):
                raise RecordError(f"{self.path}: this reader is closed; open the run again") from None
            if "thread" in str(error):
                raise RecordError(
                    f"{self.path}: opened in another thread; open the run again in the one that reads"
                ) from None
            raise RecordError(f"{self.path}: {error}") from error
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise RecordError(f"{self.path}: {explain(error)}") from error
