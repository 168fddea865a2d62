"""verl's shape, as recorded of 0.9: keyword calls from many coroutines, and a manager that takes the first keys."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from fated_rewards import FATES, KEYS
from held_rewards import counted_batches

from rewardkit import ConfigError, DataError, MissingColumnError, RewardFailedError
from rewardkit.moving import from_verl
from trainer_adapter import verl
from trainer_adapter.trainer_rewards import close_all

BOTH = "fated_rewards:right,fated_rewards:brave"


@pytest.fixture(autouse=True, scope="module")
def _ended() -> Iterator[None]:
    yield
    close_all()


def _asked(completion: str, **info: Any) -> dict[str, Any]:
    """The keywords of one call, as verl's naive manager passes them."""
    extra = {"index": 3, "split": "train", "num_turns": 2, "rollout_reward_scores": {}, **info}
    return {"data_source": "mine", "solution_str": completion, "ground_truth": "4", "extra_info": extra}


async def _manager(compute_score: Any, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What verl's manager makes of the replies: a reward, and the extra numbers under the names of the reply."""
    assert inspect.iscoroutinefunction(compute_score)  # else verl calls it in a thread, and awaits nothing

    async def one(call: dict[str, Any]) -> dict[str, Any]:
        result = await compute_score(**call)
        return {"reward_score": result["score"], "reward_extra_info": dict(result)}

    scored = await asyncio.gather(*map(one, calls))
    first = scored[0]["reward_extra_info"]
    return [{**one, "columns": [one["reward_extra_info"][name] for name in first]} for one in scored]


@pytest.mark.parametrize("completion", FATES)
def test_each_fate_is_told_as_the_table_says(completion: str) -> None:
    """The reply has always the same keys, all floats, with ``score``."""
    reply = asyncio.run(verl.verl_score(BOTH, on_unknown="zero")(**_asked(completion)))  # type: ignore[arg-type]
    number, flags = FATES[completion]
    assert {"score", *KEYS} == reply.keys()
    assert {float} == set(map(type, reply.values()))
    assert (number, flags) == (reply["score"], {name: reply[name] for name in flags})


def test_extra_info_that_is_no_mapping_is_named() -> None:
    """As a column of JSON text would be."""
    with pytest.raises(DataError, match="verl: extra_info: expected a mapping, got str"):
        asyncio.run(verl.verl_score(BOTH)("data", "4", "4", "{}"))  # type: ignore[arg-type]


def test_an_unknown_score_is_raised_unless_told_otherwise() -> None:
    """verl then marks the sample's group as failed; a default that stands in is a score."""
    compute_score = verl.verl_score(BOTH)
    with pytest.raises(RewardFailedError, match=r"verl: .*'right'"):
        asyncio.run(compute_score(**_asked("unknown")))  # type: ignore[arg-type]
    assert -1.0 == asyncio.run(compute_score(**_asked("fail")))["score"]  # type: ignore[arg-type]


def test_512_samples_with_faults_are_few_batches_and_one_key_set() -> None:
    """With a fifth of the samples faulty no call raises, no key is missing, and the calls are joined."""
    texts = ["4", "5", "4", "5", "unknown"]
    calls = [_asked(texts[n % 5], index=n) for n in range(512)]
    with counted_batches() as batches:
        scored = asyncio.run(_manager(verl.verl_score(BOTH, on_unknown="zero"), calls))
    assert [{"4": 2.0, "5": 1.0, "unknown": 0.0}[texts[n % 5]] for n in range(512)] == [
        one["reward_score"] for one in scored
    ]
    assert 1 == len({tuple(one["reward_extra_info"]) for one in scored})
    assert (512, True) == (sum(batches), len(batches) <= 128)


def test_groups_are_gathered_by_what_the_dataset_says() -> None:
    """With a group size the completions of one index are scored together; what verl adds tells none apart."""
    compute_score = verl.verl_score("fated_rewards:rank", group_size=3)
    calls = [_asked("a" * (n + 1), index=index, num_turns=n) for n in range(3) for index in (0, 1)]
    scored = asyncio.run(_manager(compute_score, calls))
    assert [0.0, 0.0, 1.0, 1.0, 2.0, 2.0] == [one["reward_score"] for one in scored]


def test_a_group_that_nothing_tells_apart_is_refused() -> None:
    """Without index, uid and prompt, completions of other prompts would make up a group."""
    compute_score = verl.verl_score("fated_rewards:rank", group_size=3)
    with pytest.raises(DataError, match=r"nothing in extra_info.*reward_manager.name=rewardkit"):
        asyncio.run(compute_score("mine", "a", "4", {"split": "train"}))


def test_bad_input_names_verls_settings(tmp_path: Path) -> None:
    """Group rewards without a size, a file that is not there, and a column that did not come."""
    with pytest.raises(ConfigError, match=r"actor_rollout_ref\.rollout\.n"):
        verl.verl_score("fated_rewards:rank")
    with pytest.raises(Exception, match=r"verl: .*nowhere\.py.*custom_reward_function\.path"):
        verl.verl_score(str(tmp_path / "nowhere.py"))
    with pytest.raises(MissingColumnError, match=r"verl: .*'hardness'.*extra_info"):
        asyncio.run(verl.verl_score("fated_rewards:hard")(**_asked("4")))  # type: ignore[arg-type]
    assert 5.0 == asyncio.run(verl.verl_score("fated_rewards:hard")(**_asked("4", hardness="5")))["score"]  # type: ignore


def test_the_truth_is_the_answer_though_the_data_has_another() -> None:
    """GSM8K's rows have the whole solution as ``answer`` in ``extra_info``; what verl calls the truth counts."""
    solution = {"answer": "2+2 is 4\n#### 4"}
    assert 2.0 == asyncio.run(verl.verl_score(BOTH)(**_asked("4", **solution)))["score"]  # type: ignore[arg-type]


def test_a_function_of_verls_gets_the_data_s_own_extra_info() -> None:
    """One that moved in and goes back to verl reads GSM8K's whole solution there."""

    def compute_score(solution_str: str, ground_truth: str, extra_info: Any) -> float:
        return float(extra_info["answer"].endswith(f"#### {ground_truth}") and "data_source" not in extra_info)

    solution = {"answer": "2+2 is 4\n#### 4"}
    made = verl.verl_score([from_verl(compute_score)])
    assert 1.0 == asyncio.run(made(**_asked("4", **solution)))["score"]  # type: ignore[arg-type]


def test_a_prompt_that_verl_does_not_send_is_asked_for() -> None:
    """A reward that reads the prompt gets it from the named field, and never an empty one."""
    compute_score = verl.verl_score("fated_rewards:asked", prompt="question")
    assert 4.0 == asyncio.run(compute_score(**_asked("4", question="2+2=")))["score"]  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"no field 'question'.*reward_manager.name=rewardkit"):
        asyncio.run(compute_score(**_asked("4")))  # type: ignore[arg-type]


