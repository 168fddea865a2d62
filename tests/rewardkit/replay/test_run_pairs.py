"""Two runs on the same rows: which rows make a pair, and what the pairs differ by, recomputed row by row."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewardkit.errors import RecordError
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.replay.run_pairs import RunComparison, compare_runs, part_of
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
Row = tuple[str, Mapping[str, Any], str, Sequence[Any]]
"""A prompt, the columns, a completion, and what each reward gives: a number, ``None`` (skips) or ``"x"`` (fails)."""


def outcome(value: Any) -> Outcome:
    if value is None:
        return Outcome(Status.SKIPPED, None, version="0" * 12)
    if value == "x":  # with a default, which is no score
        return Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, error="late", version="0" * 12)
    return Outcome(Status.SCORED, value, version="0" * 12)


def scored(path: Path, rows: Sequence[Row], weights: Mapping[str, float], chunk: int = 7) -> RunReader:
    """Record rows as ``rewardkit score`` does, and open the run."""
    with Recorder(path) as recorder:
        for start in range(0, len(rows), chunk):
            part = rows[start : start + chunk]
            rollouts = [Rollout(prompt, completion, dict(columns)) for prompt, columns, completion, _ in part]
            columns = {name: [outcome(row[3][place]) for row in part] for place, name in enumerate(weights)}
            recorder.record(ScoreBatch(rollouts, columns, weights))
    return RunReader(path)


@pytest.fixture
def compared(tmp_path: Path) -> Callable[..., RunComparison]:
    """Return what compares two lists of rows."""

    def compare(first: Sequence[Row], other: Sequence[Row], **options: Any) -> RunComparison:
        names = [options.pop("weights", {"right": 1.0})] * 2
        names = [options.pop("first_weights", names[0]), options.pop("other_weights", names[1])]
        runs = [scored(tmp_path / side, rows, own) for side, rows, own in zip("ab", (first, other), names, strict=True)]
        try:
            return compare_runs(*map(part_of, runs), **options)
        finally:
            for run in runs:
                run.close()

    return compare


def line(number: int, value: Any, **columns: Any) -> Row:
    return (f"question {number}", {"id": number, **columns}, f"answer {number} {value}", [value])


def test_a_paired_difference_is_that_of_the_paired_t_test(compared: Any) -> None:
    """Without several rows of a question the interval is scipy's, and wins, losses, ties and flips are counted."""
    chance = random.Random(3)
    first = [line(number, chance.choice([0.0, 1.0])) for number in range(60)]
    other = [line(number, chance.choice([0.0, 1.0, 1.0])) for number in range(60)]
    chance.shuffle(other)
    comparison = compared(first, other)
    measure = comparison.measures[0]
    changes = [dict(_values(other))[number] - value for number, value in _values(first)]
    expected = stats.ttest_1samp(changes, 0.0).confidence_interval(0.95)
    assert ("row", 60, 0, 0) == (comparison.by, comparison.rows, comparison.first_alone, comparison.other_alone)
    assert pytest.approx(np.mean(changes)) == measure.difference
    assert pytest.approx((expected.low, expected.high)) == (measure.low, measure.high)
    wins, losses = changes.count(1.0), changes.count(-1.0)
    assert (wins, losses, changes.count(0.0)) == (measure.wins, measure.losses, measure.ties)
    assert (0.5, wins, losses) == (measure.right, measure.gained, measure.lost)


def _values(rows: Sequence[Row]) -> list[tuple[int, float]]:
    return [(row[1]["id"], row[3][0]) for row in rows]


@pytest.mark.parametrize("side", ["first", "other"])
@pytest.mark.parametrize("value", [None, "x"], ids=["skipped", "failed"])
def test_a_row_without_a_score_on_one_side_is_no_pair(compared: Any, side: str, value: Any) -> None:
    """It is left out and counted with the reason; neither 0 nor the default of the failed call stands in."""
    rows = {"first": [line(number, 1.0) for number in range(8)], "other": [line(number, 0.5) for number in range(8)]}
    rows[side][3] = line(3, value)
    comparison = compared(rows["first"], rows["other"])
    why = f"{'skipped' if value is None else 'failed'} in {'a' if side == 'first' else 'b'}"
    for measure in comparison.measures:
        assert (7, {why: 1}, -0.5) == (measure.pairs, measure.left_out, measure.difference)


