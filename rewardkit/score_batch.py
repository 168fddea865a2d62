"""The scores of a batch: outcomes by reward, in the order of the rollouts, and their weighted sums."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardkit.types import COST_METRICS, UNMETERED, Outcome, Rollout, Status


def per_1000(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the costs of 1,000 calls, by the metrics of these calls, without metrics that only some of them have."""
    return shared_costs([outcome.metrics for outcome in outcomes if outcome.metrics], len(outcomes))


def shared_costs(metrics: Sequence[Mapping[str, float]], calls: int) -> dict[str, float]:
    """Return the costs of 1,000 of so many calls, by the metrics that all calls have which asked a server.

    Where a request may be billed without usage, the requests alone are known.
    """
    paid = [own for own in metrics if own.get("requests")]
    counted_names = ("requests",) if any(own.get(UNMETERED) for own in paid) else COST_METRICS
    names = [name for name in counted_names if paid and all(name in own for own in paid)]
    return {name: 1000 * sum(own[name] for own in paid) / calls for name in names}


def costs_told(costs: Mapping[str, float]) -> str:
    """Return costs in words: ``1,000 requests, 213,214 prompt_tokens, 0.1066 cost_usd``."""
    numbers = {name: f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" for name, value in costs.items()}
    return ", ".join(
        f"{amount} {name.removesuffix('s') if amount == '1' else name}" for name, amount in numbers.items()
    )


def weighted_total(scores: Sequence[float | None], weights: Sequence[float]) -> float | None:
    """Return the weighted sum of the scores that there are, as TRL's trainers compute their ``reward``.

    The formula is that of ``GRPOTrainer`` and ``RLOOTrainer`` of TRL 1.16,
    ``(rewards_per_func * reward_weights).nansum(dim=1)`` with ``nan`` where every reward is: a score that is missing
    adds nothing, and a completion without any score has no total. With
    ``multi_objective_aggregation="normalize_then_sum"`` (GDPO) the trainer logs the same sum, and makes its advantages
    of normalized scores. :func:`rewardkit.advantages.weighted_rewards` is the same for arrays.

    Args:
        scores: One a reward; ``None`` where it gave none.
        weights: One a reward, in the same order.

    Returns:
        The sum, rounded once; infinite where finite scores add up to more than a float holds.
    """
    terms = [weight * score for score, weight in zip(scores, weights, strict=True) if score is not None]
    try:
        return math.fsum(terms) if terms else None
    except OverflowError:  # of finite scores whose sum is not
        return sum(terms)


@dataclass(frozen=True, slots=True, repr=False)
class ScoreBatch(Mapping[str, Sequence[Outcome]]):
    """What :meth:`~rewardkit.Runtime.score` returns; ``batch["correct"][0]`` is an outcome.

    Attributes:
        rollouts: The rollouts that were scored, in the order given.
        outcomes: Outcomes by the reward's name, in the order of the rollouts.
        weights: Each reward's weight in the totals.
    """

    rollouts: Sequence[Rollout]
    outcomes: Mapping[str, Sequence[Outcome]]
    weights: Mapping[str, float]

    def __getitem__(self, reward: str) -> Sequence[Outcome]:
        try:
            return self.outcomes[reward]
        except KeyError:
            raise KeyError(
                f"no reward {reward!r} in this batch; it has {', '.join(map(repr, self.outcomes))}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def scores(self) -> dict[str, list[float | None]]:
        """Scores by reward: the reward's own number, the default that stands in for a failure, or ``None``."""
        return {name: [outcome.score for outcome in column] for name, column in self.outcomes.items()}

    @property
    def totals(self) -> list[float | None]:
        """Weighted sums, one a rollout; ``None`` where no total is known.

        A skipped reward is left out of the sum. A reward that failed without a default makes the total unknown, for a
        sum without it would pass for a low score. A reward of weight 0 counts in neither way.
        """
        counting = [(self.weights[name], column) for name, column in self.outcomes.items() if self.weights[name] != 0]
        if any(outcome.cause is not None for _, column in counting for outcome in column):
            return [self._total(index) for index in range(len(self.rollouts))]
        if not counting:
            return [None] * len(self.rollouts)
        weights = [weight for weight, _ in counting]
        columns = [[outcome.score for outcome in column] for _, column in counting]
        return [weighted_total(scores, weights) for scores in zip(*columns, strict=True)]

    def _total(self, index: int) -> float | None:
        """Return a rollout's weighted sum as :attr:`totals` has it."""
        counting = {name: column[index] for name, column in self.outcomes.items() if self.weights[name] != 0}
        if any(outcome.score is None and outcome.status is Status.FAILED for outcome in counting.values()):
            return None
        return weighted_total(
            [outcome.score for outcome in counting.values()], [self.weights[name] for name in counting]
        )

    def __repr__(self) -> str:
        parts = [f"{name} {_mean_of(column)}" for name, column in self.outcomes.items()]
        count = f"{len(self.rollouts):,} rollout{'s' * (len(self.rollouts) != 1)}"
        return f"<ScoreBatch of {'; '.join([count, *parts])}>"

    def _repr_html_(self) -> str:
        """Return the first rows as a table, for notebooks."""
        from rewardkit.messages import completion_text, prompt_text
        from rewardkit.shown.html import ROWS, number_cell, table_html  # only notebooks show it

        rows = [
            [
                str(index), prompt_text(rollout.prompt), completion_text(rollout.completion),
                *(_cell(column[index]) for column in self.outcomes.values()), number_cell(self._total(index)),
            ]
            for index, rollout in enumerate(self.rollouts[:ROWS])
        ]  # fmt: skip
        title = f"{len(self.rollouts):,} rollouts, {len(self.outcomes)} {'reward' if len(self) == 1 else 'rewards'}"
        return table_html(title, ["row", "prompt", "completion", *self.outcomes, "total"], rows, len(self.rollouts))

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dictionary a rollout, ready for JSON: row, prompt, completion, example, total and rewards."""
        totals = self.totals
        return [
            {
                "row": index,
                "prompt": rollout.prompt,
                "completion": rollout.completion,
                "example": dict(rollout.example),
                "total": totals[index],
                "rewards": {name: column[index].as_json() for name, column in self.outcomes.items()},
            }
            for index, rollout in enumerate(self.rollouts)
        ]


def _mean_of(column: Sequence[Outcome]) -> str:
    """Return the mean of the scores that a reward itself gave, and how many it skipped and failed, in words."""
    scores = [outcome.score for outcome in column if outcome.status is Status.SCORED and outcome.score is not None]
    counts = {status: sum(outcome.status is status for outcome in column) for status in (Status.SKIPPED, Status.FAILED)}
    parts = [f"{count:,} {status}" for status, count in counts.items() if count]
    return ", ".join([f"{math.fsum(scores) / len(scores):.3g}" if scores else "no score", *parts])


def _cell(outcome: Outcome) -> str:
    """Return the text of a cell: the score, or the cause or status of a call without one, with its default."""
    from rewardkit.shown.html import number_cell

    if outcome.status is Status.SCORED:
        return number_cell(outcome.score)
    stands_in = "" if outcome.score is None else f", {number_cell(outcome.score)} stands in"
    return f"{outcome.cause or outcome.status}{stands_in}"
