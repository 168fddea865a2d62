"""The functions of judges, and what chains and juries share: their parameters, and one checked call of a member."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeAlias

from builtin_rewards.endpoint.errors import OR_FALLBACK, Fault, JudgeError, JudgeSetupError, JudgeUnavailableError
from builtin_rewards.reading.thoughts import Shows
from rewardkit import Composite, InfrastructureError, Kind, Reward, RewardDefinitionError, Score, Unanswered
from rewardkit.extending import RewardFunction, score_of

UNSEEN = "unseen"  # the metric of a skip by a judge that cannot see the completion, which another judge may see
_SAME = 1e-9  # scores no further apart are the same grade: they were weighted, and divided by a scale's width
_RESERVED = frozenset({"prompt", "completion", "messages", "completion_ids", "example", "step", "epoch"})


def is_same_grade(first: float, second: float) -> bool:
    return abs(first - second) <= _SAME


def accepts(score: float, threshold: float) -> bool:
    """Return whether a score reaches the threshold, up to rounding by weights."""
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
        return {name: annotation for name, (annotation, _) in self.takes.items()}

    @property
    def __signature__(self) -> inspect.Signature:
        kind, needed = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
        takes = [(name, needed if required else "") for name, (_, required) in self.takes.items()]
        return inspect.Signature([inspect.Parameter(name, kind, default=default) for name, default in takes])

    async def __call__(self, **columns: Any) -> Any:
        raise NotImplementedError

    def showing(self, shows: Shows) -> Self:
        """Return the same function, which is shown the answer alone or with ``"all"`` thoughts."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class CombiningFunction(JudgeFunction):
    """The function of a reward that asks others, its ``members``; it takes all their columns, without coercion."""

    members: tuple[Reward[..., Any], ...]

    @property
    def takes(self) -> Mapping[str, tuple[Any, bool]]:
        """The members' columns, of which one is required if any member requires it; ``example`` for other columns."""
        required: dict[str, bool] = {}
        for member in self.members:
            for parameter in member.spec.parameters:
                name = parameter.name
                if not parameter.supplied:
                    required[name] = required.get(name, False) or parameter.required or name in _RESERVED
            if member.spec.rest is not None:
                required["example"] = True
        return {name: (dict if name == "example" else object, needed) for name, needed in required.items()}

    @property
    def inner(self) -> tuple[Reward[..., Any], ...]:
        return tuple(dict.fromkeys(part for member in self.members for part in (member, *member.inner)))

    def with_client(self, client: object) -> Self:
        """Return the same function whose judges ask this client; RewardDefinitionError where no member is a judge."""
        members = [_with_client(member, client) for member in self.members]
        if not any(members):
            names = ", ".join(repr(member.name) for member in self.members)
            raise RewardDefinitionError(f"reward {self.name!r} has no client: no judge is among {names}")
        return replace(self, members=tuple(new or old for new, old in zip(members, self.members, strict=True)))

    def set_up(self) -> None:
        for member in self.members:
            member.set_up()

    def showing(self, shows: Shows) -> Self:
        members = [member.showing(shows) if hasattr(member, "showing") else member for member in self.members]
        return replace(self, members=tuple(members))


def _with_client(member: Reward[..., Any], client: object) -> Reward[..., Any] | None:
    """Return a member that asks this client; ``None`` for a reward that asks none."""
    try:
        return member.with_client(client)
    except RewardDefinitionError:
        return None


Members: TypeAlias = tuple[Reward[..., Any], ...]


def check_members(owner: str, members: Iterable[Any]) -> tuple[Members, tuple[float, float] | None]:
    """Return the members of a chain or a jury, and the range of their scores; raise JudgeSetupError."""
    members, names = tuple(members), set[str]()
    if len(members) < 2:
        raise JudgeSetupError(f"{owner} is made of at least 2 rewards, got {len(members)}")
    for member in members:
        if isinstance(member, Composite):
            raise JudgeSetupError(f"{owner}: {member.name!r} is a composition; write it as a reward of its own")
        if not isinstance(member, Reward):
            fix = "decorate the function with @reward" if callable(member) else "a constant is a function with @reward"
            raise JudgeSetupError(f"{owner}: {member!r} is not a reward; {fix}")
        if member.spec.kind is not Kind.SINGLE:
            raise JudgeSetupError(f"{owner}: {member.name!r} scores groups; only rewards of one completion fit here")
        if member.name in names:
            raise JudgeSetupError(f"{owner}: two are named {member.name!r}; rename one with .with_options(name=...)")
        names.add(member.name)
    spans = [member.options.score_range for member in members]
    if None in spans:
        return members, None
    return members, (min(low for low, _ in spans), max(high for _, high in spans))


class MemberAnswer(NamedTuple):
    """What one member answered about a completion: its score, or the error with which it failed."""

    name: str
    score: Score | None
    error: Exception | None = None
    is_unseen: bool = False  # a judge skipped what it cannot see; another reward's metric of that name means nothing

    def before_fallback(self) -> MemberAnswer:
        """Return the answer of a chain's link, whose error advises no fallback: the chain is one."""
        if isinstance(self.error, JudgeError) and OR_FALLBACK in self.error.message:
            return self._replace(error=self.error.with_message(self.error.message.replace(OR_FALLBACK, "")))
        return self

    @property
    def unanswered(self) -> Unanswered:
        """The record of a member that gave no score."""
        if self.score is not None:
            return Unanswered(self.name, UNSEEN, self.score.reason or "")
        kind = type(self.error).__name__
        if isinstance(self.error, JudgeError):
            return Unanswered(self.name, str(self.error.fault or kind), str(self.error), self.error.requests)
        return Unanswered(self.name, kind, f"{kind}: {self.error}")


async def ask(member: Reward[..., Any], columns: Mapping[str, Any]) -> MemberAnswer:
    """Call one member with its own columns and its own deadline, and return its score or its error."""
    limit = asyncio.timeout(member.options.timeout_s)
    try:
        async with limit:
            value = Reward.__call__(member, **_own_columns(member, columns))  # a judge's own call sets it up
            if inspect.isawaitable(value):
                value = await value
        score = score_of(member.options, value)
        is_unseen = isinstance(member.function, JudgeFunction) and score.value is None and UNSEEN in score.metrics
        return MemberAnswer(member.name, score, is_unseen=is_unseen)
    except Exception as error:
        if isinstance(error, TimeoutError) and limit.expired() and member.spec.is_async:
            message = f"no answer within its timeout_s={member.options.timeout_s:g}"
            return MemberAnswer(member.name, None, JudgeUnavailableError(message, Fault.DEADLINE))
        return MemberAnswer(member.name, None, error)


def _own_columns(member: Reward[..., Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that a member names, and the rest of the row for one that takes any."""
    names = {parameter.name for parameter in member.spec.parameters if not parameter.supplied}
    row = columns.get("example", {}) if member.spec.rest is not None else {}
    rest = {name: value for name, value in row.items() if name not in _RESERVED}
    return rest | {name: columns[name] for name in names if name in columns}


def unanswered_error(summary: str, failures: Sequence[MemberAnswer], outage_help: str = "") -> JudgeError:
    """Return the error of a chain or jury in which too few answered: an outage, with help, if each error is one."""
    unanswered = [failure.unanswered for failure in failures]
    is_outage = all(isinstance(failure.error, InfrastructureError) for failure in failures if failure.error is not None)
    message = f"{summary}: {'; '.join(map(str, unanswered))}"
    error = JudgeUnavailableError(message + outage_help) if is_outage else JudgeError(message)
    error.requests = sum(record.requests for record in unanswered)
    return error
