"""What a change of a reward does to advantages: numbers beside those of a slow and plain computation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rewardkit import Cause, Outcome, RewardDefinitionError, Status
from rewardkit.advantages import gdpo_advantages, group_advantages, leave_one_out_advantages
from rewardkit.replay.compare import FORMULAS, Column, Setting, compare, formula_of, rank_correlation, sign_flips

NAN = math.nan


def _column(scores: list[float], status: str | None = None) -> Column:
    return Column(np.array(scores, dtype=float), np.array(list(status or "s" * len(scores))))


def _setting(groups: list[int], batches: list[int] | None = None, **more: Any) -> Setting:
    count = len(groups)
    return Setting(np.array(groups), np.array(batches or [0] * count), np.ones(count), **more)


def test_a_reversed_reward_flips_every_advantage() -> None:
    """Two groups of two: what was best is worst."""
    found = compare(_column([0, 1, 1, 0]), _column([1, 0, 0, 1]), _setting([0, 0, 1, 1]))
    assert (4, 0, 0) == (found.sign_flips, found.groups_gained, found.groups_lost)
    assert (4, -1.0, 2) == (found.changed, found.rank_correlation, found.ranked_groups)


def test_a_group_gains_or_loses_all_signal() -> None:
    """A group whose scores become the same loses its gradient, one whose scores part gains one; neither is a flip."""
    found = compare(_column([0, 1, 1, 1, 0, 1]), _column([1, 1, 0, 1, 0, 1]), _setting([0, 0, 1, 1, 2, 2]))
    assert (1, 1, 0) == (found.groups_gained, found.groups_lost, found.sign_flips)
    assert (2, 2) == (found.old.groups_with_signal, found.new.groups_with_signal)
    assert (1.0, 1, 2) == (found.rank_correlation, found.ranked_groups, found.unranked_groups)


def test_an_unknown_score_is_never_a_zero() -> None:
    """Skipped and failed completions leave means, ranks and baselines, and are counted on their side."""
    old = _column([1, NAN, 3, NAN], "sksf")
    new = _column([1, 5, NAN, 3], "ssks")
    found = compare(old, new, _setting([0, 0, 0, 0]))
    assert (2.0, 3.0) == (found.old.mean, found.new.mean)
    assert (2, 1, 1) == (found.old.scored, found.old.skipped, found.old.failed)
    assert (3, 1, 0) == (found.new.scored, found.new.skipped, found.new.failed)
    assert (1, 0, 1.0, 1.0) == (found.both, found.changed, found.old_mean, found.new_mean)
    assert None is found.rank_correlation


def test_a_default_that_stands_in_counts_in_the_advantages_alone() -> None:
    """The trainer takes it for a score, so it moves the baseline; the reward's own mean is without it."""
    old = _column([1, 0, 1, 1], "sfss")
    found = compare(old, _column([1, NAN, 1, 1], "sfss"), _setting([0, 0, 0, 0]))
    assert (1.0, 1, 1) == (found.old.mean, found.old.failed, found.old.stand_ins)
    assert (0, 1) == (found.new.stand_ins, found.groups_lost)


def test_a_failure_without_a_default_leaves_the_completion_out_or_adds_nothing() -> None:
    """As `RewardAdapter(partial=...)` has it: the other reward's score is left out with it, or stands alone."""
    other = {"other": _column([0, 1, 0, 1])}
    weights = {"other": np.ones(4)}
    column = _column([1, NAN, NAN, 1], "sfks")
    for partial, expected in {"leave_out": [1, NAN, 0, 2], "sum": [1, 1, 0, 2]}.items():
        setting = _setting([0] * 4, others=other, other_weights=weights, partial=partial)
        assert np.array_equal(np.array(expected, dtype=float), setting.rewards(column), equal_nan=True)


def test_a_reward_of_weight_zero_changes_no_advantage() -> None:
    """A held-out reward fails and skips without a consequence, too."""
    setting = Setting(
        np.zeros(4, int), np.zeros(4, int), np.zeros(4), {"counts": _column([0, 1, 0, 1])}, {"counts": np.ones(4)}
    )
    found = compare(_column([1, 2, 3, 4]), _column([4, NAN, NAN, 1], "sfks"), setting)
    assert (True, 0, 0.0) == (found.weightless, found.sign_flips, found.advantage_change)


@pytest.mark.parametrize("formula", FORMULAS)
def test_advantages_are_those_of_the_formulas(formula: str) -> None:
    """Groups that stand side by side, two batches, two rewards: as each formula has it for a batch."""
    drawn = np.random.default_rng(3)
    first, second = drawn.normal(size=(2, 48))
    first[5] = second[5] = NAN
    weights = np.full(48, 0.5)
    groups, batches = np.arange(48) // 4, np.arange(48) // 24
    setting = Setting(groups, batches, np.ones(48), {"b": _column(second.tolist())}, {"b": weights}, formula)
    made: dict[str, Any] = {
        "leave_one_out": lambda one, two: leave_one_out_advantages(one + 0.5 * two, 4),
        "gdpo": lambda one, two: gdpo_advantages([one, two], [1.0, 0.5], 4),
    }
    expected = [
        made.get(formula, lambda one, two: group_advantages(one + 0.5 * two, 4, scale=formula))(
            first[start : start + 24], second[start : start + 24]
        )
        for start in (0, 24)
    ]
    column = _column(first.tolist())
    assert np.allclose(np.concatenate(expected), setting.advantages(column))
    assert formula == formula_of(setting, column, np.concatenate(expected))


