"""A program with one small mistake written into it, as a hand would: layout, comments and all else stay."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import NamedTuple, TypeAlias

from rewardkit.examinations.code_mutants import (
    SIGNS,
    Change,
    CodeMutant,
    MutationSite,
    bound_sites,
    changed_tree,
    constant_sites,
    in_turn,
    is_test_for_main,
    numbers_in_loops,
    open_nodes,
    operator_sites,
)
from rewardkit.suites.source_text import Edit, SourceText
from sandbox import parse

_Step: TypeAlias = tuple[str, int | None]  # from a node to one below it: the field, and the index in a list


class _Deletion(NamedTuple):
    """A part of a program that is left out."""

    label: str
    edit: Edit


def code_edits(source: str, random: Random) -> Iterator[CodeMutant]:
    """Yield a program with one mistake at a time, of each kind in turn and in each kind in an order that is drawn.

    The kinds are operators, constants, bounds, conditions turned round, swapped arguments, and branches and statements
    left out. Nothing is yielded for what is no Python; changes in loops that may then not end are left out.
    """
    try:
        text = SourceText("the program", source)
    except ValueError:
        return
    endless = numbers_in_loops(text.tree)
    kinds: list[list[MutationSite | _Deletion]] = [
        [site for site in sites(text.tree) if site.number not in endless]
        for sites in (operator_sites, constant_sites, bound_sites, _turned_conditions, _swapped_arguments)
    ]
    kinds.append(list(_deletions(text)))
    for sites in kinds:
        random.shuffle(sites)
    steps = _steps_of(text.tree)
    for site in in_turn(kinds):
        with contextlib.suppress(RecursionError):  # a tree so deep cannot be copied
            changed = _deleted(text, site) if isinstance(site, _Deletion) else _edited(text, site, steps)
            if changed is not None:
                yield CodeMutant(site.label, changed)


def _deleted(text: SourceText, deletion: _Deletion) -> str | None:
    changed = text.replaced([deletion.edit])
    try:
        parse(changed)
    except (SyntaxError, ValueError):
        return None
    return changed


def _edited(text: SourceText, site: MutationSite, steps: dict[int, tuple[ast.AST, _Step]]) -> str | None:
    """Return the program with a site changed, by new text for the smallest expression that can have it."""
    wanted_tree = changed_tree(text.tree, site)
    wanted = ast.unparse(wanted_tree)
    if wanted == ast.unparse(text.tree):
        return None
    node = next(node for number, node in enumerate(ast.walk(text.tree)) if number == site.number)
    for region, path in _regions(node, steps):
        for written in _written(text, region, _at(wanted_tree, path)):
            changed = text.replaced([Edit(*text.span(region), written)])
            try:
                if ast.unparse(parse(changed)) == wanted:
                    return changed
            except (SyntaxError, ValueError):
                continue
    return None


def _regions(
    node: ast.AST, steps: dict[int, tuple[ast.AST, _Step]]
) -> Iterator[tuple[ast.expr | ast.stmt, list[_Step]]]:
    """Yield the expressions around a node from the inmost, up to its statement where that is one line of code."""
    path: list[_Step] = []
    inner = node
    while id(inner) in steps:
        inner, step = steps[id(inner)]
        path.insert(0, step)
    if isinstance(node, ast.If | ast.IfExp):  # of which no more than the condition is changed
        yield node.test, [*path, ("test", None)]
        return
    while isinstance(node, ast.expr):
        yield node, path
        node, path = steps[id(node)][0], path[:-1]
    if isinstance(node, ast.Return | ast.Assign | ast.AugAssign | ast.Expr):
        yield node, path


def _written(text: SourceText, old: ast.expr | ast.stmt, new: ast.AST) -> Iterator[str]:
    """Yield ways to write a changed expression: from its own text where that can be, or anew."""
    match old, new:
        case ast.Constant(value=str(first)), ast.Constant(value=str(second)) if second.startswith(first):
            written = text.segment(old)
            quotes = 3 if written.endswith(('"""', "'''")) else 1
            yield written[:-quotes] + second[len(first) :] + written[-quotes:]
        case ast.Call(args=[former, latter, *_]), ast.Call():
            spans = text.span(former), text.span(latter)
            edits = [Edit(*spans[0], text.segment(latter)), Edit(*spans[1], text.segment(former))]
            yield _segment_with(text, old, edits)
        case _, ast.UnaryOp(op=ast.Not()):
            yield f"not {text.segment(old)}"
            yield f"not ({text.segment(old)})"
        case _:
            yield _segment_with(text, old, list(_sign_edits(text, old, new)))
    yield ast.unparse(new)


