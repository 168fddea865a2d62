"""What holds an act: limits, a session of its own, and the end of all that it started.

*Covered:* time, memory, processes, size of files and of what lies in the run's folder; processes that leave their
session or lose their parent. Where the system allows it, a harness runs in namespaces of its own, in which it sees no
other process, and can write nowhere but in the run's folder.

*Not covered:* the network, and where there are no namespaces what the user of the run may write or end. Run the suite
as a user who owns nothing that matters.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

FILE_BYTES = 64 << 20
ADDRESS_BYTES = 32 << 30
MEMORY_BYTES = 3 << 30
FOLDER_BYTES = 256 << 20
MOST_PROCESSES = 256
_UNSHARE = (
    "unshare",
    "--user",
    "--map-root-user",
    "--pid",
    "--mount",
    "--ipc",
    "--fork",
    "--mount-proc",
    "--kill-child",
)
_SET_CHILD_SUBREAPER = 36
_MOUNT_SETATTR, _AT_RECURSIVE, _READ_ONLY = 442, 0x8000, 1
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18


def namespace_command() -> list[str]:
    """Return the words before a command that runs in namespaces of its own; empty where the system has no such."""
    try:
        trial = subprocess.run([*_UNSHARE, "true"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return []
    return list(_UNSHARE) if trial.returncode == 0 else []


def shut_in(writable: str) -> str:
    """Make all but one folder read-only, in a mount namespace of one's own; return why not, or an empty text."""
    library = ctypes.CDLL(None, use_errno=True)

    def mount(source: str, target: str, kind: str, flags: int) -> bool:
        return bool(library.mount(source.encode(), target.encode(), kind.encode(), flags, None) == 0)

    attributes = (ctypes.c_uint64 * 4)(_READ_ONLY, 0, 0, 0)
    writable_again = (ctypes.c_uint64 * 4)(0, _READ_ONLY, 0, 0)

    def change(path: str, wanted: ctypes.Array[ctypes.c_uint64], flags: int) -> bool:
        size = ctypes.sizeof(wanted)
        return bool(library.syscall(_MOUNT_SETATTR, -100, path.encode(), flags, ctypes.byref(wanted), size) == 0)

    if not (mount("none", "/", "none", _RECURSIVE | _PRIVATE) and mount(writable, writable, "none", _BIND)):
        return os.strerror(ctypes.get_errno())
    if not change("/", attributes, _AT_RECURSIVE) or not change(writable, writable_again, 0):
        return os.strerror(ctypes.get_errno())
    mount("tmpfs", "/dev/shm", "tmpfs", 0)  # noqa: S108 - where shared memory lies on Linux
    return ""


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends, so that all of them can be ended."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def limit_this_process() -> None:
    """Limit what this process and those it starts may use."""
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_AS, ADDRESS_BYTES),
    ):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))


def descendants() -> list[int]:
    """Return the processes that this one and its descendants started and that are still there."""
    parents: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                status = Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace")
                parents.setdefault(int(status.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    return list(_below(os.getpid(), parents))


def _below(process: int, parents: dict[int, list[int]]) -> Iterator[int]:
    for child in parents.get(process, ()):
        yield child
        yield from _below(child, parents)


def end_descendants(*, spared: frozenset[int] = frozenset()) -> None:
    """End all descendants but the spared ones, and wait until they are gone; at most some seconds."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        left = [process for process in descendants() if process not in spared]
        for process in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        for process in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        if not left:
            return
        time.sleep(0.005)


def excess(folder: str) -> str:
    """Return what the descendants and the folder have too much of, or an empty text."""
    processes = descendants()
    if len(processes) > MOST_PROCESSES:
        return f"more than {MOST_PROCESSES} processes"
    pages = 0
    for process in processes:
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
            pages += int(fields[1]) - int(fields[2])
    if pages * resource.getpagesize() > MEMORY_BYTES:
        return f"more than {MEMORY_BYTES >> 20} MiB of memory"
    size = 0
    for parent, _, names in os.walk(folder, onerror=None):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(parent, name)).st_blocks * 512
        if size > FOLDER_BYTES:
            return f"more than {FOLDER_BYTES >> 20} MiB of files"
    return ""
