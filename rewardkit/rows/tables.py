"""Rows of Arrow's formats: Parquet, Arrow files and streams, and folders that ``datasets`` saved.

Arrow has columns of one type, and data sets have values of several. ``datasets`` keeps such values as JSON text; here
they become values again.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from rewardkit.errors import DataError
from rewardkit.rows.strict_json import decode, decode_row

if TYPE_CHECKING:
    import pyarrow

PARQUET = b"PAR1"
ARROW_FILE = b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"  # How files of these formats begin
JSON_FEATURE = "JsonColumn"
"""What ``datasets`` calls a column that a trainer's adapter of rewardkit holds as JSON text."""
_BATCH_ROWS = 1024
_STATE = "state.json"
_SPLITS = "dataset_dict.json"

Change: TypeAlias = Callable[[Any], Any]


@dataclass(slots=True)
class _RowCount:
    """How many rows were read, for errors."""

    rows: int = 0


def table_rows(file: IO[bytes], label: str, head: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a Parquet or Arrow file with their numbers, counted from 1; its first bytes tell the format.

    Raises DataError where it cannot be read, has no rows, or holds a number that is not finite.
    """
    kind = "Parquet" if head.startswith(PARQUET) else "Arrow"
    with _arrow_errors(label, kind) as count:
        file = file if file.seekable() else io.BytesIO(file.read())
        batches = _parquet_batches(file) if kind == "Parquet" else _arrow_batches(file, head)
        yield from _check_batches(batches, label, count)
        if not count.rows:
            raise DataError(f"{label}: no rows in it: the table of this {kind} file is empty")


def is_saved(folder: Path) -> bool:
    """Whether ``datasets`` saved a data set, or several splits of one, as this folder."""
    return (folder / _STATE).is_file() or (folder / _SPLITS).is_file()


def saved_rows(folder: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a folder that ``Dataset.save_to_disk`` wrote, with their numbers, counted from 1.

    Raises DataError where it holds several splits, a file of it is missing or damaged, or it has no rows.
    """
    label = str(folder)
    if not (folder / _STATE).is_file():
        splits = _read_json(folder / _SPLITS).get("splits", [])
        raise DataError(
            f"{label}: holds several splits; name one: {', '.join(str(folder / split) for split in splits)}"
        )
    names = [entry["filename"] for entry in _read_json(folder / _STATE).get("_data_files", [])]
    with _arrow_errors(label, "Arrow") as count:
        for name in names:
            with (folder / name).open("rb") as file:
                yield from _check_batches(_arrow_batches(file, file.read(8)), label, count)
        if not count.rows:
            raise DataError(f"{label}: no rows in it")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = decode(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: damaged: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: damaged: expected an object")
    return value


@contextlib.contextmanager
def _arrow_errors(label: str, kind: str) -> Iterator[_RowCount]:
    """Raise Arrow's errors as DataErrors; yield the count of rows read, which the caller keeps up."""
    try:
        import pyarrow  # heavy, and few files need it
    except ImportError as error:
        article = "an" if kind == "Arrow" else "a"
        raise DataError(
            f"{label}: {article} {kind} file, which the library pyarrow reads: pip install pyarrow"
        ) from error
    count = _RowCount()
    try:
        yield count
    except (pyarrow.ArrowException, ValueError, MemoryError) as error:  # a damaged length may ask for any memory
        message = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{label}: damaged: {kind} cannot be read after row {count.rows}: {message}") from None


def _parquet_batches(file: IO[bytes]) -> Iterator[pyarrow.RecordBatch]:
    from pyarrow import parquet

    yield from parquet.ParquetFile(file).iter_batches(_BATCH_ROWS, use_threads=False)


def _arrow_batches(file: IO[bytes], head: bytes) -> Iterator[pyarrow.RecordBatch]:
    from pyarrow import ipc

    file.seek(0)
    if head.startswith(ARROW_FILE):
        reader = ipc.open_file(file)
        yield from (reader.get_batch(index) for index in range(reader.num_record_batches))
    else:
        yield from ipc.open_stream(file)


def _check_batches(
    batches: Iterator[pyarrow.RecordBatch], label: str, count: _RowCount
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield checked rows with their numbers, and count them; DataError for an infinity or nan."""
    for batch in batches:
        batch.validate(full=True)  # a damaged offset would end the process, not raise
        json_columns = _json_features(batch.schema.metadata or {})
        changes = {
            field.name: _value_of if field.name in json_columns else _json_inside(field.type) for field in batch.schema
        }
        for values in batch.to_pylist():
            count.rows += 1
            for column, value in values.items():
                change = changes[column]
                if change is not None:
                    values[column] = change(value)
                elif _is_endless(value):
                    raise DataError(f"{label}:{count.rows}: column {column!r}: holds nan or an infinity; write null")
            yield count.rows, values


def _json_features(metadata: Mapping[bytes, bytes]) -> list[str]:
    """Return the columns that ``datasets`` has noted as ours in the metadata of a schema."""
    try:
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        return [name for name, feature in features.items() if feature.get("_type") == JSON_FEATURE]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []  # another library wrote the file


def _value_of(text: str | None) -> Any:
    return None if text is None else decode_row(text)


def _json_inside(kind: Any) -> Change | None:
    """Return a decoder of the JSON text in values of an Arrow type, as ``datasets.Json`` has it; ``None`` without."""
    import pyarrow

    if isinstance(kind, getattr(pyarrow, "JsonType", ())):
        return _value_of
    if pyarrow.types.is_struct(kind):
        fields = {field.name: change for field in kind if (change := _json_inside(field.type)) is not None}
        if not fields:
            return None
        return lambda value: value and {name: fields.get(name, _same)(part) for name, part in value.items()}
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind) or pyarrow.types.is_fixed_size_list(kind):
        inner = _json_inside(kind.value_type)
        return None if inner is None else lambda value: value and [inner(part) for part in value]
    return None


def _same(value: Any) -> Any:
    return value


def _is_endless(value: object) -> bool:
    """Return whether a value is a float that is not finite, or holds one."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return any(map(_is_endless, value.values()))
    return isinstance(value, list | tuple) and any(map(_is_endless, value))
