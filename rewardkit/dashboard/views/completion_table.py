"""The table of all completions of a run: chosen by conditions, sorted by any column, searched for a text."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rewardkit.dashboard.as_json import attributes, plain
from rewardkit.dashboard.query import SPLITS, Query
from rewardkit.dashboard.readers import OpenRun
from rewardkit.errors import RecordError
from rewardkit.messages import completion_text
from rewardkit.record.as_text import value_text
from rewardkit.record.conditions import Condition, conditions_of
from rewardkit.record.search_pattern import SearchPattern
from rewardkit.record.selection import NUMBERS, RunTable, Selection, names_of
from rewardkit.record.text_search import FIELDS, TextMatch, TextSearch
from rewardkit.record.values import Completion
from rewardkit.types import Outcome

PAGE, MOST = 50, 500  # Rows of a page unless asked otherwise, and at most
READ_ROWS = 25  # Rows that are read at once: their texts may be long
PREVIEW = 240  # Characters of a text in a row
READ_S = 0.2  # Seconds of reading numbers after which an answer says how far it came
NAMES_S = 0.02  # Seconds of reading names of columns that nobody asked for
SEARCH_S = 0.25  # Seconds of searching after which an answer says what it has found
SELECTIONS = 4  # Selections that stay in memory, the latest ones: each is up to 24 bytes a completion
SEARCHES = 8  # Searches of which is remembered what prompts have
MOST_COLUMNS = 40  # Columns of the data that a row shows


@dataclass
class TableIndex:
    """What selections of a run are made of, for several threads; the ``lock`` guards it."""

    lock: AbstractContextManager[bool] = field(default_factory=threading.RLock)
    table: RunTable = field(default_factory=RunTable)
    selections: dict[object, Selection] = field(default_factory=dict)
    searches: dict[object, dict[int, TextMatch | None]] = field(default_factory=dict)

    def newest(self, key: object) -> Selection | None:
        """Return a selection that is kept, and keep it longest."""
        selection = self.selections.pop(key, None)
        if selection is not None:
            self.selections[key] = selection
        return selection

    def keep(self, key: object, selection: Selection) -> Selection:
        """Keep a selection; those least recently asked for make room."""
        self.selections[key] = selection
        while len(self.selections) > SELECTIONS:
            del self.selections[next(iter(self.selections))]
        return selection

    def of_prompts(self, key: object) -> dict[int, TextMatch | None]:
        """Return what a search knows of prompts."""
        matches = self.searches.pop(key, {})
        self.searches[key] = matches
        while len(self.searches) > SEARCHES:
            del self.searches[next(iter(self.searches))]
        return matches


class TableRequest(NamedTuple):
    """Which completions are wanted, and in which order."""

    split: str | None
    where: str
    sort: str | None
    until: int | None  # Only completions up to this number
    pattern: SearchPattern | None
    search: tuple[str, bool, tuple[str, ...]]  # Of the pattern: its text, whether it is plain, where is looked

    @classmethod
    def of(cls, query: Query) -> TableRequest:
        """Return the request of a query; RecordError for a wrong value."""
        split = query.choice("split", (*SPLITS, "all"), "train")
        grep, text = query.text("grep"), query.text("find")
        expression = grep or text or ""
        fields = tuple((query.text("in") or ",".join(FIELDS)).split(","))
        for name in fields:
            if name not in FIELDS:
                raise RecordError(f"in={name[:40]}: expected {', '.join(FIELDS)}")
        pattern = SearchPattern(expression, is_plain=grep is None) if expression else None
        return cls(
            None if split == "all" else split, query.text("where", ""), query.text("sort"),
            query.integer("until", low=0), pattern, (expression, grep is None, fields),
        )  # fmt: skip

    @property
    def conditions(self) -> list[Condition]:
        return conditions_of(self.where)


def table(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return a page of the table of completions.

    Query: ``where`` (conditions, joined by ``and``), ``sort`` (a name, with ``-`` before it the highest first),
    ``split`` (``train``, ``eval`` or ``all``), ``find`` (a text) or ``grep`` (a regular expression), ``in`` (the fields
    that are searched, of :data:`FIELDS`), ``from`` (a place in the order), ``limit``, ``until`` (the last completion
    that counts, so that pages stay while the run grows), and ``columns`` (names of the data's columns, as JSON).
    ``reading`` says what is not read yet: ask again. With a search, ``end`` is the place at which it goes on.
    """
    request = TableRequest.of(query)
    start, limit = query.integer("from", 0, low=0), query.integer("limit", PAGE, low=1, high=MOST)
    columns = _column_names(query)
    index = opened.cache.get("table", 0, TableIndex)
    with index.lock:
        progress = index.table.update(opened.run, names_of(request.conditions, request.sort), READ_S)
        if progress.unfinished:
            return {**_head(index, request, None), "reading": progress._asdict(), "rows": [], "matched": None}
        index.table.columns.update(opened.run, (), NAMES_S)
        selection = select(opened, index, request)
        head = _head(index, request, selection)
    if request.pattern is None:
        ids = selection.page(start, limit).tolist()
        matches: dict[int, TextMatch] = {}
        end = start + len(ids)
    else:
        search = TextSearch(opened.run, request.pattern, request.search[2], index.of_prompts(request.search))
        page = search.page(selection, start, limit, SEARCH_S)
        ids, matches, end = list(page.matches), page.matches, page.end
    rows = [
        _row(row, columns, matches.get(row.id))
        for index in range(0, len(ids), READ_ROWS)
        for row in opened.run.by_id(ids[index : index + READ_ROWS])
    ]
    return {**head, "from": start, "end": end, "limit": limit, "reading": None, "rows": rows}


