"""The best of several draws, against every subset, and means with intervals."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from rewardkit.statistics import (
    best_of_n_kl,
    best_of_n_weights,
    mean_interval,
    paired_interval,
    rate_change,
    wilson,
    within_share,
)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_weights_give_the_mean_of_the_best_over_all_subsets(n: int) -> None:
    """The weighted sum of sorted values is the mean over each subset of n, without approximation."""
    values = np.sort(np.random.default_rng(0).normal(size=5))
    expected = np.mean([max(subset) for subset in itertools.combinations(values, n)])
    weights = best_of_n_weights(5, n)
    assert pytest.approx(expected) == float(weights @ values)
    assert pytest.approx(1.0) == weights.sum()


def test_weights_of_many_values_do_not_overflow() -> None:
    """A hundred thousand values and half of them drawn: binomials would overflow, the weights sum to 1."""
    assert pytest.approx(1.0) == best_of_n_weights(100_000, 50_000).sum()


@pytest.mark.parametrize("n", [0, 4])
def test_more_than_there_are_is_refused(n: int) -> None:
    """The estimate needs at least n values."""
    with pytest.raises(ValueError, match="expected 1 to 3"):
        best_of_n_weights(3, n)


def test_the_bound_of_the_divergence_is_the_divergence_without_equals() -> None:
    """log n - (n - 1) / n equals the KL of the best of n of a continuous score, by quadrature; 1 costs nothing."""
    u = (np.arange(1_000_000) + 0.5) / 1_000_000
    density = 8 * u**7
    assert pytest.approx(np.mean(density * np.log(density)), abs=1e-5) == best_of_n_kl(8)
    assert 0.0 == best_of_n_kl(1)
    with pytest.raises(ValueError, match="n=0"):
        best_of_n_kl(0)


def test_a_mean_of_one_value_has_no_bounds_and_of_none_no_rate() -> None:
    """Nothing is known of the spread of one value."""
    assert (3.0, -math.inf, math.inf, 1) == mean_interval([3.0])
    assert mean_interval([]).rate is None
    middle, low, high, of = mean_interval([1.0, 3.0])
    assert (2.0, 2) == (middle, of)
    assert pytest.approx((0.04, 3.96)) == (low, high)


@pytest.mark.parametrize(("successes", "trials"), [(0, 7), (1, 7), (7, 7), (55, 100), (1, 100_000)])
def test_the_interval_of_a_rate_is_that_of_scipy(successes: int, trials: int) -> None:
    """``binomtest(...).proportion_ci(method="wilson")``, whose quantile has more digits than 1.96."""
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    theirs = stats.binomtest(successes, trials).proportion_ci(method="wilson")
    found = wilson(successes, trials)
    assert pytest.approx((theirs.low, theirs.high), abs=2e-5) == (found.low, found.high)


@pytest.mark.parametrize("trials", [10, 50, 400])
def test_the_interval_of_a_rate_holds_the_truth(trials: int) -> None:
    """Exactly, by the binomial distribution: 95 % on average over all rates, and nowhere much less."""
    ends = [wilson(successes, trials) for successes in range(trials + 1)]
    coverage = []
    for rate in np.linspace(0.02, 0.98, 193):
        logs = [
            math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
            + k * math.log(rate) + (trials - k) * math.log1p(-rate)
            for k in range(trials + 1)
        ]  # fmt: skip
        coverage.append(sum(math.exp(log) for log, one in zip(logs, ends, strict=True) if one.low <= rate <= one.high))
    assert 0.945 < np.mean(coverage) < 0.962
    assert min(coverage) > 0.83


@pytest.mark.parametrize(
    ("after", "before", "expected"),
    [
        ((56, 70), (48, 80), (0.2, 0.0524, 0.3339)),
        ((9, 10), (3, 10), (0.6, 0.1705, 0.8090)),
        ((10, 10), (0, 20), (1.0, 0.6791, 1.0)),
        ((10, 10), (0, 10), (1.0, 0.6075, 1.0)),
        ((0, 9), (0, 9), (0, -0.2991, 0.2991)),
    ],
)
def test_the_change_of_a_rate_has_newcombes_interval(
    after: tuple[int, int], before: tuple[int, int], expected: tuple[float, float, float]
) -> None:
    """The figures of table II of the paper, method 10, and the last by symmetry; no change without both rates."""
    rates = wilson(*before), wilson(*after)
    change = rate_change(*rates)
    assert pytest.approx(expected, abs=6e-5) == change[:3]
    assert pytest.approx((-expected[0], -expected[2], -expected[1]), abs=6e-5) == rate_change(*rates[::-1])[:3]
    assert before[1] + after[1] == change.of
    assert (None, -1.0, 1.0, after[1]) == rate_change(wilson(0, 0), rates[1])


@pytest.mark.parametrize(("name", "least"), [("normal", 0.925), ("exponential", 0.895)])
def test_the_interval_of_a_mean_holds_the_truth(name: str, least: float) -> None:
    """In 2,000 draws of 40 values: about 95 % of normal ones, a little less of skewed ones."""
    drawn = np.random.default_rng(5)
    values = drawn.normal(1.0, 3.0, (2_000, 40)) if name == "normal" else drawn.exponential(1.0, (2_000, 40))
    found = [mean_interval(row) for row in values.tolist()]
    held = np.mean([one.low <= 1.0 <= one.high for one in found])
    assert least < held < 0.965


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([[0.0, 0.0], [1.0, 1.0]], 0.0),
        ([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]], 1.0),
        ([[0.0, 0.5], [0.5, 1.0]], 2 / 3),  # W = 4/16 / 2 = 1/8, B = (4/16 - 1/8) / 2 = 1/16
        ([[0.5, 0.5], [0.5, 0.5]], None),
        ([[0.0, 1.0]], None),
        ([[0.0], [1.0]], None),
        ([], None),
    ],
    ids=["repeats itself", "draws", "by hand", "no spread", "an answer", "asked once", "nothing"],
)
def test_variance_within_groups_is_a_share(samples: list[list[float]], expected: float | None) -> None:
    """Of one-way analysis of variance; nothing where scores do not vary."""
    assert (None if expected is None else pytest.approx(expected)) == within_share(samples)


@pytest.mark.parametrize(("noise", "expected"), [(0.0, 0.0), (0.5, 0.2), (1.0, 0.5), (2.0, 0.8)])
def test_variance_within_groups_is_that_of_the_draw(noise: float, expected: float) -> None:
    """Answers of deviation 1 and a noise of its own, with two to four scores each."""
    draw = random.Random(5)
    answers = [draw.gauss(0, 1) for _ in range(4_000)]
    samples = [[answer + draw.gauss(0, noise) for _ in range(2 + number % 3)] for number, answer in enumerate(answers)]
    assert expected == pytest.approx(within_share(samples), abs=0.03)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 12, 30, 31, 32, 33, 200])
def test_a_paired_interval_without_clusters_is_that_of_scipy(count: int) -> None:
    """``ttest_1samp`` of the differences, of few pairs and of many."""
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    differences = np.random.default_rng(count).normal(size=count).tolist()
    theirs = stats.ttest_1samp(differences, 0.0).confidence_interval(0.95)
    assert pytest.approx((np.mean(differences), *theirs, count), rel=1e-6) == paired_interval(differences)


def test_rows_of_a_question_that_are_copies_of_each_other_say_no_more_than_one() -> None:
    """The interval of four copies of each difference, clustered, is that of the differences."""
    differences = [0.5, -1.0, 2.0, 0.0, 0.25]
    copies = [value for value in differences for _ in range(4)]
    clusters = [number for number in range(5) for _ in range(4)]
    assert pytest.approx(paired_interval(differences)[:3]) == paired_interval(copies, clusters)[:3]
    assert paired_interval(copies)[1] > paired_interval(differences)[1]


def test_a_single_question_has_no_interval_and_the_largest_numbers_have_one() -> None:
    """Nothing is known of the spread of one; no sum of squares overflows."""
    assert (2.0, -math.inf, math.inf, 2) == paired_interval([1.0, 3.0], [7, 7])
    assert (None, 0) == paired_interval([])[::3]
    middle, low, _, _ = paired_interval([1e308, 1e308, 0.9e308])
    assert (True, True) == (math.isfinite(middle or math.inf), math.isfinite(low))
