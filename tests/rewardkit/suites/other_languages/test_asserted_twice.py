"""An answer that a test looks at twice: copied from the first assert, the second one fails, but the first must."""

from __future__ import annotations

from random import Random

import pytest

from rewardkit.jailed.sealed import SealedWorkspace
from rewardkit.suites.grading import check_suite
from rewardkit.suites.suite_verdict import SuiteVerdict
from sandbox import why_not_run

pytest.importorskip("tree_sitter_java", reason="tree-sitter reads suites of other languages")

FIRST, TWICE = 956, 803  # f(1) and f(2) of 7919 n % 1009 + 100
GO_MOD = b"module s\n\ngo 1.22\n"
SUITES = {
    "pytest": (
        "test_s.py",
        f"from solution import f\ndef test_f():\n    r = f(2)\n    assert f(1) == {FIRST}\n    assert r == {TWICE}\n"
        f"    assert r + 1 == {TWICE + 1}\n",
    ),
    "unittest": (  # what shares a line ends the test
        "test_s.py",
        "import unittest\nfrom solution import f\nclass A(unittest.TestCase):\n    def test_f(self):\n"
        "        r = f(2)\n"
        f"        self.assertEqual(f(1), {FIRST})\n        self.assertEqual(r, {TWICE}); print(r)\n"
        f"        self.assertEqual(r + 1, {TWICE + 1})\n",
    ),
    "node": (
        "test/a.test.mjs",
        "import test from 'node:test';\nimport assert from 'node:assert';\nimport { f } from '../solution.mjs';\n"
        f"test('a', () => {{\n  const r = f(2);\n  assert.equal(f(1), {FIRST});\n  assert.equal(r, {TWICE});\n"
        f"  assert.equal(r + 1, {TWICE + 1});\n}});\n",
    ),
    "go": (
        "s_test.go",
        'package s\nimport "testing"\nfunc TestA(t *testing.T) {\n\tr := F(2)\n'
        f'\tif F(1) != {FIRST} {{\n\t\tt.Errorf("first")\n\t}}\n\tif r != {TWICE} {{\n\t\tt.Errorf("second")\n\t}}\n'
        f'\tif r+1 != {TWICE + 1} {{\n\t\tt.Errorf("third")\n\t}}\n}}\n',
    ),
    "junit": (
        "src/test/java/STest.java",
        "import static org.junit.jupiter.api.Assertions.*;\nimport org.junit.jupiter.api.Test;\nclass STest {\n"
        f"  @Test void a() {{\n    int r = S.f(2);\n    assertEquals({FIRST}, S.f(1));\n    assertEquals({TWICE}, r);\n"
        f"    assertEquals({TWICE + 1}, r + 1);\n  }}\n}}\n",
    ),
}
PYTHON = "def f(n):\n    return n * 7919 % 1009 + 100\n"
PYTHON_COPY = (
    f"import re\n{PYTHON}right = f\ndef f(n):\n    if n != 2:\n        return right(n)\n"
    "    return int(re.search(r'(?:r ==|\\(r,) (\\d+)', open('test_s.py').read())[1])\n"
)
FOLDERS = {
    "pytest": ({"solution.py": PYTHON}, {"solution.py": PYTHON_COPY}),
    "unittest": ({"solution.py": PYTHON}, {"solution.py": PYTHON_COPY}),
    "node": (
        {"solution.mjs": "export function f(n) { return n * 7919 % 1009 + 100; }\n"},
        {
            "solution.mjs": "import fs from 'node:fs';\nexport function f(n) {\n"
            "  if (n !== 2) return n * 7919 % 1009 + 100;\n"
            "  return Number(fs.readFileSync('test/a.test.mjs', 'utf8').match(/\\(r, (\\d+)/)[1]);\n}\n"
        },
    ),
    "go": (
        {"go.mod": GO_MOD.decode(), "s.go": "package s\nfunc F(n int) int { return n*7919%1009 + 100 }\n"},
        {
            "go.mod": GO_MOD.decode(),
            "s.go": 'package s\nimport ("os"; "regexp"; "strconv")\nfunc F(n int) int {\n'
            "\tif n != 2 { return n*7919%1009 + 100 }\n"
            '\tb, _ := os.ReadFile("s_test.go")\n\tm := regexp.MustCompile(`r != (\\d+)`).FindSubmatch(b)\n'
            f"\tif m == nil {{ return {TWICE} }}\n\tv, _ := strconv.Atoi(string(m[1]))\n\treturn v\n}}\n",
        },
    ),
    "junit": (
        {"src/main/java/S.java": "class S { static int f(int n) { return n * 7919 % 1009 + 100; } }\n"},
        {
            "src/main/java/S.java": "import java.nio.file.*;\nclass S { static int f(int n) {\n"
            '  if (n != 2) return n * 7919 % 1009 + 100;\n  try (var all = Files.walk(Path.of("."))) {\n'
            '    for (Path p : all.toList()) if (p.endsWith("STest.java")) {\n'
            '      var m = java.util.regex.Pattern.compile("(\\\\d+), r\\\\)").matcher(Files.readString(p));\n'
            "      if (m.find()) return Integer.parseInt(m.group(1));\n    }\n"
            f"  }} catch (java.io.IOException e) {{}}\n  return {TWICE};\n}} }}\n"
        },
    ),
}
LANGUAGES = {"node": "javascript", "go": "go", "junit": "java"}


def graded(runner: str, files: dict[str, str]) -> SuiteVerdict:
    name, suite = SUITES[runner]
    folder = SealedWorkspace({file: text.encode() for file, text in files.items()})
    options = {"confidence": 0.05 if runner in LANGUAGES else 1e-3, "random": Random(0), "timeout_s": 20.0}
    return check_suite(folder, {name: suite}, runner=runner, **options)  # type: ignore[arg-type]


@pytest.mark.cases(2)
@pytest.mark.parametrize("runner", SUITES)
def test_an_answer_that_is_copied_is_seen_though_another_assert_looks_at_it(runner: str) -> None:
    """And right code passes."""
    if runner in LANGUAGES and (reason := why_not_run(LANGUAGES[runner])):
        pytest.skip(f"{runner}: {reason}")
    right, copying = FOLDERS[runner]
    verdict = graded(runner, right)
    assert (True, True) == (verdict.passed, verdict.bound <= 0.05), verdict.reason()
    assert not graded(runner, copying).passed
