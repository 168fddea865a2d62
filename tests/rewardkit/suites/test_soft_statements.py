"""Asserts after which a test goes on: which statements are wrapped, what is changed by itself, and drawn suites."""

from __future__ import annotations

import ast
import re
from random import Random

import pytest

from rewardkit.suites.canaries import Canaries
from rewardkit.suites.soft_statements import WRAPPER, soft_statement
from rewardkit.suites.source_text import SourceText, replaced_text
from rewardkit.suites.twins import SuiteTwins
from tests.rewardkit.suites.test_partly_right import TRUTH, graded, value


@pytest.mark.parametrize(
    ("statement", "wrapped"),
    [
        ("assert f(1) == 2", "with __statement__(2): assert f(1) == 2"),
        ("assert f(1) == 2  # so it is", "with __statement__(2): assert f(1) == 2  # so it is"),
        ("assert f(1) == (\n        2\n    )", "with __statement__(2): assert f(1) == (\n        2\n    )"),
        ("self.assertEqual(f(1), 2)", "with __statement__(2): self.assertEqual(f(1), 2)"),
        ("with raises(E): f(1)", "with __statement__(2), raises(E): f(1)"),
        ("with raises(E) as e:\n        f(1)", "with __statement__(2), raises(E) as e:\n        f(1)"),
        ("with \\\n        raises(E): f(1)", None),
        ("with (raises(E), open(p)): f(1)", None),
        ("assert f(1) == 2; g()", None),
        ("g(); assert f(1) == 2", None),
        ("if g(): assert f(1) == 2", None),
        ("for a in b: assert f(1) == 2", None),
        ("if g(): \\\n        assert f(1) == 2", None),
    ],
)
def test_a_statement_that_has_its_lines_for_itself_is_wrapped(statement: str, wrapped: str | None) -> None:
    """The others are not, and all that is wrapped can still be read."""
    source = SourceText("test_s.py", f"def test_f():\n    {statement}\n")
    kinds = ast.Assert | ast.With | ast.Expr
    nodes = [node for node in ast.walk(source.tree) if isinstance(node, kinds) and "f(1)" in ast.unparse(node)]
    soft = soft_statement(source, nodes[0], 0)
    text = None if soft is None else replaced_text(source.text, [soft.edit])
    assert (None if wrapped is None else f"def test_f():\n    {wrapped}\n") == text
    if text is not None:
        ast.parse(text)


CATCH = "with pytest.raises(KeyError)"
ROWS = "for a, b in [(1, 27), (2, 34)]:"


