"""One attempt at one call: arguments are bound, the function runs, its return value is judged.

What comes out is a *finding*, a list that is JSON as it stands, because it may have to leave a worker process:

    [0, score]  [0, score, reason, metrics]     scored
    [1]         [1, reason, metrics]            skipped
    [..., [[name, kind, message, requests]]]    either of the last column, with the rewards that gave no score
    [2, cause, error, traceback]                failed
    [2, cause, error, traceback, True]          failed, and not to be tried again
    [3, [finding, ...]]                         a group, one finding a rollout
"""

from __future__ import annotations

import inspect
import json
import math
import os
import resource
import sys
import traceback
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Rational, Real
from typing import Any

from rewardkit.declare.options import RewardOptions
from rewardkit.declare.spec import CallContext, Kind, RewardSpec
from rewardkit.errors import BadReturnError, CoercionError, InfrastructureError, RewardTextError
from rewardkit.forms import hint_of
from rewardkit.types import Arrived, Cause, Rollout, Score, Unanswered
from sandbox.workers import INSIDE, Answer

SCORED, SKIPPED, FAILED, GROUP = 0, 1, 2, 3

Finding = list[Any]

_MAX_REASON_CHARS = 10_000
_MAX_ERROR_CHARS = 2_000
_MAX_TRACE_CHARS = 8_000
_MAX_FRAMES = 8
_OF_STEPS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "steps", "step_reward.py")
"""Where a step reward calls its author's function: a frame of ours."""
_SHOWN_CHARS = 80


def attempt(
    spec: RewardSpec, rollouts: Sequence[Rollout | Arrived], context: CallContext, places: Sequence[int]
) -> Finding:
    """Run a plain reward once, on one rollout or on one group, and return the finding.

    Raises:
        KeyboardInterrupt: Somebody pressed Ctrl-C in the caller's own process; it does not reach workers.
    """
    try:
        value = spec.function(**spec.bind(rollouts, context, places))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and INSIDE not in os.environ:
            raise
        return _with_hint(spec, _raised(error))
    if type(value) is float and spec.any_finite_score and value - value == 0.0:
        return [SCORED, value]  # the usual case; inf - inf and nan - nan are not 0
    return finding_of(spec, value, len(rollouts))


async def attempt_async(
    spec: RewardSpec, rollouts: Sequence[Rollout | Arrived], context: CallContext, places: Sequence[int]
) -> Finding:
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
        return _with_hint(spec, _raised(error))
    return finding_of(spec, value, len(rollouts))


def encode(finding: Finding) -> Answer:
    """Return the finding as it leaves the process: a bare score as the number, anything else as JSON text."""
    if len(finding) == 2 and finding[0] == SCORED:
        score: float = finding[1]
        return score
    return json.dumps(finding)


def decode(answer: Any, rollouts: int) -> Finding:
    """Return the finding that an answer stands for, once JSON has been read.

    A call may write over what its worker says, so anything but a finding for so many rollouts counts as a crash.
    """
    if type(answer) is float and answer - answer == 0.0:
        answer = [SCORED, answer]
    one = _is_finding(answer) and (rollouts == 1 or answer[0] == FAILED)  # a group has a score a rollout
    if one or _is_group(answer, rollouts):
        finding: Finding = answer
        return finding
    return [FAILED, Cause.CRASHED.value, f"the worker's answer was overwritten: {_shown(answer)}", None]


def _is_finding(finding: Any) -> bool:
    """Whether it is a finding of one rollout, told without a ``match``, which takes six times as long."""
    if type(finding) is not list or not finding:
        return False
    kind, size = finding[0], len(finding)
    if kind == SCORED:
        return size > 1 and _is_number(finding[1]) and (size == 2 or _says_more(*finding[2:]))
    if kind == SKIPPED:
        return size == 1 or _says_more(*finding[1:])
    if kind != FAILED or size not in (4, 5) or (size == 5 and finding[4] is not True):
        return False
    cause, error, trace = finding[1:4]
    texts = type(cause) is type(error) is str and (trace is None or type(trace) is str)
    return texts and cause in _CAUSES


def _says_more(reason: Any = None, metrics: Any = None, unanswered: Any = (), *rest: Any) -> bool:
    if rest or type(metrics) is not dict or not (type(reason) is str or reason is None):
        return False
    return all(map(_is_number, metrics.values())) and (unanswered == () or _are_unanswered(unanswered))


