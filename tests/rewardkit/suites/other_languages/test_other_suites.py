"""Folders in JavaScript, Go and Java are graded by their own tests, and what forges a pass is not right."""

from __future__ import annotations

import re
from random import Random

import pytest
from other_suites import (
    GO_ACTS,
    GO_RIGHT,
    GO_SUITE,
    JUNIT_ACTS,
    JUNIT_RIGHT,
    JUNIT_SUITE,
    NODE_ACTS,
    NODE_RIGHT,
    NODE_SUITE,
)

from rewardkit.errors import SuiteError
from rewardkit.jailed.jail import close_shared
from rewardkit.jailed.sealed import SealedWorkspace
from rewardkit.suites import runners
from rewardkit.suites.grading import check_suite
from rewardkit.suites.other_languages.java_tests import java_tests
from rewardkit.suites.other_languages.node_tests import node_tests
from rewardkit.suites.source_text import replaced_text
from rewardkit.suites.suite_verdict import SuiteStatus, SuiteVerdict
from sandbox import why_not_run

pytest.importorskip("tree_sitter_java", reason="tree-sitter reads suites of other languages")
needs_node = pytest.mark.skipif(why_not_run("javascript") is not None, reason="node does not run in the jail here")
needs_go = pytest.mark.skipif(why_not_run("go") is not None, reason="go does not run in the jail here")
needs_java = pytest.mark.skipif(why_not_run("java") is not None, reason="java does not run in the jail here")
GO_MOD = {"go.mod": b"module example.com/blend\n\ngo 1.22\n"}


def node(source: str, **options: object) -> SuiteVerdict:
    files = {"package.json": b"{}", "lib.js": source.encode()}
    options = {"timeout_s": 10.0, **options}
    return check_suite(SealedWorkspace(files), {"test/a.test.js": NODE_SUITE}, runner="node", **options)  # type: ignore[arg-type]


def go(source: str, **options: object) -> SuiteVerdict:
    files = {**GO_MOD, "blend.go": source.encode()}
    options = {"timeout_s": 5.0, **options}
    return check_suite(SealedWorkspace(files), {"blend_test.go": GO_SUITE}, runner="go", **options)  # type: ignore[arg-type]


def junit(source: str, **options: object) -> SuiteVerdict:
    files = {"src/main/java/blend/Blend.java": source.encode()}
    tests = {"src/test/java/blend/BlendTest.java": JUNIT_SUITE}
    options = {"timeout_s": 5.0, **options}
    return check_suite(SealedWorkspace(files), tests, runner="junit", **options)  # type: ignore[arg-type]


@needs_java
def test_right_java_passes() -> None:
    """Each test is guarded, and rows are results of their own."""
    verdict = junit(JUNIT_RIGHT, confidence=0.1)
    place = "src/test/java/blend/BlendTest.java::"
    assert (True, True) == (verdict.passed, verdict.bound <= 0.1), verdict.reason()
    assert ["blends", "fails", "rows[1]", "rows[2]", "words"] == [
        result.name.removeprefix(place) for result in verdict.results
    ]
    assert () == verdict.weak
    expected = {"broken": [f"{place}blends"], "kept": [f"{place}rows[2]"]}
    wrong = junit(JUNIT_RIGHT.replace("7919", "7918"), expected=expected)
    assert (0.0, 1.0) == (wrong.share("broken"), wrong.share("kept"))


