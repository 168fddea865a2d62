"""Canary twins: copies of a suite of tests in which some tests are changed so that right code fails them.

A suite and the code that it tests share a process, so the code can forge a pass. Each run of the suite draws, outside,
which tests stay as written and which are changed. Right code passes the one and fails the other. Code that passes
whatever happens, or that answers with what it finds in the frames of a test, passes both, and so it shows.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from rewardkit.suites.assert_helpers import helpers_in, helpers_of, package_of
from rewardkit.suites.collection import functions_of, is_test_file
from rewardkit.suites.literal_values import imports_of
from rewardkit.suites.perturbations import KINDS, STRONG_KINDS, FunctionScan, Perturbation, scan_function
from rewardkit.suites.shared_constants import SharedConstants
from rewardkit.suites.source_text import Edit, SourceText, replaced_text


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
    has_rows = True  # each row of a test's parameters has a result of its own

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
            best, disturbed = hardest(scan.perturbations), inherited[id(function)] - {label}
            if not (best and best[0].kind in STRONG_KINDS) and (readers := constants.readers_beside(label)):
                wider = scan_function(source, function, imports, constants.values, helpers)
                if (change := hardest(wider.perturbations)) and change[0].kind in STRONG_KINDS:
                    scan, best, disturbed = wider, change, disturbed | readers
            if is_excused:
                scan, best = FunctionScan(scan.asserts, ()), []
            if best and disturbed:
                self.disturbed[name] = frozenset(f"{file}::{other}" for other in disturbed)
            self._perturbations[name] = best
            places = len({change.assertion for change in scan.perturbations})
            yield SuiteTest(name, best[0].kind if best else "", scan.asserts, places)

    def function_of(self, name: str) -> str:
        """Return a test's name without its parameters, in which anything may stand."""
        file, colons, test = name.partition("::")
        return f"{file}{colons}{test.partition('[')[0]}"

    def choices(self, name: str) -> list[int]:
        """Return how many values there are to guess among at each place in which a test can be changed."""
        return choices_of(self._perturbations[name])

    def draw(self, perturbed: Collection[str], random: Random, sites: Mapping[str, int] | None = None) -> Twin:
        """Return all files, with the named tests changed.

        Args:
            perturbed: Names of ``tests`` whose kind is not ``""``.
            sites: In which of its places each is changed; drawn where it is not named.
            random: What draws the changes; a ``random.SystemRandom()`` cannot be foreseen.

        Raises:
            ValueError: A name is no test's, or a weak test's.
        """
        return drawn_twin(self._files, self._perturbations, perturbed, random, sites)


def drawn_twin(
    files: Mapping[str, str],
    perturbations: Mapping[str, Sequence[Perturbation]],
    perturbed: Collection[str],
    random: Random,
    sites: Mapping[str, int] | None = None,
) -> Twin:
    """Return files with one of the changes of each named test; raise ValueError for a test without any."""
    edits: dict[str, list[Edit]] = {}
    changes: dict[str, tuple[ChangedTest, ...]] = {}
    for name in sorted(set(perturbed)):
        if not perturbations.get(name):
            reason = "a weak test, none of whose asserts can be changed" if name in perturbations else "no test"
            raise ValueError(f"{name!r} is {reason}")
        site = (sites or {}).get(name)
        perturbation = random.choice(perturbations[name]) if site is None else perturbations[name][site]
        changes[name] = tuple(ChangedTest(change.original, change.choices) for change in perturbation.changes)
        edits.setdefault(name.partition("::")[0], []).extend(change.draw(random) for change in perturbation.changes)
    texts = {name: replaced_text(text, edits[name]) if name in edits else text for name, text in files.items()}
    return Twin(texts, changes)


def choices_of(perturbations: Sequence[Perturbation]) -> list[int]:
    """Return how many values each place of a test must be guessed among; a test may show two."""
    return [max(1, min(change.choices for change in way.changes) // 2) for way in perturbations]


def _trees(files: Mapping[str, str]) -> dict[str, ast.Module]:
    """Return the trees of all files that are Python."""
    trees = {}
    for name, text in files.items():
        with contextlib.suppress(ValueError):
            trees[name] = SourceText(name, text).tree
    return trees


def hardest(perturbations: Iterable[Perturbation]) -> list[Perturbation]:
    """Return the changes of which the text does not tell, the hardest to guess first; else those that are left."""
    changes = sorted(perturbations, key=lambda change: KINDS.index(change.kind))
    return [change for change in changes if change.kind in STRONG_KINDS] or changes
