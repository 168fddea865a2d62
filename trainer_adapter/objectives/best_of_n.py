"""Best-of-n: what the best of n completions is worth, and how far choosing it moves from the policy."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rewardkit import ObjectiveError, statistics
from rewardkit.statistics import best_of_n_weights
from trainer_adapter.objectives import arrays
from trainer_adapter.objectives.arrays import Array, ArrayT


def best_of_n_expected(scores: ArrayT, n: int, *, values: ArrayT | None = None) -> ArrayT:
    """Return the expected best of n of each row's N scores, drawn without replacement: unbiased for fresh draws.

    The mean of the maximum over all C(N, n) subsets: the i-th smallest score weighs C(i - 1, n - 1) / C(N, n), computed
    by their ratios, without a factorial. The maximum of the first n alone has the same mean and more variance; the
    maximum of n drawn with replacement is biased. As in Nakano et al. (2021, arXiv 2112.09332, appendix I) and
    Gao et al. (2022, arXiv 2210.10760).

    Args:
        scores: (..., N).
        n: How many are drawn, 1 to N.
        values: (..., N), what is averaged of the completion with the best score, such as a gold reward; the scores
            themselves by default. Completions of one score share their weight.

    Returns:
        (...); ``nan`` for a row with a ``nan``.

    Raises:
        ObjectiveError: n is not a whole number from 1 to N, or the shapes differ.
    """
    xp, score = arrays.floats(scores=scores)
    if score.ndim < 1:
        raise ObjectiveError("scores is one number: expected (..., N)")
    number = score.shape[-1]
    if not arrays.is_whole(n, 1) or n > number:
        raise ObjectiveError(f"n={n!r}: expected a whole number from 1 to the {number} scores of a row")
    weights = best_of_n_weights(number, int(n))
    ordered, order = _sort(arrays.wide(score))
    if values is None:
        drawn = arrays.like(weights[n - 1 :], ordered)  # those below are never the best, and may be infinite
        expected: ArrayT = arrays.cast((ordered[..., n - 1 :] * drawn).sum(-1), score.dtype)
        return expected
    value = arrays.cast(arrays.numbers("values", values, score), score.dtype)
    arrays.same_shape(scores=score, values=value)
    mean = (arrays.take_along(arrays.wide(value), order) * _tied_weights(ordered, weights)).sum(-1)
    best: ArrayT = arrays.cast(xp.where(xp.isnan(ordered[..., -1]), arrays.like(float("nan"), mean), mean), value.dtype)
    return best


def best_of_n_kl(n: int) -> float:
    """Return log n - (n - 1) / n: the KL divergence of best-of-n from the policy, in nats.

    Stiennon et al. (2020, arXiv 2009.01325, appendix G.3) and Gao et al. (2022). It is exact where no two completions
    have one score or the same text, and otherwise an upper bound (Beirami et al., 2024, arXiv 2401.01879).

    Args:
        n: 1 or more.

    Raises:
        ObjectiveError: n is not a number of 1 or more.
    """
    arrays.check_number("n", n, 1)
    return statistics.best_of_n_kl(n)


def _sort(score: Array) -> tuple[Any, Any]:
    """Return the scores of each row in ascending order, and the places that they had."""
    xp = arrays.namespace(score)
    if xp is not np:
        ordered, order = xp.sort(score, dim=-1, stable=True)
        return ordered, order
    order = np.argsort(score, axis=-1, kind="stable")
    return np.take_along_axis(score, order, -1), order


def _tied_weights(ordered: Array, weights: NDArray[np.float64]) -> Any:
    """Return each place's weight in a sorted row: the mean weight of all places with its score."""
    first, after = _search(ordered, "left"), _search(ordered, "right")
    ahead = arrays.beside(np.concatenate([[0.0], np.cumsum(weights)]), ordered)
    return arrays.like((ahead[after] - ahead[first]) / (after - first), ordered)


def _search(ordered: Array, side: Literal["left", "right"]) -> Any:
    """Return where each score of a sorted row begins (``"left"``), or where the next higher one does."""
    xp = arrays.namespace(ordered)
    if xp is not np:
        rows = ordered[...].detach().contiguous()
        return xp.searchsorted(rows, rows, side=side)
    flat = ordered.reshape(-1, ordered.shape[-1])
    index = np.zeros(flat.shape, dtype=np.int64)  # of no row, too
    for number, row in enumerate(flat):
        index[number] = np.searchsorted(row, row, side=side)
    return index.reshape(ordered.shape)
