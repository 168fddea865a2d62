"""The formula of a multi-grader, ``calculate_output``: arithmetic over the scores of its parts."""

from __future__ import annotations

import ast
import math
import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import RewardDefinitionError

_MOST_CHARS = 2_000
_DEEPEST = 300  # Operations in operations; a worker's stack has room for more
_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": lambda *numbers: min(numbers),
    "max": lambda *numbers: max(numbers),
    "abs": abs,
    **{name: getattr(math, name) for name in ("floor", "ceil", "exp", "sqrt", "log")},
}
"""The functions that OpenAI's guide of graders names, with ``log`` the natural one."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula over named numbers: ``+ - * / ^``, parentheses, and ``min max abs floor ceil exp sqrt log``."""

    text: str  # as it was written

    def check(self, names: Mapping[str, Any], where: str) -> None:
        """Raise :class:`RewardDefinitionError` where it is no such formula, or uses another name than these."""
        tree = self._tree(where)
        if _depth(tree) > _DEEPEST:
            raise RewardDefinitionError(f"{where}: operations are nested more than {_DEEPEST} deep")
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            fault = None if id(node) in called and isinstance(node, ast.Name) else _fault(node, names)
            if fault is not None:
                raise RewardDefinitionError(f"{where}: {self.text!r}: {fault}")

    def value(self, numbers: Mapping[str, float]) -> float:
        """Return the value of the formula.

        Raises ArithmeticError where it divides by zero or exceeds a float, and ValueError for a root or logarithm
        outside its domain.
        """
        return _value(self._tree("calculate_output"), numbers)

    def _tree(self, where: str) -> ast.expr:
        if len(self.text) > _MOST_CHARS:
            raise RewardDefinitionError(f"{where}: {len(self.text)} characters; at most {_MOST_CHARS}")
        try:
            return ast.parse(" ".join(self.text.split()).replace("^", "**"), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as reason:
            raise RewardDefinitionError(f"{where}: {self.text!r} is not a formula: {reason}") from None


def _depth(tree: ast.expr) -> int:
    """Return how deep operations stand in operations; a sum of many terms is as deep as it has terms."""
    deepest, waiting = 0, [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(child, depth + 1) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return deepest


def _fault(node: ast.AST, names: Mapping[str, Any]) -> str | None:
    """Return what is wrong with one part of a formula; ``None`` if nothing is."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS and args:
            has_its_count = name in ("min", "max") or len(args) == 1
            return None if has_its_count else f"{name} takes one number, and is given {len(args)}"
        case ast.Call():
            return f"only {', '.join(_FUNCTIONS)} can be called"
        case ast.Name(id=name):
            return None if name in names else f"no grader is named {name!r}: {', '.join(names)}"
        case ast.Constant(value=value):
            if not isinstance(value, int | float) or isinstance(value, bool):
                return f"{value!r} is not a number"
            return None if abs(value) <= sys.float_info.max else "a number in it is beyond 1.8e308"
        case ast.BinOp() | ast.UnaryOp() | ast.Load():
            return None
    return None if type(node) in _OPERATORS else f"{type(node).__name__} is not arithmetic"


def _value(node: ast.AST, numbers: Mapping[str, float]) -> float:
    """Return the number that a part of a checked formula stands for."""
    match node:
        case ast.Constant(value=value) if isinstance(value, int | float):
            return float(value)
        case ast.Name(id=name):
            return float(numbers[name])
        case ast.BinOp(left=left, op=op, right=right):
            return float(_OPERATORS[type(op)](_value(left, numbers), _value(right, numbers)))
        case ast.UnaryOp(op=op, operand=operand):
            return float(_OPERATORS[type(op)](_value(operand, numbers)))
        case ast.Call(func=ast.Name(id=name), args=args):
            return float(_FUNCTIONS[name](*(_value(argument, numbers) for argument in args)))
    raise TypeError(f"{type(node).__name__} is not arithmetic")
