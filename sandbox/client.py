"""The sandbox: it starts zygotes, gives them code to run, supervises and restarts them."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import glob
import importlib.util
import json
import marshal
import math
import os
import queue
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from sandbox import plain
from sandbox.errors import NotPlainError, PoolClosedError, SandboxUnavailableError
from sandbox.inside import CALLS, NO_MEMORY, PROGRAM, TOO_LARGE
from sandbox.jail import kernel, probe
from sandbox.jail.levels import Level
from sandbox.limits import Limits
from sandbox.results import CallValue, ExecutionResult, ExecutionStatus, Judgement, printable
from sandbox.workers.wire import anonymous_file
from sandbox.zygote import FILES, ORDER, PAIR, REASONS, REPORT

MAX_SOURCE_BYTES = 1 << 20
"""Size of a source; a larger one is not run, and its result says so."""
MAX_CALLS = 100_000
"""Calls in one evaluation."""
GRACE_S = 5.0
"""Seconds after an evaluation's time within which a zygote must have reported."""
START_S = 30.0
"""Seconds that a zygote may take to start."""
MAX_ATTEMPTS = 3
"""Times that an evaluation is begun whose zygote dies, before it is given up as infrastructure."""

_STANDARD_MODULES = (  # not those that act in each forked child: random, threading
    "abc", "bisect", "cmath", "collections", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions",
    "functools", "heapq", "itertools", "json", "math", "operator", "re", "string", "typing",
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


class Sandbox:
    """Runs untrusted Python code in jails.

    Args:
        profile: What is loaded beforehand: ``"python"`` or ``"numpy"``.
        level: ``"strict"``, ``"standard"``, ``"seccomp-only"``, ``"none"``, or ``"auto"``: the best of the
            first two that this machine is proved to give.
        workers: Zygotes, so evaluations at once; by default as many as there are cores, at most 4.
        limits: What an evaluation may use, unless it says otherwise.

    Raises:
        SandboxUnavailableError: The machine does not give the level.
        ValueError: An argument makes no sense.

    Example:
        >>> with Sandbox() as sandbox:
        ...     sandbox.run("print(6 * 7)").stdout
        '42\\n'
    """

    def __init__(
        self, profile: str = "python", level: str = "auto", workers: int | None = None, limits: Limits | None = None
    ) -> None:
        if profile not in PROFILES:
            raise ValueError(f"profile={profile!r}: expected one of {', '.join(map(repr, PROFILES))}")
        if level != "auto" and level not in tuple(Level):
            raise ValueError(f"level={level!r}: expected 'auto' or one of {', '.join(repr(str(one)) for one in Level)}")
        if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
            raise ValueError(f"workers={workers!r}: expected a whole number, 1 or more")
        self.limits = limits or Limits()
        self._profile = profile
        self._asked = level
        self._workers = workers or min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
        self._level: Level | None = None
        self._idle: queue.LifoQueue[_Zygote | None] = queue.LifoQueue()
        self._zygotes: weakref.WeakSet[_Zygote] = weakref.WeakSet()
        self._lock = threading.Lock()  # protects starting, closing and the choice of the level
        self._started = self._closed = False
        self._owner = os.getpid()
        atexit.register(self.close)

    def start(self) -> Sandbox:
        """Start a first zygote, proving the level; the others start when they are needed."""
        self._check_usable()
        with self._lock:
            if not self._started:
                first = self._prove()
                for _ in range(self._workers - 1):
                    self._idle.put(None)
                self._idle.put(first)  # last in, first out: a lone caller always gets it
                self._started = True
        return self

    @property
    def level(self) -> Level:
        """The level that was reached."""
        self.start()
        assert self._level is not None
        return self._level

    def run(
        self,
        source: str,
        *,
        stdin: str = "",
        files: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> ExecutionResult:
        """Run one program.

        Args:
            source: Python source, run as ``__main__``.
            stdin: What it reads from standard input.
            files: Text files in its scratch directory, its current one, by relative name.
            args: Its ``sys.argv`` after the program's name.
            limits: What it may use; the sandbox's own if ``None``.
        """
        return self.run_inputs(source, [stdin], files=files, args=args, limits=limits)[0]

    def run_inputs(
        self,
        source: str,
        inputs: Sequence[str],
        *,
        files: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> list[ExecutionResult]:
        """Run one program once for each input, in as few processes as it lets us, and give a result for each.

        The runs share one process, each with names of its own, and the time of one evaluation; a run that
        ends the process makes the next one start in a new one.
        """
        limits = self._limits(limits)
        refused = self._refused(source)
        if refused is not None:
            return [refused] * len(inputs)
        request = {"source": source, "args": list(args), "files": _checked_files(files or {}, limits.file_bytes)}
        results: list[ExecutionResult] = []
        deadline = time.monotonic() + limits.timeout_s
        while len(results) < len(inputs):
            left = max(0.001, deadline - time.monotonic()) if results else limits.timeout_s
            rest = inputs[len(results) :]
            some = self._evaluate(
                PROGRAM, {**request, "inputs": list(rest)}, dataclasses.replace(limits, timeout_s=left), len(rest)
            )
            results += some
            if results[-1].status in (ExecutionStatus.TIMEOUT, ExecutionStatus.INFRASTRUCTURE):
                results += [results[-1]] * (len(inputs) - len(results))
        return results

    def call(
        self, source: str, function: str, calls: Iterable[Any], *, limits: Limits | None = None
    ) -> ExecutionResult:
        """Run code once, then call a function of it.

        Args:
            source: Python source that defines the function; it runs as a module, not as ``__main__``.
            function: Its name; ``"Class.method"`` for a method of an instance made without arguments.
            calls: The arguments of each call: a list or tuple of them, or a dict of keyword arguments.
            limits: What all of it may use together; the sandbox's own if ``None``.

        Returns:
            The result, whose ``value`` holds a :class:`~sandbox.results.CallValue` for each call, in order.

        Raises:
            NotPlainError: An argument is not plain.
            ValueError: There are more than :data:`MAX_CALLS` calls.
        """
        limits = self._limits(limits)
        encoded = [_encoded_call(number, call) for number, call in enumerate(calls)]
        if len(encoded) > MAX_CALLS:
            raise ValueError(f"{len(encoded):,} calls in one evaluation; at most {MAX_CALLS:,}")
        refused = self._refused(source)
        if refused is not None:
            values = [CallValue(ok=False, error=refused.error)] * len(encoded)
            return dataclasses.replace(refused, value=values)
        request = {"source": source, "function": function, "calls": encoded, "room": limits.output_bytes}
        return self._evaluate(CALLS, request, limits, len(encoded))[0]

    def judge(
        self, source: str, tests: str, *, entry_point: str | None, setup: str = "", limits: Limits | None = None
    ) -> Judgement:
        """Run assert-style test text in a jail of its own, calling the code in another.

        This is what :func:`~sandbox.checks.check_asserts` is made of.
        """
        limits = self._limits(limits)
        refused = self._refused(source)
        if refused is not None:
            return Judgement(refused)
        room = limits.output_bytes
        request = {"source": source, "room": room}
        asked = {"tests": tests, "setup": setup, "entry_point": entry_point, "room": room}
        evaluation = self._attempt(PAIR, request, limits, asked)
        execution = evaluation.results(0, self.level)[0]
        return Judgement(execution, evaluation.verdict, evaluation.judged == 0)

    def run_many(self, sources: Iterable[str], **options: Any) -> list[ExecutionResult]:
        """Run programs, as many at once as there are workers, and give their results in order."""
        return self._many([lambda source=source: self.run(source, **options) for source in sources])

    def call_many(
        self, calls: Iterable[tuple[str, str, Sequence[Any]]], *, limits: Limits | None = None
    ) -> list[ExecutionResult]:
        """Make several evaluations of :meth:`call`: (source, function, calls) each; results in order."""
        return self._many([lambda one=one: self.call(*one, limits=limits) for one in calls])

    def _many(self, acts: Sequence[Any]) -> list[Any]:
        self.start()
        if self._workers == 1 or len(acts) < 2:
            return [act() for act in acts]
        with ThreadPoolExecutor(self._workers, thread_name_prefix="rewardkit-sandbox") as threads:
            return list(threads.map(lambda act: act(), acts))

    def close(self) -> None:
        """End every zygote. A second call does nothing."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
            zygotes = list(self._zygotes)
        for zygote in zygotes:
            zygote.close()
        atexit.unregister(self.close)

    def __enter__(self) -> Sandbox:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def processes(self) -> list[int]:
        """Process ids of the zygotes that are alive now."""
        return [zygote.process for zygote in self._zygotes if zygote.process]

    def _check_usable(self) -> None:
        if self._closed:
            raise PoolClosedError("this sandbox is closed; make a new one")
        if os.getpid() != self._owner:
            raise PoolClosedError("this sandbox belongs to the process that made it, not to a fork of it")

    def _limits(self, limits: Limits | None) -> Limits:
        limits = limits or self.limits
        if limits.processes > 1 and self.level is not Level.STRICT:
            raise ValueError(f"processes={limits.processes}: only at level 'strict' can processes be counted and ended")
        return limits

    def _refused(self, source: str) -> ExecutionResult | None:
        """Gives the result of a source that is not run at all."""
        size = len(source) if source.isascii() else len(source.encode("utf-8", "surrogatepass"))
        if size <= MAX_SOURCE_BYTES:
            return None
        words = f"the source is {size:,} bytes; at most {MAX_SOURCE_BYTES:,} are run"
        return _unrun(ExecutionStatus.NONZERO, words, self.level)

    def _prove(self) -> _Zygote:
        """Start a zygote at the level asked for, and show by attacks that it holds."""
        if not kernel.supported():
            raise SandboxUnavailableError(
                f"untrusted code can be run on Linux on x86_64 and aarch64 only, not on {sys.platform} {kernel.MACHINE}"
            )
        remove_stale_folders()
        tried = [Level.STRICT, Level.STANDARD] if self._asked == "auto" else [Level(self._asked)]
        failures: list[str] = []
        open_to: list[str] = []
        for level in tried:
            try:
                zygote = self._start_zygote(level)
            except SandboxUnavailableError as fault:
                failures.append(f"{level}: {fault}")
                continue
            succeeded = probe.succeeded(functools.partial(_probe, zygote), level)
            if succeeded:
                zygote.close()
                open_to += succeeded
                failures.append(f"{level}: in the jail it is possible to {', to '.join(succeeded)}")
                continue
            if level in (Level.SECCOMP_ONLY, Level.NONE):
                warnings.warn(
                    f"the sandbox runs at level {str(level)!r}, on explicit request: untrusted code "
                    + ("is not isolated at all" if level is Level.NONE else "can read this user's files"),
                    stacklevel=4,
                )
            self._level = level
            return zygote
        raise SandboxUnavailableError(
            f"this machine does not give the isolation asked for (level {self._asked!r}); "
            + "; ".join(failures)
            + "; 'rewardkit doctor' shows what stands in the way",
            open_to,
        )

    def _start_zygote(self, level: Level) -> _Zygote:
        zygote = _Zygote(PROFILES[self._profile], level, self.limits.file_bytes)
        self._zygotes.add(zygote)
        return zygote

    @contextlib.contextmanager
    def _zygote(self) -> Any:
        """Lend a zygote for one evaluation; a dead one is replaced."""
        self.start()
        self._check_usable()
        zygote = self._idle.get()
        try:
            if zygote is None or not zygote.process:
                assert self._level is not None
                zygote = self._start_zygote(self._level)
            yield zygote
        finally:
            self._idle.put(zygote)

    def _evaluate(self, kind: int, request: dict[str, Any], limits: Limits, count: int) -> list[ExecutionResult]:
        return self._attempt(kind, request, limits).results(count, self.level)

    def _attempt(
        self, kind: int, request: dict[str, Any], limits: Limits, tests: dict[str, Any] | None = None
    ) -> _Evaluation:
        """Run an evaluation; begin it again where the zygote died under it."""
        data = marshal.dumps(request)
        judged = b"" if tests is None else marshal.dumps(tests)
        first = request["inputs"][0].encode("utf-8", "surrogatepass") if kind == PROGRAM else b""
        words = ""
        for _ in range(MAX_ATTEMPTS):
            self._check_usable()
            try:
                with self._zygote() as zygote:
                    return zygote.evaluate(kind, limits, data, tests=judged, stdin=first)  # type: ignore[no-any-return]
            except (OSError, EOFError, SandboxUnavailableError) as fault:
                words = f"{type(fault).__name__}: {fault}"
        return _Evaluation(kind, limits, None, words)


class _Zygote:
    """One zygote process and the files it shares with this one.

    Attributes:
        process: Its process id; 0 once it is dead.
    """

    def __init__(self, profile: Profile, level: Level, scratch_bytes: int) -> None:
        self._lock = threading.Lock()  # protects the process's descriptor
        self._in_use = threading.RLock()  # protects the files: closed while an evaluation uses them, they are others'
        self._owner = os.getpid()
        self._folder = tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-")
        self._files = {name: anonymous_file(name) for name in FILES}  # "peer" only keeps its place
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = 0
        self._ended = -1
        try:
            self._start(profile, level, scratch_bytes, theirs)
        except BaseException:
            self.close()
            raise
        finally:
            theirs.close()

    def _start(self, profile: Profile, level: Level, scratch_bytes: int, theirs: socket.socket) -> None:
        root = str(Path(__file__).resolve().parent.parent)
        path, readable = _packages(profile)
        settings = {
            "socket": len(FILES), "parent": os.getpid(),
            "level": level, "preload": profile.modules, "path": path, "readable": readable,
            "mount_point": self._folder, "scratch_bytes": scratch_bytes,
        }  # fmt: skip
        boot = _BOOT.format(root=root, settings=json.dumps(settings))
        passed = [*self._files.values(), theirs.fileno()]
        aside = max(*passed, len(passed)) + 1  # first above all, then down, so that none is overwritten on the way
        actions: list[tuple[Any, ...]] = [
            (os.POSIX_SPAWN_DUP2, number, aside + place) for place, number in enumerate(passed)
        ]
        actions += [(os.POSIX_SPAWN_DUP2, aside + place, place) for place in range(len(passed))]
        actions += [(os.POSIX_SPAWN_CLOSE, aside + place) for place in range(len(passed))]
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
        self._empty_files()

    def _hear(self, timeout_s: float) -> bytes:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._ended, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(timeout_s * 1000)]
        if self._control.fileno() not in ready:
            raise TimeoutError("the zygote died" if ready else f"the zygote did not answer within {timeout_s:g} s")
        data = self._control.recv(1 << 16)
        if not data:
            raise EOFError("the zygote died")
        return data

    def evaluate(
        self, kind: int, limits: Limits, request: bytes, *, tests: bytes = b"", stdin: bytes = b""
    ) -> _Evaluation:
        """Run one evaluation.

        Raises:
            OSError, EOFError: The zygote died, or is no longer to be used; it has been ended.
        """
        self._in_use.acquire()
        try:
            if not self.process:
                raise EOFError("the zygote was ended")
            os.pwrite(self._files["request"], request, 0)
            os.pwrite(self._files["tests"], tests, 0)
            os.pwrite(self._files["stdin"], stdin, 0)
            cpu_s = limits.timeout_s if limits.cpu_s is None else limits.cpu_s
            largest = max(limits.output_bytes, limits.file_bytes) + 1
            order = ORDER.pack(
                kind, limits.timeout_s, cpu_s, limits.memory_bytes, largest, limits.open_files, limits.file_bytes,
                min(limits.processes, 255),
            )  # fmt: skip
            self._control.send(order)
            report = REPORT.unpack(self._hear(limits.timeout_s + GRACE_S))
            if REASONS[report[1]] == "no process":
                raise OSError("the zygote could not start a process")
            return _Evaluation(kind, limits, report, "", *self._read(limits))
        except BaseException:
            self.close()
            raise
        finally:
            self._in_use.release()

    def _read(self, limits: Limits) -> tuple[dict[str, bytes], list[Mapping[str, Any]], list[Mapping[str, Any]]]:
        """Read what the children left, at most one byte more than each may be, and empty the files."""
        most = limits.output_bytes
        outputs = {name: self._content(name, most + 1) for name in ("stdout", "stderr")}
        results, verdict = (_lines(self._content(name, 2 * most + (1 << 20))) for name in ("results", "verdict"))
        self._empty_files()
        return outputs, results, verdict

    def _content(self, name: str, most: int) -> bytes:
        descriptor = self._files[name]
        return os.pread(descriptor, min(most, os.fstat(descriptor).st_size), 0)

    def _empty_files(self) -> None:
        for name in FILES:
            os.ftruncate(self._files[name], 0)
            os.lseek(self._files[name], 0, os.SEEK_SET)  # the children share this place

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
            self._control.close()
            for descriptor in self._files.values():
                os.close(descriptor)
            self._files = {}
            shutil.rmtree(self._folder, ignore_errors=True)

    def __del__(self) -> None:
        if self.process or self._files:
            self.close()


class _Evaluation:
    """What a zygote reported and its children left, to be read as results."""

    def __init__(
        self,
        kind: int,
        limits: Limits,
        report: tuple[Any, ...] | None,
        words: str,
        outputs: Mapping[str, bytes] | None = None,
        lines: Sequence[Mapping[str, Any]] = (),
        verdict: list[Mapping[str, Any]] | None = None,
    ) -> None:
        self._kind = kind
        self._limits = limits
        self._report = report
        self._words = words
        self._outputs = outputs or {"stdout": b"", "stderr": b""}
        self._lines = lines
        self.verdict = verdict or []
        self.judged: int = -1 if report is None else report[6]

    def results(self, count: int, level: Level) -> list[ExecutionResult]:
        """Gives the results of a program's runs, up to the one that ended the process; otherwise just one."""
        if self._report is None:
            lost = _unrun(
                ExecutionStatus.INFRASTRUCTURE, f"the sandbox failed {MAX_ATTEMPTS} times: {self._words}", level
            )
            values = [CallValue(ok=False, error=lost.error)] * count if self._kind == CALLS else None
            return [dataclasses.replace(lost, value=values)]
        if self._kind == PROGRAM:
            return self._runs(count, level)
        raised = next((line["load"] for line in self._lines if isinstance(line.get("load"), dict)), None)
        if self._kind == PAIR:
            raised = next((line["load"] for line in self.verdict if isinstance(line.get("load"), dict)), None)
        result = self._ended(raised, level, (0, None), (0, None))
        if self._kind == CALLS:
            result = dataclasses.replace(result, value=self._values(count, result))
        return [result]

    def _runs(self, count: int, level: Level) -> list[ExecutionResult]:
        starts = {line["run"]: line for line in self._lines if isinstance(line.get("run"), int)}
        ends = {line["ran"]: line for line in self._lines if isinstance(line.get("ran"), int)}
        results = []
        for number in range(count):
            start, end = starts.get(number), ends.get(number)
            if start is None and number:
                break
            begun = start or {}
            spans = [(_place(begun, name), _place(end, name) if end else None) for name in ("out", "err")]
            last = number + 1 not in starts
            if end is None or (last and self._reason):
                results.append(self._ended(end and end.get("raised"), level, spans[0], spans[1]))
                break
            results.append(self._ran(end, level, spans[0], spans[1]))
        return results

    @property
    def _reason(self) -> str:
        assert self._report is not None
        return REASONS[self._report[1]]

    @property
    def _cpu_s(self) -> float:
        assert self._report is not None
        return float(self._report[3] + self._report[4])

    @property
    def _cpu_limit_s(self) -> int:
        """Gives when the first signal comes, which a program may ignore; the second is a second later."""
        return math.ceil(self._limits.timeout_s if self._limits.cpu_s is None else self._limits.cpu_s)

    def _ran(
        self, end: Mapping[str, Any], level: Level, out: tuple[int, int | None], err: tuple[int, int | None]
    ) -> ExecutionResult:
        """Gives the result of a run that came to its end and said so."""
        code = end.get("code")
        code = code if isinstance(code, int) and 0 <= code <= 255 else 1
        return self._result(code, None, end.get("raised"), level, out, err)

    def _ended(
        self, raised: Any, level: Level, out: tuple[int, int | None], err: tuple[int, int | None]
    ) -> ExecutionResult:
        """Gives the result of what ended with its process."""
        assert self._report is not None
        status = self._report[0]
        ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        if self._kind == PAIR and ended_by == signal.SIGKILL and not self._reason:
            ended_by, code = None, 1 if raised else 0  # the judge was done, and the zygote ended it
        return self._result(code, ended_by, raised, level, out, err)

    def _result(
        self,
        code: int | None,
        ended_by: int | None,
        raised: Any,
        level: Level,
        out: tuple[int, int | None],
        err: tuple[int, int | None],
    ) -> ExecutionResult:
        assert self._report is not None
        _, _, took, user_s, system_s, peak, _ = self._report
        stdout, stderr = _text(self._outputs["stdout"], *out), _text(self._outputs["stderr"], *err)
        most = self._limits.output_bytes
        ends = (("stdout", out[1]), ("stderr", err[1]))
        full = any(len(self._outputs[name]) > most and (end is None or end > most) for name, end in ends)
        status, error = self._judged(code, ended_by, raised, full)
        return ExecutionResult(
            status,
            code if ended_by is None else None,
            ended_by,
            stdout,
            stderr,
            full,
            None,
            error,
            raised.get("line") if isinstance(raised, dict) and isinstance(raised.get("line"), int) else None,
            took,
            user_s + system_s,
            peak * 1024,
            str(level),
        )

    def _judged(self, code: int | None, ended_by: int | None, raised: Any, full: bool) -> tuple[ExecutionStatus, str]:
        limits = self._limits
        kinds, words = _raised(raised)
        if self._reason == "timeout" and ended_by is not None:
            return ExecutionStatus.TIMEOUT, f"not done within {limits.timeout_s:.3g} s"
        if self._reason == "scratch" and ended_by is not None:
            return ExecutionStatus.OUTPUT_LIMIT, f"more than {limits.file_bytes:,} bytes of files"
        if ended_by == signal.SIGXCPU or (ended_by == signal.SIGKILL and self._cpu_s >= self._cpu_limit_s):
            return ExecutionStatus.TIMEOUT, "its processor time is used up"
        if full or code == TOO_LARGE:
            return ExecutionStatus.OUTPUT_LIMIT, f"more than {limits.output_bytes:,} bytes of output"
        if ended_by == signal.SIGSYS:
            return ExecutionStatus.FORBIDDEN, "a system call of another architecture"
        if ended_by == signal.SIGKILL:
            return ExecutionStatus.MEMORY, "the kernel ended it, most likely for want of memory"
        if ended_by is not None:
            return ExecutionStatus.KILLED, f"ended by {_signal_name(ended_by)}"
        if "MemoryError" in kinds or code == NO_MEMORY:
            words = words or "MemoryError"
            return ExecutionStatus.MEMORY, f"{words} (it may have {limits.memory_bytes:,} bytes)"
        if "PermissionError" in kinds:
            return ExecutionStatus.FORBIDDEN, words
        if code:
            return ExecutionStatus.NONZERO, words or f"exit code {code}"
        return ExecutionStatus.OK, ""

    def _values(self, count: int, result: ExecutionResult) -> list[CallValue]:
        """Gives what each call came to; calls that are not reported ended with the process."""
        values: dict[int, CallValue] = {}
        for line in self._lines:
            number = line.get("call")
            if isinstance(number, int) and number not in values:
                values[number] = _value(line)
        missing = CallValue(ok=False, error=result.error or "the process ended before this call was answered")
        return [values.get(number, missing) for number in range(count)]


def _value(line: Mapping[str, Any]) -> CallValue:
    if "raised" in line:
        _, words = _raised(line["raised"])
        found = line["raised"].get("line") if isinstance(line["raised"], dict) else None
        return CallValue(ok=False, error=words, line=found if isinstance(found, int) else None)
    try:
        return CallValue(ok=True, value=plain.decode(line.get("value")))
    except (NotPlainError, RecursionError) as odd:
        return CallValue(ok=False, error=f"what it gave cannot be read: {odd}")


def _raised(raised: Any) -> tuple[Sequence[str], str]:
    """Gives the built-in types and the words of an exception that a child described, whatever it described."""
    if not isinstance(raised, dict):
        return (), ""
    kinds = raised.get("kinds")
    kinds = [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else []
    kind, message = str(raised.get("type"))[:200], str(raised.get("message", ""))[:2000]
    return kinds, printable(f"{kind}: {message}" if message else kind)


def _lines(data: bytes) -> list[Mapping[str, Any]]:
    """Gives the JSON objects, one a line; what is none was not written by us and is left out."""
    found: list[Mapping[str, Any]] = []
    for line in data.split(b"\n"):
        try:
            message = json.loads(line) if line else None
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict):
            found.append(message)
    return found


def _text(data: bytes, start: int, end: int | None) -> str:
    return data[start:end].decode("utf-8", "replace")


def _place(line: Mapping[str, Any], name: str) -> int:
    value = line.get(name)
    return value if isinstance(value, int) and value >= 0 else 0


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _unrun(status: ExecutionStatus, words: str, level: Level) -> ExecutionResult:
    return ExecutionResult(status, None, None, "", "", False, None, words, None, 0.0, 0.0, 0, str(level))


def _encoded_call(number: int, call: Any) -> list[Any]:
    arguments: Any = [] if isinstance(call, Mapping) else list(call)
    keywords: Any = dict(call) if isinstance(call, Mapping) else {}
    try:
        return [plain.encode(arguments), plain.encode(keywords)]
    except NotPlainError as odd:
        raise NotPlainError(f"call {number}: {odd}") from None


def _checked_files(files: Mapping[str, str], most_bytes: int) -> dict[str, str]:
    for name, content in files.items():
        if not name or name.startswith("/") or ".." in name.split("/") or "\0" in name:
            raise ValueError(f"file name {name!r}: expected a relative one that stays in its directory")
        try:
            os.fsencode(name)
            size = len(content.encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError as odd:
            raise ValueError(f"file {name!r}: cannot be written as UTF-8: {odd}") from None
        if size > most_bytes:
            raise ValueError(f"file {name!r}: {size:,} bytes; at most {most_bytes:,} (file_bytes)")
    return dict(files)


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


def _probe(zygote: _Zygote, source: str) -> str:
    request = {"source": source, "args": [], "files": {}, "inputs": [""]}
    limits = Limits(timeout_s=20, memory_bytes=1 << 31)
    try:
        result = zygote.evaluate(PROGRAM, limits, marshal.dumps(request)).results(1, Level.NONE)[0]
    except (OSError, EOFError) as fault:
        raise SandboxUnavailableError(f"the attacks that prove it could not be tried: {fault}") from None
    if result.status is not ExecutionStatus.OK or not result.stdout.startswith("["):
        zygote.close()
        raise SandboxUnavailableError(f"the attacks that prove it could not be tried: {result.error}\n{result.stderr}")
    return result.stdout


def remove_stale_folders() -> None:
    """Remove the directories of clients that were killed."""
    for folder in glob.glob(os.path.join(tempfile.gettempdir(), f"{_FOLDER_PREFIX}*")):
        number = os.path.basename(folder)[len(_FOLDER_PREFIX) :].split("-")[0]
        if number.isdigit() and not os.path.exists(f"/proc/{number}"):
            shutil.rmtree(folder, ignore_errors=True)
