"""Whether a reward pays what the data calls right: the first question of ``check``.

A reward that pays few of the data's own right answers trains nothing, whatever else is found of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rewardkit.audit.honest import Honest, right_answers
from rewardkit.audit.rows import GOLD_COLUMNS, REFERENCE_COLUMNS, TEST_COLUMNS, AuditRow
from rewardkit.declare.decorator import Reward
from rewardkit.shown.text import counted
from rewardkit.types import Outcome, Status

_ROUNDING = 1e-9
_LISTED = 8


@dataclass(frozen=True, slots=True)
class RightPay:
    """How many rows' right answers a reward pays: more than an answer that is wrong, or in full.

    Attributes:
        noun: What was scored: ``"reference"`` or ``"gold"``.
        rows: Rows with a right answer that got a score.
        unpaid: Lines of the rows on which no form of the right answer is paid.
        forms: How many forms were tried on the row with the most.
        floor: The least that an empty or a wrong answer earns.
        unit: What the lines count, as :func:`~rewardkit.rows.files.unit_of` has it.
    """

    noun: str
    rows: int
    unpaid: tuple[int, ...]
    forms: int
    floor: float
    unit: str = "line"

    @property
    def finding(self) -> str | None:
        """What is wrong, where it pays less than half of the right answers; else ``None``."""
        if len(self.unpaid) * 2 <= self.rows:
            return None
        lines = ", ".join(map(str, self.unpaid[:_LISTED])) + (", …" if len(self.unpaid) > _LISTED else "")
        forms, fix = "", "mend the reward, or the column"
        if self.noun == "gold":
            forms = f", in any of {self.forms} forms" if self.forms > 1 else ""
            fix = "mend the reward, or give completions that it pays in a column 'reference'"
        pays = (
            f"pays {self.rows - len(self.unpaid):,} of {counted(self.rows, self.noun)} more than a wrong answer{forms}"
        )
        return f"{pays} ({self.unit} {lines} earn at most {self.floor:g}); {fix}"

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.noun,
            "rows": self.rows,
            "paid": self.rows - len(self.unpaid),
            "unpaid_lines": list(self.unpaid),
            "forms": self.forms,
            "floor": self.floor,
            "finding": self.finding,
        }


def expected_forms(row: AuditRow) -> list[Honest]:
    """Return the right answers of a row of which a reward must pay one; ``[]`` for a row without any.

    They are the completions of a column of references, where the row has one, else its gold and its solution in every
    form in which people write them.
    """
    forms = [form for form in right_answers(row) if form.counted]
    completions = [form for form in forms if form.text in row.reference_completions]
    return completions or forms


def reads_answers(reward: Reward[..., Any], gold_column: str | None) -> bool:
    """Return whether a reward names a column that says what is right: a gold, a reference or tests.

    A function that moved in names it where its trainer hands it on, as verl does ``ground_truth``.
    """
    columns = {gold_column, *GOLD_COLUMNS, *REFERENCE_COLUMNS, *TEST_COLUMNS}
    author = getattr(reward.spec.function, "__wrapped__", None)
    names = inspect.signature(author).parameters if callable(author) else {}
    return not columns.isdisjoint([*reward.spec.named_columns, *names])


def floor_of(reward: Reward[..., Any], wrong: Iterable[Outcome]) -> float:
    """Return the least that wrong answers earn; the low end of the reward's range, or 0, where none got a score."""
    low = reward.options.score_range[0] if reward.options.score_range else 0.0
    scores = [o.score for o in wrong if o.status is Status.SCORED and o.score is not None]
    return min(scores, default=low)


def is_paid(reward: Reward[..., Any], score: float, floor: float) -> bool:
    """Return whether a score is more than a wrong answer earns, or all that there is."""
    high = reward.options.score_range[1] if reward.options.score_range else None
    return score > floor + _ROUNDING or (high is not None and score >= high)
