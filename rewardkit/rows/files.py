"""The records of a data file: JSON Lines or CSV, plain or packed with gzip, or Parquet, from a path or standard input.

The first bytes of a file tell Parquet and gzip, whatever its name; its name tells CSV. Lines are unpacked one by one
and each has a limit, so a small file that unpacks to a huge one costs what its rows cost.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import math
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from rewardkit.errors import DataError
from rewardkit.rows.csv_file import csv_rows, is_csv, is_header

STDIN = Path("-")
"""Stands for standard input."""
MAX_LINE_BYTES = 2**28
"""The longest line that is read, unpacked: 256 MiB."""

Record: TypeAlias = tuple[int, bytes | dict[str, Any]]
"""A record's number, counted from 1, and a line as it stands or the columns of a row of CSV or Parquet."""

_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_BATCH_ROWS = 1024
_HEAD_BYTES = 8
_UNPACKED_BY = {
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"\xfd7zXZ": ("xz", "unxz"),
    b"BZh": ("bzip2", "bunzip2"),
    b"PK\x03\x04": ("zip", "unzip"),
}


def name_of(path: Path) -> str:
    """Return what to call a file in errors."""
    return "standard input" if path == STDIN else str(path)


def records(path: Path) -> Iterator[Record]:
    """Return a file's lines, of CSV and Parquet its rows, with their numbers. Only ``\\n`` ends a line.

    Args:
        path: The file; ``-`` for standard input, which is CSV where its first line is a header with ``prompt``.

    Raises:
        DataError: It cannot be read or unpacked, a row of CSV is wrong, or a Parquet row holds a number that is not
            finite.
    """
    where = name_of(path)
    read = _Lines(where)
    try:
        with _opened(path) as file:
            head, file = _head(file)
            if head.startswith(_PARQUET):
                yield from _parquet(file, where)
                return
            for magic, (kind, program) in _UNPACKED_BY.items():
                if head.startswith(magic):
                    if kind == "zip" and path.suffix.lower() in (".xlsx", ".csv"):
                        raise DataError(f"{where}: a workbook or another zip file, and no CSV; save it as CSV UTF-8")
                    raise DataError(f"{where}: compressed with {kind}; unpack it first: {program} {path}")
            lines = read.of(cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if head.startswith(_GZIP) else file)
            first = next(lines, b"")
            lines = itertools.chain([first] if first else [], lines)
            if is_csv(path) or (path == STDIN and is_header(first.decode("utf-8", "replace"))):
                yield from csv_rows(lines, where, MAX_LINE_BYTES)
                return
            yield from enumerate(lines, 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as wrong:
        which = f"it after line {read.number}" if read.number else "the first line"
        raise DataError(f"{where}: damaged: gzip cannot unpack {which}: {wrong}") from None
    except OSError as reason:
        raise DataError(f"{where}: {reason.strerror or reason}") from reason


class _Lines:
    """The lines of a file, and the number of the last one that was read."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.number = 0

    def of(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yield the lines; one that is too long is a DataError."""
        while line := file.readline(MAX_LINE_BYTES + 1):
            self.number += 1
            if len(line) > MAX_LINE_BYTES:
                long = f"longer than {MAX_LINE_BYTES:,} bytes; expected a row a line"
                raise DataError(f"{self._where}:{self.number}: {long}")
            yield line


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if path != STDIN:
        with path.open("rb") as file:
            yield file
        return
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("standard input: closed; name a file, or pipe the rows in")
    yield sys.stdin.buffer


def _head(file: IO[bytes]) -> tuple[bytes, IO[bytes]]:
    """Return a file's first bytes, and the file from its beginning on."""
    head = file.read(_HEAD_BYTES)
    if file.seekable():
        file.seek(-len(head), io.SEEK_CUR)
        return head, file
    return head, io.BufferedReader(_Rejoined(head, file))


class _Rejoined(io.RawIOBase):
    """A stream that cannot go back, with the bytes that were read of it in front."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        read = read or self._rest.read(len(buffer))
        buffer[: len(read)] = read
        return len(read)


def _parquet(file: IO[bytes], where: str) -> Iterator[Record]:
    try:
        import pyarrow  # heavy, and few files need it
        from pyarrow import parquet
    except ImportError as missing:
        raise DataError(f"{where}: a Parquet file, which the library pyarrow reads: pip install pyarrow") from missing
    number = 0
    try:
        if not file.seekable():
            file = io.BytesIO(file.read())
        table = parquet.ParquetFile(file)
        for batch in table.iter_batches(_BATCH_ROWS, use_threads=False):
            for row in batch.to_pylist():
                number += 1
                for column, value in row.items():
                    if _is_endless(value):
                        raise DataError(f"{where}:{number}: column {column!r}: holds nan or an infinity; write null")
                yield number, row
    except (pyarrow.ArrowException, ValueError) as wrong:
        said = " ".join(str(wrong).split())
        raise DataError(f"{where}: damaged: Parquet cannot be read after row {number}: {said}") from None
    if not number:
        raise DataError(f"{where}: no rows in it: the table of this Parquet file is empty")


def _is_endless(value: object) -> bool:
    """Whether a value is a float that is not finite, or holds one."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return any(map(_is_endless, value.values()))
    return isinstance(value, list | tuple) and any(map(_is_endless, value))
