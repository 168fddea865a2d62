"""``rewardkit export``: a run as Parquet, CSV or JSON Lines, one row a completion."""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rewardkit.cli.arguments import AsJson, option
from rewardkit.cli.exits import finish
from rewardkit.cli.matches import Matches, Search
from rewardkit.cli.output import check_new, replacement_path
from rewardkit.cli.progress import told_progress
from rewardkit.cli.run_argument import RunPlace
from rewardkit.errors import ConfigError
from rewardkit.record.export import ExportColumn, export_columns, export_rows, lists_by_column
from rewardkit.record.places import run_path
from rewardkit.record.reader import RunReader
from rewardkit.shown.text import counted, plain

Rows = Iterable[Mapping[str, Any]]
_CHUNK_ROWS = 2000


def export_command(
    run: RunPlace,
    to: Annotated[Path, option("The file: run.parquet, run.csv or run.jsonl.", "FILE", "--to", "--out")],
    force: Annotated[bool, option("Replace the file if it is there.", None, "--force")] = False,
    where: Annotated[list[str] | None, option("Only completions that fit, as in show.", "judge<0.2")] = None,
    sort: Annotated[str | None, option("Sort them by this, -NAME the highest first.", "NAME")] = None,
    grep: Annotated[str | None, option("Only those with a match of this regular expression.", "TEXT")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the completions of a recorded RUN to a file, one row each, that pandas, polars and datasets read.

    The columns are those of TRL's own tables (step, prompt, completion, a column for each reward with its score,
    advantage), and then what else is known of the completion, of each reward (status, reason, cause, error, version)
    and of the data's row. --where, --sort and --grep choose and sort completions as `rewardkit show` does. The file
    appears when all of it is written.

    Examples:

    [bold]rewardkit export one --to run.parquet
    rewardkit export runs/one --to run.csv --force
    rewardkit export one --to hard.jsonl --where 'level=hard and judge<0.2' --sort=-reward[/]
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
        rows, total = _rows(opened, columns, last, Search("all", grep, where or [], sort, None))
        bar = told_progress("exporting") if grep is None else contextlib.nullcontext(_no_tick)  # a search says its own
        with replacement_path(to.resolve()) as beside, bar as tick:
            written = write(beside, columns, _counted(rows, total, tick))
        names = [column.name for column in columns]
    result = {"run": opened.name, "file": str(to), "rows": written, "columns": names}
    finish(result, lambda: typer.echo(plain(f"wrote {counted(written, 'completion')} to {to}")), as_json=as_json)


def _rows(run: RunReader, columns: Sequence[ExportColumn], last: int, search: Search) -> tuple[Rows, int]:
    """Return the rows of a run that are chosen, or all up to the ``id`` ``last``, and how many there are at most."""
    if search.grep is None and search.sort is None and not search.where:
        return export_rows(run, columns, last), run.count()
    matches = Matches(run, search)
    return _chosen_rows(matches, columns), len(matches.selection)


def _chosen_rows(matches: Matches, columns: Sequence[ExportColumn]) -> Iterator[dict[str, Any]]:
    """Yield a row for each completion that was chosen; no file is written where Ctrl-C ends the search."""
    for listed in matches:
        yield {column.name: column.value(listed.row) for column in columns}
    if matches.is_stopped:
        raise KeyboardInterrupt


def _counted(rows: Rows, total: int, tick: Callable[..., None]) -> Rows:
    """Yield rows, and tell how many of how many were taken; a run that grows meanwhile has more."""
    for done, row in enumerate(rows, 1):
        yield row
        tick(done, max(done, total))


def _no_tick(done: int, total: int) -> None:
    """Say nothing."""


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
