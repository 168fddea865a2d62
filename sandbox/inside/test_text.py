"""Reads test text as a syntax tree: the names it binds and lacks, its checks, and whether it can fail at all.

:mod:`ast` is too large for a child to load, so this walks the trees by itself.
"""

from __future__ import annotations

import _ast
import builtins
import importlib.util
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from sandbox.inside.runner import TESTS_NAME, source_lines

_MAX_TEXT = 300
_BINDERS = {  # of nodes that bind a name: the field that has it
    "FunctionDef": "name", "AsyncFunctionDef": "name", "ClassDef": "name", "ExceptHandler": "name",
    "MatchAs": "name", "MatchStar": "name", "MatchMapping": "rest", "arg": "arg",
}  # fmt: skip
_FUNCTIONS = _ast.FunctionDef | _ast.AsyncFunctionDef
_JUDGES = (
    "assert",
    "fail",
    "raises",
    "exit",
    "_exit",
    "quit",
    "testmod",
    "testfile",
    "run_docstring_examples",
    "warns",
)
_STAND_IN_WORDS = (
    "solution", "your_", "my_", "module", "answer", "submission", "candidate", "implementation", "main", "program",
    "task", "code", "script", "file", "under_test", "sut", "function", "placeholder", "completion", "generated",
)  # fmt: skip
_LOOK_LIKE_CODE = ("code", "test", "main", "__main__", "this", "types", "calendar", "queue", "graphlib", "sched")
SOLUTION = "__solution__"  # the name under which the tests find what they import of the code under test


class PlannedCheck(NamedTuple):
    """A check of the plan."""

    text: str
    again: bool  # whether it may run again
    owner: str = ""  # the function or class that it stands in
    swallowed: bool = False  # whether the ``try`` around it says nothing of its failure


def syntax_tree(text: str) -> Any:
    """Return the tree of test text; raise ``SyntaxError`` where it is not Python."""
    return compile(text, TESTS_NAME, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)


def walk(node: _ast.AST) -> Iterator[Any]:
    """Yield a node and all below it, in the order of the text."""
    yield node
    for child in _children(node):
        yield from walk(child)


def _children(node: _ast.AST) -> Iterator[Any]:
    for field in node._fields:
        value = getattr(node, field, None)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, _ast.AST):
                yield item


def bound_names(tree: _ast.AST) -> Iterator[str]:
    """Yield each name as often as a syntax tree binds it."""
    for node in walk(tree):
        if isinstance(node, _ast.Name):
            if not isinstance(node.ctx, _ast.Load):
                yield node.id
        elif isinstance(node, _ast.alias):
            if node.name != "*":
                yield (node.asname or node.name).split(".")[0]
        elif name := getattr(node, _BINDERS.get(type(node).__name__, ""), None):
            yield name


def unbound_names(tree: _ast.Module, names: dict[str, Any]) -> list[str]:
    """Return the names that the tests use and do not bind, with ``*`` if an import may have bound others."""
    used: dict[str, None] = {}
    for node in walk(tree):
        if isinstance(node, _ast.Name) and isinstance(node.ctx, _ast.Load):
            used[node.id] = None
        elif isinstance(node, _ast.alias) and node.name == "*":
            used["*"] = None
    bound = {*names, *dir(builtins), *bound_names(tree), "__file__"}
    return [name for name in used if name not in bound]


# Imports of the code under test.


def redirect_imports(tree: _ast.Module, entry: str | None) -> None:
    """Turn imports of the code under test into assignments from ``__solution__``."""
    for node in list(walk(tree)):
        for field in node._fields:
            body: Any = getattr(node, field, None)
            for index, item in enumerate(body if isinstance(body, list) else ()):
                if (statements := _redirected(item, entry)) is not None:
                    body[index : index + 1] = statements or [_ast.Pass(**_span(item))]


