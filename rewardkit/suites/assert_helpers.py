"""Functions of a suite that fail where two of their arguments are not equal, as ``assert_equal(expected, result)``."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from rewardkit.suites.collection import module_names_of
from rewardkit.suites.comparisons import AssertHelper, Helpers, pairs_of_statement
from rewardkit.suites.literal_values import Imports, imports_of
from rewardkit.suites.reached import has_yield, reached_statements


def package_of(file: str) -> str:
    """Return the package of a file by its folder, such as ``"tests.unit"``."""
    return ".".join(PurePosixPath(file).parts[:-1])


def helpers_of(trees: Mapping[str, ast.Module], folders: frozenset[str]) -> dict[str, AssertHelper]:
    """Return the helpers of a suite by the names under which its files may import them.

    Args:
        trees: The files by relative name.
        folders: Where modules are looked for besides the root, such as the folders of the tests.
    """
    named: dict[str, list[AssertHelper | None]] = {}
    for file, tree in trees.items():
        for name, helper in _of_file(file, tree):
            for module in module_names_of([file], folders):
                named.setdefault(f"{module}.{name}", []).append(helper)
    return {name: helpers[0] for name, helpers in named.items() if len(helpers) == 1 and helpers[0] is not None}


def helpers_in(file: str, tree: ast.Module, imports: Imports, helpers: Helpers) -> dict[str, AssertHelper]:
    """Return the helpers that a file may call, its own and imported ones, by what their names stand for there.

    A name that the file binds twice is left out.
    """
    own = {f".{name}": helper for name, helper in _of_file(file, tree) if helper is not None}
    counts = _bindings(tree)
    callable_here = {**helpers, **own}
    return {full: callable_here[full] for name, full in imports.items() if full in callable_here and counts[name] == 1}


def _of_file(file: str, tree: ast.Module) -> Iterator[tuple[str, AssertHelper | None]]:
    """Yield the functions at a file's top that are defined once, and what they compare."""
    imports = imports_of(tree, package_of(file))
    counts = _bindings(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            is_plain = counts[node.name] == 1 and not node.decorator_list and not has_yield(node)
            yield node.name, _helper(node, imports) if is_plain else None


def _bindings(tree: ast.Module) -> Counter[str]:
    """Return how often a file binds each name, anywhere."""
    counts: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                counts[name] += 1
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                counts[name] += 1
            case ast.alias():
                counts[node.asname or node.name.partition(".")[0]] += 1
    return counts


def _helper(function: ast.FunctionDef, imports: Mapping[str, str]) -> AssertHelper | None:
    """Return which arguments a function compares whatever else it does; ``None`` for another function."""
    parameters = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    stores = {
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    stores.update(node.arg for inner in function.body for node in ast.walk(inner) if isinstance(node, ast.arg))
    for statement in reached_statements(function.body, {}):
        for pair in pairs_of_statement(statement, imports):
            match pair.left, pair.right:
                case ast.Name(id=left), ast.Name(id=right) if {left, right} <= {*parameters} - stores and left != right:
                    return AssertHelper(tuple(parameters), left, right, pair.tolerance)
    return None
