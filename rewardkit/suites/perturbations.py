"""Changes of one test by which code that passes it fails: of values, exceptions, orders and polarity.

A change is offered only where it is certain to be reached and certain to fail, given that the test passes as written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rewardkit.suites.comparisons import SidePair, is_assertion, method_name, pairs_of_statement
from rewardkit.suites.expected_names import ExpectedNames, FunctionNode, lists_of, rows_of
from rewardkit.suites.literal_changes import LiteralChange
from rewardkit.suites.literal_values import Imports, NotLiteral, Tolerance, are_apart, full_name, literal_value
from rewardkit.suites.source_text import SourceText
from rewardkit.suites.text_changes import (
    METHOD_OPPOSITES,
    METHOD_ORDERS,
    AnyChange,
    TextChange,
    TextSwap,
    exception_swaps,
    method_swap,
    negation,
    operator_swap,
)

KINDS = ("value", "exception", "order", "polarity")
"""The kinds of changes, from the one that is hardest to guess to the one that is easiest."""

_JUMPS = (ast.Return, ast.Break, ast.Continue)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_RAISES = frozenset(["pytest.raises", "numpy.testing.assert_raises"])
_RAISES_METHODS = frozenset(["assertRaises", "assertRaisesRegex", "assertRaisesRegexp"])
_SWALLOWERS = ("raise", "suppress", "ignore", "swallow", "fail", "expect", "retry", "error", "exception")
_Changes = Iterator[tuple[str, tuple[TextChange, ...]]]


class Perturbation(NamedTuple):
    """Changes that are made together, their kind, and where the assert stands that then fails."""

    kind: str
    assertion: int
    changes: tuple[TextChange, ...]


@dataclass(frozen=True, slots=True)
class FunctionScan:
    """How many asserts a test has, and what can be changed in it."""

    asserts: int
    perturbations: tuple[Perturbation, ...]


def scan_function(
    source: SourceText, function: FunctionNode, imports: Imports, constants: Mapping[str, ast.expr]
) -> FunctionScan:
    """Return the asserts of a test and the changes that are certain to make right code fail.

    Args:
        source: The file.
        function: The test.
        imports: What names of the file stand for.
        constants: Values of names at the file's top that nothing but one place reads.
    """
    asserts = sum(is_assertion(node, imports) for node in ast.walk(function))
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for inner in function.body for node in _of_own_scope(inner)):
        return FunctionScan(asserts, ())
    lists = lists_of(function, constants)
    statements = list(_reached(function.body, lists))
    pairs = [pair for node in ast.walk(function) for pair in pairs_of_statement(node, imports)]
    sides = [side for pair in pairs for side in (pair.left, pair.right) if isinstance(side, ast.Name)]
    reader = _Reader(source, imports, ExpectedNames(function, statements, sides, imports, lists))
    return FunctionScan(
        asserts,
        tuple(
            Perturbation(kind, source.span(node)[0], changes)
            for node in statements
            for kind, changes in reader.changes_of(node)
        ),
    )


def _of_own_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it, without functions and classes defined there."""
    yield node
    if not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _of_own_scope(child)


def _has(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(inner, kinds) for inner in _of_own_scope(node))


def _reached(body: Iterable[ast.stmt], lists: Mapping[str, ast.expr]) -> Iterator[ast.stmt]:
    """Yield the statements of a body that a test which passes has gone through."""
    for statement in body:
        yield statement
        match statement:
            case ast.With(items=items, body=inner) | ast.AsyncWith(items=items, body=inner):
                if not any(map(_may_swallow, items)):
                    yield from _reached(inner, lists)
            case ast.For(iter=rows, body=inner) if not _has(statement, _JUMPS):
                if _is_filled(rows, lists):
                    yield from _reached(inner, lists)
            case ast.Try(body=inner, handlers=[], finalbody=last):
                if not any(_has(node, _JUMPS) for node in last):
                    yield from _reached([*inner, *last], lists)
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


def _may_swallow(item: ast.withitem) -> bool:
    """Return whether a context may end an exception that its body raises, as ``raises`` and ``suppress`` do."""
    node = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
    name = getattr(node, "attr", getattr(node, "id", "")).lower()
    return any(word in name for word in _SWALLOWERS)


