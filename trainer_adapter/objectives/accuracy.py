"""How well scores tell good from bad, their normalization, and the mean of a loss over uneven shards."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from rewardkit import ObjectiveError
from trainer_adapter.objectives import arrays
from trainer_adapter.objectives.arrays import Array, ArrayT


def pairwise_accuracy(chosen: ArrayT, rejected: ArrayT) -> float:
    """Return the share of pairs whose chosen completion has the higher score, from 0 to 1.

    A tie is a pair without a win: it counts in the denominator alone. :func:`tie_rate` says how many there are; with
    it half a win a tie is ``pairwise_accuracy + tie_rate / 2``.

    Args:
        chosen: Scores, (P,).
        rejected: Scores, (P,).

    Raises:
        ObjectiveError: The shapes differ, there is no pair, or a score is ``nan``.
    """
    won, lost = _pairs(chosen, rejected)
    return float((won > lost).sum()) / len(won)


def tie_rate(chosen: ArrayT, rejected: ArrayT) -> float:
    """Return the share of pairs whose two scores are equal, from 0 to 1.

    A model that gives every text the same score has the accuracy 0 and the tie rate 1.

    Args:
        chosen: Scores, (P,).
        rejected: Scores, (P,).

    Raises:
        ObjectiveError: The shapes differ, there is no pair, or a score is ``nan``.
    """
    won, lost = _pairs(chosen, rejected)
    return float((won == lost).sum()) / len(won)


def whiten(scores: ArrayT, *, groups: ArrayT | Sequence[object] | int | None = None, ddof: int = 1) -> ArrayT:
    """Return the scores less their mean, over their standard deviation, of all or of each group.

    Scores without spread, or with less than rounding makes, become 0, never the quotient of two roundings; so does a
    group of one. ``nan`` is a completion without a score: it stays ``nan`` and counts for nothing.

    Args:
        scores: Any shape.
        groups: What each score's group is, of the scores' shape: integers or any names; or the size of groups that lie
            side by side. ``None`` is one group of all.
        ddof: What the variance takes from the number of scores: 1 as in TRL, 0 for the population's.

    Raises:
        ObjectiveError: The groups do not fit the scores, or ``ddof`` is out of range.
    """
    if not arrays.is_whole(ddof, 0):
        raise ObjectiveError(f"ddof={ddof!r}: expected 1, as TRL has it, or 0")
    xp, score = arrays.floats(scores=scores)
    dtype, shape = score.dtype, score.shape
    flat = arrays.wide(score).reshape(-1)
    index, segments = _group_index(groups, flat, tuple(shape))
    has_score = ~xp.isnan(flat)
    zero, unit = arrays.like(0.0, flat), arrays.like(1.0, flat)
    value = xp.where(has_score, flat, zero)
    count = arrays.segment_sum(arrays.cast(has_score, flat.dtype), index, segments)
    size = xp.where(count > 0, count, unit)
    centred = xp.where(has_score, value - (arrays.segment_sum(value, index, segments) / size)[index], zero)
    freedom = xp.where(count > ddof, count - ddof, unit)
    variance = arrays.segment_sum(centred**2, index, segments) / freedom
    rounding = (8 * xp.finfo(flat.dtype).eps) ** 2 * arrays.segment_sum(value**2, index, segments) / size
    spread = (variance > rounding) & (count > ddof)
    scaled = xp.where(spread[index], centred / xp.where(spread, variance, unit)[index] ** 0.5, zero)
    whitened: ArrayT = arrays.cast(xp.where(has_score, scaled, arrays.like(np.nan, flat)).reshape(shape), dtype)
    return whitened


def weighted_mean_over_shards(loss_sum: ArrayT, count: ArrayT) -> ArrayT:
    """Return the mean over all terms of all shards: the sum of the sums over the sum of the counts.

    The mean of the shards' means is another number where shards are uneven: it gives the terms of a small shard more
    weight. A shard with the count 0 adds nothing, whatever its sum.

    Given one number a shard, (S,), it computes in this process alone. Given a scalar tensor where ``torch.distributed``
    is initialised, it is this process's shard: all processes must call it, and each gets the mean over all of them. Its
    gradient is the shard's times the number of processes over the total count, so that the average over processes
    which DistributedDataParallel takes is the gradient of the mean.

    Args:
        loss_sum: (S,) or a scalar, the sum of a shard's terms, as ``reduction="sum"`` gives it.
        count: The same shape, how many terms; integers.

    Raises:
        ObjectiveError: The shapes differ, a count is negative, or all counts are 0.
    """
    xp, total = arrays.floats(loss_sum=loss_sum)
    number = arrays.cast(arrays.numbers("count", count, total), total.dtype)
    arrays.same_shape(loss_sum=total, count=number)
    if bool((number < 0).any()) or bool(xp.isnan(number).any()):
        raise ObjectiveError(f"count {count!r}: expected numbers of terms, 0 or more")
    dtype = total.dtype
    total = xp.where(number > 0, arrays.wide(total), arrays.like(0.0, arrays.wide(total)))
    number = arrays.wide(number)
    if total.ndim == 0 and xp is not np and xp.distributed.is_available() and xp.distributed.is_initialized():
        mean = _over_processes(xp, total, number)
    elif bool(number.sum() > 0):
        mean = total.sum() / number.sum()
    else:
        raise ObjectiveError("all shards are empty: a mean needs one term or more")
    result: ArrayT = arrays.cast(mean, dtype)
    return result


def _over_processes(xp: ModuleType, total: Any, number: Array) -> Any:
    """Return the mean over all processes as a tensor with the gradient of this process's share."""
    sums = xp.stack([total.detach(), number]).double()
    xp.distributed.all_reduce(sums)
    all_total, all_number = sums
    if not bool(all_number > 0):
        raise ObjectiveError("the shards of all processes are empty: a mean needs one term or more")
    mine = total * (xp.distributed.get_world_size() / all_number).to(total.dtype)
    return mine + ((all_total / all_number).to(total.dtype) - mine).detach()  # the mean's value, the gradient of mine


