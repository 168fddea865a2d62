"""Two versions of a reward on the same completions, and what the change does to the advantages.

Everything here is a function of arrays, one entry a completion; nothing is scored or read. A score that is not known
counts nowhere as 0: means, ranks and changes are over what a version scored itself, and totals are made as the
trainer makes them, where a failure's default stands in and what has no score leaves the baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rewardkit.advantages import gdpo_advantages, group_advantages, leave_one_out_advantages
from rewardkit.errors import RewardDefinitionError
from rewardkit.record.batch_rows import LETTERS
from rewardkit.record.table import Floats, Whole
from rewardkit.types import Outcome

Places: TypeAlias = NDArray[np.bool_]

FORMULAS = ("group", "batch", "none", "leave_one_out", "gdpo")
"""Ways to make advantages of rewards: GRPO's, by what divides; RLOO's; GDPO's."""
PARTIAL = ("leave_out", "sum")
"""What becomes of a completion that some reward could not score, as ``RewardAdapter(partial=...)`` has it."""
ZERO = 1e-9  # An advantage or a change of a score below this is 0: what a sum of floats leaves over is neither


@dataclass(frozen=True, slots=True)
class Column:
    """What a version of a reward said of completions."""

    scores: Floats  # The scores as the trainer is told them, a failure's default among them; `nan` without a score
    status: NDArray[np.str_]  # `s` for scored, `k` for skipped, `f` for failed; empty where it was not asked

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Column:
        """Return the column of outcomes."""
        scores = [np.nan if outcome.score is None else outcome.score for outcome in outcomes]
        return cls(
            np.array(scores, dtype=float), np.array([LETTERS[outcome.status] for outcome in outcomes], dtype="<U1")
        )

    @property
    def own(self) -> Floats:
        """The scores that the reward gave itself; ``nan`` elsewhere, also where a default stands in."""
        return np.where(self.status == "s", self.scores, np.nan)

    @property
    def lost(self) -> Places:
        """Where it failed and nothing stands in."""
        return np.asarray((self.status == "f") & np.isnan(self.scores))


@dataclass(frozen=True, slots=True)
class Setting:
    """What the compared reward stands in: groups, the rewards beside it, and how advantages are made.

    Attributes:
        other_weights: Their weights, by the same names, one a completion.

    Raises:
        RewardDefinitionError: There is no such formula or rule.
    """

    groups: Whole  # The number of each completion's group
    batches: Whole  # The number of each completion's batch, whose standard deviation some formulas divide by
    weights: Floats  # The compared reward's weight, one a completion
    others: Mapping[str, Column] = field(default_factory=dict)  # The other rewards' columns, by name
    other_weights: Mapping[str, Floats] = field(default_factory=dict)
    formula: str = "group"  # One of `FORMULAS`
    partial: str = "leave_out"  # One of `PARTIAL`

    def __post_init__(self) -> None:
        """Refuse unknown words."""
        for name, value, choices in (("formula", self.formula, FORMULAS), ("partial", self.partial, PARTIAL)):
            if value not in choices:
                raise RewardDefinitionError(f"{name}={value!r}: expected {', '.join(map(repr, choices))}")

    def rewards(self, column: Column) -> Floats:
        """Return the weighted sums of a version of the reward and the others; ``nan`` where there is no reward."""
        columns, weights = self._beside(column)
        weighted = np.stack([weight * part.scores for part, weight in zip(columns, weights, strict=True)])
        total: Floats = np.nansum(weighted, axis=0)
        total[np.isnan([part.scores for part in columns]).all(axis=0)] = np.nan
        if self.partial == "leave_out":
            total[self._left_out(columns, weights)] = np.nan
        return total

    def advantages(self, column: Column) -> Floats:
        """Return the advantages with a version of the reward; 0 where there is no reward."""
        rewards = self.rewards(column)
        if self.formula == "gdpo":
            columns, weights = self._beside(column)
            has_reward = ~np.isnan(rewards)
            parts = [np.where(has_reward, part.scores, np.nan) for part in columns]
            return _by_batch(self, lambda places, shape: _gdpo(parts, weights, places, shape))
        if self.formula == "batch":
            return _by_batch(
                self, lambda places, shape: group_advantages(_lay_out(rewards, places), shape[1], scale="batch")
            )
        advantages = np.zeros(len(rewards))
        for places in _places_by_size(self.groups):
            flat, size = rewards[places.reshape(-1)], places.shape[1]
            if self.formula == "leave_one_out":
                advantages[places.reshape(-1)] = leave_one_out_advantages(flat, size)
            else:
                advantages[places.reshape(-1)] = group_advantages(flat, size, scale=self.formula)
        return advantages

    def _beside(self, column: Column) -> tuple[list[Column], list[Floats]]:
        """Return the columns of all rewards, the compared one first, and their weights."""
        other_weights = [self.other_weights[name] for name in self.others]
        return [column, *self.others.values()], [self.weights, *other_weights]

    def _left_out(self, columns: Sequence[Column], weights: Sequence[Floats]) -> Places:
        """Return a mask: where a reward with weight failed without a default, or no reward with weight scored."""
        counts = np.stack(weights) != 0
        lost = (counts & np.stack([part.lost for part in columns])).any(axis=0)
        silent = (np.isnan([part.scores for part in columns]) | ~counts).all(axis=0) & counts.any(axis=0)
        return np.asarray(lost | silent)


