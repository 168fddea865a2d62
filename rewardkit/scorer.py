"""What scores rollouts, wherever that happens: the one seam between rewards and those who want scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from rewardkit.declare.compose import Composable
from rewardkit.runtime.settle import Finished
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Rollout

if TYPE_CHECKING:
    from rewardkit.runtime.runtime import Runtime


class Scorer(Protocol):
    """A set of rewards that is ready to score rollouts: here, joined with other callers, or on servers.

    :class:`~rewardkit.Runtime`, :class:`~rewardkit.serving.JoinedRuntime` and
    :class:`~rewardkit.serving.RemoteRuntime` fulfil it, with the same scores, order and errors.
    """

    @property
    def names(self) -> list[str]:
        """The rewards' names, in their order."""

    @property
    def rewards(self) -> Mapping[str, Composable]:
        """The rewards and compositions by name."""

    @property
    def weights(self) -> dict[str, float]:
        """Each reward's weight in the totals, by name."""

    @property
    def changeable(self) -> Runtime | None:
        """The runtime whose rewards can be changed from here; ``None`` where others own them."""

    def start(self) -> Scorer:
        """Start the workers or connections without waiting for them, and return the scorer.

        Raises:
            RuntimeClosedError: The scorer is closed.
        """

    def wait_loaded(self) -> None:
        """Start the workers or connections, and wait until the rewards are loaded.

        Raises:
            RewardLoadError: The rewards cannot be loaded, or not in time.
        """

    def check(self, rollouts: Sequence[Rollout]) -> None:
        """Raise :class:`~rewardkit.DataError` where rollouts are wrong or lack a column; run nothing."""

    def score(self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None) -> ScoreBatch:
        """Return the scores of rollouts, in their order.

        Raises:
            DataError: The rollouts are wrong; nothing was run.
            InfrastructureError: Too many calls were lost through no fault of the completions.
            RuntimeClosedError: The scorer is closed.
        """

    async def ascore(
        self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None
    ) -> ScoreBatch:
        """Score as :meth:`score` does, from code that runs on an event loop."""

    def stream(
        self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None
    ) -> Iterator[Finished]:
        """Return (row, reward, outcome) as each becomes known, in no order; raise as :meth:`score` does."""

    def close(self) -> None:
        """End what scores. A second call does nothing."""

    def __enter__(self) -> Scorer: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object, /) -> None: ...
