"""How a function travels to a worker process: by reference where a fresh process finds it, else by value.

Workers never import the caller's main module, so what is defined in a script, a notebook or at the
prompt goes by value (cloudpickle), and a training script needs no ``__main__`` guard.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import traceback
import types
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from rewardkit.errors import RewardError, RewardLoadError, RewardTransportError

_OUR_FOLDERS = tuple(
    f"{Path(__file__).parents[1] / package}{os.sep}"
    for package in ("rewardkit", "sandbox", "builtin_rewards", "trainer_adapter")
)


def locate(wanted: object, function: Callable[..., Any]) -> tuple[str, str] | None:
    """Return the module and the qualified name under which a fresh process finds ``wanted``, or ``None``.

    ``wanted`` is the function, or the reward that stands in its place in the module.
    """
    module_name = getattr(function, "__module__", None)
    # what a factory made is found where the module keeps it under the function's own name
    qualname = getattr(function, "__qualname__", "").rpartition("<locals>.")[2]
    if not module_name or "<" in qualname:
        return None
    module: Any = sys.modules.get(module_name)
    if module_name.startswith(FILE_MODULES) and module is not None:
        carried = _carried.get().get(str(module.__file__))
        module_name = f"file:{module.__file__}" if carried is None else f"carried:{carried}"
    elif not importable(module_name):
        return None
    for part in qualname.split("."):
        module = getattr(module, part, None)
    return (module_name, qualname) if module is wanted else None


def importable(module_name: str) -> bool:
    """Return whether a fresh process with the same ``sys.path`` imports the very same file under this name."""
    module = sys.modules.get(module_name)
    if module is None or module_name == "__main__":
        return False
    path: list[str] | None = None
    parts = module_name.split(".")
    spec = None
    for depth in range(len(parts)):
        spec = spec_afresh(".".join(parts[: depth + 1]), path)
        if spec is None:
            return module_name in sys.builtin_module_names
        path = list(spec.submodule_search_locations or [])
    return spec is not None and spec.origin == getattr(module, "__file__", spec.origin)


def spec_afresh(name: str, path: list[str] | None) -> importlib.machinery.ModuleSpec | None:
    """Return what a fresh process finds under a module's name: on its path, or by a package installed as editable.

    Such a package adds a finder at the start of every process (PEP 660); other finders are this process's own.
    """
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    if spec is not None:
        return spec
    finders = [
        finder for finder in sys.meta_path if "editable" in getattr(finder, "__module__", type(finder).__module__)
    ]
    return next((spec for finder in finders if (spec := finder.find_spec(name, path)) is not None), None)


_carried: ContextVar[Mapping[str, str]] = ContextVar("carried", default={})  # noqa: B039 - it is never written to
"""Reward files that travel beside the bytes being made: where each lies on the other machine's path, by its place."""


def dumps(thing: object, *rewards: Any, carried: Mapping[str, str] | None = None) -> bytes:
    """Return the bytes from which another process rebuilds ``thing``, which holds these rewards.

    Args:
        thing: The object that travels.
        rewards: The rewards that it holds.
        carried: For another machine: reward files that travel beside the bytes, each with the path below one of its
            ``sys.path`` under which it lies there.

    Raises:
        RewardTransportError: It holds something that cannot travel; says what and the remedy.
    """
    functions = [leaf.spec.function for reward in rewards for leaf in (reward, *reward.inner)]
    by_value = list({module.__name__: module for function in functions for module in _own_modules(function)}.values())
    for module in by_value:
        cloudpickle.register_pickle_by_value(module)
    token = _carried.set(carried or {})
    try:
        buffer = io.BytesIO()
        _Pickler(buffer).dump(thing)
        return buffer.getvalue()
    except Exception as reason:
        names = ", ".join(repr(reward.name) for reward in rewards)
        raise RewardTransportError(
            f"{'reward' if len(rewards) == 1 else 'one of the rewards'} {names} cannot travel to a worker process: "
            f"{reason}. It holds something that lives only in this process (an open file, a lock, a client, a model). "
            "Make that inside the function, or at the top "
            "of a module that the worker imports; or use Runtime(..., lane='inline')"
        ) from reason
    finally:
        _carried.reset(token)
        for module in by_value:
            cloudpickle.unregister_pickle_by_value(module)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it ships no types
    """cloudpickle, which also sends functions under ``functools.cache``, and finds what a file defines by its path."""

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, io.TextIOWrapper) and obj not in (sys.stdout, sys.stderr):
            # cloudpickle would send what one that is read holds, at its place: a copy that is nobody's file
            raise TypeError(f"cannot pickle the open file {getattr(obj, 'name', '')!r}")
        if isinstance(obj, types.FunctionType | type) and (obj.__module__ or "").startswith(FILE_MODULES):
            location = locate(obj, obj)
            if location is not None:
                return find, location
        if isinstance(obj, functools._lru_cache_wrapper) and not (
            importable(getattr(obj, "__module__", "") or "") and locate(obj, obj) is not None
        ):
            settings = obj.cache_parameters()
            return _cached, (obj.__wrapped__, settings["maxsize"], settings["typed"])
        return super().reducer_override(obj)


