"""Detectors of rewards that part: two that are opposed, one that falls while the total rises, a judge that drifts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rewardkit.health.evidence import Evidence, by_step
from rewardkit.health.flag import Detection
from rewardkit.health.measures import Correlation, Shift, change, highest, inside_groups, mean_of, without_nan
from rewardkit.record.table import Floats, Mask

OPPOSED = -0.5  # Correlation inside groups below which two paid rewards oppose each other
VERDICTS = 3  # Different scores of a check, at most; a judge has more
STILL = 0.15  # Standard deviations of single scores within which a check stands still
DRIFT = 0.5  # Standard deviations of its scores by which a judge that agreed with the check rises
DRIFT_APART = 1.0  # The same of a judge that measures something else
AGREED = 0.2  # Correlation inside groups from which a judge agreed with a check


def conflict(window: Evidence, baseline: Evidence | None, reward: str) -> Detection | None:
    """Two paid rewards work against each other.

    Formula: Pearson's correlation of the two rewards' scores, by their weights' signs and each less its group's mean.
    Flagged at once below -0.5, where its upper bound (Fisher's z) is below -0.4: what one pays the other takes away.
    Flagged also where it is above 0.2 in the baseline and below -0.2 in the window, with bounds on their side of 0.

    Source: own.
    Limits: each pair is told once, under the reward that comes first. Aims that are at odds on purpose, such as a right
    answer and a short one, are flagged where they all but cancel out.
    """
    if reward not in window.paid:
        return None
    for other in window.paid[window.paid.index(reward) + 1 :]:
        now = _agreement(window, reward, other)
        if now is None:
            continue
        before = _agreement(baseline, reward, other) if baseline is not None else None
        apart = np.abs(window.table.scores[reward] - window.table.scores[other])
        if before is not None and min(before.r, -now.r) > 0.2 and before.low > 0 > now.high:
            message = f"{reward} and {other} went together (r = {before.r:.2f}) and now fight (r = {now.r:.2f})"
            action = f"Read completions that {reward} pays and {other} does not: one of the two is being gamed."
            return Detection(now.r, -0.2, message, action, baseline=before.r, rows=highest(apart))
        if now.r < OPPOSED and now.high < OPPOSED + 0.1:
            message = f"inside groups {reward} and {other} oppose each other (r = {now.r:.2f}): one pays what the other"
            message += " does not"
            action = (
                f"Decide which of them counts: lower the weight of the other, or pay it only where {reward} is earned."
            )
            old = None if before is None else before.r
            return Detection(now.r, OPPOSED, message, action, baseline=old, rows=highest(apart))
    return None


def _agreement(evidence: Evidence, reward: str, other: str) -> Correlation | None:
    """Return the correlation of two rewards inside groups, by their weights' signs; ``None`` where it is not known."""
    scores = evidence.table.scores
    if reward not in scores or other not in scores:
        return None
    return inside_groups(worth_of(evidence, reward), worth_of(evidence, other), evidence.table.groups)


def worth_of(evidence: Evidence, reward: str) -> Floats:
    """Return a reward's scores, turned round under a weight below 0."""
    worth: Floats = evidence.table.scores[reward] * (-1.0 if evidence.weights.get(reward, 0.0) < 0 else 1.0)
    return worth


class Move(NamedTuple):
    """How a reward moved from the baseline to the window."""

    shift: Shift  # Its step means
    deviations: float  # The same in standard deviations of the baseline's single scores; 0 where these do not differ

    @property
    def falls(self) -> bool:
        return self.shift.errors <= -4 and self.deviations <= -0.2

    @property
    def rises(self) -> bool:
        return self.shift.errors >= 4 and self.deviations >= 0.2


def move_of(before: Floats, baseline: Evidence, after: Floats, window: Evidence) -> Move:
    shift = change(by_step(before, baseline.table), by_step(after, window.table))
    spread = float(without_nan(before).std()) if len(without_nan(before)) else 0.0
    return Move(shift, (shift.after - shift.before) / spread if spread > 0 else 0.0)


def _move_of_total(window: Evidence, baseline: Evidence) -> Move:
    """Return how the weighted reward moved, on the scale from worst to best."""
    return window.cached(
        "move of total",
        lambda: move_of(baseline.share_of_best(window), baseline, window.share_of_best(baseline), window),
    )


def held_out_falls(window: Evidence, baseline: Evidence, reward: str) -> Detection | None:
    """The reward rises while a reward of weight 0, which the trainer does not see, falls.

    Formula: the step means of the weighted reward (on the scale from worst to best) and of the held-out reward, in
    baseline and window. Flagged where the first rise and the second fall, each by 4 standard errors (Welch) and by 0.2
    standard deviations of single completions.

    Source: Gao et al. (arXiv 2210.10760): the gold reward falls behind while the proxy rises.
    Limits: needs a reward of weight 0 that measures what is wanted. A held-out reward that costs the model length or
    style on purpose falls too.
    """
    if window.weights.get(reward, 1.0) != 0 or reward not in baseline.table.scores:
        return None
    fall = move_of(baseline.table.scores[reward], baseline, window.table.scores[reward], window)
    if not fall.falls or not _move_of_total(window, baseline).rises:
        return None
    course = f"from {fall.shift.before:.3g} to {fall.shift.after:.3g}"
    message = f"{reward}, of weight 0, falls {course} while the paid reward rises"
    action = (
        f"Read completions with a high reward and a low {reward}; the paid rewards no longer measure what is meant."
    )
    gap = np.nan_to_num(window.share_of_best(baseline)) - np.nan_to_num(window.table.scores[reward])
    return Detection(
        fall.deviations, -0.2, message, action, baseline=mean_of(baseline.table.scores[reward]), rows=highest(gap)
    )


def reward_falls(window: Evidence, baseline: Evidence, reward: str) -> Detection | None:
    """A paid reward falls while the total rises: the policy gives it up for another.

    Formula: the step means of the reward, by its weight's sign, and of the weighted reward (on the scale from worst to
    best), in baseline and window. Flagged where the first falls and the second rises, each by 4 standard errors (Welch)
    and by 0.2 standard deviations of single completions, and the first by 0.3.

    Source: own, as held_out_falls; rewards that are added up are traded off against each other.
    Limits: a reward that is traded on purpose, such as one for brevity while longer reasoning is learned, falls too.
    """
    if reward not in window.paid or reward not in baseline.table.scores or len(window.paid) < 2:
        return None
    fall = move_of(worth_of(baseline, reward), baseline, worth_of(window, reward), window)
    if not fall.falls or fall.deviations > -0.3 or not _move_of_total(window, baseline).rises:
        return None
    means = [mean_of(part.table.scores[reward]) for part in (baseline, window)]
    message = f"{reward} goes from {means[0]:.3g} to {means[1]:.3g} and pays less, while the total rises"
    action = (
        f"Read completions with a high total and a low {reward}; if it matters, raise its weight or make it a gate."
    )
    gap = np.nan_to_num(window.share_of_best(baseline)) - _ranks(worth_of(window, reward))
    return Detection(fall.deviations, -0.3, message, action, baseline=means[0], rows=highest(gap))


def _ranks(values: Floats) -> Floats:
    """Return where each value stands among all, from 0 to 1; 1 where it is not known."""
    order: Floats = np.searchsorted(np.sort(without_nan(values)), values) / max(len(values), 1)
    return np.where(np.isnan(values), 1.0, order)


def judge_drift(window: Evidence, baseline: Evidence, reward: str) -> Detection | None:
    """A judge pays ever more for answers that are no better, by a check of the same completions.

    Formula: a judge is a paid reward with more than three different scores, a check any other with two or three. The
    means of the judge's scores by its weight's sign, of completions with one and the same verdict of the check, and the
    mean of the verdicts, in baseline and window. Flagged where the check moved by less than 0.15 standard deviations
    and has room (its mean is below 0.9 of its range), and the judge rose under the check's lowest verdict by 0.5
    standard deviations of its scores there and by 4 standard errors of a step's mean (Welch), if it agreed with the
    check inside groups in the baseline (r above 0.2, and its bound above 0); by 1 if it did not. Not where another
    check rose that the judge agrees with.

    Source: own; Gao et al. (arXiv 2210.10760), whose proxy rises while the gold reward does not.
    Limits: a judge of style may rise by right while answers stay as they are; read the rows. A check that itself is
    gamed hides the drift.
    """
    if reward not in window.paid or reward not in baseline.table.scores or _is_check(window, baseline, reward):
        return None
    checks = [name for name in window.table.scores if name != reward and _is_check(window, baseline, name)]
    if any(_explains(window, baseline, reward, check) for check in checks):
        return None
    for check in checks:
        if not _stands_still(window, baseline, check):
            continue
        lowest = min(float(without_nan(part.table.scores[check]).min()) for part in (baseline, window))
        worth = [np.where(_has(part, check, lowest), worth_of(part, reward), np.nan) for part in (baseline, window)]
        rise = move_of(worth[0], baseline, worth[1], window)
        before = _agreement(baseline, reward, check)
        bound = DRIFT if before is not None and before.r > AGREED and before.low > 0 else DRIFT_APART
        if rise.deviations < bound or rise.shift.errors < 4:
            continue
        low, high = (mean_of(part.table.scores[reward][_has(part, check, lowest)]) for part in (baseline, window))
        message = f"{reward} goes from {low:.3g} to {high:.3g} for completions to which {check} gives {lowest:.3g}"
        message += f", and {check} stays as it was"
        action = f"Read completions that {reward} pays and {check} does not: what do they say that the judge likes?"
        return Detection(rise.deviations, bound, message, action, baseline=low, rows=highest(np.nan_to_num(worth[1])))
    return None


def _is_check(window: Evidence, baseline: Evidence, reward: str) -> bool:
    """Return whether a reward has two or three different scores, in both."""
    parts = [without_nan(part.table.scores[reward]) for part in (window, baseline) if reward in part.table.scores]
    values = np.unique(np.round(np.concatenate(parts), 6))
    return len(parts) == 2 and min(map(len, parts)) > 0 and 2 <= len(values) <= VERDICTS


def _has(evidence: Evidence, check: str, verdict: float) -> Mask:
    return np.isclose(evidence.table.scores[check], verdict)


def _explains(window: Evidence, baseline: Evidence, reward: str, check: str) -> bool:
    """Return whether a check rose that a judge agrees with."""
    agreement = _agreement(window, reward, check)
    return agreement is not None and agreement.r > AGREED and _moved(window, baseline, check) >= STILL


def _moved(window: Evidence, baseline: Evidence, check: str) -> float:
    """Return by how many standard deviations of single scores a check rose."""
    before, after = (without_nan(part.table.scores[check]) for part in (baseline, window))
    return float(after.mean() - before.mean()) / max(float(before.std()), 1e-9)


def _stands_still(window: Evidence, baseline: Evidence, check: str) -> bool:
    """Return whether a check moved hardly, and has room to rise."""
    before, after = (without_nan(part.table.scores[check]) for part in (baseline, window))
    low, high = min(before.min(), after.min()), max(before.max(), after.max())
    has_room = float(after.mean()) < low + 0.9 * (high - low)
    return min(len(before), len(after)) >= 20 and has_room and abs(_moved(window, baseline, check)) < STILL
