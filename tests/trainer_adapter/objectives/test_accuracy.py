"""Accuracy with ties, whitening without spread, and the mean of a loss over uneven shards."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewardkit import ObjectiveError
from trainer_adapter.objectives import (
    bradley_terry_loss,
    pairwise_accuracy,
    tie_rate,
    weighted_mean_over_shards,
    whiten,
)

Make = Callable[..., Any]
NAN = math.nan


def test_a_tie_is_no_win(make: Make) -> None:
    """Of a win, a loss and two ties: a quarter is won, half is tied."""
    won, lost = make([2.0, 0.0, 1.0, 5.0]), make([1.0, 3.0, 1.0, 5.0])
    assert 0.25 == pairwise_accuracy(won, lost)
    assert 0.5 == tie_rate(won, lost)
    assert type(pairwise_accuracy(won, lost)) is type(tie_rate(won, lost)) is float
    assert 0.0 == pairwise_accuracy(lost, lost)


@pytest.mark.parametrize("measure", [pairwise_accuracy, tie_rate])
def test_a_pair_without_a_score_is_no_lost_pair(make: Make, measure: Any) -> None:
    """``nan``, no pairs and other shapes are refused."""
    with pytest.raises(ObjectiveError, match="pair 1 has no score"):
        measure(make([1.0, NAN]), make([0.0, 0.0]))
    with pytest.raises(ObjectiveError, match="no pairs"):
        measure(make(np.zeros(0)), make(np.zeros(0)))
    with pytest.raises(ObjectiveError, match="one shape"):
        measure(make([1.0, 2.0]), make([[1.0], [2.0]]))


def test_whitened_scores_have_mean_zero_and_deviation_one(make: Make) -> None:
    """Of all, or of each group by names in any order or by its size; the formula of ``statistics``."""
    scores = [3.0, -1.0, 4.0, 1.5, 9.0, 2.0]
    mean, spread = statistics.mean(scores), statistics.stdev(scores)
    assert [(one - mean) / spread for one in scores] == pytest.approx(whiten(make(scores)).tolist(), rel=1e-12)
    spread = statistics.pstdev(scores)
    assert [(one - mean) / spread for one in scores] == pytest.approx(whiten(make(scores), ddof=0).tolist(), rel=1e-12)
    mixed = whiten(make(scores), groups=["b", "a", "b", "a", "b", "a"])
    apart = [whiten(make(scores[start::2])).tolist() for start in (0, 1)]
    assert [one for pair in zip(*apart, strict=True) for one in pair] == pytest.approx(mixed.tolist(), rel=1e-12)
    by_size = whiten(make(scores), groups=3).tolist()
    assert by_size == pytest.approx(whiten(make(scores), groups=make([5, 5, 5, 1, 1, 1])).tolist())
    assert by_size == pytest.approx(whiten(make(scores).reshape(2, 3), groups=3).reshape(-1).tolist())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.1, 1000.0, -1000.0, 1e-3, 0.0])
def test_scores_without_spread_become_zero(make: Make, dtype: str, value: float) -> None:
    """What rounding leaves of a mean is not blown up to a deviation of 1; neither is a group of one."""
    scores = make(np.full(7, value, dtype=dtype))
    assert [0.0] * 7 == whiten(scores).tolist() == whiten(scores, groups=1).tolist()
    assert dtype in str(whiten(scores).dtype)


def test_a_missing_score_stays_missing_when_whitened(make: Make) -> None:
    """It counts for nothing, and a group of missing ones spoils no other."""
    found = whiten(make([1.0, NAN, 3.0, NAN, NAN, NAN]), groups=3).tolist()
    assert [-math.sqrt(0.5), NAN, math.sqrt(0.5), NAN, NAN, NAN] == pytest.approx(found, nan_ok=True)
    assert [] == whiten(make(np.zeros(0))).tolist()


def test_the_gradient_of_whitened_scores_is_finite_without_spread() -> None:
    """A group of equal scores has the gradient 0, the others that of finite differences."""
    torch = pytest.importorskip("torch", reason="gradients are torch's")
    scores = torch.tensor([0.3, 0.3, 1.0, 2.5, 0.1, 0.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda one: whiten(one, groups=[0, 0, 1, 1, 1, 1])[2:], (scores,))
    whiten(scores, groups=2).sum().backward()
    assert bool(torch.isfinite(scores.grad).all())


@pytest.mark.parametrize("groups", [4, 0, [1, 2]], ids=["uneven", "none", "short"])
def test_groups_that_do_not_fit_are_refused(make: Make, groups: Any) -> None:
    """The message has both sizes."""
    with pytest.raises(ObjectiveError, match="groups"):
        whiten(make([1.0, 2.0, 3.0]), groups=groups)


def test_the_mean_over_shards_is_that_of_all_terms(make: Make) -> None:
    """Uneven and empty shards, and an empty one whose mean was ``nan``."""
    shards = [[1.0, 2.0, 6.0], [], [7.0]]
    sums, counts = make([sum(one) for one in shards]), make([len(one) for one in shards])
    assert 4.0 == float(weighted_mean_over_shards(sums, counts))
    assert 5.0 != 4.0 == float(weighted_mean_over_shards(make([9.0, NAN, 7.0]), counts))
    assert 3.0 == float(weighted_mean_over_shards(make(9.0), make(3)))


def test_shards_that_have_no_mean_are_refused(make: Make) -> None:
    """All empty, a negative count, other shapes."""
    with pytest.raises(ObjectiveError, match="all shards are empty"):
        weighted_mean_over_shards(make([0.0, 0.0]), make([0, 0]))
    with pytest.raises(ObjectiveError, match="0 or more"):
        weighted_mean_over_shards(make([1.0, 0.0]), make([2, -1]))
    with pytest.raises(ObjectiveError, match="one shape"):
        weighted_mean_over_shards(make([1.0, 0.0]), make([2]))


@pytest.mark.full
@pytest.mark.slow
def test_two_processes_on_uneven_shards_are_as_one(tmp_path: Path) -> None:
    """Loss and gradient of DistributedDataParallel over gloo are those of one process that has all pairs."""
    torch = pytest.importorskip("torch", reason="processes of torch.distributed")
    import uneven_shards

    torch.multiprocessing.start_processes(uneven_shards.on_shards, (str(tmp_path),), nprocs=2, start_method="spawn")
    model, chosen, rejected = uneven_shards.model_and_pairs()
    expected = bradley_terry_loss(model(chosen)[:, 0], model(rejected)[:, 0], margin=0.1, center=0.01)
    expected.backward()
    for name in uneven_shards.SHARDS:
        for rank in range(2):
            loss, gradient = torch.load(tmp_path / f"{name}.{rank}")
            assert expected.item() == pytest.approx(loss.item(), abs=1e-12), name
            assert model.weight.grad.tolist()[0] == pytest.approx(gradient.tolist()[0], abs=1e-12), name
