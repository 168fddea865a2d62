"""The rows of a data set, checked as trainers check them: every command and every training reads its rows here.

A file with one wrong row is refused as a whole; the error names the file, the line, the mistake and what to write, of
each kind of mistake, and the lines of all other rows that are wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from rewardkit.coercion.plain_json import legible
from rewardkit.errors import DataError
from rewardkit.rows.csv_file import is_csv, is_header
from rewardkit.rows.files import name_of, records
from rewardkit.rows.invalid_rows import InvalidRows
from rewardkit.rows.refusals import Refusals
from rewardkit.rows.strict_json import decode_row, reason_of
from rewardkit.rows.trainer_names import rename_hint
from rewardkit.shown.text import shortened
from rewardkit.types import Rollout

_PREVIEW_CHARS = 60
_NOT_COLUMNS = ("prompt", "completion", "completion_ids")


class Row(NamedTuple):
    """One row of a data set.

    Attributes:
        line: Its number, from 1: the row's in a Parquet or Arrow file, a ``.json`` list or a list in Python, else the
            number of the line on which it begins.
        values: Its columns, as they stand in the file.
    """

    line: int
    values: dict[str, Any]


def read_rollouts(path: str | Path, *, limit: int | None = None) -> list[Rollout]:
    """Return the rollouts in a file, in its order.

    Each row has ``prompt`` and ``completion``, both a string or a list of chat messages, perhaps ``completion_ids``, a
    list of token ids, and any columns, which become the rollout's example. In CSV, messages are JSON in a cell, and
    columns are strings. Nothing is generated from these prompts, so an empty one passes.

    Args:
        path: A file or folder, as for :func:`read_rows`.
        limit: Rows to read; ``None`` for all. Lines after the last of them are not looked at.

    Raises:
        DataError: As :func:`read_rows` raises it, or a row lacks a prompt or a completion.
    """
    return [rollout for _, rollout in numbered_rollouts(path, limit=limit)]


def numbered_rollouts(path: str | Path, *, limit: int | None = None) -> list[tuple[int, Rollout]]:
    """Return the rollouts as :func:`read_rollouts` does, each behind its number, as :class:`Row` has it."""
    return [
        (
            row.line,
            Rollout(
                prompt=row.values["prompt"],
                completion=row.values["completion"],
                example={column: value for column, value in row.values.items() if column not in _NOT_COLUMNS},
                completion_ids=row.values.get("completion_ids"),
            ),
        )
        for row in _read(Path(path), ("prompt", "completion"), limit, InvalidRows(), _OF_ROLLOUTS)
    ]


def read_rows(
    path: str | Path,
    *,
    needs: Sequence[str] = (),
    limit: int | None = None,
    for_trainer: bool = True,
    invalid: InvalidRows | None = None,
) -> list[Row]:
    """Return the rows of a data set, in its order, each with the keys of the first.

    Reads JSON Lines, CSV (``.csv``, ``.tsv``), a list of objects (``.json``), Parquet, an Arrow file, and a folder that
    ``datasets`` saved; the text formats plain or packed with gzip. Blank lines are passed over.

    Args:
        path: The file or folder; ``-`` for standard input. Text is UTF-8.
        needs: Keys that the rows must have.
        limit: Rows to read; ``None`` for all.
        for_trainer: Whether prompts must be what a trainer takes: all of them text, or all of them lists of messages,
            and none empty.
        invalid: What becomes of a row that cannot be read; by default it is refused.

    Raises:
        DataError: There is no such file, it has no rows, or a row is wrong; names file and line.
    """
    path = Path(path)
    return _read(path, needs, limit, invalid or InvalidRows(), _OF_TRAINERS if for_trainer else ())


def listed_rows(source: Sequence[Mapping[str, Any]], label: str) -> list[Row]:
    """Return the rows of a list in Python, checked as those of a file are.

    Args:
        source: The rows.
        label: The list's name in errors.

    Raises:
        DataError: It is no list of mappings, it is empty, or a row is wrong; names the row, counted from 1.
    """
    if isinstance(source, Mapping | str) or not isinstance(source, Sequence):
        kind = type(source).__name__
        raise DataError(f"{label}: expected a data set, a list of rows or a file's path, got {kind}")
    rows: list[Row] = []
    refusals = Refusals(label)
    for number, values in enumerate(source, 1):
        with refusals.collect(number):
            if not isinstance(values, Mapping):
                _refuse(label, number, f"expected a dictionary, got {_preview(repr(values))}")
            rows.append(Row(number, dict(values)))
            _check_keys(label, rows[-1], rows[0])
    _check_contents(label, rows, _OF_TRAINERS, refusals)
    refusals.check()
    if not rows:
        raise DataError(f"{label}: no rows in it")
    return rows


def _check_prompt(label: str, row: Row, first: Row) -> None:
    """Check a row's prompt, where rows have some: it is text or messages as the first one is, and it is not empty."""
    if "prompt" not in row.values or "prompt" not in first.values:
        return
    _check_talk(label, row, "prompt")
    prompt = row.values["prompt"]
    if not prompt:
        _refuse(label, row.line, "'prompt': expected a string or a list of messages, got an empty string")
    is_text = isinstance(first.values["prompt"], str)
    if isinstance(prompt, str) is not is_text:
        other = "text" if is_text else "messages"
        fix = 'write text as messages, [{"role": "user", "content": "..."}]'
        _refuse(label, row.line, f"'prompt': unlike line {first.line}, which has {other}; in all rows {fix}")


