"""Whether a reward pays what the data calls right: the first question of ``check``.

A reward that pays few of the data's own right answers trains nothing, whatever else is found of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, cycle, islice
from typing import Any, NamedTuple

from rewardkit.audit.engine import BASE, form_probe, rollout_of
from rewardkit.audit.honest import Honest, right_answers
from rewardkit.audit.rows import GOLD_COLUMNS, REFERENCE_COLUMNS, TEST_COLUMNS, AuditRow
from rewardkit.declare.decorator import Reward
from rewardkit.declare.spec import Kind
from rewardkit.shown.text import counted, shortened, with_break_marks
from rewardkit.types import Outcome, Rollout, Status

_ROUNDING = 1e-9
_LISTED = 8
_LESSER_LISTED = 3
_FEW = 0.25  # A share of right answers that may be mistakes of the data where all others earn the same
SILENT_ROWS = 2  # rows on which it is seen what a completion that answers nothing earns
_REASON_CHARS = 160
_END_CHARS = 60


class UnpaidAnswer(NamedTuple):
    """A right answer that a reward does not pay: its row's line, what it earns, and why as far as that is known."""

    line: int
    score: float
    completion: str
    gold: str | None  # `None` for a row without one
    reason: str | None  # What the reward said; `None` where it said nothing

    def describe(self, unit: str) -> str:
        """Return it as a line; ``unit`` names what the number of its row counts."""
        reason = shortened(self.reason, _REASON_CHARS) if self.reason else ""
        if not reason and self.gold is not None:
            reason = f"the gold is {shortened(self.gold, _REASON_CHARS)!r}"
        end = _last_words(self.completion)
        return f"{unit} {self.line} earns {self.score:g}: “{end}”{f': {reason}' if reason else ''}"


