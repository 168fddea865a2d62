"""What the judge's tests share: a server that fails on request, a real small model, and a canary for a key."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import fault_server
import pytest
from model_server import ModelServer

from builtin_rewards.judge.model import negotiator

REQUIRED = "REWARDKIT_REQUIRE_REAL"
CANARY = "sk-canary-0123456789abcdefghijklmnopqrstuvwxyz"


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
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    return CANARY


@pytest.fixture(scope="session")
def real_judge() -> Iterator[ModelServer]:
    """A real small model's server, started once: ``real_judge.base_url``, ``real_judge.model``.

    Where it cannot be had, tests that ask for it are skipped with the reason; with ``REWARDKIT_REQUIRE_REAL=1``
    they fail instead, so that CI cannot pass without them.
    """
    with ExitStack() as stack:
        try:
            server = stack.enter_context(ModelServer())
        except RuntimeError as reason:
            if os.environ.get(REQUIRED) == "1":
                raise
            pytest.skip(f"no real model ({REQUIRED}=1 makes this a failure): {reason}")
        yield server
