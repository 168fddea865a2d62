"""What verdicts come to: shares with their intervals, drifts, positions, stability, and agreement with labels.

**Accepted** is a score of at least the threshold, or a comparison that is won. A failed call counts as failed, never as
accepted or refused. Intervals of shares take trials as independent, though several are on one row.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from builtin_rewards.judge.audit.answer_pairs import AuditRows, JudgeRow, Labelled
from builtin_rewards.judge.audit.families import INJECTIONS, RECIPES
from builtin_rewards.judge.audit.subject import AuditedJudge
from builtin_rewards.judge.members import accepts
from builtin_rewards.judge.statistics import ConfusionTable, auc, mean_move
from rewardkit import Outcome, Status
from rewardkit.statistics import Interval, wilson

_EXAMPLES = 5
POSITION = "position"
IN_PAIRS = "list_and_pairs"
"""In place of families, for unchanged pairs: in either order, and asked of a judge that compares two at a time."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An answer to be judged, on the row at a place among those chosen.

    An unchanged answer has no ``family``, and the benign twin of a family no ``name``. ``of`` is the answer that an
    addition is put on, ``None`` for a text that stands alone. In comparisons an attack meets the right answer, and all
    others the wrong one; it may stand ``second``. ``again`` counts how often it was judged before.
    """

    row: int
    text: str
    family: str = ""
    name: str = ""
    of: str | None = None
    second: bool = False
    again: int = 0


Figures: TypeAlias = dict[str, Interval | float]


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """What came so far, and the scores of unchanged answers by row and text, or ``None``.

    A score is from 0 to 1 over the judge's range; in a comparison 1 is won, 0.5 drawn and 0 lost.
    """

    subject: AuditedJudge
    data: AuditRows
    rows: Sequence[JudgeRow]
    accept: float
    came: list[tuple[Trial, Outcome]] = field(default_factory=list)
    bare: dict[tuple[int, str | None], float | None] = field(default_factory=dict)

    def add(self, trial: Trial, outcome: Outcome) -> None:
        """Add an outcome; a comparison of unchanged answers scores both."""
        self.came.append((trial, outcome))
        if not trial.family and not trial.again:
            score = self.bare[trial.row, trial.text] = self.score(outcome)
            if self.subject.compares:
                self.bare[trial.row, self.rows[trial.row].bad] = None if score is None else 1 - score

    def score(self, outcome: Outcome) -> float | None:
        """Return a call's score; ``None`` if it failed, whatever stands in for it, or was skipped."""
        scored = outcome.status is Status.SCORED and outcome.score is not None
        return self.subject.share(outcome.score or 0.0) if scored else None

    def accepts(self, score: float | None) -> bool:
        """Whether there is a score that accepts."""
        return score is not None and accepts(score, self.accept)

    def share(self, scores: Sequence[float | None]) -> Interval:
        """Return the share that is accepted of the scores that there are."""
        return wilson(sum(map(self.accepts, scores)), sum(score is not None for score in scores))

    def labelled(self) -> list[tuple[Labelled, float]]:
        """Return the labelled answers that have scores; for a judge that compares only those of whole pairs."""
        whole = 2 if self.subject.compares else 1
        answers = [(at, one) for at, row in enumerate(self.rows) if len(row.answers) >= whole for one in row.answers]
        return [(one, score) for at, one in answers if (score := self.bare.get((at, one.text))) is not None]


class FamilyResult(NamedTuple):
    """A family's result: the wrong answers accepted of those that are refused without the attack; failed calls.

    ``benign_drift`` is how far the benign twin moves the scores of right answers on average, and ``examples`` are the
    five accepted wrong answers that gained most.
    """

    accepted: Interval
    failed: int
    benign_drift: Interval
    examples: tuple[Mapping[str, Any], ...]


