"""A pass keeps what completions scored a further time, beside the run's own scores."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from rewardkit import Cause, Outcome, Rollout, Runtime, Status, reward
from rewardkit.errors import RecordError
from rewardkit.record.passes import PassWriter
from rewardkit.record.reader import RunReader


@reward
def exact(completion: str, answer: str) -> float:
    """Pay for the answer itself."""
    return float(completion == answer)


@reward
def lenient(completion: str, answer: str) -> float:
    """Pay for the answer anywhere."""
    return float(answer in completion)


def made(place: Any) -> Any:
    """A run of two batches of two completions."""
    with Runtime([exact], lane="inline", record=place / "one") as runtime:
        for step in (0, 1):
            runtime.score([Rollout("2+2=", one, {"answer": "4"}) for one in ("4", "It is 4")], step=step)
    return place / "one"


@pytest.fixture
def run(place: Any) -> Any:
    """A run of two batches of two completions."""
    return made(place)


OUTCOMES = [
    Outcome(Status.SCORED, 1.0, "there", {"length": 7.0}, duration_s=0.5),
    Outcome(Status.SKIPPED, None, logs="printed"),
    Outcome(Status.FAILED, 0.0, None, {}, Cause.EXCEPTION, "ValueError: no", "the frames", attempts=2),
]


def test_a_pass_is_read_back_and_the_run_s_own_scores_stay(run: Any) -> None:
    """Scored, skipped and failed outcomes come back with all that they said; the run is as it was."""
    with RunReader(run) as reader:
        before = list(reader.completions())
    with PassWriter(run, "exact", lenient, about={"steps": "0-1"}) as writer:
        writer.add([1, 2], OUTCOMES[:2])
        writer.add([4], OUTCOMES[2:])
    with RunReader(run) as reader:
        (one,) = reader.passes
        assert (1, "exact", 2, 3, {"steps": "0-1"}) == (one.id, one.reward, one.version, one.completions, one.about)
        assert one.ended is not None
        found = reader.rescored(one.id, [1, 2, 3, 4])
        digits = reader.versions[1].digits
        assert {k: v._replace(version=digits) for k, v in zip((1, 2, 4), OUTCOMES, strict=True)} == found
        numbers = reader.pass_columns(one.id)
        assert ([1, 2, 4], ["s", "k", "f"]) == (numbers.ids.tolist(), numbers.status.tolist())
        assert [1.0, True, 0.0] == [numbers.scores[0], math.isnan(numbers.scores[1]), numbers.scores[2]]
        assert before == list(reader.completions())
        assert [("exact", 1, "run"), ("exact", 2, "rescore")] == [
            (version.reward, version.number, version.origin) for version in reader.versions
        ]
        assert [1, 3] == reader.batch_starts().tolist()


def test_two_passes_of_one_version_stand_beside_each_other(run: Any) -> None:
    """As noise is measured: the version is known already, and each pass has its own scores."""
    for score in (0.25, 0.75):
        with PassWriter(run, "exact", exact) as writer:
            writer.add([1], [Outcome(Status.SCORED, score)])
    with RunReader(run) as reader:
        assert [(1, 1), (2, 1)] == [(one.id, one.version) for one in reader.passes]
        assert [0.25, 0.75] == [reader.rescored(one.id, [1])[1].score for one in reader.passes]
        assert 1 == len(reader.versions)


def test_a_pass_that_is_cut_short_keeps_what_it_has_and_says_so(run: Any) -> None:
    """What was added is there; the pass has no end."""
    writer = PassWriter(run, "exact", lenient)
    writer.add([1], OUTCOMES[:1])
    writer.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    with RunReader(run) as reader:
        assert [(1, None)] == [(one.completions, one.ended) for one in reader.passes]


def test_a_completion_is_scored_once_in_a_pass(run: Any) -> None:
    """A second score is refused, and what the transaction would have written besides is not there."""
    with PassWriter(run, "exact", lenient) as writer:
        writer.add([1], OUTCOMES[:1])
        with pytest.raises(RecordError, match=r"UNIQUE constraint failed|duplicate key value"):
            writer.add([2, 1], OUTCOMES[:2])
    with RunReader(run) as reader:
        assert [1] == reader.pass_columns(1).ids.tolist()


def test_second_scores_are_those_of_the_same_version(run: Any) -> None:
    """Of two passes the newer; another version's scores, and what a pass could not score, are no second score."""
    for scores in ({1: 0.25, 2: 0.5}, {2: 0.75, 4: None}):
        with PassWriter(run, "exact", exact) as writer:
            outcomes = [Outcome(Status.SKIPPED if one is None else Status.SCORED, one) for one in scores.values()]
            writer.add(list(scores), outcomes)
    with PassWriter(run, "exact", lenient) as writer:
        writer.add([3], OUTCOMES[:1])
    with RunReader(run) as reader:
        (second,) = reader.again(reader.table()).values()
        assert [0.25, 0.75, None, None] == [None if math.isnan(one) else one for one in second.tolist()]
        assert [0.75] == reader.again(reader.table().where(reader.table().ids == 2))["exact"].tolist()
        assert {} == reader.again(reader.table(steps=(1, 1)))


def test_a_full_disk_is_told_in_words_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """What was to be written with it is taken back, its texts too; once there is room the pass goes on."""
    run = made(tmp_path)
    long = OUTCOMES[2]._replace(logs="".join(map(chr, range(0x4E00, 0x9F00))))
    with PassWriter(run, "exact", lenient) as writer:
        (pages,) = writer._connection.execute("PRAGMA page_count").fetchone()
        writer._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(RecordError, match=r"record\.db: database or disk is full"):
            writer.add([4], [long])
        writer._connection.execute("PRAGMA max_page_count = 1000000")
        writer.add([4], OUTCOMES[2:])
    with RunReader(run) as reader:
        (said,) = reader.rescored(1, [4]).values()
        assert ("the frames", "") == (said.traceback, said.logs)
