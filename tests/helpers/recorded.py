"""Scored batches made by hand, for tests of the record that need no runtime."""

from __future__ import annotations

from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status


def batch(count: int = 8, mark: str = "", score: float = 1.0) -> ScoreBatch:
    """Return a batch of one prompt and two rewards; ``mark`` stands in every completion."""
    example = {"answer": "4"}
    rollouts = [Rollout("2+2=", f"{mark}:{place} " + "so it is 4 " * 20, example) for place in range(count)]
    column = [Outcome(Status.SCORED, score, "as asked", version="0" * 12) for _ in rollouts]
    other = [Outcome(Status.SCORED, float(place % 2), version="1" * 12) for place in range(count)]
    return ScoreBatch(rollouts, {"exact": column, "other": other}, {"exact": 1.0, "other": 1.0})