@dataclass(frozen=True, slots=True)
class Side:
    """One version's outcomes in numbers."""

    scored: int  # Completions that it scored itself
    skipped: int  # Completions to which it did not apply
    failed: int  # Completions that it failed on
    stand_ins: int  # Failures for which a default stands in, which the trainer takes for a score
    mean: float | None  # Of the scores that it gave itself; `None` without any
    std: float | None  # Their standard deviation (`ddof=1`); `None` with fewer than two
    groups_with_signal: int  # Groups whose advantages are not all 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a change of a reward does to the same completions.

    Attributes:
        rank_correlation: Spearman's, inside each group and averaged over the groups in which both versions' scores
            differ; ``None`` without any.
    """

    completions: int  # How many there are
    groups: int  # How many groups
    grouped: int  # How many of these have two completions or more
    old: Side  # The version before
    new: Side  # The version after
    both: int  # Completions that both versions scored themselves
    old_mean: float | None  # The mean of the old version's scores of these; `None` without any
    new_mean: float | None  # The mean of the new version's scores of these
    changed: int  # Those of them whose score is another one
    rank_correlation: float | None
    ranked_groups: int  # Groups that it is averaged over
    unranked_groups: int  # Groups of two such completions or more in which one version's scores are all the same
    sign_flips: int  # Completions whose advantage goes from above 0 to below, or from below to above
    advantage_change: float  # By how much an advantage changes, on average and without its sign
    groups_gained: int  # Groups that give no gradient with the old version and one with the new
    groups_lost: int  # Groups that give a gradient with the old version and none with the new
    weightless: bool  # Whether the reward has the weight 0 everywhere, so that no advantage can change


def compare(old: Column, new: Column, setting: Setting) -> Comparison:
    """Return the changes where one version of a reward replaces another on the same completions."""
    before, after = setting.advantages(old), setting.advantages(new)
    numbers = np.unique(setting.groups, return_inverse=True)[1]
    sizes = np.bincount(numbers)
    signal_old, signal_new = (_with_signal(side, numbers, len(sizes)) for side in (before, after))
    change = np.abs(new.own - old.own)
    both = ~np.isnan(change)
    changed = both & (np.nan_to_num(change) > ZERO)
    correlation, ranked, unranked = rank_correlation(old.own[both], new.own[both], numbers[both])
    return Comparison(
        completions=len(before),
        groups=len(sizes),
        grouped=int((sizes > 1).sum()),
        old=_side(old, signal_old),
        new=_side(new, signal_new),
        both=int(both.sum()),
        old_mean=float(old.own[both].mean()) if both.any() else None,
        new_mean=float(new.own[both].mean()) if both.any() else None,
        changed=int(changed.sum()),
        rank_correlation=correlation,
        ranked_groups=ranked,
        unranked_groups=unranked,
        sign_flips=int(sign_flips(before, after).sum()),
        advantage_change=float(np.abs(after - before).mean()) if len(before) else 0.0,
        groups_gained=int((~signal_old & signal_new).sum()),
        groups_lost=int((signal_old & ~signal_new).sum()),
        weightless=bool((setting.weights == 0).all()),
    )


def sign_flips(before: Floats, after: Floats) -> Places:
    """Return where an advantage goes from above 0 to below 0 or back; from 0 and to 0 is no flip."""
    first, second = _sign(before), _sign(after)
    return np.asarray(first * second < 0)


def rank_correlation(first: Floats, second: Floats, groups: Whole) -> tuple[float | None, int, int]:
    """Return Spearman's rank correlation inside groups, ties at their mean rank, averaged over groups.

    No score may be ``nan``. Returned are the average, ``None`` without groups to average over; the number of these; and
    the number of groups of two or more without correlation, because all scores of one side are the same.
    """
    if not len(groups):
        return None, 0, 0
    numbers = np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(numbers)
    left, right = (_centre(_ranks(values, numbers), numbers, sizes) for values in (first, second))
    shared = np.bincount(numbers, left * right)
    spread = np.bincount(numbers, left * left) * np.bincount(numbers, right * right)
    ranked = spread > 0
    without = int(((sizes > 1) & ~ranked).sum())
    if not ranked.any():
        return None, 0, without
    return float((shared[ranked] / np.sqrt(spread[ranked])).mean()), int(ranked.sum()), without


def formula_of(rewards: Setting, column: Column, advantages: Floats) -> str | None:
    """Return the first formula that gives the recorded advantages; ``None`` where no formula does.

    ``rewards.formula`` is not read; an advantage that is not known is ``nan``.
    """
    is_recorded = ~np.isnan(advantages)
    for formula in FORMULAS:
        candidate = replace(rewards, formula=formula).advantages(column)
        if is_recorded.any() and np.allclose(candidate[is_recorded], advantages[is_recorded], rtol=1e-3, atol=1e-3):
            return formula
    return None


def _side(column: Column, signal: Places) -> Side:
    """Return one version's numbers; ``signal`` says which groups have an advantage that is not 0."""
    own_scores = column.own[~np.isnan(column.own)]
    failed = column.status == "f"
    return Side(
        scored=int((column.status == "s").sum()),
        skipped=int((column.status == "k").sum()),
        failed=int(failed.sum()),
        stand_ins=int((failed & ~np.isnan(column.scores)).sum()),
        mean=float(own_scores.mean()) if len(own_scores) else None,
        std=float(own_scores.std(ddof=1)) if len(own_scores) > 1 else None,
        groups_with_signal=int(signal.sum()),
    )


