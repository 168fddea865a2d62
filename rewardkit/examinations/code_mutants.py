"""A program changed in one small way at a time, as a tester changes it to see whether the tests notice."""

from __future__ import annotations

import ast
import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeAlias, TypeVar

from sandbox import parse

_Item = TypeVar("_Item")
Change: TypeAlias = Callable[[ast.AST], ast.AST | None]  # changes a copy of a node; returns what stands in its place

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
    ast.And: ast.Or, ast.Or: ast.And,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_BOUNDS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip
SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.And: "and", ast.Or: "or", ast.Eq: "==", ast.NotEq: "!=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=",
}  # fmt: skip
_SETTERS = frozenset({"set_int_max_str_digits", "setrecursionlimit", "stack_size"})
_SETTINGS = frozenset({"encoding", "flush", "maxsize", "strict"})  # arguments that do not change what is computed
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


class CodeMutant(NamedTuple):
    """A changed program, and what was changed."""

    label: str
    source: str


class MutationSite(NamedTuple):
    """A node of a tree by its number in the order of :func:`ast.walk`, what is done to it, and the words for that."""

    number: int
    label: str
    change: Change


def code_mutants(source: str, most: int) -> list[CodeMutant]:
    """Return mutants of a program, of each kind in turn: operators, constants, bounds, branches; ``[]`` for no Python.

    Args:
        source: Python source. Docstrings, imports, decorators, annotations, asserts, f-strings, settings such as
            ``flush`` and the test for ``__main__`` stay as they are.
        most: Mutants to return. Changes in loops that may then not end come last.
    """
    try:
        tree = parse(source)
        unchanged = ast.unparse(tree)
    except _UNREADABLE:
        return []
    endless = numbers_in_loops(tree)
    kinds = [list(kind(tree)) for kind in (operator_sites, constant_sites, bound_sites, branch_sites)]
    safe = ([site for site in sites if site.number not in endless] for sites in kinds)
    risky = ([site for site in sites if site.number in endless] for sites in kinds)
    mutants: dict[str, CodeMutant] = {}
    for site in [*in_turn(safe), *in_turn(risky)]:
        with contextlib.suppress(RecursionError):  # a tree so deep cannot be copied
            text = ast.unparse(changed_tree(tree, site))
            if text != unchanged:
                mutants.setdefault(text, CodeMutant(site.label, text))
        if len(mutants) == most:
            break
    return list(mutants.values())


def in_turn(kinds: Iterable[Sequence[_Item]]) -> Iterator[_Item]:
    """Yield the first of each kind, then the second of each, and so on."""
    yield from (item for items in zip_longest(*kinds) for item in items if item is not None)


def returning_none(source: str) -> str | None:
    """Return a program whose functions all return ``None``, or that does nothing where it has none.

    ``None`` is for what is no Python, or too deep to be written anew.
    """
    try:
        tree = parse(source)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for function in functions:
            function.body = [ast.Return(ast.Constant(None))]
        return ast.unparse(ast.fix_missing_locations(tree)) if functions else "pass"
    except _UNREADABLE:
        return None


def changed_tree(tree: ast.Module, site: MutationSite) -> ast.Module:
    """Return a copy of the program with one site changed."""
    changed = copy.deepcopy(tree)
    node = next(node for number, node in enumerate(ast.walk(changed)) if number == site.number)
    replacement = site.change(node)
    if replacement is not None:
        for parent in ast.walk(changed):
            for name, value in ast.iter_fields(parent):
                if value is node:
                    setattr(parent, name, replacement)
                elif isinstance(value, list) and any(item is node for item in value):
                    value[:] = [replacement if item is node else item for item in value]
    return ast.fix_missing_locations(changed)


def open_nodes(tree: ast.Module) -> Iterator[tuple[int, ast.AST]]:
    """Yield the numbered nodes that may be changed."""
    fixed = {id(node) for root in _fixed_roots(tree) for node in ast.walk(root)}
    yield from ((number, node) for number, node in enumerate(ast.walk(tree)) if id(node) not in fixed)


