"""A chain of judges and plain rewards: the first that can answer does, and the score says which one it was.

Owns :class:`Fallback`, and :class:`JudgeReward`, which all judges are. Where every link fails the call fails, and the
chain's ``default`` stands in: no score is invented.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from builtin_rewards.judge.costs import billed, with_costs
from builtin_rewards.judge.errors import JudgeSetupError, is_number
from builtin_rewards.judge.members import UNSEEN, AskingMembers, Judging, Said, ask, checked, none_left
from builtin_rewards.judge.model import JudgeModel
from builtin_rewards.judge.own_labels import Calibrated, Rows, calibrate
from rewardkit import Kind, OnInfrastructure, Reward, RewardOptions, Score
from rewardkit.extending import finished, turns

MARGIN_S = 1.0
"""Seconds that the whole's deadline has beyond those of its members, so that a member's own comes first."""
_one_set_up = threading.Lock()
"""Held while a judge is set up by a call, so that of many calls at once one asks the server."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Chain(AskingMembers):
    """The function of a fallback: asks its members in turn."""

    async def __call__(self, **columns: Any) -> Score:
        passed: list[Said] = []
        with billed() as bill:
            for link in self.members:
                # A link's deadline begins with its turn; a plain one is never waited for.
                async with turns(link, link.spec.concurrency) if link.spec.is_async else nullcontext():
                    said = await ask(link, columns)
                if said.score is not None and not said.is_unseen:
                    break
                passed.append(said)
        if any(one.score is None for one in passed) and len(passed) == len(self.members):
            raise none_left(f"none of {len(passed)} links answered", passed)
        answered = said.name if len(passed) < len(self.members) else None
        score = Score(None, None, {UNSEEN: 1.0}) if answered is None or said.score is None else said.score
        by = "; ".join([*([f"answered by {answered}"] if answered else []), *(one.words for one in passed)])
        shares = {f"link/{link.name}": float(link.name == answered) for link in self.members}
        reason = f"{score.reason} ({by})" if score.reason else by
        return Score(score.value, reason, {**with_costs(score.metrics, bill), **shares})


class JudgeReward(Reward[..., Any]):
    """What all judges, chains and juries are: a reward whose function is its settings, and pickles so."""

    kind = Kind.SINGLE

    def __init__(self, function: Judging, options: RewardOptions) -> None:
        self._judging = function
        self._is_set_up = False
        super().__init__(function, self.kind, options, function.hints)

    def __call__(self, *arguments: Any, **columns: Any) -> Any:
        """Judges; to be awaited where an event loop runs, and otherwise the score itself. The first call sets up."""
        called = super().__call__(*arguments, **columns)
        parameters = self.spec.parameters
        if missing := [p.name for p in parameters[len(arguments) :] if p.required and p.name not in columns]:
            called.close()
            takes = ", ".join(parameter.name for parameter in parameters)
            raise TypeError(f"{self.name}() lacks {', '.join(map(repr, missing))}; it takes {takes}")
        return finished(self._set_up_before(called))

    async def _set_up_before(self, asked: Coroutine[Any, Any, Any]) -> Any:
        try:
            if not self._is_set_up:
                await asyncio.to_thread(self._set_up_once)
            return await asked
        finally:
            asked.close()

    def _set_up_once(self) -> None:
        with _one_set_up:
            if not self._is_set_up:
                self.set_up()
            self._is_set_up = True

    @property
    def inner(self) -> tuple[Reward[..., Any], ...]:
        """The rewards that it asks itself, and those inside them."""
        return self._judging.inner

    def set_up(self) -> None:
        """Raises JudgeSetupError where a server behind it has no such model or refuses the key; asks once a process."""
        for one in (self, *self.inner):
            model = getattr(one.function, "model", None)
            if isinstance(model, JudgeModel):
                model.set_up()

    def calibrate(self, rows: Rows, *, label: str = "label", threshold: float = 0.5) -> Calibrated:
        """Asks about labelled rows, and tells how far the judge agrees with the labels.

        They are rollouts, or rows or a file with ``prompt``, ``completion``, the judge's columns and ``label``, whether
        the completion is good: a bool, 1 or 0, yes or no. A score accepts from ``threshold`` on.

        Raises:
            DataError: A label is missing or none, or all are the same, told before anything is asked; or no row scored.
            JudgeSetupError: It is a judge of groups, its server refuses it, or the threshold is no score of it.
        """
        if self.spec.kind is Kind.GROUP:
            raise JudgeSetupError(f"{self.name!r} compares completions; only a judge of single ones has labels")
        low, high = self.options.score_range or (-math.inf, math.inf)
        if not is_number(threshold) or not low <= threshold <= high:
            raise JudgeSetupError(f"threshold={threshold!r}: expected a number from {low:g} to {high:g}")
        return calibrate(self, rows, label=label, threshold=threshold)

    def fallback(self, *links: Reward[..., Any], default: float | None = None, name: str | None = None) -> Fallback:
        """Return the :class:`Fallback` that asks this first, then the links, each where all before it have failed."""
        return Fallback((self, *links), default=default, name=name)

    def having(self, function: Judging) -> JudgeReward:
        """Return the same judge, options and all, with another function of its kind."""
        return _rebuilt(type(self), function, self.options)

    def _having(self, options: RewardOptions) -> JudgeReward:
        return _rebuilt(type(self), replace(self._judging, name=options.name), options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self._judging, self.options)


def _rebuilt(kind: type[JudgeReward], function: Judging, options: RewardOptions) -> JudgeReward:
    made = kind.__new__(kind)
    JudgeReward.__init__(made, function, options)
    return made


def judge_options(name: str, timeout_s: float, default: float | None, **more: Any) -> RewardOptions:
    """Return a judge's options: whatever went wrong, the default stands in, and nothing where it is ``None``."""
    stands_in = OnInfrastructure.SKIP if default is None else OnInfrastructure.DEFAULT
    return RewardOptions(name=name, timeout_s=timeout_s, default=default, on_infrastructure=stands_in, **more)


class Fallback(JudgeReward):
    """A chain of rewards of which the first that can answer scores.

    Each score's metrics hold ``link/<name>``, 1.0 for the link that answered and 0.0 for the others, and what the
    replies to all links took, read or not; its reason tells why the earlier links did not answer. A link that says that
    it does not apply ends the chain too; one that cannot see a part of the completion, as an image, hands on.

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
        self, links: Sequence[Reward[..., Any]], *, default: float | None = None, name: str | None = None
    ) -> None:
        members, span = checked("a fallback", links)
        chain = Chain(name=name or members[0].name, members=members)
        # No more calls than the first that has a server takes; all of them may have to wait for a later one in turn.
        calls = next((link.spec.concurrency for link in members if link.spec.is_async), None)
        times = [math.ceil((calls or 1) / link.spec.concurrency) if link.spec.is_async else 1 for link in members]
        timeout_s = sum(n * link.options.timeout_s for n, link in zip(times, members, strict=True)) + MARGIN_S
        options = judge_options(chain.name, timeout_s, default, score_range=span, concurrency=calls)
        super().__init__(chain, options)
