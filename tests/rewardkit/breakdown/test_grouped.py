"""Means by group agree with numpy over the export; every type of column makes groups that can be told apart."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rewardkit.breakdown.data_column import DataColumn, Grouping
from rewardkit.breakdown.grouped import completions_by_prompt, group_curves, group_means
from rewardkit.breakdown.run_scores import Measured, RunScores, Scores, measure
from rewardkit.errors import RecordError
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

WEIGHTS = {"correct": 10.0, "style": 0.05, "length": -2.0, "watch": 0.0}
MEASURES = ["reward", *WEIGHTS]


def grouped(
    reader: RunReader, column: str, name: str | None = None, split: str = "train", most: int = 20
) -> tuple[Scores, Measured, Grouping]:
    """Return the completions of a split, what is measured of them, and their groups."""
    run_scores, data_column = RunScores(), DataColumn(column)
    run_scores.read(reader)
    scores = run_scores.of(split)
    measured = measure(scores, reader.rewards, name)
    _, prompts = data_column.read(reader)
    return scores, measured, data_column.grouping(completions_by_prompt(scores, measured, prompts), most)


def expected_value(row: dict[str, Any], name: str) -> float | None:
    """Return what the export has of a completion's reward or score; None where a call failed or was skipped."""
    if name != "reward":
        return row[name] if row[f"{name}.status"] == "scored" else None
    failed = any(row[f"{reward}.status"] == "failed" for reward, weight in WEIGHTS.items() if weight)
    return None if failed else row["reward"]


