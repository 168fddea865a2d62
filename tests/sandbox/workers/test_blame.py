"""The table of docs/explanation/architecture/blame.md: what happened, what was held before, what follows.

No process is started: what ended, what ran and what was known of each call are plain values here.
"""

from __future__ import annotations

import signal

import pytest

from sandbox.workers import blame
from sandbox.workers.blame import End, Fate
from sandbox.workers.desk import BROKEN, CHANNEL_LOST
from sandbox.workers.job import USUAL, Call, CallStatus, Terms

ALONE = Terms(alone=True)
FRESH = Terms(alone=True, fresh=True)
KILLED = -signal.SIGKILL
SEGFAULT = -signal.SIGSEGV


def call(terms: Terms = USUAL) -> Call:
    return Call(0, (0,), 2.0, terms)


def fate_of(end: End, terms: Terms, *, tainted: bool = False, is_first: bool = True) -> Fate:
    """Return the fate of call 7, which ran as its worker ended."""
    (fate,) = blame.fates_after_end(end, {7: tainted}, {7: call(terms)}, 7 if is_first else 3).values()
    return fate


@pytest.mark.parametrize(
    ("end", "terms", "tainted", "is_first", "follows"),
    [
        # crashed: the worker ended by itself while one call ran, its first
        (End(3), USUAL, False, True, (USUAL, CallStatus.CRASHED)),
        (End(SEGFAULT), USUAL, False, True, (USUAL, CallStatus.CRASHED)),
        # not its first: an earlier call may have planned it, so once more alone, and then in an unused worker
        (End(3), USUAL, False, False, (ALONE, None)),
        (End(3), ALONE, False, False, (FRESH, None)),
        (End(3), ALONE, False, True, (ALONE, CallStatus.CRASHED)),
        (End(3), FRESH, False, True, (FRESH, CallStatus.CRASHED)),
        # tainted: threads of an earlier call may have done it
        (End(3), USUAL, True, True, (ALONE, None)),
        (End(3), ALONE, True, True, (ALONE, CallStatus.CRASHED)),
        # cut off: an earlier call may have closed the descriptors
        (End(KILLED, cut_off=True), USUAL, False, True, (ALONE, None)),
        (End(KILLED, cut_off=True), ALONE, False, False, (FRESH, None)),
        (End(CHANNEL_LOST, cut_off=True), ALONE, False, True, (ALONE, CallStatus.CRASHED)),
        (End(BROKEN, cut_off=True), FRESH, False, True, (FRESH, CallStatus.CRASHED)),
        # lost: killed from outside, so nobody's fault until it is too often
        (End(KILLED), USUAL, False, True, (Terms(lost=1), None)),
        (End(-signal.SIGTERM), Terms(lost=1), False, True, (Terms(lost=2, alone=True, fresh=True), None)),
        (End(KILLED), Terms(2, True, True), False, True, (Terms(3, True, True), CallStatus.INFRASTRUCTURE)),
        # unless the kernel says that memory had run out
        (End(KILLED, out_of_memory=True), USUAL, False, True, (USUAL, CallStatus.CRASHED)),
        (End(KILLED, out_of_memory=True), USUAL, False, False, (ALONE, None)),
    ],
)
def test_the_end_of_a_worker_is_held_against_a_call_only_where_nobody_else_can_have_done_it(
    end: End, terms: Terms, tainted: bool, is_first: bool, follows: tuple[Terms, CallStatus | None]
) -> None:
    """Each row of the table for workers that ended while a call ran."""
    assert fate_of(end, terms, tainted=tainted, is_first=is_first)[:2] == follows


def test_of_several_that_ran_each_goes_alone() -> None:
    """Where several calls ran as a process ended, none is blamed before it has run by itself."""
    sent = {1: call(), 2: call(), 3: call()}
    fates = blame.fates_after_end(End(SEGFAULT), {1: False, 2: False}, sent, 1)
    assert fates == {1: Fate(ALONE), 2: Fate(ALONE)}


