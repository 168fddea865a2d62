"""Completions of a run are chosen by conditions, sorted by any number, and searched for a text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rewardkit.errors import RecordError
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.record.selection import Condition, Selection
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

SKIPPED = Outcome(Status.SKIPPED, None, version="1" * 12)
CALLS = (
    ("x = 1 or 363", 1.0, Outcome(Status.SCORED, 0.1, version="1" * 12, reason="polite")),
    ("x = 2", 0.0, Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, error="took 5 s", version="1" * 12)),
    ("x = 3", 0.5, Outcome(Status.SCORED, 0.9, version="1" * 12, logs="looked at 3")),
    ("x = 4", -1.0, SKIPPED),
)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunReader]:
    """Give a run of two steps with four completions each; ids count from 1."""
    with Recorder(tmp_path / "one") as recorder:
        for step, level in enumerate(("easy", "hard")):
            rollouts = [
                Rollout(f"prompt {step}", text, {"level": level, "n": step + 9}, [0] * 3) for text, _, _ in CALLS
            ]
            outcomes = {
                "correct": [Outcome(Status.SCORED, score, version="0" * 12) for _, score, _ in CALLS],
                "judge": [call for _, _, call in CALLS],
            }
            recorder.record(ScoreBatch(rollouts, outcomes, {"correct": 1.0, "judge": -10.0}), step=step)
    with RunReader(tmp_path / "one") as opened:
        yield opened


@pytest.mark.parametrize(
    ("conditions", "ids"),
    [
        ([], [1, 2, 3, 4, 5, 6, 7, 8]),
        (["judge<0.2"], [1, 5]),
        (["judge >= 0.1", "step=1"], [5, 7]),
        (["judge=timeout"], [2, 6]),
        (["judge=failed"], [2, 6]),
        (["judge=skipped", "level=hard"], [8]),
        (["judge!=scored"], [2, 4, 6, 8]),
        (["reward<-5"], [3, 7]),
        (["plain_sum==1.1"], [1, 5]),
        (["n>9"], [5, 6, 7, 8]),
        (["n=10.0", "correct>0"], [5, 7]),
        (["level=Hard"], []),
        (["prompt=0", "tokens<=3", "id>2"], [3, 4]),
        (["judge.version=1"], [1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_conditions_choose(run: RunReader, conditions: list[str], ids: list[int]) -> None:
    """On numbers, a reward's own score, its statuses and causes, and columns of the data; a default is no score."""
    assert ids == Selection(run, "train", [Condition.of(text) for text in conditions]).ids.tolist()


@pytest.mark.parametrize(
    ("sort", "ids"),
    [
        (None, [1, 2, 3, 4]),
        ("correct", [4, 2, 3, 1]),
        ("-correct", [1, 3, 2, 4]),
        ("judge", [1, 3, 2, 4]),
        ("-judge", [3, 1, 2, 4]),
        ("reward", [3, 4, 1, 2]),
        ("-plain_sum", [3, 1, 2, 4]),
    ],
)
def test_any_number_sorts(run: RunReader, sort: str | None, ids: list[int]) -> None:
    """From the lowest, or with a minus from the highest; what has no value stands last in the order of recording."""
    assert ids == Selection(run, "train", [Condition.of("step=0")], sort).ids.tolist()


@pytest.mark.parametrize(
    ("grep", "ids"),
    [
        ("or 363", [1]),
        (r"x = [34]", [3, 4]),
        ("polite", [1]),
        ("took 5", [2]),
        ("looked", [3]),
        ("^easy$", [1, 2, 3, 4]),
    ],
)
def test_a_text_is_looked_for_everywhere(run: RunReader, grep: str, ids: list[int]) -> None:
    """In completion, reason, error, output and columns."""
    selection = Selection(run, "train", [Condition.of("step=0")])
    assert ids == [row.id for row in selection.completions(grep)]


@pytest.mark.parametrize(
    ("condition", "sort", "grep", "message"),
    [
        ("judge", None, None, "expected a name, a sign and a value"),
        ("absent<1", None, None, "nothing is called 'absent'; there are correct, judge, reward"),
        ("judge<much", None, None, "expected a number, or of a reward one of scored, skipped, failed"),
        ("judge<failed", None, None, "is = or != another"),
        ("step=0", "absent", None, "no number 'absent'; there are correct, judge, reward"),
        ("step=0", None, "(", "not a regular expression"),
    ],
)
def test_what_is_not_there_is_named(
    run: RunReader, condition: str, sort: str | None, grep: str | None, message: str
) -> None:
    """With what there is."""
    with pytest.raises(RecordError, match=message.replace("(", r"\(")):
        list(Selection(run, "train", [Condition.of(condition)], sort).completions(grep))
