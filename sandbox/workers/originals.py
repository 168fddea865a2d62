"""Names of Python's own modules, as they were when the worker was ready: what a call patched is put back.

A call that leaves ``builtins.float`` or ``math.sqrt`` patched would change the scores of those after it without a
trace. Looking at every name after every call would take longer than a short call, so the interpreter is asked whether
a module's names have changed at all: by the version of its dictionary, or from Python 3.12 on by a watcher. Only
modules that have been imported by then are looked at, and Python's own: a user's file may have the name of one.

*Not noticed:* names of other modules and classes than :data:`MODULES` and :data:`CLASSES`, and items of containers.
"""

from __future__ import annotations

import array
import atexit
import ctypes
import functools
import gc
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

MODULES = (
    *("builtins", "sys", "math", "os", "posixpath", "time", "json", "json.decoder", "json.encoder", "re", "random"),
    *("string", "itertools", "functools", "operator", "collections", "decimal", "fractions", "statistics", "datetime"),
    *("copy", "struct", "threading", "pickle", "warnings"),
)
CLASSES = ("json.encoder.JSONEncoder", "json.decoder.JSONDecoder", "fractions.Fraction", "threading.Thread")
_VERSION_AT = 24  # where a dictionary of CPython 3.11 has its version
_MISSING, _set, _delete, _is, _list = object(), setattr, delattr, isinstance, list
_callbacks: list[object] = []  # the interpreter calls them as long as the process lives


class _Owner(NamedTuple):
    """A module or class whose names are looked at."""

    version: slice  # where its version stands among all
    owner: Any
    names: Mapping[str, Any]
    originals: Mapping[str, Any]


class Originals:
    """The names as they are now; where ``versions()`` is not ``last_versions``, some have been changed since."""

    def __init__(self) -> None:
        modules = {
            name: sys.modules[name] for name in MODULES if name in sys.modules and _is_standard(sys.modules[name])
        }
        classes = [path.rpartition(".") for path in CLASSES]
        owners = [*modules.values(), *(getattr(modules[name], kind) for name, _, kind in classes if name in modules)]
        self._owners = [
            _Owner(slice(8 * index, 8 * index + 8), owner, vars(owner), _constant(owner))
            for index, owner in enumerate(owners)
        ]
        dictionaries = [_dictionary(owner) for owner in owners]
        self.versions = _watched(dictionaries) if sys.version_info >= (3, 12) else _versions(dictionaries)
        self.last_versions = self.versions()

    def put_back(self) -> bool:
        """Put back what has been patched since the last time; return whether there was something."""
        patched, versions, last_versions = False, self.versions(), self.last_versions
        for version, owner, names, originals in self._owners:
            if versions[version] != last_versions[version]:
                for name, value in originals.items():
                    if names.get(name, _MISSING) is not value:
                        _set(owner, name, value)
                        patched = True
                if owner not in _WITH_STATE:
                    for name in _new(names, originals):  # a new name may hide one of builtins
                        _delete(owner, name)
                        patched = True
        self.last_versions = self.versions()
        return patched


def _is_standard(module: ModuleType) -> bool:
    """Return whether a module is Python's own, and not another of its name."""
    origin = getattr(module.__spec__, "origin", None) or "built-in"
    return origin in ("built-in", "frozen") or os.path.dirname(origin).startswith(_LIBRARY)


def _dictionary(owner: object) -> dict[str, Any]:
    """Return the dictionary of an owner's names; a class hands out a proxy of it."""
    names: Any = vars(owner)
    return names if isinstance(names, dict) else gc.get_referents(names)[0]


def _constant(owner: object) -> dict[str, Any]:
    """Return the names that no ordinary code changes: of ``sys`` and ``warnings`` their functions, of others all."""
    constant = _FUNCTIONS if owner in _WITH_STATE else object
    return {name: value for name, value in vars(owner).items() if isinstance(value, constant)}


def _new(names: Mapping[str, object], originals: Mapping[str, object]) -> list[str]:
    """Return the names that are new, modules aside, which imports add."""
    return [name for name in _list(names) if name not in originals and not _is(names[name], ModuleType)]


_FUNCTIONS = (type(len), type(_new), type)
_WITH_STATE = (sys, warnings)  # modules that keep state in names
_LIBRARY = os.path.dirname(os.__file__)


def _versions(dictionaries: Sequence[dict[str, Any]]) -> Callable[[], bytes]:
    """Return what reads the versions of dictionaries, each of which every change of it makes another."""
    tags = [memoryview(ctypes.c_uint64.from_address(id(names) + _VERSION_AT)) for names in dictionaries]
    return functools.partial(b"".join, tags)


def _watched(dictionaries: Sequence[dict[str, Any]]) -> Callable[[], bytes]:
    """Return what reads how often each dictionary has been changed."""
    changes = array.array("Q", bytes(8 * len(dictionaries)))
    indices = {id(names): index for index, names in enumerate(dictionaries)}

    def count(_: int, names: int, *change: object) -> int:
        changes[indices[names]] += 1
        return 0

    callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, *[ctypes.c_void_p] * 3)(count)
    _callbacks.append(callback)
    watcher = ctypes.pythonapi.PyDict_AddWatcher(callback)
    atexit.register(ctypes.pythonapi.PyDict_ClearWatcher, watcher)  # the interpreter's end changes dictionaries, too
    for names in dictionaries:
        ctypes.pythonapi.PyDict_Watch(watcher, ctypes.py_object(names))
    return changes.tobytes
