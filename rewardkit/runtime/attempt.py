"""One attempt at one call: arguments are bound, the function runs, its return value is judged."""

from __future__ import annotations

import inspect
import os
import resource
import traceback
from builtins import (  # noqa: UP029 - a call may have patched them by the time that its value is judged
    float,
    getattr,
    hasattr,
    int,
    isinstance,
    issubclass,
    len,
    list,
    map,
    repr,
    str,
    tuple,
    type,
)
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import inf, isfinite, nan
from numbers import Rational, Real
from typing import TypeGuard, TypeVar

from rewardkit.declare.options import RewardOptions
from rewardkit.declare.spec import CallContext, Kind, RewardSpec
from rewardkit.errors import BadReturnError, CoercionError, InfrastructureError, RewardTextError
from rewardkit.forms import hint_of
from rewardkit.messages import why_odd_text
from rewardkit.runtime.card import lost_on_card
from rewardkit.runtime.finding import CallFinding, bare, describe, failure, type_name
from rewardkit.shown.text import beginning
from rewardkit.types import Arrived, Cause, Rollout, Score, Text, Unanswered
from sandbox.workers import INSIDE

_Error = TypeVar("_Error", bound=BaseException)
_MAX_REASON_CHARS = 10_000
_MAX_ERROR_CHARS = 2_000
_MAX_TRACE_CHARS = 8_000
_MAX_FRAMES = 8
_OF_STEPS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "steps", "step_reward.py")
"""Where a step reward calls its author's function: a frame of ours."""


def attempt(
    spec: RewardSpec, rollouts: Sequence[Rollout | Arrived], context: CallContext, places: Sequence[int]
) -> CallFinding | float:
    """Run a plain reward once, on one rollout or on one group, and return the finding, a bare score as its number.

    Raises:
        KeyboardInterrupt: Somebody pressed Ctrl-C in the caller's own process; it does not reach workers.
    """
    try:
        value = spec.function(**spec.bind(rollouts, context, places))
    except BaseException as error:
        if _is(error, KeyboardInterrupt) and INSIDE not in os.environ:
            raise
        return _with_hint(spec, failure_of(error))
    is_plain = not spec.reads_text or type(rollouts[0].completion) is str
    if type(value) is float and spec.any_finite_score and is_plain and value - value == 0.0:
        return value  # the usual case; inf - inf and nan - nan are not 0
    return _with_notes(spec, finding_of(spec, value, len(rollouts)), rollouts)


async def attempt_async(
    spec: RewardSpec, rollouts: Sequence[Rollout | Arrived], context: CallContext, places: Sequence[int]
) -> CallFinding:
    """Run an ``async def`` reward once, as :func:`attempt` does a plain one.

    Raises:
        CancelledError: The call was cancelled, by itself or by another.
    """
    from asyncio import CancelledError  # slow to import, and who awaits has it loaded

    try:
        value = await spec.function(**spec.bind(rollouts, context, places))
    except CancelledError:
        raise
    except BaseException as error:
        return _with_hint(spec, failure_of(error))
    return _with_notes(spec, finding_of(spec, value, len(rollouts)), rollouts)


def finding_of(spec: RewardSpec, value: object, rollouts: int) -> CallFinding:
    """Return the finding of a returned value: a score, a skip, or ``bad_return``."""
    if spec.kind is Kind.SINGLE:
        return _finding_of_row(spec.options, value)
    try:
        return _group(spec.options, value, rollouts)
    except BaseException as error:  # a value whose own methods raise
        return _unreadable(value, error)


def _finding_of_row(options: RewardOptions, value: object) -> CallFinding:
    """Return the finding of a value that was returned for one rollout or for one step of it."""
    try:
        return _row(options, value)
    except BaseException as error:
        return _unreadable(value, error)


def score_of(options: RewardOptions, value: object) -> Score:
    """Return the score of a value that was returned for one rollout or one step of it; ``Score(None)`` for a skip.

    Raises:
        ValueError: The value makes no score; the message says why.
    """
    finding = _finding_of_row(options, value)
    if finding.error is not None:
        raise ValueError(finding.error)
    return Score(finding.score, finding.reason, finding.metrics, finding.unanswered)


def _unreadable(value: object, error: BaseException) -> CallFinding:
    return _bad(f"returned a {type_name(value)} that cannot be read: {type_name(error)}: {_message(error)}")


