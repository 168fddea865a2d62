"""The source of a reward: its function and the functions of the same module that it calls, as syntax trees."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rewardkit.declare.callables import written
from rewardkit.declare.decorator import Reward
from rewardkit.function import described
from sandbox import parse


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """One function's source, as lines and as a syntax tree."""

    file: str  # Where it is; `"<text>"` for a reward given as text
    first_line: int  # The line in the file of the source's first
    lines: list[str]
    tree: ast.AST
    names: Mapping[str, Any]  # The module's names, for telling what a name means
    columns: Mapping[str, str] = field(default_factory=dict)  # The reward's column parameters, with their annotations
    completions: frozenset[str] = frozenset()  # Its parameters that hold what the model wrote

    def line_of(self, node: ast.AST) -> int:
        """Return a node's line in the file."""
        return self.first_line + getattr(node, "lineno", 1) - 1

    def comments(self, first: int, last: int) -> Iterator[str]:
        """Yield what stands behind ``# audit:`` on lines of the piece, counted from 1."""
        for line in self.lines[first - 1 : last]:
            _, mark, comment = line.partition("# audit:")
            if mark:
                yield comment.strip()


def pieces_of(reward: Reward[..., Any]) -> list[FunctionSource]:
    """Return the source of a reward and of what it calls in its module; nothing where there is no source."""
    text = described(reward.spec.function).source_text
    if text is not None:
        return [_piece(reward, "<text>", 1, text, {})]
    function = written(reward.spec.function)
    first = _of_function(function, reward)
    if first is None:
        return []
    pieces = {function: first}
    waiting = [first]
    while waiting:
        for called in _callees(waiting.pop(), function.__module__):
            if called not in pieces:
                inner = _of_function(called, None)
                if inner is not None:
                    pieces[called] = inner
                    waiting.append(inner)
    return list(pieces.values())


def _of_function(function: Callable[..., Any], reward: Reward[..., Any] | None) -> FunctionSource | None:
    """Return a function's source; ``None`` where it has none, or only a part of a line."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return None
    text = textwrap.dedent("".join(lines))
    names = getattr(function, "__globals__", {})
    closed = inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}
    file = inspect.getsourcefile(inspect.unwrap(function)) or "<unknown>"  # as getsourcelines does
    try:
        return _piece(reward, file, first, text, {**names, **closed})
    except SyntaxError:  # a lambda in the middle of a line
        return None


def _piece(
    reward: Reward[..., Any] | None, file: str, first: int, text: str, names: Mapping[str, Any]
) -> FunctionSource:
    """Return a source with what it says of the reward's parameters; those of a function that it calls are not read."""
    tree = parse(text)
    columns: dict[str, str] = {}
    completions = frozenset[str]()
    if reward is not None:
        columns = {p.name: p.coercer.expected for p in reward.spec.parameters if p.column and p.coercer is not None}
        completions = frozenset({"completion", "completions", "messages"} & {p.name for p in reward.spec.parameters})
    return FunctionSource(file, first, text.splitlines(), tree, names, columns, completions)


def _callees(piece: FunctionSource, module: str) -> Iterator[Callable[..., Any]]:
    """Yield the functions of a module that a source calls by name."""
    for node in ast.walk(piece.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            function = piece.names.get(node.func.id)
            if inspect.isfunction(function) and function.__module__ == module:
                yield function
