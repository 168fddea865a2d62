"""Everything that scores keeps the same promises: a runtime, one that joins calls, and the client of a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from serve_processes import serving

from rewardkit import (
    Cause,
    DataError,
    Finished,
    InfrastructureError,
    MissingColumnError,
    Outcome,
    Rollout,
    Runtime,
    RuntimeClosedError,
    ScoreBatch,
    Scorer,
    Status,
)
from rewardkit.serving import JoinedRuntime, RemoteRuntime, scorer_of

REWARDS = """
import os
from typing import Any

from rewardkit import Score, group_reward, reward

@reward(default=None, score_range=(0, 1))
def right(completion: str, answer: int) -> Score | None:
    if completion == "skip":
        return None
    if completion == "fault":
        raise ValueError("no such thing")
    if completion == "crash":
        os._exit(3)
    print("said")
    return Score(float(completion == str(answer)), "because", {"size": len(completion)})

@group_reward
def shortest(completions: list[str]) -> list[float]:
    return [float(len(one) == min(map(len, completions))) for one in completions]

@reward(default=0.25)
def late(completion: str, step: int | None = None, bonus: int = 0) -> float:
    if completion == "fault":
        raise ValueError("it stands in")
    return (step or 0) / 10 + bonus

both = (0.5 * right + 0.5 * shortest).named("both")
"""
CONFIG = """
functions:
  right: rewards.py:right
  shortest: rewards.py:shortest
  late: rewards.py:late
  both: rewards.py:both
"""
NAMES = ["right", "shortest", "late", "both"]
MAKERS = ["runtime", "joined", "remote", "joined remote", "address"]

Make = Callable[[], Scorer]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scorers")
    (folder / "rewards.py").write_text(REWARDS)
    path = folder / "rewards.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def url(config: Path) -> Iterator[str]:
    with serving(config) as served:
        yield served.url


@pytest.fixture(scope="module", params=MAKERS)
def make(request: pytest.FixtureRequest, config: Path, url: str) -> Make:
    """Return what makes one kind of scorer of the same rewards."""

    def here() -> Runtime:
        from rewardkit import RewardFunctionsConfig

        return Runtime(RewardFunctionsConfig.from_yaml(config), workers=1)

    makers: dict[str, Make] = {
        "runtime": here,
        "joined": lambda: JoinedRuntime(here()),
        "remote": lambda: RemoteRuntime(url),
        "joined remote": lambda: JoinedRuntime(RemoteRuntime(url)),
        "address": lambda: scorer_of(url),
    }
    return makers[request.param]


@pytest.fixture(scope="module")
def scorer(make: Make) -> Iterator[Scorer]:
    with make() as made:
        yield made


@pytest.fixture(scope="module")
def batch(config: Path) -> ScoreBatch:
    """Return what a runtime says of the rows, which all others are held against."""
    from rewardkit import RewardFunctionsConfig

    with Runtime(RewardFunctionsConfig.from_yaml(config), workers=1) as runtime:
        return runtime.score(_rows(), step=3)


def _rows(count: int = 30) -> list[Rollout]:
    said = ["4", "5", "skip", "fault", "44", "crash"]
    columns: list[dict[str, object]] = [{"answer": "4"}, {"answer": 4, "bonus": "1"}, {"answer": "four"}]
    return [Rollout(f"prompt {at // 3}", said[at % 6], columns[at // 3 % 3]) for at in range(count)]


def _steady(outcome: Outcome) -> Outcome:
    """Return an outcome without what no two runs have alike."""
    return outcome._replace(duration_s=0.0, traceback=None, logs="")


def test_the_rows_have_every_fate(batch: ScoreBatch) -> None:
    """What the others are held against has scores, skips, defaults, and failures of several causes."""
    outcomes = [outcome for column in batch.values() for outcome in column]
    assert set(Status) == {outcome.status for outcome in outcomes}
    assert {Cause.EXCEPTION, Cause.CRASHED, Cause.COERCION} <= {outcome.cause for outcome in outcomes}


def test_names_weights_and_rewards_are_the_same(scorer: Scorer, config: Path) -> None:
    """In the order of the set; a reward inside a composition counts through that one."""
    assert NAMES == scorer.names == list(scorer.rewards)
    assert {"right": 0.0, "shortest": 0.0, "late": 1.0, "both": 1.0} == scorer.weights
    assert [False, True, False, True] == [reward.scores_groups for reward in scorer.rewards.values()]


def test_a_batch_is_the_same(scorer: Scorer, batch: ScoreBatch) -> None:
    """Scores, totals and outcomes, in the order of the rows, group rewards and compositions included."""
    scores = scorer.score(iter(_rows()), step=3)
    assert (batch.totals, batch.scores, batch.weights) == (scores.totals, scores.scores, scores.weights)
    for name in NAMES:
        assert [_steady(outcome) for outcome in batch[name]] == [_steady(outcome) for outcome in scores[name]]


def test_a_loop_gets_the_same(scorer: Scorer, batch: ScoreBatch) -> None:
    """Several batches at once each have their own rows' scores."""

    async def both() -> tuple[ScoreBatch, ScoreBatch]:
        return await asyncio.gather(scorer.ascore(_rows(), step=3), scorer.ascore(_rows(12)[3:9], step=3))

    whole, some = asyncio.run(both())
    assert batch.totals == whole.totals
    assert batch.totals[3:9] == some.totals


