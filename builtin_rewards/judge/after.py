"""A judge that is asked where it matters: :class:`Cascade`, a group reward that asks a cheap reward first."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from builtin_rewards.endpoint.errors import JudgeSetupError, is_number
from builtin_rewards.judge.fallback import MARGIN_S, JudgeReward
from builtin_rewards.judge.members import CombiningFunction, MemberAnswer, ask, check_members
from builtin_rewards.judge.model import ReadReply, open_bill, with_costs
from builtin_rewards.judge.prompted import PromptedFunction
from rewardkit import CoercionError, InfrastructureError, Kind, Reward, Score
from rewardkit.extending import ColumnValueError, turns

Keeps: TypeAlias = Literal["sign", "rank"]

_ROUNDS = 4  # of questions about a group; the last asks about all that are left
_GROUP = 8  # completions of a group whose questions have room at once
_OF_EACH = ("completion_ids", "messages")  # what a group reward gets one of a completion, besides completions


@dataclass(slots=True)
class _Completion:
    """One completion of a group: the columns of its calls, what they cost, and what came of them."""

    columns: Mapping[str, Any]
    bill: list[ReadReply[Any]] = field(default_factory=list)
    answers: list[MemberAnswer] = field(default_factory=list)  # the cheap reward's, and the judge's if it was asked
    score: float | None = None  # the last answer's, in the judge's range

    @property
    def is_judged(self) -> bool:
        return len(self.answers) > 1

    async def ask(self, member: Reward[..., Any], span: tuple[float, float]) -> None:
        """Add a member's answer, mapped to a range; its deadline begins with its turn. Raises JudgeSetupError."""
        async with turns(member, member.spec.concurrency):
            with open_bill() as bill:
                answer = await ask(member, self.columns)
        if isinstance(answer.error, JudgeSetupError):
            raise answer.error  # it holds for all completions
        value, (low, high) = answer.score.value if answer.score else None, _range_of(member)
        if value is not None and not low <= value <= high:
            error = ValueError(f"score {value:g} is not in 0 to 1; give the reward its score_range")
            answer, value = MemberAnswer(member.name, None, error), None
        self.bill += bill
        self.answers.append(answer)
        self.score = None if value is None else span[0] + (value - low) / (high - low) * (span[1] - span[0])


@dataclass(frozen=True, eq=False, kw_only=True)
class CascadeFunction(CombiningFunction):
    """The function of a :class:`Cascade`; its members are the judge and the cheap reward."""

    margin: float
    keeps: Keeps

    @property
    def takes(self) -> Mapping[str, tuple[Any, bool]]:
        takes = {name: annotated for name, annotated in super().takes.items() if name != "completion"}
        return {"completions": (list[object], True), **takes}

    async def __call__(self, **columns: Any) -> list[Score | Exception]:
        """Return the judge's score or error of each completion that it was asked about, else the cheap score."""
        from rewardkit.advantages import undecided_advantages  # numpy takes its time, and few judges are a cascade's

        judge, cheap = self.members
        completions = columns.pop("completions")
        if reason := _why_skipped(judge, columns):
            return [Score(None, reason)] * len(completions)
        lists = {"completion": completions} | {name: columns.pop(name) for name in _OF_EACH if name in columns}
        rows = [
            _Completion(columns | {name: values[index] for name, values in lists.items()})
            for index in range(len(completions))
        ]
        span = _range_of(judge)
        await asyncio.gather(*(row.ask(cheap, span) for row in rows))
        for number in range(1, _ROUNDS + 1):
            scores, final = [row.score for row in rows], [row.is_judged for row in rows]
            indices = undecided_advantages(scores, final, self.margin, ranks=self.keeps == "rank")
            if not len(indices):
                break
            if number == _ROUNDS:
                indices = [index for index, row in enumerate(rows) if not row.is_judged]
            await asyncio.gather(*(rows[index].ask(judge, span) for index in indices))
            if any(isinstance(rows[index].answers[-1].error, InfrastructureError) for index in indices):
                break  # an outage costs no completion that is safe
        numbers = [row.score for row in rows if row.score is not None]
        return [self._result(row, math.fsum(numbers) / max(1, len(numbers))) for row in rows]

    def _result(self, row: _Completion, mean: float) -> Score | Exception:
        """Return a completion's score with what it cost, or the judge's error."""
        first, last = row.answers[0], row.answers[-1]
        if last.score is None:
            return last.error or AssertionError("an answer has a score or an error")
        metrics = {"judge_questions": float(row.is_judged), "spared": float(not row.is_judged)}
        metrics = {**with_costs(last.score.metrics if row.is_judged else {}, row.bill), **metrics}
        if row.is_judged:
            lost = [first.unanswered] if first.score is None or first.is_unseen else []
            return replace(last.score, metrics=metrics, unanswered=(*lost, *last.score.unanswered))
        away = (row.score or 0.0) - mean
        reason = f"not asked: {first.name} gives {row.score:.3g}, {away:+.3g} from the group's mean"
        return Score(row.score, f"{reason} ({last.score.reason})" if last.score.reason else reason, metrics)


