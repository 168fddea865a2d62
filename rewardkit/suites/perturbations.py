"""Changes of one test by which code that passes it fails: of values, exceptions, orders and polarity.

A change is offered only where it is certain to be reached and certain to fail, given that the test passes as written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rewardkit.suites.comparisons import AssertHelper, SidePair, is_assertion, method_name, pairs_of_statement
from rewardkit.suites.expected_names import ExpectedNames, FunctionNode, lists_of
from rewardkit.suites.literal_changes import LiteralChange
from rewardkit.suites.literal_values import Imports, NotLiteral, Tolerance, are_apart, full_name, literal_value
from rewardkit.suites.reached import has_yield, may_swallow, reached_statements
from rewardkit.suites.soft_statements import StatementChange, soft_statement
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
STRONG_KINDS = ("value", "exception", "order")
"""Those of which the text of a test does not show that it is changed."""

_RAISES = frozenset(["pytest.raises", "numpy.testing.assert_raises"])
_RAISES_METHODS = frozenset(["assertRaises", "assertRaisesRegex", "assertRaisesRegexp"])
_Changes = Iterator[tuple[str, tuple[TextChange, ...], str, int]]
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Perturbation(NamedTuple):
    """Changes that are made together, their kind, and where the assert stands that then fails."""

    kind: str
    assertion: int
    changes: tuple[TextChange, ...]
    statement: StatementChange = StatementChange()


@dataclass(frozen=True, slots=True)
class FunctionScan:
    """How many asserts a test has, and what can be changed in it."""

    asserts: int
    perturbations: tuple[Perturbation, ...]


def scan_function(
    source: SourceText,
    function: FunctionNode,
    imports: Imports,
    constants: Mapping[str, ast.expr],
    helpers: Mapping[str, AssertHelper] | None = None,
) -> FunctionScan:
    """Return the asserts of a test and the changes that are certain to make right code fail.

    Args:
        source: The file.
        function: The test.
        imports: What names of the file stand for.
        constants: Values of names at the file's top that nothing but one place reads.
        helpers: Functions that fail where two of their arguments are not equal, by their full names.
    """
    helpers = helpers or {}
    asserts = sum(is_assertion(node, imports, helpers) for node in ast.walk(function))
    if has_yield(function):
        return FunctionScan(asserts, ())
    lists = lists_of(function, constants)
    statements = list(reached_statements(function.body, lists))
    comparing: dict[str, set[int]] = {}
    sides: list[ast.Name] = []
    for node in ast.walk(function):
        for pair in pairs_of_statement(node, imports, helpers):
            for side in (pair.left, pair.right):
                if isinstance(side, ast.Name):
                    sides.append(side)
                    comparing.setdefault(side.id, set()).update(_lines(node))
    names = ExpectedNames(function, statements, sides, imports, lists)
    reader = _Reader(source, imports, helpers, names)
    loops = [node for node in ast.walk(function) if isinstance(node, _LOOPS)]
    around: dict[int, list[int]] = {}
    for loop in loops:
        for node in ast.walk(loop):
            around.setdefault(id(node), []).append(loop.lineno)
    perturbations: list[Perturbation] = []
    for node in statements:
        start = source.span(node)[0]
        outer = around.get(id(node), [])
        soft = soft_statement(source, node, min(outer, default=0))
        for kind, changes, variable, row in reader.changes_of(node):
            rounds = names.rounds(variable) if len(outer) == 1 else 0
            is_read_later = bool(variable) and names.is_read_otherwise(variable)
            lines = frozenset(comparing[variable] if variable else _lines(node))
            change = StatementChange(lines, soft, variable, is_read_later, row if rounds else None, rounds)
            perturbations.append(Perturbation(kind, start, changes, change))
    return FunctionScan(asserts, tuple(perturbations))


def _lines(node: ast.AST) -> range:
    """Return the lines of a statement."""
    assert isinstance(node, ast.stmt)
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


class _Reader:
    """What can be changed in the statements of one test."""

    def __init__(
        self, source: SourceText, imports: Imports, helpers: Mapping[str, AssertHelper], names: ExpectedNames
    ) -> None:
        self._source = source
        self._imports = imports
        self._helpers = helpers
        self._names = names

    def changes_of(self, node: ast.stmt) -> _Changes:
        """Yield the changes by which a statement fails that passed: kind, changes, and a variable's name and row."""
        for pair in pairs_of_statement(node, self._imports, self._helpers):
            yield from (("value", *change) for change in self._values(pair, node))
        match node:
            case ast.Assert(test=test):
                yield from self._operators(test)
                yield "polarity", (negation(self._source, test),), "", 0
            case ast.Expr(value=ast.Call() as call):
                yield from self._of_call(call)
            case ast.With(items=items) | ast.AsyncWith(items=items):
                if sum(may_swallow(item) for item in items) == 1:
                    for item in items:
                        if isinstance(item.context_expr, ast.Call):
                            yield from self._exceptions(item.context_expr)

    def _of_call(self, call: ast.Call) -> _Changes:
        name = method_name(call)
        if name == "assertTrue" and call.args:
            yield from self._operators(call.args[0])
        if name in METHOD_ORDERS:
            yield "order", (method_swap(self._source, call.func, METHOD_ORDERS[name]),), "", 0
        if name in METHOD_OPPOSITES:
            yield "polarity", (method_swap(self._source, call.func, METHOD_OPPOSITES[name]),), "", 0
        yield from self._exceptions(call)

    def _exceptions(self, call: ast.Call) -> _Changes:
        is_known = full_name(call.func, self._imports) in _RAISES or method_name(call) in _RAISES_METHODS
        if is_known and call.args:
            swaps = exception_swaps(self._source, call.args[0], self._imports)
            if swaps:
                yield *swaps, "", 0

    def _operators(self, test: ast.expr) -> _Changes:
        match test:
            case ast.BoolOp(op=ast.And(), values=values):
                for value in values:
                    yield from self._operators(value)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                for first, op, second in zip([left, *comparators], ops, comparators, strict=False):
                    swap = operator_swap(self._source, first, op, second)
                    if swap:
                        yield swap[0], (swap[1],), "", 0

    def _values(self, pair: SidePair, statement: ast.stmt) -> Iterator[tuple[tuple[TextChange, ...], str, int]]:
        """Yield the changes of the expected side of a comparison, if one is it, with a variable's name and row."""
        ways = [(side, list(self._ways(side, pair.tolerance, statement))) for side in (pair.left, pair.right)]
        literal = [side for side in (pair.left, pair.right) if self._is_literal(side)]
        if len(literal) == 2:
            return
        chosen = [(side, changes) for side, changes in ways if changes and (side in literal or not literal)]
        if len(chosen) == 1:
            side, ways_of_side = chosen[0]
            variable = side.id if isinstance(side, ast.Name) else ""
            yield from ((changes, variable, row) for changes, row in ways_of_side)

    def _is_literal(self, node: ast.expr) -> bool:
        try:
            literal_value(node, self._imports)
        except NotLiteral:
            return False
        return True

    def _ways(
        self, node: ast.expr, tolerance: Tolerance | None, statement: ast.stmt
    ) -> Iterator[tuple[tuple[TextChange, ...], int]]:
        if not isinstance(node, ast.Name):
            change = self._change(node, tolerance)
            if change is not None:
                yield (change,), 0
            return
        for row, values in enumerate(self._names.groups(node.id, statement)):
            changes = [self._change(value, tolerance) for value in values]
            spare = [self._borrowed(value, values, tolerance) if change is None else change
                     for value, change in zip(values, changes, strict=True)]  # fmt: skip
            made = [change for change in spare if change is not None]
            if len(made) == len(values):
                yield tuple(made), row

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
