"""Diagnoses of recorded runs and of scored rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from synthetic_runs import Drawn, run_of

from rewardkit import Runtime, reward
from rewardkit.health.detectors import DETECTORS
from rewardkit.health.examine import diagnose_rows, diagnose_run, metrics_of, table_of
from rewardkit.record.passes import PassWriter
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

GROUPS, SIZE = 8, 4


@reward
def shaky(completion: str) -> float:
    """Pay by the length, as far as anybody knows."""
    return len(completion) % 7 / 7


def _batch(rng: np.random.Generator, *, version: str = "a" * 12, hang: float = 0.0) -> ScoreBatch:
    """Return a step of answers, of which some calls time out."""
    rollouts, outcomes = [], []
    for group in range(GROUPS):
        prompt = [{"role": "user", "content": f"{group}+1="}]
        example = {"answer": str(group + 1)}
        for _ in range(SIZE):
            words = " ".join(f"w{n}" for n in rng.integers(0, 500, 20))
            rollouts.append(Rollout(prompt, [{"role": "assistant", "content": words}], example, list(range(20))))
            if rng.random() < hang:
                outcomes.append(Outcome(Status.FAILED, None, cause=Cause.TIMEOUT, version=version))
            else:
                outcomes.append(Outcome(Status.SCORED, float(rng.random() < 0.5), version=version))
    return ScoreBatch(rollouts, {"correct": outcomes}, {"correct": 1.0})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of 40 steps in which calls begin to hang at step 20."""
    rng = np.random.default_rng(0)
    with Recorder(tmp_path / "one") as recorder:
        for step in range(40):
            recorder.record(_batch(rng, hang=0.5 if step >= 20 else 0.0), step=step)
            recorder.metrics(step, {"completions/clipped_ratio": 0.7, "loss": 0.1})
    return tmp_path / "one"


def test_a_recorded_run_is_diagnosed(run: Path) -> None:
    """Flags with their steps and with ids of completions in the record, from scores and from the trainer's metrics."""
    with RunReader(run) as reader:
        found = diagnose_run(reader)
        assert {"timeouts": (20, 39), "clipped": (0, 39)} == {
            flag.detector: (flag.first_step, flag.last_step) for flag in found.flags
        }
        (late,) = [flag for flag in found.flags if flag.detector == "timeouts"]
        assert [Cause.TIMEOUT] * 8 == [one.outcomes["correct"].cause for one in reader.by_id(late.rows)]
    assert (40 * GROUPS * SIZE, (0, 39), ["correct"]) == (found.completions, found.steps, found.rewards)
    assert set(DETECTORS) == {*found.looked, *found.not_looked}
    assert {"dominance", "held_out_falls", "noise"} <= set(found.not_looked)


def test_some_steps_of_a_run_are_diagnosed(run: Path) -> None:
    """What is before and after them does not count."""
    with RunReader(run) as reader:
        found = diagnose_run(reader, steps=(5, 14))
    assert ["clipped"] == [flag.detector for flag in found.flags]
    assert (5, 14) == found.steps


def test_a_second_scoring_is_told_as_noise(run: Path) -> None:
    """By reward, over all completions that have both scores."""
    with RunReader(run) as reader:
        found = diagnose_run(reader, again=lambda table: {"correct": 1 - table.scores["correct"]})
    assert ["correct"] == list(found.noise)
    assert found.noise["correct"].share > 0.9
    assert "noise" in {flag.detector for flag in found.flags}


def test_noise_is_read_from_a_pass_of_rescoring(tmp_path: Path) -> None:
    """A pass of the version that scored the run is a second scoring."""
    rng = np.random.default_rng(0)
    rollouts = [Rollout(f"{n // 4}", f"text {n}", {}) for n in range(64)]
    with Runtime([shaky], lane="inline", record=tmp_path / "one") as runtime:
        runtime.score(rollouts, step=0)
    outcomes = [Outcome(Status.SCORED, float(rng.random()), version=shaky.version) for _ in rollouts]
    with RunReader(tmp_path / "one") as reader:
        ids = reader.table().ids.tolist()
    with PassWriter(tmp_path / "one", "shaky", shaky) as second:
        second.add(ids, outcomes)
    with RunReader(tmp_path / "one") as reader:
        found = diagnose_run(reader)
    assert ["shaky"] == list(found.noise)
    assert (64, 16) == found.noise["shaky"][:2]
    assert "noise" not in found.not_looked


