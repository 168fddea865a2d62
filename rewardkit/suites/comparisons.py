"""Which two sides a test compares for equality, and how far numbers may differ there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from rewardkit.suites.literal_values import Imports, NotLiteral, Tolerance, full_name, literal_value


class SidePair(NamedTuple):
    """Two expressions that must be equal within a tolerance; ``None`` for equality as ``==`` has it."""

    left: ast.expr
    right: ast.expr
    tolerance: Tolerance | None


class AssertHelper(NamedTuple):
    """A function of the suite that compares two of its arguments: the names of all, of these two, and the tolerance."""

    parameters: tuple[str, ...]
    left: str
    right: str
    tolerance: Tolerance | None

    def sides(self, call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
        """Return what a call gives to be compared; ``None`` where that does not show."""
        if any(isinstance(argument, ast.Starred) for argument in call.args):
            return None
        arguments = dict(zip(self.parameters, call.args, strict=False))
        arguments |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
        left, right = arguments.get(self.left), arguments.get(self.right)
        return (left, right) if left is not None and right is not None else None


Helpers: TypeAlias = Mapping[str, AssertHelper]  # by full name
_NO_HELPERS: Helpers = {}


class _Form(NamedTuple):
    """The tolerance of a function that compares its first two arguments: defaults, and the names of the arguments."""

    make: Callable[[float, float], Tolerance]
    relative: str = ""
    absolute: str = ""
    defaults: tuple[float, float] = (0.0, 0.0)
    third: str = ""  # the argument that may stand third


def _exact(relative: float, absolute: float) -> Tolerance:
    return Tolerance(relative, absolute)


def _places(_: float, places: float) -> Tolerance:
    return Tolerance(0.0, 1.5 * 10.0**-places)


_METHODS: dict[str, _Form | None] = {
    **dict.fromkeys(
        ["assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertDictEqual", "assertSetEqual",
         "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual"]
    ),
    "assertAlmostEqual": _Form(_places, absolute="places", defaults=(0, 7), third="places"),
    "assertAlmostEquals": _Form(_places, absolute="places", defaults=(0, 7), third="places"),
}  # fmt: skip
_CALLS: dict[str, _Form | None] = {
    "nose.tools.eq_": None,
    "nose.tools.assert_equal": None,
    "numpy.testing.assert_equal": None,
    "numpy.testing.assert_array_equal": None,
    "numpy.testing.assert_allclose": _Form(_exact, "rtol", "atol", (1e-7, 0.0), third="rtol"),
    "numpy.testing.assert_almost_equal": _Form(_places, absolute="decimal", defaults=(0, 7), third="decimal"),
    "numpy.testing.assert_array_almost_equal": _Form(_places, absolute="decimal", defaults=(0, 6), third="decimal"),
}
_QUESTIONS: dict[str, _Form | None] = {
    "math.isclose": _Form(_exact, "rel_tol", "abs_tol", (1e-9, 0.0)),
    "numpy.allclose": _Form(_exact, "rtol", "atol", (1e-5, 1e-8), third="rtol"),
    "numpy.array_equal": None,
}
_APPROX = _Form(_exact, "rel", "abs", (1e-6, 1e-12), third="rel")
_ARRAYS = frozenset(["numpy.array", "numpy.asarray"])
_ARRAY_TYPES = frozenset(["int", "float", "numpy.int64", "numpy.float64"])


def method_name(node: ast.AST) -> str:
    """Return the name of a method of ``self`` that is called, ``""`` for everything else."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
            return name
    return ""


def is_assertion(node: ast.AST, imports: Imports, helpers: Helpers = _NO_HELPERS) -> bool:
    """Return whether a node is an assert, or a call that fails a test by itself."""
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Assert)
    name = full_name(node.func, imports)
    return (
        method_name(node).startswith("assert")
        or name in ("pytest.raises", "nose.tools.eq_")
        or name in helpers
        or (name.startswith(("numpy.testing.", "pandas.testing.", "nose.tools.")) and ".assert_" in name)
    )


