"""Losses of reward models that learn from preferences: pairs, rankings, and what DPO learns without a reward model.

A score is a real number, the model's logit for one completion. P counts pairs or prompts, K the completions of a
prompt. Scores are numpy arrays or torch tensors; the result is of the same kind, dtype and device, and in torch it has
a gradient. Scores of half precision are computed with in float32.
"""

from __future__ import annotations

from rewardkit import ObjectiveError
from trainer_adapter.objectives import arrays
from trainer_adapter.objectives.arrays import ArrayT, Reduction


def bradley_terry_probability(chosen: ArrayT, rejected: ArrayT) -> ArrayT:
    """Return the probability that the first of each pair is preferred: sigmoid(chosen - rejected).

    The model of Bradley and Terry (1952, Biometrika 39, 324-345) with strengths exp(score).

    Args:
        chosen: Scores, any shape.
        rejected: Scores, the same shape.

    Raises:
        ObjectiveError: The shapes differ.
    """
    _, won, lost = arrays.floats(chosen=chosen, rejected=rejected)
    arrays.same_shape(chosen=won, rejected=lost)
    probability: ArrayT = arrays.cast(arrays.sigmoid(arrays.wide(won) - arrays.wide(lost)), won.dtype)
    return probability


def bradley_terry_loss(
    chosen: ArrayT,
    rejected: ArrayT,
    *,
    margin: ArrayT | float | None = None,
    center: float = 0.0,
    reduction: Reduction = "mean",
) -> ArrayT:
    """Return the negative log-likelihood of the preferences, softplus(-(chosen - rejected - margin)), as a scalar.

    Ouyang et al. (2022, arXiv 2203.02155, equation 1); the margin is that of Touvron et al. (2023, arXiv 2307.09288,
    equation 2), the centring that of Eisenstein et al. (2023, arXiv 2312.09244), as in TRL's ``RewardTrainer``
    (``margin`` column, ``center_rewards_coefficient``).

    Args:
        chosen: Scores of the preferred completions, (P,).
        rejected: Scores of the others, (P,).
        margin: By how much the preferred one is to be better, (P,) or one number; subtracted from the difference.
        center: Adds ``center`` times the mean of (chosen + rejected)², which fixes the scores' free constant at 0.
        reduction: ``"mean"`` over the pairs, or ``"sum"``, which is 0 for an empty shard.

    Raises:
        ObjectiveError: The shapes differ, ``center`` is below 0, or there is no pair to average over.
    """
    arrays.check_number("center", center, 0)
    _, won, lost = arrays.floats(chosen=chosen, rejected=rejected)
    arrays.same_shape(chosen=won, rejected=lost)
    dtype, won, lost = won.dtype, arrays.wide(won), arrays.wide(lost)
    difference = won - lost
    if margin is not None:
        by = arrays.cast(arrays.numbers("margin", margin, won), won.dtype)
        if by.ndim:
            arrays.same_shape(margin=by, chosen=won)
        difference = difference - by
    terms = arrays.softplus(-difference)
    if center:
        terms = terms + center * (won + lost) ** 2
    loss: ArrayT = arrays.reduce(terms, reduction, dtype, what="pairs")
    return loss


