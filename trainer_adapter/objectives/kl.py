"""Estimators of the divergence between a policy and its reference, token by token.

Log-probabilities are natural logarithms of the probability that a model gave the token that was sampled, 0 or less, of
any shape; the tokens must be samples of the *policy*. They are numpy arrays or torch tensors, and so is the result.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from rewardkit import ObjectiveError
from trainer_adapter.objectives import arrays
from trainer_adapter.objectives.arrays import ArrayT


def kl_estimate(logps: ArrayT, ref_logps: ArrayT, kind: Literal["k1", "k2", "k3"] = "k3") -> ArrayT:
    """Return an estimate of KL(policy || reference) for each token, of the shape of the log-probabilities.

    With d = ref_logps - logps: ``k1`` is -d, unbiased and often negative; ``k2`` is d²/2, biased and of a small
    variance; ``k3`` is exp(d) - d - 1, unbiased, never negative, and what GRPO penalizes (Schulman, "Approximating KL
    Divergence", 2020; arXiv 2402.03300, equation 4). The gradient of k2's mean is that of the divergence; those of the
    means of k1 (0) and k3 (that of the reverse divergence) are not (arXiv 2506.09477).

    Args:
        logps: The policy's log-probabilities of the sampled tokens.
        ref_logps: The reference model's of the same tokens, the same shape.
        kind: Which estimator.

    Returns:
        Nats a token. k3 is ``inf`` where d is above 88 in float32 (709 in float64), as its formula is.

    Raises:
        ObjectiveError: The shapes differ, or there is no such estimator.
    """
    xp, policy, reference = arrays.floats(logps=logps, ref_logps=ref_logps)
    arrays.same_shape(logps=policy, ref_logps=reference)
    away = arrays.wide(reference) - arrays.wide(policy)
    if kind == "k1":
        estimate = -away
    elif kind == "k2":
        estimate = 0.5 * away**2
    elif kind == "k3":
        with np.errstate(over="ignore"):
            estimate = xp.expm1(away) - away
    else:
        raise ObjectiveError(f"kind={kind!r}: expected 'k1', 'k2' or 'k3'")
    result: ArrayT = arrays.cast(estimate, policy.dtype)
    return result
