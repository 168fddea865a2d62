"""Pass rates agree with those counted over the export, and what has no score is neither right nor wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from rewardkit.breakdown.prompt_profile import PromptProfile, Rates, prompt_profile
from rewardkit.breakdown.run_scores import RunScores, measure
from rewardkit.errors import RecordError
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.statistics import wilson
from rewardkit.types import Cause, Outcome, Rollout, Status

WEIGHTS = {"correct": 10.0, "style": 0.05, "length": -2.0, "watch": 0.0}


def profile_of(
    reader: RunReader, name: str | None = None, split: str = "train", last: int | None = 4, pass_at: float | None = None
) -> PromptProfile:
    """Return the profile of a split's prompts."""
    run_scores = RunScores()
    run_scores.read(reader)
    scores = run_scores.of(split)
    return prompt_profile(scores, measure(scores, reader.rewards, name), last=last, pass_at=pass_at)


def value_of(row: Mapping[str, Any], name: str, applying: Sequence[str]) -> float | None:
    """Return what a completion is judged by; None where it is neither right nor wrong."""
    if name != "reward":
        return row[name] if row[f"{name}.status"] == "scored" else None
    weighing = [reward for reward, weight in WEIGHTS.items() if weight]
    failed = any(row[f"{reward}.status"] == "failed" for reward in weighing)
    skipped = any(row[f"{reward}.status"] == "skipped" for reward in weighing if reward in applying)
    return None if failed or skipped else row["reward"]


