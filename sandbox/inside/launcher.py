"""The launcher: an interpreter inside the jail that starts compilers, runtimes and compiled programs, one at a time.

It is started as ``python -I -S``, builds the jail's file system once with all that its language needs, and then gives
each program a directory of its own, by two mounts, and walls that the program cannot leave. It keeps the right to
mount, in its own namespaces alone; what it starts gives up every right before it runs. So it reads nothing that a
program wrote: it hands on files as bytes, in a child.

*Covered:* the program, and all that it started, has ended before what it left is read, and before the next program
starts: at ``strict`` by a signal to every process of the namespace, at ``standard`` because it may start none.

*Not covered:* how long it runs, and its memory and output: its client looks at those and sends :data:`END`.
"""

from __future__ import annotations

import contextlib
import fnmatch
import gc
import json
import os
import resource
import select
import signal
import socket
import stat
import struct
import time
from typing import Any

from sandbox.inside.children import Children
from sandbox.inside.workfolder import FOLDER, WorkFolder
from sandbox.jail import bpf, kernel, landlock, namespaces, seccomp
from sandbox.jail.levels import DEVICES, SHARED_LIBRARIES, Level, become_first

FILES = ("request", "stdout", "stderr")
CONTROL = len(FILES)
STARTED, END = b"started", b"end"
"""What it says when a command's ``execve`` has succeeded, and what it is told to end all that runs."""
ORDER_FILES = ("content", "stdin", "stdout", "stderr", "taken")
"""The files that come with an order, as descriptors; further ones become the program's channel."""
MAX_ORDER = 1 << 18  # bytes of an order
TAKEN = struct.Struct("=IQ")  # of each file that is taken: the lengths of its name and of its content, which follow

WORK = f"{namespaces.SCRATCH}/{FOLDER}"
"""The program's directory at ``strict``: mounted anew each time, under a directory for which Landlock's rules hold."""
PROGRAM = "/program/artefact"
"""Where the compiled program is at ``strict``."""

_ASIDE = 100  # descriptors from which a child's are put in their places; all others are below
_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
_MAX_RULES = 32  # sets of Landlock rules that are kept
_MOST_TIMERS = 64  # and signals that wait, of all of a program's processes
_STACK_BYTES = 64 << 20  # of each thread of a program with a deep stack
_OWN_TASKS = 2  # the launcher and the process that began it
_NICE = 1
_MAX_DEPTH = 8  # folders in each other in which files are found that are taken


class _ClientGoneError(Exception):
    """Nobody is there to serve any more."""


def main() -> None:
    """Serve until the client is gone.

    The settings are ``parent`` (the client's process id), ``level``, ``mount_point``, ``artefacts`` (the folder of
    compiled programs), ``readable`` (all files that any stage of the language reads or executes) and ``proc`` (whether
    any needs a ``/proc``).
    """
    settings = json.loads(os.pread(FILES.index("request"), 1 << 18, 0))
    os.closerange(CONTROL + 1, 1 << 16)
    try:
        launcher = Launcher(settings)
    except BaseException as fault:
        os.write(CONTROL, json.dumps({"error": f"{type(fault).__name__}: {fault}"}).encode())
        os._exit(1)
    try:
        launcher.serve()
    except (_ClientGoneError, ConnectionError):
        launcher.end_all()
    finally:
        os._exit(0)


