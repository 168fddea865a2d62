"""What the source of a fingerprint's functions, classes and modules says, with all of the user's own that it uses.

Source comes from files and from a notebook's cells in ``linecache``; where there is neither, the compiled code counts.
"""

from __future__ import annotations

import ast
import dis
import enum
import functools
import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rewardkit.function import Versioned
from rewardkit.run_code import Sources
from rewardkit.versions.dependencies import Dependencies
from rewardkit.versions.meanings import PLAIN, Normaliser, Sourced, code_meaning, file_of, innermost, reference
from rewardkit.versions.own_modules import Module, home_of, is_own, read, read_cell

_CONTAINERS = (list, tuple, dict, set, frozenset)
_READ = "read"  # What is read stands in a fingerprint by this and the index of its first entry


class SourceReader:
    """Reads the source of what the values of a fingerprint have, and of what that uses."""

    def __init__(self, normaliser: Normaliser, root: object, sources: Sources) -> None:
        self._normaliser = normaliser
        self._sources = sources
        file = file_of(innermost(root))
        self._home = None if file is None else home_of(file)
        self._dependencies = Dependencies(sources, self._home)

    def read(self) -> object:
        """Return what each source says, and what all of them use."""
        pieces: list[object] = []
        index = 0
        while index < len(self._normaliser.sourced):  # it grows
            pieces.append(self._read(self._normaliser.sourced[index]))
            index += 1
        return pieces, self._dependencies.entries

    def _read(self, value: Sourced) -> object:
        """Return what stands for one source: a version that it states, a name, or where its entries begin."""
        if isinstance(value, Versioned):
            return value.version_at(self._sources)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        return self._module(value) if isinstance(value, types.ModuleType) else self._class(value)

    def _function(self, function: types.FunctionType) -> object:
        """Return where a function's entries begin, with the values it takes from its module; its name if another's."""
        code = function.__code__
        file = file_of(function)
        if file is not None and not self._is_own(file):
            return reference(function)
        module = read_cell(code.co_filename) if file is None else read(file, self._sources)
        node = None if module is None else _definition(module, code)
        if module is None or node is None:
            return self._compiled(function)
        first_entry = len(self._dependencies.entries)
        return _READ, first_entry, self._current_values(function, self._dependencies.start(module, node))

    def _compiled(self, function: types.FunctionType) -> object:
        """Return what the compiled code says, where there is no source."""
        names = _globals(function.__code__)
        return code_meaning(function.__code__, self._normaliser.meaning), self._current_values(function, names)

    def _current_values(self, function: types.FunctionType, among: Iterable[str]) -> object:
        """Return the meanings of those of the names that the function takes from its module, as they are now."""
        space = function.__globals__
        names = sorted({*among} & {*_globals(function.__code__)} & space.keys())
        return [(name, self._normaliser.meaning(_undecorated(space[name]))) for name in names]

    def _class(self, cls: type) -> object:
        """Return what stands for a class.

        - Where its source is found: ``_READ`` and the index of its first entry.
        - Where it has no source, as one of a notebook or one that a run makes: what it holds.
        - Where it belongs to an installed package, or to Python: its name.
        """
        file = file_of(sys.modules.get(cls.__module__))
        if file is None and cls.__module__ not in sys.builtin_module_names:
            return self._members(cls)
        definitions = [] if file is None else self._own_definitions(cls, file)
        if not definitions and cls.__module__ == "__main__":
            return self._members(cls)  # a cell may define it, though a script began the process
        if not definitions:
            return reference(cls)
        first_entry = len(self._dependencies.entries)
        for module, node in definitions:
            self._dependencies.start(module, node)
        return _READ, first_entry

    def _own_definitions(self, cls: type, file: Path) -> list[tuple[Module, ast.ClassDef]]:
        """Return what may define a class in its module's file, each with the module; none where it is another's."""
        module = read(file, self._sources) if self._is_own(file) else None
        return [] if module is None else [(module, node) for node in module.classes(cls.__name__, _line_within(cls))]

    def _members(self, cls: type) -> object:
        """Return the meanings of what a class holds, for one without source."""
        return reference(cls), [self._normaliser.meaning(member) for member in _members(cls)]

    def _module(self, module: types.ModuleType) -> object:
        """Return where a module's entries begin; its name if it is another's."""
        file = file_of(module)
        source = read(file, self._sources) if file is not None and self._is_own(file) else None
        if source is None:
            return reference(module)
        first_entry = len(self._dependencies.entries)
        self._dependencies.start_module(source)
        return _READ, first_entry

    def _is_own(self, file: Path) -> bool:
        return is_own(file, self._home)


def _undecorated(value: object) -> Any:
    """Return the function of a reward, which may use the very reward whose version is asked for; others as they are."""
    return vars(value).get("__wrapped__", value) if isinstance(value, Versioned) else value


def _definition(module: Module, code: types.CodeType) -> ast.AST | None:
    """Return the syntax tree of a function's code; ``None`` where none is found, or lambdas of a line are alike."""
    if code.co_name != "<lambda>":
        return module.definition(code.co_name, code.co_firstlineno)
    lambdas = module.lambdas(code.co_firstlineno)
    if len(lambdas) > 1:  # the code's is the one whose body is what the code returns
        positions = set(code.co_positions())
        lambdas = [node for node in lambdas if _position(node.body) in positions]
    return lambdas[0] if len(lambdas) == 1 else None


def _position(node: ast.expr) -> tuple[int | None, ...]:
    """Return where an expression lies, in the order of ``co_positions``."""
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _methods(cls: type) -> Iterable[object]:
    """Return the functions that a class defines."""
    for _, value in sorted(vars(cls).items()):
        if isinstance(value, functools.cached_property):
            yield value.func
        else:
            yield value.fget if isinstance(value, property) else getattr(value, "__func__", value)


def _line_within(cls: type) -> int | None:
    """Return a line of a class's source, that of a method; ``None`` where it has no method of its own file."""
    for method in _methods(cls):
        if isinstance(method, types.FunctionType) and file_of(method) == file_of(cls):
            return method.__code__.co_firstlineno
    return None


def _members(cls: type) -> Iterable[object]:
    """Return what a class defines itself, and its bases: for one whose source is in no file."""
    yield from cls.__bases__
    yield from (method for method in _methods(cls) if isinstance(method, types.FunctionType))
    for name, value in sorted(vars(cls).items()):
        if not name.startswith("__") and isinstance(value, (*PLAIN, *_CONTAINERS, enum.Enum, type)):
            yield name, value


def _globals(code: types.CodeType) -> Iterable[str]:
    """Return the names that compiled code takes from its module."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _globals(inner)
