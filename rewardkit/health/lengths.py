"""Detectors of what happens to the completions' lengths."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewardkit.health.divergence import move_of, worth_of
from rewardkit.health.evidence import CLIPPED, Evidence, by_step, lengths
from rewardkit.health.flag import Detection
from rewardkit.health.measures import (
    BaselineShare,
    Correlation,
    by_group,
    change,
    highest,
    inside_groups,
    lower_share,
    without_nan,
)
from rewardkit.record.table import Floats

PAID_GROWTH = 3.0  # A growth for which a reward may not be what pays
PAID_LENGTH = 0.4  # Correlation inside groups from which it pays
VERDICTS = 3  # Different scores of a check, at most
_SIDE = 5  # Steps on either side of a place that are compared
_LEAST_SHARES = 5  # Groups, or entries of TRL's log


def length_drift(window: Evidence, baseline: Evidence) -> Detection | None:
    """Completions grow or shrink and nothing is gained by it.

    Formula: the window's mean length against the baseline's step means. Flagged where it is over 3 of their standard
    deviations away (and 4 standard errors), and 1.5 times as long, while the weighted reward (from worst to best) rose
    by less than 0.2 standard deviations of single completions, or no paid reward that has room (its mean is below 0.95
    of its range) by 0.1 or 3 standard errors; 3 times as long, whatever is gained, while inside groups a paid reward of
    more than three different scores goes with length (r of 0.4, surely 0.25); or under a quarter as long, whatever the
    reward does. Growth from one step to the next does not count, where 0.6 of it lies within two steps: rows of a
    further stage, and a limit that is raised, make it.

    Source: rewardspy (z of the mean length, 3); completions that shrink to nothing: arXiv 2507.08794.
    Limits: growth that the reward pays for is left to ``length_reward``; longer reasoning that earns more is learning.
    Lengths are in tokens, or in characters where tokens are not recorded.
    """
    before, after = (without_nan(by_step(lengths(evidence), evidence.table)) for evidence in (baseline, window))
    if len(before) < 5 or len(after) < 3:
        return None
    moved = change(before, after)
    distance = (moved.after - moved.before) / max(float(before.std(ddof=1)), 1e-9)
    ratio = moved.after / max(moved.before, 1e-9)  # empty completions at first are no division by 0
    longer = distance > 3 and moved.errors > 4
    payer = _payer_of_length(window) if longer and ratio > PAID_GROWTH else None
    grown = longer and ratio > 1.5 and (payer is not None or not _has_gained(window, baseline))
    grown = grown and ratio / np.exp(_sudden_growth(window.lengths_by_step)) > 1.5
    shrunk = distance < -3 and moved.errors < -4 and ratio < 0.25
    if not (grown or shrunk):
        return None
    message = f"completions are {ratio:.2g} times as long as at first ({moved.before:,.0f}, now {moved.after:,.0f})"
    if grown:
        message += ", and the reward did not rise" if payer is None else f", and inside groups {payer} pays for length"
    action = (
        "Read the longest completions for padding and repetition; a soft punishment of length keeps them short."
        if grown
        else "Read the shortest completions: does the reward, or its judge, pay for nothing?"
    )
    rows = highest(lengths(window) * (1 if grown else -1))
    return Detection(distance, 3.0 if grown else -3.0, message, action, baseline=moved.before, rows=rows)


def _sudden_growth(means: Floats) -> float:
    """Return by how much a series grew from one step to the next, as the logarithm of its ratio."""
    series = np.log1p(means)
    total, last = 0.0, -_SIDE
    for at in range(3, len(series) - 2):
        before, after = series[max(0, at - _SIDE) : at], series[at : at + _SIDE]
        change = float(after.mean() - before.mean())  # a step that is not known makes it nan, which is no growth
        steep = max(float(series[end + 1] - series[end - 1]) for end in (at - 1, at))
        if at - last >= _SIDE and change >= 0.2 and steep >= 0.6 * change and _is_steepest(series, at):
            total, last = total + change, at
    return total


def _is_steepest(series: Floats, at: int) -> bool:
    """Return whether a series rises more at a place than at the places behind it."""
    rises = np.diff(series[at - 1 : at + 3])
    return bool(rises[0] >= np.nanmax(rises))


def _payer_of_length(window: Evidence) -> str | None:
    """Return a paid reward of more than three different scores that goes with length inside groups."""
    for reward in window.paid:
        tie = _tie_of_length(window, reward)
        if (
            tie is not None
            and tie.r >= PAID_LENGTH
            and tie.low >= PAID_LENGTH - 0.15
            and not _has_few_scores(window, reward)
        ):
            return reward
    return None


def _has_gained(window: Evidence, baseline: Evidence) -> bool:
    """Return whether the total rose, and of several rewards one that is not full."""
    total = move_of(baseline.share_of_best(window), baseline, window.share_of_best(baseline), window)
    if total.deviations < 0.2:
        return False
    rest = [reward for reward in window.paid if _has_room(window, baseline, reward)]
    moves = [move_of(worth_of(baseline, reward), baseline, worth_of(window, reward), window) for reward in rest]
    return not moves or any(move.deviations >= 0.1 or move.shift.errors >= 3 for move in moves)


def _has_room(window: Evidence, baseline: Evidence, reward: str) -> bool:
    """Return whether a reward that was there before is below 0.95 of its range."""
    if reward not in baseline.table.scores:
        return False
    scores = without_nan(worth_of(window, reward))
    every = np.concatenate([scores, without_nan(worth_of(baseline, reward))])
    return bool(len(scores)) and float(scores.mean()) < float(every.min()) + 0.95 * float(np.ptp(every))


def length_reward(window: Evidence, baseline: Evidence | None, reward: str | None) -> Detection | None:
    """Inside a group, the longer completion has the higher reward.

    Formula: Pearson's correlation of length and a paid reward, by its weight's sign, or else of length and the weighted
    reward, each less its group's mean, with its lower bound (Fisher's z). Flagged at once above 0.8, where length
    nearly is the reward; above 0.5 where it is also 0.2 above the baseline's, with bounds apart, or where the
    completions have no steps. Beside others, a reward of up to three different scores is not looked at by itself: what
    a check of a form asks for makes completions longer.

    Source: own rule; Singhal et al. (arXiv 2310.03716) measure how much of RLHF's gain is length.
    Limits: where right answers need more words the two go together and nothing is wrong; hence the baseline. A reward
    that is meant to pay for length is flagged.
    """
    if reward is not None and (reward not in window.paid or len(window.paid) < 2 or _has_few_scores(window, reward)):
        return None
    now, before = _tie_of_length(window, reward), None if baseline is None else _tie_of_length(baseline, reward)
    if now is None:
        return None
    risen = before is not None and now.low > before.high and now.r > before.r + 0.2
    bound = 0.5 if risen or not window.timed else 0.8
    if now.low <= bound - 0.1 or now.r <= bound:
        return None
    message = (
        f"inside a group length and {reward or 'reward'} go together (r = {now.r:.2f}): the longer completion wins"
    )
    action = "Compare the longest and the shortest completion of a few groups; then score what is said, not how much."
    rows = highest(lengths(window))
    return Detection(now.r, bound, message, action, baseline=None if before is None else before.r, rows=rows)


def _has_few_scores(window: Evidence, reward: str) -> bool:
    return len(np.unique(np.round(without_nan(window.table.scores[reward]), 6))) <= VERDICTS


def _tie_of_length(evidence: Evidence, reward: str | None) -> Correlation | None:
    """Return the correlation of length and a reward inside groups, of the weighted reward where none is named."""
    if reward is not None and reward not in evidence.table.scores:
        return None
    worth = evidence.table.rewards if reward is None else worth_of(evidence, reward)
    return inside_groups(lengths(evidence), worth, evidence.table.groups)


def clipped(window: Evidence, baseline: Evidence | None) -> Detection | None:
    """Completions are truncated at the token limit.

    Formula: truncated completions over those where it is known (else the mean of TRL's
    ``completions/clipped_ratio``). Flagged at once above 0.5 by its lower bound, because then most answers never come;
    above 0.2 where it is also above the baseline's by bounds that do not meet.

    Source: TRL's metric; DAPO (arXiv 2503.14476) on what truncated completions do to a reward.
    Limits: needs five groups or log entries; without the record's mark or TRL's metric nothing is known.
    """
    truncation = _truncation(window)
    if len(without_nan(truncation.shares)) < _LEAST_SHARES:
        return None
    low = lower_share(truncation.shares, truncation.size)
    before = None if baseline is None else _baseline_share(baseline)
    bound = 0.2 if before is not None and low > before.high else 0.5
    if not low > bound:
        return None
    share = float(np.nanmean(truncation.shares))
    message = f"{share:.0%} of completions are truncated at the token limit"
    action = "Raise max_completion_length, or punish length softly; truncated completions have no answer to score."
    before_share = None if before is None else before.share
    return Detection(share, bound, message, action, baseline=before_share, rows=truncation.rows)


class _Truncation(NamedTuple):
    """How much of a window is truncated."""

    shares: Floats  # Of each group, or of each entry of TRL's log where no completion has the mark
    size: float  # Completions behind a share
    rows: NDArray[np.bool_]  # Which completions are truncated; none where only TRL's log tells


def _truncation(window: Evidence) -> _Truncation:
    """Return the shares of truncated completions, by the completions' marks or else by TRL's metric."""
    groups = by_group(window.table.truncated, window.table.groups)
    if len(without_nan(groups.means)):
        return _Truncation(groups.means, groups.size, window.table.truncated == 1)
    shares = np.array(window.metrics.get(CLIPPED, ()), dtype=float)
    return _Truncation(shares, len(window.table) / max(len(shares), 1), np.zeros(len(window.table), dtype=bool))


def _baseline_share(baseline: Evidence) -> BaselineShare | None:
    """Return the baseline's share of truncated completions; ``None`` where no completion has the mark."""
    if not len(without_nan(baseline.table.truncated)):
        return None
    groups = by_group(baseline.table.truncated, baseline.table.groups)
    return BaselineShare(float(np.nanmean(groups.means)), groups.high)
