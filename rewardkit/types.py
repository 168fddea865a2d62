"""The values that pass through rewardkit: Rollout in, Score and Outcome out.

All are frozen; validation happens where data enters (``coerce``) and where a reward returns (``runtime.attempt``).
A :class:`Step`, which tests make by hand, checks its kind itself.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from rewardkit.errors import RewardDefinitionError

Message: TypeAlias = Mapping[str, Any]
"""One chat message: ``role``, ``content`` (a string or a list of content blocks), perhaps ``tool_calls``."""

Text: TypeAlias = str | Sequence[Message]
"""A prompt or completion: a string, or in conversational form a list of messages."""

STEP_KINDS: Mapping[str, str] = {"turn": "turns", "tool_call": "tool calls", "span": "spans"}
"""The kinds of steps, and what several of them are called."""

COST_METRICS = ("requests", "prompt_tokens", "completion_tokens", "cost_usd")
"""The metrics that say what a call of a server took; over several calls they are summed."""

UNMETERED = "unmetered"
"""The metric for requests of a call that may be billed and are in none of its tokens and costs."""


class Status(StrEnum):
    """What became of one call."""

    SCORED = "scored"
    """The reward gave a finite number. 0.0 is a score."""
    SKIPPED = "skipped"
    """The reward returned ``None``: the row has nothing to score by, and the rollout leaves the group's baseline."""
    FAILED = "failed"
    """There is no score; ``Outcome.cause`` says why and ``Outcome.score`` is the default that stands in."""


class Cause(StrEnum):
    """Why a call failed."""

    EXCEPTION = "exception"
    """The reward raised."""
    TIMEOUT = "timeout"
    """The reward did not return before its deadline."""
    BAD_RETURN = "bad_return"
    """The reward returned something that is not a finite score in its range."""
    COERCION = "coercion"
    """A column's value is not what the annotation says."""
    CRASHED = "crashed"
    """The worker process died while running this very call."""
    INFRASTRUCTURE = "infrastructure"
    """Not the completion's fault: worker killed from outside, judge unreachable."""

    @functools.cached_property
    def is_curable(self) -> bool:
        """Whether another attempt may cure it; otherwise the same would come out."""
        return self not in (Cause.BAD_RETURN, Cause.COERCION)

    @functools.cached_property
    def is_by_chance(self) -> bool:
        """Whether it depends on the machine at that moment, so that the same call may end otherwise."""
        return self in (Cause.TIMEOUT, Cause.CRASHED, Cause.INFRASTRUCTURE)

    @functools.cached_property
    def is_breakage(self) -> bool:
        """Whether the reward itself broke: it raised, ended its process, or returned no score."""
        return self in (Cause.EXCEPTION, Cause.CRASHED, Cause.BAD_RETURN)

    @functools.cached_property
    def ends_process(self) -> bool:
        """Whether the process that ran the call ends with it, so that only another process can tell of it."""
        return self in (Cause.TIMEOUT, Cause.CRASHED)

    @functools.cached_property
    def is_loss(self) -> bool:
        """Whether the call was lost through no fault of the completion, of which nothing is known."""
        return self is Cause.INFRASTRUCTURE


class Unanswered(NamedTuple):
    """A reward that another reward asked and that gave no score, such as a link of a chain.

    Attributes:
        name: Its name.
        kind: What kept it from answering, for programs: a judge's fault, ``"unseen"``, or the class of its error.
        message: Why, in words.
        requests: HTTP requests that were sent for it.
    """

    name: str
    kind: str
    message: str
    requests: int = 0

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"


