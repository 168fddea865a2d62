"""One mistake at a time in a program: the smallest change of its text, and all else as it was."""

from __future__ import annotations

import ast
from random import Random

import pytest

from rewardkit.harbor.code_edits import code_edits

SOURCE = '''\
# é: a comment before
LIMIT = 10  # a comment

def clamp( x, low = 0 ):
    """Return x, at least low."""
    if x < low and (x != 7
                    or low):  # why
        return  low
    else:
        print("it is", x)
    if ready(x):
        x += 1
    return min(x, "a" if x else LIMIT)
'''
CHANGES = {
    "line 6: '<' becomes '<='": "x <= low and (x != 7\n                    or low):  # why",
    "line 6: 'and' becomes 'or'": "x < low or (x != 7",
    "line 6: 'or' becomes 'and'": "                    and low):  # why",
    "line 6: 7 becomes 8": "(x != 8\n",
    "line 10: 'it is' becomes 'it isx'": '("it isx", x)',
    "line 10: two arguments are swapped": '(x, "it is")',
    "line 11: a condition is turned round": "if not ready(x):",
    "line 13: a condition is turned round": '"a" if not x else LIMIT',
    "line 13: two arguments are swapped": 'min("a" if x else LIMIT, x)',
    "line 6: the else is left out": "        return  low\n    if ready(x):",
    "line 11: a branch is left out": '        print("it is", x)\n    return min',
    "line 2: 10 becomes 9": "LIMIT = 9  # a comment\n",
    "line 4: 0 becomes 1": "low = 1 ):",
}


def test_a_mistake_is_written_as_a_hand_would() -> None:
    """Each label has its change, the comments stay but where a branch goes, and the result is Python."""
    edits = {edit.label: edit.source for edit in code_edits(SOURCE, Random(0))}
    assert {} == {label: text for label, text in CHANGES.items() if text not in edits.get(label, "")}
    for label, source in edits.items():
        assert ast.unparse(ast.parse(source)) != ast.unparse(ast.parse(SOURCE))
        assert source.startswith("# é: a comment before\n")
        assert ("# why" in source, '"""Return x, at least low."""' in source) == (True, True), label


@pytest.mark.parametrize(
    "source", ["", "def f(:", "x\0", "while x < 9:\n    x += 1\n", "import os\n", '"""Only words."""\n']
)
def test_there_is_nothing_to_change(source: str) -> None:
    """No Python, no code, and a loop that may not end."""
    assert [] == list(code_edits(source, Random(0)))


def test_the_order_is_drawn() -> None:
    """Of the same seed the same, kinds in turn."""
    orders = [[edit.label for edit in code_edits(SOURCE, Random(seed))] for seed in (1, 1, 2)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])
    assert len(orders[0]) == len({*orders[0]})
