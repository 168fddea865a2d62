"""What a piece of Python source refers to outside itself, and its shape: read from the syntax tree, nothing is run.

Owns scopes (which name is local, which is the module's) and what of the text counts. Where a module's names lead,
:mod:`rewardkit.reach` knows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from sandbox import parse_expression

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class ImportTarget(NamedTuple):
    """What an import statement binds a name to.

    Attributes:
        module: The module's dotted name; empty in ``from . import name``.
        level: How many dots stood before it.
        name: What is taken out of the module; ``None`` for the module itself, ``"*"`` for all of it.
    """

    module: str
    level: int = 0
    name: str | None = None


class Use(NamedTuple):
    """One mention of a name that is bound outside.

    Attributes:
        name: The name.
        attributes: What is taken of it: ``a.b.c`` is ``a`` with ``("b", "c")``.
        target: Where an import inside the function binds it; ``None`` for a name of the module.
    """

    name: str
    attributes: tuple[str, ...] = ()
    target: ImportTarget | None = None


_Scope: TypeAlias = Mapping[str, ImportTarget | None]
_DYNAMIC = ("import_module", "__import__")
_DEEP = 150
"""Levels of a syntax tree that are walked by recursion; code that people write has some 40, lists of nodes included."""
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def imported(node: ast.Import | ast.ImportFrom) -> dict[str, ImportTarget]:
    """Return the names that an import statement binds."""
    if isinstance(node, ast.ImportFrom):
        return {one.asname or one.name: ImportTarget(node.module or "", node.level, one.name) for one in node.names}
    return {
        one.asname or one.name.partition(".")[0]: ImportTarget(one.name if one.asname else one.name.partition(".")[0])
        for one in node.names
    }


def uses(node: ast.AST, depth: int = 0) -> list[Use]:
    """Return the names that a statement or an expression of a module takes from the module, each once, in order.

    ``depth`` counts the levels of its deepest part; one that is nested too deep to walk has its local names too.
    """
    if depth > _DEEP:
        return list(dict.fromkeys(Use(part.id) for part in ast.walk(node) if isinstance(part, ast.Name)))
    return list(dict.fromkeys(_uses(node, ())))


def _uses(node: ast.AST, scopes: tuple[_Scope, ...]) -> Iterator[Use]:
    if isinstance(node, ast.Name):
        yield from _named(node.id, (), scopes)
    elif isinstance(node, ast.Attribute):
        yield from _attribute(node, scopes)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        yield from _of_function(node, scopes)
    elif isinstance(node, ast.ClassDef):
        outside = [*node.decorator_list, *node.bases, *node.keywords]
        for part in outside:
            yield from _uses(part, scopes)
        body: _Scope = _bound(node.body)
        for part in node.body:  # methods do not see what the class's body binds
            inner = scopes if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) else (*scopes, body)
            yield from _uses(part, inner)
    elif isinstance(node, _COMPREHENSIONS):
        yield from _uses(node.generators[0].iter, scopes)
        inside: _Scope = _bound([one.target for one in node.generators])
        for part in ast.iter_child_nodes(node):
            yield from _uses(part, (*scopes, inside))
    else:
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            match node.args:
                case [ast.Constant(value=str(module)), *_] if called in _DYNAMIC:
                    yield Use(module, (), ImportTarget(module))
        elif isinstance(node, ast.Global):
            yield from (Use(name) for name in node.names)
        for part in ast.iter_child_nodes(node):
            yield from _uses(part, scopes)


def _of_function(node: Function | ast.Lambda, scopes: tuple[_Scope, ...]) -> Iterator[Use]:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    outside: list[ast.AST] = [*arguments.defaults, *(one for one in arguments.kw_defaults if one is not None)]
    outside += [_annotation(one.annotation) for one in every if one.annotation is not None]
    if not isinstance(node, ast.Lambda):
        outside += node.decorator_list
        outside += [node.returns] if node.returns is not None else []
    for part in outside:
        yield from _uses(part, scopes)
    body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
    local: dict[str, ImportTarget | None] = {**dict.fromkeys(one.arg for one in every), **_bound(body)}
    for part in body:
        yield from _uses(part, (*scopes, local))


def _annotation(node: ast.expr) -> ast.AST:
    """Return an annotation's tree, also where it is quoted."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return parse_expression(node.value)
        except (SyntaxError, ValueError):
            return node
    return node


def _attribute(node: ast.Attribute, scopes: tuple[_Scope, ...]) -> Iterator[Use]:
    chain: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        chain.append(inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        yield from _named(inner.id, tuple(reversed(chain)), scopes)
    else:
        yield from _uses(inner, scopes)


def _named(name: str, attributes: tuple[str, ...], scopes: tuple[_Scope, ...]) -> Iterator[Use]:
    for scope in reversed(scopes):
        if name in scope:
            target = scope[name]
            if target is not None:
                yield Use(name, attributes, target)
            return
    yield Use(name, attributes)


def _bound(nodes: Iterable[ast.AST]) -> dict[str, ImportTarget | None]:
    """Return the names that a scope binds itself, those that it declares global aside."""
    found: dict[str, ImportTarget | None] = {}
    outer: set[str] = set()
    for node in nodes:
        for part in own_nodes(node):
            if isinstance(part, ast.Import | ast.ImportFrom):
                found.update(imported(part))
            elif isinstance(part, ast.Global | ast.Nonlocal):
                outer.update(part.names)
            else:
                found.update(dict.fromkeys(name for name in bound_by(part) if name not in found))
    return {name: target for name, target in found.items() if name not in outer}


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Return a statement's nodes without the insides of the functions, classes and comprehensions in it."""
    waiting = [node]
    while waiting:  # not by recursion: a sum of a thousand terms is a thousand levels deep
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


class Shape(NamedTuple):
    """What a piece of source says, alike in every version of Python; comments, layout, places and docstrings aside.

    Attributes:
        words: Its syntax tree, from left to right.
        depth: Levels of its deepest part.
    """

    words: Sequence[str]
    depth: int


class _Word(str):
    """A word of a shape among the nodes that wait."""


_IGNORED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def shape(node: ast.AST) -> Shape:
    """Return a piece of source's shape. Walks without recursion, so that it is the same however deep the caller is."""
    words: list[str] = []
    deepest = 0
    waiting: list[tuple[object, int]] = [(node, 0)]
    while waiting:
        part, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(part, _Word):
            words.append(part)
        elif isinstance(part, ast.Constant):
            words.append(f"{type(part.value).__name__} {part.value!r}")
        elif isinstance(part, ast.AST | list):
            waiting += [(inner, depth + 1) for inner in reversed(list(_inside(part)))]
        else:
            words.append(repr(part))
    return Shape(words, deepest)


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
    first = body[0] if body else None
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if documented and isinstance(first.value.value, str) else body  # type: ignore[union-attr]
