"""Detectors of rewards that give the trainer nothing to learn from: flat groups, ceilings, constants, defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rewardkit.health.evidence import Evidence, extremes
from rewardkit.health.flag import Detection
from rewardkit.health.flat_groups import TOP, FlatShare, alone_words, flat_shares
from rewardkit.health.measures import (
    BaselineShare,
    by_group,
    lower_share,
    mean_bounds,
    mean_of,
    upper_share,
    without_nan,
)
from rewardkit.record.table import Floats, Whole
from rewardkit.shown.text import counted


def zero_variance(window: Evidence, baseline: Evidence | None) -> Detection | None:
    """Groups give no gradient, because all their completions have one reward.

    Formula: groups of two completions or more whose weighted rewards are all the same (TRL's ``frac_reward_zero_std``),
    over all such groups; split into groups where all are at the best reward seen, and where all are at the worst. Each
    of several rewards is split so by itself first, and where most groups are at neither, the advice is for the reward
    with most groups at its worst, because another lifts these off the lowest sum. Flagged at once above 0.8, because
    such a share is wasted whatever it was before; above 0.5 where it is also above the baseline's, or where the
    completions have no steps. Where no reward ever gave two scores, best and worst are the ends of their
    ``score_range``, of a composition those that its parts' ranges give it. Small groups are of one score by chance: in
    a run the share must also be 0.15 above what groups of this size would have if all prompts were alike, or 0.95.

    Source: TRL's metric; DAPO (arXiv 2503.14476) drops such groups; 0.5 is that of rewardspy.
    Limits: a sparse reward has such groups by design, so 0.5 alone is not enough in a run. Fewer than 8 groups (4
    without steps) say nothing.
    """
    evidence = _flat_evidence(window, baseline)
    if not evidence.is_flag:
        return None
    table, share, bound, before = window.table, evidence.share, evidence.bound, evidence.before
    parts = by_group(table.rewards, table.groups)
    able, flat = parts.counts > 1, evidence.flat
    good = window.share_of_best(baseline)
    if np.isnan(good).all():  # nothing varies: only what the rewards declare says how good their scores are
        good = window.share_of_declared()
    means = by_group(good, table.groups).means
    best, worst = (float((flat & mask[able]).mean()) for mask in (means >= TOP, means <= 1 - TOP))
    alone = flat_shares(table, window.ranges)
    message = f"{alone_words(alone)}{share:.0%} of groups give no gradient: "
    is_known = not np.isnan(means).all()
    message += f"in {best:.0%} all completions are best, in {worst:.0%} all worst" if is_known else _one_reward(window)
    rows = np.isin(parts.places, np.flatnonzero(parts.flat))
    action = _action(FlatShare(share, best, worst), alone) if is_known else _action_of_one_reward(window)
    old_share = None if before is None else before.share
    return Detection(share, bound, message, action, baseline=old_share, rows=rows)


class _FlatEvidence(NamedTuple):
    """Which groups of a window are flat, and what makes a flag of that."""

    flat: Any  # Of each group of two completions or more
    share: float  # Of these; `nan` without any
    bound: float  # The share above which a flag begins
    least: int  # Groups below which nothing is said
    needs_proof: bool  # Whether the share's lower bound must be above 0.5, too
    before: BaselineShare | None  # The share in the baseline

    @property
    def is_flag(self) -> bool:
        return self.share > self.bound and not self.are_too_few(self.flat)

    def are_too_few(self, flat: Any) -> bool:
        """Return whether such groups are too few for a flag, whatever their share is."""
        return len(flat) < self.least or (self.needs_proof and not lower_share(flat) > _STATIC)

    @property
    def enough(self) -> int | None:
        """How many groups like these would be a flag; ``None`` where 1,000 are too few."""
        for count in range(max(self.least, len(self.flat) + 1), 1001):
            flat = np.arange(count) < round(self.share * count)
            if float(flat.mean()) > self.bound and not self.are_too_few(flat):
                return count
        return None


_AT_ONCE, _STATIC = 0.8, 0.5  # The share of flat groups that is flagged at once, and the one with more evidence


def _flat_evidence(window: Evidence, baseline: Evidence | None) -> _FlatEvidence:
    parts = by_group(window.table.rewards, window.table.groups)
    able = parts.counts > 1
    flat, before = parts.flat[able], _flat_share(baseline)
    if not window.timed or not len(flat):
        return _FlatEvidence(flat, mean_of(flat), _STATIC, 8 if window.timed else 4, False, before)
    abnormal = before is not None and lower_share(flat) > before.high
    chance = _chance_of_flat(window.table.rewards, float(parts.counts[able].mean()))
    bound = max(_STATIC if abnormal else _AT_ONCE, min(chance + 0.15, 0.95))
    return _FlatEvidence(flat, float(flat.mean()), bound, 8, not abnormal, before)


def unflagged_share(window: Evidence, baseline: Evidence | None) -> str:
    """Return why ``zero_variance`` makes no flag of a window most of whose groups are flat; ``""`` for all others."""
    with np.errstate(over="ignore", invalid="ignore"):  # scores of 1e300
        evidence = _flat_evidence(window, baseline)
    if not evidence.share > _STATIC or evidence.is_flag:
        return ""
    count = len(evidence.flat)
    message = (
        f"{int(evidence.flat.sum()):,} of {counted(count, 'group')} {'gives' if count == 1 else 'give'} no gradient"
    )
    if evidence.share <= evidence.bound:
        size = "in groups of this size " if evidence.bound > _AT_ONCE else ""
        return f"{message}, and {size}a flag begins above {evidence.bound:.0%}"
    enough = "" if evidence.enough is None else f": {evidence.enough:,} groups like them would be enough"
    return f"{message}, too few groups for a flag{enough}"


def _chance_of_flat(rewards: Floats, size: float) -> float:
    """Return the share of groups of a size that would have one reward, were all prompts equally hard."""
    numbers = without_nan(rewards)
    _, counts = np.unique(np.round(numbers, 9), return_counts=True)
    return float(((counts / max(len(numbers), 1)) ** size).sum())


def _one_reward(window: Evidence) -> str:
    """Return what is said where nothing varies and the range of a reward is not known, and of which reward."""
    message = "all completions have one reward, and whether it is the worst or the best is not known"
    causes = [
        f"{' and '.join(parts)} {'declare' if len(parts) > 1 else 'declares'} no score_range"
        if parts
        else f"the ranges of its parts do not bound {reward}"
        for reward, parts in _undeclared(window).items()
    ]
    return f"{message}: {'; '.join(dict.fromkeys(causes))}" if causes else message


def _action_of_one_reward(window: Evidence) -> str:
    """Return what to do there: who is to declare a range, and to score what must be right and what must be wrong."""
    undeclared = _undeclared(window)
    names = list(dict.fromkeys(part for parts in undeclared.values() for part in parts))
    steps = [f"declare the score_range of {' and of '.join(names)}"] if names else []
    steps += [f"bound {reward} by clip({reward}, lowest, highest)" for reward, parts in undeclared.items() if not parts]
    action = ", and ".join([*steps, _GRADIENT_ACTIONS["constant"]])
    return f"{action[:1].upper()}{action[1:]}"


def _undeclared(window: Evidence) -> dict[str, Sequence[str]]:
    return {reward: parts for reward, parts in window.undeclared.items() if reward in window.paid}


_GRADIENT_ACTIONS = {
    "best": "The prompts are too easy by now: filter out those that are always solved, or add harder ones.",
    "worst": "The prompts are too hard or the reward too strict: look at the rows, give part of the reward for part of"
    " the way, take easier prompts first, or sample more completions a prompt.",
    "mixed": "Keep prompts that are sometimes solved, and drop those that always or never are.",
    "constant": "score completions that must be right and some that must be wrong: does the reward read the completion"
    " at all?",
    "between": "Whole groups have one middling reward: look whether the reward reads the completion at all.",
}


def _action(total: FlatShare, alone: Mapping[str, FlatShare]) -> str:
    """Return what to do; where the sum is neither best nor worst, for the reward that most often is."""
    causes = [(own.worst, own.best, name) for name, own in alone.items() if _mostly(own) != "between"]
    if _mostly(total) != "between" or not causes:
        return _GRADIENT_ACTIONS[_mostly(total)]
    name = max(causes)[2]
    return f"For {name}: {_GRADIENT_ACTIONS[_mostly(alone[name])]}"


def _mostly(flat: FlatShare) -> str:
    if flat.best + flat.worst < flat.share / 2 or not flat.share:
        return "between"
    return "best" if flat.best > 3 * flat.worst else "worst" if flat.worst > 3 * flat.best else "mixed"


def _flat_share(baseline: Evidence | None) -> BaselineShare | None:
    """Return the share of flat groups in a baseline; ``None`` with fewer than 8 groups."""
    if baseline is None:
        return None
    parts = by_group(baseline.table.rewards, baseline.table.groups)
    flat = parts.flat[parts.counts > 1]
    return BaselineShare(float(flat.mean()), upper_share(flat)) if len(flat) >= 8 else None


def ceiling(window: Evidence, baseline: Evidence | None) -> Detection | None:
    """Nearly all completions have the best reward that this run gave.

    Formula: completions at 0.99 or more of the way from the lowest to the highest weighted reward that was seen, over
    all. Flagged at once where the share is above 0.8 by its lower bound: what cannot rise teaches nothing, whether the
    run learned it or the task was too easy from the start.

    Source: rewardspy (share of rewards at 0.99 of the maximum, 0.8).
    Limits: the highest reward is the highest that was seen. Of a reward that punishes rare faults this holds from the
    start, and is true. A reward that is one constant is left to ``constant``.
    """
    good = window.share_of_best(baseline)
    at_top = np.where(np.isnan(good), np.nan, good >= TOP)
    groups = by_group(at_top, window.table.groups)
    share = mean_of(at_top)
    if (groups.counts > 0).sum() < 8 or not groups.low > 0.8:
        return None
    message = f"{share:.0%} of completions have the best reward that this run gave"
    action = "Stop here, or go on with harder prompts or a stricter reward; what is left moves little."
    return Detection(share, 0.8, message, action, rows=good >= TOP)


def std_collapse(window: Evidence, baseline: Evidence) -> Detection | None:
    """The rewards inside groups hardly differ any more.

    Formula: mean over groups of the weighted reward's standard deviation (on the scale from worst to best), over the
    same in the baseline. Flagged below 0.2, where the bounds of the two do not meet.

    Source: rewardspy (recent over baseline, 0.2).
    Limits: needs a baseline. A run at its ceiling collapses as well; ``ceiling`` then says so alone.
    """
    now, before = (
        without_nan(by_group(evidence.share_of_best(other), evidence.table.groups).stds)
        for evidence, other in ((window, baseline), (baseline, window))
    )
    old = mean_of(before)
    if min(len(now), len(before)) < 8 or not old > 0:
        return None
    ratio = mean_of(now) / old
    if ratio >= 0.2 or mean_bounds(now).high >= mean_bounds(before).low:
        return None
    message = f"the spread of rewards inside groups is {ratio:.0%} of what it was"
    action = "Read the completions of one prompt beside each other: are they one text by now? Raise the temperature or"
    action += " the KL penalty, or give a reward that tells good from better."
    return Detection(mean_of(now), 0.2 * old, message, action, baseline=old)


def dominance(window: Evidence, baseline: Evidence | None, reward: str) -> Detection | None:
    """One reward's scale drowns the others.

    Formula: in groups where this reward and another both differ, the standard deviation of this one's weighted scores
    over the sum of all rewards' standard deviations. Flagged at once where the mean is above 0.9 by its lower bound,
    with the weights and without them: a small weight given on purpose is no fault, and scales need no baseline.

    Source: rewardspy and reward-scope (share of the mean, 0.9 and 0.8); the standard deviation stands in for the mean,
    for a constant moves no advantage.
    Limits: a trainer that normalizes each reward by itself (GDPO) has no such problem. A reward that differs in fewer
    than half of the groups in which others do, such as a rare penalty, drowns nothing.
    """
    if reward not in window.paid or len(window.paid) < 2:
        return None
    table = window.table
    stds = {name: np.nan_to_num(by_group(table.scores[name], table.groups).stds) for name in window.paid}
    shares = []
    for weights in (window.weights, dict.fromkeys(window.paid, 1.0)):
        spread = abs(weights[reward]) * stds[reward]
        other_spread = sum(
            (abs(weights[name]) * stds[name] for name in window.paid if name != reward), np.zeros(len(spread))
        )
        differs = (spread > 1e-9) & (other_spread > 1e-9)
        if differs.sum() < max(8, 0.1 * len(differs), 0.5 * (other_spread > 1e-9).sum()):
            return None
        shares.append(spread[differs] / (spread + other_spread)[differs])
    if min(mean_bounds(part).low for part in shares) <= 0.9:
        return None
    share = mean_of(shares[0])  # with the weights
    message = f"{reward} makes {share:.1%} of the spread inside groups; what the other rewards say is drowned"
    action = f"Bring the rewards to one scale: divide {reward} by its range, or give it a smaller weight. "
    action += f"Where {reward} is to decide and the others only break ties, this is no fault."
    return Detection(share, 0.9, message, action)


def prompt_scale(window: Evidence, baseline: Evidence | None) -> Detection | None:
    """The scores of some prompts are on a scale that drowns all others.

    Formula: of each paid reward by itself, and of each prompt, the second largest distance of a weighted score from the
    median of its group, which a single outlier does not move. Flagged at once where it is 10 times its median over the
    prompts whose scores differ, of fewer than half of the prompts, and these have 4 of 5 completions that are as far
    away, over 8 such prompts or more.

    Source: own; Dr. GRPO (arXiv 2503.20783) on how prompts of unlike scales share a gradient.
    Limits: a trainer that divides by each group's standard deviation (GRPO) does not drown the others, but one that
    divides by the batch's, or not at all, does. A penalty that hits single completions is no scale.
    """
    return next(
        (detection for reward in window.paid if (detection := _prompt_scale_of(window, reward)) is not None), None
    )


def _prompt_scale_of(window: Evidence, reward: str) -> Detection | None:
    table = window.table
    with np.errstate(over="ignore"):
        scores = table.scores[reward] * window.weights[reward]
    scored = np.flatnonzero(np.isfinite(scores))
    distances = _from_median(scores[scored], table.groups[scored])
    prompts, places = np.unique(table.prompts[scored], return_inverse=True)
    order = np.lexsort((-distances, places))
    starts = np.flatnonzero(np.r_[True, np.diff(places[order]) > 0]) if len(order) else order
    sizes = np.diff(np.r_[starts, len(order)])
    seconds = distances[order][starts[sizes > 1] + 1]
    prompts = prompts[sizes > 1]
    spread = seconds[seconds > 1e-9]
    if len(spread) < 8:
        return None
    usual = float(np.median(spread))
    large = prompts[seconds >= 10 * usual]
    far = table.prompts[scored][distances >= 10 * usual]
    if not len(large) or np.isin(far, large).mean() < 0.8:
        return None
    most = float(seconds.max()) / usual
    message = f"the scores of {counted(len(large), 'prompt')} of {len(prompts):,} differ {most:,.0f} times as much as"
    message += " those of the others, and drown them"
    action = "Bring the scores of all prompts to one scale, such as the share of a row's tests that pass; or let the"
    action += ' trainer scale by group (scale_rewards: "group").'
    return Detection(most, 10.0, message, action, rows=np.isin(table.prompts, large), reward=reward)


def _from_median(rewards: Floats, groups: Whole) -> Floats:
    """Return how far each reward is from the median of its group."""
    numbers, places = np.unique(groups, return_inverse=True)
    order = np.lexsort((rewards, places))
    starts = np.searchsorted(places[order], np.arange(len(numbers) + 1))
    low, high = (starts[:-1] + starts[1:] - 1) // 2, (starts[:-1] + starts[1:]) // 2
    with np.errstate(over="ignore"):
        medians = rewards[order][low] / 2 + rewards[order][high] / 2
        distances: Floats = np.minimum(np.abs(rewards - medians[places]), np.finfo(float).max)
    return distances


def constant(window: Evidence, baseline: Evidence | None, reward: str) -> Detection | None:
    """All scores of a reward are one number.

    Formula: the reward's own scores, without defaults that stand in for failures, all differ by less than 1e-9, over
    100 scores and 8 groups (8 scores without steps). Flagged at once where the reward never gave another score since
    its version began; where it did, only if the number is not the highest it gave, because a component that is learned
    to the end is no fault, and only if its share in the baseline, and among the steps before, makes chance impossible
    (below 1e-6): a bonus that few completions earn is often 0 for all.

    Where the number is the worst of the reward's ``score_range``, the advice is also for prompts that are too hard.

    Source: own; a constant reward has the advantage 0 in every group.
    Limits: a reward of weight 0 is not looked at. A sparse reward is constant until it first pays. Where a reward has
    only been 0 while another pays, 1,000 scores are waited for, because a penalty that is seldom due is 0 too.
    """
    scores = _own_scores(window, reward)
    minimum = 100 if window.timed else 8
    if reward not in window.paid or len(scores) < minimum or np.ptp(scores) > 1e-9:
        return None
    value = float(scores[0])
    old_scores = np.empty(0) if baseline is None else _own_scores(baseline, reward)
    if len(old_scores) and np.ptp(old_scores) > 1e-9:
        share = float(np.isclose(old_scores, value).mean())
        _, best = extremes([baseline, window] if baseline else [window], reward)
        if value >= best or share ** len(scores) > 1e-6:
            return None
    elif window.timed and not _is_suspect(window, baseline, reward, value):
        return None
    message = f"all {len(scores):,} scores are {value:g}"
    action = "Score some completions that must be right and some that must be wrong (rewardkit test, rewardkit audit)."
    low, high = window.ranges.get(reward, (np.nan, np.nan))[:: -1 if window.weights[reward] < 0 else 1]
    if value == low != high:
        message += ", the worst of its score_range"
        action = f"{action} If these score right: {_GRADIENT_ACTIONS['worst']}"
    return Detection(value, value, message, action, rows=~np.isnan(window.table.scores[reward]))


def _own_scores(evidence: Evidence, reward: str) -> Any:
    """Return a reward's scores without the defaults that stand in for failures."""
    table = evidence.table
    if reward not in table.scores:
        return np.empty(0)
    return without_nan(np.where(table.status[reward] == "s", table.scores[reward], np.nan))


def _is_suspect(window: Evidence, baseline: Evidence | None, reward: str, value: float) -> bool:
    """Return whether a reward that is one number now never was another, or was above it too often for chance."""
    series = without_nan(window.series.get(reward, np.empty(0)))
    same = np.isclose(series, value)
    if len(series) and not same.all():
        steps = len(np.unique(window.table.steps))
        before = same[:-steps] if len(same) > steps else same
        return value < float(series.max()) and float(before.mean()) ** steps < 1e-6
    parts = [window] if baseline is None else [baseline, window]
    count = sum(len(_own_scores(part, reward)) for part in parts)
    others = (by_group(window.table.scores[name], window.table.groups) for name in window.paid if name != reward)
    others_pay = any((parts.stds > 1e-9).any() for parts in others)
    return count >= 1000 or value != 0 or not others_pay


def defaults(window: Evidence, baseline: Evidence | None, reward: str) -> Detection | None:
    """Scores are defaults that stand in for failures.

    Formula: failed calls that have a score all the same, over calls that were scored or failed. Flagged at once where
    the share is above 0.05 by its lower bound: a made-up score moves advantages, and does so whatever was before.

    Source: own; training dashboards show the same share.
    Limits: a default that was chosen on purpose, such as 0 for code that does not end, is flagged too.
    """
    table = window.table
    failed = (table.status[reward] == "f") & ~np.isnan(table.scores[reward])
    is_call = (table.status[reward] == "f") | (table.status[reward] == "s")
    shares = by_group(np.where(is_call, failed, np.nan), table.groups)
    if is_call.sum() < 20 or not shares.low > 0.05:
        return None
    share = float(failed.sum() / is_call.sum())
    message = f"{share:.0%} of the scores are a default that stands in for a failed call"
    action = f"Mend the failures, or see which completions cause them: {window.errors_of(reward)}."
    return Detection(share, 0.05, message, action, rows=failed)
