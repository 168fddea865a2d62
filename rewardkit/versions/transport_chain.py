"""What a function holds that cannot travel to another process, and the names that lead from the function to it."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rewardkit.function import RewardFunction

_MOST_STEPS = 20  # Names of a chain; one that is longer ends there


def chain_to(name: str, function: object, dump: Callable[[object], object]) -> list[str]:
    """Return the names from a reward to what cannot travel, such as ``["guarded", "helper", "LOCK"]``.

    Args:
        name: The reward's name, which the chain begins with.
        function: The reward's function.
        dump: What raises for a value that cannot travel.

    Returns:
        The names; empty where the function travels alone.
    """
    if _travels(function, dump):
        return []
    chain, seen = [name], {id(function)}
    while len(chain) < _MOST_STEPS:
        parts = ((step, part) for step, part in _parts(function) if id(part) not in seen and not _travels(part, dump))
        step, function = next(parts, ("", None))
        if function is None:
            break
        seen.add(id(function))
        if step and step != chain[-1]:
            chain.append(step)
    return chain


def _travels(value: object, dump: Callable[[object], object]) -> bool:
    try:
        dump(value)
    except Exception:  # pickling runs the value's own code, which may raise anything
        return False
    return True


def _parts(value: object) -> Iterator[tuple[str, Any]]:
    """Yield what travels with a value, by the names that its author knows; without a name where he gave it none."""
    if isinstance(value, types.FunctionType):
        yield from _parts_of_function(value)
    elif isinstance(value, functools.partial):
        yield from (("", value.func), *((f"argument {index}", part) for index, part in enumerate(value.args)))
        yield from value.keywords.items()
    elif isinstance(value, types.MethodType):
        yield from (("", value.__func__), ("self", value.__self__))
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{index}]", part) for index, part in enumerate(value))
    elif isinstance(value, type):
        yield from (
            (name, part) for name, part in vars(value).items() if not isinstance(part, types.GetSetDescriptorType)
        )
    else:
        yield from _parts_of_object(value)


def _parts_of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            continue
    yield from ((name, function.__globals__[name]) for name in _globals_of(function.__code__, function.__globals__))
    yield from ((f"default {index}", part) for index, part in enumerate(function.__defaults__ or ()))
    yield from (function.__kwdefaults__ or {}).items()
    yield from vars(function).items()


def _globals_of(code: types.CodeType, names: Mapping[str, Any]) -> Iterator[str]:
    """Yield the globals that a function mentions, those of functions inside it too."""
    yield from (name for name in code.co_names if name in names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals_of(constant, names)


def _parts_of_object(value: object) -> Iterator[tuple[str, Any]]:
    reward_function = getattr(getattr(value, "spec", None), "function", None)
    if reward_function is not None:  # a reward that another one calls
        yield "", reward_function
        return
    inner = getattr(value, "__wrapped__", None)
    if inner is not None:
        yield "", inner
    is_ours = isinstance(value, RewardFunction)
    yield from (("" if is_ours else name, part) for name, part in getattr(value, "__dict__", {}).items())
    slots = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
    yield from ((name, getattr(value, name)) for name in slots if hasattr(value, name))
    if type(value).__module__ != "builtins":
        yield "", type(value)
