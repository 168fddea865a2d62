"""Stand-ins for tests: a judge that answers from a script, and rollouts from plain rows."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

from rewardkit.errors import DataError
from rewardkit.messages import message_text
from rewardkit.testing.source import Entry
from rewardkit.testing.table import rollouts_of
from rewardkit.types import Rollout

Reply: TypeAlias = str | float | BaseException | type[BaseException]
"""What a judge answers: words, a number as words, or an error that is raised."""

_NOT_COLUMNS = ("prompt", "completion", "completions", "completion_ids")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that a fake judge was sent.

    Attributes:
        messages: The chat messages.
        model: The model asked for; ``None`` if none was named.
        options: Everything else, such as ``temperature``.
    """

    messages: Sequence[Mapping[str, Any]]
    model: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text of all messages, one below another."""
        return "\n".join(message_text(message) for message in self.messages)


Script: TypeAlias = Reply | Sequence[Reply] | Mapping[str, Reply] | Callable[[Asked], Reply]
"""One reply for every request; replies in turn; replies by a text that the request holds; or a function."""


class FakeJudge:
    """A judge without a network, with the shape of an OpenAI client: ``await judge.chat.completions.create(...)``.

    >>> import asyncio
    >>> judge = FakeJudge(["0.5", TimeoutError("no answer")])
    >>> reply = asyncio.run(judge.chat.completions.create(model="m", messages=[{"role": "user", "content": "Good?"}]))
    >>> reply.choices[0].message.content, judge.asked[0].text
    ('0.5', 'Good?')

    A reward that runs in a worker process takes a copy of the judge along, and what it asks is recorded there;
    use the lane ``inline`` to see it in ``asked``.

    Args:
        script: A string, number or error: the reply to every request. A list: one reply a request, in turn. A
            mapping: the reply of the first key that the request's text holds. A function of :class:`Asked`.
        latency_s: Seconds after which each reply comes, so that requests are in flight together.

    Attributes:
        asked: Every request answered so far, those that an error answered included.
        chat: Has ``completions.create``.
    """

    def __init__(self, script: Script, *, latency_s: float = 0.0) -> None:
        self.latency_s = latency_s
        self._script = list(script) if isinstance(script, list | tuple) else script
        self.asked: list[Asked] = []
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    @classmethod
    def verdict(cls, winner: str | None = None, /, **grades: float | None) -> FakeJudge:
        """Return a judge that always grades like this, or always prefers ``"A"``, ``"B"`` or neither (``"tie"``).

        >>> FakeJudge.verdict(faithful=5).reply(Asked([]))
        '{"faithful": {"reason": "It is so.", "score": 5}}'

        Raises:
            DataError: The preferred answer has another name.
        """
        if winner not in (None, "A", "B", "tie"):
            raise DataError(f"verdict {winner!r}: a comparison has one of 'A', 'B' and 'tie'; grades are by name")
        if winner is not None:
            return cls(json.dumps({"reason": "It is so.", "verdict": winner}))
        return cls(functools.partial(_verdict, grades))

    def reply(self, question: Asked) -> Reply:
        """Return the script's reply to a request.

        Raises:
            DataError: The script has no reply to it; the message says what was asked.
        """
        script: Any = self._script
        if isinstance(script, list):
            index = len(self.asked) - 1
            if index >= len(script):
                raise DataError(f"the fake judge has {len(script)} replies and was asked {index + 1} times")
            return script[index]  # type: ignore[no-any-return]
        if isinstance(script, Mapping):
            for part, reply in script.items():
                if part in question.text:
                    return reply  # type: ignore[no-any-return]
            raise DataError(f"the fake judge has replies for {', '.join(map(repr, script))}; asked: {question.text!r}")
        if callable(script) and not isinstance(script, type):
            return script(question)  # type: ignore[no-any-return]
        return script  # type: ignore[no-any-return]

    async def _create(
        self, *, messages: Iterable[Mapping[str, Any]], model: str | None = None, **options: object
    ) -> SimpleNamespace:
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        return self.answer(Asked([dict(message) for message in messages], model, options))

    def answer(self, question: Asked) -> SimpleNamespace:
        """Record a request and return the response, or raise the error that the script has for it."""
        self.asked.append(question)
        reply = self.reply(question)
        if isinstance(reply, BaseException) or (isinstance(reply, type) and issubclass(reply, BaseException)):
            raise reply
        return _response(str(reply), question)


def _verdict(grades: Mapping[str, float | None], question: Asked) -> str:
    """Return a reply with the grades that the request asks for, or with all where it names none."""
    form = question.options.get("response_format") or {}
    properties = form.get("json_schema", {}).get("schema", {}).get("properties", grades)
    answers = {name: {"reason": "It is so.", "score": grade} for name, grade in grades.items() if name in properties}
    for name, verdict in answers.items():
        asked_for = properties[name].get("properties", verdict) if isinstance(properties[name], Mapping) else verdict
        answers[name] = {key: value for key, value in verdict.items() if key in asked_for}
    return json.dumps(answers)


def _response(text: str, question: Asked) -> SimpleNamespace:
    """Return the part of a chat completion that rewards read; words stand in for tokens."""
    prompt_tokens, completion_tokens = len(question.text.split()), len(text.split())
    message = SimpleNamespace(role="assistant", content=text, refusal=None, tool_calls=None)
    return SimpleNamespace(
        id="chatcmpl-fake",
        object="chat.completion",
        model=question.model,
        choices=[SimpleNamespace(index=0, message=message, finish_reason="stop", logprobs=None)],
        usage=SimpleNamespace(
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            total_tokens=prompt_tokens + completion_tokens,
        ),
    )


def rollouts_from_rows(rows: str | Path | Iterable[Mapping[str, Any]]) -> list[Rollout]:
    """Return the rollouts of rows.

    >>> [rollout.completion for rollout in rollouts_from_rows([{"completions": ["a", "b"], "answer": "a"}])]
    ['a', 'b']

    Args:
        rows: A JSON Lines file as ``rewardkit score`` reads it; or dictionaries with ``completion``, or
            ``completions`` for the rollouts of a group, perhaps ``prompt`` and ``completion_ids``, and columns.

    Raises:
        DataError: A row has no completion, or one of the wrong type; names the row.
    """
    if isinstance(rows, str | Path):
        from rewardkit.rows.reader import read_rollouts

        return read_rollouts(rows)
    rollouts: list[Rollout] = []
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"row {index}: expected a dict, got {type(row).__name__}")
        example = {column: value for column, value in row.items() if column not in _NOT_COLUMNS}
        rollouts += rollouts_of(Entry(f"row {index}", dict(row)), example)
    return rollouts
