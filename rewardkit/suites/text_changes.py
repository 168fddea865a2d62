"""Changes of a test's text that are no change of a literal: operators, names, a negation, another row's value."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from rewardkit.suites.literal_values import Imports
from rewardkit.suites.source_text import Edit, SourceText

_OPERATOR = re.compile(r"(?:[\s()\\]|#[^\n]*)*?(is\s+not|not\s+in|[<>]=?|[!=]=|\b(?:is|in)\b)")
_ORDERS: dict[type[ast.cmpop], str] = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<"}
_OPPOSITES: dict[type[ast.cmpop], str] = {ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
METHOD_ORDERS = {
    "assertGreater": "assertLessEqual",
    "assertGreaterEqual": "assertLess",
    "assertLess": "assertGreaterEqual",
    "assertLessEqual": "assertGreater",
}
_METHOD_PAIRS = [
    ("assertEqual", "assertNotEqual"), ("assertTrue", "assertFalse"), ("assertIsNone", "assertIsNotNone"),
    ("assertIn", "assertNotIn"), ("assertIs", "assertIsNot"), ("assertIsInstance", "assertNotIsInstance"),
    ("assertAlmostEqual", "assertNotAlmostEqual"), ("assertRegex", "assertNotRegex"),
]  # fmt: skip
METHOD_OPPOSITES = dict([*_METHOD_PAIRS, *((second, first) for first, second in _METHOD_PAIRS)])
_EXCEPTIONS = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError, ZeroDivisionError, NotImplementedError,
    OSError, ImportError, LookupError, ArithmeticError, OverflowError, FileNotFoundError, PermissionError, UnicodeError,
    UnicodeDecodeError, UnicodeEncodeError, StopIteration, EOFError, RecursionError, TimeoutError, ModuleNotFoundError,
    NameError, SyntaxError, MemoryError, BufferError, ConnectionError, AssertionError,
)  # fmt: skip
_BY_NAME: dict[str, type[Exception]] = {kind.__name__: kind for kind in _EXCEPTIONS}
_OFFERED = (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError, ZeroDivisionError)
_OFFERED_FOR_OWN = ("ZeroDivisionError", "RecursionError", "BufferError", "UnicodeEncodeError")
_OFTEN_BOTH: list[set[type[Exception]]] = [
    {KeyError, AttributeError}, {ValueError, TypeError}, {KeyError, ValueError}, {ValueError, OSError},
    {KeyError, IndexError}, {TypeError, AttributeError},
]  # fmt: skip
"""Pairs that classes of libraries often derive from both."""


class TextChange(Protocol):
    """A change of one place of a file.

    ``original`` is the value as written, and ``choices`` the number of values among which who sees the changed one must
    guess it; 1 where no value is changed.
    """

    @property
    def original(self) -> object: ...
    @property
    def choices(self) -> int: ...

    def draw(self, random: Random) -> Edit:
        """Return a change, drawn anew."""


class ValuelessChange:
    """A change of no value that is written in the test as a whole."""

    __slots__ = ()

    @property
    def original(self) -> object:
        """Nothing: there is no value to show."""
        return None

    @property
    def choices(self) -> int:
        """1: there is no value to guess."""
        return 1


@dataclass(frozen=True, slots=True)
class TextSwap(ValuelessChange):
    """A span in whose place another text stands, drawn among some."""

    start: int
    end: int
    texts: tuple[str, ...]

    def draw(self, random: Random) -> Edit:
        """Return the change to one of the texts."""
        return Edit(self.start, self.end, random.choice(self.texts))


@dataclass(frozen=True, slots=True)
class AnyChange(ValuelessChange):
    """One of several changes, each of a part of a value."""

    changes: Sequence[TextChange]

    def draw(self, random: Random) -> Edit:
        """Return one of the changes."""
        return random.choice(self.changes).draw(random)


def operator_swap(source: SourceText, left: ast.expr, op: ast.cmpop, right: ast.expr) -> tuple[str, TextSwap] | None:
    """Return the change of an operator to its opposite, with its kind; ``None`` for ``==`` and ``!=``."""
    kind = "order" if type(op) in _ORDERS else "polarity"
    text = _ORDERS.get(type(op)) or _OPPOSITES.get(type(op))
    start = source.span(left)[1]
    match = _OPERATOR.match(source.text, start, source.span(right)[0])
    return (kind, TextSwap(match.start(1), match.end(1), (text,))) if text and match else None


def negation(source: SourceText, node: ast.expr) -> TextSwap:
    """Return the change of a condition to its opposite by a ``not``, set or taken away."""
    start, end = source.span(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return TextSwap(start, start + 4 if source.text[start + 3] == " " else start + 3, ("",))
    text = source.text[start:end]
    is_bound = isinstance(node, ast.Compare | ast.Call | ast.Name | ast.Attribute | ast.Subscript | ast.Constant)
    before = source.text[start - 1]
    negated = f"not {text}" if is_bound else f"not ({text})"
    return TextSwap(start, end, (negated if before in " (\t\n\\" else f" {negated}",))


def method_swap(source: SourceText, function: ast.expr, name: str) -> TextSwap:
    """Return the change of a method's name to another."""
    assert isinstance(function, ast.Attribute)
    end = source.span(function)[1]
    return TextSwap(end - len(function.attr), end, (name,))


def exception_swaps(source: SourceText, node: ast.expr, imports: Imports) -> tuple[str, tuple[TextSwap, ...]] | None:
    """Return the change of the exceptions that a test expects, and its kind; ``None`` where any would do.

    A builtin one becomes another to which it is not related; one that is the code's own becomes one of those that
    classes seldom derive from, which is easier to guess.
    """
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    if not nodes or not all(isinstance(kind, ast.Name | ast.Attribute) for kind in nodes):
        return None
    names = [kind.id if isinstance(kind, ast.Name) and kind.id not in imports else "" for kind in nodes]
    kinds = [_BY_NAME[name] for name in names if name in _BY_NAME]
    if any(name in ("Exception", "BaseException", "Warning") or name.endswith("Warning") for name in names):
        return None
    if len(kinds) == len(nodes):
        texts = tuple(other.__name__ for other in _OFFERED if all(_are_unrelated(kind, other) for kind in kinds))
        label = "exception"
    else:
        texts = tuple(text for text in _OFFERED_FOR_OWN if all(_are_unrelated(kind, _BY_NAME[text]) for kind in kinds))
        label = "polarity"
    return (label, tuple(TextSwap(*source.span(expected), texts) for expected in nodes)) if texts else None


def _are_unrelated(first: type[Exception], second: type[Exception]) -> bool:
    if issubclass(first, second) or issubclass(second, first):
        return False
    return not any(
        any(issubclass(first, kind) or issubclass(kind, first) for kind in pair)
        and any(issubclass(second, kind) or issubclass(kind, second) for kind in pair)
        for pair in _OFTEN_BOTH
    )
