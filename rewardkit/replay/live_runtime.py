"""A runtime in a loop of one's own, whose rewards and weights change while it scores."""

from __future__ import annotations

from typing import Any

from rewardkit.errors import RecordError
from rewardkit.record.changes import Action
from rewardkit.replay.reward_state import RewardState
from rewardkit.replay.updates import Updates
from rewardkit.runtime.runtime import Runtime


class LiveRuntime:
    """A runtime in a loop of one's own, whose rewards and weights change as ``rewardkit update`` asks.

    ::

        with LiveRuntime(Runtime([exact], record="runs/one")) as runtime:
            for step in range(100):
                batch = runtime.score(rollouts, step=step)

    Args:
        runtime: A runtime that records.
        rank: This process's rank.
        ranks: How many processes score together; all of them change at the same step.

    Raises:
        RecordError: The runtime does not record.
    """

    def __init__(self, runtime: Runtime, *, rank: int = 0, ranks: int = 1) -> None:
        if runtime.recorder is None:
            raise RecordError("a runtime whose rewards change needs a record: Runtime(..., record='runs/one')")
        self.runtime = runtime
        self.state = RewardState(dict(runtime.rewards), dict(runtime.weights))
        self._updates = Updates(runtime.recorder.path, self, rank=rank, ranks=ranks)

    def check(self, state: RewardState) -> None:
        """Refuse nothing: a loop of one's own takes all rewards that a runtime does."""

    def put(self, runtime: Runtime, state: RewardState) -> None:
        """Score with other rewards from now on."""
        if runtime is not self.runtime:
            runtime.take_over(self.runtime)  # one recorder, which the runtime in use closes
        runtime.weights, runtime.spared = dict(state.weights), state.shadows
        self.runtime, self.state = runtime, state

    def start(self, step: int = 0) -> LiveRuntime:
        """Start the workers, and take changes from now on.

        Args:
            step: Steps done, where a loop goes on that was begun before.
        """
        self.runtime.start()
        self._updates.join(step=step, actions=list(Action))
        return self

    def score(self, rollouts: Any, *, step: int, epoch: float | None = None) -> Any:
        """Score as :meth:`Runtime.score` does; a step that is greater than the one before may change the rewards."""
        self._updates.begin(step)
        return self.runtime.score(rollouts, step=step, epoch=epoch)

    def close(self) -> None:
        """Take no more changes and end the workers. A second call does nothing."""
        self._updates.leave()
        self.runtime.close()

    def __enter__(self) -> LiveRuntime:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()