class Launcher:
    """Builds the jail when it is made, and then runs one order after another."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._client = os.pidfd_open(settings["parent"])
        if os.getppid() != settings["parent"]:
            raise _ClientGoneError
        self._level = Level(settings["level"])
        self._children = Children()
        self._folder: WorkFolder | None = None
        self._to_nobody = False
        if self._level is Level.STRICT:
            self._to_nobody = namespaces.unshare()
            become_first()
            visible = [*settings["readable"], *SHARED_LIBRARIES]
            namespaces.new_root_of_programs(
                settings["mount_point"],
                visible,
                DEVICES,
                settings["artefacts"],
                (WORK, PROGRAM),
                proc=settings["proc"],
            )
            self._owner = namespaces.NOBODY if self._to_nobody else 0
            self._work = WORK
        else:
            namespaces.drop_capabilities()
            self._folder = WorkFolder(settings["mount_point"], self._children)
            self._work = self._folder.path
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        self._self = os.getpid()
        self._rules: dict[tuple[object, ...], int] = {}
        may_signal = self._level is Level.STRICT
        self._filters = {
            may_fork: bpf.Installer(seccomp.program_filter(may_fork=may_fork, may_signal=may_signal))
            for may_fork in (False, True)
        }

    def serve(self) -> None:
        """Answer orders, one at a time."""
        gc.collect()
        gc.freeze()
        gc.disable()
        os.write(CONTROL, json.dumps({"ready": self._self}).encode())
        with socket.socket(fileno=CONTROL) as control:
            while True:
                ready, _, _ = select.select([CONTROL, self._client], [], [])
                if self._client in ready:
                    raise _ClientGoneError
                data, descriptors, _, _ = socket.recv_fds(control, MAX_ORDER, 16)
                if not data:
                    raise _ClientGoneError
                if data == END:  # it came too late
                    continue
                order = json.loads(data)
                try:
                    report = self._run(order, descriptors)
                except OSError as fault:
                    self.end_all()
                    report = {"fault": str(fault)}
                finally:
                    for descriptor in descriptors:
                        os.close(descriptor)
                control.send(json.dumps(report | {"last": self._children.worn}).encode())
                if self._children.worn:
                    os._exit(3)

    def end_all(self) -> None:
        """End every process of the jail, and wait for their ends."""
        if self._level is Level.STRICT:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        self._children.reap_all()

    def _run(self, order: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Run an order's commands in a new directory and return the report of the last one that ran."""
        rules = self._rules_for(order)
        self._mount(order)
        try:
            _write_files(self._work, order["files"], descriptors[0])
            self._give_away(order["files"])
            until = time.monotonic() + order["most_s"]
            report: dict[str, Any] = {}
            user_s = system_s = 0.0
            for command in order["commands"]:
                status, usage = self._launch(command, order, descriptors, rules, until)
                user_s, system_s = user_s + usage.ru_utime, system_s + usage.ru_stime
                report = {"status": status, "peak_kib": usage.ru_maxrss}
                if status:
                    break
            report |= {"user_s": user_s, "system_s": system_s}
            if order["takes"] and not report["status"]:
                report["taken"] = self._take(order, descriptors[ORDER_FILES.index("taken")])
            return report
        finally:
            self._unmount(order)

    def _mount(self, order: dict[str, Any]) -> None:
        if self._folder is not None:
            return
        namespaces.mount_scratch(WORK, order["scratch_bytes"], self._owner)
        if order["artefact"]:
            namespaces.mount_again(f"{namespaces.ARTEFACTS}/{order['artefact']}", PROGRAM)

    def _unmount(self, order: dict[str, Any]) -> None:
        """Take the directory away with all that is in it; be worn where something stays, which the next would see."""
        if self._folder is not None:
            if not self._folder.is_as_made() and not self._folder.clean():
                self._children.worn = True
            return
        for folder in (WORK, *[PROGRAM] * bool(order["artefact"])):
            with contextlib.suppress(OSError):  # it was not mounted, because of what is being reported
                namespaces.unmount(folder)
        if os.path.ismount(WORK):
            self._children.worn = True

    def _rules_for(self, order: dict[str, Any]) -> int:
        """Return the Landlock rules of a stage, which hold for every directory that is mounted for it."""
        strict = self._folder is None
        executable = [*order["executable"], *(path for path in _LOADERS if os.path.exists(path))]
        executable += [os.path.dirname(PROGRAM)] if strict and order["artefact"] else []
        readable = [*order["readable"], *SHARED_LIBRARIES, *[namespaces.PROC] * order["proc"]]
        writable = namespaces.SCRATCH if strict else self._work
        key = (*executable, "", *readable, "", os.stat(writable).st_ino)
        if key not in self._rules:
            while len(self._rules) >= _MAX_RULES:
                os.close(self._rules.pop(next(iter(self._rules))))
            self._rules[key] = landlock.rules(readable, [writable], DEVICES, executable)
        return self._rules[key]

    def _launch(
        self, command: list[str], order: dict[str, Any], descriptors: list[int], rules: int, until: float
    ) -> tuple[int, resource.struct_rusage]:
        """Run one command to its end, and end all that it started; return its wait status and what it used."""
        reader, writer = os.pipe()  # which close at execve
        try:
            child = os.fork()
            if child == 0:
                _become_program(self, command, order, descriptors, rules, writer)
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        with os.fdopen(reader, "rb") as failures:
            failure = failures.read()  # until execve has closed the other end
        if failure:
            self.end_all()
            raise OSError(failure.decode("utf-8", "replace"))
        os.write(CONTROL, STARTED)
        self._wait(child, until)
        status, usage = self._children.reap(child)
        self.end_all()
        return status, usage

    def _wait(self, child: int, until: float) -> None:
        """Wait for a program's end, or kill it: at the client's word, without a client, or after the longest time."""
        pidfd = os.pidfd_open(child)
        try:
            poll = select.poll()
            for descriptor in (pidfd, CONTROL, self._client):
                poll.register(descriptor, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll(max(0.0, until - time.monotonic()) * 1000 + 1)}
            if pidfd in ready:
                return
            os.kill(child, signal.SIGKILL)
            if CONTROL in ready and os.read(CONTROL, 64) == END:
                return
            if ready:
                raise _ClientGoneError
        finally:
            os.close(pidfd)

    def _give_away(self, files: list[tuple[str, int]]) -> None:
        """Make the program the owner of its files and folders."""
        if self._folder is None and self._owner:
            for name in {part for file, _ in files for part in _with_folders(file)}:
                os.chown(os.path.join(self._work, name), self._owner, self._owner)

    def _take(self, order: dict[str, Any], target: int) -> bool:
        """Have a child copy the files that an order names to the end of ``target``; return whether it could."""
        child, pidfd = self._children.fork_to(
            lambda: _copy_files(self._work, order["takes"], order["most_bytes"], target)
        )
        os.close(pidfd)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    @property
    def own_tasks(self) -> int:
        """Processes of the jail that the kernel counts as a program's user's: as root, that user is another."""
        return 0 if self._to_nobody else _OWN_TASKS

    def step_down(self) -> None:
        """Give up all rights, in a child."""
        if self._level is Level.STRICT:
            namespaces.step_down(self._to_nobody)

    def enter_walls(self, rules: int, *, may_fork: bool) -> None:
        """Enter the walls, in a child."""
        landlock.enter(rules)
        self._filters[may_fork].enter(prepared=True)

    def enter_work(self) -> None:
        """Go to the program's directory, and see to it that this child ends with the launcher."""
        self._children.die_with_us()
        if os.getppid() not in (self._self, 0):
            os._exit(83)
        os.chdir(self._work)


