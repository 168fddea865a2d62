"""What a judge's reply says: grades and reasons, or the error that tells why it says none.

It owns the reading of one reply and the combining of several. What may stand around the JSON is ``formats``'s, how
grades become a score ``rubric``'s, and grades weighted by likelihood ``likelihood``'s.

A reply is read or it is an error; no default grade exists here.
"""

from __future__ import annotations

import functools
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from builtin_rewards.judge.endpoint.values import Reply
from builtin_rewards.judge.errors import Fault, JudgeError, JudgeReplyError, JudgeUnavailableError
from builtin_rewards.judge.formats import Format, object_text
from builtin_rewards.judge.rubric import Rubric, Scale, preference_schema
from builtin_rewards.reading.values import read_json

Winner: TypeAlias = Literal["A", "B", "tie"]
"""The better of two answers."""

_SHOWN_CHARS = 200
_SHOWN_FAULTS = 3
_KEPT_MODELS = 64
_BROKEN_OFF = frozenset({"model_length", "max_tokens", "error", "abort"})
"""Ends that are none, beside OpenAI's ``length``: Mistral's at the end of its context, of others that fail midway."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge found.

    Attributes:
        grades: By criterion, on the rubric's scale; whole numbers unless combined or weighted. ``None`` where it does
            not apply.
        reasons: By criterion.
        score: What the grades come to, in [0, 1]; ``None`` where no criterion applies.
        spread: Standard deviation of the scores of the verdicts that it combines, over their number; 0.0 for one.
        samples: How many verdicts it combines.
    """

    grades: Mapping[str, float | None]
    reasons: Mapping[str, str]
    score: float | None
    spread: float = 0.0
    samples: int = field(default=1, kw_only=True)


@dataclass(frozen=True, slots=True)
class Preference:
    """Which of two answers a judge prefers, and why."""

    winner: Winner
    reason: str


def read_verdict(reply: Reply, rubric: Rubric, format: Format = Format.JSON_SCHEMA) -> Verdict:
    """Gives what a reply says, read strictly.

    The object has each criterion once and nothing else, each with a ``reason`` and a ``score`` and nothing else. A
    score is a whole number on the scale, or ``null`` where the rubric takes that; ``4.0`` is the whole number 4, as it
    is in JSON Schema, and ``"4"``, ``true`` and ``4.5`` are none. ``NaN``, ``Infinity`` and a key that stands
    twice are no JSON.

    Args:
        reply: What the judge replied.
        rubric: What it was asked.
        format: What it was asked for; tells what may stand around the object, see :func:`formats.object_text`.

    Raises:
        JudgeReplyError: It says no verdict. The first of these faults that applies: ``REFUSED``, ``TRUNCATED`` (even
            if what came is whole by chance), ``CONTENT_FILTER``, ``EMPTY``, ``UNREADABLE``, ``WRONG_SCHEMA``,
            ``OUT_OF_RANGE``.
    """
    filled = _read(reply, format, _verdict_model(rubric.names, rubric.scale, rubric.not_applicable))
    graded = [(criterion.name, getattr(filled, f"criterion_{at}")) for at, criterion in enumerate(rubric.criteria)]
    grades = {name: given.score for name, given in graded}
    return Verdict(grades, {name: given.reason for name, given in graded}, rubric.normalised(grades))


def read_preference(reply: Reply, format: Format = Format.JSON_SCHEMA) -> Preference:
    """Gives which of two answers a reply prefers, read as strictly as :func:`read_verdict` reads.

    Raises:
        JudgeReplyError: It says none; the faults are those of :func:`read_verdict` but ``OUT_OF_RANGE``.
    """
    filled = _read(reply, format, _preference_model())
    return Preference(getattr(filled, "winner"), getattr(filled, "reason"))  # noqa: B009 (fields made at run time)


def combine(verdicts: Sequence[Verdict | JudgeError], rubric: Rubric) -> Verdict:
    """Gives the mean of several verdicts on the same completion, with their spread.

    Grades are means by criterion, and the reasons are those of the verdict whose score is nearest to the mean's, the
    first of such. More than half must be verdicts: from fewer the completion would be scored by whichever question
    happened to be answered. None that is missing counts as a grade.

    Args:
        verdicts: What became of each sample.
        rubric: What was asked.

    Raises:
        ValueError: There are none at all.
        JudgeReplyError: Half of the replies or more are no verdict.
        JudgeUnavailableError: There are too few verdicts only because replies could not be had.
    """
    read = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]
    lost = [error for error in verdicts if isinstance(error, JudgeError)]
    if not verdicts:
        raise ValueError("combine: no verdicts were given; a judge takes at least one sample")
    if 2 * len(read) <= len(verdicts):
        raise _too_few(lost, len(verdicts)) from lost[0]
    grades = {name: _mean([verdict.grades[name] for verdict in read]) for name in rubric.names}
    score = rubric.normalised(grades)
    scores = [verdict.score for verdict in read if verdict.score is not None]
    nearest = min(read, key=lambda verdict: abs((verdict.score or 0.0) - (score or 0.0)))
    return Verdict(grades, nearest.reasons, score, statistics.pstdev(scores) if scores else 0.0, samples=len(read))


