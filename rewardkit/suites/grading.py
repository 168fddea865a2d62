"""Grades a folder by tests that its agent did not write, in runs of which some expect what is wrong.

Tests and completion share a process, so no report of it is a verdict. What the completion cannot know is which run
expects what is true. So after a run as written come canaries: in each, every test is drawn to stay as written or to
expect another value. Right code passes the first and fails the others, and its value there is the one that the test
was written with, which is not in that process.
"""

from __future__ import annotations

import fnmatch
import math
import mmap
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from random import Random, SystemRandom
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from rewardkit.errors import SuiteError
from rewardkit.jailed.sealed import SealedWorkspace, digest_of
from rewardkit.jailed.sealed_store import keep_sealed
from rewardkit.jailed.workspace import Workspace
from rewardkit.suites.canary_runs import CanaryRuns
from rewardkit.suites.packages import installed_packages
from rewardkit.suites.perturbations import STRONG_KINDS
from rewardkit.suites.runners import RUNNERS, Jail, SuiteRunner, Twins
from rewardkit.suites.suite_jail import GradedRun
from rewardkit.suites.suite_verdict import SuiteResult, SuiteStatus, SuiteVerdict
from rewardkit.suites.twins import Twin
from rewardkit.suites.verdict_cache import graded_once, machine_parts

if TYPE_CHECKING:
    from sandbox import Limits

Tests = Mapping[str, str | bytes] | str | os.PathLike[str]
Expected = Sequence[str] | Mapping[str, Sequence[str]]

_MEMORY_BYTES, _OUTPUT_BYTES, _ROOM_BYTES = 1 << 30, 8 << 20, 64 << 20
_CHOOSING = ("-k", "-m", "-x", "--co", "--collect-only", "--deselect", "--ignore", "--exitfirst", "--maxfail")


def check_suite(
    workspace: Workspace | SealedWorkspace | str | os.PathLike[str],
    tests: Tests,
    *,
    expected: Expected | None = None,
    runner: Literal["pytest", "unittest", "node", "go", "junit"] = "pytest",
    packages: Sequence[str] = (),
    confidence: float = 1e-3,
    weak: Literal["accept", "refuse"] = "accept",
    original: Workspace | SealedWorkspace | None = None,
    protected: Sequence[str] = (),
    arguments: Sequence[str] = (),
    timeout_s: float = 60.0,
    limits: Limits | None = None,
    random: Random | None = None,
) -> SuiteVerdict:
    """Grade a folder by a suite of tests, in jails in which each run finds it as it was sealed.

    Args:
        workspace: The folder, or what it was when it was sealed.
        tests: The trusted tests with their configuration and data: texts by relative name, or the folder that holds
            them at these names. They stand in the place of the agent's.
        expected: Names of the tests that must pass, as the runner names them, or such lists by group, as
            ``{"fail_to_pass": [...], "pass_to_pass": [...]}``. A name that does not appear has failed, and a skip is no
            pass. ``None`` for all tests.
        runner: What runs the tests, and how they are named: ``"tests/test_a.py::TestA::test_b"`` (pytest),
            ``"tests.test_a.TestA.test_b"`` (unittest), ``"test/a.test.js::suite::title"`` (node, as ``node --test``),
            ``"pkg/a_test.go::TestA/subtest"`` or ``"TestA"`` (go, as ``go test``), ``"src/test/java/ATest.java::test"``
            (junit, for JUnit 4 and 5).
        packages: Installed distributions that code may import, with what they require.
        confidence: The chance of a forgery that is accepted; it decides how many canaries are run. 1.0 for none.
        weak: Whether tests which no canary can guard count, or make the suite unsuitable, whatever the folder is.
        original: The folder as the agent was given it; with it ``protected`` is looked after.
        protected: Patterns of names that the agent must leave as they were.
        arguments: More arguments of pytest, such as ``("-p", "anyio")``; not those that choose tests.
        timeout_s: Seconds of each run.
        limits: What each run may use, in place of ``timeout_s``.
        random: Where canaries are drawn from; the system's randomness unless given, and then a folder that equals one
            which a worker of this runtime graded by the same tests has its verdict.

    Raises:
        SuiteError: An argument makes no sense, or a package is not installed, or what runs the tests.
        WorkspaceError: The folder cannot be read, or is too large.
        InfrastructureError: The jail itself failed.
    """
    if runner not in RUNNERS:
        raise SuiteError(f"runner={runner!r:.80}: expected one of {', '.join(map(repr, RUNNERS))}")
    if runner not in ("pytest", "unittest") and (packages or arguments):
        raise SuiteError(f"packages and arguments are for pytest; runner={runner!r} takes neither")
    if not 0 < confidence <= 1:
        raise SuiteError(f"confidence={confidence!r:.80}: expected a number above 0, at most 1")
    if chosen := [argument for argument in arguments if argument.split("=")[0] in _CHOOSING]:
        raise SuiteError(f"arguments: {chosen[0]!r:.80} chooses tests; name those that must pass in expected")
    options = SuiteOptions(
        expected, runner, tuple(packages), confidence, weak, original, tuple(protected), tuple(arguments), timeout_s,
        limits, random,
    )  # fmt: skip
    return grade_suite(workspace, tests, options)


