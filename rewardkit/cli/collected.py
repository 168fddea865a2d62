"""The outcomes of a scoring run as they come in, and the batch that the finished rows make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewardkit.cli.rewards import AnyReward
from rewardkit.compose import Composable
from rewardkit.runtime.batch import ScoreBatch
from rewardkit.runtime.settle import Finished
from rewardkit.types import Outcome, Rollout

_CHUNK_ROWS = 1000


class Collected:
    """Outcomes by reward and row, complete or not.

    The runtime is given the plain rewards, so that each outcome arrives as it becomes known; the
    compositions are made of them here.

    Args:
        rewards: The rewards and compositions that the user named, by name.
        leaves: The plain rewards among and inside them.
        rollouts: What is scored.
        weights: Each reward's weight in the totals.
    """

    def __init__(
        self,
        rewards: Mapping[str, Composable],
        leaves: Sequence[AnyReward],
        rollouts: Sequence[Rollout],
        weights: Mapping[str, float],
    ) -> None:
        self._rewards = rewards
        self._rollouts = rollouts
        self._weights = weights
        self.outcomes: dict[str, list[Outcome | None]] = {leaf.name: [None] * len(rollouts) for leaf in leaves}

    def take(self, finished: Finished) -> None:
        """Keep one outcome."""
        self.outcomes[finished.reward][finished.row] = finished.outcome

    def finished(self) -> list[int]:
        """Return the rows for which every reward's outcome is known."""
        columns = self.outcomes.values()
        return [row for row in range(len(self._rollouts)) if all(column[row] is not None for column in columns)]

    def batch(self, rows: Sequence[int] | None = None) -> ScoreBatch:
        """Return the scores of finished rows, of all where none are named."""
        rows = range(len(self._rollouts)) if rows is None else rows
        outcomes = {name: [self._outcome(reward, row) for row in rows] for name, reward in self._rewards.items()}
        return ScoreBatch([self._rollouts[row] for row in rows], outcomes, self._weights)

    def _outcome(self, reward: Composable, row: int) -> Outcome:
        outcomes = {leaf: self.outcomes[leaf.name][row] for leaf in reward.leaves}
        known = {leaf: outcome for leaf, outcome in outcomes.items() if outcome is not None}
        return reward.combine(known)

    def to_rows(self, rows: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Return the finished rows as :meth:`~rewardkit.ScoreBatch.to_rows` does, a thousand at a time."""
        for start in range(0, len(rows), _CHUNK_ROWS):
            chunk = rows[start : start + _CHUNK_ROWS]
            for row, shown in zip(chunk, self.batch(chunk).to_rows(), strict=True):
                yield {**shown, "row": row}
