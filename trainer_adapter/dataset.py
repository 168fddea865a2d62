"""Rows of prompts and columns, from a file, a list or a ``datasets.Dataset``, checked before a model loads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rewardkit import DataError
from rewardkit.extending import decode, records
from trainer_adapter.columns import RESERVED_KEYWORDS

if TYPE_CHECKING:
    from datasets import Dataset as Dataset  # type: ignore[import-untyped]

Source: TypeAlias = "Dataset | Sequence[Mapping[str, Any]] | str | Path"
"""A ``datasets.Dataset``, a list of rows, or the path of a JSONL, CSV or Parquet file."""

TAKEN = RESERVED_KEYWORDS | {"prompts", "completions", "completion", "completion_ids"}
"""Names that TRL itself passes to rewards: it drops or overwrites a column of such a name, or the call fails."""


_Row: TypeAlias = tuple[str, Mapping[str, Any]]
"""What errors call a row, and its columns."""


def read_dataset(source: Source, *, what: str = "dataset") -> Dataset:
    """Return the rows as a ``datasets.Dataset``.

    A column of objects, or of values of several types, becomes JSON text, because Arrow would fill missing keys with
    nulls; the rewards' annotations read it back. A ``datasets.Dataset`` stays as it is.

    Args:
        source: The rows.
        what: What errors call them.

    Raises:
        DataError: A line is not JSON, rows have different keys, a prompt is missing, or there is no row.
    """
    from datasets import Dataset

    if not isinstance(source, Dataset):
        rows = list(_read_lines(Path(source)) if isinstance(source, str | Path) else _numbered(source, what))
        what = str(source) if isinstance(source, str | Path) else what
        _check_rows(rows, what)
        columns = {name: _column(name, [row[name] for _, row in rows]) for name in rows[0][1]}
        try:
            source = Dataset.from_dict(columns)
        except (ValueError, TypeError, OverflowError) as reason:  # Arrow's errors are of these kinds
            raise DataError(f"{what}: Arrow cannot hold it: {reason}") from reason
    if "prompt" not in source.column_names:
        raise DataError(f"{what}: column 'prompt' is missing; it has {', '.join(map(repr, source.column_names))}")
    if not len(source):
        raise DataError(f"{what}: it has no rows")
    for name in source.column_names:
        if name in TAKEN:
            raise DataError(f"{what}: column {name!r} has a name that TRL uses itself; rename it")
    return source


def _read_lines(path: Path) -> Iterator[_Row]:
    """Yield the rows of a file of JSON Lines, CSV or Parquet, without empty lines."""
    for number, record in records(path):
        place = f"{path}:{number}"
        row = record if isinstance(record, dict) else _read_line(place, record)
        if row is not None:
            yield place, row


def _read_line(place: str, raw: bytes) -> dict[str, Any] | None:
    try:
        line = raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError as reason:
        raise DataError(f"{place}: not UTF-8: {reason.reason} at byte {reason.start}") from reason
    if not line:
        return None
    try:
        row = decode(line)
    except RecursionError:
        raise DataError(f"{place}: nested too deeply") from None
    except json.JSONDecodeError as reason:
        raise DataError(f"{place}: not JSON: {reason.msg} at column {reason.colno}: {line[:80]!r}") from None
    except ValueError as reason:
        raise DataError(f"{place}: {reason}: {line[:80]!r}") from None
    if not isinstance(row, dict):
        raise DataError(f"{place}: expected an object, got {line[:80]!r}")
    return row


def _numbered(rows: Any, what: str) -> Iterator[_Row]:
    if isinstance(rows, Mapping) or not isinstance(rows, Sequence):
        raise DataError(f"{what}: expected a Dataset, a list of rows or a JSONL file's path, got {type(rows).__name__}")
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"{what}, row {number}: expected a dictionary, got {row!r}")
        yield f"{what}, row {number}", row


def _check_rows(rows: Sequence[_Row], what: str) -> None:
    if not rows:
        raise DataError(f"{what}: it has no rows")
    place, first = rows[0]
    if "prompt" not in first:
        raise DataError(f"{place}: column 'prompt' is missing; it has {', '.join(map(repr, first))}")
    conversational = not isinstance(first["prompt"], str)
    for place, row in rows:
        if row.keys() != first.keys():
            lacks = [f"lacks {name!r}" for name in first if name not in row]
            adds = [f"adds {name!r}" for name in row if name not in first]
            raise DataError(f"{place}: {', '.join([*lacks, *adds])}; every row must have the keys of the first")
        prompt = row["prompt"]
        if not prompt or not (_is_chat(prompt) if conversational else isinstance(prompt, str)):
            expected = "a list of chat messages" if conversational else "a string that is not empty"
            raise DataError(f"{place}: prompt: expected {expected}, got {prompt!r}")


def _is_chat(prompt: Any) -> bool:
    return isinstance(prompt, Sequence) and all(isinstance(turn, Mapping) and "role" in turn for turn in prompt)


def _column(name: str, values: list[Any]) -> list[Any]:
    """Return a column's values as Arrow holds them unchanged: as they are, or as JSON text."""
    if name == "prompt" or _is_plain(values):
        return values
    try:
        return [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
    except (TypeError, ValueError):
        return values  # images, dates: not JSON; Arrow may know them


def _is_plain(values: Sequence[Any]) -> bool:
    """Whether the values, apart from nulls, have one scalar type or are lists of such values."""
    present = [value for value in values if value is not None]
    kinds = {type(value) for value in present}
    if kinds == {list}:
        return all(type(inner) is not list for value in present for inner in value) and _is_plain(
            [inner for value in present for inner in value]
        )
    if kinds == {int}:
        return all(-(2**63) <= value < 2**63 for value in present)
    return kinds <= {str} or kinds <= {float} or kinds <= {bool}
