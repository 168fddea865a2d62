"""Scores made into probabilities: temperature, Platt's sigmoid, or an isotonic function, fitted and kept as JSON."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rewardkit import ConfigError, DataError
from rewardkit.extending import decode, shorten

METHODS = ("temperature", "platt", "isotonic")
OUTPUTS = ("probability", "logit")
FORMAT_VERSION = 1  # the version of the file
# What a file has beside the fields: its form, and the name and version of the reward that it is for.
_HEADER = ("calibration", "reward", "version")
_STEPS, _TOLERANCE = 200, 1e-10
_MINIMUM = 1e-9  # the least curvature that a fit takes, so that Newton's step is finite even where every p is 0 or 1

_Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A map from a reward's scores to the probability that a completion is good.

    ``temperature`` is p = 1 / (1 + exp(-score / T)) (Guo et al., arXiv 1706.04599, section 4.2), ``platt`` is
    p = 1 / (1 + exp(-(slope · score + intercept))) (Platt, Probabilistic Outputs for Support Vector Machines, 1999),
    and ``isotonic`` is the rising function that fits best, linear between its knots and level beyond them.

    Attributes:
        method: ``"temperature"``, ``"platt"`` or ``"isotonic"``.
        output: What comes out: ``"probability"``, or ``"logit"``, its log-odds, which has no bounds. The difference of
            two logits says how likely one completion is preferred to the other. Isotonic has probabilities alone.
        slope: Of the sigmoid; for a temperature T it is 1 / T.
        intercept: Of the sigmoid; 0 for a temperature.
        knots: Of the isotonic function: pairs of a score and its probability, in rising order.
        examples: How many labelled completions or pairs it was fitted on; 0 if it was not fitted.
        fitted_on: ``"labels"`` or ``"pairs"``.

    Raises:
        ConfigError: A setting is wrong; names it.
    """

    method: str
    output: str = "probability"
    slope: float = 1.0
    intercept: float = 0.0
    knots: tuple[tuple[float, float], ...] = ()
    examples: int = 0
    fitted_on: str = "labels"

    def __post_init__(self) -> None:
        """Check all settings."""
        if self.method not in METHODS:
            raise ConfigError(f"calibration: method={self.method!r}: expected one of {', '.join(METHODS)}")
        if self.output not in OUTPUTS:
            raise ConfigError(f"calibration: output={self.output!r}: expected one of {', '.join(OUTPUTS)}")
        if self.fitted_on not in ("labels", "pairs"):
            raise ConfigError(f"calibration: fitted_on={self.fitted_on!r}: expected labels or pairs")
        for name in ("slope", "intercept"):
            if not _is_number(getattr(self, name)):
                raise ConfigError(f"calibration: {name}={getattr(self, name)!r}: expected a finite number")
        if self.method == "temperature" and (self.slope <= 0 or self.intercept):
            raise ConfigError(f"calibration: slope={self.slope!r}: a temperature has a slope above 0, and no intercept")
        object.__setattr__(self, "knots", _check_knots(self.knots) if self.method == "isotonic" else ())
        if self.method == "isotonic" and self.output == "logit":
            raise ConfigError("calibration: output='logit': isotonic gives 0 and 1, whose log-odds are infinite")

    @property
    def temperature(self) -> float:
        """The temperature T of ``temperature``: 1 / slope."""
        return 1 / self.slope

    def __call__(self, score: float) -> float:
        """Return the calibrated value of a score."""
        if self.method == "isotonic":
            xs, ys = zip(*self.knots, strict=True)
            return float(np.interp(score, xs, ys))
        logit = self.slope * score + self.intercept
        return logit if self.output == "logit" else _sigmoid(logit)

    @classmethod
    def fit(
        cls,
        scores: Sequence[float],
        labels: Sequence[bool | int],
        method: str = "temperature",
        *,
        output: str = "probability",
    ) -> Calibration:
        """Return the calibration that fits labelled scores best: 1 for good, 0 for bad.

        The sigmoids maximise the likelihood of Platt's targets, (N₊ + 1) / (N₊ + 2) and 1 / (N₋ + 2), so that perfectly
        separated scores have a finite slope.

        Raises:
            DataError: Scores and labels do not fit, all labels or all scores are the same, or the best temperature is
                not above 0: good completions score no higher than bad ones.
            ImportError: The method is isotonic and scikit-learn is not installed.
        """
        xs, ys = _check_scores(scores, labels)
        if method == "isotonic":
            return cls(method, output, knots=_isotonic(xs, ys), examples=len(xs))
        good_count = float(ys.sum())
        targets = np.where(ys == 1, (good_count + 1) / (good_count + 2), 1 / (len(ys) - good_count + 2))
        slope, intercept = _sigmoid_fit(xs, targets, with_intercept=method == "platt")
        _check_rises(method, slope, "good completions score no higher than bad ones")
        return cls(method, output, slope, intercept, examples=len(xs))

    @classmethod
    def fit_pairs(
        cls,
        chosen: Sequence[float],
        rejected: Sequence[float],
        method: str = "temperature",
        *,
        output: str = "probability",
    ) -> Calibration:
        """Return the calibration that fits pairs best, by the scores of the chosen and of the rejected completions.

        The slope of a sigmoid maximises the likelihood of the preferences by Bradley-Terry,
        p(chosen is preferred) = 1 / (1 + exp(-slope · (chosen - rejected))), which knows no intercept; that of
        ``platt`` makes the mean probability one half, because half of the completions are chosen. ``isotonic`` takes
        each chosen completion as a good one and each rejected as a bad one.

        Raises:
            DataError: As :meth:`fit` raises it.
            ImportError: The method is isotonic and scikit-learn is not installed.
        """
        if len(chosen) != len(rejected):
            raise DataError(f"calibration: {len(chosen)} chosen and {len(rejected)} rejected scores; expected pairs")
        xs, ys = _check_scores([*chosen, *rejected], [1] * len(chosen) + [0] * len(rejected))
        if method == "isotonic":
            return cls(method, output, knots=_isotonic(xs, ys), examples=len(chosen), fitted_on="pairs")
        margins = xs[: len(chosen)] - xs[len(chosen) :]
        if not margins.any():
            raise DataError("calibration: each chosen completion scores as its rejected one; pairs say nothing then")
        targets = np.full(len(margins), (len(margins) + 1) / (len(margins) + 2))
        slope, _ = _sigmoid_fit(margins, targets, with_intercept=False)
        _check_rises(method, slope, "chosen completions score no higher than rejected ones")
        intercept = _centre(xs, slope) if method == "platt" else 0.0
        return cls(method, output, slope, intercept, examples=len(chosen), fitted_on="pairs")

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values, as a file has them."""
        return {"calibration": FORMAT_VERSION, **asdict(self), "knots": [list(knot) for knot in self.knots]}

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file."""
        Path(path).write_text(json.dumps(self.as_json(), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Return the calibration in a file that :meth:`save` wrote.

        Raises:
            ConfigError: There is no such file, or it holds no calibration; says what is wrong.
        """
        try:
            content = decode(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}") from error
        except ValueError as error:
            raise ConfigError(f"{path}: not JSON, so not a calibration: {error}") from None
        if not isinstance(content, Mapping) or content.get("calibration") != FORMAT_VERSION:
            raise ConfigError(f"{path}: no calibration; expected an object with 'calibration': {FORMAT_VERSION}")
        fields = {name: value for name, value in content.items() if name not in _HEADER}
        strays = sorted(fields.keys() - cls.__dataclass_fields__)
        if strays:
            raise ConfigError(f"{path}: unknown field {strays[0]!r}; fields are {', '.join(cls.__dataclass_fields__)}")
        try:
            return cls(**fields)
        except (ConfigError, TypeError) as error:
            raise ConfigError(f"{path}: {error}") from None


def _check_knots(value: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the knots as numbers; raise ConfigError unless scores rise and probabilities never fall."""
    try:
        knots = tuple((float(x), float(y)) for x, y in value)
    except (TypeError, ValueError):
        raise ConfigError(f"calibration: knots={shorten(value)}: expected pairs of a score and a probability") from None
    rises = all(left[0] < right[0] and left[1] <= right[1] for left, right in itertools.pairwise(knots))
    if not knots or not rises or not all(math.isfinite(x) and 0 <= y <= 1 for x, y in knots):
        raise ConfigError("calibration: knots: expected rising finite scores with probabilities that never fall")
    return knots


def _check_scores(scores: Sequence[float], labels: Sequence[bool | int]) -> tuple[_Floats, _Floats]:
    """Return scores and labels as arrays; raise DataError where no calibration fits them."""
    if len(scores) != len(labels):
        raise DataError(f"calibration: {len(scores)} scores and {len(labels)} labels; expected one a score")
    for index, (score, label) in enumerate(zip(scores, labels, strict=True)):
        if not _is_number(score):
            raise DataError(f"calibration: score {index} is {score!r}; leave out what failed or was skipped")
        if label not in (0, 1):
            raise DataError(f"calibration: label {index} is {label!r}; expected 1 for good and 0 for bad")
    if len(set(labels)) < 2:
        raise DataError(f"calibration: {len(labels)} labels, and not both kinds among them; it takes good and bad")
    if len(set(scores)) < 2:
        raise DataError(f"calibration: all {len(scores)} scores are {scores[0]:g}; no map makes probabilities of them")
    return np.array(scores, dtype=float), np.array(labels, dtype=float)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.floating) and not isinstance(value, bool) and math.isfinite(value)


def _check_rises(method: str, slope: float, reason: str) -> None:
    if method == "temperature" and slope <= 0:
        raise DataError(f"calibration: no temperature fits, because {reason}; use another reward, or method='platt'")


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))


