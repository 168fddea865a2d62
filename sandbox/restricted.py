"""The gate for functions given as text: RestrictedPython, with our own rules for what everyday code needs.

*Covered:* a text that goes beyond plain computation is refused before it runs, with line, column and construct:
other imports than :data:`~sandbox.inside.guards.MODULES`, attributes and names that lead into the interpreter, builtins
that read, write or evaluate. :mod:`sandbox.inside.guards` refuses what only shows at run time.

*Not covered:* a text that finds a way around the gate. RestrictedPython says of itself that it is no sandbox. So
what passes runs in a jail all the same, and the jail is the boundary.

RestrictedPython rewrites iteration and item access too, for objects with permissions. Here no object has any, so those
rewritings are left out; unpacking, in-place operators and the builtins that iterate in C then work.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.util
import marshal
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from RestrictedPython.transformer import RestrictingNodeTransformer

from sandbox.errors import RestrictedSourceError
from sandbox.inside import guards
from sandbox.inside.asserts import bound_names
from sandbox.syntax import parse

MAX_TEXT_CHARS = 100_000  # length of a text; a longer one is refused

_PROGRAM = """\
import marshal
def answer(guards, added, code, function, arguments):
    names, names_added = {"__name__": "guards"}, {"__name__": "added"}
    exec(marshal.loads(guards), names)
    exec(marshal.loads(added), names_added)
    return names["answer"](marshal.loads(code), function, arguments, names_added)
"""
_MAGIC_METHODS = frozenset(
    {"__init__", "__contains__", "__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__", "__len__", "__iter__",
     "__next__", "__call__", "__hash__", "__repr__", "__str__", "__bool__", "__add__", "__sub__", "__mul__"}
)  # fmt: skip
_GONE_BUILTINS = frozenset(vars(builtins)) - guards.SAFE_BUILTINS - guards.GUARDED_BUILTINS
_STATEMENTS = {
    "AsyncFunctionDef": "async def", "AsyncFor": "async for", "AsyncWith": "async with", "Await": "await",
    "Match": "match", "TryStar": "except*", "TypeAlias": "type", "TypeVar": "a type parameter",
}  # fmt: skip
_HINTS = {
    "typing": "; Any, Literal, Optional and Union may stand in annotations without it",
    "rewardkit": "; a text is the plain function, and Score is there without an import",
}


@dataclass(frozen=True, slots=True)
class CheckedSource:
    """A text that has passed the gate."""

    text: str  # as it was given
    functions: Mapping[str, ast.FunctionDef] = field(repr=False)  # by name, those at its top level, as it was given
    code: bytes = field(repr=False)  # compiled for the jail: :mod:`marshal` data of this very version of Python

    def call(self, function: str, added: bytes, arguments: Mapping[str, Any]) -> tuple[str, str, list[tuple[Any, ...]]]:
        """Return what :meth:`Sandbox.call <sandbox.Sandbox.call>` is to be called with, to call a function of the text.

        Args:
            function: Its name.
            added: A module of ours, from :func:`module_code`. Its public names are there for the text; its
                ``_leave`` turns what the function returns into a dictionary of plain values, which the call gives.
            arguments: Its keyword arguments, plain values.

        See :func:`sandbox.inside.guards.answer` for what the call returns where the text raises.
        """
        return _PROGRAM, "answer", [(module_code(guards.__name__), added, self.code, function, dict(arguments))]


def check_source(text: str) -> CheckedSource:
    """Return a text of Python functions, made ready for the jail.

    Raises:
        RestrictedSourceError: It does not compile, or does what a text may not; names line, column and construct.
    """
    if len(text) > MAX_TEXT_CHARS:
        raise RestrictedSourceError(f"the text has {len(text):,} characters; at most {MAX_TEXT_CHARS:,} are taken")
    if "\0" in text:  # a fault in syntax to some versions of Python, to others not
        raise RestrictedSourceError("not Python: it has a NUL character", construct="characters")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd escapes and comparisons: the author's affair, not this process's
        try:
            tree = parse(text)
            gated = _Gate(text, tree).visit(parse(text))
            code = compile(gated, guards.FILE_NAME, "exec", dont_inherit=True, optimize=0)
        except SyntaxError as error:
            line, column = error.lineno or 1, error.offset or 1
            raise RestrictedSourceError(f"not Python: {error.msg}", line, column, "syntax") from None
        except (RecursionError, MemoryError):
            raise RestrictedSourceError("nested too deep", construct="nesting") from None
        except RestrictedSourceError:
            raise
        except ValueError as error:  # lone surrogates
            raise RestrictedSourceError(f"not Python: {error}", construct="characters") from None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    return CheckedSource(text, functions, marshal.dumps(code))


@functools.cache
def module_code(name: str) -> bytes:
    """Return a module of ours compiled, without docstrings: :mod:`marshal` data to be sent into a jail."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_bytes()  # not from the loader: under pytest that is one of its own
    return marshal.dumps(compile(source, f"{name}.py", "exec", dont_inherit=True, optimize=2))