@pytest.mark.parametrize(
    ("source", "parameters", "body", "kinds"),
    [
        ('@CsvSource({"1, 956", "2, 803"})', "int n, int want", "assertEquals(want, f(n));", ["value"]),
        ('@CsvSource({"1,x y", "2,  zz "})', "int n, String want", "assertEquals(want, g(n));", ["value"]),
        ('@CsvSource({"true, 1.5", "false, -2.5"})', "boolean want, double n", "assertEquals(want, h(n));", ["value"]),
        ('@CsvSource({"1, 956", "2, 803"})', "int n, int want", "use(want); assertEquals(want, f(n));", []),
        ('@CsvSource({"1, \'9, 5\'", "2, 803"})', "int n, String want", "assertEquals(want, g(n));", []),
        ('@CsvSource({"1, ", "2, 803"})', "int n, String want", "assertEquals(want, g(n));", []),
        ('@CsvSource({"1, 956, 0", "2, 803, 0"})', "int n, int want", "assertEquals(want, f(n));", []),
        ('@CsvSource(value = {"1; 956"}, delimiter = \';\')', "int n, int want", "assertEquals(want, f(n));", []),
        ('@CsvSource({"1, 956"}) @MethodSource("more")', "int n, int want", "assertEquals(want, f(n));", []),
        ('@ValueSource(ints = {1, 2})', "int n", "assertEquals(n, f(n));", []),
    ],
)  # fmt: skip
def test_rows_of_java_are_changed_where_their_cells_are_plain(
    source: str, parameters: str, body: str, kinds: list[str]
) -> None:
    """All rows together; a cell with quotes, none, or one that is used for more is left as it is."""
    suite = f"class STest {{\n  @ParameterizedTest {source}\n  void rows({parameters}) {{ {body} }}\n}}\n"
    (test,) = java_tests("src/test/java/STest.java", suite)
    assert kinds == [change.kind for change in test.perturbations]
    for change in test.perturbations:
        assert source.count('"') // 2 == len(change.changes)
        for seed in range(50):
            text = replaced_text(suite, [cell.draw(Random(seed)) for cell in change.changes])
            before, after = (re.findall(r'"([^"]*)"', part) for part in (suite, text))
            assert all(one != other for one, other in zip(before, after, strict=True))
            assert [row.count(",") for row in before] == [row.count(",") for row in after]


@needs_java
def test_a_row_that_is_copied_is_seen() -> None:
    """Though all others are right."""
    suite = (
        "import static org.junit.jupiter.api.Assertions.*;\nimport org.junit.jupiter.params.ParameterizedTest;\n"
        "import org.junit.jupiter.params.provider.CsvSource;\nclass STest {\n"
        '  @ParameterizedTest @CsvSource({"1, 956", "2, 803", "4, 497"}) void rows(int n, int want) {'
        " assertEquals(want, S.f(n)); }\n}\n"
    )
    right = "class S { static int f(int n) { return n * 7919 % 1009 + 100; } }\n"
    copying = (
        "class S { static int f(int n) { if (n != 2) return n * 7919 % 1009 + 100;\n  try (var all = "
        'java.nio.file.Files.walk(java.nio.file.Path.of("."))) {\n    for (var p : all.toList()) if '
        '(p.endsWith("STest.java")) {\n      var m = java.util.regex.Pattern.compile("\\"2, (\\\\d+)").matcher('
        "java.nio.file.Files.readString(p));\n      if (m.find()) return Integer.parseInt(m.group(1));\n    }\n"
        "  } catch (java.io.IOException e) {}\n  return 803;\n} }\n"
    )
    verdicts = [
        check_suite(
            SealedWorkspace({"src/main/java/S.java": source.encode()}),
            {"src/test/java/STest.java": suite},
            runner="junit",
            confidence=0.1,
            random=Random(1),
        )
        for source in (right, copying)
    ]
    assert [SuiteStatus.PASSED, SuiteStatus.FORGED] == [verdict.status for verdict in verdicts]


@needs_java
@pytest.mark.cases(3)
@pytest.mark.parametrize("level", ["strict", "standard"])
@pytest.mark.parametrize("act", JUNIT_ACTS)
def test_no_java_forges_a_pass(monkeypatch: pytest.MonkeyPatch, act: str, level: str) -> None:
    """Whatever it does to the process and to what is printed."""
    monkeypatch.setenv("REWARDKIT_SANDBOX_LEVEL", level)
    close_shared()
    verdict = junit(JUNIT_ACTS[act], confidence=1e-6, timeout_s=3.0)
    close_shared()
    assert (False, 0.0) == (verdict.passed, verdict.score().value), verdict.reason()


@needs_node
def test_right_javascript_passes() -> None:
    """Each test is guarded; rows of a loop are results of their own."""
    verdict = node(NODE_RIGHT)
    assert (True, (), True) == (verdict.passed, verdict.weak, verdict.bound <= 1e-3), verdict.reason()
    assert [
        "test/a.test.js::blends",
        "test/a.test.js::words::repeats 1 times",
        "test/a.test.js::words::repeats 2 times",
        "test/a.test.js::words::says what is wrong",
        "test/a.test.js::blends others::large",
        "test/a.test.js::blends others",
    ] == [result.name for result in verdict.results]


