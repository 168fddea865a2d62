"""Rows of a data set that cannot be read: the first one ends the reading, or each is left out and counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias, get_args

from rewardkit.errors import ConfigError, DataError

RowHandling: TypeAlias = Literal["refuse", "drop"]
"""What becomes of a row that cannot be read: the data set is refused, or the row is left out and counted."""


class InvalidRows:
    """The rows of one or several data sets that could not be read.

    Attributes:
        count: How many were left out.
        first: The error of the first of them; ``None`` without one.

    Raises:
        ConfigError: There is no such handling.

    >>> invalid = InvalidRows("drop")
    >>> for number in range(3):
    ...     with invalid.leave_out():
    ...         if number == 1:
    ...             raise DataError("rows.jsonl:2: no JSON")
    >>> invalid.count, str(invalid.first)
    (1, 'rows.jsonl:2: no JSON')
    """

    def __init__(self, handling: RowHandling = "refuse") -> None:
        if handling not in get_args(RowHandling):
            raise ConfigError(f"invalid_rows={handling!r}: expected 'refuse' or 'drop'")
        self._handling = handling
        self.count = 0
        self.first: DataError | None = None

    @contextmanager
    def leave_out(self, rows: int = 1) -> Iterator[None]:
        """Leave out the rows of this block where it raises DataError; where rows are refused the error goes on."""
        try:
            yield
        except DataError as error:
            self.add(error, rows)

    def add(self, error: DataError, rows: int = 1) -> None:
        """Count rows as left out for an error; raise it where rows are refused."""
        if self._handling == "refuse":
            raise error
        self.count += rows
        self.first = self.first or error

    def check_rest(self, rows: int, label: str) -> None:
        """Raise DataError, with the first row's error, where rows were left out and none is left."""
        if not rows and self.first is not None:
            raise DataError(f"{label}: none of its {self.count:,} rows can be read; the first: {self.first}")
