"""What stands in for failed calls: never more than the worst score that the reward gives, and never a made-up score."""

from __future__ import annotations

import itertools
import logging
import math
import random
import time
import warnings
from threading import Lock

import numpy as np
import pytest

from rewardkit import (
    Cause,
    InfrastructureError,
    MissingColumnError,
    Outcome,
    Reward,
    RewardDefinitionWarning,
    RewardFailedError,
    Rollout,
    Runtime,
    Score,
    Status,
    group_reward,
    reward,
)
from rewardkit.advantages import group_advantages
from rewardkit.declare.options import WORST, RewardOptions
from rewardkit.runtime.batch import with_worst_of_groups


def act(completion: str) -> float:
    """Do what the completion says: fail in some way, or return its number."""
    if completion == "hang":
        time.sleep(30)
    if completion == "raise":
        raise ValueError("it raised")
    if completion == "nan":
        return math.nan
    if completion == "die":
        import os

        os._exit(3)
    if completion == "lost":
        raise InfrastructureError("no server")
    return float(completion)


def _rollouts(*groups: str) -> list[Rollout]:
    return [Rollout(f"p{number}", text) for number, group in enumerate(groups) for text in group.split()]


@pytest.mark.cases(10)
@pytest.mark.parametrize("failure", ["hang", "raise", "nan", "die"])
@pytest.mark.parametrize(
    ("score_range", "scores", "stand_in"),
    [
        ((-1, 1), "1 -1 -0.5", -1.0),
        ((-2, 0), "0 -1 -0.5", -2.0),
        ((1, 5), "1 5 3", 1.0),
        ((-math.inf, 1), "1 -7 -0.5", -7.0),
        (None, "1 0 1", 0.0),
        (None, "1 -1 -1", -1.0),
        (None, "3 2 3", 0.0),
    ],
)
def test_no_failure_earns_more_than_the_worst_answer(
    failure: str, score_range: tuple[float, float] | None, scores: str, stand_in: float
) -> None:
    """Whatever the cause and the range, the failed call has the lowest total of its group and no positive advantage."""
    told = reward(timeout_s=0.3, score_range=score_range)(act)
    with Runtime([told], workers=2) as runtime:
        batch = runtime.score(_rollouts(f"{scores} {failure}"))
    assert [*map(float, scores.split()), stand_in] == batch.totals
    assert Status.FAILED is batch["act"][3].status
    advantages = np.asarray(group_advantages(batch.totals, 4))
    assert advantages[3] == advantages.min() < 1e-9


@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_the_worst_is_that_of_the_own_group(lane: str) -> None:
    """Another group's heavy score changes nothing, and where a group has no score 0.0 stands in."""
    with Runtime([reward(act)], lane=lane, workers=2) as runtime:
        rollouts = _rollouts("raise -1 2", "-100 1 1", "raise nan", "raise 5")
        batch = runtime.score(rollouts)
        streamed = {finished.row: finished.outcome.score for finished in runtime.stream(rollouts)}
    assert [-1, -1, 2, -100, 1, 1, 0, 0, 0, 5] == batch.totals
    assert dict(enumerate(batch.totals)) == streamed


def test_rows_that_cannot_be_compared_are_one_group() -> None:
    """A row with a lock has no bytes to compare by; the lowest score of all stands in."""
    leaf = reward(act)
    rollouts = [Rollout("p", text, {"lock": Lock()}) for text in ("raise", "-3", "2")]
    failed = Outcome(Status.FAILED, 0.0, cause=Cause.EXCEPTION)
    column = [failed, Outcome(Status.SCORED, -3.0), Outcome(Status.SCORED, 2.0)]
    filled = with_worst_of_groups({leaf: column}, rollouts, {})
    assert [-3.0, -3.0, 2.0] == [outcome.score for outcome in filled[leaf]]


