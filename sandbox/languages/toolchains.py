"""The toolchains of this machine: where a language's tools are, whether they run, and of which version they are."""

from __future__ import annotations

import dataclasses
import glob
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, overload

from sandbox.languages.language import Language, Stage, Tool

VERSION_S = 20.0
"""Seconds that a tool may take to print its version; a machine under load needs some."""
MOST_VERSION_BYTES = 64 << 10
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/"}
_LOOK_S = 0.1  # between two looks at how much a tool has printed
_WHEEL = "wheel:"
_NAME = re.compile(r"\{(\w+)\}")
_MOST_REASON = 120  # characters
_HEAP_SHARE = 3 / 4

_T = TypeVar("_T", str, Stage)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The tools of a language, found on this machine and tried.

    Attributes:
        language: The language.
        paths: Each tool's absolute path by its name, without links.
        versions: The line that each tool prints as its version, by its name.
        fingerprint: What programs are compiled and run with: versions, commands and walls. It is the same on another
            machine with the same tools, and a verdict's version covers it.
        stamp: The fingerprint with the files of the tools: what was compiled here is kept under it.
    """

    language: Language
    paths: Mapping[str, str]
    versions: Mapping[str, str]
    fingerprint: str
    stamp: str

    @property
    def version(self) -> str:
        """The version line of the language's first tool."""
        return self.versions[self.language.tools[0].name]


@dataclass(frozen=True, slots=True)
class MissingToolchain:
    """Why programs of a language cannot run on this machine.

    Attributes:
        name: The language's name.
        reason: What is missing, or does not run.
        install: How it is had, such as ``apt-get install g++``.
    """

    name: str
    reason: str
    install: str

    def __str__(self) -> str:
        return f"{self.name} does not run on this machine: {self.reason} (to have it: {self.install})"


@dataclass(frozen=True, slots=True)
class _Installed:
    """A tool that runs: its path, the line that it prints as its version, and the size and time of its file."""

    path: str
    version: str
    file: tuple[int, int] | None


class _NotInstalledError(Exception):
    """A tool is not here, or does not run; the text says which and why."""

    def __init__(self, tool: Tool, reason: str) -> None:
        super().__init__(reason)
        self.tool = tool


@dataclass(slots=True)
class _Search:
    """A search for tools, which runs once, whoever asks for them first, and again where a tool's file has changed."""

    tools: tuple[Tool, ...]
    lock: threading.Lock = field(default_factory=threading.Lock)
    result: dict[str, _Installed] | _NotInstalledError | None = None
    toolchain: Toolchain | None = None  # the last that was made of the result

    def run(self) -> dict[str, _Installed] | _NotInstalledError:
        with self.lock:
            if self.result is None or _has_changed(self.result):
                self.toolchain = None
                try:
                    self.result = _find(self.tools)
                except _NotInstalledError as missing:
                    self.result = missing
            return self.result


_searches: dict[tuple[Tool, ...], _Search] = {}
os.register_at_fork(after_in_child=_searches.clear)  # a lock that a thread held in the parent is never released here


def find_toolchain(language: Language) -> Toolchain | MissingToolchain:
    """Return the language's tools on this machine, or why they are missing.

    Each tool is tried once in a process, and again when its file has changed: after an update of a compiler what was
    compiled before it is another program.
    """
    search = _searches.setdefault(language.tools, _Search(language.tools))
    result = search.run()
    if isinstance(result, _NotInstalledError):
        return MissingToolchain(language.name, str(result), result.tool.install)
    toolchain = search.toolchain
    if toolchain is not None and toolchain.language is language:
        return toolchain
    toolchain = search.toolchain = _toolchain_of(language, result)
    return toolchain


def _toolchain_of(language: Language, tools: Mapping[str, _Installed]) -> Toolchain:
    paths = {name: tool.path for name, tool in tools.items()}
    versions = {name: tool.version for name, tool in tools.items()}
    fingerprint = _digest(language.name, sorted(versions.items()), language.compile, language.run, language.kit)
    files = [(tool.path, *(tool.file or ())) for tool in tools.values()]
    return Toolchain(language, paths, versions, fingerprint, _digest(fingerprint, files))


def tools_stamp(languages: Iterable[Language]) -> str:
    """Return a digest of every file that may be a tool of these languages here: it changes when one is replaced.

    No tool is started: it takes some milliseconds, and says nothing about which of them run.
    """
    files = []
    for tools in {language.tools for language in languages}:
        first: dict[str, str] = {}
        for tool in tools:
            paths = list(dict.fromkeys(_paths_of(tool, _tool_values(first))))
            files += [(path, _file_of(path)) for path in paths]
            if not paths:
                break  # those after it may be looked for beside it
            first[tool.name] = paths[0]
    return _digest(sorted(files))