def test_the_messages_that_verl_sends_are_the_prompt() -> None:
    """Agent loops before V1 add ``raw_prompt`` to ``extra_info``; a field that the user names comes first."""
    messages = [{"role": "user", "content": "2+2="}]
    compute_score = verl.verl_score("fated_rewards:asked")
    assert 4.0 == asyncio.run(compute_score(**_asked("4", raw_prompt=messages)))["score"]  # type: ignore[arg-type]
    assert 2.0 == asyncio.run(compute_score(**_asked("4", raw_prompt=messages, prompt="2+")))["score"]  # type: ignore


def test_a_group_is_whole_though_its_rows_differ_in_what_verl_adds() -> None:
    """A group reward that takes every column sees one group, whose turns and engines told different things."""
    compute_score = verl.verl_score("fated_rewards:rank_by_all", group_size=2)
    calls = [_asked("a" * (n + 1), turn_scores=[n], num_cached_tokens=n, max_global_steps=n) for n in range(2)]
    assert [0.0, 1.0] == [one["reward_score"] for one in asyncio.run(_manager(compute_score, calls))]


def test_settings_come_with_the_call_where_there_is_no_file() -> None:
    """``pkg://trainer_adapter.verl`` takes ``reward_kwargs``, which verl passes with every call."""
    kwargs = {"rewards": BOTH, "on_unknown": "zero", "reward_router_address": None}
    assert 2.0 == asyncio.run(verl.compute_score(**_asked("4"), **kwargs))["score"]
    assert 1.0 == asyncio.run(verl.compute_score(**_asked("unknown"), **kwargs))["unknown"]