def _pairs(chosen: object, rejected: object) -> tuple[Any, Any]:
    """Return the scores of pairs as two flat arrays; raise ``ObjectiveError`` without pairs, or for ``nan``."""
    xp, won, lost = arrays.floats(chosen=chosen, rejected=rejected)
    arrays.same_shape(chosen=won, rejected=lost)
    won, lost = won.reshape(-1), lost.reshape(-1)
    if not len(won):
        raise ObjectiveError("no pairs: an accuracy needs one or more")
    missing = xp.isnan(won) | xp.isnan(lost)
    if bool(missing.any()):
        raise ObjectiveError(f"pair {int(missing.nonzero()[0][0])} has no score (nan): leave it out and say so")
    return won, lost


def _group_index(groups: object, flat: Array, shape: tuple[int, ...]) -> tuple[Any, int]:
    """Return the segment of each score, and how many there are."""
    xp, n = arrays.namespace(flat), len(flat)
    if groups is None:
        return arrays.beside(np.zeros(n, dtype=np.int64), flat), 1
    if isinstance(groups, int | np.integer):
        if not arrays.is_whole(groups, 1) or n % groups:
            raise ObjectiveError(f"groups={groups!r}: {n} scores make no whole groups of it")
        return arrays.beside(np.arange(n) // groups, flat), n // int(groups)
    space = arrays.namespace(groups)
    names = space.asarray(groups)
    if tuple(names.shape) != shape:
        raise ObjectiveError(f"groups {tuple(names.shape)}: expected the shape of the scores, {shape}")
    unique, index = space.unique(names.reshape(-1), return_inverse=True)
    return (index if space is xp else arrays.beside(index, flat)), len(unique)
