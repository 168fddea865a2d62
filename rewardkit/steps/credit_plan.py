"""Step rewards whose turns have a number each: the plan of ``@step_reward(credit=...)``, and the metrics it leaves.

``turns`` is how many turns of the assistant a completion has, and ``turn/3`` the number of its fourth turn. A turn
whose number is not known has no such metric. So the numbers go wherever metrics go: over workers, servers and records.
:func:`rewardkit.credit.turn_scores` reads them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewardkit.declare.options import RewardOptions
from rewardkit.errors import BadReturnError, RewardDefinitionError
from rewardkit.steps.reading import count_turns
from rewardkit.steps.scores import StepPlan
from rewardkit.types import Score, Step, Text

CREDITS = ("turns", "potential")
COUNT, TURN = "turns", "turn/"
"""The metric that counts the turns, and what the metric of a turn's number begins with."""
_TOLERANCE = 1e-9  # of the invariant's check, as a share of the largest potential: what rounding may do


@dataclass(frozen=True, slots=True)
class CreditPlan(StepPlan):
    """A plan that also gives each turn a number."""

    credit: str  # ``"turns"``: a turn's number is what its steps earned; ``"potential"``: what it changed
    start: float  # the potential before the first turn
    step_range: tuple[float, float] | None  # of a step's own score, where the completion's has another range

    def score(self, scores: Sequence[float]) -> float:
        """Return one score: of potentials the last less the one before the first turn."""
        return scores[-1] - self.start if self.credit == "potential" else StepPlan.score(self, scores)

    def credits(self, pairs: Sequence[tuple[Step, Score]], completion: Text) -> Mapping[str, float]:
        """Return the metrics that say how many turns there are, and what each earned whose number is known."""
        count = count_turns(completion)
        numbers = self._gains(pairs) if self.credit == "potential" else self._earnings(pairs)
        return {COUNT: count, **{f"{TURN}{turn}": number for turn, number in sorted(numbers.items())}}

    def _earnings(self, pairs: Sequence[tuple[Step, Score]]) -> dict[int, float]:
        """Return each turn's number, made of its steps' scores as the completion's is made of all."""
        scores: dict[int, list[float]] = {}
        for step, score in pairs:
            if score.value is not None:
                scores.setdefault(step.turn, []).append(score.value)
        return {turn: StepPlan.score(self, own) for turn, own in scores.items()}

    def _gains(self, pairs: Sequence[tuple[Step, Score]]) -> dict[int, float]:
        """Return how much each turn changed the potential since the last turn whose potential is known.

        Raises BadReturnError where the gains do not add up to the last potential less the first.
        """
        potentials = {step.turn: score.value for step, score in pairs if score.value is not None}
        levels = [self.start, *potentials.values()]
        gains = {turn: after - before for turn, before, after in zip(potentials, levels, levels[1:], strict=False)}
        largest = max(map(abs, levels))
        whole = levels[-1] - levels[0]
        if not math.isfinite(whole) or not all(map(math.isfinite, gains.values())):
            raise BadReturnError(f"potentials as large as {largest:.4g} have no finite differences; scale them down")
        if not math.isclose(math.fsum(gains.values()), whole, rel_tol=0.0, abs_tol=_TOLERANCE * largest):
            raise BadReturnError(f"the turns' gains do not add up to {whole!r}, the last potential less the first")
        return gains


def credit_plan(plan: StepPlan, where: str, credit: Any, start: Any, *, has_reduce: bool) -> StepPlan:
    """Return the plan with a number for each turn; the same one without ``credit``.

    Raises RewardDefinitionError where a setting makes no sense.
    """
    is_number = isinstance(start, int | float) and not isinstance(start, bool) and math.isfinite(start)
    potential = credit == "potential"
    checks = (
        (credit in (None, *CREDITS), f"credit={credit!r}: expected 'turns' or 'potential', or leave it out"),
        (start is None or is_number, f"start={start!r}: expected a finite number, the potential before the first turn"),
        (start is None or potential, f"start={start!r}: leave it out, or credit='potential'"),
        (not potential or plan.each == "turn", f"each={plan.each!r}: a potential is one of turns; each='turn'"),
        (
            not (potential and has_reduce),
            f"reduce={plan.reduce!r}: leave it out; with credit='potential' the score is the last potential less start",
        ),
    )
    for fits, message in checks:
        if not fits:
            raise RewardDefinitionError(f"{where}: {message}")
    if credit is None:
        return plan
    reduce = "last less start" if potential else plan.reduce
    return CreditPlan(plan.each, plan.labels, reduce, plan.discount, credit, float(start or 0.0), None)


def gain_options(plan: StepPlan, options: RewardOptions) -> tuple[StepPlan, RewardOptions]:
    """Return plan and options where each range is its own: a potential's, and that of the completion's score.

    A completion's score is the last potential less the start, so a failed call counts as the lowest potential.
    """
    if not isinstance(plan, CreditPlan) or plan.credit != "potential" or options.score_range is None:
        return plan, options
    low, high = options.score_range
    moved = replace(options, score_range=(low - plan.start, high - plan.start))
    return replace(plan, step_range=options.score_range), moved