class _Gate(RestrictingNodeTransformer):
    """RestrictedPython's policy with our changes; the first thing that it does not allow is raised."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        super().__init__()
        self._lines = text.splitlines()
        self._bound = Counter(bound_names(tree))
        self._modules = dict(_imported(tree))

    def error(self, node: ast.AST, info: str) -> NoReturn:
        """Refuse, in RestrictedPython's words."""
        self._refuse(node, info[:1].lower() + info[1:].rstrip("."), _construct(node))

    def not_allowed(self, node: ast.AST) -> NoReturn:
        """Refuse a kind of statement or expression."""
        construct = _construct(node)
        self._refuse(node, f"{construct} is not allowed", construct)

    def _refuse(self, node: ast.AST, reason: str, construct: str) -> NoReturn:
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        if isinstance(node, ast.Attribute):  # the name itself, not the beginning of what it is an attribute of
            line, offset = node.end_lineno or line, (node.end_col_offset or 0) - len(node.attr.encode())
        before = self._lines[line - 1].encode()[:offset] if line <= len(self._lines) else b""
        raise RestrictedSourceError(reason, line, len(before.decode("utf-8", "replace")) + 1, construct)

    def check_name(self, node: ast.AST, name: str | None, allow_magic_methods: bool = False) -> None:
        """Allow names that begin with an underscore, except those with a meaning to Python or to the gate."""
        inner = getattr(node, "col_offset", 0) > 0
        if name is None or (allow_magic_methods and name in _MAGIC_METHODS and inner):
            return
        if name.startswith("__") or (name.startswith("_") and name.endswith("_") and name != "_"):
            self._refuse(node, f"the name {name!r} is not allowed: it has a meaning of its own", name)

    def check_function_argument_names(self, node: object) -> None:
        """Leave that to each argument, which has its own line and column."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in _GONE_BUILTINS and not self._bound[node.id]:
            self._refuse(node, f"the builtin {node.id!r} is not available", node.id)
        self.check_name(node, node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if node.attr.startswith("_") or node.attr in guards.INNER_NAMES:
            self._refuse(node, f"the attribute {node.attr!r} is not available", node.attr)
        module = self._modules.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if module is not None and self._bound[node.value.id] == 1:  # type: ignore[attr-defined]  # as just seen
            self._check_public(node, module, node.attr)
        return super().visit_Attribute(node)

    def _check_public(self, node: ast.AST, module: str, name: str) -> None:
        if name not in guards.public_names(module) and f"{module}.{name}" not in guards.MODULES:
            self._refuse(node, f"{module}.{name} is not available", f"{module}.{name}")

    def visit_Import(self, node: ast.Import) -> Any:
        for alias in node.names:
            self._check_module(node, alias.name)
            self.check_name(node, alias.asname)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.module == "__future__" and [alias.name for alias in node.names] == ["annotations"]:
            return ast.copy_location(ast.Pass(), node)
        module = "." * node.level + (node.module or "")
        self._check_module(node, module)
        for alias in node.names:
            self._check_public(node, module, alias.name)
            self.check_name(node, alias.asname or alias.name)
        return node

    def _check_module(self, node: ast.AST, module: str) -> None:
        if module not in guards.MODULES:
            hint = _HINTS.get(module.partition(".")[0], f"; allowed are {', '.join(sorted(guards.MODULES))}")
            self._refuse(node, f"import of {module!r} is not allowed{hint}", f"import {module}")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Let annotations stand, unevaluated."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_arg(self, node: ast.arg) -> Any:
        self.check_name(node, node.arg)
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return super().visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        gated: Any = super().visit_ClassDef(node)
        for keyword in gated.keywords:  # RestrictedPython makes new ones, without a line
            ast.copy_location(keyword, node)
            ast.copy_location(keyword.value, node)
        return ast.copy_location(gated, node)

    def visit_Nonlocal(self, node: ast.Nonlocal | ast.Global) -> Any:
        for name in node.names:
            self.check_name(node, name)
        return node

    visit_Global = visit_Nonlocal

    def _visit_unchanged(self, node: ast.AST) -> Any:
        return self.node_contents_visit(node)

    # What RestrictedPython rewrites for objects with permissions; see the module's docstring.
    visit_Subscript = visit_For = visit_comprehension = visit_Assign = visit_With = visit_AugAssign = _visit_unchanged
    visit_Call = _visit_unchanged
    inject_print_collector = staticmethod(lambda node, position=0: None)


def _construct(node: ast.AST) -> str:
    """Return the name of what a node stands for, as its author would say it."""
    kind = type(node).__name__
    for name in ("attr", "id", "name"):
        value = getattr(node, name, None)
        if isinstance(value, str) and kind not in _STATEMENTS:
            return value
    return _STATEMENTS.get(kind, kind)


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Return the names that stand for modules, each with its module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
