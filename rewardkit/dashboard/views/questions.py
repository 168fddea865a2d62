"""The solutions of a question: completions of all rows with one prompt, whatever the rows' other columns say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun
from rewardkit.record.as_text import value_text
from rewardkit.record.values import RecordedPrompt

KINDS = ("prompt", "question")  # What a line of the table of prompts is, and what is side by side
MOST_ROWS = 2_000  # Rows of a question whose columns are compared


class QuestionColumns(NamedTuple):
    """The columns of the rows of one question."""

    shared: dict[str, Any]  # Those that all of its rows share, with their values
    differing: list[str]  # The names of the others
    rows: dict[int, RecordedPrompt]  # The rows by the prompts' indices


def is_per_question(opened: OpenRun, query: Query) -> bool:
    """Return whether the rows of one prompt are taken together: as the query's ``per`` says, else in scored files."""
    kind = query.choice("per", KINDS)
    return _is_file(opened) if kind is None else kind == "question"


def _is_file(opened: OpenRun) -> bool:
    """Return whether nothing was scored at a step."""
    run = opened.run
    return opened.cache.get("is_file", opened.version, lambda: not run.steps() and not run.steps("eval"))


def question_columns(opened: OpenRun, prompts: Sequence[int]) -> QuestionColumns:
    """Return which columns all rows of a question share, and which differ between its solutions."""
    rows = {row.index: row for row in opened.run.prompts_by_index(sorted(set(prompts))[:MOST_ROWS])}
    columns = [row.columns for row in rows.values()]
    names = dict.fromkeys(name for own in columns for name in own)
    shared = {
        name: columns[0][name]
        for name in names
        if all(name in own and value_text(own[name]) == value_text(columns[0][name]) for own in columns)
    }
    return QuestionColumns(shared, [name for name in names if name not in shared], rows)
