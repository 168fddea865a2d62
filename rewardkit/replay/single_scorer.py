"""One reward over many completions, a portion at a time: what it says of them, and what that takes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from rewardkit.declare.compose import Composable
from rewardkit.declare.spec import Kind
from rewardkit.groups import group_numbers
from rewardkit.loading.registry import RewardSet
from rewardkit.runtime.runtime import Runtime
from rewardkit.score_batch import per_1000
from rewardkit.scorer import Scorer
from rewardkit.types import Outcome, Rollout, Status

T = TypeVar("T")
PORTION_ROWS = 1000  # Completions that are scored at once, unless a group reward needs its groups whole

Tick = Callable[..., None]
"""Takes the number of calls done, those known and those failed."""


class Portion(NamedTuple):
    """Completions that are scored at once."""

    ids: Sequence[int]  # Their numbers in the record, or their rows in a file
    rollouts: Sequence[Rollout]  # The completions
    step: int | None = None  # Optimizer steps done, for rewards that ask
    epoch: float | None = None  # Passes over the data done, for rewards that ask


class UnitCost(NamedTuple):
    """What 1,000 completions take."""

    seconds: float | None  # Time of the calls, one after another; `None` where none was made
    metrics: Mapping[str, float]  # What a server was asked, by `COST_METRICS`; empty where none was


class CostSum:
    """What calls took, added up portion by portion."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._timed = 0
        self._server_costs: list[tuple[int, Mapping[str, float]]] = []  # Rows and costs of 1,000, by portion
        self._rows = 0

    def add(self, outcomes: Sequence[Outcome], shares: Sequence[int] | None = None) -> None:
        """Add a portion's outcomes; ``shares`` says how many completions each outcome's call scored, 1 by default."""
        for index, outcome in enumerate(outcomes):
            if not outcome.cached:  # an outcome from the cache took no time
                self._seconds += outcome.duration_s / (shares[index] if shares is not None else 1)
                self._timed += 1
        self._rows += len(outcomes)
        costs = per_1000(outcomes)
        if costs or any(outcome.metrics.get("requests") for outcome in outcomes):
            self._server_costs.append((len(outcomes), costs))

    def total(self) -> UnitCost:
        """Return the cost of 1,000 completions, without metrics that only some portions have."""
        by_portion = [costs for _, costs in self._server_costs]
        shared = [name for name in by_portion[0] if all(name in costs for costs in by_portion)] if by_portion else []
        metrics = {name: sum(rows * costs[name] for rows, costs in self._server_costs) / self._rows for name in shared}
        return UnitCost(1000 * self._seconds / self._timed if self._timed else None, metrics)


class Count:
    """Counts outcomes as they become known, and tells of them."""

    def __init__(self, tick: Tick, total: int) -> None:
        self._tick, self._known = tick, total
        self.done = self.failed = 0

    def __call__(self, outcome: Outcome) -> None:
        self.done += 1
        self.failed += outcome.status is Status.FAILED
        self._tick(self.done, self._known, self.failed)


class Ahead(Generic[T]):
    """Items one at a time, of which the next can be fetched early."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)
        self._fetched: list[T] = []

    def fetch(self) -> None:
        """Fetch the next item, unless it was fetched."""
        if not self._fetched:
            self._fetched.extend(itertools.islice(self._items, 1))

    def __iter__(self) -> Iterator[T]:
        while True:
            self.fetch()
            if not self._fetched:
                return
            yield self._fetched.pop()


class SingleScorer:
    """One reward, alone in its set, in a runtime of its own; use it in a ``with`` statement.

    ``workers`` is ``None`` for the runtime's own number; ``lane`` is ``"worker"`` or ``"inline"``. ``scorer_of`` makes
    what scores; the command line's takes servers' rewards, too.
    """

    def __init__(
        self,
        rewards: RewardSet,
        *,
        workers: int | None = None,
        lane: str = "worker",
        load_timeout_s: float = 60.0,
        scorer_of: Callable[..., Scorer] = Runtime,
    ) -> None:
        ((self.name, self.reward),) = rewards.rewards.items()
        self._scorer = scorer_of(
            rewards, workers=workers, lane=lane, load_timeout_s=load_timeout_s, max_infrastructure_rate=1.0
        )
        self.cost = CostSum()

    @property
    def grouped(self) -> bool:
        """Whether a group's completions must be scored together."""
        return any(leaf.spec.kind is Kind.GROUP for leaf in self.reward.leaves)

    def score(
        self,
        portion: Portion,
        tell: Callable[[Outcome], None] = lambda outcome: None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> list[Outcome]:
        """Return the outcomes of a portion in its order; ``tell`` is called with each as it becomes known.

        ``meanwhile`` is called once, as soon as the workers are busy: it may read what comes next.
        """
        by_row: dict[int, Outcome] = {}
        for finished in self._scorer.stream(portion.rollouts, step=portion.step, epoch=portion.epoch):
            by_row[finished.row] = finished.outcome
            tell(finished.outcome)
            if len(by_row) == 1:
                meanwhile()
        outcomes = [by_row[row] for row in range(len(portion.rollouts))]
        self.cost.add(outcomes, group_sizes(portion.rollouts) if self.grouped else None)
        return outcomes

    def __enter__(self) -> SingleScorer:
        self._scorer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._scorer.close()


def obstacle(reward: Composable) -> str | None:
    """Return why recorded completions cannot be scored by a reward; ``None`` where they can.

    A record keeps prompt, columns, completion, step and epoch, and of the token ids only how many there are.
    """
    names = [leaf.name for leaf in reward.leaves for part in (leaf, *leaf.inner) if part.spec.wants_completion_ids]
    return f"{names[0]!r} reads completion_ids, which a record does not keep" if names else None


def group_sizes(rollouts: Sequence[Rollout]) -> list[int]:
    """Return the size of each rollout's group."""
    numbers = group_numbers(rollouts)
    sizes = Counter(numbers)
    return [sizes[number] for number in numbers]
