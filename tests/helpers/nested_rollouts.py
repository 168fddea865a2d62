"""Rollouts with lists and objects nested as deep as one likes, in each place where a model or a row may have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit import Rollout
from rewardkit.types import Outcome

DEPTHS = (10, 100, 400, 1_000, 10_000)
INNOCENT = Rollout("p", [{"role": "assistant", "content": "fine <a>x</a>"}])


def nested(depth: int) -> Any:
    """Return lists and objects in turn around a text."""
    value: Any = "leaf"
    for level in range(depth):
        value = [value] if level % 2 else {"inner": value}
    return value


def _around(value: Any, depth: int, /, **around: Any) -> Any:
    """Return a value in an object, in another one and so on; ``...`` is where the inner one stands."""
    for _ in range(depth):
        value = {key: value if inner is ... else [value] if inner == [...] else inner for key, inner in around.items()}
    return value


def _said(content: Any, **fields: Any) -> Rollout:
    return Rollout("p", [{"role": "assistant", "content": content, **fields}])


def nested_rollouts(depth: int) -> dict[str, Rollout]:
    """Return rollouts by the place in which something is nested."""
    deep, text = nested(depth), "[" * depth + "]" * depth
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": {}}}

    def answered(content: Any) -> Rollout:
        turn = {"role": "assistant", "content": "I look.", "tool_calls": [call]}
        return Rollout("p", [turn, {"role": "tool", "tool_call_id": "1", "content": content}])

    return {
        "arguments": _said("", tool_calls=[{**call, "function": {"name": "look", "arguments": deep}}]),
        "arguments as text": _said("", tool_calls=[{**call, "function": {"name": "look", "arguments": text}}]),
        "tool calls": _said("", tool_calls=deep),
        "a call in a call": _said([_around({"name": "look"}, depth, type="tool-call", function=...)]),
        "a call's input": _said([{"type": "tool_use", "id": "1", "name": "look", "input": deep}]),
        "a call's own answer": _said([{"type": "mcp_call", "id": "1", "name": "look", "output": deep}]),
        "an answer": answered(deep),
        "an answer in blocks": answered([deep, {"type": "text", "text": "x"}]),
        "an answer in answers": answered([_around("x", depth, type="tool_result", tool_use_id="1", content=[...])]),
        "a result in results": answered(_around("x", depth, type="content", value=...)),
        "a result of MCP": answered(_around("x", depth, content=...)),
        "content": _said(deep),
        "a block": _said([{"type": "text", "text": "yes"}, {"type": "odd", "value": deep}]),
        "a block's text": _said([{"type": "text", "text": deep}]),
        "thoughts": _said("x", reasoning_content=deep),
        "another field": _said("x", extra=deep),
        "text": Rollout("p", f"<a>{text}</a>"),
        "the prompt": Rollout([{"role": "user", "content": [{"type": "odd", "value": deep}]}], "c"),
        "a column": Rollout("p", "c", {"data": deep}),
        "a column that is a list": Rollout("p", "c", {"data": [deep]}),
        "a column's JSON": Rollout("p", "c", {"data": text}),
        "a column's brackets": Rollout("p", "c", {"data": "(" * depth + "1" + ")" * depth}),
    }


def between_innocents(rollouts: Mapping[str, Rollout]) -> list[Rollout]:
    """Return the rollouts with an innocent one before each, and one at the end."""
    return [row for rollout in rollouts.values() for row in (INNOCENT, rollout)] + [INNOCENT]


def harmed(outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, list[str]]:
    """Return, by reward, the errors of the innocent rollouts that :func:`between_innocents` put in, and lost calls."""
    lost = {name: [str(o.error) for o in column if o.is_lost] for name, column in outcomes.items()}
    innocent = {name: [str(o.error) for o in column[::2] if o.cause is not None] for name, column in outcomes.items()}
    return {name: lost[name] + innocent[name] for name in outcomes if lost[name] or innocent[name]}