def _row(options: RewardOptions, value: object) -> CallFinding:
    """Return the finding of a value for one rollout; a value whose own methods raise, raises here."""
    if value is None:
        return CallFinding()
    if isinstance(value, Score):
        return _of_score(options, value)
    number = value if type(value) is float else _number(value)
    if number is None:
        return _bad(f"returned {describe(value)}; expected a finite number, a Score or None{_hint(value)}")
    if not isfinite(number):
        return _bad(f"returned {_not_finite(value, number)}; expected a finite number, a Score or None")
    if options.score_range is not None and not options.score_range[0] <= number <= options.score_range[1]:
        return _bad(f"returned {number!r}, outside score_range={options.score_range}")
    return bare(number)


def _of_score(options: RewardOptions, score: Score) -> CallFinding:
    """Return the finding of a ``Score``: its texts cleaned, its metrics as floats."""
    if isinstance(score.value, Score):
        return _bad("returned a Score inside a Score")
    finding = _row(options, score.value)
    if finding.cause is not None:
        return finding
    if not isinstance(score.metrics, Mapping):
        return _bad(f"returned metrics={describe(score.metrics)}; expected a dict of numbers")
    metrics: dict[str, float] = {}
    for name, value in score.metrics.items():
        number = _number(value)
        if number is None or not isfinite(number):
            text = describe(value) if number is None or isinstance(value, float) else _not_finite(value, number)
            return _bad(f"returned metric {name!r}={text}; expected a finite number")
        metrics[_clean(str(name), _MAX_ERROR_CHARS)] = number
    reason = None if score.reason is None else _clean(str(score.reason), _MAX_REASON_CHARS)
    return CallFinding(finding.score, reason, metrics, tuple(map(_clean_unanswered, score.unanswered)))


def _clean_unanswered(unanswered: Unanswered) -> Unanswered:
    """Return it with its texts cleaned and shortened and its count an int: the reward's author may put anything in."""
    texts = (unanswered.name, unanswered.kind, unanswered.message)
    name, kind, message = (_clean(str(text), _MAX_ERROR_CHARS) for text in texts)
    return Unanswered(name, kind, message, int(unanswered.requests))


def _group(options: RewardOptions, value: object, rollouts: int) -> CallFinding:
    """Return the finding of a group's values; an exception among them is the failure of its rollout."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return _bad(f"returned {describe(value)}; expected a list of {rollouts} scores{_hint(value)}")
    if len(value) != rollouts:
        return _bad(f"returned {len(value)} scores for a group of {rollouts} completions")
    return CallFinding(
        rows=tuple(failure_of(row, 0) if isinstance(row, Exception) else _row(options, row) for row in value)
    )


def _number(value: object) -> float | None:
    """Return a number as a float, infinite where it is too large for one; ``None`` for anything but a number."""
    if not isinstance(value, Real | Decimal) and hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if not isinstance(value, Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return inf  # the sign does not matter: neither is a score
    except ValueError:
        return nan  # a Decimal's signaling NaN


def _not_finite(value: object, number: float) -> str:
    """Return words for a number that is not a finite float: one that is too large, or one without end."""
    if isinstance(value, Decimal) and not value.is_finite():
        return describe(value)
    if not isinstance(value, Decimal | Rational):  # a float, or one of numpy's
        return repr(number) if value == number or value != value else f"{describe(value)}, too large for a float"
    return f"{type(value).__name__} too large for a float (at most 1.8e308)"


def _hint(value: object) -> str:
    """Return a hint at what to return in place of a value; close one that was not awaited, or Python warns of it."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        return " (it was not awaited: declare the reward with 'async def')"
    return next((hint for kind, hint in _RETURN_HINTS.items() if isinstance(value, kind)), "")


_RETURN_HINTS: dict[type, str] = {
    str: " (text is no score: return a number, and the text as Score(number, reason=text))",
    list: " (it scores one completion a call; from_trl of rewardkit.moving takes a function that returns a list)",
    tuple: " (a score with its reason is Score(number, reason))",
    dict: " (a score with numbers to log is Score(number, metrics={...}))",
}


