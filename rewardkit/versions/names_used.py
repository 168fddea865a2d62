"""What a piece of Python source refers to outside itself, and its shape: read from the syntax tree, nothing is run.

Where a module's names lead, :mod:`rewardkit.versions.dependencies` knows.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sandbox import parse_expression


class ImportTarget(NamedTuple):
    """What an import statement binds a name to."""

    module: str  # the module's dotted name; empty in ``from . import name``
    level: int = 0  # how many dots stood before it
    name: str | None = None  # what is taken out of the module; ``None`` for the module itself, ``"*"`` for all of it


class Use(NamedTuple):
    """One mention of a name."""

    name: str  # The name
    attributes: tuple[str, ...] = ()  # What is taken of it: `a.b.c` is `a` with `("b", "c")`
    target: ImportTarget | None = None  # Where an import inside the function binds it; `None` for a name of the module


_DYNAMIC = ("import_module", "__import__")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NESTED = (*FUNCTIONS, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def imported(node: ast.Import | ast.ImportFrom) -> dict[str, ImportTarget]:
    """Return the names that an import statement binds."""
    if isinstance(node, ast.ImportFrom):
        return {
            alias.asname or alias.name: ImportTarget(node.module or "", node.level, alias.name) for alias in node.names
        }
    targets: dict[str, ImportTarget] = {}
    for alias in node.names:
        top = alias.name.partition(".")[0]  # all that `import a.b` binds
        targets[alias.asname or top] = ImportTarget(alias.name if alias.asname else top)
    return targets


def uses(node: ast.AST) -> list[Use]:
    """Return the names that a statement or an expression mentions, each once, in order.

    Local variables of functions are left out; those of comprehensions, lambdas and class bodies are not, so where the
    module has a definition of the same name, that counts too. A name that the statement imports leads to the import.
    """
    hidden = _local_names(node) if isinstance(node, FUNCTIONS) else frozenset()
    targets: dict[str, ImportTarget] = {}
    mentions: list[Use] = []
    waiting: list[ast.AST] = [node]
    while waiting:  # not by recursion: a sum of a thousand terms is a thousand levels deep
        part = waiting.pop()
        if isinstance(part, FUNCTIONS) and part is not node:
            mentions += uses(part)
            continue
        waiting += reversed([*ast.iter_child_nodes(part), *_quoted(part)])
        match part:
            case ast.Import() | ast.ImportFrom():
                targets |= imported(part)
            case ast.Name(id=name):
                mentions.append(Use(name))
            case ast.Attribute():
                chain = [part.attr]
                while isinstance(part.value, ast.Attribute):
                    part = part.value
                    chain.append(part.attr)
                if isinstance(part.value, ast.Name):
                    waiting.pop()
                    mentions.append(Use(part.value.id, tuple(reversed(chain))))
                else:
                    waiting[-1] = part.value
            case ast.Global(names=names):
                mentions += map(Use, names)
            case ast.Call(func=func, args=[ast.Constant(value=str(module)), *_]) if _name(func) in _DYNAMIC:
                mentions.append(Use(module, (), ImportTarget(module)))
    mentions = [use._replace(target=use.target or targets.get(use.name)) for use in mentions]
    return list(dict.fromkeys(use for use in mentions if use.target is not None or use.name not in hidden))


def _local_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Return the names that a function binds, unless its decorators, defaults or annotations mention them too."""
    outside = [function.args, *function.decorator_list, *([function.returns] if function.returns else [])]
    outer = {part.id for root in outside for part in ast.walk(root) if isinstance(part, ast.Name)}
    for part in ast.walk(function):
        if isinstance(part, ast.Global | ast.Nonlocal):
            outer.update(part.names)
    parameters = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
    bound = {name for statement in function.body for part in own_nodes(statement) for name in bound_by(part)}
    return frozenset((parameters | bound) - outer)


def _name(called: ast.expr) -> str | None:
    """Return the name by which a function is called, the last one of ``a.b.c()``."""
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)


def _quoted(node: ast.AST) -> Iterator[ast.AST]:
    """Return the annotation that a parameter or a function has in quotes."""
    annotation = getattr(node, "annotation", getattr(node, "returns", None))
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        with contextlib.suppress(SyntaxError, ValueError):
            yield parse_expression(annotation.value)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Return a statement's nodes without the insides of the functions, classes and comprehensions in it."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part is not node and isinstance(part, _COMPREHENSIONS):
            yield from (inner for inner in ast.walk(part) if isinstance(inner, ast.NamedExpr))
            continue
        yield part
        if not isinstance(part, _NESTED):
            waiting += reversed(list(ast.iter_child_nodes(part)))


def bound_by(node: ast.AST) -> Iterator[str]:
    """Return the names that one node binds, imports aside."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.NamedExpr(target=ast.Name(id=name)):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


class _Word(str):
    """A word of a shape among the nodes that wait."""


_IGNORED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def shape(node: ast.AST) -> list[str]:
    """Return what a piece of source says: its syntax tree as words, from left to right.

    They are alike in every version of Python. Comments, layout, places and docstrings are left out.
    """
    parts: list[str] = []
    waiting: list[object] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, _Word):
            parts.append(part)
        elif isinstance(part, ast.Constant):
            parts.append(f"{type(part.value).__name__} {part.value!r}")
        elif isinstance(part, ast.AST | list):
            waiting += reversed(list(_inside(part)))
        else:
            parts.append(repr(part))
    return parts


def _inside(part: ast.AST | list[Any]) -> Iterator[object]:
    """Return what a node or a list of nodes is made of, in order, between brackets."""
    if isinstance(part, list):
        yield from (_Word("["), *part, _Word("]"))
        return
    yield _Word(f"{type(part).__name__}(")
    if isinstance(part, ast.JoinedStr):
        yield from _pieces(part.values)
    else:
        for name, value in ast.iter_fields(part):
            if name == "body" and isinstance(part, _NESTED) and isinstance(value, list):
                value = without_docstring(value)
            if name not in _IGNORED and value is not None and value != []:  # newer versions add fields, mostly empty
                yield from (_Word(name), value)
    yield _Word(")")


def _pieces(values: Iterable[ast.expr]) -> Iterator[object]:
    """Return an f-string's parts, text beside text joined: versions of Python cut it in different places."""
    text = ""
    for value in values:
        if isinstance(value, ast.Constant):
            text += str(value.value)
            continue
        if text:
            yield text
        text = ""
        yield value
    if text:
        yield text


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return a body's statements without the text that documents it."""
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *_]:
            return body[1:]
    return body
