"""How much of the advantages is a reward's own noise, from two scorings of the same completions.

In a group, a score is what the completion is worth plus noise. Two scorings of one completion differ by noise alone:
its variance is half the mean square of their differences. What is left of the variance inside groups is worth.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rewardkit.errors import RewardDefinitionError
from rewardkit.health.evidence import Evidence
from rewardkit.health.flag import Flag
from rewardkit.health.gradient import raised
from rewardkit.health.measures import grouped


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


def noise_of(first: Any, second: Any, groups: Any) -> Noise:
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
    one, two, labels = (np.asarray(values, dtype=np.float64) for values in (first, second, groups))
    if not len(one) == len(two) == len(labels):
        raise RewardDefinitionError(
            f"two scorings of {len(one)} and {len(two)} completions in {len(labels)} places: expected as many of each"
        )
    one, two, labels = _in_groups(one, two, labels)
    parts = grouped(one, labels.astype(np.int64)), grouped(two, labels.astype(np.int64))
    size = float(parts[0].counts.mean()) if len(parts[0].counts) else math.nan
    freedom = len(one) - len(parts[0].counts)
    off = [values - part.means[part.places] for values, part in zip((one, two), parts, strict=True)]
    if freedom < 1:
        return Noise(len(one), len(parts[0].counts), math.nan, math.nan, math.nan, None, None)
    whole = (float((off[0] ** 2).sum()) + float((off[1] ** 2).sum())) / (2 * freedom)
    # inside groups: what shifts all scores of a group alike, such as a judge's mood, moves no advantage
    noise = float(((off[0] - off[1]) ** 2).sum()) / (2 * freedom)
    share = min(noise / whole, 1.0) if whole > 1e-18 else math.nan
    told = (np.abs(off[0]) > 1e-9) & (np.abs(off[1]) > 1e-9)
    agreeing = float((np.sign(off[0][told]) == np.sign(off[1][told])).mean()) if told.any() else math.nan
    right = math.nan if math.isnan(share) else sign_right(1 - share, size)
    return Noise(
        len(one), len(parts[0].counts), share, right, agreeing,
        generations_needed(1 - share), scorings_needed(1 - share, size),
    )  # fmt: skip


def sign_right(reliability: float, generations: float) -> float:
    """Return how often an advantage's sign is right, from 0.5 to 1."""
    return 0.5 + math.asin(math.sqrt(max(reliability * (1 - 1 / generations), 0.0))) / math.pi


def generations_needed(reliability: float) -> int | None:
    """Return the completions that a group needs for three right signs of four; ``None`` where none are enough."""
    if not reliability > 0.5:
        return None
    return max(2, math.ceil(1 / (1 - 0.5 / reliability) - 1e-9))


def scorings_needed(reliability: float, generations: float) -> int | None:
    """Return how often to score each completion for three right signs of four (Spearman and Brown)."""
    if not reliability > 0 or not generations > 2:
        return None
    wanted = 0.5 / (1 - 1 / generations)
    many = wanted * (1 - reliability) / (reliability * (1 - wanted))
    return max(1, math.ceil(many - 1e-9)) if many <= 1000 else None


def _in_groups(one: Any, two: Any, labels: Any) -> tuple[Any, Any, Any]:
    """Return the completions with both scores, of groups with two of them or more."""
    both = ~(np.isnan(one) | np.isnan(two))
    one, two, labels = one[both], two[both], labels[both]
    if not len(labels):
        return one, two, labels
    _, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    several = counts[places] > 1
    return one[several], two[several], labels[several]


def noise(window: Evidence, baseline: Evidence | None, reward: str | None) -> Flag | None:
    """Most of a reward's advantages are its own noise.

    Formula: the mean square of the differences of two scorings inside groups, over twice the variance inside groups;
    see ``noise_of``. Flagged at once above 0.5 over 50 completions or more: then no number of generations makes half of
    the signs right beyond chance.

    Source: classical test theory (reliability; Spearman and Brown); the rule of the sign is worked out in ``noise_of``.
    Limits: needs a second scoring (``rewardkit rescore``). A cache that answers the second scoring hides the noise.
    """
    assert reward is not None
    if reward not in window.again:
        return None
    told = noise_of(window.table.scores[reward], window.again[reward], window.table.groups)
    if told.completions < 50 or not told.share > 0.5:
        return None
    words = f"{told.share:.0%} of the variance of {reward}'s advantages is its own noise"
    words += f"; {told.right:.0%} of their signs are right"
    action = "Score each completion several times and take the mean"
    action += f" ({told.scorings} times here)" if told.scorings else ""
    action += ", or ask the judge for less: a criterion at a time, temperature 0."
    apart = np.nan_to_num(np.abs(window.table.scores[reward] - window.again[reward]))
    shown = np.argsort(-apart, kind="stable")[:8]
    return raised(window, "noise", told.share, 0.5, words, action, reward=reward, shown=shown)
