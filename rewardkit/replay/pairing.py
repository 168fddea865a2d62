"""Two runs on the same rows: which values make a pair, and what the pairs differ by.

Everything here is a function of arrays; nothing is read or scored. A value that is not known counts nowhere as 0: a row
that failed or was skipped on one side is no pair, and is counted with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewardkit.record.table import CompletionTable, Floats, Whole, Words
from rewardkit.replay.compare import ZERO
from rewardkit.statistics import paired_interval

TOTAL = "reward"  # The name of the weighted sum among the measures
FAILED, SKIPPED, UNKNOWN, ALONE = "failed", "skipped", "not scored", "skipped on one side"
"""Why a value is left out: a call failed, no reward applied, nothing is known, or one applied on one side alone."""
_WORST = (FAILED, SKIPPED, ALONE, UNKNOWN)  # The reason of a row of several completions is the first that one has


class CompletionValues(NamedTuple):
    """One number of each completion of a run."""

    values: Floats  # `nan` where it does not count
    reasons: Words  # Why it does not; empty where it does
    applied: NDArray[np.bool_]  # Shape (n, k): which of the k rewards that both runs weigh have scored it


class Pairs(NamedTuple):
    """The rows that both runs have and both have a value of."""

    units: Whole  # The rows' numbers
    first: Floats  # The mean value of each in the first run
    other: Floats  # The same in the other
    left_out: Mapping[tuple[str, str], int]  # Rows of both without a pair, by the reasons in the first and the other
    uncounted: tuple[Mapping[str, int], Mapping[str, int]]  # Completions of rows of both without a value, by the reason


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How a number differs between two runs on the same rows; a row of several completions counts with their mean.

    Attributes:
        difference: The mean of the other's values less the first's; ``None`` without a pair.
        low: The lower end of its 95 % interval, see :func:`rewardkit.statistics.paired_interval`; ``None`` where a
            single question says nothing of the spread.
        right: From which value on a row counts as right: halfway between the lowest and the highest value of all
            pairs unless given.
        left_out: Rows that both runs have and without a pair, by why.
        uncounted: Completions of these rows that count nowhere, by why: those of the first run and those of the other.
    """

    name: str  # The reward's name; `TOTAL` for the weighted sum
    pairs: int  # Rows that count
    questions: int  # Clusters of these rows, over which the interval is taken
    first: float | None  # The mean value of the pairs in the first run
    other: float | None  # The same in the other
    difference: float | None
    low: float | None
    high: float | None  # The upper end
    wins: int  # Rows with a higher value in the other run
    losses: int  # Rows with a lower one
    ties: int  # Rows with the same
    right: float | None
    gained: int  # Rows that are wrong in the first run and right in the other
    lost: int  # Rows that are right in the first run and wrong in the other
    left_out: Mapping[str, int]
    uncounted: tuple[Mapping[str, int], Mapping[str, int]]


def total_measure(table: CompletionTable, shared: Sequence[str]) -> CompletionValues:
    """Return the totals: the weighted sums of completions of which no reward that counts failed.

    ``shared`` are the rewards that both runs weigh, in the same order for both.
    """
    weighed = {name: (weights != 0) & (table.status[name] != "") for name, weights in table.weights.items()}
    failed, scored = np.zeros(len(table), bool), np.zeros(len(table), bool)
    for name, counts in weighed.items():
        failed |= counts & (table.status[name] == "f")
        scored |= counts & (table.status[name] == "s")
    reasons = np.select([failed, ~scored, ~np.isfinite(table.rewards)], [FAILED, SKIPPED, UNKNOWN], "")
    was_asked = np.logical_or.reduce([*weighed.values(), np.zeros(len(table), bool)])
    reasons = np.where((reasons == SKIPPED) & ~was_asked, UNKNOWN, reasons)
    nothing = np.zeros(len(table), bool)
    applied = [weighed[name] & (table.status[name] == "s") if name in weighed else nothing for name in shared]
    columns = np.stack(applied, axis=1) if applied else np.zeros((len(table), 0), bool)
    return CompletionValues(np.where(reasons == "", table.rewards, np.nan), reasons, columns)


def reward_measure(table: CompletionTable, name: str) -> CompletionValues:
    """Return a reward's own scores; a default of a failed call is no score."""
    status, scores = table.status[name], table.scores[name]
    conditions = [status == "f", status == "k", ~((status == "s") & np.isfinite(scores))]
    reasons = np.select(conditions, [FAILED, SKIPPED, UNKNOWN], "")
    return CompletionValues(np.where(reasons == "", scores, np.nan), reasons, np.zeros((len(table), 0), bool))


