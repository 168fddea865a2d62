"""Fault isolation for callables that the author trusts: any hang, crash or leak costs that call alone.

    pool.py         takes calls from the parent's threads, and owns the one thread that does all the work
    supervisor.py   hears the workers that run calls and watches deadlines
    replacement.py  replaces workers that ended or never got ready, and the warden
    ledger.py       which jobs are on the way, and the result of each of their calls
    dispatch.py     which call goes to which worker next
    blame.py        decides what happens to the calls that a worker did not answer
    link.py         the parent's end of the warden, which begins and ends workers
    slot.py         the parent's view of one worker
    warden.py       the process that forks workers and cleans up after them; nursery.py forks those that load slowly
    worker.py       the process that runs calls: serial.py one at a time, threads.py and loop.py many at once
    desk.py         what these three have in common
    capture.py      what each call prints and logs; prints.py keeps it where the call never returns
    surroundings.py what a call changes for those after it, and is put back; originals.py the names that it patched
    page.py         the memory in which a worker says what it is doing
    clock.py        a call's clock, which stands still while a jail starts
    wire.py         frames, records and batches between parent and worker

*Covered:* exceptions, hangs (also with signals ignored), crashes, exits, runaway memory, floods of output,
left-over children and threads, closed descriptors, a killed parent. *Not covered:* code that means harm. A
worker has the user's rights; what a model wrote belongs in the jail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox.workers.capture import inline_capture
from sandbox.workers.clock import stopped
from sandbox.workers.collector import CollectorPaused
from sandbox.workers.job import Answer, Call, CallPool, CallResult, CallStatus, Handler, Job
from sandbox.workers.steady import INSIDE
from sandbox.workers.wire import encode_json

if TYPE_CHECKING:
    from sandbox.workers.pool import Target, WorkerPool
    from sandbox.workers.slot import Lane

__all__ = [
    "INSIDE",
    "Answer",
    "Call",
    "CallPool",
    "CallResult",
    "CallStatus",
    "CollectorPaused",
    "Handler",
    "Job",
    "Lane",
    "Target",
    "WorkerPool",
    "encode_json",
    "inline_capture",
    "stopped",
]

_LATE = {"Lane": "slot", "Target": "pool", "WorkerPool": "pool"}


def __getattr__(name: str) -> Any:
    """Load the pool when it is first used: an import of rewardkit does without it."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"sandbox.workers.{_LATE[name]}"), name)