def _are_unanswered(records: Any) -> bool:
    return isinstance(records, list) and all(
        isinstance(one, list | tuple) and [*map(type, one)] == [str, str, str, int] for one in records
    )


def _is_group(finding: Any, rollouts: int) -> bool:
    if type(finding) is not list or len(finding) != 2 or finding[0] != GROUP or type(finding[1]) is not list:
        return False
    return len(finding[1]) == rollouts and all(map(_is_finding, finding[1]))


def _is_number(value: Any) -> bool:
    return type(value) in (float, int) and abs(value) <= sys.float_info.max


_CAUSES = frozenset(cause.value for cause in Cause)


def is_final(finding: Finding) -> bool:
    """Whether a finding is a failure that another attempt would not cure, by its own word."""
    return finding[0] == FAILED and len(finding) > 4


def finding_of(spec: RewardSpec, value: Any, rollouts: int) -> Finding:
    """Return the finding that a returned value makes: a score, a skip, or ``bad_return``."""
    if spec.kind is Kind.SINGLE:
        return _finding_of_one(spec.options, value)
    try:
        return _group(spec.options, value, rollouts)
    except BaseException as odd:  # a value whose own methods raise
        return _unreadable(value, odd)


def _finding_of_one(options: RewardOptions, value: Any) -> Finding:
    """Return the finding that a value makes, returned for one rollout or for one step of it."""
    try:
        return _one(options, value)
    except BaseException as odd:
        return _unreadable(value, odd)


def score_of(options: RewardOptions, value: Any) -> Score:
    """Return the score that a value makes, returned for one rollout or for one step of it; of a skip it is ``None``.

    Raises:
        ValueError: The value makes no score; the message says why.
    """
    outcome, *told = _finding_of_one(options, value)
    if outcome == FAILED:
        raise ValueError(told[1])
    return Score(*told) if outcome == SCORED else Score(None, *told)


def _unreadable(value: Any, odd: BaseException) -> Finding:
    return _bad(f"returned a {type(value).__name__} that cannot be read: {type(odd).__name__}: {_message(odd)}")


def _one(options: RewardOptions, value: Any) -> Finding:
    if value is None:
        return [SKIPPED]
    if isinstance(value, Score):
        return _of_score(options, value)
    number = value if type(value) is float else _number(value)
    if number is None:
        return _bad(f"returned {_shown(value)}; expected a finite number, a Score or None{_hint(value)}")
    if not math.isfinite(number):
        return _bad(f"returned {_not_finite(value, number)}; expected a finite number, a Score or None")
    if options.score_range is not None and not options.score_range[0] <= number <= options.score_range[1]:
        return _bad(f"returned {number!r}, outside score_range={options.score_range}")
    return [SCORED, number]


def _of_score(options: RewardOptions, score: Score) -> Finding:
    if isinstance(score.value, Score):
        return _bad("returned a Score inside a Score")
    finding = _one(options, score.value)
    if finding[0] == FAILED:
        return finding
    metrics: dict[str, float] = {}
    if not isinstance(score.metrics, Mapping):
        return _bad(f"returned metrics={_shown(score.metrics)}; expected a dict of numbers")
    for name, value in score.metrics.items():
        number = _number(value)
        if number is None or not math.isfinite(number):
            shown = _shown(value) if number is None or isinstance(value, float) else _not_finite(value, number)
            return _bad(f"returned metric {name!r}={shown}; expected a finite number")
        metrics[str(name)] = number
    reason = None if score.reason is None else _clean(str(score.reason), _MAX_REASON_CHARS)
    unanswered = [_record(one) for one in score.unanswered]
    return [*finding, reason, metrics, *([unanswered] if unanswered else [])]


def _record(one: Unanswered) -> Unanswered:
    """Return the record in texts that any file takes and a whole number, whatever the reward's author put in it."""
    name, kind, message = (_clean(str(text), _MAX_ERROR_CHARS) for text in (one.name, one.kind, one.message))
    return Unanswered(name, kind, message, int(one.requests))


def _group(options: RewardOptions, value: Any, rollouts: int) -> Finding:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return _bad(f"returned {_shown(value)}; expected a list of {rollouts} scores{_hint(value)}")
    if len(value) != rollouts:
        return _bad(f"returned {len(value)} scores for a group of {rollouts} completions")
    return [GROUP, [_raised(one, 0) if isinstance(one, Exception) else _one(options, one) for one in value]]


