"""Replacement: another worker for one that ended or never got ready, and another warden for one that was lost.

Owns the warden's messages, the count of losses, and the time that beginnings and ends may take. It leaves to
:mod:`~sandbox.workers.blame` which call a loss counts against, and to :mod:`~sandbox.workers.supervisor` workers that
run.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Sequence

from sandbox.errors import WorkerStartError
from sandbox.workers import blame, link
from sandbox.workers.blame import End
from sandbox.workers.desk import BROKEN, CHANNEL_LOST
from sandbox.workers.ledger import Ledger
from sandbox.workers.link import WardenLink
from sandbox.workers.process_state import out_of_memory_kills
from sandbox.workers.slot import AWAY_S, Slot, State

MAX_FAILED_STARTS = 3  # workers in a row that may die before they are ready
FORKED_START_S = 10.0  # seconds that a worker from a nursery has to become ready; it has loaded everything already
MAX_WARDENS = 5  # wardens that may be lost within WARDENS_S while no call runs; a call that runs is soon given up
WARDENS_S = 600.0  # seconds for which the loss of a warden counts


class Replacement:
    """Keeps a worker in every slot, and a warden to start them, until ``closing`` is set."""

    def __init__(
        self, slots: Sequence[Slot], warden: WardenLink, ledger: Ledger, load_timeout_s: float, closing: threading.Event
    ) -> None:
        self._slots = slots
        self._warden = warden
        self._ledger = ledger
        self._load_timeout_s = load_timeout_s
        self._closing = closing
        self._lost_wardens: deque[float] = deque(maxlen=MAX_WARDENS)  # when, of those lost while no call ran
        self._oom_kills = out_of_memory_kills()

    def start(self) -> None:
        """Start a warden and a worker in each slot, without waiting for them."""
        self._warden.start()
        for slot in self._slots:
            self._fill(slot)

    def _fill(self, slot: Slot) -> None:
        if self._ledger.broken is None and not self._closing.is_set():
            self._warden.spawn(slot)

    def hear(self) -> None:
        """Do what the warden's messages say; one that is gone, or says what no warden says, is replaced."""
        frames = self._warden.hear()
        if frames is None:
            self.lost_warden()
            return
        for frame in frames:
            match frame:
                case ["here"]:
                    pass
                case ["waits", int(index), int(generation)] if 0 <= index < len(self._slots):
                    if generation == self._slots[index].generation:
                        self._slots[index].waits_until = time.monotonic() + self._load_timeout_s + link.ANSWER_S
                case ["started", int(index), int(number), int(process), bool(forked)] if 0 <= index < len(self._slots):
                    self._begun(self._slots[index], number, process, from_nursery=forked)
                case ["ended", int(index), int(process), int(code)] if 0 <= index < len(self._slots):
                    self._ended(self._slots[index], process, code)
                case _:  # no warden says that
                    self.lost_warden(stopped=True)
                    return

    def look(self, slot: Slot, now: float) -> None:
        """Look at a worker that begins or ends and takes long over it."""
        if slot.state is State.STARTING and slot.process:
            if slot.check_at <= now - AWAY_S:
                slot.check_at = now + self._load_timeout_s  # we stood still ourselves, perhaps all of us
            else:
                self._loads_too_long(slot)
        elif slot.state in (State.STARTING, State.DYING):
            self._doubt_warden(slot, now)
        elif slot.state is State.CUT_OFF:
            self._warden.kill(slot)  # it lives on without its descriptors: whatever it runs closed them
        else:
            slot.check_at = math.inf

    def _begun(self, slot: Slot, generation: int, process: int, *, from_nursery: bool) -> None:
        """Note a forked worker: from a nursery it has its targets, otherwise it loads them from now on."""
        if generation == slot.generation:
            slot.process, slot.from_nursery, slot.began = process, from_nursery, time.monotonic()
            if slot.state is State.STARTING:
                start_s = min(FORKED_START_S, self._load_timeout_s) if from_nursery else self._load_timeout_s
                slot.check_at = slot.began + start_s

    def _ended(self, slot: Slot, process: int, code: int) -> None:
        """Handle the end of a worker: count what it finished, blame what it ran, send the others again."""
        if process != slot.process:
            return
        ours, was_starting = slot.state is State.DYING, slot.state is State.STARTING
        suspects = {} if was_starting else slot.suspects()
        self._ledger.collect(slot)
        console = slot.console()
        if was_starting and not slot.counted:
            message = f"{blame.describe_end(code)} while loading {slot.names}\n{console}"
            if self.failed_start(slot, message):
                return
            if slot.loaded and slot.failed_starts == MAX_FAILED_STARTS - 1:
                self.lost_warden(stopped=True)  # perhaps it is ill and not the worker: a call may lower its limits
                return
        self._ledger.answer_for(slot, slot.fates)
        if not slot.retiring:
            unfinished = {ticket: tainted for ticket, tainted in suspects.items() if ticket in slot.sent}
            cut_off = (ours and code == -signal.SIGKILL) or code in (BROKEN, CHANNEL_LOST) or bool(slot.malformed)
            killed = not cut_off and blame.killed_from_outside(code)
            end = End(code, console, cut_off, slot.malformed, killed and self._ran_out_of_memory())
            sent = {ticket: call for ticket, (_, call) in slot.sent.items()}
            self._ledger.answer_for(slot, blame.fates_after_end(end, unfinished, sent, slot.first_alone))
        self._ledger.send_again(slot, list(slot.sent))
        self._fill(slot)

    def _ran_out_of_memory(self) -> bool:
        before, self._oom_kills = self._oom_kills, out_of_memory_kills()
        return self._oom_kills > before

    def _loads_too_long(self, slot: Slot) -> None:
        """Give a worker up that loads for too long; where it could be loaded before, another one may do better."""
        message = (
            f"loading took longer than {self._load_timeout_s:g} s: {slot.names}; give it longer with "
            "load_timeout_s=..., on the command line with --load-timeout"
        )
        if not self.failed_start(slot, message, last=not slot.loaded):
            slot.retiring = True
            self._warden.kill(slot)

    def failed_start(self, slot: Slot, message: str, *, last: bool = False) -> bool:
        """Count a worker that never became ready; return whether no other is started."""
        if self._closing.is_set():
            return False
        slot.failed_starts += 1
        slot.counted = True
        slot.nursery_failed = slot.nursery_failed or slot.from_nursery
        if last or slot.failed_starts >= MAX_FAILED_STARTS:
            self._ledger.refuse(WorkerStartError(message))
            return True
        return False

    def _doubt_warden(self, slot: Slot, now: float) -> None:
        """Ask the warden whether it is there, since a worker's beginning or end is late; wake it if it was stopped.

        If it answers and reports no end, the worker cannot die (kernel or tracer) and its slot goes to another. A
        beginning takes longer where a nursery loads the targets; meanwhile the warden is only asked.
        """
        slot.check_at = now + link.WARDEN_DOUBT_S
        if self._warden.due == math.inf:
            if slot.state is State.STARTING and now < slot.waits_until:
                slot.doubted = False
            if slot.doubted:
                if slot.state is State.DYING:
                    self._ended(slot, slot.process, -signal.SIGKILL)
                else:
                    self.lost_warden(stopped=True)
                return
            slot.doubted = True
            self._warden.ask(now)
        self._warden.wake()

    def lost_warden(self, *, stopped: bool = False) -> None:
        """Start another warden for one that is gone or does nothing; find out during which call wardens are lost."""
        self._warden.stop(at_once=stopped)
        processes = [slot.process for slot in self._slots if slot.process]
        for process in processes:  # the kernel has ended those that have not asked it otherwise
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)
        self._warden.end_left_behind()
        suspected = sum(self._count_with_warden(slot) for slot in self._slots)
        for slot in self._slots:
            self._ledger.send_again(slot, list(slot.sent))
            self._warden.deafen(slot)
            slot.close()
        if not suspected:
            self._lost_wardens.append(time.monotonic())
        lost = self._lost_wardens
        if len(lost) == MAX_WARDENS and lost[-1] - lost[0] < WARDENS_S:
            self._ledger.refuse(WorkerStartError(f"the process that starts workers died {MAX_WARDENS} times"))
        else:
            self.start()

    def _count_with_warden(self, slot: Slot) -> int:
        """Count the warden's loss against the calls that a worker ran, and return how many they are."""
        if slot.page is None or slot.state is State.STARTING:
            return 0
        suspects = slot.suspects()
        self._ledger.collect(slot)
        self._ledger.answer_for(slot, slot.fates)
        alive = [ticket for ticket in suspects if ticket in slot.sent]
        if slot.retiring:
            return 0
        self._ledger.count_lost(slot, alive, "the process that starts workers was killed or stopped", with_all=True)
        return len(alive)
