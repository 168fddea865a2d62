"""The constants at a file's top that its tests read, and which tests a change of one touches."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from rewardkit.suites.collection import CollectedTest
from rewardkit.suites.expected_names import constants_of


class SharedConstants:
    """The constants of one file of tests.

    Args:
        tree: The file.
        tests: The tests that are collected of it.
        other_files: The text of the suite's other files; what they mention is no constant of this one alone.
    """

    read_once: dict[str, ast.expr]
    """The values of names that one place reads."""
    values: dict[str, ast.expr]
    """The values of these, and of names that nothing but tests reads."""

    def __init__(self, tree: ast.Module, tests: Sequence[CollectedTest], other_files: str) -> None:
        reading: dict[int, set[str]] = {}
        for test in tests:  # a function that classes inherit is several tests
            for node in ast.walk(test.function):
                reading.setdefault(id(node), set()).add(test.name)
        constants = {name: value for name, value in constants_of(tree).items() if name not in other_files}
        self.read_once = {name: value for name, (value, reads) in constants.items() if len(reads) == 1}
        self.values = dict(self.read_once)
        self._readers: dict[str, set[str]] = {}
        for name, (value, reads) in constants.items():
            readers = [reading.get(id(node), set()) for node in reads]
            if len(reads) > 1 and all(readers):
                self.values[name] = value
                self._readers[name] = set().union(*readers)

    def readers_beside(self, test: str) -> set[str]:
        """Return the other tests that read a constant which a test shares; a test that alone reads one is not named."""
        shared = [readers for readers in self._readers.values() if test in readers]
        return {reader for readers in shared for reader in readers} - {test}
