"""A completion's reward is one number in every view: the weighted sum, as SQL and numpy compute it from the record."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from rewardkit.advantages import weighted_rewards
from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun, RunCache, RunCaches
from rewardkit.dashboard.views import completions as views
from rewardkit.dashboard.views import graphs, runs
from rewardkit.record.export import export_columns, export_rows
from rewardkit.record.places import place_of_runs
from rewardkit.record.recorder import Recorder
from rewardkit.replay.recorded_run import Run
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

NAMES = ("correct", "format", "length", "repetition")
WEIGHTS = ((1.0, 0.2, 0.05, -0.5), (10.0, 0.0, 0.05, -2.0), (1.0, 1.0, 1.0, 1.0), (0.05, -10.0, 0.0, 0.0))
STEPS, PROMPTS, GROUP = 8, 3, 4


class Drawn(NamedTuple):
    """What was recorded, as arrays: a row for each completion, in the order of recording."""

    steps: Any
    epochs: Any
    prompts: Any
    scores: Any  # (completions, rewards); `nan` where a reward skipped
    weights: Any  # The same shape
    totals: Any

    @property
    def numbers(self) -> Any:
        return np.arange(1, len(self.steps) + 1)

    def best(self, chosen: Any) -> float:
        return float(np.nanmax(self.totals[chosen]))


def drawn(seed: int) -> Drawn:
    """Return a run in which two or three changes of the weights happen while it trains."""
    chance = np.random.default_rng(seed)
    count = STEPS * PROMPTS * GROUP
    scores = chance.normal(size=(count, len(NAMES))).round(2)
    scores[chance.random(scores.shape) < 0.15] = np.nan
    steps = np.repeat(np.arange(STEPS), PROMPTS * GROUP)
    plan = np.sort(chance.integers(0, len(WEIGHTS), STEPS))
    weights = np.array(WEIGHTS)[plan][steps]
    rows = zip(scores, weights, strict=True)
    totals = np.array([weighted_rewards(list(row.reshape(-1, 1)), list(own))[0] for row, own in rows])
    counts = (weights != 0) & ~np.isnan(scores)
    totals = np.where(counts.any(axis=1), totals, np.nan)  # what weighs 0 alone makes no total
    prompts = np.tile(np.repeat(np.arange(PROMPTS), GROUP), STEPS)
    return Drawn(steps, steps // 4, prompts, scores, weights, totals)


def outcomes(scores: Sequence[float]) -> list[Outcome]:
    return [
        Outcome(Status.SKIPPED, None, version="0" * 12) if np.isnan(score)
        else Outcome(Status.SCORED, score, version="0" * 12)
        for score in scores
    ]  # fmt: skip


@pytest.fixture(params=range(5))
def expected(request: pytest.FixtureRequest, tmp_path: Path) -> Drawn:
    """Record a drawn run, and return it."""
    run = drawn(request.param)
    with Recorder(tmp_path / "runs" / "one") as recorder:
        for step in range(STEPS):
            rows = run.steps == step
            rollouts = [Rollout(f"prompt {prompt}", "text", {}) for prompt in run.prompts[rows]]
            columns = {name: outcomes(run.scores[rows][:, place]) for place, name in enumerate(NAMES)}
            batch = ScoreBatch(rollouts, columns, dict(zip(NAMES, run.weights[rows][0].tolist(), strict=True)))
            recorder.record(batch, step=step, epoch=float(step // 4), num_generations=GROUP)
    return run


@pytest.fixture
def opened(expected: Drawn, tmp_path: Path) -> Iterator[OpenRun]:
    with Run.open(tmp_path / "runs" / "one") as run:
        yield OpenRun(run, RunCache())


def asked(**values: object) -> Query:
    return Query({name: str(value) for name, value in values.items()})


def numbers(values: Sequence[float | None]) -> Any:
    return np.array([np.nan if value is None else value for value in values], float)


def test_the_record_has_the_sum_that_sql_and_numpy_compute(expected: Drawn, opened: OpenRun, tmp_path: Path) -> None:
    """The stored number, the reader's ``total`` and ``reward``, the table's, and the export's."""
    with contextlib.closing(sqlite3.connect(tmp_path / "runs" / "one" / "record.db")) as connection:
        stored = connection.execute("SELECT weighted, scores, weights FROM completion JOIN batch ON batch.id = batch")
        columns = list(zip(*stored.fetchall(), strict=True))
    unpacked = np.frombuffer(b"".join(columns[1]), "<f8").reshape(-1, len(NAMES))
    by_hand = np.nansum(unpacked * np.array([json.loads(text) for text in columns[2]]), axis=1)
    known = ~np.isnan(expected.totals)
    np.testing.assert_allclose(by_hand[known], expected.totals[known], atol=1e-12)
    rows = list(opened.run.completions())
    exported = list(export_rows(opened.run, export_columns(opened.run), opened.run.last_id))
    for values in (
        columns[0], [row.total for row in rows], [row.reward for row in rows], opened.run.table().rewards,
        [row["reward"] for row in exported], [row["total"] for row in exported],
    ):  # fmt: skip
        np.testing.assert_allclose(numbers(values), expected.totals, atol=1e-12)
    plain = np.where(((expected.weights != 0) & ~np.isnan(expected.scores)).any(axis=1),
                     np.nansum(np.where(expected.weights != 0, expected.scores, 0), axis=1), np.nan)  # fmt: skip
    np.testing.assert_allclose(numbers([row["plain_sum"] for row in exported]), plain, atol=1e-12)


