"""Public: advantages of groups of completions, as TRL's trainers compute them, for numpy and torch.

Rewards and advantages have one entry a completion, the completions of a prompt side by side: entry ``i`` is of group
``i // num_generations``. ``nan`` is a completion without a reward: it leaves its group's baseline, and its advantage
is 0. The formulas are those of ``GRPOTrainer._generate_and_score_completions`` and ``RLOOTrainer`` of TRL 1.16, with
its standard deviation (``ddof=1``) and its ``1e-4`` below the fraction line.

Each function takes lists, numpy arrays or torch tensors. What it returns has the shape of the rewards and is of their
kind: a tensor of their dtype and device for a tensor, an array of their dtype for an array of floats, and an array of
float64 otherwise. Nothing here imports torch.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rewardkit.errors import ObjectiveError

__all__ = [
    "EPS",
    "GroupStatistics",
    "gdpo_advantages",
    "group_advantages",
    "group_statistics",
    "leave_one_out_advantages",
    "undecided_advantages",
    "weighted_rewards",
    "zero_variance",
]

_Array: TypeAlias = Any  # an array of numpy or a tensor of torch, which may not be installed
_ROUNDING = 1e-9  # what scores that are weighted, or divided by a range, may differ by
EPS = 1e-4
"""What TRL adds to a standard deviation before it divides by it."""


class GroupStatistics(NamedTuple):
    """What is known of the rewards of each group.

    Attributes:
        mean: Shape (groups,); ``nan`` for a group without a reward.
        std: Shape (groups,); ``nan`` for a group without more than ``ddof`` rewards.
        zero_variance_share: The share of groups that give no gradient, from 0 to 1: TRL's ``frac_reward_zero_std``.
    """

    mean: Any
    std: Any
    zero_variance_share: float


def group_advantages(
    rewards: object, num_generations: int, *, scale: str = "group", ddof: int = 1, eps: float = EPS
) -> Any:
    """Return each reward less its group's mean, over a standard deviation: GRPO's advantage (arXiv 2402.03300, 4.1.2).

    Args:
        rewards: Shape (completions,) or any that holds them group by group, such as (prompts, num_generations);
            ``nan`` or ``None`` where there is no reward.
        num_generations: Completions a group, 1 or more.
        scale: The divisor: ``"group"``, the group's standard deviation; ``"batch"``, that of all rewards; ``"none"``.
        ddof: The number that is taken from the count of rewards in the deviation: 1 as in TRL, 0 for the population's.
        eps: Added to the standard deviation.

    Returns:
        The rewards' shape and kind, all finite: 0 where a group has a single reward or no spread.

    Raises:
        ObjectiveError: The completions make no whole groups, a reward is infinite or no number, or a setting is out of
            range.
    """
    if scale not in ("group", "batch", "none"):
        raise ObjectiveError(f"scale={scale!r}: expected 'group', 'batch' or 'none'")
    _check_scaling(ddof, eps)
    xp, flat = _floats(rewards)
    groups = _to_groups(flat, num_generations)
    centred = groups - _mean(groups)
    if scale == "group":
        centred = centred / (_std(groups, ddof) + eps)
    elif scale == "batch":
        centred = centred / (_std(flat.reshape(1, -1), ddof) + eps)
    return _like_rewards(_or_zero(centred), rewards, xp)


def gdpo_advantages(
    rewards_per_reward: Mapping[str, Any] | Sequence[Any],
    weights: Mapping[str, float] | Sequence[float],
    num_generations: int,
    *,
    ddof: int = 1,
    eps: float = EPS,
) -> Any:
    """Return GDPO's advantages: each reward is normalized in its groups, then the weighted sum over the batch.

    TRL's ``multi_objective_aggregation="normalize_then_sum"``.

    Args:
        rewards_per_reward: One entry a reward, by name or in order, each as :func:`group_advantages` takes them.
        weights: One a reward, by the same names or in the same order.
        num_generations: Completions a group, 1 or more.
        ddof: As for :func:`group_advantages`.
        eps: As for :func:`group_advantages`.

    Raises:
        ObjectiveError: The completions make no whole groups, rewards and weights do not match, or a weight is no
            finite number.
    """
    columns, by_weight = _match_weights(rewards_per_reward, weights)
    _check_scaling(ddof, eps)
    normalized = []
    for column in columns:
        groups = _to_groups(_floats(column).values, num_generations)
        spread = _std(groups, ddof) if num_generations > 1 else 0.0
        scaled = _or_zero((groups - _mean(groups)) / (spread + eps))  # a group's only reward counts as 0
        normalized.append(_nan_unless(_with_presence(groups).present > 0, scaled).reshape(-1))
    total = _weighted_sum(normalized, by_weight).reshape(1, -1)
    centred = (total - _mean(total)) / (_std(total, ddof) + eps)
    return _like_rewards(_or_zero(centred), columns[0], _floats(columns[0]).xp)


def leave_one_out_advantages(
    rewards: object, num_generations: int, *, normalize: bool = False, eps: float = EPS
) -> Any:
    """Return each reward less the mean of its group's others: RLOO's advantage (arXiv 2402.14740, equation 8).

    A completion without another reward in its group has the advantage 0.

    Args:
        rewards: As for :func:`group_advantages`.
        num_generations: Completions a group, 1 or more.
        normalize: Whether the advantages are then normalized over all completions that have one, TRL's
            ``normalize_advantages``.
        eps: Added to the standard deviation that normalizes.

    Raises:
        ObjectiveError: The completions make no whole groups.
    """
    _check_scaling(1, eps)
    xp, flat = _floats(rewards)
    groups = _to_groups(flat, num_generations)
    present, values, count = _with_presence(groups)
    peers = count - present
    means = (values.sum(axis=1, keepdims=True) - values) / _nan_unless(peers > 0, peers)
    less = (groups - means).reshape(1, -1)
    if normalize:
        less = (less - _mean(less)) / (_std(less, 1) + eps)
    return _like_rewards(_or_zero(less), rewards, xp)


def weighted_rewards(
    rewards_per_reward: Mapping[str, Any] | Sequence[Any], weights: Mapping[str, float] | Sequence[float]
) -> Any:
    """Return TRL's ``reward``: the weighted sum of the rewards that are not ``nan``; ``nan`` where all are.

    Args:
        rewards_per_reward: One entry a reward, by name or in order, each of one entry a completion.
        weights: One a reward, by the same names or in the same order.

    Raises:
        ObjectiveError: Rewards and weights do not match, or a weight is not finite.
    """
    columns, by_weight = _match_weights(rewards_per_reward, weights)
    total = _weighted_sum([_floats(column).values.reshape(-1) for column in columns], by_weight)
    return _like_rewards(total, columns[0], _floats(columns[0]).xp)


def group_statistics(rewards: object, num_generations: int, *, ddof: int = 1) -> GroupStatistics:
    """Return mean and standard deviation of each group, and the share of groups that give no gradient.

    Args:
        rewards: As for :func:`group_advantages`.
        num_generations: Completions a group, 1 or more.
        ddof: As for :func:`group_advantages`.

    Raises:
        ObjectiveError: The completions make no whole groups, or there is no group.
    """
    _check_scaling(ddof, EPS)
    groups = _to_groups(_floats(rewards).values, num_generations)
    if not len(groups):
        raise ObjectiveError("no rewards: statistics need one or more")
    flat = zero_variance(rewards, num_generations)
    return GroupStatistics(_mean(groups).reshape(-1), _std(groups, ddof).reshape(-1), int(flat.sum()) / len(flat))


def zero_variance(rewards: object, num_generations: int) -> Any:
    """Return, one a group, whether its rewards are all the same, so that it gives no gradient.

    A group without two rewards is one too. The bound is TRL's, ``isclose`` to 0 (``frac_reward_zero_std``).

    Returns:
        Booleans of shape (groups,).

    Raises:
        ObjectiveError: The completions make no whole groups.
    """
    spread = _or_zero(_std(_to_groups(_floats(rewards).values, num_generations), 1))
    return (spread <= 1e-8).reshape(-1)  # isclose(spread, 0): rtol has no part in it


def undecided_advantages(scores: Sequence[float | None], final: object, margin: float, *, ranks: bool = False) -> Any:
    """Return the completions of a group whose final scores are still needed, where most have an estimate.

    Let m be the mean of the scores, and n of their N be estimates. An estimate is undecided within ``margin`` of m,
    because the advantage of its final score may have the other sign, and so is a score that is missing. If all are
    decided, and a final score lies within ``margin * sqrt(n) / N`` of m, across which m may still move, the half of the
    estimates that is nearest to m is needed too. That distance is twice m's standard deviation, if the deviation of
    each estimate's error is half of the margin.

    Args:
        scores: One a completion, the final one or an estimate; ``None`` or ``nan`` where there is neither.
        final: Booleans, whether each is final; a final one may be missing, and then counts in no mean.
        margin: How far from m an estimate has to be for its advantage's sign to be safe, 0 or more.
        ranks: Whether an estimate is undecided within the margin of any other score too: it may change its rank.

    Returns:
        Places, ascending; empty if no advantage needs another final score.

    Raises:
        ObjectiveError: The lengths differ, a score is infinite, or the margin is out of range.
    """
    score = _to_groups(_floats(scores).values, max(1, len(scores))).reshape(-1)
    is_open = ~np.asarray(final, dtype=bool)
    if is_open.shape != score.shape or not _is_number(margin) or margin < 0:
        raise ObjectiveError(
            f"{len(score)} scores, {is_open.size} of final, margin={margin!r}: give as many, and 0 or more"
        )
    present = ~np.isnan(score)
    away = np.abs(score - _mean(score.reshape(1, -1)).reshape(-1))
    near = away <= margin + _ROUNDING
    if ranks:
        gaps = np.abs(score[:, None] - score) + np.diag(np.full(len(score), np.inf))
        near |= (gaps <= margin + _ROUNDING).any(axis=1)
    needed = is_open & (near | ~present)
    reach = margin * math.sqrt(is_open.sum()) / max(1, present.sum())
    if not needed.any() and is_open.any() and (away[~is_open] <= reach).any():
        nearest = np.argsort(np.where(is_open, away, np.inf), kind="stable")
        needed[nearest[: math.ceil(is_open.sum() / 2)]] = True
    return np.flatnonzero(needed)


class _Floats(NamedTuple):
    """Values as floats of a library, numpy or torch."""

    xp: Any
    values: _Array


def _floats(values: object) -> _Floats:
    """Return the values as floats of their library, of single precision or wider."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        wide = values if values.is_floating_point() else values.to(torch.get_default_dtype())
        return _Floats(torch, wide.float() if wide.element_size() < 4 else wide)
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return _Floats(np, values.astype(np.promote_types(values.dtype, np.float32), copy=False))
    try:
        return _Floats(np, np.asarray(values, dtype=np.float64))  # None becomes nan
    except (TypeError, ValueError) as exc:
        raise ObjectiveError(f"rewards: expected numbers, nan or None: {exc}") from exc


