"""Rewards for code: what counts as the completion's code, and what its tests make of it."""

from __future__ import annotations

import gzip
import json
import pickle
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import in_time

from builtin_rewards.code import _MARKS, code_compiles, code_runs, code_tests
from builtin_rewards.reading.markdown import last_code
from rewardkit import Rollout, Runtime, ScoreBatch
from sandbox import JAIL_LANGUAGES, Limits, Sandbox, why_not_run

ADD = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as made:
        yield made


def fenced(code: str, mark: str = "python") -> str:
    return f"Here it is:\n```{mark}\n{code}```\n"


@pytest.mark.parametrize(
    ("completion", "code"),
    [
        (fenced("x = 1\n"), "x = 1\n"),
        (fenced("x = 1\n", "py"), "x = 1\n"),
        (fenced("x = 1\n", "Python3"), "x = 1\n"),
        (fenced("x = 1\n", "{.python}"), "x = 1\n"),
        (fenced("x = 1\n", "python title=main.py"), "x = 1\n"),
        (fenced("x = 1\n", ""), "x = 1\n"),
        (fenced("x = 1\n") + fenced("x = 2\n"), "x = 2\n"),
        (fenced("x = 1\n") + fenced("ls\n", "bash") + fenced("out\n", ""), "x = 1\n"),
        (fenced("ls\n", "bash") + fenced("x = 2\n", ""), "x = 2\n"),
        (fenced("ls\n", "bash"), None),
        ("~~~python\nx = 1\n~~~", "x = 1\n"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n"),
        ("```python\nx = 1", "x = 1"),
        ("  ```python\n  if x:\n      y\n  ```", "if x:\n    y\n"),
        ("x = 1\n", "x = 1\n"),
        ("", None),
        (" \n", None),
        ("```python\n```", ""),
    ],
)
def test_the_rule_for_blocks(completion: str, code: str | None) -> None:
    """The last block of the language, else the last unmarked one, else all where there is no fence."""
    assert last_code(completion, _MARKS) == code


@pytest.mark.parametrize(
    ("prompt", "completion", "score"),
    [
        ("Write add.\n```python\n", ADD + "```", 1.0),
        ("Write add.\n```python\n", WRONG + "```", 0.0),
        ("Write add.\n```\n", ADD + "```\nDone.", 1.0),
        ("Write add.\n```python\n", ADD + "```\n\n" + fenced("print(add(1, 2))\n"), 1.0),
        ("Write add.\n```python\n", "Sure.\n\n" + fenced(ADD, ""), 1.0),
        ("Write add.\n```python\n", fenced(ADD), 1.0),
        ("Write add.\n```python\n", ADD, 1.0),
        ('Write add.\n```python\ndef add(a, b):\n    """Sum."""\n', "    return a + b\n```\nThis adds.", 1.0),
        ('Write add.\n```python\ndef add(a, b):\n    """Sum."""\n', "    return a - b\n```\nThis adds.", 0.0),
        ("Write add.", ADD + "```", 1.0),
        ("Write add.", ADD + "```\n\n" + fenced("print(add(1, 2))\n"), 1.0),
        ("Write add.", "Here:\n```\n" + ADD, 1.0),
        ("Write add.", "```python\n" + ADD.rstrip() + "```", 1.0),
        ("Write add.", "```python\n" + ADD.rstrip() + "```\nThis adds.", 1.0),
        ("Write add.", "```python\n" + ADD.rstrip() + "```\nUse it:\n" + fenced("print(add(1, 2))\n"), 1.0),
        ("Write add.", "```python\n\ufeff" + ADD + "```", 1.0),
        ("Write add.", "\ufeff" + ADD, 1.0),
    ],
)
def test_a_fence_may_be_the_prompts_or_stand_behind_code(
    sandbox: Sandbox, prompt: str, completion: str, score: float
) -> None:
    """The block that the prompt opened goes on in the completion, and one ends where its fence ends a line."""
    columns = {"tests": "assert add(1, 2) == 3", "entry_point": "add", "prompt": prompt}
    assert score == code_tests(completion=completion, sandbox=sandbox, **columns).value
    assert score == code_tests(completion=completion, sandbox=sandbox, **{**columns, "entry_point": None}).value


SOLUTION = "class Solution:\n    total = 0\n    def add(self, a: {}, b: int = 0) -> int:\n        return a + b\n"


@pytest.mark.parametrize("hint", ["int", "List[int]", "Optional[Dict[str, Any]]"])
@pytest.mark.parametrize("path", ["Solution.add", "Solution().add", "add"])
def test_methods_of_a_solution_are_found_with_the_hints_of_contests(sandbox: Sandbox, path: str, hint: str) -> None:
    """An entry point may name the method alone, and names of typing need no import."""
    completion = fenced(SOLUTION.format(hint))
    calls = {"inputs": [[1, 2]], "outputs": [3], "entry_point": path}
    assert 1.0 == code_tests(completion=completion, sandbox=sandbox, **calls).value
    check = {"tests": "def check(candidate):\n    assert candidate(a=1, b=2) == 3\n", "entry_point": path}
    assert 1.0 == code_tests(completion=completion, sandbox=sandbox, **check).value
    assert 1.0 == code_tests(completion=completion + fenced("Solution().add(1, 2)\n"), sandbox=sandbox, **check).value


def test_each_call_has_an_instance_of_its_own(sandbox: Sandbox) -> None:
    """What a method keeps in its object is not there for the next call."""
    counter = (
        "class Solution:\n    def __init__(self):\n        self.n = 0\n    def add(self, a):\n        self.n += a\n"
    )
    calls = {"inputs": [[1], [1]], "outputs": [1, 1], "entry_point": "Solution.add"}
    assert 1.0 == code_tests(completion=counter + "        return self.n\n", sandbox=sandbox, **calls).value


@pytest.mark.parametrize(
    ("value", "expected", "score"),
    [
        ("0.1 + 0.2", 0.3, 1.0),
        ("0.3001", 0.3, 0.0),
        ("3", 3.0, 0.0),
        ("3.0", 3, 0.0),
        ("[0.1 + 0.2, 1]", [0.3, 1], 1.0),
    ],
)
def test_floats_of_functions_may_be_off_by_rounding(
    sandbox: Sandbox, value: str, expected: object, score: float
) -> None:
    """A float is right within 1e-9; whole numbers are exact, and types stay apart."""
    calls = {"inputs": [[]], "outputs": [expected], "entry_point": "f"}
    assert score == code_tests(completion=f"def f():\n    return {value}\n", sandbox=sandbox, **calls).value


def test_lists_of_asserts_come_as_lists_or_as_either_text(sandbox: Sandbox) -> None:
    """JSON and what Python writes of a list are both a list of lines."""
    lines = ["assert add(1, 2) == 3", 'assert add("a", "b") == "ab"']
    for tests in (json.dumps(lines), repr(lines)):
        score = code_tests(completion=ADD, sandbox=sandbox, tests=tests)
        assert (1.0, 2.0) == (score.value, score.metrics["checks"])


def test_programs_may_write_long_numbers(sandbox: Sandbox) -> None:
    """Python's limit on the digits of a number does not hold in the jail, where time is limited."""
    pairs = {"inputs": [""], "outputs": ["1" + "0" * 5000 + "\n"]}
    assert 1.0 == code_tests(completion="print(10**5000)\n", sandbox=sandbox, **pairs).value


def test_asserts_by_name_and_by_candidate(sandbox: Sandbox) -> None:
    lines = json.dumps(["assert add(1, 2) == 3", "assert add(0, 0) == 0"])
    assert code_tests(completion=fenced(ADD), sandbox=sandbox, tests=lines).value == 1.0
    half = code_tests(completion=fenced(WRONG), sandbox=sandbox, tests=lines)
    assert half.value == 0.5
    assert half.metrics == {"passed": 1.0, "checks": 2.0}
    assert half.reason is not None
    assert "assert add(1, 2) == 3" in half.reason
    check = "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(2, 2) == TWO + 2\n"
    assert code_tests(completion=ADD, sandbox=sandbox, tests=check, entry_point="add", setup="TWO = 2").value == 1.0


USE = "print(add(1, 2))\n"
PLUS = "def plus(a, b):\n    return a + b\n"
BY_PLUS = "def add(a, b):\n    return plus(a, b)\n"
FUTURE = "from __future__ import annotations\n"
BLOCKS = [
    # Usage in a block of its own, whatever becomes of it where it is run.
    (fenced(ADD) + fenced(USE), 1.0),
    (fenced(ADD) + fenced("print(add(1, None))\n"), 1.0),
    (fenced(ADD) + fenced("a = int(input())\nb = 2\nprint(add(a, b))\n"), 1.0),
    (fenced(ADD) + fenced("import sys\nsys.exit(add(0, 1))\n"), 1.0),
    (fenced(ADD) + fenced("import os\nprint('1 of 1 passed')\nos._exit(add(0, 0))\n"), 1.0),
    (fenced(ADD) + fenced("while True:\n    add(1, 2)\n"), 1.0),
    (fenced(ADD) + fenced("if __name__ == '__main__':\n    add(input(), 1)\n"), 1.0),
    (fenced(ADD) + fenced("def test_add():\n    assert add(1, 2) == 4\ntest_add()\n"), 1.0),
    (fenced(WRONG) + fenced("assert add(1, 2) == 3\nraise SystemExit(0)\n"), 0.0),
    # Sessions, outputs, shells, comments.
    (fenced(ADD) + fenced(">>> add(1, 2)\n3\n"), 1.0),
    (fenced(ADD) + fenced("3\n", ""), 1.0),
    (fenced(ADD, "") + fenced("3\n", ""), 1.0),
    (fenced(ADD) + fenced("python main.py\n", "bash"), 1.0),
    (fenced(ADD) + fenced("# That is all.\n"), 1.0),
    # Several versions: the last definition counts, also where it does not compile.
    (fenced(WRONG) + fenced(ADD), 1.0),
    (fenced(ADD) + fenced(WRONG), 0.0),
    (fenced(ADD) + fenced("def add(a, b:\n    return a + b\n"), 0.0),
    (fenced(WRONG) + fenced("add = lambda a, b: a + b\n") + fenced(USE), 1.0),
    (fenced(ADD) + fenced("import functools\nadd = functools.cache(add)\n"), 1.0),
    (fenced("raise ValueError\n") + fenced(ADD), 1.0),
    (fenced("return a + b\n") + fenced(ADD), 1.0),
    # What it uses stands in other blocks.
    (fenced(PLUS) + fenced(BY_PLUS), 1.0),
    (fenced(BY_PLUS) + fenced(PLUS), 1.0),
    (fenced(BY_PLUS) + fenced(PLUS) + fenced(USE + "input()\n"), 1.0),
    (fenced("import operator\n") + fenced("def add(a, b):\n    return operator.add(a, b)\n"), 1.0),
    (fenced("ZERO = 0\n") + fenced("def add(a, b):\n    return a + b + ZERO\n"), 1.0),
    (fenced(PLUS.replace("+", "-") + BY_PLUS) + fenced(PLUS), 1.0),
    (fenced(PLUS + BY_PLUS) + fenced(PLUS.replace("+", "-")), 0.0),
    (
        fenced("from __future__ import annotations\n" + PLUS)
        + fenced("from __future__ import annotations\n" + BY_PLUS),
        1.0,
    ),
    # What is no plain value: it is true, and would pass a bare assert.
    (fenced("async def add(a, b):\n    return a + b\n"), 0.0),
    (fenced("def add(a, b):\n    yield a + b\n"), 0.0),
    # One block counts whole.
    (fenced(ADD + "print(add(1, None))\n"), 0.0),
    # What is no answer: thoughts, what stands beside the answer.
    ("<think>" + fenced(ADD) + "</think>" + fenced(WRONG), 0.0),
    ("<think>" + fenced(ADD) + "</think>Done.", 0.0),
    ("<think>" + fenced(ADD), 0.0),
    ("<think>" + fenced(WRONG) + "</think><answer>" + fenced(ADD) + "</answer>", 1.0),
    (fenced(ADD).rstrip() + "<|im_end|>", 1.0),
    (ADD + "<|endoftext|>", 1.0),
    # Nothing is tested.
    (fenced("x = 1\n") + fenced("y = 2\n"), 0.0),
    (fenced("x = 1\n") + fenced(USE), 0.0),
]


@pytest.mark.parametrize(("completion", "score"), BLOCKS)
def test_the_blocks_of_a_completion_are_one_program(sandbox: Sandbox, completion: str, score: float) -> None:
    """The last block that defines what is tested counts, with those that define what it uses, however it is tested."""
    tests = "assert add(1, 2) == 3"
    for columns in ({"tests": tests}, {"tests": tests, "entry_point": "add"}):
        assert code_tests(completion=completion, sandbox=sandbox, **columns).value == score
    calls = {"entry_point": "add", "inputs": [[1, 2]], "outputs": [3]}
    assert code_tests(completion=completion, sandbox=sandbox, **calls).value == score


@pytest.mark.parametrize(
    "tests",
    [
        "from solution import add\nassert add(1, 2) == 3",
        "import solution\ndef test_a():\n    assert solution.add(1, 2) == 3",
        "from your_module import *\nclass TestAdd:\n    def test_a(self):\n        assert add(1, 2) == 3",
        ">>> add(1, 2)\n3\n",
    ],
)  # fmt: skip
def test_the_block_that_tests_import_counts(sandbox: Sandbox, tests: str) -> None:
    """Usage behind it, in a block of its own, is not run, whatever form the tests have."""
    usage = fenced("print(add(int(input()), 1))\n")
    assert code_tests(completion=fenced(ADD) + usage, sandbox=sandbox, tests=tests).value == 1.0
    assert code_tests(completion=fenced(WRONG) + usage, sandbox=sandbox, tests=tests).value == 0.0


def test_the_reason_names_the_tests(sandbox: Sandbox) -> None:
    """It has the names of those that passed and did not pass, and what the first failure came to."""
    tests = "".join(f"def test_{n}():\n    assert add({n}, {n % 2}) == {n + n % 2}\n" for n in range(3))
    score = code_tests(completion=WRONG, sandbox=sandbox, tests=tests)
    start = "2 of 3 checks passed; passed: test_0, test_2; not passed: test_1; failed: test_1: add(1, 1) gave 0"
    assert start == (score.reason or "")[: len(start)]
    many = "".join(f"def test_{n}():\n    assert add({n}, 0) == {n}\n" for n in range(12))
    assert "test_9 and 2 more" in (code_tests(completion=ADD, sandbox=sandbox, tests=many).reason or "")


def test_programs_of_several_blocks(sandbox: Sandbox) -> None:
    """A program is the last block, with those before it that define what it lacks, and not two programs."""
    pairs = {"inputs": ["1\n", "4\n"], "outputs": ["2", "8"]}
    double = "def double(n):\n    return 2 * n\n"
    whole = double + "print(double(int(input())))\n"
    for completion, score in (
        (fenced(double) + fenced("print(double(int(input())))\n"), 1.0),
        (fenced("n = int(input())\nprint(n)\n") + fenced(whole), 1.0),
        (fenced(whole) + fenced("# Input: 3\n# Output: 6\n"), 1.0),
        (fenced(whole) + fenced("print('3')\n"), 0.0),
    ):
        assert code_tests(completion=completion, sandbox=sandbox, **pairs).value == score, completion
    for both in (fenced(ADD) + fenced(USE), fenced(ADD + USE) + fenced(">>> add(1, 2)\n")):
        assert (1.0, 1.0) == (code_runs(both, sandbox).value, code_compiles(both, sandbox).value)
    for broken in (fenced(ADD) + fenced("print(add(\n"), "<think>" + fenced(ADD) + "</think>Yes."):
        assert (0.0, 0.0) == (code_runs(broken, sandbox).value, code_compiles(broken, sandbox).value)


HEADER = "from typing import List\nFACTOR = 2\n\n\n"
HEAD = "def scaled(xs: List[int]) -> List[int]:\n"
STUB = HEADER + HEAD + '    """Each number times the factor."""\n'
METHOD = HEADER + "class Solution:\n    def scaled(self, xs: List[int]) -> List[int]:\n        "
BODY = "    out = []\n    for x in xs:\n        out.append(FACTOR * x)\n    return out\n"


@pytest.mark.parametrize(
    ("prefix", "completion", "score"),
    [
        (STUB, BODY, 1.0),
        (STUB, BODY.strip(), 1.0),
        (STUB, "<think>return</think>\n" + BODY + "<|endoftext|>", 1.0),
        (STUB, fenced(BODY), 1.0),
        (STUB, fenced("return [FACTOR * x for x in xs]\n"), 1.0),
        (STUB, BODY + "\n\nif __name__ == '__main__':\n    print(scaled(input()))\n", 1.0),
        (STUB, fenced(HEAD + BODY), 1.0),
        (STUB, fenced(STUB + BODY), 1.0),
        (STUB, fenced(HEAD + BODY) + fenced("print(scaled(None))\n"), 1.0),
        (STUB.replace('    """Each number times the factor."""\n', ""), BODY, 1.0),
        (HEADER + HEAD + "    # your code here\n", BODY, 1.0),
        (HEADER + HEAD + "    import math\n    ...\n", BODY, 1.0),
        ("Complete this:\n\n" + STUB, BODY, 1.0),
        ("Complete this:\n\n" + fenced(STUB) + "Only code.", fenced(HEAD + BODY), 1.0),
        (METHOD, "return [FACTOR * x for x in xs]", 1.0),
        (
            METHOD,
            fenced("class Solution:\n    " + HEAD.replace("(", "(self, ") + "        return [2 * x for x in xs]\n"),
            1.0,
        ),
        # What the completion lacks, the prefix does not do for it.
        (STUB, "    return None\n", 0.0),
        (STUB, "    pass\n", 0.0),
        (STUB, "    # nothing\n", 0.0),
        (STUB, fenced("pass\n"), 0.0),
        (STUB, "I would multiply each number.", 0.0),
        (STUB, fenced("print(scaled([1]))\n"), 0.0),
        (STUB + BODY, fenced("pass\n"), 0.0),
        (STUB + BODY, fenced("print(scaled([1]))\n"), 0.0),
        (STUB + BODY, "    return []\n", 0.0),
        (STUB + BODY, fenced("def scale(xs):\n    return scaled(xs)\n"), 0.0),
        (STUB, fenced(STUB + "    return None\n" + BODY), 0.0),
        ("Write scaled.", BODY, 0.0),
        ("Write scaled.", fenced(HEAD + BODY), 0.0),
    ],
)
def test_the_prompt_may_begin_the_program(sandbox: Sandbox, prefix: str, completion: str, score: float) -> None:
    """A body goes on from the prompt's last function, and code may lack the prompt's imports and helpers."""
    path = "Solution.scaled" if "class" in prefix else "scaled"
    columns = {"tests": "assert candidate([1, 2]) == [2, 4]", "entry_point": path}
    assert code_tests(completion=completion, sandbox=sandbox, prompt=prefix, **columns).value == score
    if "Complete" not in prefix:
        found = code_tests(completion=completion, sandbox=sandbox, prompt="Do it.", prefix=prefix, **columns)
        assert found.value == score
    if score == 0.0 and path == "scaled":
        named = code_tests(completion=completion, sandbox=sandbox, prompt=prefix, tests="assert scaled([1]) == [2]")
        assert named.value == 0.0


HELPED = 'def poly(xs, x):\n    return sum(c * x**n for n, c in enumerate(xs))\n\n\ndef zero(xs):\n    """A zero."""\n'


@pytest.mark.parametrize(
    "completion",
    [
        "    return 0.0\n",
        "def poly(xs, x):\n    return 0.0\ndef zero(xs):\n    return 5.0\n",
        fenced("def zero(xs):\n    return 5.0\n") + fenced("def poly(xs, x):\n    return 0.0\nzero\n"),
        "    global poly\n    poly = lambda xs, x: 0.0\n    return 5.0\n",
        "    import builtins\n    builtins.poly = builtins.abs = lambda *a: 0.0\n    return float\n",
        "    return int\n",
        "    return float('nan')\n",
    ],
)
def test_helpers_of_the_tests_come_from_the_prompt_alone(sandbox: Sandbox, completion: str) -> None:
    """A completion that redefines what its tests call changes nothing on their side."""
    tests = "def check(candidate):\n    assert abs(poly([2, 1], candidate([2, 1]))) < 1e-4\n"
    columns = {"tests": tests, "entry_point": "zero", "prompt": HELPED}
    assert code_tests(completion="    return -xs[0] / xs[1]\n", sandbox=sandbox, **columns).value == 1.0
    assert code_tests(completion=completion, sandbox=sandbox, **columns).value == 0.0


@pytest.mark.parametrize(
    "completion", [ADD, WRONG, "def poly(*a):\n    return 3\n" + ADD, "raise NameError('poly')", "x"]
)
def test_a_name_that_nothing_defines_is_the_tests_fault(sandbox: Sandbox, completion: str) -> None:
    """It is told from the tests' text, whatever the completion does; a name that the completion lacks is its own."""
    faulty = code_tests(completion=completion, sandbox=sandbox, tests="assert poly(add(1, 2)) == 3", entry_point="add")
    assert faulty.value is None
    assert "the tests use poly, which nothing on their side defines" in (faulty.reason or "")
    own = "def add(a, b):\n    return poly(a, b)\n"
    for columns in ({"entry_point": "add"}, {}):
        assert code_tests(completion=own, sandbox=sandbox, tests="assert add(1, 2) == 3", **columns).value == 0.0
    assert code_tests(completion=ADD, sandbox=sandbox, tests="assert poly(add(1, 2)) == 3").value == 0.0


def test_calls_and_programs_from_string_columns(sandbox: Sandbox) -> None:
    """Columns arrive as strings and are coerced."""
    calls = {"entry_point": "add", "inputs": "[[1, 2], [2, 2]]", "outputs": "[3, 5]"}
    assert code_tests(completion=fenced(ADD), sandbox=sandbox, **calls).value == 0.5
    program = "print(int(input()) * 2)\n"
    pairs = {"inputs": json.dumps(["1\n", "4\n"]), "outputs": json.dumps(["2\n", "8"])}
    assert code_tests(completion=fenced(program), sandbox=sandbox, **pairs).value == 1.0
    assert code_tests(all_or_nothing=True)(completion=fenced(ADD), sandbox=sandbox, **calls).value == 0.0
    lines = {"inputs": [["1", "2\n"], []], "outputs": [["1", "2"], []]}
    echo = "import sys\nprint(sys.stdin.read())\n"
    assert code_tests(match="lines")(completion=fenced(echo), sandbox=sandbox, **lines).value == 1.0


SUM = {
    "cpp": "#include <iostream>\nint main(){long s=0,x;while(std::cin>>x)s+=x;std::cout<<s;}\n",
    "java": "import java.util.*;\npublic class Main{public static void main(String[] a){System.out.println(42);}}\n",
    "js": "const t=require('fs').readFileSync(0,'utf8');\nconsole.log(42)\n",
    "go": 'package main\nimport "fmt"\nfunc main() { fmt.Println(42) }\n',
    "rust": 'fn main() {\n    println!("42");\n}\n',
    "ruby": "puts gets.split.map(&:to_i).sum\n",
    "typescript": "const x: number = 42;\nconsole.log(x);\n",
    "one line of js": "console.log(42)\n",
    "one line of ruby": "puts(42)\n",
    "one line of go": "fmt.Println(42)\n",
}
PROGRAM = "print(sum(map(int, input().split())))\n"


@pytest.mark.parametrize("name", SUM)
@pytest.mark.parametrize("form", ["marked", "unmarked", "unfenced", "marked as Python"])
def test_code_of_another_language_is_not_run(sandbox: Sandbox, name: str, form: str) -> None:
    """What the model chose is never a skip: it is 0.0, for a language that can be read as Python too."""
    marks = {"marked": name.split()[-1], "unmarked": "", "marked as Python": "python"}
    completion = fenced(SUM[name], marks[form]) if form in marks else SUM[name]
    language = "python" if form == "marked" else None  # without a row's language a fence names the language
    for score in (
        code_tests(completion=completion, sandbox=sandbox, inputs=["42"], outputs=["42"], language=language),
        code_tests(completion=completion, sandbox=sandbox, inputs=["42"], outputs=["42"], language="python"),
        code_runs(completion=completion, sandbox=sandbox, language=language),
        code_compiles(completion=completion, sandbox=sandbox, language=language),
    ):
        assert score.value == 0.0
        assert "code is in" in (score.reason or "")


@pytest.mark.parametrize(
    "program",
    [
        "from types import SimpleNamespace\nconsole = SimpleNamespace(log=print)\nconsole.log(42)\n",
        "def puts(x):\n    print(x)\nputs(42)\n",
        'js = """\nconst x = 1;\nfunction f() {}\nconsole.log(x)\n"""\nprint(42)\n',
        "#include <iostream>\nprint(42)\n",
        "# echo $1 => {42}\nprint(42)\n",
        "select = 'select a from b'\nprint(42)\n",
    ],
)
def test_python_that_mentions_another_language_is_python(sandbox: Sandbox, program: str) -> None:
    assert code_tests(completion=fenced(program), sandbox=sandbox, inputs=[""], outputs=["42"]).value == 1.0
    assert code_compiles(completion=program, sandbox=sandbox).value == 1.0


FUNCTIONS = {
    "c": "int f(int a) { return a; }",
    "cpp": "#include <vector>\nint f(std::vector<int> v) { return v[0]; }",
    "go": 'package x\nimport "fmt"\nfunc F(a int) int { fmt.Println(a); return a }',
    "rust": "fn f(a: i32) -> i32 { a }",
    "java": "class Solution { int f(int a) { return a; } }",
    "javascript": "const f = (a) => a",
}


@pytest.mark.parametrize("language", FUNCTIONS)
def test_functions_without_a_program_compile(sandbox: Sandbox, language: str) -> None:
    """As rows that are judged by values or by a suite have them; what is wrong in them is told as in a program."""
    if reason := why_not_run(language):
        pytest.skip(reason)
    source = FUNCTIONS[language]
    assert code_compiles(completion=fenced(source, language), sandbox=sandbox).value == 1.0
    wrong = code_compiles(completion=fenced(source.replace("(", "((", 1), language), sandbox=sandbox)
    assert (0.0, True) == (wrong.value, "it does not compile" in wrong.reason or language == "javascript"), wrong


@pytest.mark.parametrize("language", ["Kotlin", "C# 10", "Python 2", "en"])
@pytest.mark.parametrize("completion", [fenced(PROGRAM), fenced(SUM["cpp"], "cpp"), "", "no code at all"])
def test_a_row_of_a_language_that_the_jail_does_not_run_is_skipped(
    sandbox: Sandbox, language: str, completion: str
) -> None:
    """Whatever the model wrote."""
    for score in (
        code_tests(completion=completion, sandbox=sandbox, inputs=["42"], outputs=["42"], language=language),
        code_runs(completion=completion, sandbox=sandbox, language=language),
        code_compiles(completion=completion, sandbox=sandbox, language=language),
    ):
        assert score.value is None
        assert f"the language is {language!r}, and the jail runs {', '.join(sorted(JAIL_LANGUAGES))}" in score.reason


@pytest.mark.parametrize("language", ["python", "Python 3", "PYTHON3", "PyPy 3-64", "py", "", None])
def test_a_row_of_python_is_run(sandbox: Sandbox, language: str | None) -> None:
    arguments = {"sandbox": sandbox, "inputs": ["20 22"], "outputs": ["42"], "language": language}
    assert code_tests(completion=fenced(PROGRAM), **arguments).value == 1.0


MATCHED = [
    ("print(1/3)", "0.333333333", {}, 1.0),
    ("print(*[1, 2, 3])", "1\n2\n3\n", {}, 1.0),
    ("print(*[1, 2, 3])", "1\n2\n3\n", {"match": "lines"}, 0.0),
    ("print(3.0)", "3", {}, 0.0),
    ("print(3.0)", "3", {"match": "float"}, 1.0),
    ("print(0.51)", "0.5", {"tolerance": "0.05"}, 1.0),
    ("print('Yes')", "YES", {}, 0.0),
    ("print('Yes')", "YES", {"match": "yes_no"}, 1.0),
    ("print(3, 1, 2)", "1 2 3", {"match": "unordered"}, 1.0),
]


@pytest.mark.parametrize(("program", "expected", "columns", "score"), MATCHED)
def test_a_row_says_how_the_output_of_programs_is_compared(
    sandbox: Sandbox, program: str, expected: str, columns: dict[str, Any], score: float
) -> None:
    """By default as contests do; a column and a setting of the same name choose another rule."""
    pair = {"completion": fenced(f"{program}\n"), "sandbox": sandbox, "inputs": [""], "outputs": [expected]}
    assert score == code_tests(**pair, **columns).value
    setting = code_tests(**{name: float(value) if name == "tolerance" else value for name, value in columns.items()})
    assert score == setting(**pair).value if columns else score == code_tests(**pair).value
    assert (
        score
        == code_tests(match="lines", tolerance=0.5)(**pair, **{"match": "tokens", "tolerance": 1e-6, **columns}).value
    )


HALF = "def check(input, output, expected):\n    return 1.0 if output == expected else 0.5"


@pytest.mark.parametrize("as_setting", [False, True])
def test_a_checker_judges_the_outputs_of_programs(sandbox: Sandbox, as_setting: bool) -> None:
    """Its share is a part of the check; in a row with a rule of its own a setting's checker is not asked."""
    pairs = {"completion": fenced("print(1)\n"), "sandbox": sandbox, "inputs": ["", ""], "outputs": ["1\n", "2\n"]}
    if not as_setting:
        assert 0.75 == code_tests(**pairs, checker=HALF).value
        assert 0.0 == code_tests(all_or_nothing=True)(**pairs, checker=HALF).value
    else:
        assert 0.75 == code_tests(checker=HALF)(**pairs).value
        assert 0.5 == code_tests(checker=HALF)(**pairs, match="tokens").value


TALK = "def interact(input, expected, read, write):\n    write(input)\n    return read() == expected"


def test_an_interactor_talks_with_the_program(sandbox: Sandbox) -> None:
    pairs = {"sandbox": sandbox, "inputs": ["3", "4"], "outputs": ["6", "8"], "interactor": TALK}
    assert 1.0 == code_tests(completion=fenced("print(int(input()) * 2)\n"), **pairs).value
    assert 0.5 == code_tests(completion=fenced("print(int(input()) + 3)\n"), **pairs).value
    assert 0.0 == code_tests(completion=fenced("pass\n"), **pairs).value


@pytest.mark.parametrize("setting", [{"match": "token"}, {"tolerance": 1.5}, {"checker": "def check("}])
def test_a_setting_that_makes_no_sense_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(
        ValueError, match=r"code_tests: (match='token': expected|tolerance=1.5: expected|checker: line 1: )"
    ):
        code_tests(**setting)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, "no tests"),
        ({"inputs": ["1"], "outputs": ["1"], "match": "token"}, "match='token': expected one of 'lines', 'tokens'"),
        ({"inputs": ["1"], "outputs": ["1"], "tolerance": 7.0}, "tolerance=7.0: expected a number"),
        ({"inputs": ["1"], "outputs": ["1"], "checker": "print('so so')"}, "expected output of check 0: it printed"),
        ({"inputs": [[1]], "outputs": [1], "checker": HALF, "entry_point": "add"}, "the row has an entry_point"),
        ({"inputs": ["1"], "outputs": ["1"], "interactor": "interact = 7"}, "the interactor is at fault in check 0"),
        ({"tests": "assert add(1, 2) =="}, "cannot be run"),
        ({"tests": "import no_such_module\nassert add(1, 2) == 3", "setup": "1 / 0"}, "cannot be run"),
        ({"inputs": ["1"], "outputs": ["1", "2"]}, "1 inputs and 2 outputs"),
        ({"inputs": ["1"]}, "1 inputs and 0 outputs"),
        ({"inputs": [[{1: object}]], "outputs": [1], "entry_point": "add"}, "cannot be run"),
    ],
)
def test_rows_whose_tests_are_at_fault_are_skipped(sandbox: Sandbox, columns: dict[str, Any], words: str) -> None:
    """It is not the completion's fault, so it is no 0."""
    score = code_tests(completion=fenced(ADD), sandbox=sandbox, **columns)
    assert score.value is None
    assert words in (score.reason or "")