def select(opened: OpenRun, index: TableIndex, request: TableRequest) -> Selection:
    """Return the selection of a request, after its names were read; the caller holds the lock."""
    numbers = index.table.numbers
    until = numbers.last_id if request.until is None else request.until
    key = (request.split, request.where, request.sort, until, numbers.state)
    selection = index.newest(key)
    if selection is None:
        selection = Selection(
            opened.run, request.split, request.conditions, request.sort, table=index.table, until=until
        )
        index.keep(key, selection)
    return selection


def _head(index: TableIndex, request: TableRequest, selection: Selection | None) -> dict[str, Any]:
    """Return what is said of the whole table."""
    numbers = index.table.numbers
    until = numbers.last_id if request.until is None else request.until
    newer = numbers.count - int(np.searchsorted(numbers.column("id"), until, side="right"))
    names = itertools.islice(index.table.columns.names, MOST_COLUMNS)
    return {
        "rewards": [{"name": name, "versions": sorted(versions)} for name, versions in numbers.rewards.items()],
        "numbers": list(NUMBERS),
        "data": list(names),
        "data_left": max(0, len(index.table.columns.names) - MOST_COLUMNS),
        "total": numbers.count,
        "until": until,
        "newer": newer,
        "matched": None if selection is None else len(selection),
    }


def _column_names(query: Query) -> list[str]:
    """Return the names of the data's columns that are asked for; RecordError where they are no list of texts."""
    try:
        names = json.loads(query.text("columns", "[]"))
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RecordError("columns: expected a JSON list of names")
    return names[:MOST_COLUMNS]


def _row(row: Completion, columns: Sequence[str], match: TextMatch | None) -> dict[str, Any]:
    """Return a completion as the table shows it: beginnings of its texts, and its numbers."""
    return {
        **attributes(
            row, "id", "step", "epoch", "split", "rank", "tokens", "truncated", "total", "reward", "plain_sum",
            "advantage",
        ),
        "characters": None if row.completion is None else len(completion_text(row.completion)),
        "prompt": row.prompt_index,
        "prompt_text": plain(row.prompt)[:PREVIEW],
        "text": None if row.completion is None else plain(row.completion)[:PREVIEW],
        "scores": {name: _score(outcome, row.versions[name]) for name, outcome in row.outcomes.items()},
        "data": {name: value_text(row.columns[name])[:PREVIEW] for name in columns if name in row.columns},
        "match": None if match is None else {"field": match.field, "name": match.name, **match.excerpt._asdict()},
    }  # fmt: skip


def _score(outcome: Outcome, version: int) -> dict[str, Any]:
    texts = {name: (getattr(outcome, name) or "")[:PREVIEW] or None for name in ("reason", "error")}
    return attributes(outcome, "score", "status", "cause") | texts | {"version": version, "seconds": outcome.duration_s}