@dataclass(frozen=True, slots=True)
class Score:
    """What a reward may return instead of a bare number, to say more.

    Attributes:
        value: The score, a finite number; ``None`` means not applicable, as a bare ``None`` does.
        reason: Why, in a sentence; shown in the reward log.
        metrics: Named finite numbers beside the score, such as ``{"distance": 3}``.
        unanswered: The rewards that were asked inside this one and gave no score, in the order they were asked.
    """

    value: float | None
    reason: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    unanswered: Sequence[Unanswered] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Rollout:
    """One prompt with one completion and the dataset row it came from.

    Attributes:
        prompt: The input: a string, or a list of chat messages.
        completion: The model's output: a string, or a list of chat messages.
        example: The dataset row; its values are those of the data set until a reward's annotation coerces them.
        completion_ids: Token ids of the completion, where the caller has them.
    """

    prompt: Text
    completion: Text
    example: Mapping[str, Any] = field(default_factory=dict)
    completion_ids: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a completion, as :func:`~rewardkit.step_reward` hands it to its function.

    Attributes:
        text: What the assistant says in the turn, what stands in the span, or a tool call's arguments as written.
        kind: ``"turn"``, ``"tool_call"`` or ``"span"``.
        index: Its place among the completion's steps, from 0.
        count: How many steps there are.
        name: The tool that is called; ``None`` where the call names no tool, and for the other kinds.
        arguments: A tool call's arguments; ``None`` where they are not a JSON object, and for the other kinds.
        result: The text of the tool's answer, of a list or an object its JSON; ``None`` where no answer is the call's,
            and for the other kinds.
        label: The label of a span; ``None`` for the other kinds.
        before: The turns before it, those of the prompt first; for a span also what its own turn says before it.
        messages: The step as messages: its turn; its call alone, with the tool's answer; or the span's text.
        no_result: Why a tool call has no result: there is no answer, or it cannot be told whose it is; else ``None``.
        turn: Which of the assistant's turns in the completion it stands in, from 0.

    Raises:
        RewardDefinitionError: There is no such kind; names those that there are.
    """

    text: str
    kind: str = "turn"
    index: int = 0
    count: int = 1
    name: str | None = None
    arguments: Mapping[str, Any] | None = None
    result: str | None = None
    label: str | None = None
    before: tuple[Message, ...] = ()
    messages: tuple[Message, ...] = ()
    no_result: str | None = None
    turn: int = 0

    def __post_init__(self) -> None:
        """Refuse an unknown kind, which a test of a step would not reveal."""
        if self.kind not in tuple(STEP_KINDS):
            *rest, last = map(repr, STEP_KINDS)
            raise RewardDefinitionError(f"Step: kind={self.kind!r}: expected {', '.join(rest)} or {last}")


class Arrived(NamedTuple):
    """A :class:`Rollout` as it arrives in a worker, quicker to make: the same four fields."""

    prompt: Text
    completion: Text
    example: Mapping[str, Any]
    completion_ids: Sequence[int] | None


class Outcome(NamedTuple):
    """What became of scoring one rollout with one reward.

    It is a named tuple, since one is made for each call and a frozen dataclass takes five times as long to make.

    Attributes:
        status: Scored, skipped or failed.
        score: The finite number the reward gave; ``None`` if skipped; if failed, the default that stands in, or
            ``None``.
        reason: The reward's reason for its score.
        metrics: Named finite numbers beside the score.
        cause: Why it failed; ``None`` unless failed.
        error: ``"ValueError: the message"``; ``None`` unless failed.
        traceback: The reward's own frames, where it raised.
        attempts: How often the reward was run for this outcome, at least 1. Runs lost with a worker that was killed
            from outside count as part of one attempt.
        duration_s: Seconds that the last attempt took, in the worker.
        logs: The output and the log of the last attempt, capped.
        version: Fingerprint of the reward that gave it, 12 hexadecimal digits.
        cached: Taken from the cache, or from an identical call in the same batch.
        unanswered: The rewards that were asked inside this one and gave no score.
    """

    status: Status
    score: float | None
    reason: str | None = None
    metrics: Mapping[str, float] = {}
    cause: Cause | None = None
    error: str | None = None
    traceback: str | None = None
    attempts: int = 1
    duration_s: float = 0.0
    logs: str = ""
    version: str = ""
    cached: bool = False
    unanswered: tuple[Unanswered, ...] = ()

    @property
    def is_lost(self) -> bool:
        """Whether it failed through no fault of the completion, whose score is unknown."""
        return self.cause is not None and self.cause.is_loss

    def as_json(self) -> dict[str, Any]:
        """Return the fields ready for JSON."""
        records = [record._asdict() for record in self.unanswered]
        return {**self._asdict(), "metrics": dict(self.metrics), "unanswered": records}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Outcome:
        """Return the outcome of fields as :meth:`as_json` returns them; a missing field has its default."""
        values = {name: fields[name] for name in cls._fields if name in fields}
        cause = values.get("cause")
        records = tuple(Unanswered(**record) for record in values.get("unanswered", ()))
        decoded = {"status": Status(values["status"]), "cause": cause and Cause(cause), "unanswered": records}
        return cls(**{**values, **decoded})

    def _repr_html_(self) -> str:
        """Return the fields that are not empty as a table, for notebooks."""
        from rewardkit.shown.html import table_html  # only notebooks show it

        cells = [[name, str(value)] for name, value in self._asdict().items() if value or name == "score"]
        return table_html(f"Outcome: {self.status}", ["field", "value"], cells)