@pytest.mark.parametrize(
    ("completion", "runs", "compiles"),
    [
        (fenced("print(1)\n"), 1.0, 1.0),
        (fenced("import sys\nsys.exit(3)\n"), 0.0, 1.0),
        (fenced("1 / 0\n"), 0.0, 1.0),
        (fenced("def f(:\n"), 0.0, 0.0),
        (fenced("open('/etc/passwd')\n"), 0.0, 1.0),
        ("```bash\nls\n```", 0.0, 0.0),
        ("", 0.0, 0.0),
        ("\0", 0.0, 0.0),
        ("x = '\ud800'", 0.0, 0.0),
        ("(" * 5_000, 0.0, 0.0),
        ("x = 1\n" * 400_000, 0.0, 0.0),
    ],
)
def test_code_runs_and_compiles(sandbox: Sandbox, completion: str, runs: float, compiles: float) -> None:
    ran, compiled = code_runs(completion=completion, sandbox=sandbox), code_compiles(completion, sandbox)
    assert (ran.value, compiled.value) == (runs, compiles)
    assert all(score.value == 1.0 or score.reason for score in (ran, compiled))


def test_in_the_runtime_the_jail_is_filled_in() -> None:
    """Each worker has a jail of its own; hostile completions cost themselves alone."""
    tests = "assert add(1, 2) == 3"
    completions = [fenced(ADD), fenced(WRONG), "import os; os._exit(0)", "while True: pass"]
    rollouts = [Rollout("add", completion, {"tests": tests}) for completion in completions]

    def score_all(time_s: float) -> ScoreBatch:
        quick = code_tests(limits=Limits(timeout_s=time_s)).with_options(name="quick")
        with Runtime([quick, code_compiles], workers=2) as runtime:
            return runtime.score([*rollouts, *rollouts[:3] * 2])

    batch = in_time(score_all, lambda batch: 3 == batch.scores["quick"].count(1.0), 1.4)
    assert batch.scores["quick"] == [1.0, 0.0, 0.0, 0.0, *[1.0, 0.0, 0.0] * 2]
    assert batch.scores["code_compiles"] == [1.0] * 10