def assertions(body: str) -> dict[str, str]:
    """Return what of a test is changed by itself, with what it disturbs."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    twins = SuiteTwins({"test_s.py": f"import pytest\nfrom solution import f\ndef test_f():\n{lines}"})
    return {
        assertion.name.partition("test_f")[2]: " ".join(
            sorted(name.partition("test_f")[2] for name in assertion.disturbed)
        )
        for assertion in twins.assertions("test_s.py::test_f")
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("assert f(1) == 27\nassert f(2) == 34", {":4": "", ":5": ""}),
        ("assert f(1) == 27\nassert f(2)", {":4": "", ":5": ""}),
        ("assert f(1) == 27 and f(2) == 34", {":4": ""}),
        ("a = 27\nassert f(1) == a\nassert f(2) == 34\nassert a == f(3)", {":5": "", ":6": ""}),
        (
            "a = 27\nassert f(1) == a\nassert f(2) == 34\nprint(a)\nassert f(3) == 41",
            {":5": ":6 :8", ":6": "", ":8": ""},
        ),
        (f"{CATCH} as e:\n    f(1)\nassert e.value.args == (27,)\nassert f(2) == 34", {":4": ":6", ":6": "", ":7": ""}),
        (f"{ROWS}\n    assert f(a) == b", {":5#0": "", ":5#1": ""}),
        (f"{ROWS}\n    assert f(a) == b\n    assert b == f(a)", {":5#0": "", ":5#1": ""}),
        (f"{ROWS}\n    assert f(a) == b\n    assert f(7) == 83", {":6": "", ":5#0": "", ":5#1": ""}),
        (f"{ROWS}\n    assert f(a) == b and f(7) == 83", {":5": ""}),
        (f"{ROWS}\n    for c in [1, 2]:\n        assert f(a) == b", {":6": ""}),
        ("for a, b in {1: 27, 2: 34}.items():\n    assert f(a) == b", {":5#0": "", ":5#1": ""}),
        ("for a, b in {27: 1, 34: 2}.items():\n    assert f(b) == a", {":5": ""}),
        ("assert f(1) == 27; f(2)\nassert f(2) == 34", {"": ""}),
        ("assert f(1) == 27\nassert f(2); f(3)", {":4": ""}),
    ],
)
def test_what_is_changed_by_itself(body: str, expected: dict[str, str]) -> None:
    """A statement, a round of a loop over rows, several statements that compare one variable, or the test.

    The key of a dictionary is no value to change: it might become another key.
    """
    assert expected == assertions(body)


def test_all_statements_are_wrapped_whatever_is_changed() -> None:
    """So that who reads the test does not see in it which one is changed."""
    twins = SuiteTwins(
        {"test_s.py": "from solution import f\ndef test_f():\n    assert f(1) == 27\n    assert f(2) == 34\n"}
    )
    for name in ("test_s.py::test_f:3", "test_s.py::test_f:4"):
        text = twins.draw([name], Random(0), is_soft=True).files["test_s.py"]
        assert 2 == text.count(WRAPPER)
    assert WRAPPER not in twins.draw([], Random(0)).files["test_s.py"]


def test_one_at_a_time_of_a_test_then_of_its_file_then_of_all() -> None:
    """As far as oddities go, and no farther."""
    tests = {f"{file}::{test}:{line}": f"{file}::{test}" for file in "ab" for test in "xy" for line in (1, 2)}
    canaries = Canaries({name: [1] for name in tests}, 10, Random(0), tests=tests)

    def most_changed() -> tuple[int, int, int]:
        drawn = [canaries.draw() for _ in range(2000)]
        return tuple(
            max(sum(name.startswith(group) for name in names) for names in drawn) for group in ("a::x", "a", "")
        )

    assert (2, 4, 8) == most_changed()
    assert [] == canaries.settle(["a::x:1"])
    assert (1, 3, 7) == most_changed()
    assert ["a::x"] == canaries.settle(["a::x:2"])
    assert canaries.widen("a::x")
    assert (1, 1, 5) == most_changed()
    assert canaries.widen("a")
    assert (1, 1, 1) == most_changed()
    assert not canaries.widen("")


READS_ITSELF = f"""import inspect
from solution import f

def test_f():
    assert inspect.getsource(test_f).count("with") == 1
    assert f(1) == {value(1)}

def test_g():
    assert f(2) == {value(2)}
    assert f(3) == {value(3)}
