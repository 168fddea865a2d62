"""Programs in other languages: compiled once for equal sources, and run, each in a jail of its own."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sandbox.errors import LanguageUnavailableError, PoolClosedError, SandboxUnavailableError
from sandbox.evaluation import unrun
from sandbox.jail.levels import Level
from sandbox.languages.language import MIB, Language, Program, Stage, Walls
from sandbox.languages.toolchains import MissingToolchain, Toolchain, expand, find_toolchain
from sandbox.limits import Limits
from sandbox.programs.artefacts import ArtefactStore, key_of
from sandbox.programs.endings import result_of
from sandbox.programs.launcher import Ending, LauncherProcess, LaunchOrder
from sandbox.results import NO_COMPILE, ExecutionResult, ExecutionStatus
from sandbox.workers.clock import stopped

_COMPILE_S, _KIT_S = 60.0, 1200.0  # seconds of a compiler, and of making a kit: Go's takes 70 of processor time
_COMPILE_BYTES = 256 * MIB  # of a compile's directory
_KIT_BYTES = 1024 * MIB
_COMPILE_OUTPUT_BYTES = 1 * MIB
MAX_ATTEMPTS = 3  # how often a program is started whose launcher dies; then nobody is to blame
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


@dataclass(frozen=True, slots=True)
class Artefact:
    """A program that is ready to run: its language, what its compiler made, and its files where nothing is compiled.

    Attributes:
        language: The language's name.
        key: The compiled program's key in the store; ``""`` where the sources themselves are run.
        program: The sources, and the arguments that they are run with.
        version: The toolchain's version, as a verdict's version covers it.
    """

    language: str
    key: str
    program: Program
    version: str


class Programs:
    """Launchers of a sandbox, a few for each language, and the store of what compilers made.

    Args:
        level: The level of isolation that was proved.
        workers: Programs that run at once.
    """

    def __init__(self, level: Level, workers: int) -> None:
        if level not in (Level.STRICT, Level.STANDARD):
            raise LanguageUnavailableError(f"at level {str(level)!r} only Python is run; use 'strict' or 'standard'")
        self.level = level
        self._workers = workers
        self._store = ArtefactStore()
        self._turn = threading.Condition()  # protects what follows
        self._running = 0
        self._idle: list[tuple[str, LauncherProcess]] = []  # with what each can run, the last used at the end
        self._all: set[LauncherProcess] = set()
        self._closed = False
        self._probes = threading.Lock()  # protects the probes' results
        self._probed: dict[str, str] = {}  # by the toolchain's stamp

    def toolchain(self, language: Language) -> Toolchain:
        """Return the tools of a language that runs here; raise LanguageUnavailableError where it does not."""
        toolchain = find_toolchain(language)
        if isinstance(toolchain, MissingToolchain):
            raise LanguageUnavailableError(str(toolchain), language.name)
        self._refuse_forks(language)
        return toolchain

    def prove(self, language: Language) -> Toolchain:
        """Return the tools of a language after its first program has run in the jail, once for its files.

        Where the sandbox itself fails, nothing is known of the language: the next program tells it, and is tried.
        """
        toolchain = self.toolchain(language)
        with self._probes:
            reason = self._probed.get(toolchain.stamp)
            if reason is None:
                reason = self._probe(language)
                if reason is not None:
                    self._probed[toolchain.stamp] = reason
        if reason:
            raise LanguageUnavailableError(
                f"{language.name} does not run in the jail of this machine: {reason}", language.name
            )
        return toolchain

    def _probe(self, language: Language) -> str | None:
        """Return why the first program of a language does not run; ``""`` if it does, ``None`` if nothing is known."""
        limits = Limits(timeout_s=20.0)
        try:
            built = self.build(language, Program({language.source_name: language.hello}), limits)
        except LanguageUnavailableError as reason:  # which holds for this process: a kit takes long to fail, too
            return str(reason)
        result = built if isinstance(built, ExecutionResult) else self.run(language, built, limits)
        if result.status is ExecutionStatus.INFRASTRUCTURE:
            return None
        if result.status is ExecutionStatus.OK and result.stdout == "hello\n":
            return ""
        return f"{result.error or 'it printed something else'} {result.stderr[-300:]}".strip()

    def _refuse_forks(self, language: Language) -> None:
        """Raise where a stage may start processes and no namespace of processes ends them."""
        stages = [stage for stage in (language.compile, language.run) if stage is not None]
        if self.level is not Level.STRICT and any(stage.walls.forks for stage in stages):
            raise LanguageUnavailableError(
                f"{language.name} needs processes of its own, which only level 'strict' ends for certain; "
                f"this is level {str(self.level)!r}"
            )

    def build(self, language: Language, program: Program, limits: Limits) -> Artefact | ExecutionResult:
        """Compile a program and return it ready to run, or the compiler's result where it does not compile."""
        toolchain = self.toolchain(language)
        files = _contents(program)
        if language.compile is None:
            return Artefact(language.name, "", program, toolchain.fingerprint)
        kit = self._kit(language, toolchain)
        stage = program.compile or language.compile
        key = key_of(toolchain.stamp, kit, str(self.level), repr(program.compile or ""), files=files)
        artefact = Artefact(language.name, key, program, toolchain.fingerprint)
        if not self._store.has(key):
            with stopped(), self._store.lock(key):
                if not self._store.has(key):
                    failed = self._compile(stage, toolchain, files, key, kit)
                    if failed is not None:
                        return failed
        failure = self._store.failure(key)
        return artefact if failure is None else _compile_failure(failure, str(self.level))

    def _compile(
        self, stage: Stage, toolchain: Toolchain, files: Mapping[str, bytes], key: str, kit: str
    ) -> ExecutionResult | None:
        """Compile files into the store; return a result that cannot be kept, because another try may end otherwise."""
        order = _order(stage.walls, files=files, takes=stage.takes, timeout_s=_COMPILE_S, file_bytes=_COMPILE_BYTES)
        ending = self._run_stage(toolchain, stage, order, kit=kit)
        result = self._result(ending, order, _COMPILE_S)
        if isinstance(ending, str):
            return result
        if result.status is ExecutionStatus.OK and ending.taken:
            self._store.put(key, ending.taken)
            return None
        if result.status is ExecutionStatus.OK and ending.taken is not None:
            self._store.put_failure(key, {"stderr": "the compiler made nothing of this source", "code": None})
            return None
        if result.status is ExecutionStatus.OK:
            result = dataclasses.replace(
                result, status=ExecutionStatus.OUTPUT_LIMIT, error="what the compiler made is too large"
            )
        if result.status is not ExecutionStatus.NONZERO:
            return dataclasses.replace(result, error=f"{NO_COMPILE}{result.error}")
        self._store.put_failure(key, {"stderr": (result.stderr or result.stdout)[:20_000], "code": result.exit_code})
        return None

    def _kit(self, language: Language, toolchain: Toolchain) -> str:
        """Return the key of a language's kit, which is made when it is first needed; ``""`` where it has none."""
        if language.kit is None:
            return ""
        files = {name: text.encode() for name, text in language.kit.files.items()}
        key = key_of("kit", toolchain.stamp, files=files)
        if not self._store.has(key):
            with stopped(), self._store.lock(key):
                if not self._store.has(key):
                    stage = language.kit.stage
                    order = _order(stage.walls, files=files, takes=stage.takes, timeout_s=_KIT_S, file_bytes=_KIT_BYTES)
                    ending = self._run_stage(toolchain, stage, order)
                    if isinstance(ending, str) or ending.status or not ending.taken:
                        raise LanguageUnavailableError(
                            f"what {language.name} needs could not be made: {_kit_failure(ending)}", language.name
                        )
                    self._store.put(key, ending.taken)
        return key

    def run(
        self,
        language: Language,
        artefact: Artefact,
        limits: Limits,
        *,
        stdin: bytes = b"",
        files: Mapping[str, bytes] | None = None,
        arguments: Sequence[str] = (),
        streams: Sequence[int] = (),
        attempts: int = MAX_ATTEMPTS,
        stop: int | None = None,
        is_second: bool = False,
    ) -> ExecutionResult:
        """Run a program once.

        Args:
            language: Its language.
            artefact: What was built of it.
            limits: What it may use.
            stdin: Its standard input.
            files: More files in its directory.
            arguments: More arguments.
            streams: Descriptors that it has as its language's channel.
            attempts: How often it is started while launchers die under it.
            stop: A descriptor that becomes readable when nobody waits for the program any more.
            is_second: Whether it belongs to another program that has its turn.
        """
        toolchain = self.toolchain(language)
        program = artefact.program
        sources = {} if artefact.key else _contents(program)
        stage = _with_arguments(language.run, program, arguments)
        order = _order(
            stage.walls,
            files={**sources, **(files or {})},
            stdin=stdin,
            streams=tuple(streams),
            channel=language.channel if streams else (),
            artefact=artefact.key,
            limits=limits,
            start_s=language.start_s,
        )
        ending = self._run_stage(toolchain, stage, order, attempts=attempts, stop=stop, is_second=is_second)
        return self._result(ending, order, limits.timeout_s, language.memory_texts)

    def check(self, language: Language, artefact: Artefact, limits: Limits) -> ExecutionResult | None:
        """Return why a source is not well formed, as its language says it without running it; ``None`` if it is."""
        assert language.check is not None
        order = _order(language.check.walls, files=_contents(artefact.program), limits=limits, start_s=language.start_s)
        ending = self._run_stage(self.toolchain(language), language.check, order)
        result = self._result(ending, order, limits.timeout_s)
        return None if result.status is ExecutionStatus.OK else result

    def _result(
        self, ending: Ending | str, order: LaunchOrder, timeout_s: float, memory_texts: Sequence[str] = ()
    ) -> ExecutionResult:
        """Return a stage's ending as a result; ``timeout_s`` is the caller's limit, without the runtime's start."""
        if isinstance(ending, str):
            return unrun(ExecutionStatus.INFRASTRUCTURE, ending, self.level)
        return result_of(ending, order.memory_bytes, order.output_bytes, timeout_s, memory_texts, str(self.level))

    def _run_stage(
        self,
        toolchain: Toolchain,
        stage: Stage,
        order: LaunchOrder,
        *,
        kit: str = "",
        attempts: int = MAX_ATTEMPTS,
        stop: int | None = None,
        is_second: bool = False,
    ) -> Ending | str:
        """Run a stage's commands; return why that was not possible after all attempts."""
        reason = ""
        for _ in range(attempts):
            try:
                with self._launcher(toolchain, kit, is_second=is_second) as launcher:
                    return launcher.run(self._expanded(toolchain, stage, order, launcher, kit), stop)
            except (OSError, EOFError, SandboxUnavailableError) as fault:
                reason = f"{type(fault).__name__}: {fault}"
        return f"the sandbox failed {attempts} times: {reason}"

    def _expanded(
        self, toolchain: Toolchain, stage: Stage, order: LaunchOrder, launcher: LauncherProcess, kit: str
    ) -> LaunchOrder:
        """Return an order with a stage's commands and walls as they are in a launcher's jail."""
        stage = expand(
            stage,
            toolchain,
            scratch=launcher.scratch,
            artefact=launcher.artefact_folder(order.artefact) if order.artefact else "-",
            memory_mb=max(1, order.memory_bytes // MIB),
            kit=str(self._store.path(kit)) if kit else "-",
        )
        artefact = (launcher.artefact_folder(order.artefact),) if order.artefact else ()
        environment = {**_ENVIRONMENT, "HOME": launcher.scratch, "TMPDIR": launcher.scratch}
        return dataclasses.replace(
            order,
            commands=stage.commands,
            environment=environment | dict(stage.walls.environment),
            executable=(*stage.walls.executable, *artefact),
            readable=stage.walls.readable,
        )

    @contextmanager
    def _launcher(self, toolchain: Toolchain, kit: str, *, is_second: bool) -> Iterator[LauncherProcess]:
        """Lend a launcher that sees a language's tools; the longest unused of others are ended for it."""
        needs = f"{toolchain.stamp} {kit}"
        with self._turn:
            while self._running >= self._workers and not self._closed and not is_second:
                with stopped():
                    self._turn.wait()
            if self._closed:
                raise PoolClosedError("this sandbox is closed; make a new one")
            self._running += not is_second
            launcher = self._take_idle(needs)
        try:
            if launcher is None or not launcher.process:
                with stopped():
                    launcher = self._start(toolchain, kit)
            yield launcher
        finally:
            with self._turn:
                self._running -= not is_second
                if launcher is not None and launcher.process:
                    self._idle.append((needs, launcher))
                else:
                    self._all -= {launcher}
                surplus = self._idle[: -2 * self._workers]
                del self._idle[: -2 * self._workers]
                self._turn.notify()
            for _, unused in surplus:
                unused.close()

    def _take_idle(self, needs: str) -> LauncherProcess | None:
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index][0] == needs:
                return self._idle.pop(index)[1]
        return None

    def _start(self, toolchain: Toolchain, kit: str) -> LauncherProcess:
        language = toolchain.language
        kit_folder = str(self._store.path(kit)) if kit else "-"
        stages = [stage for stage in (language.compile, language.run, language.kit and language.kit.stage) if stage]
        paths: list[str] = []
        for stage in stages:
            walls = expand(stage, toolchain, scratch="-", artefact="-", memory_mb=1, kit=kit_folder).walls
            paths += [path for path in (*walls.executable, *walls.readable) if path.startswith("/")]
        proc = any(stage.walls.proc for stage in stages)
        readable = [path for path in paths if os.path.exists(path)]
        launcher = LauncherProcess(self.level, readable, self._store.folder, proc=proc)
        with self._turn:
            self._all.add(launcher)
            closed = self._closed
        if closed:
            launcher.close()
            raise PoolClosedError("this sandbox is closed; make a new one")
        return launcher

    @property
    def processes(self) -> list[int]:
        """Process ids of the launchers that are alive now."""
        with self._turn:
            return [launcher.process for launcher in self._all if launcher.process]

    def close(self) -> None:
        """End every launcher."""
        with self._turn:
            self._closed = True
            launchers, self._idle = [*self._all], []
            self._turn.notify_all()
        for launcher in launchers:
            launcher.close()