def _last_words(text: str) -> str:
    """Return the last words of a text, where answers stand, on one line; a line's end is ``⏎``."""
    line = " ".join(with_break_marks(text).split())
    return line if len(line) <= _END_CHARS else f"…{line[-_END_CHARS:]}"


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
        answers: The right answers that are not paid, with what the reward said.
        solutions: Solutions that are not paid as they are written, though their golds are in another form.
        lesser: Right answers that earn less than nearly all, with what the reward said.
    """

    noun: str
    rows: int
    unpaid: tuple[int, ...]
    forms: int
    floor: float
    unit: str = "line"
    answers: tuple[UnpaidAnswer, ...] = ()
    solutions: tuple[UnpaidAnswer, ...] = ()
    lesser: tuple[UnpaidAnswer, ...] = ()

    @property
    def lesser_note(self) -> str | None:
        """Which right answers earn less than nearly all, for a reward that reads none; else ``None``."""
        if not self.lesser:
            return None
        examples = "; ".join(answer.describe(self.unit) for answer in self.lesser[:_LESSER_LISTED])
        more = "; …" if len(self.lesser) > _LESSER_LISTED else ""
        return f"{len(self.lesser)} of {counted(self.rows, self.noun)} earn less than the others: {examples}{more}"

    @property
    def warning(self) -> str | None:
        """What is wrong where it pays most of the right answers, and not all; else ``None``."""
        if not self.unpaid or self.finding is not None:
            return None
        return (
            f"{len(self.unpaid):,} of {counted(self.rows, self.noun)} earn no more than a wrong answer: the gold, the "
            f"{'reference' if self.noun == 'reference' else 'column'} or the reward is wrong there"
        )

    @property
    def note(self) -> str | None:
        """What is to be looked at where some solutions are not paid as they are written, and most are."""
        if not 0 < 2 * len(self.solutions) < self.rows:
            return None
        return (
            f"the solutions of {len(self.solutions):,} of {counted(self.rows, 'row')} earn nothing as they are "
            "written, though their golds do in another form"
        )

    @property
    def finding(self) -> str | None:
        """What is wrong, where it pays less than half of the right answers; else ``None``."""
        if len(self.unpaid) * 2 <= self.rows:
            return None
        lines = ", ".join(map(str, self.unpaid[:_LISTED])) + (", …" if len(self.unpaid) > _LISTED else "")
        forms = f", in any of {self.forms} forms" if self.noun == "gold" and self.forms > 1 else ""
        fix = "mend the reward, or give completions in the form that it asks for in a column 'reference'"
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
            "warning": self.warning,
            "unpaid": [answer._asdict() for answer in self.answers],
            "unpaid_solutions": [answer._asdict() for answer in self.solutions] if self.note else [],
        }


def lesser_answers(earned: Sequence[UnpaidAnswer]) -> list[UnpaidAnswer]:
    """Return the right answers that earn less than the best, where three in four earn that: the few may be mistakes.

    Where scores vary more, as those of a length, they say nothing of the data.
    """
    best = max((answer.score for answer in earned), default=0.0)
    lesser = [answer for answer in earned if answer.score < best]
    return lesser if len(lesser) <= len(earned) * _FEW else []


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


def paid_silence(
    reward: Reward[..., Any], right: Sequence[Outcome], silent: Sequence[Outcome], floor: float
) -> str | None:
    """Return a warning where a completion that answers nothing earns what the row's right answer does.

    Args:
        reward: The reward.
        right: The outcomes of right answers, a row each.
        silent: The outcomes of :func:`silent_rollouts` on the first of these rows.
        floor: The least that an empty or a wrong answer earns; a reward that pays everything alike is no matter here.
    """
    high = reward.options.score_range[1] if reward.options.score_range else None
    pairs = zip(silent, (answer for answer in right for _ in BASE), cycle(BASE), strict=False)
    for outcome, answer, text in pairs:
        if outcome.status is not Status.SCORED or outcome.score is None:
            continue
        if answer.status is not Status.SCORED or answer.score is None:
            continue  # what a failed call has is its default, and no pay
        is_paid_more = outcome.score > floor + _ROUNDING or (high is not None and outcome.score >= high)
        if is_paid_more and outcome.score >= answer.score:
            return f"{text!r} earns {outcome.score:g}, and the right answer {answer.score:g}: a model learns to say it"
    return None


class RightAnswer(NamedTuple):
    """A row with the right answer that is scored first, and the completions to score: more than one for a group."""

    row: AuditRow
    form: Honest
    rollouts: list[Rollout]


def skipped_silence(
    answers: Sequence[RightAnswer],
    right: Sequence[Outcome],
    silent: Sequence[Outcome],
    wrong: Sequence[Outcome],
    unit: str,
) -> str | None:
    """Return a warning where an empty answer is skipped on a row whose right answer gets a score; else ``None``.

    Where another row's answer is skipped on that row too, the row cannot be scored by, and it is named.

    Args:
        answers: Right answers, at least of the first rows.
        right: Their outcomes.
        silent: The outcomes of :func:`silent_rollouts`.
        wrong: The outcomes of :func:`wrong_rollouts`; ``[]`` where these were not asked for.
        unit: What the lines of rows count.
    """
    tries = [(index, text) for index in range(min(SILENT_ROWS, len(right))) for text in BASE]
    blamed: dict[int, str] = {}
    for (index, text), silence in zip(tries, silent, strict=False):
        if right[index].status is not Status.SCORED or silence.status is not Status.SKIPPED:
            continue
        if index >= len(wrong) or wrong[index].status is not Status.SKIPPED:
            return (
                f"{text!r} is skipped, and leaves the group's baseline: a model earns more by it than by a wrong "
                "answer; None says that a row has nothing to score by, return the worst score where the answer is "
                "missing"
            )
        reason = wrong[index].reason or silence.reason or "it gives no reason"
        blamed.setdefault(answers[index].row.line, shortened(reason, _REASON_CHARS))
    rows = "; ".join(f"{unit} {line}: {reason}" for line, reason in blamed.items())
    return f"other answers are skipped on {rows}; mend the row's gold, or leave the row out" if rows else None


def group_of(leaf: Reward[..., Any], row: AuditRow, form: Honest, texts: Sequence[str], size: int) -> list[Rollout]:
    """Return a row's reference, and for a group those of other rows, numbered copies where they are too few."""
    probe = form_probe(form)
    first = rollout_of([leaf], row, probe)
    numbered = (f"{form.text} ({number})" for number in count(2))
    others = islice(chain((text for text in texts if text != form.text), numbered), size - 1)
    return [first, *(rollout_of([leaf], row, replace(probe, text=text, messages=None)) for text in others)]


def silent_rollouts(leaf: Reward[..., Any], rollouts: Sequence[Rollout]) -> list[Rollout]:
    """Return completions that answer nothing for the first rollouts; ``[]`` for a reward of groups."""
    if leaf.spec.kind is Kind.GROUP:
        return []
    return [
        replace(row, completion=text if isinstance(row.completion, str) else [{"role": "assistant", "content": text}])
        for row in rollouts[:SILENT_ROWS]
        for text in BASE
    ]


def wrong_rollouts(leaf: Reward[..., Any], answers: Sequence[RightAnswer]) -> list[Rollout]:
    """Return other rows' right answers for the first rows; ``[]`` where a call costs requests, and for groups."""
    if leaf.spec.kind is Kind.GROUP or leaf.spec.is_async:
        return []
    first = answers[:SILENT_ROWS]
    pairs = [(answer.row, next((o.form for o in answers if o.form.text != answer.form.text), None)) for answer in first]
    return [rollout_of([leaf], row, form_probe(form)) for row, form in pairs if form is not None]
