"""A run's curves say what its completions say, step by step, and only what is new is read and sent."""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun, RunCache
from rewardkit.dashboard.views.graphs import costs, times, view
from rewardkit.errors import RecordError
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.replay import curves
from rewardkit.replay.recorded_run import Run
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

FLAG = {
    "detector": "ceiling", "reward": "good", "first_step": 0, "last_step": 2, "value": 0.9, "threshold": 0.8,
    "baseline": None, "words": "most have the best score", "action": "Read them.", "rows": [1],
}  # fmt: skip


def batch(good: Sequence[float | str | None], fine: Sequence[float], version: str = "a" * 12) -> ScoreBatch:
    """Return a group of completions; a word fails the call with this cause, None skips it."""
    outcomes = {"good": [outcome(one, version) for one in good], "fine": [outcome(one, "b" * 12) for one in fine]}
    rollouts = [Rollout("2+2=", f"it is {place}", {}) for place in range(len(good))]
    return ScoreBatch(rollouts, outcomes, {"good": 1.0, "fine": 0.5})


def outcome(given: float | str | None, version: str) -> Outcome:
    """Return an outcome of any kind; a cause with ``=0.0`` behind it has this default."""
    if isinstance(given, str):
        cause, _, default = given.partition("=")
        score = float(default) if default else None
        return Outcome(Status.FAILED, score, cause=Cause(cause), error="it failed", version=version, duration_s=0.5)
    if given is None:
        return Outcome(Status.SKIPPED, None, version=version)
    return Outcome(Status.SCORED, given, version=version, duration_s=0.25)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Recorder]:
    """Give what records a run."""
    with Recorder(tmp_path / "one") as one:
        yield one


@pytest.fixture
def opened(writer: Recorder) -> Iterator[OpenRun]:
    """Give the same run, open for reading."""
    assert writer.flush()
    with Run.open(writer.path) as run:
        yield OpenRun(run, RunCache())


def asked(opened: OpenRun, **query: object) -> dict[str, Any]:
    """Return an answer, as the page gets it."""
    answer = view(opened, Query({name: str(value) for name, value in query.items()}))
    found: dict[str, Any] = json.loads(json.dumps(answer, allow_nan=False))
    return found


def line(answer: Mapping[str, Any], graph: str, name: str, part: str = "values") -> list[float | None]:
    """Return a line of an answer."""
    (found,) = [one for one in answer["graphs"] if one["key"] == graph]
    (wanted,) = [one for one in found["lines"] if one["name"] == name]
    values: list[float | None] = wanted[part]
    return values


