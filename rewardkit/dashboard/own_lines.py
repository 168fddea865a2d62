"""Which lines of a file a reward consists of, read from the syntax tree: its function, and what that uses."""

from __future__ import annotations

import ast

from rewardkit.versions.names_used import bound_by, imported, own_nodes, uses


def own_lines(text: str, function: str) -> list[tuple[int, int]] | None:
    """Return the first and last line, from 1, of each statement that a function consists of; ``None`` without any.

    They are the function, and the statements of the file's top level that it uses, by themselves or by others.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    binding: dict[str, list[int]] = {}
    for index, statement in enumerate(body):
        for name in _bound(statement):
            binding.setdefault(name, []).append(index)
    waiting, indices = list(binding.get(function, [])), set[int]()
    while waiting:
        index = waiting.pop()
        if index not in indices:
            indices.add(index)
            waiting += [other for use in uses(body[index]) for other in binding.get(use.name, [])]
    return [_lines(body[index]) for index in sorted(indices)] or None


def _bound(statement: ast.stmt) -> list[str]:
    names = []
    for node in own_nodes(statement):
        names += list(imported(node)) if isinstance(node, ast.Import | ast.ImportFrom) else list(bound_by(node))
    return names


def _lines(statement: ast.stmt) -> tuple[int, int]:
    above = [decorator.lineno for decorator in getattr(statement, "decorator_list", [])]
    return min([statement.lineno, *above]), statement.end_lineno or statement.lineno
