"""How messages name a row: its id beside its place in a batch, as the place says nothing of the data set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rewardkit.shown.text import shortened

ID_COLUMNS = ("id", "task_id", "question_id", "problem_id", "uid", "name")
"""Columns that name a row for people, the first that it has; no reward needs them."""
_ID_CHARS = 60
_PLACE = re.compile(r" of example \d+")


def id_column(columns: Mapping[str, Any]) -> str | None:
    """Return the column with a row's id, a text or a whole number; ``None`` where it has none."""
    return next((name for name in ID_COLUMNS if _is_id(columns.get(name))), None)


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and bool(str(value).strip())


def id_text(columns: Mapping[str, Any]) -> str:
    """Return a row's id with its column; ``""`` where it has none.

    >>> id_text({"prompt": "2+2=", "task_id": "T/4"})
    "task_id 'T/4'"
    """
    column = id_column(columns)
    return "" if column is None else f"{column} {shortened(str(columns[column]), _ID_CHARS)!r}"


def row_name(label: str, columns: Mapping[str, Any]) -> str:
    """Return a row's label with its id, where it has one.

    >>> row_name("row 36", {"prompt": "2+2=", "id": 7}), row_name("row 36", {"answer": "4"})
    ("row 36 (id '7')", 'row 36')
    """
    text = id_text(columns)
    return f"{label} ({text})" if text else label


def without_place(error: str) -> str:
    """Return the error of a call without the row's place in its batch, for a message that names the row otherwise.

    >>> without_place("column 'answer' of example 36: expected int, got 'four'")
    "column 'answer': expected int, got 'four'"
    """
    return _PLACE.sub("", error, count=1)
