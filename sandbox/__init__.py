"""How code is run in isolation: worker processes for functions, jails for code that nobody trusts.

The public names are these, those of ``sandbox.errors``, ``sandbox.folders`` and ``sandbox.plain``, and those of
``sandbox.workers``, which runs functions in worker processes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if sys.platform == "win32":
    raise ImportError(
        "rewardkit runs rewards in forked processes, which Windows does not have: use it in WSL 2, which is Linux "
        "('wsl --install' in a terminal, and then install it there)"
    )

if TYPE_CHECKING:
    from sandbox.checks import FunctionCheck, check_asserts, check_functions, check_suite
    from sandbox.client import Sandbox
    from sandbox.core_count import cores, default_workers, local_ranks, usable_cores, worker_count
    from sandbox.diagnosis import language_trials, machine, trials
    from sandbox.dialog_checks import check_dialogs
    from sandbox.inside.test_text import is_stand_in
    from sandbox.jail.levels import Level
    from sandbox.languages.catalogue import LANGUAGES, machine_stamp, toolchain_of, why_not_run
    from sandbox.languages.language import Suite
    from sandbox.languages.names import JAIL_LANGUAGES, PYTHON, language_name
    from sandbox.languages.signs import FOREIGN_NAMES, signs_of
    from sandbox.limits import DEFAULT_MEMORY_BYTES, LOAD_TIMEOUT_S, Limits
    from sandbox.matching.outputs import DEFAULT_TOLERANCE, OutputMatch, output_matcher
    from sandbox.process import PROFILES, remove_stale_folders
    from sandbox.program_checks import ProgramCheck, check_programs
    from sandbox.programs.engine import Artefact
    from sandbox.projects.go_module import GoModule, GoTest, is_built_go
    from sandbox.projects.junit_tests import junit_project
    from sandbox.projects.node_tests import node_project
    from sandbox.projects.project import Project, ProjectError
    from sandbox.reports import CheckReport, CheckResult, CheckStatus
    from sandbox.restricted import CheckedSource, check_source, module_code
    from sandbox.results import AssertsRun, CallValue, ExecutionResult, ExecutionStatus, SuiteRun
    from sandbox.syntax import parse, parse_expression

__all__ = [
    "DEFAULT_MEMORY_BYTES",
    "DEFAULT_TOLERANCE",
    "FOREIGN_NAMES",
    "JAIL_LANGUAGES",
    "LANGUAGES",
    "LOAD_TIMEOUT_S",
    "PROFILES",
    "PYTHON",
    "Artefact",
    "AssertsRun",
    "CallValue",
    "CheckReport",
    "CheckResult",
    "CheckStatus",
    "CheckedSource",
    "ExecutionResult",
    "ExecutionStatus",
    "FunctionCheck",
    "GoModule",
    "GoTest",
    "Level",
    "Limits",
    "OutputMatch",
    "ProgramCheck",
    "Project",
    "ProjectError",
    "Sandbox",
    "Suite",
    "SuiteRun",
    "check_asserts",
    "check_dialogs",
    "check_functions",
    "check_programs",
    "check_source",
    "check_suite",
    "cores",
    "default_workers",
    "is_built_go",
    "is_stand_in",
    "junit_project",
    "language_name",
    "language_trials",
    "local_ranks",
    "machine",
    "machine_stamp",
    "module_code",
    "node_project",
    "output_matcher",
    "parse",
    "parse_expression",
    "remove_stale_folders",
    "signs_of",
    "toolchain_of",
    "trials",
    "usable_cores",
    "why_not_run",
    "worker_count",
]

_HOMES = {
    "client": ("Sandbox",),
    "core_count": ("cores", "default_workers", "local_ranks", "usable_cores", "worker_count"),
    "diagnosis": ("language_trials", "machine", "trials"),
    "jail.levels": ("Level",),
    "inside.test_text": ("is_stand_in",),
    "languages.catalogue": ("LANGUAGES", "machine_stamp", "toolchain_of", "why_not_run"),
    "languages.language": ("Suite",),
    "languages.names": ("JAIL_LANGUAGES", "PYTHON", "language_name"),
    "languages.signs": ("FOREIGN_NAMES", "signs_of"),
    "limits": ("DEFAULT_MEMORY_BYTES", "LOAD_TIMEOUT_S", "Limits"),
    "dialog_checks": ("check_dialogs",),
    "matching.outputs": ("DEFAULT_TOLERANCE", "OutputMatch", "output_matcher"),
    "process": ("PROFILES", "remove_stale_folders"),
    "programs.engine": ("Artefact",),
    "program_checks": ("ProgramCheck", "check_programs"),
    "projects.go_module": ("GoModule", "GoTest", "is_built_go"),
    "projects.junit_tests": ("junit_project",),
    "projects.node_tests": ("node_project",),
    "projects.project": ("Project", "ProjectError"),
    "reports": ("CheckReport", "CheckResult", "CheckStatus"),
    "restricted": ("CheckedSource", "check_source", "module_code"),
    "results": ("AssertsRun", "CallValue", "ExecutionResult", "ExecutionStatus", "SuiteRun"),
    "syntax": ("parse", "parse_expression"),
}


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: the zygote imports this package and must stay small."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    home = next((home for home, names in _HOMES.items() if name in names), "checks")
    return getattr(importlib.import_module(f"sandbox.{home}"), name)
