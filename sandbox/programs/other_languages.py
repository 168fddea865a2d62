"""What a sandbox does in languages other than Python, by their names as fences and data sets write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.jail.levels import Level
from sandbox.languages.catalogue import language_of
from sandbox.languages.language import Suite
from sandbox.limits import Limits
from sandbox.programs import calls
from sandbox.programs.engine import Artefact, Programs
from sandbox.projects.project import Project
from sandbox.results import ExecutionResult, SuiteRun
from sandbox.shared_time import SharedTime


class OtherLanguages:
    """The launchers of a sandbox, asked by the name of a language; LanguageUnavailableError where it does not run.

    Args:
        level: The level of isolation that was proved.
        workers: Programs that run at once.
    """

    def __init__(self, level: Level, workers: int) -> None:
        self._programs = Programs(level, workers)

    def build(
        self, language: str, source: str, limits: Limits, *, needs_main: bool = True
    ) -> Artefact | ExecutionResult:
        """Compile a program, or functions alone."""
        return calls.build_source(self._programs, language_of(language), source, limits, needs_main=needs_main)

    def run_inputs(
        self,
        language: str,
        source: str,
        inputs: Sequence[str],
        files: Mapping[str, str | bytes],
        arguments: Sequence[str],
        limits: Limits,
        run_timeout_s: float | None = None,
    ) -> list[ExecutionResult]:
        """Run a program once for each input, each time for ``run_timeout_s`` at most."""
        jail_language = language_of(language)
        return calls.run_inputs(self._programs, jail_language, source, inputs, files, arguments, limits, run_timeout_s)

    def call(
        self, language: str, source: str, function: str, arguments: Sequence[Any], limits: Limits
    ) -> ExecutionResult:
        """Call a function once for each of some arguments."""
        return calls.call_function(self._programs, language_of(language), source, function, arguments, limits)

    def call_each(
        self,
        language: str,
        source: str,
        function: str,
        arguments: Sequence[Any],
        limits: Limits,
        shared: SharedTime,
    ) -> list[ExecutionResult]:
        """Call a function once for each of some arguments, each time in a process of its own."""
        jail_language = language_of(language)
        return calls.call_each(self._programs, jail_language, source, function, arguments, limits, shared)

    def run_suite(self, language: str, source: str, suite: Suite, limits: Limits) -> SuiteRun:
        """Run a completion's tests."""
        return calls.run_suite(self._programs, language_of(language), source, suite, limits)

    def run_project(self, project: Project, limits: Limits) -> ExecutionResult:
        """Build and run a program that was made of a folder."""
        language = language_of(project.language)
        self._programs.prove(language)
        built = self._programs.build(language, project.program, limits)
        if isinstance(built, ExecutionResult):
            return built
        return self._programs.run(language, built, limits, files=project.files, arguments=project.arguments)

    @property
    def processes(self) -> list[int]:
        """Process ids of the launchers that are alive now."""
        return self._programs.processes

    def close(self) -> None:
        """End every launcher."""
        self._programs.close()
