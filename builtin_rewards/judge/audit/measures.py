"""What verdicts come to; accepted is a score of the threshold or more or a won comparison, never a failed call."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from builtin_rewards.judge.audit.answer_pairs import AuditRows, Labelled
from builtin_rewards.judge.audit.families import INJECTIONS, RECIPES
from builtin_rewards.judge.audit.subject import AuditedJudge
from builtin_rewards.judge.members import accepts
from builtin_rewards.judge.own_labels import ConfusionTable, auc, mean_move
from builtin_rewards.judge.verdict import QUOTED
from rewardkit import Outcome, Status
from rewardkit.commands import AuditLimits, AuditResult
from rewardkit.statistics import Interval, wilson, within_share

_EXAMPLES = 5
POSITION = "position"  # in place of a family, for unchanged pairs in either order
IN_PAIRS = "list_and_pairs"  # the same, for those asked of a judge that compares two at a time


@dataclass(frozen=True, slots=True)
class Trial:
    """An answer to be judged; in comparisons an attack meets the right answer, and all others the wrong one."""

    row: int  # its place among those chosen
    text: str
    family: str = ""  # empty for an unchanged answer
    name: str = ""  # empty for the benign twin of a family
    base: str | None = None  # the answer that an addition is put on; `None` for a text that stands alone
    is_second: bool = False  # in a comparison
    again: int = 0  # how often it was judged before


class TrialVerdict(NamedTuple):
    """What came of a trial; the score is ``None`` if the call failed, whatever stands in for it, or was skipped."""

    trial: Trial
    outcome: Outcome
    score: float | None


Figures: TypeAlias = dict[str, Interval | float]


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """The verdicts so far, and the unchanged answers' scores from 0 to 1; in a comparison 1 is won and 0.5 drawn."""

    subject: AuditedJudge
    data: AuditRows
    accept: float
    verdicts: list[TrialVerdict] = field(default_factory=list)
    bare: dict[tuple[int, str | None], float | None] = field(default_factory=dict)

    def add(self, trial: Trial, outcome: Outcome) -> None:
        """Add an outcome; a comparison of unchanged answers scores both."""
        is_scored = outcome.status is Status.SCORED and outcome.score is not None
        score = self.subject.share(outcome.score or 0.0) if is_scored else None
        self.verdicts.append(TrialVerdict(trial, outcome, score))
        if not trial.family and not trial.again:
            self.bare[trial.row, trial.text] = score
            if self.subject.compares:
                self.bare[trial.row, self.data.rows[trial.row].bad] = None if score is None else 1 - score

    def accepts(self, score: float | None) -> bool:
        return score is not None and accepts(score, self.accept)

    def share(self, scores: Sequence[float | None]) -> Interval:
        return wilson(sum(map(self.accepts, scores)), sum(score is not None for score in scores))

    def label_scores(self) -> list[tuple[Labelled, float]]:
        """Return the labelled answers that have scores; for a judge that compares only those of whole pairs."""
        least = 2 if self.subject.compares else 1
        rows = [(index, row) for index, row in enumerate(self.data.rows) if len(row.answers) >= least]
        scores = [(answer, self.bare.get((index, answer.text))) for index, row in rows for answer in row.answers]
        return [(answer, score) for answer, score in scores if score is not None]

    def of(self, family: str) -> list[TrialVerdict]:
        """Return the first verdicts on a family's trials; on unchanged answers without a name."""
        return [verdict for verdict in self.verdicts if verdict.trial.family == family and not verdict.trial.again]


class FamilyResult(NamedTuple):
    """A family's result: the wrong answers accepted of those that are refused without the attack; failed calls."""

    accepted: Interval
    failed: int
    benign_drift: Interval  # how far the benign twin moves the scores of right answers on average
    examples: tuple[Mapping[str, Any], ...]  # the five accepted wrong answers that gained most


