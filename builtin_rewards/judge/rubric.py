"""What a judge grades, and how its grades become one score.

Owns :class:`Criterion`, :class:`Scale` and :class:`Rubric`: the checks of what the user asks for, its words for the
prompt, the JSON schema of a verdict, and the formula. Asking is ``llm.py``'s work, reading a reply ``verdict.py``'s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from builtin_rewards.judge.errors import Fault, JudgeReplyError, JudgeSetupError
from rewardkit.coercion.rule import shorten

PREFERENCES = ("A", "B", "tie")
"""What a pairwise judge may say: the first answer is better, the second, neither."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST_STEPS = 101
"""Grades that a scale may have, those of 0 to 100; OpenAI's strict mode takes 1,000 enum values in a whole schema."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that a judge grades.

    Attributes:
        name: Names it in the verdict and in metrics: 1 to 64 of ``A-Z a-z 0-9 _ -``.
        description: What the judge is told about it: a question or a sentence.
        weight: Its share of the score beside the others' weights, its points; negative for what should not be.
        must: Whether the score is capped where it fails: a grade below the middle of the scale, or, with a negative
            weight, one that is not. A must-have may weigh 0.

    Raises:
        JudgeSetupError: The name, the description or the weight will not do.
    """

    name: str
    description: str
    weight: float = 1.0
    must: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise JudgeSetupError(
                f"criterion name {self.name!r}: a name is 1 to 64 of the characters A-Z, a-z, 0-9, '_' and '-', "
                f"such as 'correct'; longer words belong in the description"
            )
        if not isinstance(self.description, str) or not self.description.strip():
            raise JudgeSetupError(f"criterion {self.name!r} has no description; say in a sentence what is graded")
        if not _is_number(self.weight) or not _is_finite(self.weight) or (self.weight == 0 and not self.must):
            raise JudgeSetupError(
                f"criterion {self.name!r}: weight={shorten(self.weight)} is no finite number but 0; weights are "
                f"shares, such as 1 and 2, negative for what should not be, and a criterion that should not count is "
                f"left out"
            )


class Scale(NamedTuple):
    """The whole grades that may be given, both ends included; the higher the better."""

    low: int
    high: int

    @property
    def grades(self) -> range:
        """All grades, from the lowest."""
        return range(self.low, self.high + 1)


@dataclass(frozen=True, slots=True, init=False)
class Rubric:
    """The criteria of a judgement and the scale they are graded on.

    Attributes:
        criteria: In the order in which they are asked for and answered.
        scale: The grades.
        not_applicable: Whether a judge may say that a criterion does not apply.
        cap: What the score is at most where a must-have fails.

    Raises:
        JudgeSetupError: No criteria, none of positive weight, a name twice, a cap outside [0, 1], or a scale that is
            upside down, not of whole numbers, or of more than 101 grades.
    """

    criteria: tuple[Criterion, ...]
    scale: Scale
    not_applicable: bool
    cap: float

    def __init__(
        self,
        criteria: Sequence[Criterion | str],
        scale: tuple[int, int] = (1, 5),
        *,
        not_applicable: bool = False,
        cap: float = 0.0,
    ) -> None:
        if not _is_number(cap) or not 0 <= cap <= 1:
            raise JudgeSetupError(f"cap={cap!r}: expected what the score is at most where a must-have fails, 0 to 1")
        object.__setattr__(self, "criteria", _checked_criteria(criteria))
        object.__setattr__(self, "scale", _checked_scale(scale))
        object.__setattr__(self, "not_applicable", bool(not_applicable))
        object.__setattr__(self, "cap", float(cap))

    @property
    def names(self) -> tuple[str, ...]:
        """The criteria's names, in order."""
        return tuple(criterion.name for criterion in self.criteria)

    def alone(self) -> tuple[Rubric, ...]:
        """Gives a rubric of each criterion, to ask about one at a time; their scores mean nothing."""
        each = (Criterion(one.name, one.description) for one in self.criteria)
        return tuple(Rubric([one], self.scale, not_applicable=self.not_applicable) for one in each)

    def failed(self, grades: Mapping[str, float | None]) -> list[str]:
        """Gives the names of the must-haves that fail; one that does not apply does not."""
        middle = sum(self.scale) / 2
        known = [(one, grade) for one in self.criteria if (grade := grades[one.name]) is not None]
        return [one.name for one, grade in known if one.must and (grade < middle) == (one.weight >= 0)]

    def normalised(self, grades: Mapping[str, float | None]) -> float | None:
        """Gives the score in [0, 1] that the grades come to; ``None`` where no criterion of positive weight applies.

        Where a must-have fails all the same, it is 0.

        With weights w and grades g on the scale from low to high it is sum(w * (g - low) / (high - low)) over the sum
        of the positive weights, held in [0, 1]: with positive weights alone their weighted mean, and on the scale of 0
        and 1 HealthBench's arithmetic (arXiv 2505.08775), the points of the criteria that are met over all
        that can be had. Criteria that do not apply are in neither sum. Where a must-have fails, it is at most ``cap``.
        A grade may lie between two whole numbers, as a mean over likelihoods does.

        Args:
            grades: A grade for each criterion, by name, ``None`` where it does not apply; order does not matter.

        Raises:
            JudgeReplyError: A criterion has no grade (``WRONG_SCHEMA``), a grade belongs to no criterion
                (``WRONG_SCHEMA``), or one lies outside the scale (``OUT_OF_RANGE``). None is moved into it.
        """
        if set(grades) != set(self.names):
            raise JudgeReplyError(
                f"the verdict grades {sorted(grades)}, and the criteria are {sorted(self.names)}", Fault.WRONG_SCHEMA
            )
        low, high = self.scale
        # Shares of the largest weight, for the sum of weights near the largest float would be infinite.
        most = max(abs(criterion.weight) for criterion in self.criteria)
        weights = {one.name: one.weight / most for one in self.criteria if not self._is_left_out(one.name, grades)}
        parts = [weight * (self._in_scale(name, grades[name]) - low) / (high - low) for name, weight in weights.items()]
        possible = math.fsum(weight for weight in weights.values() if weight > 0)
        failed = self.failed(grades)
        if not possible:
            return 0.0 if failed else None
        most_score = self.cap if failed else 1.0
        return min(most_score, max(0.0, math.fsum(parts) / possible))

    def _is_left_out(self, name: str, grades: Mapping[str, float | None]) -> bool:
        return self.not_applicable and grades[name] is None

    def _in_scale(self, name: str, grade: float | None) -> float:
        if grade is None or not _is_number(grade):
            raise JudgeReplyError(f"criterion {name!r}: the grade {grade!r} is no number", Fault.WRONG_SCHEMA)
        if not self.scale.low <= grade <= self.scale.high:
            raise JudgeReplyError(
                f"criterion {name!r}: the grade {grade!r} lies outside {self.scale.low} to {self.scale.high}",
                Fault.OUT_OF_RANGE,
            )
        return grade

    def words(self) -> dict[str, str]:
        """Gives the fields ``criteria`` and ``scale`` of a prompt template. Weights are not shown to the judge."""
        low, high = self.scale
        or_none = ", or null where a criterion does not apply" if self.not_applicable else ""
        return {
            "criteria": "\n".join(f"- {criterion.name}: {criterion.description}" for criterion in self.criteria),
            "scale": f"whole numbers from {low} (not met at all) to {high} (met in full){or_none}",
        }

    def json_schema(self, reason_chars: int | None = None) -> dict[str, Any]:
        """Gives the JSON schema of a verdict: ``{"correct": {"reason": "...", "score": 4}, ...}``.

        Properties stand in the order of the criteria, and each reason before its score, so that a model that writes
        in the schema's order reasons first. Everything is required and nothing may be added, as strict mode wants.
        Grades are an enum, which every server with structured output takes; ``minimum`` and ``maximum`` are refused
        by Anthropic's endpoints and for fine-tuned models by OpenAI's.

        Args:
            reason_chars: Sets ``maxLength`` of each reason. llama.cpp keeps to it, which ends a small model's
                rambling; hosted servers may refuse a schema that has it (Azure, Anthropic and OpenAI's fine-tuned
                models do). ``None`` leaves it out.
        """
        score: dict[str, Any] = {"type": "integer", "enum": list(self.scale.grades)}
        if self.not_applicable:
            score = {"type": ["integer", "null"], "enum": [*self.scale.grades, None]}
        return _strict_object(
            {name: _strict_object({"reason": _reason(reason_chars), "score": score}) for name in self.names}
        )


