"""How much of the advantages is a reward's own noise, from two scorings of the same completions.

In a group, a score is what the completion is worth plus noise. Two scorings of one completion differ by noise alone:
its variance is half the mean square of their differences. What is left of the variance inside groups is worth.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rewardkit.errors import RewardDefinitionError
from rewardkit.health.evidence import Evidence
from rewardkit.health.flag import Detection
from rewardkit.health.measures import by_group, highest
from rewardkit.record.table import Floats


class Noise(NamedTuple):
    """What two scorings say of a reward.

    Attributes:
        completions: Completions with both scores, in groups of two or more.
        groups: These groups.
        share: How much of the variance of the advantages is noise, from 0 to 1; ``nan`` where nothing varies.
        right: How often an advantage's sign is right at this size of group, from 0.5 to 1; ``nan`` likewise.
        agreeing: How often the two scorings give one completion the same sign of advantage, where neither is 0.
        generations: Completions that a group needs so that half of the signs are right beyond chance (three of four
            in all); ``None`` where no number is enough.
        scorings: How often each completion must be scored, and its scores averaged, for that in groups of this size;
            ``None`` where no number up to 1,000 is enough.
    """

    completions: int
    groups: int
    share: float
    right: float
    agreeing: float
    generations: int | None
    scorings: int | None


def noise_of(first: ArrayLike, second: ArrayLike, groups: ArrayLike) -> Noise:
    """Return how noisy a reward is, from two scorings of the same completions.

    With the reliability R, the worth's share of the variance inside groups, an advantage in a group of G correlates
    with the completion's worth above the policy's mean by the root of R (1 - 1/G): the group's own mean stands in for
    the policy's. For values that are about normal, the sign is then right with the probability 1/2 + arcsin(that
    root)/pi, which is 3/4 where R (1 - 1/G) = 1/2: half of the signs are known, and half are coin flips.

    Args:
        first: Scores, one a completion; ``nan`` for a completion without a score.
        second: The scores of another scoring of the same completions.
        groups: The number of each completion's group.

    Raises:
        RewardDefinitionError: The three have different lengths.
    """
    left, right, labels = (np.asarray(values, dtype=np.float64) for values in (first, second, groups))
    if not len(left) == len(right) == len(labels):
        raise RewardDefinitionError(
            f"two scorings of {len(left)} and {len(right)} completions in {len(labels)} places: expected as many of"
            " each"
        )
    left, right, labels = _in_groups(left, right, labels)
    left_groups, right_groups = (by_group(values, labels.astype(np.int64)) for values in (left, right))
    counts = left_groups.counts
    size = float(counts.mean()) if len(counts) else math.nan
    freedom = len(left) - len(counts)
    if freedom < 1:
        return Noise(len(left), len(counts), math.nan, math.nan, math.nan, None, None)
    # inside groups: what shifts all scores of a group alike, such as a judge's mood, moves no advantage
    left, right = left - left_groups.means[left_groups.places], right - right_groups.means[right_groups.places]
    unit = max(float(np.abs(left).max()), float(np.abs(right).max()))
    if unit > 1e100:  # squares would be no floats; shares of one another are the same in any unit
        left, right = left / unit, right / unit
    variance = (float((left**2).sum()) + float((right**2).sum())) / (2 * freedom)
    noise = float(((left - right) ** 2).sum()) / (2 * freedom)
    share = min(noise / variance, 1.0) if variance > 1e-18 else math.nan
    has_sign = (np.abs(left) > 1e-9) & (np.abs(right) > 1e-9)
    agreeing = float((np.sign(left) == np.sign(right))[has_sign].mean()) if has_sign.any() else math.nan
    return Noise(
        len(left), len(counts), share, math.nan if math.isnan(share) else sign_right(1 - share, size), agreeing,
        generations_needed(1 - share), scorings_needed(1 - share, size),
    )  # fmt: skip


def sign_right(reliability: float, generations: float) -> float:
    """Return how often an advantage's sign is right, from 0.5 to 1."""
    return 0.5 + math.asin(math.sqrt(max(reliability * (1 - 1 / generations), 0.0))) / math.pi


def generations_needed(reliability: float) -> int | None:
    """Return the completions that a group needs for three right signs of four; ``None`` where none are enough."""
    if not reliability > 0.5:
        return None
    return max(2, math.ceil(1 / (1 - 0.5 / reliability) - 1e-9))  # a rounding error must not add one


def scorings_needed(reliability: float, generations: float) -> int | None:
    """Return how often to score each completion for three right signs of four; ``None`` where 1,000 are not enough.

    Source: the formula of Spearman and Brown.
    """
    if not reliability > 0 or not generations > 2:
        return None
    reliability_needed = 0.5 / (1 - 1 / generations)
    count = reliability_needed * (1 - reliability) / (reliability * (1 - reliability_needed))
    return max(1, math.ceil(count - 1e-9)) if count <= 1000 else None


def _in_groups(left: Floats, right: Floats, labels: Floats) -> tuple[Floats, Floats, Floats]:
    """Return scores and labels of the completions with both scores, in groups with two such or more."""
    is_pair = ~(np.isnan(left) | np.isnan(right))
    left, right, labels = left[is_pair], right[is_pair], labels[is_pair]
    if not len(labels):
        return left, right, labels
    _, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    several = counts[places] > 1
    return left[several], right[several], labels[several]


def noise(window: Evidence, baseline: Evidence | None, reward: str) -> Detection | None:
    """Most of a reward's advantages are its own noise.

    Formula: the mean square of the differences of two scorings inside groups, over twice the variance inside groups;
    see ``noise_of``. Flagged at once above 0.5 over 50 completions or more: then no number of generations makes half of
    the signs right beyond chance.

    Source: classical test theory (reliability; Spearman and Brown); the rule of the sign is worked out in ``noise_of``.
    Limits: needs a second scoring (``rewardkit rescore``). A cache that answers the second scoring hides the noise.
    """
    if reward not in window.again:
        return None
    result = noise_of(window.table.scores[reward], window.again[reward], window.table.groups)
    if result.completions < 50 or not result.share > 0.5:
        return None
    message = f"{result.share:.0%} of the variance of {reward}'s advantages is its own noise"
    message += f"; {result.right:.0%} of their signs are right"
    action = "Score each completion several times and take the mean"
    action += f" ({result.scorings} times here)" if result.scorings else ""
    action += ", or ask the judge for less: a criterion at a time, temperature 0."
    apart = np.abs(window.table.scores[reward] - window.again[reward])
    return Detection(result.share, 0.5, message, action, rows=highest(apart))
