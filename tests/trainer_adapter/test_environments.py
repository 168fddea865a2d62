"""The environment's own reward: a score with a weight beside others, a gap where there is none, and no split groups."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fated_rewards
import pytest
from datasets import Dataset
from typer.testing import CliRunner

from rewardkit import (
    Cause,
    DataError,
    InfrastructureError,
    MissingColumnError,
    RewardDefinitionError,
    Rollout,
    Run,
    Runtime,
    Score,
    Status,
    Workspace,
    group_reward,
    reward,
)
from rewardkit.cli.program import app
from rewardkit.moving import from_trl
from trainer_adapter import RewardAdapter, verifiers
from trainer_adapter.environment_values import environment_value
from trainer_adapter.environments import environment_reward
from trainer_adapter.trainer_rewards import close_all


@pytest.fixture(autouse=True, scope="module")
def _ended() -> Iterator[None]:
    yield
    close_all()


class Game:
    """An environment of TRL's: what it has scored is an attribute, for public methods would be the model's tools."""

    def __init__(self, reward: object = None) -> None:
        self.reward = reward

    def reset(self, **row: object) -> None:
        self.reward = None


def _batch(environments: list[Any], **columns: Any) -> dict[str, Any]:
    """What TRL passes where it has an ``environment_factory``."""
    completions = ["a" * (len(environments) - row) for row in range(len(environments))]
    rows = {"prompts": ["play"] * len(environments), "completions": completions, "environments": environments}
    state = SimpleNamespace(global_step=1, epoch=0.5, log_history=[])
    return {**rows, "completion_ids": [[1]] * len(environments), "trainer_state": state, **columns}


def test_trls_environments_score_beside_our_rewards(tmp_path: Path) -> None:
    """Each completion has its environment's number or none, the group stays whole, and the record keeps one prompt."""
    rewards = [environment_reward, fated_rewards.rank]
    run = tmp_path / "run"
    with RewardAdapter(rewards, weights=[2.0, 1.0], workers=1, record=run) as adapter:
        own, rank = adapter.reward_funcs
        call = _batch([Game(0.5), Game(), Game(True), object()])
        assert [2.0, 1.0] == adapter.weights
        assert [0.5, None, 1.0, None] == own(**call)
        assert [3.0, 2.0, 1.0, 0.0] == rank(**call)
    with Run.open(run) as recorded:
        assert ["environment", "rank"] == list(recorded.rewards)
        assert 1 == len(list(recorded.prompts()))


def test_the_audit_of_a_run_cannot_tell_of_environments_that_are_gone(tmp_path: Path) -> None:
    """It lists their reward beside ours, and no completion is taken for a wrongly paid one."""
    run = tmp_path / "run"
    with RewardAdapter([environment_reward, fated_rewards.rank], workers=1, record=run) as adapter:
        for function in adapter.reward_funcs:
            function(**_batch([Game(0.5), Game(1.0)], answer=["4", "4"]))
    done = CliRunner().invoke(app, ["audit", "--run", str(run), "--json"], prog_name="rewardkit")
    told = {one["reward"]: one for one in json.loads(done.stdout)["rewards"]}
    assert ["environment", "rank"] == list(told)
    assert ("cannot tell", 0) == (told["environment"]["conclusion"], told["environment"]["false_accepts"])


def test_a_dataset_without_environments_is_skipped() -> None:
    """There is no number, and nothing failed."""
    with Runtime([environment_reward], workers=1) as runtime:
        batch = runtime.score([Rollout("play", "a", {}), Rollout("play", "a", {"environment_reward": 3})])
    assert [None, 3.0] == batch.totals


def test_environments_are_not_asked_where_no_reward_reads_them() -> None:
    """What they keep as their reward may then be anything."""
    with RewardAdapter([fated_rewards.rank], workers=1) as adapter:
        assert [1.0, 0.0] == adapter.reward_funcs[0](**_batch([Game("won"), Game()]))


class Asked:
    """An environment that scores when it is asked, and counts how often that is."""

    def __init__(self, value: object = 0.5) -> None:
        self.value, self.times = value, 0
        self.lock = threading.Lock()  # no process but its own can have it

    def get_reward(self) -> object:
        self.times += 1
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value


class AskedInTurn(Asked):
    async def get_reward(self) -> object:  # type: ignore[override]
        return super().get_reward()