def test_a_record_without_steps_is_looked_at_as_rows(tmp_path: Path) -> None:
    """As scoring a file makes it."""
    with Recorder(tmp_path / "rows") as recorder:
        recorder.record(_batch(np.random.default_rng(0)))
    with RunReader(tmp_path / "rows") as reader:
        found = diagnose_run(reader)
    assert (GROUPS * SIZE, None, GROUPS) == (found.completions, found.steps, found.groups)
    assert "no earlier steps to compare with" == found.not_looked["reward_jump"]


def test_rows_are_grouped_by_prompt_and_columns() -> None:
    """Rollouts of one prompt are a group wherever they stand; the share of flat groups is told."""
    batch = _batch(np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(len(batch.rollouts))
    outcomes = [Outcome(Status.SCORED, float(place % SIZE == 0 and place < 8)) for place in range(GROUPS * SIZE)]
    mixed = ScoreBatch(
        [batch.rollouts[place] for place in order], {"correct": [outcomes[place] for place in order]}, {"correct": 1.0}
    )
    found = diagnose_rows(mixed)
    assert (GROUPS, 6 / 8) == (found.groups, found.flat)
    assert ["zero_variance"] == [flag.detector for flag in found.flags]


def test_rows_become_columns_without_steps() -> None:
    """Skips and failures stay apart, and a weight of 0 stays out of the reward."""
    rollouts = [Rollout("p", "c", {}, [1, 2]) for _ in range(3)]
    outcomes = [
        Outcome(Status.SCORED, 1.0),
        Outcome(Status.SKIPPED, None),
        Outcome(Status.FAILED, 0.5, cause=Cause.EXCEPTION),
    ]
    table = table_of(ScoreBatch(rollouts, {"a": outcomes, "b": outcomes}, {"a": 2.0, "b": 0.0}))
    assert ["s", "k", "f"] == table.status["a"].tolist()
    assert ["", "", "exception"] == table.causes["a"].tolist()
    assert [-1, -1, -1] == table.steps.tolist()
    np.testing.assert_array_equal([2.0, np.nan, 1.0], table.rewards)
    np.testing.assert_array_equal([1.0, np.nan, 0.5], table.plain_sums)
    assert [2.0, 2.0, 2.0] == table.tokens.tolist()


def test_the_trainer_s_metrics_are_those_of_the_steps_looked_at(tmp_path: Path) -> None:
    """It logs a step when it is done, under the number of the next."""
    with Recorder(tmp_path) as recorder:
        for step in range(8):
            recorder.metrics(step + 1, {"completions/clipped_ratio": step / 8, "completions/mean_length": 9.0})
    with RunReader(tmp_path) as run:
        assert {"completions/clipped_ratio": [3 / 8, 4 / 8]} == metrics_of(run)(3, 4)
        assert {} == metrics_of(run)(8, 9)


@pytest.mark.parametrize(
    ("changes_at", "expected"),
    [
        (None, ["steps 20 to 49"]),
        (1, ["step 0 and steps 21 to 49"]),
        (10, ["steps 0 to 9 and steps 30 to 49"]),
        (30, ["steps 0 to 29"]),
        (45, ["steps 0 to 44"]),
        (50, ["steps 0 to 49"]),
        (60, ["steps 20 to 49"]),
    ],
    ids=str,
)
def test_of_a_long_run_the_steps_that_were_not_looked_at_are_named(
    tmp_path: Path, changes_at: int | None, expected: list[str]
) -> None:
    """All of them, wherever a new version of a reward lets the baseline begin."""
    rng = np.random.default_rng(0)
    with Recorder(tmp_path) as recorder:
        for step in range(80):
            is_new = changes_at is not None and step >= changes_at
            recorder.record(_batch(rng, version=("b" if is_new else "a") * 12), step=step)
    with RunReader(tmp_path) as reader:
        spots = diagnose_run(reader, most=1).blind_spots
    assert expected == [line.split(" were left out")[0] for line in spots if "left out" in line]


def test_scores_of_1e300_are_recorded_and_diagnosed(tmp_path: Path) -> None:
    """With their advantages and deviations, by the detectors whose sums are floats, and no warning."""

    def huge(drawn: Drawn) -> None:
        far = drawn.rng.random(len(drawn.groups)) < 0.3
        drawn.scores["correct"] = np.where(far, 1e300, drawn.scores["correct"]) * (1 - 2 * (drawn.groups % 2))

    run_of(huge, steps=30, words=5).record(tmp_path / "one")
    with RunReader(tmp_path / "one") as reader:
        found = diagnose_run(reader, again=lambda table: {"correct": -table.scores["correct"]})
        advantages = reader.table().advantages
    assert 30 * 128 == found.completions
    assert "dominance" in {flag.detector for flag in found.flags}
    assert 1.0 == found.noise["correct"].share
    assert np.isfinite(advantages).all()
    assert 0.5 < np.nanmax(np.abs(advantages)) < 3
