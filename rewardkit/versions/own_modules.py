"""The modules that a user wrote: where their files are, and what they bind. Found and parsed, never imported.

A module is the user's own unless it is the standard library's, installed (in ``site-packages``, or beside
``*.dist-info``) or rewardkit's machinery. The built-in rewards and packages installed as editable count as own.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.machinery
import importlib.util
import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rewardkit.run_code import Sources
from rewardkit.transport import spec_afresh
from rewardkit.versions.names_used import FUNCTIONS, ImportTarget, Use, bound_by, imported, own_nodes, shape, uses
from sandbox import parse

_PACKAGES = Path(os.path.realpath(__file__)).parents[2]
_MACHINERY = tuple(str(_PACKAGES / name) + os.sep for name in ("rewardkit", "sandbox", "trainer_adapter"))
BUILTINS = str(_PACKAGES / "builtin_rewards") + os.sep
_STANDARD = tuple(
    os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib") if sysconfig.get_path(name)
)
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_LARGEST = 2_000_000  # Bytes of a file that is parsed; larger ones are data, and parsing takes a minute for 50 MB
_MARKERS = frozenset({"reward", "group_reward"})
_CONSTANT = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")  # fields of statements that hold statements


class Place(NamedTuple):
    """Where a module lies."""

    file: Path | None  # its source; ``None`` for a package without ``__init__.py``
    folders: tuple[Path, ...]  # where its submodules are looked for; none for anything but a package


class Fragment(NamedTuple):
    """A piece of source as a fingerprint reads it."""

    digest: str  # of its shape
    uses: Sequence[Use]  # the names that it takes from its module


class Module:
    """A parsed source file: which statements bind or change which of its names.

    Attributes:
        file: Its path; ``None`` for source that is in no file, such as a notebook's cell.
        imports: Names bound by import statements outside functions and classes, with all that they may mean.
        stars: What ``from x import *`` names.
        statements: What counts of the whole, in order.
    """

    def __init__(self, tree: ast.Module, file: Path | None) -> None:
        self.file = file
        self.imports: dict[str, list[ImportTarget]] = {}
        self.stars: list[ImportTarget] = []
        self.statements = [statement for statement in tree.body if not _never_counts(statement)]
        self._tree = tree
        self._bound: dict[str, list[ast.stmt]] = {}
        self._fragments: dict[int, Fragment] = {}
        for statement in self.statements:
            self._read(statement)

    def _read(self, statement: ast.stmt) -> None:
        """Note what a statement imports, and the names that it binds or changes."""
        names: list[str] = []
        for node in own_nodes(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name, target in imported(node).items():
                    if target.name == "*":
                        self.stars.append(target)
                    else:
                        self.imports.setdefault(name, []).append(target)
            else:
                names += bound_by(node)
                names += _changed(node)
        for name in dict.fromkeys(names):
            self._bound.setdefault(name, []).append(statement)

    @functools.cached_property
    def _changes(self) -> dict[str, list[ast.stmt]]:
        """What changes a name in passing: a call that mentions a constant or changes one, a method that takes it in."""
        bindings: dict[str, list[ast.stmt]] = {}
        for statement in self.statements:
            calls: list[ast.expr] = list(getattr(statement, "decorator_list", ()))
            calls = calls or [node.value for node in own_nodes(statement) if isinstance(node, ast.Expr)]
            for name in dict.fromkeys(name for call in calls for name in self._changed_by(call)):
                bindings.setdefault(name, []).append(statement)
        return bindings

    def _changed_by(self, call: ast.expr) -> Iterator[str]:
        """Yield the names that a call may change: constants that it, or what it calls, mentions, and its object."""
        for use in uses(call):
            names = [use.name]
            for binding in self._bound.get(use.name, ()):
                if isinstance(binding, (*FUNCTIONS, ast.ClassDef)):
                    names += (inner.name for inner in self.fragment(binding).uses)
            for name in names:
                if any(isinstance(binding, _CONSTANT) for binding in self._bound.get(name, ())):
                    yield name
        called = call.func if isinstance(call, ast.Call) else call
        if isinstance(called, ast.Attribute):  # as @name.register, which takes in what it decorates
            yield from (use.name for use in uses(called))

    def binds(self, name: str) -> bool:
        """Whether a statement of the module binds the name, an import included."""
        return name in self._bound or name in self.imports

    def bound(self, name: str) -> list[ast.stmt]:
        """Return the statements that bind or change a name, imports aside, in order."""
        statements = [*self._bound.get(name, ()), *self._changes.get(name, ())]
        numbers = set(map(id, statements))
        if len(numbers) < 2:  # the usual case, without a walk through the module
            return statements[:1]
        return [statement for statement in self.statements if id(statement) in numbers]

    def fragment(self, node: ast.AST) -> Fragment:
        """Return the digest of one of the module's nodes and the names that it uses; computed once."""
        fragment = self._fragments.get(id(node))
        if fragment is None:
            text = shape(without_markers(node, self.imports))
            digest = hashlib.sha256("\0".join(text).encode("utf-8", "surrogatepass")).hexdigest()
            fragment = self._fragments[id(node)] = Fragment(digest, uses(node))
        return fragment

    @functools.cached_property
    def every_import(self) -> list[ImportTarget]:
        """What the module's import statements name, also those inside of functions."""
        targets: list[ImportTarget] = []
        waiting: list[ast.AST] = [self._tree]
        while waiting:  # through statements alone, which is ten times as quick as through every node
            node = waiting.pop()
            if isinstance(node, ast.Import):
                targets += (ImportTarget(alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                targets += (ImportTarget(node.module or "", node.level, alias.name) for alias in node.names)
            for field in _STATEMENTS:
                waiting += getattr(node, field, ())
        return targets

    @functools.cached_property
    def _definitions(self) -> dict[str, list[ast.AST]]:
        """The functions and classes by name, wherever they stand; lambdas under ``<lambda>``."""
        definitions: dict[str, list[ast.AST]] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                definitions.setdefault(getattr(node, "name", "<lambda>"), []).append(node)
        return definitions

    def definition(self, name: str, line: int) -> ast.AST | None:
        """Return the function of a name, at a line where several have it; ``None`` if unsure."""
        nodes = self._definitions.get(name, [])
        matches = [node for node in nodes if _first_line(node) == line] or nodes
        return matches[0] if len(matches) == 1 else None

    def classes(self, name: str, line: int | None) -> list[ast.ClassDef]:
        """Return the classes of a name: the one around a line where several have it, all where none is known."""
        nodes = [node for node in self._definitions.get(name, []) if isinstance(node, ast.ClassDef)]
        around = [node for node in nodes if line is not None and _first_line(node) <= line <= (node.end_lineno or 0)]
        return around or nodes

    def lambdas(self, line: int) -> list[ast.Lambda]:
        """Return the lambdas that begin at a line."""
        nodes = self._definitions.get("<lambda>", [])
        return [node for node in nodes if isinstance(node, ast.Lambda) and node.lineno == line]


def _first_line(node: ast.AST) -> int:
    """Return the line at which a definition begins, decorators included, as compiled code has it."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([getattr(node, "lineno", 0), *(decorator.lineno for decorator in decorators)])


def _never_counts(statement: ast.stmt) -> bool:
    """Whether it is text alone, or ``if __name__ == "__main__":``, which no import runs."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if not isinstance(statement, ast.If) or not isinstance(statement.test, ast.Compare):
        return False
    sides = [statement.test.left, *statement.test.comparators]
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)


def _changed(node: ast.AST) -> Iterator[str]:
    """Return the name whose attribute or entry a node sets."""
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute | ast.Subscript):
            inner = inner.value
        if isinstance(inner, ast.Name):
            yield inner.id


