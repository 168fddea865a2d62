"""The jails of rewards: one :class:`~sandbox.Sandbox` a process, made on the first call that needs it.

A worker's jail ends with the worker. The sandbox's own faults become :class:`InfrastructureError` here, so that
no reward takes one for a wrong answer.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Any

from rewardkit.errors import InfrastructureError
from sandbox import PROFILES, AssertsRun, ExecutionResult, ExecutionStatus, Level, Sandbox, cores
from sandbox.errors import PoolClosedError, SandboxUnavailableError

LEVEL_VARIABLE = "REWARDKIT_SANDBOX_LEVEL"  # Environment variable: the level of rewards' jails, `auto` unless set
PROFILE_VARIABLE = "REWARDKIT_SANDBOX_PROFILE"
"""Environment variable: what rewards' jails have loaded, ``python`` unless set."""

_jails: dict[tuple[int, int], RewardSandbox] = {}
_lock = threading.Lock()  # protects _jails: threads of one worker ask at once


class RewardSandbox(Sandbox):
    """A sandbox whose own failure is raised and not returned: no score may be made of it."""

    def run_inputs(self, *arguments: Any, **options: Any) -> list[ExecutionResult]:
        """Run as :meth:`Sandbox.run_inputs` does; raise InfrastructureError where the sandbox itself failed."""
        results = super().run_inputs(*arguments, **options)
        _check(results)
        return results

    def call(self, *arguments: Any, **options: Any) -> ExecutionResult:
        """Call as :meth:`Sandbox.call` does; raise as above."""
        result = super().call(*arguments, **options)
        _check([result])
        return result

    def run_asserts(self, *arguments: Any, **options: Any) -> AssertsRun:
        """Run as :meth:`Sandbox.run_asserts` does; raise as above."""
        run = super().run_asserts(*arguments, **options)
        _check([run.execution])
        return run

    def run_dialog(self, *arguments: Any, **options: Any) -> AssertsRun:
        """Run as :meth:`Sandbox.run_dialog` does; raise as above."""
        run = super().run_dialog(*arguments, **options)
        _check([run.execution])
        return run

    def __exit__(self, *error: object) -> None:
        """Stay open: it is the process's, and the next call needs it."""


def _check(results: Iterable[ExecutionResult]) -> None:
    for result in results:
        if result.status is ExecutionStatus.INFRASTRUCTURE:
            raise InfrastructureError(result.error)


def shared_sandbox(width: int = 1) -> RewardSandbox:
    """Return this process's sandbox, started.

    Args:
        width: Calls that will use it at once; it runs as many evaluations at once, up to the number of cores.

    Raises:
        InfrastructureError: This machine does not have the level, or a variable names an unknown level or profile.
    """
    width = min(width, cores())
    key = (os.getpid(), width)  # a fork makes its own, and must not end its parent's
    with _lock:
        jail = _jails.get(key)
        try:
            if jail is not None:
                jail.start()
                return jail
        except PoolClosedError:  # a reward closed it
            pass
        jail = _jails[key] = _new(width)
        return jail


def close_shared() -> None:
    """End this process's jails. A call that needs one makes another."""
    with _lock:
        keys = [(process, width) for process, width in _jails if process == os.getpid()]
        sandboxes = [_jails.pop(key) for key in keys]
    for sandbox in sandboxes:
        sandbox.close()


def _new(width: int) -> RewardSandbox:
    """Return a started sandbox of the profile and level that the environment asks for; raise InfrastructureError."""
    profile = _setting(PROFILE_VARIABLE, "python", tuple(PROFILES))
    level = _setting(LEVEL_VARIABLE, "auto", ("auto", *map(str, Level)))
    try:
        sandbox = RewardSandbox(profile, level, width)
        sandbox.start()
    except (SandboxUnavailableError, OSError) as fault:
        raise InfrastructureError(f"no jail for rewards: {fault}") from fault
    return sandbox


def _setting(variable: str, default: str, choices: tuple[str, ...]) -> str:
    value = os.environ.get(variable, "") or default
    if value not in choices:
        raise InfrastructureError(f"{variable}={value!r}: expected one of {', '.join(choices)}")
    return value
