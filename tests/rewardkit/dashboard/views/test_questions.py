"""The solutions of a question stand together, whatever the other columns of their rows say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun, RunCache
from rewardkit.dashboard.views import completions as views
from rewardkit.record.recorder import Recorder
from rewardkit.replay.recorded_run import Run
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

QUESTIONS, SAMPLES, MODELS = 5, 3, ("a", "b")
SCORES = np.random.default_rng(8).random((QUESTIONS, SAMPLES, len(MODELS))).round(3)


def recorded(path: Path, step: int | None = None) -> None:
    """Record three solutions of each of two models to five questions, a model after the other."""
    with Recorder(path) as recorder:
        for number, model in enumerate(MODELS):
            keys = [(question, sample) for question in range(QUESTIONS) for sample in range(SAMPLES)]
            rollouts = [
                Rollout(
                    f"question {question}", f"{model}{sample}", {"level": question % 2, "model": model, "n": sample}
                )
                for question, sample in keys
            ]
            scores = [float(SCORES[question, sample, number]) for question, sample in keys]
            column = [Outcome(Status.SCORED, score, version="0" * 12) for score in scores]
            recorder.record(ScoreBatch(rollouts, {"right": column}, {"right": 2.0}), step=step)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OpenRun]:
    recorded(tmp_path / "one")
    with Run.open(tmp_path / "one") as run:
        yield OpenRun(run, RunCache())


def test_the_table_of_a_scored_file_has_a_line_for_each_question(opened: OpenRun) -> None:
    """Its completions, best and mean are those of all solutions; a column in which they differ says so."""
    data = views.prompts(opened, Query({"sort": "mean", "order": "down"}))
    means = 2 * SCORES.mean(axis=(1, 2))
    order = np.argsort(-means)
    assert ("question", QUESTIONS, QUESTIONS) == (data["per"], data["total"], data["matched"])
    assert pytest.approx(means[order].tolist()) == [row["mean"] for row in data["rows"]]
    assert pytest.approx((2 * SCORES.max(axis=(1, 2)))[order].tolist()) == [row["best"] for row in data["rows"]]
    assert {(6, "several", "several")} == {
        (row["completions"], row["columns"]["model"], row["columns"]["n"]) for row in data["rows"]
    }
    assert [str(question % 2) for question in order] == [row["columns"]["level"] for row in data["rows"]]
    assert QUESTIONS * 6 == views.prompts(opened, Query({"per": "prompt"}))["total"]


@pytest.mark.parametrize(("column", "value", "count"), [("model", "b", 5), ("level", "1", 2), ("model", "c", 0)])
def test_a_question_is_listed_where_one_of_its_rows_has_the_value(
    opened: OpenRun, column: str, value: str, count: int
) -> None:
    """Also where the row that stands for the question has another."""
    assert count == views.prompts(opened, Query({"column": column, "value": value}))["matched"]


def test_a_question_has_all_its_solutions_side_by_side(opened: OpenRun) -> None:
    """From any of its rows: the same solutions, what they share beside the prompt, and what differs beside each."""
    for prompt in (0, 1, 15):
        data = views.prompt(opened, Query({"prompt": str(prompt)}))
        assert ({"level": "0"}, ["model", "n"]) == (data["columns"], data["differing"])
        found = {(row["columns"]["model"], int(row["columns"]["n"])): row["reward"] for row in data["rows"]}
        expected = {
            (model, sample): 2 * SCORES[0, sample, number]
            for number, model in enumerate(MODELS)
            for sample in range(SAMPLES)
        }
        assert pytest.approx(expected) == found
        best = max(data["rows"], key=lambda row: row["reward"])
        assert best["id"] == data["right"]
        assert (None, 3, 0, QUESTIONS) == tuple(data[key] for key in ("before", "next", "place", "of"))
    alone = views.prompt(opened, Query({"prompt": "0", "per": "prompt"}))
    assert (1, [], 29 + 1) == (alone["completions"], alone["differing"], alone["of"])


def test_a_training_keeps_its_prompts_apart_unless_asked(tmp_path: Path) -> None:
    """Its groups are of rows: one text may be an instruction for many pictures."""
    recorded(tmp_path / "one", step=0)
    with Run.open(tmp_path / "one") as run:
        opened = OpenRun(run, RunCache())
        assert QUESTIONS * 6 == views.prompts(opened, Query())["total"]
        assert QUESTIONS == views.prompts(opened, Query({"per": "question"}))["total"]


def test_the_index_of_questions_follows_a_file_that_grows(opened: OpenRun, tmp_path: Path) -> None:
    """A further solution of a question joins its line."""
    before: dict[str, Any] = views.prompts(opened, Query())
    with Recorder(tmp_path / "one", append=True) as recorder:
        column = [Outcome(Status.SCORED, 9.0, version="0" * 12)]
        recorder.record(ScoreBatch([Rollout("question 2", "c", {"model": "c"})], {"right": column}, {"right": 2.0}))
    after = views.prompts(opened, Query())
    assert (before["total"], 7, 18.0) == (
        after["total"], after["rows"][2]["completions"], after["rows"][2]["best"],
    )  # fmt: skip