def _number(value: Any) -> float | None:
    """Return a number as a float, infinite where it is too large for one; ``None`` for anything but a number."""
    if not isinstance(value, Real | Decimal) and hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if not isinstance(value, Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf  # the sign does not matter: neither is a score
    except ValueError:
        return math.nan  # a Decimal's signaling NaN


def _not_finite(value: Any, number: float) -> str:
    """Return words for a number that is not a finite float: one that is too large, or one without end."""
    if isinstance(value, Decimal) and not value.is_finite():
        return _shown(value)
    if not isinstance(value, Decimal | Rational):  # a float, or one of numpy's
        return repr(number) if value == number or value != value else f"{_shown(value)}, too large for a float"
    return f"{type(value).__name__} too large for a float (at most 1.8e308)"


def _hint(value: Any) -> str:
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        return " (it was not awaited: declare the reward with 'async def')"
    return ""


def _raised(error: BaseException, ours: int = 1) -> Finding:
    """Return the finding that an error makes, without the first frames of its traceback, ``ours`` of them."""
    if isinstance(error, CoercionError):
        return [FAILED, Cause.COERCION.value, _clean(_message(error), _MAX_ERROR_CHARS), None]
    if isinstance(error, InfrastructureError):
        final = [] if error.retry else [True]
        return [FAILED, Cause.INFRASTRUCTURE.value, _clean(_message(error), _MAX_ERROR_CHARS), None, *final]
    if isinstance(error, RewardTextError):
        trace = error.trace and _clean(error.trace, _MAX_TRACE_CHARS)
        return [FAILED, error.cause, _clean(_message(error), _MAX_ERROR_CHARS), trace]
    if isinstance(error, BadReturnError):
        return _bad(_message(error))
    try:
        words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        words += _notes(error)
        if isinstance(error, MemoryError):
            words += _memory_limit()
        frames = traceback.extract_tb(error.__traceback__)[ours:]
        frames = [one for one in frames if one.filename != _OF_STEPS][-_MAX_FRAMES:]
        trace = "".join(traceback.format_list(frames)) or None
    except BaseException as worse:  # an error whose own __str__ raises
        words, trace = f"{type(error).__name__} (its message cannot be read: {type(worse).__name__})", None
    return [FAILED, Cause.EXCEPTION.value, _clean(words, _MAX_ERROR_CHARS), trace and _clean(trace, _MAX_TRACE_CHARS)]


def _message(error: BaseException) -> str:
    """Return an error's message with its notes, or words in their place where reading them raises."""
    try:
        return f"{error}{_notes(error)}"
    except BaseException as worse:
        return f"(its message cannot be read: {type(worse).__name__})"


def _notes(error: BaseException) -> str:
    """Return an error's notes, such as the step of a completion that it comes from."""
    notes = getattr(error, "__notes__", None)
    return "".join(f" ({note})" for note in notes) if isinstance(notes, list) else ""


def _with_hint(spec: RewardSpec, finding: Finding) -> Finding:
    """Add a hint at the annotation to an error that comes of text taken for messages, or the other way round."""
    if finding[1] == Cause.EXCEPTION:
        finding[2] += hint_of(finding[2], [p.taken for p in spec.parameters if p.taken is not None])
    return finding


def _memory_limit() -> str:
    """Return words for the limit on this process's memory, if it has one."""
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if limit == resource.RLIM_INFINITY:
        return ""
    return f" (a worker may hold {limit / 2**30:.3g} GiB; see Runtime(memory_bytes=...))"


def _bad(words: str) -> Finding:
    return [FAILED, Cause.BAD_RETURN.value, _clean(words, _MAX_ERROR_CHARS), None]


def _shown(value: Any) -> str:
    """Return a value's type and beginning; of a long list or text only the beginning is written out."""
    if isinstance(value, str | bytes | list | tuple):
        text = repr(value[:_SHOWN_CHARS])
    elif isinstance(value, dict | set | frozenset):
        text = f"of {len(value)}"
    else:
        text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + '...'}"


def _clean(text: str, limit: int) -> str:
    """Return text that any file and terminal can take: capped, lone surrogates escaped."""
    kept = text if len(text) <= limit else text[:limit] + f" [... {len(text) - limit:,} more characters]"
    return kept.encode("utf-8", "backslashreplace").decode()
