"""The numbers of a batch's completions by column, as small as they can be read back exactly.

A record keeps them beside its rows: sorting and filtering a million completions then reads a block for each batch, not
a row for each completion. A block begins with a sum of what follows, the counts of completions and of columns, and for
each column a letter and the place at which it begins.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from rewardkit.record.batch_rows import LETTERS, BatchRows
from rewardkit.record.table import Floats
from rewardkit.types import Cause, Status

OWN: Final = ("prompt", "tokens", "truncated", "characters", "plain_sum", "total", "advantage")
"""The columns that each completion has; behind them stand two of each reward, its scores and what became of its calls.
"""
SCORED, SKIPPED, FAILED = 1.0, 2.0, 3.0
"""What became of a call, as a number: 0 without a call, and more than :data:`FAILED` for a failure with a cause."""
STATES: Final[Mapping[str, float]] = {
    Status.SCORED: SCORED, Status.SKIPPED: SKIPPED, Status.FAILED: FAILED, Cause.EXCEPTION: 4.0, Cause.TIMEOUT: 5.0,
    Cause.BAD_RETURN: 6.0, Cause.COERCION: 7.0, Cause.CRASHED: 8.0, Cause.INFRASTRUCTURE: 9.0,
}  # fmt: skip
"""These numbers by status and by cause; they stand in records, and a further cause takes the next one."""
_STATE_OF = {letter: STATES[status] for status, letter in LETTERS.items()}
_MOST_LEVELS = 256  # Distinct numbers of a column that is kept as their indices
_TYPES = {"d": "<f8", "f": "<f4", "b": "<u1", "h": "<u2", "i": "<u4"}
"""numpy's types by a column's letter: as they are, as smaller floats, and three sizes of whole numbers."""
_HEAD, _COLUMN, _CHECK_BYTES = struct.Struct("<III"), struct.Struct("<cI"), 4


class NumberBlock(NamedTuple):
    """A block as it is stored, and where its columns begin."""

    body: bytes
    size: int  # How many completions it has
    columns: Sequence[tuple[str, int]]  # Letter and beginning of each column

    @classmethod
    def of(cls, body: bytes) -> NumberBlock:
        """Return a stored block; struct.error or ValueError where it is not what a recorder has written."""
        check, count, width = _HEAD.unpack_from(body)
        if check != zlib.crc32(memoryview(body)[_CHECK_BYTES:]):
            raise ValueError("a block of numbers that was changed")
        heads = _COLUMN.iter_unpack(memoryview(body)[_HEAD.size : _HEAD.size + width * _COLUMN.size])
        return cls(body, count, [(letter.decode("latin-1"), start) for letter, start in heads])

    def column(self, index: int) -> Floats:
        """Return a column's numbers, ``nan`` for a missing one; ValueError where it does not hold as many."""
        letter, start = self.columns[index]
        if letter == "=":  # as another column
            return self.column(start) if start < index else np.full(self.size, np.nan)
        if letter == "1":
            return np.full(self.size, np.frombuffer(self.body, "<f8", 1, start)[0])
        if letter == "l":
            count = self.body[start] + 1
            levels: Floats = np.frombuffer(self.body, "<f8", count, start + 1)
            codes = np.frombuffer(self.body, "<u1", self.size, start + 1 + 8 * count)
            return np.asarray(levels[codes])
        if letter not in _TYPES:
            raise ValueError(f"a column of the unknown kind {letter!r}")
        return np.frombuffer(self.body, _TYPES[letter], self.size, start).astype(np.float64)


NO_BLOCK = NumberBlock(b"", 0, ())


def block_of(rows: BatchRows, prompts: Sequence[int]) -> bytes:
    """Return the block of a batch; ``prompts`` are the prompts' numbers in the record."""
    own = (prompts, rows.tokens, rows.truncated, rows.characters, rows.plain_sums, rows.totals, rows.advantages)
    causes = [(call.row, call.column, call.cause) for call in rows.details if call.cause is not None]
    return block_of_columns(own, rows.status, rows.scores, causes)


def block_of_columns(
    own: Sequence[Sequence[float | None]],
    status: Sequence[str],
    scores: Sequence[bytes],
    causes: Iterable[tuple[int, int, str]],
) -> bytes:
    """Return the block of some completions.

    Args:
        own: The columns of :data:`OWN`.
        status: A letter a reward, by completion.
        scores: The scores of the rewards as they are packed in a row, by completion.
        causes: Completion, reward and cause of each failure with one, the first two as places.
    """
    count = len(status)
    width = len(status[0]) if status else 0
    numbers = np.frombuffer(b"".join(scores), "<f8").reshape(count, width)
    states = np.array([_STATE_OF[letter] for letter in "".join(status).lower()], np.float64).reshape(count, width)
    for row, column, cause in causes:
        states[row, column] = STATES[cause]
    columns = [np.array(column, np.float64) for column in own]  # None becomes nan
    for index in range(width):
        columns += [numbers[:, index], states[:, index]]
    return packed_columns(columns, count)


def with_advantages(block: NumberBlock, advantages: Sequence[float | None]) -> bytes:
    """Return a block with other advantages."""
    columns = [block.column(index) for index in range(len(block.columns))]
    columns[OWN.index("advantage")] = np.array(advantages, np.float64)
    return packed_columns(columns, block.size)


def packed_columns(columns: Sequence[Floats], count: int) -> bytes:
    """Return a block of columns, each with ``count`` numbers."""
    bodies: list[bytes] = []
    heads: list[bytes] = []
    first: dict[bytes, int] = {}  # The first column with these numbers
    start = _HEAD.size + len(columns) * _COLUMN.size
    for index, column in enumerate(columns):
        twin = first.setdefault(column.tobytes(), index)
        letter, body = ("=", b"") if twin != index else _packed(column)
        heads.append(_COLUMN.pack(letter.encode(), start if twin == index else twin))
        bodies.append(body)
        start += len(body)
    body = b"".join((_HEAD.pack(0, count, len(columns)), *heads, *bodies))[_CHECK_BYTES:]
    return zlib.crc32(body).to_bytes(_CHECK_BYTES, "little") + body


def _packed(column: Floats) -> tuple[str, bytes]:
    """Return a column in the smallest form from which the same numbers come back, and the form's letter."""
    levels, codes = np.unique(column, return_inverse=True)
    if len(levels) <= 1:
        return "1", (levels if len(levels) else np.zeros(1)).astype("<f8").tobytes()
    forms = [("d", 8 * len(column))]
    if not np.isnan(levels[-1]):  # it sorts last
        whole = levels[0] >= 0 and np.array_equal(levels, np.floor(levels))
        forms += [(kind, size * len(column)) for kind, size in (("b", 1), ("h", 2), ("i", 4))
                  if whole and levels[-1] < 256**size]  # fmt: skip
    with np.errstate(over="ignore"):
        if np.array_equal(levels, levels.astype("<f4"), equal_nan=True):
            forms.append(("f", 4 * len(column)))
    if len(levels) <= _MOST_LEVELS:
        forms.append(("l", 1 + 8 * len(levels) + len(column)))
    letter = min(forms, key=lambda form: form[1])[0]
    if letter == "l":
        return letter, bytes([len(levels) - 1]) + levels.astype("<f8").tobytes() + codes.astype("<u1").tobytes()
    return letter, column.astype(_TYPES[letter]).tobytes()
