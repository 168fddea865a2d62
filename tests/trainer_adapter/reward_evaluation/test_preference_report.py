"""Figures over preferences: intervals that hold, calibration that is found, subsets counted once."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewardkit import ConfigError
from trainer_adapter.objectives import pairwise_accuracy
from trainer_adapter.reward_evaluation import evaluate_preferences
from trainer_adapter.reward_evaluation.scored_row import RowKind, ScoredRow


def pair(chosen: float | None, rejected: float | None, subset: str | None = None, failed: bool = False) -> ScoredRow:
    return ScoredRow("f:1", RowKind.PAIR, subset, (chosen,), (rejected,), failed, "E: x" if failed else None)


def preferred(count: int, slope: float, seed: int = 0) -> list[ScoredRow]:
    """Pairs that people prefer as a Bradley-Terry model with the slope says."""
    random = np.random.default_rng(seed)
    one, other = random.normal(0, 1, (2, count))
    first = random.random(count) < 1 / (1 + np.exp(-slope * (one - other)))
    return [pair(*map(float, (a, b) if won else (b, a))) for a, b, won in zip(one, other, first, strict=True)]


def test_what_was_not_scored_counts_in_no_figure() -> None:
    """Failures and skips are told beside the figures, and ties stand in the denominator."""
    rows = [pair(1, 0), pair(0, 0), pair(0, 1), pair(None, 0, failed=True), pair(0, None)]
    report = evaluate_preferences(rows, "r")
    whole = report.overall
    assert (5, 3, 1, 1) == (whole.rows, whole.scored, whole.failed, whole.skipped)
    expected = pairwise_accuracy(np.array([1.0, 0, 0]), np.array([0.0, 0, 1]))
    assert pytest.approx((expected, 1 / 3)) == (whole.accuracy.rate, whole.tie_rate.rate)
    assert "E: x" == report.first_error
    assert (("f:1", 1.0),) == report.worst


def test_a_calibrated_reward_has_no_error_and_an_overconfident_one_has() -> None:
    """Preferences drawn from the scores themselves, and from a fifth of them."""
    right = evaluate_preferences(preferred(4000, 1.0), "r").ece
    sure = evaluate_preferences(preferred(4000, 0.2), "r").ece
    assert right.rate is not None
    assert sure.rate is not None
    assert right.rate < 0.03 < 0.1 < sure.rate
    assert sure.low < sure.rate < sure.high


def test_probabilities_are_compared_by_their_log_odds() -> None:
    """0.9 against 0.5 is preferred with 0.9, also at the ends, where log-odds are infinite."""
    rows = [pair(0.9, 0.5)] * 90 + [pair(0.5, 0.9)] * 10
    report = evaluate_preferences(rows, "r", scale="probability")
    assert report.ece.rate is not None
    assert report.ece.rate < 0.08
    ends = evaluate_preferences([pair(1.0, 0.0), pair(1.0, 1.0), pair(0.0, 0.0)], "r", scale="probability")
    assert pytest.approx(2 / 12) == ends.brier
    with pytest.raises(ConfigError, match="f:1: score 2: not a probability"):
        evaluate_preferences([pair(2.0, 0.5)], "r", scale="probability")


def test_subsets_count_once_in_their_mean() -> None:
    """One of 3 rows and one of 1 row; the whole counts rows."""
    rows = [pair(1, 0, "a"), pair(1, 0, "a"), pair(1, 0, "a"), pair(0, 1, "b")]
    report = evaluate_preferences(rows, "r")
    assert ["a", "b"] == [one.name for one in report.subsets]
    assert (0.5, 0.75) == (report.mean_of_subsets, report.overall.accuracy.rate)


def test_nothing_scored_is_no_figure() -> None:
    """There is no accuracy, no error, and still a report that is JSON."""
    report = evaluate_preferences([pair(None, None, failed=True)], "r")
    assert (None, None, None) == (report.overall.accuracy.rate, report.ece.rate, report.brier)
    assert json.loads(json.dumps(report.as_json()))["overall"]["failed"] == 1


@pytest.mark.parametrize(("setting", "words"), [({"scale": "odds"}, "scale='odds'"), ({"bins": 0}, "bins=0")])
def test_wrong_settings_are_named(setting: dict[str, object], words: str) -> None:
    """The error names the setting."""
    with pytest.raises(ConfigError, match=words):
        evaluate_preferences([pair(1, 0)], "r", **setting)  # type: ignore[arg-type]
