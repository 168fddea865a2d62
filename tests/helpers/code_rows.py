"""Rows of code problems in the forms of four data sets: KodCode, BigCodeBench, LeetCode and APPS, fifty of each.

The problems are one table: a name, parameters, a right and a wrong expression, and arguments. The right expression says
what each call must return. Each form adds what its data set is known for: imports of ``solution``, classes of
``unittest`` behind a stub, methods of ``Solution`` with linked lists and trees, standard input.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Problem(NamedTuple):
    """A function by two expressions, and the arguments of its calls; the wrong one differs for at least one of them."""

    name: str
    parameters: str
    right: str
    wrong: str
    calls: tuple[tuple[Any, ...], ...]

    def expected(self) -> list[Any]:
        """Return what the right expression gives for each call."""
        return [eval(f"lambda {self.parameters}: {self.right}", {})(*call) for call in self.calls]

    def source(self, expression: str, name: str = "") -> str:
        """Return the function with one of the expressions."""
        return f"def {name or self.name}({self.parameters}):\n    return {expression}\n"


class Row(NamedTuple):
    """A row: its columns, a right and a wrong completion."""

    name: str
    columns: dict[str, Any]
    right: str
    wrong: str


_N, _WORDS = ((0,), (1,), (7,), (12,)), (("",), ("a",), ("hello world",), ("Noon",))
_LISTS, _PAIRS = (([],), ([3],), ([3, 1, 2],), ([5, 5, -1],)), ((1, 2), (5, 3), (0, 4), (-2, 7))
PROBLEMS = [Problem(*row) for row in [
    ("add", "a, b", "a + b", "a - b", _PAIRS),
    ("larger", "a, b", "max(a, b)", "a", _PAIRS),
    ("power", "a, b", "a ** b if b > 0 else 1", "a * b", _PAIRS),
    ("span", "a, b", "list(range(a, b))", "[a, b]", _PAIRS),
    ("swap", "a, b", "(b, a)", "[b, a]", _PAIRS),
    ("gap", "a, b", "abs(a - b)", "a - b", _PAIRS),
    ("mean_of", "a, b", "(a + b) / 2", "(a + b) // 2", _PAIRS),
    ("pair", "a, b", "{'a': a, 'b': b}", "{'a': b, 'b': a}", _PAIRS),
    ("both", "a, b", "a > 0 and b > 0", "a > 0 or b > 0", _PAIRS),
    ("mixed", "a, b", "[a, (b, [a])]", "[a, [b, [a]]]", _PAIRS),
    ("square", "n", "n * n", "n + n", _N),
    ("is_even", "n", "n % 2 == 0", "n % 2 == 1", _N),
    ("digits", "n", "[int(d) for d in str(n)]", "list(str(n))", _N),
    ("halves", "n", "n / 2", "n // 2", _N),
    ("countdown", "n", "list(range(n, -1, -1))", "list(range(n, 0, -1))", _N),
    ("binary", "n", "bin(n)[2:]", "bin(n)", _N),
    ("triangle", "n", "n * (n + 1) // 2", "n * (n - 1) // 2", _N),
    ("stars", "n", "'*' * n", "'*' * (n + 1)", _N),
    ("factors", "n", "{d for d in range(1, n + 1) if n % d == 0}", "{d for d in range(1, n) if n % d == 0}", _N),
    ("third", "n", "n / 3", "round(n / 3, 2)", _N),
    ("parity", "n", "None if n % 2 else 'even'", "'even'", _N),
    ("bits", "n", "bin(n).count('1')", "bin(n).count('0')", _N),
    ("table", "n", "{k: k * k for k in range(n)}", "{}", _N),
    ("as_bytes", "n", "bytes([n])", "str(n).encode()", _N),
    ("rotation", "n", "complex(n, 1)", "complex(1, n)", _N),
    ("reverse", "s", "s[::-1]", "s", _WORDS),
    ("vowels", "s", "sum(c in 'aeiou' for c in s)", "len(s)", _WORDS),
    ("upper", "s", "s.upper()", "s.title()", _WORDS),
    ("words", "s", "s.split()", "s.split(' ')", _WORDS),
    ("letters", "s", "{c: s.count(c) for c in s}", "{c: 1 for c in s}", _WORDS),
    ("first", "s", "s[:1]", "s[-1:]", _WORDS),
    ("is_palindrome", "s", "s.lower() == s.lower()[::-1]", "s == s[::-1]", _WORDS),
    ("size", "s", "len(s)", "len(s) + 1", _WORDS),
    ("doubled", "s", "''.join(c * 2 for c in s)", "s * 2", _WORDS),
    ("codes", "s", "tuple(map(ord, s))", "list(map(ord, s))", _WORDS),
    ("unique", "s", "set(s)", "list(s)", _WORDS),
    ("title", "s", "s.title()", "s.capitalize()", _WORDS),
    ("spaces", "s", "s.count(' ')", "0", _WORDS),
    ("accents", "s", "s + 'é'", "s + 'e'", _WORDS),
    ("quoted", "s", "f'\"{s}\"'", "s", _WORDS),
    ("total", "xs", "sum(xs)", "len(xs)", _LISTS),
    ("ordered", "xs", "sorted(xs)", "xs", _LISTS),
    ("backwards", "xs", "xs[::-1]", "sorted(xs)", _LISTS),
    ("largest", "xs", "max(xs, default=None)", "min(xs, default=None)", _LISTS),
    ("distinct", "xs", "len(set(xs))", "len(xs)", _LISTS),
    ("squares", "xs", "[x * x for x in xs]", "[x + x for x in xs]", _LISTS),
    ("positives", "xs", "[x for x in xs if x > 0]", "[x for x in xs if x >= 3]", _LISTS),
    ("ends", "xs", "xs[:1] + xs[-1:]", "xs[:2]", _LISTS),
    ("pairs", "xs", "list(zip(xs, xs[1:]))", "[]", _LISTS),
    ("running", "xs", "[sum(xs[:k + 1]) for k in range(len(xs))]", "xs", _LISTS),
]]  # fmt: skip
"""Fifty problems."""
_FENCE = "Here is my solution:\n\n```python\n{}```\n"


def kodcode_rows() -> Iterator[Row]:
    """Yield rows whose tests are pytest functions that import ``solution``."""
    for number, problem in enumerate(PROBLEMS):
        name, checks = problem.name, list(zip(problem.calls, problem.expected(), strict=True))
        match number % 4:
            case 0:
                body = "".join(
                    f"def test_{name}_{k}():\n    assert {name}(*{call!r}) == {value!r}\n\n"
                    for k, (call, value) in enumerate(checks)
                )
            case 1:
                body = (
                    f"import pytest\n\n@pytest.mark.parametrize('call, value', {checks!r})\n"
                    f"def test_{name}(call, value):\n    assert {name}(*call) == value\n"
                )
            case 2:
                lines = "".join(
                    f"    def test_{k}(self):\n        result = {name}(*{call!r})\n        assert result == {value!r}\n"
                    for k, (call, value) in enumerate(checks)
                )
                body = f"class Test{name.title()}:\n{lines}"
            case _:
                body = (
                    f"import pytest\n\n@pytest.fixture\ndef checks():\n    return {checks!r}\n\n"
                    f"def test_{name}(checks):\n    for call, value in checks:\n"
                    f"        assert {name}(*call) == value\n\n"
                    f"def test_arguments():\n    with pytest.raises(TypeError):\n        {name}()\n"
                )
        tests = f"from solution import {name}\n\n{body}"
        sources = (_FENCE.format(problem.source(text)) for text in (problem.right, problem.wrong))
        yield Row(name, {"tests": tests}, *sources)


def bigcodebench_rows() -> Iterator[Row]:
    """Yield rows with a stub for a prompt, ``task_func`` for an entry point and a class of ``unittest`` for tests."""
    for number, problem in enumerate(PROBLEMS):
        stub = f'import json\n\ndef task_func({problem.parameters}):\n    """\n    Give the {problem.name}.\n    """\n'
        lines = ["import unittest", "import json", "", "class TestCases(unittest.TestCase):"]
        lines += ["    def setUp(self):", "        self.seen = []", ""]
        for k, (call, value) in enumerate(zip(problem.calls, problem.expected(), strict=True)):
            method = "assertEqual" if not isinstance(value, float) else "assertAlmostEqual"
            lines += [f"    def test_case_{k}(self):", f"        result = task_func(*{call!r})"]
            lines += [
                f"        self.{method}(result, {value!r})",
                f"        self.assertIsInstance(result, type({value!r}))",
                "",
            ]
        lines += ["    def test_errors(self):", "        with self.assertRaises(TypeError):", "            task_func()"]
        lines += ["", "if __name__ == '__main__':", "    unittest.main()"][: 3 * (number % 2)]
        columns = {"tests": "\n".join(lines), "entry_point": "task_func", "prompt": stub}
        bodies = (f"    return {text}\n" for text in (problem.right, problem.wrong))
        form = _FENCE.format(stub + "{}").format if number % 3 else "{}".format
        yield Row(problem.name, columns, *map(form, bodies))


_LIST_NODES = """
class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next