@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_an_environment_may_give_a_score_with_its_reason(lane: str, tmp_path: Path) -> None:
    """As a verdict of a suite is one; a lost grading is unknown, and is not asked for again."""
    lost = Asked(InfrastructureError("the jail ended"))
    given = [Asked(Score(0.5, "half of it", {"runs": 2})), AskedInTurn(Score(1.0)), Asked(Score(None, "no suite"))]
    run = tmp_path / "run"
    with RewardAdapter([environment_reward], lane=lane, workers=1, record=run, max_infrastructure_rate=1.0) as adapter:
        assert [0.5, 1.0, None, None, None] == adapter.reward_funcs[0](**_batch([*given, Asked(Score("x")), lost]))  # type: ignore[arg-type]
    with Run.open(run) as recorded:
        outcomes = [row.outcomes["environment"] for row in recorded.completions()]
    assert ("half of it", {"runs": 2.0}) == (outcomes[0].reason, outcomes[0].metrics)
    expected = [Status.SCORED, Status.SCORED, Status.SKIPPED, Status.FAILED, Status.FAILED]
    assert expected == [outcome.status for outcome in outcomes]
    assert [Cause.EXCEPTION, Cause.INFRASTRUCTURE] == [outcome.cause for outcome in outcomes[3:]]
    assert "InfrastructureError: the jail ended" in str(outcomes[4].error)
    assert (1, 1) == (lost.times, outcomes[4].attempts)


@reward
def times(completion: str, environments: Asked) -> float:
    """How often the completion's environment has been asked."""
    return float(environments.times)


@group_reward
def places(completions: list[str], environments: list[Asked]) -> list[float]:
    """The order of the environments' values."""
    values = [one.value for one in environments]
    return [float(sorted(values).index(value)) for value in values]


@reward
def rest(completion: str, **columns: object) -> float:
    """Whether an environment is among the columns."""
    return float("environments" in columns)


def trls_own(completions: list[str], environments: list[Asked], **columns: object) -> list[float]:
    """As it stands in a script for TRL."""
    return [10.0 * one.value for one in environments]  # type: ignore[operator]


def test_live_environments_reach_rewards_by_trls_name(tmp_path: Path) -> None:
    """One completion's, a group's, and those of a function that was written for TRL; none is copied or recorded."""
    run, environments = tmp_path / "run", [Asked(0.25), Asked(1.0), Asked(0.5)]
    rewards = [
        environment_reward,
        times,
        places,
        rest,
        from_trl(trls_own),
        from_trl(trls_own, in_groups=True, name="g"),
    ]
    with RewardAdapter(rewards, lane="inline", record=run) as adapter:
        call = _batch(environments, answer=["4"] * 3)
        told = [one(**call) for one in adapter.reward_funcs]
    assert [[0.25, 1.0, 0.5], [1.0] * 3, [0.0, 2.0, 1.0], [0.0] * 3, [2.5, 10.0, 5.0], [2.5, 10.0, 5.0]] == told
    assert [1] * 3 == [one.times for one in environments]
    with Run.open(run) as recorded:
        (prompt,) = recorded.prompts()
        assert {"answer": "4"} == prompt.columns


@pytest.mark.parametrize("taking", [times, places, from_trl(trls_own)])
@pytest.mark.parametrize("make", [Runtime, RewardAdapter])
def test_live_environments_are_refused_in_workers(taking: Any, make: Any) -> None:
    """Before the first batch, with the reward, the parameter and what to do."""
    with pytest.raises(RewardDefinitionError, match=rf"'{taking.name}' takes 'environments'.* lane='inline'.*"):
        make([taking])


def test_live_environments_are_not_kept_for_later() -> None:
    """Its score is of what the environment is now."""
    with pytest.raises(RewardDefinitionError, match="'times': cache=True keeps a score for later"):
        reward(times.function, cache=True)


def test_a_batch_without_environments_is_refused_by_name() -> None:
    """The trainer has no environments."""
    with Runtime([times], lane="inline") as runtime, pytest.raises(MissingColumnError, match="environment_factory"):
        runtime.score([Rollout("play", "a", {})])


def test_environments_are_given_to_a_runtime_as_a_column() -> None:
    """A test of such a reward needs no trainer; rows of one prompt are one group, whatever their environments."""
    rollouts = [Rollout("play", "a", {"environments": Asked(2)}), Rollout("play", "b", {"environments": Asked(1)})]
    with Runtime([times, places], weights=[0, 1], lane="inline") as runtime:
        assert [1.0, 0.0] == runtime.score(rollouts).totals