@pytest.mark.parametrize(
    ("weight", "score_range", "stand_in"),
    [(-1.0, (0, 1), 1.0), (-0.5, (-2, 3), 3.0), (-1.0, None, 7.0), (2.0, (-2, 3), -2.0)],
)
def test_a_penalty_that_fails_is_the_whole_penalty(
    weight: float, score_range: tuple[float, float] | None, stand_in: float
) -> None:
    """Under a weight below 0 the highest score is the worst, by weights and in a composition."""
    scores = "0 7 1" if score_range is None else "0 1"
    for rewards, weights in (([reward(score_range=score_range)(act)], [weight]),):
        with Runtime(rewards, weights=weights, lane="inline") as runtime:
            batch = runtime.score(_rollouts(f"{scores} raise"))
        assert stand_in == batch["act"][-1].score
    with Runtime([(weight * reward(score_range=score_range)(act)).named("sum")], lane="inline") as runtime:
        if score_range is not None:
            assert weight * stand_in == runtime.score(_rollouts(f"{scores} raise")).totals[-1]


def test_a_reward_used_both_ways_has_no_worst_score() -> None:
    """Where one use pays for high scores and another for low ones, the rollout leaves the baseline."""
    leaf = reward(score_range=(0, 1))(act)
    with Runtime([leaf, (1 - leaf).named("other")], weights=[1, 1], lane="inline") as runtime:
        assert [None, 1.0] == runtime.score(_rollouts("raise 1")).totals


@pytest.mark.parametrize(
    ("options", "score"), [({}, None), ({"on_infrastructure": "default"}, -1.0), ({"default": 0.25}, None)]
)
@pytest.mark.filterwarnings("ignore::rewardkit.RewardDefinitionWarning")
def test_what_was_lost_costs_nothing(options: dict[str, object], score: float | None) -> None:
    """A call lost through no fault of the completion leaves the baseline, unless the author says otherwise."""
    lossy = reward(score_range=(-1, 1), **options)(act)  # type: ignore[call-overload]
    with Runtime([lossy], lane="inline", max_infrastructure_rate=1.0) as runtime:
        assert [score, 1.0] == runtime.score(_rollouts("lost 1")).totals


def test_a_group_reward_that_fails_is_the_worst_for_all() -> None:
    """Its completions fail together, and none is paid."""

    @group_reward(score_range=(-1, 1))
    def ranks(completions: list[str]) -> list[float]:
        raise ValueError("no ranks")

    with Runtime([ranks], lane="inline") as runtime:
        assert [-1.0, -1.0] == runtime.score(_rollouts("a b")).totals


def test_a_cached_failure_takes_the_worst_of_each_group() -> None:
    """What the cache has of a failure is no score; the group it comes to next decides anew."""

    @reward(cache=True)
    def cached(completion: str) -> float:
        return act(completion)

    with Runtime([cached], lane="inline") as runtime:
        assert [-1.0, -1.0] == runtime.score(_rollouts("raise -1")).totals
        assert [-2.0, -2.0] == runtime.score(_rollouts("raise -2")).totals


def test_generated_groups_never_pay_a_failure() -> None:
    """For ranges, weights and scores at random: no failed call has a total above an answered one of its group."""
    rng = random.Random(5)
    for _ in range(60):
        low, width = rng.choice([-3, -1, 0, 2]), rng.choice([0.5, 2, 4])
        score_range = rng.choice([(low, low + width), None])
        weight = rng.choice([1.0, 0.3, -1.0, -0.2])
        groups = [
            " ".join(rng.choice(["raise", "nan", repr(low + rng.random() * width)]) for _ in range(rng.randint(2, 6)))
            for _ in range(4)
        ]
        rollouts = _rollouts(*groups)
        with Runtime([reward(score_range=score_range)(act)], weights=[weight], lane="inline") as runtime:
            batch = runtime.score(rollouts)
        for prompt in {rollout.prompt for rollout in rollouts}:
            rows = [row for row, rollout in enumerate(rollouts) if rollout.prompt == prompt]
            totals = {row: batch.totals[row] for row in rows}
            failed = [row for row in rows if batch["act"][row].status is Status.FAILED]
            answered = [totals[row] for row in rows if row not in failed]
            for row in failed:
                assert totals[row] is not None
                assert not answered or totals[row] <= min(answered), (score_range, weight, groups)  # type: ignore[type-var, operator]


