"""What the table of completions shows, as a file: CSV or JSON Lines, some rows at a time, with whole texts."""

from __future__ import annotations

import csv
import io
import json
import math
import operator
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun
from rewardkit.dashboard.views.completion_table import READ_S, TableIndex, TableRequest, select
from rewardkit.errors import RecordError
from rewardkit.messages import completion_text
from rewardkit.record.as_text import value_text
from rewardkit.record.export import sayable
from rewardkit.record.selection import names_of
from rewardkit.record.text_search import TextSearch
from rewardkit.record.values import Completion
from rewardkit.types import Status, Text

KINDS: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
"""The kinds of files, and what a browser is told that they are."""
MOST_COLUMNS = 200
ROWS, FIRST_ROWS = 200, 4  # Rows of a part at most, and those that are read at once, at first
PART_BYTES = 4_000_000  # Bytes after which a part ends
MATCHES = 20  # Rows of a part where a text is searched for
_SEARCH_S = 0.25
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # What a spreadsheet takes for the beginning of a formula
_OF_CALLS = ("reason", "status", "cause", "error", "version", "seconds")
Value = str | int | float | bool | None


class ExportPart(NamedTuple):
    """A part of a file."""

    body: bytes
    end: int  # The place in the order at which the next part goes on
    until: int  # The last completion that counts, also for the next part
    is_last: bool


def export_part(opened: OpenRun, query: Query, kind: str, start: int) -> ExportPart:
    """Return the next part of a file, which may be empty while a search or a reading goes on.

    Query: as for the table, with ``until``, and ``cols``, the columns of the file as a JSON list: names of a completion
    (``id``, ``step``, ``epoch``, ``split``, ``rank``, ``prompt``, ``prompt_text``, ``completion``, ``reward``,
    ``plain_sum``, ``advantage``, ``tokens``, ``characters``, ``truncated``), a reward's name, or with ``.reason``,
    ``.status``, ``.cause``, ``.error``, ``.version`` or ``.seconds`` behind it, or ``column.NAME`` of the data.

    Raises:
        RecordError: There is no such column, or as the table.
    """
    request, names = TableRequest.of(query), _columns(query)
    values = [_value_of(name, opened.run.rewards) for name in names]
    index = opened.cache.get("table", 0, TableIndex)
    with index.lock:
        wanted = names_of(request.conditions, request.sort)
        if index.table.update(opened.run, wanted, READ_S).unfinished:
            return ExportPart(b"", start, request.until or 0, is_last=False)
        until = request.until or index.table.numbers.last_id
        selection = select(opened, index, request._replace(until=until))
    if request.pattern is None:
        ids = selection.page(start, ROWS).tolist()
        end = start + len(ids)
    else:
        search = TextSearch(opened.run, request.pattern, request.search[2], index.of_prompts(request.search))
        page = search.page(selection, start, MATCHES, _SEARCH_S)
        ids, end = list(page.matches), page.end
    body = csv_lines(names, []) if kind == "csv" and start == 0 else b""
    done, size = 0, FIRST_ROWS
    while done < len(ids):
        rows = [[value(row) for value in values] for row in opened.run.by_id(ids[done : done + size])]
        body += csv_lines(None, rows) if kind == "csv" else json_lines(names, rows)
        done, size = done + size, 2 * size
        if len(body) > PART_BYTES and request.pattern is None:  # those of a search have been found already
            end = start + min(done, len(ids))
            break
    return ExportPart(body, end, until, is_last=end >= len(selection))


def _columns(query: Query) -> list[str]:
    """Return the names of the columns; RecordError where they are not a list of distinct texts."""
    try:
        names = json.loads(query.text("cols", "[]"))
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise RecordError("cols: expected a JSON list of names of columns")
    return list(dict.fromkeys(names))[:MOST_COLUMNS]


def csv_lines(header: Sequence[str] | None, rows: Sequence[Sequence[Value]]) -> bytes:
    """Return lines of CSV; a text that a spreadsheet would take for a formula has ``'`` before it."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for row in ([] if header is None else [header], rows):
        writer.writerows([_harmless(cell) for cell in cells] for cells in row)
    return file.getvalue().encode()


def _harmless(cell: Value) -> Value:
    if isinstance(cell, str) and cell.startswith(_FORMULAS):
        try:
            float(cell)
        except ValueError:
            return f"'{cell}"
    return cell


def json_lines(names: Sequence[str], rows: Sequence[Sequence[Value]]) -> bytes:
    """Return a JSON object a line; numbers that are not finite are ``null``."""
    finite = ([None if isinstance(cell, float) and not math.isfinite(cell) else cell for cell in row] for row in rows)
    return "".join(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in finite).encode()


_FIELDS = ("id", "step", "epoch", "split", "rank", "reward", "plain_sum", "advantage", "tokens", "truncated")
_OF_COMPLETIONS: Final[dict[str, Callable[[Completion], Value]]] = {
    **{name: operator.attrgetter(name) for name in _FIELDS},
    "prompt": lambda row: row.prompt_index,
    "prompt_text": lambda row: _text(row.prompt),
    "completion": lambda row: _text(row.completion),
    "characters": lambda row: None if row.completion is None else len(completion_text(row.completion)),
}


def _value_of(name: str, rewards: Sequence[str]) -> Callable[[Completion], Value]:
    """Return what reads a column of a completion; RecordError where there is no such column."""
    if name in rewards:
        return lambda row: _own_score(row, name)
    if name in _OF_COMPLETIONS:
        return _OF_COMPLETIONS[name]
    reward, _, part = name.rpartition(".")
    if reward in rewards and part in _OF_CALLS:
        return lambda row: _of_call(row, reward, part)
    column = name.removeprefix("column.")
    if column == name:
        raise RecordError(f"cols: no column {name[:60]!r}; those of the data are column.NAME")
    return lambda row: None if row.columns.get(column) is None else sayable(value_text(row.columns[column]))


def _own_score(row: Completion, reward: str) -> float | None:
    """Return the score that a reward gave; what stands in for a failed call is no score."""
    outcome = row.outcomes.get(reward)
    return outcome.score if outcome is not None and outcome.status is Status.SCORED else None


def _of_call(row: Completion, reward: str, part: str) -> Value:
    outcome = row.outcomes.get(reward)
    if outcome is None:
        return None
    if part == "version":
        return row.versions[reward]
    if part == "seconds":
        return outcome.duration_s
    value = getattr(outcome, part)
    return None if value is None else sayable(str(value))


def _text(text: Text | None) -> str | None:
    """Return a text, and messages as JSON."""
    return None if text is None else sayable(text if isinstance(text, str) else value_text(text))