def test_it_travels_as_ray_sends_functions() -> None:
    """cloudpickle's copy of the coroutine function scores."""
    copy = cloudpickle.loads(cloudpickle.dumps(verl.verl_score(BOTH)))
    assert inspect.iscoroutinefunction(copy)
    assert 2.0 == asyncio.run(copy(**_asked("4")))["score"]


def test_a_manager_that_does_not_load_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """verl itself tells it at its debug level, and later that it knows no manager of that name."""
    monkeypatch.setitem(sys.modules, "verl", types.ModuleType("verl"))
    monkeypatch.delitem(sys.modules, "trainer_adapter.verl_manager", raising=False)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("trainer_adapter.verl_manager")
    (warning,) = caplog.messages
    assert "'rewardkit' is not registered" in warning
    assert "reward.reward_manager.name=rewardkit" in warning


class _Naive:
    """verl's naive manager, as far as the registered one builds on it."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any) -> None:
        self.compute_score = compute_score

    async def run_single(self, data: Any) -> dict[str, Any]:
        columns = data[-1:][0].non_tensor_batch
        extra = columns.get("extra_info", {})
        extra["num_turns"] = columns.get("__num_turns__")
        truth = columns["reward_model"]["ground_truth"]
        result = await self.compute_score(
            data_source=columns["data_source"], solution_str=columns["text"], ground_truth=truth, extra_info=extra
        )
        return {"reward_score": result["score"], "reward_extra_info": result}


class _Data(list[Any]):
    def __getitem__(self, key: Any) -> Any:
        return _Data(list.__getitem__(self, key)) if isinstance(key, slice) else list.__getitem__(self, key)


def test_the_registered_manager_tells_prompt_and_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """With it, the messages reach the reward, and ``uid`` gathers a group without an index in the data."""
    registered: dict[str, Any] = {}

    def register(name: str) -> Any:
        return lambda cls: registered.setdefault(name, cls)

    package = "verl.experimental.reward_loop.reward_manager"
    parts = package.split(".")
    for place in [".".join(parts[: n + 1]) for n in range(len(parts))]:
        monkeypatch.setitem(sys.modules, place, types.ModuleType(place))
    naive = types.ModuleType(f"{package}.naive")
    monkeypatch.setattr(sys.modules[package], "register", register, raising=False)
    monkeypatch.setattr(naive, "NaiveRewardManager", _Naive, raising=False)
    monkeypatch.setitem(sys.modules, f"{package}.naive", naive)
    monkeypatch.delitem(sys.modules, "trainer_adapter.verl_manager", raising=False)
    importlib.import_module("trainer_adapter.verl_manager")
    monkeypatch.delitem(sys.modules, "trainer_adapter.verl_manager")
    manager = registered["rewardkit"]({}, None, verl.verl_score("fated_rewards:rank", group_size=2))

    def sample(text: str, uid: str) -> _Data:
        columns = {
            "data_source": "mine",
            "text": text,
            "reward_model": {"ground_truth": "4"},
            "extra_info": {},
            "raw_prompt": [{"role": "user", "content": "2+2="}],
            "uid": uid,
        }
        return _Data([types.SimpleNamespace(non_tensor_batch=columns)])

    async def all_at_once() -> list[float]:
        samples = [sample("aa", "x"), sample("b", "y"), sample("a", "x"), sample("bb", "y")]
        return [one["reward_score"] for one in await asyncio.gather(*map(manager.run_single, samples))]

    assert [1.0, 0.0, 0.0, 1.0] == asyncio.run(all_at_once())
