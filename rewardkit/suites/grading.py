"""Grades a folder by tests that its agent did not write, in runs of which some expect what is wrong.

Tests and completion share a process, so no report of it is a verdict. What the completion cannot know is which run
expects what is true. So after a run as written come canaries: in each, every test is drawn to stay as written or to
expect another value. Right code passes the first and fails the others, and its value there is the one that the test
was written with, which is not in that process.
"""

from __future__ import annotations

import ast
import fnmatch
import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random, SystemRandom
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from rewardkit.errors import SuiteError
from rewardkit.jailed.sealed import SealedWorkspace, digest_of
from rewardkit.jailed.sealed_store import keep_sealed
from rewardkit.jailed.workspace import Workspace
from rewardkit.suites.canaries import Canaries, least_choices
from rewardkit.suites.packages import installed_packages
from rewardkit.suites.perturbations import STRONG_KINDS
from rewardkit.suites.protected import without_protected
from rewardkit.suites.suite_jail import GradedRun, SuiteJail
from rewardkit.suites.suite_verdict import SuiteResult, SuiteStatus, SuiteVerdict
from rewardkit.suites.twins import ChangedTest, SuiteTwins, Twin
from rewardkit.suites.verdict_cache import graded_once, machine_parts

if TYPE_CHECKING:
    from sandbox import Limits

Tests = Mapping[str, str | bytes] | str | os.PathLike[str]
Expected = Sequence[str] | Mapping[str, Sequence[str]]

_MORE_CANARIES = 24  # beyond those that each test needs by itself
_MEMORY_BYTES, _OUTPUT_BYTES, _ROOM_BYTES = 1 << 30, 8 << 20, 64 << 20
_CHOOSING = ("-k", "-m", "-x", "--co", "--collect-only", "--deselect", "--ignore", "--exitfirst", "--maxfail")
_MODULES = ("test_*.py", "*_test.py")