def _sigmoid_fit(xs: _Floats, targets: _Floats, *, with_intercept: bool) -> tuple[float, float]:
    """Return the slope and intercept of the greatest likelihood, by Newton's method on scaled scores."""
    size = float(np.abs(xs).max())
    columns = np.stack([xs / size, np.ones_like(xs)], axis=1) if with_intercept else (xs / size)[:, None]
    weights = np.zeros(columns.shape[1])
    loss = _loss(columns @ weights, targets)
    for _ in range(_STEPS):
        p = sigmoids(columns @ weights)
        gradient = columns.T @ (p - targets)
        curvature = columns.T @ (columns * np.maximum(p * (1 - p), _MINIMUM)[:, None])
        step = np.linalg.solve(curvature + _MINIMUM * np.eye(len(weights)), gradient)
        damping = 1.0
        while (new := _loss(columns @ (weights - damping * step), targets)) > loss and damping > _TOLERANCE:
            damping /= 2
        weights, change, loss = weights - damping * step, float(np.abs(damping * step).max()), new
        if change <= _TOLERANCE * (1 + float(np.abs(weights).max())):
            break
    return float(weights[0]) / size, float(weights[1]) if with_intercept else 0.0


def sigmoids(logits: _Floats) -> _Floats:
    return np.exp(-np.logaddexp(0.0, -logits))  # without overflow


def _loss(logits: _Floats, targets: _Floats) -> float:
    return float(np.sum(np.logaddexp(0.0, logits) - targets * logits))


def _centre(xs: _Floats, slope: float) -> float:
    """Return the intercept with which the mean probability of all scores is one half, by bisection."""
    low, high = sorted((-slope * float(xs.min()), -slope * float(xs.max())))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if sigmoids(slope * xs + middle).mean() < 0.5 else (low, middle)
    return (low + high) / 2


def _isotonic(xs: _Floats, ys: _Floats) -> tuple[tuple[float, float], ...]:
    """Return the knots of scikit-learn's isotonic regression."""
    try:
        from sklearn.isotonic import IsotonicRegression
    except ImportError as error:
        raise ImportError("method='isotonic' needs sklearn: pip install scikit-learn") from error
    regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(xs, ys)
    pairs = zip(regression.X_thresholds_.tolist(), regression.y_thresholds_.tolist(), strict=True)
    return tuple((x, min(1.0, max(0.0, y))) for x, y in pairs)
