"""Tests that a text defines and leaves to a runner: functions and classes as pytest collects them.

Each is a check by its name. A test is passed if it ends without an exception. Fixtures are those of the text,
``tmp_path`` and ``capsys``; any other name that a test asks for is the tests' fault.
"""

from __future__ import annotations

import io
import itertools
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from sandbox.inside.pytest_stand_in import FaultError, Fixture, ParameterRow, TestMark
from sandbox.inside.runner import TESTS_NAME


class Collected(NamedTuple):
    """A test that is to run: its name, and what runs it."""

    label: str
    run: Callable[[], object]


class Output(NamedTuple):
    """What was written since the last look."""

    out: str
    err: str


class CapturedOutput:
    """The fixture ``capsys``: what the tests, and the code in its process, print."""

    def __init__(self) -> None:
        self._streams = sys.stdout, sys.stderr
        self._out = self._err = io.StringIO()
        self._begin()

    def _begin(self) -> None:
        sys.stdout, sys.stderr = self._out, self._err = io.StringIO(), io.StringIO()

    def readouterr(self) -> Output:
        output = Output(self._out.getvalue(), self._err.getvalue())
        self._begin()
        return output

    def close(self) -> None:
        sys.stdout, sys.stderr = self._streams


class _Request(NamedTuple):
    """The fixture ``request`` of a fixture with parameters."""

    param: Any


def collect(names: dict[str, Any]) -> list[Collected]:
    """Return the tests of a text in the order of their lines, its fixtures bound; raise ``FaultError`` for others."""
    tests: list[Collected] = []
    module_marks = _as_marks(names.get("pytestmark", []))
    fixtures = {name: value for name, value in names.items() if isinstance(value, Fixture)}
    hooks = {name: names.get(name) for name in ("setup_function", "teardown_function")}
    for name, value in list(names.items()):
        if name.startswith("test") and is_of_the_text(value):
            around = [(hooks["setup_function"], hooks["teardown_function"])]
            tests += _expand(name, value, fixtures, [*module_marks, *_marks(value)], around)
        elif name.startswith("Test") and isinstance(value, type) and not hasattr(value, "assertEqual"):
            tests += _of_class(name, value, fixtures, module_marks)
    return tests


