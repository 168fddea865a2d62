"""One zygote process, as its client sees it: what it loads, and giving it an evaluation."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import signal
import struct
import termios
import time
from pathlib import Path
from typing import NamedTuple

from sandbox import folders
from sandbox.errors import SandboxUnavailableError
from sandbox.evaluation import Evaluation, ZygoteReport
from sandbox.inside.children import PARTS
from sandbox.inside.workfolder import CLEAN_S
from sandbox.inside.zygote import FILES, ORDER, PAIR, REASONS, REPORT, output_room
from sandbox.jail.levels import Level
from sandbox.jail_process import FOLDERS, JailProcess
from sandbox.limits import Limits
from sandbox.workers.clock import stopped

GRACE_S = 0.6  # seconds after an evaluation's time by which a zygote must have reported; then both are ended
_STANDARD_MODULES = (  # every library makes a fork and its end slower; random and threading act in each child
    "abc", "bisect", "collections", "contextlib", "copy", "enum", "functools", "heapq", "io", "itertools", "json",
    "math", "operator", "re", "string", "struct", "time", "types", "typing",
)  # fmt: skip
_SHARED = ("stdin", "stdout", "stderr", "results")  # the files that code has
_LATE = (int(signal.SIGKILL), REASONS.index("timeout"))
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/", "LD_BIND_NOW": "1", "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
}  # fmt: skip


class Profile(NamedTuple):
    """The modules that a zygote loads before code runs."""

    modules: tuple[str, ...]  # imported before the jail is entered
    packages: tuple[str, ...] = ()  # packages besides the standard library that the jail lets code read
    readable: tuple[str, ...] = ()  # further files and folders


_PYTEST_MODULES = (
    "datetime", "decimal", "difflib", "fractions", "getpass", "importlib.metadata", "logging", "pathlib", "pdb",
    "random", "subprocess", "tempfile", "threading", "unittest.mock", "xml.etree.ElementTree", "pytest",
    *(f"_pytest.{name}" for name in ("faulthandler", "helpconfig", "junitxml", "pastebin", "setuponly", "setupplan")),
    *(f"_pytest.{name}" for name in ("skipping", "threadexception", "unittest", "unraisableexception", "warnings")),
)  # fmt: skip
PROFILES = {
    "python": Profile(_STANDARD_MODULES),
    "numpy": Profile((*_STANDARD_MODULES, "numpy"), ("numpy", "numpy.libs")),
    "pytest": Profile(
        (*_STANDARD_MODULES, *_PYTEST_MODULES), ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")
    ),
}
"""Profiles by name. An import that is not preloaded still works where the standard library has it."""


class ZygoteProcess(JailProcess):
    """One zygote process and the files it shares with this one."""

    noun = "zygote"

    def __init__(self, profile: Profile, level: Level, scratch_bytes: int) -> None:
        self._untidy = False  # whether the zygote is cleaning up after an evaluation
        self.scratch_bytes = scratch_bytes  # size of its scratch directory, where the kernel bounds that
        path, packages = _packages(profile)
        settings = {
            "level": level, "preload": profile.modules, "path": path, "readable": [*packages, *profile.readable],
            "scratch_bytes": scratch_bytes,
        }  # fmt: skip
        environment = {**_ENVIRONMENT, **{k: os.environ[k] for k in ("LD_LIBRARY_PATH",) if k in os.environ}}
        super().__init__("zygote", FILES, settings, environment)  # "peer" only keeps its number
        for name in self._files:
            self._take(name, 0)
        self._forget_times()

    def evaluate(
        self, kind: int, limits: Limits, request: bytes, *, tests: bytes = b"", stdin: bytes = b""
    ) -> Evaluation:
        """Run one evaluation; raise ``OSError`` or ``EOFError`` if the zygote died or had to be ended."""
        self._in_use.acquire()
        try:
            if not self.process:
                raise EOFError("the zygote was ended")
            if self._untidy:
                with stopped():
                    self._hear(2 * CLEAN_S)
                self._untidy = False
            for name, content in (("request", request), ("tests", tests), ("stdin", stdin)):
                if content:
                    os.pwrite(self._files[name], content, 0)
            largest = max(limits.output_bytes, limits.file_bytes) + 1
            bounds = (limits.whole_cpu_s, limits.memory_bytes, largest, limits.open_files)
            began = time.monotonic()
            processes = min(limits.processes, 255)
            room = (limits.file_bytes, limits.output_bytes)
            self._control.send(ORDER.pack(kind, began, limits.timeout_s, *bounds, *room, processes))
            try:
                *fields, tidy = REPORT.unpack(self._hear_report(limits.timeout_s))
            except TimeoutError:
                if not self._has_begun():
                    raise
                self._patience_s = 0.0  # the code began and did not end in time, whatever the zygote does
                self.close()
                report = ZygoteReport(*_LATE, time.monotonic() - began, 0.0, 0.0, 0, -1)
                return Evaluation(kind, limits, report, "")
            self._untidy = not tidy
            report = ZygoteReport(*fields)
            if REASONS[report.reason] == "no process":
                raise OSError("the zygote could not start a process")
            return Evaluation(kind, limits, report, "", *self._read(kind, limits))
        except BaseException:
            self.close()
            raise
        finally:
            self._in_use.release()

    def _hear_report(self, timeout_s: float) -> bytes:
        """Wait for a report, for an evaluation's time and then the grace in parts: a pause of the machine costs one."""
        for patience_s in (timeout_s, *[GRACE_S / PARTS] * PARTS):
            with contextlib.suppress(TimeoutError):
                return self._hear(patience_s)
        raise TimeoutError(f"the zygote did not report within {timeout_s:g} s or soon after")

    def _has_begun(self) -> bool:
        unread = fcntl.ioctl(self._control, termios.TIOCOUTQ, struct.pack("i", 0))
        return struct.unpack("i", unread) == (0,)

    def _read(self, kind: int, limits: Limits) -> tuple[dict[str, bytes], bytes, bytes]:
        """Read the children's output and results, at most one byte more than each may have, and empty all files."""
        most = limits.output_bytes
        outputs = {name: self._take(name, most + 1) for name in ("stdout", "stderr")}
        room = output_room(most)["results"]
        results = self._take("results", room)
        verdict = self._take("verdict", room) if kind == PAIR else b""
        self._take("stdin", 0)
        for name in ("request", "tests") if kind == PAIR else ("request",):  # which code never has open
            os.ftruncate(self._files[name], 0)
        self._forget_times()
        return outputs, results, verdict

    def _take(self, name: str, most: int) -> bytes:
        """Return up to ``most`` bytes of a file, and empty it."""
        descriptor = self._files[name]
        os.lseek(descriptor, 0, os.SEEK_SET)  # the children share the position, and flags such as O_APPEND
        fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        size = os.fstat(descriptor).st_size
        if not size:
            return b""
        content = os.pread(descriptor, min(most, size), 0)
        os.ftruncate(descriptor, 0)
        return content

    def _forget_times(self) -> None:
        """Reset the files' times, which would show to code what others have done."""
        for name in _SHARED:
            os.utime(self._files[name], ns=(0, 0))


def _packages(profile: Profile) -> tuple[list[str], list[str]]:
    """Return a profile's import paths and its packages' directories; raise if the first package is not installed."""
    if not profile.packages:
        return [], []
    main = profile.packages[0]
    spec = importlib.util.find_spec(main)
    if spec is None or spec.origin is None:
        raise SandboxUnavailableError(f"the profile needs {main}, which is not installed")
    site = Path(spec.origin).parent.parent
    return [str(site)], [str(path) for package in profile.packages if (path := site / package).exists()]


def remove_stale_folders() -> None:
    """Remove the directories of clients that were killed."""
    folders.sweep(FOLDERS)
