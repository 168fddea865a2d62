"""How suites are run: what a file of tests is, how tests are named, what can be changed, and what runs them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Protocol

from rewardkit.errors import SuiteError
from rewardkit.suites.other_languages.go_tests import go_tests, is_go_test
from rewardkit.suites.other_languages.jails import GoJail, ProgramJail, is_built, without_tests
from rewardkit.suites.other_languages.java_tests import is_java_test, java_tests
from rewardkit.suites.other_languages.node_tests import is_node_test, node_tests
from rewardkit.suites.other_languages.scanned import ScannedTest, ScannedTwins
from rewardkit.suites.packages import InstalledPackages
from rewardkit.suites.protected import without_protected
from rewardkit.suites.soft_statements import Assertion
from rewardkit.suites.suite_jail import GradedRun, SuiteJail
from rewardkit.suites.twins import SuiteTest, SuiteTwins, Twin
from sandbox import junit_project, node_project, toolchain_of, why_not_run

if TYPE_CHECKING:
    from sandbox import Limits

Files = Mapping[str, bytes]


class Twins(Protocol):
    """The tests of a suite and its changed copies: :class:`SuiteTwins`, or those of other languages.

    Attributes:
        tests: The tests.
        disturbed: Of tests that share what is changed with others, these others.
        has_rows: Whether a test has a result for each row of its parameters, of which each is guarded.
    """

    tests: tuple[SuiteTest, ...]
    has_rows: bool

    @property
    def disturbed(self) -> Mapping[str, frozenset[str]]: ...

    def function_of(self, name: str) -> str:
        """Return the name of the test that a result belongs to."""

    def choices(self, name: str) -> list[int]:
        """Return how many values there are to guess among at each place in which a test or assertion can be changed."""

    def assertions(self, name: str) -> Sequence[Assertion]:
        """Return what of a test is changed by itself."""

    def draw(
        self, perturbed: Collection[str], random: Random, sites: Mapping[str, int] | None = None, *, is_soft: bool
    ) -> Twin:
        """Return all files, with the named tests or assertions changed."""


class Jail(Protocol):
    """What runs suites over one folder."""

    def run(self, tests: Files, modules: Sequence[str]) -> GradedRun:
        """Run the tests of some modules."""


class SuiteRunner:
    """A way to run suites; this one is pytest's.

    Attributes:
        name: As callers name it.
    """

    name = "pytest"

    def stamp(self) -> str:
        """Return what of the machine decides a verdict besides Python; raise SuiteError where it is missing."""
        return ""

    def is_module(self, name: str) -> bool:
        """Return whether a file has tests, by its name."""
        return any(fnmatch.fnmatchcase(name.rpartition("/")[2], pattern) for pattern in ("test_*.py", "*_test.py"))

    def texts(self, files: Files) -> dict[str, str]:
        """Return the texts of the files that are read for what can be changed."""
        return {name: data.decode("utf-8", "replace") for name, data in files.items() if name.endswith(".py")}

    def twins(self, texts: Mapping[str, str]) -> Twins:
        """Return the tests of a suite; raise ValueError where a file cannot be read."""
        return SuiteTwins(texts)

    def result_name(self, name: str, twins: Twins) -> str:
        """Return an expected name as results have it."""
        return name

    def unknown(self, names: Iterable[str], texts: Mapping[str, str], twins: Twins) -> list[str]:
        """Return the names of which no folder could make the suite have a test."""
        identifiers = set(re.findall(r"\w+", "\n".join(texts.values())))
        return [
            name
            for name in names
            if name.split("::")[0] not in texts or twins.function_of(name).split("::")[-1] not in identifiers
        ]

    def beside(
        self, files: Files, tests: Files, installed: InstalledPackages
    ) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return the agent's files that may lie beside the tests, and why others may not."""
        return without_protected(files, tests, installed.places)

    def jail(
        self,
        files: Files,
        installed: InstalledPackages,
        limits: Limits,
        arguments: Sequence[str],
        absolute: Mapping[str, str],
        twins: Twins,
    ) -> Jail:
        """Return what runs the suite."""
        return SuiteJail(files, installed, limits, arguments, absolute)


