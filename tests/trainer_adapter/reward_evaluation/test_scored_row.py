"""What a row's scores are worth, as RewardBench counts them."""

from __future__ import annotations

import math

import pytest

from builtin_rewards.reward_model import preferences_of
from rewardkit import Cause, Outcome, Status
from trainer_adapter.reward_evaluation.scored_row import RowKind, ScoredRow, scored_row, ties_score


def row(chosen: list[float | None], rejected: list[float | None], kind: RowKind, ties_id: str = "") -> ScoredRow:
    ids = tuple(ties_id.split(":")) if ties_id else None
    return ScoredRow("here", kind, None, tuple(chosen), tuple(rejected), ties_id=ids)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("chosen", "rejected", "kind", "credit"),
    [
        ([2.0], [1.0], RowKind.PAIR, 1.0),
        ([1.0], [1.0], RowKind.PAIR, 0.0),
        ([0.0], [1.0], RowKind.PAIR, 0.0),
        ([2.0], [1.0, 0.0, -1.0], RowKind.BEST, 1.0),
        ([2.0], [2.0, 0.0, -1.0], RowKind.BEST, 1 / 2),
        ([2.0], [2.0, 2.0, 2.0], RowKind.BEST, 1 / 4),
        ([1.0], [2.0, 0.0, 0.0], RowKind.BEST, 0.0),
        ([3.0, 2.0], [1.0, 0.0], RowKind.TIES, 1.0),
        ([3.0, 1.0], [1.0, 0.0], RowKind.TIES, 0.0),
    ],
    ids=["won", "tie", "lost", "best", "shared by 2", "shared by 4", "not best", "all ahead", "one level"],
)
def test_a_row_is_worth_what_rewardbench_gives(
    chosen: list[float | None], rejected: list[float | None], kind: RowKind, credit: float
) -> None:
    """A tie of a pair is no win, best-of-four shares, and all right answers of ties must be ahead."""
    assert pytest.approx(credit) == row(chosen, rejected, kind).credit


def test_a_failure_is_no_score_whatever_stands_in() -> None:
    """A default of 9 wins nothing; a skip is told apart from a failure."""
    (pair,) = preferences_of([{"prompt": "p", "chosen": "a", "rejected": "b", "topic": "x"}])
    scored = Outcome(Status.SCORED, 1.0)
    failed = Outcome(Status.FAILED, 9.0, cause=Cause.EXCEPTION, error="ValueError: no")
    lost = scored_row(pair, [failed, scored], "topic")
    assert (False, True, "ValueError: no", (None,), "x") == (
        lost.is_scored, lost.failed, lost.error, lost.chosen, lost.subset,
    )  # fmt: skip
    skipped = scored_row(pair, [scored, Outcome(Status.SKIPPED, None)], None)
    assert (False, False) == (skipped.is_scored, skipped.failed)


def test_a_rows_form_says_how_it_counts() -> None:
    """One against one, one against several, several against several, and an id of RewardBench's ties."""
    found = preferences_of([
        {"prompt": "p", "chosen": "a", "rejected": "b"},
        {"prompt": "p", "chosen": ["a"], "rejected": ["b", "c", "d"]},
        {"prompt": "p", "chosen": ["a", "e"], "rejected": ["b"]},
        {"prompt": "p", "chosen": ["a"], "rejected": ["b", "c"], "id": "ref:7"},
    ])  # fmt: skip
    kinds = [scored_row(one, [Outcome(Status.SCORED, 0.0)] * 9, None) for one in found]
    assert [RowKind.PAIR, RowKind.BEST, RowKind.TIES, RowKind.TIES] == [one.kind for one in kinds]
    assert ("ref", "7") == kinds[-1].ties_id


def test_the_score_of_ties_is_rewardbenchs() -> None:
    """Its five parts by hand: both accurate, ahead by 2 and apart by 1, the reference ahead by 0.5 alone."""
    rows = [
        row([3.0, 2.0], [0.0], RowKind.TIES, "tied:1"),
        row([1.0], [0.5], RowKind.TIES, "ref:1"),
        row([0.0, 1.0], [2.0], RowKind.TIES, "tied:2"),
        row([1.0], [0.0], RowKind.TIES, "ref:2"),
    ]
    sizes = (math.tanh(0.5 / 1 - 1) + math.tanh(-2.0 / 1 - 1)) / 2
    expected = 0.3 * 0.5 + 0.3 * 1.0 + 0.2 * 0.5 + 0.2 * 0.0 + 0.01 * sizes
    assert pytest.approx(expected) == ties_score(rows)
    assert ties_score(rows[:1]) is None