def is_of_the_text(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and value.__code__.co_filename == TESTS_NAME


def _marks(value: Any) -> list[TestMark]:
    return list(getattr(value, "marks_of_test", ()))


def _as_marks(value: Any) -> list[TestMark]:
    return [mark for mark in (value if isinstance(value, list) else [value]) if isinstance(mark, TestMark)]


def _is_left_out(marks: Sequence[TestMark]) -> bool:
    """Return whether a test does not count; one that may fail (``xfail``) would be passed by any code."""
    is_skipped = any(mark.name == "skipif" and mark.arguments[0] for mark in marks)
    return is_skipped or any(mark.name in ("skip", "xfail") for mark in marks)


def _of_class(name: str, kind: type, fixtures: dict[str, Fixture], marks: list[TestMark]) -> Iterator[Collected]:
    """Yield the tests of a class, each with an object of its own."""
    members = {key: value for base in reversed(kind.__mro__) for key, value in vars(base).items()}
    if kind.__init__ is not object.__init__:  # type: ignore[misc]  # as pytest passes it over, too
        return
    own = {key: value for key, value in members.items() if isinstance(value, Fixture)}
    for key, value in members.items():
        if not key.startswith("test") or not isinstance(value, types.FunctionType | staticmethod):
            continue
        target = kind()
        function = getattr(target, key)
        bound = {
            name: fixture._replace(function=types.MethodType(fixture.function, target)) for name, fixture in own.items()
        }
        around = [(getattr(kind, "setup_class", None), getattr(kind, "teardown_class", None))]
        around += [(getattr(target, f"setup{end}", None), getattr(target, f"teardown{end}", None)) for end in _ENDS]
        all_marks = [*marks, *_marks(kind), *_marks(value)]
        yield from _expand(f"{name}.{key}", function, {**fixtures, **bound}, all_marks, around)


_ENDS = ("_method", "")
Around = list[tuple[Any, Any]]


def _expand(
    label: str,
    function: Any,
    fixtures: dict[str, Fixture],
    marks: list[TestMark],
    around: Around,
) -> Iterator[Collected]:
    """Yield a test once for each set of its parameters."""
    if _is_left_out(marks):
        return
    wanted = parameter_names(function)
    rows = [mark for mark in marks if mark.name == "parametrize"]
    parametrized = {name for mark in rows for name in _argument_names(mark)}
    automatic = [name for name, fixture in fixtures.items() if fixture.is_automatic]
    automatic += [name for mark in marks if mark.name == "usefixtures" for name in mark.arguments]
    used = list(
        _closure([*automatic, *(name for name in wanted if name not in parametrized)], fixtures, label, function)
    )
    several = [name for name in used if name in fixtures and fixtures[name].parameters]
    choices = [_rows(mark) for mark in reversed(rows)]
    choices += [[(str(index), {f"param:{name}": value}) for index, value in enumerate(fixtures[name].parameters)]
                for name in several]  # fmt: skip
    for combination in itertools.product(*choices):
        values = {name: value for _, row in combination for name, value in row.items()}
        suffix = "-".join(text for text, _ in combination)
        test = _Test(function, [*automatic, *wanted], fixtures, values, around)
        yield Collected(f"{label}[{suffix}]" if suffix else label, test.run)


def parameter_names(function: Any) -> list[str]:
    """Return the parameters of a function that have no default, without its object and what ``patch`` passes."""
    bound = isinstance(function, types.MethodType)
    mocks = len(getattr(function, "patchings", ()))
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    positional = code.co_argcount - len(function.__defaults__ or ())
    keyword_only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    required = [name for name in keyword_only if name not in (function.__kwdefaults__ or {})]
    return [*code.co_varnames[bound + mocks : positional], *required]


def _argument_names(mark: TestMark) -> list[str]:
    names = mark.arguments[0] if mark.arguments else mark.keywords["argnames"]
    return [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else list(names)


def _rows(mark: TestMark) -> list[tuple[str, dict[str, Any]]]:
    """Return the sets of parameters that a mark lists, each with its name."""
    names = _argument_names(mark)
    listed = list(mark.arguments[1] if len(mark.arguments) > 1 else mark.keywords["argvalues"])
    ids = mark.keywords.get("ids")
    rows = []
    for index, row in enumerate(listed):
        case = (
            row if isinstance(row, ParameterRow) else ParameterRow((row,) if len(names) == 1 else tuple(row), None, ())
        )
        if _is_left_out(case.marks):
            continue
        if len(case.values) != len(names):
            raise FaultError(f"parametrize({', '.join(names)}): row {index} has {len(case.values)} values")
        label = case.id or (ids(row) if callable(ids) else list(ids)[index] if ids else None)
        rows.append((str(label or "-".join(map(_brief, case.values))), dict(zip(names, case.values, strict=True))))
    return rows


def _brief(value: Any) -> str:
    text = str(value) if isinstance(value, str | int | float | bool | None) else repr(value)
    return text if len(text) <= 30 else text[:27] + "..."


def _closure(names: list[str], fixtures: dict[str, Fixture], label: str, function: Any) -> Iterator[str]:
    """Yield all fixtures that a test takes, and that these take."""
    seen: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop(0)
        if name in seen:
            continue
        seen.add(name)
        if name in fixtures:
            pending += parameter_names(fixtures[name].function)
        elif name not in _BUILT_IN and not (
            name == "request" and any(fixtures[key].parameters for key in seen & set(fixtures))
        ):
            line = getattr(getattr(function, "__code__", None), "co_firstlineno", "?")
            raise FaultError(f"{label} (line {line}) asks for the fixture {name!r}, which nothing in the tests defines")
        yield name


class _Test:
    """A test with its parameters."""

    def __init__(
        self,
        function: Any,
        wanted: list[str],
        fixtures: dict[str, Fixture],
        values: dict[str, Any],
        around: Around,
    ) -> None:
        self._function = function
        self._wanted = wanted
        self._fixtures = fixtures
        self._values = values
        self._around = around

    def run(self) -> None:
        ends: list[Callable[[], object]] = []
        try:
            for begin, end in self._around:
                _call_hook(begin, self._function)
                if end is not None:
                    ends.append(lambda end=end: _call_hook(end, self._function))  # type: ignore[misc]
            values = {name: self._value(name, ends) for name in self._wanted}
            wanted = parameter_names(self._function)
            result = self._function(**{name: value for name, value in values.items() if name in wanted})
            if type(result) is types.CoroutineType:
                import asyncio

                asyncio.run(result)
        finally:
            for end in reversed(ends):
                end()

    def _value(self, name: str, ends: list[Callable[[], object]]) -> Any:
        if name in self._values:
            return self._values[name]
        if name not in self._fixtures:
            value, end = _BUILT_IN[name]()
            ends.append(end)
        else:
            value = self._make(name, ends)
        self._values[name] = value
        return value

    def _make(self, name: str, ends: list[Callable[[], object]]) -> Any:
        fixture = self._fixtures[name]
        parameter = self._values.get(f"param:{name}")
        if id(parameter) in fixture.shared:
            return fixture.shared[id(parameter)]
        arguments = {
            key: _Request(parameter) if key == "request" else self._value(key, ends)
            for key in parameter_names(fixture.function)
        }
        value = fixture.function(**arguments)
        if type(value) is types.GeneratorType:  # made and ended for each test, whatever its scope
            made = next(value)
            ends.append(lambda: next(value, None))
            return made
        if fixture.scope in ("module", "package", "session"):
            fixture.shared[id(parameter)] = value
        return value


def _call_hook(hook: Any, function: Any) -> None:
    if hook is not None:
        hook(*([function] if parameter_names(hook) else []))


def _temporary_folder() -> tuple[Any, Callable[[], object]]:
    import pathlib
    import tempfile

    folder = tempfile.TemporaryDirectory(dir=".")
    return pathlib.Path(folder.name).resolve(), folder.cleanup


def _capture() -> tuple[Any, Callable[[], object]]:
    capture = CapturedOutput()
    return capture, capture.close


_BUILT_IN: dict[str, Callable[[], tuple[Any, Callable[[], object]]]] = {
    "tmp_path": _temporary_folder,
    "capsys": _capture,
}
