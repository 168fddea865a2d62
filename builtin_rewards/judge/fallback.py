"""A chain of judges and plain rewards: the first that can answer does, and the score says which one it was.

Owns :class:`Fallback`, and :class:`JudgeReward`, which all judges are. A link that fails hands on to the next; one that
scores, or says that it does not apply, ends the chain. Where every link fails the call fails, and the chain's
``default`` stands in: no score is invented.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from builtin_rewards.judge.costs import Bill, billed, with_costs
from builtin_rewards.judge.errors import JudgeSetupError
from builtin_rewards.judge.members import AskingMembers, Said, ask, checked_members, common_range, none_left
from builtin_rewards.judge.model import JudgeModel
from builtin_rewards.judge.own_labels import Calibrated, Rows, calibrate
from builtin_rewards.judge.turns import turns
from rewardkit import Kind, OnInfrastructure, Reward, RewardOptions, Score

_MARGIN_S = 1.0
"""Seconds that the chain's deadline has beyond those of its links, so that a link's own deadline comes first."""


@dataclass(frozen=True, kw_only=True)
class Chain(AskingMembers):
    """The function of a fallback: asks its members in turn."""

    async def __call__(self, **columns: Any) -> Score:
        failures: list[Said] = []
        with billed() as bill:
            for link in self.members:
                async with _turn(link):
                    said = await ask(link, columns)
                if said.score is not None:
                    return self._answered(said.name, said.score, failures, bill)
                failures.append(said)
        raise none_left(f"none of {len(self.members)} links answered", failures)

    def _answered(self, name: str, score: Score, failures: list[Said], bill: Bill) -> Score:
        """Gives the link's score, with who answered, why the earlier ones did not, and what all of them took."""
        by = f"answered by {name}" + "".join(f"; {said.words}" for said in failures)
        reason = f"{score.reason} ({by})" if score.reason else by
        shares = {f"link/{link.name}": float(link.name == name) for link in self.members}
        return Score(score.value, reason, {**with_costs(score.metrics, bill), **shares})


def _turn(link: Reward[..., Any]) -> AbstractAsyncContextManager[object]:
    """Waits until a link may have one more call; its deadline begins then. A plain one is never waited for."""
    return turns(link, link.spec.concurrency) if link.spec.is_async else nullcontext()


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

    def __call__(self, *arguments: Any, **columns: Any) -> Any:
        """Judges; to be awaited where an event loop runs, and otherwise the score itself."""
        asked = super().__call__(*arguments, **columns)
        return asked if _in_a_loop() else asyncio.run(asked)

    @property
    def inner(self) -> tuple[Reward[..., Any], ...]:
        """The rewards that it asks itself, and those inside them."""
        return self._judging.inner

    def set_up(self) -> None:
        """Sees that the server of each model behind it has the model and takes the key.

        Raises:
            JudgeSetupError: One has not, or does not.
        """
        for one in (self, *self.inner):
            model = getattr(one.function, "model", None)
            if isinstance(model, JudgeModel):
                model.set_up()

    def calibrate(self, rows: Rows, *, label: str = "label", threshold: float = 0.5) -> Calibrated:
        """Asks about labelled rows, and gives how far the judge agrees with the labels.

        Args:
            rows: Rollouts; rows with ``prompt``, ``completion``, the judge's columns and the label; or a file of such.
            label: The column with the label: whether the completion is good, as a bool, 1 or 0, yes or no.
            threshold: The score from which on a completion counts as good.

        Raises:
            DataError: A row has no label or one that is neither, or all are the same, which is told before anything is
                asked; or nothing was scored.
            JudgeSetupError: It compares completions, or its server refuses it, see :meth:`set_up`.
        """
        if self.spec.kind is Kind.GROUP:
            raise JudgeSetupError(f"{self.name!r} compares completions; only a judge of single ones has labels")
        return calibrate(self, rows, label=label, threshold=threshold)

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


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


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
    means are each link's share; its reason tells why the earlier links did not answer. ``requests``, ``cached``,
    ``prompt_tokens``, ``completion_tokens`` and ``cost_usd`` are of the replies to all links, read or not. A link that
    says that it does not apply ends the chain too, and the completion is skipped.

    Args:
        links: Judges and other rewards of single completions, in the order they are asked. Of their options only
            ``timeout_s``, ``score_range`` and an async one's ``concurrency`` matter here. A link that takes fewer calls
            than the chain has under way is waited for, and a call's ``timeout_s`` begins with its turn.
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
        # No more calls than the first that has a server takes; all of them may have to wait for a later one in turn.
        calls = next((link.spec.concurrency for link in members if link.spec.is_async), None)
        times = [math.ceil((calls or 1) / link.spec.concurrency) if link.spec.is_async else 1 for link in members]
        waits_s = [n * link.options.timeout_s for n, link in zip(times, members, strict=True)]
        timeout_s = sum(waits_s) + _MARGIN_S
        limits = {"score_range": common_range(members), "concurrency": calls}
        super().__init__(chain, judge_options(chain.name, timeout_s, default, **limits))
