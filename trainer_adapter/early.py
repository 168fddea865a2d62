"""What an adapter's rewards score before their batch is whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewardkit import Rollout, Runtime, ScoreBatch
from rewardkit.extending import OpenBatch


class EarlyScores:
    """The batch that is being generated, whose completions are scored as each ends."""

    def __init__(self) -> None:
        self._batch: OpenBatch | None = None
        self._moment: tuple[int | None, float | None] = None, None

    def begin(self, runtime: Runtime, step: int | None, epoch: float | None) -> EarlyScores:
        """Begin a batch of this optimizer step and epoch; what was begun before is given up."""
        self.close()
        self._batch, self._moment = runtime.open_batch(step=step, epoch=epoch), (step, epoch)
        return self

    def add(self, rollouts: Mapping[int, Rollout], groups: Sequence[Sequence[int]]) -> None:
        """Begin to score rollouts, by their rows among those that this process scores, and groups that are whole."""
        if self._batch is not None:
            self._batch.add(rollouts, groups)

    def score(self, rollouts: Sequence[Rollout], step: int | None, epoch: float | None) -> ScoreBatch | None:
        """Return the scores of the batch that was begun; ``None`` where none was for this step and epoch."""
        batch, self._batch = self._batch, None
        if batch is None:
            return None
        with batch:
            return batch.score(rollouts) if (step, epoch) == self._moment else None

    def close(self) -> None:
        """Give up the batch that was begun. A second call does nothing."""
        batch, self._batch = self._batch, None
        if batch is not None:
            batch.close()
