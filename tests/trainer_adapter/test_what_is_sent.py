"""The docs' table of what each trainer sends: for every cell its adapter is called as the trainer calls it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import what_is_sent

from rewardkit import Reward
from trainer_adapter import RewardAdapter
from trainer_adapter.openrlhf import openrlhf_reward
from trainer_adapter.slime import slime_group_rm, slime_rm
from trainer_adapter.swift import swift_orm
from trainer_adapter.trainer_rewards import close_all
from trainer_adapter.verifiers import verifiers_group_reward, verifiers_reward
from trainer_adapter.verl import verl_score

IMAGE = [{"type": "image"}, {"type": "text", "text": "2+2="}]
PROMPT = [{"role": "user", "content": "2+2="}]
CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
TURNS = [
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "4"},
    {"role": "assistant", "content": "It is 4"},
]
RAW_CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 2}}\n</tool_call>'
RAW_TURNS = [{"role": "assistant", "content": RAW_CALL}, {"role": "tool", "content": "4"}, TURNS[-1]]
BARE = f"{RAW_CALL}\nuser\n<tool_response>\n4\n</tool_response>\nassistant\nIt is 4"
TOKENS = (
    f"{RAW_CALL}<|im_end|>\n<|im_start|>user\n<tool_response>\n4\n</tool_response><|im_end|>\n"
    "<|im_start|>assistant\nIt is 4<|im_end|>"
)
Rewarded = Reward[..., Any]


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    close_all()


def _run(*calls: Awaitable[Any]) -> list[Any]:
    async def together() -> list[Any]:
        return list(await asyncio.gather(*calls))

    return asyncio.run(together())


def _trl(reward: Rewarded, prompt: Any) -> list[float]:
    with RewardAdapter([reward], lane="inline") as adapter:
        scores = adapter.reward_funcs[0](
            prompts=[prompt] * 2, completions=[TURNS, TURNS], completion_ids=[[1], [2]], trainer_state=None
        )
        return list(map(float, scores))


def _verl(reward: Rewarded, prompt: Any) -> list[float]:
    size = 2 if reward.scores_groups else None
    score = verl_score(reward, lane="inline", group_size=size)
    calls = [score("sums", BARE, "4", {"index": 0, "num_turns": 2}) for _ in range(2)]
    return [reply["score"] for reply in _run(*calls)]


def _verl_manager(reward: Rewarded, prompt: Any) -> list[float]:
    size = 2 if reward.scores_groups else None
    score = verl_score(reward, lane="inline", group_size=size)
    extra = {"prompt": prompt, "uid": "u", "rewardkit_messages": TURNS}
    return [reply["score"] for reply in _run(*(score("sums", "It is 4", "4", dict(extra)) for _ in range(2)))]


def _openrlhf(reward: Rewarded, prompt: Any) -> list[float]:
    size = 2 if reward.scores_groups else None
    function = openrlhf_reward(reward, lane="inline", group_size=size)
    text = f"<|im_start|>user\n{PROMPT[0]['content']}<|im_end|>\n<|im_start|>assistant\n"
    calls = [asyncio.to_thread(function, [text + TOKENS], [text], ["4"]) for _ in range(2)]
    return [reply["rewards"] for reply in _run(*calls)]


def _slime(reward: Rewarded, prompt: Any) -> list[float]:
    args = SimpleNamespace(reward_key=None, n_samples_per_prompt=2)
    make: Callable[..., Any] = slime_group_rm if reward.scores_groups else slime_rm
    function = make(reward, lane="inline")
    samples = [SimpleNamespace(prompt=prompt, response=TOKENS, label="4", metadata={}) for _ in range(2)]
    if reward.scores_groups:
        return list(_run(function(args, samples))[0])
    return _run(*(function(args, sample) for sample in samples))


def _swift(reward: Rewarded, prompt: Any) -> list[float]:
    size = 2 if reward.scores_groups else None
    orm = swift_orm(reward, lane="inline", group_size=size)(args=SimpleNamespace(num_generations=2))
    columns: dict[str, Any] = {
        "messages": [[*PROMPT, *RAW_TURNS]] * 2,
        "rollout_infos": [{"num_turns": 2}] * 2,
        "prompt_id": ["p"] * 2,
    }
    columns |= {"images": [["a.png"]] * 2} if prompt is not PROMPT else {}
    return orm(["It is 4"] * 2, **columns)


def _trace(prompt: Any) -> Any:
    nodes = [SimpleNamespace(message=message, sampled=message["role"] == "assistant") for message in [*prompt, *TURNS]]
    trace = SimpleNamespace(branches=[SimpleNamespace(nodes=nodes)], rewards={}, errors=[], ok=True)
    trace.record_metrics = lambda values: None
    trace.record_reward = lambda name, value: None
    return trace


def _verifiers(reward: Rewarded, prompt: Any) -> list[float]:
    task = SimpleNamespace(prompt=prompt, system_prompt=None, model_dump=lambda: {"answer": "4"})
    if reward.scores_groups:
        ranked = verifiers_group_reward(reward, lane="inline")
        return list(_run(ranked(task=task, traces=[_trace(prompt), _trace(prompt)]))[0])
    function = verifiers_reward(reward, lane="inline")
    return [parts.get(reward.name) for parts in _run(*(function(task=task, trace=_trace(prompt)) for _ in range(2)))]


def _rubric(reward: Rewarded, prompt: Any) -> list[float]:
    if reward.scores_groups:
        return list(_run(verifiers_group_reward(reward, lane="inline")([prompt] * 2, [TURNS] * 2))[0])
    function = verifiers_reward(reward, lane="inline")
    return _run(*(function(prompt=prompt, completion=TURNS) for _ in range(2)))


TRAINERS: dict[str, Callable[[Rewarded, Any], list[float]]] = {
    "TRL": _trl,
    "verl": _verl,
    "verl, manager `rewardkit`": _verl_manager,
    "OpenRLHF": _openrlhf,
    "slime, Miles": _slime,
    "ms-swift": _swift,
    "verifiers 0.4": _verifiers,
    "verifiers' `Rubric`": _rubric,
}
EXPECTED = {
    "turns": (what_is_sent.turns, {"messages": [3.0, 3.0], "text": [3.0, 3.0]}),
    "tools": (what_is_sent.calls, {"messages": [2.0, 2.0], "text": [2.0, 2.0]}),
    "images": (what_is_sent.prompt_images, {"prompt": [1.0, 1.0], "column": [1.0, 1.0], "nothing": [0.0, 0.0]}),
    "groups": (what_is_sent.together, {"whole": [2.0, 2.0], "gathered": [2.0, 2.0]}),
}


def _table(root: Path) -> dict[str, dict[str, str]]:
    text = (root / "docs/how-to/use-with-other-trainers.md").read_text()
    lines = [line for line in text.split("## What each trainer sends")[1].split("\n## ")[0].splitlines() if "|" in line]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_the_table_has_every_trainer(root: Path) -> None:
    """No row is without a test, and none is missing."""
    assert list(TRAINERS) == list(_table(root))


@pytest.mark.parametrize("column", EXPECTED)
@pytest.mark.parametrize("trainer", TRAINERS)
def test_each_cell_is_what_a_reward_gets(trainer: str, column: str, root: Path) -> None:
    """The first word of the cell says how it comes; a reward that counts finds as many as were sent."""
    reward, expected = EXPECTED[column]
    word = _table(root)[trainer][column].split(",")[0].split(" ")[0]
    prompt = [{"role": "user", "content": IMAGE}] if column == "images" else PROMPT
    if (trainer, column) == ("verl", "images"):
        reward = what_is_sent.column_images  # one that reads the prompt is refused, because verl sends none
    assert expected[word] == TRAINERS[trainer](reward, prompt)


@pytest.mark.parametrize("trainer", ["verl", "OpenRLHF", "slime, Miles"])
def test_text_stays_text_for_rewards_that_read_text(trainer: str) -> None:
    """Only a reward of messages or steps has the text taken apart."""
    assert [1.0, 1.0] == TRAINERS[trainer](what_is_sent.whole_text, PROMPT)


def test_a_data_sets_own_messages_are_no_completion() -> None:
    """A field of extra_info or metadata that holds a solved conversation pays nobody."""
    score = verl_score(what_is_sent.turns, lane="inline")
    (reply,) = _run(score("sums", "one turn", "4", {"messages": [*PROMPT, *TURNS], "index": 0}))
    assert 1.0 == reply["score"]
