"""Runs in an environment with verifiers: its own tasks, and its Rubric where it has one, call our functions.

Traces are verifiers' own, made of messages that a model could have written; there is no model.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import verifiers
import verifiers.v1 as vf
from fault_mix import FATES, REWARDS
from tool_steps import shown
from verifiers.v1.configs.task import TaskConfig
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import AgentInfo, Trace, TraceTask
from verifiers.v1.types import AssistantMessage, ToolCall, ToolMessage, UserMessage

from rewardkit import Rollout, Runtime
from rewardkit.moving import from_verifiers
from trainer_adapter.trainer_rewards import close_all
from trainer_adapter.verifiers import verifiers_group_reward, verifiers_reward


class Data(vf.TaskData):
    """A task's row."""

    answer: str = ""
    level: float = 0.0


class Plugged(vf.Task[Data]):
    """A task with a reward of its own beside those that its configuration plugs in."""

    @vf.reward
    async def other(self, trace: Trace) -> float:
        """Score a quarter."""
        return 0.25


class Declared(vf.Task[Data]):
    """A task whose class has two functions of ours."""

    sums = vf.reward(weight=2.0)(verifiers_reward("faulty_rewards:brave"))
    asked = vf.reward(verifiers_reward("faulty_rewards:asked"))


def trace_of(task: vf.Task, messages: list[Any], **fields: Any) -> Trace:
    """Return a trace with one branch."""
    nodes = [
        MessageNode(parent=place - 1 if place else None, message=message, sampled=message.role == "assistant")
        for place, message in enumerate(messages)
    ]
    agent = AgentInfo.model_construct(config=None)
    return Trace(agent=agent, task=TraceTask(type="Plugged", data=task.data), nodes=nodes, **fields)


def said(text: str) -> list[Any]:
    """Return a question and an answer."""
    return [UserMessage(content="2+2="), AssistantMessage(content=text)]


def used_tool() -> list[Any]:
    """Return a question, a call with its answer, and what the model made of it."""
    call = ToolCall(id="c1", name="add", arguments='{"a": 2, "b": 2}')
    turns = [AssistantMessage(tool_calls=[call]), ToolMessage(tool_call_id="c1", content="4")]
    return [UserMessage(content="2+2="), *turns, AssistantMessage(content="It is 4")]


async def scored(task: vf.Task, trace: Trace) -> dict[str, Any]:
    """Return what a trace has of rewards after its task has scored it."""
    error = ""
    try:
        await task.score(trace)
    except Exception as wrong:
        error = f"{type(wrong).__name__}: {wrong}"
    rewards = {name: reward and [reward.score, reward.weight] for name, reward in trace.rewards.items()}
    return {"error": error, "rewards": rewards, "total": trace.reward, "metrics": trace.metrics, "info": trace.info}


async def in_finalize(texts: list[str]) -> dict[str, Any]:
    """Score a group as an environment's finalize does; the third trace ended with an error."""
    ranked = verifiers_group_reward("faulty_rewards:rank")
    task = Plugged(Data(prompt="2+2=", answer="4"))
    traces = [trace_of(task, said(text), ok=True) for text in texts]
    traces[2].record_error(ValueError("no network"))
    totals = await ranked(task=task, traces=traces)
    return {"totals": totals, "rewards": [trace.reward if trace.rewards else None for trace in traces]}


async def moved(task: vf.Task, messages: list[Any]) -> list[list[float]]:
    """Return what verifiers' own functions score of a real trace, and what they score moved in, pair by pair."""
    trace = trace_of(task, messages)
    theirs = [await shown(task.data, trace), sum((await Shown.keyed(task, trace)).values())]
    turns = [message.model_dump(exclude_none=True) for message in messages[1:]]
    row = {"answer": task.data.answer, "level": task.data.level}
    rewards = [from_verifiers(shown), from_verifiers(Shown.keyed)]
    with Runtime(rewards, lane="inline") as runtime:
        batch = await runtime.ascore([Rollout(task.data.prompt, turns, row)])
    return [[score, batch[reward.name][0].score] for score, reward in zip(theirs, rewards, strict=True)]


class Shown(vf.Task[Data]):
    """A task with keyed scores."""

    @vf.reward
    async def keyed(self, trace: Trace) -> dict[str, float]:
        """Score the last reply and the calls."""
        calls = [call for message in trace.assistant_messages for call in message.tool_calls or []]
        return {"right": float(trace.last_reply.endswith(self.data.answer)), "calls": 0.5 * len(calls)}


async def in_rubric(function: Any, texts: list[str]) -> list[float]:
    """Return the reward of each text by verifiers' Rubric."""
    rubric = verifiers.Rubric(funcs=[function])
    rewards = []
    for text in texts:
        completion = [{"role": "assistant", "content": text}]
        prompt = [{"role": "user", "content": "2+2="}]
        state = {"prompt": prompt, "completion": completion, "answer": "4", "task": "sums", "info": {"level": 3}}
        await rubric.score_rollout(state)
        rewards.append(state["reward"])
    return rewards


def main(folder: str) -> None:
    Path(folder, "my_vf.py").write_text(
        "from trainer_adapter.verifiers import verifiers_reward\n"
        f"sums = verifiers_reward({REWARDS!r}, weights=[1, 1])\n"
        "steps = verifiers_reward('tool_steps:called_add,tool_steps:judged_by_level')\n"
        "turns = verifiers_reward('tool_steps:acted,tool_steps:judged_by_level')\n"
    )
    sys.path.insert(0, folder)
    plugs = {"sums": {"fn": "my_vf:sums", "weight": 2.0}}
    task = Plugged(Data(prompt="2+2=", answer="4", level=3), TaskConfig(rewards=plugs))
    steps = Plugged(task.data, TaskConfig(rewards={"steps": {"fn": f"{folder}/my_vf.py:steps"}}))
    turns = Plugged(task.data, TaskConfig(rewards={"turns": {"fn": f"{folder}/my_vf.py:turns"}}))
    declared = Declared(task.data)
    seen: dict[str, Any] = {
        "version": verifiers.__version__,
        "fates": {text: asyncio.run(scored(task, trace_of(task, said(text)))) for text in FATES},
        "steps": asyncio.run(scored(steps, trace_of(steps, used_tool()))),
        "turns": asyncio.run(scored(turns, trace_of(turns, used_tool()))),
        "reply": asyncio.run(scored(task, trace_of(task, said("5"), root_reply="4"))),
        "silent": asyncio.run(scored(task, trace_of(task, said("5")[:1]))),
        "declared": asyncio.run(scored(declared, trace_of(declared, said("4")))),
        "group": asyncio.run(in_finalize(["aaa", "a", "aaaa", "aa"])),
        "moved": [asyncio.run(moved(task, messages)) for messages in (said("4"), said("5"), used_tool())],
    }
    if hasattr(verifiers, "Rubric"):
        seen["rubric"] = asyncio.run(in_rubric(verifiers_reward(REWARDS), list(FATES)))
    close_all()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
