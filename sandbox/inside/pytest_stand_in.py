"""What test text finds as ``pytest``: the parts of it that tests in data sets use.

The library itself is not in the jail: it would have to be read from this machine's packages, takes longer to import
than a check does, and rewrites, collects and reports by files and plugins that a text has no need of. So these are its
ways to say what is expected; :mod:`sandbox.inside.cases` collects and runs the tests. What is not here is an attribute
error of the tests, and so their fault.
"""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Skipped(Exception):
    """A test is skipped on purpose."""


class Failed(AssertionError):
    """A test said that it has failed."""


class FaultError(BaseException):
    """The tests want what is not here; the message says what, and where."""


class Fixture(NamedTuple):
    """A function that makes a value for tests, by its name."""

    function: Callable[..., Any]
    scope: str
    parameters: tuple[Any, ...]
    is_automatic: bool
    shared: dict[int, Any]  # where all tests share what the function returned, that, by the id of the parameter


class ParameterRow(NamedTuple):
    """A row of parameters: values, and a name or ``None``."""

    values: tuple[Any, ...]
    id: str | None
    marks: tuple[TestMark, ...]


class TestMark(NamedTuple):
    """A mark of a test, such as ``parametrize`` with its arguments, and what decorates a test with it."""

    name: str
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = {}

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if len(arguments) == 1 and not keywords and hasattr(arguments[0], "__qualname__"):
            arguments[0].marks_of_test = [*getattr(arguments[0], "marks_of_test", ()), self]
            return arguments[0]
        return TestMark(self.name, arguments, keywords)


class _TestMarks:
    def __getattr__(self, name: str) -> TestMark:
        return TestMark(name)


mark = _TestMarks()


def param(*values: Any, id: str | None = None, marks: Any = ()) -> ParameterRow:
    return ParameterRow(
        values, id, tuple(marks) if type(marks) is list else (marks,) if isinstance(marks, TestMark) else ()
    )


def fixture(
    function: Any = None, *, scope: str = "function", params: Any = None, autouse: bool = False, **_: Any
) -> Any:
    def decorate(function: Callable[..., Any]) -> Fixture:
        return Fixture(function, scope, tuple(params or ()), autouse, {})

    return decorate if function is None else decorate(function)


class ExceptionInfo:
    """What ``raises`` has caught."""

    value: Any = None

    @property
    def type(self) -> Any:
        return type(self.value)

    @property
    def typename(self) -> str:
        return type(self.value).__name__

    def match(self, pattern: str) -> bool:
        if not re.search(pattern, str(self.value)):
            raise AssertionError(f"{str(self.value)!r} does not match {pattern!r}")
        return True

    def errisinstance(self, kinds: Any) -> bool:
        return isinstance(self.value, kinds)

    def __str__(self) -> str:
        return repr(self.value)


class _Raises(contextlib.AbstractContextManager[Any]):
    def __init__(self, kinds: Any, pattern: Any, check: Any) -> None:
        self._kinds = kinds
        self._pattern = pattern
        self._check = check
        self._info = ExceptionInfo()

    def __enter__(self) -> ExceptionInfo:
        return self._info

    def __exit__(self, kind: Any, error: BaseException | None, trace: object) -> bool:
        if error is None:
            names = self._kinds if isinstance(self._kinds, tuple) else (self._kinds,)
            raise Failed(f"did not raise {' or '.join(getattr(name, '__name__', str(name)) for name in names)}")
        if not isinstance(error, self._kinds):
            return False
        self._info.value = error
        if self._pattern is not None:
            self._info.match(self._pattern)
        if self._check is not None and not self._check(error):
            raise Failed(f"the check of {error!r} did not return True")
        return True


def raises(expected_exception: Any, *arguments: Any, match: Any = None, check: Any = None, **keywords: Any) -> Any:
    manager = _Raises(expected_exception, match, check)
    if not arguments:
        return manager
    with manager as info:
        arguments[0](*arguments[1:], **keywords)
    return info


def warns(*arguments: Any, **keywords: Any) -> Any:
    raise FaultError("pytest.warns: warnings of the code under test stay in its process")


deprecated_call = warns


class approx:
    """A number, or a list, tuple, dict or array of numbers, that equals what is close: 1e-6 relative or 1e-12."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None, nan_ok: bool = False) -> None:
        self.expected = expected.tolist() if hasattr(expected, "tolist") else expected
        self._rel, self._abs, self._nan_ok = rel, abs, nan_ok

    def __eq__(self, value: object) -> bool:
        return self._close(value.tolist() if hasattr(value, "tolist") else value, self.expected)

    def _close(self, value: Any, expected: Any) -> bool:
        if isinstance(expected, Mapping):
            is_alike = isinstance(value, Mapping) and value.keys() == expected.keys()
            return is_alike and all(self._close(value[key], expected[key]) for key in expected)
        if isinstance(expected, Sequence) and not isinstance(expected, str | bytes):
            is_alike = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == len(expected)
            return is_alike and all(map(self._close, value, expected))
        if not _is_number(expected) or not _is_number(value):
            return bool(value == expected)
        if not isinstance(expected, int | float | complex) or not isinstance(value, int | float | complex):
            value, expected = float(value), float(expected)
        if value == expected:
            return True
        if value != value and expected != expected:
            return self._nan_ok
        if isinstance(expected, float) and math.isinf(expected):
            return False
        return bool(abs(value - expected) <= self._margin(expected))

    def _margin(self, expected: Any) -> Any:
        if self._rel is None and self._abs is not None:
            return self._abs
        relative = (1e-6 if self._rel is None else float(self._rel)) * abs(expected)
        return max(relative, 1e-12 if self._abs is None else float(self._abs))

    def __repr__(self) -> str:
        return f"approx({self.expected!r})"


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float | complex) and not isinstance(value, bool)
    return is_number or type(value).__module__ in ("decimal", "fractions")


def skip(reason: str = "", **_: Any) -> None:
    raise Skipped(reason)


def fail(reason: str = "", pytrace: bool = True, **_: Any) -> None:
    raise Failed(reason)


def importorskip(name: str, *_: Any, **__: Any) -> Any:
    try:
        __import__(name)
    except ImportError:
        raise Skipped(f"{name} is not installed") from None
    return sys.modules[name]


def main(*arguments: Any, **keywords: Any) -> int:
    """Leave the tests to be collected: they run when the text has come to its end."""
    return 0
