"""What verdicts come to beside labels: agreement, calibration, and a liking for answers of one's own family."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from builtin_rewards.judge.audit.measures import Share, is_accepted
from builtin_rewards.judge.audit.rows import Labelled
from builtin_rewards.judge.audit.trials import Verdict
from builtin_rewards.judge.calibration import auc, brier, expected_calibration_error, spearman
from builtin_rewards.judge.members import accepts


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
    right = sum(accepts(score, accept) == is_good for score, is_good in zip(scores, true, strict=True))
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
