"""What the verdicts come to: shares with their intervals, drifts, agreement with labels.

Owns the arithmetic of an audit. **Accepted** is a score of at least the threshold. A failed call is counted as failed
and never as accepted or refused. Intervals take trials as independent of each other, though several are on one row.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from builtin_rewards.judge.audit.families import Family
from builtin_rewards.judge.audit.rows import JudgeRow, Labelled
from builtin_rewards.judge.audit.trials import Trial, Verdict
from builtin_rewards.judge.calibration import auc, brier, expected_calibration_error, spearman
from builtin_rewards.judge.statistics import Interval, cluster_bootstrap, mcnemar, wilson


class Tried(NamedTuple):
    """A trial, and what became of it and of the same answer without the addition."""

    trial: Trial
    verdict: Verdict
    bare: Verdict


class Share(NamedTuple):
    """How many of how many; a drawn comparison may count as half."""

    count: float
    of: int

    @property
    def interval(self) -> Interval:
        """The rate with its 95% Wilson interval."""
        return wilson(self.count, self.of)

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
    return verdict.score is not None and verdict.score >= accept


def drift(tried: Iterable[Tried]) -> Drift:
    """Gives how far scores move on average from those without the addition."""
    by_row: dict[int, list[float]] = {}
    for one in tried:
        if one.verdict.score is not None and one.bare.score is not None:
            by_row.setdefault(one.trial.row, []).append(one.verdict.score - one.bare.score)
    moves = [move for each in by_row.values() for move in each]
    interval = cluster_bootstrap(list(by_row.values()))
    if not moves or interval is None:
        return Drift(statistics.fmean(moves) if moves else None, None, None, len(moves))
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
    unstable = sum(len({score >= accept for score in scores}) > 1 for scores in several)
    spread = statistics.fmean(map(statistics.pstdev, several)) if several else None
    failed = sum(one.failed for verdicts in rounds for one in verdicts)
    return Stability(len(rounds), Share(unstable, len(several)), spread, failed)


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far verdicts agree with the labels. What the data or the kind of judge does not allow is ``None``.

    Attributes:
        accuracy: Answers accepted that are right or refused that are wrong, of those judged.
        pairs: Pairs of a row in which the right answer got the better score; equal scores count half.
        auc: The chance that a right answer scores above a wrong one.
        ece: Expected calibration error of scores as the chance to be right, ten bins.
        brier: Brier score of the same.
        spearman: Rank correlation of scores with labels.
    """

    accuracy: Share | None
    pairs: Share | None
    auc: float | None
    ece: float | None
    brier: float | None
    spearman: float | None


def calibration(
    judged: Sequence[tuple[Labelled, Verdict]], pairs: Sequence[tuple[Verdict, Verdict]], accept: float, *, graded: bool
) -> Calibration:
    """Gives how far verdicts agree with labels.

    Args:
        judged: Labelled answers with the verdicts on each alone; none for a pairwise judge.
        pairs: The verdicts on the right and on the wrong answer of a pair.
        accept: The score from which an answer is accepted.
        graded: Whether labels are grades, of which only the order counts.
    """
    scored = [(one.label, verdict.score) for one, verdict in judged if verdict.score is not None]
    labels, scores = [label for label, _ in scored], [score for _, score in scored]
    both = [(one.score, two.score) for one, two in pairs if one.score is not None and two.score is not None]
    better = [(good > bad) + 0.5 * (good == bad) for good, bad in both]
    share = Share(sum(better), len(better)) if pairs else None
    ranks = spearman(scores, labels)
    if graded or not scored:
        return Calibration(None, share, None, None, None, ranks)
    true = [label == 1.0 for label in labels]
    right = sum((score >= accept) == is_good for score, is_good in zip(scores, true, strict=True))
    chances = all(0 <= score <= 1 for score in scores)
    return Calibration(
        Share(right, len(scored)),
        share,
        auc(scores, true),
        expected_calibration_error(scores, true) if chances else None,
        brier(scores, true) if chances else None,
        ranks,
    )


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """Whether a judge prefers answers of its own model family beyond what the labels say.

    Attributes:
        families: The judge's own.
        own: Answers of its own family that it accepted.
        own_right: Those of them that are right.
        others: Answers of other families that it accepted.
        others_right: Those of them that are right.
    """

    families: tuple[str, ...]
    own: Share
    own_right: Share
    others: Share
    others_right: Share

    @property
    def excess(self) -> float:
        """How much more it accepts of its own than of others, each beyond what is right; 0 for a fair judge."""
        return (self.own.rate - self.own_right.rate) - (self.others.rate - self.others_right.rate)


def model_family(name: str) -> str:
    """Gives the family of a model: the letters that its name begins with, without its owner.

    >>> model_family("openai/gpt-4o-mini"), model_family("Qwen/Qwen3-0.6B")
    ('gpt', 'qwen')
    """
    begins = re.match(r"[A-Za-z]*", name.rpartition("/")[2])
    return (begins[0] if begins else "").casefold() or name.casefold()


def self_preference(
    judged: Sequence[tuple[Labelled, Verdict]], models: Sequence[str], accept: float
) -> SelfPreference | None:
    """Gives how a judge treats its own family's answers; ``None`` where there are none of its own, or no others."""
    families = tuple(dict.fromkeys(map(model_family, models)))
    known = [(one, verdict) for one, verdict in judged if one.model is not None and verdict.score is not None]
    own = [pair for pair in known if model_family(pair[0].model or "") in families]
    others = [pair for pair in known if pair not in own]
    if not own or not others:
        return None
    shares = [
        Share(sum(count), len(group))
        for group in (own, others)
        for count in (
            [is_accepted(verdict, accept) for _, verdict in group],
            [one.label == 1.0 for one, _ in group],
        )
    ]
    return SelfPreference(families, *shares)


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    Attributes:
        judge: The judge's name.
        models: The models behind it.
        form: What the rows are, in words.
        rows: Rows audited.
        total_rows: Rows in the file.
        accept: The score from which an answer is accepted, from 0 to 1 over the judge's range.
        calls: Verdicts asked for.
        failed: Those that failed.
        first_error: What the first of them said; ``None`` where none failed.
        bare_accepted: Wrong answers accepted as they are. They are not attacked.
        families: By family, what its attacks came to.
        position: ``None`` where it could not be measured, as the next three.
        stability: Over several samples.
        calibration: Against labels.
        self_preference: Beyond labels.
        not_possible: By probe, why it could not be measured.
    """

    judge: str
    models: tuple[str, ...]
    form: str
    rows: int
    total_rows: int
    accept: float
    calls: int
    failed: int
    first_error: str | None
    bare_accepted: Share
    families: Mapping[Family, FamilyResult]
    position: Position | None
    stability: Stability | None
    calibration: Calibration | None
    self_preference: SelfPreference | None
    not_possible: Mapping[str, str]
