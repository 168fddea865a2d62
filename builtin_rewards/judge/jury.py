"""Several judges on one completion, whose scores become one: :class:`Jury`."""

from __future__ import annotations

import asyncio
import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from builtin_rewards.endpoint.errors import JudgeSetupError, is_number
from builtin_rewards.judge.fallback import MARGIN_S, JudgeReward, judge_options
from builtin_rewards.judge.llm import REASON_CHARS, LLMJudge
from builtin_rewards.judge.members import (
    UNSEEN,
    CombiningFunction,
    MemberAnswer,
    accepts,
    ask,
    check_members,
    is_same_grade,
    unanswered_error,
)
from builtin_rewards.judge.model import open_bill, with_costs
from builtin_rewards.judge.settings import check
from builtin_rewards.reading.thoughts import Shows
from rewardkit import Reward, Score


class Reduction(StrEnum):
    """How scores become one: the median, the mean, what more than half say, or the lowest."""

    MEDIAN = "median"
    MEAN = "mean"
    MAJORITY = "majority"
    MIN = "min"


def reduce_scores(scores: Sequence[float], how: Reduction, threshold: float | None = None) -> float | None:
    """Return one score for several jurors' scores; ``None`` without scores or without a majority. No tie is broken.

    A majority is over grades, or with a threshold 1.0 if more than half gave at least that, 0.0 if more than half less.
    """
    if not scores:
        return None
    if how is Reduction.MEDIAN:
        return statistics.median(scores)
    if how is Reduction.MEAN:  # rounding must not put it outside the scores, as it does that of three times 0.1
        return min(max(statistics.fmean(scores), min(scores)), max(scores))
    if how is Reduction.MIN:
        return min(scores)
    votes = scores if threshold is None else [float(accepts(score, threshold)) for score in scores]
    middle = statistics.median_low(votes)  # what more than half gave is the median too
    return middle if 2 * sum(is_same_grade(vote, middle) for vote in votes) > len(votes) else None


def agreement(scores: Sequence[float]) -> float | None:
    """Return the share of pairs of jurors that gave the same score, 0 to 1; ``None`` with fewer than two scores."""
    pairs = list(itertools.combinations(scores, 2))
    return sum(is_same_grade(*pair) for pair in pairs) / len(pairs) if pairs else None


@dataclass(frozen=True, eq=False, kw_only=True)
class JuryFunction(CombiningFunction):
    reduce: Reduction
    threshold: float | None
    quorum: int

    async def __call__(self, **columns: Any) -> Score:
        """Return the score that the jurors' answers come to; JudgeError where fewer than the quorum answered."""
        with open_bill() as bill:
            answers = await asyncio.gather(*(ask(juror, columns) for juror in self.members))
        failures = [answer for answer in answers if answer.score is None]
        if len(answers) - len(failures) < self.quorum:
            raise unanswered_error(f"{len(answers) - len(failures)} of {len(answers)} jurors answered", failures)
        values = {answer.name: answer.score.value for answer in answers if answer.score}
        scores = {name: value for name, value in values.items() if value is not None}  # of those to whom it applies
        score = reduce_scores([*scores.values()], self.reduce, self.threshold)
        metrics = {"jurors": float(len(scores)), "jurors_lost": float(len(failures))}
        metrics |= {f"juror/{name}": value for name, value in scores.items()}
        if (share := agreement([*scores.values()])) is not None:
            metrics |= {"agreement": share, "spread": statistics.pstdev(scores.values())}
        if not scores and any(answer.is_unseen for answer in answers):
            metrics[UNSEEN] = 1.0
        details = "; ".join(f"{answer.name} {_describe(answer)}" for answer in answers)
        reason = f"{self.reduce} of {details}"
        if score is None:
            reason = f"{'no majority' if scores else 'no juror says that it applies'}: {details}"
        inner = [record for answer in answers if answer.score for record in answer.score.unanswered]
        return Score(score, reason, with_costs(metrics, bill), [*(failure.unanswered for failure in failures), *inner])


def _describe(answer: MemberAnswer) -> str:
    if answer.score is None:
        return f"failed ({answer.unanswered})"
    score = "does not apply" if answer.score.value is None else f"{answer.score.value:.3g}"
    return f"{score} ({answer.score.reason[:REASON_CHARS]})" if answer.score.reason else score


class Jury(JudgeReward):
    """Several judges whose scores become one; its reason has each juror's score and the beginning of its reason.

    Metrics of a score: ``juror/<name>`` each juror's own score, ``agreement`` the share of pairs of jurors that gave
    the same score, ``spread`` the scores' standard deviation, ``jurors`` how many scored and ``jurors_lost`` how many
    failed (``Outcome.unanswered`` tells why); what all replies took, read or not.

    Args:
        jurors: Judges, or any rewards of single completions; at least two, of different names.
        reduce: ``"median"``, ``"mean"``, ``"majority"`` or ``"min"``. Without a majority the completion is skipped.
        threshold: For a majority: the least score that accepts, so that the jury's score is 1.0 or 0.0.
        shows: ``"answer"`` or ``"all"``: what judges and reward models are shown of a completion, also those inside
            chains and juries; by default what each juror says, which is the answer alone.
        quorum: How many jurors must answer; by default more than half. With fewer the call fails.
        default: The score that stands in for a failed call; ``None`` leaves the completion out of the baseline.
        name: The jury's name.

    Raises:
        JudgeSetupError: A juror or a setting is wrong.
    """

    def __init__(
        self,
        jurors: Sequence[Reward[..., Any]],
        *,
        reduce: str = "median",
        threshold: float | None = None,
        quorum: int | None = None,
        shows: Shows | None = None,
        default: float | None = None,
        name: str = "jury",
    ) -> None:
        members, span = check_members("a jury", jurors)
        if reduce not in tuple(Reduction):
            raise JudgeSetupError(f"reduce={reduce!r}: expected one of {', '.join(Reduction)}")
        check({"threshold": threshold})
        if threshold is not None and reduce != Reduction.MAJORITY:
            raise JudgeSetupError(f"threshold={threshold!r}: only a majority has one")
        quorum = len(members) // 2 + 1 if quorum is None else quorum
        if not is_number(quorum, whole=True) or not 1 <= quorum <= len(members):
            raise JudgeSetupError(f"quorum={quorum!r}: expected 1 to {len(members)}, the number of jurors")
        bench = JuryFunction(name=name, members=members, reduce=Reduction(reduce), threshold=threshold, quorum=quorum)
        if shows is not None:
            check({"shows": shows})
            bench = bench.showing(shows)
        longest_s = max(juror.options.timeout_s for juror in members)
        span = span if threshold is None else (0.0, 1.0)
        options = judge_options(name, longest_s + MARGIN_S, default, score_range=span, concurrency=_calls(members))
        super().__init__(bench, options)


def _calls(jurors: Sequence[Reward[..., Any]]) -> int | None:
    """Return how many calls of a jury may be under way; ``None`` where no juror is async.

    All jurors are asked at once, so the one that takes the fewest calls sets their number; jurors on one server share
    it, so that they do not wait for each other until their deadlines pass.
    """
    judges = [juror for juror in jurors if juror.spec.is_async]
    servers = [juror.model.server_key if isinstance(juror, LLMJudge) else juror.name for juror in judges]
    parts = [juror.spec.concurrency // servers.count(server) for juror, server in zip(judges, servers, strict=True)]
    return max(1, min(parts)) if parts else None