@pytest.mark.parametrize("split", ["train", "eval"])
@pytest.mark.parametrize("last", [1, 2, None])
@pytest.mark.parametrize(
    ("name", "pass_at"), [("reward", None), ("correct", None), ("length", 0.25), ("reward", -1.0), ("watch", 1.0)]
)
def test_rates_agree_with_those_counted_over_the_export(
    recorded: Any, name: str, pass_at: float | None, last: int | None, split: str
) -> None:
    """Of the last groups of each prompt, also where the processes' batches lie between; with Wilson's interval."""
    profile = profile_of(recorded.reader, None if name == "reward" else name, split, last, pass_at)
    rows = [row for row in recorded.rows if row["split"] == split]
    assert sorted({row["prompt_index"] for row in rows}) == profile.prompts.tolist()
    for index, prompt in enumerate(profile.prompts.tolist()):
        own = [row for row in rows if row["prompt_index"] == prompt]
        groups = list(dict.fromkeys((row["batch"], row["group"]) for row in own))
        counted = [row for row in own if (row["batch"], row["group"]) in groups[-(last or len(groups)) :]]
        applying = [reward for reward in WEIGHTS if any(row[f"{reward}.status"] == "scored" for row in own)]
        half = sum(max(0, WEIGHTS[reward]) for reward in applying) / 2
        values = [value for row in counted if (value := value_of(row, name, applying)) is not None]
        if pass_at is not None:
            passed = [value for value in values if value >= pass_at]
        elif name == "reward" and half == 0:
            passed = [value for value in values if value >= -1e-9]
        else:
            passed = [value for value in values if value > (half if name == "reward" else 0.5) * (1 + 1e-9)]
        assert (len(values), len(passed)) == (profile.counted[index], profile.passed[index])
        assert wilson(len(passed), len(values)) == profile.interval(index)
        assert len(counted) == profile.counted[index] + profile.skipped[index] + profile.failed[index]
        assert (min(len(groups), last or len(groups)), len(groups)) == (
            profile.groups[index], profile.groups_of_all[index],
        )  # fmt: skip
        if values:
            assert pytest.approx(np.mean(values)) == profile.means[index]
        size = min(len(groups) // 2, last or len(groups))
        assert size == profile.changes.groups[index]
        for end, sides in (("before", groups[:size]), ("after", groups[len(groups) - size :])):
            part = [row for row in own if (row["batch"], row["group"]) in sides]
            values = [value for row in part if (value := value_of(row, name, applying)) is not None]
            assert len(values) == getattr(profile.changes, f"counted_{end}")[index]
            if values:
                assert pytest.approx(np.mean(values)) == getattr(profile.changes, f"means_{end}")[index]
        versions = {row["correct.version"] for row in counted if value_of(row, name, applying) is not None}
        if name == "correct":
            assert len(versions) == profile.versions[index]


def test_every_prompt_is_of_one_kind(recorded: Any) -> None:
    """Always right, never right, in between, or without a pass rate."""
    profile = profile_of(recorded.reader, "correct", last=1, pass_at=0.2)
    kinds = np.stack([profile.are_always_right, profile.are_never_right, profile.are_between, ~profile.are_known])
    assert np.all(kinds.sum(axis=0) == 1)
    assert kinds[:3].sum(axis=1).all(), "a kind that is not tried"
    assert len(profile.prompts) == sum(profile.counts().values())


def record(place: Any, outcomes: Mapping[str, Sequence[Outcome]], weights: Mapping[str, float], **more: Any) -> None:
    """Record a run of one prompt with these outcomes."""
    count = len(next(iter(outcomes.values())))
    rollouts = [Rollout("2+2=", f"text {number}", {}) for number in range(count)]
    with Recorder(place) as recorder:
        recorder.record(ScoreBatch(rollouts, {name: list(own) for name, own in outcomes.items()}, weights), **more)


def scored(*scores: float) -> list[Outcome]:
    """Return outcomes with these scores."""
    return [Outcome(Status.SCORED, score, version="1" * 12) for score in scores]


SKIPPED = Outcome(Status.SKIPPED, None, version="1" * 12)
FAILED = Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, error="late", version="1" * 12)
CASES = {
    "one reward": ({"good": scored(1, 0, 1, 0.5)}, {"good": 1.0}, (4, 2, 0, 0)),
    "a form alone is not right": (
        {"good": scored(1, 0), "form": scored(1, 1)}, {"good": 1.0, "form": 1.0}, (2, 1, 0, 0),
    ),
    "weights whose sum rounds": (
        {"a": scored(0), "b": scored(1), "c": scored(1)}, {"a": 0.3, "b": 0.1, "c": 0.2}, (1, 0, 0, 0),
    ),
    "a skip of a reward that applies": (
        {"good": [*scored(1), SKIPPED], "form": scored(1, 1)}, {"good": 1, "form": 0.1}, (1, 1, 1, 0),
    ),
    "a reward that never applies": (
        {"other": [SKIPPED] * 2, "good": scored(1, 0)}, {"other": 1, "good": 1}, (2, 1, 0, 0),
    ),
    "a failure of what weighs something": (
        {"good": scored(1, 1), "form": [FAILED, *scored(1)]}, {"good": 1, "form": 0.1}, (1, 1, 0, 1),
    ),
    "a failure of what weighs nothing": ({"good": scored(1), "watch": [FAILED]}, {"good": 1, "watch": 0}, (1, 1, 0, 0)),
    "nothing but failures": ({"good": [FAILED] * 2}, {"good": 1}, (0, 0, 0, 2)),
    "a penalty alone": ({"long": scored(0, 0.5)}, {"long": -1}, (2, 1, 0, 0)),
    "from -1 to 1": ({"good": scored(-1, 1)}, {"good": 1}, (2, 1, 0, 0)),
}  # fmt: skip


@pytest.mark.parametrize(("outcomes", "weights", "expected"), CASES.values(), ids=CASES.keys())
def test_what_passes_by_the_total(tmp_path: Any, outcomes: Any, weights: Any, expected: tuple[int, ...]) -> None:
    """Counted, passed, skipped and failed of one prompt, with the rule that holds unless a score is given."""
    record(tmp_path / "one", outcomes, weights)
    with RunReader(tmp_path / "one") as reader:
        profile = profile_of(reader)
    assert expected == (*profile.counted, *profile.passed, *profile.skipped, *profile.failed)


