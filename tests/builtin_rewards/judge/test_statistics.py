"""Intervals, the test of paired flips, and ranks."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.judge.statistics import Interval, cluster_bootstrap, mcnemar, mean_ranks, wilson

FINITE = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("successes", "trials", "rate", "low", "high"),
    [
        # Brown, Cai and DasGupta, Statistical Science 16(2) (2001): at 0 of n the upper end is z² / (n + z²).
        (0, 10, 0.0, 0.0, 3.8416 / 13.8416),
        (10, 10, 1.0, 10 / 13.8416, 1.0),
        # Newcombe, Statistics in Medicine 17 (1998), 857-872, table I, method 3 (z = 1.959964).
        (81, 263, 81 / 263, 0.2553, 0.3662),
        (15, 148, 15 / 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.0, 0.1611),
        (1, 29, 1 / 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_published_intervals(successes: int, trials: int, rate: float, low: float, high: float) -> None:
    """The ends are those of the tables in the literature, to the digits that these print."""
    assert (rate, pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5)) == wilson(successes, trials)


def test_wilson_of_nothing_has_no_rate() -> None:
    """No trials are no rate of 0: anything is possible."""
    assert Interval(None, 0.0, 1.0) == wilson(0, 0)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 3), (4, 3), (0, -1), (math.nan, 3)])
def test_wilson_wants_counts(successes: float, trials: int) -> None:
    """More successes than trials, or fewer than none, are the caller's mistake."""
    with pytest.raises(ValueError, match="successes"):
        wilson(successes, trials)


@given(st.data(), st.integers(1, 10**7), st.floats(0, 10))
def test_wilson_holds_its_rate_inside_zero_and_one(data: st.DataObject, trials: int, z: float) -> None:
    """For any counts the interval contains the rate and stays in [0, 1]."""
    rate, low, high = wilson(data.draw(st.integers(0, trials)), trials, z)
    assert rate is not None
    assert 0.0 <= low <= rate <= high <= 1.0


@given(st.data(), st.integers(1, 1000))
def test_wilson_is_symmetric(data: st.DataObject, trials: int) -> None:
    """Failures have the mirrored interval of successes."""
    successes = data.draw(st.integers(0, trials))
    _, low, high = wilson(successes, trials)
    _, mirrored_low, mirrored_high = wilson(trials - successes, trials)
    assert (pytest.approx(1 - high), pytest.approx(1 - low)) == (mirrored_low, mirrored_high)


def test_bootstrap_draws_whole_clusters() -> None:
    """Ten equal values of each of two prompts are two observations: a mean is 0, 1/2 or 1, not nearly always 1/2."""
    assert Interval(0.5, 0.0, 1.0) == cluster_bootstrap([[0.0] * 10, [1.0] * 10])


def test_bootstrap_agrees_with_the_normal_interval_for_many_clusters() -> None:
    """With 400 prompts the ends are the mean ± 1.96 standard errors between prompts, to a tenth of one error."""
    means = [math.sin(index) for index in range(400)]
    mean = math.fsum(means) / 400
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in means) / 399 / 400)
    interval = cluster_bootstrap([[value - 0.1, value + 0.1] for value in means])
    assert interval is not None
    assert pytest.approx(mean) == interval.rate
    assert (pytest.approx(mean - 1.96 * error, abs=error / 5), pytest.approx(mean + 1.96 * error, abs=error / 5)) == (
        interval.low,
        interval.high,
    )


def test_bootstrap_weighs_values_not_clusters() -> None:
    """The mean is over all values, and empty clusters change nothing."""
    clusters = [[1.0, 1.0, 1.0], [0.0]]
    interval = cluster_bootstrap(clusters)
    assert interval is not None
    assert 0.75 == interval.rate
    assert interval == cluster_bootstrap([[], *clusters, []])


@pytest.mark.parametrize("clusters", [[], [[]], [[1.0, 0.0]], [[1.0], []]], ids=repr)
def test_bootstrap_of_one_cluster_is_none(clusters: list[list[float]]) -> None:
    """One prompt says nothing about how prompts differ."""
    assert cluster_bootstrap(clusters) is None


