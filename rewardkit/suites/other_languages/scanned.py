"""A test of a file in another language, and copies of files in which such tests are changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from random import Random
from typing import NamedTuple

from rewardkit.suites.perturbations import Perturbation
from rewardkit.suites.soft_statements import Assertion, assertions_of
from rewardkit.suites.twins import SuiteTest, Twin, choices_of, drawn_twin, hardest


class ScannedTest(NamedTuple):
    """A test, with the subtests that it starts.

    Attributes:
        name: The file and the titles down to it, between them ``::``.
        asserts: How many asserts it has.
        perturbations: The changes by which right code fails it.
        results: What the names of its results match, where its title is made when it runs.
    """

    name: str
    asserts: int
    perturbations: tuple[Perturbation, ...]
    results: re.Pattern[str] | None = None


class ScannedTwins:
    """The tests of a suite, and copies of its files in which some are changed.

    Args:
        files: The text of each file of tests by its relative name.
        scan: From a file's name and text to its tests; what it raises is raised.
        separator: What stands in a result's name between its test and its subtests.
    """

    tests: tuple[SuiteTest, ...]
    disturbed: Mapping[str, frozenset[str]]
    """Empty: no change of these is read by another test."""
    has_rows = False  # a test's rows are its subtests, with which it fails

    def __init__(
        self, files: Mapping[str, str], scan: Callable[[str, str], Iterable[ScannedTest]], separator: str
    ) -> None:
        self._files = dict(files)
        self._separator = separator
        self._perturbations: dict[str, list[Perturbation]] = {}
        self._patterns: list[tuple[re.Pattern[str], str]] = []
        self.disturbed = {}
        scanned = [test for name, text in files.items() for test in scan(name, text)]
        counts = Counter(test.name for test in scanned)
        tests = []
        for test in scanned:
            if counts[test.name] == 1:  # of two with one name nobody can say which has failed
                best = hardest(test.perturbations)
                self._perturbations[test.name] = best
                places = len({change.assertion for change in test.perturbations})
                tests.append(SuiteTest(test.name, best[0].kind if best else "", test.asserts, places))
                if test.results is not None:
                    self._patterns.append((test.results, test.name))
        self.tests = tuple(tests)

    def function_of(self, name: str) -> str:
        """Return the test that a result belongs to; its own name where no file has such a test."""
        parts = name.split(self._separator)
        for count in range(len(parts), 0, -1):
            above = self._separator.join(parts[:count])
            if above in self._perturbations:
                return above
        return next((test for pattern, test in self._patterns if pattern.fullmatch(name)), name)

    def choices(self, name: str) -> list[int]:
        """Return how many values there are to guess among at each place in which a test can be changed."""
        return choices_of(self._perturbations[name])

    def assertions(self, name: str) -> tuple[Assertion, ...]:
        """Return the test itself: it ends where one of its assertions fails."""
        return assertions_of(name, ())

    def draw(
        self,
        perturbed: Collection[str],
        random: Random,
        sites: Mapping[str, int] | None = None,
        *,
        is_soft: bool = False,
    ) -> Twin:
        """Return all files, with the named tests changed, as :meth:`SuiteTwins.draw` does; they are never soft."""
        return drawn_twin(self._files, self._perturbations, perturbed, random, sites)
