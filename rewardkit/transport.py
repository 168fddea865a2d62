"""How a function travels to a worker process: by reference where a fresh process finds it, else by value.

Workers never import the caller's main module, so what is defined in a script, a notebook or at the
prompt goes by value (cloudpickle), and a training script needs no ``__main__`` guard.
"""

from __future__ import annotations

import contextlib
import dis
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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from rewardkit.errors import RewardError, RewardLoadError, RewardTransportError
from rewardkit.function import RewardFunction
from rewardkit.run_code import FromText, text_in_run

_OUR_FOLDERS = tuple(
    f"{Path(__file__).parents[1] / package}{os.sep}"
    for package in ("rewardkit", "sandbox", "builtin_rewards", "trainer_adapter")
)


_MOST_STEPS = 20  # Names of a chain; one that is longer ends there


def locate(
    wanted: object, function: Callable[..., Any], within: Callable[[Any], object] = lambda value: value
) -> tuple[str, str] | None:
    """Return the module and the qualified name under which a fresh process finds ``wanted``, or ``None``.

    ``wanted`` is the function, or the reward that stands in its place in the module, or what is ``within`` that.
    """
    module_name = getattr(function, "__module__", None)
    # what a factory made is found where the module keeps it under the function's own name
    qualname = getattr(function, "__qualname__", "").rpartition("<locals>.")[2]
    if not module_name or "<" in qualname:
        return None
    module: Any = sys.modules.get(module_name)
    if module_name.startswith(FILE_MODULES) and module is not None:
        module_name = f"file:{module_name.removeprefix(FILE_MODULES)}:{module.__file__}"
    elif not importable(module_name):
        return None
    for part in qualname.split("."):
        module = getattr(module, part, None)
    return (module_name, qualname) if within(module) is wanted else None


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


def dumps(thing: object, *rewards: Any, modules: set[str] | None = None) -> bytes:
    """Return the bytes from which another process rebuilds ``thing``, which holds these rewards.

    Args:
        thing: The object that travels.
        rewards: The rewards that it holds.
        modules: Takes the names of the modules that the other process imports for it.

    Raises:
        RewardTransportError: It holds something that cannot travel; says what and the remedy.
    """
    functions = [leaf.spec.function for reward in rewards for leaf in (reward, *reward.inner)]
    by_value = list({module.__name__: module for function in functions for module in _own_modules(function)}.values())
    for module in by_value:
        cloudpickle.register_pickle_by_value(module)
    try:
        return _bytes_of(thing, modules)
    except Exception as reason:
        names = ", ".join(repr(reward.name) for reward in rewards)
        leaves = (leaf for reward in rewards for leaf in (reward, *reward.inner))
        chains = (chain_to(leaf.name, leaf.spec.function, _bytes_of) for leaf in leaves)
        where = next((f" ({' -> '.join(chain)})" for chain in chains if len(chain) > 1), "")
        raise RewardTransportError(
            f"{'reward' if len(rewards) == 1 else 'one of the rewards'} {names} cannot travel to a worker process: "
            f"{reason}{where}. It holds something that lives only in this process (an open file, a lock, a client, a "
            "model). Make that inside the function, or at the top of a module that the worker imports; or use "
            "Runtime(..., lane='inline')"
        ) from reason
    finally:
        for module in by_value:
            cloudpickle.unregister_pickle_by_value(module)


def _bytes_of(thing: object, modules: set[str] | None = None) -> bytes:
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(thing)
    if modules is not None:
        modules |= pickler.modules
    return buffer.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it ships no types
    """cloudpickle, which also sends functions under ``functools.cache``, and finds what a file defines by its path.

    Attributes:
        modules: The names of the modules that what was sent needs.
    """

    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer)
        self.modules: set[str] = set()

    def reducer_override(self, obj: object) -> Any:
        """Note the modules behind an object, and return how it is rebuilt where cloudpickle would do otherwise."""
        self.modules.update(modules_behind(obj))
        if isinstance(obj, io.TextIOWrapper) and obj not in (sys.stdout, sys.stderr):
            # cloudpickle would send the content of a file that is open for reading, a copy that is no file
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


def modules_behind(thing: object) -> Iterator[str]:
    """Return the names of the modules that a value needs, those that a function's body imports among them."""
    yield type(thing).__module__
    if isinstance(thing, types.ModuleType):
        yield thing.__name__
    elif isinstance(thing, types.FunctionType | type):
        yield thing.__module__ or ""
    else:
        with contextlib.suppress(AttributeError):  # a reward has the module of its function
            yield object.__getattribute__(thing, "__dict__").get("__module__", "")
    if isinstance(thing, types.FunctionType):
        yield from _imported_in(thing.__code__)