def _sign(advantages: Floats) -> Floats:
    """Return -1, 0 or 1 for each advantage; 0 for an unknown one, too."""
    values = np.nan_to_num(np.asarray(advantages, dtype=float))
    return np.where(np.abs(values) < ZERO, 0.0, np.sign(values))


def _with_signal(advantages: Floats, numbers: Whole, count: int) -> Places:
    """Return which groups have an advantage that is not 0."""
    return np.asarray(np.bincount(numbers, np.abs(_sign(advantages)), minlength=count) > 0)


def _ranks(values: Floats, numbers: Whole) -> Floats:
    """Return each value's rank, counted through all groups in turn; equal values of a group have their mean rank."""
    order = np.lexsort((values, numbers))
    ordered, labels = values[order], numbers[order]
    starts = np.r_[True, (ordered[1:] != ordered[:-1]) | (labels[1:] != labels[:-1])] if len(order) else np.zeros(0)
    tie = np.cumsum(starts) - 1
    mean = np.bincount(tie, np.arange(len(order))) / np.bincount(tie)
    ranks = np.empty(len(order))
    ranks[order] = mean[tie]
    return ranks


def _centre(values: Floats, numbers: Whole, sizes: Whole) -> Floats:
    """Return the values less the mean of their group."""
    return np.asarray(values - (np.bincount(numbers, values) / sizes)[numbers])


def _places_by_size(groups: Whole) -> list[Whole]:
    """Return the places of groups, one array of shape (groups, size) for each size."""
    numbers = np.unique(groups, return_inverse=True)[1]
    order = np.argsort(numbers, kind="stable")
    sizes = np.bincount(numbers)
    firsts = np.cumsum(sizes) - sizes
    return [order[firsts[sizes == size][:, None] + np.arange(size)] for size in np.unique(sizes)] if len(groups) else []


def _by_batch(setting: Setting, make: Callable[[Whole, tuple[int, int]], Floats]) -> Floats:
    """Return advantages made batch by batch; groups of unlike sizes are filled up with completions without a reward.

    ``make`` gets the places of a batch's completions, group by group with -1 for those filled in, and their shape.
    """
    advantages = np.zeros(len(setting.groups))
    for batch in np.unique(setting.batches):
        inside = np.flatnonzero(setting.batches == batch)
        numbers = np.unique(setting.groups[inside], return_inverse=True)[1]
        order = np.argsort(numbers, kind="stable")
        sizes = np.bincount(numbers)
        column = np.arange(len(inside)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        table = np.full((len(sizes), sizes.max()), -1)
        table[numbers[order], column] = inside[order]
        places = table.reshape(-1)
        advantages[places[places >= 0]] = make(places, table.shape)[places >= 0]
    return advantages


def _lay_out(values: Floats, places: Whole) -> Floats:
    """Return the values at places; ``nan`` at the place -1."""
    return np.where(places >= 0, values[places], np.nan)


def _gdpo(parts: Sequence[Floats], weights: Sequence[Floats], places: Whole, shape: tuple[int, int]) -> Floats:
    """Return GDPO's advantages of a batch, with the weights of its first completion."""
    columns = [_lay_out(part, places) for part in parts]
    first = places[places >= 0][0]
    advantages: Floats = gdpo_advantages(columns, [float(weight[first]) for weight in weights], shape[1])
    return advantages
