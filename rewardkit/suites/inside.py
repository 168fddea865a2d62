"""Runs a suite with pytest inside of the jail, and writes a line of JSON for each test.

Sent there as text, so it imports the standard library and pytest only. The completion shares this process, and can
write any line itself: nothing here is a verdict. What the grader compares is in other runs, and outside.
"""

from __future__ import annotations

import builtins
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import sys
import unittest
from typing import Any, ClassVar

import pytest

_MOST_CHARS = 300
_MOST_VALUE = 2_000
_COMPARISONS = (
    *("_baseAssertEqual", "assertMultiLineEqual", "assertSequenceEqual", "assertListEqual", "assertTupleEqual"),
    *("assertSetEqual", "assertDictEqual", "assertAlmostEqual", "assertCountEqual"),
)
_MOST_SHOWN = 2_000_000  # characters of compared values in all
_compared: list[list[str]] = []


class Statement:
    """What a soft statement stands in: it notes whether that fails, and the test goes on."""

    rounds: ClassVar[dict[int, int]] = {}
    failed: ClassVar[dict[int, dict[int, list[str] | None]]] = {}
    characters: ClassVar[int] = 0

    def __init__(self, line: int) -> None:
        self._line = line

    def __enter__(self) -> None:
        self._before = len(_compared)

    def __exit__(self, kind: Any, error: object, traceback: object) -> bool:
        if kind is not None and not _is_failure(kind):
            return False
        row = self.rounds[self._line] = self.rounds.get(self._line, -1) + 1
        if kind is None:
            return False
        sides = _compared[-1] if len(_compared) > self._before else None
        Statement.characters += sum(map(len, sides or ()))
        self.failed.setdefault(self._line, {})[row] = sides if Statement.characters < _MOST_SHOWN else None
        return True


def _is_failure(kind: type[BaseException]) -> bool:
    """Return whether an exception fails a test, and neither skips it nor ends the run."""
    return kind is pytest.fail.Exception or (issubclass(kind, Exception) and not issubclass(kind, unittest.SkipTest))


class Packages:
    """Finds the installed packages that a task names, and no other.

    ``places`` is each module's file and, of a package, its folder, by name; ``about`` are the folders of metadata.
    """

    def __init__(self, places: dict[str, list[str]], about: list[str]) -> None:
        self._places = places
        self._about = [pathlib.Path(folder) for folder in about]

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if path is not None or name not in self._places:
            return None
        file, *folders = self._places[name]
        return importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders or None)

    def find_distributions(self, context: Any = None) -> Any:
        wanted = getattr(context, "name", None)
        for folder in self._about:
            distribution = importlib.metadata.PathDistribution(folder)
            if wanted is None or _plain(distribution.name) == _plain(wanted):
                yield distribution


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


class Reports:
    """A plugin of pytest that writes what becomes of each test."""

    def __init__(self, descriptor: int, mark: str, helpers: list[str]) -> None:
        self._descriptor = descriptor
        self._helpers = helpers
        self._mark = mark
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._line = 0  # at which the test failed

    def write(self, line: dict[str, Any]) -> None:
        data = f"\n{self._mark}{json.dumps(line)}\n".encode()
        while data:
            data = data[os.write(self._descriptor, data) :]

    def pytest_configure(self, config: Any) -> None:
        pytest.register_assert_rewrite(*self._helpers)  # so that what their comparisons compare is noted too

    def pytest_collection_finish(self, session: Any) -> None:
        self.write({"collected": [item.nodeid for item in session.items]})

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.write({"broken": report.nodeid, "message": _last_line(report.longreprtext)})

    @pytest.hookimpl(tryfirst=True)
    def pytest_assertrepr_compare(self, config: Any, op: str, left: object, right: object) -> list[str]:
        if op == "==":
            _note(left, right)
        return [f"{repr(left)[:_MOST_CHARS]} {op} {repr(right)[:_MOST_CHARS]}"]  # pytest's own comparison takes long

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        if call.excinfo is not None:
            self._line = _line_in_test(item, call.excinfo) or self._line

    def pytest_runtest_logstart(self, nodeid: str, location: object) -> None:
        self._line = 0
        _compared.clear()
        Statement.rounds.clear()
        Statement.failed.clear()

    def pytest_runtest_logreport(self, report: Any) -> None:
        outcome = self._outcomes.setdefault(report.nodeid, {"outcome": "passed", "duration_s": 0.0, "message": ""})
        outcome["duration_s"] += report.duration
        if report.outcome != "passed" and outcome["outcome"] == "passed":
            outcome["outcome"] = "failed" if report.outcome == "failed" else "skipped"
            outcome["message"] = _message(report)
        if report.when == "teardown":
            outcome = self._outcomes.pop(report.nodeid)
            statements = [{line: last + 1 for line, last in Statement.rounds.items()}, Statement.failed]
            compared = _compared[-1] if _compared else []
            outcome |= {"compared": compared, "statements": statements, "line": self._line}
            self.write({"test": report.nodeid, **outcome})


def _line_in_test(item: Any, error: Any) -> int:
    """Return the line of a test's own function at which it has failed; 0 where it is not in the traceback."""
    name = item.name.split("[")[0]
    lines = [entry.lineno + 1 for entry in error.traceback if entry.frame.code.name == name and entry.path == item.path]
    return lines[0] if lines else 0


def _message(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return _last_line(crash.message if crash is not None else report.longreprtext)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return (lines[0] if len(lines) == 1 else " ".join(lines))[:_MOST_CHARS] if lines else ""


def _note(left: object, right: object) -> None:
    """Note the two sides of a comparison that failed."""
    _compared.append([repr(left)[:_MOST_VALUE], repr(right)[:_MOST_VALUE]])


def _noting(compare: Any) -> Any:
    def compared(self: unittest.TestCase, first: object, second: object, *rest: Any, **options: Any) -> Any:
        try:
            return compare(self, first, second, *rest, **options)
        except self.failureException:
            _note(first, second)
            raise

    return compared


def _replace_absolute(paths: dict[str, str]) -> None:
    """Write folders of a container, where they are whole parts of paths in sources, as they lie here."""
    names = "|".join(map(re.escape, sorted(paths, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w./-])({names})(?![\w.-])")
    folders = {name: os.path.abspath(folder) for name, folder in paths.items()}
    for path in pathlib.Path().rglob("*.py"):
        text = os.fsdecode(path.read_bytes())
        replaced = pattern.sub(lambda match: folders[match[1]], text)
        if replaced != text:
            path.write_bytes(os.fsencode(replaced))


def main() -> None:
    settings = json.loads(sys.argv[1])
    sys.dont_write_bytecode = True
    if settings["absolute"]:
        _replace_absolute(settings["absolute"])
    sys.path[:0] = [os.path.abspath(folder) for folder in settings["roots"] if os.path.isdir(folder or ".")]
    sys.meta_path.append(Packages(settings["places"], settings["about"]))
    for name in _COMPARISONS:
        setattr(unittest.TestCase, name, _noting(getattr(unittest.TestCase, name)))
    builtins.__statement__ = Statement  # type: ignore[attr-defined]
    reports = Reports(os.dup(1), settings["mark"], settings["helpers"])
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--no-header", "--rootdir=.", "--tb=line"]
    arguments += ["-c", settings["ini"]] if settings["ini"] else []
    code = pytest.main([*arguments, *settings["arguments"], *settings["files"]], plugins=[reports])
    reports.write({"end": int(code)})


main()