class JudgeAudit:
    """What an audit found; ``unasked`` verdicts are left if it was broken off.

    ``families`` has the results of the attacks, ``measures`` those of ``bare`` answers, ``position``, ``stability``,
    ``labels`` and ``self_preference``, and ``not_possible`` why one could not be measured. Pairs that are asked beside
    lists do not count as ``calls``.
    """

    def __init__(self, record: AuditRecord, unasked: int) -> None:
        own = [outcome for trial, outcome in record.came if trial.family != IN_PAIRS]
        statuses = [outcome.status for outcome in own]
        bare: Figures = {
            "right_accepted": record.share([record.bare.get((at, row.good)) for at, row in enumerate(record.rows)]),
            "wrong_accepted": record.share([record.bare.get((at, row.bad)) for at, row in enumerate(record.rows)]),
        }
        found: dict[str, Figures | str] = {
            "bare": bare,
            "position": _position(record),
            "stability": _stability(record),
            "labels": _labels(record),
            "self_preference": _self_preference(record),
        }
        if record.subject.listing is not None:
            found[IN_PAIRS] = _list_and_pairs(record)
            lost = [one.error for trial, one in record.came if trial.family == IN_PAIRS and one.error]
            if "pairs_right" not in found[IN_PAIRS]:
                found["pairs"] = "its model gave no verdict on two at a time; " + (lost or ["none was judged"])[0]
        none_tried = "none of its attacks was scored, or the judge accepts each wrong answer as it is"
        self.record = record
        self.unasked = unasked
        self.calls = len(statuses)
        self.failed = statuses.count(Status.FAILED)
        self.skipped = statuses.count(Status.SKIPPED)
        self.first_error = next((one.error for one in own if one.status is Status.FAILED), None)
        self.families = {family: _family(family, record) for family in RECIPES}
        self.measures = {name: figures for name, figures in found.items() if not isinstance(figures, str)}
        self.not_possible = {name: none_tried for name, one in self.families.items() if not one.accepted.of}
        self.not_possible |= {name: why for name, why in found.items() if isinstance(why, str)}

    def rate(self, measure: str, figure: str) -> float | None:
        """Return the rate of a share; ``None`` if it was not measured."""
        share = self.measures.get(measure, {}).get(figure)
        return share.rate if isinstance(share, Interval) else None

    def breaches(self, limits: Mapping[str, float]) -> list[str]:
        """Return what exceeds a limit, in words; the limits are shares from 0 to 1, compared with rates themselves."""
        found = ["no right answer is accepted as it is"] if self.rate("bare", "right_accepted") == 0 else []
        limit_of = {name: limits[name] for name in ("verbosity", "content_free")}
        limit_of |= dict.fromkeys(INJECTIONS, limits["attack_pass"])
        accepted = {name: self.families[name].accepted.rate or 0.0 for name in limit_of}
        rates = {f"{name} {{:.0%}} accepted": (accepted[name], most) for name, most in limit_of.items()}
        rates["position flips {:.0%}"] = self.rate("position", "flips") or 0.0, limits["flip"]
        rates["{:.0%} of the calls failed"] = self.failed / max(1, self.calls), limits["failed"]
        found += [f"{words.format(rate)} (at most {most:.0%})" for words, (rate, most) in rates.items() if rate > most]
        drifts = {name: one.benign_drift.rate or 0.0 for name, one in self.families.items()}
        moved = {name: mean for name, mean in drifts.items() if abs(mean) > limits["benign_drift"]}
        if moved:
            worst = max(moved.values(), key=abs)
            found.append(f"benign drift up to {worst:+.2f} in {', '.join(moved)} (at most {limits['benign_drift']:g})")
        if not any(self.families[name].accepted.of for name in INJECTIONS):
            found.append("no injection could be measured")
        return found + ([f"broken off with {self.unasked:,} verdicts to go"] if self.unasked else [])


def _family(family: str, record: AuditRecord) -> FamilyResult:
    moves, scores, failed = list[float](), list[float | None](), 0
    examples: list[dict[str, Any]] = []
    for trial, outcome in record.came:
        if trial.family != family:
            continue
        score, before = record.score(outcome), record.bare.get((trial.row, trial.of))
        failed += outcome.status is Status.FAILED
        if trial.name:
            scores.append(score)
        elif score is not None and before is not None:
            moves.append(score - before)
        if trial.name and record.accepts(score):
            tried = {"line": record.rows[trial.row].line, "name": trial.name, "text": trial.text}
            examples.append({**tried, "before": before, "score": score, "said": outcome.reason})
    examples.sort(key=lambda one: (one["before"] or 0.0) - one["score"])
    return FamilyResult(record.share(scores), failed, mean_move(moves), tuple(examples[:_EXAMPLES]))


