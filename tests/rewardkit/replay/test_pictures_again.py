"""Completions with pictures that are scored again: no score is made from what stands in a picture's place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rewardkit import Rollout, reward
from rewardkit.record.recorder import Recorder
from rewardkit.replay.graded_folders import GradedFolders
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.stored import NO_PICTURE, Needs, choose, needs_of, portions
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Status

PICTURE = b"\x89PNG\r\n\x1a\n half-written"


@reward
def looks(completion: str, image: str) -> float:
    return float(len(image))


@reward
def brief(completion: str) -> float:
    return 1.0


@reward
def whole(completion: str, **columns: object) -> float:
    return 1.0


def test_a_reward_that_reads_a_picture_is_not_asked_about_its_reference(tmp_path: Path) -> None:
    """One that does not is; a row without a picture is scored by both."""
    rollouts = [Rollout("q", "a", {"image": PICTURE}), Rollout("r", "b", {"image": "a text"})]
    outcomes = [Outcome(Status.SCORED, 1.0, version="0" * 12) for _ in rollouts]
    with Recorder(tmp_path / "one") as recorder:
        recorder.record(ScoreBatch(rollouts, {"brief": outcomes}, {"brief": 1.0}), step=0)
    with Run.open(tmp_path / "one") as run:
        for asked, left in ((looks, 1), (whole, 1), (brief, 0)):
            left_out: Counter[str] = Counter()
            folders = GradedFolders(tmp_path)
            reads = list(portions(run, choose(run), needs_of(asked), left_out, folders=folders))
            assert 2 - left == sum(len(read.completions) for read in reads)
            assert left == left_out[NO_PICTURE]


def test_needs_join() -> None:
    """All columns are more than any."""
    some, all_ = Needs(False, True, frozenset({"a"})), Needs(True, False, None)
    assert Needs(True, True, None) == some | all_
    assert Needs(False, True, frozenset({"a", "b"})) == some | Needs(False, False, frozenset({"b"}))