def pairs_of_statement(node: ast.AST, imports: Imports, helpers: Helpers = _NO_HELPERS) -> Iterator[SidePair]:
    """Yield the pairs that must be equal lest a statement fails."""
    match node:
        case ast.Assert(test=test):
            yield from pairs_of_condition(test, imports)
        case ast.Expr(value=ast.Call(args=[test, *_]) as call) if method_name(call) == "assertTrue":
            yield from pairs_of_condition(test, imports)
        case ast.Expr(value=ast.Call() as call) if helper := helpers.get(full_name(call.func, imports)):
            for pair in _pair(*sides, None, None, imports) if (sides := helper.sides(call)) else ():
                yield SidePair(pair.left, pair.right, _widest([pair.tolerance, helper.tolerance]))
        case ast.Expr(value=ast.Call(args=[left, right, *_]) as call):
            if (name := method_name(call)) in _METHODS:
                yield from _pair(left, right, _METHODS[name], call, imports)
            elif (name := full_name(call.func, imports)) in _CALLS:
                yield from _pair(left, right, _CALLS[name], call, imports)


def _widest(tolerances: Iterable[Tolerance | None]) -> Tolerance | None:
    limits = [tolerance for tolerance in tolerances if tolerance is not None]
    return Tolerance(*map(max, zip(*limits, strict=True))) if limits else None


def pairs_of_condition(node: ast.expr, imports: Imports) -> Iterator[SidePair]:
    """Yield the pairs that must be equal lest a condition is false."""
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from pairs_of_condition(value, imports)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for first, op, second in zip([left, *comparators], ops, comparators, strict=False):
                if isinstance(op, ast.Eq) or (isinstance(op, ast.Is) and _is_truth(second)):
                    yield from _pair(first, second, None, None, imports)
        case ast.Call(func=ast.Attribute(value=ast.Compare() as inner, attr="all"), args=[], keywords=[]):
            yield from pairs_of_condition(inner, imports)
        case ast.Call(func=function, args=[left, right, *_]) if (name := full_name(function, imports)) in _QUESTIONS:
            yield from _pair(left, right, _QUESTIONS[name], node, imports)


def _is_truth(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _pair(
    left: ast.expr, right: ast.expr, form: _Form | None, call: ast.Call | None, imports: Imports
) -> Iterator[SidePair]:
    """Yield a pair without ``approx`` and ``array`` around its sides, unless its tolerance is no literal."""
    try:
        tolerances = [_tolerance(form, call, imports)] if form and call else []
        sides = []
        for side in (left, right):
            while isinstance(side, ast.Call) and side.args:
                name = full_name(side.func, imports)
                if name == "pytest.approx":
                    tolerances.append(_tolerance(_APPROX, side, imports))
                elif name not in _ARRAYS or not _is_plain_array(side, imports):
                    break
                side = side.args[0]
            sides.append(side)
    except NotLiteral:
        return
    if any(_may_equal_all(side) for side in sides):
        return
    yield SidePair(sides[0], sides[1], _widest(tolerances))


def _may_equal_all(node: ast.expr) -> bool:
    """Return whether an expression has ``ANY`` in it, or an ``approx`` deeper inside."""
    names = {getattr(inner, "attr", getattr(inner, "id", "")) for inner in ast.walk(node)}
    return not names.isdisjoint({"ANY", "approx"})


def _is_plain_array(call: ast.Call, imports: Imports) -> bool:
    """Return whether an array has its numbers as they are written."""
    types = [keyword.value for keyword in call.keywords if keyword.arg == "dtype"] + call.args[1:]
    return all(full_name(kind, imports) in _ARRAY_TYPES for kind in types)


def _tolerance(form: _Form, call: ast.Call, imports: Imports) -> Tolerance:
    """Return the tolerance of a call.

    Raises:
        NotLiteral: It is computed.
    """
    relative, absolute = form.defaults
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if None in named:
        raise NotLiteral("arguments from a mapping")
    if form is not _APPROX and len(call.args) > 2:
        named[form.third] = call.args[2]
    if form is _APPROX and len(call.args) > 1:
        named["rel"] = call.args[1]
    limits = [
        _limit(named, name, default, imports)
        for name, default in zip((form.relative, form.absolute), (relative, absolute), strict=True)
    ]
    made = form.make(limits[0], limits[1])
    further = [_limit(named, name, 0.0, imports) for name in ("delta", "abs_tol", "atol")]
    if any(isinstance(call.args[at], ast.Starred) for at in range(len(call.args))) or len(call.args) > 3:
        raise NotLiteral("further arguments")
    return Tolerance(made.relative, max(made.absolute, *further))


def _limit(named: dict[str | None, ast.expr], name: str, default: float, imports: Imports) -> float:
    value = literal_value(named[name], imports) if name in named else default
    if value is None:
        return default
    if not isinstance(value, int | float):
        raise NotLiteral("a tolerance that is no number")
    return float(value)
