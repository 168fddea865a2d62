"""A batch whose rollouts are added one after another has the outcomes of one that is scored at once."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rewardkit import (
    DataError,
    InfrastructureError,
    MissingColumnError,
    Outcome,
    RewardFailedError,
    Rollout,
    Runtime,
    RuntimeClosedError,
    ScoreBatch,
    group_reward,
    reward,
)
from rewardkit.groups import group_places

TEXTS = ["4", "four", "skip", "fail", "list", ""]


@reward
def exact(completion: str, answer: int) -> float:
    """The very answer; a row whose answer is no number fails with its row's number."""
    return float(completion == str(answer))


@reward(default="worst")
def odd(completion: str) -> float | None:
    """Something of each outcome; a failure has the worst score of its group."""
    if completion == "fail":
        raise ValueError("no score")
    if completion == "list":
        return [1.0]  # type: ignore[return-value]
    return None if completion == "skip" else -float(len(completion))


@reward(cache=True)
def length(completion: str) -> float:
    """Kept for equal completions."""
    return float(len(completion))


@group_reward
def place(completions: list[str]) -> list[float]:
    """Each one's place in its group, and the group's size."""
    return [sorted(completions).index(text) + 100.0 * len(completions) for text in completions]


REWARDS = [exact, odd, length, place, 0.5 * exact + 0.5 * length]


def drawn(draw: random.Random, rows: int) -> list[Rollout]:
    """Return rollouts in groups of up to four, some of which are of one prompt, with answers that are no numbers."""
    rollouts: list[Rollout] = []
    while len(rollouts) < rows:
        prompt, answer = draw.choice("abc"), draw.choice(["4", "4", "x"])
        rollouts += [Rollout(prompt, draw.choice(TEXTS), {"answer": answer}) for _ in range(draw.choice([1, 4]))]
    return rollouts[:rows]


def told(batch: ScoreBatch) -> dict[str, list[tuple[Any, ...]]]:
    """Return what is the same in two scorings of one batch."""

    def stable(outcome: Outcome) -> tuple[Any, ...]:
        return (outcome.status, outcome.score, outcome.cause, outcome.error, outcome.reason, outcome.attempts)

    return {name: [stable(outcome) for outcome in column] for name, column in batch.items()}