def graph(answer: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a graph of an answer."""
    (found,) = [one for one in answer["graphs"] if one["key"] == key]
    return dict(found)


def joined(known: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page has once it has put an answer behind what it knows."""
    first = more["from"]
    graphs = []
    for before, after in zip(known["graphs"], more["graphs"], strict=True):
        lines = [
            {part: old[part] if part == "name" or old[part] is None else old[part][:first] + new[part] for part in old}
            for old, new in zip(before["lines"], after["lines"], strict=True)
        ]
        notes = [*(one for one in before["notes"] if not more["steps"] or one[0] < more["steps"][0]), *after["notes"]]
        graphs.append(after | {"lines": lines, "notes": notes})
    return dict(more) | {"steps": known["steps"][:first] + more["steps"], "graphs": graphs, "from": 0, "mark": 0}


def test_curves_say_what_the_completions_say(writer: Recorder, opened: OpenRun) -> None:
    """Means, bands and shares are those of the recorded scores; the total is weighted, beside the plain sum."""
    writer.record(batch([0.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.1]), step=0)
    writer.record(batch([1.0, 1.0, 1.0, 1.0], [0.2, 0.4, 0.6, 0.8]), step=1)
    assert writer.flush()
    answer = asked(opened)
    assert answer["steps"] == [0, 1]
    assert line(answer, "reward/good", "mean") == [0.75, 1.0]
    assert line(answer, "reward/good", "mean", "low") == [0.25, 1.0]
    assert line(answer, "reward/good", "mean", "high") == [1.0, 1.0], "a band ends where the scores end"
    assert line(answer, "reward/fine", "lowest") == [0.1, 0.2]
    assert line(answer, "reward/fine", "highest") == [0.5, 0.8]
    totals = [one.total for one in opened.run.completions(step=0) if one.total is not None]
    assert line(answer, "total_reward", "total")[0] == pytest.approx(statistics.mean(totals))
    assert line(answer, "total_reward_std", "total")[0] == pytest.approx(statistics.stdev(totals), rel=1e-5)
    assert line(answer, "total_reward", "total") == pytest.approx([0.95, 1.25])
    assert line(answer, "total_reward", "plain sum") == pytest.approx([1.15, 1.5])
    assert line(answer, "flat_groups", "good") == [0.0, 1.0]
    assert line(answer, "time_p50", "good") == [0.25, 0.25]


def test_a_step_without_a_score_is_a_gap_with_its_reason(writer: Recorder, opened: OpenRun) -> None:
    """Failed and skipped calls have no mean, never 0; why is said, and each has its own share."""
    writer.record(batch(["timeout", "timeout", "exception", None], [0.0] * 4), step=0)
    writer.record(batch([0.0, 0.0, 0.0, None], [0.0] * 4), step=1)
    assert writer.flush()
    answer = asked(opened)
    assert line(answer, "reward/good", "mean") == [None, 0.0]
    assert graph(answer, "reward/good")["notes"] == [[0, "1 failed (exception), 2 failed (timeout), 1 skipped"]]
    assert line(answer, "failed", "good") == [0.75, 0.0]
    assert line(answer, "timeouts", "good") == [0.5, 0.0]
    assert line(answer, "skipped", "good") == [0.25, 0.25]


def test_a_default_is_no_score(writer: Recorder, opened: OpenRun) -> None:
    """Where defaults are all there is, nothing is known; beside scores they are in no figure."""
    writer.record(batch(["timeout=0.0"] * 4, [0.5] * 4), step=0)
    writer.record(batch([1.0, 1.0, 0.5, "timeout=0.0"], [0.5] * 4), step=1)
    assert writer.flush()
    answer = asked(opened)
    for name in ("mean", "lowest", "highest"):
        assert line(answer, "reward/good", name)[0] is None
    assert line(answer, "reward/good", "mean", "low")[0] is None
    assert [pytest.approx(2.5 / 3), 0.5, 1.0] == [
        line(answer, "reward/good", n)[1] for n in ("mean", "lowest", "highest")
    ]
    notes = [[0, "all 4 failed (timeout)"], [1, "1 of 4 failed (timeout)"]]
    assert graph(answer, "reward/good")["notes"] == notes
    assert [None, 0.875] == line(answer, "total_reward", "total"), "a gap, and as the trainer computes it"
    total = [[0, "good: all 4 failed (timeout)"], [1, "good: 1 of 4 failed (timeout)"]]
    assert graph(answer, "total_reward")["notes"] == total
    assert opened.run.series("good") == [(1, pytest.approx(2.5 / 3))]
    assert opened.run.total_series() == [(1, 0.875)]


def test_a_total_of_defaults_alone_is_none(writer: Recorder, opened: OpenRun) -> None:
    """A reward of weight 0 that scores does not count: it is in no total."""
    failed = batch(["timeout=0.0"] * 4, [0.5] * 4)
    shadowed = ScoreBatch(failed.rollouts, failed.outcomes, {"good": 1.0, "fine": 0.0})
    writer.record(shadowed, step=0)
    writer.record(batch([1.0] * 4, [0.5] * 4), step=1)
    assert writer.flush()
    answer = asked(opened)
    assert line(answer, "total_reward", "total") == [None, 1.25]
    assert line(answer, "total_reward", "plain sum") == [None, 1.5]
    assert line(answer, "total_reward_std", "total") == [None, 0.0]
    assert graph(answer, "total_reward")["notes"] == [[0, "good: all 4 failed (timeout)"]]


@pytest.mark.parametrize(
    ("good", "total", "note"),
    [
        (["timeout", "timeout", "exception", None], 0.25, "good: 3 of 4 failed (exception, timeout)"),
        (["timeout"] * 4, None, "good: all 4 failed (timeout)"),
        (["timeout=9.0", 1.0, 1.0, 1.0], 3.25, "good: 1 of 4 failed (timeout)"),
        ([None] * 4, 0.25, None),
        ([0.0] * 4, 0.25, None),
    ],
    ids=["some without a default", "all", "a default", "skipped", "scored 0"],
)
def test_the_total_says_which_calls_it_lacks(
    writer: Recorder, opened: OpenRun, good: list[float | str | None], total: float | None, note: str | None
) -> None:
    """A gap where all calls of a reward that counts failed, a mark where some did; a skip or a 0 is none."""
    writer.record(batch(good, [0.5] * 4), step=0)
    assert writer.flush()
    answer = asked(opened)
    assert [total] == line(answer, "total_reward", "total")
    assert ([] if note is None else [[0, note]]) == graph(answer, "total_reward")["notes"]
    assert ([] if total is None else [(0, total)]) == opened.run.total_series()


def test_sums_of_older_records_leave_defaults_out_too(writer: Recorder, opened: OpenRun) -> None:
    """A recorder once counted them: mean, lowest and highest are made again from the scores."""
    rows = [[1.0, 3.0, "timeout=0.0", "exception=9.0"], [2.0, None, "timeout", 4.0], ["timeout=0.0"] * 4]
    for step, good in enumerate(rows):
        writer.record(batch(good, [0.5] * 4), step=step)
    assert writer.flush()
    before = [asked(opened)["graphs"], opened.run.series("good"), opened.run.summaries("good")]
    with contextlib.closing(sqlite3.connect(writer.path.home / "record.db")) as connection, connection:
        connection.execute("UPDATE session SET about = '{}'")
        connection.execute("UPDATE summary SET counted = 4, mean = 3.25, std = 4.0, min = 0, max = 9 WHERE batch = 1"
                           " AND failed > 0")  # fmt: skip
        connection.execute("UPDATE summary SET counted = 4, mean = 0, std = 0, min = 0, max = 0 WHERE batch = 3"
                           " AND failed > 0")  # fmt: skip
    with Run.open(writer.path) as run:
        assert before == [asked(OpenRun(run, RunCache()))["graphs"], run.series("good"), run.summaries("good")]
    assert [(0, 2.0), (1, 3.0)] == before[1]


def test_a_short_curve_of_an_older_record_opens_its_own_steps_alone(writer: Recorder) -> None:
    """The list of runs draws a few steps of each run, however long an older one trained."""
    for step in range(5):
        writer.record(batch([1.0, float(step), "timeout=0.0"], [0.5] * 3), step=step)
    assert writer.flush()
    with contextlib.closing(sqlite3.connect(writer.path.home / "record.db")) as connection, connection:
        connection.execute("UPDATE session SET about = '{}'")
        connection.execute("UPDATE completion SET scores = x'00' WHERE batch = 2")  # it cannot be read
    with Run.open(writer.path) as run:
        assert [(0, 0.5), (4, 2.5)] == run.series("good", most=2)
        assert [(0, 0.5), (2, 1.5), (4, 2.5)] == run.series("good", most=3)
        with pytest.raises(RecordError, match="damaged"):
            run.series("good")


def test_only_what_changed_is_sent_and_joins_what_was_known(writer: Recorder, opened: OpenRun) -> None:
    """An answer asked for with a mark begins at the first step that changed, and makes the whole of it."""
    for step in range(5):
        writer.record(batch([0.0, 1.0], [0.1 * step, 0.3]), step=step)
        writer.metrics(step + 1, {"loss": 1 / (step + 1)})
    assert writer.flush()
    known = asked(opened, metrics="loss")
    assert asked(opened, metrics="loss", after=known["mark"])["steps"] == []
    writer.record(batch(["crashed", "crashed"], [0.1, 0.3]), step=5)
    writer.record(batch([1.0, 1.0], [1.0, 1.0]), step=4)  # a second process is late
    writer.metrics(6, {"loss": 0.1})
    assert writer.flush()
    more = asked(opened, metrics="loss", after=known["mark"])
    assert (more["from"], more["steps"]) == (4, [4, 5])
    fresh = asked(OpenRun(opened.run, RunCache()), metrics="loss")
    assert joined(known, more) == fresh | {"mark": 0}
    assert line(fresh, "reward/good", "mean")[4:] == [0.75, None]
    total = [one.total for one in opened.run.completions(step=4) if one.total is not None]
    assert line(fresh, "total_reward_std", "total")[4] == pytest.approx(statistics.stdev(total), rel=1e-5)


def test_the_usual_metrics_need_no_names(writer: Recorder, opened: OpenRun) -> None:
    """Those that most look at have a graph, as soon as the trainer logs them."""
    writer.record(batch([0.0, 1.0], [0.0, 1.0]), step=0)
    writer.metrics(1, {"rare/thing": 1.0, "loss": 0.5, "canary/accuracy": 0.75})
    assert writer.flush()
    known = asked(opened, usual="1")
    assert [one["key"] for one in known["graphs"] if one["group"] == "metrics"] == [
        "metric/canary/accuracy",
        "metric/loss",
    ]
    writer.record(batch([0.0, 1.0], [0.0, 1.0]), step=1)
    writer.metrics(2, {"kl": 0.25})
    assert writer.flush()
    more = asked(opened, usual="1", after=known["mark"])
    assert (more["from"], line(more, "metric/kl", "kl")) == (1, [0.25]), "the page fills the steps before with gaps"


def test_only_new_steps_are_read(writer: Recorder, opened: OpenRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is not asked of the record again, and nothing is while the record stays the same."""
    read: list[int | None] = []
    summaries = RunReader.summaries

    def watched(self: RunReader, *given: Any, since: int | None = None, **named: Any) -> Any:
        read.append(since)
        return summaries(self, *given, since=since, **named)

    monkeypatch.setattr(RunReader, "summaries", watched)
    for step in range(3):
        writer.record(batch([1.0, 0.0], [0.0, 0.0]), step=step)
        assert writer.flush()
        asked(opened)
        asked(opened)
    assert read == [0, 1, 2]


def test_a_training_taken_back_is_told_anew(writer: Recorder, opened: OpenRun) -> None:
    """Steps that are done again from a checkpoint replace the old ones, and the whole is sent."""
    for step in range(4):
        writer.record(batch([1.0, 1.0], [0.0, 1.0]), step=step)
        writer.metrics(step + 1, {"loss": 1.0})
    assert writer.flush()
    known = asked(opened, metrics="loss")
    writer.rewind(2)
    for step in (2, 3):
        writer.record(batch([0.0, 0.0], [0.0, 1.0]), step=step)
    assert writer.flush()
    more = asked(opened, metrics="loss", after=known["mark"])
    assert more["from"] == 0
    assert line(more, "reward/good", "mean") == [1.0, 1.0, 0.0, 0.0]
    assert line(more, "metric/loss", "loss") == [1.0, 1.0, None, None]


def test_totals_of_a_long_run_come_in_portions(
    writer: Recorder, opened: OpenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer does not wait for all completions, and says how many batches are still unread."""
    monkeypatch.setattr(curves, "AT_ONCE", 2)
    monkeypatch.setattr(curves, "AT_FIRST", 2)
    for step in range(40):
        writer.record(batch([1.0, 1.0], [0.0, 1.0]), step=step)
    assert writer.flush()
    answer = asked(opened)
    assert answer["unread"] == 24
    assert line(answer, "reward/good", "mean") == [1.0] * 40
    assert line(answer, "total_reward", "total") == [1.25] * 16 + [None] * 24
    while answer["unread"]:
        more = asked(opened, after=answer["mark"])
        assert more["unread"] < answer["unread"]
        answer = joined(answer, more) | {"mark": more["mark"]}
    assert line(answer, "total_reward", "total") == [1.25] * 40


def test_a_metric_stands_at_the_step_that_it_tells_of(writer: Recorder, opened: OpenRun) -> None:
    """The trainer logs a step after it; names may hold commas, and what is no number is unknown."""
    writer.record(batch([1.0, 0.0], [0.0, 1.0]), step=0)
    writer.metrics(1, {"loss": 0.5, "rewards/gate(a, b)/mean": 0.25, "kl": math.inf})
    writer.metrics(4, {"loss": 0.1})
    assert writer.flush()
    answer = asked(opened, metrics="loss,rewards%2Fgate(a%2C%20b)%2Fmean,kl,nothing")
    assert answer["steps"] == [0, 3]
    assert answer["unscored"] == [3], "at this step the trainer logged, and nothing was scored"
    assert line(answer, "metric/loss", "loss") == [0.5, 0.1]
    assert line(answer, "metric/rewards/gate(a, b)/mean", "rewards/gate(a, b)/mean") == [0.25, None]
    assert line(answer, "metric/kl", "kl") == [None, None]
    assert line(answer, "metric/nothing", "nothing") == [None, None]


def test_a_spread_that_is_rounding_alone_is_none(writer: Recorder, opened: OpenRun) -> None:
    """In the trainer's float32 as in the record's own numbers; a small one beside small rewards stays."""
    writer.record(batch([0.1] * 3, [0.3] * 3), step=0)
    writer.metrics(1, {"reward": 3000.0, "reward_std": 2e-4, "rewards/good/mean": 0.5, "rewards/good/std": 6e-8})
    writer.metrics(2, {"reward": 0.5, "reward_std": 2e-4, "rewards/good/std": math.nan})
    assert writer.flush()
    answer = asked(opened, metrics="rewards%2Fgood%2Fstd")
    assert line(answer, "total_reward_std", "reward_std") == [0.0, 2e-4]
    assert line(answer, "metric/rewards/good/std", "rewards/good/std") == [0.0, None]
    assert [0.0, 0.0] == [one.std for one in opened.run.summaries()]
    assert opened.run.metrics("reward_std")[0] == (1, 2e-4), "the record keeps what the trainer said"


def test_evaluations_have_curves_of_their_own(writer: Recorder, opened: OpenRun) -> None:
    """Neither split has the other's steps."""
    writer.record(batch([1.0, 0.0], [0.0, 1.0]), step=0)
    writer.record(batch([1.0, 1.0], [0.0, 1.0]), step=10, split="eval")
    writer.metrics(10, {"eval_loss": 0.5}, "eval")
    assert writer.flush()
    assert asked(opened)["steps"] == [0]
    answer = asked(opened, split="eval", metrics="eval_loss")
    assert answer["steps"] == [10]
    assert line(answer, "reward/good", "mean") == [1.0]
    assert line(answer, "metric/eval_loss", "eval_loss") == [0.5]


def test_marks_tell_what_happened_at_which_step(tmp_path: Path) -> None:
    """New versions, flags and resumptions; the versions that the run began with are no event."""
    with Recorder(tmp_path / "one") as one:
        one.record(batch([1.0, 0.0], [0.0, 1.0]), step=0)
        one.record(batch([1.0, 0.0], [0.0, 1.0], version="c" * 12), step=1)
        one.event("flag", FLAG, 2)
    with Recorder(tmp_path / "one", append=True) as two:
        two.record(batch([1.0, 0.0], [0.0, 1.0], version="c" * 12), step=2)
    with Run.open(tmp_path / "one") as run:
        found = asked(OpenRun(run, RunCache()))["markers"]
    assert [(mark["step"], mark["kind"], mark["reward"], mark["words"]) for mark in found] == [
        (1, "version", "good", "good@2 scores from here on"),
        (2, "flag", "good", "ceiling: most have the best score"),
        (2, "resume", None, "the training goes on from a checkpoint"),
    ]
    assert [("good@2", "good@1")] == [(mark["version"], mark["before"]) for mark in found if "version" in mark]


def test_completions_without_steps_have_no_curves(writer: Recorder, opened: OpenRun) -> None:
    """What was scored without a trainer is no graph; each reward is still named."""
    assert asked(opened)["steps"] == []
    writer.record(batch([1.0, 0.0], [0.0, 1.0]))
    assert writer.flush()
    answer = asked(opened)
    assert (answer["steps"], answer["unread"], answer["markers"]) == ([], 0, [])
    assert graph(answer, "reward/good")["lines"] == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"split": "test"}, "split=test: expected train, eval"),
        ({"after": "soon"}, "after=soon: expected a whole number"),
        ({"usual": "yes"}, "usual=yes: expected a whole number from 0 to 1"),
        ({"metrics": ",".join(f"m{place}" for place in range(61))}, "metrics: 61 names; expected at most 60"),
    ],
)
def test_a_wrong_question_is_answered_in_a_line(opened: OpenRun, query: dict[str, str], words: str) -> None:
    """It names what was given and what is expected."""
    with pytest.raises(RecordError, match=words):
        view(opened, Query(query))