def _order(
    walls: Walls,
    *,
    files: Mapping[str, bytes],
    stdin: bytes = b"",
    streams: tuple[int, ...] = (),
    channel: tuple[int, ...] = (),
    artefact: str = "",
    takes: tuple[str, ...] = (),
    limits: Limits | None = None,
    start_s: float = 0.0,
    timeout_s: float = 0.0,
    file_bytes: int = 0,
) -> LaunchOrder:
    """Return an order whose commands are filled in later; a compiler has limits of its own instead of the caller's."""
    limits = limits or Limits(timeout_s=timeout_s, output_bytes=_COMPILE_OUTPUT_BYTES, file_bytes=file_bytes)
    memory_bytes = walls.most_memory or limits.memory_bytes
    return LaunchOrder(
        commands=(),
        environment={},
        executable=(),
        readable=(),
        files=files,
        stdin=stdin,
        streams=streams,
        channel=channel,
        artefact=artefact,
        takes=takes,
        forks=walls.forks,
        proc=walls.proc,
        tasks=walls.tasks + limits.processes - 1,
        deep_stack=walls.data_share == 1,
        data_bytes=int(walls.data_share * memory_bytes) + walls.data_extra,
        memory_bytes=memory_bytes,
        timeout_s=limits.timeout_s + start_s,
        cpu_s=limits.whole_cpu_s + int(-(-start_s // 1)),
        output_bytes=limits.output_bytes,
        file_bytes=limits.file_bytes,
        open_files=max(walls.open_files, limits.open_files),
    )


def _contents(program: Program) -> dict[str, bytes]:
    """Return a program's files as bytes."""
    return {name: text.encode("utf-8", "surrogateescape") for name, text in program.files.items()}


def _with_arguments(stage: Stage, program: Program, arguments: Sequence[str]) -> Stage:
    """Return the run stage with a program's arguments, and its entry in place of the last argument."""
    *before, command = (program.command,) if program.command else stage.commands
    if program.entry is not None:
        command = (*command[:-1], program.entry)
    return dataclasses.replace(stage, commands=(*before, (*command, *program.arguments, *arguments)))


def _kit_failure(ending: Ending | str) -> str:
    """Return why a kit could not be made."""
    if isinstance(ending, str):
        return ending
    how = ending.reason or (f"status {ending.status}" if ending.status else "its files are missing or too large")
    return f"{how} after {ending.duration_s:.1f} s; {ending.stderr.decode('utf-8', 'replace')[-500:]}"


def _compile_failure(failure: Mapping[str, object], level: str) -> ExecutionResult:
    stderr = str(failure.get("stderr", ""))
    first = next((line for line in stderr.splitlines() if _says_why(line)), stderr.strip().partition("\n")[0])
    result = unrun(ExecutionStatus.NONZERO, f"{NO_COMPILE}{first[:300]}", Level(level))
    code = failure.get("code")
    return dataclasses.replace(result, stderr=stderr, exit_code=code if isinstance(code, int) else None)


def _says_why(line: str) -> bool:
    """Return whether a line of a compiler tells an error; what gcc says of its linker's end does not."""
    return "undefined reference" in line or ("error" in line.lower() and not line.startswith("collect2:"))
