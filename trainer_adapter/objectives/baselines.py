"""Advantages of completions that depend on their lengths or tokens: OPO's and REINFORCE++'s.

B counts completions, those of a prompt side by side, T the tokens of the longest one. ``nan`` is a completion without a
reward: it leaves all means, and its advantage is 0. Those of whole completions alone, GRPO's, GDPO's and RLOO's, are in
:mod:`rewardkit.advantages`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rewardkit import ObjectiveError
from trainer_adapter.objectives import arrays
from trainer_adapter.objectives.arrays import Array, ArrayT
from trainer_adapter.objectives.token_batches import constant, only_tokens, refuse_infinite, tokens

_EPSILON = 1e-8


def opo_advantages(rewards: ArrayT, lengths: object, num_generations: int) -> ArrayT:
    """Return each reward less its group's mean weighted by length: OPO's advantage.

    Hao et al. (2025, arXiv 2505.23585): of all baselines b of a group, sum(length * reward) / sum(length) makes the
    variance of the gradient least, where the squared norm of a completion's gradient grows with its length. It is not
    divided by a deviation, and meant for exactly on-policy training.

    Args:
        rewards: (B,) or any shape that holds them group by group; ``nan`` where there is no reward.
        lengths: Tokens of each completion, of the rewards' shape, 0 or more.
        num_generations: Completions a group, 1 or more.

    Returns:
        The rewards' shape and kind: 0 for a completion without a reward, and for a group of one.

    Raises:
        ObjectiveError: The completions make no whole groups, the shapes differ, a reward is infinite, or a length is
            negative or not finite.
    """
    xp, reward = arrays.floats(rewards=rewards)
    length = arrays.cast(arrays.numbers("lengths", lengths, reward), arrays.wide(reward).dtype)
    arrays.same_shape(rewards=reward, lengths=length)
    if bool((~xp.isfinite(length) | (length < 0)).any()):
        raise ObjectiveError(f"lengths={lengths!r}: expected numbers of tokens, 0 or more"[:200])
    values = _in_groups(arrays.wide(reward), num_generations)
    has_reward = _has_reward(values)
    zero = arrays.like(0.0, values)
    weight = xp.where(has_reward, _in_groups(length, num_generations), zero)
    total = weight.sum(axis=1, keepdims=True)
    filled = xp.where(has_reward, values, zero)
    baseline = (weight * filled).sum(axis=1, keepdims=True) / xp.where(total > 0, total, arrays.like(1.0, total))
    advantages = xp.where(has_reward & (total > 0), filled - baseline, zero)
    result: ArrayT = arrays.cast(advantages.reshape(*reward.shape), reward.dtype)
    return result


def reinforce_plus_plus_advantages(
    rewards: ArrayT,
    mask: object,
    *,
    kl: ArrayT | None = None,
    beta: float = 0.0,
    discount: float = 1.0,
    num_generations: int | None = None,
) -> ArrayT:
    """Return REINFORCE++'s advantage of each token: its return, normalized over all tokens of the batch.

    Hu et al. (2025, arXiv 2501.03262). The reward comes with the last token, and each token costs ``beta`` times its
    divergence; the return of a token is what follows from it on, discounted. It is then less the mean of all tokens'
    returns, over sqrt(variance + 1e-8) with the sample's variance, as in verl's ``reinforce_plus_plus``. With
    ``num_generations`` the group's mean is taken off the rewards first, REINFORCE++-baseline.

    Args:
        rewards: One a completion, (B,); ``nan`` for a completion without a reward.
        mask: (B, T), 1 on the tokens of the completion. Tokens between them, such as a tool's, are passed over.
        kl: The divergence from the reference of each token, (B, T), such as k1; needed if ``beta`` is not 0.
        beta: How much it costs, 0 or more.
        discount: From 0 to 1: what a reward one token later is worth.
        num_generations: Completions a group, 1 or more; ``None`` for no baseline of groups.

    Returns:
        (B, T) of the rewards' kind, for ``advantages`` of a loss: 0 where the mask is 0, and for a completion without a
        reward.

    Raises:
        ObjectiveError: Shapes do not fit, a setting is out of range, or a reward is infinite.
    """
    arrays.check_number("beta", beta, 0)
    arrays.check_number("discount", discount, 0, 1)
    if beta and kl is None:
        raise ObjectiveError(f"beta={beta!r} needs kl: the divergence of each token")
    xp, reward = arrays.floats(rewards=rewards)
    marks = arrays.numbers("mask", mask, reward)
    if reward.ndim != 1 or marks.ndim != 2 or marks.shape[0] != reward.shape[0]:
        shapes = f"rewards {tuple(reward.shape)}, mask {tuple(marks.shape)}"
        raise ObjectiveError(f"{shapes}: expected (completions,) and (completions, tokens)")
    values = arrays.wide(constant(reward))
    has_reward = _has_reward(values)
    if num_generations is not None:
        values = _less_group_mean(values, has_reward, num_generations)
    is_token = tokens(marks, arrays.cast(marks, values.dtype)) & has_reward[:, None]
    filled = xp.where(has_reward, values, arrays.like(0.0, values))
    returns = _returns(filled, is_token, _costs(kl, beta, is_token, values), discount)
    count = int(is_token.sum())
    centred = xp.where(is_token, returns - returns.sum() / max(count, 1), arrays.like(0.0, returns))
    variance = (centred**2).sum() / max(count - 1, 1)
    advantages: ArrayT = arrays.cast(centred / (variance + _EPSILON) ** 0.5, reward.dtype)
    return advantages


def _in_groups(values: Array, num_generations: int) -> Any:
    """Return what there is one of a completion as (groups, num_generations); refuse what makes no whole groups."""
    count = int(np.prod(values.shape))
    if not arrays.is_whole(num_generations, 1) or count % num_generations:
        raise ObjectiveError(f"{count} rewards make no whole groups of num_generations={num_generations!r}")
    return values.reshape(-1, int(num_generations))


def _has_reward(values: Array) -> Array:
    """Return which completions have a reward; refuse an infinite one."""
    xp = arrays.namespace(values)
    infinite = xp.isinf(values).reshape(-1)
    if bool(infinite.any()):
        raise ObjectiveError(
            f"completion {int(infinite.nonzero()[0][0])} has an infinite reward: expected a number or nan"
        )
    has_reward: Array = ~xp.isnan(values)
    return has_reward


def _less_group_mean(values: Array, has_reward: Array, num_generations: int) -> Array:
    """Return rewards, (B,), less the means of their groups' rewards."""
    xp = arrays.namespace(values)
    groups, is_counted = (_in_groups(column, num_generations) for column in (values, has_reward))
    zero = arrays.like(0.0, groups)
    count = arrays.cast(is_counted, groups.dtype).sum(axis=1, keepdims=True)
    mean = xp.where(is_counted, groups, zero).sum(axis=1, keepdims=True) / xp.where(count > 0, count, count + 1)
    centred: Array = (groups - mean).reshape(-1)
    return centred


