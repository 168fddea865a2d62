"""Public: advantages of groups of completions, in numpy, as TRL's trainers compute them.

Rewards and advantages are arrays of one entry a completion, the completions of a prompt side by side: entry ``i`` is of
group ``i // num_generations``. ``nan`` is a completion without a reward: it leaves its group's baseline, and its
advantage is 0. The formulas are those of ``GRPOTrainer._generate_and_score_completions`` and ``RLOOTrainer`` of TRL
1.16, with its standard deviation (``ddof=1``) and its ``1e-4`` below the fraction line.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rewardkit.errors import RewardDefinitionError

__all__ = [
    "EPS",
    "gdpo_advantages",
    "group_advantages",
    "leave_one_out_advantages",
    "weighted_rewards",
    "zero_variance",
]

EPS = 1e-4
"""What TRL adds to a standard deviation before it divides by it."""

_Floats: TypeAlias = NDArray[np.float64]


def group_advantages(
    rewards: Any, num_generations: int, *, scale: str = "group", ddof: int = 1, eps: float = EPS
) -> _Floats:
    """Return each reward less its group's mean, over a standard deviation: GRPO's advantage (arXiv 2402.03300, 4.1.2).

    Args:
        rewards: Shape (completions,), groups side by side; ``nan`` or ``None`` where there is no reward.
        num_generations: Completions a group, 1 or more.
        scale: What divides: ``"group"``, the group's standard deviation; ``"batch"``, that of all rewards; ``"none"``.
        ddof: What the standard deviation takes from the number of rewards: 1 as in TRL, 0 for the population's.
        eps: Added to the standard deviation.

    Raises:
        RewardDefinitionError: The completions make no whole groups, or there is no such scale.
    """
    if scale not in ("group", "batch", "none"):
        raise RewardDefinitionError(f"scale={scale!r}: expected 'group', 'batch' or 'none'")
    flat, groups = _grouped(rewards, num_generations)
    centred = groups - _mean(groups, axis=1)
    if scale == "group":
        centred = centred / (_std(groups, ddof, axis=1) + eps)
    elif scale == "batch":
        centred = centred / (_std(flat, ddof) + eps)
    return np.nan_to_num(centred.reshape(-1), nan=0.0)


def gdpo_advantages(
    rewards_per_reward: Mapping[str, Any] | Sequence[Any],
    weights: Mapping[str, float] | Sequence[float],
    num_generations: int,
    *,
    ddof: int = 1,
    eps: float = EPS,
) -> _Floats:
    """Return GDPO's advantages: each reward is normalized in its groups, then the weighted sum over the batch.

    TRL's ``multi_objective_aggregation="normalize_then_sum"``.

    Args:
        rewards_per_reward: One array of shape (completions,) a reward, by name or in order.
        weights: One a reward, by the same names or in the same order.
        num_generations: Completions a group, 1 or more.
        ddof: As for :func:`group_advantages`.
        eps: As for :func:`group_advantages`.

    Raises:
        RewardDefinitionError: The completions make no whole groups, or rewards and weights do not match.
    """
    columns, by_weight = _matched(rewards_per_reward, weights)
    normalized = []
    for column in columns:
        groups = _grouped(column, num_generations)[1]
        spread = _std(groups, ddof, axis=1) if num_generations > 1 else 0.0
        normalized.append(((groups - _mean(groups, axis=1)) / (spread + eps)).reshape(-1))
    table = np.stack(normalized)
    total = np.nansum(table * by_weight[:, None], axis=0)
    total[np.isnan(table).all(axis=0)] = np.nan
    scaled: _Floats = np.nan_to_num((total - _mean(total)) / (_std(total, ddof) + eps), nan=0.0)
    return scaled


def leave_one_out_advantages(
    rewards: Any, num_generations: int, *, normalize: bool = False, eps: float = EPS
) -> _Floats:
    """Return each reward less the mean of its group's others: RLOO's advantage (arXiv 2402.14740, equation 8).

    A completion without another reward in its group has the advantage 0.

    Args:
        rewards: Shape (completions,), groups side by side; ``nan`` or ``None`` where there is no reward.
        num_generations: Completions a group, 1 or more.
        normalize: Whether the advantages are then normalized over all completions that have one, TRL's
            ``normalize_advantages``.
        eps: Added to the standard deviation that normalizes.

    Raises:
        RewardDefinitionError: The completions make no whole groups.
    """
    groups = _grouped(rewards, num_generations)[1]
    if num_generations == 1:
        return np.zeros(len(groups))
    known = ~np.isnan(groups)
    others = known.sum(axis=1, keepdims=True) - known
    sums = np.nansum(groups, axis=1, keepdims=True) - np.where(known, groups, 0.0)
    means = np.divide(sums, others, out=np.full_like(groups, np.nan), where=others > 0)
    less = (groups - means).reshape(-1)
    if normalize:
        less = (less - _mean(less)) / (_std(less, 1) + eps)
    found: _Floats = np.nan_to_num(less, nan=0.0)
    return found


def weighted_rewards(
    rewards_per_reward: Mapping[str, Any] | Sequence[Any], weights: Mapping[str, float] | Sequence[float]
) -> _Floats:
    """Return TRL's ``reward``: the weighted sum of the rewards that there are; ``nan`` where there is none.

    Args:
        rewards_per_reward: One array of shape (completions,) a reward, by name or in order.
        weights: One a reward, by the same names or in the same order.

    Raises:
        RewardDefinitionError: Rewards and weights do not match.
    """
    columns, by_weight = _matched(rewards_per_reward, weights)
    table = np.stack([_floats(column) for column in columns])
    total: _Floats = np.nansum(table * by_weight[:, None], axis=0)
    total[np.isnan(table).all(axis=0)] = np.nan
    return total


def zero_variance(rewards: Any, num_generations: int) -> NDArray[np.bool_]:
    """Return, one a group, whether its rewards are all the same, so that it gives no gradient.

    A group without two rewards is one too. The bound is TRL's, ``isclose`` to 0 (``frac_reward_zero_std``).

    Raises:
        RewardDefinitionError: The completions make no whole groups.
    """
    spread = _std(_grouped(rewards, num_generations)[1], 1, axis=1)
    return np.asarray(np.isclose(np.nan_to_num(spread, nan=0.0), 0.0)).reshape(-1)


def _floats(values: Any) -> _Floats:
    return np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)


def _grouped(rewards: Any, num_generations: int) -> tuple[_Floats, _Floats]:
    flat = _floats(rewards)
    if num_generations < 1 or len(flat) % num_generations:
        raise RewardDefinitionError(f"{len(flat)} rewards make no whole groups of num_generations={num_generations!r}")
    return flat, flat.reshape(-1, num_generations)


def _matched(columns: Any, weights: Any) -> tuple[list[Any], _Floats]:
    if isinstance(columns, Mapping) and isinstance(weights, Mapping) and set(columns) == set(weights):
        return [columns[name] for name in columns], np.asarray([weights[name] for name in columns], dtype=np.float64)
    if isinstance(columns, Mapping) or isinstance(weights, Mapping) or len(columns) != len(weights) or not len(columns):
        raise RewardDefinitionError(f"weights {weights!r} do not match the rewards {list(columns)!r}"[:500])
    return list(columns), np.asarray(weights, dtype=np.float64)


def _mean(values: _Floats, axis: int | None = None) -> _Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a group without rewards has no mean: nan
        return np.asarray(np.nanmean(values, axis=axis, keepdims=axis is not None))


def _std(values: _Floats, ddof: int, axis: int | None = None) -> _Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # too few rewards have no spread: nan
        return np.asarray(np.nanstd(values, axis=axis, ddof=ddof, keepdims=axis is not None))