def without_markers(node: ast.AST, imports: Mapping[str, Sequence[ImportTarget]]) -> ast.AST:
    """Return a function without ``@reward`` and ``@group_reward``: a reward's options count by themselves."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.decorator_list:
        return node
    decorators = [decorator for decorator in node.decorator_list if not _is_marker(decorator, imports)]
    return type(node)(**{**dict(ast.iter_fields(node)), "decorator_list": decorators})


def _is_marker(decorator: ast.expr, imports: Mapping[str, Sequence[ImportTarget]]) -> bool:
    """Return whether a decorator is one of rewardkit's, as the module's imports have it."""
    match decorator.func if isinstance(decorator, ast.Call) else decorator:
        case ast.Name(id=name):
            targets = [(target.name, target) for target in imports.get(name, ())]
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            targets = [(name, target) for target in imports.get(module, ()) if target.name is None]
        case _:
            return False
    return any(name in _MARKERS and target.module == "rewardkit" for name, target in targets)


def read(file: Path, sources: Sources) -> Module | None:
    """Return a file parsed; ``None`` where it cannot be read, is not Python, or is larger than 2 MB."""
    data = sources.data(file)
    return None if data is None else module_of(Path(os.path.realpath(file)), data)  # one, however it was reached


@functools.lru_cache(maxsize=512)
def module_of(file: Path, data: bytes) -> Module | None:
    """Return a file's bytes parsed; ``None`` where they are not Python, or more than 2 MB."""
    if len(data) > _LARGEST:
        return None
    try:
        return _parsed(importlib.util.decode_source(data), file)
    except (SyntaxError, ValueError):  # it cannot be decoded
        return None


