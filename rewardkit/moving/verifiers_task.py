"""Functions of verifiers 1, ``f(task, trace)``, as rewards: stand-ins for the task and the trace that they read."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

from rewardkit.blocks.block import Block, to_json
from rewardkit.blocks.calls import message_calls
from rewardkit.messages import content_text, conversation
from rewardkit.moving.function import AsyncMovedFunction, AuthorCall, MovedFunction, score_from, scored, signature_of
from rewardkit.types import Message, Text

TASK_NAMES = frozenset({"self", "task", "trace"})
"""What a function of a task of verifiers' is called with; ``self`` is the task, whose ``data`` is ``task``."""
_NO_FIELD = dict.fromkeys(("idx", "id", "name", "description", "system_prompt"))  # Fields that all tasks have


class TaskFunction(MovedFunction):
    """A function, or a method, of a task of verifiers', called for one rollout."""

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """The columns that a call takes of ours: the rollout, and the row for the rest."""
        return signature_of(["prompt", "example"], ["completion"])

    @property
    def hints(self) -> Mapping[str, Any]:
        return {"prompt": object, "completion": object, "example": Mapping[str, Any]}

    def author_call(self, columns: Mapping[str, Any]) -> AuthorCall:
        own = {name: value for name, value in columns.items() if name not in ("prompt", "completion", "example")}
        row, prompt = {**(columns.get("example") or {}), **own}, columns.get("prompt")
        task = MovedTask({**_NO_FIELD, **row, "prompt": prompt})
        trace = MovedTrace(task, "" if prompt is None else prompt, columns["completion"])
        keywords = {"self": SimpleNamespace(data=task, config=None), "task": task, "trace": trace}
        keywords |= dict(self.settings)
        wanted = {name: value for name, value in keywords.items() if self.takes_all or name in self.parameters}
        return AuthorCall(wanted, partial(_read, trace))


class AsyncTaskFunction(AsyncMovedFunction, TaskFunction):
    """The same for an ``async def``."""


def _read(trace: MovedTrace, value: object) -> Any:
    """Return the score; of keyed scores their sum, as a trace adds them up, with each of them as a metric."""
    if isinstance(value, Mapping):
        parts = {str(name): score_from(part) for name, part in value.items()}
        return scored(sum(parts.values()) if parts else None, {**trace.metrics, **parts})
    return scored(score_from(value), trace.metrics)


class MovedTask(SimpleNamespace):
    """Stands for a task's data: the row's columns as fields, and its prompt."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(**{str(name): value for name, value in fields.items()})

    def __getattr__(self, name: str) -> Any:
        if name != "prompt_text":  # of the data, unless the row has such a column
            raise AttributeError(f"task.{name}: the row has no column {name!r}")
        prompt = vars(self).get("prompt") or ""
        texts = [prompt] if isinstance(prompt, str) else [content_text(turn.get("content")) for turn in prompt]
        return "\n\n".join(text for text in texts if text)

    def model_dump(self, **options: object) -> dict[str, Any]:
        """Return the fields."""
        return dict(vars(self))


class MovedTrace:
    """Stands for a trace: the messages of one rollout, and what a function notes in it.

    ``info`` and ``metrics`` can be written; metrics become those of the score. What else only an agent's run has is an
    AttributeError that says so.
    """

    def __init__(self, task: MovedTask, prompt: Text, completion: Text) -> None:
        count = len(conversation(prompt, ())) if prompt else 0
        messages = [_message_view(message) for message in conversation(prompt, completion)[0 if prompt else 1 :]]
        self.task = SimpleNamespace(type="Task", data=task, key=None, hash=None)
        self.messages: list[SimpleNamespace] = messages
        self.assistant_messages = [turn for turn in messages[count:] if turn.role == "assistant"]
        self.tool_messages = [turn for turn in messages if turn.role == "tool"]
        self.nodes = [
            SimpleNamespace(message=turn, sampled=index >= count and turn.role == "assistant")
            for index, turn in enumerate(messages)
        ]
        self.num_turns = len(self.assistant_messages)
        self.rewards: dict[str, Any] = {}
        self.metrics: dict[str, float] = {}
        self.info: dict[str, Any] = {}
        self.state = SimpleNamespace()
        self.errors: list[object] = []
        self.is_completed, self.ok, self.is_truncated = True, True, False

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"trace.{name} is of an agent's run; from_verifiers has the messages of a completion")

    @property
    def last_message(self) -> SimpleNamespace:
        """The last message."""
        return self.messages[-1]

    @property
    def last_reply(self) -> str:
        """The text of the model's last message."""
        return (self.assistant_messages[-1].content or "").strip() if self.assistant_messages else ""

    @property
    def transcript(self) -> str:
        """The messages as text, as verifiers writes them."""
        blocks = []
        for turn in self.messages:
            name = getattr(turn, "name", None)
            lines = [f"[{turn.role} {name}]" if name else f"[{turn.role}]", *filter(None, [content_text(turn.content)])]
            lines += [f"[tool_call {call.name}({call.arguments})]" for call in getattr(turn, "tool_calls", None) or ()]
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks)

    def record_metric(self, name: str, value: float) -> None:
        """Note a number, which becomes a metric of the score."""
        self.metrics[name] = float(value)

    def record_metrics(self, values: Mapping[str, float]) -> None:
        """Note numbers, which become metrics of the score."""
        for name, value in values.items():
            self.record_metric(name, value)


def _message_view(message: Message) -> SimpleNamespace:
    """Return a message with its fields as attributes, as verifiers' messages have them."""
    role, content = message.get("role", "assistant"), message.get("content")
    if role == "assistant":
        calls = list(map(_call_view, message_calls(message)))
        thoughts = message.get("reasoning_content")
        text = content_text(content) or None
        return SimpleNamespace(role=role, content=text, reasoning_content=thoughts, tool_calls=calls or None)
    view = SimpleNamespace(role=role, content=content)
    if role in ("tool", "function"):
        view.role, view.tool_call_id, view.name = "tool", message.get("tool_call_id", ""), message.get("name")
    return view


def _call_view(call: Block) -> SimpleNamespace:
    arguments = to_json({} if call.value is None else call.value)
    return SimpleNamespace(id=call.id or "", type="function", name=call.name or "", arguments=arguments)