def _fixed_roots(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that stay as they are, with all below them, since what is computed does not depend on them."""
    for node in ast.walk(tree):
        if _is_fixed(node):
            yield node
        elif isinstance(node, ast.If) and is_test_for_main(node.test):
            yield node.test
        yield from getattr(node, "decorator_list", ())
        annotations = (getattr(node, name, None) for name in ("annotation", "returns"))
        yield from (annotation for annotation in annotations if isinstance(annotation, ast.AST))


def _is_fixed(node: ast.AST) -> bool:
    """Return whether a node is an import, an assert, a docstring, a formatted text or a setting."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _SETTERS
    if isinstance(node, ast.keyword):
        return node.arg in _SETTINGS
    return isinstance(node, ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr)


def numbers_in_loops(tree: ast.Module) -> set[int]:
    """Return the numbers of the nodes in loops that end by a condition."""
    inside = {id(node) for loop in ast.walk(tree) if isinstance(loop, ast.While) for node in ast.walk(loop)}
    return {number for number, node in enumerate(ast.walk(tree)) if id(node) in inside}


def operator_sites(tree: ast.Module) -> Iterator[MutationSite]:
    for number, node in open_nodes(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp):
            other = _OPERATORS.get(type(node.op))
            if other is not None:
                yield MutationSite(number, _label(node, type(node.op), other), _set_operator(other))
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in _OPERATORS:
            other = _OPERATORS[type(node.ops[0])]
            yield MutationSite(number, _label(node, type(node.ops[0]), other), _set_comparison(other))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            sign = "not" if isinstance(node.op, ast.Not) else "-"
            yield MutationSite(
                number, f"line {node.lineno}: {sign!r} is dropped", lambda node: getattr(node, "operand", None)
            )


def bound_sites(tree: ast.Module) -> Iterator[MutationSite]:
    for number, node in open_nodes(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _BOUNDS:
            other = _BOUNDS[type(node.ops[0])]
            yield MutationSite(number, _label(node, type(node.ops[0]), other), _set_comparison(other))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range" and node.args:
            yield MutationSite(number, f"line {node.lineno}: the end of a range is one less", _shorten_range)
        elif isinstance(node, ast.Slice) and node.upper is not None:
            yield MutationSite(number, f"line {node.lineno}: the end of a slice is one less", _shorten_slice)


def constant_sites(tree: ast.Module) -> Iterator[MutationSite]:
    for number, node in open_nodes(tree):
        if not isinstance(node, ast.Constant) or node.value is None or node.value is Ellipsis:
            continue
        value = node.value
        if isinstance(value, bool):
            others: list[object] = [not value]
        elif isinstance(value, int | float):
            others = [value + 1, value - 1]
        elif isinstance(value, str):
            others = [value + "x"]
        else:
            continue
        for other in others:
            yield MutationSite(number, f"line {node.lineno}: {value!r} becomes {other!r}", _set_value(other))


def branch_sites(tree: ast.Module) -> Iterator[MutationSite]:
    for number, node in open_nodes(tree):
        if isinstance(node, ast.If | ast.IfExp) and not is_test_for_main(node.test):
            yield MutationSite(number, f"line {node.lineno}: a branch is never taken", _set_test(False))
            yield MutationSite(number, f"line {node.lineno}: a branch is always taken", _set_test(True))
        elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
            yield MutationSite(number, f"line {node.lineno}: None is returned", _return_none)


def is_test_for_main(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _label(node: ast.expr | ast.stmt, old: type[ast.AST], new: type[ast.AST]) -> str:
    return f"line {node.lineno}: {SIGNS[old]!r} becomes {SIGNS[new]!r}"


def _set_operator(other: type[ast.AST]) -> Change:
    return lambda node: setattr(node, "op", other())


def _set_comparison(other: type[ast.AST]) -> Change:
    def change(node: ast.AST) -> None:
        if isinstance(node, ast.Compare):
            node.ops = [other(), *node.ops[1:]]  # type: ignore[list-item]

    return change


def _set_value(value: object) -> Change:
    return lambda node: setattr(node, "value", value)


def _set_test(value: bool) -> Change:
    return lambda node: setattr(node, "test", ast.Constant(value))


def _return_none(node: ast.AST) -> None:
    if isinstance(node, ast.Return):
        node.value = ast.Constant(None)


def _shorten_range(node: ast.AST) -> None:
    if isinstance(node, ast.Call):
        end = 0 if len(node.args) == 1 else 1
        node.args[end] = ast.BinOp(node.args[end], ast.Sub(), ast.Constant(1))


def _shorten_slice(node: ast.AST) -> None:
    if isinstance(node, ast.Slice) and node.upper is not None:
        node.upper = ast.BinOp(node.upper, ast.Sub(), ast.Constant(1))