def test_bootstrap_repeats_with_its_seed() -> None:
    """The same seed gives the same interval, another seed another one."""
    clusters = [[math.sin(index)] for index in range(30)]
    assert cluster_bootstrap(clusters, seed=3) == cluster_bootstrap(clusters, seed=3)
    assert cluster_bootstrap(clusters, seed=3) != cluster_bootstrap(clusters, seed=4)


def test_bootstrap_widens_with_confidence() -> None:
    """A 99% interval holds the 80% one."""
    clusters = [[math.sin(index)] for index in range(30)]
    wide, narrow = (cluster_bootstrap(clusters, confidence=level) for level in (0.99, 0.8))
    assert wide is not None
    assert narrow is not None
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"resamples": 0}, "resamples"), ({"confidence": 1.0}, "confidence"), ({"confidence": 0.0}, "confidence")],
    ids=repr,
)
def test_bootstrap_names_a_senseless_setting(settings: dict[str, Any], named: str) -> None:
    """The message names the setting."""
    with pytest.raises(ValueError, match=named):
        cluster_bootstrap([[1.0], [0.0]], **settings)


@pytest.mark.parametrize(
    ("first_only", "second_only", "p"),
    [
        (0, 0, 1.0),
        (0, 1, 1.0),
        (0, 5, 2 / 32),
        (1, 8, 2 * (1 + 9) / 512),
        (3, 3, 1.0),
        # From scipy.stats.binomtest(b, b + c) of scipy 1.17.1.
        (10, 25, 0.016673847800120715),
        (480, 560, 0.014259079095385853),
        (5_000, 5_300, 0.003215819673645259),
    ],
)
def test_mcnemar_is_the_binomial_tail(first_only: int, second_only: int, p: float) -> None:
    """Small counts are as counted by hand, large ones as scipy has them, and both orders are alike."""
    assert pytest.approx(p, rel=1e-8) == mcnemar(first_only, second_only)
    assert mcnemar(second_only, first_only) == mcnemar(first_only, second_only)


@given(st.integers(0, 120), st.integers(0, 120))
def test_mcnemar_equals_the_sum_in_fractions(first_only: int, second_only: int) -> None:
    """The quick sum equals the exact one."""
    trials = first_only + second_only
    tail = sum(math.comb(trials, successes) for successes in range(min(first_only, second_only) + 1))
    assert pytest.approx(float(min(Fraction(1), Fraction(2 * tail, 2**trials))), rel=1e-13) == mcnemar(
        first_only, second_only
    )


def test_mcnemar_of_a_flood_is_no_error() -> None:
    """A p-value below the smallest float is 0.0."""
    assert 0.0 == mcnemar(0, 100_000)


def test_mcnemar_wants_counts() -> None:
    """Fewer than no pairs are the caller's mistake."""
    with pytest.raises(ValueError, match="-1"):
        mcnemar(-1, 3)


@pytest.mark.parametrize(
    ("values", "ranks"),
    [
        ([], []),
        ([7.0], [1.0]),
        ([3.0, 1.0, 2.0], [3.0, 1.0, 2.0]),
        ([1.0, 1.0, 2.0], [1.5, 1.5, 3.0]),
        ([5.0, 5.0, 5.0], [2.0, 2.0, 2.0]),
    ],
    ids=repr,
)
def test_equal_values_share_their_mean_rank(values: list[float], ranks: list[float]) -> None:
    """The smallest has rank 1."""
    assert ranks == mean_ranks(values)


def test_values_within_the_tolerance_are_equal() -> None:
    """Neighbours no further apart than the tolerance share a rank."""
    assert [1.5, 1.5, 3.0] == mean_ranks([0.0, 0.1, 0.3], tolerance=0.1)


@given(st.lists(FINITE, max_size=20))
def test_ranks_add_up(values: list[float]) -> None:
    """With or without ties the ranks of n values add up to n (n + 1) / 2."""
    assert len(values) * (len(values) + 1) / 2 == sum(mean_ranks(values))


def test_importing_loads_no_numpy() -> None:
    """numpy is imported by the function that needs it."""
    names = ("statistics", "agreement", "calibration", "pairwise", "strengths")
    imports = "; ".join(f"import builtin_rewards.judge.{name}" for name in names)
    code = f"import sys, rewardkit; before = set(sys.modules); {imports}; print('numpy' in set(sys.modules) - before)"
    assert "False" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
