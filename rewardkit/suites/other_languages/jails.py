"""Runs of suites in other languages: a folder as a program of the jail, and what is read of what it prints."""

from __future__ import annotations

import dataclasses
import platform
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from rewardkit.jailed.jail import shared_sandbox
from rewardkit.suites.suite_jail import MOST_CHARS, GradedRun, read_run
from rewardkit.suites.suite_verdict import SuiteResult
from sandbox import (
    ExecutionResult,
    ExecutionStatus,
    GoModule,
    GoTest,
    Limits,
    Project,
    ProjectError,
    is_built_go,
)
from sandbox.workers import stopped

MakeProject: TypeAlias = Callable[[Mapping[str, bytes], Sequence[str], str], Project]
_FOLDERS_OF_TESTS = frozenset(["test", "tests", "__tests__"])
_PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}
_EVENT = re.compile(r"(?:=== (RUN|NAME|CONT|PAUSE) +|(?: {4})*--- (PASS|FAIL|SKIP): )(\S*)(?: \(([\d.]+)s\))?[ \t]*")
_OUTCOMES = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
_MARKERS = str.maketrans("", "", "\x0e\x0f")  # around what a test says of its failure


def without_tests(
    files: Mapping[str, bytes], tests: Mapping[str, bytes], is_module: Callable[[str], bool]
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return an agent's files that may lie beside the tests, and why others may not, by name."""
    folders = {
        "/".join(parts[: index + 1])
        for parts in (name.split("/")[:-1] for name in tests)
        for index, part in enumerate(parts)
        if part in _FOLDERS_OF_TESTS
    }
    accepted, left_out = {}, {}
    for name, content in files.items():
        if name in tests:
            if content != tests[name]:
                left_out[name] = "the tests' own stands in its place"
        elif is_module(name):
            left_out[name] = "a file of tests that is not the suite's"
        elif any(name.startswith(f"{folder}/") for folder in folders):
            left_out[name] = "in the folder of the tests"
        else:
            accepted[name] = content
    return accepted, left_out


def is_built(name: str, content: bytes) -> bool:
    """Return whether a file of Go is for this machine."""
    return is_built_go(name, content, _processor())


def _processor() -> str:
    return _PROCESSORS.get(platform.machine(), "amd64")


def _run(project: Project, limits: Limits) -> ExecutionResult:
    with stopped():  # starting a jail is not the call's time
        sandbox = shared_sandbox()
    return sandbox.run_project(project, limits=limits)


class ProgramJail:
    """Runs suites over one folder, all files of tests in one process that writes a marked line for each test.

    Args:
        files: The folder's files, without those of tests.
        limits: What a run may use.
        project: Makes the program of all files, of those that have tests, and of the mark.
        name: What runs, for messages.
    """

    def __init__(self, files: Mapping[str, bytes], limits: Limits, project: MakeProject, name: str) -> None:
        self._files = files
        self._limits = limits
        self._project = project
        self._name = name

    def run(self, tests: Mapping[str, bytes], modules: Sequence[str]) -> GradedRun:
        """Run the tests of some modules; raise InfrastructureError where the jail itself fails."""
        mark = f"@{secrets.token_hex(8)} "
        return read_run(_run(self._project({**self._files, **tests}, modules, mark), self._limits), mark, self._name)


class GoJail:
    """Runs suites of Go over one folder, each package's in a program of its own.

    Args:
        files: The folder's files, without those of tests.
        limits: What a run may use.
        names: The names of all test functions.
    """

    def __init__(self, files: Mapping[str, bytes], limits: Limits, names: Iterable[str]) -> None:
        self._files = files
        self._limits = limits
        self._tests = [GoTest(*name.split("::")) for name in names]

    def run(self, tests: Mapping[str, bytes], modules: Sequence[str]) -> GradedRun:
        """Run the tests of some modules; raise InfrastructureError where the jail itself fails."""
        runs = []
        files = {**self._files, **tests}
        folders = dict.fromkeys(module.rpartition("/")[0] for module in modules)
        for folder in folders:
            own = [test for test in self._tests if test.file.rpartition("/")[0] == folder and test.file in modules]
            try:
                project = GoModule(files, _processor()).project(folder, own)
            except ProjectError as error:
                runs.append(GradedRun(error=str(error)))
            else:
                runs.append(read_go_run(_run(project, self._limits), {test.name: test.file for test in own}))
        return GradedRun(
            tuple(name for run in runs for name in run.collected),
            {name: result for run in runs for name, result in run.results.items()},
            stopped={name: lines for run in runs for name, lines in run.stopped.items()},
            error="; ".join(run.error for run in runs if run.error),
            duration_s=sum(run.duration_s for run in runs),
        )


def read_go_run(result: ExecutionResult, files: Mapping[str, str]) -> GradedRun:
    """Return what a test program printed of its tests.

    Args:
        result: Its run; standard output is in the form of ``-test.v=test2json``, whose lines on tests begin with a
            control character: https://pkg.go.dev/cmd/test2json.
        files: The file of each test function.
    """
    results: dict[str, SuiteResult] = {}
    output: dict[str, str] = {}
    current = ""
    for part in result.stdout.split("\x16"):
        event = _EVENT.match(part)
        text = part[event.end() :] if event else part
        if event:
            current = event[3] or current
            outcome = _OUTCOMES.get(event[2] or "")
            if outcome and event[3]:
                results[event[3]] = SuiteResult(event[3], outcome, float(event[4] or 0))
        if current:
            output[current] = output.get(current, "") + text.translate(_MARKERS)
    named, stopped_at = {}, {}
    for title, ended in results.items():
        file = files.get(title.split("/")[0])
        if file is not None:
            pattern = re.compile(rf"(?<![\w.-]){re.escape(file.rpartition('/')[2])}:(\d{{1,9}})\b")
            stopped_at[f"{file}::{title}"] = frozenset(map(int, pattern.findall(output.get(title, ""))))
            message = "" if ended.outcome == "passed" else " ".join(output.get(title, "").split())[:MOST_CHARS]
            named[f"{file}::{title}"] = dataclasses.replace(ended, name=f"{file}::{title}", message=message)
    error = ""
    if result.status is not ExecutionStatus.OK and result.exit_code != 1:
        error = f"{result.error}: {result.stderr.strip()[-MOST_CHARS:]}"
    elif len(named) < len(files):
        error = result.error if result.error and not results else "it ended before its end"
    return GradedRun(tuple(named), named, stopped=stopped_at, error=error, duration_s=result.duration_s)