def _check_token_ids(label: str, row: Row, first: Row) -> None:
    ids = row.values.get("completion_ids")
    if ids is not None and (not isinstance(ids, list) or not all(type(token) is int for token in ids)):
        _refuse(label, row.line, f"'completion_ids': expected a list of whole numbers, got {_preview(ids)}")


_Check = Callable[[str, Row, Row], None]  # It gets the data set's label, a row and the first row, and raises DataError
_OF_ROLLOUTS: Sequence[_Check] = (
    lambda label, row, _: _check_talk(label, row, "prompt"),
    lambda label, row, _: _check_talk(label, row, "completion"),
    _check_token_ids,
)
_OF_TRAINERS: Sequence[_Check] = (_check_prompt,)


def _check_contents(label: str, rows: Sequence[Row], checks: Sequence[_Check], refusals: Refusals) -> None:
    """Note what is wrong with what rows hold."""
    for row in rows:
        for check in checks:
            with refusals.collect(row.line):
                check(label, row, rows[0])


def _read(
    path: Path, needs: Sequence[str], limit: int | None, invalid: InvalidRows, checks: Sequence[_Check]
) -> list[Row]:
    """Return the rows of a file or folder, each with the keys of the first, of which ``needs`` are some.

    Raises DataError for all rows that cannot be taken: no row, other keys, or what one of ``checks`` refuses.
    """
    label = name_of(path)
    rows: list[Row] = []
    other_keys: list[Row] = []  # their contents are checked all the same
    refusals = Refusals(label)
    try:
        for number, record in records(path):
            if limit is not None and len(rows) >= limit:
                break
            row, refused = None, refusals.count
            with refusals.collect(number), invalid.leave_out():
                if isinstance(record, DataError):
                    raise record
                values = record if isinstance(record, dict) else object_in(label, number, record, path)
                if values is not None:
                    row = Row(number, values)
                    rows.append(_row(path, row, needs, rows[0] if rows else None))
            if row is not None and refusals.count > refused:
                other_keys.append(row)
    except DataError as error:
        refusals.add(0, error)  # beside the rows before what ended the file
    _check_contents(label, [*rows, *other_keys], checks, refusals)
    refusals.check()
    invalid.check_rest(len(rows), label)
    if not rows:
        form = "a header, and a row below it for each completion" if is_csv(path) else "one JSON object a line"
        raise DataError(f"{label}: no rows in it; expected {form}")
    return rows


def _row(path: Path, row: Row, needs: Sequence[str], first: Row | None) -> Row:
    """Return a row whose keys are those of the first, and of the first the needed ones; raise DataError otherwise."""
    label, values = name_of(path), row.values
    missing = [] if first is not None else [key for key in needs if key not in values]
    if missing:
        is_several = missing[0] == "completion" and isinstance(values.get("completions"), list)
        each = "; write a row for each of 'completions', with the same prompt and columns"
        hint = each if is_several else rename_hint(missing[0], values)
        _refuse(label, row.line, f"{missing[0]!r} is missing; it has {_names(values) or 'nothing'}{hint}")
    if not values:
        _refuse(label, row.line, f"expected an object with columns, got '{{}}'{_advice(path, row.line, '{}')}")
    if first is not None:
        _check_keys(label, row, first)
    return row


