"""A process of ours in a jail, as its client sees it: starting it, hearing from it, ending it and all below it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sandbox import folders
from sandbox.errors import SandboxUnavailableError
from sandbox.inside.workfolder import FOLDER
from sandbox.workers.wire import anonymous_file

START_S = 30.0  # seconds that it may take to start
_BOOT = (
    "import sys; sys.path.insert(0, {root!r}); from sandbox.inside import {module}; del sys.path[0]; {module}.main()"
)
_END_S = 1.0  # seconds for it to end what it has under way, and for what is killed to be gone
FOLDERS = "rewardkit-jail-"


class JailProcess:
    """An interpreter that runs a module of :mod:`sandbox.inside`, the files it shares with this one, and its folder.

    Args:
        module: The module, whose ``main`` it runs.
        names: The shared files; each has its index as descriptor there, and a socket the number after the last.
        settings: What it reads at its start, as JSON in the file ``settings_file``, besides ``parent`` and
            ``mount_point``.
        environment: All its variables.
    """

    noun = "jail process"

    def __init__(
        self,
        module: str,
        names: Sequence[str],
        settings: dict[str, Any],
        environment: dict[str, str],
        settings_file: str = "request",
    ) -> None:
        self._lock = threading.Lock()  # protects the process's descriptor
        self._in_use = threading.RLock()  # protects the files: closed while they are used, they are others'
        self._owner = os.getpid()
        self._folder = folders.make(FOLDERS)
        self._files = {name: anonymous_file(name) for name in names}
        self._control, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._patience_s = _END_S  # in which it may end by itself
        self.process = 0  # its process id; 0 once it is dead
        self._pidfd = -1
        try:
            message = {"parent": os.getpid(), "mount_point": self._folder, **settings}
            os.pwrite(self._files[settings_file], json.dumps(message).encode(), 0)
            self._spawn(module, control.fileno(), environment)
        except BaseException:
            self.close()
            raise
        finally:
            control.close()

    def _spawn(self, module: str, control: int, environment: dict[str, str]) -> None:
        root = str(Path(__file__).resolve().parent.parent)
        sources = {**dict(enumerate(self._files.values())), len(self._files): control}  # by the number there
        above = max(*sources, *sources.values()) + 1  # first above all, then down, so that none is overwritten
        actions: list[tuple[Any, ...]] = []
        actions += [(os.POSIX_SPAWN_DUP2, source, above + target) for target, source in sources.items()]
        actions += [(os.POSIX_SPAWN_DUP2, above + target, target) for target in sources]
        actions += [(os.POSIX_SPAWN_CLOSE, above + target) for target in sources]
        command = [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _BOOT.format(root=root, module=module)]
        # a group of its own: Ctrl-C at a terminal is not meant for it, and the group shows what it has started
        self.process = os.posix_spawn(sys.executable, command, environment, file_actions=actions, setpgroup=0)
        self._pidfd = os.pidfd_open(self.process)
        try:
            reply = json.loads(self._hear(START_S))
        except (OSError, EOFError, ValueError) as fault:
            stderr = os.pread(self._files["stderr"], 2000, 0).decode("utf-8", "replace").strip()
            problem = f"the {self.noun} did not start: {fault or 'it died'}\n{stderr}".strip()
            raise SandboxUnavailableError(problem) from None
        if "error" in reply:
            raise SandboxUnavailableError(reply["error"])

    def _hear(self, timeout_s: float) -> bytes:
        self._control.settimeout(timeout_s)
        try:
            data = self._control.recv(1 << 16)
        except TimeoutError:
            raise TimeoutError(f"the {self.noun} did not answer within {timeout_s:g} s") from None
        if not data:
            raise EOFError(f"the {self.noun} died")
        return data

    def close(self) -> None:
        """End it and all that runs in it, and wait for that; in a fork of its owner, do nothing."""
        if os.getpid() != self._owner:
            return
        with self._lock, contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)  # at which it ends what is under way, tidies up and ends
        with self._in_use:  # an evaluation under way sees the end, and ends too
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
        """Wait until it has ended, and kill it where it takes too long; then nothing of the jail is left."""
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
        if getattr(self, "process", 0) or getattr(self, "_files", {}):  # it may not have come as far as to have them
            self.close()


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


def _is_alive(process: str) -> bool:
    """Return whether any thread of a process can still do something."""
    with contextlib.suppress(OSError, IndexError):  # it is gone
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] not in "ZX":
                    return True
    return False
