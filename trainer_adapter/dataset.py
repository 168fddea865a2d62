"""A data set for a trainer: the rows of a file, a list or a ``datasets.Dataset``, checked before a model loads.

Files are read by :mod:`rewardkit.rows`, as every command reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rewardkit import DataError
from rewardkit.rows import TRAINER_NAMES, listed_rows, read_rows, rename_hint

if TYPE_CHECKING:
    from datasets import Dataset as Dataset  # type: ignore[import-untyped]

Source: TypeAlias = "Dataset | Sequence[Mapping[str, Any]] | str | Path"
"""A ``datasets.Dataset``, a list of rows, or the path of what :func:`~rewardkit.rows.read_rows` reads."""


def read_dataset(source: Source, *, what: str = "dataset") -> Dataset:
    """Return the rows as a ``datasets.Dataset``, each value as it stands in the file; errors call the rows ``what``.

    A column that Arrow would change, of objects or of values of several types, is held as JSON, and reading it gives
    the values. A ``datasets.Dataset`` stays as it is. A column that has a name which TRL uses itself is a
    ``DataError``.
    """
    from datasets import Dataset

    if isinstance(source, Dataset):
        _check_columns(source.column_names, what)
        if not len(source):
            raise DataError(f"{what}: no rows in it")
        return source
    is_file = isinstance(source, str | Path)
    rows = read_rows(source, needs=("prompt",)) if is_file else listed_rows(source, what)  # type: ignore[arg-type]
    what = str(source) if is_file else what
    _check_columns(list(rows[0].values), what)
    columns = {name: [row.values[name] for row in rows] for name in rows[0].values}
    from trainer_adapter.json_column import RowsDataset

    texts = {name: column for name, values in columns.items() if (column := _json_texts(values)) is not None}
    try:
        return RowsDataset.of(columns, texts)
    except (ValueError, TypeError, OverflowError) as error:  # Arrow's errors are of these kinds
        raise DataError(f"{what}: Arrow cannot hold it: {error}") from error


def _check_columns(names: Sequence[str], what: str) -> None:
    if "prompt" not in names:
        has = ", ".join(map(repr, names))
        raise DataError(f"{what}: column 'prompt' is missing; it has {has}{rename_hint('prompt', names)}")
    for name in names:
        if "TRL" in TRAINER_NAMES.get(name, ()):
            raise DataError(f"{what}: column {name!r} has a name that TRL uses itself; rename it")


def _json_texts(values: list[Any]) -> list[str | None] | None:
    """Return a column as JSON texts; ``None`` for one that needs none or that JSON cannot hold."""
    from trainer_adapter.json_column import to_json

    if _is_plain(values):
        return None
    try:
        return [None if value is None else to_json(value) for value in values]
    except (TypeError, ValueError):
        return None  # images, dates: not JSON; Arrow may know them


def _is_plain(values: Sequence[Any]) -> bool:
    """Whether the values, apart from nulls, have one scalar type or are lists of such values."""
    present = [value for value in values if value is not None]
    kinds = {type(value) for value in present}  # exact types: True is an int to isinstance
    if kinds == {list}:
        return all(type(inner) is not list for value in present for inner in value) and _is_plain(
            [inner for value in present for inner in value]
        )
    if kinds == {int}:
        return all(-(2**63) <= value < 2**63 for value in present)  # Arrow's int64 ends there
    return kinds <= {str} or kinds <= {float} or kinds <= {bool}