def joined(parts: Sequence[Verdict], rubric: Rubric) -> Verdict:
    """Gives the verdict that verdicts on one criterion each make together."""
    grades = {name: grade for part in parts for name, grade in part.grades.items()}
    reasons = {name: reason for part in parts for name, reason in part.reasons.items()}
    return Verdict(grades, reasons, rubric.normalised(grades))


def _mean(grades: Sequence[float | None]) -> float | None:
    """Gives the mean of the grades; ``None`` where more than half say that there is none to give."""
    given = [grade for grade in grades if grade is not None]
    return statistics.fmean(given) if 2 * len(given) >= len(grades) else None


def _too_few(lost: Sequence[JudgeError], asked: int) -> JudgeError:
    unread = [error for error in lost if not isinstance(error, JudgeUnavailableError)]
    replies_decide = 2 * len(unread) >= asked
    kind = JudgeReplyError if replies_decide else JudgeUnavailableError
    to_blame = unread if replies_decide else [error for error in lost if isinstance(error, JudgeUnavailableError)]
    named = ", ".join(f"{count} {fault or 'unknown'}" for fault, count in Counter(e.fault for e in lost).most_common())
    words = f"{asked - len(lost)} of {asked} samples gave a verdict, and more than half must: {named}"
    return kind(f"{words}; the first: {to_blame[0]}", Counter(error.fault for error in to_blame).most_common(1)[0][0])


def _read(reply: Reply, format: Format, model: type[BaseModel]) -> BaseModel:
    _check_ending(reply)
    try:
        value = read_json(object_text(reply.text, format))
    except ValueError as fault:
        raise _error(Fault.UNREADABLE, f"cannot be read as a verdict: {fault}", reply.text) from None
    try:
        return model.model_validate(value)
    except ValidationError as wrong:
        raise _misfit(wrong, reply.text) from None


def _check_ending(reply: Reply) -> None:
    """Raises for a reply that is no verdict whatever its text says."""
    if reply.refusal:
        raise _error(Fault.REFUSED, "is a refusal", reply.refusal)
    if reply.finish_reason == "length":
        raise _error(Fault.TRUNCATED, "was cut off at its length limit; raise max_tokens", reply.text)
    if (reply.finish_reason or "").lower() in _BROKEN_OFF:
        raise _error(Fault.TRUNCATED, f"was broken off (finish_reason {reply.finish_reason!r})", reply.text)
    if reply.finish_reason == "content_filter":
        raise _error(Fault.CONTENT_FILTER, "was ended by the provider's content filter", reply.text)
    if not reply.text.strip():
        raise _error(Fault.EMPTY, f"is empty (finish_reason {reply.finish_reason!r})", reply.text)


def _misfit(wrong: ValidationError, text: str) -> JudgeReplyError:
    """Gives the error for JSON of another form; a grade off the scale is the fault only where the form is right."""
    faults = wrong.errors(include_url=False, include_context=False, include_input=False)
    off_scale = {"greater_than_equal", "less_than_equal"}
    wrong_form = [fault for fault in faults if fault["type"] not in off_scale]
    kind = Fault.WRONG_SCHEMA if wrong_form else Fault.OUT_OF_RANGE
    shown = (wrong_form or faults)[:_SHOWN_FAULTS]
    words = "; ".join(f"{_place(fault['loc'])}: {fault['msg']}" for fault in shown)
    return _error(kind, f"has not the form asked for: {words}" if wrong_form else f"has {words}", text)


def _place(location: Sequence[int | str]) -> str:
    return _escaped(".".join(str(step) for step in location)) or "the whole"


def _error(fault: Fault, words: str, text: str) -> JudgeReplyError:
    ending = "" if not text else f"; it begins {_escaped(text)}"
    return JudgeReplyError(f"the judge's reply {words}{ending}", fault)


def _escaped(text: str) -> str:
    """Gives the beginning of a text with what cannot be printed escaped, so that a log takes it on one line."""
    return repr(text[:_SHOWN_CHARS]) + ("..." if len(text) > _SHOWN_CHARS else "")


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _printable(value: object) -> object:
    """Gives text without half characters, which UTF-8 cannot take; a cut emoji in a reason spoils no verdict."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


_STRICT = ConfigDict(extra="forbid", strict=True)
_Reason = Annotated[str, BeforeValidator(_printable)]


@functools.lru_cache(_KEPT_MODELS)
def _verdict_model(names: tuple[str, ...], scale: Scale, not_applicable: bool) -> type[BaseModel]:
    """Gives the model of a verdict. Criteria are aliases, for their names may be no names of Python's."""
    score: Any = Annotated[int, BeforeValidator(_whole), Field(ge=scale.low, le=scale.high)]
    score = score | None if not_applicable else score
    grade = create_model("Grade", __config__=_STRICT, reason=(_Reason, ...), score=(score, ...))
    fields: dict[str, Any] = {f"criterion_{at}": (grade, Field(alias=name)) for at, name in enumerate(names)}
    return create_model("Grades", __config__=_STRICT, **fields)


@functools.cache
def _preference_model() -> type[BaseModel]:
    (choice,) = (name for name in preference_schema()["properties"] if name != "reason")
    return create_model("Preferred", __config__=_STRICT, reason=(_Reason, ...), winner=(Winner, Field(alias=choice)))
