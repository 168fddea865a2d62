"""Which statements of a function have certainly been gone through when it has ended without an exception."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from rewardkit.suites.expected_names import FunctionNode, rows_of

_JUMPS = (ast.Return, ast.Break, ast.Continue)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_SWALLOWERS = ("raise", "suppress", "ignore", "swallow", "fail", "expect", "retry", "error", "exception")


def has_yield(function: FunctionNode) -> bool:
    """Return whether a function is a generator, of which nothing runs when it is called."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for inner in function.body for node in _of_own_scope(inner))


def _of_own_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it, without functions and classes defined there."""
    yield node
    if not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _of_own_scope(child)


def _has(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(inner, kinds) for inner in _of_own_scope(node))


def reached_statements(body: Iterable[ast.stmt], lists: Mapping[str, ast.expr]) -> Iterator[ast.stmt]:
    """Yield the statements of a body that a test which passes has gone through."""
    for statement in body:
        yield statement
        match statement:
            case ast.With(items=items, body=inner) | ast.AsyncWith(items=items, body=inner):
                if not any(map(may_swallow, items)):
                    yield from reached_statements(inner, lists)
            case ast.For(iter=rows, body=inner) if not _has(statement, _JUMPS):
                if _is_filled(rows, lists):
                    yield from reached_statements(inner, lists)
            case ast.Try(body=inner, handlers=[], finalbody=last):
                if not any(_has(node, _JUMPS) for node in last):
                    yield from reached_statements([*inner, *last], lists)
        if _has(statement, (ast.Return,)):
            return


def _is_filled(node: ast.expr, lists: Mapping[str, ast.expr]) -> bool:
    """Return whether a loop over an expression is certain to have a round."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(count))]):
            return count > 0
        case ast.Call(func=ast.Name(id="enumerate"), args=[rows, *_]):
            return bool(rows_of(rows, lists))
    return bool(rows_of(node, lists))


def may_swallow(item: ast.withitem) -> bool:
    """Return whether a context may end an exception that its body raises, as ``raises`` and ``suppress`` do."""
    node = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
    name = getattr(node, "attr", getattr(node, "id", "")).lower()
    return any(word in name for word in _SWALLOWERS)
