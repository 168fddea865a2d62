"""One run of a suite in the jail: what goes in, and what is read of what comes out."""

from __future__ import annotations

import functools
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rewardkit.jailed.jail import shared_sandbox
from rewardkit.suites.collection import module_names_of
from rewardkit.suites.packages import InstalledPackages
from rewardkit.suites.protected import import_roots
from rewardkit.suites.suite_verdict import SuiteResult
from sandbox.workers import stopped

if TYPE_CHECKING:
    from sandbox import ExecutionResult, Limits

_OUTCOMES = ("passed", "failed", "skipped")
_CONFIGURATION = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg")
_INI = "rewardkit-suite.ini"
MOST_CHARS = 300
_NUMBER = re.compile(r"[0-9]{1,9}")
_ENDS = (0, 1, 2, 5)  # of pytest: passed, failed, interrupted (by a module that cannot be imported), without a test


@dataclass(frozen=True, slots=True)
class StatementsRun:
    """What became of the soft statements of a test, by their lines.

    Attributes:
        rounds: How often each was gone through.
        failed: The rounds in which it failed, with the two sides of the comparison that did, as ``repr`` writes them.
    """

    rounds: Mapping[int, int] = field(default_factory=dict)
    failed: Mapping[int, Mapping[int, tuple[str, str] | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GradedRun:
    """What a run said, which the code under test may have written.

    Attributes:
        collected: The names of all tests, in order.
        results: What became of each, by name.
        compared: The two sides of the last comparison that failed in each, as ``repr`` writes them.
        statements: What became of the soft statements in each.
        stopped: The lines at which each has failed.
        error: Why it ended before its end; ``""`` for a run that did not.
        duration_s: Seconds that it took.
    """

    collected: tuple[str, ...] = ()
    results: Mapping[str, SuiteResult] = field(default_factory=dict)
    compared: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    statements: Mapping[str, StatementsRun] = field(default_factory=dict)
    stopped: Mapping[str, frozenset[int]] = field(default_factory=dict)
    error: str = ""
    duration_s: float = 0.0


class SuiteJail:
    """Runs suites over one folder.

    Args:
        files: The folder's files, without what is protected.
        packages: Installed packages that it may import.
        limits: What a run may use.
        arguments: More arguments of pytest.
        absolute: What stands in Python sources in the place of absolute paths, relative to the folder.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        packages: InstalledPackages,
        limits: Limits,
        arguments: Sequence[str] = (),
        absolute: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._files = files
        self._packages = packages
        self._limits = limits
        self._arguments = list(arguments)
        self._absolute = dict(absolute)

    def run(self, tests: Mapping[str, bytes], modules: Sequence[str]) -> GradedRun:
        """Run the tests of some modules; raise InfrastructureError where the jail itself fails."""
        mark = f"@{secrets.token_hex(8)} "
        configured = any(name in tests for name in _CONFIGURATION)
        settings = {
            "mark": mark,
            "roots": import_roots(modules),
            "helpers": _helpers(tests, modules),
            "places": self._packages.places,
            "about": self._packages.about,
            "ini": "" if configured else _INI,
            "arguments": self._arguments,
            "absolute": self._absolute,
            "files": list(modules),
        }
        files = {**self._files, **tests, **({} if configured else {_INI: b"[pytest]\n"})}
        with stopped():  # starting a jail is not the call's time
            sandbox = shared_sandbox(profile="pytest", readable=tuple(self._packages.readable))
        result = sandbox.run(_runner(), files=files, args=[json.dumps(settings)], limits=self._limits)
        return read_run(result, mark)


def _helpers(tests: Mapping[str, bytes], modules: Sequence[str]) -> list[str]:
    """Return the names under which tests may import the suite's files that are no tests, such as ``common``."""
    files = [name for name in tests if name.endswith(".py") and not name.endswith("conftest.py")]
    names = module_names_of(files, import_roots(modules))
    tested = module_names_of(modules, import_roots(modules))
    return sorted(names - tested)


@functools.cache
def _runner() -> str:
    return Path(__file__).with_name("inside.py").read_text(encoding="utf-8")


def read_run(result: ExecutionResult, mark: str, runner: str = "pytest") -> GradedRun:
    """Return what the lines of a run's output say."""
    collected: list[str] = []
    results: dict[str, SuiteResult] = {}
    compared: dict[str, tuple[str, str]] = {}
    statements: dict[str, StatementsRun] = {}
    stopped: dict[str, frozenset[int]] = {}
    broken: list[str] = []
    ended: object = None
    for text in result.stdout.split("\n"):
        message = _decoded(text, mark)
        if isinstance(names := message.get("collected"), list):
            collected += [name for name in names if isinstance(name, str)]
        elif isinstance(name := message.get("test"), str):
            results[name] = _worse(results.get(name), _result(name, message))
            if sides := _two_texts(message.get("compared")):
                compared[name] = sides
            statements[name] = _statements(message.get("statements"))
            line = message.get("line")
            stopped[name] = frozenset([line] if isinstance(line, int) and line > 0 else [])
        elif isinstance(name := message.get("broken"), str):
            broken.append(f"{name}: {_text(message.get('message'))}")
        ended = message.get("end", ended)
    error = ""
    if ended is None or ended not in _ENDS:
        tail = result.stderr.strip()[-MOST_CHARS:]
        error = result.error or (
            f"{runner} ended with {ended}: {tail}" if ended else f"it ended before its end: {tail}"
        )
    return GradedRun(
        tuple(collected),
        results,
        compared,
        statements,
        stopped,
        "; ".join([*broken[:3], *([error] if error else [])]),
        result.duration_s,
    )


def _decoded(line: str, mark: str) -> Mapping[str, Any]:
    if not line.startswith(mark):
        return {}
    try:
        message = json.loads(line[len(mark) :])
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _result(name: str, message: Mapping[str, Any]) -> SuiteResult:
    outcome, duration_s = message.get("outcome"), message.get("duration_s")
    return SuiteResult(
        name,
        outcome if outcome in _OUTCOMES else "failed",
        duration_s if isinstance(duration_s, float) and 0 <= duration_s < 1e6 else 0.0,
        _text(message.get("message")),
    )


def _worse(first: SuiteResult | None, second: SuiteResult) -> SuiteResult:
    """Return the one of two lines on the same test that does not say passed."""
    return second if first is None or first.outcome == "passed" else first


def _text(value: object) -> str:
    return value[:MOST_CHARS] if isinstance(value, str) else ""


def _statements(value: object) -> StatementsRun:
    match value:
        case [dict() as rounds, dict() as failed]:
            return StatementsRun(
                {line: count for line, count in _numbered(rounds).items() if isinstance(count, int)},
                {
                    line: {row: _two_texts(sides) for row, sides in _numbered(rows).items()}
                    for line, rows in _numbered(failed).items()
                    if isinstance(rows, dict) and rows
                },
            )
    return StatementsRun()


def _numbered(values: Mapping[str, Any]) -> dict[int, Any]:
    """Return values by their keys as numbers, without those that are written otherwise than a few digits."""
    return {int(key): value for key, value in values.items() if _NUMBER.fullmatch(key)}


def _two_texts(value: object) -> tuple[str, str] | None:
    match value:
        case [str() as left, str() as right]:
            return left, right
    return None