def test_rows_that_only_one_run_has_are_counted_and_leave_the_pairs_alone(compared: Any) -> None:
    """Missing rows on either side, in another order, change no difference."""
    first = [line(number, float(number % 2)) for number in range(20)]
    other = [line(number, 1.0) for number in reversed(range(5, 30))]
    comparison = compared(first, other)
    assert (15, 5, 10) == (comparison.rows, comparison.first_alone, comparison.other_alone)
    expected = np.mean([1.0 - number % 2 for number in range(5, 20)])
    assert pytest.approx(expected) == comparison.measures[0].difference


def test_a_row_that_stands_twice_counts_once_with_its_mean(compared: Any) -> None:
    """Doubled rows are told, and do not weigh more."""
    first = [line(number, 0.0) for number in range(10)]
    other = [*(line(number, 1.0) for number in range(10)), line(0, 0.0), line(0, 0.0)]
    comparison = compared(first, other)
    assert (10, (0, 1)) == (comparison.rows, comparison.repeated)
    assert pytest.approx((9 + 1 / 3) / 10) == comparison.measures[0].difference


def test_solutions_of_a_question_are_one_cluster_whatever_their_columns_say(compared: Any) -> None:
    """Rows with a sample's number pair by row, and the standard error is clustered by the prompt."""
    chance = random.Random(5)
    drawn = {key: [(number, sample, chance.random()) for number in range(6) for sample in range(4)] for key in "ab"}
    rows = [
        [(f"q{number}", {"sample": sample}, f"{side}{value}", [value]) for number, sample, value in drawn[side]]
        for side in "ab"
    ]
    measure = compared(*rows).measures[0]
    changes = np.array([b[2] - a[2] for a, b in zip(drawn["a"], drawn["b"], strict=True)])
    sums = (changes - changes.mean()).reshape(6, 4).sum(axis=1)
    half = stats.t.ppf(0.975, 5) * math.sqrt(6 / 5 * (sums**2).sum()) / 24
    assert (24, 6) == (measure.pairs, measure.questions)
    assert pytest.approx((changes.mean() - half, changes.mean() + half)) == (measure.low, measure.high)


@pytest.mark.parametrize(
    ("first", "other", "options", "by"),
    [
        ({"model": "a"}, {"model": "b"}, {}, "id"),
        ({}, {}, {}, "row"),
        ({"model": "a"}, {"model": "b"}, {"by": "prompt"}, "prompt"),
        ({}, {}, {"by": "id"}, "id"),
    ],
    ids=["another column", "same columns", "by prompt", "by a column"],
)
def test_rows_are_matched_by_what_both_have(compared: Any, first: Any, other: Any, options: Any, by: str) -> None:
    """Another model's name in each row hides none; the way that was taken is told."""
    rows = [[line(number, value, **columns) for number in range(9)] for value, columns in ((0.0, first), (1.0, other))]
    for number, row in enumerate(rows[1]):
        if by == "id":  # prompts of another template
            rows[1][number] = (f"[INST] {row[0]}", *row[1:])
    comparison = compared(*rows, **options)
    assert (by, 9, 1.0) == (comparison.by, comparison.rows, comparison.measures[0].difference)


def test_the_same_completions_scored_by_other_rewards_pair_one_to_one(compared: Any) -> None:
    """Where each row has the same completions in both, these are the rows: a failure leaves out its own one alone."""
    rows = [(f"q{number}", {}, f"answer {sample}", [float(sample)]) for number in range(5) for sample in range(3)]
    other = [(*row[:3], ["x" if row[2] == "answer 2" else row[3][0] + 1]) for row in rows]
    comparison = compared(rows, other)
    assert ("completion", 15) == (comparison.by, comparison.rows)
    assert (10, {"failed in b": 5}, 1.0) == tuple(
        getattr(comparison.measures[0], name) for name in ("pairs", "left_out", "difference")
    )