def _file_of(path: str) -> tuple[int, int] | None:
    """Return the size of a file and the time of its last change in nanoseconds; ``None`` where it is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _has_changed(result: Mapping[str, _Installed] | _NotInstalledError) -> bool:
    """Return whether a tool that was found is another file now; what was missing stays so."""
    if isinstance(result, _NotInstalledError):
        return False
    return any(_file_of(tool.path) != tool.file for tool in result.values())


@overload
def expand(
    template: str, toolchain: Toolchain, *, scratch: str = "", artefact: str = "", memory_mb: int = 0, kit: str = ""
) -> str: ...
@overload
def expand(
    template: Stage, toolchain: Toolchain, *, scratch: str = "", artefact: str = "", memory_mb: int = 0, kit: str = ""
) -> Stage: ...
def expand(
    template: str | Stage,
    toolchain: Toolchain,
    *,
    scratch: str = "",
    artefact: str = "",
    memory_mb: int = 0,
    kit: str = "",
) -> str | Stage:
    """Return a text, or a stage with all its texts, with what its ``{name}`` stand for.

    Raises:
        ValueError: A text names what is not there, such as ``{kit}`` before the kit is made.
    """
    values = {"scratch": scratch, "artefact": artefact, "kit": kit}
    if memory_mb:
        values |= {"memory_mb": str(memory_mb), "heap_mb": str(max(1, int(memory_mb * _HEAP_SHARE)))}
    values |= _tool_values(toolchain.paths)
    return _fill_stage(template, values) if isinstance(template, Stage) else _fill(template, values)


def _fill_stage(stage: Stage, values: Mapping[str, str]) -> Stage:
    walls = dataclasses.replace(
        stage.walls,
        executable=tuple(_fill(text, values) for text in stage.walls.executable),
        readable=tuple(_fill(text, values) for text in stage.walls.readable),
        environment=tuple((name, _fill(text, values)) for name, text in stage.walls.environment),
    )
    commands = tuple(tuple(_fill(text, values) for text in command) for command in stage.commands)
    return dataclasses.replace(stage, commands=commands, walls=walls)


def _fill(text: str, values: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        replacement = values.get(match[1], "")
        if not replacement:
            raise ValueError(f"{match[0]} in {text!r} stands for nothing here; there are {', '.join(sorted(values))}")
        return replacement

    return _NAME.sub(value, text)


def _tool_values(paths: Mapping[str, str]) -> dict[str, str]:
    """Return what tools stand for in texts: their paths, and as ``{name_home}`` the directory above their ``bin``."""
    homes = {f"{name}_home": os.path.dirname(os.path.dirname(path)) for name, path in paths.items()}
    return {**paths, **homes}


def _find(tools: tuple[Tool, ...]) -> dict[str, _Installed]:
    """Return the tools by name; raise _NotInstalledError for the first of which no candidate runs."""
    installed: dict[str, _Installed] = {}
    for tool in tools:
        values = _tool_values({name: earlier.path for name, earlier in installed.items()})
        installed[tool.name] = _first_that_runs(tool, values)
    return installed


def _first_that_runs(tool: Tool, values: Mapping[str, str]) -> _Installed:
    failures = []
    for path in dict.fromkeys(_paths_of(tool, values)):
        file = _file_of(path)
        version, reason = _version_of(path, tool)
        if version is not None:
            return _Installed(path, version, file)
        failures.append(f"{path} {reason}")
    raise _NotInstalledError(tool, "; ".join(failures) or f"no {_describe(tool)} on this machine")


def _describe(tool: Tool) -> str:
    """Return the name by which a person knows a tool."""
    return os.path.basename(tool.candidates[0].rstrip("/"))


def _paths_of(tool: Tool, values: Mapping[str, str]) -> Iterator[str]:
    """Yield the files that may be the tool, without links, in the order of its candidates."""
    for candidate in tool.candidates:
        if candidate.startswith(_WHEEL):
            yield from _in_wheel(candidate.removeprefix(_WHEEL))
        elif "/" in candidate:
            pattern = os.path.expanduser(_fill(candidate, values))
            yield from (os.path.realpath(path) for path in sorted(glob.glob(pattern), reverse=True))
        elif path := shutil.which(candidate):
            yield os.path.realpath(path)


def _in_wheel(path: str) -> Iterator[str]:
    """Yield the file of an installed package of this Python, if it is there; the package is not imported."""
    package, _, inside = path.partition("/")
    spec = importlib.util.find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        file = os.path.realpath(os.path.join(folder, inside))
        if os.path.exists(file):
            yield file


def _version_of(path: str, tool: Tool) -> tuple[str | None, str]:
    """Return the first line of what a tool prints as its version, or ``None`` and why it does not run."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(  # noqa: S603
                [path, *tool.version],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=_ENVIRONMENT,
                start_new_session=True,
            )
        except OSError as fault:
            return None, f"does not start: {fault.strerror}"
        failure = _wait(process, output.fileno())
        text = os.pread(output.fileno(), MOST_VERSION_BYTES, 0).decode("utf-8", "replace").strip()
    line = text.partition("\n")[0].strip()[:_MOST_REASON]
    if failure is None and process.returncode == 0:
        return line or "of no version", ""
    return None, failure or f"ends with {process.returncode}" + (f": {line}" if line else "")


def _wait(process: subprocess.Popen[bytes], output: int) -> str | None:
    """Wait until a tool has ended, and return why it had to be killed, if it had."""
    deadline = time.monotonic() + VERSION_S
    while True:
        try:
            process.wait(_LOOK_S)
            return None
        except subprocess.TimeoutExpired:
            failure = None
            if time.monotonic() > deadline:
                failure = f"prints no version within {VERSION_S:g} s"
            elif os.fstat(output).st_size > MOST_VERSION_BYTES:
                failure = "prints without end"
            if failure:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return failure


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
