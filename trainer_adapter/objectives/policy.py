"""The objective of GRPO and of its kin: the clipped surrogate, the ways of averaging it over tokens, and KL.

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


Level: TypeAlias = Literal["token", "sequence"]
"""Of what the ratio of probabilities is: of each token (GRPO), or of the whole completion (GSPO)."""
Normalization: TypeAlias = Literal["grpo", "bnpo", "dr_grpo", "dapo"]
"""How the terms of all tokens become one number; see :func:`grpo_loss`."""

_LARGEST_LOG_RATIO = 60.0
_MASKED = "expected a log-probability; mask a token without one"


def clipped_surrogate(
    logps: ArrayT,
    old_logps: ArrayT,
    advantages: ArrayT,
    *,
    low: float = 0.2,
    high: float | None = None,
    level: Level = "token",
    mask: object = None,
) -> ArrayT:
    """Return PPO's clipped objective of each token, min(ratio * advantage, clipped ratio * advantage): to be maximized.

    Schulman et al. (2017, arXiv 1707.06347, equation 7). The ratio exp(logps - old_logps) is clipped to
    [1 - low, 1 + high]; a ``high`` above ``low`` is DAPO's "clip-higher" (arXiv 2503.14476). With ``level="sequence"``
    all tokens of a completion have one ratio, exp of the *mean* of logps - old_logps over its tokens: GSPO's (arXiv
    2507.18071, equation 7). A ratio above exp(60) counts as exp(60), so that no gradient is ``nan``.

    Args:
        logps: The policy's log-probabilities, (B, T).
        old_logps: Those of the policy that sampled, (B, T). They are constants: no gradient flows to them.
        advantages: One a completion, (B,), or one a token, (B, T).
        low: How far below 1 the ratio counts, from 0 to 1.
        high: How far above 1 it counts; ``low`` unless given.
        level: Of what the ratio is.
        mask: (B, T), 1 on the tokens of the completion; all of them unless given.

    Returns:
        (B, T), 0 where the mask is 0.

    Raises:
        ObjectiveError: Shapes do not fit, or a setting is out of range.
    """
    high = low if high is None else high
    arrays.check_number("low", low, 0, 1)
    arrays.check_number("high", high, 0)
    if level not in ("token", "sequence"):
        raise ObjectiveError(f"level={level!r}: expected 'token' or 'sequence'")
    xp, new, old, advantage = arrays.floats(logps=logps, old_logps=old_logps, advantages=advantages)
    is_token, advantage = _check_batch(new, old, advantage, mask)
    away = xp.where(is_token, arrays.wide(new) - _constant(arrays.wide(old)), arrays.like(0.0, arrays.wide(new)))
    if level == "sequence":
        away = _row_mean(away, is_token)
    ratio = xp.exp(xp.clip(away, None, _LARGEST_LOG_RATIO))
    worth = arrays.wide(_constant(advantage))
    surrogate = xp.minimum(ratio * worth, xp.clip(ratio, 1 - low, 1 + high) * worth)
    objective: ArrayT = arrays.cast(xp.where(is_token, surrogate, arrays.like(0.0, surrogate)), new.dtype)
    return objective


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
    level: Level = "token",
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

    Args:
        logps: The policy's log-probabilities, (B, T).
        old_logps: Those of the policy that sampled, (B, T); ``None`` if it is this very policy, so that each ratio is
            1 and only its gradient counts.
        advantages: One a completion, (B,), or one a token, (B, T).
        mask: (B, T), 1 on the tokens of the completion; all of them unless given. A completion without a token adds 0
            and is counted by ``"grpo"`` and ``"dr_grpo"``.
        ref_logps: The reference model's log-probabilities, (B, T), needed if ``beta`` is not 0.
        beta: How much the divergence from the reference model costs, 0 or more.
        low, high, level: As for :func:`clipped_surrogate`.
        normalization: What is averaged over.
        max_completion_length: Tokens, for ``"dr_grpo"``; T unless given, which is right only if all batches have it.
        tokens_in_batch: Tokens, for ``"dapo"``; those of this batch unless given. With several processes, the tokens
            of all of them over their number, as the gradients are averaged.

    Raises:
        ObjectiveError: Shapes do not fit, a setting is out of range, or there is no completion.
    """
    xp, new, advantage = arrays.floats(logps=logps, advantages=advantages)
    arrays.check_number("beta", beta, 0)
    if beta and ref_logps is None:
        raise ObjectiveError(f"beta={beta!r} needs ref_logps: a divergence is measured from a reference model")
    old = _constant(new) if old_logps is None else old_logps
    surrogate = clipped_surrogate(new, old, advantage, low=low, high=high, level=level, mask=mask)
    terms = -arrays.wide(surrogate)
    is_token = _tokens(mask, new)
    if beta:
        reference = arrays.cast(arrays.numbers("ref_logps", ref_logps, new), new.dtype)
        arrays.same_shape(logps=new, ref_logps=reference)
        _refuse_infinite("ref_logps", reference, is_token, _MASKED)
        zero = arrays.like(0.0, new)
        penalty = kl_estimate(xp.where(is_token, new, zero), xp.where(is_token, _constant(reference), zero))
        terms = terms + beta * arrays.wide(penalty)
    mean = _average(terms, is_token, normalization, max_completion_length, tokens_in_batch)
    loss: ArrayT = arrays.cast(mean, new.dtype)
    return loss


