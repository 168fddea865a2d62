"""Golds that are queries of a database: another text may well give the same rows, so only what surely differs is tried.

A query is run and not read: another bound, another order of words or a condition that is always true changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewardkit.audit.gold import Gold, GoldShape
from rewardkit.audit.probe import Wrong

_QUERY = re.compile(r"\s*(?:select|with)\b.*\bfrom\b", re.IGNORECASE | re.DOTALL)
_MOST_COLUMNS = 5
_NO_VALUE = "'zebra crossing'"


def is_query(gold: Gold) -> bool:
    """Return whether a gold is a query in SQL."""
    return gold.shape is GoldShape.TEXT and _QUERY.match(gold.text) is not None


def more_rows(gold: Gold) -> Iterator[Wrong]:
    """Yield the query with a row more, of one column and of more; all but one of them are no queries of this table."""
    query = gold.text.strip().rstrip("; \n")
    for columns in range(1, _MOST_COLUMNS + 1):
        values = ", ".join([_NO_VALUE] * columns)
        text = f"select * from ({query}) union all values ({values})"  # noqa: S608 - an answer, which nothing runs here
        yield Wrong(f"a row more, of {columns}", text, "item")