def _segment_with(text: SourceText, node: ast.expr | ast.stmt, edits: list[Edit]) -> str:
    start, end = text.span(node)
    whole = text.replaced(edits)
    return whole[start : end + len(whole) - len(text.text)]


def _sign_edits(text: SourceText, old: ast.AST, new: ast.AST) -> Iterator[Edit]:
    """Yield the changes of the operators between the parts of an expression."""
    pairs: list[tuple[ast.expr, ast.expr, ast.AST, ast.AST]] = []
    match old, new:
        case ast.BinOp(), ast.BinOp():
            pairs = [(old.left, old.right, old.op, new.op)]
        case ast.Compare(), ast.Compare():
            pairs = [(old.left, old.comparators[0], old.ops[0], new.ops[0])]
        case ast.BoolOp(), ast.BoolOp():
            pairs = [(first, second, old.op, new.op) for first, second in pairwise(old.values)]
    for left, right, before, after in pairs:
        start, end = text.span(left)[1], text.span(right)[0]
        if type(before) in SIGNS and type(after) in SIGNS:
            yield Edit(start, end, text.text[start:end].replace(SIGNS[type(before)], SIGNS[type(after)], 1))


def _steps_of(tree: ast.AST) -> dict[int, tuple[ast.AST, _Step]]:
    """Return, by the identity of each node, the node above it and the step that leads from there."""
    steps: dict[int, tuple[ast.AST, _Step]] = {}
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if isinstance(value, ast.AST):
                steps[id(value)] = parent, (name, None)
            elif isinstance(value, list):
                steps.update({id(item): (parent, (name, index)) for index, item in enumerate(value)})
    return steps


def _at(tree: ast.AST, path: list[_Step]) -> ast.AST:
    node = tree
    for name, index in path:
        value = getattr(node, name)
        node = value if index is None else value[index]
    return node


def _turned_conditions(tree: ast.Module) -> Iterator[MutationSite]:
    for number, node in open_nodes(tree):
        if not isinstance(node, ast.If | ast.IfExp) or is_test_for_main(node.test):
            continue
        if not isinstance(node.test, ast.UnaryOp | ast.Compare):  # whose own operators are changed elsewhere
            yield MutationSite(number, f"line {node.lineno}: a condition is turned round", _turn_condition)


def _turn_condition(node: ast.AST) -> None:
    if isinstance(node, ast.If | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)


def _swapped_arguments(tree: ast.Module) -> Iterator[MutationSite]:
    change: Change = _swap_arguments
    for number, node in open_nodes(tree):
        match node:
            case ast.Call(args=[first, second, *_]) if not {type(first), type(second)} & {ast.Starred, ast.JoinedStr}:
                yield MutationSite(number, f"line {node.lineno}: two arguments are swapped", change)


def _swap_arguments(node: ast.AST) -> None:
    if isinstance(node, ast.Call):
        node.args[:2] = reversed(node.args[:2])


def _deletions(text: SourceText) -> Iterator[_Deletion]:
    """Yield an ``else``, an ``if`` and a call or assignment in place, each where other statements stay beside it."""
    for parent in ast.walk(text.tree):
        if not isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.If | ast.For):
            continue
        for node in parent.body:
            if isinstance(node, ast.If) and node.orelse and not isinstance(node.orelse[0], ast.If):
                start = text.span(node.body[-1])[1]
                yield _Deletion(f"line {node.lineno}: the else is left out", Edit(start, text.span(node)[1], ""))
            elif len(parent.body) > 1 and isinstance(node, ast.If | ast.AugAssign) and not getattr(node, "orelse", ()):
                what = "a branch" if isinstance(node, ast.If) else "a statement"
                yield _Deletion(f"line {node.lineno}: {what} is left out", _line_edit(text, node))


def _line_edit(text: SourceText, node: ast.stmt) -> Edit:
    """Return the removal of a statement with its indentation and the end of its last line."""
    start, end = text.span(node)
    first = text.text.rfind("\n", 0, start) + 1
    last = text.text.find("\n", end)
    return Edit(first, len(text.text) if last < 0 else last + 1, "")