def _redirected(item: object, entry: str | None) -> list[Any] | None:
    if isinstance(item, _ast.ImportFrom):
        names = [alias.name for alias in item.names]
        if not item.level and not is_stand_in(item.module or "", names, entry):
            return None
        parts = [alias for alias in item.names if alias.name != "*"]
        return [_assign(item, alias.asname or alias.name, _attribute(item, alias.name)) for alias in parts]
    if isinstance(item, _ast.Import) and all(is_stand_in(alias.name, [], entry) for alias in item.names):
        return [_assign(item, alias.asname or alias.name.split(".")[0], _load(item, SOLUTION)) for alias in item.names]
    return None


def is_stand_in(module: str, names: list[str], entry: str | None) -> bool:
    """Return whether a module that tests import stands for the code under test, as ``solution`` does.

    No such module is there, and it is named for what it is, or as what is imported of it, or that is the entry point.
    """
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names or root in ("__main__", "numpy", "pandas", "pytest"):
        is_library = root != "__main__" and (not names or hasattr(__import__(root), names[0]))
        return root in _LOOK_LIKE_CODE and not is_library
    if importlib.util.find_spec(root) is not None:
        return False
    targets = {name.lower().replace("_", "") for name in (*names, *(entry or "").split("."))}
    is_named_so = module.rpartition(".")[2].lower().replace("_", "") in targets
    is_entry = entry is not None and entry.split(".")[0] in names
    return is_named_so or is_entry or any(word in module.lower() for word in _STAND_IN_WORDS)


def _span(node: Any) -> dict[str, Any]:
    return {name: getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}


def _load(at: Any, name: str) -> Any:
    return _ast.Name(name, _ast.Load(), **_span(at))


def _attribute(at: Any, name: str) -> Any:
    return _ast.Attribute(_load(at, SOLUTION), name, _ast.Load(), **_span(at))


def _assign(at: Any, name: str, value: Any) -> Any:
    return _ast.Assign([_ast.Name(name, _ast.Store(), **_span(at))], value, None, **_span(at))


# Checks.


def instrument(tree: _ast.Module, source: str) -> list[PlannedCheck]:
    """Wrap, in the tree, each assert that can fail, or the ``try`` or ``with`` around it, and return the plan."""
    return _Instrumenter(tree, source).plan


class _Instrumenter:
    """Puts ``with __check__[number]:`` around the checks of a tree."""

    def __init__(self, tree: _ast.Module, source: str) -> None:
        self.plan: list[PlannedCheck] = []
        self._lines = source_lines(source)
        self._tree = tree
        self._visit(tree, False, "")

    def _wrap(self, statement: Any, again: bool, owner: str, swallowed: bool = False) -> Any:
        number = len(self.plan)
        self.plan.append(PlannedCheck(_text_of(statement, self._lines), again, owner, swallowed))
        at, load = _span(statement), _ast.Load()
        check = _ast.Subscript(_ast.Name("__check__", load, **at), _ast.Constant(number, **at), load, **at)
        return _ast.With([_ast.withitem(check)], [statement], None, **at)

    def _visit(self, node: Any, again: bool, owner: str) -> None:
        loops = _ast.For | _ast.While | _ast.AsyncFor | _FUNCTIONS
        if isinstance(node, loops) and not (node in self._tree.body and getattr(node, "name", "") == "check"):
            again = True
        if isinstance(node, _FUNCTIONS | _ast.ClassDef):
            owner = f"{owner}.{node.name}" if owner else node.name
        for field in node._fields:
            body: Any = getattr(node, field, None)
            for index, item in enumerate(body if isinstance(body, list) else ()):
                if isinstance(item, _ast.Assert):
                    if not isinstance(item.test, _ast.Constant):
                        is_swallowed = isinstance(node, _ast.Try) and field == "body"
                        body[index] = self._wrap(item, again, owner, is_swallowed)
                elif isinstance(item, _ast.Try) and _swallows(item):
                    self._visit(item, again, owner)
                elif isinstance(item, _ast.With | _ast.TryStar) or (isinstance(item, _ast.Try) and item.handlers):
                    if _can_fail(item):
                        body[index] = self._wrap(item, again, owner)
                elif isinstance(item, _ast.AST):
                    self._visit(item, again, owner)


