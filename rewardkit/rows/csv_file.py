"""The rows of a CSV file: a header with the columns' names, and cells, which are strings.

Quoting is that of RFC 4180: a cell with a delimiter, a quote or a line break stands in double quotes, and a quote in
it is written twice. A row's number is that of the line on which it begins.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from rewardkit.errors import DataError
from rewardkit.rows.strict_json import decode, reason_of
from rewardkit.shown.text import shortened

NAMES = frozenset({".csv", ".tsv"})
"""How the names of CSV files end."""
DELIMITERS = ",;\t"
"""What may stand between cells; the header decides."""

_TALKS = ("prompt", "completion")
_SEEMS_MESSAGES = re.compile(r"""\s*\[\s*\{\s*["']role["']\s*:""")
_SHOWN_CHARS = 60


def suffix_of(path: Path) -> str:
    """Return the end of a file's name, in lower case, without a ``.gz`` behind it."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def is_csv(path: Path) -> bool:
    """Whether a file's name is that of a CSV file."""
    return suffix_of(path) in NAMES


def is_header(line: str) -> bool:
    """Whether a line is the header of a CSV file of prompts; a line of JSON is not."""
    if line.lstrip("\ufeff \t").startswith(("{", "[")):
        return False
    cells = next(csv.reader([line.removeprefix("\ufeff")], delimiter=delimiter_of(line)), [])
    return "prompt" in cells and len(cells) > 1


def delimiter_of(header: str) -> str:
    """Return what parts the cells of a header: the one that it has most often outside quotes."""
    bare = re.sub(r'"[^"]*"', "", header)
    return max(DELIMITERS, key=bare.count)


def csv_rows(lines: Iterator[bytes], where: str, longest: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Return the rows with the numbers of the lines on which they begin; rows without any text are passed over.

    Cells of ``prompt`` and ``completion`` that hold a JSON list of messages become these, and ``completion_ids`` a
    list of numbers. All others are strings.

    Args:
        lines: The file's lines with their ends, in UTF-8.
        where: What errors call the file.
        longest: The most characters in a cell.

    Raises:
        DataError: A row is wrong; names the file, the line and the column.
    """
    return _CsvFile(lines, where, longest).rows()


class _CsvFile:
    """One file that is being read, with the lines of the row at which it is."""

    def __init__(self, lines: Iterator[bytes], where: str, longest: int) -> None:
        self._lines = lines
        self._where = where
        self._longest = longest
        self._number = 0
        self._start = 1
        self._held: list[str] = []

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        kept = csv.field_size_limit(self._longest)  # the library's own limit of 131,072 is less than a long completion
        try:
            yield from self._rows()
        finally:
            csv.field_size_limit(kept)

    def _rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        text = self._decoded()
        first = next((line for line in text if line.strip()), None)
        if first is None:
            return
        if first.lstrip()[:1] in ("{", "["):
            self._refuse("begins with JSON, and not with a header of CSV; name a file of JSON Lines .jsonl")
        self._start = self._number
        reader = csv.reader(_again(first, text), delimiter=delimiter_of(first), strict=True)
        header = self._next(reader) or []
        self._check(header)
        while (cells := self._next(reader, header)) is not None:
            if any(cells):
                yield self._start, self._row(header, cells)

    def _next(self, reader: Iterator[list[str]], header: Sequence[str] = ()) -> list[str] | None:
        """Return the cells of the next row, none for a blank line; ``None`` at the end."""
        if header:
            self._start, self._held = self._number + 1, []
        try:
            return next(reader, None)
        except csv.Error as wrong:
            self._refuse(self._why(str(wrong), header))

    def _why(self, said: str, header: Sequence[str]) -> str:
        """Return what is wrong with a row that the library refuses."""
        if "unexpected end of data" not in said:
            return f"{said}; a cell with a delimiter, a quote or a line break stands in quotes, each quote in it twice"
        cells = next(csv.reader(self._held, delimiter=delimiter_of("".join(self._held[:1]) or ",")), [])
        column = f"column {header[len(cells) - 1]!r}: " if 0 < len(cells) <= len(header) else ""
        return f"{column}a quote is opened and not closed before the end of the file"

    def _decoded(self) -> Iterator[str]:
        for raw in self._lines:
            self._number += 1
            try:
                line = raw.decode("utf-8-sig" if self._number == 1 else "utf-8")
            except UnicodeDecodeError as wrong:
                self._start = self._number
                if self._number == 1 and raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
                    self._refuse("in UTF-16; save it in UTF-8")
                self._refuse(f"not UTF-8: {wrong.reason} at byte {wrong.start}; save it in UTF-8")
            self._held.append(line)
            yield line

    def _check(self, header: Sequence[str]) -> None:
        for place, name in enumerate(header, 1):
            if not name.strip():
                self._refuse(f"column {place} has no name; pandas writes its index so, unless with index=False")
            if name in header[: place - 1]:
                self._refuse(f"column {name!r} stands in the header twice")

    def _row(self, header: Sequence[str], cells: Sequence[str]) -> dict[str, Any]:
        if len(cells) != len(header):
            at = len(header)
            more = f"{_shown(cells[at])} stands in none" if len(cells) > at else f"{header[len(cells)]!r} is missing"
            quoted = "a cell with a delimiter or a line break stands in quotes"
            self._refuse(f"{len(cells)} cells, where the header has {at} columns: {more}; {quoted}")
        return {name: self._value(name, cell) for name, cell in zip(header, cells, strict=True)}

    def _value(self, column: str, cell: str) -> Any:
        if column == "completion_ids":
            return self._decode(column, cell, "a list of whole numbers") if cell.strip() else None
        if column not in _TALKS or not _SEEMS_MESSAGES.match(cell):
            return _messages(cell) if column in _TALKS else cell
        return self._decode(column, cell, "the messages")

    def _decode(self, column: str, cell: str, what: str) -> Any:
        try:
            return decode(cell)
        except (ValueError, RecursionError) as wrong:
            why = reason_of(wrong) if isinstance(wrong, ValueError) else "nested too deeply"
            self._refuse(f"column {column!r}: expected {what} as JSON (json.dumps), got {_shown(cell)}: {why}")

    def _refuse(self, what: str) -> NoReturn:
        raise DataError(f"{self._where}:{self._start}: {what}") from None


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _messages(cell: str) -> Any:
    """Return the messages that a cell holds with other keys before the role; any other cell as it is."""
    if not cell.lstrip().startswith("["):
        return cell
    try:
        value = decode(cell)
    except (ValueError, RecursionError):
        return cell
    talk = isinstance(value, list) and value and all(isinstance(one, dict) and "role" in one for one in value)
    return value if talk else cell


def _shown(text: str) -> str:
    return repr(shortened(text, _SHOWN_CHARS))
