"""Rewards inside a reward: what a fallback chain and a jury have in common.

Owns which parameters the whole takes, and one call of a member with its deadline and the checks of what it returns.
What is made of the members' scores is their owners' work.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from builtin_rewards.judge.errors import Fault, JudgeError, JudgeSetupError, JudgeUnavailableError
from rewardkit import Composite, InfrastructureError, Kind, Reward, Score
from rewardkit.runtime.attempt import FAILED, SCORED, finding_of

RAW = object
"""The annotation of a parameter that is handed on as it comes; each member coerces it to its own."""
_ABSENT = object()
_RESERVED = frozenset({"prompt", "completion", "messages", "completion_ids", "step", "epoch"})


@dataclass(frozen=True, slots=True)
class Said:
    """What one member said of a completion.

    Attributes:
        name: The member.
        score: Its score; ``None`` where it failed.
        error: Why it failed; ``None`` where it did not.
    """

    name: str
    score: Score | None
    error: Exception | None = None

    @property
    def words(self) -> str:
        """Gives why it failed, with the member's name."""
        if isinstance(self.error, JudgeError):
            return f"{self.name}: {self.error}"
        return f"{self.name}: {type(self.error).__name__}: {self.error}"


def checked_members(owner: str, members: Iterable[Any], fewest: int) -> tuple[Reward[..., Any], ...]:
    """Gives the members of a chain or a jury.

    Raises:
        JudgeSetupError: There are too few, one is no reward of single completions, or two have one name.
    """
    listed = tuple(members)
    if len(listed) < fewest:
        raise JudgeSetupError(f"{owner} is made of at least {fewest} rewards, got {len(listed)}")
    for member in listed:
        if isinstance(member, Composite):
            raise JudgeSetupError(f"{owner}: {member.name!r} is a composition; write it as a reward of its own")
        if not isinstance(member, Reward):
            raise JudgeSetupError(f"{owner}: {member!r} is no reward; decorate the function with @reward")
        if member.spec.kind is not Kind.SINGLE:
            raise JudgeSetupError(f"{owner}: {member.name!r} scores groups; only rewards of one completion fit here")
    names = [member.name for member in listed]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise JudgeSetupError(f"{owner}: two are named {twice[0]!r}; rename one with .with_options(name=...)")
    return listed


def parameters(members: Sequence[Reward[..., Any]]) -> tuple[inspect.Signature, dict[str, Any]]:
    """Gives the signature and the annotations of a reward that calls these.

    It takes what any of them takes; a column that one of them cannot do without is required.
    """
    required: dict[str, bool] = {}
    everything = False
    for member in members:
        everything = (
            everything or member.spec.rest is not None or any(p.name == "example" for p in member.spec.parameters)
        )
        for parameter in member.spec.parameters:
            if not parameter.supplied and parameter.name != "example":
                needed = parameter.required or parameter.name in _RESERVED
                required[parameter.name] = required.get(parameter.name, False) or needed
    if everything:
        required["example"] = True
    listed = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=inspect.Parameter.empty if needed else _ABSENT)
        for name, needed in required.items()
    ]
    hints: dict[str, Any] = dict.fromkeys(required, RAW)
    return inspect.Signature(listed), hints | ({"example": dict} if everything else {})


M = TypeVar("M", bound="AskingMembers")


@dataclass(frozen=True, kw_only=True)
class AskingMembers:
    """The function of a reward that asks other rewards.

    Attributes:
        name: The whole's name.
        members: The rewards.
    """

    name: str
    members: tuple[Reward[..., Any], ...]

    @property
    def __signature__(self) -> inspect.Signature:
        return parameters(self.members)[0]

    @property
    def hints(self) -> dict[str, Any]:
        """The parameters' annotations."""
        return parameters(self.members)[1]

    @property
    def inner(self) -> tuple[Reward[..., Any], ...]:
        """The members, and the rewards inside them."""
        return tuple(dict.fromkeys(one for member in self.members for one in (member, *member.inner)))

    def named(self: M, name: str) -> M:
        """Gives the same under another name."""
        return replace(self, name=name)


def common_range(members: Sequence[Reward[..., Any]]) -> tuple[float, float] | None:
    """Gives the range that holds all scores of the members; ``None`` where one of them has no range."""
    ranges = [member.options.score_range for member in members]
    known = [one for one in ranges if one is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(ranges) else None


async def ask(member: Reward[..., Any], given: Mapping[str, Any]) -> Said:
    """Calls one member with its own columns and its own deadline; what it raises is told, not raised."""
    limit = asyncio.timeout(member.options.timeout_s)
    try:
        async with limit:
            value = member(**_own(member, given))
            if inspect.isawaitable(value):
                value = await value
        return Said(member.name, _checked(member, value))
    except TimeoutError as late:
        if not limit.expired():
            return Said(member.name, None, late)
        words = f"no answer within its timeout_s={member.options.timeout_s:g}"
        unavailable = JudgeUnavailableError(words, Fault.DEADLINE) if member.spec.is_async else late
        return Said(member.name, None, unavailable)
    except Exception as error:
        return Said(member.name, None, error)


def _own(member: Reward[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the part of the columns that a member takes."""
    names = {parameter.name for parameter in member.spec.parameters if not parameter.supplied}
    example = given.get("example", {})
    own = {name: given[name] for name in names if name in given}
    if member.spec.rest is not None:
        own = {**{name: value for name, value in example.items() if name not in _RESERVED}, **own}
    return own


def _checked(member: Reward[..., Any], value: Any) -> Score:
    """Gives a returned value as a score, by the rules of a run.

    Raises:
        ValueError: It is no score.
    """
    outcome, *said = finding_of(member.spec, value, 1)
    if outcome == FAILED:
        raise ValueError(said[1])
    number, *more = said if outcome == SCORED else (None, *said)
    reason, metrics = more or (None, {})
    return Score(number, reason, metrics)


def none_left(what: str, failures: Sequence[Said]) -> JudgeError:
    """Gives the error of a chain or jury in which too few answered."""
    words = f"{what}: " + "; ".join(said.words for said in failures)
    if all(isinstance(said.error, InfrastructureError) for said in failures):
        return JudgeUnavailableError(words)
    return JudgeError(words)
