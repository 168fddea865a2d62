"""Blame: what happens to the calls that a worker was running when it ended, stood still, was late or lost an answer.

Pure: what happened, what ran and the earlier terms of each call go in, a :class:`Fate` for each call comes out.

The rule behind all of it: a call pays only for what no other call can have done. Where several may have done it, each
runs again under terms that leave only itself, and what happens then counts against it.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import NamedTuple

from sandbox.workers.desk import BROKEN, CHANNEL_LOST
from sandbox.workers.job import Call, CallStatus, Terms

MAX_LOST = 3  # times a call's worker may be killed from outside before the call is given up as infrastructure
HALTED = "the worker was stopped from outside"
_CLOSED = "closed the worker's own descriptors"


class Fate(NamedTuple):
    """What happens to a call that was not answered."""

    terms: Terms  # how it runs from now on
    status: CallStatus | None = None  # how it ended; ``None`` where it goes out again
    message: str = ""  # why it ended


class End(NamedTuple):
    """How a worker ended."""

    code: int  # its exit code, negative for a signal
    console: str = ""  # what the interpreter wrote as it crashed
    cut_off: bool = False  # whether its descriptors were closed or what it shares was written to
    malformed: str = ""  # what it wrote that its own code does not write; ``""`` for nothing
    out_of_memory: bool = False  # whether the kernel has killed for want of memory since the last worker's end


def fates_after_end(
    end: End, suspects: Mapping[int, bool], sent: Mapping[int, Call], first_alone: int
) -> dict[int, Fate]:
    """Return the fates of the calls that may have brought a worker down; calls that are not named are innocent.

    Args:
        end: How the worker ended.
        suspects: The calls that ran then, and whether each had left-over threads beside it. Where the worker was cut
            off and no call ran, all that it had not answered are suspects.
        sent: All that it had not answered.
        first_alone: The ticket of the worker's first call if nothing can have run beside it, else 0. Any other suspect
            may owe its end to another call, even to one that was answered and left a thread.
    """
    if not end.cut_off and killed_from_outside(end.code) and not end.out_of_memory:
        reason = f"{describe_end(end.code)} from outside"
        return {ticket: lost(sent[ticket], reason) for ticket in suspects}
    if end.cut_off and not suspects:
        suspects = dict.fromkeys(sent, False)
    cause = _cause(end)
    report = f"{cause}\n{end.console}" if end.console else cause
    is_only_first = list(suspects) == [first_alone]  # no call ran before or beside it that can have prepared this
    return {
        ticket: _crashed(sent[ticket], report, shared=end.cut_off or tainted, planned=not is_only_first)
        for ticket, tainted in suspects.items()
    }


def _cause(end: End) -> str:
    """Return why a worker ended, as the call that is blamed reports it."""
    if end.cut_off and end.code != BROKEN:
        return f"the call {end.malformed or _CLOSED}"
    if not end.cut_off and killed_from_outside(end.code):  # and memory had run out: the others are lost
        return "the machine ran out of memory and the kernel killed the worker"
    return describe_end(end.code)


def _crashed(call: Call, report: str, *, shared: bool, planned: bool) -> Fate:
    """Return the fate of a call whose worker crashed; ``report`` is the message if the call is blamed.

    Another may be the cause: beside or before it in any worker (``shared``), or in its own (``planned``).
    """
    suspect = planned or (shared and not call.terms.alone)
    return _once_more(call, suspect) or Fate(call.terms, CallStatus.CRASHED, report)


def lost(call: Call, reason: str, *, with_all: bool = False) -> Fate:
    """Return the fate of a call whose worker was stopped from outside; if all were (``with_all``) it runs apart."""
    terms, times = call.terms, call.terms.lost + 1
    if times > 1:  # what another call left, such as a process that stops this one, may have done it
        terms = terms._replace(alone=True, fresh=True, apart=terms.apart or with_all)
    terms = terms._replace(lost=times)
    if times < MAX_LOST:
        return Fate(terms)
    return Fate(terms, CallStatus.INFRASTRUCTURE, f"{reason}, {times} times while this call ran")


def unanswered(call: Call, status: CallStatus, message: str) -> Fate:
    """Return the fate of a call without an answer: once more, alone; if it was alone, the status and the message."""
    if not call.terms.alone:
        return Fate(call.terms._replace(alone=True))
    return Fate(call.terms, status, message)


def overdue(call: Call, *, tainted: bool, is_first: bool = False) -> Fate:
    """Return the fate of a call whose time is up.

    ``tainted`` where threads or garbage that others left may have slowed it; its worker's first call met none.
    """
    suspect = tainted and not is_first
    return _once_more(call, suspect) or Fate(call.terms, CallStatus.TIMEOUT, timeout_message(call))


def disturbed(call: Call) -> Fate:
    """Return the fate of a call whose result another call may have changed, by a thread or a patched name."""
    message = "what other calls left in its worker disturbed it, again and again"
    return _once_more(call, True) or Fate(call.terms, CallStatus.CRASHED, message)


def _once_more(call: Call, suspect: bool) -> Fate | None:
    """Return the fate of a call to be made alone, and then in an unused worker; ``None`` where it is to pay."""
    if suspect and not call.terms.alone:
        return Fate(call.terms._replace(alone=True))
    if suspect and not call.terms.fresh:
        return Fate(call.terms._replace(fresh=True))
    return None


def timeout_message(call: Call) -> str:
    """Return the message of a call that did not answer in time."""
    return f"no answer within {call.timeout_s:g} s"


def describe_end(code: int) -> str:
    """Return a sentence for a worker's exit code, negative for a signal."""
    if code == CHANNEL_LOST:
        return "the worker's own descriptors were closed under it"
    if code == BROKEN:
        return "the worker's own code failed"
    if code >= 0:
        return f"the worker process exited with code {code}"
    name = signal.Signals(-code).name if -code in list(signal.Signals) else f"signal {-code}"
    return f"the worker process was ended by {name}"


def killed_from_outside(code: int) -> bool:
    """Return whether an unexpected end is one that a process does not bring upon itself."""
    return code in (-signal.SIGKILL, -signal.SIGTERM)