def _parsed(text: str, file: Path | None) -> Module | None:
    """Return a module of this text; ``None`` where it is not Python, or too deep to parse."""
    try:
        return Module(parse(text), file)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def read_cell(name: str) -> Module | None:
    """Return source that is in no file parsed, such as a notebook's cell, which ``linecache`` keeps."""
    lines = linecache.cache.get(name)
    return _parsed("".join(lines[2]), None) if isinstance(lines, tuple) and len(lines) > 2 else None


def find_top(name: str) -> Place | None:
    """Return where a top-level module lies: as it was imported, or as an import would find it."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if isinstance(file, str) and file.endswith(".py"):
        return Place(Path(file), tuple(map(Path, getattr(module, "__path__", ()))))
    if name in sys.builtin_module_names:
        return None
    try:
        spec = spec_afresh(name, None)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    folders = tuple(map(Path, spec.submodule_search_locations or ()))
    if isinstance(spec.loader, importlib.machinery.SourceFileLoader) and spec.origin:
        return Place(Path(spec.origin), folders)
    return Place(None, folders) if folders else None


def find_below(parent: Place, name: str) -> Place | None:
    """Return where a package's submodule lies."""
    for folder in parent.folders:
        package = folder / name
        if (package / "__init__.py").is_file():
            return Place(package / "__init__.py", (package,))
        if package.with_name(name + ".py").is_file():
            return Place(package.with_name(name + ".py"), ())
    spaces = tuple(folder / name for folder in parent.folders if (folder / name).is_dir())
    return Place(None, spaces) if spaces else None


def find_from(file: Path | None, target: ImportTarget) -> Place | None:
    """Return where the module of an import lies, seen from the file that imports it; ``None`` if it is not found."""
    parts = target.module.split(".") if target.module else []
    if target.level:
        if file is None:
            return None
        folder = file.parents[min(target.level, len(file.parents)) - 1]
        initial = folder / "__init__.py"
        origin: Place | None = Place(initial if initial.is_file() else None, (folder,))
    else:
        origin, parts = find_top(parts[0]), parts[1:]
    for part in parts:
        origin = None if origin is None else find_below(origin, part)
    return origin


@functools.lru_cache(maxsize=4096)
def is_own(file: Path, home: Path | None = None) -> bool:
    """Whether a file is the user's own: not another's, or at home where the reward itself is."""
    path = os.path.realpath(file)
    if home is not None and (path == str(home) or path.startswith(str(home) + os.sep)):
        return not path.startswith(_MACHINERY)
    if path.startswith(BUILTINS):
        return True
    if path.startswith((*_MACHINERY, *_STANDARD)) or _INSTALLED & set(Path(path).parts):
        return False
    return next(home_of(Path(path)).parent.glob("*.dist-info"), None) is None  # a folder that pip filled


def home_of(file: Path) -> Path:
    """Return the folder of the top-level package that a file is in, or the file itself where it is in none."""
    top = Path(os.path.realpath(file))
    while (top.parent / "__init__.py").is_file() and top.parent != top:
        top = top.parent
    return top
