"""Makes tasks of a package that brings its own tests: one small mistake in its sources, which some test notices."""

from __future__ import annotations

import fnmatch
import os
import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from rewardkit.errors import SuiteError
from rewardkit.harbor.code_edits import code_edits
from rewardkit.jailed.jail import close_shared
from rewardkit.jailed.sealed import SealedWorkspace
from rewardkit.suites.collection import is_test_file, starts_processes
from rewardkit.suites.grading import check_suite

_TESTS = ("test/*", "tests/*", "*/tests/*", "*/test/*", "test_*.py", "*/test_*.py", "*_test.py", "tests.py")
_FOLDERS = ("test", "tests")
_NO_SOURCES = ("setup.py", "docs/*", "doc/*", "examples/*", "*/conftest.py", "conftest.py", "benchmark*", "scripts/*")
_MOST_FILE_BYTES = 4 << 20
_MOST_SHARE = 0.5
"""Of the tests that fail by one mistake: where more do, the package no longer works, and the mistake shows at once."""


@dataclass(frozen=True, slots=True)
class PackageWithTests:
    """A package and the tests that it brings.

    Attributes:
        name: Such as ``"inflection-0.5.1"``.
        sources: All of its files but the tests.
        tests: Its tests and their data, by the names that they have below a folder ``tests`` beside the sources.
        passing: The tests that pass as they are.
        broken: The tests that neither pass nor are skipped; they are of no use.
        packages: Installed distributions that it needs.
    """

    name: str
    sources: SealedWorkspace
    tests: Mapping[str, bytes]
    passing: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeededBug:
    """A mistake in one file of a package.

    Attributes:
        package: The package without it.
        file: The changed file.
        label: What was changed, such as ``"line 8: '<' becomes '<='"``.
        content: The file with it.
        failing: The tests that fail by it, and how each says so.
    """

    package: PackageWithTests
    file: str
    label: str
    content: bytes
    failing: Mapping[str, str]

    @property
    def passing(self) -> list[str]:
        """The tests that pass with it too."""
        return [name for name in self.package.passing if name not in self.failing]

    def workspace(self) -> SealedWorkspace:
        """Return the sources with the mistake."""
        return SealedWorkspace({**self.package.sources.files, self.file: self.content})


def read_package(path: str | os.PathLike[str], packages: tuple[str, ...] = ()) -> PackageWithTests:
    """Return the sources and tests of a source distribution, or of a folder that is one unpacked; nothing is run.

    Args:
        path: The folder, ``.tar.gz``, ``.tgz`` or ``.zip``.
        packages: Installed distributions that it needs.

    Raises:
        SuiteError: It cannot be read, or is large.
    """
    source = Path(path)
    try:
        files = dict(_files_of(source))
    except (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError) as wrong:
        raise SuiteError(f"package {str(source)!r:.200}: cannot be read: {wrong}") from None
    name = re.sub(r"\.(tar\.gz|tgz|zip)$", "", source.name)
    rest = {name: content for name, content in files.items() if not _is_of_tests(name)}
    tests: dict[str, bytes] = {}
    for path in sorted(files.keys() - rest.keys(), key=lambda path: (path.count("/"), path)):
        tests.setdefault(_below_tests(path), files[path])
    return PackageWithTests(name, SealedWorkspace(rest), tests, packages=packages)


def with_passing(package: PackageWithTests, timeout_s: float = 60.0) -> PackageWithTests:
    """Return a package with the names of its tests that pass, each of two times, and of those that do not.

    Files in which no test passes, such as those that import what is not there, are left out of its tests, and so are
    those that start processes. The second time has a jail of its own, in which texts have other hashes: a function of
    which a test then has another name, for its parameters stand in a set, is of no use.

    Raises:
        InfrastructureError: The jail failed.
    """
    usable = {name: content for name, content in package.tests.items() if not starts_processes(content)}
    package = replace(package, tests=usable)
    arguments = ("--continue-on-collection-errors",)
    first = _outcomes(package, package.sources, None, timeout_s, arguments)
    identifiers = set(re.findall(rb"\w+", b"\n".join(package.tests.values())))
    passing = [name for name, (outcome, _) in first.items() if outcome == "passed" and _identifier(name) in identifiers]
    modules = {name.split("::")[0] for name in passing}
    tests = {name: content for name, content in package.tests.items() if name in modules or not is_test_file(name)}
    package = replace(package, tests=tests)
    close_shared()
    second = _outcomes(package, package.sources, passing, timeout_s) if passing else {}
    unsteady = {_identifier(name) for name in passing if second.get(name, ("missing", ""))[0] == "missing"}
    steady = tuple(
        name for name in passing if _identifier(name) not in unsteady and second.get(name, ("", ""))[0] == "passed"
    )
    others = (name for name, (outcome, _) in first.items() if outcome != "skipped" and name.split("::")[0] in modules)
    return replace(package, passing=steady, broken=tuple(name for name in others if name not in {*steady}))


