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
from types import MappingProxyType

from rewardkit.suites.assert_helpers import helpers_in, helpers_of, package_of
from rewardkit.suites.collection import functions_of, is_test_file
from rewardkit.suites.literal_values import imports_of
from rewardkit.suites.perturbations import KINDS, STRONG_KINDS, FunctionScan, Perturbation, scan_function
from rewardkit.suites.shared_constants import SharedConstants
from rewardkit.suites.soft_statements import Assertion, assertions_of
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
        lines: Those at which the test then fails; ``()`` where they are not known.
        line: That of the soft statement that then fails; 0 for none.
        row: The round of its loop in which it does; ``None`` for all.
    """

    original: object
    choices: int
    lines: frozenset[int] = frozenset()
    line: int = 0
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Twin:
    """A copy of a suite.

    Attributes:
        files: The text of each file.
        changes: What was changed, by the names of tests or of their assertions; several where each row of a test's
            parameters is changed, in the order of the rows.
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
        self._assertions: dict[str, tuple[Assertion, ...]] = {}
        self.disturbed = {}
        for name, text in files.items():
            if is_test_file(name):
                self._sources[name] = SourceText(name, text)
        self._helpers = helpers_of(_trees(files), frozenset(name.rpartition("/")[0] for name in self._sources))
        self.tests = tuple(test for name in self._sources for test in self._tests_of(name))
        self._wrapped: dict[str, set[Edit]] = {}
        for name, assertions in self._assertions.items():
            soft = [change.statement.statement for assertion in assertions if assertion.lines
                    for change in self._perturbations[assertion.name]]  # fmt: skip
            edits = {statement.edit for statement in soft if statement is not None}
            self._wrapped.setdefault(name.partition("::")[0], set()).update(edits)

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
            own = _of_each_statement(scan.perturbations) if best else []
            self._assertions[name] = assertions_of(name, [change.statement for change in own])
            for assertion in self._assertions[name]:
                if assertion.lines:
                    self._perturbations[assertion.name] = [own[index] for index in assertion.places]
            places = len({change.assertion for change in scan.perturbations})
            yield SuiteTest(name, best[0].kind if best else "", scan.asserts, places)

    def function_of(self, name: str) -> str:
        """Return a test's name without its parameters, in which anything may stand."""
        file, colons, test = name.partition("::")
        return f"{file}{colons}{test.partition('[')[0]}"

    def choices(self, name: str) -> list[int]:
        """Return how many values there are to guess among at each place in which a test or assertion can be changed.

        There is no place in what is weak: the text shows whether it is changed.
        """
        return choices_of(self._perturbations[name])

    def assertions(self, name: str) -> tuple[Assertion, ...]:
        """Return what of a test is changed by itself."""
        return self._assertions[name]

    def draw(
        self,
        perturbed: Collection[str],
        random: Random,
        sites: Mapping[str, int] | None = None,
        *,
        is_soft: bool = False,
    ) -> Twin:
        """Return all files, with the named tests or assertions changed.

        Args:
            perturbed: Names of ``tests`` whose kind is not ``""``, or of their assertions.
            sites: In which of its places each is changed; drawn where it is not named.
            random: What draws the changes; a ``random.SystemRandom()`` cannot be foreseen.
            is_soft: Whether tests go on where one of their assertions fails.

        Raises:
            ValueError: A name is no test's, or a weak test's.
        """
        wrapped = self._wrapped if is_soft else {}
        return drawn_twin(self._files, self._perturbations, perturbed, random, sites, wrapped)


def drawn_twin(
    files: Mapping[str, str],
    perturbations: Mapping[str, Sequence[Perturbation]],
    perturbed: Collection[str],
    random: Random,
    sites: Mapping[str, int] | None = None,
    further: Mapping[str, Iterable[Edit]] = MappingProxyType({}),
) -> Twin:
    """Return files with further edits and one change of each named test; raise ValueError for a test without any."""
    edits = {file: list(own) for file, own in further.items()}
    changes: dict[str, tuple[ChangedTest, ...]] = {}
    for name in sorted(set(perturbed)):
        if not perturbations.get(name):
            reason = "a weak test, none of whose asserts can be changed" if name in perturbations else "no test"
            raise ValueError(f"{name!r} is {reason}")
        site = (sites or {}).get(name)
        perturbation = random.choice(perturbations[name]) if site is None else perturbations[name][site]
        change = perturbation.statement
        line = change.statement.line if change.statement is not None else 0
        changes[name] = tuple(
            ChangedTest(made.original, made.choices, change.lines, line, change.row) for made in perturbation.changes
        )
        edits.setdefault(name.partition("::")[0], []).extend(change.draw(random) for change in perturbation.changes)
    texts = {name: replaced_text(text, edits[name]) if name in edits else text for name, text in files.items()}
    return Twin(texts, changes)


def choices_of(perturbations: Sequence[Perturbation]) -> list[int]:
    """Return how many values each place of a test must be guessed among; a test may show two, a weak one has none."""
    if all(way.kind not in STRONG_KINDS for way in perturbations):
        return []
    return [max(1, min(change.choices for change in way.changes) // 2) for way in perturbations]


def _trees(files: Mapping[str, str]) -> dict[str, ast.Module]:
    """Return the trees of all files that are Python."""
    trees = {}
    for name, text in files.items():
        with contextlib.suppress(ValueError):
            trees[name] = SourceText(name, text).tree
    return trees


def _of_each_statement(perturbations: Sequence[Perturbation]) -> list[Perturbation]:
    """Return the changes of each statement that are hardest to guess; weak ones only of what can be wrapped."""
    statements: dict[int, list[Perturbation]] = {}
    for change in perturbations:
        statements.setdefault(change.assertion, []).append(change)
    changes = [change for own in statements.values() for change in hardest(own)]
    is_strong = any(change.kind in STRONG_KINDS for change in changes)
    return [
        change
        for change in changes
        if change.kind in STRONG_KINDS or change.statement.statement is not None or not is_strong
    ]


def hardest(perturbations: Iterable[Perturbation]) -> list[Perturbation]:
    """Return the changes of which the text does not tell, the hardest to guess first; else those that are left."""
    changes = sorted(perturbations, key=lambda change: KINDS.index(change.kind))
    return [change for change in changes if change.kind in STRONG_KINDS] or changes