class _Reader:
    """What can be changed in the statements of one test."""

    def __init__(self, source: SourceText, imports: Imports, names: ExpectedNames) -> None:
        self._source = source
        self._imports = imports
        self._names = names

    def changes_of(self, node: ast.stmt) -> _Changes:
        """Yield the changes by which a statement fails that passed, with their kinds."""
        for pair in pairs_of_statement(node, self._imports):
            yield from (("value", changes) for changes in self._values(pair))
        match node:
            case ast.Assert(test=test):
                yield from self._operators(test)
                yield "polarity", (negation(self._source, test),)
            case ast.Expr(value=ast.Call() as call):
                yield from self._of_call(call)
            case ast.With(items=items) | ast.AsyncWith(items=items):
                if sum(_may_swallow(item) for item in items) == 1:
                    for item in items:
                        if isinstance(item.context_expr, ast.Call):
                            yield from self._exceptions(item.context_expr)

    def _of_call(self, call: ast.Call) -> _Changes:
        name = method_name(call)
        if name == "assertTrue" and call.args:
            yield from self._operators(call.args[0])
        if name in METHOD_ORDERS:
            yield "order", (method_swap(self._source, call.func, METHOD_ORDERS[name]),)
        if name in METHOD_OPPOSITES:
            yield "polarity", (method_swap(self._source, call.func, METHOD_OPPOSITES[name]),)
        yield from self._exceptions(call)

    def _exceptions(self, call: ast.Call) -> _Changes:
        is_known = full_name(call.func, self._imports) in _RAISES or method_name(call) in _RAISES_METHODS
        if is_known and call.args:
            swaps = exception_swaps(self._source, call.args[0], self._imports)
            if swaps:
                yield swaps

    def _operators(self, test: ast.expr) -> _Changes:
        match test:
            case ast.BoolOp(op=ast.And(), values=values):
                for value in values:
                    yield from self._operators(value)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                for first, op, second in zip([left, *comparators], ops, comparators, strict=False):
                    swap = operator_swap(self._source, first, op, second)
                    if swap:
                        yield swap[0], (swap[1],)

    def _values(self, pair: SidePair) -> Iterator[tuple[TextChange, ...]]:
        """Yield the changes of the expected side of a comparison, if it is one side."""
        ways = [(side, list(self._ways(side, pair.tolerance))) for side in (pair.left, pair.right)]
        literal = [side for side in (pair.left, pair.right) if self._is_literal(side)]
        if len(literal) == 2:
            return
        chosen = [changes for side, changes in ways if changes and (side in literal or not literal)]
        if len(chosen) == 1:
            yield from chosen[0]

    def _is_literal(self, node: ast.expr) -> bool:
        try:
            literal_value(node, self._imports)
        except NotLiteral:
            return False
        return True

    def _ways(self, node: ast.expr, tolerance: Tolerance | None) -> Iterator[tuple[TextChange, ...]]:
        if not isinstance(node, ast.Name):
            change = self._change(node, tolerance)
            if change is not None:
                yield (change,)
            return
        for values in self._names.groups(node.id):
            changes = [self._change(value, tolerance) for value in values]
            spare = [self._borrowed(value, values, tolerance) if change is None else change
                     for value, change in zip(values, changes, strict=True)]  # fmt: skip
            made = [change for change in spare if change is not None]
            if len(made) == len(values):
                yield tuple(made)

    def _change(self, node: ast.expr, tolerance: Tolerance | None) -> TextChange | None:
        """Return a change of a literal or of the literal parts of a list, tuple or dictionary."""
        if self._is_literal(node):
            change = LiteralChange(self._source, node, self._imports, tolerance)
            return change if change.is_possible() else None
        parts: list[ast.expr] = []
        if isinstance(node, ast.List | ast.Tuple):
            parts = [element for element in node.elts if not isinstance(element, ast.Starred)]
        elif isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            if None not in keys and len(set(keys)) == len(keys):
                parts = node.values
        made = [self._change(part, tolerance) for part in parts]
        changes = [part for part in made if part is not None]
        return AnyChange(changes) if changes else None

    def _borrowed(self, node: ast.expr, siblings: Iterable[ast.expr], tolerance: Tolerance | None) -> TextChange | None:
        """Return the change of a value without parts, such as ``None`` or ``[]``, to that of another row."""
        if not self._is_literal(node):
            return None
        value = literal_value(node, self._imports)
        others = [other for other in siblings if other is not node and self._is_literal(other)]
        texts = {
            self._source.segment(other)
            for other in others
            if are_apart(value, literal_value(other, self._imports), tolerance)
        }
        return TextSwap(*self._source.span(node), tuple(sorted(texts))) if texts else None
