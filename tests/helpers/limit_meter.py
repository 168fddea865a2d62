"""What the evaluations of a client's jails hold, measured from outside by root while they run."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from sandbox.inside.workfolder import FOLDER

PAUSE_S = 0.02
_KCMP, _KCMP_FILES = {"x86_64": 312, "aarch64": 272}, 2
_MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")
_OUTPUTS = (1, 2)  # descriptors of a zygote: standard output and standard error

_libc = ctypes.CDLL(None)


class Holding(NamedTuple):
    """What one evaluation holds at a moment.

    Attributes:
        moment: When, by the monotonic clock.
        descriptors: Open descriptors, those of all tables together.
        threads: Threads.
        output_bytes: The larger of standard output and standard error.
        file_bytes: Files in the scratch directory.
        memory_bytes: Memory of the whole jail above what it needs to wait, that of the kernel for it included,
            without the cache of files on disk; 0 where no control group can be made.
    """

    moment: float
    descriptors: int
    threads: int
    output_bytes: int
    file_bytes: int
    memory_bytes: int


class LimitMeter:
    """Looks, in a ``with`` block, at the jails of every client that this process starts."""

    def __init__(self) -> None:
        self.holdings: list[Holding] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_often, daemon=True)
        self._group = _MEMORY_GROUPS / f"rewardkit-test-{os.getpid()}"
        self._idle_bytes = 0
        self._zygote = 0

    def __enter__(self) -> LimitMeter:
        with contextlib.suppress(OSError):
            self._group.mkdir()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            self._group.rmdir()

    @property
    def measures_memory(self) -> bool:
        """Whether this machine lets us make a control group."""
        return (self._group / "cgroup.procs").exists()

    def sustained(self, began: float, ended: float, for_s: float) -> Holding:
        """Return the most of each kind that was held for some time between two moments."""
        holdings = [holding for holding in self.holdings if began <= holding.moment <= ended]
        most = [0.0] * len(Holding._fields)
        for index, first in enumerate(holdings):
            span = [holding for holding in holdings[index:] if holding.moment <= first.moment + for_s]
            if span[-1].moment >= first.moment + for_s - 2 * PAUSE_S:
                least = [min(values) for values in zip(*span, strict=True)]
                most = [max(values) for values in zip(most, least, strict=True)]
        return Holding(most[0], *map(int, most[1:]))

    def _look_often(self) -> None:
        while not self._over.wait(PAUSE_S):
            with contextlib.suppress(psutil.Error, OSError, ValueError):
                self._look()

    def _look(self) -> None:
        zygotes = [process for process in psutil.Process().children(recursive=True) if _is_zygote(process)]
        inner = next((process for process in zygotes if Path(f"/proc/{process.pid}/cwd", FOLDER).is_dir()), None)
        if inner is None:  # it is starting
            return
        if inner.pid != self._zygote:
            self._zygote = inner.pid
            self._join(zygotes)
        children = inner.children()
        descriptors = max((_descriptors(child.pid) for child in children), default=0)
        threads = max((child.num_threads() for child in children), default=0)
        outputs = max(Path(f"/proc/{inner.pid}/fd/{number}").stat().st_size for number in _OUTPUTS)
        files = _used(Path(f"/proc/{inner.pid}/cwd"))
        memory = self._memory_bytes() - self._idle_bytes
        self.holdings.append(Holding(time.monotonic(), descriptors, threads, outputs, files, memory))

    def _join(self, zygotes: list[psutil.Process]) -> None:
        if self.measures_memory:
            for process in zygotes:
                (self._group / "cgroup.procs").write_text(str(process.pid))
            self._idle_bytes = self._memory_bytes()

    def _memory_bytes(self) -> int:
        if not self.measures_memory:
            return 0
        counts = dict(line.split() for line in (self._group / "memory.stat").read_text().splitlines())
        kernel = int((self._group / "memory.kmem.usage_in_bytes").read_text())
        return kernel + int(counts["rss"]) + int(counts["shmem"])


def _is_zygote(process: psutil.Process) -> bool:
    return any("zygote.main()" in argument for argument in process.cmdline())


def _descriptors(process: int) -> int:
    """Return how many descriptors the threads of a process have in all their tables."""
    tables: list[int] = []
    kcmp = _KCMP[os.uname().machine]
    for thread in map(int, os.listdir(f"/proc/{process}/task")):
        if all(_libc.syscall(kcmp, thread, other, _KCMP_FILES, 0, 0) for other in tables):
            tables.append(thread)
    return sum(len(os.listdir(f"/proc/{thread}/fd")) for thread in tables)


def _used(folder: Path) -> int:
    """Return what a scratch directory holds: all of it where it is a file system, else its files that have names."""
    if os.statvfs(folder).f_files in range(1, 1 << 16):
        return shutil.disk_usage(folder).used
    return sum(path.lstat().st_size for path in _walk(folder / FOLDER))


def _walk(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            yield entry
            if entry.is_dir() and not entry.is_symlink():
                yield from _walk(entry)
