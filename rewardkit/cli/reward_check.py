"""What ``check`` finds of a reward, and which rows no reward scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from rewardkit.cli.misfits import Misfit
from rewardkit.examinations.examination import ExaminationResult
from rewardkit.examinations.right_pay import RightPay
from rewardkit.shown.text import counted

_SHOWN_LINES = 8


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
    examinations: list[ExaminationResult] = field(default_factory=list)
    right_answers: RightPay | None = None  # `None` where none was scored
    not_looked_at: list[str] = field(default_factory=list)  # What could not be known, and why
    group: int | None = None  # How many completions a group has; `None` where the reward scores single ones

    def as_json(self) -> dict[str, Any]:
        scores = {str(line): score for line, score in self.scores.items()}
        misfits = [misfit._asdict() for misfit in self.misfits]
        examinations = [result.as_json() for result in self.examinations]
        right = None if self.right_answers is None else self.right_answers.as_json()
        values = {item.name: getattr(self, item.name) for item in fields(self)} | {"right_answers": right}
        return {**values, "misfits": misfits, "scores": scores, "examinations": examinations, "ok": self.is_ok}

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
    def unpaid(self) -> str | None:
        """What is wrong where it pays few of the data's right answers."""
        return None if self.right_answers is None else self.right_answers.finding

    @property
    def is_ok(self) -> bool:
        """Whether no row failed, and right answers are paid."""
        failing = self.misfits or self.unpaid or any(result.has_failures for result in self.examinations)
        return not failing


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
