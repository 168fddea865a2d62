"""Changes of one test by which code that passes it fails: of values, exceptions, orders and polarity.

A change is offered only where it is certain to be reached and certain to fail, given that the test passes as written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, Protocol, TypeAlias

from rewardkit.suites.literal_changes import LiteralChange
from rewardkit.suites.literal_values import Imports, NotLiteral, literal_value
from rewardkit.suites.source_text import Edit, SourceText

KINDS = ("value", "exception", "order", "polarity")
"""The kinds of changes, from the one that is hardest to guess to the one that is easiest."""

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_EQUALITIES = frozenset(
    ["assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertDictEqual", "assertSetEqual",
     "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual"]
)  # fmt: skip
_JUMPS = (ast.Return, ast.Break, ast.Continue)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class TextChange(Protocol):
    """A change of one place of a file."""

    def draw(self, random: Random) -> Edit:
        """Return a change, drawn anew."""


class Perturbation(NamedTuple):
    """Changes that are made together, their kind, and the assert that then fails."""

    kind: str
    assertion: int
    changes: tuple[TextChange, ...]


@dataclass(frozen=True, slots=True)
class FunctionScan:
    """What was found in a test: how many asserts it has, and what can be changed."""

    asserts: int
    perturbations: tuple[Perturbation, ...]


def scan_function(source: SourceText, function: FunctionNode, imports: Imports) -> FunctionScan:
    """Return the asserts of a test and the changes that are certain to make right code fail."""
    changes = [
        Perturbation(kind, node.lineno * 1000 + node.col_offset, changed)
        for node in reached(function.body)
        for kind, changed in _of_statement(source, node, imports)
    ]
    return FunctionScan(sum(map(_is_assertion, ast.walk(function))), tuple(changes))


def reached(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body that a test which passes has gone through."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.With | ast.AsyncWith) and not any(map(_may_swallow, statement.items)):
            yield from reached(statement.body)
        if any(isinstance(node, _JUMPS) for node in _of_own_scope(statement)):
            return


def _of_own_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it, without functions and classes defined there."""
    yield node
    if not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _of_own_scope(child)


def _may_swallow(item: ast.withitem) -> bool:
    """Return whether a context ends an exception that its body raises, as ``raises`` and ``suppress`` do."""
    return True


def _method(node: ast.AST) -> str:
    """Return the name of a method of ``self`` that is called, ``""`` for everything else."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
            return name
    return ""


def _is_assertion(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) or _method(node).startswith("assert")


def _of_statement(source: SourceText, node: ast.stmt, imports: Imports) -> Iterator[tuple[str, tuple[TextChange, ...]]]:
    """Yield the changes of one assert, each with its kind."""
    match node:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            pair = [left, right]
        case ast.Expr(value=ast.Call(args=[left, right, *_]) as call) if _method(call) in _EQUALITIES:
            pair = [left, right]
        case _:
            return
    literal = [side for side in pair if _is_literal(side, imports)]
    if len(literal) == 1:
        change = LiteralChange(source, literal[0], imports, None)
        if change.is_possible():
            yield "value", (change,)


def _is_literal(node: ast.expr, imports: Imports) -> bool:
    try:
        literal_value(node, imports)
    except NotLiteral:
        return False
    return True