def plackett_luce_loss(scores: ArrayT, ranks: ArrayT, *, reduction: Reduction = "mean") -> ArrayT:
    """Return the negative log-likelihood of whole rankings, a scalar: the mean over the prompts.

    Plackett (1975, Applied Statistics 24, 193-202) and Luce (1959): the best is chosen among all, the next among the
    rest, and so on. Each stage is softplus(logsumexp(scores of the worse) - score); with K = 2 it is
    :func:`bradley_terry_loss`.

    Members of one rank say nothing of each other: neither stands among the other's worse. A prompt whose members all
    share a rank, or that has one member, adds 0 and no gradient.

    Args:
        scores: (P, K).
        ranks: (P, K), 0 is best, integers or floats, ties allowed; only their order counts. ``nan`` marks a place
            without a completion, whose score is not read.
        reduction: ``"mean"`` over the P prompts, or ``"sum"``.

    Raises:
        ObjectiveError: The shapes differ or are not (P, K), or there is no prompt to average over.
    """
    xp, score = arrays.floats(scores=scores)
    rank = arrays.numbers("ranks", ranks, score)
    arrays.same_shape(scores=score, ranks=rank)
    if score.ndim != 2:
        raise ObjectiveError(f"scores and ranks of shape {tuple(score.shape)}: expected (prompts, completions)")
    dtype, score = score.dtype, arrays.wide(score)
    score = xp.where(xp.isnan(rank), arrays.like(0.0, score), score)
    worse = rank[:, :, None] < rank[:, None, :]
    beats = worse.any(-1)
    rivals = xp.where(worse, score[:, None, :], arrays.like(-float("inf"), score))
    pool = arrays.logsumexp(xp.where(beats[:, :, None], rivals, arrays.like(0.0, score)))
    terms = xp.where(beats, arrays.softplus(pool - score), arrays.like(0.0, score)).sum(-1)
    loss: ArrayT = arrays.reduce(terms, reduction, dtype, what="prompts")
    return loss


def all_pairs_loss(scores: ArrayT, ranks: ArrayT, prompt_index: object, *, reduction: Reduction = "mean") -> ArrayT:
    """Return Bradley-Terry's loss over all pairs of each prompt, each prompt weighing the same, as a scalar.

    Ouyang et al. (2022, arXiv 2203.02155, equation 1): the mean over a prompt's C(K, 2) pairs, then over the prompts,
    so that a prompt with many completions does not outweigh the others. Two completions of one rank are no pair; a
    prompt without pairs is left out of the mean.

    Args:
        scores: (N,), the completions of all prompts.
        ranks: (N,), 0 is best, integers or floats; only their order inside a prompt counts, ``nan`` is in no pair.
        prompt_index: (N,), which prompt each completion is of, integers in any order.
        reduction: ``"mean"`` over the prompts with pairs, or ``"sum"`` over them.

    Raises:
        ObjectiveError: The shapes differ or are not (N,), or no prompt has a pair.
    """
    xp, score = arrays.floats(scores=scores)
    rank, prompt = arrays.numbers("ranks", ranks, score), arrays.numbers("prompt_index", prompt_index, score)
    arrays.same_shape(scores=score, ranks=rank, prompt_index=prompt)
    if score.ndim != 1:
        raise ObjectiveError(f"scores, ranks and prompt_index of shape {tuple(score.shape)}: expected (completions,)")
    prompts, index = xp.unique(prompt, return_inverse=True)
    better = (prompt[:, None] == prompt[None, :]) & (rank[:, None] < rank[None, :])
    won, lost = xp.where(better)
    dtype, score = score.dtype, arrays.wide(score)
    pairs = arrays.segment_sum(xp.ones_like(score[won]), index[won], len(prompts))
    terms = arrays.softplus(score[lost] - score[won]) / pairs[index[won]]
    loss: ArrayT = arrays.reduce(terms, reduction, dtype, weight=int((pairs > 0).sum()), what="pairs")
    return loss


def dpo_implicit_reward(logps: ArrayT, ref_logps: ArrayT, beta: float) -> ArrayT:
    """Return the reward that a policy trained by DPO stands for: beta * (logps - ref_logps).

    Rafailov et al. (2023, arXiv 2305.18290, section 4). It is known up to a constant of the prompt: only
    differences inside one prompt have a meaning.

    Args:
        logps: The policy's log-probabilities of whole completions, summed over their tokens, any shape.
        ref_logps: The reference model's, the same shape.
        beta: The strength of the KL penalty in DPO, above 0.

    Raises:
        ObjectiveError: The shapes differ, or beta is not above 0.
    """
    arrays.check_number("beta", beta, 0, open_at=0)
    _, policy, reference = arrays.floats(logps=logps, ref_logps=ref_logps)
    arrays.same_shape(logps=policy, ref_logps=reference)
    reward: ArrayT = arrays.cast(beta * (arrays.wide(policy) - arrays.wide(reference)), policy.dtype)
    return reward
