"""The ends of what a reward pays: what counts as no pay at all, and the most that it can earn."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rewardkit.declare.compose import Composable
from rewardkit.types import Outcome


def highest_pay(reward: Composable) -> float | None:
    """Return the highest score of a reward's range, a composition's from its parts; ``None`` where that is open."""
    top = math.inf if reward.score_range is None else reward.score_range[1]
    return top if math.isfinite(top) else None


def lowest_pay(reward: Composable, outcomes: Iterable[Outcome]) -> float:
    """Return what counts as no pay at all: the declared range's lower end, else 0 or the lowest score of outcomes.

    The lower end that follows for a composition may be out of reach, as where no completion earns all its penalties
    at once; so it counts only where it is higher than that.
    """
    low = -math.inf if reward.score_range is None else reward.score_range[0]
    if len(reward.leaves) == 1 and math.isfinite(low):
        return low
    return max(low, min([0.0, *(outcome.score for outcome in outcomes if outcome.score is not None)]))