@pytest.mark.parametrize("seed", range(5))
def test_groups_may_lie_anywhere_and_have_any_size(seed: int) -> None:
    """Shuffled groups of one to nine with gaps: each group's advantages are those it has by itself."""
    drawn = np.random.default_rng(seed)
    groups = np.repeat(np.arange(20), drawn.integers(1, 10, size=20))
    drawn.shuffle(groups)
    scores = drawn.integers(0, 3, size=len(groups)).astype(float)
    scores[drawn.random(len(groups)) < 0.2] = NAN
    column = _column(scores.tolist(), "".join("k" if math.isnan(one) else "s" for one in scores))
    found = _setting(groups.tolist()).advantages(column)
    for group in range(20):
        members = np.flatnonzero(groups == group)
        assert np.allclose(group_advantages(scores[members], len(members)), found[members])


@pytest.mark.parametrize("seed", range(5))
def test_the_rank_correlation_is_the_mean_of_spearman_s_over_groups(seed: int) -> None:
    """With many ties; a group without a spread on one side has none and is counted."""
    drawn = np.random.default_rng(seed)
    groups = np.repeat(np.arange(30), drawn.integers(1, 8, size=30))
    one, two = drawn.integers(0, 3, size=(2, len(groups))).astype(float)
    expected, flat = [], 0
    for group in range(30):
        pair = [_mean_ranks(values[groups == group].tolist()) for values in (one, two)]
        if len(pair[0]) > 1 and all(len(set(ranks)) > 1 for ranks in pair):
            expected.append(float(np.corrcoef(*pair)[0, 1]))
        else:
            flat += len(pair[0]) > 1
    found = rank_correlation(one, two, groups)
    assert (pytest.approx(sum(expected) / len(expected)), len(expected), flat) == found


def _mean_ranks(values: list[float]) -> list[float]:
    return [sum(other < one for other in values) + sum(other == one for other in values) / 2 for one in values]


def test_what_a_sum_of_floats_leaves_over_is_no_sign() -> None:
    """Equal rewards of 0.1 + 0.2 have a mean that is not quite theirs, and no advantage."""
    found = compare(_column([0.1 + 0.2] * 3), _column([0.3] * 3), _setting([0, 0, 0]))
    assert (0, 0, 0, 0) == (found.sign_flips, found.changed, found.old.groups_with_signal, found.groups_gained)
    assert [False, True, True, False] == sign_flips([1e-13, 1, -1, 0], [-1, -2, 2, 1]).tolist()


def test_outcomes_become_a_column() -> None:
    """A default that stands in is a score to the trainer and none of the reward's own."""
    column = Column.of(
        [
            Outcome(Status.SCORED, 0.5),
            Outcome(Status.SKIPPED, None),
            Outcome(Status.FAILED, 0.0, cause=Cause.EXCEPTION),
            Outcome(Status.FAILED, None, cause=Cause.INFRASTRUCTURE),
        ]
    )
    assert ["s", "k", "f", "f"] == column.status.tolist()
    assert [False, False, False, True] == column.lost.tolist()
    assert [False, True, True, True] == np.isnan(column.own).tolist()


def test_nothing_to_compare_is_no_error() -> None:
    """No completions: no groups, no correlation."""
    found = compare(_column([]), _column([]), _setting([]))
    assert (0, 0, None, 0) == (found.completions, found.groups, found.rank_correlation, found.sign_flips)


def test_an_unknown_formula_or_rule_is_named() -> None:
    """With those that there are."""
    with pytest.raises(RewardDefinitionError, match="formula='z_score': expected 'group', 'batch'"):
        _setting([0], formula="z_score")
    with pytest.raises(RewardDefinitionError, match="partial='drop': expected 'leave_out', 'sum'"):
        _setting([0], partial="drop")


@pytest.mark.parametrize("formula", ["group", "batch"])
def test_a_hundred_thousand_completions_are_compared(formula: str) -> None:
    """Groups of eight in a hundred batches; the flips are those of the signs."""
    drawn = np.random.default_rng(0)
    old, new = drawn.random((2, 100_000))
    groups = np.arange(100_000) // 8
    setting = Setting(groups, np.arange(100_000) // 1000, np.ones(100_000), formula=formula)
    found = compare(_column(old.tolist()), _column(new.tolist()), setting)
    signs = [np.sign(one.reshape(-1, 8) - one.reshape(-1, 8).mean(axis=1, keepdims=True)) for one in (old, new)]
    assert int((signs[0] != signs[1]).sum()) == found.sign_flips
