"""What the page is told of groups, histograms and pass rates, and what it is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun, RunCache
from rewardkit.dashboard.views import breakdown
from rewardkit.errors import RecordError
from rewardkit.record.recorder import Recorder
from rewardkit.replay.recorded_run import Run
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status


def batch(step: int) -> ScoreBatch:
    """Return the completions of a step: four of each of six prompts, of which ever more are right."""
    rows = [(f"prompt {number}", {"level": ["easy", "hard"][number % 2], "number": number}) for number in range(6)]
    rollouts = [Rollout(prompt, f"text {place}", row) for prompt, row in rows for place in range(4)]
    scores = [float(place < number - 1 + step // 4) for number in range(6) for place in range(4)]
    outcomes = [Outcome(Status.SCORED, score, version="1" * 12) for score in scores]
    return ScoreBatch(rollouts, {"good": outcomes}, {"good": 2.0})


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    """Give what records a run of eight steps."""
    with Recorder(tmp_path / "one") as recorder:
        for step in range(8):
            recorder.record(batch(step), step=step, num_generations=4)
        recorder.flush()
        yield recorder


@pytest.fixture
def opened(recorder: Recorder) -> Iterator[OpenRun]:
    """Give the run, open for reading."""
    with Run.open(recorder.path) as run:
        yield OpenRun(run, RunCache())


def test_columns_are_those_of_the_data(opened: OpenRun) -> None:
    """The choices of the page."""
    assert {"columns": ["level", "number"], "columns_left": 0} == breakdown.columns(opened, Query())


def test_groups_have_means_and_a_curve_each(opened: OpenRun) -> None:
    """Of the total, and of one reward's own scores."""
    total = breakdown.groups(opened, Query({"column": "level"}))
    own = breakdown.groups(opened, Query({"column": "level", "reward": "good"}))
    assert (["easy", "hard"], None) == ([row["label"] for row in total["groups"]], total["reading"])
    assert [row["mean"] for row in total["groups"]] == [2 * row["mean"] for row in own["groups"]]
    assert (list(range(8)), [8, 8]) == (total["steps"], [len(line) for line in total["curves"]])