def list_node(values):
    head = tail = ListNode()
    for value in values:
        tail.next = ListNode(value)
        tail = tail.next
    return head.next

def is_same_list(one, other):
    while one and other and one.val == other.val:
        one, other = one.next, other.next
    return one is None and other is None
"""
_TREES = """
class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val = val
        self.left = left
        self.right = right

def tree_node(values):
    nodes = [None if value is None else TreeNode(value) for value in values]
    for place, node in enumerate(nodes):
        if node is not None:
            node.left = nodes[2 * place + 1] if 2 * place + 1 < len(nodes) else None
            node.right = nodes[2 * place + 2] if 2 * place + 2 < len(nodes) else None
    return nodes[0] if nodes else None

def is_same_tree(one, other):
    if one is None or other is None:
        return one is other
    return one.val == other.val and is_same_tree(one.left, other.left) and is_same_tree(one.right, other.right)
"""
_REVERSED = """        back = None
        while head:
            head.next, back, head = back, head, head.next
        return back
"""
_MIRRORED = """        if root:
            root.left, root.right = self.invert(root.right), self.invert(root.left)
        return root
"""
_DOUBLED = """        node = head
        while node:
            node.val *= 2
            node = node.next
"""
_DOUBLED_IN_PLACE = """head = list_node([1, 2])
    assert candidate(head) is None
    assert is_same_list(head, list_node([2, 4]))"""
_IN_ORDER = "        return [] if root is None else self.values(root.left) + [root.val] + self.values(root.right)\n"
_NODES: list[tuple[str, str, str, str, str, str]] = [
    (_LIST_NODES, "reverse", "head: Optional[ListNode]", _REVERSED, "        return head\n",
     "assert is_same_list(candidate(head=list_node([1, 2, 3])), list_node([3, 2, 1]))"),
    (_LIST_NODES, "reverse", "head", _REVERSED, "        return None\n",
     "assert is_same_list(candidate(list_node(range(300))), list_node(reversed(range(300))))"),
    (_LIST_NODES, "length", "head", "        return 1 + self.length(head.next) if head else 0\n", "        return 0\n",
     "assert candidate(list_node([4, 5])) == 2"),
    (_LIST_NODES, "push", "head, n", "        return ListNode(n, head)\n", "        return head\n",
     "assert is_same_list(candidate(list_node([2]), 1), list_node([1, 2]))"),
    (_LIST_NODES, "double", "head", _DOUBLED, "        pass\n", _DOUBLED_IN_PLACE),
    (_TREES, "invert", "root: Optional[TreeNode]", _MIRRORED, "        return root\n",
     "assert is_same_tree(candidate(tree_node([1, 2, 3, 4])), tree_node([1, 3, 2, None, None, None, 4]))"),
    (_TREES, "depth", "root", "        return 1 + max(self.depth(root.left), self.depth(root.right)) if root else 0\n",
     "        return 1\n", "assert candidate(tree_node([1, 2, 3, 4])) == 3"),
    (_TREES, "values", "root: 'Optional[TreeNode]') -> 'List[int]", _IN_ORDER,
     "        return []\n", "assert candidate(tree_node([2, 1, 3])) == [1, 2, 3]"),
    (_TREES, "leaf", "n", "        return TreeNode(n)\n", "        return TreeNode(0)\n",
     "assert is_same_tree(candidate(5), tree_node([5]))"),
    (_TREES, "pick", "root, node", "        return node.val\n", "        return root.val\n",
     "root = tree_node([1, 2, 3])\n    assert candidate(root, root.left) == 2"),
]  # fmt: skip


def _keywords(names: list[str], call: tuple[Any, ...]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in zip(names, call, strict=True))


def leetcode_rows() -> Iterator[Row]:
    """Yield rows with methods of ``Solution``: forty of the problems, and ten with linked lists and trees."""
    for number, problem in enumerate(PROBLEMS[:40]):
        names = problem.parameters.split(", ")
        hints = ", ".join(f"{name}: {('int', 'Optional[Any]')[number % 2]}" for name in names)
        checks = "".join(
            f"    assert candidate({_keywords(names, call)}) == {result!r}\n"
            for call, result in zip(problem.calls, problem.expected(), strict=True)
        )
        columns = {"tests": f"def check(candidate):\n{checks}", "entry_point": f"Solution().{problem.name}"}
        method = f"class Solution:\n    def {problem.name}(self, {hints}) -> Any:\n        return "
        yield Row(
            problem.name, columns, *(_FENCE.format(f"{method}{text}\n") for text in (problem.right, problem.wrong))
        )
    for helpers, name, parameters, right, wrong, check in _NODES:
        prompt = f"from typing import *\n{helpers}"
        columns = {
            "tests": f"def check(candidate):\n    {check}\n",
            "entry_point": f"Solution().{name}",
            "prefix": prompt,
        }
        method = f"class Solution:\n    def {name}(self, {parameters}):\n".replace("List[int]):", "List[int]':")
        yield Row(name, columns, _FENCE.format(method + right), _FENCE.format(method + wrong))


def apps_rows() -> Iterator[Row]:
    """Yield rows of inputs and outputs: half of them calls of a function, half programs that read standard input."""
    for number, problem in enumerate(PROBLEMS):
        expected = problem.expected()
        if number % 2 and _as_json(expected) == expected:
            columns = {
                "inputs": json.dumps(problem.calls),
                "outputs": json.dumps(expected),
                "entry_point": problem.name,
            }
            sources = (problem.source(text) for text in (problem.right, problem.wrong))
        else:
            columns = {
                "inputs": [f"{json.dumps(call)}\n" for call in problem.calls],
                "outputs": [
                    f"{value!r}\n" if not isinstance(value, set) else f"{sorted(value)}\n" for value in expected
                ],
            }
            sources = (_program(problem, text) for text in (problem.right, problem.wrong))
        yield Row(problem.name, columns, *map(_FENCE.format, sources))


def _as_json(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value))
    except TypeError:
        return None


def _program(problem: Problem, expression: str) -> str:
    source = problem.source(expression, "solve")
    show = "print(sorted(result) if isinstance(result, set) else repr(result))"
    return f"import json\n\n{source}\nresult = solve(*json.loads(input()))\n{show}\n"


FORMS: dict[str, Callable[[], Iterator[Row]]] = {
    "KodCode": kodcode_rows, "BigCodeBench": bigcodebench_rows, "LeetCode": leetcode_rows, "APPS": apps_rows,
}  # fmt: skip
