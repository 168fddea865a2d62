"""One zygote process, as its client sees it: starting it, giving it an evaluation, ending it."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from sandbox import folders
from sandbox.errors import SandboxUnavailableError
from sandbox.evaluation import Evaluation, ZygoteReport
from sandbox.inside.children import PARTS
from sandbox.inside.workfolder import CLEAN_S, FOLDER
from sandbox.inside.zygote import CONTROL, FILES, ORDER, REASONS, REPORT, output_room
from sandbox.jail.levels import Level
from sandbox.limits import Limits
from sandbox.workers.clock import stopped
from sandbox.workers.wire import anonymous_file

GRACE_S = 0.6  # seconds after an evaluation's time by which a zygote must have reported; then both are ended
START_S = 30.0  # seconds that a zygote may take to start
_STANDARD_MODULES = (  # every library makes a fork and its end slower; random and threading act in each child
    "abc", "bisect", "collections", "contextlib", "copy", "enum", "functools", "heapq", "io", "itertools", "json",
    "math", "operator", "re", "string", "struct", "time", "types", "typing",
)  # fmt: skip
_BOOT = "import sys; sys.path.insert(0, {root!r}); from sandbox.inside import zygote; del sys.path[0]; zygote.main()"
_SHARED = ("stdin", "stdout", "stderr", "results")  # the files that code has
_LATE = (int(signal.SIGKILL), REASONS.index("timeout"))
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/", "LD_BIND_NOW": "1", "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
}  # fmt: skip
_FOLDERS = "rewardkit-jail-"
_END_S = 1.0  # seconds for a zygote to end what it has under way, and for what is killed to be gone


class Profile(NamedTuple):
    """The modules that a zygote loads before code runs."""

    modules: tuple[str, ...]  # imported before the jail is entered
    packages: tuple[str, ...] = ()  # packages besides the standard library that the jail lets code read


PROFILES = {
    "python": Profile(_STANDARD_MODULES),
    "numpy": Profile((*_STANDARD_MODULES, "numpy"), ("numpy", "numpy.libs")),
}
"""Profiles by name. An import that is not preloaded still works where the standard library has it."""


class ZygoteProcess:
    """One zygote process and the files it shares with this one."""

    def __init__(self, profile: Profile, level: Level, scratch_bytes: int) -> None:
        self._lock = threading.Lock()  # protects the process's descriptor
        self._in_use = threading.RLock()  # protects the files: closed while an evaluation uses them, they are others'
        self._owner = os.getpid()
        self._folder = folders.make(_FOLDERS)
        self._files = {name: anonymous_file(name) for name in FILES}  # "peer" only keeps its number
        self._control, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._untidy = False  # whether the zygote is cleaning up after an evaluation
        self.scratch_bytes = scratch_bytes  # size of its scratch directory, where the kernel bounds that
        self._patience_s = _END_S  # in which it may end by itself
        self.process = 0  # its process id; 0 once it is dead
        self._pidfd = -1
        try:
            self._start(profile, level, scratch_bytes, control.fileno())
        except BaseException:
            self.close()
            raise
        finally:
            control.close()

    def _start(self, profile: Profile, level: Level, scratch_bytes: int, control: int) -> None:
        root = str(Path(__file__).resolve().parent.parent)
        path, readable = _packages(profile)
        settings = {
            "parent": os.getpid(),
            "level": level, "preload": profile.modules, "path": path, "readable": readable,
            "mount_point": self._folder, "scratch_bytes": scratch_bytes,
        }  # fmt: skip
        os.pwrite(self._files["request"], json.dumps(settings).encode(), 0)
        sources = {**dict(enumerate(self._files.values())), CONTROL: control}  # by the number in the zygote
        above = max(*sources, *sources.values()) + 1  # first above all, then down, so that none is overwritten
        actions: list[tuple[Any, ...]] = []
        actions += [(os.POSIX_SPAWN_DUP2, source, above + target) for target, source in sources.items()]
        actions += [(os.POSIX_SPAWN_DUP2, above + target, target) for target in sources]
        actions += [(os.POSIX_SPAWN_CLOSE, above + target) for target in sources]
        environment = {**_ENVIRONMENT, **{k: os.environ[k] for k in ("LD_LIBRARY_PATH",) if k in os.environ}}
        command = [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _BOOT.format(root=root)]
        # a group of its own: Ctrl-C at a terminal is not meant for it, and the group shows what it has started
        self.process = os.posix_spawn(sys.executable, command, environment, file_actions=actions, setpgroup=0)
        self._pidfd = os.pidfd_open(self.process)
        try:
            message = json.loads(self._hear(START_S))
        except (OSError, EOFError, ValueError) as fault:
            stderr = os.pread(self._files["stderr"], 2000, 0).decode("utf-8", "replace").strip()
            raise SandboxUnavailableError(f"the zygote did not start: {fault or 'it died'}\n{stderr}".strip()) from None
        if "error" in message:
            raise SandboxUnavailableError(message["error"])
        for name in self._files:
            self._take(name, 0)
        self._forget_times()

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
            return Evaluation(kind, limits, report, "", *self._read(limits))
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

    def _read(self, limits: Limits) -> tuple[dict[str, bytes], bytes, bytes]:
        """Read the children's output and results, at most one byte more than each may have, and empty all files."""
        most = limits.output_bytes
        outputs = {name: self._take(name, most + 1) for name in ("stdout", "stderr")}
        room = output_room(most)["results"]
        results, verdict = (self._take(name, room) for name in ("results", "verdict"))
        for name in ("stdin", "request", "tests"):
            self._take(name, 0)
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

    def close(self) -> None:
        """End the zygote and all that runs in it, and wait for that; in a fork of its owner, do nothing."""
        if os.getpid() != self._owner:
            return
        with self._lock, contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)  # at which it ends what is under way, tidies up and ends
        with self._in_use:  # an evaluation under way sees the zygote's end, and ends too
            process, self.process = self.process, 0
            try:
                if process:
                    self._end(process)
            finally:
                if self._pidfd >= 0:
                    os.close(self._pidfd)
                self._pidfd = -1
                self._control.close()
                for descriptor in self._files.values():
                    os.close(descriptor)
                self._files = {}
                folders.remove(self._folder, FOLDER)

    def _end(self, process: int) -> None:
        """Wait until the zygote has ended, and kill it where it takes too long; then nothing of the jail is left."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        if not poll.poll(self._patience_s * 1000):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
            poll.poll(_END_S * 1000)
        with contextlib.suppress(ChildProcessError):
            end = os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if end is None or end.si_code != os.CLD_EXITED or end.si_status != 0:  # what it started may still run
                _await_end_of_group(process)
            os.waitpid(process, os.WNOHANG)

    def __del__(self) -> None:
        if self.process or self._files:
            self.close()


def _packages(profile: Profile) -> tuple[list[str], list[str]]:
    """Return a profile's import paths and its packages' directories; raise if the first package is not installed."""
    if not profile.packages:
        return [], []
    main = profile.packages[0]
    spec = importlib.util.find_spec(main)
    if spec is None or spec.origin is None:
        raise SandboxUnavailableError(f"the profile needs {main}, which is not installed")
    site = Path(spec.origin).parent.parent
    return [str(site)], [str(site / package) for package in profile.packages]


def remove_stale_folders() -> None:
    """Remove the directories of clients that were killed."""
    folders.sweep(_FOLDERS)


def _is_alive(process: str) -> bool:
    """Return whether any thread of a process can still do something."""
    with contextlib.suppress(OSError, IndexError):  # it is gone
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] not in "ZX":
                    return True
    return False


def _await_end_of_group(group: int) -> None:
    """Kill all processes of a group and wait, for a bounded time, until none of them can do anything."""
    until = time.monotonic() + _END_S
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    try:
        members = [process for process in os.listdir("/proc") if process.isdigit() and _group(process) == group]
    except FileNotFoundError:
        return
    while (members := [process for process in members if _is_alive(process)]) and time.monotonic() < until:
        time.sleep(0.001)


def _group(process: str) -> int:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(int(process))
    return 0
