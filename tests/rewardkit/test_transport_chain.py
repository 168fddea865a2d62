"""What cannot travel to a worker process is named with the chain that leads to it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rewardkit import RewardTransportError
from rewardkit.transport import dumps, modules_behind

SCRIPT = """
import functools
import threading
from collections.abc import Callable
from typing import Any

from rewardkit import reward
from rewardkit.moving import from_trl

LOCK = threading.Lock()


class Client:
    def __init__(self) -> None:
        self.session = {"socket": threading.Lock()}

    def ask(self, completion: str) -> float:
        return float(len(completion))


CLIENT = Client()


def helper(completion: str) -> float:
    with LOCK:
        return float(len(completion))


@reward
def guarded(completion: str) -> float:
    return helper(completion)


def counts(completions: list[str]) -> list[float]:
    return [helper(completion) for completion in completions]


@reward
def deep(completion: str) -> float:
    score: Callable[[str], float] = lambda text: counts([text])[0]
    return score(completion)


@reward
def asks(completion: str) -> float:
    return CLIENT.ask(completion)


@reward
def calls(completion: str) -> float:
    return guarded(completion=completion)


def even(completion: str) -> float:
    return odd(completion[1:]) if completion else 1.0


def odd(completion: str) -> float:
    return even(completion[1:]) if completion else helper(completion)


def closure(lock: Any) -> Callable[[str], float]:
    def closed(completion: str) -> float:
        with lock:
            return 1.0

    return closed


def with_default(completion: str, *, lock: Any = LOCK) -> float:
    return 1.0


class Holder:
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, completion: str) -> float:
        return 1.0


class Slotted:
    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, completion: str) -> float:
        return 1.0


class ByMethod:
    def __call__(self, completion: str) -> float:
        return helper(completion)


def moved(completions: list[str], **columns: object) -> list[float]:
    return counts(completions)


def setting(completion: str, lock: Any = None) -> float:
    return 1.0
"""
"""Definitions as in a script: no other process can import them, so they travel by value."""

CHAINS = {
    "guarded -> helper -> LOCK": "guarded",
    "deep -> counts -> helper -> LOCK": "deep",
    "asks -> CLIENT -> session -> ['socket']": "asks",
    "calls -> guarded -> helper -> LOCK": "calls",
    "even -> odd -> helper -> LOCK": "reward(even)",
    "closed -> lock": "reward(closure(threading.Lock()))",
    "with_default -> lock": "reward(with_default)",
    "setting -> lock": "reward(functools.partial(setting, lock=LOCK))",
    "Holder -> lock": "reward(Holder())",
    "slotted -> lock": 'reward(name="slotted")(Slotted())',
    "ByMethod -> __call__ -> helper -> LOCK": "reward(ByMethod())",
    "__call__ -> self -> lock": "reward(Holder().__call__)",
    "moved -> counts -> helper -> LOCK": "from_trl(moved)",
}


@pytest.mark.parametrize(("chain", "code"), CHAINS.items(), ids=CHAINS.keys())
def test_what_cannot_travel_is_named_with_the_chain_that_leads_to_it(chain: str, code: str) -> None:
    names: dict[str, Any] = {"__name__": "a_script"}
    exec(SCRIPT, names)
    made = eval(code, names)
    with pytest.raises(RewardTransportError, match=re.escape(f"cannot pickle '_thread.lock' object ({chain}). ")):
        dumps(made, made)


def test_relative_imports_of_a_body_name_no_other_module() -> None:
    """They are found in the text of the function's own module; ``helper`` at the top is somebody else's."""
    names: dict[str, Any] = {}
    imports = ("from . import x", "from .helper import g", "from ..up import k", "import json, os.path")
    body = "".join(f"    {line}\n" for line in (*imports, "from collections import abc", "import late"))
    exec(f"def body():\n{body}", names)  # its imports are read and not run
    imported = {name for name in modules_behind(names["body"]) if name}
    assert {"json", "os.path", "collections", "collections.abc", "late"} <= imported
    assert not {"helper", "helper.g", "up", "up.k", ".x"} & imported
