"""Sums of records whose recorder counted the defaults of failed calls as scores: made again from the scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rewardkit.record.table import Floats

Tuples = Callable[..., list[tuple[Any, ...]]]

OWN_SCORES = "sums_of_own_scores"
"""What a session says of itself whose sums leave out the defaults of failed calls."""
_ROWS = "SELECT batch, status, scores, weighted FROM completion WHERE batch IN ({}) ORDER BY id"
_VERSIONS = "SELECT id, versions FROM batch WHERE id IN ({})"
_AT_ONCE = 100  # Batches that are read in one question


def own_sums(tuples_of: Tuples, decode: Callable[[str], Sequence[int]], rows: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Return rows of ``summary`` with counted, mean, std, min and max of the scores that a reward gave itself.

    Of a completion that the trainer left out no score is counted. Where a batch was taken away meanwhile its row stays.

    Args:
        tuples_of: Asks the record.
        decode: Reads the versions of a batch.
        rows: The rows, each of a batch with failed calls that defaults stand in for.
    """
    batches = sorted({row["batch"] for row in rows})
    sums: dict[tuple[int, int], Mapping[str, Any]] = {}
    for start in range(0, len(batches), _AT_ONCE):
        chunk = batches[start : start + _AT_ONCE]
        marks = ",".join("?" * len(chunk))
        versions = {number: decode(text) for number, text in tuples_of(_VERSIONS.format(marks), *chunk)}
        parts: dict[int, list[tuple[Any, ...]]] = {}
        for number, *cells in tuples_of(_ROWS.format(marks), *chunk):
            parts.setdefault(number, []).append(tuple(cells))
        for number, cells_of in parts.items():
            for column, version in enumerate(versions.get(number, ())):
                sums[number, version] = _sums(cells_of, column)
    return [{**dict(row), **_of_row(row, sums.get((row["batch"], row["version"]), {}))} for row in rows]


def _sums(cells: Sequence[tuple[Any, ...]], column: int) -> Mapping[str, Any]:
    """Return the scores of one reward in a batch: all numbers, its own, and its own of completions with a total."""
    status, packed, totals = zip(*cells, strict=True)
    scores = np.frombuffer(b"".join(packed), "<f8").reshape(len(cells), -1)[:, column]
    own = np.array([letters[column] in "sS" for letters in status], bool) & ~np.isnan(scores)
    has_total = np.array([total is not None for total in totals], bool)
    return {"numbers": int((~np.isnan(scores)).sum()), "own": scores[own], "paid": scores[own & has_total]}


def _of_row(row: Any, sums: Mapping[str, Any]) -> dict[str, Any]:
    if not sums:
        return {}
    own: Floats = sums["own"]
    counted: Floats = own if row["counted"] == sums["numbers"] else sums["paid"]  # else some were left out
    return {
        "counted": len(counted),
        "mean": float(counted.mean()) if len(counted) else None,
        "std": float(counted.std(ddof=1)) if len(counted) > 1 else None,
        "min": float(own.min()) if len(own) else None,
        "max": float(own.max()) if len(own) else None,
    }