class SuiteOptions(NamedTuple):
    """How a folder is graded; the first of them as :func:`check_suite` has them.

    Attributes:
        targets: The files, folders and tests that are run, relative to the folder; ``()`` for all files of tests.
        absolute: What stands, in all Python sources, in the place of absolute paths: names relative to the folder.
    """

    expected: Expected | None = None
    runner: str = "pytest"
    packages: tuple[str, ...] = ()
    confidence: float = 1e-3
    weak: str = "accept"
    original: Workspace | SealedWorkspace | None = None
    protected: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    timeout_s: float = 60.0
    limits: Limits | None = None
    random: Random | None = None
    targets: tuple[str, ...] = ()
    absolute: Mapping[str, str] = MappingProxyType({})


def grade_suite(
    workspace: Workspace | SealedWorkspace | str | os.PathLike[str], tests: Tests, options: SuiteOptions
) -> SuiteVerdict:
    """Grade a folder as :func:`check_suite` does, whose errors it raises."""
    runner = RUNNERS[options.runner]
    stamp = runner.stamp()
    sealed = sealed_of(workspace)
    keep_sealed(sealed)
    trusted = _trusted(tests)
    texts = runner.texts(trusted)
    try:
        twins = runner.twins(texts)
    except ValueError as wrong:
        return SuiteVerdict(SuiteStatus.UNSUITABLE, digest=sealed.digest, error=f"the tests: {wrong}")
    modules = [name for name in trusted if _is_module(name, options.targets, runner)]
    if not modules:
        return SuiteVerdict(SuiteStatus.UNSUITABLE, digest=sealed.digest, error="the suite has no file of tests")
    groups = _groups(options.expected, runner, twins)
    names = [name for listed in groups.values() for name in listed]
    if unknown := runner.unknown(names, texts, twins):
        error = f"the suite has no test {', '.join(unknown[:3])}"
        return SuiteVerdict(SuiteStatus.UNSUITABLE, groups=groups, digest=sealed.digest, error=error)
    if options.weak == "refuse" and (weak := _weak(names, modules, twins)) is not None:
        error = f"no canary can guard {', '.join(weak[:3])}" if weak else "the suite has no tests"
        return SuiteVerdict(SuiteStatus.UNSUITABLE, groups=groups, weak=weak, digest=sealed.digest, error=error)
    if changed := _changed(sealed, options.original, options.protected):
        return _refused(groups, sealed, f"changes what is protected: {', '.join(changed[:3])}")
    installed = installed_packages(options.packages)
    files, left_out = runner.beside(sealed.files, trusted, installed)
    limits = options.limits or _limits(options.timeout_s, files, trusted)
    jail = runner.jail(files, installed, limits, options.arguments, options.absolute, twins)

    def grade() -> SuiteVerdict:
        random = options.random or SystemRandom()
        grading = _Grading(jail, twins, trusted, texts, modules, groups, options.confidence, random)
        return grading.verdict(left_out, sealed.digest, options.weak)

    if options.random is not None:
        return grade()
    settings = options._replace(original=None, protected=(), limits=limits)
    return graded_once((sealed.digest, digest_of(trusted), groups, settings, installed, machine_parts(), stamp), grade)