def object_in(label: str, line: int, raw: bytes, path: Path | None = None) -> dict[str, Any] | None:
    """Return the object in a line, ``None`` for a blank one; a mark of byte order, as joined files have, is dropped.

    ``path`` is a data set's, whose name and first line may tell that it is of another form. Raises DataError, which
    names the line, for anything but an object.
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(label, line, f"not UTF-8: {error.reason} at byte {error.start}; save it in UTF-8")
    if not text.strip():
        return None
    try:
        value = decode_row(text)
    except RecursionError:
        _refuse(label, line, "nested too deeply; write the value as text")
    except ValueError as error:
        _refuse(label, line, f"{reason_of(error)}: {_preview(text)}{_advice(path, line, text)}")
    if not isinstance(value, dict):
        _refuse(label, line, f"expected a JSON object, got {_preview(text)}{_advice(path, line, text)}")
    if b"\\ud" in raw or b"\\uD" in raw:  # an escape may be half of a surrogate pair, which no UTF-8 can hold
        _check_characters(label, line, value)
    return value


def _advice(path: Path | None, line: int, text: str) -> str:
    """Return advice for a file whose name and first line show that it is of another form; else ``""``."""
    if path is None:
        return ""
    if line == 1 and text.lstrip().startswith("["):
        return "; rows are one object a line; a list of them is read from a file named .json"
    if line == 1 and path.suffix == ".parquet":
        return "; despite its name this is not Parquet"
    if line == 1 and path.suffix == ".json":
        return "; a .json file holds a list of objects, or one object a line"
    if line == 1 and is_header(text):
        return "; this is CSV, which is read from a file named .csv or .tsv"
    return ""


def _check_characters(label: str, line: int, values: Mapping[str, Any]) -> None:
    """Raise DataError for half of a surrogate pair in a column that a trainer reads."""
    for column, value in values.items():
        if column in ("completion", "completions"):
            continue  # a model wrote it, and no trainer reads it from a file
        text = json.dumps([column, value], ensure_ascii=False, default=legible)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = text[error.start].encode("unicode_escape").decode()
            fix = "write the whole character, or \\ufffd"
            _refuse(label, line, f"column {_preview(column)}: half of a surrogate pair, {half}; {fix}")


def _check_keys(label: str, row: Row, first: Row) -> None:
    """Raise DataError where a row has other keys than the first."""
    if row.values.keys() == first.values.keys():
        return
    missing = [key for key in first.values if key not in row.values]
    extra = [key for key in row.values if key not in first.values]
    parts = [f"lacks {_names(missing)}, which line {first.line} has"] if missing else []
    parts += [f"has {_names(extra)}, which line {first.line} lacks"] if extra else []
    _refuse(label, row.line, f"{'; '.join(parts)}; all rows need the same keys (null where there is no value)")


def _check_talk(label: str, row: Row, key: str) -> None:
    """Raise DataError where a row's prompt or completion is neither text nor messages with roles; pass without one."""
    value = row.values.get(key, "")
    if isinstance(value, str):
        return
    if value == []:
        _refuse(label, row.line, f"{key!r}: expected a string or a list of messages; an empty list holds no message")
    if not isinstance(value, list):
        _refuse(label, row.line, f"{key!r}: expected a string or a list of messages, got {_preview(value)}")
    for message in value:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            _refuse(label, row.line, f"{key!r}: expected messages with 'role' and 'content', got {_preview(message)}")


def _refuse(label: str, line: int, reason: str) -> NoReturn:
    raise DataError(f"{label}:{line}: {reason}") from None


def _names(keys: Mapping[str, Any] | Sequence[str]) -> str:
    return ", ".join(repr(shortened(key, _PREVIEW_CHARS)) for key in keys)


def _preview(value: object) -> str:
    """Return a value for a message: text as it is, any other as JSON."""
    return repr(shortened(value if isinstance(value, str) else json.dumps(value, default=legible), _PREVIEW_CHARS))
