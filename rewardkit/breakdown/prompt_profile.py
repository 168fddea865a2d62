"""The pass rate of each prompt of a run over its last groups: always right, never right, in between; and its change."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from rewardkit.breakdown.rate_changes import RateChanges, shares
from rewardkit.breakdown.run_scores import SCORED, SKIPPED, Measured, Scores
from rewardkit.errors import RecordError
from rewardkit.record.table import Floats, Mask, Whole
from rewardkit.statistics import Interval, wilson

LAST_GROUPS = 4  # Groups of each prompt that count unless another number is asked for
ROUNDING = 1e-9  # What rounding leaves of a sum of weights, as a share of it
HALF = 0.5  # What a reward's own score has to exceed unless another number is given
_SHARE = r"\s*(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)\s*"
_RANGE = re.compile(rf"{_SHARE}\.\.{_SHARE}", re.ASCII)


class Rates(NamedTuple):
    """A range of pass rates with both of its ends."""

    low: float
    high: float

    @classmethod
    def of(cls, text: str, option: str) -> Rates:
        """Return the range in a text such as ``0.1..0.9``.

        Raises:
            RecordError: It is another text, or its ends are not two shares from 0 to 1 in order; names the option.
        """
        match = _RANGE.fullmatch(text)
        if match is None:
            raise RecordError(f"{option} {text}: expected two rates with .. between them, such as 0.1..0.9")
        rates = cls(float(match[1]), float(match[2]))
        if not 0 <= rates.low <= 1 or not 0 <= rates.high <= 1:
            raise RecordError(f"{option} {text}: expected rates from 0 to 1, such as 0.1..0.9")
        if rates.low > rates.high:
            raise RecordError(f"{option} {text}: the first rate is above the second; write {match[2]}..{match[1]}")
        return rates

    def covers(self, rates: Floats) -> Mask:
        """Return where rates are in the range; ``nan`` is in no range."""
        return (rates >= self.low) & (rates <= self.high)


class PromptProfile(NamedTuple):
    """The prompts of which something was asked, in the order in which they were first seen; one entry a prompt.

    Attributes:
        rates: The share of the counted completions that passed; ``nan`` where none counts.
        means: The mean of their rewards, or scores; ``nan`` where none counts.
    """

    rule: str  # What passes, in words
    last: int | None  # How many groups of each prompt count, from the last one back; `None` for all
    prompts: Whole  # Their numbers in the record
    groups: Whole  # How many groups of each count
    groups_of_all: Whole  # How many it has
    counted: Whole  # The completions in them that have a value
    passed: Whole  # Those of them that passed
    skipped: Whole  # Completions in them that have no value because nothing applied
    failed: Whole  # Completions in them that have no value because a call failed
    rates: Floats
    means: Floats
    versions: Whole  # How many versions the rewards that count had in them, those of the one with the most
    exceeds_scale: bool  # Whether scores go beyond what the rule takes them to be, from 0 to 1
    changes: RateChanges  # From the first groups to the last: of both as many as count, and at most half of all

    def interval(self, index: int) -> Interval:
        """Return the pass rate of the prompt at an index with its Wilson interval, see :func:`wilson`."""
        return wilson(int(self.passed[index]), int(self.counted[index]))

    def row(self, index: int) -> dict[str, int | float | None]:
        """Return what is known of the prompt at an index, ready for JSON."""
        interval, mean = self.interval(index), float(self.means[index])
        whole = ("groups", "groups_of_all", "counted", "passed", "skipped", "failed", "versions")
        return {
            "prompt": int(self.prompts[index]),
            **{name: int(getattr(self, name)[index]) for name in whole},
            "rate": interval.rate,
            "low": None if interval.rate is None else interval.low,
            "high": None if interval.rate is None else interval.high,
            "mean": None if math.isnan(mean) else mean,
            **self.changes.row(index),
        }

    @property
    def are_known(self) -> Mask:
        """Where a prompt has a pass rate."""
        return self.counted > 0

    @property
    def are_always_right(self) -> Mask:
        """Where all counted completions passed."""
        return np.asarray(self.are_known & (self.passed == self.counted))

    @property
    def are_never_right(self) -> Mask:
        """Where none of them passed."""
        return np.asarray(self.are_known & (self.passed == 0))

    @property
    def are_between(self) -> Mask:
        """Where some passed and some did not."""
        return self.are_known & (self.passed > 0) & (self.passed < self.counted)

    def counts(self) -> dict[str, int]:
        """Return how many prompts are of each kind, by its name."""
        return {
            "never_right": int(self.are_never_right.sum()),
            "in_between": int(self.are_between.sum()),
            "always_right": int(self.are_always_right.sum()),
            "unknown": int((~self.are_known).sum()),
        }


def are_questions(scores: Scores, by: str | None) -> bool:
    """Return whether the rows of one text are one question: as ``by`` says, ``question`` or ``row``.

    Unless it says so, they are where nothing was scored at a step: rows of a scored file may have columns that tell its
    completions apart.
    """
    return by == "question" or (by is None and bool(len(scores)) and not bool((scores.steps >= 0).any()))


def prompt_profile(
    scores: Scores, measured: Measured, *, last: int | None = LAST_GROUPS, pass_at: float | None = None
) -> PromptProfile:
    """Return the profile of the prompts of which something was asked.

    A completion passes with at least ``pass_at``; unless that is given, a reward's own score passes above 0.5, and a
    total above half of the sum of the weights above 0, which is half of what scores from 0 to 1 can give. Of these
    weights count those of the rewards that apply to the prompt: they scored a completion of it. What was skipped or
    failed counts neither as right nor as wrong; for a total that is a completion for which a reward that weighs
    anything failed, or was skipped although it applies to the prompt. A group is the completions of a prompt at one
    moment of the training; those that count are the last ones of each prompt in the order of recording.

    Raises:
        RecordError: No reward weighs anything, so no total can pass.
    """
    order = _group_order(scores, measured)
    size, groups_of_all = len(order.groups), order.groups
    most = groups_of_all if last is None else np.minimum(groups_of_all, last)
    in_last = order.behind < most[scores.prompts]
    limits = _limits(scores, size) if measured.is_total else _Limits(np.full(len(scores), HALF), measured.skipped)
    judged = (order.behind < groups_of_all[scores.prompts]) & ~np.isnan(measured.values) & ~limits.skipped
    rule = _rule(scores, measured, limits.halves[in_last & judged], pass_at)
    right = judged & (measured.values >= pass_at if pass_at is not None else _exceeds(measured.values, limits.halves))
    has_value = in_last & judged
    prompts = np.flatnonzero(groups_of_all)

    def count(mask: Mask) -> Whole:
        return np.bincount(scores.prompts[mask], minlength=size)[prompts]

    def mean(mask: Mask) -> Floats:
        sums = np.bincount(scores.prompts[mask], measured.values[mask], minlength=size)[prompts]
        return shares(sums, count(mask))

    values, usual = measured.values[has_value], 2 * float(limits.halves[has_value].max(initial=0.0))
    early, late = order.ends(scores.prompts, most)
    return PromptProfile(
        rule=rule,
        last=last,
        prompts=prompts,
        groups=most[prompts],
        groups_of_all=groups_of_all[prompts],
        counted=count(has_value),
        passed=count(in_last & right),
        skipped=count(in_last & (measured.skipped | limits.skipped) & ~measured.failed),
        failed=count(in_last & measured.failed),
        rates=shares(count(in_last & right), count(has_value)),
        means=mean(has_value),
        versions=_versions(scores, measured, has_value, size)[prompts],
        exceeds_scale=bool(pass_at is None and len(values) and values.max() > usual * (1 + ROUNDING)),
        changes=RateChanges(
            groups=np.minimum(most, groups_of_all // 2)[prompts],
            counted_before=count(early & judged),
            passed_before=count(early & right),
            counted_after=count(late & judged),
            passed_after=count(late & right),
            means_before=mean(early & judged),
            means_after=mean(late & judged),
        ),
    )


class _Limits(NamedTuple):
    """What completions have to exceed, and which lack a part of what they would be judged by."""

    halves: Floats
    skipped: Mask


def _limits(scores: Scores, prompts: int) -> _Limits:
    """Return the limits of totals: half of the weights above 0 of the rewards that apply to each of so many prompts."""
    halves, skipped = np.zeros(len(scores)), np.zeros(len(scores), np.bool_)
    for name, status in scores.status.items():
        applies = np.bincount(scores.prompts[status == SCORED], minlength=prompts)[scores.prompts] > 0
        halves += np.where(applies, np.maximum(scores.weights[name], 0.0) / 2, 0.0)
        skipped |= applies & (status == SKIPPED) & (scores.weights[name] != 0)
    return _Limits(halves, skipped)


def _exceeds(values: Floats, halves: Floats) -> Mask:
    """Return which values are above the limits; where no weight is above 0, those from which nothing was taken."""
    return np.where(halves > 0, values > halves * (1 + ROUNDING), values >= -ROUNDING)


class _GroupOrder(NamedTuple):
    """Where the group of each completion stands among those of its prompt, in the order of recording."""

    behind: Whole  # How many groups of its prompt come later; of a completion of which nothing was asked, too many
    groups: Whole  # By prompt, how many groups it has of which something was asked

    def ends(self, prompts: Whole, most: Whole) -> tuple[Mask, Mask]:
        """Return which completions are of the first groups of their prompts, and of the last: at most half of all."""
        size = np.minimum(most, self.groups // 2)[prompts]
        groups = self.groups[prompts]
        return (self.behind < groups) & (self.behind >= groups - size), self.behind < size


def _group_order(scores: Scores, measured: Measured) -> _GroupOrder:
    """Return where the groups stand of which something was asked; ``groups`` is as long as the last prompt says."""
    visits, first, places = np.unique(scores.visits, return_index=True, return_inverse=True)
    places = places.reshape(-1)
    prompts = scores.prompts[first]
    ends = np.zeros(len(visits), np.int64)
    np.maximum.at(ends, places[measured.has_call], scores.ids[measured.has_call])
    is_asked = ends > 0
    order = np.lexsort((-ends, prompts))
    order = order[is_asked[order]]
    starts = np.flatnonzero(np.diff(prompts[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    ranks = np.full(len(visits), len(visits))
    ranks[order] = np.arange(len(order)) - np.repeat(starts, sizes)  # 0 for the last group of its prompt
    size = int(prompts.max()) + 1 if len(prompts) else 0
    behind = np.where(measured.has_call, ranks[places], len(visits))
    return _GroupOrder(behind, np.bincount(prompts[is_asked], minlength=size))


def _rule(scores: Scores, measured: Measured, halves: Floats, pass_at: float | None) -> str:
    """Return in words what passes."""
    if pass_at is not None:
        return f"{measured.name} of at least {pass_at:g}"
    if not measured.is_total:
        return f"{measured.name} above {HALF:g}"
    if len(scores) and not any(weights.any() for weights in scores.weights.values()):
        raise RecordError("no reward weighs anything, so no total is right or wrong; name one with --reward")
    limits = np.unique(np.round(halves, 9))
    if len(limits) == 1 and limits[0] == 0:
        return "reward of at least 0: no weight is above 0, so nothing was taken away"
    if len(limits) > 1:
        return f"reward above half of the weights above 0, {limits[0]:g} to {limits[-1]:g} by prompt and step"
    return (
        f"reward above {limits[0]:g}, half of the weights above 0"
        if len(limits)
        else "reward above half of the weights"
    )


def _versions(scores: Scores, measured: Measured, has_value: Mask, size: int) -> Whole:
    """Return by prompt how many versions a reward that counts had, the most of any of them."""
    most = np.zeros(size, np.int64)
    for name, versions in scores.versions.items():
        counts = scores.weights[name] != 0 if measured.is_total else np.full(len(scores), name == measured.name)
        mask = has_value & counts & (versions > 0)
        width = int(versions.max(initial=0)) + 1
        pairs = np.unique(scores.prompts[mask] * width + versions[mask])
        most = np.maximum(most, np.bincount(pairs // width, minlength=size))
    return most
