"""Calibration: numbers of torchmetrics 1.9.0 and scikit-learn 1.9.1, the edges of the bins, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rewardkit import ObjectiveError
from trainer_adapter.objectives import (
    brier,
    expected_calibration_error,
    pair_probabilities,
    pairwise_accuracy,
    reliability_curve,
)

Make = Callable[..., Any]


def drawn() -> tuple[Any, Any]:
    """Probabilities that say too much: those of p come out p to the 1.5."""
    generator = np.random.default_rng(11)
    probs = generator.beta(0.6, 0.6, size=500)
    return probs, (generator.random(500) < probs**1.5).astype(int)


@pytest.mark.parametrize(
    ("bins", "expected"),
    [(1, 0.08506968375159502), (5, 0.08506968375159533), (10, 0.0969776698851749), (15, 0.09125334968273233)],
)
def test_the_calibration_error_is_that_of_torchmetrics(make: Make, bins: int, expected: float) -> None:
    """Measured with ``binary_calibration_error(..., norm="l1")``, which puts p = 1 into a bin of its own."""
    probs, labels = drawn()
    assert expected == pytest.approx(float(expected_calibration_error(make(probs), make(labels), bins)), abs=1e-9)


@pytest.mark.parametrize("adaptive", [False, True], ids=["equal widths", "equal counts"])
@pytest.mark.parametrize("digits", [17, 1], ids=["all different", "many equal"])
def test_the_calibration_error_is_that_of_a_plain_loop(make: Make, adaptive: bool, digits: int) -> None:
    """Bin after bin in float64, also where many probabilities lie on the edges of bins."""
    for seed in range(5):
        generator = np.random.default_rng(seed)
        probs = generator.beta(0.7, 0.7, size=83).round(digits)
        labels = (generator.random(83) < probs).astype(int)
        edges = [place / 7 for place in range(7)]
        if adaptive:
            ordered = sorted(probs)
            sizes = [83 // 7 + (part < 83 % 7) for part in range(7)]
            edges = [0.0, *(ordered[sum(sizes[:part])] for part in range(1, 7))]
        error = 0.0
        for low, high in zip(edges, [*edges[1:], 2.0], strict=True):
            inside = [at for at in range(83) if low <= probs[at] < high]
            error += abs(sum(probs[at] for at in inside) - sum(labels[at] for at in inside)) / 83
        found = float(expected_calibration_error(make(probs), make(labels), 7, adaptive))
        assert pytest.approx(error, abs=1e-12) == found
        squares = sum((p - y) ** 2 for p, y in zip(probs, labels, strict=True)) / 83
        assert pytest.approx(squares, abs=1e-12) == float(brier(make(probs), make(labels)))


def test_both_are_those_of_scikit_learn_as_it_is_installed(make: Make) -> None:
    """The curve of both kinds of bins, and the Brier score."""
    calibration = pytest.importorskip("sklearn.calibration", reason="scikit-learn is not installed")
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    probs, labels = drawn()
    for adaptive, strategy in ((False, "uniform"), (True, "quantile")):
        curve = reliability_curve(make(probs), make(labels), 10, adaptive=adaptive)
        frequency, mean = calibration.calibration_curve(labels, probs, n_bins=10, strategy=strategy)
        assert frequency.tolist() == pytest.approx(curve.frequency.tolist())
        assert mean.tolist() == pytest.approx(curve.mean_probability.tolist())
    assert metrics.brier_score_loss(labels, probs) == pytest.approx(float(brier(make(probs), make(labels))))


def test_the_curve_is_that_of_scikit_learn(make: Make) -> None:
    """Measured with ``calibration_curve(n_bins=5)`` and ``strategy="quantile"``."""
    probs, labels = drawn()
    curve = reliability_curve(make(probs), make(labels), 5)
    assert [0.014184397, 0.218390804, 0.328125, 0.538461538, 0.915384615] == pytest.approx(curve.frequency.tolist())
    assert [0.087775754, 0.293284215, 0.498409333, 0.710599018, 0.925521644] == pytest.approx(
        curve.mean_probability.tolist()
    )
    assert 500 == int(curve.count.sum())
    curve = reliability_curve(make(probs), make(labels), 5, adaptive=True)
    assert [100] * 5 == curve.count.tolist()
    assert [0.01, 0.11, 0.34, 0.6, 0.97] == pytest.approx(curve.frequency.tolist())
    assert [0.058288658, 0.219224508, 0.469469638, 0.757752585, 0.950613030] == pytest.approx(
        curve.mean_probability.tolist()
    )


def test_the_brier_score_is_that_of_scikit_learn(make: Make) -> None:
    """Measured with ``brier_score_loss``."""
    probs, labels = drawn()
    assert 0.12688482554069044 == pytest.approx(float(brier(make(probs), make(labels))), rel=1e-12)
    assert 0.25 == float(brier(make([0.5, 0.5]), make([True, False])))


@pytest.mark.parametrize("adaptive", [False, True])
def test_sure_probabilities_count(make: Make, adaptive: bool) -> None:
    """0 and 1 that come out wrong are errors of 1, those that come out right of 0."""
    assert 1.0 == float(expected_calibration_error(make([0.0, 1.0]), make([1, 0]), 10, adaptive))
    assert 0.0 == float(expected_calibration_error(make([0.0, 1.0]), make([0, 1]), 10, adaptive))
    assert 2 == int(reliability_curve(make([0.0, 1.0]), make([0, 1]), 10, adaptive).count.sum())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bins", [3, 7, 10, 15, 100])
def test_a_bin_holds_its_lower_edge(make: Make, dtype: str, bins: int) -> None:
    """Each edge begins a bin, in float32 too, and 1 is in the last."""
    edges = np.linspace(0, 1, bins + 1).astype(dtype)
    counts = reliability_curve(make(edges), make(np.ones(bins + 1)), bins).count.tolist()
    assert [*[1] * (bins - 1), 2] == counts
    assert counts == np.histogram(edges, bins=edges)[0].tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bins", [2, 4, 5, 8, 10, 20, 25, 40, 50, 100])
def test_a_score_on_a_printed_edge_is_in_the_bin_that_begins_there(make: Make, dtype: str, bins: int) -> None:
    """0.3 is in the bin from 0.3, also where it is a sum, 1 - 0.7, or came back from log-odds."""
    for number in range(1, bins):
        text = f"{number / bins:.4f}"
        edge = float(text)
        odds = np.log(edge) - np.log1p(-edge)
        ways = {
            "written": edge,
            "the complement's complement": 1 - (1 - edge),
            "a sum of thirds": edge / 3 + edge / 3 + edge / 3,
            "from log-odds": 1 / (1 + np.exp(-odds)),
        }
        for way, probability in ways.items():
            curve = reliability_curve(make(np.array([probability], dtype=dtype)), make([1]), bins)
            (index,) = np.flatnonzero(np.asarray(curve.count))
            assert text == f"{float(curve.edges[index]):.4f}", way


def test_what_is_below_an_edge_stays_below(make: Make) -> None:
    """By a millionth, which no rounding of float64 makes."""
    assert [0, 0, 1] == reliability_curve(make([0.3 - 1e-6]), make([1]), 10).count.tolist()[:3]


def test_an_empty_bin_has_no_frequency(make: Make) -> None:
    """It is ``nan`` in the curve and weighs nothing in the error."""
    curve = reliability_curve(make([0.1, 0.9]), make([0, 1]), 3)
    assert [1, 0, 1] == curve.count.tolist()
    assert [0.0, math.nan, 1.0] == pytest.approx(curve.frequency.tolist(), nan_ok=True)
    assert 0.1 == pytest.approx(float(expected_calibration_error(make([0.1, 0.9]), make([0, 1]), 3)))


def test_equal_probabilities_share_a_bin_of_equal_counts(make: Make) -> None:
    """The order of the rows does not matter; ten that are the same are one bin."""
    probs, labels = [0.5] * 6 + [0.2, 0.9], [1, 1, 1, 0, 0, 0, 0, 1]
    one = float(expected_calibration_error(make(probs), make(labels), 4, True))
    other = float(expected_calibration_error(make(probs[::-1]), make(labels[::-1]), 4, True))
    assert one == other
    assert [10] == reliability_curve(make([0.0] * 10), make([0] * 10), 5, True).count.tolist()
    assert 0.1 == pytest.approx(float(expected_calibration_error(make([0.9]), make([1]), 10, True)))


def test_pairs_are_put_in_an_order_of_the_seed(make: Make) -> None:
    """About half begin with the rejected; the probability is always that of the one that stands first."""
    chosen, rejected = np.random.default_rng(1).normal(size=(2, 1000))
    probs, labels = pair_probabilities(make(chosen), make(rejected), seed=0)
    again, _ = pair_probabilities(make(chosen), make(rejected), seed=0)
    other, _ = pair_probabilities(make(chosen), make(rejected), seed=1)
    assert probs.tolist() == again.tolist() != other.tolist()
    assert 450 < int(labels.sum()) < 550
    sure = 1 / (1 + np.exp(-(chosen - rejected)))
    assert np.where(np.asarray(labels) == 1, sure, 1 - sure).tolist() == pytest.approx(probs.tolist(), rel=1e-12)
    right = ((np.asarray(probs) > 0.5) == (np.asarray(labels) == 1)).mean()
    assert pairwise_accuracy(make(chosen), make(rejected)) == pytest.approx(right)


def test_the_order_is_the_same_in_numpy_and_torch() -> None:
    """A seed gives the same labels whatever the library."""
    torch = pytest.importorskip("torch", reason="compares the two")
    chosen, rejected = np.random.default_rng(1).normal(size=(2, 50))
    ours = pair_probabilities(chosen, rejected, seed=5)
    theirs = pair_probabilities(torch.tensor(chosen), torch.tensor(rejected), seed=5)
    assert ours[1].tolist() == theirs[1].tolist()
    assert ours[0].tolist() == pytest.approx(theirs[0].tolist(), rel=1e-12)


@pytest.mark.parametrize(
    ("probs", "labels", "why"),
    [
        ([0.5, 1.2], [0, 1], "row 1: probability 1.2: expected 0 to 1"),
        ([0.5, -0.1], [0, 1], "row 1: probability -0.1"),
        ([math.nan], [0], "row 0: probability nan"),
        ([0.5], [2], "row 0: label 2.0: expected 0 or 1"),
        ([0.5], [0.5], "row 0: label 0.5"),
        ([0.5, 0.5], [1], "one shape"),
        ([], [], "one or more"),
        ([[0.5]], [[1]], r"expected \(probabilities,\)"),
    ],
)
def test_what_has_no_calibration_is_refused(make: Make, probs: Any, labels: Any, why: str) -> None:
    """The message names the row."""
    for measure in (brier, lambda p, y: expected_calibration_error(p, y, 10), lambda p, y: reliability_curve(p, y, 3)):
        with pytest.raises(ObjectiveError, match=why):
            measure(make(np.asarray(probs, dtype=float)), make(np.asarray(labels, dtype=float)))


@pytest.mark.parametrize("bins", [0, -1, 2.5, True, math.nan, None])
def test_bins_are_a_whole_number(bins: Any) -> None:
    """1 or more."""
    with pytest.raises(ObjectiveError, match="bins="):
        expected_calibration_error(np.array([0.5]), np.array([1]), bins)


def test_the_gradient_of_the_brier_score_is_that_of_finite_differences() -> None:
    """It can be trained on."""
    torch = pytest.importorskip("torch", reason="gradients are torch's")
    probs = torch.tensor([0.2, 0.7, 1.0], dtype=torch.float64, requires_grad=True)
    brier(probs, torch.tensor([0, 1, 1])).backward()
    assert [0.4 / 3, -0.6 / 3, 0.0] == pytest.approx(probs.grad.tolist())
