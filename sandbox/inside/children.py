"""Children of the zygote: forking one for a task of its own, and reaping every one of them in bounded time."""

from __future__ import annotations

import os
import resource
import select
import signal
import time
from collections.abc import Callable

from sandbox.jail import kernel

PARTS = 6  # parts of a bounded wait: if the process that waits stands still, as with the machine, it loses one part
_DEATH_S = 0.3  # seconds that a process may take to die of a kill


class Children:
    """Forks and reaps; ``worn`` says that something of an evaluation stayed in this process, which must then end."""

    def __init__(self) -> None:
        self.worn = False
        self.die_with_us = kernel.Prepared("prctl", kernel.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def fork_to(self, act: Callable[[], object]) -> tuple[int, int]:
        """Run ``act`` in a child, so that no name it reads stays in this memory; return the child's id and pidfd."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                self.die_with_us()
                act()
                code = 0
            finally:
                os._exit(code)
        return child, os.pidfd_open(child)

    def reap(self, process: int) -> tuple[int, resource.struct_rusage]:
        """Reap a dying process; return its status and usage. If it is late, count it as killed and set ``worn``."""
        until = 0.0
        while True:
            ended, status, usage = os.wait4(process, os.WNOHANG)
            if ended:
                return status, usage
            if not until:
                pidfd = os.pidfd_open(process)
                try:
                    dead = wait_readable(pidfd, _DEATH_S)
                finally:
                    os.close(pidfd)
                until = time.monotonic() + (_DEATH_S if dead else 0.0)
            elif time.monotonic() >= until:
                self.worn = True
                return int(signal.SIGKILL), resource.struct_rusage([0] * 16)

    def reap_all(self) -> None:
        """Reap all children, which have been killed; set ``worn`` if they do not die in time."""
        until = time.monotonic() + _DEATH_S
        while time.monotonic() < until:
            try:
                if os.waitpid(-1, os.WNOHANG) == (0, 0):
                    time.sleep(0.0005)
            except ChildProcessError:
                return
        self.worn = True

    def end(self, process: int, descriptor: int) -> None:
        """Close a descriptor that belongs to a child, and kill and reap the child."""
        os.close(descriptor)
        os.kill(process, signal.SIGKILL)
        self.reap(process)


def wait_readable(descriptor: int, patience_s: float) -> bool:
    """Wait for a descriptor; return whether it became readable in time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return any(poll.poll(patience_s * 1000 / PARTS) for _ in range(PARTS))
