"""How a reader asks a record: an error names the record and what was asked, or the stored value that is wrong."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Self

from rewardkit.errors import RecordError
from rewardkit.record.address import RunAddress
from rewardkit.record.sqlite_file import FILE, in_words
from rewardkit.record.stores import place_of, reading
from rewardkit.shown.text import shortened

_UNSOUND = (
    zlib.error, struct.error, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip
"""What is raised where a stored value is not what was written."""


class OpenedRecord:
    """A record that is open for reading, in one thread.

    Args:
        run: The run's folder, its file, or its address in a database.

    Raises:
        RecordError: It is missing, empty, not a record, or of a newer release; or its server cannot be had.
    """

    def __init__(self, run: str | os.PathLike[str] | RunAddress) -> None:
        self.path = place_of(run)
        self._connection = reading(self.path)

    @property
    def name(self) -> str:
        """The run's name: that of its folder."""
        if isinstance(self.path, RunAddress):
            return str(self.path.name)
        return self.path.absolute().parent.name if self.path.name == FILE else self.path.stem

    @property
    def given(self) -> str:
        """What commands take to name this run: its folder, or its address without a password."""
        return str(self.path if isinstance(self.path, RunAddress) else self.path.parent)

    @property
    def state(self) -> tuple[object, ...]:
        """What tells the states of a run in a database apart, and it from another of its name, for all who read it."""
        with self._asked():
            row = self._connection.execute("SELECT current_schema()::regnamespace::oid::bigint").fetchone()
            return ("schema", int(row[0]), self._connection.stamp)

    def within(self, seconds: float) -> None:
        """End each question to the file with an error once these seconds are over, whatever stands in it."""
        with self._asked():
            self._connection.end_questions(seconds)

    def unsound(self) -> str | None:
        """Return what in the file no recorder has written; ``None`` where nothing is found. It reads all of it."""
        with self._asked():
            return self._connection.unsound()

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        with self._asked():
            self._connection.close()

    def remember(self, size: int) -> None:
        """Keep at most so many bytes of the file in memory; 32 MB unless this is called."""
        with self._asked():
            self._connection.remember(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _decoding(self) -> Iterator[None]:
        """Raise that the record is damaged where a stored value cannot be what was written."""
        try:
            yield
        except _UNSOUND as wrong:
            said = shortened(" ".join(str(wrong).split()), 120)
            raise RecordError(f"{self.path}: damaged: {type(wrong).__name__}: {said}") from wrong

    def _rows(self, words: str, *values: Any, **named: Any) -> list[Any]:
        with self._asked():
            return self._connection.execute(words, named or values).fetchall()

    def _tuples(self, words: str, *values: Any, **named: Any) -> list[tuple[Any, ...]]:
        """Return rows as plain tuples: half the time where there are a thousand."""
        with self._asked():
            return self._connection.tuples(words, named or values)

    @contextlib.contextmanager
    def _asked(self) -> Iterator[None]:
        """Name the file in what SQLite raises, and say what it means."""
        try:
            yield
        except sqlite3.ProgrammingError as reason:
            if "closed database" in str(reason):
                raise RecordError(f"{self.path}: this reader is closed; open the run again") from None
            if "thread" in str(reason):
                raise RecordError(
                    f"{self.path}: opened in another thread; open the run again in the one that reads"
                ) from None
            raise RecordError(f"{self.path}: {reason}") from reason
        except (sqlite3.Error, UnicodeDecodeError) as reason:
            raise RecordError(f"{self.path}: {in_words(reason)}") from reason