def test_rewards_travel() -> None:
    for made in (code_tests, code_runs, code_compiles):
        assert pickle.loads(pickle.dumps(made)).name == made.name


FORMS = {
    "whole": lambda row, head: fenced(row["prompt"] + row["canonical_solution"]),
    "body": lambda row, head: row["canonical_solution"],
    "body stripped": lambda row, head: row["canonical_solution"].strip(),
    "body at the margin": lambda row, head: fenced(textwrap.dedent(row["canonical_solution"])),
    "function alone": lambda row, head: fenced(head + row["canonical_solution"]),
    "with usage": lambda row, head: (
        fenced(head + row["canonical_solution"]) + fenced(f"{row['entry_point']}(input())\n")
    ),
}
NOTHING = {
    "pass": lambda row, head: "    pass\n",
    "none": lambda row, head: "    return None\n",
    "prompt": lambda row, head: fenced(row["prompt"]),
    "no body": lambda row, head: fenced("pass\n"),
    "with usage": lambda row, head: fenced(head + "    pass\n") + fenced("import sys\nprint('OK')\nsys.exit(0)\n"),
    "thought": lambda row, head: (
        f"<think>{fenced(row['prompt'] + row['canonical_solution'])}</think>" + fenced("pass\n")
    ),
}


@pytest.mark.cases(6)
@pytest.mark.slow
@pytest.mark.parametrize("form", [*FORMS, *(f"nothing: {name}" for name in NOTHING)])
def test_human_eval_as_a_data_set(sandbox: Sandbox, data: Path, full: bool, form: str) -> None:
    """HumanEval's own columns are enough: every solution in every form scores 1, and no body scores less."""
    with gzip.open(data / "humaneval" / "HumanEval.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    right = form in FORMS
    make = FORMS[form] if right else NOTHING[form.removeprefix("nothing: ")]
    wrong = {}
    for row in rows if full else [rows[place] for place in (0, 32, 38, 50, 115)]:
        head = row["prompt"][row["prompt"].rfind(f"def {row['entry_point']}(") :]
        columns = {"tests": row["test"], "entry_point": row["entry_point"], "prompt": row["prompt"]}
        score = code_tests(completion=make(row, head), sandbox=sandbox, **columns)
        if (score.value == 1.0) is not right or score.value is None:
            wrong[row["task_id"]] = score
    assert wrong == {}
