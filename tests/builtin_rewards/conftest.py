"""What the tests of judges and served models share: a server that fails on request, real ones, a canary for a key."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import ModuleType
from typing import Any, TypeVar

import fault_server
import pytest
from model_server import ModelServer
from real_servers import RealServer

S = TypeVar("S")
REQUIRED = "REWARDKIT_REQUIRE_REAL"
CANARY = "sk-canary-0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="session")
def faults() -> ModuleType:
    """The module ``fault_server``: its actions, such as ``faults.too_many("1")``."""
    return fault_server


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


@contextmanager
def _had(server: AbstractContextManager[S]) -> Iterator[S]:
    """Starts a real server; where it cannot be had, the tests that ask for it are skipped with the reason.

    With ``REWARDKIT_REQUIRE_REAL=1`` they fail instead, so that CI cannot pass without them.
    """
    with ExitStack() as stack:
        try:
            started = stack.enter_context(server)
        except RuntimeError as reason:
            if os.environ.get(REQUIRED) == "1":
                raise
            pytest.skip(f"no real server ({REQUIRED}=1 makes this a failure): {reason}")
        yield started


@pytest.fixture(scope="session")
def real_judge() -> Iterator[ModelServer]:
    """A real small model's server, started once: ``real_judge.base_url``, ``real_judge.model``."""
    with _had(ModelServer()) as server:
        yield server


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RealServer]]:
    """Starts a server that others wrote, by its command; it ends with the session."""
    with ExitStack() as stack:
        yield lambda *command: stack.enter_context(_had(RealServer(tmp_path_factory.mktemp("server"), *command)))
