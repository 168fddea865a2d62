"""verifiers' shape, as recorded: a function gets the arguments that its parameters name."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fated_rewards import FATES
from held_rewards import counted_batches

from rewardkit import ConfigError, DataError, MissingColumnError, RewardFailedError, reward
from trainer_adapter import verifiers
from trainer_adapter.trainer_rewards import close_all

BOTH = "fated_rewards:right,fated_rewards:brave"
STATE = {
    "prompt": [{"role": "user", "content": "2+2="}], "answer": "4", "task": "sums", "info": {"level": "3"},
    "state": {"turn": 1}, "parser": object(),
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _ended() -> Iterator[None]:
    yield
    close_all()


async def _rubric(function: Any, completion: str) -> Any:
    """Call a function as a rubric does: with those of the rollout's values that it has parameters for."""
    given = {**STATE, "completion": [{"role": "assistant", "content": completion}]}
    names = inspect.signature(function).parameters
    return await function(**{name: given[name] for name in names if name in given})


@pytest.mark.parametrize("completion", FATES)
def test_each_fate_is_told_as_the_table_says(completion: str) -> None:
    """A total is a float; an unknown one is an error, by which the trace is left out."""
    function = verifiers.verifiers_reward(BOTH)
    if completion == "unknown":
        with pytest.raises(RewardFailedError, match=r"verifiers: .*'right'"):
            asyncio.run(_rubric(function, completion))
        return
    reward = asyncio.run(_rubric(function, completion))
    assert (float, FATES[completion][0]) == (type(reward), reward)


def test_single_calls_with_faults_are_few_batches() -> None:
    """512 rollouts at once: a fifth of them raises, the others are scored, in a few batches."""
    texts, function = ["4", "5", "4", "5", "unknown"], verifiers.verifiers_reward(BOTH)

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(_rubric(function, texts[n % 5]) for n in range(512)), return_exceptions=True)

    with counted_batches() as batches:
        rewards = asyncio.run(all_at_once())
    assert [RewardFailedError if texts[n % 5] == "unknown" else float for n in range(512)] == [*map(type, rewards)]
    assert (512, True) == (sum(batches), len(batches) <= 128)


def test_a_group_function_has_plural_names_and_sees_the_group() -> None:
    """By its parameters' names a rubric knows that it takes a group."""
    function = verifiers.verifiers_group_reward("fated_rewards:rank")
    names = {"prompts", "completions", "answers", "infos", "tasks", "task", "traces"}
    assert names == set(inspect.signature(function).parameters)
    texts = ["aaa", "a", "aa"]
    asked = function([STATE["prompt"]] * 3, texts, answers=["4"] * 3, tasks=["sums"] * 3, infos=[{}] * 3)
    assert [2.0, 0.0, 1.0] == asyncio.run(asked)  # type: ignore[arg-type]


@reward
def _level(completion: Any, level: float) -> float:
    """A score that a row's info holds."""
    return float(level)


@pytest.mark.parametrize("info", [{"level": 0.5}, '{"level": 0.5}'], ids=["object", "json"])
def test_the_fields_of_info_are_columns_also_as_json(info: Any) -> None:
    """Datasets hold ``info`` as an object or as its JSON."""
    single = verifiers.verifiers_reward(_level, lane="inline")
    assert asyncio.run(single("q", "4", info=info)) == 0.5
    group = verifiers.verifiers_group_reward(_level, lane="inline")
    assert asyncio.run(group(["q", "q"], ["4", "5"], infos=[info, info])) == [0.5, 0.5]


@pytest.mark.parametrize("info", ["geometry", "[" * 100_000, [1], None], ids=["text", "deep", "list", "none"])
def test_an_info_without_fields_costs_no_reward_that_reads_none(info: Any) -> None:
    """What a reward does not read ends no score of it."""
    right = verifiers.verifiers_reward("builtin_rewards.matching:exact_match", lane="inline")
    assert asyncio.run(right("q", "4", answer="4", info=info)) == 1.0


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        ({"answers": ["4"]}, "answers: 1 for 2 completions"),
        ({"prompts": ["q"]}, "prompts: 1 for 2 completions"),
        ({"infos": "ab"}, "infos: expected a list, got str"),
    ],
)
def test_lists_of_a_group_that_do_not_belong_together_are_named(lists: dict[str, Any], words: str) -> None:
    """No text is taken for a list of letters, and no list for one of another length."""
    group = verifiers.verifiers_group_reward("builtin_rewards.matching:exact_match", lane="inline")
    with pytest.raises(DataError, match=words):
        asyncio.run(group(**{"prompts": ["q", "q"], "completions": ["4", "5"], "answers": ["4", "4"], **lists}))


def test_bad_input_names_verifiers_settings() -> None:
    """Group rewards for single rollouts, and a column that is in no info."""
    with pytest.raises(ConfigError, match="the rollouts of a task, or take verifiers_group_reward"):
        verifiers.verifiers_reward("fated_rewards:rank")
    with pytest.raises(MissingColumnError, match=r"verifiers: .*fields of the dataset's info"):
        asyncio.run(_rubric(verifiers.verifiers_reward("fated_rewards:hard"), "4"))


@pytest.mark.parametrize(
    ("version", "file", "refused"),
    [
        ("0.1.9", "rubrics/rubric.py", False),
        ("0.3.1", "legacy/rubrics/rubric.py", False),
        ("0.4.2", "v1/task.py", False),
        ("0.9.0", "v2/task.py", True),
    ],
)
def test_a_version_that_calls_no_rewards_in_these_ways_is_refused(
    version: str, file: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names its number, as the rewards are made."""
    for path, text in ((f"verifiers/{file}", ""), ("verifiers/__init__.py", "raise ImportError")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    metadata = tmp_path / f"verifiers-{version}.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: verifiers\nVersion: {version}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for make in (verifiers.verifiers_reward, verifiers.verifiers_group_reward):
        if refused:
            with pytest.raises(ConfigError, match=r"verifiers 0\.9\.0 has neither.*'verifiers>=0\.3,<0\.5'"):
                make(_level, lane="inline")
        else:
            assert callable(make(_level, lane="inline"))


def test_a_call_that_passes_nothing_is_refused() -> None:
    """Whatever version passes neither completions nor traces."""
    with pytest.raises(ConfigError, match="passes neither a completion nor a trace"):
        asyncio.run(verifiers.verifiers_reward(_level, lane="inline")(task=object()))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="passes neither a completion nor traces"):
        asyncio.run(verifiers.verifiers_group_reward(_level, lane="inline")(task=object()))  # type: ignore[arg-type]
