"""Whether more and more of one thing is paid without end, by what the completions of :mod:`.amounts` earned."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise

from rewardkit.audit.engine import ScoredProbe, Trials
from rewardkit.audit.honest import REFERENCE
from rewardkit.audit.probe import Family

STEP = 0.05  # each step of a ladder must earn more than this share beyond the one below it
FLAGRANT = 3  # words without content that earn so many times what the data's own completions earn are what is paid
_LEAST = 1e-9
_COVERING = ("length", "noise")
"""Rules whose ladders are in those of others, as any text has a length and new words: the first that climbs counts."""


def overpaid(trials: Trials, zero: float, skipped: Container[str]) -> list[ScoredProbe]:
    """Return the last completion of each ladder that climbs, and words without content that are paid flagrantly.

    Args:
        trials: What was scored.
        zero: What counts as no pay at all.
        skipped: Rules that the author leaves out.
    """
    amounts = [trial for trial in trials.attacks if trial.probe.family is Family.AMOUNT]
    amounts = [trial for trial in amounts if trial.probe.rule not in skipped]
    ladders: dict[int, dict[str, list[ScoredProbe]]] = {}
    for trial in amounts:
        if trial.probe.step:
            ladders.setdefault(trial.row, {}).setdefault(trial.probe.rule, []).append(trial)
    tops: list[ScoredProbe] = []
    for row, by_rule in ladders.items():
        plain = [score for trial in by_rule.get("length", ()) if (score := trial.outcome.score) is not None]
        best = max([*earned(trials, row, zero), 0.0])
        climbing = {
            rule: ladder[-1]
            for rule, ladder in by_rule.items()
            if _climbs(ladder, zero, best if rule == "length" else max([best, *(score - zero for score in plain)]))
        }
        covering = next((rule for rule in _COVERING if rule in climbing), None)
        tops += [top for rule, top in climbing.items() if covering in (None, rule)]
    return tops + [trial for trial in amounts if not trial.probe.step and _is_flagrant(trials, trial, zero)]


def earned(trials: Trials, row: int, zero: float, name: str | None = None) -> list[float]:
    """Return what the honest forms of a row earn above ``zero``: all of them, or those of a name."""
    forms = [(form, outcome.score) for form, outcome in trials.honest[row]]
    return [score - zero for form, score in forms if score is not None and name in (None, form.name)]


def _climbs(ladder: Sequence[ScoredProbe], zero: float, best: float) -> bool:
    """Return whether a ladder pays at every step, and at its top more than ``best``, which honest texts earn."""
    scores = [
        trial.outcome.score for trial in ladder if trial.outcome.cause is None and trial.outcome.score is not None
    ]
    if len(scores) < len(ladder) or len(scores) < 3:
        return False
    rises = all(after - before > max(STEP * abs(before - zero), _LEAST) for before, after in pairwise(scores))
    return rises and scores[-1] - zero > (1 + STEP) * best


def _is_flagrant(trials: Trials, trial: ScoredProbe, zero: float) -> bool:
    """Return whether words without content earn many times what the data's own completions do."""
    score = trial.outcome.score if trial.outcome.cause is None else None
    if score is None or not any(pay > 0 for pay in earned(trials, trial.row, zero, REFERENCE)):
        return False
    return score - zero >= FLAGRANT * max(earned(trials, trial.row, zero))
