"""From a record's rows to a :class:`~rewardkit.record.table.CompletionTable`: packed scores become columns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rewardkit.record.table import CompletionTable, Floats, Whole, Words

Rows = Callable[..., list[sqlite3.Row]]
Named = Callable[[Sequence[int]], list[tuple[str, int, str]]]

_ROWS = (
    'SELECT completion.id, completion.batch, completion.prompt, completion."group", tokens, truncated, total, weighted,'
    " advantage, status, scores, seconds, batch.step, batch.versions, batch.weights FROM completion"
    " JOIN batch ON batch.id = completion.batch"
)
_CAUSES = (
    "SELECT said.completion, said.version, said.cause FROM said JOIN completion ON completion.id = said.completion"
    " JOIN batch ON batch.id = completion.batch WHERE said.pass = 0 AND said.cause IS NOT NULL"
)


class _Layout(NamedTuple):
    """How the scores of some completions are packed: which rewards, and where these completions stand."""

    versions: tuple[int, ...]
    weights: tuple[float, ...]
    places: Whole


def read_table(
    rows_of: Rows, named: Named, low: int | None, high: int | None, split: str | None, prompt: int | None
) -> CompletionTable:
    """Return completions as columns.

    Args:
        rows_of: Asks the database.
        named: Returns reward, number and digits of versions.
        low: The first step; ``None`` for all.
        high: The last step; ``None`` for all.
        split: ``"train"`` or ``"eval"``; ``None`` for both.
        prompt: The prompt's index; ``None`` for all.
    """
    asked = {"batch.step >= ?": low, "batch.step <= ?": high, "batch.split = ?": split, "completion.prompt = ?": prompt}
    given = {words: value for words, value in asked.items() if value is not None}  # what is not asked stops no index
    words, values = " AND ".join(given) or "TRUE", list(given.values())
    rows = rows_of(f"{_ROWS} WHERE {words} ORDER BY completion.id", *values)
    count = len(rows)
    layouts = _layouts(rows)
    names = list(dict.fromkeys(name for layout in layouts for name, _, _ in named(layout.versions)))
    scores: dict[str, Floats] = {name: np.full(count, np.nan) for name in names}
    seconds: dict[str, Floats] = {name: np.full(count, np.nan) for name in names}
    weights: dict[str, Floats] = {name: np.zeros(count) for name in names}
    versions: dict[str, Whole] = {name: np.zeros(count, np.int64) for name in names}
    status: dict[str, Words] = {name: np.full(count, "", "<U1") for name in names}
    causes: dict[str, Words] = {name: np.full(count, "", "<U16") for name in names}
    for layout in layouts:
        those = [rows[place] for place in layout.places]
        packed = np.frombuffer(b"".join(row["scores"] for row in those), "<f8").reshape(len(those), -1)
        took = np.frombuffer(b"".join(row["seconds"] for row in those), "<f4").reshape(len(those), -1)
        letters = np.array([list(row["status"].lower()) for row in those], "<U1")
        for place, (name, number, _) in enumerate(named(layout.versions)):
            scores[name][layout.places] = packed[:, place]
            seconds[name][layout.places] = took[:, place]
            status[name][layout.places] = letters[:, place]
            versions[name][layout.places] = number
            weights[name][layout.places] = layout.weights[place]
    ids = _whole(rows, "id")
    for number, version, cause in rows_of(f"{_CAUSES} AND {words}", *values):
        ((name, _, _),) = named([version])
        causes[name][np.searchsorted(ids, number)] = cause
    return CompletionTable(
        ids=ids,
        steps=_whole(rows, "step"),
        prompts=_whole(rows, "prompt"),
        groups=_groups(rows),
        tokens=_floats(rows, "tokens"),
        truncated=_floats(rows, "truncated"),
        totals=_floats(rows, "total"),
        rewards=_floats(rows, "weighted"),
        advantages=_floats(rows, "advantage"),
        scores=scores,
        status=status,
        causes=causes,
        seconds=seconds,
        versions=versions,
        weights=weights,
    )


def _layouts(rows: Sequence[sqlite3.Row]) -> list[_Layout]:
    places: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault((row["versions"], row["weights"]), []).append(place)
    return [
        _Layout(tuple(json.loads(versions)), tuple(json.loads(weights)), np.array(those, np.int64))
        for (versions, weights), those in places.items()
        if json.loads(versions)
    ]


def _groups(rows: Sequence[sqlite3.Row]) -> Whole:
    """Return numbers of groups that are unique over all batches."""
    pairs = [(row["batch"], row["group"]) for row in rows]
    known = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    return np.array([known[pair] for pair in pairs], np.int64)


def _whole(rows: Sequence[sqlite3.Row], name: str) -> Whole:
    return np.array([-1 if row[name] is None else row[name] for row in rows], np.int64)


def _floats(rows: Sequence[sqlite3.Row], name: str) -> Floats:
    return np.array([np.nan if row[name] is None else row[name] for row in rows], np.float64)