def test_answers_that_are_equal_by_chance_do_not_make_the_pairs(compared: Any) -> None:
    """Two models that agree on nine of ten answers differ on the tenth, which is a pair as well."""
    first = [(f"q{number}", {}, "yes", [1.0]) for number in range(10)]
    other = [(f"q{number}", {}, "yes" if number else "no", [float(number > 0)]) for number in range(10)]
    comparison = compared(first, other)
    assert ("row", 10, -0.1) == (comparison.by, comparison.rows, comparison.measures[0].difference)


def test_a_total_is_compared_where_the_same_rewards_applied(compared: Any) -> None:
    """A reward that was skipped on one side would count there as 0: the row is left out, and its scores are not."""
    weights = {"right": 1.0, "style": -2.0}
    first = [("q", {"id": number}, f"a{number}", [1.0, 0.5]) for number in range(4)]
    other = [("q", {"id": number}, f"b{number}", [1.0, None if number == 2 else 0.25]) for number in range(4)]
    total, right, style = compared(first, other, weights=weights).measures
    assert (3, {"a reward that both weigh was skipped in one of them alone": 1}) == (total.pairs, total.left_out)
    assert (0.5, 4, 3) == (total.difference, right.pairs, style.pairs)
    assert {"skipped in b": 1} == style.left_out


def test_different_rewards_are_said_and_only_shared_ones_compared(compared: Any) -> None:
    """The totals of runs that weigh different things stand with a note that says which."""
    first = [("q", {"id": number}, f"a{number}", [1.0, 0.5]) for number in range(4)]
    other = [("q", {"id": number}, f"b{number}", [0.0, 3.0]) for number in range(4)]
    comparison = compared(
        first, other, first_weights={"right": 1.0, "style": 0.2}, other_weights={"right": 1.0, "brief": 0.05}
    )
    assert ["reward", "right"] == [measure.name for measure in comparison.measures]
    assert ["the totals are made of different things: a of 1 right + 0.2 style, b of 1 right + 0.05 brief"] == (
        list(comparison.notes)
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([(0.0, 1.0)], (1.0, None, 1, 0, 0)),
        ([(0.3, 0.3)] * 5, (0.0, 0.0, 0, 0, 5)),
        ([(0.0, 1.0)] * 5, (1.0, 1.0, 5, 0, 0)),
        ([(1e150, -1e150), (1e150, 1e150)], (-1e150, -1e150 - 12.7062047361747 * 1e150, 0, 1, 1)),
    ],
    ids=["one pair", "ties", "no variance", "huge"],
)
def test_ends_of_the_range_have_an_answer(compared: Any, values: Any, expected: Any) -> None:
    """A single pair has no interval, equal differences one without width, and numbers near the largest a finite one."""
    rows = [[line(number, pair[side]) for number, pair in enumerate(values)] for side in (0, 1)]
    measure = compared(*rows).measures[0]
    figures = (measure.difference, measure.low, measure.wins, measure.losses, measure.ties)
    assert pytest.approx(expected) == figures


@pytest.mark.parametrize(
    ("other", "options", "refusal"),
    [
        ("q", {}, "a and b: no row in common by prompt; name a column .* --by"),
        ("p", {"by": "level"}, "--by level: no such column in a, b"),
        ("p", {"rewards": ["judge"]}, "judge: no reward of both a and b, which share right"),
    ],
    ids=["no row", "no column", "no reward"],
)
def test_what_cannot_be_compared_is_refused_with_the_way_out(
    compared: Any, other: str, options: Any, refusal: str
) -> None:
    """The refusal names the runs, what is missing and what to write."""
    with pytest.raises(RecordError, match=refusal):
        compared([("p", {}, "c", [1.0])], [(other, {}, "c", [1.0])], **options)
