"""Which functions of a file are tests, as pytest and unittest collect them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from rewardkit.suites.expected_names import FunctionNode

_EXCUSE = re.compile(r"\b(?:xfail|expectedFailure|skip)$")


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
    """Yield the tests of a file; of two with one name the last, as Python has it."""
    marks = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    is_excused = any(mark.startswith("pytestmark") and "xfail" in mark for mark in marks)
    cases = _test_cases(tree)
    yield from _collected(tree.body, "", cases, is_excused)


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


def _collected(body: list[ast.stmt], prefix: str, cases: set[str], is_excused: bool) -> Iterator[CollectedTest]:
    last = {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    for name, node in last.items():
        marks = [mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list]
        excused = is_excused or any(_EXCUSE.search(ast.unparse(mark)) for mark in marks)
        if isinstance(node, ast.ClassDef):
            has_start = any(isinstance(inner, ast.FunctionDef) and inner.name == "__init__" for inner in node.body)
            if name in cases or (name.startswith("Test") and not has_start):
                yield from _collected(node.body, f"{prefix}{name}::", cases, excused)
        elif name.startswith("test"):
            yield CollectedTest(prefix + name, node, excused)