def test_the_best_is_the_best_paid(expected: Drawn, opened: OpenRun) -> None:
    """The best of an epoch and of a step's prompt, the pair to compare, the order of best prompts."""
    by_number = dict(zip(expected.numbers.tolist(), expected.totals.tolist(), strict=True))
    for prompt in range(PROMPTS):
        view = views.prompt(opened, asked(prompt=prompt, sort="total", order="down", limit=200))
        of_prompt = expected.prompts == prompt
        for row in view["epochs"]:
            chosen = of_prompt & (expected.epochs == row["epoch"])
            assert expected.best(chosen) == pytest.approx(by_number[row["best"]])
            assert float(np.nanmean(expected.totals[chosen])) == pytest.approx(row["mean"])
        assert by_number[view["right"]] == pytest.approx(expected.best(of_prompt & (expected.epochs == 1)))
        shown = numbers([row["total"] for row in view["rows"]])
        np.testing.assert_allclose(
            np.sort(shown)[::-1][np.isnan(shown).sum() :], np.sort(shown[~np.isnan(shown)])[::-1]
        )
        np.testing.assert_allclose(shown, [by_number[row["id"]] for row in view["rows"]])
        assert (np.diff(shown[~np.isnan(shown)]) <= 0).all()
    for step in range(STEPS):
        view = views.completions(opened, asked(step=step))
        for group in view["groups"]:
            chosen = (expected.steps == step) & (expected.prompts == group["prompt"])
            assert expected.best(chosen) == pytest.approx(group["best"])
            assert float(np.nanmin(expected.totals[chosen])) == pytest.approx(group["worst"])
        assert [group["best"] for group in view["groups"]] == sorted((g["best"] for g in view["groups"]), reverse=True)


@pytest.mark.parametrize(("low", "high"), [(0.5, None), (None, -1.0), (-0.2, 0.3), (1e9, None)])
def test_filters_take_the_weighted_sum(expected: Drawn, opened: OpenRun, low: float | None, high: float | None) -> None:
    """Over the whole run, in a step and in a prompt, from and to."""
    fits = np.ones(len(expected.totals), bool)
    bounds = {}
    for name, bound, fit in (("min", low, np.greater_equal), ("max", high, np.less_equal)):
        if bound is not None:
            fits &= fit(expected.totals, bound)
            bounds[name] = bound
    ids = [row.id for row in opened.run.completions(min_score=low, max_score=high)]
    assert expected.numbers[fits].tolist() == ids
    in_step = [row.id for row in opened.run.completions(min_score=low, max_score=high, step=3)]
    assert expected.numbers[fits & (expected.steps == 3)].tolist() == in_step
    where = " and ".join(f"reward{sign}{bound}" for sign, bound in ((">=", low), ("<=", high)) if bound is not None)
    page = views.completions(opened, asked(where=where))
    assert expected.numbers[fits].tolist()[:50] == [row["id"] for row in page["rows"]]
    assert int((fits & (expected.prompts == 1)).sum()) == views.prompt(opened, asked(prompt=1, **bounds))["matched"]


