"""Suites of each language judge a function that is in another process."""

import dataclasses

import pytest
from bare_drivers import TOOLCHAINS, DoesNotCompileError, built, driver_of, judging
from driver_suites import SUITES, JudgedSuite

from sandbox.languages.language import CannotDriveError, Suite


def _needs(language: str) -> None:
    missing = TOOLCHAINS[language].missing()
    if missing:
        pytest.skip(f"{missing} is not on this machine")


@pytest.mark.slow
@pytest.mark.cases(3)
@pytest.mark.parametrize("judged", SUITES, ids=lambda judged: f"{judged.language}: {judged.id}")
def test_a_suite_accepts_the_right_completion_and_no_other(judged: JudgedSuite):
    """The right one passes; a wrong one, one that ends at once and one that does not compile fail."""
    _needs(judged.language)
    with judging(judged.language, judged.suite) as judge:
        judgments = [judge(judged.completion(rest)) for rest in (judged.right, judged.wrong, "(")]
    assert [True, False, False] == judgments


_ENDS = {
    "cpp": "#include <cstdlib>\nint f(int x) { std::exit(0); }\nstruct A { A() { std::_Exit(0); } } a;",
    "javascript": "function f(x) { process.exit(0) }",
    "java": "class Solution { int f(int x) { Runtime.getRuntime().halt(0); return 1; } }",
    "rust": "fn f(x: i32) -> i32 { std::process::exit(0) }",
    "php": "<?php exit(0); function f($x) { exit(0); }",
    "ruby": "def f(x) = exit!(0)",
}
_LIARS = {
    "cpp": "#include <cstdlib>\n#include <cstring>\n"
    'extern "C" long write(int, const void*, unsigned long);\nint f(int x) { return 0; }\n'
    'const char* line = std::getenv("LINE");\n'
    "struct A { A() { for (int i = 0; i < 9; i++) write(4, line, std::strlen(line)); } } a;",
    "javascript": "require('fs').writeSync(4, process.env.LINE.repeat(9)); function f(x) { return 0 }",
    "php": "<?php fwrite(fopen('php://fd/4', 'w'), str_repeat(getenv('LINE'), 9)); function f($x) { return 0; }",
    "ruby": "IO.for_fd(4, 'w', autoclose: false).syswrite(ENV['LINE'] * 9)\ndef f(x) = 0",
}
_SUITES = {
    "cpp": Suite("#include <cassert>\nint main() { assert(f(2) == 3); }", "f", "int f(int x) {"),
    "javascript": Suite("console.assert(f(2) === 3)", "f", "function f(x) {"),
    "java": Suite(
        "class Main { public static void main(String[] a) { assert new Solution().f(2) == 3; } }",
        "f",
        "class Solution { int f(int x) {",
    ),
    "rust": Suite("fn main() { assert_eq!(f(2), 3); }", "f", "fn f(x: i32) -> i32 {"),
    "php": Suite("assert(f(2) === 3);", "f", "<?php function f($x) {"),
    "ruby": Suite("raise unless f(2) == 3", "f", "def f(x)"),
}


@pytest.mark.cases(3)
@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(_ENDS))
def test_a_completion_that_ends_itself_fails(language: str):
    """The tester ends with the completion, and not well."""
    _needs(language)
    with judging(language, _SUITES[language]) as judge:
        assert False is judge(_ENDS[language])


_LINES = ["", "{", "null", "[]", '{"v"', '{"w":3}', '{"v":[3]}', '{"v":{"$m":3}}', '{"v":2}', "[" * 5000]


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(_LIARS))
def test_lines_that_are_no_answers_fail(language: str, monkeypatch: pytest.MonkeyPatch):
    """What a completion writes besides answers ends the tester; the right answer as often does not."""
    _needs(language)
    judgments = {}
    with judging(language, _SUITES[language]) as judge:
        for line in [*_LINES, '{"v":3}']:
            monkeypatch.setenv("LINE", f"{line}\n")
            judgments[line] = judge(_LIARS[language])
    assert {**dict.fromkeys(_LINES, False), '{"v":3}': True} == judgments


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(_SUITES))
def test_tests_without_a_call_are_at_fault(language: str):
    """Tests that end well and never call have shown nothing."""
    _needs(language)
    calls = {"f(2) == 3": "true", "f(2) === 3": "true", "new Solution().f(2) == 3": "true", "f(2), 3": "3, 3"}
    tests = _SUITES[language].tests
    for call in sorted(calls, key=len, reverse=True):
        tests = tests.replace(call, calls[call])
    suite = dataclasses.replace(_SUITES[language], tests=tests)
    with judging(language, suite) as judge:
        assert None is judge(suite.declaration + _rest(language))


def _rest(language: str) -> str:
    return {"java": " return 3; } }", "ruby": "\n3\nend\n"}.get(language, " return 3; }")


@pytest.mark.parametrize(
    ("language", "declaration"),
    [
        ("cpp", ""),
        ("cpp", "int g(int x) { return 1; }"),
        ("cpp", "int f(int* x) {"),
        ("cpp", "int f(int) {"),
        ("cpp", "template <class T> int f(T x) {"),
        ("java", "class Solution {"),
        ("go", "type f struct {}"),
        ("rust", "struct F;"),
        ("php", "<?php class F {}"),
        ("php", "<?php function f($x);"),
        ("ruby", "class F"),
        ("perl", "sub f {"),
        ("lua", "function f()"),
        ("bash", "f() {"),
        ("c", "int f() {"),
    ],
)
def test_what_cannot_be_stubbed_is_said(language: str, declaration: str):
    """A row whose function the tests cannot ask for is skipped with a reason."""
    with pytest.raises(CannotDriveError, match="tests do not fit"):
        driver_of(language).tester(Suite("", "f", declaration))


@pytest.mark.slow
def test_tests_that_do_not_compile_are_no_tester():
    """What is wrong with a row's tests is said by the compiler of the tester."""
    _needs("cpp")
    with (
        pytest.raises(DoesNotCompileError, match="nowhere"),
        built(
            "cpp", driver_of("cpp").tester(dataclasses.replace(_SUITES["cpp"], tests="int main() { nowhere(f(1)); }"))
        ),
    ):
        pass