@functools.cache
def student(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's distribution, from a sum over its density."""
    points = np.linspace(0, 60, 2_000_001)
    density = (1 + points**2 / degrees) ** (-(degrees + 1) / 2)
    scale = math.gamma((degrees + 1) / 2) / math.sqrt(degrees * math.pi) / math.gamma(degrees / 2)
    share = np.cumsum(density) * scale * (points[1] - points[0])
    return float(points[np.searchsorted(share, 0.475)])


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("split", ["train", "eval"])
def test_means_and_intervals_agree_with_numpy_over_the_export(recorded: Any, name: str, split: str) -> None:
    """With weights of 10, 0.05, 0 and below 0: numbers of prompts, values, skips and failures, means and intervals."""
    scores, measured, grouping = grouped(recorded.reader, "level", name, split)
    means = {row.label: row for row in group_means(scores, measured, grouping)}
    rows = [row for row in recorded.rows if row["split"] == split]
    assert {str(row["column.level"] or "null") for row in rows} == set(means)
    for label, mean in means.items():
        own = [row for row in rows if (row["column.level"] or "null") == label]
        pairs = [(row["prompt_index"], value) for row in own if (value := expected_value(row, name)) is not None]
        values = np.array([value for _, value in pairs])
        sums: dict[int, float] = {}
        for prompt, value in pairs:
            sums[prompt] = sums.get(prompt, 0.0) + value - values.mean()
        spread = sum(value**2 for value in sums.values())
        error = math.sqrt(len(sums) / (len(sums) - 1) * spread) / len(values) if len(sums) > 1 else None
        assert (len({row["prompt_index"] for row in own}), len(own), len(values)) == mean[1:4]
        assert pytest.approx(values.mean()) == mean.mean
        assert pytest.approx(values.std(ddof=1)) == mean.std
        if error is not None:
            half = student(len(sums) - 1) * error
            assert pytest.approx((values.mean() - half, values.mean() + half), rel=1e-4) == (mean.low, mean.high)
        if name != "reward":
            statuses = [row[f"{name}.status"] for row in own]
            assert (statuses.count("skipped"), statuses.count("failed")) == (mean.skipped, mean.failed)
        assert len(own) == mean.scored + mean.skipped + mean.failed


@pytest.mark.parametrize("name", MEASURES)
def test_curves_agree_with_numpy_over_the_export(recorded: Any, name: str) -> None:
    """Of each group at each step; a step at which a group has no value is a gap."""
    scores, measured, grouping = grouped(recorded.reader, "level", name)
    curves = group_curves(scores, measured, grouping)
    rows = [row for row in recorded.rows if row["split"] == "train"]
    assert sorted({row["step"] for row in rows}) == curves.steps
    for label, line in zip(grouping.labels, curves.means, strict=True):
        for step, mean in zip(curves.steps, line, strict=True):
            own = [row for row in rows if row["step"] == step and (row["column.level"] or "null") == label]
            values = [value for row in own if (value := expected_value(row, name)) is not None]
            assert (pytest.approx(np.mean(values)) if values else None) == mean


def test_a_group_of_one_prompt_has_the_interval_of_its_completions(recorded: Any) -> None:
    """There is nothing to be known of the spread between prompts."""
    scores, measured, grouping = grouped(recorded.reader, "number", "watch", most=100)
    assert grouping.are_ranges  # forty numbers
    values = measured.values[(scores.prompts == 3) & ~np.isnan(measured.values)]
    codes = np.where(np.arange(recorded.reader.prompt_count) == 3, 0, -1)
    (mean,) = group_means(scores, measured, grouping._replace(labels=["3"], codes=codes))
    half = 1.96 * values.std(ddof=1) / math.sqrt(len(values))
    assert pytest.approx((values.mean() - half, values.mean() + half)) == (mean.low, mean.high)


def record(place: Any, columns: Sequence[dict[str, Any]]) -> None:
    """Record a run of one completion for each row; its score is the row's number."""
    rollouts = [Rollout(f"prompt {number}", "text", row) for number, row in enumerate(columns)]
    scores = [Outcome(Status.SCORED, float(number), version="1" * 12) for number in range(len(columns))]
    with Recorder(place) as recorder:
        recorder.record(ScoreBatch(rollouts, {"good": scores}, {"good": 1.0}), step=0)


VALUES = {
    "texts": (["b", "a", "b"], ["b", "a"]),
    "numbers": ([10, 9.5, 10.0, 2], ["2", "9.5", "10"]),
    "numbers as text": (["10", "9.5", "2"], ["2", "9.5", "10"]),
    "truth is no number": ([True, 1, False, 0], ["0", "1", "true", "false"]),
    "a number and its text": ([3, "3", 3.0], ["3", '"3"']),
    "nothing": ([None, "null", "", "(missing)"], ["null", '"null"', '""', '"(missing)"']),
    "lists and objects": ([[1, "a"], {"b": 1, "a": 2}, {"a": 2, "b": 1}], ['{"a": 2, "b": 1}', '[1, "a"]']),
    "not finite": ([float("nan"), float("inf"), float("nan")], ["nan", "inf"]),
    "too large for a float": ([10**400, 1], ["1" + "0" * 199 + "…", "1"]),
}


@pytest.mark.parametrize(("values", "labels"), VALUES.values(), ids=VALUES.keys())
def test_values_of_any_type_are_groups(tmp_path: Any, values: list[Any], labels: list[str]) -> None:
    """What is not the same has groups of its own, under names that differ."""
    record(tmp_path / "one", [{"column": value} for value in values])
    with RunReader(tmp_path / "one") as reader:
        _, _, grouping = grouped(reader, "column")
    assert sorted(labels) == sorted(label.partition("… (")[0] + "…" * ("… (" in label) for label in grouping.labels)
    assert len(labels) == grouping.values


def test_a_row_without_the_column_is_in_a_group_of_its_own(tmp_path: Any) -> None:
    """It is not one of those whose value is null."""
    record(tmp_path / "one", [{"level": None}, {"other": 1}, {"level": "hard"}])
    with RunReader(tmp_path / "one") as reader:
        scores, measured, grouping = grouped(reader, "level")
        means = {row.label: row.mean for row in group_means(scores, measured, grouping)}
    assert {"null": 0.0, "(missing)": 1.0, "hard": 2.0} == means


def test_many_values_are_the_most_frequent_and_a_rest(tmp_path: Any) -> None:
    """The rest says how many values it has, and no completion is lost."""
    record(tmp_path / "one", [{"uid": f"u{number if number % 3 else 0}"} for number in range(300)])
    with RunReader(tmp_path / "one") as reader:
        scores, measured, grouping = grouped(reader, "uid", most=3)
        means = group_means(scores, measured, grouping)
    assert ["u0", "u1", "u2", "the rest (198 values)"] == list(grouping.labels)
    assert (201, 198) == (grouping.values, grouping.rest)
    assert 300 == sum(row.completions for row in means)


def test_many_numbers_are_ranges(tmp_path: Any) -> None:
    """With edges in order, about as many prompts each, and what is no number beside them."""
    numbers = [number**2 / 100 for number in range(200)]
    record(tmp_path / "one", [{"hard": value} for value in [*numbers, None]])
    with RunReader(tmp_path / "one") as reader:
        scores, measured, grouping = grouped(reader, "hard")
        means = group_means(scores, measured, grouping)
    assert grouping.are_ranges
    assert "null" == grouping.labels[-1]
    assert "0 to <6.19" == grouping.labels[0]
    assert all(20 <= row.prompts <= 30 for row in means[:-1])
    assert 201 == sum(row.completions for row in means)


@pytest.mark.parametrize(
    ("column", "name", "message"),
    [
        ("levle", None, "no column 'levle' in the data; near it: level; there are "),
        ("level", "corect", "no reward 'corect'; near it: correct; there are correct, "),
    ],
)
def test_an_unknown_name_is_told_with_those_near_it(recorded: Any, column: str, name: str | None, message: str) -> None:
    """And with those that there are."""
    with pytest.raises(RecordError) as caught:
        grouped(recorded.reader, column, name)
    assert str(caught.value).startswith(message)


def test_a_run_without_completions_has_no_groups(place: Any) -> None:
    """Neither an error nor a group of nothing."""
    with Recorder(place) as recorder:
        recorder.metrics(1, {"loss": 1.0})
    with RunReader(place) as reader:
        scores, measured, grouping = grouped(reader, "level")
        assert ([], []) == (group_means(scores, measured, grouping), list(grouping.labels))
        assert ([], []) == tuple(map(list, group_curves(scores, measured, grouping)))


def test_what_was_read_in_parts_is_what_was_read_at_once(recorded: Any) -> None:
    """Also where the run grows between two readings."""
    whole, parts = RunScores(), RunScores()
    whole.read(recorded.reader)
    while (progress := parts.read(recorded.reader, budget_s=0.0))[0] < progress[1]:
        pass
    expected, scores = whole.of("train"), parts.of("train")
    assert json.dumps(expected.ids.tolist()) == json.dumps(scores.ids.tolist())
    assert np.array_equal(expected.visits, scores.visits)
    assert all(np.array_equal(expected.scores[name], scores.scores[name], equal_nan=True) for name in WEIGHTS)
