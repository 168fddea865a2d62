"""Functions in the form of another trainer: what is wrong with their declaration, and the way that takes them as is.

Each of them could be bent until it is declared, and would then be called with other values than it was written for: a
``@group_reward`` in TRL's form walks through the letters of an answer in place of the answers.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rewardkit.declare.callables import called_text, written
from rewardkit.own_columns import ENVIRONMENT_COLUMN, ENVIRONMENTS_COLUMN

_OF_VERL = ("solution_str", "solution_strs")
_OF_A_GROUP = frozenset({"prompt", "completions", "messages", "completion_ids", "example", "step", "epoch"})
_ONE_EACH = frozenset({"completions", "messages", "completion_ids", ENVIRONMENT_COLUMN, ENVIRONMENTS_COLUMN})
"""What a group reward gets as a list with a value for each completion; of a column it gets the one value of the row."""


_ONE_VALUE = (str, int, float, bool, "str", "int", "float", "bool")
"""Annotations of a column that has one value for a group, where TRL hands over a list."""


def why_foreign(function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], group: bool) -> str | None:
    """Return why a function is not one of ours, with what to write; ``None`` where nothing speaks against it.

    Args:
        function: What is to become a reward.
        parameters: Its parameters that are still to be filled.
        group: Whether it is to score a group.
    """
    names = {name for name, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    takes_rest = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    call = called_text(function)
    verl_name = next((name for name in _OF_VERL if name in names), None)
    if verl_name is not None and not names & {"completion", "completions"}:
        return f"{verl_name!r} is verl's name for what the model wrote; {_moved('from_verl', call)}"
    if group and "completion" in names:
        return "it takes 'completions', a list, not 'completion'"
    list_name = next((name for name in ("prompts", "completions") if name in names), None)
    if group and "prompts" in names:
        return (
            "'prompts' is a list of TRL's, and a group has one 'prompt', and of each column one value; "
            f"{_moved('from_trl', f'{call}, in_groups=True')}"
        )
    if not group and list_name is not None:
        problem = f"parameter {list_name!r} is a list, with a value for each completion"
        if takes_rest or "prompts" in names or names - _OF_A_GROUP:
            columns = names - _OF_A_GROUP - {"prompts"}
            if not takes_rest and columns and all(parameters[name].annotation in _ONE_VALUE for name in columns):
                each = ", ".join(map(repr, sorted(columns)))
                return f"{problem}, and {each} one value; declare the reward with @group_reward, which scores a group"
            return f"{problem}, as TRL hands it over; {_moved('from_trl', call)}"
        return f"{problem}; name it {list_name[:-1]!r}, or declare the reward with @group_reward"
    return _why_wrapped(function, parameters)


def why_paired(function: Callable[..., Any], hints: Mapping[str, Any]) -> str | None:
    """Return why a group reward pairs its completions with the parts of one value; ``None`` where it does not.

    A column whose annotation is a list is one that its author knows to have a value for each completion.
    """
    try:
        code = written(function)
        tree: ast.AST = ast.parse(textwrap.dedent(inspect.getsource(code)))
        parameters = inspect.signature(code).parameters.values()
    except (OSError, TypeError, ValueError, SyntaxError):
        return None  # there is no source, as of what is defined at a prompt
    rest = next((parameter.name for parameter in parameters if parameter.kind is parameter.VAR_KEYWORD), None)
    columns = {p.name for p in parameters if hints.get(p.name, Any) in (Any, str, object)} - _ONE_EACH - {rest or ""}
    column = next(filter(None, (_column(node, columns, rest) for pair in _pairs(tree) for node in pair)), None)
    if column is None:
        return None
    way = _moved("from_trl", f"{called_text(function)}, in_groups=True")
    return (
        f"it pairs 'completions' with the parts of {column!r}, of which a group has one value, so a text would be "
        f"taken letter by letter; if it was written for TRL, {way}; if each row has a list, annotate it: {column}: list"
    )


def _moved(move: str, call: str) -> str:
    return f"hand over {move}({call}), of rewardkit.moving, which takes it as it is"


def _why_wrapped(function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]) -> str | None:
    """Return why a wrapper cannot be filled by name where its decorator has hidden the names of what it wraps."""
    kinds = {parameter.kind for parameter in parameters.values()}
    if not kinds or not kinds <= {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        return None
    cells = getattr(written(function), "__closure__", None) or ()
    contents = [cell.cell_contents for cell in cells if _is_filled(cell)]
    inner = next((value for value in contents if callable(value) and _takes_completions(value)), None)
    if inner is None:
        return None
    text = ", ".join(str(parameter) for parameter in parameters.values())
    return (
        f"it takes {text} alone, and a reward is filled by the names of its parameters; if a decorator made it of "
        f"{called_text(inner)!r}, write @functools.wraps above the decorator's inner function, which hands on its names"
    )


def _takes_completions(function: Callable[..., Any]) -> bool:
    try:
        return bool({"completion", "completions"} & inspect.signature(function).parameters.keys())
    except (TypeError, ValueError):
        return False


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # what the decorator has not bound yet
        return False


def _pairs(tree: ast.AST) -> Iterator[list[ast.expr]]:
    """Yield what is taken side by side with the completions: by ``zip`` or ``map``, or by their index."""
    indexes = {
        name for target, source in _loops(tree) if _counts_completions(source) for name in _names(_first(target))
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("zip", "map"):
            if any(_is_named(argument, "completions") for argument in node.args):
                yield node.args
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id in indexes:
            yield [node.value]


def _loops(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    return ((n.target, n.iter) for n in ast.walk(tree) if isinstance(n, ast.For | ast.AsyncFor | ast.comprehension))


def _first(target: ast.expr) -> ast.expr:
    return target.elts[0] if isinstance(target, ast.Tuple) else target


def _names(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _counts_completions(source: ast.expr) -> bool:
    """Whether a loop goes over ``enumerate(completions)`` or ``range(len(completions))``."""
    counts = isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id
    return counts in ("enumerate", "range") and "completions" in _names(source)


def _column(node: ast.expr, columns: set[str], rest: str | None) -> str | None:
    """Return the column that an expression is: a parameter, or ``kwargs["answer"]`` and ``kwargs.get("answer")``."""
    if isinstance(node, ast.Name):
        return node.id if node.id in columns else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        base, key = node.func.value, node.args[0]
    elif isinstance(node, ast.Subscript):
        base, key = node.value, node.slice
    else:
        return None
    if rest is None or not _is_named(base, rest) or not isinstance(key, ast.Constant) or key.value in _ONE_EACH:
        return None
    return str(key.value)


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