def check_suite(
    workspace: Workspace | SealedWorkspace | str | os.PathLike[str],
    tests: Tests,
    *,
    expected: Expected | None = None,
    runner: Literal["pytest", "unittest"] = "pytest",
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
        runner: How tests are named: ``"tests/test_a.py::TestA::test_b"`` (pytest), ``"tests.test_a.TestA.test_b"``
            (unittest).
        packages: Installed distributions that code may import, with what they require.
        confidence: The chance of a forgery that is accepted; it decides how many canaries are run. 1.0 for none.
        weak: What becomes of a folder that passes tests which no canary can guard.
        original: The folder as the agent was given it; with it ``protected`` is looked after.
        protected: Patterns of names that the agent must leave as they were.
        arguments: More arguments of pytest, such as ``("-p", "anyio")``; not those that choose tests.
        timeout_s: Seconds of each run.
        limits: What each run may use, in place of ``timeout_s``.
        random: Where canaries are drawn from; the system's randomness unless given, and then a folder that equals one
            which a worker of this runtime graded by the same tests has its verdict.

    Raises:
        SuiteError: An argument makes no sense, or a package is not installed.
        WorkspaceError: The folder cannot be read, or is too large.
        InfrastructureError: The jail itself failed.
    """
    if runner not in ("pytest", "unittest"):
        raise SuiteError(f"runner={runner!r:.80}: expected 'pytest' or 'unittest'")
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
    sealed = sealed_of(workspace)
    keep_sealed(sealed)
    trusted = _trusted(tests)
    try:
        twins = SuiteTwins(_texts(trusted))
    except ValueError as wrong:
        return SuiteVerdict(SuiteStatus.UNSUITABLE, digest=sealed.digest, error=f"the tests: {wrong}")
    modules = [name for name in trusted if _is_module(name, options.targets)]
    if not modules:
        return SuiteVerdict(SuiteStatus.UNSUITABLE, digest=sealed.digest, error="the suite has no file of tests")
    groups = _groups(options.expected, modules, options.runner)
    if unknown := _unknown(groups, trusted):
        error = f"the suite has no test {', '.join(unknown[:3])}"
        return SuiteVerdict(SuiteStatus.UNSUITABLE, groups=groups, digest=sealed.digest, error=error)
    if changed := _changed(sealed, options.original, options.protected):
        return _refused(groups, sealed, f"changes what is protected: {', '.join(changed[:3])}")
    installed = installed_packages(options.packages)
    files, left_out = without_protected(sealed.files, trusted, installed.places)
    limits = options.limits or _limits(options.timeout_s, files, trusted)
    jail = SuiteJail(files, installed, limits, options.arguments, options.absolute)

    def grade() -> SuiteVerdict:
        random = options.random or SystemRandom()
        grading = _Grading(jail, twins, trusted, modules, groups, options.confidence, random)
        return grading.verdict(left_out, sealed.digest, options.weak)

    if options.random is not None:
        return grade()
    settings = options._replace(original=None, protected=(), limits=limits)
    return graded_once((sealed.digest, digest_of(trusted), groups, settings, installed, machine_parts()), grade)


def _is_module(name: str, targets: Collection[str]) -> bool:
    """Return whether a trusted file has tests that are run."""
    if not targets:
        return any(fnmatch.fnmatchcase(name.rpartition("/")[2], pattern) for pattern in _MODULES)
    files = {target.split("::")[0] for target in targets}
    return name in files or (_is_module(name, ()) and any(name.startswith(f"{file}/") for file in files))


class _Grading:
    """The runs of one grading."""

    def __init__(
        self,
        jail: SuiteJail,
        twins: SuiteTwins,
        trusted: Mapping[str, bytes],
        modules: Sequence[str],
        groups: dict[str, list[str]],
        confidence: float,
        random: Random,
    ) -> None:
        self._jail = jail
        self._twins = twins
        self._trusted = trusted
        self._modules = modules
        self._groups = groups
        self._bits_wanted = math.log2(1 / confidence)
        self._random = random
        self._runs = 0
        self._duration_s = 0.0
        self._written = GradedRun()
        self._forged: set[str] = set()
        self._unsteady: set[str] = set()
        self._bits: dict[str, float] = {}

    def verdict(self, left_out: Mapping[str, str], digest: str, weak: str) -> SuiteVerdict:
        """Run the suite as written and, where it passes, its canaries."""
        self._written = self._run(Twin(_texts(self._trusted), {}))
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
            self._run_canaries(names)
            results = [self._judged(result) for result in results]
            if self._forged or self._unsteady:
                status = SuiteStatus.FORGED if self._forged else SuiteStatus.FAILED
        unguarded = tuple(name for name in names if _function(name) not in self._bits)
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
        return [name for name in unguarded if _function(name) in strong]

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
        functions = {_function(name) for name in appeared}
        return [*appeared, *(test.name for test in self._twins.tests if test.name not in functions)]

    def _missing(self, name: str) -> SuiteResult:
        return SuiteResult(name, "missing", message="" if self._written.error else "the suite has no such test")

    def _run_canaries(self, names: Sequence[str]) -> None:
        """Run canaries until the chance of a forgery is small enough for each test that can be one."""
        expected = {_function(name) for name in names}
        kinds = {test.name: test.kind for test in self._twins.tests if test.kind and test.name in expected}
        if not kinds or self._bits_wanted <= 0:
            return
        possible = self._twins.draw(kinds, self._random).changes
        choices = {name: least_choices(possible[name]) for name in self._in_order(kinds)}
        weak = {name for name, kind in kinds.items() if kind not in STRONG_KINDS}
        canaries = Canaries(choices, self._bits_wanted, self._random, weak, self._twins.disturbed)
        most = self._runs + _MORE_CANARIES + canaries.runs_alone()
        while not canaries.are_done() and self._runs < most:
            twin = self._twins.draw(perturbed := canaries.draw(), self._random)
            files = canaries.open_files()
            run = self._run(twin, [module for module in self._modules if module in files])
            names_there = [name for name in names if name.split("::")[0] in files]
            passing, broken = self._note(run, twin, names_there, perturbed, canaries)
            for group in canaries.settle({_function(name) for name in passing | broken}):
                if not self._confirm(group, passing, broken, names, canaries):
                    break
            if self._forged or self._unsteady:
                break
        self._bits = canaries.guarded_bits()

    def _in_order(self, functions: Collection[str]) -> list[str]:
        """Return functions in the order in which their tests run."""
        order = {_function(name): index for index, name in enumerate(self._written.collected)}
        return sorted(functions, key=lambda function: order.get(function, len(order)))

    def _note(
        self, run: GradedRun, twin: Twin, names: Sequence[str], perturbed: Collection[str], canaries: Canaries
    ) -> tuple[set[str], set[str]]:
        """Note what a canary shows; return the changed tests that passed, and those as written that did not pass."""
        renamed = _renamed(self._written.collected, run.collected)
        passing: set[str] = set()
        broken: set[str] = set()
        for name in names:
            function = _function(name)
            result = run.results.get(renamed.get(name, name))
            outcome = result.outcome if result is not None else "missing"
            if function in perturbed and outcome == "failed":
                change = _change_of(twin.changes[function], name, names, function)
                canaries.note(function, change, shows_value=_shows(change, run.compared.get(renamed.get(name, name))))
            elif function in perturbed:
                (passing if outcome == "passed" else broken).add(name)
            elif outcome != "passed" and not canaries.says_nothing(function):
                broken.add(name)
        return passing, broken

    def _confirm(
        self, group: str, passing: set[str], broken: set[str], names: Sequence[str], canaries: Canaries
    ) -> bool:
        """Look, with one test changed or none, what tests that are changed one at a time showed; return if to go on."""
        suspects = {name for name in passing if canaries.group_of(_function(name)) == group}
        changed = {_function(min(suspects))} if suspects else set()
        twin = self._twins.draw(changed, self._random)
        again_passing, again_broken = self._note(self._run(twin), twin, names, changed, Canaries({}, 0, self._random))
        self._forged |= again_passing
        self._unsteady |= set() if changed else again_broken
        if self._forged or self._unsteady:
            return False
        if not canaries.merge():  # it is neither, again and again
            self._unsteady |= suspects or broken
            return False
        return True

    def _judged(self, result: SuiteResult) -> SuiteResult:
        if result.name in self._forged:
            return SuiteResult(result.name, "forged", result.duration_s, "passes whatever it expects")
        if result.name in self._unsteady:
            return SuiteResult(result.name, "failed", result.duration_s, "does not pass each time")
        return result


def _shows(change: ChangedTest | None, sides: tuple[str, str] | None) -> bool:
    """Return whether one side of the comparison that failed is the value that the test was written with."""
    if change is None or change.choices <= 1 or sides is None:
        return False
    for side in sides:
        try:
            value = ast.literal_eval(side)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if type(value) is type(change.original) and value == change.original:
            return True
    return False


def _change_of(changes: Sequence[ChangedTest], name: str, names: Sequence[str], function: str) -> ChangedTest | None:
    """Return the change of one test of a function, whose tests have one each, or one for all."""
    if len(changes) == 1:
        return changes[0]
    own = [other for other in names if _function(other) == function]
    return changes[own.index(name)] if len(own) == len(changes) else None


def _renamed(written: Iterable[str], perturbed: Iterable[str]) -> dict[str, str]:
    """Return the names that tests have in a canary, where parameters are part of them, by order in each function."""
    names: dict[str, list[str]] = {}
    for name in perturbed:
        names.setdefault(_function(name), []).append(name)
    places: dict[str, int] = {}
    renamed = {}
    for name in written:
        function = _function(name)
        index = places[function] = places.get(function, -1) + 1
        if index < len(names.get(function, ())):
            renamed[name] = names[function][index]
    return renamed


def _function(name: str) -> str:
    """Return a test's name without its parameters, in which anything may stand."""
    file, colons, test = name.partition("::")
    return f"{file}{colons}{test.partition('[')[0]}"


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


def _texts(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: content.decode("utf-8", "replace") for name, content in files.items() if name.endswith(".py")}


def _groups(expected: Expected | None, modules: Sequence[str], runner: str) -> dict[str, list[str]]:
    if expected is None:
        return {}
    if isinstance(expected, str):
        raise SuiteError(f"expected={expected!r:.80}: give a list of names, or lists by group")
    groups = expected if isinstance(expected, Mapping) else {"expected": expected}
    return {group: [_pytest_name(name, modules, runner) for name in names] for group, names in groups.items()}


def _pytest_name(name: str, modules: Sequence[str], runner: str) -> str:
    if not isinstance(name, str):
        raise SuiteError(f"expected names: {name!r:.80} is no string")
    if runner == "pytest":
        return name
    for module in modules:
        dotted = module.removesuffix(".py").replace("/", ".")
        if name.startswith(f"{dotted}."):
            return "::".join([module, *name[len(dotted) + 1 :].split(".")])
    return name


def _unknown(groups: Mapping[str, Sequence[str]], trusted: Mapping[str, bytes]) -> list[str]:
    """Return the expected names that no trusted file can have, whatever the completion does."""
    identifiers = set(re.findall(r"\w+", "\n".join(_texts(trusted).values())))
    names = [name for listed in groups.values() for name in listed]
    return [
        name
        for name in names
        if name.split("::")[0] not in trusted or _function(name).split("::")[-1] not in identifiers
    ]


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

    size = sum(len(content) + 4096 for contents in files for content in contents.values())
    return Limits(
        timeout_s=timeout_s,
        memory_bytes=_MEMORY_BYTES,
        output_bytes=_OUTPUT_BYTES,
        open_files=256,
        file_bytes=_ROOM_BYTES + 2 * size,
    )