def _average(terms: Array, is_token: Array, normalization: str, longest: int | None, tokens: float | None) -> Any:
    """Return the mean of the terms, (B, T), by a normalization; they are 0 where there is no token."""
    if not terms.shape[0]:
        raise ObjectiveError("no completions: a loss needs one or more")
    if normalization == "grpo":
        return _row_mean(terms, is_token)[:, 0].mean()
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
    raise ObjectiveError(f"normalization={normalization!r}: expected 'grpo', 'bnpo', 'dr_grpo' or 'dapo'")


def _check_batch(new: Array, old: Array, advantage: Array, mask: object) -> tuple[Any, Any]:
    """Check a batch; return where its tokens are, (B, T), and its advantages as (B, 1) or (B, T)."""
    if new.ndim != 2:
        raise ObjectiveError(f"logps of shape {tuple(new.shape)}: expected (completions, tokens)")
    arrays.same_shape(logps=new, old_logps=old)
    rows = new.shape[0]
    if tuple(advantage.shape) not in ((rows,), (rows, 1), tuple(new.shape)):
        raise ObjectiveError(f"advantages of shape {tuple(advantage.shape)}: expected ({rows},) or {tuple(new.shape)}")
    is_token = _tokens(mask, new)
    advantage = advantage if advantage.ndim == 2 else advantage[:, None]
    _refuse_infinite("advantages", advantage, is_token, "a completion without a reward has 0")
    _refuse_infinite("logps", new, is_token, _MASKED)
    _refuse_infinite("old_logps", old, is_token, _MASKED)
    return is_token, advantage


def _refuse_infinite(name: str, values: Array, is_token: Array, fix: str) -> None:
    """Refuse a value that is not finite where it would be read: one of them makes the whole loss ``nan``."""
    bad = ~arrays.namespace(values).isfinite(values) & is_token
    if bool(bad.any()):
        row, token = divmod(int(arrays.cast(bad, "int8").reshape(-1).argmax()), is_token.shape[1])
        is_one_a_row = values.shape != is_token.shape
        at, value = (f"{row}", values[row, 0]) if is_one_a_row else (f"{row}, {token}", values[row, token])
        raise ObjectiveError(f"{name}[{at}] is {value.item()!r}, not finite: {fix}")


def _tokens(mask: object, logps: Array) -> Any:
    """Return where there is a token, as booleans: everywhere without a mask."""
    if mask is None:
        return arrays.namespace(logps).ones_like(logps) == 1
    marks = arrays.numbers("mask", mask, logps)
    arrays.same_shape(logps=logps, mask=marks)
    if not bool(((marks == 0) | (marks == 1)).all()):
        raise ObjectiveError("mask: expected 1 on the tokens of a completion and 0 on its padding")
    return marks == 1


def _row_mean(values: Array, is_token: Array) -> Any:
    """Return the mean over the tokens of each row, (B, 1); 0 for a row without tokens."""
    count = is_token.sum(axis=1, keepdims=True)
    return values.sum(axis=1, keepdims=True) / arrays.namespace(values).where(count > 0, count, count + 1)


def _constant(values: Array) -> Any:
    return values if arrays.namespace(values) is np else values[...].detach()