def _text_of(node: Any, lines: list[str]) -> str:
    text = " ".join(line.strip() for line in lines[node.lineno - 1 : node.end_lineno])
    return text[:_MAX_TEXT]


def _can_fail(node: Any) -> bool:
    """Return whether an assert, such as ``assert True`` is not, or a node that has one can fail."""
    asserts = (part for part in walk(node) if isinstance(part, _ast.Assert))
    return any(not isinstance(part.test, _ast.Constant) or not part.test.value for part in asserts)


def _swallows(node: Any) -> bool:
    """Return whether a ``try`` catches its own asserts and says nothing of it: they are then checks by themselves."""
    if not any(isinstance(part, _ast.Assert) and not isinstance(part.test, _ast.Constant) for part in node.body):
        return False
    for handler in node.handlers:
        names = {part.id for part in walk(handler.type) if isinstance(part, _ast.Name)} if handler.type else {""}
        if names & {"", "AssertionError", "Exception", "BaseException"}:
            return not any(_judges(part) for statement in handler.body for part in walk(statement))
    return False


def _judges(node: Any) -> bool:
    """Return whether a node can make tests fail."""
    if isinstance(node, _ast.Assert):
        return _can_fail(node)
    if isinstance(node, _ast.Call):
        function = node.func
        name = str(getattr(function, "attr", None) or getattr(function, "id", ""))
        return name.startswith(_JUDGES) or name.lstrip("_").startswith("assert")
    return isinstance(node, _ast.Raise)


def can_fail(tree: _ast.Module, names: dict[str, Any]) -> bool:
    """Return whether test text has anything that can fail, other than a call of the code that raises.

    That is an assert, ``raise``, a call of an asserting method, or of a function that the setup or helpers bind.
    """

    def visit(node: Any) -> bool:
        if isinstance(node, _ast.Try) and _swallows(node):
            rest = [*node.handlers, *node.orelse, *node.finalbody]
            return any(map(visit, rest))
        if _judges(node):
            return True
        if isinstance(node, _ast.Call) and isinstance(node.func, _ast.Name) and callable(names.get(node.func.id)):
            return True
        return any(map(visit, _children(node)))

    return visit(tree)


def wrap_verdicts(tree: _ast.Module, source: str, number: int, tested: set[str]) -> list[PlannedCheck]:
    """Make checks of comparisons with what the code gave, where tests only print or collect them; return their plan.

    Each becomes a call of ``__verdict__`` with the number of its check and the comparison's value.
    """
    plan: list[PlannedCheck] = []
    lines = source_lines(source)

    def is_verdict(node: Any) -> bool:
        operators = (_ast.Eq, _ast.Is, _ast.In, _ast.Lt, _ast.LtE, _ast.Gt, _ast.GtE)
        if not isinstance(node, _ast.Compare) or not isinstance(node.ops[0], operators):
            return False
        return any(isinstance(part, _ast.Name) and part.id in tested for part in walk(node))

    def wrap(node: Any) -> Any:
        if not is_verdict(node):
            visit(node)
            return node
        plan.append(PlannedCheck(_text_of(node, lines), True))
        index = _ast.Constant(number + len(plan) - 1, **_span(node))
        return _ast.Call(_load(node, "__verdict__"), [index, node], [], **_span(node))

    def visit(node: Any) -> None:
        if isinstance(node, _ast.If | _ast.While):
            for statement in (*node.body, *node.orelse):
                visit(statement)
            return
        for field in node._fields:
            value: Any = getattr(node, field, None)
            if isinstance(value, list):
                value[:] = [wrap(item) if isinstance(item, _ast.AST) else item for item in value]
            elif isinstance(value, _ast.AST):
                setattr(node, field, wrap(value))

    visit(tree)
    return plan