class UnittestRunner(SuiteRunner):
    """Runs suites as pytest does, with names as ``unittest`` writes them."""

    name = "unittest"

    def result_name(self, name: str, twins: Twins) -> str:
        for module in dict.fromkeys(test.name.split("::")[0] for test in twins.tests):
            dotted = module.removesuffix(".py").replace("/", ".")
            if name.startswith(f"{dotted}."):
                return "::".join([module, *name[len(dotted) + 1 :].split(".")])
        return name


class OtherRunner(SuiteRunner):
    """Runs suites of another language of the jail.

    Args:
        name: As callers name it.
        language: The jail's name of it.
        is_test: Whether a file has tests, by its name.
        scan: From a file's name and text to its tests.
        separator: What stands in a result's name between its test and its subtests.
        jail: Makes what runs the suite over a folder's files, within limits.
    """

    def __init__(
        self,
        name: str,
        language: str,
        is_test: Callable[[str], bool],
        scan: Callable[[str, str], Iterable[ScannedTest]],
        separator: str,
        jail: Callable[[Files, Limits, Twins], Jail],
    ) -> None:
        self.name = name
        self._language = language
        self._is_test = is_test
        self._scan = scan
        self._separator = separator
        self._jail = jail

    def stamp(self) -> str:
        if reason := why_not_run(self._language):
            raise SuiteError(f"runner={self.name!r}: {reason}")
        toolchain = toolchain_of(self._language)
        return toolchain.fingerprint if toolchain is not None else ""

    def is_module(self, name: str) -> bool:
        return self._is_test(name)

    def texts(self, files: Files) -> dict[str, str]:
        return {name: data.decode("utf-8", "replace") for name, data in files.items() if self.is_module(name)}

    def twins(self, texts: Mapping[str, str]) -> Twins:
        return ScannedTwins(texts, self._scan, self._separator)

    def unknown(self, names: Iterable[str], texts: Mapping[str, str], twins: Twins) -> list[str]:
        return [name for name in names if name.split("::")[0] not in texts]

    def beside(
        self, files: Files, tests: Files, installed: InstalledPackages
    ) -> tuple[dict[str, bytes], dict[str, str]]:
        return without_tests(files, tests, self.is_module)

    def jail(
        self,
        files: Files,
        installed: InstalledPackages,
        limits: Limits,
        arguments: Sequence[str],
        absolute: Mapping[str, str],
        twins: Twins,
    ) -> Jail:
        return self._jail(files, limits, twins)


class GoRunner(OtherRunner):
    """Runs suites of Go, of the files that are for this machine."""

    def texts(self, files: Files) -> dict[str, str]:
        return super().texts({name: data for name, data in files.items() if is_built(name, data)})

    def result_name(self, name: str, twins: Twins) -> str:
        if "::" in name:
            return name
        top = name.split("/")[0]
        files = [test.name.split("::")[0] for test in twins.tests if test.name.endswith(f"::{top}")]
        return f"{files[0]}::{name}" if len(files) == 1 else name

    def unknown(self, names: Iterable[str], texts: Mapping[str, str], twins: Twins) -> list[str]:
        tests = {test.name for test in twins.tests}
        return [name for name in names if twins.function_of(name) not in tests]


def _node_jail(files: Files, limits: Limits, twins: Twins) -> Jail:
    return ProgramJail(files, limits, node_project, "node")


def _junit_jail(files: Files, limits: Limits, twins: Twins) -> Jail:
    return ProgramJail(files, limits, junit_project, "java")


def _go_jail(files: Files, limits: Limits, twins: Twins) -> Jail:
    return GoJail(files, limits, [test.name for test in twins.tests])


_ALL = (
    SuiteRunner(),
    UnittestRunner(),
    # "test/area.test.js::shapes::has an area", the titles from suites to subtests
    OtherRunner("node", "javascript", is_node_test, node_tests, "::", _node_jail),
    # "shapes/area_test.go::TestArea/square"; "TestArea" where one file has it
    GoRunner("go", "go", is_go_test, go_tests, "/", _go_jail),
    # "src/test/java/shapes/AreaTest.java::square", or "...::square[2]" for a row
    OtherRunner("junit", "java", is_java_test, java_tests, "[", _junit_jail),
)
RUNNERS: dict[str, SuiteRunner] = {runner.name: runner for runner in _ALL}
"""Every way to run a suite, by name."""
