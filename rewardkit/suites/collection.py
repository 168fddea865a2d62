"""Which functions of a file are tests, as pytest and unittest collect them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from rewardkit.suites.expected_names import FunctionNode

_EXCUSE = re.compile(r"\b(?:xfail|expectedFailure|skip)$")


_MOST_BASES = 5  # classes above each other; more, or a circle, are not followed
_PROCESSES = re.compile(
    rb"^\s*(?:import|from)\s+(?:subprocess|multiprocessing|pexpect|docker|socket|requests|httpx)\b", re.M
)


class CollectedTest(NamedTuple):
    """A test function, its name such as ``TestX::test_b``, and whether a mark says that it need not pass."""

    name: str
    function: FunctionNode
    is_excused: bool


def is_test_file(name: str) -> bool:
    """Return whether pytest collects tests from a file by its name, or by its being called ``tests.py``."""
    file = PurePosixPath(name)
    return file.suffix == ".py" and (
        file.name.startswith("test_") or file.name.endswith("_test.py") or file.name in ("test.py", "tests.py")
    )


def starts_processes(content: bytes) -> bool:
    """Return whether a file imports what starts processes or talks with others, which the jail does not have."""
    return bool(_PROCESSES.search(content))


def module_names_of(files: Iterable[str], folders: Iterable[str]) -> set[str]:
    """Return the names under which files can be imported from the root or from one of some folders."""
    names = set()
    for file in files:
        parts = PurePosixPath(file).with_suffix("").parts
        for folder in ("", *folders):
            above = PurePosixPath(folder).parts
            if parts[: len(above)] == above:
                names.add(".".join(parts[len(above) :]))
    return names


def functions_of(tree: ast.Module) -> Iterator[CollectedTest]:
    """Yield the tests of a file; of two with one name the last, as Python has it.

    A method that classes of the file inherit from another one of it is a test of each, with one function.
    """
    marks = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    is_excused = any(mark.startswith("pytestmark") and "xfail" in mark for mark in marks)
    cases = _test_cases(tree)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    yield from _collected(tree.body, "", cases, is_excused, classes)


def _inherited(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef], depth: int = 0) -> list[ast.stmt]:
    """Return the statements of a class after those of the classes of the file from which it derives."""
    bases = [classes[base.id] for base in reversed(node.bases) if isinstance(base, ast.Name) and base.id in classes]
    above = [statement for base in bases if depth < _MOST_BASES for statement in _inherited(base, classes, depth + 1)]
    return [*above, *node.body]


def _test_cases(tree: ast.Module) -> set[str]:
    """Return the names of classes that derive from a ``TestCase``, through other classes of the file too."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    cases: set[str] = set()
    for _ in classes:
        before = len(cases)
        for node in classes:
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            if any(base.endswith("TestCase") for base in bases) or bases & cases:
                cases.add(node.name)
        if len(cases) == before:
            break
    return cases


def _collected(
    body: list[ast.stmt], prefix: str, cases: set[str], is_excused: bool, classes: Mapping[str, ast.ClassDef]
) -> Iterator[CollectedTest]:
    for name, node in _bound(body).items():
        marks = [mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list]
        excused = is_excused or any(_EXCUSE.search(ast.unparse(mark)) for mark in marks)
        if isinstance(node, ast.ClassDef):
            inner = _inherited(node, classes)
            has_start = any(isinstance(method, ast.FunctionDef) and method.name == "__init__" for method in inner)
            if name in cases or (name.startswith("Test") and not has_start):
                yield from _collected(inner, f"{prefix}{name}::", cases, excused, classes)
        elif name.startswith("test"):
            yield CollectedTest(prefix + name, node, excused)


def _bound(body: list[ast.stmt]) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Return the functions and classes that stand behind their names at the end of a body.

    A name that an import, an assignment or a block binds after that is left out: what is behind it does not show here.
    """
    last: dict[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            last[node.name] = node
        else:
            for name in _names_bound(node):
                last.pop(name, None)
    return last


def _names_bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds, itself or in its blocks."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return
        case ast.alias():
            yield node.asname or node.name.partition(".")[0]
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
    for child in ast.iter_child_nodes(node):
        yield from _names_bound(child)
