"""Rewards that are edited in the browser: which function the text defines, and the file that it becomes.

Nothing here runs the text. The file lies beside the run's record, where no other file is, and is named by its text.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from rewardkit.errors import RewardLoadError
from rewardkit.loading.carried import FOLDER, write_file
from rewardkit.versions.names_used import bound_by, imported, own_nodes, uses
from sandbox import parse

EDITED = "edited"  # The folder, beside the files of changed rewards, that has those written in the browser
LARGEST = 500_000  # Bytes of a reward's text, at most
_MARKS = frozenset({"reward", "group_reward"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def function_of(source: str, wanted: str) -> str:
    """Return the name of a text's function, ``wanted`` or the only one if that is empty; RewardLoadError without."""
    tree = _parse(source)
    functions = [node for node in tree.body if isinstance(node, _Function)]
    names = [function.name for function in functions]
    if wanted:
        bound = set(_possible_names(tree))
        if wanted in bound or "*" in bound:
            return wanted
        near = difflib.get_close_matches(wanted, [*bound], n=1)
        has = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names) or 'no function'}"
        raise RewardLoadError(f"no function {wanted!r} in the source; {has}")
    marked = [function.name for function in functions if any(_is_mark(mark) for mark in function.decorator_list)]
    candidates = marked or [name for name in names if not name.startswith("_")]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise RewardLoadError("no function in the source; a reward is a function of the completion")
    raise RewardLoadError(
        f"the source has {len(candidates)} functions, {', '.join(candidates)}: say which one is the reward"
    )


def write_source(record: Path, name: str, source: str) -> Path:
    """Write a reward's text to a file beside a record, unless it is there; return the file. Raises RewardLoadError."""
    folder = record.resolve().parent / FOLDER / EDITED
    data = source.encode("utf-8", "surrogatepass")
    stem = re.sub(r"[^A-Za-z0-9_]", "_", name)[:60] or "reward"
    file = folder / f"{stem}_{hashlib.sha256(data).hexdigest()[:12]}.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.resolve() != folder:
            raise RewardLoadError(f"{folder}: a link that leads elsewhere; edited rewards are not written there")
        return write_file(file, data)
    except OSError as error:
        raise RewardLoadError(f"{file}: {error.strerror or error}; the edited source is not kept") from error


def _parse(source: str) -> ast.Module:
    """Return the syntax tree of a reward's text; RewardLoadError where it is empty, too large or no Python."""
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > LARGEST:
        raise RewardLoadError(f"the source has {size:,} bytes: expected at most {LARGEST:,}")
    if not source.strip():
        raise RewardLoadError("the source is empty")
    try:
        return parse(source)
    except SyntaxError as wrong:
        raise RewardLoadError(f"line {wrong.lineno}: {wrong.msg}") from None
    except (ValueError, RecursionError, MemoryError) as wrong:
        raise RewardLoadError(f"the source cannot be read as Python: {wrong or type(wrong).__name__}") from None


def _possible_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module may bind, ``*`` where an import binds some that are not known."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]


def _is_mark(decorator: ast.expr) -> bool:
    mark = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = mark.attr if isinstance(mark, ast.Attribute) else getattr(mark, "id", None)
    return name in _MARKS


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
        for name in _names_bound(statement):
            binding.setdefault(name, []).append(index)
    waiting, indices = list(binding.get(function, [])), set[int]()
    while waiting:
        index = waiting.pop()
        if index not in indices:
            indices.add(index)
            waiting += [other for use in uses(body[index]) for other in binding.get(use.name, [])]
    return [_lines(body[index]) for index in sorted(indices)] or None


def _names_bound(statement: ast.stmt) -> list[str]:
    names = []
    for node in own_nodes(statement):
        names += list(imported(node)) if isinstance(node, ast.Import | ast.ImportFrom) else list(bound_by(node))
    return names


def _lines(statement: ast.stmt) -> tuple[int, int]:
    above = [decorator.lineno for decorator in getattr(statement, "decorator_list", [])]
    return min([statement.lineno, *above]), statement.end_lineno or statement.lineno