def _identifier(name: str) -> bytes:
    """Return the name of a test's function."""
    return name.partition("::")[2].partition("[")[0].rpartition("::")[2].encode()


def seed_bugs(
    package: PackageWithTests, count: int, random: Random, *, tries: int = 0, timeout_s: float = 60.0
) -> Iterator[SeededBug]:
    """Yield mistakes that at least one test notices, and at most half of them.

    Args:
        package: With its passing tests, as :func:`with_passing` finds them.
        count: How many.
        random: What draws the files and the mistakes.
        tries: How many mistakes are tried for that, each with a run of the suite; 0 for five times as many.
        timeout_s: Seconds of a run; a mistake by which the suite takes longer is dropped.

    Raises:
        InfrastructureError: The jail failed.
    """
    drawn = _mistakes(package, random)
    for _, (file, label, content) in zip(range(tries or 5 * count), drawn, strict=False):
        changed = SealedWorkspace({**package.sources.files, file: content})
        outcomes = _outcomes(package, changed, list(package.passing), timeout_s)
        failing = {name: message for name, (outcome, message) in outcomes.items() if outcome == "failed"}
        missing = any(outcome not in ("passed", "failed") for outcome, _ in outcomes.values())
        if failing and not missing and len(failing) <= max(1, _MOST_SHARE * len(package.passing)):
            yield SeededBug(package, file, label, content, failing)
            count -= 1
        if not count:
            return


def _outcomes(
    package: PackageWithTests,
    workspace: SealedWorkspace,
    names: list[str] | None,
    timeout_s: float,
    arguments: tuple[str, ...] = (),
) -> dict[str, tuple[str, str]]:
    """Return what becomes of each test in one run, and its message."""
    verdict = check_suite(
        workspace,
        package.tests,
        expected=names,
        packages=package.packages,
        confidence=1.0,
        arguments=arguments,
        timeout_s=timeout_s,
    )
    return {result.name: (result.outcome, result.message) for result in verdict.results}


def _mistakes(package: PackageWithTests, random: Random) -> Iterator[tuple[str, str, bytes]]:
    """Yield changed files, of each file in turn; larger ones have more turns."""
    streams = {}
    for name, content in package.sources.files.items():
        if name.endswith(".py") and not any(fnmatch.fnmatchcase(name, pattern) for pattern in _NO_SOURCES):
            streams[name] = code_edits(content.decode("utf-8", "replace"), random), len(content)
    while streams:
        (file,) = random.choices(list(streams), [size for _, size in streams.values()])
        mutant = next(streams[file][0], None)
        if mutant is None:
            del streams[file]
        else:
            yield file, mutant.label, mutant.source.encode()


def _is_of_tests(name: str) -> bool:
    return name.endswith("conftest.py") or any(fnmatch.fnmatchcase(name, pattern) for pattern in _TESTS)


def _below_tests(name: str) -> str:
    """Return where a file of the tests lies among all of them: the part below the folder that is called so."""
    parts = name.split("/")
    above = next((index for index, part in enumerate(parts[:-1]) if part in _FOLDERS), -1)
    return "/".join(["tests", *parts[above + 1 :]])


def _files_of(source: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the plain files of a folder or an archive, by their names below its only folder."""
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.is_file() and not path.is_symlink() and not _is_bytecode(path.name):
                yield path.relative_to(source).as_posix(), _bounded(path.read_bytes(), path.name)
    elif source.suffix == ".zip":
        with zipfile.ZipFile(source) as archive:
            for entry in archive.infolist():
                if not entry.is_dir() and (name := _below(entry.filename)):
                    yield name, _bounded(archive.read(entry), name)
    else:
        with tarfile.open(source) as tar:
            for member in tar:
                if (
                    member.isfile()
                    and not _is_bytecode(member.name)
                    and (name := _below(member.name))
                    and (file := tar.extractfile(member))
                ):
                    yield name, _bounded(file.read(_MOST_FILE_BYTES + 1), name)


def _is_bytecode(name: str) -> bool:
    return name.endswith((".pyc", ".pyo"))


def _below(name: str) -> str:
    """Return a name without its first folder; ``""`` for bytecode, and for what leads out of that folder."""
    parts = name.split("/")
    is_outside = ".." in parts or name.startswith("/")
    return "" if is_outside or _is_bytecode(name) else "/".join(parts[1:])


def _bounded(content: bytes, name: str) -> bytes:
    if len(content) > _MOST_FILE_BYTES:
        raise SuiteError(f"file {name!r:.200}: expected at most {_MOST_FILE_BYTES:,} bytes")
    return content