def test_a_reading_goes_on_with_the_next_answer(opened: OpenRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then the answer says how far it came."""
    monkeypatch.setattr(breakdown, "READ_S", 0.0)
    answers = [breakdown.groups(opened, Query({"column": "level"}))]
    while answers[-1]["reading"]:
        answers.append(breakdown.groups(opened, Query({"column": "level"})))
    assert {"what": "prompts", "done": 1, "of": 6} == answers[0]["reading"]
    assert 192 == sum(row["completions"] for row in answers[-1]["groups"])


def test_what_is_recorded_meanwhile_is_in_the_next_answer(opened: OpenRun, recorder: Recorder) -> None:
    """In groups, histograms and pass rates."""
    before = breakdown.profile(opened, Query({"last": "100"}))
    recorder.record(batch(8), step=8, num_generations=4)
    assert recorder.flush()
    assert 8 == breakdown.groups(opened, Query({"column": "level"}))["steps"][-1]
    assert 8 == breakdown.histogram_view(opened, Query())["slices"][-1]["last"]
    after = breakdown.profile(opened, Query({"last": "100"}))
    assert [4] * 6 == [new["counted"] - old["counted"] for old, new in zip(before["rows"], after["rows"], strict=True)]


def test_a_histogram_compares_two_slices(opened: OpenRun) -> None:
    """The first and the last unless others are asked for; beyond the last is the last."""
    spread = breakdown.histogram_view(opened, Query({"after": "1000"}))
    assert (8, 0, 7) == (len(spread["slices"]), spread["before"], spread["after"])
    assert [{"low": 0.0, "high": 0.0, "middle": 0.0}, {"low": 2.0, "high": 2.0, "middle": 2.0}] == spread["bins"]
    flow = {"start": 0, "end": 1, "share": pytest.approx(4 / 24)}
    assert (pytest.approx(4 / 24), [flow]) == (spread["moved"], spread["flows"])
    alike = breakdown.histogram_view(opened, Query({"before": "2", "after": "2"}))
    assert (0.0, []) == (alike["moved"], alike["flows"])


@pytest.mark.parametrize(
    ("parameters", "prompts"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"kind": "never_right"}, [0]),
        ({"kind": "in_between"}, [1, 2, 3]),
        ({"kind": "always_right", "sort": "prompt", "order": "down"}, [5, 4]),
        ({"keep": "0.5..0.75"}, [2, 3]),
        ({"sort": "change", "order": "down", "kind": "in_between"}, [1, 2, 3]),
        ({"keep": "0.5..0.75", "kind": "unknown"}, []),
    ],
)
def test_a_page_of_pass_rates(opened: OpenRun, parameters: dict[str, str], prompts: list[int]) -> None:
    """Those of a kind or a range, in an order."""
    page = breakdown.profile(opened, Query(parameters))
    assert (prompts, len(prompts)) == ([row["prompt"] for row in page["rows"]], page["matched"])
    assert {"never_right": 1, "in_between": 3, "always_right": 2, "unknown": 0} == page["kinds"]
    assert ([1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 2], 6) == (page["rates"], page["prompts"])


def test_a_scored_file_has_questions(tmp_path: Path) -> None:
    """Unless rows are asked for."""
    rollouts = [Rollout("2+2=", f"text {k}", {"sample": k}) for k in range(4)]
    outcomes = [Outcome(Status.SCORED, float(k < 1), version="1" * 12) for k in range(4)]
    with Recorder(tmp_path / "scored") as recorder:
        recorder.record(ScoreBatch(rollouts, {"good": outcomes}, {"good": 1.0}))
    with Run.open(tmp_path / "scored") as run:
        opened = OpenRun(run, RunCache())
        page = breakdown.profile(opened, Query())
        assert ("question", 1, 0.25) == (page["by"], page["prompts"], page["rows"][0]["rate"])
        assert ['{"prompt": "2+2="}\n'] == breakdown.prompt_rows(opened, Query())["lines"]
        assert 4 == breakdown.profile(opened, Query({"by": "row"}))["prompts"]


@pytest.mark.parametrize("limit", [("LINES_AT_ONCE", 2), ("LINES_CHARS", 10)], ids=["lines", "characters"])
def test_the_rows_of_the_chosen_prompts_come_in_parts(
    opened: OpenRun, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int]
) -> None:
    """Each part says where the next begins; the lines are those of the file that the command writes."""
    monkeypatch.setattr(breakdown, *limit)
    lines, offset = [], 0
    while offset is not None:
        part = breakdown.prompt_rows(opened, Query({"keep": "0.1..0.9", "offset": str(offset)}))
        lines += part["lines"]
        offset = part["next"]
    assert (3, 3) == (part["done"], part["of"])
    assert [
        {"prompt": f"prompt {number}", "level": ["easy", "hard"][number % 2], "number": number} for number in (1, 2, 3)
    ] == [json.loads(line) for line in lines]
    nothing = breakdown.prompt_rows(opened, Query({"kind": "unknown"}))
    assert ([], None) == (nothing["lines"], nothing["next"])


@pytest.mark.parametrize(
    ("view", "parameters", "message"),
    [
        (breakdown.groups, {"column": "levle"}, "no column 'levle'"),
        (breakdown.groups, {}, "no column ''"),
        (breakdown.histogram_view, {"reward": "goood"}, "no reward 'goood'; near it: good"),
        (breakdown.profile, {"keep": "0.9..0.1"}, "keep 0.9..0.1: the first rate is above the second"),
        (breakdown.profile, {"last": "0"}, "last=0: expected a whole number"),
        (breakdown.profile, {"pass_at": "nan"}, "pass_at=nan: expected a number"),
        (breakdown.profile, {"sort": "__class__"}, "sort=__class__: expected"),
    ],
)
def test_a_wrong_question_is_answered_with_what_is_expected(
    opened: OpenRun, view: Any, parameters: dict[str, str], message: str
) -> None:
    """The error names the parameter and the value."""
    with pytest.raises(RecordError) as caught:
        view(opened, Query(parameters))
    assert str(caught.value).startswith(message)


def test_a_run_without_completions_is_answered(tmp_path: Path) -> None:
    """With nothing, and no error."""
    with Recorder(tmp_path / "empty") as recorder:
        recorder.metrics(1, {"loss": 1.0})
    with Run.open(tmp_path / "empty") as run:
        opened = OpenRun(run, RunCache())
        assert [] == breakdown.columns(opened, Query())["columns"]
        assert [] == breakdown.groups(opened, Query({"column": "level"}))["groups"]
        assert [] == breakdown.histogram_view(opened, Query())["bins"]
        assert [] == breakdown.profile(opened, Query())["rows"]