@pytest.mark.parametrize(
    ("default", "warns"), [(0.0, True), (-0.5, True), (-1.0, False), (None, False), (WORST, False)]
)
def test_a_default_above_the_low_end_is_a_warning(default: float | None, warns: bool) -> None:
    """It names the reward, the default and the range; a default that pays no failure says nothing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reward(score_range=(-1, 1), default=default)(act)  # type: ignore[call-overload]
    assert warns == bool(caught)
    for warning in caught:
        assert RewardDefinitionWarning is warning.category
        assert __file__ == warning.filename
        assert "'act': default=" in str(warning.message)
        assert "is more than -1, the worst score" in str(warning.message)


def test_each_cause_has_a_stand_in_of_the_worst() -> None:
    """Only what was lost has none."""
    options = RewardOptions("it", score_range=(-1, 1))
    assert {cause: None if cause is Cause.INFRASTRUCTURE else -1.0 for cause in Cause} == {
        cause: options.stand_in(cause) for cause in Cause
    }


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["skip"] * 64, "every one of the first 64 completions was skipped; None says that a row has no answer"),
        (
            ["raise"] * 32,
            "every one of the first 32 completions failed with one error; the reward is most likely broken",
        ),
        (
            ["raise", "skip"] * 16,
            "every one of the first 32 completions failed or was skipped, for example (exception)",
        ),
        (["1"] * 8 + ["raise"] * 30, "30 of 38 calls failed so far"),
        (["skip"] * 16, "every one of the first 16 completions was skipped; None says that a row has no answer"),
        (["skip"] * 15, None),
        (["skip"] * 15 + ["raise"], None),
        (["skip"] * 63 + ["1"], None),
    ],
)
def test_a_reward_without_a_score_is_said_once(
    caplog: pytest.LogCaptureFixture, texts: list[str], words: str | None
) -> None:
    """Once, loudly, whatever the adapter: the log names the reward and how many completions it was."""

    @reward
    def silent(completion: str) -> float | None:
        return None if completion == "skip" else act(completion)

    caplog.set_level(logging.WARNING, "rewardkit")
    with Runtime([silent], lane="inline") as runtime:
        for _ in range(2):
            runtime.score(_rollouts(" ".join(texts)))
            if words is None:
                break
    assert (0 if words is None else 1) == len(caplog.messages)
    assert words is None or f"reward 'silent': {words}" in caplog.text


@pytest.mark.parametrize(("later", "is_said"), [("raise", True), ("skip", False), ("1", False)])
def test_a_reward_that_fails_later_is_said_whatever_the_batches(
    caplog: pytest.LogCaptureFixture, later: str, is_said: bool
) -> None:
    """Rows that come one by one, as to a server, are counted together; rows that are skipped may be of others."""

    @reward
    def late(completion: str) -> float | None:
        return None if completion == "skip" else act(completion)

    with Runtime([late], lane="inline") as runtime:
        for text in ["1"] * 96 + [later] * 64:
            runtime.score(_rollouts(text))
    assert [is_said] == list({"every one of the last 32 completions failed" in caplog.text})
    assert is_said == bool(caplog.messages)
    assert len(caplog.messages) < 2


@pytest.mark.parametrize("sizes", [[16], [4] * 4, [1] * 16, [12, 12]], ids=str)
def test_a_part_that_skips_every_row_says_why_once(caplog: pytest.LogCaptureFixture, sizes: list[int]) -> None:
    """A composition scores on without the part, so the log says that it skips, with the reason of the first."""

    @reward
    def fields(completion: str) -> Score:
        return Score(None, reason=f"no gold for {completion}")

    @reward
    def valid(completion: str) -> float:
        return 1.0

    with Runtime([(0.3 * valid + 0.7 * fields).named("both")], lane="inline") as runtime:
        for number, size in enumerate([*sizes, 16]):
            runtime.score([Rollout("p", f"completion {number}") for _ in range(size)])
    calls = next(total for total in itertools.accumulate(sizes) if total >= 16)
    expected = f"reward 'fields': every one of the first {calls} completions was skipped, the first because: "
    assert [f"{expected}no gold for completion 0"] == caplog.messages


def test_errors_of_several_batches_are_not_called_one(caplog: pytest.LogCaptureFixture) -> None:
    """A second kind of error that comes later is another."""
    with Runtime([reward(act)], lane="inline") as runtime:
        runtime.score(_rollouts(" ".join(["raise"] * 20)))
        runtime.score(_rollouts(" ".join(["raise"] * 10 + ["nan"] * 10)))
    (message,) = caplog.messages
    assert message.startswith("reward 'act': every one of the first 40 completions failed: ValueError: ")


@pytest.mark.parametrize("default", [0, None, -1])
@pytest.mark.parametrize("columns", [{}, {"task_id": "T/4"}], ids=["no id", "an id"])
@pytest.mark.parametrize("step", [None, 12])
def test_a_warning_names_the_row_and_not_its_place_in_the_batch(
    caplog: pytest.LogCaptureFixture, default: float | None, columns: dict[str, str], step: int | None
) -> None:
    """A place says nothing of the data set; equal errors of several rows are one, and a default of 0 is not told."""

    @reward(default=default, score_range=(-1, 1) if default else None)
    def typed(completion: str, answer: int) -> float:
        return 1.0

    rows = [Rollout("p", "c", {"answer": "four", **columns}) for _ in range(40)]
    with Runtime([typed], lane="inline") as runtime:
        runtime.score(rows, step=step)
    (message,) = caplog.messages
    at = "" if step is None else " at step 12"
    scores = "; 40 got the reward's default score, -1" if default else ""
    row = " (task_id 'T/4')" if columns else ""
    assert message == (
        f"reward 'typed'{at}: every one of the first 40 completions failed with one error; the reward is most likely "
        f"broken{scores}: column 'answer': expected int, got 'four'{row}"
    )


def test_an_error_that_ends_a_batch_names_the_id_of_its_row() -> None:
    """The place alone says nothing where a trainer draws the rows; a missing column and a failed call are alike."""

    @reward
    def typed(completion: str, answer: int) -> float:
        return 1.0

    good, bad, bare = ({"answer": text, "id": f"g{n}"} for n, text in enumerate(("4", "four", "")))
    del bare["answer"]
    with Runtime([typed], lane="inline", on_failure="raise") as runtime:
        with pytest.raises(RewardFailedError, match=r"at step 3 on row 1 \(id 'g1', coercion\): column 'answer': exp"):
            runtime.score([Rollout("p", "c", good), Rollout("p", "c", bad)], step=3)
        with pytest.raises(
            MissingColumnError, match=r"column 'answer', which example 1 \(id 'g2'\) lacks; it has 'id'"
        ):
            runtime.score([Rollout("p", "c", good), Rollout("p", "c", bare)])


def test_a_silent_batch_late_in_a_run_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """A reward that scored once is not excused."""

    @reward
    def silent(completion: str) -> float | None:
        return None if completion == "skip" else 1.0

    with Runtime([silent], lane="inline") as runtime:
        runtime.score(_rollouts(" ".join(["1"] * 100)))
        runtime.score(_rollouts(" ".join(["skip"] * 40)))
    (message,) = caplog.messages
    assert message.startswith("reward 'silent': every one of the 40 completions of a batch was skipped")


def test_outcomes_keep_their_names() -> None:
    """A stand-in is no score: the outcome says that the call failed, and why."""
    with Runtime([reward(act)], lane="inline") as runtime:
        outcome = runtime.score(_rollouts("raise -4"))["act"][0]
    assert isinstance(outcome, Outcome)
    assert (Status.FAILED, Cause.EXCEPTION, -4.0) == (outcome.status, outcome.cause, outcome.score)
    assert isinstance(reward(act), Reward)
