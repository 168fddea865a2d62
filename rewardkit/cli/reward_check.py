"""What ``check`` finds of a reward, and which rows no reward scores."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from rewardkit.cli.examination_report import FlawLine
from rewardkit.cli.misfits import Misfit
from rewardkit.declare.compose import Composable, Composite
from rewardkit.declare.decorator import Reward
from rewardkit.declare.spec import Kind
from rewardkit.examinations.examination import ExaminationResult
from rewardkit.examinations.right_pay import RightPay, UnpaidAnswer
from rewardkit.score_batch import costs_told
from rewardkit.shown.text import counted
from rewardkit.types import Outcome, Status

_SHOWN_LINES = 8
_NO_REFERENCES = "the data has no right completions in a column 'reference'"


@dataclass(slots=True)
class RewardCheck:
    """What was found of one reward in so many rows; times are in seconds, ``None`` where no call was made."""

    reward: str
    rows: int
    timeout_s: float
    unit: str = "line"  # What the numbers of rows count
    misfits: list[Misfit] = field(default_factory=list)
    scores: dict[int, float | None] = field(default_factory=dict)  # By line, of the reference; `None` for a skip
    p50_s: float | None = None
    max_s: float | None = None
    warnings: list[str] = field(default_factory=list)  # No row fails, but the reward is useless or surprising
    per_1000: dict[str, float] = field(default_factory=dict)  # What 1,000 completions take, by the calls' metrics
    at_least: list[str] = field(default_factory=list)  # Metrics of `per_1000` of which a part is not known
    examinations: list[ExaminationResult] = field(default_factory=list)
    right_answers: RightPay | None = None  # `None` where none was scored
    lesser: tuple[UnpaidAnswer, ...] = ()  # Right answers that earn less than nearly all, of a reward that reads none
    not_looked_at: list[str] = field(default_factory=list)  # What could not be known, and why
    group: int | None = None  # How many completions a group has; `None` where the reward scores single ones
    outcomes: dict[tuple[int, str], Outcome] = field(default_factory=dict)  # By line and text of a right answer

    def as_json(self) -> dict[str, Any]:
        scores = {str(line): score for line, score in self.scores.items()}
        misfits = [misfit._asdict() for misfit in self.misfits]
        examinations = [result.as_json() for result in self.examinations]
        right = None if self.right_answers is None else self.right_answers.as_json()
        own = (item.name for item in fields(self) if item.name != "outcomes")
        lesser = [answer._asdict() for answer in self.lesser]
        values = {name: getattr(self, name) for name in own} | {"right_answers": right, "lesser": lesser}
        return {**values, "misfits": misfits, "scores": scores, "examinations": examinations, "ok": self.is_ok}

    def as_short_json(self) -> dict[str, Any]:
        """Return what the table shows of it, ready for JSON."""
        scores = {str(line): score for line, score in self.scores.items()}
        times = {"p50_s": self.p50_s, "max_s": self.max_s, "timeout_s": self.timeout_s}
        failing = sorted({misfit.line for misfit in self.misfits})
        return {"reward": self.reward, "rows": self.rows, "failing_lines": failing, "scores": scores, **times}

    def add_pay(self, reward: Reward[..., Any], pay: RightPay, *, reads_gold: bool) -> None:
        """Add what the reward pays of the right answers, or why that says nothing."""
        if reads_gold:
            self.right_answers = pay
            self.warnings += [text for text in (pay.warning, pay.note) if text]
        elif pay.noun == "gold":
            reads = "it names no gold" if reward.spec.wanted_columns is None else "it reads no gold"
            self.not_looked_at.append(f"whether it pays right answers: {reads}, and {_NO_REFERENCES}")
        elif pay.finding:
            self.warnings.append(f"{pay.finding}; it reads no gold, so they may lack a form that it asks for")
        if not reads_gold and pay.lesser_note:
            self.lesser = pay.lesser
            self.warnings.append(pay.lesser_note)

    @property
    def scored_lines(self) -> set[int]:
        """The rows on which a completion got a score or failed, or that have a flaw of their own."""
        scored = {line for line, score in self.scores.items() if score is not None}
        return (
            scored
            | {misfit.line for misfit in self.misfits}
            | {line for result in self.examinations for line in result.lines}
        )

    @property
    def skipped_lines(self) -> set[int]:
        """The rows on which the reward skipped every completion that was tried, of which there was one or more."""
        skipped = {line for line, score in self.scores.items() if score is None}
        return skipped.union(*(result.skipped for result in self.examinations)) - self.scored_lines

    @property
    def forecast(self) -> str:
        """What 1,000 completions take in words, first what is complete, the rest behind "at least"."""
        complete = {metric: value for metric, value in self.per_1000.items() if metric not in self.at_least}
        partial = {metric: value for metric, value in self.per_1000.items() if metric in self.at_least}
        return "; ".join([costs_told(complete)] * bool(complete) + [f"at least {costs_told(partial)}"] * bool(partial))

    @property
    def unpaid(self) -> str | None:
        """What is wrong where it pays few of the data's right answers."""
        return None if self.right_answers is None else self.right_answers.finding

    @property
    def is_ok(self) -> bool:
        """Whether no row failed, and right answers are paid."""
        failing = self.misfits or self.unpaid or any(result.has_failures for result in self.examinations)
        return not failing