def test_what_got_worse_is_told_from_what_stayed(place: Any) -> None:
    """By the first and the last groups of each prompt, which do not overlap; one group alone has no change."""
    rights = {"worse": [4, 4, 4, 1, 0], "alike": [2, 2, 2, 2], "better": [0, 4], "met once": [4]}
    with Recorder(place) as recorder:
        for step in range(5):
            groups = {prompt: own[step] for prompt, own in rights.items() if step < len(own)}
            rollouts = [Rollout(prompt, f"text {k}", {}) for prompt in groups for k in range(4)]
            outcomes = scored(*[float(k < right) for right in groups.values() for k in range(4)])
            recorder.record(ScoreBatch(rollouts, {"good": outcomes}, {"good": 1.0}), step=step, num_generations=4)
    with RunReader(place) as reader:
        changes = profile_of(reader).changes
    assert [2, 2, 1, 0] == changes.groups.tolist()
    assert [-0.875, 0.0, 1.0] == changes.values[:3].tolist()
    assert [8, 4, 0, 0] == changes.passed_before.tolist()
    assert (None, -1.0, 1.0, 0) == changes.interval(3)
    assert changes.interval(0).high < 0 < changes.interval(1).high
    assert {"change": None, "change_low": None, "change_high": None, "change_groups": 0, "mean_before": None,
            "mean_after": None} == changes.row(3)  # fmt: skip


def test_a_run_in_which_nothing_weighs_anything_asks_for_a_reward(tmp_path: Any) -> None:
    """Every total would be 0 and right."""
    record(tmp_path / "one", {"good": scored(1, 0)}, {"good": 0.0})
    with RunReader(tmp_path / "one") as reader:
        with pytest.raises(RecordError, match=r"no reward weighs anything.*--reward"):
            profile_of(reader)
        assert [0.5] == profile_of(reader, "good").rates.tolist()


def test_scores_beyond_1_are_noticed(tmp_path: Any) -> None:
    """Unless the score that is right was given."""
    record(tmp_path / "one", {"good": scored(7, 3)}, {"good": 1.0})
    with RunReader(tmp_path / "one") as reader:
        assert profile_of(reader).exceeds_scale
        assert not profile_of(reader, pass_at=5.0).exceeds_scale


def test_a_group_that_processes_share_is_one_group(place: Any) -> None:
    """Its completions are of one visit, although each process has recorded a batch of its own."""
    rollouts = [Rollout("2+2=", f"text {number}", {}) for number in range(4)]
    with Recorder(place) as one, Recorder(place, rank=1) as two:
        for step in range(3):
            for recorder, score in ((one, 1.0), (two, 0.0)):
                recorder.record(
                    ScoreBatch(rollouts, {"good": scored(*[score] * 4)}, {"good": 1.0}), step=step, num_generations=8
                )
                recorder.flush()
    with RunReader(place) as reader:
        profile = profile_of(reader, last=1)
    assert ([1], [3], [8], [0.5]) == (
        profile.groups.tolist(), profile.groups_of_all.tolist(), profile.counted.tolist(), profile.rates.tolist(),
    )  # fmt: skip


RANGES = {
    "0.1..0.9": (0.1, 0.9), "0..1": (0.0, 1.0), "1..1": (1.0, 1.0), " .25 .. .75 ": (0.25, 0.75),
    "1e-3..5E-1": (0.001, 0.5),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), RANGES.items())
def test_a_range_of_rates_has_both_of_its_ends(text: str, expected: tuple[float, float]) -> None:
    """A rate that is one of them is in it, as numbers are written: three of ten are in 0.1..0.3."""
    assert expected == tuple(Rates.of(text, "--keep"))
    assert Rates.of(text, "--keep").covers(np.array([expected[0], expected[1], np.nan])).tolist() == [True, True, False]
    assert Rates.of("0.1..0.3", "--keep").covers(np.array([1 / 10, 3 / 10])).all()


WRONG = {
    "0.9..0.1": "the first rate is above the second; write 0.1..0.9",
    "1.5..2": "expected rates from 0 to 1",
    "0.5..1.01": "expected rates from 0 to 1",
    **dict.fromkeys(["abc", "..0.5", "0.5..", "..", "", "0.5", "-1..1", "nan..1", "0..inf", "0,1..0,9", "0.1..0.5..0.9",
                     "0_1..1", "0.1-0.9", "\u0660..\u0661", "0.1..0.9x"], "expected two rates with .. between them"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_another_range_is_refused_with_what_to_write(text: str, message: str) -> None:
    """The error names the option, the value and the fix in a line."""
    with pytest.raises(RecordError) as caught:
        Rates.of(text, "--keep")
    assert f"--keep {text}: {message}" in str(caught.value)
