"""The rows of a data set that cannot be taken, so that one reading names all of them, whatever is wrong with each."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rewardkit.errors import DataError
from rewardkit.shown.text import counted

MOST_KINDS = 10
"""Kinds of mistakes that an error tells; of further ones it has the number of rows."""
_LISTED_LINES = 8
_VALUES = re.compile(r"(?:(?<=got )|(?<=: ))['\"].*|\d+", re.DOTALL)  # what differs between rows with one mistake


class _Mistake(NamedTuple):
    """What is wrong with a row, the first of its kind so far, else no text; line 0 for what ends the file."""

    line: int
    error: str


class Refusals:
    """Rows that are refused, by what is wrong with them.

    Args:
        label: The data set's name in errors.

    Attributes:
        count: The mistakes so far; a row may have several.

    >>> refusals = Refusals("rows.jsonl")
    >>> for line, text in ((1, "not JSON"), (2, "no prompt"), (3, "not JSON")):
    ...     with refusals.collect(line):
    ...         raise DataError(f"rows.jsonl:{line}: {text}")
    >>> try:
    ...     refusals.check()
    ... except DataError as error:
    ...     print(error)
    rows.jsonl:1: not JSON; 1 more row like it: line 3
    rows.jsonl:2: no prompt
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._mistakes: dict[str, list[_Mistake]] = {}  # By kind
        self._firsts: dict[str, int] = {}  # The first line of each kind
        self.count = 0

    @contextmanager
    def collect(self, line: int) -> Iterator[None]:
        """Note the DataError of a row."""
        try:
            yield
        except DataError as error:
            self.add(line, error)

    def add(self, line: int, error: DataError) -> None:
        """Note what is wrong with a row."""
        self.count += 1
        reason = str(error).removeprefix(f"{self._label}:{line}: ")
        kind = _VALUES.sub("", reason)
        mistakes = self._mistakes.setdefault(kind, [])
        is_first = line < self._firsts.setdefault(kind, sys.maxsize)
        self._firsts[kind] = min(line, self._firsts[kind])
        mistakes.append(_Mistake(line, str(error) if is_first else ""))  # a long file may have millions

    def check(self) -> None:
        """Raise DataError where a row was refused, with a line for each kind of mistake, in the order of the rows."""
        if not self._mistakes:
            return
        kinds = sorted(map(sorted, self._mistakes.values()), key=lambda kind: kind[0].line or sys.maxsize)
        lines = []
        for first, *others in kinds[:MOST_KINDS]:
            lines.append(first.error + (f"; {_rows(others, ' like it')}" if others else ""))
        if rest := sorted(mistake for kind in kinds[MOST_KINDS:] for mistake in kind):
            lines.append(f"and {_rows(rest, ' with other mistakes')}")
        raise DataError("\n".join(lines)) from None


def _rows(mistakes: Sequence[_Mistake], what: str) -> str:
    """Return how many rows there are, and the first of their lines."""
    lines = list(dict.fromkeys(mistake.line for mistake in mistakes))
    listed = ", ".join(map(str, lines[:_LISTED_LINES])) + (", …" if len(lines) > _LISTED_LINES else "")
    return f"{counted(len(lines), 'more row')}{what}: line {listed}"
