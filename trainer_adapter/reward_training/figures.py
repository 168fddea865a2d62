"""Figures on held-out prompts, each with its 95 % interval.

The intervals are percentiles of a bootstrap over prompts (Efron and Tibshirani, 1993, section 13.3): prompts are drawn
with replacement, each with all its pairs, completions or steps, because what one prompt has is not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from trainer_adapter.objectives import (
    brier,
    expected_calibration_error,
    pair_probabilities,
    pairwise_accuracy,
    tie_rate,
)
from trainer_adapter.reward_training.batches import EncodedGroup
from trainer_adapter.reward_training.model import TextScores

RESAMPLES = 1000  # Bootstrap samples of an interval
_Numbers: TypeAlias = NDArray[np.float64]
_Measure: TypeAlias = Callable[..., float | None]


@dataclass(frozen=True, slots=True)
class HeldOutFigure:
    """A figure on held-out prompts.

    Attributes:
        value: The figure; ``None`` where it is not defined, such as the AUC of completions that are all right.
        low: The lower end of its 95 % interval; ``None`` with fewer than two prompts.
        high: The upper end.
        of: How many pairs, completions or steps it is of.
    """

    value: float | None
    low: float | None
    high: float | None
    of: int

    def __str__(self) -> str:
        if self.value is None:
            return f"not defined (of {self.of:,})"
        span = "" if self.low is None or self.high is None else f" ({self.low:.3f} to {self.high:.3f})"
        return f"{self.value:.3f}{span}"


def pair_figures(
    groups: Sequence[EncodedGroup], scores: Sequence[_Numbers], *, bins: int, seed: int
) -> dict[str, HeldOutFigure]:
    """Return accuracy (a tie is no win), tie rate, mean margin, calibration error and Brier score of pairs.

    Rankings are all pairs of different rank. ``bins`` of equal widths are those of the calibration error; ``seed`` is
    that of the pairs' random order and of the bootstrap.
    """
    won, lost, prompt = [], [], []
    for group, values in zip(groups, scores, strict=True):
        for chosen, rejected in pairs_of(group):
            won.append(values[chosen])
            lost.append(values[rejected])
            prompt.append(group.group.key)
    chosen_scores, rejected_scores = np.asarray(won, dtype=np.float64), np.asarray(lost, dtype=np.float64)
    probabilities, labels = pair_probabilities(chosen_scores, rejected_scores, seed=seed)
    columns = (chosen_scores, rejected_scores, np.asarray(probabilities), np.asarray(labels))
    return _with_intervals(
        {
            "accuracy": lambda a, b, *_: pairwise_accuracy(a, b),
            "tie_rate": lambda a, b, *_: tie_rate(a, b),
            "margin": lambda a, b, *_: float((a - b).mean()),
            "ece": lambda a, b, p, y: float(expected_calibration_error(p, y, bins)),
            "brier": lambda a, b, p, y: float(brier(p, y)),
        },
        columns,
        prompt,
        seed,
    )


def outcome_figures(
    groups: Sequence[EncodedGroup], scores: Sequence[_Numbers], *, bins: int, seed: int
) -> dict[str, HeldOutFigure]:
    """Return AUC (a tie is half a win), accuracy at 0.5, calibration error and Brier score of outcomes."""
    score = np.concatenate([np.asarray(values, dtype=np.float64) for values in scores])
    label = np.asarray([is_right for group in groups for is_right in group.group.correct], dtype=np.float64)
    prompt = [group.group.key for group in groups for _ in group.group.correct]
    return _with_intervals(
        {
            "auc": area_under_curve,
            "accuracy": lambda s, y: float(((s >= 0.5) == (y == 1)).mean()),
            "ece": lambda s, y: float(expected_calibration_error(s, y, bins)),
            "brier": lambda s, y: float(brier(s, y)),
        },
        (score, label),
        prompt,
        seed,
    )


def step_figures(groups: Sequence[EncodedGroup], texts: TextScores, *, seed: int) -> dict[str, HeldOutFigure]:
    """Return accuracy of the steps' likeliest labels, and F1 of finding wrong steps (``step_f1``) and right ones."""
    predicted = np.asarray(list(chain.from_iterable(texts.step_labels)), dtype=np.float64)
    steps = [(group.group.key, label) for group in groups for labels in group.group.step_labels for label in labels]
    true = np.asarray([label for _, label in steps], dtype=np.float64)
    return _with_intervals(
        {
            "step_accuracy": lambda s, t: float((s == t).mean()),
            "step_f1": lambda s, t: f1(s == -1, t == -1),
            "right_f1": lambda s, t: f1(s == 1, t == 1),
        },
        (predicted, true),
        [prompt for prompt, _ in steps],
        seed,
    )


def pairs_of(encoded: EncodedGroup) -> list[tuple[int, int]]:
    """Return the places of chosen and rejected completions: the group's pairs, or all that its ranks tell apart."""
    if encoded.group.pairs:
        return [(pair.chosen, pair.rejected) for pair in encoded.group.pairs]
    ranks = encoded.group.ranks
    return [(a, b) for a in range(len(ranks)) for b in range(len(ranks)) if ranks[a] < ranks[b]]


def area_under_curve(scores: _Numbers, labels: _Numbers) -> float | None:
    """Return the share of (right, wrong) pairs that the scores order rightly, a tie as half (Mann-Whitney 1947)."""
    right = int((labels == 1).sum())
    others = len(labels) - right
    if not right or not others:
        return None
    _, index, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    return float((middle[index][labels == 1].sum() - right * (right + 1) / 2) / (right * others))


def f1(predicted: NDArray[np.bool_], true: NDArray[np.bool_]) -> float | None:
    """Return 2 TP / (2 TP + FP + FN); ``None`` where nothing is true and nothing is predicted."""
    hits, either = int((predicted & true).sum()), int(predicted.sum() + true.sum())
    return 2 * hits / either if either else None


def as_plain(figures: Mapping[str, HeldOutFigure]) -> dict[str, dict[str, float | int | None]]:
    """Return figures as they stand in ``reward_model.json``."""
    return {name: asdict(figure) for name, figure in figures.items()}


def _with_intervals(
    measures: Mapping[str, _Measure], columns: Sequence[_Numbers], prompts: Sequence[str], seed: int
) -> dict[str, HeldOutFigure]:
    """Return each measure of the columns with its interval; ``prompts`` has the prompt of each entry of a column."""
    count = len(prompts)
    _, prompt_of = np.unique(np.asarray(prompts, dtype=object).astype(str), return_inverse=True)
    rows_of = [np.flatnonzero(prompt_of == prompt) for prompt in range(int(prompt_of.max()) + 1)] if count else []
    rng = np.random.default_rng(seed)
    samples: dict[str, list[float]] = {name: [] for name in measures}  # Values of bootstrap samples that have one
    for _ in range(RESAMPLES if len(rows_of) > 1 else 0):
        drawn = rng.integers(0, len(rows_of), len(rows_of))
        rows = np.concatenate([rows_of[prompt] for prompt in drawn])
        part = [column[rows] for column in columns]
        for name, measure in measures.items():
            if (value := measure(*part)) is not None:
                samples[name].append(value)
    figures = {}
    for name, measure in measures.items():
        low, high = np.quantile(samples[name], (0.025, 0.975)).tolist() if samples[name] else (None, None)
        figures[name] = HeldOutFigure(measure(*columns) if count else None, low, high, count)
    return figures