def _like_rewards(result: _Array, rewards: _Array, xp: ModuleType) -> Any:
    """Return a result in the shape of the rewards, and where these are floats in their dtype."""
    if xp is np:
        is_float = isinstance(rewards, np.ndarray) and rewards.dtype.kind == "f"
        return result.reshape(np.shape(rewards)).astype(rewards.dtype if is_float else np.float64, copy=False)
    shaped = result.reshape(rewards.shape)
    return shaped.to(rewards.dtype) if rewards.is_floating_point() else shaped


def _to_groups(rewards: _Array, num_generations: int) -> Any:
    """Return rewards, (groups, num_generations); ObjectiveError where groups are not whole or one is infinite."""
    count = int(np.prod(rewards.shape))
    is_integer = isinstance(num_generations, int | np.integer) and not isinstance(num_generations, bool)
    if not is_integer or num_generations < 1 or count % num_generations:
        raise ObjectiveError(f"{count} rewards make no whole groups of num_generations={num_generations!r}")
    infinite = _floats(rewards).xp.isinf(rewards).reshape(-1)
    if bool(infinite.any()):
        first = int(infinite.nonzero()[0][0])  # the same of numpy's tuple of indices and of torch's rows
        raise ObjectiveError(f"completion {first} has an infinite reward: expected a number or nan")
    return rewards.reshape(-1, int(num_generations))


