"""The code of a run: what the modules of its rewards were when it was made, which each of its workers imports.

A worker that starts later reads nothing of them from the disk, where they may have been edited or half written. The
modules have the names, ``__file__`` and folders that they have on the disk, so data that they read lies where it lay.
A package that is installed stays on the disk: where it is another one than it was, the worker is refused.

Processes that a call starts by ``multiprocessing`` get the same; other programs that it starts read the disk.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.machinery
import importlib.util
import linecache
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

from sandbox.errors import WorkerStartError


class RunModule(NamedTuple):
    """A module as it was."""

    file: str  # Its path
    text: bytes  # The content of its file
    is_package: bool = False  # Whether the file is a package's ``__init__.py``


class Package(NamedTuple):
    """A package to install for the workers."""

    requirement: str  # It as pip takes it, a local path in full
    digest: str = ""  # Of the file or folder that it is installed from; empty where that is not a local one


class InstalledPackage(NamedTuple):
    """A package that is installed, as it was."""

    label: str  # Its name and version
    record: str  # The file in which its installer noted what it consists of
    digest: str  # Of that file


@dataclass(frozen=True, slots=True)
class RunCode:
    """The modules that rewards import, and the installed packages.

    Attributes:
        modules: The modules of one's own, by the name under which they are imported.
        packages: The installed packages that these import, by that name.
    """

    modules: Mapping[str, RunModule] = field(default_factory=dict)
    packages: Mapping[str, InstalledPackage] = field(default_factory=dict)

    def agrees_with(self, other: RunCode) -> bool:
        """Whether one process can have both: no module of one is another in the other."""
        pairs = ((self.modules, other.modules), (self.packages, other.packages))
        return all(ours[name] == theirs[name] for ours, theirs in pairs for name in ours.keys() & theirs.keys())

    def __bool__(self) -> bool:
        return bool(self.modules or self.packages)

    def __or__(self, other: RunCode) -> RunCode:
        return RunCode({**self.modules, **other.modules}, {**self.packages, **other.packages})

    @property
    def texts(self) -> dict[str, bytes]:
        """The content of the files by their real paths."""
        return {os.path.realpath(module.file): module.text for module in self.modules.values()}

    def check_packages(self) -> None:
        """Raise :class:`WorkerStartError` where an installed package is another one than it was."""
        for package in self.packages.values():
            if digest_of_record(package.record) != package.digest:
                raise WorkerStartError(
                    f"the package {package.label} was changed or removed after the runtime was made, and its scores "
                    "could be others now; install the same one again, or make a new runtime"
                )


class Sources:
    """The bytes of source files, each of which is read once and then stays as it was.

    Args:
        parent: Where files are read; ``None`` for the disk.
        texts: What some files are, by their real paths.

    Attributes:
        texts: The bytes of every file that was asked for, by its real path; ``None`` where it cannot be read.
    """

    def __init__(self, parent: Sources | None = None, texts: Mapping[str, bytes] | None = None) -> None:
        self.texts: dict[str, bytes | None] = dict(texts or {})
        self._parent = parent

    def data(self, file: Path | str) -> bytes | None:
        """Return a file's bytes; ``None`` where it cannot be read."""
        path = os.path.realpath(file)
        if path not in self.texts:
            self.texts[path] = _read(path) if self._parent is None else self._parent.data(path)
        return self.texts[path]


def _read(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        return None


def joined(codes: Iterable[RunCode]) -> list[RunCode]:
    """Return, in the place of each code, what one process can have of all: it and those that agree with it."""
    groups: list[RunCode] = []
    numbers: list[int] = []
    for code in codes:
        number = next((number for number, group in enumerate(groups) if group.agrees_with(code)), len(groups))
        if number == len(groups):
            groups.append(code)
        else:
            groups[number] |= code
        numbers.append(number)
    return [groups[number] for number in numbers]


class RunReward(NamedTuple):
    """A reward as the workers of a run load it."""

    payload: bytes  # It, pickled
    code: RunCode  # What it imports


def digest_of_record(record: str) -> str | None:
    """Return a digest of the files of an installed package, as its installer noted them; ``None`` where it is gone."""
    try:
        with open(record, "rb") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return None
    files = sorted(line for line in lines if b",sha256=" in line and b".dist-info/" not in line)
    return hashlib.sha256(b"\n".join(files)).hexdigest()


class FromText(importlib.machinery.SourceFileLoader):
    """Loads a module of a text, under a file's path.

    An import would take Python's cached bytecode where the file's size and the second of its last change are as they
    were: a file saved twice within a second would run as it was before.
    """

    def __init__(self, name: str, path: str, text: bytes) -> None:
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.text, self.path)

    def get_data(self, path: str) -> bytes:
        return self.text if path == self.path else super().get_data(path)

    def exec_module(self, module: ModuleType) -> None:
        with contextlib.suppress(SyntaxError, ValueError):  # tracebacks then show these lines, and not the disk's
            text = importlib.util.decode_source(self.text)
            linecache.cache[self.path] = len(text), None, text.splitlines(keepends=True), self.path
        super().exec_module(module)


class _Finder:
    """Finds the modules of a run before others do."""

    def __init__(self, code: RunCode) -> None:
        self.code = code

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of the run, which loads from the run's text; ``None`` for any other."""
        if name == "multiprocessing.spawn":
            return _spawning(name, path, self.code)
        module = self.code.modules.get(name)
        if module is None:
            return None
        return importlib.util.spec_from_file_location(
            name,
            module.file,
            loader=FromText(name, module.file, module.text),
            submodule_search_locations=[os.path.dirname(module.file)] if module.is_package else None,
        )


class _Spawning(importlib.machinery.SourceFileLoader):
    """Loads ``multiprocessing.spawn``, and lets what it starts begin with a run's code."""

    code: RunCode

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        prepare = module.get_preparation_data

        @functools.wraps(prepare)
        def get_preparation_data(name: str) -> dict[str, object]:
            return {**prepare(name), "rewardkit_code": Installation(self.code)}

        module.get_preparation_data = get_preparation_data  # type: ignore[attr-defined]


def _spawning(name: str, path: Sequence[str] | None, code: RunCode) -> importlib.machinery.ModuleSpec | None:
    """Return the spec of ``multiprocessing.spawn``, whose processes begin with the run's code."""
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    if spec is not None and spec.origin is not None:
        spec.loader = loader = _Spawning(name, spec.origin)
        loader.code = code
    return spec


class Installation(NamedTuple):
    """What installs a run's code where it is unpickled."""

    code: RunCode

    def __reduce__(self) -> tuple[object, ...]:
        return install, (self.code,)


def install(code: RunCode) -> None:
    """Import a run's modules in this process from now on; raise where a package is another one."""
    code.check_packages()
    sys.meta_path.insert(0, _Finder(code))


@contextlib.contextmanager
def imported_from(code: RunCode) -> Iterator[None]:
    """Import a run's modules within the block."""
    finder = _Finder(code)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # a call took it away
            sys.meta_path.remove(finder)


def text_in_run(name: str) -> bytes | None:
    """Return the text of a file's module in the run whose code this process imports, if there is one."""
    finders = (finder for finder in sys.meta_path if isinstance(finder, _Finder))
    return next((finder.code.modules[name].text for finder in finders if name in finder.code.modules), None)