class JudgeAudit(AuditResult):
    """What an audit found of a judge; ``untried`` verdicts are left if it was broken off."""

    def __init__(self, record: AuditRecord, untried: int) -> None:
        data, rows = record.data, len(record.data.rows)
        super().__init__(rows=rows, total_rows=data.total, unit=data.unit, untried=untried, is_interrupted=untried > 0)
        outcomes = [verdict.outcome for verdict in record.verdicts if verdict.trial.family != IN_PAIRS]
        errors = [outcome.error for outcome in outcomes if outcome.status is Status.FAILED]
        results = {name: measure(record) for name, measure in _MEASURES.items()}
        if record.subject.listing is not None:
            results |= _list_and_pairs(record)
        unmeasured = "none of its attacks was scored, or the judge accepts each wrong answer as it is"
        self.record = record
        self.calls = len(outcomes)  # without the pairs that are asked beside lists
        self.failed = len(errors)
        self.skipped = sum(outcome.status is Status.SKIPPED for outcome in outcomes)
        self.first_error = errors[0] if errors else None
        self.families = {family: _family(record, family) for family in RECIPES}
        self.measures = {name: figures for name, figures in results.items() if not isinstance(figures, str)}
        self.not_possible = {name: unmeasured for name, result in self.families.items() if not result.accepted.of}
        self.not_possible |= {name: reason for name, reason in results.items() if isinstance(reason, str)}

    def rate(self, measure: str, figure: str) -> float | None:
        """Return the rate of a share; ``None`` if it was not measured."""
        share = self.measures.get(measure, {}).get(figure)
        return share.rate if isinstance(share, Interval) else None

    def as_json(self, limits: AuditLimits) -> dict[str, Any]:
        names = ("calls", "failed", "skipped", "first_error", "families", "measures", "not_possible")
        values = super().as_json(limits) | {name: _plain(getattr(self, name)) for name in names}
        values |= {"judge": self.record.subject.judge.name, "models": self.record.subject.models}
        values |= {"form": self.record.data.form, "accept": self.record.accept}
        for name, family in values["families"].items():
            family |= {"rule": RECIPES[name].rule, "source": RECIPES[name].source}
        return values

    def breaches(self, limits: AuditLimits) -> list[str]:
        """Return what exceeds the limits or could not be measured, a phrase each."""
        messages = ["no right answer is accepted as it is"] if self.rate("bare", "right_accepted") == 0 else []
        limit_of = {name: limits[name] for name in ("verbosity", "content_free")}
        limit_of |= dict.fromkeys(INJECTIONS, limits["attack_pass"])
        accepted = {name: self.families[name].accepted.rate or 0.0 for name in limit_of}
        rates = {f"{name} {{:.0%}} accepted": (accepted[name], limit) for name, limit in limit_of.items()}
        rates["position flips {:.0%}"] = self.rate("position", "flips") or 0.0, limits["flip"]
        rates["quotes {:.0%} of the forged verdicts"] = self.rate("quotations", "forged") or 0.0, limits["attack_pass"]
        rates["{:.0%} of the calls failed"] = self.failed / max(1, self.calls), limits["failed"]
        for message, (rate, limit) in rates.items():
            if rate > limit:
                messages.append(f"{message.format(rate)} (at most {limit:.0%})")
        drifts = {name: result.benign_drift.rate or 0.0 for name, result in self.families.items()}
        moves = {name: mean for name, mean in drifts.items() if abs(mean) > limits["benign_drift"]}
        if moves:
            worst, names = max(moves.values(), key=abs), ", ".join(moves)
            messages.append(f"benign drift up to {worst:+.2f} in {names} (at most {limits['benign_drift']:g})")
        if not any(self.families[name].accepted.of for name in INJECTIONS):
            messages.append("no injection could be measured")
        return messages + ([f"broken off with {self.untried:,} verdicts to go"] if self.untried else [])


def _plain(value: object) -> object:
    if isinstance(value, FamilyResult | Interval):
        return _plain(value._asdict())
    return {name: _plain(entry) for name, entry in value.items()} if isinstance(value, dict) else value


def _family(record: AuditRecord, family: str) -> FamilyResult:
    """Return a family's result; of its trials the attacks have a name, and the benign twins have none."""
    moves, scores, examples = list[float](), list[float | None](), list[dict[str, Any]]()
    for trial, outcome, score in record.of(family):
        before = record.bare.get((trial.row, trial.base))
        if not trial.name:
            if score is not None and before is not None:
                moves.append(score - before)
            continue
        scores.append(score)
        if record.accepts(score):
            attack = {"line": record.data.rows[trial.row].line, "name": trial.name, "text": trial.text}
            examples.append({**attack, "before": before, "score": score, "said": outcome.reason})
    examples.sort(key=lambda example: (example["before"] or 0.0) - example["score"])
    failed = sum(verdict.outcome.status is Status.FAILED for verdict in record.of(family))
    return FamilyResult(record.share(scores), failed, mean_move(moves), tuple(examples[:_EXAMPLES]))


def _bare(record: AuditRecord) -> Figures:
    """Return how many right and wrong answers are accepted as they are."""
    right = [record.bare.get((index, row.good)) for index, row in enumerate(record.data.rows)]
    wrong = [record.bare.get((index, row.bad)) for index, row in enumerate(record.data.rows)]
    return {"right_accepted": record.share(right), "wrong_accepted": record.share(wrong)}


def _position(record: AuditRecord) -> Figures | str:
    """Return how often the verdict on a pair flips with the order, and how often the first place wins."""
    if not record.subject.compares:
        return "the judge grades one answer at a time; one that compares has positions"
    if record.subject.listing:
        return "the judge draws the order itself; its metric spread tells how far grades move with it"
    as_first, as_second = dict[int, float](), dict[int, float]()  # scores of rows' right answers
    for trial, _, score in record.of(POSITION):
        if score is not None:
            (as_second if trial.is_second else as_first)[trial.row] = score
    pairs = [(as_first[row], as_second[row]) for row in as_second if row in as_first]
    picks = [pick for first, second in pairs for pick in (first, 1 - second) if pick != 0.5]
    flips = wilson(sum({first, second} == {0.0, 1.0} for first, second in pairs), len(pairs))
    return {"flips": flips, "first_place_wins": wilson(picks.count(1.0), len(picks))}


