"""Rollouts and dataset rows from JSON Lines files: one JSON object a line, all of the same keys.

A file is read as a whole and refused as a whole: what comes out is right in every row, and each
error names the file, the line and the mistake.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from rewardkit.errors import DataError
from rewardkit.types import Rollout

_SHOWN_CHARS = 60
_NOT_COLUMNS = ("prompt", "completion", "completion_ids")
_GZIP = b"\x1f\x8b"


class Row(NamedTuple):
    """One line of a data file.

    Attributes:
        line: Its number, counted from 1.
        values: Its columns.
    """

    line: int
    values: dict[str, Any]


def read_rollouts(path: str | Path, *, limit: int | None = None) -> list[Rollout]:
    """Gives the rollouts in a JSON Lines file, in its order.

    Each line has ``prompt`` and ``completion``, both a string or a list of chat messages, perhaps
    ``completion_ids``, a list of token ids, and any columns; these become the rollout's example.
    Blank lines are passed over.

    Args:
        path: The file, in UTF-8.
        limit: Rows to read; ``None`` for all. Lines after the last of them are not looked at.

    Raises:
        DataError: There is no such file, it has no rows, or a line is wrong; names file and line.
    """
    path = Path(path)
    return [_rollout(path, row) for row in read_rows(path, needs=("prompt", "completion"), limit=limit)]


def read_rows(path: str | Path, *, needs: Sequence[str] = (), limit: int | None = None) -> list[Row]:
    """Gives the rows in a JSON Lines file, in its order, each with the keys of the first.

    Args:
        path: The file, in UTF-8.
        needs: Keys that the rows must have.
        limit: Rows to read; ``None`` for all.

    Raises:
        DataError: There is no such file, it has no rows, or a line is wrong; names file and line.
    """
    path = Path(path)
    rows: list[Row] = []
    for number, text in _lines(path):
        if limit is not None and len(rows) >= limit:
            break
        if not text.strip():
            continue
        row = Row(number, _object(path, number, text))
        if not rows:
            _check_needs(path, row, needs)
        elif row.values.keys() != rows[0].values.keys():
            _refuse_keys(path, row, rows[0])
        rows.append(row)
    if not rows:
        raise DataError(f"{path}: no rows in it; expected one JSON object a line")
    return rows


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Gives the file's lines with their numbers; only ``\\n`` ends a line, for JSON text may hold the others."""
    number = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1 and line.startswith(_GZIP):
                    raise DataError(f"{path}: compressed with gzip; unpack it first: gunzip -k {path}")
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as wrong:
        raise DataError(f"{path}:{number}: not UTF-8: {wrong.reason} at byte {wrong.start}") from None
    except OSError as reason:
        raise DataError(f"{path}: {reason.strerror or reason}") from reason


def _object(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        _refuse(path, line, "nested too deeply")
    except ValueError as wrong:
        said = f"{wrong.msg} at column {wrong.colno}" if isinstance(wrong, json.JSONDecodeError) else str(wrong)
        _refuse(path, line, f"not JSON: {said}: {_shown(text)}")
    if not isinstance(value, dict):
        _refuse(path, line, f"expected a JSON object, got {_shown(text)}")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number; write null")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _check_needs(path: Path, row: Row, needs: Sequence[str]) -> None:
    for key in needs:
        if key not in row.values:
            _refuse(path, row.line, f"{key!r} is missing; it has {_names(row.values) or 'nothing'}")


def _refuse_keys(path: Path, row: Row, first: Row) -> NoReturn:
    lacks = [key for key in first.values if key not in row.values]
    adds = [key for key in row.values if key not in first.values]
    said = [f"lacks {_names(lacks)}, which line {first.line} has"] if lacks else []
    said += [f"has {_names(adds)}, which line {first.line} lacks"] if adds else []
    _refuse(path, row.line, f"{'; '.join(said)}; all rows need the same keys (null where there is no value)")


def _rollout(path: Path, row: Row) -> Rollout:
    values = row.values
    return Rollout(
        prompt=_text(path, row, "prompt"),
        completion=_text(path, row, "completion"),
        example={column: value for column, value in values.items() if column not in _NOT_COLUMNS},
        completion_ids=_ids(path, row),
    )


def _text(path: Path, row: Row, key: str) -> str | list[dict[str, Any]]:
    value = row.values[key]
    if isinstance(value, str):
        return value
    if value == []:
        _refuse(path, row.line, f"{key!r}: expected a string or a list of messages; an empty list holds no message")
    if not isinstance(value, list):
        _refuse(path, row.line, f"{key!r}: expected a string or a list of messages, got {_shown(json.dumps(value))}")
    for message in value:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            said = f"{key!r}: expected messages with 'role' and 'content', got {_shown(json.dumps(message))}"
            _refuse(path, row.line, said)
    return value


def _ids(path: Path, row: Row) -> list[int] | None:
    ids = row.values.get("completion_ids")
    if ids is None:
        return None
    if not isinstance(ids, list) or not all(type(one) is int for one in ids):
        _refuse(path, row.line, f"'completion_ids': expected a list of whole numbers, got {_shown(json.dumps(ids))}")
    return ids


def _refuse(path: Path, line: int, what: str) -> NoReturn:
    raise DataError(f"{path}:{line}: {what}") from None


def _names(keys: Mapping[str, Any] | Sequence[str]) -> str:
    return ", ".join(repr(key) for key in keys)


def _shown(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…")