"""


def test_a_test_that_sees_the_wrapping_is_run_without() -> None:
    """Right code passes, and what copies is seen."""
    assert graded(TRUTH, READS_ITSELF).passed
    for wrong in (1, 3):
        assert not graded(COPIES.format(truth=TRUTH, wrong=wrong), READS_ITSELF).passed


FORMS = [
    "assert f(N) == V",
    "assert V == f(N)  # so it is",
    "assert f(N) == (\n    V\n)",
    "eN = V\nassert f(N) == eN",
    "eN = V\nassert f(N) == eN\nprint(eN + 1)",
    "eN = V\nassert f(N) == eN\nassert eN == f(N) + 0",
    "for a, eN in [(N, V), (7, 1047)]:\n    assert f(a) == eN",
    "for a, eN in {N: V, 7: 1047}.items():\n    assert f(a) == eN\n    assert f(3) == 650",
    "for a, eN in [(N, V), (2, 803)]:\n    for _ in range(2):\n        assert f(a) == eN",
    "with pytest.raises(ValueError) as error:\n    f(-N)\nassert error.value.args == (-N,)",
    "with pytest.raises(ValueError) as error:\n    f(-N)\nshown = str(error.value)\nassert shown == '-N'",
    "with nullcontext(), pytest.raises(ValueError):\n    f(-N)",
    "with nullcontext():\n    assert f(N) == V",
    "assert f(N) < V + 1",
    "assert f(N)",
    "try:\n    assert f(N) == V\nfinally:\n    f(1)",
    "if f(N):\n    assert f(N) == V",
    "eN = V\nif f(1):\n    assert f(N) == eN\nassert f(N) == eN",
    "seen.append(f(N))\nassert len(seen) == COUNT",
    "assert (kN := f(N)) == V\nassert kN - V == 0",
]
HARD = [
    "f(1); assert f(N) == V",
    "for a, eN in [(N, V)]: assert f(a) == eN",
    "with (nullcontext(), pytest.raises(ValueError)): f(-N)",
]
"""Statements that cannot be wrapped."""


def drawn_suite(random: Random) -> tuple[str, list[int]]:
    """Return a suite of tests with statements of many forms, and the numbers of which they ask."""
    lines = ["import pytest", "from contextlib import nullcontext", "from solution import f"]
    numbers = random.sample(range(10, 90), 30)
    asked: list[int] = []
    for test in range(random.randint(1, 4)):
        forms = FORMS if random.random() < 0.8 else FORMS + HARD
        lines += [f"def test_{test}():", "    seen = []"]
        count = 0
        for _ in range(random.randint(1, 6)):
            form, number = random.choice(forms), numbers.pop()
            count += "seen" in form
            words = {"COUNT": str(count), "N": str(number), "V": str(value(number))}
            text = re.sub(r"\b(k|e|)(COUNT|N|V)\b", lambda match, words=words: match[1] + words[match[2]], form)
            asked += [number] if re.search("== V|V ==|eN", form) and not form.startswith("if") else []
            lines += [f"    {line}" for line in text.splitlines()]
    return "\n".join([*lines, ""]), asked


COPIES = """
import linecache, re, sys
{truth}
truth = f
def f(n):
    if n != {wrong}:
        return truth(n)
    frame = sys._getframe(1)
    text = "".join(linecache.getline(frame.f_code.co_filename, frame.f_lineno + line) for line in range(3))
    side = re.search(r"== \\(?\\s*(\\d+|e\\d+)|(\\d+|e\\d+) ==", text)
    return eval(side[1] or side[2], frame.f_globals, frame.f_locals)
"""
"""Code that is right but for one number, whose value it reads where it is asked."""


@pytest.mark.cases(10)
@pytest.mark.parametrize("seed", range(200))
def test_drawn_suites_pass_right_code_and_no_other(seed: int) -> None:
    """What is right passes, with no test that is told forged; what copies one answer out of its frame does not."""
    random = Random(seed)
    suite, numbers = drawn_suite(random)
    verdict = graded(TRUTH, suite)
    assert (True, True) == (verdict.passed, verdict.bound <= 1e-3), f"{verdict.reason()}\n{suite}"
    if numbers:
        wrong = random.choice(numbers)
        assert not graded(COPIES.format(truth=TRUTH, wrong=wrong), suite).passed, f"{wrong}\n{suite}"


SUITE = f"""import pytest
from solution import f

def test_values():
    assert f(1) == {value(1)}
    assert f(2) == {value(2)}
    for n, expected in [(3, {value(3)}), (4, {value(4)})]:
        assert f(n) == expected

def test_errors():
    with pytest.raises(ValueError) as error:
        f(-1)
    assert error.value.args == (-1,)
    assert f(5) < {value(5) + 1}
"""
EACH_LINE = """
import linecache, re, sys
def expected():
    frame = sys._getframe(2)
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    if "expected" in frame.f_locals:
        return frame.f_locals["expected"]
    number = re.search(r"(?:==|<) (\\d+)", line)
    return int(number[1]) - ("<" in line) if number else None
