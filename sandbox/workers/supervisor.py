"""The supervisor: it hears the workers that run calls, and watches the calls' deadlines.

Owns what a worker's messages mean, and what happens to one that is late, silent or full. It leaves to
:mod:`~sandbox.workers.blame` which call that counts against, to :mod:`~sandbox.workers.ledger` the answers themselves,
and to :mod:`~sandbox.workers.replacement` the worker after this one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

from sandbox.workers import blame
from sandbox.workers.blame import Fate
from sandbox.workers.dispatch import Dispatch
from sandbox.workers.job import CallStatus
from sandbox.workers.ledger import Ledger
from sandbox.workers.link import WardenLink
from sandbox.workers.process_state import sleeps
from sandbox.workers.replacement import Replacement
from sandbox.workers.slot import CUT_OFF_S, GRACE_S, Lane, Slot, State
from sandbox.workers.wire import MalformedError, parse_json

RETIRE_SHARE = 0.5  # a worker that holds more than this share of its memory limit between calls is replaced: it leaks
_SHOWN_CHARS = 200


class Supervisor:
    """Hears one worker at a time, and looks at it when that is due; ``memory_bytes`` is what each may hold."""

    def __init__(
        self, warden: WardenLink, dispatch: Dispatch, ledger: Ledger, replacement: Replacement, memory_bytes: int | None
    ) -> None:
        self._warden = warden
        self._dispatch = dispatch
        self._ledger = ledger
        self._replacement = replacement
        self._leak_bytes = math.inf if memory_bytes is None else RETIRE_SHARE * memory_bytes

    def hear(self, slot: Slot) -> None:
        """Do what a worker's messages ask for, and note if it can send no more."""
        assert slot.channel is not None
        frames, end = [], None
        try:
            for frame in slot.channel.receive():
                frames.append(parse_json(frame))
        except (EOFError, OSError, MalformedError) as reason:
            end = reason
        for frame in frames:
            if not self._obey(slot, frame):
                end = MalformedError(f"the message {str(frame)[:_SHOWN_CHARS]}")
                break  # what follows would have the worker run others before it is dealt with
        if isinstance(end, MalformedError):
            self._warden.distrust(slot, f"wrote to the worker's own descriptors: {end}")
        elif end is not None:  # it is dying, or a call closed its descriptors
            self._warden.deafen(slot)
            if slot.state is State.READY:
                slot.state, slot.check_at = State.CUT_OFF, time.monotonic() + CUT_OFF_S

    def _obey(self, slot: Slot, frame: object) -> bool:
        """Do what a worker's message asks for; return whether a worker's own code sends it at this time."""
        assert slot.reader is not None  # open as long as the channel is, and so is the page
        assert slot.page is not None
        match frame:
            case ["ready", int(threads)] if slot.state is State.STARTING:
                slot.state, slot.failed_starts, slot.check_at, slot.loaded = State.READY, 0, math.inf, True
                slot.threads = threads
                slot.load_s = max(slot.load_s, time.monotonic() - slot.began)
            case ["load_error", str(message)] if slot.state is State.STARTING:
                self._replacement.failed_start(slot, message, last=not slot.loaded)
            case ["done", int(first), int(done), bool(tainted), int(held_bytes)] if slot.is_at(first, done):
                self._chunk_done(slot, done, tainted, held_bytes > self._leak_bytes)
            case ["wake", int(held_bytes)]:
                slot.page.woken, slot.leaks = False, held_bytes > self._leak_bytes
                self._ledger.collect(slot)
                self._settle(slot)
            case ["emptied"] if slot.emptying:
                slot.emptying, slot.check_at = False, math.inf
                slot.reader.restart()
            case _:
                return slot.state is State.DYING  # what it wrote before it was killed is of no use any more
        return True

    def _chunk_done(self, slot: Slot, done: int, tainted: bool, leaks: bool) -> None:
        """Queue again what the worker gave back, send it the next chunk, and only then read its results."""
        self._ledger.send_again(slot, slot.chunk[done:])
        answers, finished, slot.tainted = slot.unread_answers(), slot.finish_chunk(), tainted
        grown = slot.reader is not None and slot.reader.large
        # A call that is to run alone is not sent before it is known whether these answers can be read.
        alone = self._dispatch.has_alone(slot)
        if slot.state is State.READY and not leaks and not grown and not alone:
            self._dispatch.feed_serial(slot)
        self._ledger.take_chunk(slot, finished, done, answers)
        if leaks:
            self._warden.retire(slot)
        else:
            self._tidy(slot)

    def look(self, slot: Slot, now: float) -> None:
        """Look at what a worker does, as :attr:`Slot.look_at` says, and give up what is late."""
        if slot.state is not State.READY:
            self._replacement.look(slot, now)
            return
        if slot.emptying:
            self._warden.retire(slot)
            return
        overdue = slot.overdue(now)
        if slot.was_halted(now, overdue):
            self._lose_halted(slot)
            return
        if not overdue:
            self._ledger.collect(slot)
            if slot.lane is not Lane.SERIAL:
                self._settle(slot)
        if slot.stalled(now):
            self._ledger.collect(slot)
            if sleeps(slot.process):
                message = "the worker waits for calls, and its answer is lost"
                self._ledger.lose(slot, list(slot.sent), CallStatus.CRASHED, message)
            else:
                self._ledger.count_lost(slot, slot.sent, "the worker stood still")
            self._warden.retire(slot)
        elif slot.expired(now):
            self._ledger.collect(slot)
            self._ledger.lose(slot, slot.expired(now), CallStatus.TIMEOUT)
            self._warden.retire(slot)
        if not overdue or slot.state is not State.READY:
            return
        self._ledger.collect(slot)
        sure = slot.overdue(now)  # read again: a ticket may have been seen beside its predecessor's start
        overdue = {ticket: tainted for ticket, tainted in overdue.items() if ticket in sure}
        late = {ticket: tainted for ticket, tainted in overdue.items() if ticket in slot.sent}
        if slot.lane is Lane.THREADS:
            self._threads_overdue(slot, late, now)
        elif late or (overdue and slot.lane is Lane.ASYNCIO):  # it may be held by a call that was given up already
            if not late:
                self._ledger.count_lost(slot, slot.sent, "a call that was given up held the event loop")
            for ticket, tainted in late.items():
                slot.fates[ticket] = _overdue(slot, ticket, tainted)
            self._warden.retire(slot)

    def _lose_halted(self, slot: Slot) -> None:
        """Replace a worker that was stopped from outside: the calls that it ran are lost, and none was late."""
        self._ledger.collect(slot)
        running = [ticket for ticket in slot.suspects() if ticket in slot.sent]
        self._ledger.count_lost(slot, running or slot.sent, blame.HALTED)
        self._warden.retire(slot)

    def _threads_overdue(self, slot: Slot, overdue: Mapping[int, bool], now: float) -> None:
        """Give late calls up and leave their threads; but if one call holds the interpreter, find out which."""
        if not slot.breathes(now) and len(slot.sent) > 1:
            for _, call in slot.sent.values():
                call.terms = call.terms._replace(alone=True)
            self._warden.retire(slot)
            return
        fates = {ticket: _overdue(slot, ticket, tainted) for ticket, tainted in overdue.items()}
        slot.given_up += len(fates)
        self._ledger.answer_for(slot, fates)
        self._ledger.send_again(slot, [ticket for ticket in fates if ticket in slot.sent])
        self._settle(slot)

    def _settle(self, slot: Slot) -> None:
        """Replace a worker whose stuck threads are many, or that has nothing else to do, or that leaks."""
        if (slot.given_up and (not slot.sent or slot.given_up >= slot.width)) or (slot.leaks and not slot.sent):
            self._warden.retire(slot)
        elif not slot.sent:
            slot.check_at = math.inf
            self._tidy(slot)

    def _tidy(self, slot: Slot) -> None:
        """Have an idle worker empty its results file once that has grown large."""
        if slot.state is State.READY and not slot.sent and slot.reader is not None and slot.reader.large:
            slot.emptying, slot.check_at = True, time.monotonic() + GRACE_S
            slot.tell(("empty",))


def _overdue(slot: Slot, ticket: int, tainted: bool) -> Fate:
    """Return the fate of a call whose time is up; threads that nobody counts, such as C's, make it run alone once."""
    call = slot.sent_call(ticket)
    tainted = tainted or (slot.lane is not Lane.THREADS and not call.terms.alone and slot.has_more_threads())
    return blame.overdue(call, tainted=tainted, is_first=ticket == slot.first_alone)
