"""What a judge grades: criteria with their checks, words for the prompt, JSON schemas, and the formula of a score."""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from builtin_rewards.endpoint.errors import Fault, JudgeReplyError, JudgeSetupError, is_number
from rewardkit.extending import shorten

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MOST_CRITERIA = 100  # asked together; criteria of a rubric: twice what HealthBench's longest has, 48
_MOST_STEPS = 101  # grades of a scale, as 0 to 100; OpenAI's strict mode takes 1,000 enum values in a whole schema


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that a judge grades.

    Attributes:
        name: Names it in the verdict and in metrics: 1 to 64 of ``A-Z a-z 0-9 _ -``.
        description: What the judge is told about it: a question or a sentence.
        weight: Its share of the score beside the others' weights; negative for what should not be.
        anchors: What an answer of a grade is like, by grade, such as ``{1: "No dose.", 5: "The right dose."}``.
        must: Whether the score is capped if it fails: its grade is below the middle of the scale, or not below it if
            the weight is negative. A must-have may weigh 0.

    Raises:
        JudgeSetupError: A setting is wrong; names it.
    """

    name: str
    description: str
    weight: float = 1.0
    must: bool = False
    anchors: Mapping[int, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise JudgeSetupError(
                f"criterion name {self.name!r}: expected 1 to 64 of the characters A-Z, a-z, 0-9, '_' and '-', such as "
                f"'correct'; longer words belong in the description"
            )
        if not isinstance(self.description, str) or not self.description.strip():
            raise JudgeSetupError(f"criterion {self.name!r} has no text; describe in a sentence what is graded")
        if not isinstance(self.must, bool):
            raise JudgeSetupError(f"criterion {self.name!r}: must={shorten(self.must)}: expected True or False")
        object.__setattr__(self, "anchors", _check_anchors(self.name, self.anchors))
        is_finite = is_number(self.weight) and abs(self.weight) <= sys.float_info.max
        if not is_finite or (self.weight == 0 and not self.must):
            raise JudgeSetupError(
                f"criterion {self.name!r}: weight={shorten(self.weight)} is not a finite number other than 0; "
                f"weights are shares, such as 1 and 2, negative for what should not be; leave out what should not count"
            )


class Scale(NamedTuple):
    """The whole grades that may be given, both ends included; the higher the better."""

    low: int
    high: int


@dataclass(frozen=True, slots=True, init=False)
class Rubric:
    """The criteria of a judgement, in the order in which they are asked for, and the scale they are graded on."""

    criteria: tuple[Criterion, ...]
    scale: Scale
    not_applicable: bool  # Whether a judge may say that a criterion does not apply
    cap: float  # What the score is at most if a must-have fails
    reasoned: bool  # Whether the judge gives a reason before each grade

    def __init__(
        self,
        criteria: Sequence[Criterion | str],
        scale: tuple[int, int] = (1, 5),
        *,
        not_applicable: bool = False,
        cap: float = 0.0,
        reasoned: bool = True,
        most: int = MOST_CRITERIA,
    ) -> None:
        if not is_number(cap) or not 0 <= cap <= 1:
            raise JudgeSetupError(f"cap={cap!r}: expected what the score is at most where a must-have fails, 0 to 1")
        object.__setattr__(self, "criteria", _check_criteria(criteria, most))
        object.__setattr__(self, "scale", _check_scale(scale))
        for criterion in self.criteria:
            if outside := [grade for grade in criterion.anchors if not self.scale.low <= grade <= self.scale.high]:
                problem = f"criterion {criterion.name!r}: anchors has grade {outside[0]}, and the scale is"
                raise JudgeSetupError(f"{problem} {self.scale.low} to {self.scale.high}")
        object.__setattr__(self, "not_applicable", bool(not_applicable))
        object.__setattr__(self, "cap", float(cap))
        object.__setattr__(self, "reasoned", bool(reasoned))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(criterion.name for criterion in self.criteria)

    def split(self, size: int) -> tuple[Rubric, ...]:
        """Return rubrics of up to so many criteria, to ask about one at a time; their scores mean nothing."""
        parts = -(-len(self.criteria) // size)
        if parts == 1:
            return (self,)
        options = {"not_applicable": self.not_applicable, "reasoned": self.reasoned}
        plain = [replace(criterion, weight=1.0, must=False) for criterion in self.criteria]
        ends = [len(plain) * part // parts for part in range(parts + 1)]
        return tuple(Rubric(plain[start:end], self.scale, **options) for start, end in itertools.pairwise(ends))

    def failed(self, grades: Mapping[str, float | None]) -> list[str]:
        """Return the names of the must-haves that apply and fail."""
        middle = sum(self.scale) / 2
        musts = [(must, grade) for must in self.criteria if must.must and (grade := grades[must.name]) is not None]
        return [must.name for must, grade in musts if (grade < middle) == (must.weight >= 0)]

    def normalised(self, grades: Mapping[str, float | None]) -> float | None:
        """Return the score in [0, 1] that the grades come to; ``None`` if no criterion of positive weight applies.

        With weights w and grades g on the scale from low to high it is sum(w * (g - low) / (high - low)) over the sum
        of the positive weights, held in [0, 1]: on the scale of 0 and 1 HealthBench's arithmetic (arXiv 2505.08775).
        Neither sum has criteria with ``None``, which do not apply. If a must-have fails, the score is at most ``cap``,
        and 0 in place of ``None``. Grades may lie between whole numbers. JudgeReplyError: the grades do not fit.
        """
        if set(grades) != set(self.names):
            message = f"the verdict grades {sorted(grades)}, and the criteria are {sorted(self.names)}"
            raise JudgeReplyError(message, Fault.WRONG_SCHEMA)
        shares = [
            (criterion.weight, self._share(criterion.name, grades[criterion.name])) for criterion in self.criteria
        ]
        largest = max(abs(weight) for weight, _ in shares)  # the sum of the largest floats would be infinite
        terms = [(weight / largest, share) for weight, share in shares if share is not None]
        total = math.fsum(weight for weight, _ in terms if weight > 0)
        failed = self.failed(grades)
        if not total:
            return 0.0 if failed else None
        score = math.fsum(weight * share for weight, share in terms) / total
        return min(self.cap if failed else 1.0, max(0.0, score))

    def _share(self, name: str, grade: float | None) -> float | None:
        """Return a grade as a share of the scale; ``None`` if the criterion does not apply."""
        low, high = self.scale
        if grade is None and self.not_applicable:
            return None
        if grade is None or not is_number(grade) or not low <= grade <= high:
            fault = Fault.OUT_OF_RANGE if is_number(grade) else Fault.WRONG_SCHEMA
            raise JudgeReplyError(f"criterion {name!r}: grade {grade!r} is not a number from {low} to {high}", fault)
        return (grade - low) / (high - low)

    def prompt_fields(self, with_weights: bool = False) -> dict[str, str]:
        """Return the fields ``criteria`` and ``scale`` of a template; a judge that weighs criteria sees weights."""
        low, high = self.scale
        or_none = ", or null where a criterion does not apply" if self.not_applicable else ""
        scale = f"whole numbers from {low} (not met at all) to {high} (met in full){or_none}"
        lines: list[str] = []
        for criterion in self.criteria:
            notes = [f"weight {criterion.weight:g}"] * (criterion.weight != 1) + ["a must"] * criterion.must
            weight = f" ({', '.join(notes)})" if with_weights and notes else ""
            lines.append(f"- {criterion.name}: {criterion.description}{weight}")
            lines += [f"  - grade {grade}: {text}" for grade, text in criterion.anchors.items()]
        return {"criteria": "\n".join(lines), "scale": scale}

    def json_schema(self, reason_chars: int | None = None) -> dict[str, Any]:
        """Return the JSON schema of a verdict: ``{"correct": {"reason": "...", "score": 4}, ...}``.

        The model writes a reason before the score. Strict mode wants everything required and nothing added. Grades are
        an enum, because some models of Anthropic and OpenAI refuse ``minimum`` and ``maximum``; llama.cpp enforces
        ``reason_chars``, which Azure and Anthropic refuse.
        """
        grades = range(self.scale.low, self.scale.high + 1)
        score: dict[str, Any] = {"type": "integer", "enum": [*grades]}
        if self.not_applicable:
            score = {"type": ["integer", "null"], "enum": [*grades, None]}
        graded = _reasoned("score", score, reason_chars) if self.reasoned else _strict_object({"score": score})
        return _strict_object(dict.fromkeys(self.names, graded))


def preference_schema(reason_chars: int | None = None) -> dict[str, Any]:
    """Return the JSON schema of a pairwise verdict: ``{"reason": "...", "verdict": "A"}``."""
    return _reasoned("verdict", {"type": "string", "enum": ["A", "B", "tie"]}, reason_chars)


def _reasoned(name: str, value: dict[str, Any], reason_chars: int | None) -> dict[str, Any]:
    bound = {} if reason_chars is None else {"maxLength": reason_chars}
    return _strict_object({"reason": {"type": "string", **bound}, name: value})


def _strict_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _check_anchors(name: str, anchors: object) -> dict[int, str]:
    """Return anchors in the order of their grades; JSON has these as text."""
    result: dict[int, str] = {}
    for grade, text in anchors.items() if isinstance(anchors, Mapping) else [(None, None)]:
        number: Any = int(grade) if isinstance(grade, str) and re.fullmatch(r"-?\d{1,3}", grade) else grade
        if not is_number(number, whole=True) or not isinstance(text, str) or not text.strip():
            problem = f"criterion {name!r}: anchors={shorten(anchors)}: expected a text for each of some grades"
            raise JudgeSetupError(f"{problem}, such as {{1: 'No dose.', 5: 'The right dose.'}}")
        result[number] = " ".join(text.split())
    return dict(sorted(result.items()))


def _check_criteria(criteria: Sequence[Criterion | str], most: int) -> tuple[Criterion, ...]:
    """Return criteria, made of plain strings too: a word is its own name, other text is named by its number."""
    entries = (criteria,) if isinstance(criteria, Criterion | str) else criteria
    result = tuple(
        Criterion(entry if _NAME.fullmatch(entry) else f"c{number}", entry) if isinstance(entry, str) else entry
        for number, entry in enumerate(entries, 1)
    )
    if wrong := [entry for entry in result if not isinstance(entry, Criterion)]:
        fix = "write Criterion('name', 'What is graded'), or text"
        raise JudgeSetupError(f"criteria: {wrong[0]!r} is not a Criterion; {fix}")
    if not result:
        raise JudgeSetupError("criteria=[]: a judge grades at least one; give Criterion('correct', 'Is it right?')")
    if len(result) > most:
        raise JudgeSetupError(f"criteria: there are {len(result)}, and a judge is asked at most {most}")
    if not any(criterion.weight > 0 for criterion in result):
        problem = "none has a positive weight, so no score above 0 could be had; add what is good"
        raise JudgeSetupError(f"criteria: {problem}")
    if twice := [name for name, count in Counter(criterion.name for criterion in result).items() if count > 1]:
        raise JudgeSetupError(f"criteria: {twice} are named twice; each grade needs a name of its own")
    numbers: dict[str, int] = {}
    for number, criterion in enumerate(result, 1):
        if (first := numbers.setdefault(" ".join(criterion.description.split()).casefold(), number)) != number:
            raise JudgeSetupError(f"criteria {first} and {number} are the same: {shorten(criterion.description)}")
    return result


def _check_scale(scale: tuple[int, int]) -> Scale:
    """Return the ends of a scale; raise ``JudgeSetupError`` for anything but two whole numbers in order."""
    is_pair = isinstance(scale, tuple | list) and len(scale) == 2 and all(type(end) is int for end in scale)
    if not is_pair or not 0 < scale[1] - scale[0] < _MOST_STEPS:
        raise JudgeSetupError(
            f"scale={shorten(scale)}: expected two whole numbers, the worst grade first, then the best, and at most "
            f"{_MOST_STEPS} grades, such as (1, 5) or (0, 100)"
        )
    return Scale(*scale)