def test_the_table_of_prompts_sorts_by_it(expected: Drawn, opened: OpenRun) -> None:
    """Best, mean, first and last epoch, and which got worse."""
    view = views.prompts(opened, asked(sort="change", order="up"))
    rows = {row["index"]: row for row in view["rows"]}
    means = {}
    for prompt, row in rows.items():
        of_prompt = expected.prompts == prompt
        first, last = (float(np.nanmean(expected.totals[of_prompt & (expected.epochs == epoch)])) for epoch in (0, 1))
        means[prompt] = last - first
        assert [expected.best(of_prompt), float(np.nanmean(expected.totals[of_prompt])), first, last, last - first] == (
            pytest.approx([row[name] for name in ("best", "mean", "first_mean", "last_mean", "change")])
        )
    assert sorted(means, key=lambda prompt: means[prompt]) == [row["index"] for row in view["rows"]]


def test_curves_and_lists_of_runs_show_it(expected: Drawn, opened: OpenRun, tmp_path: Path) -> None:
    """The main line with its deviation, the list on the page, and what the commands print."""
    answer = graphs.view(opened, asked())
    (total,) = (graph for graph in answer["graphs"] if graph["key"] == "total_reward")
    (deviation,) = (graph for graph in answer["graphs"] if graph["key"] == "total_reward_std")
    steps = [expected.totals[expected.steps == step] for step in range(STEPS)]
    means = [float(np.nanmean(values)) for values in steps]
    assert ["total", "plain sum"] == [line["name"] for line in total["lines"]]
    np.testing.assert_allclose(numbers(total["lines"][0]["values"]), means, rtol=1e-5, atol=1e-6)
    deviations = [float(np.nanstd(values, ddof=1)) for values in steps]
    np.testing.assert_allclose(numbers(deviation["lines"][0]["values"]), deviations, rtol=1e-5)
    (row,) = runs.Listing(place_of_runs(str(tmp_path / "runs")), RunCaches()).rows()["runs"]
    assert means[-1] == pytest.approx(row["total"])
    assert list(enumerate(means)) == [(step, pytest.approx(value)) for step, value in row["totals"]]
    assert [(step, pytest.approx(value)) for step, value in enumerate(means)] == opened.run.total_series()
    ranked = opened.run.ranked(STEPS - 1, 1, best=True)
    assert expected.best(expected.steps == STEPS - 1) == pytest.approx(expected.totals[ranked[0] - 1])


def test_a_batch_of_a_record_without_weights_counts_each_as_one(opened: OpenRun, tmp_path: Path) -> None:
    """No release has written one; another's file may be so."""
    with contextlib.closing(sqlite3.connect(tmp_path / "runs" / "one" / "record.db")) as connection, connection:
        connection.execute("UPDATE batch SET weights = '[]' WHERE step = 0")
    assert dict.fromkeys(NAMES, 1.0) == opened.run.weights_of(1)
    assert {1.0} == {float(column[0]) for column in opened.run.table((0, 0)).weights.values()}


def test_completions_that_no_reward_scores_are_recorded(tmp_path: Path) -> None:
    """A batch without rewards has texts and prompts, and no total."""
    with Recorder(tmp_path / "one") as recorder:
        recorder.record(ScoreBatch([Rollout("p", "a"), Rollout("p", "b")], {}, {}), step=0)
        assert recorder.flush()
        assert 0 == recorder.lost
    with Run.open(tmp_path / "one") as run:
        assert [("a", None), ("b", None)] == [(row.completion, row.total) for row in run.completions()]
        assert [2] == [
            group["completions"] for group in views.completions(OpenRun(run, RunCache()), asked(step=0))["groups"]
        ]
