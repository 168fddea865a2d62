"""Rows without a right answer that ``check`` can score: why they lack one, and their own completions in its place.

A call of a judge costs money whatever it is asked about, so its forecast needs completions and no right answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rewardkit.audit.honest import Honest
from rewardkit.audit.rows import COMPLETION_COLUMNS, REFERENCE_COLUMNS, AuditRow, row_of
from rewardkit.audit.talk import messages_in, talk_text
from rewardkit.declare.decorator import Reward
from rewardkit.examinations.right_pay import RightAnswer, expected_forms, group_of
from rewardkit.rows.reader import Row

OWN_NAME = "the row's own completion"


def why_no_answers(rows: Sequence[Row], misfits: Mapping[int, str], gold: str | None, total_rows: int) -> str:
    """Return why no right answer of rows can be scored.

    Args:
        rows: The rows of which some right answer was looked for.
        misfits: By their lines, the columns for which the reward cannot be called on rows.
        gold: The column with the golds; ``None`` without one.
        total_rows: How many rows the data set has.
    """
    refused = [row for row in rows if row.line in misfits]
    blocked = [row for row in refused if expected_forms(row_of(row.line, row.values, gold))]
    if blocked or (refused and len(refused) == len(rows)):
        row = (blocked or refused)[0]
        column = misfits[row.line]
        fault = "cannot be read" if column in row.values else "is missing"
        which = "" if len(refused) == len(rows) else " on the rows that have right answers"
        return f"it cannot be called{which}: column {column!r} {fault}"
    columns: Collection[str] = rows[0].values if rows else ()
    has_columns = gold is not None or not set(REFERENCE_COLUMNS[:-1]).isdisjoint(columns)
    which = f"the first {len(rows):,} rows have" if has_columns and len(rows) < total_rows else "the data has"
    return (
        f"{which} no right completions in a column {COMPLETION_COLUMNS[0]!r}, and no golds; --gold names their column"
    )


def own_completions(leaf: Reward[..., Any], rows: Iterable[AuditRow], size: int) -> list[RightAnswer]:
    """Return what the rows' own completions are scored as, right or wrong; ``[]`` where they have none.

    Args:
        leaf: The reward.
        rows: The rows, those that suit it.
        size: How many completions a group has; 1 for a reward of single ones. Groups are made of fewer rows, for the
            same cost.
    """
    texts_by_row = [(row, texts) for row in rows if (texts := _own_texts(row))]
    every = [text for _, texts in texts_by_row for text in texts]
    answers = []
    for row, texts in texts_by_row[: -(-len(texts_by_row) // size)]:
        form = Honest(OWN_NAME, texts[0], counted=False, messages=row.conversations.get(texts[0]))
        answers.append(RightAnswer(row, form, group_of(leaf, row, form, [*dict.fromkeys([*texts, *every])], size)))
    return answers


def _own_texts(row: AuditRow) -> list[str]:
    """Return the texts of what a model wrote on a row: in a column of one completion, or of several."""
    listed = row.columns.get("completions")
    values = listed if isinstance(listed, list | tuple) else []
    talks = [(value, messages_in(value)) for value in values]
    texts = [talk_text(messages) if messages is not None else value for value, messages in talks]
    own = [] if row.own is None else [row.own]
    return [text for text in (*own, *texts) if isinstance(text, str) and text.strip()]