def test_the_times_of_steps_are_those_of_their_last_batches(tmp_path: Path) -> None:
    """They are thinned where there are many, and batches without a step have none."""
    with Recorder(tmp_path / "one") as recorder:
        for step in (0, 0, 1, None):
            recorder.record(batch([1.0, 0.0], [1.0, 1.0]), step=step)
    with contextlib.closing(sqlite3.connect(tmp_path / "one" / "record.db")) as file, file:
        file.execute("UPDATE batch SET scored = 1000 + id")
    with Run.open(tmp_path / "one") as run:
        opened = OpenRun(run, RunCache())
        assert {"split": "train", "times": [(0, 1002.0), (1, 1003.0)]} == times(opened, Query({}))
        assert [] == times(opened, Query({"split": "eval"}))["times"]


def test_what_the_calls_took_is_summed_by_reward_and_split(writer: Recorder, opened: OpenRun) -> None:
    """A reward whose calls took nothing is not in it."""
    paid = batch([1.0, 0.0], [1.0, 1.0])
    paid.outcomes["good"][0] = paid.outcomes["good"][0]._replace(metrics={"requests": 2.0, "cost_usd": 0.25})
    writer.record(paid, step=0)
    assert writer.flush()
    expected = {"requests": {"sum": 2.0, "complete": True}, "cost_usd": {"sum": 0.25, "complete": True}}
    assert [{"reward": "good", "costs": expected}] == costs(opened, Query({}))["rewards"]
    assert [] == costs(opened, Query({"split": "eval"}))["rewards"]


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_scores_whose_squares_overflow_leave_the_curves_a_deviation_short(writer: Recorder, opened: OpenRun) -> None:
    """The means are drawn all the same."""
    writer.record(batch([1e300, 0.0], [1.0, 1.0]), step=0)
    assert writer.flush()
    answer = asked(opened)
    assert [pytest.approx(5e299)] == line(answer, "reward/good", "mean")
    assert [None] == line(answer, "total_reward_std", "total")