@pytest.mark.parametrize("kind", [Asked, AskedInTurn])
def test_an_environment_is_asked_for_its_reward_once_a_batch(kind: Any) -> None:
    """However many rewards the trainer asks for; and anew for the next batch."""
    environments = [kind(0.5), kind(None), Game(2.0)]
    with RewardAdapter([environment_reward, fated_rewards.rank], workers=1) as adapter:
        call = _batch(environments)
        assert [[0.5, None, 2.0], [2.0, 1.0, 0.0]] == [one(**call) for one in adapter.reward_funcs]
        assert [1, 1] == [one.times for one in environments[:2]]
        adapter.reward_funcs[0](**_batch(list(environments)))
        assert [2, 2] == [one.times for one in environments[:2]]


def test_a_reward_of_all_columns_gets_what_an_environment_gives() -> None:
    """Also where it takes its row, or any column."""

    @reward
    def any_column(environment_reward: float | None = None, **columns: object) -> float | None:
        return environment_reward

    @reward
    def row(workspace: str, example: dict[str, Any]) -> float:
        return float(len(workspace))

    environments = [Asked(0.5), Asked(1.0)]
    environments[0].workspace = "left"  # type: ignore[attr-defined]
    with RewardAdapter([any_column, row], lane="inline") as adapter:
        call = _batch(environments)
        assert [[0.5, 1.0], [4.0, 0.0]] == [one(**call) for one in adapter.reward_funcs]


def test_a_list_of_environments_that_trl_keeps_is_asked_in_each_batch() -> None:
    """TRL 1.6 makes its environments once and passes that very list in every batch."""
    environments = [Asked(0.0), Asked(1.0)]
    with RewardAdapter([environment_reward], workers=1) as adapter:
        assert [0.0, 1.0] == adapter.reward_funcs[0](**_batch(environments))
        environments[0].value = 0.5
        assert [0.5, 1.0] == adapter.reward_funcs[0](**_batch(environments))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (ValueError("no board"), "Asked raised ValueError: no board"),
        ("won", "Asked.get_reward() is 'won': expected a number or None"),
        (math.nan, "nan"),
    ],
)
def test_an_environment_that_cannot_score_costs_its_completion_alone(value: object, words: str, tmp_path: Path) -> None:
    """The failure is recorded with its reason, and training goes on."""
    run = tmp_path / "run"
    with RewardAdapter([environment_reward], workers=1, record=run) as adapter:
        assert [None, 1.0] == adapter.reward_funcs[0](**_batch([Asked(value), Asked(1.0)]))
    with Run.open(run) as recorded:
        failed, _ = (one.outcomes["environment"] for one in recorded.completions())
    assert Status.FAILED is failed.status
    assert words in (failed.error or "")


@reward
def kept_notes(workspace: Workspace | None) -> float | None:
    """Whether there are notes."""
    return None if workspace is None else float(workspace.exists("notes.txt"))


class Desk(Game):
    """An environment with a folder of its own."""

    def __init__(self, workspace: object = None) -> None:
        super().__init__(None)
        self.workspace = workspace


