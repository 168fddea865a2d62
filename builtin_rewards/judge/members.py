"""The functions of judges, and what chains and juries share: their parameters, and one checked call of a member."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from builtin_rewards.judge.errors import Fault, JudgeError, JudgeSetupError, JudgeUnavailableError
from rewardkit import Composite, InfrastructureError, Kind, Reward, Score, Unanswered
from rewardkit.extending import RewardFunction, score_of

UNSEEN = "unseen"  # the metric of a skip by a judge that cannot see the completion, which another judge may see
_SAME = 1e-9  # scores no further apart are the same grade: they were weighted, and divided by a scale's width
_RESERVED = frozenset({"prompt", "completion", "messages", "completion_ids", "example", "step", "epoch"})


def same(one: float, other: float) -> bool:
    """Whether two scores are the same grade."""
    return abs(one - other) <= _SAME


def accepts(score: float, threshold: float) -> bool:
    """Whether a score reaches the threshold, up to rounding by weights."""
    return score >= threshold - _SAME


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgeFunction(RewardFunction):
    """The function of a judge, which has the judge's ``name``: an object with its settings, which pickles."""

    name: str

    @property
    def takes(self) -> Mapping[str, tuple[Any, bool]]:
        """The parameters: the annotation of each, and whether it is required."""
        raise NotImplementedError

    @property
    def hints(self) -> dict[str, Any]:
        """The parameters' annotations."""
        return {name: annotation for name, (annotation, _) in self.takes.items()}

    @property
    def __signature__(self) -> inspect.Signature:
        kind, needed = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
        takes = self.takes.items()
        return inspect.Signature(
            [inspect.Parameter(name, kind, default=needed if required else "") for name, (_, required) in takes]
        )

    async def __call__(self, **columns: Any) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class CombiningFunction(JudgeFunction):
    """The function of a reward that asks others, its ``members``; it takes all their columns, without coercion."""

    members: tuple[Reward[..., Any], ...]

    @property
    def takes(self) -> Mapping[str, tuple[Any, bool]]:
        required: dict[str, bool] = {}
        for member in self.members:
            for one in member.spec.parameters:
                if not one.supplied:
                    required[one.name] = required.get(one.name, False) or one.required or one.name in _RESERVED
            if member.spec.rest is not None:
                required["example"] = True
        return {name: (dict if name == "example" else object, needed) for name, needed in required.items()}

    @property
    def inner(self) -> tuple[Reward[..., Any], ...]:
        return tuple(dict.fromkeys(one for member in self.members for one in (member, *member.inner)))

    def set_up(self) -> None:
        for member in self.members:
            member.set_up()


def checked(owner: str, members: Iterable[Any]) -> tuple[tuple[Reward[..., Any], ...], tuple[float, float] | None]:
    """Return the members of a chain or a jury, and the range of their scores; raises JudgeSetupError."""
    listed = tuple(members)
    if len(listed) < 2:
        raise JudgeSetupError(f"{owner} is made of at least 2 rewards, got {len(listed)}")
    for place, one in enumerate(listed):
        if isinstance(one, Composite):
            raise JudgeSetupError(f"{owner}: {one.name!r} is a composition; write it as a reward of its own")
        if not isinstance(one, Reward):
            raise JudgeSetupError(f"{owner}: {one!r} is not a reward; decorate the function with @reward")
        if one.spec.kind is not Kind.SINGLE:
            raise JudgeSetupError(f"{owner}: {one.name!r} scores groups; only rewards of one completion fit here")
        if one.name in [other.name for other in listed[:place]]:
            raise JudgeSetupError(f"{owner}: two are named {one.name!r}; rename one with .with_options(name=...)")
    ranges = [one.options.score_range for one in listed]
    known = [span for span in ranges if span is not None]
    common = (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(ranges) else None
    return listed, common


class MemberAnswer(NamedTuple):
    """What one member answered about a completion: its score, or the error with which it failed."""

    name: str
    score: Score | None
    error: Exception | None = None
    is_unseen: bool = False
    """Whether a judge skipped it because it cannot see it; another reward's metric of that name has no meaning."""

    @property
    def unanswered(self) -> Unanswered:
        """The record of a member that gave no score."""
        if self.score is not None:
            return Unanswered(self.name, UNSEEN, self.score.reason or "")
        kind = type(self.error).__name__
        if isinstance(self.error, JudgeError):
            return Unanswered(self.name, str(self.error.fault or kind), str(self.error), self.error.requests)
        return Unanswered(self.name, kind, f"{kind}: {self.error}")


async def ask(member: Reward[..., Any], given: Mapping[str, Any]) -> MemberAnswer:
    """Call one member with its own columns and its own deadline, and return its score or its error."""
    limit = asyncio.timeout(member.options.timeout_s)
    try:
        async with limit:
            value = Reward.__call__(member, **_own_columns(member, given))  # a judge's own call would set up the judge
            if inspect.isawaitable(value):
                value = await value
        score = score_of(member.options, value)
        unseen = isinstance(member.function, JudgeFunction) and score.value is None and UNSEEN in score.metrics
        return MemberAnswer(member.name, score, is_unseen=unseen)
    except TimeoutError as late:
        if not limit.expired():
            return MemberAnswer(member.name, None, late)
        words = f"no answer within its timeout_s={member.options.timeout_s:g}"
        return MemberAnswer(
            member.name, None, JudgeUnavailableError(words, Fault.DEADLINE) if member.spec.is_async else late
        )
    except Exception as error:
        return MemberAnswer(member.name, None, error)


def _own_columns(member: Reward[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the columns that a member takes."""
    names = {parameter.name for parameter in member.spec.parameters if not parameter.supplied}
    row = given.get("example", {}) if member.spec.rest is not None else {}
    others = {name: value for name, value in row.items() if name not in _RESERVED}
    return others | {name: given[name] for name in names if name in given}


def unanswered_error(what: str, lost: Sequence[MemberAnswer]) -> JudgeError:
    """Return the error of a chain or jury in which too few answered: an outage if each error is one."""
    unanswered = [one.unanswered for one in lost]
    outage = all(isinstance(one.error, InfrastructureError) for one in lost if one.error is not None)
    error = (JudgeUnavailableError if outage else JudgeError)(f"{what}: {'; '.join(map(str, unanswered))}")
    error.requests = sum(one.requests for one in unanswered)
    return error