def test_a_stream_has_each_outcome_once(scorer: Scorer, batch: ScoreBatch) -> None:
    """Under the rewards' names, compositions too; a loop that is left early leaves the scorer as it was."""
    finished: list[Finished] = list(scorer.stream(_rows(), step=3))
    assert {(row, name) for row in range(30) for name in NAMES} == {(one.row, one.reward) for one in finished}
    assert len(NAMES) * 30 == len(finished)
    assert all(_steady(batch[one.reward][one.row]) == _steady(one.outcome) for one in finished)
    assert next(iter(scorer.stream(_rows()))).reward in NAMES
    assert batch.totals == scorer.score(_rows(), step=3).totals


def test_nothing_is_a_batch(scorer: Scorer) -> None:
    """It has every reward, and no rows."""
    scores = scorer.score([])
    assert (NAMES, []) == (list(scores), scores.totals)
    assert [] == list(scorer.stream([]))


def test_wrong_rows_are_refused_before_anything_runs(scorer: Scorer) -> None:
    """In the same words everywhere, and the rows after them are scored."""
    lacking = [Rollout("p", "4", {"answer": "4"}), Rollout("p", "4", {"answr": "4"})]
    refusals = []
    for refuse in (scorer.check, scorer.score, lambda rows: list(scorer.stream(rows))):
        with pytest.raises(MissingColumnError, match=r"reward 'right' needs column 'answer'.*'answr'") as refused:
            refuse(lacking)
        refusals.append(str(refused.value))
    assert 1 == len(set(refusals))
    with pytest.raises(DataError, match="completion"):
        scorer.check([Rollout("p", 4, {"answer": "4"})])  # type: ignore[arg-type]
    assert [1.0] == scorer.score([Rollout("p", "4", {"answer": "4"})]).totals


def test_columns_that_no_reward_reads_do_no_harm(scorer: Scorer) -> None:
    """Data has more columns than rewards read."""
    row = Rollout("p", "4", {"answer": "4", "source": {"page": [1, None]}})
    scorer.check([row])
    assert [1.0] == scorer.score([row]).totals


def test_it_is_started_and_loaded_before_the_first_batch(make: Make) -> None:
    """Starting twice does nothing, and start returns the scorer itself."""
    scorer = make()
    try:
        assert scorer is scorer.start()
        scorer.start().wait_loaded()
        assert [1.0] == scorer.score(_rows(1)).totals
    finally:
        scorer.close()


def test_a_closed_one_scores_nothing(make: Make) -> None:
    """Each way to ask says so, and a second close does nothing."""
    with make() as scorer:
        pass
    scorer.close()
    asks: list[Callable[[], object]] = [
        scorer.start,
        scorer.wait_loaded,
        lambda: scorer.score(_rows(1)),
        lambda: list(scorer.stream(_rows(1))),
        lambda: asyncio.run(scorer.ascore(_rows(1))),
    ]
    for ask in asks:
        with pytest.raises(RuntimeClosedError, match="closed; make a new one"):
            ask()


def test_only_a_runtime_of_ones_own_can_be_changed(scorer: Scorer, request: pytest.FixtureRequest) -> None:
    """What servers score is theirs to change."""
    is_remote = any(word in request.node.name for word in ("remote", "address"))
    assert is_remote is (scorer.changeable is None)


def test_a_server_that_is_gone_loses_its_rows(config: Path) -> None:
    """More lost calls than may be are the error that a runtime raises, too."""
    with serving(config) as served:
        scorer = RemoteRuntime(served.url, retry_s=0)
    with scorer, pytest.raises(InfrastructureError, match="100% of 3 calls were lost through no fault"):
        scorer.score(_rows(3))