def test_an_environments_folder_is_its_completions_workspace(tmp_path: Path) -> None:
    """In a worker; a completion without one is skipped, and the record has no path among the prompt's columns."""
    for name in ("full", "bare"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "notes.txt").write_text("so")
    run = tmp_path / "run"
    with RewardAdapter([kept_notes, fated_rewards.rank], workers=1, record=run) as adapter:
        call = _batch([Desk(tmp_path / "full"), Desk(str(tmp_path / "bare")), Desk()])
        assert [[1.0, 0.0, None], [2.0, 1.0, 0.0]] == [one(**call) for one in adapter.reward_funcs]
    with Run.open(run) as recorded:
        assert [{}] == [prompt.columns for prompt in recorded.prompts()]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            ["here", "/usr"],
            r"dataset, column 'workspace' of example 1: expected Workspace \| None, got '/usr' \(.*outside the",
        ),
        (["here", "here", ["x"]], r"of example 2: expected Workspace \| None, got \['x'\]"),
        (["gone"], "of example 0: .*no such folder"),
    ],
)
def test_a_dataset_whose_workspaces_lie_elsewhere_is_refused_before_training(
    values: list[Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the adapter is attached to the trainer; names reward, row and path."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    rows = Dataset.from_dict({"workspace": values}) if isinstance(values[-1], str) else _Rows(values)
    trainer = SimpleNamespace(reward_funcs=[], callback_handler=SimpleNamespace(callbacks=[]), train_dataset=rows)
    with RewardAdapter([kept_notes], lane="inline") as adapter:
        with pytest.raises(DataError, match=f"reward 'kept_notes': .*{words}"):
            adapter.attach(trainer)
        trainer.train_dataset = Dataset.from_dict({"workspace": ["here"] * 3 + [None]})
        adapter.attach(trainer)


class _Rows(list):  # type: ignore[type-arg]
    """A dataset whose column has values of several types, which Arrow does not hold."""

    column_names = ("workspace",)

    def __getitem__(self, name: Any) -> Any:
        return list(self)


@pytest.mark.parametrize(("kept", "value"), [(None, None), (1, 1.0), (False, 0.0), (len, None)])
def test_the_number_is_the_attributes(kept: object, value: float | None) -> None:
    """A method of that name is no number."""
    assert value == environment_value(Game(kept))


class Faulty:
    """An environment with one attribute that gives a value or raises an error."""

    def __init__(self, attribute: str, fault: object) -> None:
        self._attribute, self._fault = attribute, fault

    def __getattr__(self, name: str) -> object:
        if name != self._attribute:
            raise AttributeError(name)
        if isinstance(self._fault, BaseException):
            raise self._fault
        return self._fault


class _Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError("no message")


class _OddPath:
    def __fspath__(self) -> bytes:
        return b"/tmp"


def _leaves() -> object:
    sys.exit(3)


REWARD_FAULTS: dict[str, tuple[object, str]] = {
    "text": (Faulty("reward", "0.75"), "Faulty.reward is '0.75': expected a number or None"),
    "a list": (Faulty("reward", [1]), "Faulty.reward is [1]: expected a number or None"),
    "too large": (Faulty("reward", 10**400), "Faulty raised OverflowError"),
    "not finite": (Faulty("reward", math.inf), "inf"),
    "raises": (Faulty("reward", KeyError("no game")), "asked for its reward, Faulty raised KeyError: 'no game'"),
    "raises without words": (Faulty("reward", _Unreadable()), "_Unreadable: (its message cannot be read: ValueError)"),
    "get_reward raises as it is had": (Faulty("get_reward", OSError("gone")), "Faulty raised OSError: gone"),
    "sys.exit": (Faulty("get_reward", _leaves), "Faulty raised SystemExit: 3"),
    "sys.exit in an attribute": (Faulty("reward", SystemExit(1)), "Faulty raised SystemExit: 1"),
    "sys.exit, awaited": (AskedInTurn(SystemExit(1)), "AskedInTurn raised SystemExit: 1"),
    "cancelled": (AskedInTurn(asyncio.CancelledError()), "AskedInTurn raised CancelledError"),
}
WORKSPACE_FAULTS: dict[str, tuple[object, str]] = {
    "a number": (7, "Faulty.workspace is 7: expected a path or None"),
    "bytes": (b"/tmp", "Faulty.workspace is b'/tmp': expected a path or None"),
    "a path of bytes": (_OddPath(), "expected a path or None"),
    "raises": (OSError("gone"), "asked for its workspace, Faulty raised OSError: gone"),
    "sys.exit": (SystemExit(2), "Faulty raised SystemExit: 2"),
    "no folder": ("/tmp/there/is/none", "no such folder"),
    "half a letter": ("/tmp/\ud800", "workspace"),
    "too long": ("/tmp/" + "x" * 100_000, "no such folder"),
    "elsewhere": ("/etc", "outside the folders of workspaces"),
}


def _outcomes(reward: Any, environments: list[Any], place: Path, lane: str) -> list[Any]:
    with RewardAdapter([reward], workers=1, lane=lane, record=place) as adapter:
        adapter.reward_funcs[0](**_batch(environments))
    with Run.open(place) as recorded:
        return [completion.outcomes[reward.name] for completion in recorded.completions()]


@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_a_fault_of_an_environments_reward_costs_its_completion_alone(lane: str, tmp_path: Path) -> None:
    """Whatever it gives or raises, the others have their scores, and the record has the reason."""
    environments = [environment for environment, _ in REWARD_FAULTS.values()]
    *failed, good = _outcomes(environment_reward, [*environments, Game(0.5)], tmp_path / "run", lane)
    assert (Status.SCORED, 0.5) == (good.status, good.score)
    for outcome, (_, words) in zip(failed, REWARD_FAULTS.values(), strict=True):
        assert Status.FAILED is outcome.status
        assert words in (outcome.error or "")


@reward
def path_length(workspace: str) -> float:
    return float(len(workspace))


@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_a_fault_of_an_environments_workspace_costs_its_completion_alone(lane: str, tmp_path: Path) -> None:
    """Of a reward that reads it; where it is taken as text, a path that cannot be had is no text."""
    environments = [Faulty("workspace", value) for value, _ in WORKSPACE_FAULTS.values()]
    *failed, good = _outcomes(kept_notes, [*environments, Faulty("workspace", None)], tmp_path / "run", lane)
    assert Status.SKIPPED is good.status
    for outcome, (_, words) in zip(failed, WORKSPACE_FAULTS.values(), strict=True):
        assert Status.FAILED is outcome.status
        assert words in (outcome.error or "")
    as_text = _outcomes(path_length, [Faulty("workspace", 7), Faulty("workspace", "abc")], tmp_path / "text", lane)
    assert [Status.FAILED, Status.SCORED] == [outcome.status for outcome in as_text]


class BoundToItsLoop:
    """An environment whose tools are async: what it holds belongs to the event loop on which they ran."""

    def __init__(self) -> None:
        self.done: asyncio.Future[float] | None = None

    async def act(self, value: float) -> str:
        self.done = asyncio.get_running_loop().create_future()
        self.done.set_result(value)
        self.loop = asyncio.get_running_loop()
        return "done"

    async def get_reward(self) -> float:
        assert asyncio.get_running_loop() is self.loop
        assert self.done is not None
        return await self.done


class ReturnsItsFuture(BoundToItsLoop):
    """The same with a plain function that returns what is to be awaited."""

    def get_reward(self) -> Any:
        return super().get_reward()


@reward
async def awaited_live(environments: BoundToItsLoop) -> float:
    return await environments.get_reward()


@pytest.fixture
def trainers_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.parametrize("lane", ["inline", "worker"])
@pytest.mark.parametrize("kind", [BoundToItsLoop, ReturnsItsFuture])
def test_async_environments_are_asked_on_the_trainers_loop(
    kind: Any, lane: str, trainers_loop: asyncio.AbstractEventLoop
) -> None:
    """Where their tools ran, by TRL's ``async_loop``; one that exits there ends neither the loop nor the batch."""
    environments = [kind(), kind()]
    for number, environment in enumerate(environments):
        asyncio.run_coroutine_threadsafe(environment.act(float(number)), trainers_loop).result()
    args, model = SimpleNamespace(num_generations=3), SimpleNamespace(training=True)
    trainer = SimpleNamespace(async_loop=trainers_loop, args=args, model=model)
    rewards = [environment_reward, awaited_live] if lane == "inline" else [environment_reward]
    with RewardAdapter(rewards, workers=1, lane=lane) as adapter:
        adapter._trainer = lambda: trainer  # type: ignore[assignment, return-value]
        batch = _batch([*environments, AskedInTurn(SystemExit(1))])
        assert [0.0, 1.0, None] == adapter.reward_funcs[0](**batch)
        if lane == "inline":
            assert [0.0, 1.0] == adapter.reward_funcs[1](**batch)[:2]
    assert trainers_loop.is_running()


@pytest.mark.parametrize(("recorded", "total"), [({}, 2.0), ({"game": (1.0, 0.5), "judge": None}, 2.5)])
def test_verifiers_traces_score_beside_our_rewards(recorded: dict[str, Any], total: float) -> None:
    """What a task or an environment has recorded in the trace is one of the rewards; nothing where it has not."""
    function = verifiers.verifiers_reward(
        "fated_rewards:right,fated_rewards:brave,trainer_adapter.environments:environment_reward", workers=1
    )
    rewards = {name: one and SimpleNamespace(score=one[0], weight=one[1]) for name, one in recorded.items()}
    trace = SimpleNamespace(rewards=rewards)
    assert total == asyncio.run(function(prompt="2+2=", completion="4", answer="4", trace=trace))  # type: ignore
