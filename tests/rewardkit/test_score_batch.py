"""The total of a completion is the trainer's: TRL's own line, whatever the weights and whatever is missing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardkit import Rollout
from rewardkit.advantages import weighted_rewards
from rewardkit.score_batch import ScoreBatch, weighted_total
from rewardkit.types import Cause, Outcome, Status

WEIGHTS = (-2.0, -0.5, 0.0, 0.05, 0.1, 1.0, 10.0)
FAILED = Outcome(Status.FAILED, None, cause=Cause.TIMEOUT)


@pytest.mark.parametrize(
    ("scores", "weights", "total"),
    [
        ([1.0, 0.0], [1.0, -0.5], 1.0),
        ([0.0, 4.0], [1.0, -0.5], -2.0),
        ([None, 3.0], [10.0, 0.05], 0.05 * 3.0),
        ([None, 3.0], [1.0, 0.0], 0.0),
        ([None, None], [1.0, 1.0], None),
        ([], [], None),
        ([1e308, 1e308], [1.0, 1.0], math.inf),
    ],
    ids=["penalty", "penalised", "skipped", "weight 0 alone", "nothing", "no rewards", "too large"],
)
def test_a_total_is_the_weighted_sum_of_what_is_there(
    scores: list[float | None], weights: list[float], total: float | None
) -> None:
    """A missing score adds nothing; a reward of weight 0 that scored makes the sum 0, as in TRL."""
    assert total == weighted_total(scores, weights)


def test_totals_are_those_of_trl() -> None:
    """2,000 random rows: the scalar, the array's function and the line of ``GRPOTrainer`` say the same."""
    torch = pytest.importorskip("torch")
    chance = np.random.default_rng(34)
    for _ in range(50):
        count = int(chance.integers(1, 6))
        weights = chance.choice(WEIGHTS, count)
        scores = np.where(chance.random((40, count)) < 0.3, np.nan, chance.normal(size=(40, count)).round(3))
        rewards_per_func = torch.tensor(scores)
        rewards = (rewards_per_func * torch.tensor(weights).unsqueeze(0)).nansum(dim=1)
        rewards[torch.isnan(rewards_per_func).all(dim=1)] = torch.nan
        rows = [[None if math.isnan(score) else score for score in row] for row in scores.tolist()]
        totals = [weighted_total(row, weights.tolist()) for row in rows]
        numbers = np.array([np.nan if total is None else total for total in totals])
        np.testing.assert_allclose(numbers, rewards.numpy(), atol=1e-12)
        np.testing.assert_allclose(numbers, weighted_rewards(list(scores.T), weights.tolist()), atol=1e-12)


def test_a_batch_has_no_total_where_a_reward_that_counts_failed_without_a_default() -> None:
    """One that weighs 0 may fail; what it scored alone makes no total either."""
    one, half = Outcome(Status.SCORED, 1.0), Outcome(Status.SCORED, 0.5)
    rollouts = [Rollout("p", text) for text in "abc"]
    outcomes = {"a": [one, FAILED, Outcome(Status.SKIPPED, None)], "b": [half] * 3, "c": [FAILED, half, one]}
    batch = ScoreBatch(rollouts, outcomes, {"a": 10.0, "b": -0.5, "c": 0.0})
    assert [9.75, None, -0.25] == batch.totals