@pytest.mark.parametrize(
    ("callback", "kinds"),
    [
        ("() => assert.strictEqual(f(1), 144)", ["value", "polarity"]),
        ("() => (assert.strictEqual(f(1), 144))", ["value", "polarity"]),
        ("async () => await assert.rejects(f(1), TypeError)", ["exception", "polarity"]),
        ("(t) => t.assert.ok(f(1) === 144)", ["value", "polarity"]),
        ("() => { assert.strictEqual(f(1), 144); }", ["value", "polarity"]),
        ("() => f(1)", []),
    ],
)
def test_an_arrow_function_without_braces_is_guarded(callback: str, kinds: list[str]) -> None:
    """Its expression is its one statement, in a test and in what groups tests."""
    head = "const test = require('node:test');\nconst assert = require('node:assert');\n"
    text = f"{head}test('x', {callback});\ntest.describe('d', () => test('y', {callback}));\n"
    tests = {test.name: [change.kind for change in test.perturbations] for test in node_tests("a.test.js", text)}
    assert {"a.test.js::x": kinds, "a.test.js::d::y": kinds} == tests


@needs_go
def test_right_go_passes() -> None:
    """Each test is guarded; subtests are results of their own."""
    verdict = go(GO_RIGHT, confidence=0.1)
    assert (True, (), True) == (verdict.passed, verdict.weak, verdict.bound <= 0.1), verdict.reason()
    assert ["TestBlend", "TestWord/a", "TestWord/b", "TestWord", "TestBoth"] == [
        result.name.removeprefix("blend_test.go::") for result in verdict.results
    ]


@needs_node
@pytest.mark.cases(6)
@pytest.mark.parametrize("level", ["strict", "standard"])
@pytest.mark.parametrize("act", NODE_ACTS)
def test_no_javascript_forges_a_pass(monkeypatch: pytest.MonkeyPatch, act: str, level: str) -> None:
    """Whatever it does to asserts, to the runner and to what is printed."""
    monkeypatch.setenv("REWARDKIT_SANDBOX_LEVEL", level)
    close_shared()
    verdict = node(NODE_ACTS[act], confidence=1e-6, timeout_s=3.0)
    close_shared()
    assert (False, 0.0) == (verdict.passed, verdict.score().value), verdict.reason()


@needs_go
@pytest.mark.cases(4)
@pytest.mark.parametrize("level", ["strict", "standard"])
@pytest.mark.parametrize("act", GO_ACTS)
def test_no_go_forges_a_pass(monkeypatch: pytest.MonkeyPatch, act: str, level: str) -> None:
    """Whatever it does to the process and to what is printed."""
    monkeypatch.setenv("REWARDKIT_SANDBOX_LEVEL", level)
    close_shared()
    verdict = go(GO_ACTS[act], confidence=1e-6, timeout_s=3.0)
    close_shared()
    assert (False, 0.0) == (verdict.passed, verdict.score().value), verdict.reason()


@needs_node
@pytest.mark.parametrize(
    ("source", "expected", "outcomes"),
    [
        (NODE_RIGHT.replace("7919", "7918"), None, {"failed", "passed"}),
        ("syntax error", None, {"missing"}),
        (NODE_RIGHT, ["test/a.test.js::words::no such"], {"missing"}),
        (NODE_RIGHT.replace("7919", "7918"), ["test/a.test.js::words::repeats 1 times"], {"passed"}),
    ],
)
def test_what_javascript_must_pass_is_what_is_expected(
    source: str, expected: list[str] | None, outcomes: set[str]
) -> None:
    """A test that does not appear has failed."""
    verdict = node(source, expected=expected, confidence=0.5)
    assert outcomes == {result.outcome for result in verdict.results}
    assert verdict.passed == (outcomes == {"passed"})


@needs_go
def test_what_go_must_pass_is_what_is_expected() -> None:
    """By the names of tests, with or without their files; subtests too."""
    groups = {"broken": ["TestBlend"], "kept": ["blend_test.go::TestWord/b"]}
    verdict = go(GO_RIGHT.replace("a*7919", "a*7918"), expected=groups)
    assert {"broken": 0.0, "kept": 1.0} == {group: verdict.share(group) for group in groups}
    assert go(GO_RIGHT, expected=["TestNone"]).status is SuiteStatus.UNSUITABLE
    assert "undefined: nothing" in go(GO_RIGHT + "\nvar x = nothing\n").error