def _weak(names: Sequence[str], modules: Sequence[str], twins: Twins) -> tuple[str, ...] | None:
    """Return the expected tests that are weak, whatever the folder is; ``None`` where each can be guarded.

    ``()`` where there is no test.
    """
    kinds = {test.name: test.kind for test in twins.tests if test.name.split("::")[0] in modules}
    weak = tuple(name for name in names or kinds if kinds.get(twins.function_of(name)) not in STRONG_KINDS)
    return weak if weak or not kinds else None


def _is_module(name: str, targets: Collection[str], runner: SuiteRunner) -> bool:
    """Return whether a trusted file has tests that are run."""
    files = {target.split("::")[0] for target in targets}
    if name in files:
        return True
    return runner.is_module(name) and (not targets or any(name.startswith(f"{file}/") for file in files))


class _Grading:
    """The runs of one grading."""

    def __init__(
        self,
        jail: Jail,
        twins: Twins,
        trusted: Mapping[str, bytes],
        texts: Mapping[str, str],
        modules: Sequence[str],
        groups: dict[str, list[str]],
        confidence: float,
        random: Random,
    ) -> None:
        self._jail = jail
        self._twins = twins
        self._trusted = trusted
        self._texts = texts
        self._function = twins.function_of
        self._modules = modules
        self._groups = groups
        self._bits_wanted = math.log2(1 / confidence)
        self._random = random
        self._runs = 0
        self._duration_s = 0.0
        self._written = GradedRun()
        self._bits: dict[str, float] = {}

    def verdict(self, left_out: Mapping[str, str], digest: str, weak: str) -> SuiteVerdict:
        """Run the suite as written and, where it passes, its canaries."""
        self._written = self._run(Twin(dict(self._texts), {}))
        names = self._names()
        results = [self._written.results.get(name) or self._missing(name) for name in names]
        status, error = SuiteStatus.PASSED, self._written.error
        if not names and error:
            status = SuiteStatus.FAILED  # the completion ended it, which excuses nothing
        elif not names:
            status, error = SuiteStatus.UNSUITABLE, "the suite has no tests"
        elif any(result.outcome != "passed" for result in results):
            status = SuiteStatus.FAILED
        else:
            canaries = CanaryRuns(self._run, self._twins, self._written, self._modules, self._bits_wanted, self._random)
            canaries.run(names)
            self._bits = canaries.bits
            results = [self._judged(result, canaries) for result in results]
            if canaries.forged or canaries.unsteady or canaries.failing:
                status = SuiteStatus.FORGED if canaries.forged else SuiteStatus.FAILED
        unguarded = tuple(name for name in names if self._function(name) not in self._bits)
        if status is SuiteStatus.PASSED and self._bits_wanted > 0 and (odd := self._unguarded_by_behaviour(unguarded)):
            status, error = SuiteStatus.FAILED, f"{len(odd)} tests do not say what they compare, such as {odd[0]}"
        elif status is SuiteStatus.PASSED and unguarded and weak == "refuse":
            status, error = SuiteStatus.UNSUITABLE, f"{len(unguarded)} of {len(names)} tests cannot be guarded"
        bits = min(self._bits.values(), default=0.0)
        return SuiteVerdict(
            status,
            tuple(results),
            {group: tuple(listed) for group, listed in self._groups.items()},
            dict(left_out),
            unguarded if status is SuiteStatus.PASSED else (),
            self._runs,
            2.0**-bits,
            digest,
            self._duration_s,
            error,
        )

    def _unguarded_by_behaviour(self, unguarded: Sequence[str]) -> list[str]:
        """Return the tests that canaries guard where code is right, and have not: that no completion excuses."""
        strong = {test.name for test in self._twins.tests if test.kind in STRONG_KINDS}
        return [name for name in unguarded if self._function(name) in strong]

    def _run(self, twin: Twin, modules: Sequence[str] = ()) -> GradedRun:
        tests = {
            name: twin.files[name].encode() if name in twin.files else data for name, data in self._trusted.items()
        }
        run = self._jail.run(tests, modules or self._modules)
        self._runs += 1
        self._duration_s += run.duration_s
        return run

    def _names(self) -> list[str]:
        """Return the names of the expected tests: those that were given, or all; then each function appears."""
        if self._groups:
            return list(dict.fromkeys(name for listed in self._groups.values() for name in listed))
        appeared = dict.fromkeys(self._written.collected)
        functions = {self._function(name) for name in appeared}
        return [*appeared, *(test.name for test in self._twins.tests if test.name not in functions)]

    def _missing(self, name: str) -> SuiteResult:
        return SuiteResult(name, "missing", message="" if self._written.error else "the suite has no such test")

    def _judged(self, result: SuiteResult, canaries: CanaryRuns) -> SuiteResult:
        named = {result.name, self._function(result.name)} if not self._twins.has_rows else {result.name}
        if named & canaries.forged:
            return SuiteResult(result.name, "forged", result.duration_s, "passes whatever it expects")
        if named & canaries.unsteady:
            return SuiteResult(result.name, "failed", result.duration_s, "does not pass each time")
        if named & canaries.failing:
            return SuiteResult(
                result.name, "failed", result.duration_s, "it passes, but not the test that it is part of"
            )
        return result


