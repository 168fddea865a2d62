"""The sandbox: it starts zygotes, gives them code to run, supervises and restarts them."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import marshal
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from sandbox.core_count import default_workers
from sandbox.errors import PoolClosedError, SandboxUnavailableError
from sandbox.evaluation import Evaluation, unrun
from sandbox.input_runs import InputRuns
from sandbox.inside.runner import CALLS, PROGRAM
from sandbox.inside.zygote import PAIR
from sandbox.jail import kernel, probe
from sandbox.jail.levels import Level
from sandbox.jail_input import checked_files, encode_calls
from sandbox.languages.names import PYTHON, language_name
from sandbox.limits import Limits
from sandbox.process import PROFILES, ZygoteProcess, remove_stale_folders
from sandbox.results import AssertsRun, CallValue, ExecutionResult, ExecutionStatus, SuiteRun
from sandbox.shared_time import SharedTime, require_seconds
from sandbox.workers.clock import stopped

if TYPE_CHECKING:
    from sandbox.languages.language import Suite
    from sandbox.programs.engine import Artefact
    from sandbox.programs.other_languages import OtherLanguages
    from sandbox.projects.project import Project

MAX_SOURCE_BYTES = 1 << 20  # size of a source; a larger one is not run, and its result says so
MAX_ATTEMPTS = 3  # how often an evaluation is started whose zygote dies; then its status is infrastructure


class Sandbox:
    """Runs untrusted code in jails.

    Args:
        profile: What is loaded beforehand: ``"python"``, ``"numpy"`` or ``"pytest"``.
        level: ``"strict"``, ``"standard"``, ``"seccomp-only"``, ``"none"``, or ``"auto"``: the best proved of two.
        workers: Zygotes, so evaluations at once; by default the cores, of more than 4 half of them, 4 to 16.
        limits: What an evaluation may use, unless it says otherwise.
        readable: Further files and folders that code may read.

    Raises:
        SandboxUnavailableError: The machine does not give the level.
        ValueError: An argument makes no sense.

    >>> Sandbox().run("print(6 * 7)").stdout
    '42\\n'
    """

    def __init__(
        self,
        profile: str = "python",
        level: str = "auto",
        workers: int | None = None,
        limits: Limits | None = None,
        *,
        readable: Sequence[str] = (),
    ) -> None:
        if profile not in PROFILES:
            raise ValueError(f"profile={profile!r}: expected one of {', '.join(map(repr, PROFILES))}")
        if level not in ("auto", *Level):
            raise ValueError(f"level={level!r}: expected 'auto' or one of {', '.join(map(repr, map(str, Level)))}")
        if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
            raise ValueError(f"workers={workers!r}: expected a whole number, 1 or more")
        self.limits = limits or Limits()
        self._profile = PROFILES[profile]._replace(readable=tuple(readable))
        self._wanted_level = level
        self._workers = workers or default_workers()
        self._level: Level | None = None
        self._idle: list[ZygoteProcess | None] = []
        self._turn = threading.Condition()  # protects the idle zygotes and the number of those that are starting
        self._starting = 0
        self._zygotes: weakref.WeakSet[ZygoteProcess] = weakref.WeakSet()
        self._lock = threading.Lock()  # protects starting, closing and the choice of the level
        self._set_lock = threading.Lock()  # protects the set of zygotes: threads start some while others look
        self._other_languages: OtherLanguages | None = None
        self._started, self._closed, self._owner = False, False, os.getpid()
        atexit.register(self.close)

    def start(self) -> Sandbox:
        """Prove the level with a first zygote, else raise ``SandboxUnavailableError``; others start when needed."""
        self._check_usable()
        if not self._started:
            with stopped(), self._lock:
                if not self._started:
                    first = self._prove()
                    self._idle += [None] * (self._workers - 1) + [first]  # the last first: a lone caller always gets it
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
        files: Mapping[str, str | bytes] | None = None,
        args: Sequence[str] = (),
        limits: Limits | None = None,
        language: str = PYTHON,
    ) -> ExecutionResult:
        """Run one program; raise ``ValueError`` for a file with a bad name or too many bytes, or too many files.

        Args:
            source: Its source; that of Python is run as ``__main__``.
            stdin: What it reads from standard input.
            files: Files in its scratch directory, its current one, by relative name: texts, or bytes.
            args: Its arguments after the program's name.
            limits: What it may use; the sandbox's own if ``None``.
            language: What it is written in, as fences name it. What does not compile has the status ``nonzero``.

        Raises:
            LanguageUnavailableError: Nobody knows the language, or it does not run here.
        """
        return self.run_inputs(source, [stdin], files=files, args=args, limits=limits, language=language)[0]

    def run_inputs(
        self,
        source: str,
        inputs: Sequence[str],
        *,
        files: Mapping[str, str | bytes] | None = None,
        args: Sequence[str] = (),
        limits: Limits | None = None,
        run_timeout_s: float | None = None,
        language: str = PYTHON,
    ) -> list[ExecutionResult]:
        """Run one program once for each input and return a result for each.

        All runs share the time of one evaluation. Quick runs share a process too, each with names of its own; a run
        that ends its process makes the next one start in a new process. If a signal ended a process, the wait status
        shows how the last run ended, but only the process itself reported the ends of the earlier runs. So those are
        run again without the last one, for up to 0.5 s beyond the time. If a signal ends that process as well, all of
        these runs get the last run's result. In other languages each run has a process of its own.

        With ``run_timeout_s``, the seconds of each run, a late run costs the others nothing: the next one has a new
        process. All of them still have the time of the limits together; runs for which none is left get the last
        result. Raise ``ValueError`` where it is no number of seconds.
        """
        limits = self._limits(limits)
        if run_timeout_s is not None:
            require_seconds("run_timeout_s", run_timeout_s)
        if language_name(language) != PYTHON:
            checked = checked_files(files or {}, limits.file_bytes)
            return self._programs().run_inputs(language, source, inputs, checked, args, limits, run_timeout_s)
        refusal = self._refuse_large(source)
        if refusal is not None:
            return [refusal] * len(inputs)
        request = {"source": source, "args": list(args), "files": checked_files(files or {}, limits.file_bytes)}
        self.start()
        runs = InputRuns(functools.partial(self._attempt, PROGRAM), request, self.level)
        if run_timeout_s is None:
            return runs.run(inputs, limits)
        return runs.run_each(inputs, limits, run_timeout_s)

    def call(
        self,
        source: str,
        function: str,
        calls: Iterable[Any],
        *,
        limits: Limits | None = None,
        language: str = PYTHON,
    ) -> ExecutionResult:
        """Run code once, then call a function of it.

        Args:
            source: Source that defines the function; that of Python runs as a module, not as ``__main__``.
            function: Its name; ``"Class.method"`` for a method of an instance made without arguments.
            calls: The arguments of each call: a list or tuple of them, or in Python a dict of keyword arguments.
            limits: What all of it may use together; the sandbox's own if ``None``.
            language: What it is written in.

        Returns:
            The result, whose ``value`` holds a :class:`~sandbox.results.CallValue` for each call, in order.

        Raises:
            NotPlainError: An argument is not plain, or no value of the language.
            CheckError: In another language than Python, the name is no function's.
            ValueError: There are more than 100,000 calls.
            LanguageUnavailableError: Nobody knows the language, or it does not run here.
        """
        limits = self._limits(limits)
        if language_name(language) != PYTHON:
            return self._programs().call(language, source, function, [*calls], limits)
        encoded = encode_calls(calls)
        refusal = self._refuse_large(source)
        if refusal is not None:
            values = [CallValue(ok=False, error=refusal.error)] * len(encoded)
            return dataclasses.replace(refusal, value=values)
        return self._call_encoded(source, function, encoded, limits)

    def call_each(
        self,
        source: str,
        function: str,
        calls: Iterable[Any],
        *,
        call_timeout_s: float,
        limits: Limits | None = None,
        language: str = PYTHON,
    ) -> list[ExecutionResult]:
        """Call a function of code as :meth:`call` does, each time in a new process, and return a result for each call.

        Args:
            source: Source that defines the function; it runs anew for each call.
            function: Its name, as :meth:`call` takes it.
            calls: The arguments of each call.
            call_timeout_s: Seconds of each call, the run of the source included.
            limits: What a call may use; ``timeout_s`` is for all of them together. Calls for which no time is left get
                the last result.
            language: What it is written in.

        Raises:
            NotPlainError, CheckError, LanguageUnavailableError: As :meth:`call` raises them.
            ValueError: There are more than 100,000 calls, or ``call_timeout_s`` is no number of seconds.
        """
        limits = self._limits(limits)
        require_seconds("call_timeout_s", call_timeout_s)
        shared = SharedTime(limits, call_timeout_s)
        if language_name(language) != PYTHON:
            return self._programs().call_each(language, source, function, [*calls], limits, shared)
        encoded = encode_calls(calls)
        refusal = self._refuse_large(source)
        if refusal is not None:
            return [dataclasses.replace(refusal, value=[CallValue(ok=False, error=refusal.error)])] * len(encoded)
        results: list[ExecutionResult] = []
        for call in encoded:
            results.append(self._call_encoded(source, function, [call], shared.next_limits()))
            shared.charge(results[-1])
            if shared.ends_with(results[-1]):
                break
        return results + results[-1:] * (len(encoded) - len(results))

    def _call_encoded(self, source: str, function: str, encoded: list[Any], limits: Limits) -> ExecutionResult:
        request = {"source": source, "function": function, "calls": encoded, "room": limits.output_bytes}
        return self._attempt(CALLS, request, limits).results(len(encoded), self.level)[0]

    def run_asserts(
        self,
        source: str,
        tests: str,
        *,
        entry_point: str | None,
        setup: str = "",
        helpers: str = "",
        limits: Limits | None = None,
    ) -> AssertsRun:
        """Run assert-style test text in a jail of its own, calling the code in another.

        :func:`~sandbox.checks.check_asserts` reads the reports that this returns.
        """
        test_request = {"tests": tests, "setup": setup, "helpers": helpers, "entry_point": entry_point}
        return self._run_pair({"source": source}, test_request, limits)

    def run_dialog(
        self, source: str, interactor: str, stdin: str, expected: str, *, limits: Limits | None = None
    ) -> AssertsRun:
        """Run a program whose standard input and output are an interactor's, in another jail.

        :func:`~sandbox.dialog_checks.check_dialogs` reads the reports that this returns.
        """
        tester_request = {"interactor": interactor, "input": stdin, "expected": expected}
        return self._run_pair({"source": source, "dialog": True}, tester_request, limits)

    def _run_pair(self, request: dict[str, Any], tester_request: dict[str, Any], limits: Limits | None) -> AssertsRun:
        """Run a source in a jail and its tester in another, with a socket between them."""
        limits = self._limits(limits)
        refusal = self._refuse_large(request["source"])
        if refusal is not None:
            return AssertsRun(refusal)
        room = {"room": limits.output_bytes}
        evaluation = self._attempt(PAIR, request | room, limits, tester_request | room)
        execution = evaluation.results(0, self.level)[0]
        return AssertsRun(execution, evaluation.verdict, evaluation.tester_status == 0)

    def build(
        self, source: str, language: str, *, limits: Limits | None = None, needs_main: bool = True
    ) -> Artefact | ExecutionResult:
        """Compile a program and return it ready to run, or the compiler's result where it does not compile.

        With ``needs_main=False`` functions alone compile too. Raise LanguageUnavailableError as :meth:`run` does.
        """
        return self._programs().build(language, source, self._limits(limits), needs_main=needs_main)

    def run_suite(self, source: str, suite: Suite, language: str, *, limits: Limits | None = None) -> SuiteRun:
        """Run tests in a jail of their own, calling the code in another, for :func:`~sandbox.checks.check_suite`."""
        return self._programs().run_suite(language, source, suite, self._limits(limits))

    def run_project(self, project: Project, *, limits: Limits | None = None) -> ExecutionResult:
        """Build and run a program that was made of a folder; raise LanguageUnavailableError as :meth:`run` does."""
        return self._programs().run_project(project, self._limits(limits))

    def _programs(self) -> OtherLanguages:
        """Return what runs other languages, which is made when it is first needed."""
        level = self.level
        with self._lock:
            self._check_usable()
            if self._other_languages is None:
                from sandbox.programs.other_languages import OtherLanguages  # late: few need it

                self._other_languages = OtherLanguages(level, self._workers)
            return self._other_languages

    def run_many(self, sources: Iterable[str], **options: Any) -> list[ExecutionResult]:
        """Run programs, as many at once as there are workers, and return their results in order."""
        return self._many([functools.partial(self.run, source, **options) for source in sources])

    def call_many(self, calls: Iterable[tuple[str, str, Sequence[Any]]], **options: Any) -> list[ExecutionResult]:
        """Make :meth:`call` for each (source, function, calls), several at a time, and return the results in order."""
        return self._many([functools.partial(self.call, *call, **options) for call in calls])

    def _many(self, evaluations: Sequence[Callable[[], ExecutionResult]]) -> list[ExecutionResult]:
        self.start()
        if self._workers == 1 or len(evaluations) < 2:
            return [evaluate() for evaluate in evaluations]
        with ThreadPoolExecutor(self._workers, thread_name_prefix="rewardkit-sandbox") as threads:
            return list(threads.map(lambda evaluate: evaluate(), evaluations))

    def close(self) -> None:
        """End every zygote. A second call does nothing."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
            programs = self._other_languages
        for zygote in self._all_zygotes():
            zygote.close()
        if programs is not None:
            programs.close()
        atexit.unregister(self.close)

    def __enter__(self) -> Sandbox:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def processes(self) -> list[int]:
        """Process ids of the zygotes that are alive now."""
        return [zygote.process for zygote in self._all_zygotes() if zygote.process]

    def _all_zygotes(self) -> list[ZygoteProcess]:
        with self._set_lock:
            return list(self._zygotes)

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

    def _refuse_large(self, source: str) -> ExecutionResult | None:
        """Return the result of a source that is too large to be run; ``None`` for others."""
        size = len(source) if source.isascii() else len(source.encode("utf-8", "surrogatepass"))
        if size <= MAX_SOURCE_BYTES:
            return None
        reason = f"the source is {size:,} bytes; at most {MAX_SOURCE_BYTES:,} are run"
        return unrun(ExecutionStatus.NONZERO, reason, self.level)

    def _prove(self) -> ZygoteProcess:
        """Start a zygote at the first wanted level that holds under attack, and set ``_level``; raise if none does."""
        if not kernel.supported():
            raise SandboxUnavailableError(kernel.why_unsupported())
        remove_stale_folders()
        levels = [Level.STRICT, Level.STANDARD] if self._wanted_level == "auto" else [Level(self._wanted_level)]
        failures: dict[str, str] = {}
        open_to: list[str] = []
        for level in levels:
            try:
                zygote = self._start_zygote(level)
            except SandboxUnavailableError as fault:
                failures[level] = str(fault)
                continue
            succeeded = probe.succeeded(functools.partial(_probe, zygote), level)
            if succeeded:
                zygote.close()
                open_to += succeeded
                failures[level] = f"in the jail it is possible to {', to '.join(succeeded)}"
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
            f"this machine does not give the isolation asked for (level {self._wanted_level!r}); "
            + "; ".join(f"{level}: {reason}" for level, reason in failures.items())
            + "; 'rewardkit doctor' shows what stands in the way",
            open_to,
            failures,
        )

    def _start_zygote(self, level: Level, scratch_bytes: int = 0) -> ZygoteProcess:
        zygote = ZygoteProcess(self._profile, level, max(scratch_bytes, self.limits.file_bytes))
        with self._set_lock:
            self._zygotes.add(zygote)
        if self._closed:  # while it started
            zygote.close()
            self._check_usable()
        return zygote

    @contextlib.contextmanager
    def _zygote(self, scratch_bytes: int) -> Iterator[ZygoteProcess]:
        """Lend a zygote for one evaluation; replace it if it is dead or its scratch directory is too small."""
        self.start()
        with self._turn:
            while not self._idle:
                with stopped() if self._starting else contextlib.nullcontext():
                    self._turn.wait()
            zygote = self._idle.pop()
        try:
            if zygote is not None and self._level is Level.STRICT and zygote.scratch_bytes < scratch_bytes:
                zygote.close()
            if zygote is None or not zygote.process:
                zygote = self._start_next(scratch_bytes)
            yield zygote
        finally:
            with self._turn:
                self._idle.append(zygote)
                self._turn.notify()

    def _start_next(self, scratch_bytes: int) -> ZygoteProcess:
        """Start a zygote; meanwhile the clocks of this call and of those that wait for a zygote stand still."""
        assert self._level is not None
        with self._turn:
            self._starting += 1
            self._turn.notify_all()
        try:
            with stopped():
                return self._start_zygote(self._level, scratch_bytes)
        finally:
            with self._turn:
                self._starting -= 1
                self._turn.notify_all()

    def _attempt(
        self, kind: int, request: dict[str, Any], limits: Limits, tests: dict[str, Any] | None = None
    ) -> Evaluation:
        """Run an evaluation, at most :data:`MAX_ATTEMPTS` times while zygotes die under it; then return its failure."""
        data, test_data = marshal.dumps(request), b"" if tests is None else marshal.dumps(tests)
        stdin = request["inputs"][0].encode("utf-8", "surrogatepass") if kind == PROGRAM else b""
        reason = ""
        for _ in range(MAX_ATTEMPTS):
            self._check_usable()
            try:
                with self._zygote(limits.file_bytes) as zygote:
                    return zygote.evaluate(kind, limits, data, tests=test_data, stdin=stdin)
            except (OSError, EOFError, SandboxUnavailableError) as fault:
                reason = f"{type(fault).__name__}: {fault}"
        failure = f"the sandbox failed {MAX_ATTEMPTS} times: {reason}"
        self._on_failure(failure)
        return Evaluation(kind, limits, None, failure)

    def _on_failure(self, failure: str) -> None:
        """Do nothing: the result has the status infrastructure. A subclass may raise instead."""


def _probe(zygote: ZygoteProcess, source: str) -> str:
    """Run a program that proves the level and return its output; raise SandboxUnavailableError where it gives none."""
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