def test_a_worker_cut_off_while_nothing_ran_doubts_all_that_it_was_sent() -> None:
    """Whatever closed its descriptors is among the calls that it has not answered."""
    fates = blame.fates_after_end(End(KILLED, cut_off=True), {}, {1: call(), 2: call()}, 1)
    assert fates == {1: Fate(ALONE), 2: Fate(ALONE)}


def test_who_did_not_run_is_innocent() -> None:
    """A worker that ends while no call runs costs no call anything."""
    assert blame.fates_after_end(End(SEGFAULT), {}, {1: call(), 2: call()}, 1) == {}


@pytest.mark.parametrize(
    ("terms", "follows"),
    [
        (USUAL, Terms(lost=1)),
        (Terms(lost=1), Terms(2, alone=True, fresh=True, apart=True)),
        (Terms(2, alone=True, fresh=True, apart=True), Terms(3, alone=True, fresh=True, apart=True)),
    ],
)
def test_who_loses_the_warden_twice_runs_apart(terms: Terms, follows: Terms) -> None:
    """From the second time on the call runs with nothing else in flight in any worker."""
    fate = blame.lost(call(terms), "the warden was killed", with_all=True)
    assert fate.terms == follows
    assert fate.status is (CallStatus.INFRASTRUCTURE if follows.lost == blame.MAX_LOST else None)


@pytest.mark.parametrize("status", [CallStatus.CRASHED, CallStatus.TIMEOUT, CallStatus.CANCELLED])
def test_an_answer_that_never_came_is_asked_for_once_more_alone(status: CallStatus) -> None:
    """Unanswered, expired and cancelled calls run once more, and only what they do alone counts."""
    assert blame.unanswered(call(), status, "why") == Fate(ALONE)
    assert blame.unanswered(call(ALONE), status, "why") == Fate(ALONE, status, "why")


@pytest.mark.parametrize(
    ("terms", "tainted", "is_first", "follows"),
    [
        (USUAL, False, False, Fate(USUAL, CallStatus.TIMEOUT, "no answer within 2 s")),
        (USUAL, True, False, Fate(ALONE)),
        (USUAL, True, True, Fate(USUAL, CallStatus.TIMEOUT, "no answer within 2 s")),
        (ALONE, True, False, Fate(FRESH)),
        (FRESH, True, False, Fate(FRESH, CallStatus.TIMEOUT, "no answer within 2 s")),
    ],
)
def test_a_late_call_times_out_unless_what_others_left_may_have_slowed_it(
    terms: Terms, tainted: bool, is_first: bool, follows: Fate
) -> None:
    """Beside threads or garbage of others its time counts from the run in which it was alone, in a new worker."""
    assert blame.overdue(call(terms), tainted=tainted, is_first=is_first) == follows


def test_a_disturbed_call_runs_alone_and_then_in_a_new_worker() -> None:
    """It ends all the same where that does not help."""
    assert [Fate(ALONE), Fate(FRESH)] == [blame.disturbed(call(terms)) for terms in (USUAL, ALONE)]
    assert CallStatus.CRASHED is blame.disturbed(call(FRESH)).status


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (End(3), "the worker process exited with code 3"),
        (End(SEGFAULT, "Fatal error"), "the worker process was ended by SIGSEGV\nFatal error"),
        (End(-99), "the worker process was ended by signal 99"),
        (End(KILLED, cut_off=True), "the call closed the worker's own descriptors"),
        (End(KILLED, cut_off=True, malformed="wrote junk"), "the call wrote junk"),
        (End(BROKEN, cut_off=True), "the worker's own code failed"),
        (End(KILLED, out_of_memory=True), "the machine ran out of memory and the kernel killed the worker"),
    ],
)
def test_a_crash_is_told_by_what_ended_the_worker(end: End, words: str) -> None:
    """The message names the exit code or signal, what was closed or written, and the interpreter's last words."""
    assert fate_of(end, FRESH).message == words
