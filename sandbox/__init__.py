"""How code is run in isolation: worker processes for functions, jails for code that nobody trusts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.client import Sandbox
    from sandbox.limits import Limits
    from sandbox.results import CallValue, ExecutionResult, ExecutionStatus

__all__ = ["CallValue", "ExecutionResult", "ExecutionStatus", "Limits", "Sandbox"]

_HOMES = {"Sandbox": "client", "Limits": "limits"}


def __getattr__(name: str) -> Any:
    """Load what is asked for, late: the zygote imports this package and must stay small."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"sandbox.{_HOMES.get(name, 'results')}"), name)
