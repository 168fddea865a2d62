"""Rollouts and dataset rows from files of JSON Lines, CSV or Parquet: one object a row, all of the same keys.

A file with one wrong row is refused as a whole; the error names the file, the line and the mistake.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from rewardkit.errors import DataError
from rewardkit.rows.csv_file import is_csv, is_header
from rewardkit.rows.files import name_of, records
from rewardkit.rows.strict_json import decode, reason_of
from rewardkit.shown.text import shortened
from rewardkit.types import Rollout

_SHOWN_CHARS = 60
_NOT_COLUMNS = ("prompt", "completion", "completion_ids")


class Row(NamedTuple):
    """One line of a data file.

    Attributes:
        line: Its number, counted from 1; of a Parquet file the row's, of CSV that of the line on which it begins.
        values: Its columns.
    """

    line: int
    values: dict[str, Any]


def read_rollouts(path: str | Path, *, limit: int | None = None) -> list[Rollout]:
    """Return the rollouts in a file, in its order.

    Each line of JSON Lines, plain or packed with gzip, or row of a CSV or Parquet file has ``prompt`` and
    ``completion``, both a string or a list of chat messages, perhaps ``completion_ids``, a list of token ids, and any
    columns, which become the rollout's example. Blank lines are passed over. In CSV, messages are JSON in a cell, and
    columns are strings.

    Args:
        path: The file, in UTF-8; ``-`` for standard input.
        limit: Rows to read; ``None`` for all. Lines after the last of them are not looked at.

    Raises:
        DataError: There is no such file, it has no rows, or a line is wrong; names file and line.
    """
    path = Path(path)
    return [
        Rollout(
            prompt=_text(path, row, "prompt"),
            completion=_text(path, row, "completion"),
            example={column: value for column, value in row.values.items() if column not in _NOT_COLUMNS},
            completion_ids=_ids(path, row),
        )
        for row in read_rows(path, needs=("prompt", "completion"), limit=limit)
    ]


def read_rows(path: str | Path, *, needs: Sequence[str] = (), limit: int | None = None) -> list[Row]:
    """Return the rows in a file of JSON Lines, CSV or Parquet, in its order, each with the keys of the first.

    Args:
        path: The file, in UTF-8; ``-`` for standard input.
        needs: Keys that the rows must have.
        limit: Rows to read; ``None`` for all.

    Raises:
        DataError: There is no such file, it has no rows, or a line is wrong; names file and line.
    """
    path = Path(path)
    rows: list[Row] = []
    for number, record in records(path):
        if limit is not None and len(rows) >= limit:
            break
        values = record if isinstance(record, dict) else _object(path, number, record)
        if values is None:
            continue
        row = Row(number, values)
        if not rows:
            for key in (one for one in needs if one not in values):
                _refuse(path, number, f"{key!r} is missing; it has {_names(values) or 'nothing'}")
        elif row.values.keys() != rows[0].values.keys():
            _refuse_keys(path, row, rows[0])
        rows.append(row)
    if not rows:
        expected = "" if path.suffix == ".parquet" else "; expected one JSON object a line"
        expected = "; expected a header, and a row below it for each completion" if is_csv(path) else expected
        raise DataError(f"{name_of(path)}: no rows in it{expected}")
    return rows


def _object(path: Path, line: int, raw: bytes) -> dict[str, Any] | None:
    """Return the object in a line; ``None`` for a blank one."""
    try:
        text = raw.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as wrong:
        _refuse(path, line, f"not UTF-8: {wrong.reason} at byte {wrong.start}")
    if not text.strip():
        return None
    try:
        value = decode(text)
    except RecursionError:
        _refuse(path, line, "nested too deeply")
    except ValueError as wrong:
        _refuse(path, line, f"{reason_of(wrong)}: {_shown(text)}{_instead(path, line, text)}")
    if not isinstance(value, dict):
        _refuse(path, line, f"expected a JSON object, got {_shown(text)}{_instead(path, line, text)}")
    return value


def _instead(path: Path, line: int, text: str) -> str:
    """Return what to do with a file of another form, told by its first line and its name; else ``""``."""
    if line == 1 and text.lstrip().startswith("["):
        return "; rows are one object a line, which a list of them becomes by: jq -c '.[]'"
    if line == 1 and path.suffix == ".parquet":
        return "; despite its name this is not Parquet"
    if line == 1 and is_header(text):
        return "; this is CSV, which is read from a file named .csv or .tsv"
    return ""


def _refuse_keys(path: Path, row: Row, first: Row) -> NoReturn:
    lacks = [key for key in first.values if key not in row.values]
    adds = [key for key in row.values if key not in first.values]
    said = [f"lacks {_names(lacks)}, which line {first.line} has"] if lacks else []
    said += [f"has {_names(adds)}, which line {first.line} lacks"] if adds else []
    _refuse(path, row.line, f"{'; '.join(said)}; all rows need the same keys (null where there is no value)")


def _text(path: Path, row: Row, key: str) -> str | list[dict[str, Any]]:
    value = row.values[key]
    if isinstance(value, str):
        return value
    if value == []:
        _refuse(path, row.line, f"{key!r}: expected a string or a list of messages; an empty list holds no message")
    if not isinstance(value, list):
        _refuse(path, row.line, f"{key!r}: expected a string or a list of messages, got {_as_json(value)}")
    for message in value:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            _refuse(path, row.line, f"{key!r}: expected messages with 'role' and 'content', got {_as_json(message)}")
    return value


def _ids(path: Path, row: Row) -> list[int] | None:
    ids = row.values.get("completion_ids")
    if ids is None:
        return None
    if not isinstance(ids, list) or not all(type(one) is int for one in ids):
        _refuse(path, row.line, f"'completion_ids': expected a list of whole numbers, got {_as_json(ids)}")
    return ids


def _refuse(path: Path, line: int, what: str) -> NoReturn:
    raise DataError(f"{name_of(path)}:{line}: {what}") from None


def _names(keys: Mapping[str, Any] | Sequence[str]) -> str:
    return ", ".join(repr(key) for key in keys)


def _as_json(value: object) -> str:
    return _shown(json.dumps(value, default=str))


def _shown(text: str) -> str:
    return repr(shortened(text, _SHOWN_CHARS))