def _why_skipped(judge: Reward[..., Any], columns: Mapping[str, Any]) -> str | None:
    """Return why the judge skips the row whatever its completions are; CoercionError where a column is wrong."""
    function, values = judge.function, dict[str, Any]()
    if not isinstance(function, PromptedFunction):
        return None
    for parameter in judge.spec.parameters:
        if parameter.name in function.columns.required and parameter.coercer is not None:
            try:
                values[parameter.name] = parameter.coercer(columns[parameter.name])
            except ColumnValueError as wrong:
                raise CoercionError(wrong.describe(parameter.name, None)) from None
    return function.columns.missing(values)


def _range_of(reward: Reward[..., Any]) -> tuple[float, float]:
    return reward.options.score_range or (0.0, 1.0)


class Cascade(JudgeReward):
    """A judge of single completions that is asked only where it can change an advantage: a group reward.

    A cheap reward scores all completions of a group. The judge is asked about those within the margin of the group's
    mean, those that the cheap reward skips or fails on, and others in rounds, four at most, until
    :func:`rewardkit.advantages.undecided_advantages` names none. Where it was asked, its score, skip or failure counts;
    all others keep the cheap score, mapped from its ``score_range`` (0 to 1 unless it has one) to the judge's, and
    their reason says so. The metrics ``judge_questions`` and ``spared`` are 1.0 and 0.0 where it was asked, else 0.0
    and 1.0.

    Args:
        judge: A judge, or any reward of single completions, whose default and range are this reward's.
        cheap: A reward of single completions, under another name.
        margin: How much further from the group's mean the judge may put a completion than the cheap reward does
            without changing its advantage's sign; in the judge's range, 0 or more.
        keeps: ``"sign"``, of each advantage, or ``"rank"``, also the order of any two completions.
        name: The reward's name; by default the judge's.

    Raises:
        JudgeSetupError: A reward or a setting is wrong.
    """

    kind = Kind.GROUP

    def __init__(
        self,
        judge: Reward[..., Any],
        cheap: Reward[..., Any],
        *,
        margin: float,
        keeps: Keeps = "sign",
        name: str | None = None,
    ) -> None:
        members, _ = check_members("a judge after a cheap reward", (judge, cheap))
        if not is_number(margin) or margin < 0:
            raise JudgeSetupError(f"margin={margin!r}: expected a number of 0 or more, in the judge's range")
        if keeps not in ("sign", "rank"):
            raise JudgeSetupError(f"keeps={keeps!r}: expected 'sign' or 'rank'")
        for member in members:
            low, high = _range_of(member)
            if not -math.inf < low < high < math.inf:
                raise JudgeSetupError(f"{member.name!r} has score_range={(low, high)}; its scores cannot be mapped")
        cascade = CascadeFunction(name=name or judge.name, members=members, margin=float(margin), keeps=keeps)
        calls = max(1, judge.spec.concurrency // _GROUP)
        # Calls of all groups wait for each other, of an async reward; a plain one is never waited for.
        waits = [
            math.ceil((calls if member.spec.is_async else 1) * _GROUP / member.spec.concurrency) for member in members
        ]
        timeout_s = _ROUNDS * waits[0] * judge.options.timeout_s + waits[1] * cheap.options.timeout_s + MARGIN_S
        super().__init__(cascade, replace(judge.options, name=cascade.name, timeout_s=timeout_s, concurrency=calls))
