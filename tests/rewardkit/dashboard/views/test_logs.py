"""The view of logs: pages, entries, counts, and what it says to wrong requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import NotThere, OpenRun, RunCache
from rewardkit.dashboard.views.logs import BARS, WORDS, view
from rewardkit.errors import RecordError
from rewardkit.record.recorder import Recorder
from rewardkit.replay.recorded_run import Run
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

STEPS = 5


def _batch(step: int) -> ScoreBatch:
    """Return four completions; the reward ``loud`` fails with two causes at step 3, and skips one at step 1."""
    rollouts = [Rollout("2+2=", f"it is {n}", {"answer": "4"}, [1, 2]) for n in range(4)]
    loud = [Outcome(Status.SCORED, 1.0, logs=f"<b>line {n}</b>\nand another\n", duration_s=0.25) for n in range(4)]
    if step == 1:
        loud[0] = Outcome(Status.SKIPPED, None, "too short")
    if step == 3:
        loud[0] = Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, error="no answer within 1 s", attempts=2)
        loud[1] = Outcome(
            Status.FAILED, None, cause=Cause.EXCEPTION, error="KeyError: 'x'", traceback="File a.py", logs="in\n"
        )
    quiet = [Outcome(Status.SCORED, 0.5) for _ in range(4)]
    return ScoreBatch(rollouts, {"loud": loud, "quiet": quiet}, {"loud": 1.0, "quiet": 1.0})


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenRun]:
    """A run of five steps."""
    path = tmp_path_factory.mktemp("runs") / "one"
    with Recorder(path) as recorder:
        for step in range(STEPS):
            recorder.record(_batch(step), step=step)
    with Run.open(path) as run:
        yield OpenRun(run, RunCache())


def _asked(opened: OpenRun, **query: object) -> dict[str, Any]:
    told = view(opened, Query({name: str(value) for name, value in query.items()}))
    found: dict[str, Any] = json.loads(json.dumps(told, allow_nan=False))
    return found


def test_the_newest_entries_come_first(opened: OpenRun) -> None:
    """A page holds the last entries, and goes on where it ended."""
    page = _asked(opened, limit=3)
    assert [one["completion"] for one in page["entries"]] == [20, 19, 18]
    assert not page["ended"]
    rest = _asked(opened, limit=200, **{"from": page["next"]})
    assert len(rest["entries"]) == 4 * STEPS - 3
    assert rest["ended"]


def test_a_row_tells_the_fault_before_the_output(opened: OpenRun) -> None:
    """An error is what is looked for; its kind is told with it."""
    rows = {one["completion"]: one for one in _asked(opened, limit=200)["entries"]}
    assert (rows[14]["kind"], rows[14]["words"]) == ("error", "KeyError: 'x'")
    assert (rows[20]["kind"], rows[20]["words"]) == ("print", "<b>line 3</b> \u21b5 and another")
    assert (rows[5]["kind"], rows[5]["status"], rows[5]["score"]) == ("reason", "skipped", None)


def test_a_long_output_is_cut_in_its_row(tmp_path: Path) -> None:
    """A row is a row, however much was printed."""
    with Recorder(tmp_path / "one") as recorder:
        batch = ScoreBatch(
            [Rollout("p", "c", {})], {"loud": [Outcome(Status.SCORED, 1.0, logs="x" * 50_000)]}, {"loud": 1.0}
        )
        recorder.record(batch, step=0)
    with Run.open(tmp_path / "one") as run:
        (row,) = _asked(OpenRun(run, RunCache()))["entries"]
        assert len(row["words"]) == WORDS


@pytest.mark.parametrize(
    ("query", "completions"),
    [
        ({"status": "failed"}, [14, 13]),
        ({"status": "skipped"}, [5]),
        ({"cause": "timeout"}, [13]),
        ({"first": 3, "last": 3}, [16, 15, 14, 13]),
        ({"reward": "quiet"}, []),
        ({"reward": "loud", "version": 1, "status": "failed"}, [14, 13]),
        ({"version": 2}, []),
        ({"text": "KEYERROR"}, [14]),
        ({"text": "(no"}, []),
    ],
)
def test_entries_are_chosen_by_filters(opened: OpenRun, query: dict[str, object], completions: list[int]) -> None:
    """By outcome, steps, reward, version and text, which is no regular expression."""
    assert [one["completion"] for one in _asked(opened, **query)["entries"]] == completions


def test_following_asks_for_what_came_after_the_head(tmp_path: Path) -> None:
    """The head of a page is the place behind which entries are new; it moves on where nothing fits."""
    with Recorder(tmp_path / "one") as recorder, _running(recorder, tmp_path) as run:
        opened = OpenRun(run, RunCache())
        head = _asked(opened)["head"]
        recorder.record(_batch(3), step=1)
        recorder.flush()
        news = _asked(opened, order="oldest", status="failed", **{"from": head})
        assert [one["completion"] for one in news["entries"]] == [5, 6]
        assert news["next"] == news["head"]
        assert _asked(opened, order="oldest", **{"from": news["next"]})["entries"] == []


def _running(recorder: Recorder, folder: Path) -> Run:
    recorder.record(_batch(0), step=0)
    recorder.flush()
    return Run.open(folder / "one")


def test_an_entry_opens_to_all_that_is_known(opened: OpenRun) -> None:
    """The error with its traceback, attempts, and the completion with its prompt."""
    key = _asked(opened, status="failed", cause="exception")["entries"][0]["key"]
    one = _asked(opened, what="entry", key=key)
    assert (one["error"], one["traceback"], one["logs"], one["cause"]) == (
        "KeyError: 'x'",
        "File a.py",
        "in\n",
        "exception",
    )
    assert (one["completion"], one["prompt_index"], one["tokens"], one["score"]) == (14, 0, 2, None)
    assert "it is 1" in json.dumps(one["text"])


def test_counts_tell_what_failed_where_and_why(opened: OpenRun) -> None:
    """By reward and cause, with the newest error of each as an example."""
    counts = _asked(opened, what="counts")
    loud, quiet = counts["rewards"]
    assert (loud["reward"], loud["scored"], loud["skipped"], loud["failed"]) == (
        "loud",
        17,
        1,
        {"exception": 1, "timeout": 1},
    )
    assert loud["bars"][3] == [3, 2, 0, 2]
    assert (quiet["scored"], quiet["failed"]) == (20, {})
    assert [(one["cause"], one["count"], one["example"]["words"]) for one in counts["faults"]] == [
        ("exception", 1, "KeyError: 'x'"),
        ("timeout", 1, "no answer within 1 s"),
    ]


def test_counts_of_some_steps_keep_the_bars_of_all(opened: OpenRun) -> None:
    """The strip is of the whole run, the numbers are of the chosen steps."""
    counts = _asked(opened, what="counts", first=0, last=2)
    assert counts["faults"] == []
    assert counts["rewards"][0]["scored"] == 11
    assert len(counts["rewards"][0]["bars"]) == STEPS


def test_a_long_run_has_no_more_bars_than_fit(tmp_path: Path) -> None:
    """A bar stands for several steps."""
    with Recorder(tmp_path / "one") as recorder:
        for step in range(0, 3 * BARS, 2):
            recorder.record(_batch(0), step=step)
    with Run.open(tmp_path / "one") as run:
        counts = _asked(OpenRun(run, RunCache()), what="counts")
        assert counts["width"] == 3
        assert len(counts["rewards"][0]["bars"]) == BARS


def test_a_run_without_anything_has_no_entries(tmp_path: Path) -> None:
    """Empty is not wrong."""
    with Recorder(tmp_path / "one"):
        pass
    with Run.open(tmp_path / "one") as run:
        opened = OpenRun(run, RunCache())
        assert _asked(opened)["entries"] == []
        assert _asked(opened, what="counts") == {"steps": None, "width": 1, "rewards": [], "faults": []}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"reward": "none"}, "reward=none: expected loud, quiet"),
        ({"status": "lost"}, "status=lost: expected scored, skipped, failed"),
        ({"cause": "bad luck"}, "cause=bad luck: expected exception"),
        ({"first": 5, "last": 2}, "first=5: expected a step up to last=2"),
        ({"from": "12"}, "key '12': expected an entry's key"),
        ({"from": "1:2; DROP TABLE said"}, "expected an entry's key"),
        ({"limit": 0}, "limit=0: expected"),
        ({"what": "all"}, "what=all: expected page, entry, counts"),
        ({"what": "entry"}, "key: expected an entry's key"),
    ],
)
def test_a_wrong_request_is_told_in_one_line(opened: OpenRun, query: dict[str, object], words: str) -> None:
    """With the name, the value and what is expected."""
    with pytest.raises(RecordError) as wrong:
        _asked(opened, **query)
    assert words in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_an_entry_that_is_gone_is_not_there(opened: OpenRun) -> None:
    """A run that went back to a checkpoint takes entries away."""
    with pytest.raises(NotThere, match="no entry 999:1"):
        _asked(opened, what="entry", key="999:1")