def _become_program(
    launcher: Launcher, command: list[str], order: dict[str, Any], descriptors: list[int], rules: int, report: int
) -> None:
    """Turn this forked process into the program; say on ``report`` why that was not possible."""
    try:
        streams = zip(order["channel"], descriptors[len(ORDER_FILES) :], strict=True)
        wanted = dict(enumerate(descriptors[1:4])) | dict(streams)  # stdin, stdout, stderr, and on
        aside = [os.dup2(source, _ASIDE + number) for number, source in enumerate((report, rules, *wanted.values()))]
        report, rules = aside[:2]
        for number, source in zip(wanted, aside[2:], strict=True):
            os.dup2(source, number)
        os.set_inheritable(report, False)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_DFL)
        launcher.step_down()
        launcher.enter_work()
        os.setpriority(os.PRIO_PROCESS, 0, min(19, os.getpriority(os.PRIO_PROCESS, 0) + _NICE))
        _restrict(order, launcher.own_tasks)
        launcher.enter_walls(rules, may_fork=order["forks"])
        for first, last in ((max(wanted) + 1, report), (report + 1, 1 << 16)):
            os.closerange(first, last)
        os.execve(command[0], command, order["environment"])  # noqa: S606 - that is what a launcher is for
    except BaseException as fault:
        os.write(report, f"{command[0]}: {fault}".encode())
    finally:
        os._exit(82)


def _restrict(order: dict[str, Any], own_tasks: int) -> None:
    """Set the limits of a stage's processes; the kernel counts so many of the jail's own as the same user's."""
    cpu_s = order["cpu_s"]
    limits = {
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_CPU: (cpu_s, cpu_s + 1),
        resource.RLIMIT_FSIZE: (order["file_bytes"],) * 2,
        resource.RLIMIT_NOFILE: (order["open_files"],) * 2,
        resource.RLIMIT_SIGPENDING: (_MOST_TIMERS,) * 2,
    }
    if order["data_bytes"]:
        limits[resource.RLIMIT_DATA] = (order["data_bytes"],) * 2
    if order["own_users"]:  # else the kernel counts all processes of this user
        limits[resource.RLIMIT_NPROC] = (order["tasks"] + own_tasks,) * 2
    if order["deep_stack"]:
        limits[resource.RLIMIT_STACK] = (_STACK_BYTES,) * 2
    for limit, (soft, most) in limits.items():
        hard = resource.getrlimit(limit)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (min(soft, most), most))


def _write_files(folder: str, files: list[tuple[str, int]], content: int) -> None:
    """Write files, each a name and a size, whose contents follow each other in ``content``."""
    os.lseek(content, 0, os.SEEK_SET)
    for name, size in files:
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            while size:
                part = os.read(content, min(size, 1 << 20))
                if not part:
                    raise OSError("a file of the order is shorter than it says")
                size -= os.write(target, part)
        finally:
            os.close(target)


def _with_folders(name: str) -> list[str]:
    """Return a file's name and those of the folders that it lies in."""
    parts = os.path.normpath(name).split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _copy_files(folder: str, patterns: list[str], most_bytes: int, target: int) -> None:
    """Copy the plain files of a directory whose relative names match; raise ``OSError`` for more than so many bytes.

    Every process that could exchange one for a link has ended.
    """
    total = 0
    for name in sorted(_names_in(folder, "", _MAX_DEPTH)):
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            continue
        source = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        size = os.fstat(source).st_size
        total += size
        if not stat.S_ISREG(os.fstat(source).st_mode) or total > most_bytes:
            raise OSError("not a file, or too large")
        os.write(target, TAKEN.pack(len(os.fsencode(name)), size) + os.fsencode(name))
        while size:
            part = os.read(source, min(size, 1 << 20))
            if not part:
                raise OSError("it became shorter")
            size -= os.write(target, part)
        os.close(source)


def _names_in(folder: str, prefix: str, depth: int) -> list[str]:
    """Return the names of all but folders in a folder, relative to the one at the top; links are not followed."""
    names = []
    with os.scandir(os.path.join(folder, prefix)) as entries:
        for entry in entries:
            name = f"{prefix}{entry.name}"
            if not entry.is_dir(follow_symlinks=False):
                names.append(name)
            elif depth:
                names += _names_in(folder, f"{name}/", depth - 1)
    return names
