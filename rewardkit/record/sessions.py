"""Whether a process that records is still alive, as far as this machine can tell."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

QUIET_S = 3600.0  # Seconds without a batch after which a session of another machine counts as ended
_STARTED_S = 60.0  # How far the clock may have been set since the machine booted
_START_FIELD = 18  # The place of `starttime` among the numbers behind a process's state in `/proc`


def is_alive(session: Mapping[str, Any]) -> bool:
    """Return whether a session's process may still write.

    A process of this machine is looked up by id and start; for another machine's the time of its last sign counts.
    """
    if session["ended"] is not None:
        return False
    about = session["about"]
    process, host = about.get("process"), about.get("machine", {}).get("host")
    if isinstance(process, int) and process > 0 and host == platform.node():
        return _is_running(process, session["began"])
    return bool(time.time() - session["seen"] < QUIET_S)


def _is_running(process: int, began: float) -> bool:
    """Return whether a process of this machine runs, and is not a later one that was given the same id."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state, *numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
        started = int(booted.split()[1]) + int(numbers[_START_FIELD]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return True  # no Linux: the number alone has to do
    return state != "Z" and started < began + _STARTED_S  # Z: it has ended, and its parent has not asked
