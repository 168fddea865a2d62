"""How code is run in isolation: worker processes for functions, jails for code that nobody trusts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.checks import (
        CheckReport,
        CheckResult,
        CheckStatus,
        FunctionCheck,
        ProgramCheck,
        check_asserts,
        check_functions,
        check_programs,
    )
    from sandbox.client import Sandbox
    from sandbox.limits import Limits
    from sandbox.results import CallValue, ExecutionResult, ExecutionStatus

_OF_CHECKS = (
    *("CheckReport", "CheckResult", "CheckStatus", "FunctionCheck", "ProgramCheck"),
    *("check_asserts", "check_functions", "check_programs"),
)
__all__ = [
    "CallValue",
    "CheckReport",
    "CheckResult",
    "CheckStatus",
    "ExecutionResult",
    "ExecutionStatus",
    "FunctionCheck",
    "Limits",
    "ProgramCheck",
    "Sandbox",
    "check_asserts",
    "check_functions",
    "check_programs",
]

_HOMES = {"Sandbox": "client", "Limits": "limits", **dict.fromkeys(_OF_CHECKS, "checks")}


def __getattr__(name: str) -> Any:
    """Load what is asked for, late: the zygote imports this package and must stay small."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"sandbox.{_HOMES.get(name, 'results')}"), name)
