"""Which tokens of a batch count in a loss, and how much: corrections for what another policy or engine sampled.

B counts completions, T the tokens of the longest one. Log-probabilities are those of the sampled tokens, (B, T); the
mask is 1 on a completion's tokens and 0 on its padding, which is not read. What is returned is a factor: the product of
several is the ``weights`` of :func:`~trainer_adapter.objectives.grpo_loss`. The formulas are those of TRL 1.16.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from rewardkit import ObjectiveError
from trainer_adapter.objectives import arrays
from trainer_adapter.objectives.arrays import Array, ArrayT
from trainer_adapter.objectives.token_batches import (
    constant,
    only_tokens,
    per_completion,
    ratio_of,
    refuse_infinite,
    row_mean,
    tokens,
)

RatioMode: TypeAlias = Literal["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
"""TRL's ``vllm_importance_sampling_mode``; see :func:`importance_ratio`."""

_MODES = get_args(RatioMode)


def off_policy_mask(
    logps: ArrayT, sampling_logps: ArrayT, advantages: ArrayT, threshold: float, *, mask: object = None
) -> ArrayT:
    """Return which completions count: all but bad ones that the policy has moved far from.

    Off-policy sequence masking (DeepSeek-V3.2, arXiv 2512.02556, equation 9): a completion with a negative advantage
    is left out where the mean over its tokens of sampling_logps - logps is above the threshold. ``nan`` is a token
    whose probability the sampler did not tell: it counts in the mean as 0.

    Args:
        logps: The policy's log-probabilities, (B, T).
        sampling_logps: Those of the sampler, (B, T): the engine's where there are any, otherwise the old policy's.
        advantages: One a completion, (B,), or one a token, (B, T).
        threshold: Nats a token, above 0, such as 0.5: TRL's ``off_policy_mask_threshold``.
        mask: (B, T), 1 on the tokens of the completion; all of them unless given.

    Returns:
        Booleans, (B, 1), or (B, T) for advantages of tokens.

    Raises:
        ObjectiveError: Shapes do not fit, or a setting is out of range.
    """
    arrays.check_number("threshold", threshold, 0, open_at=0)
    _, new, sampled, advantage = arrays.floats(logps=logps, sampling_logps=sampling_logps, advantages=advantages)
    away = _log_ratio(new, sampled, mask)
    worth = per_completion("advantages", advantage, new)
    counts: ArrayT = (worth >= 0) | (-row_mean(away, tokens(mask, new)) <= threshold)
    return counts


def importance_ratio(
    old_logps: ArrayT,
    sampling_logps: ArrayT,
    *,
    mode: RatioMode = "sequence_mask",
    low: float | None = None,
    high: float | None = 3.0,
    mask: object = None,
) -> ArrayT:
    """Return the ratio of the trained policy's probabilities to those of the engine that sampled, bounded.

    Truncated importance sampling (Yao et al., 2025, "Your efficient RL framework secretly brings you off-policy RL
    training"). ``"token_..."`` has a ratio for each token, exp(old_logps - sampling_logps); ``"sequence_..."`` one for
    each completion, exp of the *sum* over its tokens. ``"..._truncate"`` holds the ratio between ``low`` and ``high``;
    ``"..._mask"`` makes it 0 outside. ``nan`` is a token whose probability the engine did not tell: its ratio is 1. A
    ratio above exp(60) counts as exp(60).

    Args:
        old_logps: Log-probabilities of the policy as the trainer computes them, (B, T).
        sampling_logps: Those that the engine told, (B, T).
        mode: TRL's ``vllm_importance_sampling_mode``.
        low: The lower bound, 0 or more; none unless given.
        high: The upper bound, above ``low``; ``None`` for none. 3 as in TRL.
        mask: (B, T), 1 on the tokens of the completion; all of them unless given.

    Returns:
        (B, T), 1 where the mask is 0, or (B, 1) for the modes of sequences. Constants, without a gradient.

    Raises:
        ObjectiveError: Shapes do not fit, a setting is out of range, or a truncation has no bound.
    """
    if mode not in _MODES:
        raise ObjectiveError(f"mode={mode!r}: expected one of {', '.join(_MODES)}")
    _check_bounds(mode, low, high)
    xp, old, sampled = arrays.floats(old_logps=old_logps, sampling_logps=sampling_logps)
    away = _log_ratio(old, sampled, mask, "old_logps")
    if mode.startswith("sequence"):
        away = away.sum(axis=1, keepdims=True)
    ratio = ratio_of(away)
    if mode.endswith("truncate"):
        ratio = xp.clip(ratio, low, high)
    else:
        floor, ceiling = 0.0 if low is None else low, float("inf") if high is None else high
        ratio = xp.where((ratio < floor) | (ratio > ceiling), arrays.like(0.0, ratio), ratio)
    bounded: ArrayT = arrays.cast(ratio, old.dtype)
    return bounded


def top_entropy_mask(entropies: ArrayT, share: float, *, mask: object = None) -> ArrayT:
    """Return which tokens count: the share of those of the highest entropy.

    Wang et al. (2025, "Beyond the 80/20 rule", arXiv 2506.01939), who take a share of 0.2. A token counts if its
    entropy is at least the quantile 1 - share of all tokens of this batch, between two values by linear interpolation.
    With several processes TRL takes the quantile over the tokens of all of them.

    Args:
        entropies: Of the distribution that each token was sampled from, (B, T), nats, 0 or more.
        share: From 0, the highest entropy alone, to 1, all tokens: TRL's ``top_entropy_quantile``.
        mask: (B, T), 1 on the tokens of the completion; all of them unless given.

    Returns:
        Booleans, (B, T); false where the mask is 0.

    Raises:
        ObjectiveError: Shapes do not fit, or the share is out of range.
    """
    arrays.check_number("share", share, 0, 1)
    xp, entropy = arrays.floats(entropies=entropies)
    if entropy.ndim != 2:
        raise ObjectiveError(f"entropies of shape {tuple(entropy.shape)}: expected (completions, tokens)")
    is_token = tokens(mask, entropy)
    refuse_infinite("entropies", entropy, is_token, "expected an entropy; mask a token without one")
    counts: ArrayT = is_token
    if bool(is_token.any()):
        values = arrays.wide(constant(entropy))
        counts = is_token & (values >= xp.quantile(values[is_token], 1 - share))
    return counts


def _log_ratio(logps: Array, sampling_logps: Array, mask: object, name: str = "logps") -> Any:
    """Return logps - sampling_logps of the tokens, (B, T), constants; 0 elsewhere and where the sampler told none."""
    if logps.ndim != 2:
        raise ObjectiveError(f"{name} of shape {tuple(logps.shape)}: expected (completions, tokens)")
    arrays.same_shape(**{name: logps, "sampling_logps": sampling_logps})
    is_token = tokens(mask, logps)
    is_scored = is_token & (sampling_logps == sampling_logps)  # nan differs from itself
    refuse_infinite(name, logps, is_scored)
    refuse_infinite("sampling_logps", sampling_logps, is_scored)
    return only_tokens(constant(logps), is_scored) - only_tokens(constant(sampling_logps), is_scored)


def _check_bounds(mode: str, low: float | None, high: float | None) -> None:
    """Refuse bounds that are out of range or out of order, and a truncation without any."""
    if low is not None:
        arrays.check_number("low", low, 0)
    if high is not None:
        arrays.check_number("high", high, 0 if low is None else low, open_at=0 if low is None else low)
    if mode.endswith("truncate") and low is None and high is None:
        raise ObjectiveError(f"mode={mode!r} needs low or high: there is nothing to truncate to")