def _imported_in(code: types.CodeType) -> Iterator[str]:
    """Yield the modules that code and the functions in it import by their full names.

    Relative imports are left out: they are found in the text of the function's own module.
    """
    module, level = "", 0
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and isinstance(step.argval, int):
            level = step.argval  # the last number before an import: how many dots it has
        elif step.opname == "IMPORT_NAME":
            module = "" if level else step.argval
            if module:
                yield module
        elif step.opname == "IMPORT_FROM" and module:
            yield f"{module}.{step.argval}"
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _imported_in(inner)


def _cached(function: Callable[..., Any], maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize=maxsize, typed=typed)(function)


def _own_modules(function: object) -> list[ModuleType]:
    """Return the modules that a worker could not import, such as test modules: what they define goes by value."""
    inner = getattr(function, "func", function)
    names = {getattr(inner, "__module__", None), type(inner).__module__} - {None, "__main__", "builtins"}
    modules = [sys.modules.get(name) for name in names if name]
    return [module for module in modules if module is not None and not importable(module.__name__)]


FILE_MODULES = "rewardkit_file_"  # Modules loaded from a file have this and a digest of path and text as their name
CARRIED_FILES = "rewardkit_carried"  # The folder of the files of such modules on another machine, by their digest


def load_file(path: Path) -> ModuleType:
    """Return the module made of a Python file, loaded once in a process for the same text.

    Its folder is importable from then on. Raises RewardLoadError with its own traceback where there is no such file, or
    it does not import.
    """
    path = path.resolve()
    if path.suffix not in importlib.machinery.SOURCE_SUFFIXES:
        other = path.with_name(f"{path.name}.py")
        raise RewardLoadError(f"{path}: not a Python file" + (f"; did you mean {other}?" if other.is_file() else ""))
    try:
        text = path.read_bytes()
    except OSError:
        raise RewardLoadError(f"{path}: no such file") from None
    return _load_text(FILE_MODULES + hashlib.sha256(f"{path}\0".encode() + text).hexdigest()[:12], path, text)


def _load_text(name: str, path: Path, text: bytes) -> ModuleType:
    """Return the module of this name, made of the text where it is not loaded yet; raise RewardLoadError."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path, loader=FromText(name, str(path), text))
    assert spec is not None
    assert spec.loader is not None
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


def loader_of(thing: object) -> FromText | None:
    """Return what loaded the module that defines a function or class, where that is :func:`load_file`."""
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    return loader if isinstance(loader, FromText) else None


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
        digits, _, file = module.removeprefix("file:").partition(":")
        value: Any = _file_module(digits, Path(file))
    else:
        value = importlib.import_module(module)
    for part in qualname.split("."):
        value = getattr(value, part)
    return value


def _file_module(digits: str, file: Path) -> ModuleType:
    """Return the module of a reward file: as the run has it, as it came to this machine, or as it is on the disk."""
    name = FILE_MODULES + digits
    text = text_in_run(name)
    if text is not None or name in sys.modules:
        return _load_text(name, file, text or b"")
    carried = (Path(entry) / CARRIED_FILES / digits / file.name for entry in sys.path)
    return load_file(next((candidate for candidate in carried if candidate.is_file()), file))


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
        yield from value.keywords.copy().items()
    elif isinstance(value, types.MethodType):
        yield from (("", value.__func__), ("self", value.__self__))
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in list(value.items()))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{index}]", part) for index, part in enumerate(list(value)))
    elif isinstance(value, type):
        yield from (
            (name, part) for name, part in list(vars(value).items()) if not isinstance(part, types.GetSetDescriptorType)
        )
    else:
        yield from _parts_of_object(value)


def _parts_of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function holds: closure, globals, defaults and attributes."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            continue
    yield from ((name, function.__globals__[name]) for name in _globals_of(function.__code__, function.__globals__))
    yield from ((f"default {index}", part) for index, part in enumerate(function.__defaults__ or ()))
    yield from (function.__kwdefaults__ or {}).items()
    yield from vars(function).copy().items()


def _globals_of(code: types.CodeType, names: Mapping[str, Any]) -> Iterator[str]:
    """Yield the globals that a function mentions, those of functions inside it too."""
    yield from (name for name in code.co_names if name in names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals_of(constant, names)


def _parts_of_object(value: object) -> Iterator[tuple[str, Any]]:
    """Yield what an object holds, or the function of a reward that another one calls."""
    reward_function = getattr(getattr(value, "spec", None), "function", None)
    if reward_function is not None:  # a reward that another one calls
        yield "", reward_function
        return
    inner = getattr(value, "__wrapped__", None)
    if inner is not None:
        yield "", inner
    is_ours = isinstance(value, RewardFunction)
    yield from (("" if is_ours else name, part) for name, part in list(getattr(value, "__dict__", {}).items()))
    slots = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
    yield from ((name, getattr(value, name)) for name in slots if hasattr(value, name))
    if type(value).__module__ != "builtins":
        yield "", type(value)
