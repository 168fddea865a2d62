"""Asserts after whose failure a test goes on, so that one run shows what becomes of each of them.

A statement is wrapped where it stands: ``assert f(2) == 4`` on line 7 becomes ``with __statement__(7): assert f(2) ==
4``. What that name stands for notes whether the statement failed, and the test goes on behind it. All statements in
which a test can be changed are wrapped, whether they are changed or not.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Sequence, Set
from typing import NamedTuple

from rewardkit.suites.source_text import Edit, SourceText

WRAPPER = "__statement__"
"""The name, among Python's builtins, of what a wrapped statement stands in."""


class SoftStatement(NamedTuple):
    """A statement that can be wrapped.

    Attributes:
        line: Where it begins, which names it in its test.
        edit: What wraps it.
        loop: The line of the loop in which it stands; 0 for none.
        binds: The names that it gives a value by ``as``, as ``raises`` does when it has caught what was expected.
        reads: The names that it reads.
    """

    line: int
    edit: Edit
    loop: int
    binds: frozenset[str]
    reads: frozenset[str]


def soft_statement(source: SourceText, node: ast.stmt, loop: int) -> SoftStatement | None:
    """Return how a statement is wrapped; ``None`` where it shares its lines with others, or with has a parenthesis."""
    start, end = source.span(node)
    text = source.text
    before = text[max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1 : start]
    rest = text[end:].splitlines()[:1]
    after = rest[0].strip() if rest else ""
    is_continued = text[: start - len(before)].rstrip("\r\n").endswith("\\")
    if before.strip("\ufeff \t\f") or is_continued or (after and not after.startswith("#")):
        return None
    names = [inner for inner in ast.walk(node) if isinstance(inner, ast.Name)]
    reads = frozenset(name.id for name in names if isinstance(name.ctx, ast.Load))
    match node:
        case ast.Assert() | ast.Expr():
            edit, binds = Edit(start, start, f"with {WRAPPER}({node.lineno}): "), frozenset[str]()
        case ast.With(items=items):
            first = source.span(items[0].context_expr)[0]
            if text[start + len("with") : first].strip():
                return None
            edit = Edit(first, first, f"{WRAPPER}({node.lineno}), ")
            bound = [item.optional_vars for item in items if item.optional_vars is not None]
            binds = frozenset(name.id for target in bound for name in ast.walk(target) if isinstance(name, ast.Name))
        case _:
            return None
    return SoftStatement(node.lineno, edit, loop, binds, reads)


class StatementChange(NamedTuple):
    """What a change of a test is to its statements.

    Attributes:
        lines: Those at which a test then fails; ``()`` where they are not known.
        statement: The one that then fails; ``None`` where it cannot be wrapped.
        variable: The variable whose value is changed; ``""`` for a value that stands in the statement.
        is_read_later: Whether that variable is used for more than to be compared.
        row: The round of the statement's loop in which it then fails; ``None`` for all.
        rounds: How many rounds that loop has.
    """

    lines: frozenset[int] = frozenset()
    statement: SoftStatement | None = None
    variable: str = ""
    is_read_later: bool = False
    row: int | None = None
    rounds: int = 0


class Assertion(NamedTuple):
    """What of a test is changed, or not, by itself: a soft statement, one round of it, or several of one variable.

    A test that has other statements too is changed as a whole.

    Attributes:
        name: The test's name, with the line of a statement.
        places: Which of the test's changes it has.
        lines: The statements; ``()`` for a whole test.
        loop: The line of the loop in which they stand; 0 for none.
        row: The round that is changed; ``None`` for all.
        rounds: How many rounds there are.
        disturbed: The names of the test's assertions that fail too, or are not reached, when it is changed.
    """

    name: str
    places: tuple[int, ...]
    lines: tuple[int, ...] = ()
    loop: int = 0
    row: int | None = None
    rounds: int = 0
    disturbed: frozenset[str] = frozenset()


def assertions_of(test: str, changes: Sequence[StatementChange]) -> tuple[Assertion, ...]:
    """Return what of a test is changed by itself, in the order in which it runs.

    Args:
        test: Its name.
        changes: What each of its changes is to its statements.
    """
    statements = [change.statement for change in changes if change.statement is not None]
    if not changes or len(statements) < len(changes):
        return (Assertion(test, tuple(range(len(changes)))),)
    rows = _rows(statements, changes)
    keys = [
        {(statement.line, row), (change.variable or statement.line, row)}
        for statement, change, row in zip(statements, changes, rows, strict=True)
    ]
    assertions = []
    for places in _joined(keys):
        first, row = statements[places[0]], rows[places[0]]
        lines = tuple(sorted({statements[index].line for index in places}))
        name = f"{test}:{lines[0]}" + ("" if row is None else f"#{row}")
        loop = max(statements[index].loop for index in places)
        rounds = changes[places[0]].rounds
        assertions.append((first.loop or lines[0], row or 0, Assertion(name, places, lines, loop, row, rounds)))
    ordered = [assertion for *_, assertion in sorted(assertions, key=lambda entry: (*entry[:2], entry[2].lines))]
    return tuple(
        assertion._replace(disturbed=_disturbed(assertion, ordered[index + 1 :], statements, changes))
        for index, assertion in enumerate(ordered)
    )


def _rows(statements: Sequence[SoftStatement], changes: Sequence[StatementChange]) -> list[int | None]:
    """Return the round of each change; ``None`` for those of statements that are changed in all rounds too."""
    rows = [change.row for change in changes]
    keys = [{statement.line, change.variable} for statement, change in zip(statements, changes, strict=True)]
    before = -1
    while before != rows.count(None):
        before = rows.count(None)
        whole = set().union(*(own for own, row in zip(keys, rows, strict=True) if row is None)) - {""}
        rows = [None if own & whole else row for own, row in zip(keys, rows, strict=True)]
    return rows


def _joined(keys: Sequence[Set[Hashable]]) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of sets that have something in common, or are joined by others."""
    joined: list[tuple[Set[Hashable], list[int]]] = []
    for number, own in enumerate(keys):
        common = [entry for entry in joined if not entry[0].isdisjoint(own)]
        joined = [entry for entry in joined if entry[0].isdisjoint(own)]
        numbers = [other for _, others in common for other in others]
        joined.append((frozenset(own).union(*(names for names, _ in common)), [*numbers, number]))
    yield from (tuple(sorted(numbers)) for _, numbers in joined)


def _disturbed(
    assertion: Assertion,
    later: Sequence[Assertion],
    statements: Sequence[SoftStatement],
    changes: Sequence[StatementChange],
) -> frozenset[str]:
    """Return the names of later assertions that a change disturbs: of its round, or those that read what it binds."""
    if any(changes[index].is_read_later for index in assertion.places):
        return frozenset(
            other.name
            for other in later
            if other.loop != assertion.loop or None in (assertion.row, other.row) or other.row == assertion.row
        )
    alive = {name for index in assertion.places for name in statements[index].binds}
    disturbed = set()
    for other in later:
        if any(not alive.isdisjoint(statements[index].reads) for index in other.places):
            disturbed.add(other.name)
        alive -= {name for index in other.places for name in statements[index].binds}
    return frozenset(disturbed)
