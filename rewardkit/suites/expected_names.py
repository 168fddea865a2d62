"""Where the expected values of a test are written that it has by name: variables, loops over rows, parameters."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from rewardkit.suites.literal_values import Imports, full_name

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
ValueGroup: TypeAlias = tuple[ast.expr, ...]  # values that are changed together

_PARAMETRIZE = "pytest.mark.parametrize"


def constants_of(tree: ast.Module) -> dict[str, tuple[ast.expr, list[ast.Name]]]:
    """Return the values of names that a file gives once, at its top, and where it reads them."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    stores = Counter(node.id for node in names if not isinstance(node.ctx, ast.Load))
    values = {name: value for name, value in _assigned(tree.body) if stores[name] == 1}
    reads: dict[str, list[ast.Name]] = {name: [] for name in values}
    for node in names:
        if node.id in reads and isinstance(node.ctx, ast.Load):
            reads[node.id].append(node)
    return {name: (value, reads[name]) for name, value in values.items() if reads[name]}


def _assigned(statements: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value


def lists_of(function: FunctionNode, constants: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    """Return the values of names that are given once and read once, in a test's body or at the file's top."""
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    counts = Counter((node.id, isinstance(node.ctx, ast.Load)) for node in names)
    arguments = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    own = {name: value for name, value in _assigned(function.body) if counts[name, False] == counts[name, True] == 1}
    hidden = arguments | {name for name, is_read in counts if not is_read}
    outer = {name: value for name, value in constants.items() if name not in hidden and counts[name, True] <= 1}
    return {**outer, **own}


def rows_of(node: ast.expr, lists: Mapping[str, ast.expr]) -> list[ast.expr] | None:
    """Return the rows of a list or tuple that is written here or behind a name; ``None`` for other things."""
    if isinstance(node, ast.Name):
        return rows_of(lists[node.id], {}) if node.id in lists else None
    if isinstance(node, ast.List | ast.Tuple) and not any(isinstance(element, ast.Starred) for element in node.elts):
        return node.elts
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Dict(keys=keys, values=values), attr="items"), args=[]):
            if None not in keys:
                return [ast.Tuple(elts=[key, value]) for key, value in zip(keys, values, strict=True) if key]
    return None


class ExpectedNames:
    """The names of a test that are used as expected values, with where these are written.

    Args:
        function: The test.
        reached: Its statements that are certain to be gone through, loops among them.
        sides: The names, as nodes, that stand on a side of a comparison that must be true.
        imports: What names of the file stand for.
        lists: Values of names that nothing but one place reads.
    """

    def __init__(
        self,
        function: FunctionNode,
        reached: Iterable[ast.stmt],
        sides: Iterable[ast.Name],
        imports: Imports,
        lists: Mapping[str, ast.expr],
    ) -> None:
        self._imports = imports
        self._lists = lists
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        stores = Counter(node.id for node in names if not isinstance(node.ctx, ast.Load))
        stores.update(node.arg for node in ast.walk(function) if isinstance(node, ast.arg))
        self._loads = Counter(node.id for node in names if isinstance(node.ctx, ast.Load))
        compared = {id(node) for node in sides}
        self._other_uses = [node for node in names if isinstance(node.ctx, ast.Load) and id(node) not in compared]
        lasts = [node for inner in ast.walk(function) if isinstance(inner, ast.Try) for node in inner.finalbody]
        self._at_last = {id(node) for last in lasts for node in ast.walk(last)}
        own = list(reached)
        groups: list[tuple[str, list[ValueGroup]]] = [(name, [(value,)]) for name, value in _assigned(own)]
        self._looped: dict[str, int] = {}
        for statement in own:
            if isinstance(statement, ast.For):
                rows = list(self._of_loop(statement))
                self._looped.update((name, len(values)) for name, values in rows)
                groups += rows
        for decorator in function.decorator_list:
            groups += self._of_parameters(decorator)
        self._groups = {name: ways for name, ways in groups if stores[name] == 1}

    def is_read_otherwise(self, name: str) -> bool:
        """Return whether a name is used for more than to be compared."""
        return any(node.id == name for node in self._other_uses)

    def rounds(self, name: str) -> int:
        """Return how many rounds the loop has whose variable a name is; 0 for another name."""
        return self._looped.get(name, 0)

    def groups(self, name: str, statement: ast.stmt) -> list[ValueGroup]:
        """Return the ways to change a name's value, of a loop's variable one for each of its rounds.

        The values of each way are changed together.

        A name that is used for something else before a statement that compares it, within, or in a ``finally`` has no
        such way. What else comes after that statement is not reached, or says nothing, for the statement fails.
        """
        end = statement.end_lineno or 0, statement.end_col_offset or 0
        uses = [node for node in self._other_uses if node.id == name]
        is_later = all((node.lineno, node.col_offset) >= end and id(node) not in self._at_last for node in uses)
        return self._groups.get(name, []) if is_later else []

    def _of_loop(self, loop: ast.For) -> Iterator[tuple[str, list[ValueGroup]]]:
        rows = rows_of(loop.iter, self._lists)
        if rows:
            targets = loop.target.elts if isinstance(loop.target, ast.Tuple | ast.List) else [loop.target]
            names = [target.id if isinstance(target, ast.Name) else "" for target in targets]
            if not hasattr(rows[0], "lineno"):  # of a dictionary, whose changed key may be another one's
                names[0] = ""
            inside = Counter(node.id for part in loop.body for node in ast.walk(part) if isinstance(node, ast.Name))
            for name, values in self._columns(names, rows, isinstance(loop.target, ast.Name)):
                if inside[name] == self._loads[name]:
                    yield name, [(value,) for value in values]

    def _of_parameters(self, decorator: ast.expr) -> Iterator[tuple[str, list[ValueGroup]]]:
        match decorator:
            case ast.Call(func=function, args=[names, values], keywords=keywords):
                if full_name(function, self._imports) != _PARAMETRIZE:
                    return
                rows = rows_of(values, self._lists)
                if not rows or {keyword.arg for keyword in keywords} - {"ids", "scope"}:
                    return
                labels, is_single = _labels(names)
                yield from ((name, [values]) for name, values in self._columns(labels, rows, is_single))

    def _columns(self, names: list[str], rows: list[ast.expr], is_single: bool) -> Iterator[tuple[str, ValueGroup]]:
        """Yield the values of each name, one a row."""
        table: list[list[ast.expr]] = []
        for row in rows:
            cells: list[ast.expr] | None = None
            if isinstance(row, ast.Call) and full_name(row.func, self._imports) == "pytest.param":
                if any(keyword.arg != "id" for keyword in row.keywords):
                    return
                cells = row.args
            elif is_single:
                cells = [row]
            elif isinstance(row, ast.Tuple | ast.List):
                cells = row.elts
            if cells is None or len(cells) != len(names) or any(isinstance(cell, ast.Starred) for cell in cells):
                return
            table.append(cells)
        for at, name in enumerate(names):
            if name:
                yield name, tuple(cells[at] for cells in table)


def _labels(node: ast.expr) -> tuple[list[str], bool]:
    """Return the names of parameters, and whether it is one whose rows are bare values."""
    match node:
        case ast.Constant(value=str(text)):
            names = [name.strip() for name in text.split(",") if name.strip()]
            return names, len(names) == 1
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return [str(element.value) if isinstance(element, ast.Constant) else "" for element in elements], False
    return [], False