@needs_go
def test_packages_of_a_module_import_each_other() -> None:
    """Tests outside of their package, files for other machines, and what an agent adds to the tests."""
    files = {
        **GO_MOD,
        "inner/deep/deep.go": b"package deep\n\nfunc Two() int { return 2 }\n",
        "inner/inner.go": b'package inner\n\nimport "example.com/blend/inner/deep"\n\n'
        b"func F() int { return deep.Two() }\n",
        "inner/inner_windows.go": b"package inner\n\nfunc F() int { return 3 }\n",
        "inner/inner_tag.go": b"//go:build ignore || (windows && !linux)\n\npackage main\n",
        "inner/mine_test.go": b"package inner\n\nfunc init() { panic(1) }\n",
    }
    tests = {
        "inner/a_test.go": 'package inner_test\n\nimport (\n\t"os"\n\t"testing"\n\n\t"example.com/blend/inner"\n)\n\n'
        "func TestMain(m *testing.M) { os.Exit(m.Run()) }\n\n"
        "func TestF(t *testing.T) {\n\tif inner.F() != 2 {\n\t\tt.Fatal()\n\t}\n}\n\n"
        'func TestData(t *testing.T) {\n\tdata, _ := os.ReadFile("testdata/x.txt")\n'
        '\tif string(data) != "here" {\n\t\tt.Fatal()\n\t}\n}\n',
        "inner/b_darwin_test.go": "package inner\n\nfunc TestNone(t *testing.T) {}\n",
        "inner/testdata/x.txt": "here",
    }
    verdict = check_suite(SealedWorkspace(files), tests, runner="go", confidence=0.5)
    assert verdict.passed, verdict.reason()
    assert ["inner/a_test.go::TestF", "inner/a_test.go::TestData"] == [result.name for result in verdict.results]
    assert {"inner/mine_test.go"} == set(verdict.left_out)


@needs_node
def test_modules_of_both_kinds_are_imported() -> None:
    """By `import`, with asserts under names of their own; what an agent adds to the tests is left out."""
    files = {"lib.mjs": b"export const f = (n) => n * 7919;\n", "test/mine.test.js": b"process.exit(0)"}
    tests = {
        "test/a.test.mjs": "import run, { describe as group } from 'node:test';\n"
        "import { deepEqual as same, strict as a } from 'node:assert';\nimport { f } from '../lib.mjs';\n"
        "group('g', () => { run('one', () => { same([f(1), 2], [7919, 2]); }); });\n"
        "run.it('two', () => { a.equal(f(2), 15838); });\n"
    }
    verdict = check_suite(SealedWorkspace(files), tests, runner="node")
    assert (True, ()) == (verdict.passed, verdict.weak), verdict.reason()
    assert {"test/mine.test.js"} == set(verdict.left_out)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"runner": "jest"}, "expected one of 'pytest', 'unittest', 'node', 'go', 'junit'"),
        ({"runner": "node", "packages": ["attrs"]}, "are for pytest"),
        ({"runner": "go", "arguments": ["-v"]}, "are for pytest"),
    ],
)
def test_what_makes_no_sense_is_told(options: dict[str, object], words: str) -> None:
    """Before anything runs."""
    with pytest.raises(SuiteError, match=words):
        check_suite(SealedWorkspace({}), {"a_test.go": ""}, **options)  # type: ignore[arg-type]


def test_a_language_that_does_not_run_here_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is missing."""
    monkeypatch.setattr(runners, "why_not_run", lambda name: f"{name} is not here")
    with pytest.raises(SuiteError, match="runner='go': go is not here"):
        check_suite(SealedWorkspace({}), {"a_test.go": ""}, runner="go")


@needs_node
def test_a_suite_that_cannot_be_read_is_the_tasks_fault() -> None:
    """By file and line."""
    verdict = check_suite(SealedWorkspace({}), {"a.test.js": "const = 1;\n\n"}, runner="node")
    assert (SuiteStatus.UNSUITABLE, True) == (verdict.status, "a.test.js, line 1" in verdict.error)
