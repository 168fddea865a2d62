"""Blame: what becomes of the calls that a worker was running when it ended, stood still, was late or lost an answer.

Pure: what happened, what ran and what was held against each call before go in, a :class:`Fate` for each call comes
out. Nothing here knows a process, a socket or a clock; the pool sees what happened and does as it is told here.

The rule behind all of it: a call pays only for what no other call can have done. Where several may have done it, each
runs again under terms that leave only itself, and what happens then is held against it.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import NamedTuple

from sandbox.workers.desk import BROKEN, CHANNEL_LOST
from sandbox.workers.job import Call, CallStatus, Terms

MAX_LOST = 3  # times a call's worker may be killed from outside before the call is given up as infrastructure
_CLOSED = "closed the worker's own descriptors"


class Fate(NamedTuple):
    """What becomes of a call that was not answered."""

    terms: Terms  # how it runs from now on
    status: CallStatus | None = None  # how it ended; ``None`` where it goes out again
    message: str = ""  # why it ended


class End(NamedTuple):
    """How a worker ended."""

    code: int  # its exit code, negative for a signal
    words: str = ""  # what the interpreter wrote as it crashed
    cut_off: bool = False  # whether its descriptors were closed or what it shares was written to
    malformed: str = ""  # what it wrote that its own code does not write; ``""`` for nothing
    out_of_memory: bool = False  # whether the kernel has killed for want of memory since this was last asked


def ended(end: End, suspects: Mapping[int, bool], sent: Mapping[int, Call], first: int) -> dict[int, Fate]:
    """Return the fates of the calls that may have brought a worker down; calls that are not named are innocent.

    Args:
        end: How it ended.
        suspects: The calls that ran then, and whether each had left-over threads beside it.
        sent: All calls that it had not answered.
        first: The first call that this worker was sent, where none can have run beside it; 0 where one can. Another
            call may be the cause of any other one's end, also one that was answered and left a thread.
    """
    if end.cut_off:
        message = describe_end(end.code) if end.code == BROKEN else f"the call {end.malformed or _CLOSED}"
        suspects = suspects or dict.fromkeys(sent, False)
    elif not killed_from_outside(end.code):
        message = describe_end(end.code)
    elif end.out_of_memory:
        message = "the machine ran out of memory and the kernel killed the worker"
    else:
        words = f"{describe_end(end.code)} from outside"
        return {ticket: lost(sent[ticket], words) for ticket in suspects}
    report = f"{message}\n{end.words}" if end.words else message
    planned = list(suspects) != [first]
    return {
        ticket: _crashed(sent[ticket], report, shared=end.cut_off or tainted, planned=planned)
        for ticket, tainted in suspects.items()
    }


def _crashed(call: Call, report: str, *, shared: bool, planned: bool) -> Fate:
    """Return the fate of a call that ran as its worker crashed; ``report`` is the message if the call is blamed.

    Another call may be the cause: beside it or before it in any worker (``shared``), before it or beside it in its own
    (``planned``).
    """
    if (shared or planned) and not call.terms.alone:
        return Fate(call.terms._replace(alone=True))
    if planned and not call.terms.fresh:
        return Fate(call.terms._replace(fresh=True))
    return Fate(call.terms, CallStatus.CRASHED, report)


def lost(call: Call, words: str, *, with_all: bool = False) -> Fate:
    """Return the fate of a call whose worker was killed or stopped from outside: the second time it goes alone.

    Where all workers were lost with it (``with_all``), it runs apart from all others from the second time on.
    """
    terms, times = call.terms, call.terms.lost + 1
    terms = terms._replace(lost=times, alone=terms.alone or times > 1, apart=terms.apart or (with_all and times > 1))
    if times < MAX_LOST:
        return Fate(terms)
    return Fate(terms, CallStatus.INFRASTRUCTURE, f"{words}, {times} times while this call ran")


def unanswered(call: Call, status: CallStatus, words: str) -> Fate:
    """Return the fate of a call whose answer never came, or was late beside left-over threads: once more, alone.

    Where it was alone already, it ends with the status and the words.
    """
    if not call.terms.alone:
        return Fate(call.terms._replace(alone=True))
    return Fate(call.terms, status, words)


def overdue(call: Call, *, tainted: bool) -> Fate:
    """Return the fate of one whose time is up; threads that others left may have slowed it."""
    late = late_words(call)
    return unanswered(call, CallStatus.TIMEOUT, late) if tainted else Fate(call.terms, CallStatus.TIMEOUT, late)


def late_words(call: Call) -> str:
    """Return what is told of a call that did not answer in time."""
    return f"no answer within {call.timeout_s:g} s"


def describe_end(code: int) -> str:
    """Return words for a worker's exit code, negative for a signal."""
    if code == CHANNEL_LOST:
        return "the worker's own descriptors were closed under it"
    if code == BROKEN:
        return "the worker's own code failed"
    if code >= 0:
        return f"the worker process exited with code {code}"
    try:
        return f"the worker process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"the worker process was ended by signal {-code}"


def killed_from_outside(code: int) -> bool:
    """Whether an end that nobody here asked for is one that a process does not bring upon itself."""
    return code in (-signal.SIGKILL, -signal.SIGTERM)
