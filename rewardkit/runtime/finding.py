"""What became of one run of a reward, as a worker tells its parent: the fields, one encoder and one decoder.

A bare score leaves a worker as the number, anything else as JSON of the fields that say something:

    {"score": 0.5, "reason": "why", "metrics": {"m": 1.0}}     scored
    {"reason": "why"}                                          skipped
    {"cause": "exception", "error": "...", "traceback": "..."} failed
    {"rows": [{"score": 0.5}, {}]}                             a group, a finding for each rollout
"""

from __future__ import annotations

import sys
from builtins import (  # noqa: UP029 - a call may have patched them by the time that its value is judged
    abs,
    all,
    dict,
    float,
    int,
    isinstance,
    len,
    list,
    map,
    str,
    tuple,
    type,
    zip,
)
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rewardkit.shown.text import shorten
from rewardkit.types import Cause, Unanswered
from sandbox.workers import Answer, encode_json

_NO_METRICS: Mapping[str, float] = {}
_MAKE = tuple.__new__
_NAME_OF: Callable[[type], str] = type.__dict__["__name__"].__get__


class CallFinding(NamedTuple):
    """One run of a reward on one rollout or, with ``rows``, on a group."""

    score: float | None = None  # a finite number; ``None`` where it skipped or failed
    reason: str | None = None  # what the reward said of its score
    metrics: Mapping[str, float] = _NO_METRICS  # named finite numbers beside the score
    unanswered: tuple[Unanswered, ...] = ()  # the rewards that were asked inside this one and gave no score
    cause: Cause | None = None  # why it failed; ``None`` unless failed
    error: str | None = None  # what went wrong, in words; ``None`` unless failed
    traceback: str | None = None  # the reward's own frames, where it raised
    is_final: bool = False  # whether another attempt would not cure the failure, by the reward's own word
    rows: tuple[CallFinding, ...] = ()  # of a group, a finding for each rollout; then all else is empty


_EMPTY = CallFinding()
_BESIDE_SCORE = _EMPTY[1:]


def bare(score: float) -> CallFinding:
    """Return the finding of a score alone: once a call, and a named tuple's own way of being made takes longer."""
    return _MAKE(CallFinding, (score, *_BESIDE_SCORE))


def failure(cause: Cause, error: str, traceback: str | None = None, *, is_final: bool = False) -> CallFinding:
    """Return the finding of a failure."""
    return CallFinding(cause=cause, error=error, traceback=traceback, is_final=is_final)


def encode(finding: CallFinding | float) -> Answer:
    """Return the finding as a worker sends it: a bare score as its number, anything else as JSON."""
    if not isinstance(finding, CallFinding):
        return finding
    if finding.score is not None and finding[1:] == _BESIDE_SCORE:
        return finding.score
    return encode_json(_fields(finding))


def decode(answer: object, rollouts: int) -> CallFinding:
    """Return the finding of a worker's answer, whose JSON has been read.

    A call may write over what its worker says, so anything but a finding for so many rollouts counts as a crash.
    """
    if type(answer) is float and answer - answer == 0.0:  # inf - inf and nan - nan are not 0
        finding: CallFinding | None = bare(answer)
    elif type(answer) is dict and "rows" in answer:
        finding = _group_of(answer, rollouts)
    else:
        finding = _finding_of(answer)
    if finding is None or (rollouts != 1 and not finding.rows and finding.cause is None):  # a group has a score each
        return failure(Cause.CRASHED, f"the worker's answer was overwritten: {describe(answer)}")
    return finding


def describe(value: object) -> str:
    """Return a value's type and repr; of a long value only a part is written out."""
    return f"{type_name(value)} {shorten(value)}"


def type_name(value: object) -> str:
    """Return the name of a value's type, whatever its metaclass makes of that."""
    return str.__str__(_NAME_OF(type(value)))


def _fields(finding: CallFinding) -> dict[str, object]:
    """Return the fields that differ from their defaults."""
    if finding.rows:
        return {"rows": [_fields(row) for row in finding.rows]}
    pairs = zip(CallFinding._fields, finding, _EMPTY, strict=True)
    return {name: value for name, value, empty in pairs if value != empty}


def _group_of(answer: dict[str, object], rollouts: int) -> CallFinding | None:
    """Return the finding of a group; ``None`` where the answer is not one finding for each rollout."""
    rows = answer["rows"]
    if len(answer) > 1 or type(rows) is not list or len(rows) != rollouts:
        return None
    findings = tuple(finding for finding in map(_finding_of, rows) if finding is not None)
    return CallFinding(rows=findings) if len(findings) == rollouts else None


def _finding_of(fields: object) -> CallFinding | None:
    """Return the finding of one rollout, after converting values in ``fields``; ``None`` where these are wrong."""
    if type(fields) is not dict:
        return None
    checks = _OF_FAILURE if "cause" in fields else _OF_SCORE
    for name, value in fields.items():
        check = checks.get(name)
        if check is None or not check(value):
            return None
    if "cause" in fields and "error" not in fields:
        return None
    if "unanswered" in fields:
        fields["unanswered"] = tuple(Unanswered(*record) for record in fields["unanswered"])
    if "cause" in fields:
        fields["cause"] = Cause(fields["cause"])
    return CallFinding(**fields)


def _is_number(value: object) -> bool:
    return type(value) in (float, int) and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def _is_text(value: object) -> bool:
    return type(value) is str


def _are_metrics(value: object) -> bool:
    return type(value) is dict and all(map(_is_number, value.values()))


def _are_unanswered(records: object) -> bool:
    return type(records) is list and all(
        isinstance(record, list | tuple) and [*map(type, record)] == [str, str, str, int] for record in records
    )


_CAUSES = frozenset(cause.value for cause in Cause)
_OF_SCORE: Mapping[str, Callable[[object], bool]] = {
    "score": _is_number,
    "reason": _is_text,
    "metrics": _are_metrics,
    "unanswered": _are_unanswered,
}
_OF_FAILURE: Mapping[str, Callable[[object], bool]] = {
    "cause": lambda value: type(value) is str and value in _CAUSES,
    "error": _is_text,
    "traceback": _is_text,
    "is_final": lambda value: value is True,
}
