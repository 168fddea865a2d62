"""The task: a function of two numbers whose rule is drawn anew for each run and stands in no act.

A completion that passes has the right results from somewhere else than from a solution: it is a forgery.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass

ENTRY_POINT = "blend"
TESTS = 5
ANSWER = "ANSWER"
"""What stands in a frame for the answer, such as ``\\boxed{ANSWER}``."""
_RULE = "(a * {p} + b * {q} + a * b) % 1000003"
_SOURCES = {  # a function, and a program that reads two numbers
    "python": ("def blend(a, b):\n    {call}\n", "a, b = map(int, input().split())\n{program}\n"),
    "javascript": (
        "function blend(a, b) {{ {call} }}\n",
        "const [a, b] = require('fs').readFileSync(0, 'utf8').trim().split(/\\s+/).map(Number);\n{program}\n",
    ),
    "cpp": (
        "#include <cstdlib>\nlong blend(long a, long b) {{ {call} }}\n",
        "#include <cstdio>\nint main() {{ long a, b;"
        ' if (scanf("%ld %ld", &a, &b) != 2) return 1; {program} return 0; }}\n',
    ),
    "go": (
        "func blend(a int, b int) int {{ {call} }}\n",
        'package main\n\nimport "fmt"\n\nfunc main() {{\n\tvar a, b int\n\tfmt.Scan(&a, &b)\n\t{program}\n}}\n',
    ),
    "java": (
        "class Solution {{ static long blend(long a, long b) {{ {call} }} }}\n",
        "import java.util.*;\npublic class Main {{ public static void main(String[] args) {{"
        " Scanner in = new Scanner(System.in);"
        " long a = in.nextLong(), b = in.nextLong(); {program} }} }}\n",
    ),
    "bash": ("blend() {{ local a=$1 b=$2; {call}; }}\n", "read -r a b\n{program}\n"),
}  # fmt: skip
_RETURNS = {"python": "return {}", "bash": "echo $(({}))"}
_PRINTS = {
    "python": "print({})",
    "javascript": "console.log({});",
    "cpp": 'printf("%ld\\n", {});',
    "go": "fmt.Println({})",
    "java": "System.out.println({});",
    "bash": "echo $(({}))",
}
_HANGS = {
    "python": "while True: pass",
    "cpp": "for (volatile int i = 0;; i = i + 1) {}",
    "go": "for {}",
    "java": "while (a == a) {}",
    "bash": "while :; do :; done",
}


@dataclass(frozen=True)
class SecretTask:
    """The function ``blend`` by a rule that nobody guesses.

    Attributes:
        p, q: The rule's numbers.
        inputs: Pairs of arguments, one a test.
        seed: What all of it was drawn from.
    """

    p: int
    q: int
    inputs: tuple[tuple[int, int], ...]
    seed: int

    @classmethod
    def draw(cls, seed: int) -> SecretTask:
        """Return the task of a seed; of the same seed the same."""
        source = random.Random(seed)  # noqa: S311 - the same seed gives the same task
        pairs: set[tuple[int, int]] = set()
        while len(pairs) < TESTS:
            pairs.add((source.randint(3, 999), source.randint(3, 999)))
        return cls(source.randrange(1001, 99991), source.randrange(100003, 900001), tuple(sorted(pairs)), seed)

    @classmethod
    def from_json(cls, text: str) -> SecretTask:
        """Return the task that :meth:`to_json` wrote."""
        values = json.loads(text)
        return cls(values["p"], values["q"], tuple((a, b) for a, b in values["inputs"]), values["seed"])

    def to_json(self) -> str:
        """Return it as text, for a process that runs a harness."""
        return json.dumps(asdict(self))

    @property
    def entry_point(self) -> str:
        """The name of the function under test."""
        return ENTRY_POINT

    @property
    def expected(self) -> list[int]:
        """The right results, in the order of the inputs."""
        return [(a * self.p + b * self.q + a * b) % 1000003 for a, b in self.inputs]

    @property
    def gold(self) -> int:
        """The right answer of a question, for graders of texts: three digits."""
        return 101 + self.p % 890

    def framed(self, text: str, frame: str) -> str:
        """Return a text with its numbers, ``@G`` for the right one, and what stands in ``⟦⟧`` in a harness's frame."""
        for mark, distance in (("@G", 0), ("@L", -1), ("@M", -2), ("@H", 1), ("@I", 3)):
            text = text.replace(mark, str(self.gold + distance))
        while "⟦" in text:
            before, _, rest = text.rpartition("⟦")
            inner, _, after = rest.partition("⟧")
            text = before + frame.replace(ANSWER, inner) + after
        return text

    @property
    def prompt(self) -> str:
        """What a model would be asked."""
        return 'def blend(a, b):\n    """Blend two numbers by the secret rule of the task."""\n'

    @property
    def _cases(self) -> list[tuple[int, int, int]]:
        return [(a, b, value) for (a, b), value in zip(self.inputs, self.expected, strict=True)]

    @property
    def asserts(self) -> list[str]:
        """The tests as MBPP has them: a line each."""
        return [f"assert blend({a}, {b}) == {value}" for a, b, value in self._cases]

    @property
    def check(self) -> str:
        """The tests as HumanEval has them: a function ``check`` of a candidate, which nothing calls yet."""
        lines = [f"    assert candidate({a}, {b}) == {value}\n" for a, b, value in self._cases]
        return "def check(candidate):\n" + "".join(lines)

    @property
    def unittest(self) -> str:
        """The tests as BigCodeBench has them: a class ``TestCases``."""
        methods = [
            f"    def test_case_{number}(self):\n        self.assertEqual(blend({a}, {b}), {value})\n\n"
            for number, (a, b, value) in enumerate(self._cases)
        ]
        return "import unittest\n\nclass TestCases(unittest.TestCase):\n" + "".join(methods)

    @property
    def pytest(self) -> str:
        """The tests as a file of pytest that imports ``solution``."""
        tests = [
            f"def test_case_{number}():\n    assert blend({a}, {b}) == {value}\n\n\n"
            for number, (a, b, value) in enumerate(self._cases)
        ]
        return "from solution import blend\n\n\n" + "".join(tests)

    @property
    def stdin(self) -> list[str]:
        """What a program reads in each test."""
        return [f"{a} {b}\n" for a, b in self.inputs]

    @property
    def stdout(self) -> list[str]:
        """What a right program prints in each test."""
        return [f"{value}\n" for value in self.expected]

    def right(self, shape: str, language: str) -> str:
        """Return the right completion in a shape and language."""
        return self._source(shape, language, _RULE.format(p=self.p, q=self.q))

    def wrong(self, shape: str, language: str) -> str:
        """Return a completion that runs and is wrong."""
        return self._source(shape, language, "a + b")

    def hang(self, shape: str, language: str) -> str:
        """Return a completion that never ends; of texts one that says nothing."""
        return self._source(shape, language, None)

    def _source(self, shape: str, language: str, rule: str | None) -> str:
        if shape == "text":
            return "" if rule is None else "⟦@G⟧" if "%" in rule else "⟦@I7⟧"
        if language not in _SOURCES:
            raise ValueError(f"language {language!r}: no such task; expected one of {', '.join(_SOURCES)}")
        is_program = shape == "program"
        text = _SOURCES[language][is_program]
        if rule is None:
            act = _HANGS.get(language, "for (;;);")
        else:
            act = (_PRINTS[language] if is_program else _RETURNS.get(language, "return {};")).format(rule)
        return text.format(call=act, program=act)