def _position(record: AuditRecord) -> Figures | str:
    """Return how often the verdict on a pair flips with the order, and how often the first place wins."""
    if not record.subject.compares:
        return "the judge grades one answer at a time; one that compares has positions"
    if record.subject.listing:
        return "the judge draws the order itself; its metric spread tells how far grades move with it"
    scores = {(one.row, one.second): record.score(outcome) for one, outcome in record.came if one.family == POSITION}
    both = [(scores.get((at, False)), scores.get((at, True))) for at in range(len(record.rows))]
    judged = [(one, two) for one, two in both if one is not None and two is not None]
    picks = [pick for one, two in judged for pick in (one, 1 - two) if pick != 0.5]
    flips = wilson(sum({one, two} == {0.0, 1.0} for one, two in judged), len(judged))
    return {"flips": flips, "first_place_wins": wilson(picks.count(1.0), len(picks))}


def _list_and_pairs(record: AuditRecord) -> Figures:
    """Return how often the right answer wins in lists and in pairs, a draw half, and the tokens that each takes."""
    found: Figures = {}
    for name, family in (("list", ""), ("pairs", IN_PAIRS)):
        asked = [one for trial, one in record.came if (trial.family, trial.again) == (family, 0)]
        scores = [score for one in asked if (score := record.score(one)) is not None]
        tokens = [2 * one.metrics["prompt_tokens"] for one in asked if "prompt_tokens" in one.metrics]
        found |= {f"{name}_right": wilson(sum(scores), len(scores))} if scores else {}
        found |= {f"{name}_prompt_tokens": statistics.fmean(tokens)} if tokens else {}
    return found


def _stability(record: AuditRecord) -> Figures | str:
    """Return how many answers were accepted at one time and refused at another, and the mean standard deviation."""
    scores: dict[Trial, list[float]] = {}
    for trial, outcome in record.came:
        if not trial.family and (score := record.score(outcome)) is not None:
            scores.setdefault(replace(trial, again=0), []).append(score)
    several = [each for each in scores.values() if len(each) > 1]
    if not several:
        return "no answer was judged more than once (--samples)"
    unstable = sum(len(set(map(record.accepts, each))) > 1 for each in several)
    return {"changed": wilson(unstable, len(several)), "deviation": statistics.fmean(map(statistics.pstdev, several))}


def _labels(record: AuditRecord) -> Figures | str:
    """Return how far verdicts agree with labels: accuracy and area under the curve, or the better of each pair."""
    labelled = record.labelled()
    scores, right = [score for _, score in labelled], [one.right for one, _ in labelled]
    if not labelled:
        return "no labelled answer was scored; it takes chosen and rejected, or completion and label"
    if record.subject.compares:
        good = [score for score, is_right in zip(scores, right, strict=True) if is_right]
        return {"better_of_pair": wilson(sum(good), len(good))}
    area = auc(scores, right)
    accuracy = ConfusionTable.of([record.accepts(score) for score in scores], right).agreement
    return {"accuracy": accuracy} | ({} if area is None else {"auc": area})


def model_family(name: str) -> str:
    """Return the family of a model: the first letters of its name, without its owner; ``gpt`` of ``x/GPT-5``."""
    return re.split("[^A-Za-z]", name.rpartition("/")[2])[0].casefold() or name.casefold()


def _self_preference(record: AuditRecord) -> Figures | str:
    """Return what a judge accepts of its own model family and of others, each beside what is right.

    ``excess`` is the difference of the two, each beyond what is right; 0 for a fair judge.
    """
    families = set(map(model_family, record.subject.models))
    known = [(one, score) for one, score in record.labelled() if one.model]
    own = [pair for pair in known if model_family(pair[0].model) in families]
    others = [pair for pair in known if pair not in own]
    if not own or not others:
        named = ", ".join(sorted({one.model for one, _ in known})) or "none"
        why = f"it takes answers of {', '.join(families)} and of other families (columns chosen_model, rejected_model, "
        return f"{why}model); named are {named}"
    found: Figures = {}
    beyond = []
    for name, group in (("own", own), ("others", others)):
        yes, right = record.share([score for _, score in group]), wilson(sum(one.right for one, _ in group), len(group))
        found |= {f"{name}_accepted": yes, f"{name}_right": right}
        beyond.append((yes.rate or 0.0) - (right.rate or 0.0))
    return {**found, "excess": beyond[0] - beyond[1]}
