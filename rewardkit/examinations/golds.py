"""The examination of rows with a gold: which other answers does a reward pay like it, and in which forms is it missed?

Tried on each row: an answer of no content, and in four frames the gold and some of its renderings and perturbations.
The frame counts in which the gold itself is paid best, the bare form last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from rewardkit.audit.engine import BASE
from rewardkit.audit.probe import Family, Probe
from rewardkit.audit.rows import GOLD_COLUMNS, AuditRow
from rewardkit.declare.decorator import Reward
from rewardkit.declare.spec import Kind
from rewardkit.examinations.examination import Flaw, FlawKind, RowTrial, RowTrialResult
from rewardkit.renderings.documents import difference
from rewardkit.renderings.kinds import read_value
from rewardkit.renderings.writing import Writing, other_texts
from rewardkit.types import Status

WRITINGS = 6  # renderings that are tried on a row, and as many perturbations
_FRAMES = {"\\boxed": "\\boxed{%}", "<answer>": "<answer>%</answer>", "sentence": "The answer is %.", "bare": "%"}
_LONG_GOLD = 60  # characters; of a longer gold the flaw says first what differs
_GOLD, _SILENCE, _RENDERING, _PERTURBATION = "gold", "silence", "rendering", "perturbation"

_KINDS = {
    "paid_like_gold": FlawKind("the reward pays a wrong answer like the gold", False),
    "not_recognised": FlawKind("the reward does not pay the gold in full in another form", False),
}


class GoldExamination:
    """What a reward makes of golds; see :class:`~rewardkit.examinations.examination.Examination`.

    It says nothing of a reward that tells no answer of a row from its gold: such a reward does not compare answers.
    """

    name = "golds"
    kinds: Mapping[str, FlawKind] = _KINDS
    untold_reason = "the reward pays no right answer in a box, in tags, in a sentence or alone more than a wrong one"

    def suits(self, reward: Reward[..., Any], gold_column: str | None) -> bool:
        """Return whether a reward of single completions reads a gold; one that waits, as a judge, is left out."""
        is_single = reward.spec.kind is not Kind.GROUP and not reward.spec.is_async
        return is_single and not {*GOLD_COLUMNS, gold_column}.isdisjoint(reward.spec.named_columns)

    def applies(self, row: AuditRow) -> bool:
        """Return whether a row has a gold that is a value of a known kind."""
        return row.gold is not None and not row.is_code and read_value(row.gold.text) is not None

    def trials(self, row: AuditRow) -> Sequence[RowTrial]:
        """Return the gold and writings near it, each in every frame, and an answer of no content."""
        value = read_value(row.gold.text) if row.gold else None
        if row.gold is None or value is None:
            return []
        gold = row.gold.text
        random = Random(gold)  # noqa: S311 - a sample, no secret
        writings = {
            _GOLD: [Writing("the gold", gold)],
            _RENDERING: _sample(other_texts(gold, value.renderings()), random),
            _PERTURBATION: _sample(other_texts(gold, value.perturbations()), random),
        }
        trials = [
            _trial(role, writing, frame) for role, group in writings.items() for writing in group for frame in _FRAMES
        ]
        return [*trials, RowTrial(_SILENCE, Probe(Family.FORMS, "silence", BASE[1]))]

    def flaws(
        self, reward: Reward[..., Any], row: AuditRow, results: Sequence[RowTrialResult]
    ) -> Sequence[Flaw] | None:
        """Return what is paid like the gold, and the forms in which the gold is missed, in the gold's best frame.

        ``None`` where the reward tells no answer from the gold.
        """
        scores = {result.trial: _score(result) for result in results}
        golds = [trial for trial in scores if trial.role == _GOLD]
        best = max(golds, key=lambda trial: scores[trial])
        silence = max(scores[trial] for trial in scores if trial.role == _SILENCE)
        full = scores[best]
        framed = [trial for trial in scores if trial.probe.frame == best.probe.frame]
        wrong = [trial for trial in framed if trial.role == _PERTURBATION]
        paid = [trial for trial in wrong if scores[trial] >= full]
        if row.gold is None or full <= silence or len(paid) == len(wrong):
            return None
        failed = {result.trial for result in results if result.outcome.status is Status.FAILED}
        renderings = [trial for trial in framed if trial.role == _RENDERING and trial not in failed]
        missed = [trial for trial in renderings if scores[trial] < full]
        gold = row.gold.text
        flaws = [Flaw("paid_like_gold", _describe_paid(gold, paid))] if paid else []
        return [*flaws, *([Flaw("not_recognised", _describe_missed(gold, missed))] if missed else [])]


def _sample(writings: Sequence[Writing], random: Random) -> list[Writing]:
    return random.sample(writings, min(WRITINGS, len(writings)))


def _trial(role: str, writing: Writing, frame: str) -> RowTrial:
    text = f"${writing.text}$" if writing.is_formula and frame == "sentence" else writing.text
    probe = Probe(Family.FORMS, writing.name, _FRAMES[frame].replace("%", text, 1), frame=frame, point=writing.text)
    return RowTrial(role, probe)


def _score(result: RowTrialResult) -> float:
    """Return what a trial earned; one that was skipped or failed earned least of all."""
    score = result.outcome.score
    return score if result.outcome.status is Status.SCORED and score is not None else float("-inf")


def _describe_paid(gold: str, trials: Sequence[RowTrial]) -> str:
    """Return for which wrong answer a gold is paid; of a long one what differs comes first."""
    if len(gold) <= _LONG_GOLD:
        return f"the reward pays {_listing(trials)} like the gold {gold}"
    probe = trials[0].probe
    change = difference(gold, probe.point)
    return f"the reward pays a wrong answer ({probe.name}{_more(trials)}): {change}; like the gold {gold}"


def _describe_missed(gold: str, trials: Sequence[RowTrial]) -> str:
    """Return in which form a gold is missed; of a long one the form comes first."""
    if len(gold) <= _LONG_GOLD:
        return f"the reward does not pay {_listing(trials)} in full, which is the gold {gold}"
    name = f"{trials[0].probe.name}{_more(trials)}"
    return f"the reward does not pay the gold in full when it is written {name}: {trials[0].probe.point}"


def _listing(trials: Sequence[RowTrial]) -> str:
    """Return all of them, plain texts before formulas: of many forms a plain one is the likeliest in the data."""
    plain_first = sorted(trials, key=lambda trial: "\\" in trial.probe.point)
    return ", ".join(f"{trial.probe.point} ({trial.probe.name})" for trial in plain_first)


def _more(trials: Sequence[RowTrial]) -> str:
    return f", and {', '.join(trial.probe.name for trial in trials[1:])}" if len(trials) > 1 else ""
