"""What a language of the jail is: one frozen value that says how its programs are compiled, run and limited.

Texts in commands, walls and environments may hold ``{name}``: a :class:`Tool`'s absolute path by its name, and

- ``{scratch}``: the stage's own directory, which is empty but for its files,
- ``{artefact}``: the read-only directory with what the compile stage made,
- ``{NAME_home}``: the directory above the ``bin`` that a tool lies in,
- ``{memory_mb}``: the memory that the stage may use, in MiB,
- ``{heap_mb}``: three quarters of it, for the heap of a runtime that needs more than its heap,
- ``{kit}``: the language's directory of what is made once, such as precompiled headers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from sandbox.languages.notation import PLAIN, Notation

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Tool:
    """A program of a toolchain, found on this machine as the first of its candidates that runs.

    Attributes:
        name: Its name in ``{name}``.
        candidates: Names looked for on PATH, paths (``*`` matches, ``~`` is the home directory), or ``wheel:PATH`` in
            installed packages. The first that runs is taken.
        version: The arguments at which it prints its version; it must exit with 0, else it does not run here.
        install: How it is had where it is missing, such as ``apt-get install g++``.
    """

    name: str
    candidates: tuple[str, ...]
    version: tuple[str, ...] = ("--version",)
    install: str = ""


@dataclass(frozen=True, slots=True)
class Walls:
    """What a stage may use besides the C library, its directory and its input and output.

    Attributes:
        executable: Files, and directories of files, that may be executed and read. The loader is always among them.
        readable: Files and directories that may be read.
        environment: Variables besides ``PATH``, ``LANG``, ``HOME`` and ``TMPDIR``.
        tasks: Processes and threads at once.
        forks: Whether it may start processes. Such a stage runs only where a pid namespace ends them.
        proc: Whether it sees a ``/proc`` of its own namespace.
        data_share: ``RLIMIT_DATA`` of each process as a multiple of the memory that it may use; 0 for none. Runtimes
            that reserve memory need more than 1; the client measures what is really used in any case. With 1, stacks
            may have 64 MiB of it, for programs that call themselves deeply.
        data_extra: Bytes added to that, for what a runtime reserves whatever its limit, and hardly uses.
        most_memory: Bytes that the stage may use, whatever the caller's limit; 0 leaves the caller's. For compilers.
        open_files: Open files; 0 leaves the caller's limit.
    """

    executable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    tasks: int = 1
    forks: bool = False
    proc: bool = False
    data_share: float = 1.0
    data_extra: int = 0
    most_memory: int = 0
    open_files: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """Commands that run one after the other in one jail, each only if the one before it exited with 0.

    Attributes:
        commands: Each a program's absolute path and its arguments.
        walls: What they may use.
        takes: Names of files, with ``*``, that are kept as the artefact when the last has ended.
    """

    commands: tuple[tuple[str, ...], ...]
    walls: Walls
    takes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kit:
    """What is made once for a language, in a jail, such as precompiled headers."""

    files: Mapping[str, str]
    stage: Stage


@dataclass(frozen=True, slots=True)
class Program:
    """The files of a program, the first being its main one, and arguments that come after the run command's."""

    files: Mapping[str, str]
    arguments: tuple[str, ...] = ()
    entry: str | None = None  # replaces the last argument of the run command, such as Java's main class
    compile: Stage | None = None  # in place of the language's
    command: tuple[str, ...] = ()  # in place of the run stage's


@dataclass(frozen=True, slots=True)
class Suite:
    """A data set's tests in the language, for :meth:`Driver.tester`.

    Attributes:
        tests: Their text, with asserts that end the program.
        entry_point: The function that they call.
        declaration: Text that declares the function, up to its body: HumanEvalPack's ``declaration`` or ``prompt``.
        setup: Imports and helpers before the tests.
    """

    tests: str
    entry_point: str
    declaration: str = ""
    setup: str = ""


class CannotDriveError(Exception):
    """A row cannot be judged by the driver of its language; the text says why. It is skipped, never scored."""


class CannotCallError(Exception):
    """A completion's function has types of its own that no call has; the text says which. It fails."""


class Driver(Protocol):
    """How a function of a completion is called from outside its jail.

    A line on descriptor 3 has the arguments of a call, a line on descriptor 4 its answer, in the form of
    :mod:`sandbox.languages.wire`; :attr:`Language.channel` may name others. A tester has them the other way round: it
    writes calls to 3 and reads answers from 4.
    """

    def answerer(self, source: str, entry_point: str, calls: Sequence[Any] = ()) -> Program:
        """Return a program of the completion that answers calls until descriptor 3 ends, and then exits with 0.

        The arguments of the ``calls``, where they are known, say the types of a function that leaves its own open.
        """
        ...

    def function_name(self, suite: Suite) -> str:
        """Return the entry point that the answerer of a suite's completions needs: the name that its text declares."""
        ...

    def tester(self, suite: Suite) -> Program:
        """Return a program of the tests whose function asks the answerer; raise CannotDriveError where it cannot."""
        ...


class MissingMain(NamedTuple):
    """How a compiler says that a program lacks its entry, and the text of one that does nothing."""

    message: str
    text: str


@dataclass(frozen=True, slots=True)
class Language:
    """A language that the jail runs.

    Attributes:
        name: Its name, one of :func:`~sandbox.languages.names.language_name`.
        source_name: The file name of a program's source.
        tools: What must be on the machine.
        run: The stage that runs a program.
        compile: The stage before it; ``None`` where the source is run as it is.
        check: The stage that says whether source is well formed without running it, where nothing is compiled.
        prepare: From a completion's source to the text that is compiled, such as with another name for its class.
        hello: A program that prints ``hello``: the probe, which decides whether the language runs here.
        memory_texts: What its runtime says on standard error when its memory is used up; it names a failure, and
            excuses none.
        start_s: Seconds by which the runtime's start may lengthen a run.
        kit: What is made once.
        driver: How its functions are called.
        driver_language: The language whose tools build and run the driver's programs, where it is another.
        channel: The descriptors on which the driver's programs read and write, where the language cannot use 3 and 4.
        notation: What the values mean that they return.
        main: Where a program must have an entry: what a compiler's message says that misses it, and an empty one.
    """

    name: str
    source_name: str
    tools: tuple[Tool, ...]
    run: Stage
    hello: str
    compile: Stage | None = None
    check: Stage | None = None
    prepare: Callable[[str], str] | None = None
    memory_texts: tuple[str, ...] = ()
    start_s: float = 0.0
    kit: Kit | None = None
    driver: Driver | None = None
    driver_language: Language | None = None
    channel: tuple[int, int] = (3, 4)
    notation: Notation = PLAIN
    main: MissingMain | None = None
