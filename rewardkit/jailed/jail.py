"""The jails of rewards: one :class:`~sandbox.Sandbox` a process, made on the first call that needs it.

A worker's jail ends with the worker. The sandbox's own faults become :class:`InfrastructureError` here, so that
no reward takes one for a wrong answer.
"""

from __future__ import annotations

import os
import threading

from rewardkit.errors import InfrastructureError
from sandbox import PROFILES, Level, Sandbox, cores
from sandbox.errors import PoolClosedError, SandboxUnavailableError

LEVEL_VARIABLE = "REWARDKIT_SANDBOX_LEVEL"  # Environment variable: the level of rewards' jails, `auto` unless set
PROFILE_VARIABLE = "REWARDKIT_SANDBOX_PROFILE"
"""Environment variable: what rewards' jails have loaded, ``python`` unless set."""

_jails: dict[tuple[int, int, str, tuple[str, ...]], RewardSandbox] = {}
_lock = threading.Lock()  # protects _jails: threads of one worker ask at once


class RewardSandbox(Sandbox):
    """A sandbox whose own failure is raised and not returned: no score may be made of it."""

    def _on_failure(self, failure: str) -> None:
        raise InfrastructureError(failure)

    def __exit__(self, *error: object) -> None:
        """Stay open: it is the process's, and the next call needs it."""


def shared_sandbox(width: int = 1, profile: str = "", readable: tuple[str, ...] = ()) -> RewardSandbox:
    """Return this process's sandbox, started.

    Args:
        width: Calls that will use it at once; it runs as many evaluations at once, up to the number of cores.
        profile: What it has loaded; ``""`` for what the environment says.
        readable: Files and folders that code may read besides.

    Raises:
        InfrastructureError: This machine does not have the level, or a variable names an unknown level or profile.
    """
    width = min(width, cores())
    key = (os.getpid(), width, profile, readable)  # a fork makes its own, and must not end its parent's
    with _lock:
        jail = _jails.get(key)
        try:
            if jail is not None:
                jail.start()
                return jail
        except PoolClosedError:  # a reward closed it
            pass
        jail = _jails[key] = _new(width, profile, readable)
        return jail


def close_shared() -> None:
    """End this process's jails. A call that needs one makes another."""
    with _lock:
        keys = [key for key in _jails if key[0] == os.getpid()]
        sandboxes = [_jails.pop(key) for key in keys]
    for sandbox in sandboxes:
        sandbox.close()


def _new(width: int, profile: str, readable: tuple[str, ...]) -> RewardSandbox:
    """Return a started sandbox of the level, and unless given the profile, of the environment; else raise."""
    profile = profile or _setting(PROFILE_VARIABLE, "python", tuple(PROFILES))
    level = _setting(LEVEL_VARIABLE, "auto", ("auto", *map(str, Level)))
    try:
        sandbox = RewardSandbox(profile, level, width, readable=readable)
        sandbox.start()
    except (SandboxUnavailableError, OSError) as fault:
        raise InfrastructureError(f"no jail for rewards: {fault}") from fault
    return sandbox


def _setting(variable: str, default: str, choices: tuple[str, ...]) -> str:
    value = os.environ.get(variable, "") or default
    if value not in choices:
        raise InfrastructureError(f"{variable}={value!r}: expected one of {', '.join(choices)}")
    return value