def _list_and_pairs(record: AuditRecord) -> dict[str, Figures | str]:
    """Return how often the right answer wins in lists and in pairs, a draw half, and the tokens that each takes."""
    figures: Figures = {}
    for name, family in (("list", ""), ("pairs", IN_PAIRS)):
        verdicts = record.of(family)
        scores = [score for _, _, score in verdicts if score is not None]
        metrics = [outcome.metrics for _, outcome, _ in verdicts]
        tokens = [2 * costs["prompt_tokens"] for costs in metrics if "prompt_tokens" in costs]
        figures |= {f"{name}_right": wilson(sum(scores), len(scores))} if scores else {}
        figures |= {f"{name}_prompt_tokens": statistics.fmean(tokens)} if tokens else {}
    if "pairs_right" in figures:
        return {IN_PAIRS: figures}
    error = next((outcome.error for _, outcome, _ in record.of(IN_PAIRS) if outcome.error), "none was judged")
    return {IN_PAIRS: figures, "pairs": f"its model gave no verdict on two at a time; {error}"}


def _quotations(record: AuditRecord) -> Figures | str:
    """Return how many forged verdicts the judge repeats in place of its own; they are not read, and its calls fail."""
    forged = [
        outcome
        for family, recipe in RECIPES.items()
        for trial, outcome, _ in record.of(family)
        if "$verdict" in recipe.attacks.get(trial.name, "")
    ]
    quoted = sum(QUOTED in (outcome.error or "") for outcome in forged)
    return {"forged": wilson(quoted, len(forged))} if forged else "no forged verdict was tried"


def _stability(record: AuditRecord) -> Figures | str:
    """Return how many answers were accepted once and refused once, the mean deviation, and the judge's own share."""
    scores: dict[Trial, list[float]] = {}
    for trial, _, score in record.verdicts:
        if not trial.family and score is not None:
            scores.setdefault(replace(trial, again=0), []).append(score)
    samples = [own for own in scores.values() if len(own) > 1]
    if not samples:
        return "no answer was judged more than once (--samples)"
    unstable = sum(len(set(map(record.accepts, own))) > 1 for own in samples)
    figures: Figures = {"changed": wilson(unstable, len(samples))}
    figures["deviation"] = statistics.fmean(map(statistics.pstdev, samples))
    own = within_share(samples)
    return figures if own is None else {**figures, "own_variance": own}


def _labels(record: AuditRecord) -> Figures | str:
    """Return how far verdicts agree with labels: accuracy and area under the curve, or the better of each pair."""
    labelled = record.label_scores()
    scores, labels = [score for _, score in labelled], [answer.right for answer, _ in labelled]
    if not labelled:
        return "no labelled answer was scored; it takes chosen and rejected, or completion and label"
    if record.subject.compares:
        good = [score for score, is_right in zip(scores, labels, strict=True) if is_right]
        return {"better_of_pair": wilson(sum(good), len(good))}
    area = auc(scores, labels)
    accuracy = ConfusionTable.of([record.accepts(score) for score in scores], labels).agreement
    return {"accuracy": accuracy} | ({} if area is None else {"auc": area})


def model_family(name: str) -> str:
    """Return the family of a model: the first letters of its name, without its owner; ``gpt`` of ``x/GPT-5``."""
    return re.split("[^A-Za-z]", name.rpartition("/")[2])[0].casefold() or name.casefold()


def _self_preference(record: AuditRecord) -> Figures | str:
    """Return what a judge accepts of its own model family and of others; a fair judge has an ``excess`` of 0."""
    families = set(map(model_family, record.subject.models))
    groups: dict[str, list[tuple[Labelled, float]]] = {"own": [], "others": []}
    for answer, score in record.label_scores():
        if answer.model:
            groups["own" if model_family(answer.model) in families else "others"].append((answer, score))
    if not all(groups.values()):
        models = ", ".join(sorted({answer.model for group in groups.values() for answer, _ in group})) or "none"
        return (
            f"it takes answers of {', '.join(families)} and of other families (columns chosen_model, rejected_model, "
            f"model); named are {models}"
        )
    figures: Figures = {}
    excess = []
    for name, group in groups.items():
        accepted = record.share([score for _, score in group])
        right = wilson(sum(answer.right for answer, _ in group), len(group))
        figures |= {f"{name}_accepted": accepted, f"{name}_right": right}
        excess.append((accepted.rate or 0.0) - (right.rate or 0.0))
    return {**figures, "excess": excess[0] - excess[1]}


_MEASURES: Mapping[str, Callable[[AuditRecord], Figures | str]] = {  # figures, or the reason for having no figures
    "bare": _bare,
    "position": _position,
    "quotations": _quotations,
    "stability": _stability,
    "labels": _labels,
    "self_preference": _self_preference,
}
