"""``rewardkit export``: a run as Parquet, CSV or JSON Lines, one row a completion."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rewardkit.cli.arguments import AsJson, RunPlace, option
from rewardkit.cli.exits import finish
from rewardkit.cli.output import check_new, replacement_path
from rewardkit.cli.progress import told_progress
from rewardkit.errors import ConfigError
from rewardkit.record.export import ExportColumn, export_columns, export_rows, lists_by_column
from rewardkit.record.places import run_path
from rewardkit.record.reader import RunReader
from rewardkit.shown.text import counted, plain

Rows = Iterable[Mapping[str, Any]]
_CHUNK_ROWS = 2000


def export_command(
    run: RunPlace,
    to: Annotated[Path, option("The file: run.parquet, run.csv or run.jsonl.", "FILE", "--to")],
    force: Annotated[bool, option("Replace the file if it is there.", None, "--force")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the completions of a recorded RUN to a file, one row each, that pandas, polars and datasets read.

    The columns are those of TRL's own tables (step, prompt, completion, a column for each reward with its score,
    advantage), and then what else is known of the completion, of each reward (status, reason, cause, error, version)
    and of the data's row. The file appears when all of it is written.

    Examples:

    [bold]rewardkit export one --to run.parquet
    rewardkit export runs/one --to run.csv --force[/]
    """
    write = _WRITERS.get(to.suffix.lower())
    if write is None:
        raise ConfigError(f"--to {to}: expected a name that ends with {', '.join(_WRITERS)}")
    if to.suffix.lower() == ".parquet":
        _pyarrow()  # before the run is opened: it may be missing
    with RunReader(run_path(run)) as opened:
        check_new(to, opened.path.files, "--to", force=force)
        last = opened.last_id
        columns = export_columns(opened)
        with replacement_path(to.resolve()) as beside, told_progress("exporting") as tick:
            rows = export_rows(opened, columns, last)
            written = write(beside, columns, _counted(rows, opened.count(), tick))
        names = [column.name for column in columns]
    result = {"run": opened.name, "file": str(to), "rows": written, "columns": names}
    finish(result, lambda: typer.echo(plain(f"wrote {counted(written, 'completion')} to {to}")), as_json=as_json)


def _counted(rows: Rows, total: int, tick: Callable[..., None]) -> Rows:
    """Yield rows, and tell how many of how many were taken; a run that grows meanwhile has more."""
    for done, row in enumerate(rows, 1):
        yield row
        tick(done, max(done, total))


def _write_lines(path: Path, columns: Sequence[ExportColumn], rows: Rows) -> int:
    written = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({name: _json_value(value) for name, value in row.items()}, ensure_ascii=False) + "\n")
            written += 1
    return written


def _json_value(value: Any) -> Any:
    """Return a value as JSON has it: it knows neither ``nan`` nor infinities, and strict readers refuse the file."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write_csv(path: Path, columns: Sequence[ExportColumn], rows: Rows) -> int:
    written = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [column.name for column in columns], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            written += 1
    return written


def _write_parquet(path: Path, columns: Sequence[ExportColumn], rows: Rows) -> int:
    written = 0
    arrow, parquet = _pyarrow()
    types = {"int": arrow.int64(), "float": arrow.float64(), "bool": arrow.bool_(), "text": arrow.string()}
    schema = arrow.schema([(column.name, types[column.kind]) for column in columns])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for chunk in _chunks(rows):
            writer.write_batch(arrow.RecordBatch.from_pydict(lists_by_column(columns, chunk), schema))
            written += len(chunk)
    return written


def _chunks(rows: Rows) -> Iterator[list[Mapping[str, Any]]]:
    remaining = iter(rows)
    while chunk := list(itertools.islice(remaining, _CHUNK_ROWS)):
        yield chunk


def _pyarrow() -> tuple[Any, Any]:
    """Return the modules pyarrow and pyarrow.parquet; ConfigError where they are not installed."""
    try:
        import pyarrow  # heavy, and few need it
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigError("a Parquet file is written by the library pyarrow: pip install pyarrow") from error
    return pyarrow, parquet


_WRITERS: Mapping[str, Callable[[Path, Sequence[ExportColumn], Rows], int]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_lines,
}
