"""What literal expressions of a test are worth: plain values, and values of the standard library made from them."""

from __future__ import annotations

import ast
import collections
import datetime
import decimal
import fractions
import operator
import pathlib
import textwrap
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

Imports: TypeAlias = Mapping[str, str]  # from a name in a file to what it stands for, such as "decimal.Decimal"

_LARGEST = 10_000  # numbers in a product or a range, so that no value is large
_MAKERS: dict[str, Callable[..., Any]] = {
    "bool": bool, "bytearray": bytearray, "bytes": bytes, "complex": complex, "dict": dict, "float": float,
    "frozenset": frozenset, "int": int, "list": list, "range": range, "set": set, "str": str, "tuple": tuple,
    "collections.Counter": collections.Counter, "collections.OrderedDict": collections.OrderedDict,
    "collections.deque": collections.deque, "datetime.date": datetime.date, "datetime.datetime": datetime.datetime,
    "datetime.time": datetime.time, "datetime.timedelta": datetime.timedelta, "datetime.timezone": datetime.timezone,
    "decimal.Decimal": decimal.Decimal, "fractions.Fraction": fractions.Fraction, "textwrap.dedent": textwrap.dedent,
    "pathlib.Path": pathlib.PurePosixPath, "pathlib.PurePath": pathlib.PurePosixPath,
    "pathlib.PurePosixPath": pathlib.PurePosixPath, "uuid.UUID": uuid.UUID,
}  # fmt: skip
_CONSTANTS: dict[str, object] = {"datetime.timezone.utc": datetime.UTC, "datetime.UTC": datetime.UTC}
_METHODS = frozenset(["decode", "encode", "join", "lower", "lstrip", "rstrip", "split", "splitlines", "strip", "upper"])
"""Methods of texts whose result is known, and is not longer than what goes in."""
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitOr: operator.or_, ast.BitAnd: operator.and_,
    ast.Pow: operator.pow,
}  # fmt: skip
_SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert,
}  # fmt: skip


class Tolerance(NamedTuple):
    """How far two numbers may differ and count as equal: ``absolute + relative * size``."""

    relative: float
    absolute: float


class NotLiteral(ValueError):
    """An expression is no literal, or its values collide."""


def imports_of(tree: ast.Module, package: str = "") -> dict[str, str]:
    """Return what the names that a file imports or defines stand for.

    Args:
        tree: The file.
        package: The package that it belongs to, from which relative imports begin, such as ``"tests"``.
    """
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            module = ".".join(part for part in (*above, node.module) if part)
            for alias in node.names:
                names[alias.asname or alias.name] = f"{module}.{alias.name}"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[node.name] = f".{node.name}"  # its own, whatever else has that name
    return names


def full_name(node: ast.expr, imports: Imports) -> str:
    """Return what a name or an attribute of a name stands for, such as ``"pytest.raises"``; ``""`` for others."""
    if isinstance(node, ast.Name):
        return imports.get(node.id, node.id)
    if isinstance(node, ast.Attribute) and (owner := full_name(node.value, imports)):
        return f"{owner}.{node.attr}"
    return ""


def literal_value(node: ast.expr, imports: Imports) -> Any:
    """Return the value of a literal expression.

    Raises:
        NotLiteral: It is something else, is large, cannot be made, or has equal keys in a set or dictionary.
    """
    try:
        return _value(node, imports)
    except NotLiteral:
        raise
    except (ValueError, TypeError, ArithmeticError, RecursionError, MemoryError, LookupError, AttributeError) as exc:
        raise NotLiteral(str(exc)) from exc


def _value(node: ast.expr, imports: Imports) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _SIGNS:
            return _SIGNS[type(op)](_number(operand, imports))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _operated(_value(left, imports), op, _value(right, imports))
        case ast.Tuple(elts=elements):
            return tuple(_value(element, imports) for element in elements)
        case ast.List(elts=elements):
            return [_value(element, imports) for element in elements]
        case ast.Set(elts=elements):
            return _distinct(set, [_value(element, imports) for element in elements])
        case ast.Dict(keys=keys, values=values) if None not in keys:
            names = [_value(key, imports) for key in keys if key is not None]
            _distinct(set, names)
            return dict(zip(names, (_value(value, imports) for value in values), strict=True))
        case ast.Call(func=ast.Attribute(value=text, attr=name), args=args, keywords=[]) if name in _METHODS:
            return _of_text(_value(text, imports), name, [_value(arg, imports) for arg in args])
        case ast.Call(func=function, args=args, keywords=keywords):
            return _made(full_name(function, imports), args, keywords, imports)
        case ast.Attribute() | ast.Name() if (name := full_name(node, imports)) in _CONSTANTS:
            return _CONSTANTS[name]
    raise NotLiteral(type(node).__name__)


def _of_text(text: object, name: str, arguments: list[Any]) -> Any:
    if not isinstance(text, str | bytes):
        raise NotLiteral(f"{name} of what is no text")
    return getattr(text, name)(*arguments)


def _number(node: ast.expr, imports: Imports) -> Any:
    value = _value(node, imports)
    if isinstance(value, int | float | complex | decimal.Decimal | fractions.Fraction | datetime.timedelta):
        return value
    raise NotLiteral("a sign before what is no number")


def _distinct(kind: type[set[Any]], values: list[Any]) -> Any:
    made = kind(values)
    if len(made) < len(values):
        raise NotLiteral("equal keys")
    return made


def _operated(left: Any, op: ast.operator, right: Any) -> Any:
    numbers = [value for value in (left, right) if isinstance(value, int)]
    if isinstance(op, ast.Mult | ast.Pow) and any(abs(number) > _LARGEST for number in numbers):
        raise NotLiteral("a large product")
    if isinstance(op, ast.Pow) and not (isinstance(right, int) and isinstance(left, int | float) and abs(right) <= 99):
        raise NotLiteral("a large power")
    if isinstance(op, ast.Mod) and isinstance(left, str | bytes):
        raise NotLiteral("a format")
    return _OPERATORS[type(op)](left, right)


def _made(name: str, args: list[ast.expr], keywords: list[ast.keyword], imports: Imports) -> Any:
    if name not in _MAKERS:
        raise NotLiteral(name)
    values = [_value(arg, imports) for arg in args]
    named = {keyword.arg: _value(keyword.value, imports) for keyword in keywords if keyword.arg is not None}
    if len(named) < len(keywords):
        raise NotLiteral("a mapping of arguments")
    if name in ("range", "bytes", "bytearray") and any(
        isinstance(value, int) and abs(value) > _LARGEST for value in values
    ):
        raise NotLiteral("a large range")
    return _MAKERS[name](*values, **named)


def are_apart(old: Any, new: Any, tolerance: Tolerance | None) -> bool:
    """Return whether what equals one of two values, within a tolerance, cannot equal the other.

    Floats differ by more than 0.1 % of their size, and by four times the tolerance where there is one.
    """
    if isinstance(old, float | complex | int) and isinstance(new, float | complex | int):
        if tolerance is None and not isinstance(old, float | complex):
            return old != new
        relative, absolute = tolerance or (0.001, 0.0)
        distance, size = abs(old - new), max(abs(old), abs(new))
        return old == old and distance > 4 * absolute and distance > (1 if tolerance is None else 4) * relative * size
    if isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        return any(are_apart(*pair, tolerance) for pair in zip(old, new, strict=True))
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        return any(are_apart(old[key], new[key], tolerance) for key in old)
    return bool(old == old and old != new)
