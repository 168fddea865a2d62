"""How the scores of steps become one: the reductions, and what the reason and the metrics tell of each step."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rewardkit.errors import RewardDefinitionError
from rewardkit.shown.text import counted, shortened
from rewardkit.steps.reading import count_surplus, why_no_calls
from rewardkit.types import COST_METRICS, STEP_KINDS, Score, Step, Text

MOST_SHOWN = 64  # Steps that have a metric and a line in the reason; the score counts all
_DISCOUNT = 0.9
_REDUCTIONS = ("mean", "min", "last", "discounted")
_REASON_CHARS, _NAME_CHARS = 9_000, 40
_LABEL = re.compile(r"[^\W\d][\w.:-]*")


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Which steps are scored, and how their scores become one."""

    each: str  # ``"turn"``, ``"tool_call"`` or ``"span"``
    labels: tuple[str, ...]  # the labels of spans; none for the other kinds
    reduce: str  # ``"mean"``, ``"min"``, ``"last"`` or ``"discounted"``
    discount: float  # how much less the next step counts, above 0 and at most 1; 1 for the other reductions

    @classmethod
    def of(cls, where: str, each: Any, label: Any, reduce: Any, discount: Any) -> Self:
        """Return the plan for these settings; raise RewardDefinitionError where one makes no sense."""
        labels = (label,) if isinstance(label, str) else () if label is None else label
        is_tag = isinstance(labels, list | tuple) and all(
            isinstance(label, str) and _LABEL.fullmatch(label) for label in labels
        )
        is_share = isinstance(discount, int | float) and not isinstance(discount, bool) and 0 < discount <= 1
        checks = (
            (each in tuple(STEP_KINDS), f"each={each!r}: expected {_either(STEP_KINDS)}"),
            (reduce in _REDUCTIONS, f"reduce={reduce!r}: expected {_either(_REDUCTIONS)}"),
            (
                each != "span" or label,
                f"each='span', label={label!r}: name the spans; label='step' is <step>...</step>",
            ),
            (is_tag, f"label={label!r}: expected a tag's name without brackets, such as 'step', or a tuple of names"),
            (each == "span" or label is None, f"label={label!r}: only spans have labels; leave it out, or each='span'"),
            (discount is None or is_share, f"discount={discount!r}: expected a number above 0 and at most 1"),
            (
                discount is None or reduce == "discounted",
                f"discount={discount!r}: leave it out, or reduce='discounted' instead of {reduce!r}",
            ),
        )
        for fits, message in checks:
            if not fits:
                raise RewardDefinitionError(f"{where}: {message}")
        used = float(_DISCOUNT if discount is None else discount) if reduce == "discounted" else 1.0
        return cls(each, tuple(labels), reduce, used)

    def score(self, scores: Sequence[float]) -> float:
        """Return one score, within the range of these."""
        if self.reduce in ("min", "last"):
            return min(scores) if self.reduce == "min" else scores[-1]
        weights = [self.discount**index for index in range(len(scores))]
        weight_sum = math.fsum(weights)
        mean = math.fsum(weight / weight_sum * score for weight, score in zip(weights, scores, strict=True))
        return max(min(scores), min(max(scores), mean))  # rounding may lead outside

    def combine(self, pairs: Sequence[tuple[Step, Score]], completion: Text) -> Score:
        """Return one score of all, with a metric and a line of the reason for each; skipped where no step is scored."""
        plural = STEP_KINDS[self.each]
        if not pairs:
            hint = why_no_calls(completion) if self.each == "tool_call" else ""
            return Score(None, f"the completion has no {plural}{hint}", {"steps": 0})
        listed = pairs[:MOST_SHOWN]
        scores = [score.value for _, score in pairs if score.value is not None]
        lines = [f"{self.reduce} over {len(scores)} of {len(pairs)} {plural}"]
        for step, score in listed:
            number = "left out" if score.value is None else f"{score.value:.4g}"
            no_result = f" (no result: {step.no_result})" if step.no_result else ""
            reason = f", {' '.join(score.reason.split())}" if score.reason else ""
            line = f"{head_of(step)}: {number}{no_result}{reason}"
            lines.append(line[: _REASON_CHARS // len(listed)])
        lines += [f"and {len(pairs) - len(listed):,} more"] if len(pairs) > len(listed) else []
        surplus = count_surplus([step for step, _ in pairs], completion) if self.each == "tool_call" else 0
        lines += [f"{counted(surplus, 'answer')} of tools without a call"] if surplus else []
        step_scores = {f"step/{step.index}": score.value for step, score in listed if score.value is not None}
        merged = _merge_metrics([score.metrics for _, score in pairs])
        metrics = {**merged, "steps": len(pairs), **step_scores, **self.credits(pairs, completion)}
        unanswered = [record for _, score in pairs for record in score.unanswered]
        return Score(self.score(scores) if scores else None, "\n".join(lines), metrics, unanswered)

    def credits(self, pairs: Sequence[tuple[Step, Score]], completion: Text) -> Mapping[str, float]:
        """Return the metrics that say what each turn earned; none, for a plan without credit."""
        return {}


def _either(names: Iterable[str]) -> str:
    *rest, last = map(repr, names)
    return f"{', '.join(rest)} or {last}"


def head_of(step: Step) -> str:
    """Return what a step is called: its metric's name, and its tool or label."""
    label = shortened(step.name or step.label or "", _NAME_CHARS)
    return f"step/{step.index}{label and f' {label}'}"


def _merge_metrics(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the steps' metrics as one: costs are summed where all paid steps have them, the others are averaged."""
    took = [step_metrics for step_metrics in metrics if any(name in step_metrics for name in COST_METRICS)]
    sums: dict[str, float] = {}
    for name in dict.fromkeys(name for step_metrics in metrics for name in step_metrics):
        values = [step_metrics[name] for step_metrics in metrics if name in step_metrics]
        if name not in COST_METRICS:
            sums[name] = math.fsum(value / len(values) for value in values)
        elif len(values) == len(took):
            sums[name] = math.fsum(values)
    return sums