def preference_schema(reason_chars: int | None = None) -> dict[str, Any]:
    """Gives the JSON schema of a pairwise verdict: ``{"reason": "...", "verdict": "A"}``.

    Args:
        reason_chars: As in :meth:`Rubric.json_schema`.
    """
    return _strict_object({"reason": _reason(reason_chars), "verdict": {"type": "string", "enum": list(PREFERENCES)}})


def _strict_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _reason(most_chars: int | None) -> dict[str, Any]:
    bound = {} if most_chars is None else {"maxLength": most_chars}
    return {"type": "string", **bound}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False


def _criterion(given: object, number: int) -> Criterion:
    """Gives a criterion for a plain string: a word is its own name, other text is named ``c1``, ``c2`` by its place."""
    if isinstance(given, str):
        return Criterion(given if _NAME.fullmatch(given) else f"c{number}", given)
    if not isinstance(given, Criterion):
        raise JudgeSetupError(
            f"criteria: {given!r} is no Criterion; write Criterion('name', 'What is graded'), or text"
        )
    return given


def _checked_criteria(given: Sequence[Criterion | str]) -> tuple[Criterion, ...]:
    listed = (given,) if isinstance(given, Criterion | str) else given
    criteria = tuple(_criterion(one, number) for number, one in enumerate(listed, 1))
    if not criteria:
        raise JudgeSetupError("criteria=[]: a judge grades at least one; give Criterion('correct', 'Is it right?')")
    if not any(criterion.weight > 0 for criterion in criteria):
        raise JudgeSetupError(
            "criteria: none has a positive weight, so no score above 0 could be had; add what is good"
        )
    names = [criterion.name for criterion in criteria]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise JudgeSetupError(f"criteria: {twice} are named twice; each grade needs a name of its own")
    return criteria


def _checked_scale(given: tuple[int, int]) -> Scale:
    if not isinstance(given, tuple | list) or len(given) != 2 or any(type(end) is not int for end in given):
        raise JudgeSetupError(f"scale={given!r} is not two whole numbers; write the lowest and highest, as (1, 5)")
    scale = Scale(*given)
    if scale.low == scale.high:
        raise JudgeSetupError(f"scale={given!r} has one grade; give the worst and the best, as (1, 5)")
    if scale.low > scale.high:
        raise JudgeSetupError(f"scale={given!r} is upside down; the worst grade comes first, the best last, as (1, 5)")
    if len(scale.grades) > _MOST_STEPS:
        raise JudgeSetupError(
            f"scale={given!r} has {len(scale.grades)} grades; at most {_MOST_STEPS} are allowed, as (0, 100) has"
        )
    return scale
