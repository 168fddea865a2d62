"""Test classes of :mod:`unittest`, run by its own machinery; each test is a check by its name.

Whoever runs a test (the text itself by a runner, or the tester when the text has ended) reports it. The text's
``unittest.main()`` leaves its tests to the tester. ``mock.patch`` reaches the tests' process alone, so to patch
anything but what a call takes along (``input``, ``print``, standard input and output) is the tests' fault.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

Report = Callable[[str, bool | None, str], None]
"""Is told of a test that has ended: its name, whether it passed (``None`` where it was skipped), and why not."""
_TAKEN_ALONG = {("sys", "stdout"), ("sys", "stderr"), ("sys", "stdin"), ("builtins", "input"), ("builtins", "print")}


def prepare(begin: Callable[[], None], report: Report) -> None:
    """Import :mod:`unittest`, and have each test that runs reported, whoever runs it."""
    import unittest

    run_itself = unittest.TestCase.run

    def run(test: Any, result: Any = None) -> Any:
        own = unittest.TestResult()
        begin()
        run_itself(test, own)
        problems = [*own.failures, *own.errors]
        if own.unexpectedSuccesses or problems:
            report(_name(test), False, _last_line(problems[0][1]) if problems else "it passed, which was not expected")
        else:
            report(_name(test), None if own.skipped else True, "")
        if result is not None:
            result.testsRun += 1
            result.failures += own.failures
            result.errors += own.errors
        return own

    class Runner:
        def __init__(self, *arguments: object, **options: object) -> None:
            return

        def run(self, suite: Any) -> Any:
            result = unittest.TestResult()
            suite(result)
            return result

    case: Any = unittest.TestCase
    case.run = run
    library: Any = unittest
    library.TextTestRunner, library.main = Runner, lambda *arguments, **options: None


def watch_patches(fault: Callable[..., object]) -> None:
    """Make patches of what is not taken along to the code under test a fault of the tests, which ``fault`` is told."""
    from unittest import mock

    patch: Any = mock._patch
    enter_itself = patch.__enter__

    def enter(self: Any) -> Any:
        target = self.getter()
        name = getattr(target, "__name__", type(target).__name__)
        if (name, self.attribute) not in _TAKEN_ALONG and _is_shared(target):
            fault(f"the tests patch {name}.{self.attribute}, which the code under test does not see", is_shared=True)
        return enter_itself(self)

    patch.__enter__ = enter


def _is_shared(target: Any) -> bool:
    module = getattr(target, "__module__", None) if not isinstance(target, type(sys)) else target.__name__
    return module not in ("tests", "__main__")


def _name(test: Any) -> str:
    return f"{type(test).__qualname__}.{getattr(test, '_testMethodName', 'runTest')}"


def _last_line(trace: str) -> str:
    return trace.strip().rpartition("\n")[2]


def is_test_class(value: object) -> bool:
    """Return whether a value is a class of tests that a text defines."""
    unittest = sys.modules.get("unittest")
    return (
        unittest is not None
        and isinstance(value, type)
        and issubclass(value, unittest.TestCase)
        and value.__module__ in ("tests", "__main__")
    )


def labels(kind: Any) -> list[str]:
    """Return the names of a class's tests."""
    import unittest

    return [f"{kind.__qualname__}.{name}" for name in unittest.defaultTestLoader.getTestCaseNames(kind)]


def run_class(kind: Any) -> str:
    """Run the tests of a class with what is to be set up for all; return why that failed, or an empty text."""
    import unittest

    result = unittest.TestResult()
    unittest.TestSuite(map(kind, unittest.defaultTestLoader.getTestCaseNames(kind))).run(result)
    problems = [trace for test, trace in result.errors if not isinstance(test, unittest.TestCase)]
    return _last_line(problems[0]) if problems else ""
