"""One zygote process, as its client sees it: starting it, giving it an evaluation, ending it."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import importlib.util
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sandbox.errors import SandboxUnavailableError
from sandbox.evaluation import Evaluation
from sandbox.jail.levels import Level
from sandbox.limits import Limits
from sandbox.workers.clock import stopped
from sandbox.workers.wire import anonymous_file
from sandbox.zygote import CONTROL, FILES, ORDER, REASONS, REPORT, STARTS, empty

GRACE_S = 5.0
"""Seconds after an evaluation's time within which a zygote must have reported."""
START_S = 30.0
"""Seconds that a zygote may take to start."""
_STANDARD_MODULES = (  # every library makes a fork and its end slower; random and threading act in each child
    "abc", "bisect", "collections", "contextlib", "copy", "enum", "functools", "heapq", "io", "itertools", "json",
    "math", "operator", "re", "string", "struct", "time", "types", "typing",
)  # fmt: skip
_BOOT = (
    "import sys; sys.path.insert(0, {root!r}); from sandbox import zygote; del sys.path[0]; zygote.main({settings!r})"
)
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/", "LD_BIND_NOW": "1", "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
}  # fmt: skip
_FOLDER_PREFIX = "rewardkit-jail-"


class Profile(NamedTuple):
    """What a zygote has loaded before code runs.

    Attributes:
        modules: Imported before the jail is entered.
        packages: Packages besides the standard library that the jail lets code read.
    """

    modules: tuple[str, ...]
    packages: tuple[str, ...] = ()


PROFILES = {
    "python": Profile(_STANDARD_MODULES),
    "numpy": Profile((*_STANDARD_MODULES, "numpy"), ("numpy", "numpy.libs")),
}
"""Profiles by name. An import that is not preloaded still works where the standard library has it."""