def failure_of(error: BaseException, ours: int = 1) -> CallFinding:
    """Return the finding of an error; its traceback lacks the first ``ours`` frames."""
    try:
        if (finding := _own_failure(error)) is not None:
            return finding
        text = f"{type_name(error)}: {error}" if str(error) else type_name(error)
        text += _notes(error)
        if _is(error, MemoryError):
            text += _memory_limit()
        frames = traceback.extract_tb(error.__traceback__)[ours:]
        frames = [frame for frame in frames if frame.filename != _OF_STEPS][-_MAX_FRAMES:]
        trace = _clean("".join(traceback.format_list(frames)), _MAX_TRACE_CHARS) or None
        return failure(Cause.EXCEPTION, _clean(text, _MAX_ERROR_CHARS), trace)
    except BaseException as own_error:  # an error whose own __str__, or any attribute, raises
        text = f"{type_name(error)} (its message cannot be read: {type_name(own_error)})"
        return failure(Cause.EXCEPTION, _clean(text, _MAX_ERROR_CHARS))


def _own_failure(error: BaseException) -> CallFinding | None:
    """Return the finding of an error of rewardkit's own that has a cause of its own; ``None`` for others."""
    if _is(error, CoercionError):
        return failure(Cause.COERCION, _clean(_message(error), _MAX_ERROR_CHARS))
    if _is(error, InfrastructureError):
        return failure(Cause.INFRASTRUCTURE, _clean(_message(error), _MAX_ERROR_CHARS), is_final=not error.retry)
    if _is(error, RewardTextError):
        trace = error.trace and _clean(error.trace, _MAX_TRACE_CHARS)
        return failure(Cause(error.cause), _clean(_message(error), _MAX_ERROR_CHARS), trace)
    if (lost := lost_on_card(error)) is not None:
        return failure(Cause.INFRASTRUCTURE, _clean(lost, _MAX_ERROR_CHARS))
    return _bad(_message(error)) if _is(error, BadReturnError) else None


def _is(error: BaseException, kind: type[_Error]) -> TypeGuard[_Error]:
    """Return whether an error is of a kind, by its type alone: its ``__class__`` may lie."""
    return issubclass(type(error), kind)


def _message(error: BaseException) -> str:
    """Return an error's message with its notes, or a text that says that reading them raises."""
    try:
        return f"{error}{_notes(error)}"
    except BaseException as own_error:
        return f"(its message cannot be read: {type_name(own_error)})"


def _notes(error: BaseException) -> str:
    """Return an error's notes, such as the step of a completion that it comes from."""
    notes = getattr(error, "__notes__", None)
    return "".join(f" ({note})" for note in notes) if isinstance(notes, list) else ""


def _with_hint(spec: RewardSpec, finding: CallFinding) -> CallFinding:
    """Add a hint at the annotation to the error of a reward that took text for messages."""
    if finding.cause is not Cause.EXCEPTION or finding.error is None:
        return finding
    hint = hint_of(finding.error, [parameter.taken for parameter in spec.parameters if parameter.taken is not None])
    return finding._replace(error=finding.error + hint)


def _with_notes(spec: RewardSpec, finding: CallFinding, rollouts: Sequence[Rollout | Arrived]) -> CallFinding:
    """Add to the reasons of a reward that reads text what is odd in the text of completions in messages."""
    if not spec.reads_text or finding.cause is not None:
        return finding
    notes = [None if type(rollout.completion) is str else _note(rollout.completion) for rollout in rollouts]
    if not any(notes):
        return finding
    if spec.kind is Kind.SINGLE:
        return _noted(finding, notes[0])
    return finding._replace(rows=tuple(map(_noted, finding.rows, notes)))


def _note(completion: Text) -> str | None:
    try:
        return why_odd_text(completion)
    except Exception:  # a message may be an object of any kind
        return None


def _noted(finding: CallFinding, note: str | None) -> CallFinding:
    if note is None or finding.cause is not None:
        return finding
    return finding._replace(reason=note if finding.reason is None else f"{finding.reason} ({note})")


def _memory_limit() -> str:
    """Return a note on the limit on this process's memory, ``""`` without one."""
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if limit == resource.RLIM_INFINITY:
        return ""
    return f" (a worker may hold {limit / 2**30:.3g} GiB; see Runtime(memory_bytes=...))"


def _bad(text: str) -> CallFinding:
    return failure(Cause.BAD_RETURN, _clean(text, _MAX_ERROR_CHARS))


def _clean(text: str, limit: int) -> str:
    """Return plain text that any file and terminal can take: capped, lone surrogates escaped."""
    text = str.__str__(text)  # a subclass may have methods of its own
    return beginning(text, limit).encode("utf-8", "backslashreplace").decode()
