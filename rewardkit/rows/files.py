"""The records of a data file: lines of JSON or CSV, a JSON list, or a table of Parquet or Arrow.

The first bytes of a file tell gzip, Parquet and Arrow, whatever its name; its name tells CSV and a JSON list. Lines are
unpacked one by one and each has a limit, so a small file that unpacks to a huge one costs what its rows cost.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from rewardkit.errors import DataError
from rewardkit.rows.csv_file import csv_rows, is_csv, is_header, suffix_of
from rewardkit.rows.strict_json import decode_row, encode, reason_of
from rewardkit.rows.tables import ARROW_FILE, ARROW_STREAM, PARQUET, is_saved, saved_rows, table_rows

STDIN = Path("-")  # Stands for standard input
MAX_LINE_BYTES = 2**28  # The longest line that is read, unpacked: 256 MiB
MAX_LIST_BYTES = 2**30  # The longest JSON list that is read, unpacked: 1 GiB. It is in memory as a whole.

Record: TypeAlias = tuple[int, bytes | dict[str, Any] | DataError]
"""A record's number, counted from 1, and a line as it stands or the columns of a row of a table."""

_GZIP = b"\x1f\x8b"
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
    """Yield a file's lines, of other formats its rows, with their numbers. Only ``\\n`` ends a line.

    Args:
        path: The file, or a folder that ``datasets`` saved; ``-`` for standard input, which is CSV where its first line
            is a header with ``prompt``.

    Raises:
        DataError: It cannot be read or unpacked, a row of CSV or a list is wrong, or a table holds a number that is not
            finite.
    """
    label = name_of(path)
    lines_read = _Lines(label)
    try:
        if path != STDIN and path.is_dir():
            if not is_saved(path):
                raise DataError(f"{label}: a folder that Dataset.save_to_disk did not write; name a file of rows")
            yield from saved_rows(path)
            return
        with _open_input(path) as file:
            head, file = _head(file)
            if head.startswith((PARQUET, ARROW_FILE, ARROW_STREAM)):
                yield from table_rows(file, label, head)
                return
            _refuse_packed(path, label, head)
            unpacked = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if head.startswith(_GZIP) else file
            lines = lines_read.of(unpacked)
            first = next(lines, b"")
            if first.startswith((PARQUET, ARROW_FILE, ARROW_STREAM)):
                raise DataError(f"{label}: a table packed with gzip; unpack it first: gunzip {path}")
            lines = itertools.chain([first] if first else [], lines)
            if suffix_of(path) == ".json" and first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
                yield from _list_items(lines, label)
            elif is_csv(path) or (path == STDIN and is_header(first.decode("utf-8", "replace"))):
                yield from csv_rows(lines, label, MAX_LINE_BYTES)
            else:
                yield from enumerate(lines, 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        part = f"it after line {lines_read.number}" if lines_read.number else "the first line"
        raise DataError(f"{label}: damaged: gzip cannot unpack {part}: {error}") from None
    except OSError as error:
        raise DataError(f"{label}: {error.strerror or error}") from error


def unit_of(path: Path) -> str:
    """Return what the numbers of a file's rows count, lines or rows, for a message."""
    is_table = suffix_of(path) in (".json", ".parquet", ".arrow") or (path != STDIN and path.is_dir())
    return "row" if is_table else "line"


def _refuse_packed(path: Path, label: str, head: bytes) -> None:
    """Raise DataError for a file that is packed otherwise than with gzip."""
    for magic, (kind, program) in _UNPACKED_BY.items():
        if head.startswith(magic):
            if kind == "zip" and path.suffix.lower() in (".xlsx", ".csv"):
                raise DataError(f"{label}: a workbook or another zip file, and no CSV; save it as CSV UTF-8")
            raise DataError(f"{label}: compressed with {kind}; unpack it first: {program} {path}")


def _list_items(lines: Iterable[bytes], label: str) -> Iterator[Record]:
    """Yield the objects of a JSON list, numbered from 1."""
    size, parts = 0, []
    for line in lines:
        size += len(line)
        if size > MAX_LIST_BYTES:
            raise DataError(f"{label}: longer than {MAX_LIST_BYTES:,} bytes; write one object a line, to a .jsonl file")
        parts.append(line)
    try:
        values = decode_row(b"".join(parts).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{label}: not UTF-8: {error.reason} at byte {error.start}; save it in UTF-8") from None
    except RecursionError:
        raise DataError(f"{label}: nested too deeply; write the value as text") from None
    except ValueError as error:
        raise DataError(f"{label}: {reason_of(error)}; JSON Lines are read from a file named .jsonl") from None
    for number, value in enumerate(values, 1):
        yield number, encode(value).encode()  # the reader checks it as it checks a line


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
                message = f"longer than {MAX_LINE_BYTES:,} bytes; expected a row a line"
                raise DataError(f"{self._where}:{self.number}: {message}")
            yield line


@contextlib.contextmanager
def _open_input(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for the block, or hand out standard input, which stays open."""
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
        data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        data = data or self._rest.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
