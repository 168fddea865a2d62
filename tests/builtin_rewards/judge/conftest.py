"""What the judge's tests share: a server that fails on request, and a canary for a key."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CANARY = "sk-canary-0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="session")
def faults() -> ModuleType:
    """The module ``fault_server``: its actions, such as ``faults.too_many("1")``."""
    name = "judge_fault_server"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("fault_server.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


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