def add_some(draw: random.Random, batch: Any, rollouts: Sequence[Rollout]) -> None:
    """Add rows in some order, some of them with another completion, and some of the groups, rightly or not."""
    order = [*range(len(rollouts))]
    draw.shuffle(order)
    order = order[: draw.randrange(len(rollouts) // 2, len(rollouts) + 1)]
    while order:
        rows, order = order[: (count := draw.randrange(1, 5))], order[count:]
        others = [Rollout("p", "other", {"answer": "1"}) for _ in rows]
        added = {row: draw.choice([rollouts[row]] * 5 + [other]) for row, other in zip(rows, others, strict=True)}
        first = draw.randrange(len(rollouts))
        wrong = range(first, min(first + 4, len(rollouts)))
        batch.add(added, [wrong, *group_places(rollouts)])


@pytest.mark.parametrize("lane", ["worker", "inline"])
def test_outcomes_are_those_of_a_batch_that_is_scored_at_once(lane: str, draw_seed: int) -> None:
    """Failures with their rows, skips, groups of one prompt that merge, compositions, and the worst of a group."""
    draw = random.Random(draw_seed)
    with Runtime(REWARDS, workers=2, lane=lane) as runtime:
        for _ in range(12):
            rollouts = drawn(draw, draw.randrange(1, 25))
            expected = runtime.score(rollouts, step=3)
            with runtime.open_batch(step=3) as batch:
                add_some(draw, batch, rollouts)
                scored = batch.score(rollouts)
            assert told(expected) == told(scored)
            assert expected.totals == scored.totals
            assert rollouts == list(scored.rollouts)


def test_rows_are_scored_before_the_batch_is_whole(tmp_path: Path) -> None:
    """A row that was added has run when the others come."""

    @reward
    def mark(completion: str) -> float:
        (tmp_path / completion).touch()
        return 1.0

    with Runtime([mark], workers=1) as runtime, runtime.open_batch() as batch:
        batch.add({1: Rollout("p", "b", {})})
        assert _appears(tmp_path / "b")
        assert not (tmp_path / "a").exists()
        assert [1.0, 1.0] == batch.score([Rollout("p", "a", {}), Rollout("p", "b", {})]).totals


def test_a_group_is_scored_once_all_of_it_is_there(tmp_path: Path) -> None:
    """It runs before the batch is whole, and only once."""

    @group_reward
    def count(completions: list[str]) -> list[float]:
        with (tmp_path / "".join(completions)).open("a") as file:
            file.write("x")
        return [float(len(completions))] * len(completions)

    rollouts = [Rollout(prompt, text, {}) for prompt, text in ("pa", "pb", "qc", "qd")]
    with Runtime([count], workers=1) as runtime, runtime.open_batch() as batch:
        batch.add({1: rollouts[1]})
        batch.add({0: rollouts[0], 2: rollouts[2]}, [(0, 1)])
        assert _appears(tmp_path / "ab")
        assert [2.0] * 4 == batch.score(rollouts).totals
    assert {"ab": "x", "cd": "x"} == {path.name: path.read_text() for path in tmp_path.iterdir()}


def _appears(path: Path) -> bool:
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return path.exists()


def test_equal_calls_of_a_reward_that_keeps_outcomes_are_made_once(tmp_path: Path) -> None:
    """Also where the first is still under way when the second row comes."""

    @reward(cache=True)
    def slow(completion: str) -> float:
        with (tmp_path / "calls").open("a") as file:
            file.write(completion)
        time.sleep(0.2)
        return random.random()

    rollouts = [Rollout("p", text, {}) for text in "aabba"]
    with Runtime([slow], workers=2) as runtime, runtime.open_batch() as batch:
        for row in (0, 1, 3):
            batch.add({row: rollouts[row]})
        scores = batch.score(rollouts).totals
    assert [scores[0], scores[0], scores[2], scores[2], scores[0]] == scores
    assert "ab" == "".join(sorted((tmp_path / "calls").read_text()))


def test_a_batch_ends_by_the_errors_of_a_scoring() -> None:
    """A failure that the caller does not take, too many lost calls, a row that lacks a column, a closed runtime."""

    @reward
    def fails(completion: str) -> float:
        raise ValueError(completion)

    rollouts = [Rollout("p", text, {}) for text in "ab"]
    with Runtime([fails], workers=1, on_failure="raise") as runtime, runtime.open_batch(step=7) as batch:
        batch.add({1: rollouts[1]})
        with pytest.raises(RewardFailedError, match="at step 7 on row 0"):
            batch.score(rollouts)
    with Runtime([exact], workers=1) as runtime:
        with runtime.open_batch() as batch:
            batch.add({0: rollouts[0]})
            with pytest.raises(MissingColumnError, match="'answer'"):
                batch.score(rollouts)
        with runtime.open_batch() as batch, pytest.raises(DataError, match="row 1"):
            batch.score([Rollout("p", "a", {"answer": "1"}), "b"])  # type: ignore[list-item]
    with pytest.raises(RuntimeClosedError):
        batch.add({0: rollouts[0]})

    @reward
    def dies(completion: str) -> float:
        raise InfrastructureError("gone")

    with Runtime([dies], workers=1, max_infrastructure_rate=0.4) as runtime, runtime.open_batch() as batch:
        batch.add({0: rollouts[0]})
        with pytest.raises(InfrastructureError, match="100% of 2 calls"):
            batch.score(rollouts)


def test_what_is_given_up_is_not_run(tmp_path: Path) -> None:
    """Leaving the batch cancels what waits, and the runtime goes on."""

    @reward
    def slow(completion: str) -> float:
        (tmp_path / completion).touch()
        time.sleep(0.3)
        return 1.0

    with Runtime([slow], workers=1) as runtime:
        with runtime.open_batch() as batch:
            batch.add({row: Rollout("p", f"{row}", {}) for row in range(40)})
            assert _appears(tmp_path / "0")
        assert [1.0] == runtime.score([Rollout("p", "last", {})]).totals
    assert len([*tmp_path.iterdir()]) < 40