def _check_scaling(ddof: int, eps: float) -> None:
    if isinstance(ddof, bool) or not isinstance(ddof, int) or ddof < 0:
        raise ObjectiveError(f"ddof={ddof!r}: expected 1, as TRL has it, or 0")
    if not _is_number(eps) or eps < 0:
        raise ObjectiveError(f"eps={eps!r}: expected a number of 0 or more")


def _match_weights(columns: Any, weights: Any) -> tuple[list[Any], list[float]]:
    """Return columns and weights in one order; ObjectiveError where they do not match or a weight is not finite."""
    if not hasattr(weights, "__len__"):
        raise ObjectiveError(f"weights={weights!r}: expected one number a reward")
    by_name = weights.items() if isinstance(weights, Mapping) else enumerate(weights)
    for name, weight in by_name:
        if not _is_number(weight):
            raise ObjectiveError(f"weights[{name!r}]={weight!r}: expected a finite number")
    if isinstance(columns, Mapping) and isinstance(weights, Mapping) and set(columns) == set(weights):
        return [columns[name] for name in columns], [float(weights[name]) for name in columns]
    if isinstance(columns, Mapping) or isinstance(weights, Mapping) or len(columns) != len(weights) or not len(columns):
        raise ObjectiveError(f"weights {weights!r} do not match the rewards {list(columns)!r}"[:500])
    sizes = {int(np.prod(_floats(column).values.shape)) for column in columns}
    if len(sizes) > 1:
        raise ObjectiveError(f"rewards of unlike numbers of completions, {sorted(sizes)}; give each as many")
    return list(columns), [float(weight) for weight in weights]


