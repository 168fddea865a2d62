"""The shell of a worker: a forked process gets a session, limits and signals of its own, and the warden as its parent.

The warden uses it for the workers that it forks, and a nursery for those that are forked there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from pathlib import Path

WORKER_OOM_SCORE = 500  # where memory runs out, the kernel takes a worker before the trainer
NURSERY_OOM_SCORE = 700  # and a nursery before a worker: without it everything goes on, more slowly
OPEN_FILES = 1024  # soft limit of open files, at least, where the hard limit lets a worker have it
ADOPTION_S = 10.0  # seconds in which the kernel hands an orphan to the warden
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PTRACE_DETACH = 17
_UNSTOPPABLE = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGCONT}


def lead_session(parent: int, oom_score: int) -> None:
    """Lead a new session that ends with the given parent; end at once if that is gone already."""
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(oom_score))


def limit(memory_bytes: int | None) -> None:
    """Limit this process's data to so much memory, and its core dumps to none."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def ignore_signals() -> None:
    """Ignore every signal that can be ignored, and Ctrl-C that came before: the warden ends with its socket."""
    for number in signal.valid_signals() - _UNSTOPPABLE:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def plain_signals() -> None:
    """Take signals again as a fresh Python does, save Ctrl-C, which is the trainer's."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - _UNSTOPPABLE - {signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def adopt_orphans(on: bool = True) -> bool:
    """Become the parent of orphaned descendants, or no longer; return whether this system can do that."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, int(on))


def wait_for_parent(parent: int) -> None:
    """Wait until the process that forked this one is gone and the given one has adopted it."""
    deadline = time.monotonic() + ADOPTION_S
    while os.getppid() != parent:
        if time.monotonic() > deadline:
            os._exit(0)
        time.sleep(0.0005)


def allow_open_files() -> None:
    """Raise a low soft limit of open files, such as macOS's 256, as far as the hard one lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def silence() -> None:
    """Connect the standard descriptors with nothing."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    if null > 2:
        os.close(null)


def kill_group(process: int) -> None:
    for send in (os.killpg, os.kill):  # before its setsid the group does not exist yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            send(process, signal.SIGKILL)


def children() -> list[int]:
    """Return our children, as the kernel lists them; elsewhere than on Linux none are known."""
    with contextlib.suppress(OSError):
        return [int(process) for process in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    return []


def let_go(process: int, number: int) -> None:
    """Stop tracing a stopped child: the signal that stopped it then acts as if it had never been traced."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        libc.ptrace(_PTRACE_DETACH, process, None, number)


def _prctl(option: int, value: int) -> bool:
    """Call prctl(2) on Linux; return whether it succeeded."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) == 0)
