"""The rows of a CSV file: a header with the columns' names, and cells, which are strings.

Quoting is that of RFC 4180: a cell with a delimiter, a quote or a line break stands in double quotes, and a quote in
it is written twice. A row's number is that of the line on which it begins.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from rewardkit.errors import DataError
from rewardkit.rows.strict_json import decode, reason_of
from rewardkit.shown.text import shortened

NAMES = frozenset({".csv", ".tsv"})  # How the names of CSV files end
DELIMITERS = ",;\t"  # What may stand between cells; the header decides

_TALKS = ("prompt", "completion")
_SEEMS_MESSAGES = re.compile(r"""\s*\[\s*\{\s*["']role["']\s*:""")
_PREVIEW_CHARS = 60


def suffix_of(path: Path) -> str:
    """Return the end of a file's name, in lower case, without a ``.gz`` behind it."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def is_csv(path: Path) -> bool:
    """Whether a file's name is that of a CSV file."""
    return suffix_of(path) in NAMES


def is_header(line: str) -> bool:
    """Return whether a line is the header of a CSV file of prompts; a line of JSON is not."""
    if line.lstrip("\ufeff \t").startswith(("{", "[")):
        return False
    try:
        cells = next(csv.reader([line.removeprefix("\ufeff")], delimiter=delimiter_of(line)), [])
    except csv.Error:  # a carriage return inside the line, or a cell beyond the library's limit
        return False
    return "prompt" in cells and len(cells) > 1


def delimiter_of(header: str) -> str:
    """Return what parts the cells of a header: the one that it has most often outside quotes."""
    bare = re.sub(r'"[^"]*"', "", header)
    return max(DELIMITERS, key=bare.count)


def csv_rows(lines: Iterator[bytes], where: str, longest: int) -> Iterator[tuple[int, dict[str, Any] | DataError]]:
    """Yield the rows with the numbers of the lines on which they begin; rows without any text are passed over.

    Cells of ``prompt`` and ``completion`` that hold a JSON list of messages become these, and ``completion_ids`` a list
    of numbers. All others are strings. ``longest`` is the most characters in a cell. A row with too many or too few
    cells, or with other than JSON where that belongs, is yielded as the DataError that names file, line and column.
    What leaves no row behind it to be read raises one.
    """
    previous = csv.field_size_limit(longest)  # a long completion has more than the library's 131,072
    try:
        yield from _CsvFile(lines, where).rows()
    finally:
        csv.field_size_limit(previous)


class _CsvFile:
    """One file that is being read, with the lines of the row at which it is."""

    def __init__(self, lines: Iterator[bytes], where: str) -> None:
        self._lines = lines
        self._where = where
        self._number = 0
        self._start = 1
        self._row_lines: list[str] = []

    def rows(self) -> Iterator[tuple[int, dict[str, Any] | DataError]]:
        """Yield the rows as :func:`csv_rows` does."""
        text = self._decode_lines()
        first = next((line for line in text if line.strip()), None)
        if first is None:
            return
        if first.lstrip()[:1] in ("{", "["):
            self._refuse("begins with JSON, and not with a header of CSV; name a file of JSON Lines .jsonl")
        self._start = self._number
        reader = csv.reader(itertools.chain([first], text), delimiter=delimiter_of(first), strict=True)
        header = self._next(reader) or []
        self._check_header(header)
        while True:
            self._start, self._row_lines = self._number + 1, []
            if (cells := self._next(reader, header)) is None:
                return
            if any(cells):
                try:
                    row: dict[str, Any] | DataError = self._row(header, cells)
                except DataError as error:
                    row = error  # the rows behind it can be read
                yield self._start, row

    def _next(self, reader: Iterator[list[str]], header: Sequence[str] = ()) -> list[str] | None:
        """Return the cells of the next row, none for a blank line; ``None`` at the end."""
        try:
            return next(reader, None)
        except csv.Error as error:
            self._refuse(self._why(str(error), header))

    def _why(self, complaint: str, header: Sequence[str]) -> str:
        """Return why the library refuses a row, in words that name the column or the fix."""
        if complaint.startswith("new-line character"):  # the library's advice is about Python's open()
            return "a carriage return stands outside quotes; end each line with \\n, and quote a cell that holds it"
        if "unexpected end of data" not in complaint:
            quoting = "a cell with a delimiter, a quote or a line break stands in quotes, each quote in it twice"
            return f"{complaint}; {quoting}"
        cells = next(csv.reader(self._row_lines, delimiter=delimiter_of("".join(self._row_lines[:1]) or ",")), [])
        column = f"column {header[len(cells) - 1]!r}: " if 0 < len(cells) <= len(header) else ""
        return f"{column}a quote is opened and not closed before the end of the file"

    def _decode_lines(self) -> Iterator[str]:
        """Yield the lines as text, and keep those of the row for an error; raise DataError for other than UTF-8."""
        for raw in self._lines:
            self._number += 1
            try:
                line = raw.decode("utf-8-sig" if self._number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                self._start = self._number
                if self._number == 1 and raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
                    self._refuse("in UTF-16; save it in UTF-8")
                self._refuse(f"not UTF-8: {error.reason} at byte {error.start}; save it in UTF-8")
            self._row_lines.append(line)
            yield line

    def _check_header(self, header: Sequence[str]) -> None:
        for number, name in enumerate(header, 1):
            if not name.strip():
                self._refuse(f"column {number} has no name; pandas writes its index so, unless with index=False")
            if name in header[: number - 1]:
                self._refuse(f"column {name!r} stands in the header twice; rename one of the two")

    def _row(self, header: Sequence[str], cells: Sequence[str]) -> dict[str, Any]:
        """Return a line's values by column; refuse a line that is wider or narrower than the header."""
        if len(cells) != len(header):
            width = len(header)
            if len(cells) > width:
                flaw = f"{_preview(cells[width])} stands in none"
            else:
                flaw = f"{header[len(cells)]!r} is missing"
            quoted = "a cell with a delimiter or a line break stands in quotes"
            self._refuse(f"{len(cells)} cells, where the header has {width} columns: {flaw}; {quoted}")
        return {name: self._value(name, cell) for name, cell in zip(header, cells, strict=True)}

    def _value(self, column: str, cell: str) -> Any:
        if column == "completion_ids":
            return self._decode(column, cell, "a list of whole numbers") if cell.strip() else None
        if column not in _TALKS or not _SEEMS_MESSAGES.match(cell):
            return _messages(cell) if column in _TALKS else cell
        return self._decode(column, cell, "the messages")

    def _decode(self, column: str, cell: str, expected: str) -> Any:
        try:
            return decode(cell)
        except (ValueError, RecursionError) as error:
            reason = reason_of(error) if isinstance(error, ValueError) else "nested too deeply"
            self._refuse(f"column {column!r}: expected {expected} as JSON (json.dumps), got {_preview(cell)}: {reason}")

    def _refuse(self, reason: str) -> NoReturn:
        raise DataError(f"{self._where}:{self._start}: {reason}") from None


def _messages(cell: str) -> Any:
    """Return the messages in a cell whose keys may stand before the role; any other cell as it is."""
    if not cell.lstrip().startswith("["):
        return cell
    try:
        value = decode(cell)
    except (ValueError, RecursionError):
        return cell
    if not isinstance(value, list) or not value:
        return cell
    return value if all(isinstance(message, dict) and "role" in message for message in value) else cell


def _preview(text: str) -> str:
    return repr(shortened(text, _PREVIEW_CHARS))
