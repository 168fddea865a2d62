"""Several judges on one completion: their scores become one, and how far they agree is reported.

Owns :class:`Jury`. A juror that fails is left out and never counts as a low score; too few that answer, and the call
fails.
"""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from builtin_rewards.judge.agreement import Reduction, agreement, reduce_scores
from builtin_rewards.judge.costs import billed, with_costs
from builtin_rewards.judge.errors import JudgeSetupError, is_number
from builtin_rewards.judge.fallback import JudgeReward, judge_options
from builtin_rewards.judge.llm import LLMJudge
from builtin_rewards.judge.members import AskingMembers, Said, ask, checked_members, common_range, none_left
from rewardkit import Reward, Score

_MARGIN_S = 1.0
"""Seconds that the jury's deadline has beyond the longest of its jurors'."""
_SHOWN_REASON_CHARS = 400
"""Of each juror's reason, in the jury's."""


@dataclass(frozen=True, kw_only=True)
class Bench(AskingMembers):
    """The function of a jury: asks all jurors at once."""

    reduce: Reduction
    threshold: float | None
    quorum: int

    async def __call__(self, **columns: Any) -> Score:
        with billed() as bill:
            said = await asyncio.gather(*(ask(juror, columns) for juror in self.members))
        lost = [one for one in said if one.score is None]
        values = [None if one.score is None else one.score.value for one in said]
        given = [value for value in values if value is not None]
        if len(said) - len(lost) < self.quorum:
            raise none_left(f"{len(said) - len(lost)} of {len(said)} jurors answered", lost)
        score = reduce_scores(values, self.reduce, threshold=self.threshold)
        return Score(score, self._words(said, score), with_costs(self._metrics(said, given), bill))

    def _words(self, said: list[Said], score: float | None) -> str:
        each = "; ".join(f"{one.name} {_shown(one)}" for one in said)
        if score is None:
            why = "no majority" if self.reduce is Reduction.MAJORITY else "no juror says that it applies"
            return f"{why}: {each}"
        return f"{self.reduce} of {each}"

    def _metrics(self, said: list[Said], given: list[float]) -> dict[str, float]:
        metrics = {"jurors": float(len(given)), "jurors_lost": float(sum(one.score is None for one in said))}
        metrics |= {f"juror/{one.name}": one.score.value for one in said if one.score and one.score.value is not None}
        share = agreement(given)
        if share is not None:
            metrics |= {"agreement": share, "spread": statistics.pstdev(given)}
        return metrics


class Jury(JudgeReward):
    """Several judges whose scores become one.

    Metrics of a score: ``juror/<name>`` each juror's own score, ``agreement`` the share of pairs of jurors that gave
    the same score, ``spread`` the scores' standard deviation, ``jurors`` how many scored and ``jurors_lost`` how many
    failed; what the replies to all jurors took, read or not: ``requests``, ``prompt_tokens``, ``completion_tokens``,
    ``cost_usd``, ``cached``. Its reason has each juror's score, and the first 400 characters of the juror's reason.

    Args:
        jurors: Judges, or any rewards of single completions; at least two, of different names.
        reduce: ``"median"``, ``"mean"``, ``"majority"`` or ``"min"``; see :class:`~builtin_rewards.judge.Reduction`.
            Without a majority the completion is skipped: nobody's vote is doubled.
        threshold: For a majority: the least score that accepts, so that the jury's score is 1.0 or 0.0.
        quorum: How many jurors must answer; by default more than half. With fewer the call fails.
        default: The score that stands in for a failed call; ``None`` leaves the completion out of the baseline.
        name: The jury's name.

    Raises:
        JudgeSetupError: There are fewer than two jurors, one is no reward of single completions, two share a name, or
            a setting makes no sense.
    """

    def __init__(
        self,
        jurors: Sequence[Reward[..., Any]],
        *,
        reduce: str = "median",
        threshold: float | None = None,
        quorum: int | None = None,
        default: float | None = None,
        name: str = "jury",
    ) -> None:
        members = checked_members("a jury", jurors, 2)
        if reduce not in tuple(Reduction):
            raise JudgeSetupError(f"reduce={reduce!r}: expected one of {', '.join(Reduction)}")
        is_share = threshold is None or (is_number(threshold) and 0 <= threshold <= 1)
        if not is_share or (threshold is not None and reduce != Reduction.MAJORITY):
            raise JudgeSetupError(f"threshold={threshold!r}: only a majority has one, a number from 0 to 1")
        most = len(members)
        quorum = most // 2 + 1 if quorum is None else quorum
        if isinstance(quorum, bool) or not isinstance(quorum, int) or not 1 <= quorum <= most:
            raise JudgeSetupError(f"quorum={quorum!r}: expected 1 to {most}, the number of jurors")
        bench = Bench(name=name, members=members, reduce=Reduction(reduce), threshold=threshold, quorum=quorum)
        longest_s = max(juror.options.timeout_s for juror in members)
        score_range = common_range(members) if threshold is None else (0.0, 1.0)
        limits = {"score_range": score_range, "concurrency": _calls(members)}
        super().__init__(bench, judge_options(name, longest_s + _MARGIN_S, default, **limits))


def _calls(jurors: Sequence[Reward[..., Any]]) -> int | None:
    """Gives how many calls may be under way, lest jurors wait for their server until their deadlines pass.

    All jurors are asked at once, so the least that one of them takes; those on one server take it in parts.
    """
    asking = [juror for juror in jurors if juror.spec.is_async]
    servers = Counter(map(_server, asking))
    return min((max(1, one.spec.concurrency // servers[_server(one)]) for one in asking), default=None)


def _server(juror: Reward[..., Any]) -> Hashable:
    """Gives what a juror shares its requests in flight by: a server, and the same limits; or nothing."""
    return juror.model.place if isinstance(juror, LLMJudge) else juror.name


def _shown(said: Said) -> str:
    if said.score is None:
        return f"failed ({said.words})"
    score = "does not apply" if said.score.value is None else f"{said.score.value:.3g}"
    return f"{score} ({said.score.reason[:_SHOWN_REASON_CHARS]})" if said.score.reason else score
