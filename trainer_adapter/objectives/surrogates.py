"""What a policy is trained to raise, for each token: the clipped surrogate of PPO, CISPO, SAPO and VESPO.

B counts completions, T the tokens of the longest one. Log-probabilities are those of the sampled tokens, (B, T); the
mask is 1 on a completion's tokens and 0 on its padding, which is not read. Each function returns an objective to be
maximized, (B, T); :func:`~trainer_adapter.objectives.grpo_loss` makes a loss of it. The formulas are those of
``GRPOTrainer._compute_loss`` of TRL 1.16.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rewardkit import ObjectiveError
from trainer_adapter.objectives import arrays
from trainer_adapter.objectives.arrays import Array, ArrayT
from trainer_adapter.objectives.token_batches import Level, TokenBatch, constant, refuse_infinite, token_batch

_SMALLEST_LOG = math.log(1e-8)
_LARGEST_LOG = 20.0


def clipped_surrogate(
    logps: ArrayT,
    old_logps: ArrayT | None,
    advantages: ArrayT,
    *,
    low: float = 0.2,
    high: float | None = None,
    delta: float | None = None,
    level: Level = "token",
    mask: object = None,
) -> ArrayT:
    """Return PPO's clipped objective of each token, min(ratio * advantage, clipped ratio * advantage): to be maximized.

    Schulman et al. (2017, arXiv 1707.06347, equation 7). The ratio exp(logps - old_logps) is clipped to
    [1 - low, 1 + high]; a ``high`` above ``low`` is DAPO's "clip-higher" (arXiv 2503.14476). With ``delta`` the ratio
    that is not clipped is at most delta, which bounds the loss where the advantage is negative (INTELLECT-2, arXiv
    2505.07291). With ``level="sequence"`` all tokens of a completion have one ratio, exp of the *mean* of
    logps - old_logps over its tokens: GSPO's (arXiv 2507.18071, equation 7). A ratio above exp(60) counts as exp(60),
    so that no gradient is ``nan``.

    Args:
        logps: The policy's log-probabilities, (B, T).
        old_logps: Those of the policy that sampled, (B, T). They are constants: no gradient flows to them. ``None`` if
            it is this very policy.
        advantages: One a completion, (B,), or one a token, (B, T).
        low: How far below 1 the ratio counts, from 0 to 1.
        high: How far above 1 it counts; ``low`` unless given.
        delta: The largest ratio where the advantage is negative, above 0; it has an effect above 1 + ``high``.
        level: Of what the ratio is.
        mask: (B, T), 1 on the tokens of the completion; all of them unless given.

    Returns:
        (B, T), 0 where the mask is 0.

    Raises:
        ObjectiveError: Shapes do not fit, or a setting is out of range.
    """
    batch = token_batch(logps, old_logps, advantages, mask)
    objective: ArrayT = clipped_objective(batch, low=low, high=high, delta=delta, level=level)
    return objective


def clipped_objective(batch: TokenBatch, *, low: float, high: float | None, delta: float | None, level: Level) -> Any:
    """Return the clipped objective of a batch that is checked; see :func:`clipped_surrogate`."""
    high = low if high is None else high
    arrays.check_number("low", low, 0, 1)
    arrays.check_number("high", high, 0)
    xp, worth, ratio = batch.xp, batch.advantages, batch.ratio(level)
    clipped = xp.clip(ratio, 1 - low, 1 + high)
    if delta is not None:
        arrays.check_number("delta", delta, 0, open_at=0)
        ratio = xp.clip(ratio, None, delta)
    return batch.result(xp.minimum(ratio * worth, clipped * worth))


def cispo_surrogate(
    logps: ArrayT,
    old_logps: ArrayT | None,
    advantages: ArrayT,
    *,
    high: float = 5.0,
    level: Level = "token",
    mask: object = None,
) -> ArrayT:
    """Return CISPO's objective of each token, min(ratio, high) * advantage * logps, with the gradient of logps alone.

    MiniMax-M1 (2025, arXiv 2506.13585): the weight is bounded in place of the objective, so that no
    token loses its gradient. ``high`` is the largest ratio itself, not its distance from 1; ScaleRL recommends 5
    (arXiv 2510.13786). TRL averages it as ``normalization="dapo"``.

    Args:
        logps, old_logps, advantages, level, mask: As for :func:`clipped_surrogate`.
        high: The largest weight, above 0.

    Returns:
        (B, T), 0 where the mask is 0.

    Raises:
        ObjectiveError: Shapes do not fit, or a setting is out of range.
    """
    arrays.check_number("high", high, 0, open_at=0)
    batch = token_batch(logps, old_logps, advantages, mask)
    weight = constant(batch.xp.clip(batch.ratio(level), None, high))
    objective: ArrayT = batch.result(weight * batch.advantages * batch.logps)
    return objective


def sapo_surrogate(
    logps: ArrayT,
    old_logps: ArrayT | None,
    advantages: ArrayT,
    *,
    positive: float = 1.0,
    negative: float = 1.05,
    level: Level = "token",
    mask: object = None,
) -> ArrayT:
    """Return SAPO's objective of each token, 4 / t * sigmoid(t * (ratio - 1)) * advantage: a soft gate, not a clip.

    Gao et al. (2025, arXiv 2511.20347). At a ratio of 1 the gradient is that of the ratio; it fades
    on both sides, the faster the higher the temperature t.

    Args:
        logps, old_logps, advantages, level, mask: As for :func:`clipped_surrogate`.
        positive: The temperature t where the advantage is positive, above 0.
        negative: That where it is negative or 0, above 0.

    Returns:
        (B, T), 0 where the mask is 0.

    Raises:
        ObjectiveError: Shapes do not fit, or a setting is out of range.
    """
    arrays.check_number("positive", positive, 0, open_at=0)
    arrays.check_number("negative", negative, 0, open_at=0)
    batch = token_batch(logps, old_logps, advantages, mask)
    worth = batch.advantages
    temperature = batch.xp.where(worth > 0, arrays.like(positive, worth), arrays.like(negative, worth))
    gate = arrays.sigmoid(temperature * (batch.ratio(level) - 1)) * 4 / temperature
    objective: ArrayT = batch.result(gate * worth)
    return objective


def vespo_surrogate(
    logps: ArrayT,
    old_logps: ArrayT | None,
    advantages: ArrayT,
    *,
    positive: tuple[float, float] = (2.0, 3.0),
    negative: tuple[float, float] = (3.0, 2.0),
    importance_ratio: object = None,
    mask: object = None,
) -> ArrayT:
    """Return VESPO's objective of each token, phi(w) * advantage * logps, with the gradient of logps alone.

    phi(w) = w^k * exp(lambda * (1 - w)), 1 at w = 1, where w is the ratio of the probabilities of the whole completion,
    exp of the *sum* of logps - old_logps over its tokens (arXiv 2602.10693). As TRL does, each token's log-ratio is
    held within ±20, and the sum between log(1e-8) and 20. TRL averages it as ``normalization="dapo"``.

    Args:
        logps, old_logps, advantages, mask: As for :func:`clipped_surrogate`.
        positive: k and lambda where the advantage is positive or 0, both 0 or more.
        negative: The same where it is negative.
        importance_ratio: One a token, (B, T), of :func:`~trainer_adapter.objectives.importance_ratio` at the level of
            tokens: w is multiplied by those of the completion. It is not to be a weight of the loss as well.

    Returns:
        (B, T), 0 where the mask is 0.

    Raises:
        ObjectiveError: Shapes do not fit, or a setting is out of range.
    """
    batch = token_batch(logps, old_logps, advantages, mask)
    xp, worth = batch.xp, batch.advantages
    away = xp.clip(constant(batch.log_ratio), -_LARGEST_LOG, _LARGEST_LOG)
    if importance_ratio is not None:
        away = away + _log_importance(importance_ratio, batch)
    log_weight = xp.clip(away.sum(axis=1, keepdims=True), _SMALLEST_LOG, _LARGEST_LOG)
    power, decay = (
        xp.where(worth >= 0, arrays.like(above, worth), arrays.like(below, worth))
        for above, below in zip(_gamma("positive", positive), _gamma("negative", negative), strict=True)
    )
    with np.errstate(over="ignore"):
        phi = xp.exp(decay + power * log_weight - decay * xp.exp(log_weight))
    phi = xp.where(xp.isfinite(phi), phi, arrays.like(0.0, phi))
    objective: ArrayT = batch.result(phi * worth * batch.logps)
    return objective


def _gamma(name: str, values: tuple[float, float]) -> tuple[float, float]:
    """Return k and lambda, checked; TRL takes a lambda of 0.0001 or more."""
    if not isinstance(values, tuple | list) or len(values) != 2:
        raise ObjectiveError(f"{name}={values!r}: expected k and lambda")
    for part, value in zip(("k", "lambda"), values, strict=True):
        arrays.check_number(f"{name} {part}", value, 0)
    return float(values[0]), max(float(values[1]), 1e-4)


def _log_importance(importance_ratio: object, batch: TokenBatch) -> Array:
    """Return the logarithms of the ratios, (B, T), held between log(1e-8) and 20; 0 where there is no token."""
    ratio = arrays.like(arrays.numbers("importance_ratio", importance_ratio, batch.logps), batch.logps)
    arrays.same_shape(logps=batch.logps, importance_ratio=ratio)
    refuse_infinite("importance_ratio", ratio, batch.is_token, "a token without a probability of the sampler has 1")
    ratio = batch.xp.where(batch.is_token, constant(ratio), arrays.like(1.0, ratio))
    bounded: Array = batch.xp.log(batch.xp.clip(ratio, math.exp(_SMALLEST_LOG), math.exp(_LARGEST_LOG)))
    return bounded
