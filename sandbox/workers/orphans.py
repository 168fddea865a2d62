"""What a lost warden leaves behind: descendants of its workers that are nobody's any more.

They are known by a mark in the environment that their warden was started with. *Not covered:* a process that
was given an environment of its own; machines without ``/proc``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

MARK = "REWARDKIT_POOL"
"""The environment variable that marks what a pool started."""
_ROUNDS = 50
_ROUND_S = 0.01


def new_mark() -> str:
    """Return a mark that no other pool has."""
    return f"{os.getpid()}-{os.urandom(8).hex()}"


def end_marked(mark: str) -> None:
    """Kill every process with this mark, until none is left or none of them dies."""
    for _ in range(_ROUNDS):
        found = _marked(f"{MARK}={mark}".encode())
        for process in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if not found:
            return
        time.sleep(_ROUND_S)


def _marked(wanted: bytes) -> list[int]:
    return [int(one.name) for one in Path("/proc").glob("[0-9]*") if wanted in _environment(one).split(b"\0")]


def _environment(process: Path) -> bytes:
    """Return a process's first environment; nothing where it is gone, has ended, or is somebody else's."""
    with contextlib.suppress(OSError):
        return (process / "environ").read_bytes()
    return b""