"""
ACTS = {
    "nothing is noted": "import builtins\nclass S:\n    def __init__(self, line): pass\n    def __enter__(self): pass\n"
    "    def __exit__(self, *error): return True\nbuiltins.__statement__ = S\ndef f(n): return 0\n",
    "all is noted as passed": "import builtins\nS = builtins.__statement__\n"
    "S.__exit__ = lambda self, *error: (S.rounds.__setitem__(self._line, S.rounds.get(self._line, -1) + 1), True)[1]\n"
    "def f(n): return 0\n",
    "failures are taken away": "import builtins\nS = builtins.__statement__\nclass Never(dict):\n"
    "    def setdefault(self, *pair): return {}\nS.failed = Never()\ndef f(n): return 0\n",
    "the lines are written by itself": "import json, os, sys\nmark = json.loads(sys.argv[1])['mark']\n"
    "def f(n):\n    for name, lines in (('test_values', {5: 1, 6: 1, 8: 2}), ('test_errors', {11: 1, 13: 1, 14: 1})):\n"
    "        row = {'test': f'test_s.py::{name}', 'outcome': 'passed', 'duration_s': 0.1, 'statements': [lines, {}]}\n"
    "        os.write(1, f'\\n{mark}{json.dumps(row)}\\n'.encode())\n    os._exit(0)\n",
    "copies each": EACH_LINE + "def f(n):\n    if n < 0: raise ValueError(n)\n    return expected()\n",
    "copies each or raises by chance": EACH_LINE + "import random\ndef f(n):\n    if n < 0: raise ValueError(n)\n"
    "    return expected() if random.random() < 0.5 else 0\n",
    "copies each and skips by chance": EACH_LINE + "import random, unittest\ndef f(n):\n"
    "    if n < 0: raise ValueError(n)\n    if random.random() < 0.3: raise unittest.SkipTest('x')\n"
    "    return expected()\n",
    "copies one and stops where it is not sure": EACH_LINE
    + TRUTH.replace("def f", "def truth")
    + "wrong = []\ndef f(n):\n    if n != 2:\n        value = truth(n)\n        wrong.append(expected() != value)\n"
    "        return value\n    if any(wrong): raise SystemExit\n    return expected()\n",
    "raises what is expected": "import linecache, re, sys\n"
    + TRUTH.replace("def f", "def truth")
    + "def f(n):\n    if n >= 0: return truth(n)\n    frame = sys._getframe(1)\n"
    "    lines = ''.join(linecache.getline(frame.f_code.co_filename, frame.f_lineno - 1 + i) for i in range(2))\n"
    "    raise eval(re.search(r'raises\\((\\w+)', lines)[1])(n)\n",
    "equals all": "class E(int):\n    __hash__ = None\n    def __eq__(self, other): return True\n"
    "    __lt__ = __gt__ = __eq__\ndef f(n):\n    if n < 0: raise ValueError(n)\n    return E()\n",
    "the rewriting is taken away": "import _pytest.assertion.rewrite as r, ast\n"
    "def f(n):\n    import sys\n    frame = sys._getframe(1)\n    frame.f_trace = lambda *a: None\n    return 0\n",
}
"""Code that knows how tests go on, and solves nothing, or all but one assert."""


@pytest.mark.parametrize("act", ACTS)
def test_who_knows_the_wrapping_forges_nothing(act: str) -> None:
    """And right code passes, in a few runs."""
    assert not graded(ACTS[act], SUITE).passed


def test_right_code_passes_the_suite_of_these_acts() -> None:
    """Each of its asserts is guarded, by ten runs as ``raises`` and ``<`` need."""
    verdict = graded(TRUTH, SUITE)
    assert (True, (), True) == (verdict.passed, verdict.weak, verdict.bound <= 1e-3), verdict.reason()
    assert verdict.runs <= 60


SHOWS_ALL = r"""
import ast, gc, json, os, sys
(reports,) = [o for o in gc.get_objects() if type(o).__name__ == "Reports"]
text = open("test_s.py").read()
(test,) = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
rounds, failed = {}, {}
for statement in (node for node in test.body if isinstance(node, ast.With)):
    seen = max(n.value for n in ast.walk(statement) if isinstance(n, ast.Constant))
    rounds[statement.lineno] = 900
    failed[statement.lineno] = {number: [repr(number + 100), repr(seen)] for number in range(900)}
reports.write({"collected": ["test_s.py::test_f"]})
row = {"outcome": "passed", "duration_s": 0.1, "statements": [rounds, failed]}
reports.write({"test": "test_s.py::test_f", **row})
reports.write({"end": 0})
os._exit(0)
"""
"""Says of each assert that it failed, in as many rounds as there are values of three digits, with each of them."""


def test_who_shows_all_values_has_not_shown_the_right_one() -> None:
    """A loop has as many rounds as the code says, and in each it could show another value."""
    tests = "from solution import f\ndef test_f():\n    assert f(1) == 144\n    assert f(2) == 233\n"
    assert not graded(SHOWS_ALL, tests).passed
