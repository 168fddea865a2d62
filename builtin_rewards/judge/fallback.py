"""A chain of judges and plain rewards: the first that can answer does, and the score says which one it was.

Owns :class:`Fallback`, and :class:`JudgeReward`, which all judges are. A link that fails hands on to the next; one that
scores, or says that it does not apply, ends the chain. Where every link fails the call fails, and the chain's
``default`` stands in: no score is invented.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from builtin_rewards.judge.members import AskingMembers, Said, ask, checked_members, common_range, none_left
from rewardkit import Kind, OnInfrastructure, Reward, RewardOptions, Score

_MARGIN_S = 1.0
"""Seconds that the chain's deadline has beyond those of its links, so that a link's own deadline comes first."""


@dataclass(frozen=True, kw_only=True)
class Chain(AskingMembers):
    """The function of a fallback: asks its members in turn."""

    async def __call__(self, **columns: Any) -> Score:
        failures: list[Said] = []
        for link in self.members:
            said = await ask(link, columns)
            if said.score is not None:
                return self._answered(said.name, said.score, failures)
            failures.append(said)
        raise none_left(f"none of {len(self.members)} links answered", failures)

    def _answered(self, name: str, score: Score, failures: list[Said]) -> Score:
        """Gives the link's score, with who answered and why the earlier ones did not."""
        by = f"answered by {name}" + "".join(f"; {said.words}" for said in failures)
        reason = f"{score.reason} ({by})" if score.reason else by
        shares = {f"link/{link.name}": float(link.name == name) for link in self.members}
        return Score(score.value, reason, {**score.metrics, **shares})


class JudgingFunction(Protocol):
    """The function of a judge: an object with its settings, which pickles."""

    @property
    def __signature__(self) -> inspect.Signature: ...

    @property
    def hints(self) -> dict[str, Any]: ...

    @property
    def inner(self) -> tuple[Reward[..., Any], ...]: ...

    def named(self, name: str) -> JudgingFunction: ...

    async def __call__(self, **columns: Any) -> Any: ...


class JudgeReward(Reward[..., Any]):
    """What all judges, chains and juries are: a reward whose function is an object with settings.

    It pickles as that object and its options, without anything that lives in a process.
    """

    kind = Kind.SINGLE

    def __init__(self, function: JudgingFunction, options: RewardOptions) -> None:
        self._judging = function
        super().__init__(function, self.kind, options, function.hints)

    @property
    def inner(self) -> tuple[Reward[..., Any], ...]:
        """The rewards that it asks itself, and those inside them."""
        return self._judging.inner

    def fallback(self, *links: Reward[..., Any], default: float | None = None, name: str | None = None) -> Fallback:
        """Gives a chain that asks this first and then the links, each where all before it have failed.

        Args:
            links: Judges, or any rewards of single completions.
            default: The score that stands in where every link failed; ``None`` leaves the completion out.
            name: The chain's name; by default this one's.

        Raises:
            JudgeSetupError: No link was given, one is no reward of single completions, or two share a name.
        """
        return Fallback((self, *links), default=default, name=name)

    def having(self, function: JudgingFunction) -> JudgeReward:
        """Gives the same judge, options and all, with another function of its kind."""
        return _rebuilt(type(self), function, self.options)

    def _having(self, options: RewardOptions) -> JudgeReward:
        return _rebuilt(type(self), self._judging.named(options.name), options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self._judging, self.options)


def _rebuilt(kind: type[JudgeReward], function: JudgingFunction, options: RewardOptions) -> JudgeReward:
    made = kind.__new__(kind)
    JudgeReward.__init__(made, function, options)
    return made


def judge_options(name: str, timeout_s: float, default: float | None, **more: Any) -> RewardOptions:
    """Gives a judge's options: whatever went wrong, the default stands in, and nothing where it is ``None``."""
    stands_in = OnInfrastructure.SKIP if default is None else OnInfrastructure.DEFAULT
    return RewardOptions(name=name, timeout_s=timeout_s, default=default, on_infrastructure=stands_in, **more)


class Fallback(JudgeReward):
    """A chain of rewards of which the first that can answer scores.

    Each score's metrics hold ``link/<name>``, 1.0 for the link that answered and 0.0 for the others, so that their
    means are each link's share; its reason tells why the earlier links did not answer. A link that says that it does
    not apply ends the chain too, and the completion is skipped.

    Args:
        links: Judges and other rewards of single completions, in the order they are asked. Of their options only
            ``timeout_s`` and ``score_range`` matter here.
        default: The score that stands in where every link failed; ``None`` leaves the completion out of the baseline.
        name: The chain's name; by default that of its first link.

    Raises:
        JudgeSetupError: There are fewer than two links, one is no reward of single completions, or two share a name.
    """

    def __init__(
        self,
        links: Sequence[Reward[..., Any]],
        *,
        default: float | None = None,
        name: str | None = None,
    ) -> None:
        members = checked_members("a fallback", links, 2)
        chain = Chain(name=name or members[0].name, members=members)
        timeout_s = sum(link.options.timeout_s for link in members) + _MARGIN_S
        # Links wait for their servers within their deadlines, so there are no more calls than the first one takes.
        calls = next((link.spec.concurrency for link in members if link.spec.is_async), None)
        limits = {"score_range": common_range(members), "concurrency": calls}
        super().__init__(chain, judge_options(chain.name, timeout_s, default, **limits))
