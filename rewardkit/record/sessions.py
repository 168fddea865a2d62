"""Whether a process that records is still alive, and whether it recorded anything.

A process is looked up where it can be seen: on the machine that has not been booted since, in the same space of process
ids, by id and time of start. Elsewhere, in another container or on another machine, the time of its last sign counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rewardkit.errors import RecordError
from rewardkit.record.place import RecordPlace
from rewardkit.record.store import RecordConnection

_FILLED = ("batch", "metric")  # Tables of which one has a row once anything was recorded
QUIET_S = 3600.0  # Seconds without a batch after which a session of another machine counts as ended
_MISSED_SIGNS = 3  # Signs that may be missing of one that gives them
_STARTED_S = 60.0  # How far the clock may have been set since the machine booted
_START_FIELD = 18  # The place of `starttime` among the numbers behind a process's state in `/proc`


def process_start() -> dict[str, Any]:
    """Return what tells this process from all others, also of other boots and containers; empty without Linux."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return {"boot": boot, "namespace": os.readlink("/proc/self/ns/pid"), "ticks": _stat(os.getpid())[1]}
    except (OSError, ValueError, IndexError):
        return {}


def is_alive(session: Mapping[str, Any]) -> bool:
    """Return whether a session's process may still write.

    A process that can be seen from here is looked up by id and start; for another the time of its last sign counts.
    """
    if session["ended"] is not None:
        return False
    about = session["about"]
    process, host = about.get("process"), about.get("machine", {}).get("host")
    start, here = about.get("process_start"), process_start()
    is_known = isinstance(process, int) and process > 0
    if is_known and start and here:
        if (start["boot"], start["namespace"]) == (here["boot"], here["namespace"]):
            return running_since(process) == int(start["ticks"])
        if host == platform.node() and start["boot"] != here["boot"] and session["seen"] < _booted():
            return False  # the machine was booted since
    elif is_known and host == platform.node():
        return _is_running(process, session["began"])
    quiet_s = _MISSED_SIGNS * about["sign_s"] if "sign_s" in about else QUIET_S
    return bool(time.time() - session["seen"] < quiet_s)


def is_blank(record: RecordPlace, open_here: Collection[float]) -> bool:
    """Return whether a record is that of a start which ended before its first batch, and so blocks no other start.

    ``open_here`` are the times at which those of this process's sessions began that still record somewhere. What cannot
    be read as a record is not blank.
    """
    try:
        with record.errors(), contextlib.closing(record.connect_to_read()) as connection:
            filled = (connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in _FILLED)  # noqa: S608
            return all(row is None for row in filled) and not _others_write(connection, 2**62, open_here)
    except RecordError:
        return False


def is_contested(connection: RecordConnection, session: int, open_here: Collection[float]) -> bool:
    """Return whether somebody else records there as well, and began before this session of rank 0.

    Of two processes that find no record at one moment, one is told so. Sessions that are over are removed.
    """
    if _others_write(connection, session, open_here):
        return True
    connection.execute("DELETE FROM session WHERE rank = 0 AND id < ?", (session,))
    return False


def _others_write(connection: RecordConnection, before: int, open_here: Collection[float]) -> bool:
    """Return whether a session of rank 0 with a lower number may still write."""
    query = "SELECT began, seen, ended, about FROM session WHERE rank = 0 AND id < ?"
    for began, seen, ended, text in map(tuple, connection.execute(query, (before,)).fetchall()):
        about = json.loads(text)
        is_own = _identity(about) == (os.getpid(), platform.node(), process_start())
        may_write = began in open_here if is_own else True
        if may_write and is_alive({"began": began, "seen": seen, "ended": ended, "about": about}):
            return True
    return False


def _identity(about: Mapping[str, Any]) -> tuple[Any, ...]:
    start = about.get("process_start", process_start())  # a record from before it was noted
    return about.get("process"), about.get("machine", {}).get("host"), start


def running_since(process: int) -> int | None:
    """Return when a process of this machine started, in ticks since the boot; ``None`` where no such process runs."""
    try:
        state, started = _stat(process)
    except (OSError, ValueError, IndexError):
        return None
    return None if state in "ZX" else started  # Z: it has ended, and its parent has not asked


def _stat(process: int) -> tuple[str, int]:
    """Return a process's state and when it started, in ticks since the boot."""
    state, *numbers = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return state, int(numbers[_START_FIELD])


def _booted() -> float:
    """Return when this machine was booted, in seconds since 1970."""
    lines = Path("/proc/stat").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("btime ")).split()[1])


def _is_running(process: int, began: float) -> bool:
    """Return whether a process of this machine runs, and is not a later one that was given the same id."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state, ticks = _stat(process)
        started = _booted() + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return True  # no Linux: the number alone has to do
    return state != "Z" and started < began + _STARTED_S  # Z: it has ended, and its parent has not asked
