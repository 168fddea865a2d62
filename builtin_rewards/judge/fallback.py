""":class:`JudgeReward`, the class of all judges, and :class:`Fallback`, a chain: the first that can answer scores."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from builtin_rewards.endpoint.errors import JudgeSetupError, is_number
from builtin_rewards.judge.members import (
    UNSEEN,
    CombiningFunction,
    JudgeFunction,
    MemberAnswer,
    ask,
    check_members,
    unanswered_error,
)
from builtin_rewards.judge.model import Bill, cost_metrics, open_bill, with_costs
from builtin_rewards.judge.own_labels import LabelAgreement, LabelledRows, calibrate
from builtin_rewards.reading.thoughts import Shows
from rewardkit import Kind, OnInfrastructure, Reward, RewardDefinitionError, RewardOptions, Score
from rewardkit.extending import COST_METRICS, UNMETERED, finished, turns

MARGIN_S = 1.0  # seconds by which the whole's deadline exceeds those of its members, so that a member's own comes first
_OUTAGE_HELP = "; a last link that asks no server, such as a constant reward, would answer"
_set_up_lock = threading.Lock()  # held while a call sets a judge up, so that only one of many calls asks the server


@dataclass(frozen=True, eq=False, kw_only=True)
class ChainFunction(CombiningFunction):
    async def __call__(self, **columns: Any) -> Score:
        """Return the first link's score that is one; skip where no link can see the completion, else raise."""
        failures: list[MemberAnswer] = []
        score, answered_by = Score(None, None, {UNSEEN: 1.0}), ""
        spent: dict[str, float] = {}
        with open_bill() as bill:
            for link in self.members:
                start = len(bill)
                # A link's deadline begins with its turn; a plain one is never waited for.
                async with turns(link, link.spec.concurrency) if link.spec.is_async else nullcontext():
                    answer = await ask(link, columns)
                spent |= _costs_of_link(link.name, bill[start:])
                if answer.score is not None and not answer.is_unseen:
                    score, answered_by = answer.score, link.name
                    break
                failures.append(answer.before_fallback())
        if not answered_by and any(failure.score is None for failure in failures):
            raise unanswered_error(f"none of {len(failures)} links answered", failures, _OUTAGE_HELP)
        unanswered = [failure.unanswered for failure in failures]
        inner = [record for failure in failures if failure.score for record in failure.score.unanswered]
        links = "; ".join([*([f"answered by {answered_by}"] if answered_by else []), *map(str, unanswered)])
        shares = {f"link/{link.name}": float(link.name == answered_by) for link in self.members}
        reason = f"{score.reason} ({links})" if score.reason else links
        metrics = {**with_costs(score.metrics, bill), **shares, **spent}
        return Score(score.value, reason, metrics, (*unanswered, *inner, *score.unanswered))


def _costs_of_link(name: str, bill: Bill) -> dict[str, float]:
    """Return what one link took as metrics of its chain, ``link_<metric>/<name>``; nothing where it asked no server."""
    costs = cost_metrics(bill) if bill else {}
    return {f"link_{metric}/{name}": costs[metric] for metric in (*COST_METRICS, UNMETERED) if metric in costs}


