"""Calibrations: what fits, what the map does, and what a file may hold."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from builtin_rewards.reward_model import Calibration
from rewardkit import ConfigError, DataError


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def labelled(slope: float, intercept: float, count: int = 20_000) -> tuple[list[float], list[int]]:
    """Scores with labels that a sigmoid gives."""
    random = np.random.default_rng(3)
    scores = random.normal(1.0, 2.0, count)
    labels = random.random(count) < sigmoid(slope * scores + intercept)
    return scores.tolist(), labels.astype(int).tolist()


def test_a_fit_finds_what_was_planted() -> None:
    """Temperature and Platt come back within the noise of 20,000 labels."""
    assert pytest.approx(4.0, rel=0.05) == Calibration.fit(*labelled(0.25, 0.0)).temperature
    platt = Calibration.fit(*labelled(-0.7, 1.5), "platt")
    assert pytest.approx((-0.7, 1.5), rel=0.06) == (platt.slope, platt.intercept)


def test_pairs_find_the_slope_whatever_the_prompts_level() -> None:
    """Scores that differ from prompt to prompt by much more than inside a pair do not flatten the slope."""
    random = np.random.default_rng(4)
    level = random.normal(0, 50, 20_000)
    one, other = random.normal(0, 2, (2, 20_000))
    first = random.random(20_000) < sigmoid(0.5 * (one - other))
    chosen, rejected = level + np.where(first, one, other), level + np.where(first, other, one)
    fitted = Calibration.fit_pairs(chosen.tolist(), rejected.tolist(), "platt")
    assert pytest.approx(0.5, rel=0.05) == fitted.slope
    both = np.concatenate([chosen, rejected])
    assert pytest.approx(0.5, abs=1e-6) == np.mean([fitted(one) for one in both])


def test_isotonic_rises_and_is_level_beyond_its_knots() -> None:
    """The fit is scikit-learn's; what it found is applied without it."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.isotonic import IsotonicRegression

    scores, labels = labelled(1.0, -0.5, 500)
    fitted = Calibration.fit(scores, labels, "isotonic")
    at = np.linspace(-9, 9, 101)
    theirs = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores, labels).predict(at)
    assert pytest.approx(theirs.tolist()) == [fitted(one) for one in at.tolist()]
    pairs = Calibration.fit_pairs([2.0, 3.0, 1.0], [1.0, 2.0, 0.0], "isotonic")
    assert (0.0, 1.0) == (pairs(-100.0), pairs(100.0))


def test_a_perfect_split_has_a_finite_slope_and_huge_scores_no_overflow() -> None:
    """Platt's targets keep the slope finite, and a score of a million is a probability."""
    perfect = Calibration.fit([-1.0, -2.0, 1.0, 2.0], [0, 0, 1, 1])
    assert math.isfinite(perfect.slope)
    assert (0.0, 1.0) == (perfect(-1e6), perfect(1e6))
    huge = Calibration.fit([-1e6, -2e6, 1e6, 2e6] * 5, [0, 1, 1, 1] * 5, "platt")
    assert 0 < huge(0.0) < 1


def test_the_difference_of_logits_is_the_preference() -> None:
    """The output ``logit`` is the log-odds of the output ``probability``."""
    scores, labels = labelled(0.5, 0.3, 300)
    p, logit = (Calibration.fit(scores, labels, "platt", output=output) for output in ("probability", "logit"))
    assert pytest.approx(p(0.7)) == sigmoid(np.float64(logit(0.7)))


@pytest.mark.parametrize(
    ("scores", "labels", "words"),
    [
        ([1.0, 2.0], [1], "2 scores and 1 labels"),
        ([1.0, float("nan")], [1, 0], "score 1 is nan"),
        ([1.0, 2.0], [1, 2], "label 1 is 2"),
        ([1.0, 2.0], [1, 1], "not both kinds"),
        ([1.0, 1.0], [1, 0], "all 2 scores are 1"),
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0], "no temperature fits"),
    ],
    ids=["lengths", "nan", "label", "one kind", "one score", "upside down"],
)
def test_what_cannot_be_fitted_is_named(scores: list[float], labels: list[int], words: str) -> None:
    """The error says what is wrong with the data."""
    with pytest.raises(DataError, match=words):
        Calibration.fit(scores, labels)


def test_pairs_that_say_nothing_are_named() -> None:
    """Both sides of each pair at one score, or sides of different lengths."""
    with pytest.raises(DataError, match="scores as its rejected"):
        Calibration.fit_pairs([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(DataError, match="2 chosen and 1 rejected"):
        Calibration.fit_pairs([1.0, 2.0], [1.0])


def test_a_file_gives_the_same_back(tmp_path: Path) -> None:
    """What was saved is loaded as it was."""
    for made in (
        Calibration("temperature", slope=0.1, examples=7),
        Calibration("platt", "logit", -2.0, 1.0, fitted_on="pairs"),
        Calibration("isotonic", knots=((0.0, 0.1), (1.0, 0.9))),
    ):
        made.save(tmp_path / "c.json")
        assert made == Calibration.load(tmp_path / "c.json")


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ("[]", "no calibration"),
        ("{", "not JSON"),
        ({"method": "magic"}, "method='magic'"),
        ({"method": "platt", "slope": None}, "slope=None"),
        ({"method": "temperature", "slope": -1.0}, "slope above 0"),
        ({"method": "isotonic", "knots": [[0, 0.5], [1, 0.4]]}, "never fall"),
        ({"method": "isotonic", "knots": [[0, 2]]}, "never fall"),
        ({"method": "isotonic", "knots": "x"}, "pairs of a score"),
        ({"method": "platt", "colour": 1}, "unknown field 'colour'"),
        ({"method": "platt", "output": "odds"}, "output='odds'"),
    ],
    ids=["list", "no json", "method", "null", "slope", "falling", "beyond 1", "no pairs", "field", "output"],
)
def test_a_file_that_is_no_calibration_is_refused(tmp_path: Path, held: object, words: str) -> None:
    """The error names the file and what is wrong."""
    path = tmp_path / "c.json"
    path.write_text(held if isinstance(held, str) else json.dumps({"calibration": 1, **held}))  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match=words) as raised:
        Calibration.load(path)
    assert str(path) in str(raised.value)
