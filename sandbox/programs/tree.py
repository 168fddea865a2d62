"""What the processes below a launcher use, as the kernel tells it: memory, tasks, and waiting for a processor."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple


class TreeUsage(NamedTuple):
    """What all processes of a program use now."""

    memory_bytes: int  # private and shared memory that is in use
    tasks: int  # processes and threads


class ProcessTree:
    """The processes below one process of ours.

    Args:
        root: Its id here.
        own_depth: How many processes on the way down are ours: 1, or 2 where the first waits for the second.
    """

    def __init__(self, root: int, own_depth: int) -> None:
        self._launcher = root
        for _ in range(own_depth - 1):
            self._launcher = next(_children(self._launcher), root)

    def usage(self) -> TreeUsage:
        """Return what the program uses; the launcher's own child that is about to become it counts, too."""
        memory_bytes = tasks = 0
        for process in self._below():
            with contextlib.suppress(OSError), open(f"/proc/{process}/status", "rb") as status:
                for line in status:
                    if line.startswith((b"RssAnon:", b"RssShmem:")):
                        memory_bytes += int(line.split()[1]) << 10
                    elif line.startswith(b"Threads:"):
                        tasks += int(line.split()[1])
        return TreeUsage(memory_bytes, tasks)

    def lag_s(self) -> float:
        """Return for how many seconds that thread waited for a processor which waited longest; 0 if nothing tells."""
        waits_ns = [0]
        for process in self._below():
            for thread in _list(f"/proc/{process}/task"):
                path = f"/proc/{process}/task/{thread}/schedstat"
                with contextlib.suppress(OSError, IndexError, ValueError), open(path, "rb") as schedule:
                    waits_ns.append(int(schedule.read().split()[1]))
        return max(waits_ns) / 1e9

    def _below(self) -> Iterator[int]:
        todo = [*_children(self._launcher)]
        while todo:
            process = todo.pop()
            yield process
            todo += _children(process)


def _children(process: int) -> Iterator[int]:
    for thread in _list(f"/proc/{process}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{process}/task/{thread}/children", "rb") as children:
            yield from map(int, children.read().split())


def _list(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # it has ended
        return []
