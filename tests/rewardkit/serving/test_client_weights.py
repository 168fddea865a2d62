"""Weights of served rewards: each door takes a client's own, adds up with them, and refuses what makes no sense."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pytest
from reward_servers import Served, reward_server

from rewardkit import RewardDefinitionError, Rollout, Runtime, ScoreBatch, Scorer, reward
from rewardkit.record.reader import RunReader
from rewardkit.serving import JoinedRuntime, RemoteRuntime, scorer_of
from rewardkit.serving.choice import served_set
from rewardkit.serving.client_weights import client_weights

pytest.importorskip("numpy")
from trainer_adapter import RewardAdapter, TrainerRewards

Weights: TypeAlias = Sequence[float] | Mapping[str, float] | None
ROWS = [Rollout("2+2=", "4", {"answer": "4"}), Rollout("2+2=", "44", {"answer": "4"}), Rollout("1+1=", "2", {})]
SCORES = {"right": [1.0, 0.0, None], "size": [1.0, 2.0, 1.0]}
SERVED = {"right": 0.5, "size": -0.25}


@reward(default=None)
def right(completion: str, answer: str | None = None) -> float | None:
    return None if answer is None else float(completion == answer)


@reward
def size(completion: str) -> float:
    return float(len(completion))


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Runtime([right, size], workers=1, weights=SERVED) as runtime, reward_server(runtime) as server:
        yield server


def _of_adapter(rewards: object, weights: Weights) -> Scorer:
    return RewardAdapter(rewards, weights=weights).runtime


def _of_trainer(rewards: object, weights: Weights) -> Scorer:
    return TrainerRewards(rewards, weights=weights).joined


DOORS: dict[str, Callable[[str, Weights], Scorer]] = {
    "RemoteRuntime": lambda url, weights: RemoteRuntime(url, weights=weights),
    "scorer_of an address": lambda url, weights: scorer_of(url, weights=weights),
    "scorer_of a client": lambda url, weights: scorer_of(RemoteRuntime(url), weights=weights),
    "scorer_of a set": lambda url, weights: scorer_of(served_set(url), weights=weights),
    "joined": lambda url, weights: JoinedRuntime(RemoteRuntime(url, weights=weights)),
    "adapter of an address": _of_adapter,
    "adapter of a client": lambda url, weights: _of_adapter(RemoteRuntime(url), weights),
    "TrainerRewards": _of_trainer,
    "pickled": lambda url, weights: pickle.loads(pickle.dumps(RemoteRuntime(url, weights=weights))),
    "pickled adapter": lambda url, weights: pickle.loads(pickle.dumps(RewardAdapter(url, weights=weights))).runtime,
}
GOOD: list[tuple[Weights, dict[str, float]]] = [
    (None, SERVED),
    ([2.0, -1.0], {"right": 2.0, "size": -1.0}),
    ({"size": -3}, {"right": 0.5, "size": -3.0}),
    ({"right": 0.0}, {"right": 0.0, "size": -0.25}),
]
BAD: list[tuple[Any, str]] = [
    ([1.0], "1 weights for 2 rewards"),
    ({"left": 1.0}, "weights name 'left'"),
    ([1.0, 1.0], r"'size' weighs 1 here and -0.25 on its server.*rewardkit serve REWARDS --weights"),
    ({"right": -1.0}, r"'right' weighs -1 here and 0.5 on its server"),
    ([1.0, float("nan")], "weight of 'size' is nan"),
]


@pytest.fixture(params=DOORS.values(), ids=DOORS)
def door(request: pytest.FixtureRequest, served: Served) -> Callable[[Weights], Scorer]:
    return lambda weights: request.param(served.url, weights)


def _totals(weights: Mapping[str, float]) -> list[float]:
    """Return the rows' totals by hand: the weighted sum of the scores that there are."""
    rows = zip(*SCORES.values(), strict=True)
    return [sum(w * score for w, score in zip(weights.values(), row, strict=True) if score is not None) for row in rows]


@pytest.mark.parametrize(("weights", "expected"), GOOD, ids=["none", "list", "partial", "zero"])
def test_each_door_adds_up_with_the_weights_that_it_got(
    door: Callable[[Weights], Scorer], weights: Weights, expected: dict[str, float]
) -> None:
    """Scores are the server's, totals are the client's; names that it leaves out weigh what they do on the server."""
    with door(weights) as scorer:
        assert expected == dict(scorer.weights)
        batches: list[ScoreBatch] = [scorer.score(ROWS), asyncio.run(scorer.ascore(ROWS))]
        for batch in batches:
            assert SCORES == {name: [outcome.score for outcome in column] for name, column in batch.items()}
            assert pytest.approx(_totals(expected)) == batch.totals


@pytest.mark.parametrize(("weights", "message"), BAD, ids=["count", "name", "list sign", "sign", "nan"])
def test_each_door_refuses_weights_that_make_no_sense(
    door: Callable[[Weights], Scorer], weights: Weights, message: str
) -> None:
    """A weight of the other sign would pay a failed call, which has the worst score of the server's sign."""
    with pytest.raises(RewardDefinitionError, match=message):
        door(weights)


@pytest.mark.parametrize("server", [-0.5, 0.0, 2.0])
@pytest.mark.parametrize("own", [-3.0, 0.0, 1.0])
def test_a_sign_changes_at_the_server_alone(server: float, own: float) -> None:
    """A weight of 0 may be given anywhere; a weight of 0 on the server has scored failures as a weight above 0."""
    is_refused = own != 0 and (own < 0) != (server < 0)
    try:
        assert {"size": own} == client_weights({"size": size}, {"size": server}, [own])
    except RewardDefinitionError:
        assert is_refused
    else:
        assert not is_refused


def test_an_adapter_records_the_weights_that_it_used(served: Served, tmp_path: Any) -> None:
    """Its functions for a trainer have the server's scores, and the record the client's weights."""
    with RewardAdapter(served.url, weights={"right": 0.8, "size": -0.2}, record=tmp_path / "run") as adapter:
        columns: dict[str, Any] = {"prompts": ["p", "p"], "completions": ["4", "44"], "answer": ["4", "4"]}
        assert [[1.0, 0.0], [1.0, 2.0]] == [function(**columns) for function in adapter.reward_funcs]
        assert pytest.approx([0.6, -0.4]) == adapter.total_func(**columns)
        assert [0.8, -0.2] == adapter.weights
    with RunReader(tmp_path / "run") as reader:
        assert {"right": 0.8, "size": -0.2} == reader.weights_of(1)
