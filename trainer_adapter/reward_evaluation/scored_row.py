"""One row of a preference set with its scores, and what these are worth: RewardBench's arithmetic.

A *pair* is won if the chosen completion scores above the rejected; a tie is no win. *Best of several* is worth one over
the number of completions that share the highest score, if the chosen one is among them. A row of *ties* has several
right completions, and is won if each scores above each wrong one; rows whose ``id`` begins with ``ref:`` and ``tied:``
belong together, see :func:`ties_score`. Source: github.com/allenai/reward-bench at 05a9005, ``rewardbench/utils.py``
and ``rewardbench/rewardbench.py``.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from builtin_rewards.reward_model import PreferenceRow
from rewardkit import Outcome, Status

_TIES_ID = re.compile(r"(ref|tied):(.+)")
_TIES_WEIGHTS = (0.30, 0.30, 0.20, 0.20, 0.01)
"""Of the accuracy on tied and on reference rows, of both margins, and of the margin's size: RewardBench 2's."""


class RowKind(StrEnum):
    """How a row is counted."""

    PAIR = "pairs"
    BEST = "best of several"
    TIES = "ties"


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row of a preference set with its scores."""

    where: str  # Where the row stands: `pairs.jsonl:3`
    kind: RowKind  # How it is counted
    subset: str | None  # What it belongs to; `None` without subsets
    chosen: tuple[float | None, ...]  # Scores of the chosen completions; `None` for one without a score
    rejected: tuple[float | None, ...]  # The same of the rejected ones
    failed: bool = False  # Whether a call for it failed; a row without all scores that did not fail was skipped
    error: str | None = None  # Why it failed, of the first that did
    ties_id: tuple[str, str] | None = None  # Of RewardBench's ties: `ref` or `tied`, and the prompt's number

    @property
    def is_scored(self) -> bool:
        """Whether all its completions have scores."""
        return None not in (*self.chosen, *self.rejected)

    @property
    def scores(self) -> tuple[list[float], list[float]]:
        """The scores of both sides, of a row that is scored."""
        chosen = [score for score in self.chosen if score is not None]
        return chosen, [score for score in self.rejected if score is not None]

    @property
    def credit(self) -> float:
        """What a scored row is worth, 0 to 1."""
        good, bad = self.scores
        if self.kind is RowKind.BEST:
            best = max(*good, *bad)
            return (good[0] == best) / (good + bad).count(best)
        return float(min(good) > max(bad))

    @property
    def is_tie(self) -> bool:
        """Whether the best right and the best wrong completion of a scored row have one score."""
        good, bad = self.scores
        return max(good) == max(bad)

    @property
    def margin(self) -> float:
        """How far the worst right completion of a scored row is ahead of the best wrong one."""
        good, bad = self.scores
        return min(good) - max(bad)


def scored_row(row: PreferenceRow, outcomes: Sequence[Outcome], subset_column: str | None) -> ScoredRow:
    """Return a row with the outcomes of its completions, the chosen ones first.

    A failure's default is not a score: it would be a win or a loss that no reward gave.
    """
    scores = tuple(outcome.score if outcome.status is Status.SCORED else None for outcome in outcomes)
    failures = (outcome for outcome in outcomes if outcome.status is Status.FAILED)
    error = next((outcome.error or str(outcome.cause) for outcome in failures), None)
    count = len(row.chosen)
    subset = None if subset_column is None else str(row.columns.get(subset_column))
    ties_id = _TIES_ID.fullmatch(str(row.columns.get("id", "")))
    kind = RowKind.TIES if count > 1 or ties_id else RowKind.PAIR if len(row.rejected) == 1 else RowKind.BEST
    return ScoredRow(
        where=row.where,
        kind=kind,
        subset=subset,
        chosen=scores[:count],
        rejected=scores[count:],
        failed=error is not None,
        error=error,
        ties_id=(ties_id[1], ties_id[2]) if ties_id else None,
    )


class _Margins(NamedTuple):
    """Of one prompt: whether each right answer is ahead, by how much, and how far the right ones lie apart."""

    accurate: bool
    ahead: float
    apart: float | None


def ties_score(rows: Sequence[ScoredRow]) -> float | None:
    """Return RewardBench 2's score of its ties, 0 to 1.01; ``None`` without rows of both kinds.

    Formula, over prompts: 0.3 · the share of tied rows whose right answers are all ahead, 0.3 · that of reference rows,
    0.2 · the share whose right answers lie closer together than they are ahead, 0.2 · the same where the reference is
    ahead by more as well, and 0.01 · the mean of tanh(ahead / apart - 1). Rows that lack a score are left out.
    """
    margins: Mapping[str, dict[str, _Margins]] = {"ref": {}, "tied": {}}
    for row in rows:
        if row.ties_id is not None and row.is_scored:
            part, prompt = row.ties_id
            margins[part][prompt] = _margins(row)
    both = [(margins["ref"][prompt], tied) for prompt, tied in margins["tied"].items() if prompt in margins["ref"]]
    if not both:
        return None
    apart = [math.nan if tied.apart is None else tied.apart for _, tied in both]
    hard = [min(ref.ahead, tied.ahead) for ref, tied in both]
    sizes = [math.tanh(ahead / gap - 1) if gap > 0 else 0.0 for ahead, gap in zip(hard, apart, strict=True)]
    terms = (
        statistics.fmean(tied.accurate for tied in margins["tied"].values()),
        statistics.fmean(ref.accurate for ref in margins["ref"].values()),
        statistics.fmean(tied.ahead > gap for (_, tied), gap in zip(both, apart, strict=True)),
        statistics.fmean(ahead > gap for ahead, gap in zip(hard, apart, strict=True)),
        statistics.fmean(sizes),
    )
    return math.fsum(weight * term for weight, term in zip(_TIES_WEIGHTS, terms, strict=True))


def _margins(row: ScoredRow) -> _Margins:
    good, _ = row.scores
    return _Margins(row.margin > 0, row.margin, max(good) - min(good) if len(good) > 1 else None)


def plain_row(row: ScoredRow) -> dict[str, Any]:
    """Return a row as a dictionary ready for JSON."""
    return {
        "where": row.where,
        "kind": str(row.kind),
        "subset": row.subset,
        "chosen": list(row.chosen),
        "rejected": list(row.rejected),
        "credit": row.credit if row.is_scored else None,
        "error": row.error,
    }