def _is_number(value: Any) -> bool:
    """Return whether a setting is a finite number; text and booleans are not."""
    try:
        return not isinstance(value, str | bytes | bool) and math.isfinite(value)
    except (TypeError, ValueError):
        return False


def _weighted_sum(columns: Sequence[Any], weights: Sequence[float]) -> Any:
    """Return the weighted sum of flat columns over those that are known; ``nan`` where none is."""
    table = _floats(columns[0]).xp.stack(list(columns))
    by_weight = _like(weights, table).reshape(-1, 1)
    present, values, _ = _with_presence(table)
    with np.errstate(over="ignore", invalid="ignore"):  # a sum that is no float is infinite, and is refused as that
        return _nan_unless((present > 0).any(axis=0), (values * by_weight).sum(axis=0))


class _Presence(NamedTuple):
    """Which values of rows are known."""

    present: _Array  # 1 where one is known, else 0
    values: _Array  # 0 where one is not known
    count: _Array  # how many of a row are known, (rows, 1)


def _with_presence(rows: object) -> _Presence:
    xp = _floats(rows).xp
    missing = xp.isnan(rows)
    present = _like(1.0, rows) - _like(missing, rows)
    return _Presence(present, xp.where(missing, _like(0.0, rows), rows), present.sum(axis=1, keepdims=True))


def _mean(rows: object) -> Any:
    """Return the mean of what is known of each row, (rows, 1); ``nan`` where nothing is."""
    _, values, count = _with_presence(rows)
    return values.sum(axis=1, keepdims=True) / _nan_unless(count > 0, count)


def _std(rows: object, ddof: int) -> Any:
    """Return the standard deviation of each row's known values, (rows, 1); ``nan`` where these are too few."""
    present, values, count = _with_presence(rows)
    away = (values - _mean(rows)) * present
    unit = _unit(away)
    variance = ((away / unit) ** 2).sum(axis=1, keepdims=True) / _nan_unless(count > ddof, count - ddof)
    return variance**0.5 * unit


def _unit(away: _Array) -> Any:
    """Return what numbers are divided by before they are squared, by rows: 1, unless their squares are no floats."""
    if _floats(away).xp is not np or not away.size:
        return 1.0
    half = np.finfo(away.dtype).maxexp // 2
    largest = np.abs(away).max(axis=1, keepdims=True)
    return np.where(largest < 2.0 ** (half - 14), 1.0, 2.0 ** (half + 8)).astype(away.dtype)


def _nan_unless(holds: object, values: object) -> Any:
    return _floats(values).xp.where(holds, values, _like(np.nan, values))


def _or_zero(values: object) -> Any:
    xp = _floats(values).xp
    return xp.where(xp.isnan(values), _like(0.0, values), values)


def _like(value: _Array, array: _Array) -> Any:
    xp = _floats(array).xp
    if xp is np:
        return np.asarray(value, dtype=array.dtype)
    return xp.as_tensor(value, dtype=array.dtype, device=array.device)
