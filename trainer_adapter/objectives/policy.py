"""The objective of GRPO and of its kin: a surrogate averaged over tokens in one of several ways, and KL.

B counts completions, T the tokens of the longest one. Log-probabilities are those of the sampled tokens, (B, T); the
mask is 1 on a completion's tokens and 0 on its padding, whose log-probabilities are not read, whatever they are. All
are numpy arrays or torch tensors, and so is the result, with a gradient in torch. Half precision is computed with in
float32. The formulas are those of ``GRPOTrainer._compute_loss`` of TRL 1.16.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from rewardkit import ObjectiveError
from trainer_adapter.objectives import arrays
from trainer_adapter.objectives.arrays import Array, ArrayT
from trainer_adapter.objectives.surrogates import clipped_objective
from trainer_adapter.objectives.token_batches import (
    Level,
    TokenBatch,
    constant,
    only_tokens,
    per_completion,
    refuse_infinite,
    row_mean,
    token_batch,
)

Normalization: TypeAlias = Literal["grpo", "bnpo", "dr_grpo", "dapo", "luspo"]
"""How the terms of all tokens become one number; see :func:`grpo_loss`."""


def kl_estimate(logps: ArrayT, ref_logps: ArrayT, kind: Literal["k1", "k2", "k3"] = "k3") -> ArrayT:
    """Return an estimate of KL(policy || reference) for each token, of the shape of the log-probabilities.

    With d = ref_logps - logps: ``k1`` is -d, unbiased and often negative; ``k2`` is d²/2, biased and of a small
    variance; ``k3`` is exp(d) - d - 1, unbiased, never negative, and what GRPO penalizes (Schulman, "Approximating KL
    Divergence", 2020; arXiv 2402.03300, equation 4). The gradient of k2's mean is that of the divergence; those of the
    means of k1 (0) and k3 (that of the reverse divergence) are not (arXiv 2506.09477).

    Args:
        logps: The policy's log-probabilities of the sampled tokens, which must be samples of the *policy*.
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


def grpo_loss(
    logps: ArrayT,
    old_logps: ArrayT | None,
    advantages: ArrayT,
    *,
    mask: object = None,
    ref_logps: ArrayT | None = None,
    beta: float = 0.0,
    low: float = 0.2,
    high: float | None = None,
    delta: float | None = None,
    level: Level = "token",
    surrogate: ArrayT | None = None,
    weights: object = None,
    correct_kl: bool = False,
    normalization: Normalization = "grpo",
    max_completion_length: int | None = None,
    tokens_in_batch: float | None = None,
) -> ArrayT:
    """Return GRPO's loss, a scalar to be minimized: minus the clipped surrogate plus ``beta`` times k3, averaged.

    Shao et al. (2024, arXiv 2402.03300, equation 3). What is averaged over, as TRL's ``loss_type``:

    - ``"grpo"``: each completion's tokens, then the completions: a token of a long completion weighs less.
    - ``"bnpo"``: all tokens of this batch.
    - ``"dr_grpo"``: the constant B * ``max_completion_length`` (arXiv 2503.20783), free of a bias by length.
    - ``"dapo"``: ``tokens_in_batch``, all tokens of the whole optimization step (arXiv 2503.14476).
    - ``"luspo"``: the completions, each with the *sum* over its tokens (arXiv 2602.05261); takes ``level="sequence"``.

    Args:
        logps: The policy's log-probabilities, (B, T).
        old_logps: Those of the policy that sampled, (B, T); ``None`` if it is this very policy.
        advantages: One a completion, (B,), or one a token, (B, T).
        mask: (B, T), 1 on the tokens of the completion; all of them unless given. A completion without a token adds 0
            and is counted by ``"grpo"``, ``"dr_grpo"`` and ``"luspo"``.
        ref_logps: The reference model's log-probabilities, (B, T), needed if ``beta`` is not 0.
        beta: How much the divergence from the reference model costs, 0 or more.
        low, high, delta, level: As for :func:`~trainer_adapter.objectives.clipped_surrogate`.
        surrogate: Another objective of each token, (B, T), such as that of ``cispo_surrogate``.
        weights: What the surrogate of each completion, (B,), or token, (B, T), is multiplied by, constants: a product
            of :mod:`~trainer_adapter.objectives.corrections`. They are no part of the divergence, nor of the count.
        correct_kl: Whether k3 is multiplied by the ratio, whose gradient counts: at the level of tokens the gradient is
            then that of the reverse divergence (DeepSeek-V3.2, arXiv 2512.02556), TRL's ``use_bias_correction_kl``.
        normalization: What is averaged over.
        max_completion_length: Tokens, for ``"dr_grpo"``; T unless given, which is right only if all batches have it.
        tokens_in_batch: Tokens, for ``"dapo"``; those of this batch unless given. With several processes, the tokens
            of all of them over their number, as the gradients are averaged.

    Raises:
        ObjectiveError: Shapes do not fit, a setting is out of range, or there is no completion.
    """
    _check_penalty(beta, ref_logps)
    batch = token_batch(logps, old_logps, advantages, mask)
    objective = _objective(surrogate, batch, low, high, delta, level)
    terms = -_weighted(objective, weights, batch)
    if beta:
        terms = terms + beta * _divergence(ref_logps, batch) * (batch.ratio(level) if correct_kl else 1.0)
    mean = _average(terms, batch.is_token, normalization, max_completion_length, tokens_in_batch)
    loss: ArrayT = arrays.cast(mean, batch.dtype)
    return loss


def _check_penalty(beta: float, ref_logps: object) -> None:
    """Refuse a divergence's weight below 0, or one without a model to diverge from."""
    arrays.check_number("beta", beta, 0)
    if beta and ref_logps is None:
        raise ObjectiveError(f"beta={beta!r} needs ref_logps: a divergence is measured from a reference model")


def _objective(
    surrogate: object, batch: TokenBatch, low: float, high: float | None, delta: float | None, level: Level
) -> object:
    """Return the surrogate, the clipped one where none is given; refuse settings of that one beside another."""
    if surrogate is None:
        return clipped_objective(batch, low=low, high=high, delta=delta, level=level)
    if (low, high, delta) != (0.2, None, None):
        raise ObjectiveError("low, high and delta are the clipped surrogate's: leave them out where one is given")
    return surrogate


def _weighted(surrogate: object, weights: object, batch: TokenBatch) -> Array:
    """Return the surrogate of each token times its weight, 0 where there is no token."""
    objective = arrays.numbers("surrogate", surrogate, batch.logps)
    arrays.same_shape(logps=batch.logps, surrogate=objective)
    refuse_infinite("surrogate", objective, batch.is_token, "expected a number")
    terms: Array = only_tokens(objective, batch.is_token)
    if weights is None:
        return terms
    factors = per_completion("weights", constant(arrays.numbers("weights", weights, batch.logps)), batch.logps)
    factors = arrays.cast(factors, batch.logps.dtype)
    refuse_infinite("weights", factors, batch.is_token, "expected a number")
    weighted: Array = batch.xp.where(batch.is_token, factors, arrays.like(0.0, factors)) * terms
    return weighted


def _divergence(ref_logps: object, batch: TokenBatch) -> Any:
    """Return k3 of each token, 0 for padding."""
    reference = arrays.cast(arrays.numbers("ref_logps", ref_logps, batch.logps), batch.logps.dtype)
    arrays.same_shape(logps=batch.logps, ref_logps=reference)
    refuse_infinite("ref_logps", reference, batch.is_token)
    return kl_estimate(batch.logps, constant(only_tokens(reference, batch.is_token)))


def _average(terms: Array, is_token: Array, normalization: str, longest: int | None, tokens: float | None) -> Any:
    """Return the mean of the terms, (B, T), by a normalization; they are 0 where there is no token."""
    if not terms.shape[0]:
        raise ObjectiveError("no completions: a loss needs one or more")
    if normalization == "grpo":
        return row_mean(terms, is_token)[:, 0].mean()
    if normalization == "luspo":
        return terms.sum(axis=1).mean()
    if normalization == "bnpo":
        return terms.sum() / max(int(is_token.sum()), 1)
    if normalization == "dr_grpo":
        length = terms.shape[1] if longest is None else longest
        arrays.check_number("max_completion_length", length, 1)
        return terms.sum() / (terms.shape[0] * length)
    if normalization == "dapo":
        count = max(int(is_token.sum()), 1) if tokens is None else tokens
        arrays.check_number("tokens_in_batch", count, 0, open_at=0)
        return terms.sum() / count
    raise ObjectiveError(f"normalization={normalization!r}: expected 'grpo', 'bnpo', 'dr_grpo', 'dapo' or 'luspo'")
