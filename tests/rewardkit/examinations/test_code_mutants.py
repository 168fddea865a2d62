"""Mutants of programs: each differs from the program in one place, and what cannot matter stays as it is."""

from __future__ import annotations

import ast

import pytest

from rewardkit.examinations.code_mutants import code_mutants, returning_none

SOURCE = '''\
def clamp(x: int, low: int = 0) -> int:
    """Return x, at least low."""
    assert x is not None, "no number"
    if x < low and x != 7:
        return low
    return x + 1
'''
CHANGES = {
    "line 4: '<' becomes '<='": "x <= low",
    "line 4: 'and' becomes 'or'": "x < low or x != 7",
    "line 4: '!=' becomes '=='": "x == 7",
    "line 4: 7 becomes 8": "x != 8",
    "line 1: 0 becomes 1": "low: int=1",
    "line 6: '+' becomes '-'": "return x - 1",
    "line 6: 1 becomes 0": "return x + 0",
    "line 4: a branch is never taken": "if False:",
    "line 4: a branch is always taken": "if True:",
    "line 5: None is returned": "return None",
}


def test_each_mutant_is_the_program_with_one_change() -> None:
    mutants = {mutant.label: mutant.source for mutant in code_mutants(SOURCE, 100)}
    assert {} == {label: text for label, text in CHANGES.items() if text not in mutants.get(label, "")}
    lines = ast.unparse(ast.parse(SOURCE)).splitlines()
    for source in mutants.values():
        assert 1 == sum(line != other for line, other in zip(lines, source.splitlines(), strict=True))


def test_docstrings_asserts_and_annotations_stay() -> None:
    for mutant in code_mutants(SOURCE, 100):
        assert all(text in mutant.source for text in ("Return x, at least low.", "assert x is not None", "-> int"))


@pytest.mark.parametrize(
    ("source", "change"),
    [
        ("for i in range(3): print(i)", "range(3 - 1)"),
        ("for i in range(1, n): print(i)", "range(1, n - 1)"),
        ("print(xs[1:n])", "xs[1:n - 1]"),
        ("print(not a)", "print(a)"),
        ("print(-a)", "print(a)"),
        ("print('yes' if a else 'no')", "if False else"),
        ("print('yes')", "'yesx'"),
        ("x += 1", "x -= 1"),
        ("print(a in b)", "a not in b"),
        ("print(True)", "print(False)"),
        ("print(1.5)", "2.5"),
    ],
)
def test_operators_constants_bounds_and_branches_are_changed(source: str, change: str) -> None:
    assert any(change in mutant.source for mutant in code_mutants(source, 100))


def test_few_mutants_are_of_every_kind() -> None:
    """Operators, constants, bounds and branches in turn; changes in loops that may not end come last."""
    labels = [mutant.label for mutant in code_mutants(SOURCE + "while x < 9:\n    x += 1\n", 100)]
    first = ["'and' becomes 'or'", "0 becomes 1", "'<' becomes '<='", "a branch is never taken"]
    assert first == [label.partition(": ")[2] for label in labels[:4]]
    in_loop = [label.startswith(("line 7", "line 8")) for label in labels]
    assert sorted(in_loop) == in_loop
    assert 6 == sum(in_loop)
    assert 3 == len(code_mutants(SOURCE, 3))


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nsys.setrecursionlimit(10 ** 6)",
        "print(x, flush=True)",
        "@lru_cache(maxsize=128)\ndef f(x): return None",
        "if __name__ == '__main__':\n    main()",
        "for a, b in zip(x, y, strict=True): print(a, b)",
    ],
)
def test_what_changes_no_result_stays(source: str) -> None:
    assert [] == [mutant.label for mutant in code_mutants(source, 8) if "branch" not in mutant.label]


@pytest.mark.parametrize("source", ["", "def f(:", "\0", "(" * 3_000, "pass", "x" * 10])
def test_what_cannot_be_changed_has_no_mutants(source: str) -> None:
    assert [] == code_mutants(source, 8)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(x):\n    return x\nprint(f(1))", "def f(x):\n    return None\nprint(f(1))"),
        ("class A:\n    def f(self): return 1", "class A:\n\n    def f(self):\n        return None"),
        ("print(1)", "pass"),
        ("def f(:", None),
        (f"x = {'+'.join('1' * 1_500)}\ndef f(): return x", None),
    ],
)
def test_functions_can_be_made_to_return_none(source: str, expected: str | None) -> None:
    assert expected == returning_none(source)