def _cached(function: Callable[..., Any], maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize=maxsize, typed=typed)(function)


def _own_modules(function: object) -> list[ModuleType]:
    """Return the modules that a worker could not import, such as test modules: what they define goes by value."""
    inner = getattr(function, "func", function)
    names = {getattr(inner, "__module__", None), type(inner).__module__} - {None, "__main__", "builtins"}
    modules = [sys.modules.get(name) for name in names if name]
    return [module for module in modules if module is not None and not importable(module.__name__)]


FILE_MODULES = "rewardkit_file_"  # Modules loaded from a file have this and a digest of the path as their name


class _FromSource(importlib.machinery.SourceFileLoader):
    """Compiles the text that is in the file now.

    An import takes Python's cached bytecode where the file's size and the second of its last change are as they were:
    a file saved twice within a second would run as it was before.
    """

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def load_file(path: Path) -> ModuleType:
    """Return the module made of a Python file, loaded once in a process; its folder is importable from then on.

    Raises RewardLoadError with its own traceback where there is no such file, or it does not import.
    """
    path = path.resolve()
    name = FILE_MODULES + hashlib.sha256(str(path).encode()).hexdigest()[:12]
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise RewardLoadError(f"{path}: no such file")
    loader = _FromSource(name, str(path)) if path.suffix in importlib.machinery.SOURCE_SUFFIXES else None
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None or spec.loader is None:
        raise RewardLoadError(f"{path}: not a Python file")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as fault:
        del sys.modules[name]
        if isinstance(fault, KeyboardInterrupt):
            raise
        raise import_failure(str(path), fault) from fault
    return module


def import_failure(what: str, fault: BaseException) -> RewardLoadError:
    """Return the error of a file or module that does not import.

    It carries the traceback, or only the author's line where the fault is one of our errors, which name the remedy.
    """
    if isinstance(fault, RewardError):
        frames = traceback.extract_tb(fault.__traceback__)
        user_frames = [frame for frame in frames if not frame.filename.startswith((*_OUR_FOLDERS, "<"))]
        if user_frames:
            return RewardLoadError(f"{user_frames[-1].filename}:{user_frames[-1].lineno}: {fault}")
    return RewardLoadError(f"{what} does not import:\n{own_traceback(fault)}")


def own_traceback(fault: BaseException) -> str:
    """Return an error's traceback without the import system's and our own frames."""
    report = traceback.TracebackException.from_exception(fault)
    for part in (report, report.__cause__, report.__context__):
        if part is not None:
            user_frames = [frame for frame in part.stack if not frame.filename.startswith(("<frozen", __file__))]
            # The file's own line comes first, and what it called last.
            part.stack = traceback.StackSummary.from_list([*user_frames[:2], *user_frames[2:][-2:]])
    return "".join(report.format()).strip()


def find(module: str, qualname: str) -> Any:
    """Return the object under a name that :func:`locate` returned, in any process; load its file or module once."""
    if module.startswith("file:"):
        value: Any = load_file(Path(module[5:]))
    elif module.startswith("carried:"):
        value = load_file(_on_path(module[8:]))
    else:
        value = importlib.import_module(module)
    for part in qualname.split("."):
        value = getattr(value, part)
    return value


def _on_path(relative: str) -> Path:
    candidates = [Path(entry) / relative for entry in sys.path]
    return next((candidate for candidate in candidates if candidate.is_file()), candidates[0])
