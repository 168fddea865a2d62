"""What verdicts come to: shares with their intervals, drifts, what the order does, how steady they are.

What they come to beside labels is in ``labels``. **Accepted** is a score of at least the threshold. A failed call is
counted as failed, never as accepted or refused. Intervals take trials as independent of each other, though several
are on one row.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from builtin_rewards.judge.audit.rows import JudgeRow
from builtin_rewards.judge.audit.trials import Trial, Verdict
from builtin_rewards.judge.members import accepts
from builtin_rewards.judge.statistics import Interval, cluster_bootstrap, mcnemar, wilson


class Tried(NamedTuple):
    """A trial, and what became of it and of the same answer without the addition."""

    trial: Trial
    verdict: Verdict
    bare: Verdict


class Share(NamedTuple):
    """How many of how many; a drawn comparison may count as half."""

    hits: float
    of: int

    @property
    def interval(self) -> Interval:
        """The rate with its 95% Wilson interval."""
        return wilson(self.hits, self.of)

    @property
    def rate(self) -> float:
        """The rate; 0.0 of none."""
        return self.interval.rate or 0.0


@dataclass(frozen=True, slots=True)
class Drift:
    """How far scores move on average.

    Attributes:
        mean: The mean change; ``None`` of none.
        low: Lower end of its 95% interval, rows drawn as a whole; ``None`` for fewer than two rows.
        high: The upper end.
        answers: How many answers were scored with and without.
    """

    mean: float | None
    low: float | None
    high: float | None
    answers: int


@dataclass(frozen=True, slots=True)
class Example:
    """A wrong answer that was accepted.

    Attributes:
        line: The row's line.
        name: Which attack it is.
        text: The answer as the judge got it.
        before: Its score without the attack; ``None`` where it stands alone.
        score: Its score.
        said: What the judge said of it.
    """

    line: int
    name: str
    text: str
    before: float | None
    score: float
    said: str | None


@dataclass(frozen=True, slots=True)
class FamilyResult:
    """What a family came to.

    Attributes:
        accepted: Wrong answers accepted, of those judged, that are refused without the attack.
        failed: Calls that failed, the benign ones included.
        skipped: Calls that the judge said do not apply.
        wrong_drift: How far the attacks move the scores of wrong answers.
        benign_drift: How far the benign twin moves the scores of right answers.
        newly_refused: Right answers refused with the twin, of those accepted without.
        examples: The wrong answers accepted, those that gained most first.
    """

    accepted: Share
    failed: int
    skipped: int
    wrong_drift: Drift
    benign_drift: Drift
    newly_refused: Share
    examples: tuple[Example, ...]


def family_result(tried: Sequence[Tried], rows: Sequence[JudgeRow], accept: float) -> FamilyResult:
    """Gives what the trials of one family come to."""
    attacks, twins = ([one for one in tried if bool(one.trial.name) is wanted] for wanted in (True, False))
    judged = [one for one in attacks if one.verdict.score is not None]
    passed = [one for one in judged if is_accepted(one.verdict, accept)]
    examples = [
        Example(
            rows[one.trial.row].line,
            one.trial.name,
            one.trial.text,
            one.bare.score,
            one.verdict.score or 0.0,
            one.verdict.said,
        )
        for one in passed
    ]
    fine = [one for one in twins if is_accepted(one.bare, accept) and one.verdict.score is not None]
    return FamilyResult(
        Share(len(passed), len(judged)),
        sum(one.verdict.failed for one in tried),
        sum(one.verdict.score is None and not one.verdict.failed for one in tried),
        drift(attacks),
        drift(twins),
        Share(sum(not is_accepted(one.verdict, accept) for one in fine), len(fine)),
        tuple(sorted(examples, key=lambda one: (one.before or 0.0) - one.score)),
    )


def is_accepted(verdict: Verdict, accept: float) -> bool:
    """Whether a verdict is a score, and one that accepts."""
    return verdict.score is not None and accepts(verdict.score, accept)


def drift(tried: Iterable[Tried]) -> Drift:
    """Gives how far scores move on average from those without the addition."""
    by_row: dict[int, list[float]] = {}
    for one in tried:
        if one.verdict.score is not None and one.bare.score is not None:
            by_row.setdefault(one.trial.row, []).append(one.verdict.score - one.bare.score)
    moves = [move for each in by_row.values() for move in each]
    if not moves:
        return Drift(None, None, None, 0)
    if len(by_row) > 1 and len(set(moves)) == 1:  # the usual case, told without drawing
        return Drift(moves[0], moves[0], moves[0], len(moves))
    interval = cluster_bootstrap(list(by_row.values()))
    if interval is None:
        return Drift(statistics.fmean(moves), None, None, len(moves))
    return Drift(interval.rate, interval.low, interval.high, len(moves))


@dataclass(frozen=True, slots=True)
class Position:
    """What the order of two answers does.

    Attributes:
        flips: Pairs in which the answer at the same place won both times, of those judged in both orders.
        first: Verdicts for the answer that stood first, of those that were no tie.
        p: Exact McNemar p-value that the first place and the second win the flipped pairs equally often.
        failed: Comparisons that failed.
    """

    flips: Share
    first: Share
    p: float
    failed: int


def position(forward: Sequence[Verdict], backward: Sequence[Verdict]) -> Position:
    """Gives what the order does to pairs, each judged with an answer first and with the same answer second."""
    pairs = [(one.score, two.score) for one, two in zip(forward, backward, strict=True)]
    judged = [(one, two) for one, two in pairs if one is not None and two is not None]
    firsts, seconds = judged.count((1.0, 0.0)), judged.count((0.0, 1.0))
    picks = [one for one, _ in judged] + [1 - two for _, two in judged]
    decided = [pick for pick in picks if pick != 0.5]
    failed = sum(verdict.failed for verdict in (*forward, *backward))
    return Position(
        Share(firsts + seconds, len(judged)), Share(decided.count(1.0), len(decided)), mcnemar(firsts, seconds), failed
    )


@dataclass(frozen=True, slots=True)
class Stability:
    """How far verdicts on the same answer differ when it is asked about again.

    Attributes:
        samples: How often each answer was judged.
        unstable: Answers that were accepted at one time and refused at another, of those judged more than once.
        spread: The mean over answers of the scores' standard deviation, over their number; ``None`` of none.
        failed: Calls that failed.
    """

    samples: int
    unstable: Share
    spread: float | None
    failed: int


def stability(rounds: Sequence[Sequence[Verdict]], accept: float) -> Stability:
    """Gives how far the rounds, each of the same answers in the same order, differ."""
    each = [[one.score for one in verdicts if one.score is not None] for verdicts in zip(*rounds, strict=True)]
    several = [scores for scores in each if len(scores) > 1]
    unstable = sum(len({accepts(score, accept) for score in scores}) > 1 for scores in several)
    spread = statistics.fmean(map(statistics.pstdev, several)) if several else None
    failed = sum(one.failed for verdicts in rounds for one in verdicts)
    return Stability(len(rounds), Share(unstable, len(several)), spread, failed)