def _costs(kl: object, beta: float, is_token: Array, like: Array) -> Array | None:
    """Return what each token costs, (B, T); ``None`` without divergences."""
    if kl is None:
        return None
    divergence = arrays.cast(arrays.numbers("kl", kl, like), like.dtype)
    arrays.same_shape(mask=is_token, kl=divergence)
    refuse_infinite("kl", divergence, is_token, "expected a divergence; mask a token without one")
    costs: Array = beta * only_tokens(constant(divergence), is_token)
    return costs


def _returns(rewards: Array, is_token: Array, costs: Array | None, discount: float) -> Any:
    """Return what follows from each token on, (B, T): the reward at the last token less the costs, discounted."""
    xp = arrays.namespace(rewards)
    running, columns = arrays.like(np.zeros(len(rewards)), rewards), []
    later = is_token[:, :0].any(axis=1)
    for index in reversed(range(is_token.shape[1])):
        here = is_token[:, index]
        earned = xp.where(here & ~later, rewards, arrays.like(0.0, rewards))
        if costs is not None:
            earned = earned - costs[:, index]
        running = xp.where(here, earned + discount * running, running)
        later = later | here
        columns.append(xp.where(here, running, arrays.like(0.0, running)))
    if not columns:
        return arrays.like(np.zeros(tuple(is_token.shape)), rewards)
    return np.stack(columns[::-1], axis=1) if xp is np else xp.stack(columns[::-1], dim=1)
