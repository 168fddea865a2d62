"""What the judge's tests share: a server that fails on request, a real small model, and a canary for a key."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import fault_server
import pytest

from builtin_rewards.judge.errors import JudgeError
from builtin_rewards.judge.local import LocalJudgeServer
from builtin_rewards.judge.model import negotiator

REQUIRED = "REWARDKIT_REQUIRE_REAL_MODEL"


@pytest.fixture(scope="session")
def faults() -> ModuleType:
    """The module ``fault_server``: its actions, such as ``faults.too_many("1")``."""
    return fault_server


@pytest.fixture(autouse=True)
def nothing_learned() -> None:
    """A port may be another server's in the next test."""
    negotiator.cache_clear()


@pytest.fixture
def serve(faults: ModuleType) -> Iterator[Callable[..., Any]]:
    """Starts a fault server with a script; it ends with the test."""
    with ExitStack() as stack:
        yield lambda script, **settings: stack.enter_context(faults.FaultServer(script, **settings))


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> str:
    """A key that must be seen nowhere but in the environment and in the request's header."""
    monkeypatch.setenv("OPENAI_API_KEY", fault_server.CANARY)
    return fault_server.CANARY


@pytest.fixture(scope="session")
def real_judge() -> Iterator[LocalJudgeServer]:
    """A real small model's server, started once: ``real_judge.base_url``, ``real_judge.model``.

    Where it cannot be had, offline or on a machine of another kind, tests that ask for it are skipped with the reason;
    with ``REWARDKIT_REQUIRE_REAL_MODEL=1`` they fail instead, so that CI cannot pass without them.
    """
    server = LocalJudgeServer(start_s=600.0)
    try:
        server.start()
    except JudgeError as reason:
        if os.environ.get(REQUIRED) == "1":
            raise
        pytest.skip(f"no real model ({REQUIRED}=1 makes this a failure): {reason}")
    yield server
    server.stop()
