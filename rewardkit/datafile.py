"""The records of a data file: JSON Lines or CSV, plain or packed with gzip, or Parquet, from a path or standard input.

The first bytes of a file tell its form, and only for CSV its name as well. Lines are unpacked one by one and each has a
limit, so a small file that unpacks to a huge one costs what its rows cost.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import math
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from rewardkit.errors import DataError

STDIN = Path("-")
"""Stands for standard input."""
MAX_LINE_BYTES = 2**28
"""The longest line that is read, unpacked: 256 MiB."""

Record: TypeAlias = tuple[int, bytes | dict[str, Any]]
"""A record's number, counted from 1, and a line as it stands or the columns of a row of Parquet or CSV."""

_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_BATCH_ROWS = 1024
_HEAD_BYTES = 8
_BOM = b"\xef\xbb\xbf"
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
    """Return a file's lines, of Parquet and CSV its rows, with their numbers. Only ``\\n`` ends a line.

    Args:
        path: The file; ``-`` for standard input.

    Raises:
        DataError: It cannot be read or unpacked, a Parquet row holds a number that is not finite, or a row of CSV has
            other cells than the head.
    """
    where = name_of(path)
    number = 0
    try:
        with _opened(path) as file:
            head, file = _head(file)
            if head.startswith(_PARQUET):
                yield from _parquet(file, where)
                return
            for magic, (kind, program) in _UNPACKED_BY.items():
                if head.startswith(magic):
                    raise DataError(f"{where}: compressed with {kind}; unpack it first: {program} {path}")
            lines = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if head.startswith(_GZIP) else file
            if _is_csv(path, head, lines):
                yield from _csv_rows(lines, where)
                return
            while line := _line(lines, where, number + 1):
                number += 1
                yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as wrong:
        which = f"it after line {number}" if number else "the first line"
        raise DataError(f"{where}: damaged: gzip cannot unpack {which}: {wrong}") from None
    except OSError as reason:
        raise DataError(f"{where}: {reason.strerror or reason}") from reason


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


def _is_csv(path: Path, head: bytes, lines: IO[bytes]) -> bool:
    """Whether a file is CSV: by its name, unless it begins as JSON does."""
    name = path.with_suffix("") if path.suffix == ".gz" else path
    if name.suffix.lower() != ".csv":
        return False
    first = lines.peek(_HEAD_BYTES) if isinstance(lines, gzip.GzipFile) else head
    return not first.removeprefix(_BOM).lstrip().startswith((b"{", b"["))


def _csv_rows(lines: IO[bytes], where: str) -> Iterator[Record]:
    """Return rows under the names of the first one; every cell is a text. A row's number is that of its last line."""
    csv.field_size_limit(MAX_LINE_BYTES)
    reader = csv.reader(_texts(lines, where), strict=True)
    head: list[str] = []
    try:
        for cells in reader:
            if not head:
                head = cells
                if twice := next((name for name in head if head.count(name) > 1), None):
                    raise DataError(f"{where}:{reader.line_num}: column {twice!r} stands twice in the first row")
            elif len(cells) != len(head):
                if cells:
                    words = f"{len(cells)} cells, where the first row has {len(head)}"
                    raise DataError(f"{where}:{reader.line_num}: {words}")
            else:
                yield reader.line_num, dict(zip(head, cells, strict=True))
    except csv.Error as wrong:
        raise DataError(f"{where}:{reader.line_num}: not CSV: {wrong}") from None


def _texts(lines: IO[bytes], where: str) -> Iterator[str]:
    number = 0
    while line := _line(lines, where, number := number + 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as wrong:
            raise DataError(f"{where}:{number}: not UTF-8: {wrong.reason} at byte {wrong.start}") from None


def _line(lines: IO[bytes], where: str, number: int) -> bytes:
    line = lines.readline(MAX_LINE_BYTES + 1)
    if len(line) > MAX_LINE_BYTES:
        raise DataError(f"{where}:{number}: longer than {MAX_LINE_BYTES:,} bytes; expected a row a line")
    return line


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