def sealed_of(workspace: object) -> SealedWorkspace:
    """Return a folder as it is now; raise SuiteError for a value of another kind."""
    if isinstance(workspace, SealedWorkspace):
        return workspace
    if isinstance(workspace, Workspace):
        return workspace.sealed()
    if isinstance(workspace, str | os.PathLike):
        return Workspace(workspace).sealed()
    raise SuiteError(f"workspace={workspace!r:.80}: expected a Workspace, what it sealed, or a folder's path")


def _trusted(tests: Tests) -> dict[str, bytes]:
    if isinstance(tests, Mapping):
        return {name: text.encode() if isinstance(text, str) else text for name, text in tests.items()}
    folder = Path(tests)
    if not folder.is_dir():
        raise SuiteError(f"tests={str(tests)!r:.200}: no such folder; give the folder of tests, or texts by name")
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _groups(expected: Expected | None, runner: SuiteRunner, twins: Twins) -> dict[str, list[str]]:
    if expected is None:
        return {}
    if isinstance(expected, str):
        raise SuiteError(f"expected={expected!r:.80}: give a list of names, or lists by group")
    groups = expected if isinstance(expected, Mapping) else {"expected": expected}
    if wrong := [name for names in groups.values() for name in names if not isinstance(name, str)]:
        raise SuiteError(f"expected names: {wrong[0]!r:.80} is no string")
    return {group: [runner.result_name(name, twins) for name in names] for group, names in groups.items()}


def _changed(
    sealed: SealedWorkspace, original: Workspace | SealedWorkspace | None, protected: Sequence[str]
) -> list[str]:
    """Return the names of protected files that are not as they were."""
    if original is None or not protected:
        return []
    before = sealed_of(original).files
    names = sorted({*before, *sealed.files})
    guarded = [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in protected)]
    return [name for name in guarded if before.get(name) != sealed.files.get(name)]


def _refused(groups: Mapping[str, Sequence[str]], sealed: SealedWorkspace, error: str) -> SuiteVerdict:
    names = dict.fromkeys(name for listed in groups.values() for name in listed)
    results = tuple(SuiteResult(name, "failed", message=error) for name in names)
    return SuiteVerdict(SuiteStatus.FAILED, results, dict(groups), digest=sealed.digest, error=error)


def _limits(timeout_s: float, *files: Mapping[str, bytes]) -> Limits:
    from sandbox import Limits

    size = sum(len(content) + mmap.PAGESIZE for contents in files for content in contents.values())
    return Limits(
        timeout_s=timeout_s,
        memory_bytes=_MEMORY_BYTES,
        output_bytes=_OUTPUT_BYTES,
        open_files=256,
        file_bytes=_ROOM_BYTES + 2 * size,
    )