def pairs_of(first: CompletionValues, other: CompletionValues, first_units: Whole, other_units: Whole) -> Pairs:
    """Return the pairs of two runs' values, whose units say which row each completion is of.

    Totals are compared only of completions to which the same shared rewards applied: a reward that was skipped on one
    side would else count there as 0.
    """
    count = int(max(first_units.max(initial=-1), other_units.max(initial=-1))) + 1
    firsts, others = _with_same_rewards(first, other, first_units, other_units, count)
    first_means, first_reasons = _by_unit(firsts, first_units, count)
    other_means, other_reasons = _by_unit(others, other_units, count)
    common = np.zeros(count, bool)
    common[first_units] = True
    common &= np.isin(np.arange(count), other_units)
    is_pair = common & ~np.isnan(first_means) & ~np.isnan(other_means)
    units = np.flatnonzero(is_pair)
    left_out: dict[tuple[str, str], int] = {}
    for unit in np.flatnonzero(common & ~is_pair).tolist():
        reasons = (str(first_reasons[unit]), str(other_reasons[unit]))
        left_out[reasons] = left_out.get(reasons, 0) + 1
    uncounted = _uncounted(firsts, common[first_units]), _uncounted(others, common[other_units])
    return Pairs(units, first_means[units], other_means[units], left_out, uncounted)


def _uncounted(measure: CompletionValues, common: NDArray[np.bool_]) -> dict[str, int]:
    """Return how many completions of common rows have no value, by the reason."""
    reasons, counts = np.unique(measure.reasons[common & (measure.reasons != "")], return_counts=True)
    return dict(zip(reasons.tolist(), counts.tolist(), strict=True))


def paired_difference(
    name: str, pairs: Pairs, clusters: Whole, names: tuple[str, str], right: float | None = None
) -> PairedDifference:
    """Return what pairs differ by; ``clusters`` has the number of each unit's question, ``names`` are the runs'."""
    changes = changes_of(pairs)
    questions = clusters[pairs.units]
    interval = paired_interval(changes.tolist(), questions.tolist())
    values = np.concatenate([pairs.first, pairs.other])
    if right is None and len(values):
        right = float(values.min() / 2 + values.max() / 2)
    was_right, is_right = (side >= (math.inf if right is None else right) for side in (pairs.first, pairs.other))
    return PairedDifference(
        name=name,
        pairs=len(changes),
        questions=len(np.unique(questions)),
        first=float(pairs.first.mean()) if len(changes) else None,
        other=float(pairs.other.mean()) if len(changes) else None,
        difference=interval.rate,
        low=interval.low if math.isfinite(interval.low) else None,
        high=interval.high if math.isfinite(interval.high) else None,
        wins=int((changes > 0).sum()),
        losses=int((changes < 0).sum()),
        ties=int((changes == 0).sum()),
        right=right,
        gained=int((~was_right & is_right).sum()),
        lost=int((was_right & ~is_right).sum()),
        left_out={_reason(why, names): count for why, count in sorted(pairs.left_out.items())},
        uncounted=pairs.uncounted,
    )


def changes_of(pairs: Pairs) -> Floats:
    """Return each pair's value in the other run less that in the first; 0 where rounding alone makes them differ."""
    changes = pairs.other - pairs.first
    size = np.maximum(1.0, np.maximum(np.abs(pairs.first), np.abs(pairs.other)))
    return np.where(np.abs(changes) <= ZERO * size, 0.0, changes)


def _reason(why: tuple[str, str], names: tuple[str, str]) -> str:
    """Return why rows are no pair, such as ``failed in a``."""
    by_name = {name: reason for reason, name in zip(why, names, strict=True) if reason not in ("", ALONE)}
    if not by_name:
        return "a reward that both weigh was skipped in one of them alone"
    if why[0] == why[1]:
        return f"{why[0]} in both"
    return ", ".join(f"{reason} in {name}" for name, reason in by_name.items())


def _with_same_rewards(
    first: CompletionValues, other: CompletionValues, first_units: Whole, other_units: Whole, count: int
) -> tuple[CompletionValues, CompletionValues]:
    """Return both without the completions to which other rewards applied than to any of the row on the other side."""
    if not first.applied.shape[1]:
        return first, other
    kinds = np.unique(np.concatenate([first.applied, other.applied]), axis=0, return_inverse=True)[1].reshape(-1)
    keys = kinds * count + np.concatenate([first_units, other_units])
    keys = np.where(np.isnan(np.concatenate([first.values, other.values])), -1, keys)
    sides = keys[: len(first_units)], keys[len(first_units) :]
    return _without(first, sides[0], sides[1]), _without(other, sides[1], sides[0])


def _without(measure: CompletionValues, own: Whole, others: Whole) -> CompletionValues:
    """Return a measure without the values whose keys the other side has not, where it has any of the row."""
    alone = (own >= 0) & ~np.isin(own, others)
    return measure._replace(
        values=np.where(alone, np.nan, measure.values), reasons=np.where(alone, ALONE, measure.reasons)
    )


def _by_unit(measure: CompletionValues, units: Whole, count: int) -> tuple[Floats, Words]:
    """Return the mean value of each unit, ``nan`` without one, and why it has none."""
    counts = ~np.isnan(measure.values)
    numbers = np.bincount(units[counts], minlength=count)
    sums = np.bincount(units[counts], measure.values[counts], minlength=count)
    means = np.divide(sums, numbers, out=np.full(count, np.nan), where=numbers > 0)
    reasons = np.full(count, "", measure.reasons.dtype)
    for reason in reversed(_WORST):
        reasons[units[measure.reasons == reason]] = reason
    reasons[~np.isnan(means)] = ""
    return means, reasons
