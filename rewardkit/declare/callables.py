"""What lies beneath a callable: partials, bound methods, objects that are called, wrappers.

A ``functools.partial`` has neither annotations nor a docstring of its own; an object's are those of its ``__call__``.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any, get_origin

_MOST_LAYERS = 100  # Layers that are looked through; a callable that wraps itself has no end


def without_partials(function: object) -> Any:
    """Return the callable inside partials, or the callable itself."""
    for _ in range(_MOST_LAYERS):
        if not isinstance(function, functools.partial | functools.partialmethod):
            break
        function = function.func
    return function


def _layers(function: object) -> Iterator[Any]:
    """Yield a callable and those beneath it, down to the function whose code runs; wrappers are not unwrapped."""
    for _ in range(_MOST_LAYERS):
        yield function
        inner = _beneath(function)
        if inner is None:
            return
        function = inner


def _beneath(function: object) -> Any:
    """Return what a callable calls: a partial's function, a bound method's, an object's ``__call__``; else ``None``."""
    if isinstance(function, functools.partial | functools.partialmethod):
        return function.func
    if isinstance(function, types.MethodType | staticmethod | classmethod):
        return function.__func__
    if isinstance(function, types.FunctionType):
        # A class hands out a ``partialmethod`` as a function with this attribute, which Python 3.13 has renamed.
        return getattr(function, "__partialmethod__", None) or getattr(function, "_partialmethod", None)
    call = inspect.getattr_static(type(function), "__call__", None)
    return call if isinstance(call, types.FunctionType | functools.partialmethod | staticmethod | classmethod) else None


def set_by_partials(function: object) -> frozenset[str]:
    """Return the names of the arguments that partials have set by keyword."""
    partials = (layer for layer in _layers(function) if isinstance(layer, functools.partial | functools.partialmethod))
    return frozenset(name for partial in partials for name in partial.keywords)


def code_of(function: object) -> Any:
    """Return the function whose code runs when a callable is called, without looking through wrappers."""
    *_, innermost = _layers(function)
    return innermost


def written(function: object) -> Any:
    """Return the function whose ``def`` the author wrote, with its annotations: as :func:`code_of`, and unwrapped."""
    for _ in range(_MOST_LAYERS):
        beneath = without_partials(function)
        if not hasattr(beneath, "__wrapped__"):
            beneath = code_of(beneath)
            if not hasattr(beneath, "__wrapped__"):
                return beneath
        function = beneath.__wrapped__
    return function


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(code_of(function))


def doc_of(function: Callable[..., Any]) -> str | None:
    """Return a callable's docstring; of a partial that of what it calls, since its own is that of its class."""
    return inspect.getdoc(without_partials(function))


def called_text(function: object) -> str:
    """Return how code refers to a callable: by its name, or for an object by a call of its class."""
    beneath = without_partials(function)
    name: str | None = getattr(beneath, "__name__", None)
    return f"{type(beneath).__name__}()" if name is None else name


def why_no_reward(function: object, scores: str) -> str | None:
    """Return why a callable cannot return ``scores`` (such as ``"a score"``), with the remedy; ``None`` if it may."""
    beneath = without_partials(function)
    if isinstance(beneath, type) or isinstance(get_origin(beneath), type):
        name = getattr(beneath, "__name__", repr(beneath))
        call = inspect.getattr_static(beneath, "__call__", None)
        is_of_a_trainer = isinstance(call, types.FunctionType) and "completions" in inspect.signature(call).parameters
        instance = (
            f"hand over from_trl({name}()), of rewardkit.moving"
            if is_of_a_trainer
            else f"mark an instance: reward({name}(...))"
        )
        return f"{name} is a class, and calling it makes an object, not {scores}; {instance}"
    code = code_of(function)
    if inspect.isasyncgenfunction(code) or inspect.isgeneratorfunction(code):
        return f"it is a generator function, as it has 'yield', and returns a generator, not {scores}; use 'return'"
    return None
