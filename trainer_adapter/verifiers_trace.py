"""What a reward reads of a task and a trace of verifiers 1: prompt, completion and columns.

======== =====================================================================
prompt   the task's system prompt and prompt; without a prompt what stands in
         the trace before the model's first message
completion the trace's messages from the model's first on, of the branch that
         ends with the agent's reply, the last one unless the trace names it
columns  the fields of the task's data, and those of its field ``info``
======== =====================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from rewardkit import DataError
from trainer_adapter.environment_values import Trace
from trainer_adapter.turns import Text, plain_message, plain_text


class TraceNode(Protocol):
    """A message in a trace, and whether the model wrote it."""

    message: Any
    sampled: bool


class TraceBranch(Protocol):
    """A path through a trace, from its first message to a last one."""

    nodes: Sequence[TraceNode]


class AgentTrace(Trace, Protocol):
    """A trace of an agent's run, as far as it is read and written."""

    errors: Sequence[object]
    ok: bool
    info: dict[str, Any]

    @property
    def branches(self) -> Sequence[TraceBranch]: ...
    def record_metrics(self, values: Mapping[str, float]) -> None: ...
    def record_reward(self, name: str, value: float, weight: float = 1.0) -> None: ...


class TraceRollout(NamedTuple):
    """A trace as a rollout's parts."""

    prompt: Text
    completion: Text
    columns: dict[str, Any]


def trace_rollout(task: object, trace: AgentTrace) -> TraceRollout:
    """Return what rewards read of a trace; ``task`` is the task or its data.

    Raises DataError where the model has said nothing: no score could be of it.
    """
    data = getattr(task, "data", task)
    branch = _reply_branch(trace)
    first = next((index for index, node in enumerate(branch) if node.sampled), len(branch))
    before, turns = ([plain_message(node.message) for node in nodes] for nodes in (branch[:first], branch[first:]))
    reply = _root_reply(trace)
    if reply is not None and (not turns or _reply_of(turns) != reply):
        turns.append({"role": "assistant", "content": reply})
    if not turns:
        raise DataError("verifiers: the trace has no message of the model, so there is no completion to score")
    return TraceRollout(_prompt(data) or before or "", turns, task_columns(data))


def _root_reply(trace: AgentTrace) -> str | None:
    """Return the root agent's reply, where the trace names it: that of 0.3 does not."""
    reply: str | None = getattr(trace, "root_reply", None)
    return None if reply is None else reply.strip()


def _reply_branch(trace: AgentTrace) -> Sequence[TraceNode]:
    """Return the branch that ends with the root agent's reply; the last one where none does or it has no name."""
    branches = [branch.nodes for branch in trace.branches]
    reply = _root_reply(trace)
    replying = [nodes for nodes in branches if reply is not None and _reply_of([nodes[-1].message]) == reply]
    return [*branches, *replying][-1] if branches else ()


def _reply_of(messages: Sequence[Any]) -> str:
    message = plain_message(messages[-1])
    return str(message.get("content") or "").strip() if message.get("role") == "assistant" else ""


def _prompt(data: object) -> Text:
    """Return a task's prompt with its system prompt; empty where the task has no prompt."""
    prompt, system = plain_text(getattr(data, "prompt", None)), getattr(data, "system_prompt", None)
    if not prompt or not system:
        return prompt or ""
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    return [{"role": "system", "content": system}, *messages]


def task_columns(data: Any) -> dict[str, Any]:
    """Return the fields of a task's data as columns, with those of its ``info``; the data's own win."""
    fields = dict(data) if isinstance(data, Mapping) else data.model_dump()
    fields.pop("prompt", None)
    return {**info_fields(fields.get("info")), **fields}


def info_fields(info: object) -> Mapping[str, Any]:
    """Return the fields of a row's ``info``, an object or its JSON; anything else counts as an empty object."""
    if isinstance(info, str):
        try:
            info = json.loads(info)
        except (ValueError, RecursionError):
            return {}
    return info if isinstance(info, Mapping) else {}