class ZygoteProcess:
    """One zygote process and the files it shares with this one.

    Attributes:
        process: Its process id; 0 once it is dead.
        scratch_bytes: Size of its scratch directory, where the kernel bounds that.
    """

    def __init__(self, profile: Profile, level: Level, scratch_bytes: int) -> None:
        self._lock = threading.Lock()  # protects the process's descriptor
        self._in_use = threading.RLock()  # protects the files: closed while an evaluation uses them, they are others'
        self._owner = os.getpid()
        self._folder = tempfile.mkdtemp(prefix=f"{_folder_prefix()}{os.getpid()}-")
        self._files = {name: anonymous_file(name) for name in FILES}  # "peer" only keeps its place
        self._control, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in STARTS]
        self._starts, starts = zip(*pairs, strict=True)
        self._number = 0  # of the evaluation
        self._untidy = False  # whether the zygote is cleaning up after an evaluation
        self.scratch_bytes = scratch_bytes
        self._limited: tuple[int, ...] = ()
        self.process = 0
        self._ended = -1
        try:
            self._start(
                profile,
                level,
                scratch_bytes,
                {CONTROL: control.fileno(), **{place: one.fileno() for place, one in zip(STARTS, starts, strict=True)}},
            )
        except BaseException:
            self.close()
            raise
        finally:
            for one in (control, *starts):
                one.close()

    def _start(self, profile: Profile, level: Level, scratch_bytes: int, theirs: Mapping[int, int]) -> None:
        root = str(Path(__file__).resolve().parent.parent)
        path, readable = _packages(profile)
        settings = {
            "parent": os.getpid(),
            "level": level, "preload": profile.modules, "path": path, "readable": readable,
            "mount_point": self._folder, "scratch_bytes": scratch_bytes,
        }  # fmt: skip
        boot = _BOOT.format(root=root, settings=json.dumps(settings))
        passed = {**dict(enumerate(self._files.values())), **theirs}
        aside = max(*passed, *passed.values()) + 1  # first above all, then down, so that none is overwritten on the way
        actions: list[tuple[Any, ...]] = [
            (os.POSIX_SPAWN_DUP2, number, aside + place) for place, number in passed.items()
        ]
        actions += [(os.POSIX_SPAWN_DUP2, aside + place, place) for place in passed]
        actions += [(os.POSIX_SPAWN_CLOSE, aside + place) for place in passed]
        environment = {**_ENVIRONMENT, **{k: os.environ[k] for k in ("LD_LIBRARY_PATH",) if k in os.environ}}
        command = [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", boot]
        self.process = os.posix_spawn(sys.executable, command, environment, file_actions=actions)
        self._ended = os.pidfd_open(self.process)
        try:
            said = json.loads(self._hear(START_S))
        except (OSError, EOFError, ValueError) as fault:
            words = os.pread(self._files["stderr"], 2000, 0).decode("utf-8", "replace").strip()
            raise SandboxUnavailableError(f"the zygote did not start: {fault or 'it died'}\n{words}".strip()) from None
        if "error" in said:
            raise SandboxUnavailableError(said["error"])
        for name in self._files:
            self._take(name, 0)

    def _hear(self, timeout_s: float) -> bytes:
        self._control.settimeout(timeout_s)
        try:
            data = self._control.recv(1 << 16)
        except TimeoutError:
            raise TimeoutError(f"the zygote did not answer within {timeout_s:g} s") from None
        if not data:
            raise EOFError("the zygote died")
        return data

    def evaluate(
        self, kind: int, limits: Limits, request: bytes, *, tests: bytes = b"", stdin: bytes = b""
    ) -> Evaluation:
        """Run one evaluation.

        Raises:
            OSError, EOFError: The zygote died, or is no longer to be used; it has been ended.
        """
        self._in_use.acquire()
        try:
            if not self.process:
                raise EOFError("the zygote was ended")
            if self._untidy:
                with stopped():
                    self._hear(GRACE_S)
                self._untidy = False
            for name, content in (("request", request), ("tests", tests), ("stdin", stdin)):
                if content:
                    os.pwrite(self._files[name], content, 0)
            largest = max(limits.output_bytes, limits.file_bytes) + 1
            limited = (limits.whole_cpu_s, limits.memory_bytes, largest, limits.open_files)
            waiting = limits.processes == 1 and limited == self._limited
            self._limited = limited
            began = time.monotonic()
            if waiting:
                self._starts[self._number % 2].send(bytes([kind]))
            self._number += 1
            self._control.send(
                ORDER.pack(
                    kind, waiting, began, limits.timeout_s, *limited, limits.file_bytes, min(limits.processes, 255)
                )
            )
            *report, tidy = REPORT.unpack(self._hear(limits.timeout_s + GRACE_S))
            self._untidy = not tidy
            if REASONS[report[1]] == "no process":
                raise OSError("the zygote could not start a process")
            return Evaluation(kind, limits, tuple(report), "", *self._read(limits))
        except BaseException:
            self.close()
            raise
        finally:
            self._in_use.release()

    def _read(self, limits: Limits) -> tuple[dict[str, bytes], bytes, bytes]:
        """Take what the children left, at most one byte more than each may be."""
        most = limits.output_bytes
        outputs = {name: self._take(name, most + 1) for name in ("stdout", "stderr")}
        results, verdict = (self._take(name, 2 * most + (1 << 20)) for name in ("results", "verdict"))
        for name in ("stdin", "request", "tests"):
            self._take(name, 0)
        return outputs, results, verdict

    def _take(self, name: str, most: int) -> bytes:
        """Give what a file holds, and empty it."""
        descriptor = self._files[name]
        os.lseek(descriptor, 0, os.SEEK_SET)  # the children share this place, and O_APPEND and its like
        fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
        size = os.fstat(descriptor).st_size
        if not size:
            return b""
        content = os.pread(descriptor, min(most, size), 0)
        os.ftruncate(descriptor, 0)
        return content

    def close(self) -> None:
        """End the zygote and all that runs in it, and wait for that; in a fork of its owner, do nothing."""
        if os.getpid() != self._owner:
            return
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self._ended >= 0:
                signal.pidfd_send_signal(self._ended, signal.SIGKILL)
        with self._in_use:  # an evaluation under way sees the zygote's end, and ends too
            process, self.process = self.process, 0
            with self._lock:
                if self._ended >= 0:
                    os.close(self._ended)
                self._ended = -1
            if process:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process, 0)
            for one in (self._control, *self._starts):
                one.close()
            for descriptor in self._files.values():
                os.close(descriptor)
            self._files = {}
            _remove(self._folder)

    def __del__(self) -> None:
        if self.process or self._files:
            self.close()


def _packages(profile: Profile) -> tuple[list[str], list[str]]:
    """Gives where to import a profile's packages from, and which directories they are."""
    if not profile.packages:
        return [], []
    main = profile.packages[0]
    spec = importlib.util.find_spec(main)
    if spec is None or spec.origin is None:
        raise SandboxUnavailableError(f"the profile needs {main}, which is not installed")
    site = Path(spec.origin).parent.parent
    return [str(site)], [str(site / package) for package in profile.packages]


def remove_stale_folders() -> None:
    """Remove the directories of clients that were killed. Those of other process namespaces are not judged."""
    prefix = _folder_prefix()
    for folder in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), f"{prefix}*")):
        number = os.path.basename(folder)[len(prefix) :].split("-")[0]
        if number.isdigit() and not os.path.exists(f"/proc/{number}"):
            _remove(folder)


def _remove(folder: str) -> None:
    """Remove a scratch directory if that can be done, however deep code has made it."""
    with contextlib.suppress(OSError):
        empty(folder)
        os.rmdir(folder)


def _folder_prefix() -> str:
    """Gives how the directories of this process namespace begin: containers may share one, not their process ids."""
    try:
        return f"{_FOLDER_PREFIX}{os.stat('/proc/self/ns/pid').st_ino}-"
    except OSError:
        return f"{_FOLDER_PREFIX}0-"
