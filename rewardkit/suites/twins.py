"""Canary twins: copies of a suite of tests in which some tests are changed so that right code fails them.

A suite and the code that it tests share a process, so the code can forge a pass. Each run of the suite draws, outside,
which tests stay as written and which are changed. Right code passes the one and fails the other. Code that passes
whatever happens, or that answers with what it finds in the frames of a test, passes both, and so it shows.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from rewardkit.suites.assert_helpers import helpers_in, helpers_of, package_of
from rewardkit.suites.collection import functions_of, is_test_file
from rewardkit.suites.literal_values import imports_of
from rewardkit.suites.perturbations import KINDS, STRONG_KINDS, FunctionScan, Perturbation, scan_function
from rewardkit.suites.shared_constants import SharedConstants
from rewardkit.suites.source_text import Edit, SourceText


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """A test function of a suite."""

    name: str
    """As pytest names it, without parameters: ``tests/test_a.py::TestX::test_b``."""
    kind: str
    """The kind of its change that is hardest to guess: ``"value"``, ``"exception"``, ``"order"`` or ``"polarity"``;
    ``""`` for a weak test, which has no change that is certain to fail."""
    asserts: int
    """How many asserts and calls of assert methods it has."""
    perturbable: int
    """How many of them can be changed."""


@dataclass(frozen=True, slots=True)
class ChangedTest:
    """What was changed in a test.

    Attributes:
        original: The value as written, which right code gives where the changed one is expected.
        choices: How many values there are, at least, among which who sees the changed one alone must guess; 1 where no
            value is changed.
    """

    original: object
    choices: int


@dataclass(frozen=True, slots=True)
class Twin:
    """A copy of a suite.

    Attributes:
        files: The text of each file.
        changes: What was changed, by the tests' names; several where each row of a test's parameters is changed, in the
            order of the rows.
    """

    files: dict[str, str]
    changes: dict[str, tuple[ChangedTest, ...]]


class SuiteTwins:
    """The tests of a suite, and copies of its files in which some are changed.

    Args:
        files: The text of each file by its relative name. Files that pytest does not collect by their names, such as
            ``conftest.py``, stay as they are.

    Raises:
        ValueError: A file of tests is no Python; the message has the file and the line.
    """

    tests: tuple[SuiteTest, ...]
    disturbed: dict[str, frozenset[str]]
    """Of tests that share with others the constant with their expected values, or an inherited function: the names of
    the others. A change of the one test says nothing of these."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = dict(files)
        self._sources: dict[str, SourceText] = {}
        self._perturbations: dict[str, list[Perturbation]] = {}
        self.disturbed = {}
        for name, text in files.items():
            if is_test_file(name):
                self._sources[name] = SourceText(name, text)
        self._helpers = helpers_of(_trees(files), frozenset(name.rpartition("/")[0] for name in self._sources))
        self.tests = tuple(test for name in self._sources for test in self._tests_of(name))

    def _tests_of(self, file: str) -> Iterator[SuiteTest]:
        """Yield the tests of a file, and keep what can be changed in them."""
        source = self._sources[file]
        imports = imports_of(source.tree, package_of(file))
        helpers = helpers_in(file, source.tree, imports, self._helpers)
        others = "\n".join(text for other, text in self._files.items() if other != file)
        tests = list(functions_of(source.tree))
        constants = SharedConstants(source.tree, tests, others)
        inherited: dict[int, set[str]] = {}
        for test in tests:
            inherited.setdefault(id(test.function), set()).add(test.name)
        for label, function, is_excused in tests:
            name = f"{file}::{label}"
            scan = scan_function(source, function, imports, constants.read_once, helpers)
            best, disturbed = _best(scan), inherited[id(function)] - {label}
            if not (best and best[0].kind in STRONG_KINDS) and (readers := constants.readers_beside(label)):
                wider = scan_function(source, function, imports, constants.values, helpers)
                if (change := _best(wider)) and change[0].kind in STRONG_KINDS:
                    scan, best, disturbed = wider, change, disturbed | readers
            if is_excused:
                scan, best = FunctionScan(scan.asserts, ()), []
            if best and disturbed:
                self.disturbed[name] = frozenset(f"{file}::{other}" for other in disturbed)
            self._perturbations[name] = best
            places = len({change.assertion for change in scan.perturbations})
            yield SuiteTest(name, best[0].kind if best else "", scan.asserts, places)

    def draw(self, perturbed: Collection[str], random: Random) -> Twin:
        """Return all files, with the named tests changed.

        Args:
            perturbed: Names of ``tests`` whose kind is not ``""``.
            random: What draws the changes; a ``random.SystemRandom()`` cannot be foreseen.

        Raises:
            ValueError: A name is no test's, or a weak test's.
        """
        edits: dict[str, list[Edit]] = {}
        changes: dict[str, tuple[ChangedTest, ...]] = {}
        for name in sorted(set(perturbed)):
            if not self._perturbations.get(name):
                reason = (
                    "a weak test, none of whose asserts can be changed" if name in self._perturbations else "no test"
                )
                raise ValueError(f"{name!r} is {reason}")
            perturbation = random.choice(self._perturbations[name])
            changes[name] = tuple(ChangedTest(change.original, change.choices) for change in perturbation.changes)
            edits.setdefault(name.partition("::")[0], []).extend(change.draw(random) for change in perturbation.changes)
        files = {
            name: self._sources[name].replaced(edits[name]) if name in edits else text
            for name, text in self._files.items()
        }
        return Twin(files, changes)


def _trees(files: Mapping[str, str]) -> dict[str, ast.Module]:
    """Return the trees of all files that are Python."""
    trees = {}
    for name, text in files.items():
        with contextlib.suppress(ValueError):
            trees[name] = SourceText(name, text).tree
    return trees


def _best(scan: FunctionScan) -> list[Perturbation]:
    """Return the changes of the kind that is hardest to guess."""
    kinds = {change.kind for change in scan.perturbations}
    best = next((kind for kind in KINDS if kind in kinds), "")
    return [change for change in scan.perturbations if change.kind == best]