class JudgeReward(Reward[..., Any]):
    """The class of all judges, chains and juries: a reward whose function is its settings, and pickles as these."""

    kind = Kind.SINGLE

    def __init__(self, function: JudgeFunction, options: RewardOptions) -> None:
        self._judging = function
        self._is_set_up = False
        super().__init__(function, self.kind, options)

    def __call__(self, *arguments: Any, **columns: Any) -> Any:
        """Judge, and return the score, or an awaitable of it inside an event loop. The first call sets the judge up."""
        return finished(self._set_up_before(super().__call__(*arguments, **columns)))

    async def _set_up_before(self, call: Coroutine[Any, Any, Any]) -> Any:
        try:
            if not self._is_set_up:
                await asyncio.to_thread(self._set_up_once)
            return await call
        finally:
            call.close()

    def _set_up_once(self) -> None:
        with _set_up_lock:
            if not self._is_set_up:
                self.set_up()
            self._is_set_up = True

    def calibrate(self, rows: LabelledRows, *, label: str = "label", threshold: float = 0.5) -> LabelAgreement:
        """Ask about labelled rows, and return how far the judge agrees with the labels.

        Rows are rollouts, or rows or a file with ``prompt``, ``completion``, the judge's columns and ``label``, which
        says whether the completion is good: a bool, 1 or 0, yes or no. A score of at least ``threshold`` accepts.

        Raises:
            DataError: A label is missing or wrong, or all are the same (nothing is asked then); or no row scored.
            JudgeSetupError: It is a judge of groups, its server refuses it, or no score can reach the threshold.
        """
        if self.spec.kind is Kind.GROUP:
            raise JudgeSetupError(f"{self.name!r} compares completions; only a judge of single ones has labels")
        low, high = self.options.score_range or (-math.inf, math.inf)
        if not is_number(threshold) or not low <= threshold <= high:
            raise JudgeSetupError(f"threshold={threshold!r}: expected a number from {low:g} to {high:g}")
        return calibrate(self, rows, label=label, threshold=threshold)

    def fallback(self, *links: Reward[..., Any], default: float | None = None, name: str | None = None) -> Fallback:
        """Return a :class:`Fallback` that asks this judge first, and each link if all before it have failed."""
        return Fallback((self, *links), default=default, name=name)

    def with_function(self, function: JudgeFunction) -> JudgeReward:
        """Return the same judge, options included, with another function of its kind."""
        return _rebuild(type(self), function, self.options)

    def with_client(self, client: Any) -> JudgeReward:
        """Return the same chain, jury or cascade whose judges ask this client; its other rewards stay.

        Raises:
            RewardDefinitionError: No judge is among them.
        """
        if not isinstance(self._judging, CombiningFunction):
            raise RewardDefinitionError(f"reward {self.name!r} has no client")
        return self.with_function(self._judging.with_client(client))

    def showing(self, shows: Shows) -> JudgeReward:
        """Return the same judge, chain or jury, which is shown the answer alone or with ``"all"`` thoughts."""
        return self.with_function(self._judging.showing(shows))

    def _having(self, options: RewardOptions) -> JudgeReward:
        return _rebuild(type(self), replace(self._judging, name=options.name), options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._judging, self.options)


def _rebuild(kind: type[JudgeReward], function: JudgeFunction, options: RewardOptions) -> JudgeReward:
    judge = kind.__new__(kind)
    JudgeReward.__init__(judge, function, options)
    return judge


def judge_options(name: str, timeout_s: float, default: float | None, **more: Any) -> RewardOptions:
    """Return a judge's options: the default stands in for every failure, and nothing does if it is ``None``."""
    response = OnInfrastructure.SKIP if default is None else OnInfrastructure.DEFAULT
    return RewardOptions(name=name, timeout_s=timeout_s, default=default, on_infrastructure=response, **more)


class Fallback(JudgeReward):
    """A chain of rewards of which the first that can answer scores.

    A score's metrics hold ``link/<name>``, 1.0 for the link that answered and 0.0 for the others, and what the replies
    to all links took, read or not. ``Outcome.unanswered`` and the reason tell why the earlier links did not answer. A
    link that does not apply ends the chain; one that cannot see a part of the completion, such as an image, hands on.

    Args:
        links: Judges and other rewards of single completions, in the order they are asked. Of their options only
            ``timeout_s``, which begins with a call's turn, ``score_range`` and an async link's ``concurrency`` count.
        default: The score that stands in if every link fails; ``None`` leaves the completion out of the baseline. It is
            no answer: during an outage such calls are lost, and a batch that loses more than half of them stops the
            run. A constant reward as the last link answers.
        name: The chain's name; by default that of its first link.

    Raises:
        JudgeSetupError: There are fewer than two links, one does not score single completions, or two share a name.
    """

    def __init__(
        self, links: Sequence[Reward[..., Any]], *, default: float | None = None, name: str | None = None
    ) -> None:
        members, span = check_members("a fallback", links)
        chain = ChainFunction(name=name or members[0].name, members=members)
        # As many calls at once as the first link with a server takes. All of them may come to a later link together,
        # and wait there for as many rounds as it needs for them.
        calls = next((link.spec.concurrency for link in members if link.spec.is_async), None)
        rounds = [math.ceil((calls or 1) / link.spec.concurrency) if link.spec.is_async else 1 for link in members]
        timeout_s = sum(n * link.options.timeout_s for n, link in zip(rounds, members, strict=True)) + MARGIN_S
        options = judge_options(chain.name, timeout_s, default, score_range=span, concurrency=calls)
        super().__init__(chain, options)
