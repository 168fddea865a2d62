"""What the kernel says of a worker's process: whether it sleeps, is stopped, or waits for a processor."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_NUMBERS_BYTES = 100  # more than the three numbers of a ``schedstat`` file take


class RunQueue:
    """How long the main thread of a process has waited for a processor, of the machine or of its group's share."""

    def __init__(self, process: int) -> None:
        self._descriptor = -1
        self._waited_s = 0.0
        with contextlib.suppress(OSError):
            self._descriptor = os.open(f"/proc/{process}/schedstat", os.O_RDONLY | os.O_CLOEXEC)

    def waited_s(self) -> float:
        """Return the seconds since the process began; those last read, or 0, where the kernel does not say."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            self._waited_s = int(os.pread(self._descriptor, _NUMBERS_BYTES, 0).split()[1]) / 1e9
        return self._waited_s

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def sleeps(process: int) -> bool:
    """Return whether a process waits for something; ``False`` if it was stopped or gets no processor, or if unknown."""
    return _state_of(process) == "S"


def is_halted(process: int) -> bool:
    """Return whether a process was stopped, by a signal, a tracer or the freezer of its group; ``False`` if unknown."""
    if _state_of(process) in ("T", "t"):
        return True
    with contextlib.suppress(OSError, ValueError):
        return any(map(_is_frozen, Path(f"/proc/{process}/cgroup").read_text().splitlines()))
    return False


def _is_frozen(line: str) -> bool:
    """Return whether the freezer has stopped the group in a line of a process's ``cgroup`` file."""
    _, controllers, group = line.split(":", 2)
    files = [f"freezer{group}/freezer.state"] if controllers == "freezer" else []
    if not controllers:  # the second version of groups, alone or beside the first
        files = [f"{group.lstrip('/')}/cgroup.events", f"unified{group}/cgroup.events"]
    for file in files:
        with contextlib.suppress(OSError):
            state = Path("/sys/fs/cgroup", file).read_text()
            return "frozen 1" in state or state.startswith("FR")  # freezing or frozen; of a group above it, too
    return False


def _state_of(process: int) -> str:
    """Return the letter for what a process does; ``""`` if unknown."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def out_of_memory_kills() -> int:
    """Return how many processes the kernel has killed for want of memory since it started; 0 if unknown."""
    with contextlib.suppress(OSError), open("/proc/vmstat") as file:
        for line in file:
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