def composition_checks(
    rewards: Mapping[str, Composable], checks: Mapping[Reward[..., Any], RewardCheck]
) -> list[RewardCheck]:
    """Return what is found of each composition among rewards, by what was found of its parts.

    A row fails where it fails for a part, and a right answer scores what the parts' outcomes of it make.
    """
    compositions = {name: reward for name, reward in rewards.items() if isinstance(reward, Composite)}
    return [
        _composition_check(name, reward, {leaf: checks[leaf] for leaf in reward.leaves})
        for name, reward in compositions.items()
    ]


def untried_forms(
    rewards: Mapping[str, Composable], checks: Mapping[Reward[..., Any], RewardCheck]
) -> dict[Reward[..., Any], set[tuple[int, str]]]:
    """Return the lines and texts of right answers that a part has not scored and another part of its composition has.

    A part that is paid stops at its first form, in which another one may not be paid. Parts that score groups or wait
    for a server have none.
    """
    missing: dict[Reward[..., Any], set[tuple[int, str]]] = {}
    for composition in rewards.values():
        if not isinstance(composition, Composite):
            continue
        parts = {leaf: checks[leaf] for leaf in composition.leaves}
        tried = set().union(*(part.outcomes for part in parts.values()))
        for leaf, part in parts.items():
            untried = tried - part.outcomes.keys()
            if untried and part.outcomes and leaf.spec.kind is not Kind.GROUP and not leaf.spec.is_async:
                missing.setdefault(leaf, set()).update(untried)
    return missing


def _composition_check(name: str, reward: Composite, parts: Mapping[Reward[..., Any], RewardCheck]) -> RewardCheck:
    first = parts[reward.leaves[0]]
    misfits = {misfit.line: misfit for part in parts.values() for misfit in part.misfits}
    timeout_s = min(part.timeout_s for part in parts.values())
    check = RewardCheck(name, first.rows, timeout_s, first.unit, list(misfits.values()))
    answers = sorted(set.intersection(*(set(part.outcomes) for part in parts.values())))
    outcomes = {
        answer: reward.combine({leaf: part.outcomes[answer] for leaf, part in parts.items()}) for answer in answers
    }
    for (line, _), outcome in outcomes.items():
        if outcome.status is not Status.FAILED:
            scores = [score for score in (check.scores.get(line), outcome.score) if score is not None]
            check.scores[line] = max(scores, default=None)  # of the forms in which the answer was tried, the best
    durations = [outcome.duration_s for outcome in outcomes.values()]
    if durations:
        check.p50_s, check.max_s = statistics.median(durations), max(durations)
    return check


def unscored_lines(checks: Sequence[RewardCheck]) -> list[int]:
    """Return the rows that every reward skips, as far as completions of them were tried with each."""
    return sorted(set.intersection(*(check.skipped_lines for check in checks))) if checks else []


def describe_unscored(lines: Sequence[int], unit: str) -> list[str]:
    """Return a note on rows that no reward scores; ``[]`` for no lines."""
    if not lines:
        return []
    numbers = ", ".join(map(str, lines[:_SHOWN_LINES])) + (", …" if len(lines) > _SHOWN_LINES else "")
    scores = "no reward scores it" if len(lines) == 1 else "no reward scores them"
    return [f"{counted(len(lines), 'row')} ({unit} {numbers}): {scores}, so nothing is learned there"]


def describe_skips(reasons: Sequence[str | None]) -> str:
    """Return the warning that every right answer was skipped, with the most frequent reason."""
    common = Counter(reason for reason in reasons if reason).most_common(1)
    why = f", mostly because: {common[0][0]}" if common else ", or lacks a return"
    count = len(reasons)
    answers = "the right answer that was scored was" if count == 1 else f"all {count:,} right answers were"
    return f"{answers} skipped: the reward does not seem to apply to this data{why}"


def flaws_of(check: RewardCheck) -> Iterator[FlawLine]:
    """Yield what is wrong with each row under a reward: columns, right answers that are not paid, examinations."""
    for misfit in check.misfits:
        name = "right answers" if misfit.column is None else "columns"
        yield FlawLine(check.reward, name, misfit.line, "fails", misfit.error)
    for answer in check.right_answers.answers if check.right_answers else ():
        yield FlawLine(check.reward, "right answers", answer.line, "unpaid", answer.describe(check.unit))
    for answer in check.right_answers.solutions if check.right_answers and check.right_answers.note else ():
        yield FlawLine(check.reward, "right answers", answer.line, "unpaid_solution", answer.describe(check.unit))
    for answer in check.lesser:
        yield FlawLine(check.reward, "right answers", answer.line, "lesser", answer.describe(check.unit))
    for result in check.examinations:
        yield from (
            FlawLine(check.reward, result.name, row.line, *row.flaw, accepted=result.accepted.get(row.flaw.kind))
            for row in result.flaws
        )
